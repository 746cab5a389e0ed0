"""~/markers: arcs about and arrows along the joint axes, with heads in the direction of the effort."""

import math
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from builtin_interfaces.msg import Time
from visualization_msgs.msg import Marker

from rnea_ros import Robot, load
from rnea_ros.nodes.common.marker_shapes import VERMILION, YELLOW, joint_marker_sizes
from rnea_ros.nodes.common.model_facts import joint_limits, joint_parameters
from rnea_ros.nodes.dynamics.markers import Markers, cut_joint_markers
from rnea_ros.nodes.dynamics.messages import DynamicsMessages
from rnea_ros.nodes.dynamics.served_robot import on_fixed_base

ROOT = Path(__file__).parents[2]
LIMIT = 10.0
SIZE = 0.2
SIX = [sign * axis for axis in np.eye(3) for sign in (1.0, -1.0)]
SKEW = list(np.random.default_rng(31).normal(size=(6, 3)))


def urdf(kind, axes):
    """Return the URDF of a chain of joints with given axes, expressed in the frames of the child links."""
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    links = "".join(f'<link name="l{k}">{inertial}</link>' for k in range(len(axes)))
    joints = "".join(
        f'<joint name="j{k}" type="{kind}"><parent link="{f"l{k - 1}" if k else "base"}"/><child link="l{k}"/>'
        f'<origin xyz="0.1 {0.1 * k} 0.3" rpy="{k} 0.5 {0.3 * k}"/><axis xyz="{" ".join(map(str, axis))}"/>'
        f'<limit lower="-1" upper="1" effort="{LIMIT}" velocity="2"/></joint>' for k, axis in enumerate(axes))
    return f'<robot name="r"><link name="base"/>{links}{joints}</robot>'


def marks(kind, axes, effort, rate=0.0):
    """Return the markers of each joint at this effort."""
    robot = Robot.from_urdf(urdf(kind, axes), backend="reference")
    out, markers = DynamicsMessages(robot, joint_limits(joint_parameters(robot), robot), ""), Markers(robot, SIZE)
    zero = np.zeros(robot.n)
    out.fill(Time(sec=1), np.zeros((4, robot.n)), (zero + effort, zero + rate, zero, zero))
    markers.fill(out, {})
    return [[m for m in markers.changing if m.header.frame_id == f"l{k}" and m.ns == "effort"] for k in range(robot.n)]


def points_of(mark):
    return np.array([[p.x, p.y, p.z] for p in mark.points])


@pytest.mark.parametrize("share", [0.05, 0.25, 0.6, 1.0, 1.7])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("kind", ["revolute", "continuous"])
def test_arc_of_a_revolute_joint_follows_the_right_hand_rule_of_the_effort(kind, sign, share):
    axes = SIX + SKEW
    for axis, (line, head) in zip(axes, marks(kind, axes, sign * share * LIMIT)):
        axis = sign * axis / np.linalg.norm(axis)
        assert (line.type, head.type, head.action) == (Marker.LINE_STRIP, Marker.ARROW, Marker.ADD)
        arc, (neck, tip) = points_of(line), points_of(head)
        everything = np.array([*arc, neck, tip])
        np.testing.assert_allclose(everything @ axis, 0.0, atol=1e-12)  # in the plane across the axis
        np.testing.assert_allclose(np.linalg.norm(everything, axis=1), SIZE / 2.0)
        assert (np.cross(arc[:-1], arc[1:]) @ axis > 0.0).all() and np.cross(neck, tip) @ axis > 0.0  # right-hand rule
        swept = math.atan2(np.cross(arc[0], tip) @ axis, arc[0] @ tip) % (2.0 * math.pi)
        assert (swept - 2.0 * math.pi * min(share, 1.0) + math.pi) % (2.0 * math.pi) - math.pi == pytest.approx(0.0, abs=0.07)


@pytest.mark.parametrize("share", [0.05, 0.6, 1.0, 1.7])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_arrow_of_a_prismatic_joint_points_in_the_direction_of_the_effort(sign, share):
    axes = SIX + SKEW
    for axis, (arrow,) in zip(axes, marks("prismatic", axes, sign * share * LIMIT)):
        assert arrow.type == Marker.ARROW
        start, end = points_of(arrow)
        length = SIZE * min(share, 1.0)
        np.testing.assert_allclose([start, end], [np.zeros(3), sign * length * axis / np.linalg.norm(axis)], atol=SIZE / 90)


def test_zero_effort_has_no_arrow_head():
    for line, head in marks("revolute", SIX, 0.0):
        assert (line.action, head.action, len(line.points)) == (Marker.ADD, Marker.DELETE, 2)
    assert [arrow.action for arrow, in marks("prismatic", SIX, 0.0)] == [Marker.DELETE] * 6


def test_markers_have_unique_namespace_and_id():
    for kind in ("revolute", "prismatic"):
        shown = [(mark.ns, mark.id) for some in marks(kind, SIX, 1.0) for mark in some]
        assert len(set(shown)) == len(shown)


def test_arc_and_arrow_head_have_the_same_colour():
    for line, head in marks("revolute", SIX, 1.0, rate=3.0):
        assert line.color == head.color and line.header == head.header


def filled(robot, result):
    out, markers = DynamicsMessages(robot, joint_limits(joint_parameters(robot), robot), ""), Markers(robot)
    for rows in result:
        out.fill(Time(sec=1), np.zeros((4, robot.n)), np.array([*rows, [0.0] * robot.n, [0.0] * robot.n]))
        markers.fill(out, {})
    return out, markers


