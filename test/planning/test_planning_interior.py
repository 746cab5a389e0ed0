"""Interior point method: derivatives match finite differences, linear solves match dense ones, plans match IPOPT."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rnea_ros import plan_motion
from rnea_ros.planning import Cost, EndState, PlanningProblem, PlanSettings
from rnea_ros.planning import interior_point as interior
from rnea_ros.planning.bspline import LimitPeak, lobatto_nodes
from rnea_ros.planning.condensed import (
    BandAssembler,
    BorderedSystem,
    CondensedProgram,
    ReducedProgram,
    is_condensable,
    is_reducible,
)
from rnea_ros.planning.interior_point import reduce_violation
from rnea_ros.planning.ipopt import minimize_with_ipopt
from rnea_ros.planning.planner import initial_guesses
from rnea_ros.planning.problem import coupled_ends, join_conditions
from rnea_ros.planning.transcription import Transcription, gauss_newton_curvature, lagrangian_curvature
from rnea_ros.trajectory.plan_motion import motion_limits, torque, torque_rate
from support.planning_cases import RR_GOAL, RR_OPTIMUM, RR_START, robot

BREAKS = np.array([0.0, 0.2, 0.5, 0.6, 1.0])
FREE = np.full(2, np.nan)
REST = EndState(np.array(RR_GOAL), np.zeros(2), FREE)
STARTS = {"rest": EndState(np.array(RR_START), np.zeros(2), np.zeros(2)),
          "moving": EndState(np.array(RR_START), np.array([0.3, -0.2]), np.array([1.0, np.nan])),
          "free speed": EndState(np.array(RR_START), np.array([0.0, np.nan]), FREE)}


def problem(start: EndState, cost: bool = True) -> PlanningProblem:
    arm = robot("rr")
    tau = torque(arm, np.array([10.0, 9.0]), None)
    limited = [*motion_limits(arm, replace(arm.limits, jerk=np.full(2, 50.0))), tau, torque_rate(arm, np.full(2, 500.0), None)]
    return PlanningProblem(start, REST, limited, Cost(0.9, np.array([0.1, 0.3]), tau) if cost else Cost())


def program(given: PlanningProblem, degree: int = 3) -> Transcription:
    peaks = [LimitPeak(0.33, 0.0, 4, 0), LimitPeak(0.9, 0.0, 4, 1)]
    return Transcription(given, BREAKS, degree, lobatto_nodes(BREAKS, degree + 2, peaks))


def dense(matrix: BorderedSystem, free: np.ndarray) -> np.ndarray:
    count = matrix.bands.shape[1]
    whole = np.zeros((count + 1, count + 1))
    for below, band in enumerate(matrix.bands):
        for column in range(count - below):
            whole[column + below, column] = whole[column, column + below] = band[column]
    whole[-1, :-1] = whole[:-1, -1] = matrix.border
    whole[-1, -1] = matrix.corner
    kept = np.append(free, True)
    return whole[np.ix_(kept, kept)]


@pytest.mark.parametrize("degree", [3, 4])
@pytest.mark.parametrize("start", STARTS)
def test_condensed_program_derivatives_match_finite_differences(start, degree):
    whole = program(problem(STARTS[start]), degree)
    small, rng = CondensedProgram(whole), np.random.default_rng(0)
    kept = np.flatnonzero(np.append(small.free, True))
    at = small.evaluate_at(np.append(rng.normal(size=whole.size - 1) * 0.3, 0.8))
    ends = len(whole.problem.ends.value)
    np.testing.assert_allclose(whole.constraints(at.x)[:ends], whole.problem.ends.value, atol=1e-12)
    np.testing.assert_allclose(small.values(at)[:-1], whole.constraints(at.x)[small.kept], atol=1e-12)
    assert small.objective(at) == pytest.approx(whole.objective(at.x), rel=1e-12)
    multipliers, sigma = rng.normal(size=len(small.lower)), rng.uniform(size=len(small.lower))

    def numeric(function, step=1e-6):
        units = np.eye(len(at.x))[kept] * step
        return np.stack([(function(at.x + unit) - function(at.x - unit)) / (2.0 * step) for unit in units], axis=-1)

    def lagrangian(x):
        here = small.evaluate_at(x)
        return small.objective(here) + multipliers @ small.values(here)

    def gradient(x):
        small.linearize(small.evaluate_at(x))
        return small.gradient(multipliers)[kept]

    exact = numeric(lagrangian)
    small.linearize(at)
    np.testing.assert_allclose(small.gradient(multipliers)[kept], exact, atol=1e-7 * np.abs(exact).max())
    slopes = numeric(lambda x: small.values(small.evaluate_at(x)))
    for column, unit in zip(slopes.T, np.eye(len(at.x))[kept]):
        np.testing.assert_allclose(small.changes(unit), column, atol=1e-7 * np.abs(slopes).max())
    curved = numeric(gradient) + slopes.T @ (sigma[:, None] * slopes)
    small.linearize(at)
    found = dense(small.newton(small.curvature(multipliers, 0.0), multipliers, sigma), small.free)
    np.testing.assert_allclose(found, curved, atol=1e-5 * np.abs(curved).max())


def mirrored() -> PlanningProblem:
    """Return a problem whose end mirrors its free start; the goal velocity of joint 2 is given."""
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    tie = join_conditions(*(coupled_ends(order, swap, np.array([0.4, 0.1]) * (order == 0)) for order in (0, 1)))
    goal = EndState(FREE, np.array([np.nan, 0.3]), FREE)
    return replace(problem(EndState.free(2)), start=EndState.free(2), goal=goal, duration=(0.7, 0.7), coupling=tie)


@pytest.mark.parametrize("curvature", [lagrangian_curvature, gauss_newton_curvature])
def test_reduced_program_satisfies_coupled_ends_and_matches_dense_solves(curvature):
    whole = Transcription(mirrored(), BREAKS, 3, lobatto_nodes(BREAKS, 5), curvature, 0.2)
    small, rng = ReducedProgram(whole), np.random.default_rng(2)
    at = small.evaluate_at(np.append(rng.normal(size=whole.size - 1) * 0.3, 0.7))
    ends = len(whole.problem.ends.value)
    np.testing.assert_allclose(whole.constraints(at.x)[:ends], whole.problem.ends.value, atol=1e-12)
    np.testing.assert_allclose(small.evaluate_at(at.x).x, at.x, atol=1e-12)
    assert small.Z.shape == (whole.size - 1, whole.size - 1 - ends)
    multipliers, sigma = np.zeros((2, len(small.lower)))
    multipliers[:-1], sigma[:-1] = rng.normal(size=len(small.kept)), rng.uniform(size=len(small.kept))
    rows = np.zeros(len(whole.rows.lower))
    rows[small.kept] = multipliers[:-1]
    J = whole.jacobian_pattern.dense(whole.jacobian(at.x))[:, :-1]
    small.linearize(at)
    exact = small.Z.T @ (whole.gradient(at.x)[:-1] + J.T @ rows)
    np.testing.assert_allclose(small.Z.T @ small.gradient(multipliers)[:-1], exact, rtol=1e-9, atol=1e-9)
    H = whole.hessian_pattern.dense(whole.hessian(at.x, 1.0, rows))[:-1, :-1]
    H = H + np.triu(H, 1).T - 0.2 * np.eye(len(H)) + J[small.kept].T @ (sigma[:-1, None] * J[small.kept])
    matrix = small.newton(small.curvature(multipliers, 0.0), multipliers, sigma)
    exact = small.Z.T @ H @ small.Z + 0.2 * np.eye(small.Z.shape[1])
    np.testing.assert_allclose(matrix.matrix, exact, atol=1e-5 * np.abs(exact).max())
    assert matrix.factorise(1e6)
    right = np.append(small.Z @ rng.normal(size=len(exact)), 0.0)
    step = matrix.solve(right)
    np.testing.assert_allclose(small.Z.T @ right[:-1], (exact + 1e6 * np.eye(len(exact))) @ small.Z.T @ step[:-1], rtol=1e-3)


def test_interior_point_with_coupled_ends_matches_ipopt():
    given = mirrored()
    breaks = np.linspace(0.0, 1.0, 9)
    whole = Transcription(given, breaks, 3, lobatto_nodes(breaks, 5))
    small, far = ReducedProgram(whole), np.random.default_rng(3).normal(size=whole.size) * 2.0
    before, (x, count) = small.values(small.evaluate_at(far)), reduce_violation(small, far, 40, lambda *now: None)
    after, seen = small.values(small.evaluate_at(x)), []
    beyond, left = (np.maximum(c - small.upper, small.lower - c).max() for c in (before, after))
    assert left < 1e-2 * beyond and 0 < count <= 40
    ours = interior.minimize(small, x, interior.InteriorPointStart(1e-5, 0.3), 1e-7, 100, lambda *now: seen.append(now[0]))
    theirs = minimize_with_ipopt(whole, x, {"tol": 1e-8, "max_iter": 300}, lambda *now: None)
    assert ours.status == interior.SOLVED and theirs.converged and seen == list(range(ours.iterations + 1))
    assert whole.objective(ours.x) == pytest.approx(whole.objective(theirs.x), rel=1e-4)
    free = Transcription(replace(given, duration=(0.5, 0.9)), breaks, 3, lobatto_nodes(breaks, 5))
    assert is_reducible(whole) and not is_reducible(free)


@pytest.mark.parametrize("span", [np.repeat([0, 1, 3, 4], 3), np.append(np.repeat(range(5), 2), [3, 0, 3])],
                         ids=["one span without nodes", "more in some"])
def test_bordered_system_matches_a_dense_solution(span):
    rng, spans, width, n = np.random.default_rng(1), 5, 4, 2
    free = rng.uniform(size=(spans - 1 + width) * n) < 0.8
    B, half, scale = rng.normal(size=(len(span), 3, width)), rng.normal(size=(len(span), 6, 6)), np.array([1.0, 2.0, 0.3])
    bands = BandAssembler(span, spans, B, n, free)
    G = half @ half.transpose(0, 2, 1)
    exact = np.zeros((len(free), len(free)))
    for k, first in enumerate(span):
        local = np.kron(scale[:, None] * B[k], np.eye(n))
        exact[first * n:(first + width) * n, first * n:(first + width) * n] += local.T @ G[k] @ local
    border, right = rng.normal(size=len(free)) * free, rng.normal(size=len(free) + 1) * np.append(free, True)
    matrix = BorderedSystem(bands.matrix(G, scale), border, 1e4, free)
    kept = np.append(free, True)
    np.testing.assert_allclose(dense(matrix, free)[:-1, :-1], exact[np.ix_(free, free)], atol=1e-12)
    assert matrix.factorise(0.1)
    np.testing.assert_allclose((dense(matrix, free) + 0.1 * np.eye(kept.sum())) @ matrix.solve(right)[kept], right[kept],
                               atol=1e-9)
    assert not matrix.solve(right)[~kept].any() and not matrix.factorise(-1e5)


@pytest.mark.parametrize("start", STARTS)
def test_interior_point_matches_ipopt(start):
    breaks = np.linspace(0.0, 1.0, 9)
    given = problem(STARTS[start], cost=False)
    whole = Transcription(given, breaks, 3, lobatto_nodes(breaks, 5))
    x = whole.variables(next(initial_guesses(given, breaks, 3)))
    seen = []
    start = interior.InteriorPointStart(1e-2, 1e-2)
    ours = interior.minimize(CondensedProgram(whole), x, start, 1e-7, 100, lambda *now: seen.append(now[0]))
    theirs = minimize_with_ipopt(whole, x, {"tol": 1e-7, "max_iter": 300}, lambda *now: None)
    assert ours.status == interior.SOLVED and theirs.converged and seen == list(range(ours.iterations + 1))
    assert ours.x[-1] == pytest.approx(theirs.x[-1], rel=1e-4)
    values = whole.constraints(ours.x)
    assert (values <= whole.rows.upper + 1e-6).all() and (values >= whole.rows.lower - 1e-6).all()


def test_interior_point_reports_its_status(monkeypatch):
    """Cases: the iteration limit is reached; no diagonal shift makes the matrix definite, and x is unchanged."""
    whole = program(problem(STARTS["rest"], cost=False))
    x, start = whole.variables(next(initial_guesses(whole.problem, BREAKS, 3))), interior.InteriorPointStart(1e-2, 1e-2)
    few = interior.minimize(CondensedProgram(whole), x, start, 1e-7, 1, lambda *now: None)
    assert (few.status, few.iterations) == (interior.TOO_MANY, 1) and not np.allclose(few.x[-1], x[-1])
    shifts: list[float] = []
    monkeypatch.setattr(BorderedSystem, "factorise", lambda matrix, shift: bool(shifts.append(shift)))
    stuck = interior.minimize(CondensedProgram(whole), x, start, 1e-7, 5, lambda *now: None)
    assert (stuck.status, stuck.iterations) == (interior.NO_STEP, 0)
    assert np.array_equal(stuck.x, CondensedProgram(whole).evaluate_at(x).x)
    assert shifts[0] == 0.0 and shifts == sorted(set(shifts)) and shifts[-1] <= interior.OPTIONS.max_shift


def test_ipopt_is_tried_where_the_interior_point_method_fails(monkeypatch):
    """IPOPT starts from the first guess; the interior point method is not repeated."""
    tries, seen = [], {}

    def stuck(program, x, start, tolerance, most, watch):
        tries.append(len(x))
        return interior.InteriorPointResult(x, np.zeros(len(program.lower)), interior.NO_STEP, 0)

    monkeypatch.setattr(interior, "minimize", stuck)
    found = plan_motion(robot("rr"), RR_START, RR_GOAL, settings=PlanSettings(refinements=0, tries=3),
                        report=lambda now: seen.setdefault(now.stage, len(tries)))
    assert next(iter(seen)) == "guess 1 by IPOPT" and seen["guess 1 by IPOPT"] == 3
    assert found.duration == pytest.approx(RR_OPTIMUM, rel=0.05) and max(found.excess.values()) < 1e-4


def test_programs_with_free_or_coupled_ends_cannot_be_condensed():
    given = problem(STARTS["rest"])
    assert is_condensable(program(given))
    end_state = EndState(np.array([0.0, np.nan]), np.zeros(2), FREE)
    tie = coupled_ends(1, np.eye(2), np.zeros(2))
    narrow = replace(given.quantities[1], lower=np.zeros(2), upper=np.zeros(2))
    for other in (replace(given, start=end_state), replace(given, coupling=tie), replace(given, box=(-np.ones(2), np.ones(2))),
                  replace(given, quantities=[*given.quantities, narrow])):
        assert not is_condensable(program(other))


def test_motion_between_position_limits_is_as_fast_as_with_wider_limits():
    """The feasible set has no interior at a start or goal on the limit."""
    arm = robot("panda")
    known, refined = arm.limits, PlanSettings(refinements=3)
    at, beside = (plan_motion(arm, known.lower, known.upper, settings=refined,
                              limits=replace(known, lower=known.lower - inset, upper=known.upper + inset))
                  for inset in (0.0, 1e-6))
    assert at.duration == pytest.approx(beside.duration, rel=1e-4)
    assert not [note for note in at.notes if "was skipped" in note or "not smoothed" in note]
