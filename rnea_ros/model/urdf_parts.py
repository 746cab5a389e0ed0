"""Platform of a parallel robot in a URDF: it hangs on the root by a floating joint, whose origin is its home pose.

A URDF is a tree, so it cannot say that the legs meet the platform; the section `loops` of the robot file does.
"""

from __future__ import annotations

import copy

import numpy as np

from ..algebra.vectors import rpy
from ..errors import ModelError, near, some
from . import urdf
from .robot_file.robot_file import RobotFile
from .urdf_reader import Description

CHART = "chart"  # of the name of the joint that stands still
JOINTS = ("x", "y", "z", CHART, "rx", "ry", "rz")


def with_platforms(description: Description, file: RobotFile) -> tuple[Description, RobotFile]:
    """Return description and robot file with every platform as a link of the tree on joints, which start at its home."""
    one, several = file.section("platform"), file.section("platforms")
    start: dict[str, float] = {}
    for link, platform in [*([(one["link"], one)] if one else []), *several.items()]:
        description, names, (P, R) = _on_joints(description, link)
        if "home" in platform:
            home = R.T @ rpy(*platform["home"]["rpy"])
            offset = R.T @ (np.array(platform["home"]["xyz"], dtype=float) - P)
            angles = np.arctan2(-home[1, 2], home[2, 2]), np.arcsin(home[0, 2]), np.arctan2(-home[0, 1], home[0, 0])
            start |= dict(zip(names, map(float, (*offset, 0.0, *angles)), strict=True))
    loops = dict(file.section("loops"))
    return description, file.over({"loops": {**loops, "start": {**loops.get("start", {}), **start}}}) if start else file


def _on_joints(description: Description, link: str) -> tuple[Description, tuple[str, ...], tuple[np.ndarray, np.ndarray]]:
    """Return the description with seven joints in place of the platform's floating joint, their names, and its origin.

    The joints NAME.x, .y, .z slide along the axes of the origin, NAME.rx, .ry, .rz turn about the moving axes x, y, z. Where
    .ry is a quarter turn, the angles are singular; NAME.chart, about the axis y, stands still at a position that avoids that.
    ModelError if the platform is not the child of a floating joint on the root.
    """
    _check(description, link)
    robot = copy.deepcopy(description.robot)
    holder = next(joint for joint in robot.findall("joint") if urdf.end(joint, "child") == link)
    name, parent, (R, P) = holder.get("name", ""), urdf.end(holder, "parent"), urdf.origin(holder)
    names, index, last = [], robot.index(holder), len(JOINTS) - 1
    for number, joint_name in enumerate(JOINTS):
        axis = "y" if joint_name == CHART else joint_name[-1]
        kind = "prismatic" if joint_name in "xyz" else "continuous"
        child = link if number == last else f"{link}.{number}"
        joint = copy.deepcopy(holder)
        for element in [*joint]:
            if number and element.tag == "origin":
                joint.remove(element)
            elif element.tag in ("parent", "child"):
                element.set("link", parent if element.tag == "parent" else child)
        names.append(f"{name}.{joint_name}")
        joint.set("name", names[-1])
        joint.set("type", kind)
        joint.append(joint.makeelement("axis", {"xyz": " ".join(str(int(axis == other)) for other in "xyz")}))
        if kind == "prismatic":
            joint.append(joint.makeelement("limit", {"effort": "0", "velocity": "0", "lower": "-1e9", "upper": "1e9"}))
        robot.insert(index, joint)
        if number < last:
            robot.insert(index, robot.makeelement("link", {"name": child}))
        parent = child
    robot.remove(holder)
    return description._replace(robot=robot), tuple(names), (P, R)


def _check(description: Description, link: str) -> None:
    robot, where = description.robot, description.where
    names = [element.get("name", "") for element in robot.findall("link")]
    if link not in names:
        raise ModelError(f"platform link '{link}' does not exist{near(link, names)}; the links are {some(names)}", where)
    joints = {urdf.end(joint, "child"): joint for joint in robot.findall("joint")}
    holder = joints.get(link)
    if holder is None or holder.get("type") != "floating" or urdf.end(holder, "parent") in joints:
        raise ModelError(f"link '{link}' is to be the platform of a parallel robot: it must be the child of a floating joint "
                         "whose parent is the root link, and whose origin is the platform's home pose", where)
