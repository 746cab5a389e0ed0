"""~/markers: arcs in the right plane and arrows along the right axis, whose heads point the way that the effort pushes."""

import math

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from builtin_interfaces.msg import Time
from visualization_msgs.msg import Marker

from rnea_ros import Robot
from rnea_ros.nodes.common.joints import described, joint_limits
from rnea_ros.nodes.dynamics.markers import Markers
from rnea_ros.nodes.dynamics.messages import DynamicsMessages

LIMIT = 10.0
SIZE = 0.2
SIX = [sign * axis for axis in np.eye(3) for sign in (1.0, -1.0)]
SKEW = list(np.random.default_rng(31).normal(size=(6, 3)))


def urdf(kind, axes):
    """A chain of joints about axes that are given in the frames of their child links."""
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    links = "".join(f'<link name="l{k}">{inertial}</link>' for k in range(len(axes)))
    joints = "".join(
        f'<joint name="j{k}" type="{kind}"><parent link="{f"l{k - 1}" if k else "base"}"/><child link="l{k}"/>'
        f'<origin xyz="0.1 {0.1 * k} 0.3" rpy="{k} 0.5 {0.3 * k}"/><axis xyz="{" ".join(map(str, axis))}"/>'
        f'<limit lower="-1" upper="1" effort="{LIMIT}" velocity="2"/></joint>' for k, axis in enumerate(axes))
    return f'<robot name="r"><link name="base"/>{links}{joints}</robot>'


def marks(kind, axes, effort, rate=0.0):
    """The marks of each joint at this effort, by their frames."""
    robot = Robot.from_urdf(urdf(kind, axes), backend="reference")
    out, markers = DynamicsMessages(robot, joint_limits(described(robot), robot), ""), Markers(robot, SIZE)
    zero = np.zeros(robot.n)
    out.fill(Time(sec=1), np.zeros((4, robot.n)), (zero + effort, zero + rate, zero, zero))
    markers.fill(Time(sec=1), out)
    return [[m for m in markers.message.markers if m.header.frame_id == f"l{k}"] for k in range(robot.n)]


def places(mark):
    return np.array([[p.x, p.y, p.z] for p in mark.points])


@pytest.mark.parametrize("share", [0.05, 0.25, 0.6, 1.0, 1.7])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("kind", ["revolute", "continuous"])
def test_an_arc_turns_about_the_axis_the_way_the_effort_pushes(kind, sign, share):
    axes = SIX + SKEW
    for axis, (line, head) in zip(axes, marks(kind, axes, sign * share * LIMIT)):
        axis = sign * axis / np.linalg.norm(axis)
        assert (line.type, head.type, head.action) == (Marker.LINE_STRIP, Marker.ARROW, Marker.ADD)
        arc, (neck, tip) = places(line), places(head)
        everything = np.array([*arc, neck, tip])
        np.testing.assert_allclose(everything @ axis, 0.0, atol=1e-12)  # in the plane across the axis
        np.testing.assert_allclose(np.linalg.norm(everything, axis=1), SIZE / 2.0)
        assert (np.cross(arc[:-1], arc[1:]) @ axis > 0.0).all() and np.cross(neck, tip) @ axis > 0.0  # right-hand rule
        swept = math.atan2(np.cross(arc[0], tip) @ axis, arc[0] @ tip) % (2.0 * math.pi)
        assert (swept - 2.0 * math.pi * min(share, 1.0) + math.pi) % (2.0 * math.pi) - math.pi == pytest.approx(0.0, abs=0.07)


@pytest.mark.parametrize("share", [0.05, 0.6, 1.0, 1.7])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_arrow_points_along_the_axis_the_way_the_effort_pushes(sign, share):
    axes = SIX + SKEW
    for axis, (arrow,) in zip(axes, marks("prismatic", axes, sign * share * LIMIT)):
        assert arrow.type == Marker.ARROW
        start, end = places(arrow)
        length = SIZE * min(share, 1.0)
        np.testing.assert_allclose([start, end], [np.zeros(3), sign * length * axis / np.linalg.norm(axis)], atol=SIZE / 90)


def test_no_effort_has_no_sign():
    for line, head in marks("revolute", SIX, 0.0):
        assert (line.action, head.action, len(line.points)) == (Marker.ADD, Marker.DELETE, 2)
    assert [arrow.action for arrow, in marks("prismatic", SIX, 0.0)] == [Marker.DELETE] * 6


def test_no_two_marks_are_the_same_to_rviz():
    for kind in ("revolute", "prismatic"):
        shown = [(mark.ns, mark.id) for some in marks(kind, SIX, 1.0) for mark in some]
        assert len(set(shown)) == len(shown)


def test_marks_and_their_heads_are_coloured_alike():
    for line, head in marks("revolute", SIX, 1.0, rate=3.0):
        assert line.color == head.color and line.header == head.header
