"""Simulated joint_trajectory_controller: interpolation against closed forms, rejected and replaced trajectories."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_ros import InputError
from rnea_ros.trajectory.rolling_trajectory import quintic_motion
from support.trajectory_controller import TrajectoryController, TrajectoryPoints

TIMES = np.array([1.0, 1.3, 1.7, 2.0])
Q = np.random.default_rng(1).normal(size=(4, 3))
QD, QDD = np.random.default_rng(2).normal(size=(2, 4, 3))
QD[-1] = QDD[-1] = 0.0


def test_given_derivatives_select_quintic_cubic_or_linear_interpolation():
    quintic = TrajectoryController(Q[0])
    quintic.set_trajectory(TrajectoryPoints(TIMES, Q, QD, QDD), 0.0)
    t = np.linspace(1.0, 1.999, 50)
    truth = quintic_motion(TIMES, Q, QD, QDD)(t)
    for k, now in enumerate(t):
        for found, right in zip(quintic.update(now), truth):
            assert np.abs(found - right[k]).max() < 1e-9
    cubic, linear = (TrajectoryController(Q[0]) for _ in range(2))
    cubic.set_trajectory(TrajectoryPoints(TIMES, Q, QD), 1.0)
    linear.set_trajectory(TrajectoryPoints(TIMES, Q), 1.0)
    h, x = 0.4, 0.1  # into the second interval; Hermite's basis
    u = x / h
    basis = np.array([(1 + 2 * u) * (1 - u) ** 2, h * u * (1 - u) ** 2, u**2 * (3 - 2 * u), h * u**2 * (u - 1)])
    assert np.abs(cubic.update(1.4)[0] - basis @ np.array([Q[1], QD[1], Q[2], QD[2]])).max() < 1e-12
    q, qd, _ = linear.update(1.4)
    assert np.abs(q - (Q[1] + 0.25 * (Q[2] - Q[1]))).max() < 1e-12 and np.abs(qd - (Q[2] - Q[1]) / h).max() < 1e-12
    assert np.array_equal(quintic.update(5.0)[0], Q[-1])


def test_new_trajectory_starts_at_the_present_state_and_replaces_the_old_one():
    controller = TrajectoryController(np.zeros(3))
    controller.set_trajectory(TrajectoryPoints(TIMES, Q, QD, QDD), 0.5)
    assert not controller.update(0.5)[0].any() and controller.update(0.75)[0].any()
    here = [x.copy() for x in controller.update(1.5)]
    controller.set_trajectory(TrajectoryPoints(TIMES + 1.0, Q + 0.1, QD, QDD), 1.5)
    assert all(np.abs(a - b).max() < 1e-9 for a, b in zip(controller.update(1.5), here))
    assert np.abs(controller.update(2.0)[0] - Q[0] - 0.1).max() < 1e-9


def test_invalid_trajectories_are_rejected():
    controller = TrajectoryController(np.zeros(3))
    moving = TrajectoryPoints(TIMES[:3], Q[:3], QD[:3], QDD[:3])
    with pytest.raises(InputError, match="allow_nonzero_velocity_at_trajectory_end"):
        controller.set_trajectory(moving, 0.0)
    with pytest.raises(InputError, match="in the past"):
        controller.set_trajectory(TrajectoryPoints(TIMES, Q, QD, QDD), 2.5)
    with pytest.raises(InputError, match="increase"):
        controller.set_trajectory(TrajectoryPoints(TIMES[::-1], Q), 0.0)
    assert not controller.update(1.5)[0].any()
    TrajectoryController(np.zeros(3), nonzero_velocity_at_end=True).set_trajectory(moving, 0.0)
