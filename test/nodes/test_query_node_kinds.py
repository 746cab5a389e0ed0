"""query_node with a robot file, over DDS: closed loops, a platform, elastic joints, a moving base."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs.action")
pytest.importorskip("pinocchio")

from rnea_msgs.msg import JointSample, PlatformMotion
from rnea_ros import load
from rnea_ros.robots.base_state import BaseState
from support.machines import LoopOracle
from support.query_bench import NODE, QueryBench, numbers, table
from support.ros_helpers import ros_domain

pytestmark = pytest.mark.ros
URDF = Path(__file__).resolve().parents[2] / "urdf"
FIELDS = ("position", "velocity", "acceleration", "jerk", "snap", "crackle")
yaml = pytest.importorskip("yaml")


def beside(name):
    return URDF / f"{name}.urdf", URDF / f"{name}.robot.yaml"


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    urdf, file = beside("five_bar")
    with ros_domain(tmp_path_factory.mktemp("ros")) as ros:
        yield QueryBench(ros, robot_description=urdf.read_text(), robot_file=str(file)).ready()


def swap(bench, name):
    """Load another robot in the node, and return the same robot of the library."""
    urdf, file = beside(name)
    if bench.info[-1].robot_name != name:
        reason = bench.ros.set(NODE, together=True, robot_description=urdf.read_text(), robot_file=str(file))
        assert not reason, reason
        bench.ros.until(lambda: bench.info[-1].robot_name == name, timeout=300.0, of=bench.process)
    return load(urdf, file)


def motion(robot, seed, size=0.05):
    rng = np.random.default_rng(seed)
    rows = size * rng.normal(size=(robot.order + 1, robot.n))
    return [robot.home_motion[0] + rows[0], *rows[1:]]


def ask(bench, service, robot, rows=(), **fields):
    samples = [JointSample(**{name: row.tolist() for name, row in zip(FIELDS, rows)})] if len(rows) else None
    answer = bench(service, **({"samples": samples} if samples else {}), **fields)
    assert answer.success, answer.message
    assert answer.model_id == bench.info[-1].model_id and list(answer.joint_names) == list(robot.joint_names)
    return answer


def assert_close(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(theirs).max(initial=0.0)))


@pytest.mark.parametrize("name", ["five_bar", "palletiser"])
def test_closed_loop_services_equal_the_library_and_match_pinocchio(bench, name):
    """The constraint forces are compared with Pinocchio's."""
    robot = swap(bench, name)
    urdf, file = beside(name)
    declared = yaml.safe_load(file.read_text())
    loops = {"loops": declared["loops"] | {"active": robot.joint_names}}
    oracle = LoopOracle(urdf.read_text(), loops, robot.tree.joint_names)
    oracle.body.model.gravity.linear = robot.tree.gravity_vector
    rows = motion(robot, 1)
    closed = ask(bench, "compute_loop_closure", robot, rows)
    assert list(closed.all_joints) == list(robot.tree.joint_names)
    q, qd, qdd = (numbers(part)[0] for part in (closed.all_positions, closed.all_velocities, closed.all_accelerations))
    tau, accelerations = oracle.inverse(q, qd, rows[2])
    torque = ask(bench, "compute_inverse_dynamics", robot, rows)
    assert_close(numbers(torque.effort)[0], tau)
    assert_close(qdd, accelerations)
    assert_close(numbers(torque.effort_rate)[0], robot.torque_and_rate(*rows)[1])
    assert bench.info[-1].kind == robot.kind and list(bench.info[-1].joint_names) == list(robot.joint_names)
    assert bench("get_tree").success


def test_platform_services_equal_the_library(bench):
    robot = swap(bench, "stewart")
    rows = motion(robot, 2, 0.02)
    there = ask(bench, "compute_platform_forward_kinematics", robot, rows)
    platform = PlatformMotion(pose=there.pose[0], twist=there.twist[0], acceleration=there.platform_acceleration[0],
                              jerk=there.platform_jerk[0])
    back = ask(bench, "compute_platform_inverse_kinematics", robot, platform=[platform])
    for name, row in zip(FIELDS, rows):
        assert_close(numbers(getattr(back, name))[0], row)
    found = robot.platform_motion(*rows)
    assert_close(table(there.twist)[0], found.velocity)
    assert_close(numbers(ask(bench, "compute_inverse_dynamics", robot, rows).effort_rate)[0], robot.torque_and_rate(*rows)[1])


def test_elastic_joint_services_equal_the_library_and_require_five_derivatives(bench):
    robot = swap(bench, "hua_arm")
    rows = motion(robot, 3, 0.3)
    found, expected = ask(bench, "compute_motor_motion", robot, rows), robot.motor_motion(*rows)
    for ours, theirs in ((found.effort, expected.tau), (found.load, expected.load), (found.motor_position, expected.q_motor),
                         (found.effort_rate, robot.torque_and_rate(*rows)[1])):
        assert_close(numbers(ours)[0], theirs)
    answer = bench("compute_inverse_dynamics", samples=[JointSample(position=rows[0].tolist())])
    assert not answer.success and "3 derivatives of q are given; 5 decide the torque rates" in answer.message


def test_services_for_a_moving_base_equal_the_library(bench):
    robot = swap(bench, "branched")
    rows = motion(robot, 4, 0.3)
    found = ask(bench, "compute_mass_matrix", robot, rows[:2])
    assert list(found.coordinates)[:6] == ["base x", "base y", "base z", "base rx", "base ry", "base rz"]
    assert_close(numbers(found.mass_matrix[0]), robot.mass_matrix(rows[0]))
    effort = numbers(ask(bench, "compute_inverse_dynamics", robot, rows).effort)[0]
    assert_close(effort, robot.torque_and_rate(*rows, base=BaseState())[0])
    assert bench.info[-1].base == "floating"


def test_invalid_robot_file_is_rejected_and_the_model_stays(bench, tmp_path):
    robot = swap(bench, "five_bar")
    before = bench.info[-1].model_id
    bad = tmp_path / "bad.yaml"
    bad.write_text("version: 1\nloops: {active: [unknown]}\n")
    reason = bench.ros.set(NODE, robot_file=str(bad))
    assert "loops.cut_joints is missing" in reason
    answer = ask(bench, "compute_inverse_dynamics", robot, motion(robot, 5))
    assert answer.model_id == before
