"""Conversion between messages and arrays: joints by name, and output messages filled in place."""

import array
import math

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from builtin_interfaces.msg import Time
from rclpy.serialization import deserialize_message

from rnea_msgs.msg import JointMotion
from rnea_ros import InputError, Robot, load
from rnea_ros.errors import Rejected
from rnea_ros.nodes.common.marker_shapes import GREY, heat
from rnea_ros.nodes.common.model_facts import joint_limits, joint_parameters, model_info
from rnea_ros.nodes.common.pairing import extrapolated
from rnea_ros.nodes.dynamics.markers import Markers
from rnea_ros.nodes.dynamics.messages import TOPICS, DynamicsMessages, MessageStep
from rnea_ros.nodes.dynamics.motion_source import MAX_MOTIONS, DesiredReader

NAMES = ("a", "b", "c")
URDF = """<robot name="r"><link name="base"/>{}</robot>""".format("".join(
    f'<link name="l{k}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    f'</link><joint name="{name}" type="{kind}"><parent link="{"base" if k == 0 else f"l{k - 1}"}"/><child link="l{k}"/>'
    '<origin xyz="0.1 0.2 0.3" rpy="1 0 0"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="5" velocity="2"/></joint>'
    for k, (name, kind) in enumerate(zip(NAMES, ("revolute", "prismatic", "revolute")))))


def test_utilization_uses_limits_by_direction_and_position_and_commanded_efforts():
    zone = {"velocity_offset": 0.1, "deceleration_limit": 2.0, "lower_position_limit": -1.1, "upper_position_limit": 1.1}
    robot = load(URDF.encode(), {"version": 1, "commanded_effort": {"contains": "without_gravity"}, "limits": {
        "a": {"max_commanded_effort_rate": 7.0, "max_effort_rate": 11.0, "velocity_by_position": zone},
        "b": {"max_effort": 9.0, "min_effort": -3.0},
        "c": {"max_velocity": 2.0, "min_velocity": -0.5}}})
    out = DynamicsMessages(robot, joint_limits(joint_parameters(robot), robot), "", robot.model.efforts.commanded)
    rng = np.random.default_rng(2)
    for _ in range(20):
        motion = rng.uniform(-1.0, 1.0, (4, 3))
        result = robot.dynamics(*motion)
        out.fill(Time(sec=1), motion, result)
        message, (q, qd, *_) = out.dynamics, motion
        commanded = result.tau_rate - result.gravity_rate
        assert message.commanded_effort_rate_utilization[0] == pytest.approx(abs(commanded[0]) / 7.0)
        assert message.effort_rate_utilization[0] == pytest.approx(abs(result.tau_rate[0]) / 11.0)
        np.testing.assert_allclose(message.commanded_effort, result.tau - result.gravity)
        np.testing.assert_allclose(message.commanded_effort_rate, commanded)
        assert out.effort.effort.tolist() == list(message.effort) == result.tau.tolist()  # whole, for every convention
        assert message.effort_utilization[1] == pytest.approx(max(result.tau[1] / 9.0, -result.tau[1] / 3.0))
        way = 1.1 - q[0] if qd[0] > 0.0 else q[0] + 1.1
        assert message.velocity_utilization[0] == pytest.approx(abs(qd[0]) / min(2.0, math.sqrt(4.0 * way) - 0.1))
        assert message.velocity_utilization[2] == pytest.approx(max(qd[2] / 2.0, -qd[2] / 0.5))


def desired(sec, value, names=NAMES):
    message = JointMotion(joint_names=list(names), acceleration=[value] * len(names), jerk=[-value] * len(names))
    message.header.stamp = Time(sec=sec)
    return message


def test_desired_motion_is_chosen_by_stamp():
    reader = DesiredReader(NAMES)
    assert reader.at(5) is None
    for sec in range(100, 101 + MAX_MOTIONS):  # one more than is kept: the first one is forgotten
        reader.read(desired(sec, float(sec)))
    for sec in (101, 130, 100 + MAX_MOTIONS):
        assert reader.at(sec * 10**9, tolerance=0.0).tolist() == [[sec] * 3, [-sec] * 3]
    # extrapolated from the nearest one, by its jerk
    for sec, nearest, reason in ((100, 101, "missing"), (101 + MAX_MOTIONS, 100 + MAX_MOTIONS, "late")):
        np.testing.assert_allclose(reader.at(sec * 10**9, tolerance=1.0),
                                   [[nearest - nearest * (sec - nearest)] * 3, [-nearest] * 3])
        with pytest.raises(Rejected) as caught:
            reader.at(sec * 10**9, tolerance=0.5)
        assert caught.value.reason == f"desired_motion_{reason}"
    reader.forget()
    assert reader.at(139 * 10**9) is None


