"""
Owns the table of safety mechanisms: the switch that disables each, and the test that then fails.

A switch replaces one attribute of the bridge's code for the time of one test. It exists here only:
the bridge itself has no way to switch any of this off. A test stands in one row only, so that one
run plays all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

Make = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Mechanism:
    """
    One mechanism.

    :param name: short, for the table and the command line.
    :param keeps: what it keeps from happening.
    :param switch: module and attribute that is replaced, as ``module:Class.method``.
    :param disabled: what the replacement does instead, in words.
    :param make: takes what stood there, returns the replacement.
    :param test: the test that must fail by an assertion, as pytest names it.
    """

    name: str
    keeps: str
    switch: str
    disabled: str
    make: Make
    test: str


def _always(value: object) -> Make:
    """Return something fixed instead."""
    return lambda original: lambda *args, **kwargs: value


def _nothing(original: Any) -> Any:
    """Do nothing instead."""
    return lambda *args, **kwargs: None


def _property_of(value: object) -> Make:
    return lambda original: property(lambda self: value)


def _no_way_back(original: Any) -> Any:
    """Let a body go wherever it wants once it has rested outside."""

    def settle(self: Any, value: float) -> None:
        self.is_engaged, self.allowed = False, float('inf')
        self.take = lambda value: False

    return settle


def _no_epoch(original: Any) -> Any:
    """Let an open gate out what was decided before it was shut."""

    def refusal(self: Any, embodiment: str, epoch: int) -> str | None:
        found: str | None = original(self, embodiment, epoch)
        return found if self.causes(embodiment) else None

    return refusal


def _in_graph(original: Any) -> Any:
    """Take the graph's word."""
    return lambda self, server: self._clients[server].service_is_ready()


def _open_gate(original: Any) -> Any:
    """Hold nothing back but old epochs."""

    def refusal(self: Any, embodiment: str, epoch: int) -> str | None:
        found: str | None = original(self, embodiment, epoch)
        return None if self.causes(embodiment) else found

    return refusal


def _one_reader(original: Any) -> Any:
    """Let the newest message count, whichever reader heard it."""

    def take(self: Any, reader: int, message: Any, at_ns: int) -> None:
        original(self, 0, message, at_ns)

    return take


def _lenient(original: Any) -> Any:
    """Take a message that lacks an item for one that says nothing about it."""

    def read(self: Any, message: Any) -> Any:
        try:
            yield from original(self, message)
        except ValueError:
            return

    return read


def _nan_is_slow(original: Any) -> Any:
    """Take a velocity that is no number for standstill."""

    def take(self: Any, at_ns: int, position: float, velocity: float | None) -> None:
        is_number = velocity is not None and abs(velocity) < 1e308
        original(self, at_ns, position, velocity if is_number else 0.0)

    return take


def _old_samples(original: Any) -> Any:
    """Count samples from before the question too."""
    return lambda self, since_ns, for_ns: original(self, 0, for_ns)


def _release_at_once(original: Any) -> Any:
    """End an e-stop with the first input that clears."""

    def changed(self: Any, change: Any) -> None:
        embodiment = self._kernel.embodiments.get(change.embodiment)
        if embodiment is not None and not change.engaged:
            embodiment.stops.clear()
        original(self, change)

    return changed


def _forget_debt(original: Any) -> Any:
    """Make an embodiment that did not come to rest available at once."""

    def owe(self: Any, embodiment: Any, why: str) -> None:
        original(self, embodiment, why)
        embodiment.rest_owed = None

    return owe


def _end_without_rest(original: Any) -> Any:
    """End an abort with its goal; nobody waits for rest."""
    return lambda self, action: self._finish(action)


def _first_cause(original: Any) -> Any:
    """Tell the cause that came first."""

    def end(self: Any, action: Any, cause: Any, detail: str = '', *, live: bool = True) -> None:
        if action.ending is None:
            original(self, action, cause, detail, live=live)

    return end


def _in_any_order(original: Any) -> Any:
    """Carry effects out in the order in which the engine named them."""

    def carry_out(self: Any, effects: list[Any]) -> None:
        for effect in effects:
            self._one(effect)

    return carry_out


