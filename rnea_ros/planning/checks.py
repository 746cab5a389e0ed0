"""What can be said of a problem that is not solved: nonsense and the impossible are refused, what is unknown is told."""

from __future__ import annotations

import numpy as np

from ..errors import InputError, RneaError, some
from .bspline import Curve
from .grid import LOOKS, looks
from .problem import MOTION, ORDERS, EndState, Problem, Quantity

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
    _refuse_outside("start", problem.start, 0.0, problem.limited)
    _refuse_outside("goal", problem.goal, 1.0, problem.limited)
    _refuse_haste(problem)


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


def _refuse_outside(name: str, state: EndState, u: float, limited: list[Quantity]) -> None:
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
        if excess[k] <= TOLERANCE:
            continue
        how = "held still" if state.rests and quantity.order > 1 else "there"
        low, high = quantity.lower[k], quantity.upper[k]
        raise PlanningError(f"{name}: {quantity.name} of {quantity.labels[k]} is {quantity.values(y)[0, k]:.5g} {how}, "
                            f"outside its limits {low:.5g} to {high:.5g}; no motion can change that")


def _refuse_haste(problem: Problem) -> None:
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
        if least[k] > longest * (1.0 + TOLERANCE):
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
    at = looks(curve.breaks, LOOKS)
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


def standstill(problem: Problem, curve: Curve) -> str:
    """Words on where a curve passes places at which nobody can stand still: only swing can carry a motion over them."""
    at = looks(curve.breaks, LOOKS)
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
