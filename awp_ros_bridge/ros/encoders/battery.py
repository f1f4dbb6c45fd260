"""Owns the encoding of sensor_msgs/msg/BatteryState."""

from __future__ import annotations

from functools import cache
from typing import Any

from awp_ros_bridge.config import TopicChannel
from awp_ros_bridge.ros.encoders.base import BadMessage, JsonEncoder
from awp_ros_bridge.ros.encoders.values import about, closed, number32, NUMBER_OR_NULL
from awp_ros_bridge.ros.interfaces import load_interface

Json = dict[str, Any]

_TYPE = 'sensor_msgs/msg/BatteryState'
_C_PER_AH = 3600.0
_ZERO_CELSIUS_K = 273.15
_UNKNOWN = 'unknown'


def _value(description: str) -> Json:
    return about(NUMBER_OR_NULL, f'{description}; null: not measured')


def _values(description: str) -> Json:
    return {'type': 'array', 'items': NUMBER_OR_NULL, 'description': description}


_SCHEMA = closed(
    {
        'present': {'type': 'boolean', 'description': 'whether there is a battery'},
        'state_of_charge': {
            'type': ['number', 'null'],
            'minimum': 0,
            'maximum': 1,
            'description': 'from 0, empty, to 1, full; null: not measured',
        },
        'voltage_v': _value('voltage'),
        'current_a': _value('current; negative while it is discharged'),
        'charge_c': _value('charge, in coulombs'),
        'capacity_c': _value('charge when it was last full, in coulombs'),
        'design_capacity_c': _value('charge by design, in coulombs'),
        'temperature_k': _value('temperature'),
        'status': {'type': 'string', 'description': 'such as charging, discharging, full'},
        'health': {'type': 'string', 'description': 'such as good, overheat, dead'},
        'technology': {'type': 'string', 'description': 'such as lion, lipo, life'},
        'cell_voltages_v': _values('voltages of the cells; empty: not measured'),
        'cell_temperatures_k': _values('temperatures of the cells; empty: not measured'),
        'location': {'type': 'string', 'description': 'where the battery sits'},
        'serial_number': {'type': 'string', 'description': 'as the battery says'},
    },
    'state of a battery, in SI units: charge in coulombs, temperature in kelvin',
)


class BatteryEncoder(JsonEncoder):
    """State of a battery, in SI units."""

    types = (_TYPE,)
    summary = (
        'Ah become coulombs, degrees Celsius kelvin. A `percentage` beyond 0 to 1 is a fault of '
        'the driver: the message is not sent.'
    )

    @classmethod
    def schema(cls, channel: TopicChannel) -> Json:
        """Return the schema of its payloads."""
        return _SCHEMA

    def body(self, message: Any) -> Json:
        """Return what the payload holds."""
        level = message.percentage
        if level < 0 or level > 1:
            raise BadMessage('percentage', f'is {level:g}; in ROS it goes from 0 to 1')
        return {
            'present': message.present,
            'state_of_charge': number32(level),
            'voltage_v': number32(message.voltage),
            'current_a': number32(message.current),
            'charge_c': _coulombs(message.charge),
            'capacity_c': _coulombs(message.capacity),
            'design_capacity_c': _coulombs(message.design_capacity),
            'temperature_k': _kelvin(message.temperature),
            'status': _words('STATUS').get(message.power_supply_status, _UNKNOWN),
            'health': _words('HEALTH').get(message.power_supply_health, _UNKNOWN),
            'technology': _words('TECHNOLOGY').get(message.power_supply_technology, _UNKNOWN),
            'cell_voltages_v': [number32(v) for v in message.cell_voltage],
            'cell_temperatures_k': [_kelvin(v) for v in message.cell_temperature],
            'location': message.location,
            'serial_number': message.serial_number,
        }


def _coulombs(value: float) -> Any:
    return number32(value * _C_PER_AH)


def _kelvin(value: float) -> Any:
    return number32(value + _ZERO_CELSIUS_K)


@cache
def _words(kind: str) -> dict[int, str]:
    """Return the words of an enumeration by number, as the message declares them."""
    prefix = f'POWER_SUPPLY_{kind}_'
    message_type = load_interface(_TYPE)
    names = [name for name in dir(message_type) if name.startswith(prefix)]
    return {getattr(message_type, name): name.removeprefix(prefix).lower() for name in names}
