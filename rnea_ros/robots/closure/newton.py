"""Newton's method on loop equations, and walks to far poses that never leave the branch on which they began."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...codegen.ir.expression import larger
from .inverses import MAX_CONDITION
from .units import Units

CLOSED = 1e-10  # rad or shares of the unit of length: a larger gap is not closed
ROUNDING = 1e-15  # a gap below this cannot be made smaller
STRIDE = 0.3  # rad or shares of the unit of length: the longest step that is taken at once,
CAUTION = 0.5  # or this share of the smallest singular value: another branch may be as near as that
SHORTEST = 1e-6  # of the way: a walk that has to step shorter has run into a wall
NOT_CLOSED, OUT_OF_REACH, SINGULAR, NOT_FOLLOWED = (  # reasons of a PoseError
    "guess is not closed", "out of reach", "singular", "motion that the legs do not allow")
ITERATIONS = 60
ALMOST = 3e-6  # gap before the last compiled step, whose error is of third order
STEPS = 6  # compiled steps of Newton's method
LONGEST = 0.3  # of the unit of length, or rad: first correction; a longer one may leave the branch
CONTRACTION = 0.2  # second correction by the first: Newton's method converges without leaving the branch
EXACT = 1e-9  # corrections below are rounding
PATIENCE = 8  # steps without coming closer: where there is no solution, Newton's method wanders about


class NewtonStep(NamedTuple):
    """NewtonStep of Newton's method at a pose, and the direction of a walk from there.

    correction : of the pose, by Newton's method
    slope      : of the pose along the walk, d x / d s
    gap        : of the equations; length: of the correction; both in units, 2-norms
    condition  : of the equations' Jacobian; margin: its smallest singular value
    """

    correction: np.ndarray
    slope: np.ndarray
    gap: float
    length: float
    condition: float
    margin: float


class NewtonSolution(NamedTuple):
    """A pose, and the step from there."""

    x: np.ndarray
    step: NewtonStep

    @property
    def closed(self) -> bool:
        return self.step.gap <= CLOSED


NOWHERE = NewtonStep(np.zeros(0), np.zeros(0), np.inf, 0.0, np.inf, 0.0)


def newton(step_at: Callable[[np.ndarray], NewtonStep], x: np.ndarray, units: Units) -> NewtonSolution:
    """Zero of the equations near x, or the closest that Gauss-Newton comes to it."""
    best, closest = NewtonSolution(x, NOWHERE), 0
    for k in range(ITERATIONS):
        if not np.isfinite(x).all():  # kernels in Python refuse sines of infinity
            break
        step = step_at(x)
        if not step.gap < np.inf:
            break
        settled = best.closed and step.gap >= 0.5 * best.step.gap  # rounding is all that is left
        if step.gap < best.step.gap:
            best, closest = NewtonSolution(x, step), k
        if settled or step.gap <= ROUNDING or k - closest > PATIENCE:
            break
        x = x + step.correction * (1.0 if step.length <= STRIDE else min(1.0, STRIDE / units.length(step.correction)))
    return best


def walk(solve_at: Callable[[float, np.ndarray], NewtonSolution], at: NewtonSolution, units: Units,
         distance: float = 0.0) -> tuple[np.ndarray, float]:
    """Follow the solution from s = 0 to s = 1 without leaving its branch; returns (x, how far it came).

    solve_at(s, guess) -> NewtonSolution; at : the solution at 0; distance: how far what is not in x moves on the whole way.
    Branches meet at singular poses. Near one, the smallest singular value measures how near: steps stay well below it, as the
    theorem of Newton and Kantorovich asks for, and shrink to nothing where the walk would have to pass through.
    """
    s = 0.0
    while s < 1.0:
        x, step = at
        stride = min(STRIDE, CAUTION * step.margin)
        h = stride / max(distance, units.length(step.slope), stride)
        while True:
            if h < SHORTEST:
                return x, s
            target = 1.0 if s + h > 1.0 - SHORTEST else s + h
            ahead = x + step.slope * (target - s)
            at = solve_at(target, ahead)
            if at.closed and at.step.condition <= MAX_CONDITION and units.length(at.x - ahead) <= 0.5 * stride:
                break
            h = 0.5 * h
        s = target
    return at.x, s


# ---------------------------------------------------------------------- for kernels, any scalar


def convergence_indicator(first: Any, second: Any) -> Any:
    """Return an indicator from the sizes of two corrections with one Jacobian: at most 1 where the method converges."""
    return larger(first * (1.0 / LONGEST), second / (first + EXACT) * (1.0 / CONTRACTION))


def largest(values: Any) -> Any:
    """Return the largest absolute value."""
    return maximum([abs(value) for value in values])


def maximum(values: Sequence[Any]) -> Any:
    """Return the largest value, 0 without any; all are at least 0."""
    found: Any = 0.0
    for value in values:
        found = larger(found, value) if not isinstance(found, float) or found != 0.0 else value
    return found
