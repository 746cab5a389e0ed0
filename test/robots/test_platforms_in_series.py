"""Two planar 3-RRR platforms in series, compared with each platform alone."""

from __future__ import annotations

from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest

import rnea_ros
from rnea_ros import ModelError
from rnea_ros.algorithms.kinematics import base_poses
from support.parallel_machines import planar_3rrr

GRAVITY, HEIGHT = (1.0, -4.0, -9.0), 0.2


def series() -> tuple[str, dict]:
    """Return URDF and robot file; the second robot (prefix "b_") is mounted on the platform of the first."""
    machine = planar_3rrr()
    first, second = (ElementTree.fromstring(machine.urdf) for _ in range(2))
    for element in second:
        element.set("name", f"b_{element.get('name')}")
        for end in element.findall("parent") + element.findall("child"):
            end.set("link", f"b_{end.get('link')}")
        if element.get("type") == "floating":
            element.find("parent").set("link", "base")
            element.find("origin").set("xyz", f"0 0 {HEIGHT}")
        first.append(element)
    mount = ElementTree.SubElement(first, "joint", name="mount", type="fixed")
    ElementTree.SubElement(mount, "parent", link="platform")
    ElementTree.SubElement(mount, "child", link="b_base")
    ElementTree.SubElement(mount, "origin", xyz=f"0 0 {HEIGHT}", rpy="0 0 0")
    loops = machine.loops
    cuts = {f"b_{name}": {**cut, **{end: {**cut[end], "link": f"b_{cut[end]['link']}"} for end in ("first", "second")}}
            for name, cut in loops["cut_joints"].items()}
    both = {"active": [*loops["active"], *(f"b_{name}" for name in loops["active"])],
            "cut_joints": {**loops["cut_joints"], **cuts}}
    file = {"version": 1, "gravity": list(GRAVITY), "platforms": {"platform": {}, "b_platform": {}}, "loops": both}
    return ElementTree.tostring(first, encoding="unicode"), file


@cache
def robots():
    return rnea_ros.load(*series(), backend="python"), planar_3rrr().robot(backend="python", gravity=GRAVITY)


def as_payload(robot):
    """Return mass, centre of mass and central inertia of legs and platform at home, in the base frame."""
    bodies = []
    for link, pose in zip(robot.tree.model.links, base_poses(robot.tree.model, robot.start), strict=True):
        if link.m:
            c = link.ms / link.m
            inertia = link.J - link.m * (c @ c * np.eye(3) - np.outer(c, c))
            bodies.append((link.m, pose.p + pose.R @ c, pose.R @ inertia @ pose.R.T))
    mass = sum(m for m, _, _ in bodies)
    centre = sum(m * c for m, c, _ in bodies) / mass
    about = [inertia + m * ((c - centre) @ (c - centre) * np.eye(3) - np.outer(c - centre, c - centre))
             for m, c, inertia in bodies]
    return mass, centre, sum(about)


def motion(moving: str) -> np.ndarray:
    """Return q, qd, qdd, qddd with motion of the robot whose motors begin with this name; the other one is at rest."""
    robot = robots()[0]
    found = 0.1 * np.random.default_rng(3).normal(size=(4, robot.n))
    return found * [name.startswith(moving) for name in robot.joint_names]


@pytest.mark.parametrize("moving", ["motor", "b_motor"])
def test_moving_one_of_two_platforms_in_series_needs_the_torques_of_that_platform_alone(moving):
    """The upper robot is a payload of the lower one; the lower platform is at rest when the upper one moves."""
    robot, alone = robots()
    assert not robot.is_fixed_tree
    if moving == "motor":
        mass, centre, inertia = as_payload(alone)
        alone = alone.with_payload("platform", mass, centre + [0.0, 0.0, HEIGHT], inertia)
    q = motion(moving)
    columns = [robot.joint_names.index(f"{moving[:-5]}{name}") for name in alone.joint_names]
    found, expected = robot.torque_and_rate(*q), alone.torque_and_rate(*q[:, columns])
    for ours, theirs in zip(found, expected, strict=True):
        assert np.abs(ours[columns] - theirs).max() < 1e-10 * np.abs(theirs).max()


def test_platforms_without_loops_are_rejected():
    urdf, file = series()
    with pytest.raises(ModelError, match="without loops: cut joints must join"):
        rnea_ros.load(urdf, {name: entry for name, entry in file.items() if name != "loops"})
