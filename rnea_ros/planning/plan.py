"""A motion between two states: the best that B-splines can do inside the limits.

First a coarse plan from a simple guess; then finer knots where it asks for them; then nodes where it leaves its limits between
them, until it does not. Every solution is the start of the next. Optima are local: `best_of` asks for more than the first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from . import grid
from .bspline import Curve, span_of
from .checks import PlanningError, check, unknown_limits
from .guess import guesses
from .ipopt import Solution, minimise
from .problem import Problem
from .settings import Progress, Report, Settings
from .transcription import Transcription

WARM = {"mu_init": 1e-5}  # of IPOPT's barrier, where a solution is near
TIGHTENINGS = 6
REASONS = {
    "Infeasible_Problem_Detected": "no motion near the starting guess keeps all limits",
    "Maximum_Iterations_Exceeded": "the solver used up its iterations",
}


@dataclass(frozen=True, eq=False)
class Plan:
    """A planned motion.

    objective  : integral of the cost; the duration where time alone counts
    excess     : limited quantity -> by how much it is beyond a limit anywhere, relative, looked at much more densely than
                 planned; negative: what is left
    iterations : of the solver, all its calls together
    notes      : what is worth knowing, one sentence each: limits that are unknown, steps that failed
    """

    curve: Curve
    objective: float
    excess: dict[str, float]
    iterations: int
    notes: tuple[str, ...] = ()

    @property
    def duration(self) -> float:
        """[s]."""
        return self.curve.duration

    @property
    def control_points(self) -> int:
        return len(self.curve.points)

    def __call__(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """q, qd, qdd, qddd (samples, n) at times t (samples,) from 0 to duration; where the jerk jumps, after the jump."""
        u = np.asarray(t, dtype=float) / (self.duration or 1.0)
        if u.ndim != 1 or not ((u >= 0.0) & (u <= 1.0 + 1e-12)).all():
            raise InputError(f"t is {t!r:.60}; times (samples,) from 0 to {self.duration:.17g} s are needed")
        q, qd, qdd, qddd = np.swapaxes(self.curve.motion(span_of(self.curve.breaks, u), np.minimum(u, 1.0)), 0, 1)
        return q, qd, qdd, qddd


def plan(problem: Problem, settings: Settings = Settings(), report: Report = lambda progress: None) -> Plan:
    """The motion of least cost. InputError: the problem makes no sense. PlanningError: no motion was found, and why."""
    check(problem)
    notes = unknown_limits(problem)
    if problem.nothing_moves:
        still = Curve(settings.degree, np.array([0.0, 1.0]), np.tile(problem.start.q, (settings.degree + 1, 1)), 0.0)
        return Plan(still, 0.0, {}, 0, (*notes, "start and goal are the same state of rest: nothing moves"))
    return _Planner(problem, settings, report, notes).plan()


class _Planner:
    def __init__(self, problem: Problem, settings: Settings, report: Report, notes: list[str]):
        self.problem, self.settings, self.report, self.notes = problem, settings, report, notes
        self.curve, self.objective, self.iterations = Curve(3, np.zeros(0), np.zeros(0), 0.0), np.inf, 0  # the best so far

    def plan(self) -> Plan:
        self._begin()
        self._refine()
        self._keep_limits_between_nodes()
        worst = {name: float(values.max()) for name, values in self._excess(self.curve, 3 * grid.LOOKS).items()}
        beyond = [f"{name} by {100.0 * value:.2g} %" for name, value in worst.items() if value > self.settings.tolerance]
        if beyond:
            self.notes.append(f"beyond a limit somewhere between the nodes: {', '.join(beyond)}")
        return Plan(self.curve, self.objective, worst, self.iterations, tuple(self.notes))

    def _begin(self) -> None:
        """The best of the coarse plans."""
        plans, failures = 0, []
        breaks = np.linspace(0.0, 1.0, self.settings.spans + 1)
        for number, guess in zip(range(1, self.settings.tries + 1), guesses(self.problem, breaks, self.settings.degree)):
            solution, curve, objective = self._solved(f"guess {number}", guess)
            if not solution.converged:
                failures.append((solution, curve))
                continue
            plans += 1
            if objective < self.objective:
                self.curve, self.objective = curve, objective
            if plans == self.settings.best_of:
                break
        if not plans:
            raise PlanningError(self._why(failures))

    def _refine(self) -> None:
        for number in range(1, self.settings.refinements + 1):
            before = self.objective
            if not self._improved(f"refinement {number}", self.curve.refined(grid.split(self.curve))):
                break
            if before - self.objective < self.settings.gain * abs(before):
                break

    def _keep_limits_between_nodes(self) -> None:
        extra = np.zeros(0)
        for number in range(1, TIGHTENINGS + 1):
            at = grid.looks(self.curve.breaks, grid.LOOKS)
            tops = [grid.peaks(at, values, self.settings.tolerance / 4.0)
                    for values in self._excess(self.curve, grid.LOOKS).values()]
            if not any(map(len, tops)):
                break
            extra = np.union1d(extra, np.concatenate(tops))
            if not self._improved(f"limits between nodes {number}", self.curve, extra):
                break

    def _improved(self, stage: str, guess: Curve, extra: np.ndarray = np.zeros(0)) -> bool:
        """Solve again from a curve that is nearly right; what fails is left out, and said."""
        solution, curve, objective = self._solved(stage, guess, extra, WARM)
        if solution.converged:
            self.curve, self.objective = curve, objective
        else:
            self.notes.append(f"{stage} left out: {_reason(solution)}")
        return solution.converged

    def _solved(self, stage: str, guess: Curve, extra: np.ndarray = np.zeros(0),
                options: dict[str, float] = {}) -> tuple[Solution, Curve, float]:
        nodes = grid.nodes(guess.breaks, guess.degree + 2, extra)
        program = Transcription(self.problem, guess.breaks, guess.degree, nodes)

        def watch(iteration: int, x: np.ndarray, violation: float) -> None:
            self.report(Progress(stage, iteration, float(x[-1]), len(guess.points), violation))

        lower, upper = np.full(program.size, -np.inf), np.full(program.size, np.inf)
        lower[-1], upper[-1] = self.problem.duration
        solution = minimise(program, program.variables(guess), (lower, upper),
                            {"max_iter": self.settings.iterations, **options}, watch)
        self.iterations += solution.iterations
        return solution, program.curve(solution.x), program.objective(solution.x)

    def _excess(self, curve: Curve, per_span: int) -> dict[str, np.ndarray]:
        """Relative excess (samples, k) of every limited quantity."""
        at = grid.looks(curve.breaks, per_span)
        y = curve.motion(at.span, at.u)
        return {quantity.name: quantity.excess(y) for quantity in self.problem.limited}

    def _why(self, failures: list[tuple[Solution, Curve]]) -> str:
        """What stands in the way of the attempt that came nearest."""
        found = []
        for solution, curve in failures:
            at = grid.looks(curve.breaks, grid.LOOKS)
            worst, text = self.settings.tolerance, _reason(solution)
            for quantity, excess in zip(self.problem.limited, self._excess(curve, grid.LOOKS).values()):
                if excess.max() > worst:
                    sample, k = np.unravel_index(excess.argmax(), excess.shape)
                    worst = excess[sample, k]
                    text = (f"{_reason(solution)}, and at best {quantity.name} of {quantity.labels[k]} is {100.0 * worst:.3g} % "
                            f"beyond its limit after {at.u[sample] * curve.duration:.3g} s of {curve.duration:.3g} s")
            found.append((worst, text, solution.status))
        _, text, status = min(found)
        return (f"no motion found, starting from {len(failures)} guesses: {text} (IPOPT: {status}). Wider limits, a longer "
                "duration, more tries, or a goal that is nearer may help")


def _reason(solution: Solution) -> str:
    return REASONS.get(solution.status, solution.status.replace("_", " ").lower())
