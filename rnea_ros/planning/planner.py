"""Planner: the best motion between two states that B-splines can represent within the limits.

A coarse plan is found from an initial guess; then knots are refined where it asks for them, and nodes are added where it
exceeds limits between them, until it does not. Every solution is the start of the next. Optima are local: `best_of` computes
several coarse plans, and the best few are refined, since coarse plans differ from fine ones by more than from one another.

The solver is the interior-point method of this package where start and goal or the duration are known; otherwise, and where
that fails, IPOPT, which needs CasADi.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from importlib.util import find_spec
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, MissingPackage, RneaError, some
from . import interior_point, ipopt
from .bspline import (
    SAMPLES_PER_SPAN,
    Curve,
    LimitPeak,
    PlannedMotion,
    evenly_spread,
    find_peaks,
    greville_abscissae,
    lobatto_nodes,
    prescribed_nodes,
    split_spans,
)
from .condensed import CondensedProgram, ReducedProgram, is_condensable, is_reducible
from .interior_point import InteriorPointStart, Watch, reduce_violation
from .ipopt import NlpSolution
from .problem import (
    MAX_DURATION,
    MIN_DURATION,
    MOTION,
    ORDERS,
    SAME_INSTANT,
    Cost,
    EndState,
    PlanningProblem,
    PlanSettings,
    Quantity,
    Report,
    SmoothingSettings,
    SolverProgress,
)
from .transcription import Transcription, gauss_newton_curvature, lagrangian_curvature


@dataclass(frozen=True)
class PlannerOptions:
    """Tuning of initial guesses, tolerances and refinements."""

    n_tried_durations: int = 60  # durations tried for each initial guess
    first_detour: float = 0.3  # size of the first detour, over the distance plus one
    end_limit_tol: float = 1e-9  # relative excess over limits allowed at start and goal
    loose_tol: float = 1e-6  # tolerance of the interior-point method on coarse grids
    tight_tol: float = 1e-7  # and on the last one
    ipopt_tol: float = 1e-6  # tolerance of IPOPT; a smaller one doubles the work for the fifth digit
    max_first_iterations: int = 100  # iterations of the interior-point method before IPOPT is tried, and of that
    max_tightenings: int = 10  # rounds of added nodes
    max_refined_drafts: int = 3  # coarse plans that are refined
    max_excess: float = 0.02  # relative excess over a limit above which a plan is rejected
    coarse_refinements: int = 4  # refinements that IPOPT also tries; later ones with a penalty gain little and cost it seconds
    # smallest gain of a refinement with a penalty, as a share of the additional time of smoothing
    min_penalized_gain: float = 0.1
    duration_reserve: float = 0.3  # reserve for a faster motion on other knots, as a share of the additional time of smoothing
    max_penalty_tolerance: float = 0.02  # largest tolerance that the penalty is a share of: more of it leaves knots too coarse
    smoothing_penalty: float = 0.1  # penalty on the smoothing cost during refinement, as a share of that time
    equal_objective_tol: float = 1e-5  # relative difference of objectives below which coarse plans are equal
    break_digits: int = 9  # decimal digits of breaks at the edges of windows


OPTIONS = PlannerOptions()


class InitialPath(NamedTuple):
    """Piecewise linear path: poses (k, n) from start to goal, and shares (k,) of the duration at which they are passed."""

    shares: np.ndarray
    poses: np.ndarray


def initial_guesses(problem: PlanningProblem, breaks: np.ndarray, degree: int,
                    way: InitialPath | None = None) -> Iterator[Curve]:
    """Yield initial guesses without end: first direct or along `way`, then with growing detours; always the same."""
    u = np.clip((greville_abscissae(breaks, degree) - breaks[1]) / (breaks[-2] - breaks[1]), 0.0, 1.0)[:, None]
    start, goal = _end_positions(problem)
    distance = goal - start
    line = start + u**3 * (10.0 - 15.0 * u + 6.0 * u**2) * distance
    if way is not None:
        line = np.stack([np.interp(u[:, 0], way.shares, coordinate) for coordinate in way.poses.T], axis=1)
    random, size = np.random.default_rng(0), 0.0
    while True:
        waves = random.normal(size=(2, problem.n)) * size * (1.0 + np.abs(distance))
        bumps = (u * (1.0 - u)) ** 3 * 64.0
        yield with_best_duration(problem, Curve(degree, breaks, line + bumps * (waves[0] + waves[1] * (2.0 * u - 1.0)), 1.0))
        size += OPTIONS.first_detour


def _end_positions(problem):
    """Return the positions of start and goal; a free one is that of the other, or zero, within the box."""
    start = np.where(np.isnan(problem.start.q), np.nan_to_num(problem.goal.q), problem.start.q)
    goal = np.where(np.isnan(problem.goal.q), start, problem.goal.q)
    return (start, goal) if problem.box is None else (np.clip(start, *problem.box), np.clip(goal, *problem.box))


def with_best_duration(problem: PlanningProblem, curve: Curve) -> Curve:
    """Return the curve with the duration of least cost that keeps the limits; if none does, the one with the least excess."""
    at = lobatto_nodes(curve.breaks, curve.degree + 2)
    y = curve.motion(at.span, at.u)
    durations = np.unique(np.geomspace(*problem.duration, OPTIONS.n_tried_durations))
    cost, excess = [], []
    for T in durations:
        now = y / (T ** np.arange(ORDERS))[:, None]
        cost.append(T * at.weight @ problem.cost.rate(now, at.inner))
        excess.append(max((found.max() for found in problem.excess(now, at.u)), default=0.0))
    inside = np.array(excess) <= 0.0
    best = np.where(inside, cost, np.inf) if inside.any() else np.array(excess)
    return Curve(curve.degree, curve.breaks, curve.points, float(durations[best.argmin()]))


class PlanningError(RneaError):
    """No motion was found; the message contains the reason."""


def check_problem(problem: PlanningProblem) -> None:
    """Raise InputError for an inconsistent problem, PlanningError if limits cannot be kept at start or goal."""
    shortest, longest = problem.duration
    if not 0.0 < shortest <= longest < np.inf:
        raise InputError(f"duration is {shortest:g} to {longest:g}; 0 < shortest <= longest < inf is needed [s]")
    for quantity in problem.quantities:
        for label, low, high in zip(quantity.labels, quantity.lower, quantity.upper, strict=True):
            if low > high:
                raise InputError(f"{quantity.name} limits of {label} are {low:g} to {high:g}; the lower one must not be above")
    _check_cost(problem)
    _check_end_state("start", problem.start, 0.0, problem.limited)
    _check_end_state("goal", problem.goal, 1.0, problem.limited)
    _check_duration(problem)


def _check_cost(problem: PlanningProblem) -> None:
    cost, free = problem.cost, problem.duration[0] < problem.duration[1]
    weights = np.concatenate((cost.effort, [cost.time], *(weights for weights, _ in cost.more)))
    if not (np.isfinite(weights).all() and (weights >= 0.0).all() and weights.any()):
        raise InputError(f"weights are {cost.time:g} for time and {cost.effort.tolist()} for effort; all must be finite, none "
                         "negative, one above zero")
    if free and not cost.time:
        raise InputError("time has no weight: a motion would take its effort down by taking forever; weight time, or give the "
                         "duration")
    if free and not cost.effort.any() and not any(quantity.order for quantity in problem.limited):
        raise InputError("nothing limits how fast the motion can be: no limit of velocity, acceleration, jerk, torque or "
                         "torque rate is known; give one, or weight effort, or give the duration")


def _check_end_state(name: str, state: EndState, u: float, limited: list[Quantity]) -> None:
    """Raise PlanningError for a start or goal that exceeds a limit by itself: at rest, under gravity alone."""
    y = np.stack((state.q, state.qd, state.qdd, np.full(len(state.q), np.nan)))[None]
    if state.is_at_rest:
        y = np.nan_to_num(y)
    known = int(np.isfinite(y[0]).all(axis=1).argmin()) or ORDERS * state.is_at_rest
    for quantity in limited:
        if quantity.order >= known and not quantity.linear:
            continue
        excess = quantity.excess(y, np.array([u]))[0]
        k = int(excess.argmax())
        if excess[k] <= OPTIONS.end_limit_tol:
            continue
        how = "held still" if state.is_at_rest and quantity.order > 1 else "there"
        low, high = quantity.lower[k], quantity.upper[k]
        raise PlanningError(f"{name}: {quantity.name} of {quantity.labels[k]} is {quantity.values(y)[0, k]:.5g} {how}, "
                            f"outside its limits {low:.5g} to {high:.5g}; no motion can change that")


def _check_duration(problem: PlanningProblem) -> None:
    """Raise PlanningError for a duration shorter than limits of velocity alone allow."""
    way, longest = problem.goal.q - problem.start.q, problem.duration[1]
    for quantity in problem.limited:
        if not (quantity.linear and quantity.order == 1 and not quantity.windows and np.isfinite(way).all()):
            continue
        by_q, by_qd, *_ = quantity.slopes(np.zeros((1, ORDERS, problem.n)))[0].swapaxes(0, 1)
        gone = by_qd @ way
        limit = np.where(gone > 0.0, quantity.upper, quantity.lower)
        known = np.isfinite(limit) & (limit != 0.0) & ~by_q.any(axis=1)
        least = np.divide(gone, limit, out=np.zeros_like(gone), where=known)
        k = int(least.argmax())
        if least[k] > longest * (1.0 + OPTIONS.end_limit_tol):
            raise PlanningError(f"duration is {longest:g} s at most; {quantity.labels[k]} alone takes {least[k]:.4g} s from "
                                f"start to goal at its largest {quantity.name}, {limit[k]:g}; no motion is shorter")


def unknown_limits(problem: PlanningProblem) -> list[str]:
    """Return a sentence on limits that are not enforced because they are unknown."""
    found = []
    for quantity in problem.quantities:
        unknown = [label for label, low, high in zip(quantity.labels, quantity.lower, quantity.upper, strict=True)
                   if np.isnan(low) and np.isnan(high)]
        if unknown:
            found.append(quantity.name if len(unknown) == len(quantity.labels) else f"{quantity.name} of {some(unknown)}")
    return [f"no limits known, hence not enforced: {'; '.join(found)}"] if found else []


def worst_violation(problem: PlanningProblem, curve: Curve) -> tuple[float, str]:
    """Return relative size and description of the largest violation of a curve that is not a solution."""
    at = evenly_spread(curve.breaks, SAMPLES_PER_SPAN)
    y = curve.motion(at.span, at.u)
    found = [(0.0, "")]
    for quantity, excess in zip(problem.limited, problem.excess(y, at.u)):
        sample, k = (int(index) for index in np.unravel_index(excess.argmax(), excess.shape))
        share, moment = excess[sample, k], at.u[sample] * curve.duration
        found.append((float(share), f"has {quantity.name} of {quantity.labels[k]} {100.0 * share:.2g} % beyond its limit "
                      f"after {moment:.3g} s of {curve.duration:.3g} s"))
    for name, state, end in (("start", problem.start, y[0]), ("goal", problem.goal, y[-1])):
        for what, value, reached in zip(MOTION, (state.q, state.qd, state.qdd), end):
            miss = float(np.abs(np.nan_to_num(value - reached)).max())
            found.append((miss, f"misses the {what} of the {name} by {miss:.2g} after {curve.duration:.3g} s"))
    if problem.coupling is not None:
        miss = float(np.abs(problem.coupling.residual(y[0], y[-1])).max(initial=0.0))
        found.append((miss, f"misses what ties its ends by {miss:.2g}"))
    return max(found)


def static_violation(problem: PlanningProblem, curve: Curve) -> str:
    """Return text on postures of a curve that cannot be held at rest: a motion can pass them only with momentum."""
    at = evenly_spread(curve.breaks, SAMPLES_PER_SPAN)
    y = curve.motion(at.span, at.u)
    y[:, 1:] = 0.0
    found = [(0.0, "")]
    for quantity, excess in zip(problem.limited, problem.excess(y, at.u)):
        sample, k = (int(index) for index in np.unravel_index(excess.argmax(), excess.shape))
        if quantity.order > 1:
            value, low, high = quantity.values(y[sample:sample + 1])[0, k], quantity.lower[k], quantity.upper[k]
            found.append((float(excess[sample, k]), f"; on its way {quantity.name} of {quantity.labels[k]} is "
                          f"{value:.4g} where it is held still, outside its limits {low:.4g} to {high:.4g}"))
    return max(found)[1]


class WarmStart(NamedTuple):
    """Distance of a starting point from the solution: start and tolerance of the interior-point method, options of IPOPT.

    known : whether multipliers are known too
    """

    start: InteriorPointStart
    tolerance: float
    options: Mapping[str, Any]
    known: bool = False


COLD = WarmStart(InteriorPointStart(1e-2, 1e-2), OPTIONS.loose_tol, {})  # from a guess,
WARM = WarmStart(InteriorPointStart(1e-5, 1e-2), OPTIONS.loose_tol, {"mu_init": 1e-5})  # from a curve that is nearly right,
HOT = WarmStart(InteriorPointStart(1e-8, 1e-6), OPTIONS.tight_tol, {  # and from its multipliers as well
    "mu_init": 1e-7, "constr_viol_tol": 1e-8, "warm_start_init_point": "yes",
    **{f"warm_start_{what}": 1e-9 for what in ("bound_push", "bound_frac", "slack_bound_push", "slack_bound_frac",
                                               "mult_bound_push")}}, known=True)
# from the solution for another cost
SMOOTHING = WarmStart(InteriorPointStart(1e-3, 1e-2), OPTIONS.loose_tol, {"mu_init": 1e-3})
# Starts of a ReducedProgram, which has far fewer variables: from a nearly feasible point, and with known multipliers
REDUCED_STARTS = InteriorPointStart(1e-5, 0.3), InteriorPointStart(1e-5, 1e-3)


class Attempt(Enum):
    """Solver of an attempt.

    FIRST  : interior-point method, or IPOPT if that does not apply
    SECOND : IPOPT, after the interior-point method failed
    BOTH   : one after the other
    """

    FIRST = 1
    SECOND = 2
    BOTH = 3


def select_solver(program: Transcription, settings: PlanSettings) -> type[CondensedProgram] | None:
    """Return the condensed program class for the interior-point method; None if the method does not apply."""
    if settings.solver:
        return None
    return CondensedProgram if is_condensable(program) else ReducedProgram if is_reducible(program) else None


def solve_program(program: Transcription, x: np.ndarray, near: WarmStart, settings: PlanSettings, watch: Watch,
           multipliers: np.ndarray | None = None, turn: Attempt = Attempt.BOTH) -> NlpSolution:
    """Return a local minimum near x; watch: as in minimize_with_ipopt.

    Where this package's method applies it is the first attempt, and IPOPT the second one if CasADi is installed; elsewhere
    IPOPT is the only one. Raises MissingPackage without CasADi there.
    """
    before = 0
    if turn is not Attempt.SECOND:
        kind = select_solver(program, settings)
        if kind is None:
            return _by_ipopt(program, x, near, settings, settings.iterations, watch, multipliers)
        found = _by_interior_point(kind(program), x, near, settings, watch, multipliers)
        before = found.iterations + 1
        if found.converged or turn is Attempt.FIRST or not ipopt.is_installed():
            return found
    solution = _by_ipopt(program, x, near, settings, min(OPTIONS.max_first_iterations, settings.iterations),
                         lambda k, *now: watch(k + before, *now), multipliers)
    return solution._replace(iterations=solution.iterations + before)


def _by_interior_point(small: CondensedProgram, x: np.ndarray, near: WarmStart, settings: PlanSettings, watch: Watch,
             multipliers: np.ndarray | None) -> NlpSolution:
    start, before, most = near.start, 0, min(OPTIONS.max_first_iterations, settings.iterations)
    if isinstance(small, ReducedProgram):
        start, most = REDUCED_STARTS[near.known], settings.iterations
        if near is COLD:
            x, before = reduce_violation(small, x, most, watch)
    if multipliers is not None:
        start = start._replace(multipliers=np.append(multipliers[small.kept], 0.0))
    found = interior_point.minimize(small, x, start, settings.optimality or near.tolerance, most,
                                    lambda k, *now: watch(k + before, *now))
    whole = np.zeros(len(small.program.rows.lower))
    whole[small.kept] = found.multipliers[:-1]
    return NlpSolution(found.x, whole, found.status == interior_point.SOLVED, found.status, found.iterations + before)


def _by_ipopt(program: Transcription, x: np.ndarray, near: WarmStart, settings: PlanSettings, most: int, watch: Watch,
              multipliers: np.ndarray | None) -> NlpSolution:
    options = {"tol": settings.optimality or OPTIONS.ipopt_tol, "max_iter": most, **near.options, **settings.solver}
    return ipopt.minimize_with_ipopt(program, x, options, watch, multipliers)


REASONS = {
    interior_point.NO_STEP: "no motion near the starting guess keeps all limits",
    interior_point.TOO_MANY: "the solver used up its iterations",
    "Infeasible_Problem_Detected": "no motion near the starting guess keeps all limits",
    "Maximum_Iterations_Exceeded": "the solver used up its iterations",
}
REMEDY = "Wider limits, a longer duration or more guesses (best_of)"
WITHOUT_IPOPT = "CasADi with IPOPT for second attempts (pip install '.[planning]' in a clone of rnea_ros)"


def plan(problem: PlanningProblem, settings: PlanSettings = PlanSettings(), report: Report = lambda progress: None,
         guess: Curve | InitialPath | None = None, remedy: str = REMEDY,
         smoothing: SmoothingSettings | None = None) -> PlannedMotion:
    """Return the motion of least cost, or with smoothing the smoothest of those that take little longer.

    The search starts from a curve or near a path if one is given. remedy: advice in the message if no motion is found.

    Raises InputError for an inconsistent problem, PlanningError if no motion was found, with the reason, MissingPackage
    without SciPy, or without CasADi if the problem needs it.
    """
    check_problem(problem)
    if find_spec("scipy") is None:
        raise MissingPackage("planning needs SciPy", "planning")
    notes = unknown_limits(problem)
    if problem.is_trivial:
        still = Curve(settings.degree, np.array([0.0, 1.0]), np.tile(problem.start.q, (settings.degree + 1, 1)), 0.0)
        return PlannedMotion(still, 0.0, {}, 0, (*notes, "start and goal are the same state of rest: nothing moves"))
    starts = (iter([guess]) if isinstance(guess, Curve) else
              initial_guesses(problem, _breaks(problem, settings), settings.degree, guess))
    if not ipopt.is_installed():
        remedy = f"{remedy}, or {WITHOUT_IPOPT},"
    return PlanSearch(problem, settings, report, remedy).plan(starts, notes, smoothing)


def _breaks(problem: PlanningProblem, settings: PlanSettings) -> np.ndarray:
    """Return even breaks, and those at the edges of windows: limits are enforced at nodes, and there are nodes at breaks."""
    even = np.linspace(0.0, 1.0, settings.spans + 1)
    if settings.instants is not None:
        return even
    edges = np.array([edge for quantity in problem.limited for window in quantity.windows for edge in window])
    far = np.abs(edges[:, None] - even).min(axis=1) > SAME_INSTANT
    return np.unique(np.append(even, np.round(edges[far], OPTIONS.break_digits)))


@dataclass
class _PlanDraft:
    """Plan in progress; notes: steps that failed; refinements: of its knots so far."""

    program: Transcription
    curve: Curve
    multipliers: np.ndarray
    objective: float
    notes: list[str] = field(default_factory=list)
    refinements: int = 0

    def keep(self, program: Transcription, solution: NlpSolution) -> None:
        self.program, self.curve, self.multipliers = program, program.curve(solution.x), solution.multipliers
        self.objective = program.objective(solution.x)


class _DraftFailure(NamedTuple):
    """Failed attempt.

    worst, text : its largest violation
    hasty       : whether the duration is the reason
    again       : whether it was a second attempt from the same guess
    """

    worst: float
    text: str
    reason: str
    hasty: bool = False
    again: bool = False


class SmoothnessPenalty(NamedTuple):
    """Smoothness cost `smooth` that is added to a cost with a small share of the cost's tolerance."""

    tolerance: float
    cost: Cost
    smooth: Cost


