"""Derivatives of the nonlinear program match complex steps, finite differences, and CasADi with SciPy splines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.interpolate import BSpline

from rnea_ros.planning import Cost, Curve, EndState, PlanningProblem
from rnea_ros.planning.bspline import LimitPeak, PlanNodes, knots, lobatto_nodes, prescribed_nodes
from rnea_ros.planning.problem import state_conditions
from rnea_ros.planning.transcription import Transcription, gauss_newton_curvature, lagrangian_curvature, node_curvature
from rnea_ros.trajectory.plan_motion import joint_force_squared, motion_limits, torque, torque_rate
from support.complex_steps import complex_step
from support.planning_cases import RR_GOAL, RR_START, pendulum_and_slide, robot, rr_torque, toy

BREAKS = np.array([0.0, 0.2, 0.5, 0.6, 1.0])


def program(problem: PlanningProblem, degree: int = 3, at: PlanNodes | None = None) -> Transcription:
    return Transcription(problem, BREAKS, degree, at or lobatto_nodes(BREAKS, degree + 2, [LimitPeak(0.33, 0.0, 0, 0)]))


def somewhere(one: Transcription, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.append(rng.uniform(-1.0, 1.0, one.size - 1), 0.8)


def central(function, x, h=1e-6):
    return np.stack([(function(x + h * e) - function(x - h * e)) / (2.0 * h) for e in np.eye(len(x))], axis=-1)


def dense_jacobian(one, x):
    return one.jacobian_pattern.dense(one.jacobian(x))


def lagrangian_slope(one, x, factor, multipliers):
    return factor * one.gradient(x) + dense_jacobian(one, x).T @ multipliers


@pytest.mark.parametrize("degree", [3, 5])
def test_first_derivatives_of_the_toy_problem_match_complex_steps(degree):
    one = program(toy(), degree)
    x = somewhere(one)
    np.testing.assert_allclose(one.gradient(x), complex_step(one.objective, x), rtol=1e-11, atol=1e-11)
    exact = complex_step(one.constraints, x)
    np.testing.assert_allclose(dense_jacobian(one, x), exact, atol=1e-12 * np.abs(exact).max())
    assert len(one.rows.lower) == len(exact) == len(one.rows.upper)


@pytest.mark.parametrize("degree", [3, 4])
def test_second_derivatives_of_the_toy_problem_match_finite_differences(degree):
    one = program(toy(), degree)
    x = somewhere(one)
    multipliers = np.random.default_rng(1).normal(size=len(one.rows.lower))
    differences = central(lambda z: lagrangian_slope(one, z, 0.7, multipliers), x)
    found = one.hessian_pattern.dense(one.hessian(x, 0.7, multipliers))
    np.testing.assert_allclose(found, np.triu(differences), atol=1e-6 * np.abs(differences).max())


def test_program_derivatives_of_a_robot_match_finite_differences():
    arm = robot("rr")
    tau = torque(arm, np.array([10.0, np.nan]), None)
    problem = PlanningProblem(EndState(np.zeros(2), np.zeros(2), np.zeros(2)), EndState.free(2), [
        *motion_limits(arm, replace(arm.limits, jerk=np.full(2, 50.0))), tau, torque_rate(arm, np.full(2, 500.0), None),
        joint_force_squared(arm, {"joint1": 30.0}, None)], Cost(0.9, np.array([0.1, 0.3]), tau))
    one = program(problem)
    x = somewhere(one)
    x[:-1] *= 0.2
    np.testing.assert_allclose(one.gradient(x), central(lambda z: np.array([one.objective(z)]), x)[0], rtol=1e-5, atol=1e-6)
    exact = central(one.constraints, x)
    np.testing.assert_allclose(dense_jacobian(one, x), exact, atol=1e-8 * np.abs(exact).max())
    multipliers = np.random.default_rng(1).normal(size=len(one.rows.lower))
    differences = central(lambda z: lagrangian_slope(one, z, 1.3, multipliers), x)
    found = one.hessian_pattern.dense(one.hessian(x, 1.3, multipliers))
    np.testing.assert_allclose(found, np.triu(differences), atol=1e-5 * np.abs(differences).max())


def test_program_derivatives_match_casadi():
    """CasADi differentiates SciPy splines and the closed-form torques of the thesis's arm."""
    ca = pytest.importorskip("casadi")
    arm, degree = robot("rr"), 3
    tau = torque(arm, np.full(2, 10.0), None)
    rest = [EndState(np.array(q), np.zeros(2), np.full(2, np.nan)) for q in (RR_START, RR_GOAL)]
    one = program(PlanningProblem(*rest, [tau], Cost(0.99, np.full(2, 0.01), tau)), degree, lobatto_nodes(BREAKS, 5))
    x = somewhere(one, 3)
    m, s = one.size // 2, knots(BREAKS, degree)
    symbol = ca.SX.sym("x", one.size)
    points, T = symbol[:-1].reshape((2, m)), symbol[-1]

    def motion(u):
        u = np.clip(u, 0.0, 1.0 - 1e-15)  # scipy's last span is open
        tables = [np.stack([BSpline(s, e, degree).derivative(r)(u) for e in np.eye(m)], axis=1) for r in range(3)]
        return [[(points @ row) / T**r for row in table] for r, table in enumerate(tables)]

    q, qd, qdd = motion(one.nodes.u)
    torques = [rr_torque(*state, ca.cos, ca.sin) for state in zip(q, qd, qdd)]
    cost = T * sum(w * (0.99 + 0.01 * (a**2 + b**2)) for w, (a, b) in zip(one.nodes.weight, torques))
    once = np.flatnonzero(np.append(True, np.diff(one.nodes.u) > 0.0))
    limits = [value / 10.0 for k in once for value in torques[k]]
    rows = ca.vertcat(q[0], qd[0], q[-1], qd[-1], *limits)
    multipliers = np.random.default_rng(1).normal(size=rows.shape[0])
    lagrangian = 0.7 * cost + ca.dot(ca.DM(multipliers), rows)
    exact = ca.Function("f", [symbol], [cost, ca.gradient(cost, symbol), rows, ca.jacobian(rows, symbol),
                                        ca.hessian(lagrangian, symbol)[0]])(x)
    f, g, c, J, H = (np.array(value) for value in exact)
    assert one.objective(x) == pytest.approx(f.item(), rel=1e-9)
    np.testing.assert_allclose(one.gradient(x), g.ravel(), rtol=1e-8, atol=1e-8 * np.abs(g).max())
    np.testing.assert_allclose(one.constraints(x), c.ravel(), atol=1e-9 * np.abs(c).max())
    np.testing.assert_allclose(dense_jacobian(one, x), J, atol=1e-9 * np.abs(J).max())
    np.testing.assert_allclose(one.hessian_pattern.dense(one.hessian(x, 0.7, multipliers)), np.triu(H),
                               atol=1e-6 * np.abs(H).max())