def _beat_on(original: Any) -> Any:
    """Beat on after the engine has failed."""

    def fail(self: Any, error: Exception) -> None:
        original(self, error)
        self._broken = False
        self._keep_beating()

    return fail


def _any_token(original: Any) -> Any:
    """Let every token be the first that is known."""
    return lambda self, token: self._known[0].permissions


def _token_again(original: Any) -> Any:
    """Make all tokens alike."""
    return lambda *args: b'the same for all'


def _next_before_the_end(original: Any) -> Any:
    """Start the next goal of a group while an old one may still run."""

    def advance(self: Any, group: Any) -> None:
        if group.waiting is not None:
            group.running = None
        original(self, group)

    return advance


def _no_waiting_for_claims(original: Any) -> Any:
    """Take a bridge that is not heard yet for one that is gone."""
    return lambda self, other, left_ns: original(self, other, 0)


def _only_those_found(original: Any) -> Any:
    """Forget a goal whose server has not been found yet."""

    def ask(self: Any, other: Any) -> None:
        if self._links[other.server].is_ready():
            original(self, other)
        else:
            self._forget(other)

    return ask


def _no_latch(original: Any) -> Any:
    """Let an input go as soon as the hardware does."""

    def tell(self: Any, embodiment: str, told: Any, verdict: Any, stale: Any) -> None:
        told.latched = None
        original(self, embodiment, told, verdict, stale)
        told.latched = None

    return tell


def _no_companion(original: Any) -> Any:
    """Take what is latched for true, whether its driver lives or not."""

    def stale(self: Any, now_ns: int) -> str | None:
        return None if self._spec.companion is not None else original(self, now_ns)

    return stale


def _any_trip(original: Any) -> Any:
    """Tell the first of several trips, not the hardest."""

    def tripped(self: Any) -> Any:
        found = (said for state in self._parts.values() for said in state.unsafe)
        return next((said for said in found if said is not None), None)

    return tripped


def _look_once(original: Any) -> Any:
    """Look for what stops until it is there, and never again."""

    def look(self: Any) -> None:
        if any(self._missing.values()):
            original(self)

    return look


def _always_done(original: Any) -> Any:
    """Take a behaviour that failed for one that did not."""

    def finished(self: Any, ticket: int, *, ok: bool, detail: str) -> None:
        original(self, ticket, ok=True, detail=detail)

    return finished


def _answers_count(original: Any) -> Any:
    """Let every message keep the watchdog off, answers to heartbeats too."""

    def heard(self: Any, session: Any) -> None:
        original(self, session)
        self.originated(session)

    return heard


def _for_ever(original: Any) -> Any:
    """Let tokens live for as long as they may."""
    return lambda self, session, expires_in_ms: original(self, session, 10**9)


def _same_stamp_is_news(original: Any) -> Any:
    """Take a transform that is repeated with its old stamp for a new one."""

    def is_news(self: Any, at_ns: int, edges: Any) -> bool:
        self._stamps = {}
        return bool(original(self, at_ns, edges))

    return is_news


ENGINE = 'awp_ros_bridge.engine'
ROS = 'awp_ros_bridge.ros'
UNIT = 'test/unit'