def test_invalid_desired_motion_keeps_the_previous_one():
    reader = DesiredReader(NAMES)
    reader.read(desired(1, 1.0))
    for bad in (desired(2, math.nan), desired(2, 2.0, "ab"), desired(2, 2.0, ["a", *(f"x{k}" for k in range(10**5))])):
        with pytest.raises(Rejected) as caught:
            reader.read(bad)
        assert len(str(caught.value)) < 1000
    assert reader.last(3 * 10**9).tolist() == reader.at(10**9).tolist() == [[1.0] * 3, [-1.0] * 3]


def test_backward_stamp_clears_the_desired_motions():
    reader = DesiredReader(NAMES)
    reader.read(desired(100, 1.0))
    with pytest.raises(Rejected) as caught:
        reader.read(desired(50, 2.0))
    assert caught.value.reason == "stamp_went_back" and reader.at(101 * 10**9) is None
    reader.read(desired(51, 3.0))
    assert reader.last(101 * 10**9).tolist() == reader.at(51 * 10**9).tolist() == [[3.0] * 3, [-3.0] * 3]


def test_held_joints_need_no_desired_motion():
    reader = DesiredReader(NAMES)
    reader.held = frozenset([1])
    reader.read(desired(1, 2.0, "ca"))
    assert reader.at(10**9).tolist() == [[2.0, 0.0, 2.0], [-2.0, 0.0, -2.0]]
    with pytest.raises(Rejected, match="not in the message: c"):
        reader.read(desired(2, 2.0, "ab"))


@pytest.fixture(scope="module")
def robot():
    return Robot.from_urdf(URDF, backend="python")


@pytest.fixture
def limits(robot):
    given = {"joint_limits.a.has_effort_rate_limits": True, "joint_limits.a.max_effort_rate": 50.0,
             "joint_limits.b.max_effort": 0.0}
    return joint_limits(joint_parameters(robot) | given, robot)


def test_limits_are_merged_from_urdf_and_parameters(limits):
    np.testing.assert_array_equal(limits.effort, [5.0, math.nan, 5.0])  # zero is unknown
    np.testing.assert_array_equal(limits.effort_rate, [50.0, math.nan, math.nan])
    np.testing.assert_array_equal(limits.lower, [-1.0] * 3)


def test_outgoing_messages_are_filled_in_place(robot, limits):
    out = DynamicsMessages(robot, limits, "")
    arrays = [out.effort.position, out.effort.effort, out.effort_rate.effort, out.dynamics.effort, out.dynamics.jerk]
    for scale in (1.0, 0.5):
        motion = scale * np.arange(12.0).reshape(4, 3)
        result = robot.dynamics(*motion)
        out.fill(Time(sec=7), motion, result)
        assert list(out.effort.effort) == list(out.dynamics.effort) == result.tau.tolist()
        assert list(out.effort_rate.effort) == list(out.dynamics.effort_rate) == result.tau_rate.tolist()
        assert list(out.dynamics.gravity_effort_rate) == result.gravity_rate.tolist()
        assert list(out.dynamics.jerk) == motion[3].tolist()
        assert out.dynamics.effort_utilization[0] == abs(result.tau[0]) / 5.0
        assert math.isnan(out.dynamics.effort_utilization[1]) and math.isnan(out.dynamics.effort_rate_utilization[2])
    after = [out.effort.position, out.effort.effort, out.effort_rate.effort, out.dynamics.effort, out.dynamics.jerk]
    assert all(a is b and type(a) is array.array for a, b in zip(arrays, after))
    assert out.effort.header is out.effort_rate.header is out.dynamics.header
    assert (out.effort.header.frame_id, out.effort.header.stamp.sec) == ("base", 7)
    sizes = {len(out.effort.name), len(out.effort.position), len(out.effort.velocity), len(out.effort.effort)}
    assert sizes == {3}  # what RViz and PlotJuggler insist on


