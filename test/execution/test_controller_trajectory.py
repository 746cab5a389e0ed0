"""Trajectory as interpolated by joint_trajectory_controller: at, between, before and after its points."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_ros.errors import InputError
from rnea_ros.execution.controller import ControllerTrajectory, TrajectorySpline
from rnea_ros.execution.goal import TrajectoryPoint, read_goal

SECOND = 10**9
TIMES = np.array([0.0, 0.4, 1.1, 1.5])
STILL, NO_TURNS = np.zeros(2), np.zeros(2, dtype=bool)


def polynomials(degree: int) -> list[np.polynomial.Polynomial]:
    return [np.polynomial.Polynomial(c) for c in np.random.default_rng(degree).normal(size=(2, degree + 1))]


def truth(of, t: float, count: int = 5) -> np.ndarray:
    return np.array([[p.deriv(k)(t) for p in of] for k in range(count)])


def goal(of, given: int, names=("a", "b"), times=TIMES, start: int = 0):
    points = [TrajectoryPoint(float(t), *truth(of, t, given)[:, :len(names)].tolist()) for t in times]
    return read_goal(("a", "b"), names, points, start)


@pytest.mark.parametrize(("degree", "given"), [(1, 1), (3, 2), (5, 3)])
def test_polynomial_of_the_interpolation_degree_is_reproduced_with_derivatives(degree, given):
    of, start = polynomials(degree), 7 * SECOND
    follow = ControllerTrajectory(goal(of, given, start=start), start, STILL, STILL, NO_TURNS)
    for t in (0.0, 0.1, 0.4, 0.75, 1.1, 1.4999):
        np.testing.assert_allclose(follow(start + round(t * 1e9), 5), truth(of, t), rtol=1e-8, atol=1e-8)
    end = follow(start + 2 * SECOND, 4)
    np.testing.assert_array_equal(end[0], truth(of, TIMES[-1], 1)[0])
    assert not np.any(end[1:])  # at rest after the end


def test_trajectory_without_stamp_starts_on_arrival():
    of = polynomials(5)
    follow = ControllerTrajectory(goal(of, 3), 9 * SECOND, STILL, STILL, NO_TURNS)
    np.testing.assert_allclose(follow(9 * SECOND + SECOND // 2, 4), truth(of, 0.5, 4), atol=1e-9)


@pytest.mark.parametrize(("given", "qd", "degree"), [(1, [0.3, 0.2], 1), (2, [0.3, 0.2], 3), (3, [0.3, 0.2], 3),
                                                    (3, [np.nan, 0.2], 1)])
def test_motion_to_a_later_first_point_starts_at_the_measured_state(given, qd, degree):
    """The interpolation is that of the controller: cubic if both ends have velocities, because no acceleration is measured;
    otherwise linear.
    """
    of, q, qd = polynomials(5), np.array([0.5, -0.5]), np.array(qd)
    follow = ControllerTrajectory(goal(of, given, times=TIMES + 0.2), 3 * SECOND, q, qd, NO_TURNS)
    first = truth(of, 0.2)
    at = [np.array(follow(3 * SECOND + t, 5)) for t in (0, 100_000_000, 199_999_999)]
    np.testing.assert_allclose(at[0][0], q, atol=1e-12)
    np.testing.assert_allclose(at[2][0], first[0], atol=1e-6)
    assert not np.abs(at[1][degree + 1:]).max() > 1e-6
    if degree == 3:
        np.testing.assert_allclose(at[0][1], qd, atol=1e-9)
        np.testing.assert_allclose(at[2][1], first[1], atol=1e-5)
    else:
        np.testing.assert_allclose(at[1][1], (first[0] - q) / 0.2, atol=1e-9)


def test_unnamed_joint_stays_at_its_measured_position():
    of = polynomials(5)
    follow = ControllerTrajectory(goal(of, 3, names=("a",)), SECOND, np.array([0.1, 0.7]), np.ones(2), NO_TURNS)
    found = np.array(follow(SECOND + SECOND // 2, 4))
    np.testing.assert_allclose(found[:, 0], truth(of, 0.5, 4)[:, 0], atol=1e-9)
    np.testing.assert_allclose(found[:, 1], [0.7, 0.0, 0.0, 0.0], atol=1e-12)


def test_continuous_joint_moves_to_the_first_point_by_the_shorter_way():
    points = [TrajectoryPoint(1.0, (0.1, 0.1))]
    away = np.array([2.0 * np.pi, 2.0 * np.pi])
    follow = ControllerTrajectory(read_goal(("a", "b"), ("a", "b"), points), SECOND, away, STILL, np.array([True, False]))
    np.testing.assert_allclose(follow(SECOND, 2), [[0.0, 2.0 * np.pi], [0.1, 0.1 - 2.0 * np.pi]], atol=1e-12)


def test_accelerations_without_velocities_are_rejected():
    with pytest.raises(InputError, match="with velocities or without"):
        TrajectorySpline([0.0, 1.0], np.zeros((2, 1)), None, np.zeros((2, 1)))
