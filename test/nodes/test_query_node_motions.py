"""Retiming and planning by query_node over DDS: limits checked by Pinocchio, feedback, cancelled and rejected goals."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs.action")

from action_msgs.msg import GoalStatus
from geometry_msgs.msg import Wrench
from rclpy.action import ActionClient
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_msgs import srv
from rnea_msgs.action import PlanMotion
from rnea_msgs.msg import JointSample, LinkWrench
from rnea_ros import Robot
from support.node_bench import ARM, NAMES
from support.query_bench import IN_MODEL, NODE, QueryBench, numbers
from support.ros_helpers import ros_domain

pytestmark = pytest.mark.ros
KNOWN = {"velocity": 2.0, "effort": 150.0, "effort_rate": 1500.0, "acceleration": 20.0, "jerk": 400.0}
LIMITS = {f"joint_limits.{joint}.{key}": value for joint in NAMES for quantity, limit in KNOWN.items()
          for key, value in ((f"has_{quantity}_limits", True), (f"max_{quantity}", limit))}
POINTS = np.array([[0.0, 0.2, 0.1], [0.5, -0.3, 0.4], [1.0, 0.4, 0.2], [0.7, 0.9, -0.1]])  # in the order of NAMES
ORDER = [NAMES.index(name) for name in IN_MODEL]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    with ros_domain(tmp_path_factory.mktemp("ros")) as ros:
        yield QueryBench(ros, robot_description=ARM, **LIMITS).ready()


@pytest.fixture(scope="module")
def oracle():
    return pytest.importorskip("support.oracles").PinocchioOracle(ARM, Robot.from_urdf(ARM))


@pytest.fixture
def planner(bench):
    client = ActionClient(bench.ros.node, PlanMotion, f"{NODE}/plan_motion")
    bench.ros.until(client.server_is_ready, what="no action plan_motion", of=bench.process)
    yield client
    client.destroy()


def path(**more):
    points = [JointTrajectoryPoint(positions=row[ORDER].tolist()) for row in POINTS]
    return {"trajectory": JointTrajectory(joint_names=IN_MODEL, points=points), **more}


def retime(bench, **fields):
    return bench.ros.call(srv.RetimeTrajectory, f"{NODE}/retime_trajectory", srv.RetimeTrajectory.Request(**fields))


def check(answer, oracle, wrenches=None):
    """Check torques against Pinocchio and all limits. Return times and positions, in the order of NAMES."""
    trajectory = answer.trajectory
    assert answer.success and list(trajectory.joint_names) == IN_MODEL, answer.message
    back = [IN_MODEL.index(name) for name in NAMES]
    motion = [np.array([getattr(point, name) for point in trajectory.points])[:, back]
              for name in ("positions", "velocities", "accelerations", "effort")]
    jerk, rate = (numbers(table)[:, back] for table in (answer.jerk, answer.effort_rate))
    q, qd, qdd, effort = motion
    for k in range(len(q)):
        tau, tau_rate = oracle.torque_and_rate(q[k], qd[k], qdd[k], jerk[k])
        np.testing.assert_allclose(effort[k], tau, rtol=1e-9, atol=1e-9 * np.abs(tau).max())
        np.testing.assert_allclose(rate[k], tau_rate, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(tau_rate).max()))
    if wrenches is None:
        for name, table in zip(KNOWN, (qd, effort, rate, qdd, jerk)):
            assert np.abs(table).max() < 1.01 * KNOWN[name], name
    times = np.array([point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in trajectory.points])
    assert times[0] == 0.0 and times[-1] == pytest.approx(answer.duration, abs=1e-8)
    return times, q


def test_retimed_path_passes_through_its_points_within_the_limits(bench, oracle):
    answer = retime(bench, **path(rate=200.0))
    times, q = check(answer, oracle)
    np.testing.assert_allclose(np.diff(times)[:-1], 0.005, rtol=0, atol=1e-8)
    np.testing.assert_allclose(q[[0, -1]], POINTS[[0, -1]], rtol=0, atol=1e-9)
    for point in POINTS:  # a sample is near each point
        assert np.linalg.norm(q - point, axis=1).min() < 0.02
    slower = retime(bench, **path(rate=50.0))
    assert slower.duration == answer.duration and len(slower.trajectory.points) < len(answer.trajectory.points)


@pytest.mark.parametrize(("fields", "words"), [
    (path(rate=0.0), "rate is 0; a number of points per second above zero is needed"),
    ({"trajectory": JointTrajectory(joint_names=IN_MODEL)}, "samples is empty"),
    ({"trajectory": JointTrajectory(joint_names=["turn"], points=[JointTrajectoryPoint(positions=[0.0])] * 2)},
     "joint_names lacks 'spin', 'slide'"),
    (path(tolerance=-1.0), "tolerance is -1; a finite number, at least 0, is needed"),
    (path(acceleration_share=0.0), "the share of the acceleration limits is 0; a number above zero, at most 1, is needed")])
def test_paths_that_cannot_be_retimed_are_rejected_with_the_reason(bench, fields, words):
    answer = retime(bench, **fields)
    assert not answer.success and words in answer.message


def goal(**more):
    ends = {end: JointSample(position=POINTS[k][ORDER].tolist()) for end, k in (("start", 0), ("goal", 1))}
    return PlanMotion.Goal(**{"joint_names": IN_MODEL, **ends, **more})


def sent(bench, planner, wanted, feedback=None):
    """Return the handle of an accepted goal."""
    asked = planner.send_goal_async(wanted, feedback_callback=feedback)
    bench.ros.until(asked.done, what="the goal was not answered", of=bench.process)
    assert asked.result().accepted
    return asked.result()


def result(bench, handle):
    asked = handle.get_result_async()
    bench.ros.until(asked.done, timeout=300.0, what="no result", of=bench.process)
    return asked.result()


def test_planned_motion_keeps_the_limits_and_feedback_is_published(bench, planner, oracle):
    pytest.importorskip("casadi")
    reported = []
    handle = sent(bench, planner, goal(rate=100.0), lambda message: reported.append(message.feedback))
    found = result(bench, handle)
    assert found.status == GoalStatus.STATUS_SUCCEEDED
    _, q = check(found.result, oracle)
    np.testing.assert_allclose(q[[0, -1]], POINTS[:2], rtol=0, atol=1e-9)
    assert reported and all(one.stage and one.duration > 0.0 for one in reported)
    assert found.result.objective == pytest.approx(found.result.duration)
    fastest = result(bench, sent(bench, planner, goal(time_tolerance=0.0))).result
    assert fastest.duration < found.result.duration <= 1.005 * fastest.duration * (1.0 + 1e-9)


def test_cancelled_planning_goal_ends_and_the_next_one_is_planned(bench, planner):
    pytest.importorskip("casadi")
    reported = []
    handle = sent(bench, planner, goal(best_of=1000), lambda message: reported.append(message.feedback))
    bench.ros.until(lambda: reported, timeout=300.0, what="no feedback", of=bench.process)
    asked = bench("get_tree")  # the node answers meanwhile
    assert asked.success
    cancelling = handle.cancel_goal_async()
    bench.ros.until(cancelling.done, of=bench.process)
    found = result(bench, handle)
    assert found.status == GoalStatus.STATUS_CANCELED and found.result.message == "cancelled" and not found.result.success
    assert result(bench, sent(bench, planner, goal())).status == GoalStatus.STATUS_SUCCEEDED


@pytest.mark.parametrize(("more", "words"), [
    ({"goal": JointSample(position=[0.0])}, "goal: samples[0].position has shape (1,); (3,) is needed"),
    ({"joint_names": ["turn", "spin"]}, "start: joint_names lacks 'slide'"),
    ({"duration": [1.0, 2.0, 3.0]}, "one number, or shortest and longest"),
    ({"best_of": 0}, "best_of is 0; 1 to 1000 is allowed"),
    ({"time_tolerance": 2.0}, "time_tolerance is 2; a share"),
    ({"wrenches": [LinkWrench(link="tool", wrench=[Wrench()], rate=[Wrench()])]}, "wrenches on tool have rates")])
def test_invalid_planning_goals_are_aborted_with_a_reason(bench, planner, more, words):
    found = result(bench, sent(bench, planner, goal(**more)))
    assert found.status == GoalStatus.STATUS_ABORTED and words in found.result.message, found.result.message