def test_colour_is_relative_to_the_largest_recent_rate_without_a_rate_limit():
    robot = Robot.from_urdf(urdf("revolute", SIX[:2]), backend="reference")
    _, markers = filled(robot, [([1.0, 1.0], [8.0, 8.0]), ([1.0, 1.0], [8.0, -4.0])])
    full, half = (next(m.color for m in markers.changing if m.id == 2 * k) for k in (0, 1))
    assert (full.r, full.g, full.b) == pytest.approx(VERMILION, abs=0.01)
    assert (half.r, half.g, half.b) == pytest.approx(YELLOW, abs=0.01)


def test_marker_size_scales_with_the_adjacent_links():
    """Markers of a robot twice as large are twice as large; those of a finger are small."""
    one, two = (joint_marker_sizes(Robot.from_urdf(arm_with_finger(scale), backend="reference").model) for scale in (1.0, 2.0))
    np.testing.assert_allclose(two, 2.0 * one, rtol=1e-9)
    assert one[-1] < 0.3 * one[1]


def arm_with_finger(scale):
    lengths, masses = scale * np.array([0.1, 0.5, 0.4, 0.04]), scale**3 * np.array([8.0, 6.0, 0.02, 0.02])
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    links = "".join(f'<link name="l{k}"><inertial><origin xyz="0 0 {0.02 * scale}"/><mass value="{mass}"/>{inertia}'
                    "</inertial></link>" for k, mass in enumerate(masses))
    joints = "".join(f'<joint name="j{k}" type="revolute"><parent link="{f"l{k - 1}" if k else "base"}"/><child link="l{k}"/>'
                     f'<origin xyz="0 0 {length}"/><axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="9" velocity="2"/>'
                     "</joint>" for k, length in enumerate(lengths))
    return f'<robot name="r"><link name="base"/>{links}{joints}</robot>'


def test_text_markers_show_values_and_legend():
    robot = Robot.from_urdf(urdf("prismatic", SIX[:1]), backend="reference")
    out, markers = filled(robot, [([-8.0], [3.5])])
    markers.fill_static(out)
    assert [m.text for m in markers.changing if m.ns == "effort_value"] == ["-8 N\n+3.5 N/s"]
    legend = next(m.text for m in markers.static if m.ns == "legend")
    assert legend.endswith("largest utilization: effort of j0, 80%") and "recent maximum" in legend


def test_wrench_markers_are_an_arrow_along_the_force_and_an_arc_about_the_moment():
    robot = Robot.from_urdf(urdf("revolute", SIX[:1]), backend="reference")
    out, markers = filled(robot, [([1.0], [1.0])])
    force, moment = np.array([1.0, 2.0, -2.0]), np.array([0.0, 0.0, -5.0])
    markers.fill(out, {"l0": np.concatenate((force, moment))})
    arrow, head, turn = marks = [m for m in markers.changing if m.ns == "external_wrench"]
    assert {m.header.frame_id for m in marks} == {"l0"}
    np.testing.assert_allclose(np.cross(points_of(arrow)[1], force), 0.0, atol=1e-12)
    assert points_of(arrow)[1] @ force > 0.0 and np.cross(*points_of(head)) @ moment > 0.0
    assert (np.cross(points_of(turn)[:-1], points_of(turn)[1:]) @ moment > 0.0).all()
    markers.fill(out, {"l0": np.zeros(6)})
    assert {m.action for m in marks} == {Marker.DELETE}


def test_center_of_mass_and_base_wrench_match_pinocchio():
    pin = pytest.importorskip("pinocchio")
    text = urdf("revolute", SKEW)
    robot, rng = Robot.from_urdf(text, backend="reference"), np.random.default_rng(3)
    motion = rng.uniform(-1.0, 1.0, (4, robot.n))
    body = on_fixed_base(robot, motion, None)
    model = pin.buildModelFromXML(text)
    data = model.createData()
    names = [robot.joint_names.index(name) for name in model.names[1:]]
    q, qd, qdd = motion[:3, names]
    np.testing.assert_allclose(body.center_of_mass, pin.centerOfMass(model, data, q), atol=1e-12)
    pin.dccrba(model, data, q, qd)
    pin.computeCentroidalMomentumTimeVariation(model, data, q, qd, qdd)
    weight = np.array([0.0, 0.0, 9.81 * robot.total_mass])
    f = data.dhg.linear + weight
    np.testing.assert_allclose(body.base_wrench, [*f, *(data.dhg.angular + np.cross(body.center_of_mass, f))], atol=1e-10)
    tilting = body.base_wrench[3:] - np.cross(body.zero_moment_point, f)
    np.testing.assert_allclose([*tilting[:2], body.zero_moment_point[2]], 0.0, atol=1e-10)


def test_markers_of_both_ends_of_a_cut_joint_coincide():
    robot = load(ROOT / "urdf/palletiser.urdf", ROOT / "urdf/palletiser.robot.yaml", backend="reference")
    marks = cut_joint_markers(robot.loops.cuts, robot.tree.model, 1.0)
    assert len(marks) == 2 * len(robot.loops.cuts)
    ends = [robot.tree.link_pose(m.header.frame_id, robot.start, [m.pose.position.x, m.pose.position.y, m.pose.position.z]).p
            for m in marks]
    np.testing.assert_allclose(ends[::2], ends[1::2], atol=1e-9)
