"""Owns the two stops of the robot, whether they are engaged, and how that is told."""

from collections.abc import Callable

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import Bool
from std_srvs.srv import Trigger

from awp_ros_bridge.sim_robot.faults import Faults

LATCHED = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)


class Stops:
    """
    The emergency stop and the protective stop.

    Topics ``safety/e_stop`` and ``safety/protective_stop`` (latched) carry the state at every
    change and ten times a second; services under ``sim/`` trip and clear.
    """

    def __init__(self, node: Node, faults: Faults, on_trip: Callable[[str], None]) -> None:
        """
        Begin with both released.

        :param on_trip: called with the name of a stop right after it was engaged
        """
        self._log = node.get_logger()
        self._faults = faults
        self._on_trip = on_trip
        self._engaged = {'e_stop': False, 'protective_stop': False}
        self._publishers = {
            name: node.create_publisher(Bool, f'safety/{name}', LATCHED) for name in self._engaged
        }
        for name in self._engaged:
            node.create_service(Trigger, f'sim/trip_{name}', self._answer(name, True))
            node.create_service(Trigger, f'sim/clear_{name}', self._answer(name, False))

    @property
    def engaged(self) -> str:
        """Name the stops that are engaged, empty where none is."""
        return ', '.join(name for name, is_engaged in self._engaged.items() if is_engaged)

    def set(self, name: str, is_engaged: bool) -> None:
        """Trip or clear a stop; the topic says so at once, then the motion is told."""
        changed = self._engaged[name] is not is_engaged
        self._engaged[name] = is_engaged
        self._publish(name)
        if not changed:
            return
        self._log.info(f'{name} {"engaged" if is_engaged else "released"}')
        if is_engaged:
            self._on_trip(name)

    def publish(self) -> None:
        """Repeat both states, for readers that judge by freshness."""
        for name in self._engaged:
            self._publish(name)

    def _publish(self, name: str) -> None:
        if 'safety_silence' not in self._faults:
            self._publishers[name].publish(Bool(data=self._engaged[name]))

    def _answer(
        self, name: str, is_engaged: bool
    ) -> Callable[[Trigger.Request, Trigger.Response], Trigger.Response]:
        def answer(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            self.set(name, is_engaged)
            response.success = True
            response.message = f'{name} {"engaged" if is_engaged else "released"}'
            return response

        return answer
