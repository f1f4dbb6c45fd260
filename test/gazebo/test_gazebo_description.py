"""The robot's description survives what Gazebo makes of a URDF: no joint and no mass is lost."""

from __future__ import annotations

from pathlib import Path
import subprocess
from xml.etree import ElementTree

import pytest

from awp_ros_bridge.sim_robot.description import (
    ARM_HOME_RAD,
    ARM_JOINTS,
    GRIPPER_HOME_M,
    GRIPPER_JOINT,
    GRIPPER_MIRROR_JOINT,
    load_urdf,
)

REPOSITORY = Path(__file__).resolve().parents[2]
URDF = REPOSITORY / 'awp_ros_bridge' / 'sim_robot' / 'arm.urdf'


def test_every_moving_joint_and_all_mass_is_in_the_converted_model(gazebo: None) -> None:
    from gazebo_robot.server import data_paths, program

    done = subprocess.run(
        [*program('gz-11.1.0'), 'sdf', '-p', str(URDF)],
        env=data_paths(),
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    model = ElementTree.fromstring(done.stdout[done.stdout.index('<sdf'):])
    described = ElementTree.parse(URDF).getroot()
    moving = [j.get('name') for j in described.iter('joint') if j.get('type') != 'fixed']
    assert [
        j.get('name') for j in model.iter('joint') if j.get('type') != 'fixed'
    ] == moving
    masses_kg = [float(mass.get('value', 'nan')) for mass in described.iter('mass')]
    converted_kg = [float(mass.text or 'nan') for mass in model.iter('mass')]
    assert sum(converted_kg) == pytest.approx(sum(masses_kg))
    # The pedestal stands on the world, not on nothing.
    assert model.findtext(".//joint[@name='world_to_base']/parent") == 'world'


def test_the_world_holds_the_arm_at_home_and_shifts_its_limits_to_there() -> None:
    from gazebo_robot.robots import load_base_urdf
    from gazebo_robot.world import world_of

    home = dict(zip(ARM_JOINTS, ARM_HOME_RAD, strict=True))
    home |= {GRIPPER_JOINT: GRIPPER_HOME_M, GRIPPER_MIRROR_JOINT: GRIPPER_HOME_M}
    world = ElementTree.fromstring(world_of(load_urdf(), home, load_base_urdf()))
    arm = world.find(".//model[@name='arm']")
    assert arm is not None

    def place_of(link: str) -> list[float]:
        text = arm.findtext(f"link[@name='{link}']/pose") or ''
        return [float(value) for value in text.split()[:3]]

    # At home tool0 is 0.4 m above base, which is 0.6 m above the floor; the hand points down.
    assert place_of('link_6') == pytest.approx([0.0, 0.0, 1.14], abs=1e-6)
    for side, finger in ((1.0, 'finger_left'), (-1.0, 'finger_right')):
        assert place_of(finger) == pytest.approx([0.0, side * GRIPPER_HOME_M, 1.06], abs=1e-6)
    for joint in ElementTree.parse(URDF).getroot().iter('joint'):
        limit, name = joint.find('limit'), joint.get('name', '')
        if limit is None:
            continue
        for end in ('lower', 'upper'):
            shifted = arm.findtext(f"joint[@name='{name}']/axis/limit/{end}") or 'nan'
            described = float(limit.get(end, 'nan'))
            assert float(shifted) + home[name] == pytest.approx(described)
    welded = arm.find("joint[@name='base_to_pedestal']")
    assert welded is not None
    assert welded.findtext('parent') == 'world'
