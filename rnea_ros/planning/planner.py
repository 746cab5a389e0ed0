"""Motions to start a solver from: straight to the goal, then with more and more of a detour; as fast as limits allow.

What can be said of a problem that is not solved: nonsense and the impossible are refused, what is unknown is told.

Which solver finds a plan: ours where start and goal or the duration are known, IPOPT else, and where that fails.

A motion between two states: the best that B-splines can do inside the limits.

First a coarse plan from a simple guess; then finer knots where it asks for them; then nodes where it leaves its limits between
them, until it does not. Every solution is the start of the next. Optima are local: `best_of` asks for more than the first, and
the best few of them are all made finer, for coarse plans differ from fine ones by more than from one another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, RneaError, some
from . import interior_point, ipopt
from .bspline import (
    SAMPLES_PER_SPAN,
    Curve,
    LimitPeak,
    PlannedMotion,
    averages,
    evenly_spread,
    find_peaks,
    lobatto_nodes,
    prescribed_nodes,
    split_spans,
)
from .condensed import CondensedProgram, ReducedProgram, is_condensable, is_reducible
from .interior_point import InteriorPointStart, Watch, reduce_violation
from .ipopt import NlpSolution, casadi
from .problem import (
    LONGEST,
    MOTION,
    ORDERS,
    SAME,
    SHORTEST,
    Cost,
    EndState,
    Problem,
    Quantity,
    Report,
    Settings,
    Smoothing,
    SolverProgress,
)
from .transcription import Transcription, gauss_newton_curvature, lagrangian_curvature

N_TRIED_DURATIONS = 60  # tried on each guess
FIRST_DETOUR = 0.3  # of the first detour, times the distance to go plus one


class InitialPath(NamedTuple):
    """Straight from pose to pose: poses (k, n) from start to goal, and shares (k,) of the duration when they are passed."""

    shares: np.ndarray
    poses: np.ndarray


def initial_guesses(problem: Problem, breaks: np.ndarray, degree: int, way: InitialPath | None = None) -> Iterator[Curve]:
    """Endless; the same for the same problem. way: to begin with instead of the straight one."""
    u = np.clip((averages(breaks, degree) - breaks[1]) / (breaks[-2] - breaks[1]), 0.0, 1.0)[:, None]
    start, goal = _end_positions(problem)
    distance = goal - start
    line = start + u**3 * (10.0 - 15.0 * u + 6.0 * u**2) * distance
    if way is not None:
        line = np.stack([np.interp(u[:, 0], way.shares, place) for place in way.poses.T], axis=1)
    random, size = np.random.default_rng(0), 0.0
    while True:
        waves = random.normal(size=(2, problem.n)) * size * (1.0 + np.abs(distance))
        bumps = (u * (1.0 - u)) ** 3 * 64.0
        yield with_best_duration(problem, Curve(degree, breaks, line + bumps * (waves[0] + waves[1] * (2.0 * u - 1.0)), 1.0))
        size += FIRST_DETOUR


def _end_positions(problem):
    """Of start and goal; where one of them is free, that of the other one, or zero, inside the box."""
    start = np.where(np.isnan(problem.start.q), np.nan_to_num(problem.goal.q), problem.start.q)
    goal = np.where(np.isnan(problem.goal.q), start, problem.goal.q)
    return (start, goal) if problem.box is None else (np.clip(start, *problem.box), np.clip(goal, *problem.box))


def with_best_duration(problem: Problem, curve: Curve) -> Curve:
    """The curve at the duration that costs least among those that keep the limits; if none does, that comes nearest."""
    at = lobatto_nodes(curve.breaks, curve.degree + 2)
    y = curve.motion(at.span, at.u)
    durations = np.unique(np.geomspace(*problem.duration, N_TRIED_DURATIONS))
    cost, excess = [], []
    for T in durations:
        now = y / (T ** np.arange(ORDERS))[:, None]
        cost.append(T * at.weight @ problem.cost.rate(now, at.inner))
        excess.append(max((found.max() for found in problem.excess(now, at.u)), default=0.0))
    inside = np.array(excess) <= 0.0
    best = np.where(inside, cost, np.inf) if inside.any() else np.array(excess)
    return Curve(curve.degree, curve.breaks, curve.points, float(durations[best.argmin()]))


END_LIMIT_TOL = 1e-9  # relative, of limits at start and goal


class PlanningError(RneaError):
    """No motion was found; the message says what stands in the way."""


def check_problem(problem: Problem) -> None:
    """InputError for a problem that makes no sense, PlanningError for one whose limits cannot be kept at start or goal."""
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


def _check_cost(problem: Problem) -> None:
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
    """A start or goal that is beyond a limit by itself: at rest, under gravity alone."""
    y = np.stack((state.q, state.qd, state.qdd, np.full(len(state.q), np.nan)))[None]
    if state.rests:
        y = np.nan_to_num(y)
    known = int(np.isfinite(y[0]).all(axis=1).argmin()) or ORDERS * state.rests
    for quantity in limited:
        if quantity.order >= known and not quantity.linear:
            continue
        excess = quantity.excess(y, np.array([u]))[0]
        k = int(excess.argmax())
        if excess[k] <= END_LIMIT_TOL:
            continue
        how = "held still" if state.rests and quantity.order > 1 else "there"
        low, high = quantity.lower[k], quantity.upper[k]
        raise PlanningError(f"{name}: {quantity.name} of {quantity.labels[k]} is {quantity.values(y)[0, k]:.5g} {how}, "
                            f"outside its limits {low:.5g} to {high:.5g}; no motion can change that")


def _check_duration(problem: Problem) -> None:
    """A duration in which limits of velocity alone, whatever the way, let nobody come from start to goal."""
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
        if least[k] > longest * (1.0 + END_LIMIT_TOL):
            raise PlanningError(f"duration is {longest:g} s at most; {quantity.labels[k]} alone takes {least[k]:.4g} s from "
                                f"start to goal at its largest {quantity.name}, {limit[k]:g}; no motion is shorter")


def unknown_limits(problem: Problem) -> list[str]:
    """One sentence on the limits that are not enforced because nobody knows them."""
    found = []
    for quantity in problem.quantities:
        unknown = [label for label, low, high in zip(quantity.labels, quantity.lower, quantity.upper, strict=True)
                   if np.isnan(low) and np.isnan(high)]
        if unknown:
            found.append(quantity.name if len(unknown) == len(quantity.labels) else f"{quantity.name} of {some(unknown)}")
    return [f"no limits known, hence not enforced: {'; '.join(found)}"] if found else []


def worst_violation(problem: Problem, curve: Curve) -> tuple[float, str]:
    """(relative size, words) of where a curve that is no solution is farthest from being one."""
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
        miss = float(np.abs(problem.coupling.miss(y[0], y[-1])).max(initial=0.0))
        found.append((miss, f"misses what ties its ends by {miss:.2g}"))
    return max(found)


def static_violation(problem: Problem, curve: Curve) -> str:
    """Words on where a curve passes places at which nobody can stand still: only swing can carry a motion over them."""
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


LOOSE_TOL, TIGHT_TOL = 1e-6, 1e-7
IPOPT_TOL = 1e-6  # its tolerance; a smaller one doubles the work for the fifth digit
MAX_FIRST_ITERATIONS = 100  # iterations of ours before IPOPT has a try, and of that


class WarmStart(NamedTuple):
    """How near to the solution a search begins, and how near it ends: start and tolerance of ours, options of IPOPT.

    known : multipliers are, too
    """

    start: InteriorPointStart
    tolerance: float
    options: Mapping[str, Any]
    known: bool = False


COLD = WarmStart(InteriorPointStart(1e-2, 1e-2), LOOSE_TOL, {})  # from a guess,
WARM = WarmStart(InteriorPointStart(1e-5, 1e-2), LOOSE_TOL, {"mu_init": 1e-5})  # from a curve that is nearly right,
HOT = WarmStart(InteriorPointStart(1e-8, 1e-6), TIGHT_TOL, {  # and from its multipliers as well
    "mu_init": 1e-7, "constr_viol_tol": 1e-8, "warm_start_init_point": "yes",
    **{f"warm_start_{what}": 1e-9 for what in ("bound_push", "bound_frac", "slack_bound_push", "slack_bound_frac",
                                               "mult_bound_push")}}, known=True)
SMOOTHING = WarmStart(InteriorPointStart(1e-3, 1e-2), LOOSE_TOL, {"mu_init": 1e-3})  # from the solution for another cost
# Starts of a ReducedProgram, which has far fewer variables: from a nearly feasible point, and with known multipliers
REDUCED_STARTS = InteriorPointStart(1e-5, 0.3), InteriorPointStart(1e-5, 1e-3)


class Attempt(Enum):
    """Which method looks: FIRST ours, or IPOPT where ours is not for the program; SECOND IPOPT, where ours found nothing; or
    BOTH, one after the other."""

    FIRST = 1
    SECOND = 2
    BOTH = 3


def select_solver(program: Transcription, settings: Settings) -> type[CondensedProgram] | None:
    """As what our method sees the program, if it is for it."""
    if settings.solver:
        return None
    return CondensedProgram if is_condensable(program) else ReducedProgram if is_reducible(program) else None


def solve_program(program: Transcription, x: np.ndarray, near: WarmStart, settings: Settings, watch: Watch,
           multipliers: np.ndarray | None = None, turn: Attempt = Attempt.BOTH) -> NlpSolution:
    """A local minimum near x. watch: as in ipopt.minimize_with_ipopt."""
    before = 0
    if turn is not Attempt.SECOND:
        kind = select_solver(program, settings)
        if kind is None:
            return _by_ipopt(program, x, near, settings, settings.iterations, watch, multipliers)
        found = _by_interior_point(kind(program), x, near, settings, watch, multipliers)
        before = found.iterations + 1
        if found.converged or turn is Attempt.FIRST:
            return found
    solution = _by_ipopt(program, x, near, settings, min(MAX_FIRST_ITERATIONS, settings.iterations),
                         lambda k, *now: watch(k + before, *now), multipliers)
    return solution._replace(iterations=solution.iterations + before)


def _by_interior_point(small: CondensedProgram, x: np.ndarray, near: WarmStart, settings: Settings, watch: Watch,
             multipliers: np.ndarray | None) -> NlpSolution:
    start, before, most = near.start, 0, min(MAX_FIRST_ITERATIONS, settings.iterations)
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


def _by_ipopt(program: Transcription, x: np.ndarray, near: WarmStart, settings: Settings, most: int, watch: Watch,
              multipliers: np.ndarray | None) -> NlpSolution:
    options = {"tol": settings.optimality or IPOPT_TOL, "max_iter": most, **near.options, **settings.solver}
    return ipopt.minimize_with_ipopt(program, x, options, watch, multipliers)


MAX_TIGHTENINGS = 10
MAX_REFINED_DRAFTS = 3  # coarse plans that are made finer, at most
MAX_EXCESS = 0.02  # beyond a limit, relative: such a plan is none
COARSE_REFINEMENTS = 4  # first ones, which IPOPT also tries; later ones with a penalty gain little and cost it seconds
MIN_PENALIZED_GAIN = 0.1  # of a refinement with a penalty, at least, as a share of the time that smoothing may take
DURATION_RESERVE = 0.3  # for the error of the estimated shortest duration, as a share of the time that smoothing may take
SMOOTHING_PENALTY = 0.1  # on what is to be smooth while a draft is refined, as a share of the time that smoothing may take
EQUAL_OBJECTIVE_TOL = 1e-5  # relative; between objectives of coarse plans that are one
BREAK_DIGITS = 9  # of breaks that windows ask for
REASONS = {
    interior_point.NO_STEP: "no motion near the starting guess keeps all limits",
    interior_point.TOO_MANY: "the solver used up its iterations",
    "Infeasible_Problem_Detected": "no motion near the starting guess keeps all limits",
    "Maximum_Iterations_Exceeded": "the solver used up its iterations",
}
REMEDY = "Wider limits, a longer duration or more guesses (best_of)"


def plan(problem: Problem, settings: Settings = Settings(), report: Report = lambda progress: None,
         guess: Curve | InitialPath | None = None, remedy: str = REMEDY, smoothing: Smoothing | None = None) -> PlannedMotion:
    """Return the motion of least cost, or with smoothing the smoothest of those that take little longer than it.

    The search starts from a curve or near a way where one is given. remedy: advice in the message where no motion is found.

    InputError: the problem makes no sense. PlanningError: no motion was found, and why.
    """
    check_problem(problem)
    casadi()
    notes = unknown_limits(problem)
    if problem.nothing_moves:
        still = Curve(settings.degree, np.array([0.0, 1.0]), np.tile(problem.start.q, (settings.degree + 1, 1)), 0.0)
        return PlannedMotion(still, 0.0, {}, 0, (*notes, "start and goal are the same state of rest: nothing moves"))
    starts = (iter([guess]) if isinstance(guess, Curve) else
              initial_guesses(problem, _breaks(problem, settings), settings.degree, guess))
    return _Planner(problem, settings, report, remedy).plan(starts, notes, smoothing)


def _breaks(problem: Problem, settings: Settings) -> np.ndarray:
    """Even ones, and where windows begin and end: limits are enforced at nodes, and there are nodes at breaks."""
    even = np.linspace(0.0, 1.0, settings.spans + 1)
    if settings.instants is not None:
        return even
    edges = np.array([edge for quantity in problem.limited for window in quantity.windows for edge in window])
    far = np.abs(edges[:, None] - even).min(axis=1) > SAME
    return np.unique(np.append(even, np.round(edges[far], BREAK_DIGITS)))


@dataclass
class _Draft:
    """A plan that is being worked on; notes: what could not be done."""

    program: Transcription
    curve: Curve
    multipliers: np.ndarray
    objective: float
    notes: list[str] = field(default_factory=list)

    def keep(self, program: Transcription, solution: NlpSolution) -> None:
        self.program, self.curve, self.multipliers = program, program.curve(solution.x), solution.multipliers
        self.objective = program.objective(solution.x)


class _DraftFailure(NamedTuple):
    """worst, text: where it is farthest from being a solution; hasty: because of the duration; again: a second look."""

    worst: float
    text: str
    reason: str
    hasty: bool = False
    again: bool = False


class _Penalty(NamedTuple):
    """A cost, and what is added to it for the sake of smoothness: a small share of the tolerance of that cost."""

    tolerance: float
    cost: Cost
    smooth: Cost


class _Planner:
    """iterations: of all its calls of a solver; penalty: what is to be smooth, where it is a part of the cost."""

    penalty: _Penalty | None = None

    def __init__(self, problem: Problem, settings: Settings, report: Report, remedy: str):
        self.problem, self.settings, self.report, self.remedy = problem, settings, report, remedy
        self.iterations = 0

    def plan(self, guesses: Iterator[Curve], notes: list[str], smoothing: Smoothing | None) -> PlannedMotion:
        drafts = _distinct_drafts(self._coarse(guesses))[:MAX_REFINED_DRAFTS]
        best, excess = self._finished(drafts) if smoothing is None else self._smoothest(drafts, smoothing)
        beyond = [f"{name} by {100.0 * value:.2g} %" for name, value in excess.items() if value > self.settings.tolerance]
        worst = max(excess.values(), default=0.0)
        if worst > max(self.settings.tolerance, MAX_EXCESS) and select_solver(best.program, self.settings):
            raise PlanningError(f"no motion found: the nearest one is beyond limits between its nodes, {some(beyond)}"
                                f"{static_violation(self.problem, best.curve)}. {self.remedy} may help")
        if beyond:
            best.notes.append(f"beyond a limit somewhere between the nodes: {some(beyond)}")
        return PlannedMotion(best.curve, float(best.objective), excess, self.iterations, (*notes, *best.notes))

    # ------------------------------------------------------------------ steps

    def _coarse(self, guesses: Iterator[Curve]) -> list[_Draft]:
        """Of as many guesses as are asked for, or until the first from which there is one; IPOPT looks from the first alone
        where our method has found none from any."""
        drafts: list[_Draft] = []
        failures: list[_DraftFailure] = []
        attempts = range(1, max(self.settings.tries, self.settings.best_of) + 1)
        first = next(guesses)
        for number, guess in zip(attempts, chain([first], guesses)):
            self._draft(f"guess {number}", guess, drafts, failures)
            if len(drafts) == self.settings.best_of:
                break
        hasty = all(failure.hasty for failure in failures)
        if not drafts and not hasty and select_solver(self._program(first), self.settings):
            self._draft("guess 1 by IPOPT", first, drafts, failures, Attempt.SECOND)
        if not drafts:
            raise PlanningError(self._why(failures, static_violation(self.problem, first)))
        return drafts

    def _draft(self, stage: str, guess: Curve, drafts: list[_Draft], failures: list[_DraftFailure],
               turn: Attempt = Attempt.FIRST) -> None:
        """One more draft, or one more failure."""
        program = self._program(guess)
        if fastest := self._hasty(stage, guess):
            longest = self.problem.duration[1]
            failures.append(_DraftFailure(*worst_violation(self.problem, replace(fastest, duration=longest)),
                                     f"the fastest takes {fastest.duration:.4g} s, {longest:g} s are allowed", True))
            return
        solution = self._solved(stage, program, guess, COLD, turn=turn)
        curve = program.curve(solution.x)
        if solution.converged:
            drafts.append(_Draft(program, curve, solution.multipliers, program.objective(solution.x)))
        else:
            failures.append(_DraftFailure(*worst_violation(self.problem, curve), _reason(solution),
                                          again=turn is Attempt.SECOND))

    def _hasty(self, stage: str, guess: Curve) -> Curve | None:
        """The fastest motion near the guess, if even that takes longer than is allowed."""
        if self.problem.duration[1] >= LONGEST or not any(quantity.order for quantity in self.problem.limited):
            return None
        free = replace(self.problem, cost=Cost(), duration=(SHORTEST, LONGEST))
        freed = self._program(guess, problem=free)
        if not select_solver(freed, self.settings):
            return None
        solution = self._solved(f"{stage}, its shortest duration", freed, with_best_duration(free, guess), COLD,
                                turn=Attempt.FIRST)
        found = freed.curve(solution.x)
        longest = self.problem.duration[1] * (1.0 + EQUAL_OBJECTIVE_TOL)
        return found if solution.converged and found.duration > longest else None

    def _refine(self, draft: _Draft) -> None:
        for number in range(1, self.settings.refinements + 1):
            if self.penalty is not None:
                self._balance(draft)
            before, finer = draft.objective, split_spans(draft.curve)
            if len(finer) == len(draft.curve.breaks):
                break
            curve = draft.curve.refined(finer)
            late = number > COARSE_REFINEMENTS and self.penalty is not None
            if not self._improved(draft, f"refinement {number}", self._program(curve), curve, WARM,
                                  Attempt.FIRST if late else Attempt.BOTH):
                break
            gain = self.settings.gain
            if self.penalty is not None:
                gain = max(gain, MIN_PENALIZED_GAIN * self.penalty.tolerance)
            if before - draft.objective < gain * abs(before):
                break

    def _keep_limits_between_nodes(self, draft: _Draft) -> None:
        peaks: list[LimitPeak] = []
        tolerance = self.settings.tolerance
        for number in range(1, MAX_TIGHTENINGS + 1):
            at = evenly_spread(draft.curve.breaks, SAMPLES_PER_SPAN)
            excess = self._excess(draft.curve, SAMPLES_PER_SPAN)
            new = [peak for k, values in enumerate(excess) for peak in find_peaks(at, k, values, 0.25 * tolerance)]
            if number > 1 and all(peak.height <= 0.75 * tolerance for peak in new):
                break
            peaks += new
            program = self._program(draft.curve, peaks)
            if not self._improved(draft, f"limits between nodes {number}", program, draft.curve, HOT):
                break

    def _finished(self, drafts: list[_Draft]) -> tuple[_Draft, dict[str, float]]:
        """Refine drafts, keep limits between their nodes, and return the best one and its excess over each limit."""
        for draft in drafts:
            if self.settings.instants is None:
                self._refine(draft)
            self._keep_limits_between_nodes(draft)
        return self._best(drafts)

    def _smoothest(self, drafts: list[_Draft], smoothing: Smoothing) -> tuple[_Draft, dict[str, float]]:
        """Return the smoothest motion near coarse drafts, of a duration within the tolerance, and its excess over each limit.

        Joints that do not bind are undetermined in the fastest motion, and all but undetermined where torques weigh little:
        Newton's equations are nearly singular, knots gather where these joints oscillate, and the solver stalls. Drafts are
        therefore refined with a small penalty on what is to be smooth: it determines all joints, for a small share of the
        tolerance. Then, where time alone counts, the duration is fixed, and smoothness is minimised. Where that fails, the
        refined draft is the plan.
        """
        found = [penalized for draft in drafts if (penalized := self._penalized(draft, smoothing))]
        best, excess = self._best(found) if found else self._finished(drafts)
        if not self.problem.cost.weighted:
            best, excess = self._smoothed_at_last(best, excess, smoothing, bool(found))
        elif not found:
            best.notes.append("smoothing left out, joints that do not bind may oscillate")
        best.objective = self._integral(self.problem.cost, best.curve)
        return best, excess

    def _smoothed_at_last(self, best: _Draft, excess: dict[str, float], smoothing: Smoothing,
                          penalized: bool) -> tuple[_Draft, dict[str, float]]:
        """Return the smoothest motion near the best one, or that one with a note; and its excess over each limit."""
        smooth, reason = self._smoothed(best, smoothing, best.objective if penalized else best.curve.duration)
        if smooth:
            _, least = self._best([smooth])
            if max(least.values(), default=0.0) <= max(self.settings.tolerance, *excess.values()):
                return smooth, least
            reason = "it is beyond limits between the nodes"
        best.notes.append(f"smoothing ended early, a smoother plan may exist: {reason}" if penalized else
                          f"smoothing left out, the plan is the fastest motion: {reason}")
        return best, excess

    def _penalized(self, draft: _Draft, smoothing: Smoothing) -> _Draft | None:
        """Return a coarse draft, refined with a penalty. Its objective is a careful estimate of the least one without it."""
        cost = self.problem.cost
        planner = self._with(cost if cost.time or cost.weighted else replace(cost, time=1.0))
        planner.penalty = _Penalty(smoothing.tolerance, planner.problem.cost, smoothing.cost)
        coarse, _ = self._smoothed(draft, smoothing, draft.curve.duration, between=False)
        planner._balance(coarse or draft)
        found = replace(draft, notes=list(draft.notes))
        solved = planner._improved(found, "penalty", planner._program(draft.curve), draft.curve, SMOOTHING)
        if solved:
            planner._finished([found])
            penalty = planner.penalty
            value = self._integral(penalty.cost, found.curve)
            estimate = value - self._integral(penalty.smooth, found.curve)
            found.objective = estimate / (penalty.cost.time or 1.0) * (1.0 - DURATION_RESERVE * smoothing.tolerance)
        self.iterations += planner.iterations
        return found if solved else None

    def _balance(self, draft: _Draft) -> None:
        """Lower the penalty to its share of the cost, if it is more in a draft."""
        assert self.penalty is not None
        tolerance, cost, smooth = self.penalty
        paid = self._integral(smooth, draft.curve)
        allowed = SMOOTHING_PENALTY * tolerance * self._integral(cost, draft.curve)
        if paid > allowed:
            smooth = replace(smooth, effort=allowed / paid * smooth.effort)
            self.penalty = _Penalty(tolerance, cost, smooth)
        assert smooth.of is not None
        self.problem = replace(self.problem, cost=replace(cost, more=(*cost.more, (smooth.effort, smooth.of))))
        draft.objective = self._integral(self.problem.cost, draft.curve)

    def _smoothed(self, draft: _Draft, smoothing: Smoothing, shortest: float,
                  between: bool = True) -> tuple[_Draft | None, str]:
        """Return the smoothest motion near a draft, of a duration within the tolerance; or None, and why there is none."""
        longest = max(draft.curve.duration, self.problem.duration[1])
        T = min(longest, max(draft.curve.duration, shortest * (1.0 + smoothing.tolerance)))
        curve = replace(draft.curve, duration=T)
        value = self._integral(smoothing.cost, curve) or 1.0  # scaled to 1: the solver's tolerances are absolute
        smoother = self._with(replace(smoothing.cost, effort=smoothing.cost.effort / value), (T, T))
        program = smoother._program(curve)
        solution = smoother._solved("smoothing", program, curve, SMOOTHING, turn=Attempt.FIRST)
        found = _Draft(program, program.curve(solution.x), solution.multipliers, 0.0, list(draft.notes))
        if solution.converged and between:
            smoother._keep_limits_between_nodes(found)
        self.iterations += smoother.iterations
        return (found, "") if solution.converged else (None, _reason(solution))

    def _with(self, cost: Cost, duration: tuple[float, float] | None = None) -> _Planner:
        """Return a planner of the same problem under another cost."""
        problem = replace(self.problem, cost=cost, duration=duration or self.problem.duration)
        return _Planner(problem, self.settings, self.report, self.remedy)

    def _integral(self, cost: Cost, curve: Curve) -> float:
        """Return a cost along a curve."""
        program = self._program(curve, problem=replace(self.problem, cost=cost))
        return float(program.objective(program.variables(curve)))

    def _best(self, drafts: list[_Draft]) -> tuple[_Draft, dict[str, float]]:
        """The cheapest of those that keep their limits, or else of all; and its excess over each."""
        found = []
        for draft in drafts:
            excess: dict[str, float] = {}
            for quantity, values in zip(self.problem.limited, self._excess(draft.curve, 3 * SAMPLES_PER_SPAN)):
                excess[quantity.name] = max(float(values.max()), excess.get(quantity.name, -np.inf))
            found.append((max(excess.values(), default=0.0) > self.settings.tolerance, draft.objective, draft, excess))
        *_, best, excess = min(found, key=lambda one: one[:2])
        return best, excess

    # ------------------------------------------------------------------ tools

    def _program(self, guess: Curve, peaks: Sequence[LimitPeak] = (), problem: Problem | None = None) -> Transcription:
        instants, degree = self.settings.instants, guess.degree
        nodes = (lobatto_nodes(guess.breaks, degree + 2, peaks) if instants is None else
                 prescribed_nodes(guess.breaks, np.array(instants), peaks))
        return Transcription(problem or self.problem, guess.breaks, degree, nodes,
                             gauss_newton_curvature if self.settings.gauss_newton else lagrangian_curvature,
                             self.settings.damping)

    def _improved(self, draft: _Draft, stage: str, program: Transcription, guess: Curve, near: WarmStart,
                  turn: Attempt = Attempt.BOTH) -> bool:
        """Solve again from a curve that is nearly right; what fails is left out, and said."""
        multipliers = draft.program.rows.carried(draft.multipliers, program.rows) if near.known else None
        solution = self._solved(stage, program, guess, near, multipliers, turn)
        if solution.converged:
            draft.keep(program, solution)
        else:
            draft.notes.append(f"{stage} left out: {_reason(solution)}")
        return solution.converged

    def _solved(self, stage: str, program: Transcription, guess: Curve, near: WarmStart,
                multipliers: np.ndarray | None = None, turn: Attempt = Attempt.BOTH) -> NlpSolution:
        def watch(iteration: int, x: np.ndarray, violation: float) -> None:
            self.report(SolverProgress(stage, iteration, float(x[-1]), len(guess.points), violation))

        solution = solve_program(program, program.variables(guess), near, self.settings, watch, multipliers, turn)
        self.iterations += solution.iterations
        return solution

    def _excess(self, curve: Curve, per_span: int) -> list[np.ndarray]:
        at = evenly_spread(curve.breaks, per_span)
        return self.problem.excess(curve.motion(at.span, at.u), at.u)

    def _why(self, failures: Sequence[_DraftFailure], standstill: str) -> str:
        """What stands in the way of the attempt that came nearest."""
        worst, text, reason, *_ = min(failures, key=lambda failure: failure.worst)
        nearest = f"; the nearest one {text}" if worst > self.settings.tolerance else ""
        guesses = sum(not failure.again for failure in failures)
        return f"no motion found, starting from {guesses} guesses: {reason}{nearest}{standstill}. {self.remedy} may help"


def _distinct_drafts(drafts: list[_Draft]) -> list[_Draft]:
    """By rising cost; of those that cost the same, one."""
    found: list[_Draft] = []
    for draft in sorted(drafts, key=lambda draft: draft.objective):
        if not found or draft.objective - found[-1].objective > EQUAL_OBJECTIVE_TOL * abs(draft.objective):
            found.append(draft)
    return found


def _reason(solution: NlpSolution) -> str:
    return REASONS.get(solution.status, solution.status.replace("_", " ").lower())
