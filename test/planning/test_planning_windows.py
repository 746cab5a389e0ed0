"""Costs with windows, several cost terms, and repeated instants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rnea_ros.planning import bspline
from rnea_ros.planning.bspline import Curve
from rnea_ros.planning.planner import plan
from rnea_ros.planning.problem import Cost, EndState, PlanningProblem, PlanSettings, motion_quantity
from rnea_ros.planning.transcription import Transcription, gauss_newton_curvature, lagrangian_curvature

FREE = np.full(2, np.inf)
EARLY, LATE = ((motion_quantity(2, ("a", "b"), -FREE, FREE), window) for window in ((0.0, 0.4), (0.4, 1.0)))
EARLY, LATE = (replace(quantity, windows=[window]) for quantity, window in (EARLY, LATE))
INSTANTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.4, 0.6, 0.8, 1.0)


def problem(more):
    start, goal = (EndState(np.full(2, x), np.zeros(2), np.full(2, np.nan)) for x in (0.0, 1.0))
    return PlanningProblem(start, goal, [], Cost(time=0.0, more=more), (2.0, 2.0))


def program(given, nodes, curvature=lagrangian_curvature):
    return Transcription(given, np.linspace(0.0, 1.0, 6), 3, nodes, curvature)


def nodes(kind):
    breaks = np.linspace(0.0, 1.0, 6)
    return bspline.prescribed_nodes(breaks, np.array(INSTANTS)) if kind == "sampled" else bspline.lobatto_nodes(breaks, 5)


@pytest.mark.parametrize("kind", ["sampled", "lobatto"])
def test_costs_of_adjacent_windows_add_up_to_the_whole_cost(kind):
    whole = replace(EARLY, windows=[])
    x = np.random.default_rng(0).normal(size=program(problem([]), nodes(kind)).size)
    x[-1] = 2.0
    weights = np.array([1.0, 3.0])
    costs = [program(problem([(weights, part) for part in parts]), nodes(kind)).objective(x)
             for parts in ([whole], [EARLY, LATE], [EARLY], [LATE])]
    assert np.isclose(costs[0], costs[1]) and np.isclose(costs[2] + costs[3], costs[0]) and min(costs) > 0.0


@pytest.mark.parametrize("kind", ["sampled", "lobatto"])
def test_windowed_cost_derivatives_match_finite_differences(kind):
    given = problem([(np.array([1.0, 3.0]), EARLY), (np.array([0.5, 0.1]), LATE)])
    exact, squares = program(given, nodes(kind)), program(given, nodes(kind), gauss_newton_curvature)
    x = np.random.default_rng(1).normal(size=exact.size)
    x[-1] = 2.0
    slope, none, step = exact.gradient(x), np.zeros(len(exact.rows.lower)), 1e-6
    for k, unit in enumerate(np.eye(len(x)) * step):
        numeric = (exact.objective(x + unit) - exact.objective(x - unit)) / (2.0 * step)
        assert np.isclose(slope[k], numeric, rtol=1e-6, atol=1e-5)
    assert np.allclose(exact.hessian(x, 1.0, none), squares.hessian(x, 1.0, none), rtol=1e-5, atol=1e-3)  # linear


def test_effort_with_a_late_window_is_spent_early():
    settings = PlanSettings(instants=INSTANTS, gauss_newton=True)
    guess = Curve(3, np.linspace(0.0, 1.0, 6), np.linspace(np.zeros(2), np.ones(2), 8), 2.0)
    late = plan(problem([(np.ones(2), LATE), (np.full(2, 1e-4), EARLY)]), settings, guess=guess)
    early = plan(problem([(np.full(2, 1e-4), LATE), (np.ones(2), EARLY)]), settings, guess=guess)
    t = np.linspace(0.0, 2.0, 101)
    first = t <= 0.8
    for one, part in ((late, ~first), (early, first)):
        acceleration = np.abs(one(t)[2]).max(axis=1)
        assert acceleration[part].max() < acceleration[~part].max()


@pytest.mark.parametrize("tolerance", [1.0, 1e-5])
def test_limits_are_kept_between_prescribed_instants(tolerance):
    """The unlimited motion exceeds the limit by 7 % in the middle, where no instant is prescribed."""
    fast = motion_quantity(1, ("a", "b"), np.full(2, -np.inf), np.full(2, 0.7))
    given = replace(problem([(np.ones(2), replace(EARLY, windows=[]))]), quantities=[fast])
    settings = PlanSettings(instants=(0.0, 0.15, 0.3, 0.35, 0.65, 0.7, 0.85, 1.0), tolerance=tolerance)
    guess = Curve(3, np.linspace(0.0, 1.0, 6), np.linspace(np.zeros(2), np.ones(2), 8), 2.0)
    excess = plan(given, settings, guess=guess).excess["velocity"]
    assert excess <= tolerance and (tolerance < 1.0 or excess > 1e-3)  # or the case shows nothing


def test_quantities_with_different_numbers_of_components_keep_their_limits():
    """A peak of the wider quantity has a component index that the narrower quantity does not have."""
    wide = motion_quantity(1, ("a", "b"), np.full(2, -np.inf), np.array([np.inf, 0.9]))
    narrow = replace(motion_quantity(0, ("a", "b"), -FREE, FREE), labels=("a",), value=lambda q: q[:, :1],
                     slope=lambda q: [np.broadcast_to(np.eye(2)[:1], (len(q), 1, 2))], lower=np.array([-1.0]),
                     upper=np.array([2.0]))
    given = replace(problem([(np.ones(2), replace(EARLY, windows=[]))]), quantities=[narrow, wide])
    assert max(plan(given, PlanSettings(spans=3, refinements=0)).excess.values()) < 1e-6


def test_damping_is_added_to_the_diagonal_of_the_curvature():
    given, where = problem([(np.ones(2), EARLY)]), nodes("lobatto")
    plain, damped = (Transcription(given, np.linspace(0.0, 1.0, 6), 3, where, gauss_newton_curvature, damping)
                     for damping in (0.0, 0.7))
    x, none = np.linspace(0.0, 1.0, plain.size) + 0.5, np.zeros(len(plain.rows.lower))
    tables = [one.hessian_pattern.dense(one.hessian(x, 1.0, none)) for one in (plain, damped)]
    assert np.allclose(tables[1] - tables[0], 0.7 * np.eye(plain.size))
