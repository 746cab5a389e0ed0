"""A motion between two states: the best that B-splines can do inside the limits.

First a coarse plan from a simple guess; then finer knots where it asks for them; then nodes where it leaves its limits between
them, until it does not. Every solution is the start of the next. Optima are local: `best_of` asks for more than the first, and
the best few of them are all made finer, for coarse plans differ from fine ones by more than from one another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from ..errors import some
from . import grid, interior_point
from .bspline import Curve
from .checks import PlanningError, check, standstill, unknown_limits, worst_violation
from .curvature import gauss_newton, of_lagrangian
from .guess import Way, guesses, paced
from .ipopt import NlpSolution, casadi
from .problem import LONGEST, SAME, SHORTEST, Cost, Problem
from .result import PlannedMotion
from .settings import Report, Settings, Smoothing, SolverProgress
from .solve import COLD, HOT, SMOOTHING, WARM, Nearness, Try, ours, solved
from .transcription import Transcription

TIGHTENINGS = 10
FINER = 3  # coarse plans that are made finer, at most
TOO_FAR = 0.02  # beyond a limit, relative: such a plan is none
COARSE_REFINEMENTS = 4  # first ones, which IPOPT also tries; later ones with a penalty gain little and cost it seconds
GAIN = 0.1  # of a refinement with a penalty, at least, as a share of the time that smoothing may take
RESERVE = 0.3  # for the error of the estimated shortest duration, as a share of the time that smoothing may take
PENALTY = 0.1  # on what is to be smooth while a draft is refined, as a share of the time that smoothing may take
ALIKE = 1e-5  # relative; between objectives of coarse plans that are one
DIGITS = 9  # of breaks that windows ask for
REASONS = {
    interior_point.STUCK: "no motion near the starting guess keeps all limits",
    interior_point.TOO_MANY: "the solver used up its iterations",
    "Infeasible_Problem_Detected": "no motion near the starting guess keeps all limits",
    "Maximum_Iterations_Exceeded": "the solver used up its iterations",
}
REMEDY = "Wider limits, a longer duration or more guesses (best_of)"


def plan(problem: Problem, settings: Settings = Settings(), report: Report = lambda progress: None,
         guess: Curve | Way | None = None, remedy: str = REMEDY, smoothing: Smoothing | None = None) -> PlannedMotion:
    """Return the motion of least cost, or with smoothing the smoothest of those that take little longer than it.

    The search starts from a curve or near a way where one is given. remedy: advice in the message where no motion is found.

    InputError: the problem makes no sense. PlanningError: no motion was found, and why.
    """
    check(problem)
    casadi()
    notes = unknown_limits(problem)
    if problem.nothing_moves:
        still = Curve(settings.degree, np.array([0.0, 1.0]), np.tile(problem.start.q, (settings.degree + 1, 1)), 0.0)
        return PlannedMotion(still, 0.0, {}, 0, (*notes, "start and goal are the same state of rest: nothing moves"))
    starts = (iter([guess]) if isinstance(guess, Curve) else
              guesses(problem, _breaks(problem, settings), settings.degree, guess))
    return _Planner(problem, settings, report, remedy).plan(starts, notes, smoothing)


def _breaks(problem: Problem, settings: Settings) -> np.ndarray:
    """Even ones, and where windows begin and end: limits are enforced at nodes, and there are nodes at breaks."""
    even = np.linspace(0.0, 1.0, settings.spans + 1)
    if settings.instants is not None:
        return even
    edges = np.array([edge for quantity in problem.limited for window in quantity.windows for edge in window])
    far = np.abs(edges[:, None] - even).min(axis=1) > SAME
    return np.unique(np.append(even, np.round(edges[far], DIGITS)))


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


class _Failure(NamedTuple):
    """worst, text: where it is farthest from being a solution; hasty: because of the duration; again: a second look."""

    worst: float
    text: str
    reason: str
    hasty: bool = False
    again: bool = False


class _Planner:
    """iterations: of all its calls of a solver; smoothing: where it has a share in the cost, as a penalty."""

    smoothing: Smoothing | None = None

    def __init__(self, problem: Problem, settings: Settings, report: Report, remedy: str):
        self.problem, self.settings, self.report, self.remedy = problem, settings, report, remedy
        self.iterations = 0

    def plan(self, guesses: Iterator[Curve], notes: list[str], smoothing: Smoothing | None) -> PlannedMotion:
        drafts = _different(self._coarse(guesses))[:FINER]
        best, excess = self._finished(drafts) if smoothing is None else self._smoothest(drafts, smoothing)
        beyond = [f"{name} by {100.0 * value:.2g} %" for name, value in excess.items() if value > self.settings.tolerance]
        worst = max(excess.values(), default=0.0)
        if worst > max(self.settings.tolerance, TOO_FAR) and ours(best.program, self.settings):
            raise PlanningError(f"no motion found: the nearest one is beyond limits between its nodes, {some(beyond)}"
                                f"{standstill(self.problem, best.curve)}. {self.remedy} may help")
        if beyond:
            best.notes.append(f"beyond a limit somewhere between the nodes: {some(beyond)}")
        return PlannedMotion(best.curve, float(best.objective), excess, self.iterations, (*notes, *best.notes))

    # ------------------------------------------------------------------ steps

    def _coarse(self, guesses: Iterator[Curve]) -> list[_Draft]:
        """Of as many guesses as are asked for, or until the first from which there is one; IPOPT looks from the first alone
        where our method has found none from any."""
        drafts: list[_Draft] = []
        failures: list[_Failure] = []
        attempts = range(1, max(self.settings.tries, self.settings.best_of) + 1)
        first = next(guesses)
        for number, guess in zip(attempts, chain([first], guesses)):
            self._draft(f"guess {number}", guess, drafts, failures)
            if len(drafts) == self.settings.best_of:
                break
        hasty = all(failure.hasty for failure in failures)
        if not drafts and not hasty and ours(self._program(first), self.settings):
            self._draft("guess 1 by IPOPT", first, drafts, failures, Try.SECOND)
        if not drafts:
            raise PlanningError(self._why(failures, standstill(self.problem, first)))
        return drafts

    def _draft(self, stage: str, guess: Curve, drafts: list[_Draft], failures: list[_Failure],
               turn: Try = Try.FIRST) -> None:
        """One more draft, or one more failure."""
        program = self._program(guess)
        if fastest := self._hasty(stage, guess):
            longest = self.problem.duration[1]
            failures.append(_Failure(*worst_violation(self.problem, replace(fastest, duration=longest)),
                                     f"the fastest takes {fastest.duration:.4g} s, {longest:g} s are allowed", True))
            return
        solution = self._solved(stage, program, guess, COLD, turn=turn)
        curve = program.curve(solution.x)
        if solution.converged:
            drafts.append(_Draft(program, curve, solution.multipliers, program.objective(solution.x)))
        else:
            failures.append(_Failure(*worst_violation(self.problem, curve), _reason(solution), again=turn is Try.SECOND))

    def _hasty(self, stage: str, guess: Curve) -> Curve | None:
        """The fastest motion near the guess, if even that takes longer than is allowed."""
        if self.problem.duration[1] >= LONGEST or not any(quantity.order for quantity in self.problem.limited):
            return None
        free = replace(self.problem, cost=Cost(), duration=(SHORTEST, LONGEST))
        freed = self._program(guess, problem=free)
        if not ours(freed, self.settings):
            return None
        solution = self._solved(f"{stage}, its shortest duration", freed, paced(free, guess), COLD, turn=Try.FIRST)
        found = freed.curve(solution.x)
        return found if solution.converged and found.duration > self.problem.duration[1] * (1.0 + ALIKE) else None

    def _refine(self, draft: _Draft) -> None:
        for number in range(1, self.settings.refinements + 1):
            if self.smoothing is not None:
                self._balance(draft, self.smoothing)
            before, finer = draft.objective, grid.split(draft.curve)
            if len(finer) == len(draft.curve.breaks):
                break
            curve = draft.curve.refined(finer)
            late = number > COARSE_REFINEMENTS and self.smoothing is not None
            if not self._improved(draft, f"refinement {number}", self._program(curve), curve, WARM,
                                  Try.FIRST if late else Try.BOTH):
                break
            gain = self.settings.gain if self.smoothing is None else max(self.settings.gain, GAIN * self.smoothing.tolerance)
            if before - draft.objective < gain * abs(before):
                break

    def _keep_limits_between_nodes(self, draft: _Draft) -> None:
        peaks: list[grid.Peak] = []
        tolerance = self.settings.tolerance
        for number in range(1, TIGHTENINGS + 1):
            at, excess = grid.looks(draft.curve.breaks, grid.LOOKS), self._excess(draft.curve, grid.LOOKS)
            new = [peak for k, values in enumerate(excess) for peak in grid.peaks(at, k, values, 0.25 * tolerance)]
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

        Joints that do not bind are undetermined in the fastest motion: Newton's equations are nearly singular, knots gather
        where these joints oscillate, and the solver stalls. Drafts are therefore refined with a small penalty on what is to
        be smooth: it determines all joints, for a small share of the tolerance. Then the duration is fixed, and smoothness
        alone counts. Where that fails, the refined draft is the plan.
        """
        found = [penalized for draft in drafts if (penalized := self._penalized(draft, smoothing))]
        best, excess = self._best(found) if found else self._finished(drafts)
        smooth, reason = self._smoothed(best, smoothing, best.objective if found else best.curve.duration)
        if smooth:
            _, least = self._best([smooth])
            if max(least.values(), default=0.0) <= max(self.settings.tolerance, *excess.values()):
                best, excess = smooth, least
            else:
                smooth, reason = None, "it is beyond limits between the nodes"
        if not smooth:
            best.notes.append(f"smoothing ended early, a smoother plan may exist: {reason}" if found else
                              f"smoothing left out, the plan is the fastest motion: {reason}")
        best.objective = self._integral(self.problem.cost, best.curve)
        return best, excess

    def _penalized(self, draft: _Draft, smoothing: Smoothing) -> _Draft | None:
        """Return a coarse draft, refined with a penalty; its objective is a careful estimate of the shortest duration."""
        planner = self._with(replace(smoothing.cost, time=self.problem.cost.time or 1.0))
        planner.smoothing = smoothing
        coarse, _ = self._smoothed(draft, smoothing, draft.curve.duration, between=False)
        planner._balance(coarse or draft, smoothing)
        found = replace(draft, notes=list(draft.notes))
        solved = planner._improved(found, "penalty", planner._program(draft.curve), draft.curve, SMOOTHING)
        if solved:
            planner._finished([found])
            cost, T = planner.problem.cost, found.curve.duration
            estimate = 2.0 * T - planner._integral(cost, found.curve) / cost.time  # T less the penalty
            found.objective = estimate * (1.0 - RESERVE * smoothing.tolerance)
        self.iterations += planner.iterations
        return found if solved else None

    def _balance(self, draft: _Draft, smoothing: Smoothing) -> None:
        """Lower the penalty to its share of the duration, if it is more in a draft."""
        cost = self.problem.cost
        paid = self._integral(replace(cost, time=0.0), draft.curve)
        allowed = PENALTY * smoothing.tolerance * cost.time * draft.curve.duration
        if paid > allowed:
            self.problem = replace(self.problem, cost=replace(cost, effort=allowed / paid * cost.effort))
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
        solution = smoother._solved("smoothing", program, curve, SMOOTHING, turn=Try.FIRST)
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
            for quantity, values in zip(self.problem.limited, self._excess(draft.curve, 3 * grid.LOOKS)):
                excess[quantity.name] = max(float(values.max()), excess.get(quantity.name, -np.inf))
            found.append((max(excess.values(), default=0.0) > self.settings.tolerance, draft.objective, draft, excess))
        *_, best, excess = min(found, key=lambda one: one[:2])
        return best, excess

    # ------------------------------------------------------------------ tools

    def _program(self, guess: Curve, peaks: Sequence[grid.Peak] = (), problem: Problem | None = None) -> Transcription:
        instants, degree = self.settings.instants, guess.degree
        nodes = (grid.nodes(guess.breaks, degree + 2, peaks) if instants is None else
                 grid.sampled(guess.breaks, np.array(instants), peaks))
        return Transcription(problem or self.problem, guess.breaks, degree, nodes,
                             gauss_newton if self.settings.gauss_newton else of_lagrangian, self.settings.damping)

    def _improved(self, draft: _Draft, stage: str, program: Transcription, guess: Curve, near: Nearness,
                  turn: Try = Try.BOTH) -> bool:
        """Solve again from a curve that is nearly right; what fails is left out, and said."""
        multipliers = draft.program.rows.carried(draft.multipliers, program.rows) if near.known else None
        solution = self._solved(stage, program, guess, near, multipliers, turn)
        if solution.converged:
            draft.keep(program, solution)
        else:
            draft.notes.append(f"{stage} left out: {_reason(solution)}")
        return solution.converged

    def _solved(self, stage: str, program: Transcription, guess: Curve, near: Nearness,
                multipliers: np.ndarray | None = None, turn: Try = Try.BOTH) -> NlpSolution:
        def watch(iteration: int, x: np.ndarray, violation: float) -> None:
            self.report(SolverProgress(stage, iteration, float(x[-1]), len(guess.points), violation))

        solution = solved(program, program.variables(guess), near, self.settings, watch, multipliers, turn)
        self.iterations += solution.iterations
        return solution

    def _excess(self, curve: Curve, per_span: int) -> list[np.ndarray]:
        at = grid.looks(curve.breaks, per_span)
        return self.problem.excess(curve.motion(at.span, at.u), at.u)

    def _why(self, failures: Sequence[_Failure], standstill: str) -> str:
        """What stands in the way of the attempt that came nearest."""
        worst, text, reason, *_ = min(failures, key=lambda failure: failure.worst)
        nearest = f"; the nearest one {text}" if worst > self.settings.tolerance else ""
        guesses = sum(not failure.again for failure in failures)
        return f"no motion found, starting from {guesses} guesses: {reason}{nearest}{standstill}. {self.remedy} may help"


def _different(drafts: list[_Draft]) -> list[_Draft]:
    """By rising cost; of those that cost the same, one."""
    found: list[_Draft] = []
    for draft in sorted(drafts, key=lambda draft: draft.objective):
        if not found or draft.objective - found[-1].objective > ALIKE * abs(draft.objective):
            found.append(draft)
    return found


def _reason(solution: NlpSolution) -> str:
    return REASONS.get(solution.status, solution.status.replace("_", " ").lower())
