"""B-splines against SciPy and de Boor's recursion in exact fractions: basis, derivatives, knot refinement."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.interpolate import BSpline

from rnea_ros.planning.bspline import Curve, basis, greville_abscissae, knots, span_of
from rnea_ros.planning.problem import ORDERS

BREAKS = np.array([0.0, 0.1, 0.25, 0.6, 0.61, 1.0])


def curve(degree: int, n: int = 2, duration: float = 1.7) -> Curve:
    points = np.random.default_rng(degree).normal(size=(len(BREAKS) - 1 + degree, n))
    return Curve(degree, BREAKS, points, duration)


@pytest.mark.parametrize("degree", [3, 4, 5, 7])
def test_basis_functions_and_derivatives_equal_scipy(degree):
    s = knots(BREAKS, degree)
    u = np.concatenate((np.random.default_rng(0).uniform(0.0, 1.0, 50), [0.0, 1.0]))
    span = span_of(BREAKS, u)
    ours = basis(BREAKS, degree, span, u)
    for k in range(len(s) - degree - 1):
        one = BSpline(s, np.eye(len(s) - degree - 1)[k], degree)
        for order in range(ORDERS):
            theirs = one.derivative(order)(u) if order else one(u)
            local = k - span
            seen = (local >= 0) & (local <= degree)
            found = np.where(seen, ours[np.arange(len(u)), order, np.clip(local, 0, degree)], 0.0)
            np.testing.assert_allclose(found, theirs, atol=1e-10 * max(1.0, np.abs(theirs).max()))


def exact(s, i, degree, interval, u, order=0):
    """Return the derivative of basis function i at u in a knot interval; C. de Boor, A Practical Guide to Splines."""
    if degree == 0:
        return Fraction(int(i == interval and order == 0))
    left, right = s[i + degree] - s[i], s[i + degree + 1] - s[i + 1]
    if order:
        one = degree * exact(s, i, degree - 1, interval, u, order - 1) / left if left else Fraction(0)
        return one - (degree * exact(s, i + 1, degree - 1, interval, u, order - 1) / right if right else Fraction(0))
    one = (u - s[i]) / left * exact(s, i, degree - 1, interval, u) if left else Fraction(0)
    return one + ((s[i + degree + 1] - u) / right * exact(s, i + 1, degree - 1, interval, u) if right else Fraction(0))


@pytest.mark.parametrize("degree", [3, 4, 5])
def test_basis_at_both_ends_of_each_span_matches_exact_fractions(degree):
    """The expected values have no rounding errors."""
    s = [Fraction(float(knot)) for knot in knots(BREAKS, degree)]
    for span in range(len(BREAKS) - 1):
        u = np.array([BREAKS[span], 0.3 * BREAKS[span] + 0.7 * BREAKS[span + 1], BREAKS[span + 1]])
        for at, found in zip(u, basis(BREAKS, degree, np.full(3, span), u)):
            for order in range(ORDERS):
                expected = [float(exact(s, i, degree, span + degree, Fraction(float(at)), order))
                            for i in range(span, span + degree + 1)]
                np.testing.assert_allclose(found[order], expected, rtol=0.0, atol=1e-14 * np.abs(expected).max())


def test_span_selects_the_one_sided_derivative_at_a_break():
    one, at = curve(3, n=1), BREAKS[[2, 2]]
    before, after = one.motion(np.array([1, 2]), at)
    np.testing.assert_allclose(before[:3], after[:3], rtol=1e-12)  # C2
    limits = [BSpline(knots(BREAKS, 3), one.points, 3).derivative(3)(BREAKS[2] + d) / one.duration**3 for d in (-1e-9, 1e-9)]
    np.testing.assert_allclose([before[3], after[3]], limits, rtol=1e-9)
    assert abs(before[3] - after[3]) > 1.0


def test_curve_derivatives_are_time_derivatives():
    one, t, h = curve(5), 0.7, 1e-4
    at = np.array([t - h, t, t + h]) / one.duration
    y = one.motion(span_of(BREAKS, at), at)
    for order in range(3):
        np.testing.assert_allclose((y[2, order] - y[0, order]) / (2.0 * h), y[1, order + 1], rtol=1e-5)


@pytest.mark.parametrize("degree", [3, 5])
def test_refined_curve_is_unchanged(degree):
    one = curve(degree)
    finer = np.sort(np.concatenate((BREAKS, [0.05, 0.3, 0.4, 0.605])))
    other = one.refined(finer)
    u = np.linspace(0.0, 1.0, 301)
    y, z = one.motion(span_of(BREAKS, u), u), other.motion(span_of(finer, u), u)
    np.testing.assert_allclose(z, y, atol=1e-8 * np.abs(y).max())
    assert len(other.points) == len(one.points) + 4


def test_highest_derivative_per_span_and_greville_abscissae_are_exact():
    one = curve(3)
    middle = (BREAKS[1:] + BREAKS[:-1]) / 2.0
    jerk = one.motion(np.arange(len(middle)), middle)[:, 3] * one.duration**3
    np.testing.assert_allclose(one.highest(), jerk, rtol=1e-9)
    line = Curve(4, BREAKS, greville_abscissae(BREAKS, 4)[:, None] * [2.0, -3.0], 1.0)
    u = np.linspace(0.0, 1.0, 50)
    np.testing.assert_allclose(line.motion(span_of(BREAKS, u), u)[:, 0], u[:, None] * [2.0, -3.0], atol=1e-13)
