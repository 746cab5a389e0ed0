"""A parallel robot's URDF, taken apart: the legs, and the platform, which hangs on the root by a floating joint.

That joint's origin is the platform's home pose. A URDF is a tree, so it cannot say that the legs meet the platform; the
section `loops` of the robot file does.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import ModelError, near, some
from . import urdf
from .urdf_reader import Description

if TYPE_CHECKING:
    from lxml.etree import _Element


class Parts(NamedTuple):
    """Two robot descriptions, and the home pose of the platform in the root link's frame: position (3,), rotation (3, 3)."""

    legs: Description
    platform: Description
    home: tuple[np.ndarray, np.ndarray]


def apart(description: Description, link: str) -> Parts:
    """link: of the platform. ModelError if the URDF does not have it as the child of a floating joint on its root."""
    robot, where = description.robot, description.where
    names = [element.get("name", "") for element in robot.findall("link")]
    if link not in names:
        raise ModelError(f"platform link '{link}' does not exist{near(link, names)}; the links are {some(names)}", where)
    joints = {urdf.end(joint, "child"): joint for joint in robot.findall("joint")}
    holder = joints.get(link)
    if holder is None or holder.get("type") != "floating" or urdf.end(holder, "parent") in joints:
        raise ModelError(f"link '{link}' is to be the platform of a parallel robot: it must be the child of a floating joint "
                         "whose parent is the root link, and whose origin is the platform's home pose", where)
    inside = _below(joints, link)
    legs, platform = copy.deepcopy(robot), copy.deepcopy(robot)
    for element in [*legs]:
        if _link_of(element) in inside:
            legs.remove(element)
    for element in [*platform]:
        if _link_of(element) not in inside or (element.tag == "joint" and _link_of(element) == link):
            platform.remove(element)
    platform.set("name", link)
    R, P = urdf.origin(holder)
    return Parts(description._replace(robot=legs), description._replace(robot=platform, problems=[], left_out={}), (P, R))


def on_six_joints(description: Description, link: str) -> tuple[Description, tuple[str, ...], tuple[np.ndarray, np.ndarray]]:
    """Return the description with six joints in place of the platform's floating joint, their names, and that joint's origin.

    The joints NAME.x, .y, .z slide along the axes of the root link, NAME.rx, .ry, .rz turn about the moving axes x, y, z. The
    orientation is singular where .ry is a quarter turn.
    """
    apart(description, link)  # checks that the platform is the child of a floating joint
    robot = copy.deepcopy(description.robot)
    holder = next(joint for joint in robot.findall("joint") if urdf.end(joint, "child") == link)
    name, parent, (R, P) = holder.get("name", ""), urdf.end(holder, "parent"), urdf.origin(holder)
    names, place = [], robot.index(holder)
    for number, (kind, axis) in enumerate((kind, axis) for kind in ("prismatic", "revolute") for axis in "xyz"):
        child = link if number == 5 else f"{link}.{number}"
        joint = copy.deepcopy(holder)
        for element in [*joint]:
            if number and element.tag == "origin":
                joint.remove(element)
            elif element.tag in ("parent", "child"):
                element.set("link", parent if element.tag == "parent" else child)
        names.append(f"{name}.{'r' if kind == 'revolute' else ''}{axis}")
        joint.set("name", names[-1])
        joint.set("type", "continuous" if kind == "revolute" else kind)
        joint.append(joint.makeelement("axis", {"xyz": " ".join(str(int(axis == other)) for other in "xyz")}))
        if kind == "prismatic":
            joint.append(joint.makeelement("limit", {"effort": "0", "velocity": "0", "lower": "-1e9", "upper": "1e9"}))
        robot.insert(place, joint)
        if number < 5:
            robot.insert(place, robot.makeelement("link", {"name": child}))
        parent = child
    robot.remove(holder)
    return description._replace(robot=robot), tuple(names), (P, R)


def _link_of(element: _Element) -> str:
    """A link's own name; of a joint, its child's."""
    return urdf.end(element, "child") if element.tag == "joint" else element.get("name", "")


def _below(joints: dict[str, _Element], link: str) -> set[str]:
    """The link and all that hangs on it."""
    inside, before = {link}, 0
    while len(inside) > before:
        before = len(inside)
        inside |= {child for child, joint in joints.items() if urdf.end(joint, "parent") in inside}
    return inside
