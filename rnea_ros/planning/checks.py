"""What can be said of a problem before it is solved: nonsense and the impossible are refused, what is unknown is told."""

from __future__ import annotations

import numpy as np

from ..errors import InputError, RneaError
from .problem import ORDERS, Problem, Quantity, State

TOLERANCE = 1e-9  # relative, of limits at start and goal


class PlanningError(RneaError):
    """No motion was found; the message says what stands in the way."""


def check(problem: Problem) -> None:
    """InputError for a problem that makes no sense, PlanningError for one whose limits cannot be kept at start or goal."""
    shortest, longest = problem.duration
    if not 0.0 < shortest <= longest < np.inf:
        raise InputError(f"duration is {shortest:g} to {longest:g}; 0 < shortest <= longest < inf is needed [s]")
    for quantity in problem.quantities:
        for label, low, high in zip(quantity.labels, quantity.lower, quantity.upper, strict=True):
            if low > high:
                raise InputError(f"{quantity.name} limits of {label} are {low:g} to {high:g}; the lower one must not be above")
    _check_cost(problem)
    _refuse_outside("start", problem.start, problem.limited)
    _refuse_outside("goal", problem.goal, problem.limited)


def _check_cost(problem: Problem) -> None:
    cost, free = problem.cost, problem.duration[0] < problem.duration[1]
    weights = np.append(cost.effort, cost.time)
    if not (np.isfinite(weights).all() and (weights >= 0.0).all() and weights.any()):
        raise InputError(f"weights are {cost.time:g} for time and {cost.effort.tolist()} for effort; all must be finite, none "
                         "negative, one above zero")
    if free and not cost.time:
        raise InputError("time has no weight: a motion would take its effort down by taking forever; weight time, or give the "
                         "duration")
    if free and not cost.effort.any() and not any(quantity.order for quantity in problem.limited):
        raise InputError("nothing limits how fast the motion can be: no limit of velocity, acceleration, jerk, torque or torque "
                         "rate is known; give one, or weight effort, or give the duration")


def _refuse_outside(name: str, state: State, limited: list[Quantity]) -> None:
    """A start or goal that is beyond a limit by itself: at rest, under gravity alone."""
    known = 4 if state.rests else 2 if state.qdd is None else 3
    y = np.zeros((1, ORDERS, len(state.q)))
    y[0, 0], y[0, 1] = state.q, state.qd
    if state.qdd is not None:
        y[0, 2] = state.qdd
    for quantity in limited:
        beyond = np.flatnonzero(quantity.excess(y)[0] > TOLERANCE) if quantity.order < known else []
        for k in beyond:
            how = "held still" if state.rests and quantity.order > 1 else "there"
            raise PlanningError(f"{name}: {quantity.name} of {quantity.labels[k]} is {quantity.values(y)[0, k]:.5g} {how}, outside "
                                f"its limits {quantity.lower[k]:.5g} to {quantity.upper[k]:.5g}; no motion can change that")


def unknown_limits(problem: Problem) -> list[str]:
    """One sentence on the limits that are not enforced because nobody knows them."""
    found = []
    for quantity in problem.quantities:
        unknown = [label for label, low, high in zip(quantity.labels, quantity.lower, quantity.upper, strict=True)
                   if np.isnan(low) and np.isnan(high)]
        if unknown:
            found.append(quantity.name if len(unknown) == len(quantity.labels) else f"{quantity.name} of {', '.join(unknown)}")
    return [f"no limits known, hence not enforced: {'; '.join(found)}"] if found else []
