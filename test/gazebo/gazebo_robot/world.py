"""
Owns the world: descriptions of the robots, turned into what Gazebo loads.

The arm stands in its home configuration, and its joints count from there: a reset of the world
brings it home. Offsets between the two countings are the home positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
import xml.etree.ElementTree as ET

import numpy as np
import pinocchio as pin

ARM_MODEL, BASE_MODEL = 'arm', 'base'
# Where the base stands on the floor at first, x forwards: in front of the arm, out of its reach.
BASE_BEGINS_M = (2.5, 0.0)
SENSED_JOINT = 'joint_6'
# A block to press onto: middle of its upper face in the world, and its edges. No move whose tip
# stays 0.1 m above the work surface comes near it.
BLOCK_TOP_M = (0.3, -0.2, 0.65)
_BLOCK_M = (0.2, 0.2, 0.65)
_HEAD = """<?xml version="1.0"?>
<sdf version="1.6"><world name="default">
<gravity>0 0 -9.81</gravity>
<physics type="ode"><max_step_size>0.001</max_step_size><real_time_factor>1</real_time_factor>
<real_time_update_rate>1000</real_time_update_rate>
<ode><solver><type>quick</type><iters>30</iters></solver></ode></physics>
<model name="floor"><static>true</static><link name="link"><collision name="plane">
<geometry><plane><normal>0 0 1</normal><size>20 20</size></plane></geometry></collision></link>
</model>
"""
_FORCE_SENSOR = (
    '<sensor name="ft" type="force_torque"><always_on>1</always_on><update_rate>1000</update_rate>'
    '<force_torque><frame>child</frame><measure_direction>child_to_parent</measure_direction>'
    '</force_torque></sensor>'
)
# Firm and a little slippery: what presses onto it comes to rest.
_BLOCK_SURFACE = (
    '<surface><contact><ode><kp>1000000</kp><kd>2000</kd><max_vel>0.05</max_vel></ode></contact>'
    '<friction><ode><mu>0.2</mu><mu2>0.2</mu2></ode></friction></surface>'
)
_DAMPING = {'revolute': 0.5, 'prismatic': 5.0, 'continuous': 0.01}
_SLIDING = '<surface><friction><ode><mu>0</mu><mu2>0</mu2></ode></friction></surface>'


def world_of(urdf: str, home: Mapping[str, float], base_urdf: str) -> str:
    """
    Write the world of an arm and a base.

    :param home: positions of all moving joints of the arm, rad or m, in which it stands
    """
    x, y = BASE_BEGINS_M
    parts = [_HEAD, *_model(ARM_MODEL, urdf, home), _block()]
    parts += _model(BASE_MODEL, base_urdf, {}, f'<pose>{x} {y} 0 0 0 0</pose>')
    return '\n'.join([*parts, '</world></sdf>\n'])


def _model(name: str, urdf: str, home: Mapping[str, float], pose: str = '') -> Iterator[str]:
    root = ET.fromstring(urdf)
    placed = _placements(urdf, home)
    yield f'<model name="{name}">{pose}'
    yield from (_link(link, placed) for link in root.iter('link') if _mass(link) is not None)
    yield from _joints(root, home)
    yield '</model>'


def _placements(urdf: str, home: Mapping[str, float]) -> dict[str, Any]:
    model = pin.buildModelFromXML(urdf)
    q = pin.neutral(model)
    for name, position in home.items():
        q[model.joints[model.getJointId(name)].idx_q] = position
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    return {
        frame.name: data.oMf[index]
        for index, frame in enumerate(model.frames)
        if frame.type == pin.FrameType.BODY
    }


def _link(link: ET.Element, placed: Mapping[str, Any]) -> str:
    name = link.get('name', '')
    place = placed[name]
    inertial = link.find('inertial')
    assert inertial is not None
    inertia = inertial.find('inertia')
    assert inertia is not None
    rows = ''.join(
        f'<{key}>{inertia.get(key, "0")}</{key}>'
        for key in ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
    )
    pose = _pose(place.translation, pin.rpy.matrixToRpy(place.rotation))
    body = (
        f'<link name="{name}"><pose>{pose}</pose>'
        f'<inertial><pose>{_origin(inertial)}</pose><mass>{_mass(link)}</mass>'
        f'<inertia>{rows}</inertia></inertial>'
    )
    for number, visual in enumerate(link.iter('visual')):
        body += (
            f'<collision name="collision_{number}"><pose>{_origin(visual)}</pose>'
            f'<geometry>{_geometry(visual)}</geometry>{_SLIDING if "castor" in name else ""}'
            '</collision>'
        )
    return body + '</link>'


def _joints(root: ET.Element, home: Mapping[str, float]) -> Iterator[str]:
    joints = list(root.iter('joint'))
    above = {_side(j, 'child'): j for j in joints}
    solid = {link.get('name') for link in root.iter('link') if _mass(link) is not None}
    for joint in joints:
        kind, child = joint.get('type', ''), _side(joint, 'child')
        if child not in solid:
            continue
        parent = _side(joint, 'parent')
        while parent in above and parent not in solid:  # without mass: part of what carries it
            assert above[parent].get('type') == 'fixed', f'{parent} moves and has no mass'
            parent = _side(above[parent], 'parent')
        name = joint.get('name', '')
        ends = f'<parent>{parent if parent in solid else "world"}</parent><child>{child}</child>'
        if kind == 'fixed':
            yield f'<joint name="{name}" type="fixed">{ends}</joint>'
            continue
        axis = joint.find('axis')
        assert axis is not None
        sdf_kind = 'revolute' if kind == 'continuous' else kind
        yield (
            f'<joint name="{name}" type="{sdf_kind}">{ends}<axis><xyz>{axis.get("xyz")}</xyz>'
            f'{_limit(joint, home)}<dynamics><damping>{_DAMPING[kind]}</damping></dynamics></axis>'
            f'{_FORCE_SENSOR if name == SENSED_JOINT else ""}</joint>'
        )


def _limit(joint: ET.Element, home: Mapping[str, float]) -> str:
    limit = joint.find('limit')
    if limit is None:  # it turns without end
        return ''
    start = home[joint.get('name', '')]
    low, high = (float(limit.get(end, 'nan')) - start for end in ('lower', 'upper'))
    return (
        f'<limit><lower>{low}</lower><upper>{high}</upper><effort>{limit.get("effort")}</effort>'
        '</limit>'
    )


def _block() -> str:
    size = ' '.join(map(str, _BLOCK_M))
    x, y, top = BLOCK_TOP_M
    pose = f'{x} {y} {top - _BLOCK_M[2] / 2} 0 0 0'
    return (
        f'<model name="block"><static>true</static><pose>{pose}</pose>'
        f'<link name="link"><collision name="box"><geometry><box><size>{size}</size></box>'
        f'</geometry>{_BLOCK_SURFACE}</collision></link></model>'
    )


def _mass(link: ET.Element) -> str | None:
    mass = link.find('inertial/mass')
    return None if mass is None else mass.get('value')


def _side(joint: ET.Element, side: str) -> str:
    element = joint.find(side)
    return '' if element is None else element.get('link', '')


def _origin(element: ET.Element) -> str:
    origin = element.find('origin')
    if origin is None:
        return '0 0 0 0 0 0'
    return f'{origin.get("xyz", "0 0 0")} {origin.get("rpy", "0 0 0")}'


def _geometry(visual: ET.Element) -> str:
    shape = visual.find('geometry/*')
    assert shape is not None
    values = ''.join(f'<{key}>{value}</{key}>' for key, value in shape.attrib.items())
    return f'<{shape.tag}>{values}</{shape.tag}>'


def _pose(*parts: Any) -> str:
    return ' '.join(f'{float(value):.12g}' for value in np.concatenate(parts))