MECHANISMS = (
    Mechanism(
        'gate',
        'a goal leaves while an input forbids motion',
        f'{ROS}.stop:StopGate.refusal',
        'only old epochs are refused',
        _open_gate,
        f'{UNIT}/test_local_stop.py::'
        'test_a_shut_gate_refuses_with_what_holds_it_and_opens_with_the_last_cause',
    ),
    Mechanism(
        'stop epoch',
        'a goal that was decided on before a stop leaves after its release',
        f'{ROS}.stop:StopGate.refusal',
        'only shut gates refuse',
        _no_epoch,
        f'{UNIT}/test_local_stop.py::'
        'test_a_decision_from_before_a_stop_stays_refused_after_its_release',
    ),
    Mechanism(
        'local stop',
        'a running goal goes on until the engine has decided',
        f'{ROS}.stop:LocalStop.cancel_all',
        'nothing is cancelled',
        _nothing,
        f'{UNIT}/test_local_stop.py::'
        'test_an_engaged_input_shuts_the_gate_tells_and_cancels_in_this_order',
    ),
    Mechanism(
        'withdrawal of queued goals',
        'a goal that waits to be sent leaves after the stop',
        f'{ROS}.live_goals:LiveGoals.withdraw',
        'nothing is withdrawn',
        _always([]),
        f'{UNIT}/test_local_stop.py::'
        'test_a_goal_that_is_still_queued_at_the_stop_is_not_sent_any_more',
    ),
    Mechanism(
        'cancel on late accept',
        'a goal that a slow server accepts after the stop runs',
        f'{ROS}.live_goals:LiveGoals.accepted',
        'no cancel is wanted on acceptance',
        _always(False),
        f'{UNIT}/test_local_stop.py::'
        'test_a_goal_that_is_accepted_after_the_stop_must_be_cancelled_then',
    ),
    Mechanism(
        'dead-man timer',
        'the robot goes on while the loop stands still',
        f'{ROS}.beat:DeadMan._trip',
        'nothing happens',
        _nothing,
        f'{UNIT}/test_local_stop.py::'
        'test_a_loop_that_falls_silent_stops_every_embodiment_in_time_and_releases_on_return',
    ),
    Mechanism(
        'guardian lease',
        'a killed bridge leaves its goals running',
        'awp_ros_bridge.guardian.wards:Wards.expire',
        'no lease ends',
        _always([]),
        f'{UNIT}/test_guardian_wards.py::test_a_lease_ends_exactly_after_the_last_beat',
    ),
    Mechanism(
        'age of beats',
        'a thread that hangs is covered up by the beats of the loop',
        f'{ROS}.guardian_beats:GuardianBeats._age_ns',
        'every thread has just turned',
        _always(0),
        f'{UNIT}/test_guardian_bridge.py::test_a_thread_that_hangs_ends_the_beats',
    ),
    Mechanism(
        'guardian of this robot',
        'a guardian of another configuration counts as one',
        'awp_ros_bridge.guardian.wards:Wards.problem_of',
        'every bridge is its own',
        _always(''),
        f'{UNIT}/test_guardian_wards.py::test_a_bridge_with_other_servers_is_guarded_and_told',
    ),
    Mechanism(
        'announced goals',
        'a bridge that dies right after sending a goal leaves it running',
        f'{ROS}.guardian_beats:GuardianBeats.announce',
        'nothing is said',
        _nothing,
        f'{UNIT}/test_guardian_bridge.py::'
        'test_a_goal_is_announced_with_all_others_and_by_a_newer_number',
    ),
    Mechanism(
        'woken bridge',
        'a bridge that was stopped goes on where it was when it wakes',
        f'{ROS}.guardian_beats:GuardianBeats.late',
        'it is never late',
        _always(None),
        f'{UNIT}/test_guardian_bridge.py::'
        'test_after_a_silence_nothing_is_sent_before_the_safety_thread_has_followed',
    ),
    Mechanism(
        'proven way to a server',
        'a goal runs on a server at which a cancel would be lost',
        f'{ROS}.cancel_clients:CancelClients.is_ready',
        'to be in the graph is enough',
        _in_graph,
        f'{UNIT}/test_cancel_clients.py::'
        'test_a_server_in_the_graph_is_not_reached_before_it_answers',
    ),
    Mechanism(
        'proven way of the guardian',
        'a goal runs on a server that the guardian could not stop',
        f'{ROS}.guardian_input:GuardianInput.reaches',
        'whatever it says',
        _always(True),
        f'{UNIT}/test_guardian_bridge.py::'
        'test_a_server_is_reached_when_the_guardian_that_guards_says_so',
    ),
    Mechanism(
        'missing guardian',
        'motion goes on while nobody would end it',
        f'{ROS}.guardian_input:GuardianInput._on_due',
        'silence is no reason',
        _nothing,
        f'{UNIT}/test_guardian_bridge.py::test_a_guardian_that_falls_silent_is_lost_in_time',
    ),
    Mechanism(
        'goals of an earlier bridge',
        'what a killed bridge left runs on beside new goals',
        f'{ROS}.other_goals:OtherGoals._end',
        'nothing is cancelled',
        _nothing,
        f'{UNIT}/test_guardian_bridge.py::'
        'test_a_goal_of_a_bridge_that_nobody_claims_is_cancelled_after_a_while',
    ),
    Mechanism(
        'claims of living bridges',
        'a bridge that starts cancels what another one does',
        f'{ROS}.other_goals:OtherGoals.claim',
        'claims count for nothing',
        _nothing,
        f'{UNIT}/test_guardian_bridge.py::test_a_goal_that_a_living_bridge_claims_is_foreign',
    ),
    Mechanism(
        'bridges not heard yet',
        'on a slow machine, the goal of a bridge whose beats come late is cancelled',
        f'{ROS}.other_goals:OtherGoals._claim_is_over',
        'who was not heard within 2 s is gone',
        _no_waiting_for_claims,
        f'{UNIT}/test_guardian_bridge.py::'
        'test_a_goal_is_left_alone_while_a_bridge_in_the_graph_is_not_heard',
    ),
    Mechanism(
        'foreign goals',
        'an agent moves a robot that somebody else moves',
        f'{ROS}.other_goals:OtherGoals._update',
        'nothing is blocked',
        _nothing,
        f'{UNIT}/test_guardian_bridge.py::'
        'test_a_foreign_goal_blocks_until_the_server_says_that_it_has_ended',
    ),
    Mechanism(
        'goals heard of too early',
        'a goal whose status is heard before its server is found goes unnoticed',
        f'{ROS}.other_goals:OtherGoals._ask',
        'a server that is not found is gone',
        _only_those_found,
        f'{UNIT}/test_guardian_bridge.py::'
        'test_a_goal_whose_server_is_not_found_yet_blocks_until_it_is_and_says_so',
    ),
    Mechanism(
        'freshness',
        'an input that fell silent, or was never heard, permits motion',
        f'{ROS}.input_judge:InputJudge.stale',
        'silence is no reason',
        _always(None),
        f'{UNIT}/test_local_stop.py::'
        'test_an_input_permits_nothing_before_it_was_heard_nor_after_it_fell_silent',
    ),
    Mechanism(
        'companion',
        'a latched permission outlives its driver',
        f'{ROS}.input_judge:InputJudge.stale',
        'companions are not asked',
        _no_companion,
        f'{UNIT}/test_input_judge.py::test_companion_that_was_never_heard_vouches_for_nothing',
    ),
    Mechanism(
        'latch',
        'what an operator has to clear permits motion by itself',
        f'{ROS}.safety_inputs:WatchedInput._tell',
        'nothing is latched',
        _no_latch,
        f'{UNIT}/test_watched_input.py::'
        'test_a_latched_trip_holds_until_an_operator_clears_it_for_each_embodiment',
    ),
    Mechanism(
        'hardest signal',
        'an e-stop is taken for the fault that is signalled beside it',
        f'{ROS}.input_judge:InputJudge.tripped',
        'the first one counts',
        _any_trip,
        f'{UNIT}/test_input_judge.py::test_of_several_trips_the_hardest_counts',
    ),
    Mechanism(
        'two readers',
        'a permission that one reader hears hides the trip that the other heard',
        f'{ROS}.input_judge:InputJudge.take',
        'the newest message counts, whichever reader heard it',
        _one_reader,
        f'{UNIT}/test_local_stop.py::'
        'test_what_either_reader_hears_counts_and_a_trip_outlives_its_publisher',
    ),
    Mechanism(
        'unreadable is unsafe',
        'a message that cannot be read permits motion',
        f'{ROS}.input_judge:InputJudge._not_read',
        'it permits',
        _always(None),
        f'{UNIT}/test_local_stop.py::test_a_message_that_cannot_be_read_forbids_motion',
    ),
    Mechanism(
        'unknown values are unsafe',
        'a mode that nobody thought of permits motion',
        'awp_ros_bridge.config.input_spec:Condition.holds',
        'no value forbids motion',
        _always(False),
        f'{UNIT}/test_config_safety_inputs.py::test_each_ur_safety_mode_has_its_meaning[99-fault]',
    ),
    Mechanism(
        'missing items are unsafe',
        'a controller that is not in the list counts as active',
        f'{ROS}.input_judge:_FieldProbe.read',
        'a message without the item says nothing',
        _lenient,
        f'{UNIT}/test_input_judge.py::test_a_missing_item_is_unsafe_where_the_list_should_be_whole',
    ),
    Mechanism(
        'unexpected motion',
        'a robot that somebody else moves goes unnoticed',
        f'{ROS}.unexpected:UnexpectedMotion._begin',
        'nothing happens',
        _nothing,
        f'{UNIT}/test_unexpected_motion.py::'
        'test_motion_after_rest_is_reported_and_ends_with_the_next_rest',
    ),
    Mechanism(
        'rest measurement',
        'a moving robot counts as resting',
        f'{ROS}.joint_track:JointTrack.rests',
        'it rests always',
        _always(True),
        f'{UNIT}/test_joint_track.py::'
        'test_rest_takes_three_slow_samples_of_every_joint_over_the_whole_span',
    ),
    Mechanism(
        'rest after the question',
        'standstill from before a goal proves that its motion is over',
        f'{ROS}.joint_track:JointTrack.rests',
        'old samples count',
        _old_samples,
        f'{UNIT}/test_joint_track.py::test_samples_from_before_the_question_prove_no_rest',
    ),
    Mechanism(
        'NaN is no rest',
        'a broken sensor counts as standstill',
        f'{ROS}.joint_track:JointTrack.take',
        'a velocity that is no number is zero',
        _nan_is_slow,
        f'{UNIT}/test_joint_track.py::'
        'test_a_velocity_that_is_no_number_is_no_rest_and_forbids_motion[nan]',
    ),
    Mechanism(
        'frozen transforms',
        'a transform that is repeated with its old stamp proves rest',
        f'{ROS}.body_track:TfSpeed._is_news',
        'every message is news',
        _same_stamp_is_news,
        f'{UNIT}/test_body_track.py::test_f56_a_transform_with_its_old_stamp_is_no_news',
    ),
    Mechanism(
        'lost servers',
        'the goal of a server that died is waited for until its time is over',
        f'{ROS}.goal_watch:GoalWatch._look',
        'nobody looks',
        _nothing,
        f'{UNIT}/test_goal_watch.py::'
        'test_a_server_whose_robot_fell_silent_and_that_does_not_answer_is_lost_in_time',
    ),
    Mechanism(
        'stalled goals',
        'a goal whose robot stands still for no reason holds it until its time is over',
        f'{ROS}.stall_watch:StallWatch.look',
        'nobody looks',
        _nothing,
        f'{UNIT}/test_stall_watch.py::'
        'test_a_goal_of_a_body_that_rests_without_progress_is_stalled_and_it_is_said_once',
    ),
    Mechanism(
        'watchdog',
        'the robot goes on for an agent that fell silent',
        f'{ENGINE}.liveness:Liveness._check_watchdog',
        'nothing happens',
        _nothing,
        f'{UNIT}/test_engine_readiness.py::test_watchdog_trips_again_after_the_agent_came_back',
    ),
    Mechanism(
        "the agent's own messages",
        'an agent that hangs holds the robot by answering heartbeats',
        f'{ENGINE}.liveness:Liveness.heard',
        'every message counts',
        _answers_count,
        f'{UNIT}/test_engine_liveness.py::'
        'test_only_what_the_agent_originates_keeps_the_watchdog_off[not JSON-False]',
    ),
    Mechanism(
        'lost connections',
        'a half-open connection holds the robot',
        f'{ENGINE}.liveness:Liveness._check_heard',
        'nothing happens',
        _nothing,
        f'{UNIT}/test_engine_liveness.py::test_connection_is_lost_after_three_silent_intervals',
    ),
    Mechanism(
        'reconnect window',
        'who lost its connection holds the robot for ever',
        f'{ENGINE}.liveness:Liveness._window_over',
        'nothing happens',
        _nothing,
        f'{UNIT}/test_engine_sessions.py::'
        'test_close_of_a_suspended_session_by_expiry_enters_safe_state_and_releases',
    ),
    Mechanism(
        'one connection per session',
        'two connections move one robot in one name',
        f'{ENGINE}.kernel:Kernel.close_connection',
        'the old one stays open',
        _nothing,
        f'{UNIT}/test_engine_resume.py::test_half_open_connection_is_replaced',
    ),
    Mechanism(
        'e-stop ends actions',
        'an action goes on, or begins, in an e-stop',
        f'{ENGINE}.safety:Safety._engage',
        'nothing happens',
        _nothing,
        f'{UNIT}/test_engine_safety.py::'
        'test_stop_ends_everything_and_refuses_until_it_is_released[e_stop]',
    ),
    Mechanism(
        'release by all inputs',
        'one input that clears releases an e-stop that another holds',
        f'{ENGINE}.safety:Safety.changed',
        'the first that clears releases',
        _release_at_once,
        f'{UNIT}/test_engine_safety.py::test_stop_is_released_when_every_input_is_clear',
    ),
    Mechanism(
        'release after the goals',
        'an e-stop is released while a goal may be active',
        f'{ENGINE}.kernel:Kernel.has_active_goals',
        'no goal counts as active',
        _always(False),
        f'{UNIT}/test_engine_safety.py::'
        'test_stop_is_not_released_while_an_old_goal_of_a_chain_may_be_active',
    ),
    Mechanism(
        'faults block',
        'a fault of the robot lets motion go on',
        f'{ENGINE}.safety:Safety.enter',
        'safe state is not entered',
        _nothing,
        f'{UNIT}/test_engine_safety.py::test_block_enters_safe_state_and_refuses_motion[fault]',
    ),
    Mechanism(
        'strongest cause',
        'an e-stop is told as what happened to end the action first',
        f'{ENGINE}.endings:Endings.end',
        'the first cause stays',
        _first_cause,
        f'{UNIT}/test_engine_endings.py::test_deadline_outranks_a_replacement_that_waits_for_rest',
    ),
    Mechanism(
        'ends at rest',
        'an action is told to have ended while the robot still moves',
        f'{ENGINE}.endings:Endings._await_rest',
        "the goal's end is enough",
        _end_without_rest,
        f'{UNIT}/test_engine_endings.py::test_end_waits_for_the_goal_and_then_for_rest',
    ),
    Mechanism(
        'abort bound',
        'a server that ignores cancel holds the session for ever',
        f'{ENGINE}.endings:Endings._abort_failed',
        'nothing happens',
        _nothing,
        f'{UNIT}/test_engine_endings.py::test_abort_past_its_bound_fails_and_enters_safe_state',
    ),
    Mechanism(
        'close bound',
        'a close is never answered',
        f'{ENGINE}.safety:Safety.behavior_finished',
        'a behaviour is never over',
        _nothing,
        f'{UNIT}/test_engine_sessions.py::test_close_is_bounded_although_nothing_obeys',
    ),
    Mechanism(
        'end of the process',
        'a server that never answers holds the end of the process up',
        f'{ENGINE}.closing:Closer._shutdown_bound',
        'nothing happens',
        _nothing,
        f'{UNIT}/test_engine_process.py::'
        'test_shutdown_is_over_within_four_seconds_whatever_happens',
    ),
    Mechanism(
        'rest is owed',
        'a robot that did not come to rest is given to the next agent',
        f'{ENGINE}.safety:Safety._owe_rest',
        'it is available at once',
        _forget_debt,
        f'{UNIT}/test_engine_sessions.py::'
        'test_close_releases_though_rest_was_not_reached_and_keeps_the_embodiment',
    ),
    Mechanism(
        'failed behaviours',
        'a robot whose stop steps failed is given to the next action',
        f'{ENGINE}.safety:Safety.behavior_finished',
        'none has failed',
        _always_done,
        f'{UNIT}/test_engine_readiness.py::'
        'test_behaviour_that_fails_leaves_the_embodiment_unavailable_until_it_rests',
    ),
    Mechanism(
        'transfer at rest',
        'a moving robot changes hands',
        f'{ENGINE}.endings:Endings.end',
        'its actions are not ended',
        _nothing,
        f'{UNIT}/test_engine_transfer.py::test_takeover_waits_for_goal_and_rest',
    ),
    Mechanism(
        'transfer token compare',
        'any token takes the robot over',
        f'{ENGINE}.opening:digest',
        'all tokens are alike',
        _token_again,
        f'{UNIT}/test_engine_transfer.py::test_unusable_token_changes_nothing[unknown]',
    ),
    Mechanism(
        'expiry of transfer tokens',
        'a token that is over takes the robot over',
        f'{ENGINE}.opening:Opener.mint',
        'it lives as long as any may',
        _for_ever,
        f'{UNIT}/test_engine_transfer.py::test_unusable_token_changes_nothing[expired]',
    ),
    Mechanism(
        'changing hands',
        'the holder begins something new while its robot is handed over',
        f'{ENGINE}.sessions:Session.is_handing_over',
        'nobody knows of it',
        _always(False),
        f'{UNIT}/test_engine_transfer.py::'
        'test_no_submission_of_the_holder_slips_in_while_hands_change',
    ),
    Mechanism(
        'one goal per group',
        'two goals move the same joints',
        f'{ENGINE}.execution:Execution.advance',
        'old goals are not waited for',
        _next_before_the_end,
        f'{UNIT}/test_engine_preemption.py::'
        'test_stop_first_waits_for_goal_and_rest_before_the_new_goal',
    ),
    Mechanism(
        'uncertain goals stop',
        'a goal whose server is lost is forgotten',
        f'{ENGINE}.endings:Endings.give_up',
        'nothing happens',
        _nothing,
        f'{UNIT}/test_engine_goals.py::'
        'test_uncertain_goal_stops_the_robot_and_names_the_server[lost]',
    ),
    Mechanism(
        'stops first',
        'a cancel waits behind messages and records',
        'awp_ros_bridge.bridge.loop:BridgeLoop._carry_out',
        "effects leave in the engine's order",
        _in_any_order,
        f'{UNIT}/test_bridge_loop.py::'
        'test_what_stops_the_robot_comes_first_then_goals_then_the_rest_in_order',
    ),
    Mechanism(
        'silence after a fault',
        'a bridge whose engine failed keeps the dead-man timer quiet',
        'awp_ros_bridge.bridge.loop:BridgeLoop._fail',
        'the beats go on',
        _beat_on,
        f'{UNIT}/test_bridge_loop.py::test_a_fault_of_the_engine_is_told_once_and_ends_the_beats',
    ),
    Mechanism(
        'token compare',
        'a wrong token opens a connection',
        'awp_ros_bridge.transport.credentials:TokenGate.find',
        'every token is right',
        _any_token,
        f'{UNIT}/test_transport_credentials.py::'
        'test_every_known_token_opens_with_its_own_permissions_and_no_other',
    ),
    Mechanism(
        'spatial limit',
        'a move leaves its box on the way',
        f'{ROS}.adapters.tip_limits:TipLimits._points',
        'no point is outside',
        _always(None),
        f'{UNIT}/test_adapters_pose_moves.py::'
        'test_the_way_in_joint_space_leaves_the_box_though_the_line_does_not',
    ),
    Mechanism(
        'velocity limit',
        'a trajectory is faster than allowed',
        f'{ROS}.adapters.tip_limits:TipLimits._path_speed',
        'every speed is allowed',
        _always(None),
        f'{UNIT}/test_adapters_trajectory.py::test_too_fast_is_refused_with_value_and_limit',
    ),
    Mechanism(
        'measured limit',
        'executed motion beyond a limit goes on',
        f'{ROS}.limit_judge:LimitJudge.take',
        'no value is a violation',
        _always(False),
        f'{UNIT}/test_limit_judge.py::test_one_value_beyond_is_a_violation_once_until_rest',
    ),
    Mechanism(
        'way back',
        'a body outside its limits goes farther out',
        f'{ROS}.limit_judge:LimitJudge.settle',
        'the limit is off after the first rest',
        _no_way_back,
        f'{UNIT}/test_limit_judge.py::'
        'test_a_body_at_rest_outside_may_come_back_but_not_go_farther',
    ),
    Mechanism(
        'violation to safe state',
        'the agent does not hear of a violation and goes on',
        f'{ENGINE}.violations:Violations.violated',
        'the engine ignores it',
        _nothing,
        f'{UNIT}/test_engine_violations.py::'
        'test_two_limits_at_once_are_both_told_and_both_must_be_released',
    ),
    Mechanism(
        'strict params',
        'params that do not fit their schema reach ROS',
        f'{ENGINE}.admission:Admission._check_params',
        'they are not checked',
        _nothing,
        f'{UNIT}/test_engine_admission.py::test_invalid_params_are_refused_with_their_path',
    ),
    Mechanism(
        'immediate steps',
        'zeros and stop services wait for the engine',
        f'{ROS}.stop_rounds:StopRounds.begin',
        'the local stop begins none',
        _nothing,
        f'{UNIT}/test_stop_rounds.py::test_a_stop_begins_the_steps_and_its_behaviour_joins_them',
    ),
    Mechanism(
        'all goals of a silent server',
        'a server that does not answer a cancel is left alone',
        f'{ROS}.escalation:Escalation.unanswered',
        'nothing more is asked',
        _nothing,
        f'{UNIT}/test_stop_rounds.py::test_a_server_that_does_not_answer_is_asked_to_cancel_all',
    ),
    Mechanism(
        'all goals on an e-stop',
        'a goal of others runs on in an e-stop on a server that is ours alone',
        f'{ROS}.stop_rounds:StopRounds._cancel_unshared',
        'only our goals are cancelled',
        _nothing,
        f'{UNIT}/test_stop_rounds.py::'
        'test_a_second_reason_repeats_nothing_and_an_e_stop_adds_its_cancels',
    ),
    Mechanism(
        'untouched at the start',
        'a bridge that starts sends zeros to a robot that others move',
        f'{ROS}.stop:StopGate.period',
        'motion was permitted before',
        _always(1),
        f'{UNIT}/test_stop_rounds.py::test_before_motion_was_ever_permitted_nothing_is_touched',
    ),
    Mechanism(
        'what stops is there',
        'a robot moves whose stop service has vanished',
        f'{ROS}.stop_watch:StopWatch._look',
        'it is looked for at the start only',
        _look_once,
        f'{UNIT}/test_stop_watch.py::'
        'test_motion_is_forbidden_whenever_something_that_stops_is_missing',
    ),
    Mechanism(
        'downstream cancel',
        'a controller goes on under a planner that ignores its cancel',
        f'{ROS}.escalation:Escalation.cancel_sent',
        'planners are not watched',
        _nothing,
        f'{UNIT}/test_stop_rounds.py::'
        'test_what_a_planner_drives_is_cancelled_when_its_time_is_over',
    ),
    Mechanism(
        'permission to park',
        'a robot that must not move is moved to park',
        f'{ENGINE}.embodiments:Embodiment.permits_motion',
        'motion is always permitted',
        _property_of(True),
        f'{UNIT}/test_engine_parking.py::test_a_robot_that_must_not_move_is_not_parked',
    ),
    Mechanism(
        'scopes',
        'a token that may only observe moves the robot',
        f'{ENGINE}.access:Access.check_scope',
        'every scope is there',
        _nothing,
        f'{UNIT}/test_engine_permissions.py::test_f102_an_observer_sees_and_moves_nothing',
    ),
    Mechanism(
        'reach of a token',
        'a token for one embodiment binds another',
        f'{ENGINE}.access:Access.check_reach',
        'every embodiment is reached',
        _nothing,
        f'{UNIT}/test_engine_permissions.py::'
        'test_a_credential_reaches_its_embodiments_and_their_channels_only',
    ),
    Mechanism(
        'revocation',
        'who holds a revoked token goes on moving the robot',
        f'{ENGINE}.access:Access.revoked',
        'nobody is told',
        _nothing,
        f'{UNIT}/test_engine_permissions.py::'
        'test_revoking_ends_the_session_as_a_close_does_and_then_the_connection',
    ),
)


@cache
def by_test() -> dict[str, Mechanism]:
    """Return the table by test; each stands in one row, without brackets for all its variants."""
    found = {m.test: m for m in MECHANISMS}
    assert len(found) == len(MECHANISMS), 'a test stands in two rows'
    return found


def place(mechanism: Mechanism) -> tuple[Any, str]:
    """
    Return the object that holds the attribute, and its name.

    :raises AttributeError: the code has changed and the switch is none any more
    """
    module, _, path = mechanism.switch.partition(':')
    owner: Any = import_module(module)
    *way, name = path.split('.')
    for part in way:
        owner = getattr(owner, part)
    getattr(owner, name)
    return owner, name
