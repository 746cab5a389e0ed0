"""Messages <-> arrays: by name, without building anything anew."""

import array
import math

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from builtin_interfaces.msg import Time
from sensor_msgs.msg import JointState

from rnea_msgs.msg import JointMotion
from rnea_ros import Robot
from rnea_ros.nodes.joints import described, joint_limits
from rnea_ros.nodes.markers import Markers
from rnea_ros.nodes.messages import DesiredReader, Outgoing, Rejected, StateReader, model_info

NAMES = ("a", "b", "c")
URDF = """<robot name="r"><link name="base"/>{}</robot>""".format("".join(
    f'<link name="l{k}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    f'</link><joint name="{name}" type="{kind}"><parent link="{"base" if k == 0 else f"l{k - 1}"}"/><child link="l{k}"/>'
    '<origin xyz="0.1 0.2 0.3" rpy="1 0 0"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="5" velocity="2"/></joint>'
    for k, (name, kind) in enumerate(zip(NAMES, ("revolute", "prismatic", "revolute")))))


def state(names=NAMES, position=(1.0, 2.0, 3.0), velocity=(4.0, 5.0, 6.0), sec=1):
    message = JointState(name=list(names), position=list(position), velocity=list(velocity))
    message.header.stamp = Time(sec=sec)
    return message


def test_state_is_read_by_name_and_the_map_follows_the_names():
    reader = StateReader(NAMES)
    for sec in range(3):
        assert reader.read(state(sec=2 * sec)) == 2 * sec * 10**9
        assert (reader.q.tolist(), reader.qd.tolist(), reader.has_velocity) == ([1, 2, 3], [4, 5, 6], True)
        reader.read(state(("x", "c", "a", "b"), (9.0, 3.0, 1.0, 2.0), (9.0, 6.0, 4.0, 5.0), sec=2 * sec + 1))
        assert (reader.q.tolist(), reader.qd.tolist()) == ([1, 2, 3], [4, 5, 6])


@pytest.mark.parametrize(("message", "reason", "detail"), [
    (state((), (), ()), "empty", "names no joints"),
    (state("abb"), "duplicate_joint", "b"),
    (state("axy"), "joint_missing", "b, c"),
    (state(position=()), "wrong_size", "position has 0 entries for 3 names"),
    (state(velocity=(1.0, 2.0)), "wrong_size", "velocity has 2 entries for 3 names"),
    (state(position=(1.0, math.nan, -math.inf)), "position_not_finite", "b = nan, c = -inf"),
    (state(sec=-1), "stamp_went_back", "1.000000 s"),
])
def test_bad_states(message, reason, detail):
    reader = StateReader(NAMES)
    reader.read(state(sec=0))
    with pytest.raises(Rejected, match=detail) as caught:
        reader.read(message)
    assert caught.value.reason == reason
    reader.read(state(sec=2))  # and nothing is spoilt


def test_huge_positions_are_finite():
    reader = StateReader(NAMES)
    reader.read(state(position=(1.7e308, 1.7e308, -1.7e308)))
    assert reader.q[0] == 1.7e308


@pytest.mark.parametrize("velocity", [(), (math.nan,) * 3, (1.0, math.nan, 1.0)])
def test_missing_velocity_is_no_error_here(velocity):
    reader = StateReader(NAMES)
    reader.read(state(velocity=velocity))
    assert not reader.has_velocity and "b = nan" in reader.velocity_gap()


def test_a_step_back_in_time_costs_one_message():
    reader = StateReader(NAMES)
    reader.read(state(sec=100))
    with pytest.raises(Rejected):
        reader.read(state(sec=50))
    reader.read(state(sec=51))
    reader.map.forget()
    reader.read(state(sec=3))
    reader.read(state(sec=3))  # the same instant is no step back


def desired(sec, value, names=NAMES):
    message = JointMotion(joint_names=list(names), acceleration=[value] * len(names), jerk=[-value] * len(names))
    message.header.stamp = Time(sec=sec)
    return message


def test_desired_motion_is_chosen_by_stamp():
    reader = DesiredReader(NAMES)
    assert reader.at(5) is None
    for sec in range(100, 140):
        reader.read(desired(sec, float(sec)))
    for sec, expected in ((139, 139), (500, 139), (130, 130), (1, 124)):  # 16 are kept
        assert reader.at(sec * 10**9 + 5).tolist() == [[expected] * 3, [-expected] * 3]
    reader.forget()
    assert reader.at(139 * 10**9) is None


def test_a_bad_desired_motion_leaves_the_last_one():
    reader = DesiredReader(NAMES)
    reader.read(desired(1, 1.0))
    for bad in (desired(2, math.nan), desired(2, 2.0, "ab"), desired(0, 2.0)):
        with pytest.raises(Rejected):
            reader.read(bad)
    assert reader.at(3 * 10**9).tolist() == [[1.0] * 3, [-1.0] * 3]


@pytest.fixture(scope="module")
def robot():
    return Robot.from_urdf(URDF, backend="python")


@pytest.fixture
def limits(robot):
    given = {"joint_limits.a.has_effort_rate_limits": True, "joint_limits.a.max_effort_rate": 50.0,
             "joint_limits.b.max_effort": 0.0}
    return joint_limits(described(robot) | given, robot)


def test_limits_from_urdf_and_parameters(limits):
    np.testing.assert_array_equal(limits.effort, [5.0, math.nan, 5.0])  # zero is unknown
    np.testing.assert_array_equal(limits.effort_rate, [50.0, math.nan, math.nan])
    np.testing.assert_array_equal(limits.lower, [-1.0] * 3)


def test_outgoing_messages_are_filled_in_place(robot, limits):
    out = Outgoing(robot, limits, "")
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


def test_results_that_overflow_are_not_sent(robot, limits):
    motion = np.zeros((4, 3))
    with pytest.raises(Rejected) as caught:
        Outgoing(robot, limits, "map").fill(Time(), motion, (np.array([1.0, math.inf, 0.0]), *np.zeros((3, 3))))
    assert caught.value.reason == "result_not_finite"


def test_model_info(robot, limits):
    info = model_info(robot, limits, Time(sec=3))
    assert (info.model_id, info.root_link, info.backend) == (robot.model_id, "base", robot.backend)
    assert info.effort_units == ["N.m", "N", "N.m"]
    assert list(info.gravity) == [0.0, 0.0, -9.81]
    for name in ("parent", "sigma", "gamma", "b", "alpha", "d", "theta", "r"):
        assert len(getattr(info, name)) == len(info.frame_names) == len(robot.mdh_table())


def test_markers_of_joints_inside_a_planar_joint_are_left_out():
    planar = Robot.from_urdf(URDF.replace('type="prismatic"', 'type="planar"'), backend="reference")
    assert [mark.header.frame_id for mark in Markers(planar, 0.2).message.markers] == ["l0", "l1", "l2"]


def test_markers_show_use_by_length_and_rate_by_colour(robot, limits):
    out, marks = Outgoing(robot, limits, ""), Markers(robot, 0.2)
    result = np.array([[-10.0, 3.0, 0.0], [50.0, 0.0, 0.0], [0.0] * 3, [0.0] * 3])
    out.fill(Time(sec=1), np.zeros((4, 3)), result)
    marks.fill(Time(sec=1), out)
    over, unknown, idle = marks.message.markers
    assert len(over.points) == 49 and (over.color.r, over.color.g) == (1.0, 0.0)  # beyond the limit: a full circle, red
    assert unknown.points[1].z == pytest.approx(0.1)  # half as long where the limit is unknown
    assert len(idle.points) == 2 and idle.color.r == idle.color.b
