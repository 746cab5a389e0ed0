"""Robots that combine loops, springs and moving bases in dynamics_node, over DDS and in process, against Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")
pytest.importorskip("pinocchio")

from sensor_msgs.msg import JointState
from std_msgs.msg import Header

import rnea_ros
from rnea_ros import InputError, Loads
from rnea_ros.errors import Rejected
from rnea_ros.nodes.common.base import BaseMotion
from rnea_ros.nodes.dynamics.served_robot import ServedGeneralRobot, no_loads
from support.moving_bench import MovingBench
from support.moving_combinations import COMBINATIONS, combination
from support.ros_helpers import ros_domain, stamp

pytestmark = [pytest.mark.ros, pytest.mark.timeout(600)]

SAMPLES = 4


@pytest.mark.parametrize("name", COMBINATIONS)
def test_torques_and_rates_match_pinocchio_with_multipliers(tmp_path, name):
    moving = combination(name)
    with ros_domain(tmp_path) as ros:
        bench = MovingBench(ros, moving, tmp_path, step=3.0 / SAMPLES).met()
        for _ in range(SAMPLES):
            t, found = bench.next()
            tau, rate = moving.torque(t), moving.rate(t)
            assert np.abs(found.effort - tau).max() < 1e-10 * np.abs(tau).max()
            assert np.abs(found.effort_rate - rate).max() < 1e-8 * np.abs(rate).max()
        assert bench.info[-1].kind.startswith("robot on a ")


def served(name, **values):
    """Return one of COMBINATIONS served in this process, with its motion; `values` replace default parameters."""
    moving = combination(name)
    given = {"loops.tolerance": 0.1, "base.source": "state", "base.motion_source": "estimated", "base.timeout": 1.0}
    robot = rnea_ros.load(moving.urdf, {"version": 1, **moving.content})
    return ServedGeneralRobot(robot, given | moving.parameters | values), moving


def test_published_multipliers_and_solved_joints_equal_the_library():
    robot, moving = served("loop and spring")
    motion = moving.motion(0.2)
    robot.dynamics(motion, np.full((4, len(robot.optional)), np.nan), no_loads, 0)
    names, general = robot.robot.constraints, robot.robot
    found = general.solve(*motion)
    forces, rates, followed, _ = (sent.message() for sent in robot.messages)
    assert list(forces.name) == list(names) and list(followed.name) == list(general.solved_joints)
    assert np.allclose(forces.effort, [found.multipliers[name][0] for name in names], rtol=1e-12)
    assert np.allclose(rates.effort, [found.multipliers[name][1] for name in names], rtol=1e-9)
    assert np.allclose(followed.position, [found.positions[name][0] for name in general.solved_joints], rtol=1e-12)


def test_free_base_acceleration_is_computed_and_its_wrench_is_zero():
    robot, moving = served("free base, two loops, springs")
    state = moving.base(0.1)
    robot.evaluate(moving.motion(0.1), np.full((4, len(robot.optional)), np.nan), no_loads,
                   BaseMotion(state.with_motion(*np.zeros((2, 6)))))
    (_, _, a, _), *_ = moving.sample(0.1)
    base, wrench = robot.base_motion
    assert np.allclose(base.state.acceleration, state.classical(a[:6]), rtol=1e-9, atol=1e-9)
    assert not wrench.any()


def test_measured_positions_of_solved_joints_are_compared_with_the_loops():
    robot, moving = served("loop and spring")
    motion = moving.motion(0.0)
    robot.dynamics(motion, np.full((4, len(robot.optional)), np.nan), no_loads, 0)
    measured = np.full((4, len(robot.optional)), np.nan)
    measured[0] = np.asarray(robot.messages[2].message().position) + 0.3
    robot.dynamics(motion, measured, no_loads, 0)
    assert "off its measured position" in robot.warnings_now()[0]
    assert all(float(robot.findings()[f"{name}.loop_disagreement"]) == pytest.approx(-0.3) for name in robot.solved)


def test_error_names_the_motors_whose_motion_is_unknown():
    robot, moving = served("elastic joints on a carried base, motors measured")
    with pytest.raises(Rejected, match=r"4 derivatives of the base's velocity, base states have 2; or else j\d_motor"):
        robot.evaluate(moving.motion(0.0), np.full((4, 2), np.nan), no_loads, BaseMotion(moving.base(0.0)))


@pytest.mark.parametrize("name", ["standing on three legs", "elastic joints on a carried base, motors measured"])
def test_free_base_motion_is_rejected_for_a_supported_base(name):
    with pytest.raises(InputError, match="free"):
        served(name, **{"base.motion_source": "free"})


def test_external_wrench_and_its_rate_enter_torque_and_torque_rate():
    robot, moving = served("two loops and a spring on a carried base")
    wrench, rate = np.array([3.0, -2.0, 5.0, 0.4, 0.3, -0.2]), np.array([1.0, 2.0, -1.0, 0.2, 0.1, 0.3])
    seen = []

    def loads(q, qd):
        seen.append((q, qd))
        return Loads({"l10": wrench}, {"l10": rate})

    state = moving.base(0.1)
    motion, unknown = moving.motion(0.1), np.full((4, len(robot.optional)), np.nan)
    found = robot.evaluate(motion, unknown, loads, BaseMotion(state))
    expected = robot.robot.torque_and_rate(*motion, base=state,
                                           loads=Loads({"l10": wrench}, {"l10": rate}))
    assert np.allclose(found[:2], expected, rtol=1e-9, atol=1e-9)
    (q, v, *_), *_ = moving.sample(0.1)
    numbers = [moving.numbers[name] for name in robot.robot.tree.joint_names]
    assert np.allclose(seen[-1], ([q[k + 1] for k in numbers], v[numbers]), atol=1e-11)  # of all joints


def test_bad_input_payload_and_position_only_states_of_a_robot_with_loop_and_spring(tmp_path):
    moving = combination("loop and spring")
    with ros_domain(tmp_path) as ros:
        bench = MovingBench(ros, moving, tmp_path, step=0.002).met()
        motion = moving.motion(0.1)
        for reason, wrong in (("motion_refused", [motion[0], motion[1] * 1e200, *motion[2:]]),
                              ("out_of_reach", [motion[0] + 3.0, *motion[1:]]),
                              ("position_not_finite", [motion[0] * np.nan, *motion[1:]])):
            def refused(reason=reason, wrong=wrong):
                bench.publish(wrong)
                return bench.diagnostics.dropped("joint_states", reason)

            ros.until(refused, what=f"not refused as {reason}", of=bench.process)
        light = bench.sample(motion).effort
        assert not ros.set(bench.node, together=True, payload__link="l7", payload__mass=1.5)
        ros.until(lambda: np.abs(np.subtract(bench.sample(motion).effort, light)).max() > 1e-3, of=bench.process)
        heavy = moving.robot.with_payload("l7", 1.5).torque_and_rate(*motion)[0]
        assert np.allclose(bench.sample(motion).effort, heavy, rtol=1e-9, atol=1e-9)
        assert not ros.set(bench.node, motion_source="estimated")

        def estimated():
            seconds = bench.tick()
            q = motion[0] + 0.02 * np.sin(3.0 * seconds)
            header, names = Header(stamp=stamp(seconds)), list(moving.joints)
            bench.states.publish(JointState(header=header, name=names, position=q.tolist()))
            return bench.results[-1].motion_source == "estimated" and np.isfinite(bench.results[-1].effort_rate).all()

        ros.until(estimated, of=bench.process)
