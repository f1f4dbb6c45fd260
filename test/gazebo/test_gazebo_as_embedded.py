"""
The tests of the embedded robot, unchanged, against the robot in Gazebo.

The bridge, its configuration and its agents must not be able to tell the two apart.
"""

from test_bridge_spine import (
    tap,
    test_a_reset_brings_the_simulated_arm_home,
    test_a_session_moves_cancels_and_closes_with_the_arm_at_rest,
    test_a_target_outside_of_the_envelope_never_reaches_the_robot,
    test_a_trajectory_is_followed_in_the_order_of_its_own_joint_names,
    test_an_arm_changes_hands_at_rest,
    test_chunks_at_ten_hertz_replace_each_other_and_the_arm_does_not_stop,
    test_closing_a_session_mid_motion_answers_when_the_arm_rests,
    test_the_gripper_moves_for_another_session_while_the_arm_moves,
)
from test_bridge_stops import (
    test_a_protective_stop_stops_like_an_e_stop_and_names_itself,
    test_an_e_stop_mid_goal_ends_the_action_and_is_released,
    test_an_e_stop_while_a_cancel_is_under_way_outranks_it,
    test_silence_of_the_safety_topics_forbids_motion_until_they_speak,
)
from test_examples import (
    test_the_example_moves_the_arm,
    test_the_public_demonstration_runs_to_its_end,
)

__all__ = [
    'tap',
    'test_a_protective_stop_stops_like_an_e_stop_and_names_itself',
    'test_a_reset_brings_the_simulated_arm_home',
    'test_a_session_moves_cancels_and_closes_with_the_arm_at_rest',
    'test_a_target_outside_of_the_envelope_never_reaches_the_robot',
    'test_a_trajectory_is_followed_in_the_order_of_its_own_joint_names',
    'test_an_arm_changes_hands_at_rest',
    'test_an_e_stop_mid_goal_ends_the_action_and_is_released',
    'test_an_e_stop_while_a_cancel_is_under_way_outranks_it',
    'test_chunks_at_ten_hertz_replace_each_other_and_the_arm_does_not_stop',
    'test_closing_a_session_mid_motion_answers_when_the_arm_rests',
    'test_silence_of_the_safety_topics_forbids_motion_until_they_speak',
    'test_the_example_moves_the_arm',
    'test_the_gripper_moves_for_another_session_while_the_arm_moves',
    'test_the_public_demonstration_runs_to_its_end',
]
