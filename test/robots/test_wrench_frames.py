"""Wrenches expressed in the frame of any link, against Pinocchio's Jacobians at the point of application."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pinocchio")

from rnea_ros import InputError, Loads, Robot
from rnea_ros.robots.conditions import moving_transform, rigid_transform
from support.oracles import PinocchioOracle, along, difference, worst
from support.robots import arm, random_state, random_tree, seeds

FIXED = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0.1)}, {"kind": "fixed", "xyz": (0.1, 0.2, 0.3),
            "rpy": (0.4, -0.5, 0.6)}, {"kind": "fixed", "xyz": (-0.2, 0.1, 0.0), "rpy": (1.0, 0.2, -0.7)})


def torque(oracle, robot, link, frame, motion, six):
    """Return tau (n,) by virtual work of the point of the link that coincides with the frame origin."""
    q, qd, qdd, *_ = motion
    (R, p), (Rf, pf) = oracle.placement(link, q), oracle.placement(frame, q)
    J = oracle.kinematics(link, R.T @ (pf - p), q, qd)[2]
    return oracle.torque(q, qd, qdd, {}) - J.T @ np.concatenate((Rf @ six[:3], Rf @ six[3:]))


@pytest.mark.parametrize("seed", seeds(5))
def test_torque_and_rate_under_a_wrench_in_any_frame_match_pinocchio(seed):
    text, rng = random_tree(seed).plain(), np.random.default_rng(seed)
    robot = Robot.from_urdf(text)
    oracle, names = PinocchioOracle(text, robot), list(robot.model.frames)
    if robot.n == 0:
        pytest.skip("nothing moves")
    for _ in range(3):
        link, frame = rng.choice(names, 2)
        motion, (six, slope) = random_state(rng, robot.n), rng.normal(size=(2, 6))
        wrench, rate = moving_transform(robot, link, frame, *motion[:2])(six, slope)
        result = robot.dynamics(*motion, loads=Loads({link: wrench}, {link: rate}))
        truth = difference(lambda t: torque(oracle, robot, link, frame, along(*motion, t), six + t * slope))  # noqa: B023
        assert worst(result.tau, torque(oracle, robot, link, frame, motion, six)) < 1e-11
        assert worst(result.tau_rate, truth) < 1e-7  # what differences leave
        for share, alone in zip(result[2:], robot.dynamics(*motion)[2:]):
            np.testing.assert_allclose(share, alone, atol=1e-12 * (1.0 + np.abs(alone).max()))


def test_transform_between_frames_of_one_body_is_constant():
    robot = Robot.from_urdf(FIXED)
    q, qd, *_ = random_state(np.random.default_rng(1), 2)
    for frame in ("l2", "l3", "l4"):
        constant, moving = rigid_transform(robot.model, "l3", frame), moving_transform(robot, "l3", frame, q, qd)
        np.testing.assert_allclose(constant.X, moving.X, atol=1e-14)
        np.testing.assert_allclose(moving.X_rate, 0.0, atol=1e-14)
        assert not constant.X_rate.any()
    assert rigid_transform(robot.model, "l3", "l1") is None
    with pytest.raises(InputError, match="'nose' is not in robot"):
        rigid_transform(robot.model, "l3", "nose")


@pytest.mark.parametrize("backend", ["llvm", "python", "reference"])
def test_dynamics_equals_torque_and_rate_under_wrenches(backend):
    robot, rng = Robot.from_urdf(FIXED, backend=backend), np.random.default_rng(3)
    robot = robot.with_payload("l4", 1.0, (0.1, 0.0, 0.0))
    motion = random_state(rng, 2)
    loads = Loads(*({"l1": rng.normal(size=6), "l4": rng.normal(size=6)} for _ in range(3)))
    found, expected = robot.dynamics(*motion, loads=loads), robot.torque_and_rate(*motion, loads=loads)
    np.testing.assert_allclose(found[:2], expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(found[2:], robot.dynamics(*motion)[2:], rtol=1e-13, atol=1e-13)