def test_gauss_newton_curvature_equals_the_hessian_where_residuals_vanish():
    rate = pendulum_and_slide()
    cost = Cost(0.0, np.array([1.0, 2.0]), rate)
    problem = PlanningProblem(EndState.free(2), EndState.free(2), [rate], cost, duration=(0.8, 0.8))
    still = np.append(np.zeros(14), 0.8)  # the torque rate is zero there, hence its curvature has no influence
    squares = Transcription(problem, BREAKS, 3, lobatto_nodes(BREAKS, 5), gauss_newton_curvature)
    full = Transcription(problem, BREAKS, 3, lobatto_nodes(BREAKS, 5), lagrangian_curvature)
    nothing = np.zeros(len(full.rows.lower))
    a, b = (one.hessian_pattern.dense(one.hessian(still, 1.0, nothing)) for one in (squares, full))
    np.testing.assert_allclose(a, b, atol=1e-6 * np.abs(b).max())
    x = somewhere(squares)
    H = squares.hessian_pattern.dense(squares.hessian(x, 1.0, nothing))[:-1, :-1]
    assert np.linalg.eigvalsh(H + np.triu(H, 1).T).min() > -1e-9 * np.abs(H).max()


def test_prescribed_instants_use_the_trapezoidal_rule():
    u = np.array([0.0, 0.1, 0.35, 0.5, 1.0])
    at = prescribed_nodes(BREAKS, u)
    assert at.weight @ (2.0 + 3.0 * u) == pytest.approx(3.5) and at.regular == 5
    one = program(toy(), at=at)
    x = somewhere(one)
    exact = complex_step(one.constraints, x)
    np.testing.assert_allclose(dense_jacobian(one, x), exact, atol=1e-12 * np.abs(exact).max())
    speeds = [key for key in one.rows.key.tolist() if key[0] == 1]
    assert speeds == [[1, 0, 0], [1, 1, 0]]  # the window closes at 0.3


