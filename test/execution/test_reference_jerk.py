"""Jerk of a sampled reference: exact within a quintic polynomial, bounded at the knots."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_ros.execution.controller import ReferenceJerk, TrajectorySpline

TIMES = np.array([0.0003, 0.4037, 1.0071, 1.5013])
POINTS = np.random.default_rng(4).normal(size=(3, len(TIMES), 2))


def found(spline: TrajectorySpline, rate: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return times, estimated jerks, and jerks of the spline."""
    jerk, times = ReferenceJerk(), np.arange(TIMES[0], TIMES[-1], 1.0 / rate)
    samples = [spline(t, 4) for t in times]
    return times, np.array([jerk(t, *x[:3]) for t, x in zip(times, samples)]), np.array([x[3] for x in samples])


def inside(times: np.ndarray, intervals: float, rate: float) -> np.ndarray:
    """Return a mask of samples without a point in the given number of intervals before them."""
    return np.all([(times <= t) | (times > t + intervals / rate) for t in TIMES], axis=0)


@pytest.mark.parametrize("rate", [50.0, 500.0])
@pytest.mark.parametrize("given", [2, 3])
def test_jerk_within_a_spline_piece_is_exact(given, rate):
    times, jerk, truth = found(TrajectorySpline(TIMES, *POINTS[:given]), rate)
    assert np.isnan(jerk[0]).all() and np.isfinite(jerk[1:]).all()
    clear = inside(times, 1.0, rate) & (np.arange(len(times)) > 2)
    assert clear.sum() > 0.8 * len(times)
    np.testing.assert_allclose(jerk[clear], truth[clear], rtol=1e-6, atol=1e-6 * np.abs(truth).max())


def test_jerk_at_a_knot_is_bounded_by_the_acceleration_step():
    rate = 500.0
    spline = TrajectorySpline(TIMES, *POINTS[:2])
    _, jerk, _ = found(spline, rate)
    step = max(np.abs(np.subtract(spline(t - 1e-9, 3)[2], spline(t + 1e-9, 3)[2])).max() for t in TIMES[1:-1])
    assert np.abs(jerk[1:]).max() < 10.0 * step * rate


def test_jerk_of_piecewise_linear_references_is_zero():
    _, jerk, _ = found(TrajectorySpline(TIMES, POINTS[0]), 500.0)
    np.testing.assert_allclose(jerk[1:], 0.0, atol=1e-6)
