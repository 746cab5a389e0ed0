"""A motion between two states: the best that B-splines can do inside the limits.

First a coarse plan from a simple guess; then finer knots where it asks for them; then nodes where it leaves its limits between
them, until it does not. Every solution is the start of the next. Optima are local: `best_of` asks for more than the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import grid
from .bspline import Curve
from .checks import PlanningError, check, unknown_limits, worst_violation
from .guess import guesses
from .ipopt import Solution, minimise
from .problem import Problem
from .result import Plan
from .settings import Progress, Report, Settings
from .transcription import Transcription

COLD: dict[str, Any] = {}  # options of IPOPT: from a guess,
WARM = {"mu_init": 1e-5}  # from a curve that is nearly right,
HOT = {"mu_init": 1e-8, "warm_start_init_point": "yes",  # and from its multipliers as well
       **{f"warm_start_{what}": 1e-9 for what in ("bound_push", "bound_frac", "slack_bound_push", "slack_bound_frac",
                                                  "mult_bound_push")}}
TIGHTENINGS = 10
REASONS = {
    "Infeasible_Problem_Detected": "no motion near the starting guess keeps all limits",
    "Maximum_Iterations_Exceeded": "the solver used up its iterations",
}


def plan(problem: Problem, settings: Settings = Settings(), report: Report = lambda progress: None) -> Plan:
    """The motion of least cost. InputError: the problem makes no sense. PlanningError: no motion was found, and why."""
    check(problem)
    notes = unknown_limits(problem)
    if problem.nothing_moves:
        still = Curve(settings.degree, np.array([0.0, 1.0]), np.tile(problem.start.q, (settings.degree + 1, 1)), 0.0)
        return Plan(still, 0.0, {}, 0, (*notes, "start and goal are the same state of rest: nothing moves"))
    return _Planner(problem, settings, report, notes).plan()


class _Planner:
    """curve, objective, multipliers: of the best plan so far."""

    def __init__(self, problem: Problem, settings: Settings, report: Report, notes: list[str]):
        self.problem, self.settings, self.report, self.notes = problem, settings, report, notes
        self.curve, self.objective, self.multipliers = Curve(3, np.zeros(0), np.zeros(0), 0.0), np.inf, np.zeros(0)
        self.iterations = 0

    def plan(self) -> Plan:
        self._begin()
        self._refine()
        self._keep_limits_between_nodes()
        excess = {name: float(values.max()) for name, values in self._excess(3 * grid.LOOKS).items()}
        beyond = [f"{name} by {100.0 * value:.2g} %" for name, value in excess.items() if value > self.settings.tolerance]
        if beyond:
            self.notes.append(f"beyond a limit somewhere between the nodes: {', '.join(beyond)}")
        return Plan(self.curve, float(self.objective), excess, self.iterations, tuple(self.notes))

    # ------------------------------------------------------------------ steps

    def _begin(self) -> None:
        """The best of the coarse plans."""
        plans, failures = 0, []
        breaks = np.linspace(0.0, 1.0, self.settings.spans + 1)
        attempts = range(1, max(self.settings.tries, self.settings.best_of) + 1)
        for number, guess in zip(attempts, guesses(self.problem, breaks, self.settings.degree)):
            solution, curve, objective = self._solved(f"guess {number}", guess, COLD)
            if not solution.converged:
                failures.append((*worst_violation(self.problem, curve), solution))
                continue
            plans += 1
            if objective < self.objective:
                self.curve, self.objective, self.multipliers = curve, objective, solution.multipliers
            if plans == self.settings.best_of:
                break
        if not plans:
            raise PlanningError(self._why(failures))

    def _refine(self) -> None:
        for number in range(1, self.settings.refinements + 1):
            before, finer = self.objective, grid.split(self.curve)
            if len(finer) == len(self.curve.breaks):
                break
            if not self._improved(f"refinement {number}", self.curve.refined(finer), WARM):
                break
            if before - self.objective < self.settings.gain * abs(before):
                break

    def _keep_limits_between_nodes(self) -> None:
        peaks: list[grid.Peak] = []
        tolerance = self.settings.tolerance
        for number in range(1, TIGHTENINGS + 1):
            at, excess = grid.looks(self.curve.breaks, grid.LOOKS), self._excess(grid.LOOKS).values()
            new = [peak for k, values in enumerate(excess) for peak in grid.peaks(at, k, values, 0.25 * tolerance)]
            peaks += new
            if all(peak.height <= 0.75 * tolerance for peak in new):
                break
            if not self._improved(f"limits between nodes {number}", self.curve, HOT, peaks):
                break

    # ------------------------------------------------------------------ tools

    def _improved(self, stage: str, guess: Curve, options: Mapping[str, Any], peaks: Sequence[grid.Peak] = ()) -> bool:
        """Solve again from a curve that is nearly right; what fails is left out, and said."""
        solution, curve, objective = self._solved(stage, guess, options, peaks)
        if solution.converged:
            self.curve, self.objective, self.multipliers = curve, objective, solution.multipliers
        else:
            self.notes.append(f"{stage} left out: {_reason(solution)}")
        return solution.converged

    def _solved(self, stage: str, guess: Curve, options: Mapping[str, Any],
                peaks: Sequence[grid.Peak] = ()) -> tuple[Solution, Curve, float]:
        nodes = grid.nodes(guess.breaks, guess.degree + 2, peaks)
        program = Transcription(self.problem, guess.breaks, guess.degree, nodes)

        def watch(iteration: int, x: np.ndarray, violation: float) -> None:
            self.report(Progress(stage, iteration, float(x[-1]), len(guess.points), violation))

        lower, upper = np.full(program.size, -np.inf), np.full(program.size, np.inf)
        lower[-1], upper[-1] = self.problem.duration
        added = len(program.rows.node) - len(self.multipliers)  # rows of peaks come last
        multipliers = np.append(self.multipliers, np.zeros(added)) if peaks else None
        solution = minimise(program, program.variables(guess), (lower, upper),
                            {"max_iter": self.settings.iterations, **options}, watch, multipliers)
        self.iterations += solution.iterations
        return solution, program.curve(solution.x), program.objective(solution.x)

    def _excess(self, per_span: int) -> dict[str, np.ndarray]:
        at = grid.looks(self.curve.breaks, per_span)
        return self.problem.excess(self.curve.motion(at.span, at.u))

    def _why(self, failures: Sequence[tuple[float, str, Solution]]) -> str:
        """What stands in the way of the attempt that came nearest."""
        worst, text, solution = min(failures, key=lambda failure: failure[0])
        nearest = f"; the nearest one {text}" if worst > self.settings.tolerance else ""
        return (f"no motion found, starting from {len(failures)} guesses: {_reason(solution)}{nearest} (IPOPT: "
                f"{solution.status}). Wider limits, a longer duration or more tries may help")


def _reason(solution: Solution) -> str:
    return REASONS.get(solution.status, solution.status.replace("_", " ").lower())
