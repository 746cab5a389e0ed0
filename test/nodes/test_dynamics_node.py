"""dynamics_node as a separate process over DDS: results equal to the library's, and changes of parameters at run time."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from std_msgs.msg import Header
from visualization_msgs.msg import Marker, MarkerArray

from rnea_msgs.msg import JointMotion, ModelInfo
from rnea_ros import Robot
from support.node_bench import ARM, NAMES, NODE, Bench, urdf
from support.ros_helpers import LATCHED, ros_domain, stamp

pytestmark = pytest.mark.ros
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """One node for all checks, which leave it as they found it."""
    with ros_domain(tmp_path_factory.mktemp("ros")) as ros:
        limits = {"has_effort_rate_limits": True, "max_effort_rate": 100.0}
        yield Bench(ros, robot_description=ARM, **{"joint_limits.turn." + k: v for k, v in limits.items()}).ready()


@pytest.fixture(scope="module")
def robot():
    return Robot.from_urdf(ARM)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def test_results_equal_the_library_bit_for_bit(bench, robot, rng):
    for _ in range(10):
        motion = rng.uniform(-2.0, 2.0, (4, 3))
        order = rng.permutation(5)
        names = [(*NAMES, "follow", "not_ours")[k] for k in order]
        result = bench.send(np.hstack((motion, np.full((4, 2), 9.0)))[:, order], names)
        expected = robot.dynamics(*motion)
        fields = ("position", "velocity", "acceleration", "jerk",
                  "effort", "effort_rate", "gravity_effort", "gravity_effort_rate")
        for field, values in zip(fields, (*motion, *expected)):
            assert list(getattr(result, field)) == values.tolist(), field
        assert list(result.joint_names) == list(robot.joint_names)


def test_effort_topics_repeat_state_and_stamp_of_the_input(bench, robot, rng):
    motion = rng.uniform(-1.0, 1.0, (4, 3))
    result = bench.send(motion)
    expected = robot.dynamics(*motion)
    for received, values in ((bench.efforts, expected.tau), (bench.rates, expected.tau_rate)):
        message = bench.ros.until(lambda r=received: r and r[-1].header.stamp == result.header.stamp and r[-1])
        assert message.header.frame_id == result.header.frame_id == "base"
        assert (list(message.name), list(message.position), list(message.velocity)) == (NAMES, [*motion[0]], [*motion[1]])
        assert list(message.effort) == values.tolist()


def test_results_contain_limits_and_their_utilization(bench, rng):
    result = bench.send(rng.uniform(-1.0, 1.0, (4, 3)))
    np.testing.assert_array_equal(result.effort_limit, [40.0, math.nan, 60.0])
    np.testing.assert_array_equal(result.effort_rate_limit, [100.0, math.nan, math.nan])
    np.testing.assert_array_equal(result.effort_utilization, np.abs(result.effort) / np.array(result.effort_limit))
    np.testing.assert_array_equal(result.effort_rate_utilization[0], abs(result.effort_rate[0]) / 100.0)


def test_model_info_reaches_late_subscribers(bench, robot):
    late = bench.ros.listen(ModelInfo, f"{NODE}/model_info", LATCHED)
    info = bench.ros.until(lambda: late and late[-1])
    assert info.model_id == robot.model_id
    assert (list(info.joint_names), list(info.joint_types)) == (NAMES, ["revolute", "continuous", "prismatic"])
    assert list(info.effort_rate_units) == ["N.m/s", "N.m/s", "N/s"]
    assert info.total_mass == robot.total_mass
    assert [row[0] for row in robot.mdh_table()] == list(info.frame_names)


def test_desired_motion_sent_ahead_is_used_at_its_stamp(bench, robot):
    """Motions sent ahead are used at their stamp, not on arrival, and are interpolated between two stamps."""
    timeout = bench.ros.get(NODE, "desired_timeout")
    assert not bench.ros.set(NODE, desired_timeout=10.0)
    first, second, third = (bench.tick() for _ in range(3))
    before = int(bench.diagnostics.next()["desired_motion.received"])
    jerk = [2.0 / (third - first)] * 3  # the acceleration grows linearly from 1 to 3
    for when, value in ((first, 1.0), (third, 3.0)):
        message = JointMotion(joint_names=NAMES, acceleration=[value] * 3, jerk=jerk)
        message.header.stamp = stamp(when)
        bench.desired.publish(message)
    bench.ros.until(lambda: int(bench.diagnostics.values["desired_motion.received"]) >= before + 2)
    for when, value in ((first, 1.0), (second, 2.0), (third, 3.0)):
        bench.state(header=Header(stamp=stamp(when)))
        np.testing.assert_allclose(bench.answer(stamp(when)).acceleration, [value] * 3, rtol=1e-6)
    assert not bench.ros.set(NODE, desired_timeout=timeout)


def test_invalid_parameters_are_rejected_with_the_reason(bench):
    for name, value, reason in [
        ("state_timeout", -1.0, "out of range"),
        ("state_timeout", 1, "type"),
        ("motion_source", "guess", "auto, desired, estimated"),
        ("gravity", [0.0, 9.81], "3 doubles"),
        ("backend", "python", "read-only"),
        ("robot_description", "<robot/>", "no <link>"),
        ("robot_description", "/some/path.urdf", "XML"),
        ("robot_description", "", "empty"),
        ("payload__mass", 1.0, "payload.link"),
        ("payload__link", "nose", "nose"),
        ("payload__mass", -1.0, "payload.mass is -1; it must be a finite number >= 0, <= 1e+06"),
        ("joint_limits__turn__max_effort", -3.0, ">= 0"),
        ("joint_dynamics__turn__viscous", math.nan, "viscous is nan"),
        ("joint_dynamics__turn__gear_ratio", 1e300, "gear_ratio is 1e+300; it must be a finite number >= -1e+09, <= 1e+09"),
    ]:
        assert reason in bench.ros.set(NODE, **{name: value}), (name, value)
    assert bench.ros.get(NODE, "state_timeout") == 0.5
    assert bench.alive()


def test_joint_limits_can_be_changed_at_run_time(bench):
    assert bench.ros.get(NODE, "joint_limits.turn.max_effort") == 40.0  # the URDF's
    assert not bench.ros.set(NODE, joint_limits__turn__max_effort=20.0, joint_limits__slide__has_effort_limits=False)
    np.testing.assert_array_equal(bench.send(np.zeros((4, 3))).effort_limit, [20.0, math.nan, math.nan])
    assert not bench.ros.set(NODE, joint_limits__turn__max_effort=40.0, joint_limits__slide__has_effort_limits=True)


def test_has_limits_flag_is_true_while_its_limit_is_set(bench):
    flag = "joint_limits.turn.has_jerk_limits"
    assert bench.ros.get(NODE, flag) is False
    assert not bench.ros.set(NODE, joint_limits__turn__max_jerk=50.0)
    assert bench.ros.get(NODE, flag) is True
    assert not bench.ros.set(NODE, joint_limits__turn__max_jerk=math.nan)
    assert bench.ros.get(NODE, flag) is False


def test_payload_can_be_changed_at_run_time(bench, robot, rng):
    motion = rng.uniform(-1.0, 1.0, (4, 3))
    inertia = [0.01, 0.0, 0.0, 0.02, 0.0, 0.01]
    known = len(bench.info)
    assert not bench.ros.set(NODE, together=True, payload__link="tool", payload__mass=1.5, payload__com=[0.0, 0.1, 0.2],
                             payload__inertia=inertia)
    bench.ros.until(lambda: len(bench.info) > known and bench.info[-1].model_id != robot.model_id)
    loaded = robot.with_payload("tool", 1.5, (0.0, 0.1, 0.2), np.diag([0.01, 0.02, 0.01]))
    assert list(bench.send(motion).effort_rate) == loaded.dynamics(*motion).tau_rate.tolist()
    assert bench.info[-1].model_id == loaded.model_id
    assert not bench.ros.set(NODE, together=True, payload__link="", payload__mass=0.0)
    bench.ros.until(lambda: bench.info[-1].model_id == robot.model_id)
    assert list(bench.send(motion).effort_rate) == robot.dynamics(*motion).tau_rate.tolist()


def test_viscous_friction_can_be_changed_at_run_time(bench, robot, rng):
    motion = rng.uniform(-1.0, 1.0, (4, 3))
    assert not bench.ros.set(NODE, joint_dynamics__turn__viscous=2.0)
    bench.ros.until(lambda: bench.info[-1].model_id != robot.model_id)
    np.testing.assert_allclose(bench.send(motion).effort[0] - robot.dynamics(*motion).tau[0], 2.0 * motion[1, 0], rtol=1e-9)
    assert not bench.ros.set(NODE, joint_dynamics__turn__viscous=0.0)
    bench.ros.until(lambda: bench.info[-1].model_id == robot.model_id)


def test_markers_are_published_when_a_parameter_requests_them(bench):
    marks: list[MarkerArray] = bench.ros.listen(MarkerArray, f"{NODE}/markers")
    assert not bench.ros.set(NODE, publish_markers=True)
    bench.ros.until(lambda: bench.alive() and marks)
    arc, head = Marker.LINE_STRIP, Marker.ARROW
    shown = [m for m in marks[0].markers if m.ns == "effort"]
    assert {m.ns for m in marks[0].markers} == {"effort", "effort_value", "limit", "legend", "center_of_mass", "base_wrench",
                                                "zero_moment_point"}
    assert [(m.header.frame_id, m.type) for m in shown] == [
        ("upper", arc), ("upper", head), ("fore", arc), ("fore", head), ("wrist", head)]
    for mark, across in zip(shown, ("y", "y", "x", "x")):  # arcs about the joint's axis
        assert all(abs(getattr(point, across)) < 1e-12 for point in mark.points) and len(mark.points) > 1
    assert {(abs(point.x), abs(point.y)) for point in shown[-1].points} == {(0.0, 0.0)}
    assert not bench.ros.set(NODE, publish_markers=False)


def test_setting_robot_description_replaces_the_model(bench, robot):
    """Runs last on the shared node, and leaves it as it was."""
    heavier = urdf("heavier", 3.0)
    motion = np.full((4, 3), 0.3)
    assert not bench.ros.set(NODE, robot_description=heavier)
    bench.ros.until(lambda: bench.info[-1].robot_name == "heavier")
    assert list(bench.send(motion).effort) == Robot.from_urdf(heavier).dynamics(*motion).tau.tolist()
    assert bench.ros.get(NODE, "joint_limits.turn.max_effort_rate") == 100.0  # what the user gave survives

    stanford = (ROOT / "urdf" / "stanford.urdf").read_text()
    assert not bench.ros.set(NODE, robot_description=stanford)
    bench.ros.until(lambda: len(bench.info[-1].joint_names) == 6)
    arm, motion = Robot.from_urdf(stanford), np.full((4, 6), 0.2)
    assert list(bench.send(motion, list(arm.joint_names)).effort_rate) == arm.dynamics(*motion).tau_rate.tolist()
    assert not bench.ros.set(NODE, robot_description=ARM)
    bench.ros.until(lambda: bench.info[-1].model_id == robot.model_id)
    assert bench.alive()
