"""A motion between two states: the best that B-splines can do inside the limits.

First a coarse plan from a straight line; then finer knots where it asks for them; then nodes where it leaves its limits
between them, until it does not. Every solution is the start of the next. Optima are local: of several starting guesses that
lead to a plan, `best_of` asks for more than the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from . import bspline, grid
from .ipopt import Solution, minimise
from .problem import PlanningError, Problem, check, unknown_limits
from .transcription import Nodes, Transcription

WARM = {"mu_init": 1e-4}  # of IPOPT's barrier, where a solution is near
TIGHTENINGS = 6
REASONS = {
    "Infeasible_Problem_Detected": "no motion near the starting guess keeps all limits",
    "Maximum_Iterations_Exceeded": "the solver used up its iterations",
}


@dataclass(frozen=True)
class Settings:
    """How a plan is made.

    degree      : of the splines, 3 to 7: with 3 the torque is continuous, with 4 its rate too
    spans       : polynomial pieces to begin with
    refinements : how often spans are halved where the plan asks for it; it stops when the objective gains less than `gain`
    gain        : relative
    tolerance   : relative excess over a limit that is let pass between the nodes
    best_of     : plans from different starting guesses, of which the best is kept
    tries       : starting guesses before giving up
    iterations  : of the solver for each of its calls
    """

    degree: int = 3
    spans: int = 12
    refinements: int = 3
    gain: float = 1e-4
    tolerance: float = 1e-6
    best_of: int = 1
    tries: int = 4
    iterations: int = 500

    def __post_init__(self) -> None:
        allowed = {"degree": (3, 7), "spans": (2, 1000), "refinements": (0, 20), "best_of": (1, 1000), "tries": (1, 1000),
                   "iterations": (1, 100_000), "gain": (0.0, 1.0), "tolerance": (1e-7, 1.0)}
        for name, (low, high) in allowed.items():
            if not low <= getattr(self, name) <= high:
                raise InputError(f"{name} is {getattr(self, name)}; {low} to {high} is allowed")


class Progress(NamedTuple):
    """After each iteration of the solver. violation: largest of any limit, relative."""

    stage: str
    iteration: int
    duration: float
    control_points: int
    violation: float


Report = Callable[[Progress], None]


class Curve(NamedTuple):
    """breaks (spans + 1,) in [0, 1], control points (m, n), duration [s]."""

    breaks: np.ndarray
    points: np.ndarray
    duration: float


@dataclass(frozen=True, eq=False)
class Plan:
    """A planned motion.

    objective  : integral of the cost; the duration where time alone counts with weight 1
    excess     : name of each limited quantity -> by how much it exceeds a limit anywhere, relative, looked at much more densely
                 than planned; negative: the distance that is left
    iterations : of the solver, all its calls together
    notes      : what is worth knowing, one sentence each: limits that are unknown, steps that failed
    """

    curve: Curve
    degree: int
    objective: float
    excess: dict[str, float]
    iterations: int
    notes: tuple[str, ...] = ()

    @property
    def duration(self) -> float:
        return self.curve.duration

    def __call__(self, t: np.ndarray) -> np.ndarray:
        """q, qd, qdd, qddd (4, samples, n) at times t (samples,) between 0 and duration; where the jerk jumps, after the jump."""
        u = np.asarray(t, dtype=float) / (self.duration or 1.0)
        if u.ndim != 1 or not ((u >= 0.0) & (u <= 1.0 + 1e-12)).all():
            raise InputError(f"t must be times (samples,) between 0 and {self.duration:.6g} s")
        return motion(self.curve, self.degree, bspline.span_of(self.curve.breaks, u), np.minimum(u, 1.0))


def motion(curve: Curve, degree: int, span: np.ndarray, u: np.ndarray) -> np.ndarray:
    """(4, samples, n) at u = t / T, seen from the given spans."""
    points = curve.points[span[:, None] + np.arange(degree + 1)]
    rate = 1.0 / curve.duration if curve.duration else 0.0
    return np.einsum("kra,kaj->rkj", bspline.basis(curve.breaks, degree, span, u), points) * rate ** np.arange(4.0)[:, None, None]


def plan(problem: Problem, settings: Settings = Settings(), report: Report = lambda progress: None) -> Plan:
    """The motion of least cost. InputError: the problem makes no sense; PlanningError: no motion was found, and why."""
    check(problem)
    if problem.is_trivial:
        curve = Curve(np.array([0.0, 1.0]), np.tile(problem.start.q, (settings.degree + 1, 1)), 0.0)
        return Plan(curve, settings.degree, 0.0, {}, 0, (*unknown_limits(problem), "start and goal are the same: nothing moves"))
    return _Planner(problem, settings, report).plan()


class _Planner:
    def __init__(self, problem: Problem, settings: Settings, report: Report):
        self.problem, self.settings, self.report = problem, settings, report
        self.notes = list(unknown_limits(problem))
        self.iterations = 0

    def plan(self) -> Plan:
        curve, objective = self._first()
        curve, objective = self._refined(curve, objective)
        curve, objective = self._tightened(curve, objective)
        excess = {name: float(values.max()) for name, values in self._excess(curve, grid.looks(curve.breaks, 3 * grid.LOOKS + 1))}
        beyond = [f"{name} {100.0 * value:.2g} %" for name, value in excess.items() if value > self.settings.tolerance]
        if beyond:
            self.notes.append(f"beyond their limits somewhere between the nodes: {', '.join(beyond)}")
        return Plan(curve, self.settings.degree, objective, excess, self.iterations, tuple(self.notes))

    # ------------------------------------------------------------------ steps

    def _first(self) -> tuple[Curve, float]:
        """The best of the coarse plans."""
        found, failed = [], []
        breaks = np.linspace(0.0, 1.0, self.settings.spans + 1)
        for k, guess in zip(range(self.settings.tries), guesses(self.problem, breaks, self.settings.degree)):
            solution, curve, objective = self._solve(guess, f"plan {k + 1}", {})
            (found if solution.converged else failed).append((objective, solution, curve))
            if len(found) == self.settings.best_of:
                break
        if not found:
            raise PlanningError(self._why(failed))
        objective, _, curve = min(found, key=lambda one: one[0])
        return curve, objective

    def _refined(self, curve: Curve, objective: float) -> tuple[Curve, float]:
        for k in range(self.settings.refinements):
            finer = grid.split(curve.breaks, self.settings.degree, curve.points)
            points = bspline.refined(curve.breaks, self.settings.degree, curve.points, finer)
            solution, better, after = self._solve(Curve(finer, points, curve.duration), f"refinement {k + 1}", WARM)
            if not solution.converged:
                self.notes.append(f"refinement {k + 1} left out: {_reason(solution)}")
                break
            gained = objective - after
            curve, objective = better, after
            if abs(gained) < self.settings.gain * abs(objective):
                break
        return curve, objective

    def _tightened(self, curve: Curve, objective: float) -> tuple[Curve, float]:
        """Limits between the nodes: where they are exceeded, nodes are added."""
        extra = np.zeros(0)
        at = grid.looks(curve.breaks, grid.LOOKS + 1)
        for _ in range(TIGHTENINGS):
            tops = [grid.peaks(at, values, self.settings.tolerance) for _, values in self._excess(curve, at)]
            if not any(map(len, tops)):
                break
            extra = np.union1d(extra, np.concatenate(tops))
            solution, inside, after = self._solve(curve, "limits between nodes", WARM, extra)
            if not solution.converged:
                self.notes.append(f"limits between nodes: {_reason(solution)}")
                break
            curve, objective = inside, after
        return curve, objective

    # ------------------------------------------------------------------ tools

    def _solve(self, guess: Curve, stage: str, options: dict, extra: np.ndarray | None = None) -> tuple[Solution, Curve, float]:
        settings = self.settings
        nodes = grid.nodes(guess.breaks, settings.degree + 2, extra)
        program = Transcription(self.problem, guess.breaks, settings.degree, nodes)

        def watch(iteration: int, x: np.ndarray, violation: float) -> None:
            self.report(Progress(stage, iteration, float(x[-1]), program.m, violation))

        x = np.append(guess.points.ravel(), guess.duration)
        free = np.full(program.size - 1, np.inf)
        bounds = np.append(-free, self.problem.duration[0]), np.append(free, self.problem.duration[1])
        solution = minimise(program, x, bounds, {"max_iter": settings.iterations, **options}, watch)
        self.iterations += solution.iterations
        curve = Curve(guess.breaks, solution.x[:-1].reshape(program.m, -1), float(solution.x[-1]))
        return solution, curve, program.objective(solution.x)

    def _excess(self, curve: Curve, at: Nodes) -> Iterator[tuple[str, np.ndarray]]:
        """(name, relative excess (samples, k)) of everything that has limits."""
        y = motion(curve, self.settings.degree, at.span, at.u)
        for quantity in self.problem.quantities:
            if len(quantity.enforced):
                yield quantity.name, quantity.excess(quantity.value(*y[:quantity.order + 1]))

    def _why(self, failed) -> str:
        """What stands in the way of the attempt that came nearest."""
        best, worst = None, np.inf
        for _, solution, curve in failed:
            at = grid.looks(curve.breaks, grid.LOOKS + 1)
            for quantity in self.problem.quantities: ...
        return ""


def _reason(solution: Solution) -> str:
    return REASONS.get(solution.status, solution.status.replace("_", " ").lower())


def guesses(problem: Problem, breaks: np.ndarray, degree: int) -> Iterator[Curve]:
    """Straight from start to goal, then with more and more random detours; each as fast as its limits allow, roughly."""
    random, k = np.random.default_rng(0), 0
    u = bspline.averages(breaks, degree)[:, None]
    share = u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
    share[:3], share[-3:] = 0.0, 1.0
    line = problem.start.q + share * (problem.goal.q - problem.start.q)
    ...