def test_non_finite_results_are_rejected(robot, limits):
    motion = np.zeros((4, 3))
    with pytest.raises(Rejected) as caught:
        DynamicsMessages(robot, limits, "map").fill(Time(), motion, (np.array([1.0, math.inf, 0.0]), *np.zeros((3, 3))))
    assert caught.value.reason == "result_not_finite"


def test_model_info_describes_the_frames_of_the_robot(robot, limits):
    info = model_info(robot, limits, Time(sec=3))
    assert (info.model_id, info.root_link, info.backend) == (robot.model_id, "base", robot.backend)
    assert info.effort_units == ["N.m", "N", "N.m"]
    assert list(info.gravity) == [0.0, 0.0, -9.81]
    for name in ("parent", "sigma", "gamma", "b", "alpha", "d", "theta", "r"):
        assert len(getattr(info, name)) == len(info.frame_names) == len(robot.mdh_table())


def test_inner_joints_of_a_planar_joint_have_no_markers():
    planar = Robot.from_urdf(URDF.replace('type="prismatic"', 'type="planar"'), backend="reference")
    assert {mark.header.frame_id for mark in Markers(planar, 0.2).changing} == {"l0", "l1", "l2"}


def test_marker_length_shows_effort_utilization_and_colour_shows_rate_utilization(robot, limits):
    out, marks = DynamicsMessages(robot, limits, ""), Markers(robot, 0.2)
    result = np.array([[-10.0, 3.0, 0.0], [50.0, 0.0, 0.0], [0.0] * 3, [0.0] * 3])
    out.fill(Time(sec=1), np.zeros((4, 3)), result)
    marks.fill(out, {})
    over, head, unknown, idle, _ = (mark for mark in marks.changing if mark.ns == "effort")
    assert len(over.points) == 45 and len(head.points) == 2  # beyond the limit: a full circle, head included, red
    assert over.color == head.color == heat(1.0)
    assert unknown.points[1].z == pytest.approx(0.1)  # half as long where the limit is unknown
    assert len(idle.points) == 2 and idle.color == GREY


def test_message_step_packs_the_bytes_that_fill_and_packed_give():
    """Random motions, subscribers and extreme numbers; `fill`, as numpy, and the robot's own call are the oracle."""
    robot = Robot.from_urdf(URDF)
    limits = joint_limits(joint_parameters(robot), robot)
    expected, found = (DynamicsMessages(robot, limits, "map", inputs=["joint_states", "x"]) for _ in range(2))
    measured, peaks, highest = np.zeros((2, 3)), np.full((3, 3), math.nan), np.full((3, 3), math.nan)
    step = MessageStep(robot.tree.kernel("dynamics"), measured, found, [(peaks, found.use)])
    rng, refused = np.random.default_rng(1), 0
    for k in range(400):
        measured[:], desired = rng.normal(size=(2, 2, 3)) * rng.choice([1.0, 1e3, 1e160], p=[0.9, 0.05, 0.05])
        since, when = rng.choice([0.0, 0.003, 0.2]), Time(sec=k, nanosec=7 * k)
        topics = tuple(sorted(rng.choice(len(TOPICS), rng.integers(len(TOPICS) + 1), replace=False).tolist()))
        motion = (*measured, *(desired if since == 0.0 else extrapolated(desired, since)))
        if k % 7 == 0:  # an estimated sample between those of the step
            spread = np.full((2, 3), 0.5)
            for out in (expected, found):
                out.fill(when, np.ones((4, 3)), np.ones((4, 3)), spread, source="estimated")
        for out in (expected, found):
            out.input_age[:] = k, math.nan
        try:
            expected.fill(when, motion, robot.dynamics(*motion), source=step.source)
        except (InputError, Rejected):
            assert not step.fill(topics, when, desired, since)
            refused += 1
            continue
        highest = np.fmax(highest, expected.use)
        assert step.fill(topics, when, desired, since)
        packed = [expected.sent(number).packed(expected.stamp) for number in topics]
        for number, given, wanted in zip(topics, step.data, packed, strict=True):
            kind = TOPICS[number][0]
            assert repr(deserialize_message(bytes(given), kind)) == repr(deserialize_message(wanted, kind))
        assert repr(found.dynamics) == repr(expected.dynamics) and found.stamp == expected.stamp
        assert peaks.tobytes() == highest.tobytes()
    assert 5 < refused < 200
