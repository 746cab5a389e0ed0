"""Largest constant speed factor against brute force, the closed form of a pendulum, and robots."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from rnea_ros import InputError, JointDynamics, Robot
from rnea_ros.trajectory.sample_torques import JointSpeedSplit
from rnea_ros.trajectory.speed_factor import (
    _INTERVAL_BERNSTEIN,
    LIMITS,
    N_INTERVALS,
    SpeedScaling,
    _candidates,
    first_binding,
    smallest_factor,
    speed_factor,
)
from support.robots import random_tree, seeds


def largest_factor(a):
    """Return the largest factor (...) of polynomials (..., 4), each alone."""
    return np.apply_along_axis(lambda one: first_binding([one.tolist()])[0], -1, a)


def value(a, L):
    return a[..., 0] + L * (a[..., 1] + L * (a[..., 2] + L * a[..., 3]))


def test_random_cubics_reach_their_limit_first_at_the_factor():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(4000, 4)) * 10.0 ** rng.uniform(-2.0, 1.0, (4000, 4))
    a[:, 0] = rng.uniform(-0.99, 0.99, len(a))
    L = largest_factor(a)
    bound = np.isfinite(L)
    assert bound.sum() > 3000
    inside = np.abs([value(a, share * np.where(bound, L, 1e3)) for share in np.linspace(0.0, 1.0, 500)]).max(axis=0)
    assert inside.max() < 1.0 + 1e-9
    assert np.abs(np.abs(value(a, L))[bound] - 1.0).max() < 1e-9


def test_factor_is_the_first_crossing_of_a_non_monotone_cubic():
    a = np.array([0.0, 3.0, -4.0, 1.5])  # above 1 between 0.62 and 1.12, inside again until 2.0
    L = float(largest_factor(a))
    x = np.linspace(0.0, 3.0, 300_001)
    outside = np.abs(value(a, x)) > 1.0
    assert outside.any() and pytest.approx(x[np.argmax(outside)], abs=1e-4) == L
    touching = np.array([0.0, 4.0, -4.0, 0.0])  # just touches 1 at L = 1/2
    assert float(largest_factor(touching)) == pytest.approx(0.5, abs=1e-6)
    assert float(largest_factor(np.array([0.0, 4.0, -4.001, 0.0]))) > 1.0
    assert float(largest_factor(np.zeros(4))) == np.inf
    assert float(largest_factor(np.array([-1.0, 0.0, 0.5, 0.0]))) == 0.0


@pytest.mark.parametrize("decades", [0.0, 3.0, 8.0])
def test_factor_matches_the_roots_of_the_companion_matrix(decades):
    """Coefficients have many magnitudes, some are zero: turning points near 0, far away, or absent."""
    rng = np.random.default_rng(1)
    a = rng.normal(size=(500, 4)) * 10.0 ** rng.uniform(-decades, decades, (500, 4))
    a[:, 0] = rng.uniform(-0.99, 0.99, len(a))
    a[rng.uniform(size=a.shape) < 0.2] = 0.0
    for one, L in zip(a, largest_factor(a)):
        inverse = np.concatenate([np.roots([one[0] - limit, *one[1:]]) for limit in (1.0, -1.0)])  # 1 / L
        real = [1.0 / float(x.real) for x in inverse if x.real > 0.0 and abs(x.imag) < 1e-7 * abs(x)]
        assert pytest.approx(min(real, default=np.inf), rel=1e-7) == L


def test_factor_is_accurate_for_steep_cubics_with_a_turning_point_near_zero():
    assert first_binding([(-0.75, 0.0, -1e-6, 2.8e5)])[0] == pytest.approx((1.75 / 2.8e5) ** (1.0 / 3.0), rel=1e-9)
    assert first_binding([(0.0, 0.0, 0.0, 1e-60)])[0] == pytest.approx(1e20, rel=1e-12)
    assert first_binding([(0.0, 1e40, 0.0, 0.0)])[0] == pytest.approx(1e-40, rel=1e-12)


def test_smallest_factor_of_several_joints_binds():
    slow, fast, unknown, still = (0.5, 0.0, 0.0, -12.0), (0.0, 4.0, 0.0, 0.0), (np.nan, 0.0, np.nan, 9.0), (0.9, 0.0, 0.0, 0.0)
    assert first_binding([still, slow, unknown, fast]) == (pytest.approx(0.25), 3)
    assert first_binding([still, slow, unknown]) == (pytest.approx(0.5), 1)
    assert first_binding([slow], 0.4) == (0.4, -1) and first_binding([slow], 0.6) == (pytest.approx(0.5), 0)
    assert first_binding([slow, (-1.0, 1.0, 0.0, 0.0), (2.0, 0.0, 0.0, 0.0)]) == (0.0, 1)
    assert first_binding([still, unknown]) == (np.inf, -1) == first_binding([])
    assert first_binding([(0.0, 4.0, -4.0, 0.0)], 0.5)[0] == 0.5  # touches just there


@pytest.mark.parametrize("most", [0.3, 1.0, 1e4])
def test_candidates_contain_every_joint_that_may_bind(most):
    rng = np.random.default_rng(2)
    for _ in range(50):
        a = rng.normal(size=(60, 4)) * rng.uniform(0.02, 0.6)
        some = _candidates(a, most)
        assert first_binding(some.tolist(), most)[0] == pytest.approx(min(most, *largest_factor(a)), rel=1e-12)
    assert len(_candidates(np.array([[0.5, 0.2, 0.2, 0.0], [0.5, 0.2, 0.4, 0.0], [0.0, 0.0, 0.0, -3.0]]), 1.0)) == 2
    assert not len(_candidates(np.array([[0.9, -0.9, 0.9, 0.0]]), 1.0))  # the magnitudes sum to more than 1, the values do not
    assert not len(_candidates(np.array([[-0.9, 1.8, 0.0, 0.0], [-0.9, 0.0, 0.0, 1.8]]), 1.0))


@pytest.mark.parametrize("power", range(4))
def test_bounds_of_single_powers_are_exact(power):
    """Bounds of a L^k at the end of the last interval are its values: it binds just above the limit, and not just below."""
    for value, count in ((1.001, 1), (-1.001, 1), (0.999, 0)):
        alone = np.zeros((1, 4))
        alone[0, power] = value / 2.5**power
        assert len(_candidates(alone, 2.5)) == count


def test_bernstein_coefficients_of_intervals_reproduce_polynomials():
    a, x = np.random.default_rng(5).normal(size=4), np.linspace(0.0, 1.0, 7)
    basis = [comb(3, i) * x**i * (1.0 - x) ** (3 - i) for i in range(4)]
    for k, coefficients in enumerate((a @ _INTERVAL_BERNSTEIN).reshape(-1, 4)):
        np.testing.assert_allclose(coefficients @ basis, np.polyval(a[::-1], (k + x) / N_INTERVALS), atol=1e-14)


def test_factor_is_found_behind_many_polynomials_with_larger_bounds():
    """One parabola stays below the limit, but its bound does not; the other one exceeds the limit near its peak only."""
    below = np.array([0.999 - 4.0 * 0.375**2, 8.0 * 0.375, -4.0, 0.0])
    peak = np.array([0.0, 4.04, -4.04, 0.0])
    found = smallest_factor(np.vstack(([below] * 100, peak)), 1.0)
    assert found == pytest.approx(0.5 - np.sqrt(0.25 - 1.0 / 4.04), rel=1e-12)


def test_speed_factor_of_a_pendulum_matches_the_closed_form():
    """tau = J qdd + m g l sin q at L times the speed: L^2 = (T - m g l sin q) / (J qdd)."""
    J, mgl, q, qd, qdd, qddd = 2.0, 9.0, 0.4, 1.5, 3.0, -7.0
    tau, gravity = J * qdd + mgl * np.sin(q), mgl * np.sin(q)
    rate, gravity_rate = J * qddd + mgl * np.cos(q) * qd, mgl * np.cos(q) * qd
    found = speed_factor([tau], [rate], [gravity], [gravity_rate], [6.0], [np.nan])
    assert found.factor == pytest.approx(np.sqrt((6.0 - gravity) / (J * qdd)))
    assert (found.joint, LIMITS[found.limit]) == (0, "effort")
    found = speed_factor([tau], [rate], [gravity], [gravity_rate], [np.nan], [40.0])
    roots = np.roots([J * qddd, 0.0, gravity_rate, 40.0])  # falls to -40
    assert found.factor == pytest.approx(min(r.real for r in roots if abs(r.imag) < 1e-9 and r.real > 0.0))
    assert LIMITS[found.limit] == "effort_rate"
    friction = 0.8
    found = speed_factor([tau + friction * qd], [rate + friction * qdd], [gravity], [gravity_rate], [6.0], [np.nan],
                         [friction * qd], [friction * qdd])
    L = float(found.factor)
    assert J * qdd * L**2 + friction * qd * L + gravity == pytest.approx(6.0)


@pytest.mark.parametrize("seed", seeds(3))
def test_robot_reaches_its_limit_at_the_speed_factor(seed):
    """The binding joint is at its limit at L times the speed, and all slower motions are inside."""
    rng = np.random.default_rng(seed)
    robot = Robot.from_urdf(random_tree(seed).text(), backend="python")
    moving = [link.joint for link in robot.model.links if link.joint]
    terms = {name: JointDynamics(viscous=rng.uniform(0.0, 2.0), offset=rng.uniform(-0.5, 0.5)) for name in moving}
    robot = Robot.from_model(robot.model.with_joint_dynamics(terms), "python")
    q, qd, qdd, qddd = rng.uniform(-1.0, 1.0, (4, robot.n)) * 3.0 ** np.arange(4)[:, None]
    result, shares = robot.dynamics(q, qd, qdd, qddd), JointSpeedSplit(robot.model)(qd, qdd)
    effort = np.abs(result.gravity + shares.still) + rng.uniform(1.0, 30.0, robot.n)
    effort_rate = rng.uniform(10.0, 500.0, robot.n)
    effort[rng.uniform(size=robot.n) < 0.2] = np.nan
    found = speed_factor(result.tau, result.tau_rate, result.gravity + shares.still, result.gravity_rate + shares.still_rate,
                         effort, effort_rate, shares.viscous, shares.viscous_rate)
    L = float(found.factor)
    assert 0.0 < L < np.inf

    def used(factor):
        tau, rate = robot.torque_and_rate(q, factor * qd, factor**2 * qdd, factor**3 * qddd)
        return np.stack((np.abs(tau) / effort, np.abs(rate) / effort_rate))

    assert used(L)[found.limit - 1, found.joint] == pytest.approx(1.0, abs=1e-9)
    assert max(np.nanmax(used(share * L)) for share in np.linspace(0.0, 1.0, 60)) < 1.0 + 1e-9


def test_unknown_limits_do_not_bind_and_empty_input_gives_empty_results():
    effort, rate = np.array([10.0, np.nan]), np.array([np.nan, 5.0])
    tau, tau_rate = np.array([[20.0, 1e6], [1.0, 1.0], [30.0, 0.0]]), np.array([[1e6, 0.1], [1e6, 40.0], [0.0, 0.0]])
    gravity = np.array([[0.0, 0.0], [0.0, 0.0], [12.0, 0.0]])
    found = speed_factor(tau, tau_rate, gravity, np.zeros((3, 2)), effort, rate)
    np.testing.assert_allclose(found.factor, [np.sqrt(0.5), 0.5, 0.0])
    assert found.joint.tolist() == [0, 1, 0]
    assert [LIMITS[k] for k in found.limit] == ["effort", "effort_rate", "gravity"]
    words = [type(found)(*(column[k] for column in found)).describe(("base", "tip")) for k in range(3)]
    assert words[0] == "effort of base binds at factor 0.7071"
    assert "tip" in words[1] and "gravity alone exceeds the effort limit of base" in words[2]
    nothing = speed_factor(tau[0], tau_rate[0], gravity[0], gravity[0], [np.nan] * 2, [np.nan] * 2)
    assert nothing.factor == np.inf and nothing.joint == -1 and "no known limit" in nothing.describe(("a", "b"))
    for count, n in ((0, 2), (3, 0)):
        empty = speed_factor(*np.zeros((4, count, n)), np.ones(n), np.ones(n))
        assert [np.shape(column) for column in empty] == [(count,)] * 3 and np.isinf(empty.factor).all()


def test_invalid_limits_of_the_speed_factor_are_rejected():
    for effort in ([1.0], [0.0, 1.0], [-1.0, 1.0]):
        with pytest.raises(InputError, match="numbers above zero"):
            speed_factor([1.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0], effort, [np.nan, np.nan])


def test_non_finite_torques_are_rejected():
    for k in range(6):
        given = np.zeros((6, 1))
        given[k] = np.inf if k % 2 else np.nan
        with pytest.raises(InputError, match="finite"):
            speed_factor(*given[:4], [1.0], [1.0], *given[4:])


def test_speed_scaling_signal_is_rate_limited():
    signal = SpeedScaling()  # falls by 4 a second, rises by 0.5
    assert signal.tick(0.01, np.inf) == 1.0
    assert signal.tick(0.01, 0.0) == pytest.approx(0.96)
    assert signal.tick(0.01, 0.95) == 0.95
    assert signal.tick(0.1, 1.0) == 1.0
    signal.tick(0.1, 0.6)
    assert signal.tick(0.1, 1.0) == pytest.approx(0.65)
    for _ in range(100):
        signal.tick(0.01, float("nan"))  # not known: stop
    assert signal.value == 0.0
    assert SpeedScaling(most=2.0, start=1.9).tick(1.0, 5.0) == 2.0
    assert SpeedScaling(most=0.5).value == 0.5 and SpeedScaling(start=-1.0).value == 0.0
    for bad in ({"fall": 0.0}, {"rise": np.nan}, {"most": -1.0}, {"fall": np.inf}):
        with pytest.raises(InputError, match="above zero"):
            SpeedScaling(**bad)