def test_multipliers_are_transferred_between_programs():
    before, after = (program(toy(), at=lobatto_nodes(BREAKS, 5, peaks)) for peaks in ([], [LimitPeak(0.33, 0.0, 0, 0)]))
    numbers = np.arange(1.0, len(before.rows.lower) + 1.0)
    carried = before.rows.transfer_multipliers(numbers, after.rows)
    assert len(carried) == len(numbers) + 1 and (carried == 0.0).sum() == 1
    np.testing.assert_array_equal(carried[carried > 0.0], numbers)
    assert after.rows.key[int(carried.argmin())].tolist() == [0, after.nodes.regular, 0]


def test_frozen_coordinates_become_equal_bounds():
    problem = replace(toy(), box=(np.array([-2.0, 0.3]), np.array([2.0, 0.3])), duration=(0.5, 2.0))
    lower, upper = program(problem).bounds
    assert (lower[-1], upper[-1]) == (0.5, 2.0)
    assert lower[:-1].reshape(-1, 2).T.tolist() == [[-2.0] * 7, [0.3] * 7]
    assert upper[:-1].reshape(-1, 2).T.tolist() == [[2.0] * 7, [0.3] * 7]


def test_curves_and_program_variables_convert_both_ways():
    one = program(toy())
    x = somewhere(one)
    curve = one.curve(x)
    assert isinstance(curve, Curve) and np.array_equal(one.variables(curve), x)
    y = one.motion(x)
    np.testing.assert_allclose(curve.motion(one.nodes.span, one.nodes.u), y, atol=1e-10 * np.abs(y).max())
    ends = state_conditions(EndState(y[0, 0], y[0, 1], np.full(2, np.nan)), last=False)
    assert np.abs(ends.residual(y[0], y[-1])).max() < 1e-14 and len(ends.value) == 4


def test_curvature_of_torques_equals_second_differences_of_inverse_dynamics():
    """Christoffel symbols give the dependence on velocities: a spatial arm, weighted torques, central differences of order two
    of the torques alone.
    """
    arm, rng, step = robot("stanford"), np.random.default_rng(5), 1e-3
    tau = torque(arm, np.ones(arm.n), None)
    n, count = arm.n, 3
    y, weights = rng.normal(size=(count, 4, n)), rng.normal(size=(count, n))
    assert tau.lagrangian
    slopes = np.concatenate(tau.slope(*y[:, :3].swapaxes(0, 1)), axis=-1)
    found = node_curvature(tau, weights, y, slopes)

    def value(x):
        return (weights * arm.inverse_dynamics(*x.reshape(count, 3, n).swapaxes(0, 1))).sum(axis=1)

    flat, ways = y[:, :3].reshape(count, -1), step * np.eye(3 * n)
    wanted = [[(value(flat + a + b) - value(flat + a - b) - value(flat - a + b) + value(flat - a - b)) / (4.0 * step**2)
               for b in ways] for a in ways]
    np.testing.assert_allclose(found, np.moveaxis(wanted, -1, 0), rtol=1e-4, atol=1e-5 * np.abs(found).max())