class PlanSearch:
    """Planner of one problem. iterations: of all its solver calls; penalty: smoothness that is part of the cost, if any."""

    penalty: SmoothnessPenalty | None = None

    def __init__(self, problem: PlanningProblem, settings: PlanSettings, report: Report, remedy: str):
        self.problem, self.settings, self.report, self.remedy = problem, settings, report, remedy
        self.iterations = 0

    def plan(self, guesses: Iterator[Curve], notes: list[str], smoothing: SmoothingSettings | None) -> PlannedMotion:
        drafts = _distinct_drafts(self.coarse_drafts(guesses))[:OPTIONS.max_refined_drafts]
        best, excess = self.finish(drafts) if smoothing is None else self._smoothest(drafts, smoothing)
        beyond = [f"{name} by {100.0 * value:.2g} %" for name, value in excess.items() if value > self.settings.tolerance]
        worst = max(excess.values(), default=0.0)
        if worst > max(self.settings.tolerance, OPTIONS.max_excess) and select_solver(best.program, self.settings):
            raise PlanningError(f"no motion found: the nearest one is beyond limits between its nodes, {some(beyond)}"
                                f"{static_violation(self.problem, best.curve)}. {self.remedy} may help")
        if beyond:
            best.notes.append(f"beyond a limit somewhere between the nodes: {some(beyond)}")
        return PlannedMotion(best.curve, float(best.objective), excess, self.iterations, (*notes, *best.notes))

    # ------------------------------------------------------------------ steps

    def coarse_drafts(self, guesses: Iterator[Curve]) -> list[_PlanDraft]:
        """Return coarse plans of as many guesses as requested, or until the first that succeeds.

        IPOPT is tried from the first guess only, if the interior-point method fails from all.
        """
        drafts: list[_PlanDraft] = []
        failures: list[_DraftFailure] = []
        attempts = range(1, max(self.settings.tries, self.settings.best_of) + 1)
        first = next(guesses)
        for number, guess in zip(attempts, chain([first], guesses)):
            self._draft(f"guess {number}", guess, drafts, failures)
            if len(drafts) == self.settings.best_of:
                break
        hasty = all(failure.hasty for failure in failures)
        if not drafts and not hasty and ipopt.is_installed() and select_solver(self.program_for(first), self.settings):
            self._draft("guess 1 by IPOPT", first, drafts, failures, Attempt.SECOND)
        if not drafts:
            raise PlanningError(self._failure_message(failures, static_violation(self.problem, first)))
        return drafts

    def _draft(self, stage: str, guess: Curve, drafts: list[_PlanDraft], failures: list[_DraftFailure],
               turn: Attempt = Attempt.FIRST) -> None:
        """Add a draft, or a failure."""
        program = self.program_for(guess)
        if fastest := self._fastest_if_too_slow(stage, guess):
            longest = self.problem.duration[1]
            failures.append(_DraftFailure(*worst_violation(self.problem, replace(fastest, duration=longest)),
                                     f"the fastest takes {fastest.duration:.4g} s, {longest:g} s are allowed", True))
            return
        solution = self.solve(stage, program, guess, COLD, turn=turn)
        curve = program.curve(solution.x)
        if solution.converged:
            drafts.append(_PlanDraft(program, curve, solution.multipliers, program.objective(solution.x)))
        else:
            failures.append(_DraftFailure(*worst_violation(self.problem, curve), _reason(solution),
                                          again=turn is Attempt.SECOND))

    def _fastest_if_too_slow(self, stage: str, guess: Curve) -> Curve | None:
        """Return the fastest motion near the guess if even that takes longer than allowed."""
        if self.problem.duration[1] >= MAX_DURATION or not any(quantity.order for quantity in self.problem.limited):
            return None
        free = replace(self.problem, cost=Cost(), duration=(MIN_DURATION, MAX_DURATION))
        freed = self.program_for(guess, problem=free)
        if not select_solver(freed, self.settings):
            return None
        solution = self.solve(f"{stage}, its shortest duration", freed, with_best_duration(free, guess), COLD,
                                turn=Attempt.FIRST)
        found = freed.curve(solution.x)
        longest = self.problem.duration[1] * (1.0 + OPTIONS.equal_objective_tol)
        return found if solution.converged and found.duration > longest else None

    def _refine(self, draft: _PlanDraft) -> None:
        for number in range(1, self.settings.refinements + 1):
            if self.penalty is not None:
                self.balance_penalty(draft)
            before, finer = draft.objective, split_spans(draft.curve)
            if len(finer) == len(draft.curve.breaks):
                break
            curve = draft.curve.refined(finer)
            late = number > OPTIONS.coarse_refinements and self.penalty is not None
            if not self.solve_again(draft, f"refinement {number}", self.program_for(curve), curve, WARM,
                                  Attempt.FIRST if late else Attempt.BOTH):
                break
            draft.refinements += 1
            gain = self.settings.gain
            if self.penalty is not None:
                gain = max(gain, OPTIONS.min_penalized_gain * self.penalty.tolerance)
            if before - draft.objective < gain * abs(before):
                break

    def tighten_limits(self, draft: _PlanDraft) -> None:
        """Add nodes at peaks of limited quantities between the nodes, and solve again, until no peak exceeds the tolerance."""
        peaks: list[LimitPeak] = []
        tolerance = self.settings.tolerance
        for number in range(1, OPTIONS.max_tightenings + 1):
            at = evenly_spread(draft.curve.breaks, SAMPLES_PER_SPAN)
            excess = self._excess(draft.curve, SAMPLES_PER_SPAN)
            new = [peak for k, values in enumerate(excess) for peak in find_peaks(at, k, values, 0.25 * tolerance)]
            if number > 1 and all(peak.height <= 0.75 * tolerance for peak in new):
                break
            peaks += new
            program = self.program_for(draft.curve, peaks)
            if not self.solve_again(draft, f"limits between nodes {number}", program, draft.curve, HOT):
                break

    def finish(self, drafts: list[_PlanDraft]) -> tuple[_PlanDraft, dict[str, float]]:
        """Refine drafts, keep limits between their nodes, and return the best one and its excess over each limit."""
        for draft in drafts:
            if self.settings.instants is None:
                self._refine(draft)
            self.tighten_limits(draft)
        return self._best(drafts)

    def _smoothest(self, drafts: list[_PlanDraft], smoothing: SmoothingSettings) -> tuple[_PlanDraft, dict[str, float]]:
        """Return the smoothest motion near coarse drafts within the tolerance of their cost, and its excess over each limit.

        Joints without active limits are undetermined in the fastest motion, and nearly so where torques have little weight:
        Newton's equations are nearly singular, knots gather where these joints oscillate, and the solver stalls. Drafts are
        therefore refined with a small penalty on the smoothness cost: it determines all joints, for a small share of the
        tolerance. Then, where time alone counts, the duration is fixed and smoothness is minimized. Where that fails, the
        refined draft is the plan.
        """
        found = [penalized for draft in drafts if (penalized := self._penalized(draft, smoothing))]
        best, excess = self._best(found) if found else self.finish(drafts)
        if not self.problem.cost.has_squares:
            best, excess = self._smoothed_at_last(best, excess, smoothing, bool(found))
        elif not found:
            best.notes.append("the plan was not smoothed; joints without binding limits may oscillate")
        best.objective = self.cost_integral(self.problem.cost, best.curve)
        return best, excess

    def _smoothed_at_last(self, best: _PlanDraft, excess: dict[str, float], smoothing: SmoothingSettings,
                          penalized: bool) -> tuple[_PlanDraft, dict[str, float]]:
        """Return the smoothest motion near the best one, or that one with a note; and its excess over each limit."""
        shortest, starts = best.curve.duration, [best]
        if penalized and self.problem.duration[0] < self.problem.duration[1]:
            fastest = self._fastest_near(best)
            shortest = fastest.duration * (1.0 - OPTIONS.duration_reserve * smoothing.tolerance) if fastest else best.objective
            if fastest and len(fastest.breaks) > len(best.curve.breaks):
                starts.insert(0, replace(best, curve=best.curve.refined(fastest.breaks)))
        for start in starts:
            smooth, reason = self._smoothed(start, smoothing, shortest)
            if smooth:
                _, least = self._best([smooth])
                if max(least.values(), default=0.0) <= max(self.settings.tolerance, *excess.values()):
                    return smooth, least
                reason = "the smoothed motion exceeds limits between the nodes"
        best.notes.append(f"smoothing stopped early, a smoother plan may exist: {reason}" if penalized else
                          f"the plan was not smoothed; it is the fastest motion found: {reason}")
        return best, excess

    def _penalized(self, draft: _PlanDraft, smoothing: SmoothingSettings) -> _PlanDraft | None:
        """Return a coarse draft refined with a penalty. Its objective is a careful estimate of the least one without it."""
        cost = self.problem.cost
        planner = self._with(cost if cost.time or cost.has_squares else replace(cost, time=1.0))
        tolerance = min(smoothing.tolerance, OPTIONS.max_penalty_tolerance)
        planner.penalty = SmoothnessPenalty(tolerance, planner.problem.cost, smoothing.cost)
        coarse, _ = self._smoothed(draft, smoothing, draft.curve.duration, between=False)
        planner.balance_penalty(coarse or draft)
        found = replace(draft, notes=list(draft.notes))
        solved = planner.solve_again(found, "penalty", planner.program_for(draft.curve), draft.curve, SMOOTHING)
        if solved:
            planner.finish([found])
            penalty = planner.penalty
            value = self.cost_integral(penalty.cost, found.curve)
            estimate = value - self.cost_integral(penalty.smooth, found.curve)
            found.objective = estimate / (penalty.cost.time or 1.0) * (1.0 - OPTIONS.duration_reserve * smoothing.tolerance)
        self.iterations += planner.iterations
        return found if solved else None

    def _fastest_near(self, draft: _PlanDraft) -> Curve | None:
        """Return the fastest motion near a draft with a penalty, on finer knots or the same ones; None if it is not found.

        Near a draft that determines all joints the solver reaches the shortest duration, which it seldom does from a guess.
        Knots are refined where the draft asks for it: where the fastest motion oscillates it asks for more to no purpose.
        """
        free, found = self._with(replace(self.problem.cost, time=1.0)), None
        starts, finer = [draft.curve], split_spans(draft.curve)
        if draft.refinements < self.settings.refinements and len(finer) > len(draft.curve.breaks):
            starts.insert(0, draft.curve.refined(finer))
        for start in starts:
            program = free.program_for(start)
            solution = free.solve("shortest duration", program, start, WARM, turn=Attempt.FIRST)
            curve = program.curve(solution.x)
            if solution.converged and curve.duration <= draft.curve.duration * (1.0 + OPTIONS.equal_objective_tol):
                found = curve
                break
        self.iterations += free.iterations
        return found

    def balance_penalty(self, draft: _PlanDraft) -> None:
        """Lower the penalty to its share of the cost, if it is larger in a draft."""
        assert self.penalty is not None
        tolerance, cost, smooth = self.penalty
        paid = self.cost_integral(smooth, draft.curve)
        allowed = OPTIONS.smoothing_penalty * tolerance * self.cost_integral(cost, draft.curve)
        if paid > allowed:
            smooth = replace(smooth, effort=allowed / paid * smooth.effort)
            self.penalty = SmoothnessPenalty(tolerance, cost, smooth)
        assert smooth.of is not None
        self.problem = replace(self.problem, cost=replace(cost, more=(*cost.more, (smooth.effort, smooth.of))))
        draft.objective = self.cost_integral(self.problem.cost, draft.curve)

    def _smoothed(self, draft: _PlanDraft, smoothing: SmoothingSettings, shortest: float,
                  between: bool = True) -> tuple[_PlanDraft | None, str]:
        """Return the smoothest motion near a draft, of a duration within the tolerance; or None, and why there is none."""
        longest = max(draft.curve.duration, self.problem.duration[1])
        T = min(longest, shortest * (1.0 + smoothing.tolerance))
        curve = replace(draft.curve, duration=T)
        value = self.cost_integral(smoothing.cost, curve) or 1.0  # scaled to 1: the solver's tolerances are absolute
        smoother = self._with(replace(smoothing.cost, effort=smoothing.cost.effort / value), (T, T))
        program = smoother.program_for(curve)
        solution = smoother.solve("smoothing", program, curve, SMOOTHING, turn=Attempt.FIRST)
        found = _PlanDraft(program, program.curve(solution.x), solution.multipliers, 0.0, list(draft.notes))
        if solution.converged and between:
            smoother.tighten_limits(found)
        self.iterations += smoother.iterations
        return (found, "") if solution.converged else (None, _reason(solution))

    def _with(self, cost: Cost, duration: tuple[float, float] | None = None) -> PlanSearch:
        """Return a planner of the same problem under another cost."""
        problem = replace(self.problem, cost=cost, duration=duration or self.problem.duration)
        return PlanSearch(problem, self.settings, self.report, self.remedy)

    def cost_integral(self, cost: Cost, curve: Curve) -> float:
        """Return a cost along a curve."""
        program = self.program_for(curve, problem=replace(self.problem, cost=cost))
        return float(program.objective(program.variables(curve)))

    def _best(self, drafts: list[_PlanDraft]) -> tuple[_PlanDraft, dict[str, float]]:
        """Return the cheapest of the drafts that keep their limits, or else of all; and its excess over each limit."""
        found = []
        for draft in drafts:
            excess: dict[str, float] = {}
            for quantity, values in zip(self.problem.limited, self._excess(draft.curve, 3 * SAMPLES_PER_SPAN)):
                excess[quantity.name] = max(float(values.max()), excess.get(quantity.name, -np.inf))
            found.append((max(excess.values(), default=0.0) > self.settings.tolerance, draft.objective, draft, excess))
        *_, best, excess = min(found, key=lambda one: one[:2])
        return best, excess

    # ------------------------------------------------------------------ tools

    def program_for(self, guess: Curve, peaks: Sequence[LimitPeak] = (),
                    problem: PlanningProblem | None = None) -> Transcription:
        """Return the program on the breaks of a curve, with peaks as additional nodes."""
        instants, degree = self.settings.instants, guess.degree
        nodes = (lobatto_nodes(guess.breaks, degree + 2, peaks) if instants is None else
                 prescribed_nodes(guess.breaks, np.array(instants), peaks))
        return Transcription(problem or self.problem, guess.breaks, degree, nodes,
                             gauss_newton_curvature if self.settings.gauss_newton else lagrangian_curvature,
                             self.settings.damping)

    def solve_again(self, draft: _PlanDraft, stage: str, program: Transcription, guess: Curve, near: WarmStart,
                  turn: Attempt = Attempt.BOTH) -> bool:
        """Solve again from a curve that is nearly optimal; a failure is noted."""
        multipliers = draft.program.rows.transfer_multipliers(draft.multipliers, program.rows) if near.known else None
        solution = self.solve(stage, program, guess, near, multipliers, turn)
        if solution.converged:
            draft.keep(program, solution)
        else:
            draft.notes.append(f"{stage} was skipped: {_reason(solution)}")
        return solution.converged

    def solve(self, stage: str, program: Transcription, guess: Curve, near: WarmStart,
                multipliers: np.ndarray | None = None, turn: Attempt = Attempt.BOTH) -> NlpSolution:
        def watch(iteration: int, x: np.ndarray, violation: float) -> None:
            self.report(SolverProgress(stage, iteration, float(x[-1]), len(guess.points), violation))

        solution = solve_program(program, program.variables(guess), near, self.settings, watch, multipliers, turn)
        self.iterations += solution.iterations
        return solution

    def _excess(self, curve: Curve, per_span: int) -> list[np.ndarray]:
        at = evenly_spread(curve.breaks, per_span)
        return self.problem.excess(curve.motion(at.span, at.u), at.u)

    def _failure_message(self, failures: Sequence[_DraftFailure], standstill: str) -> str:
        """Return why no motion was found, by the attempt with the smallest violation."""
        worst, text, reason, *_ = min(failures, key=lambda failure: failure.worst)
        nearest = f"; the nearest one {text}" if worst > self.settings.tolerance else ""
        guesses = sum(not failure.again for failure in failures)
        return f"no motion found, starting from {guesses} guesses: {reason}{nearest}{standstill}. {self.remedy} may help"


def _distinct_drafts(drafts: list[_PlanDraft]) -> list[_PlanDraft]:
    """Return drafts by increasing cost, without duplicates."""
    found: list[_PlanDraft] = []
    for draft in sorted(drafts, key=lambda draft: draft.objective):
        if not found or draft.objective - found[-1].objective > OPTIONS.equal_objective_tol * abs(draft.objective):
            found.append(draft)
    return found


def _reason(solution: NlpSolution) -> str:
    return REASONS.get(solution.status, solution.status.replace("_", " ").lower())
