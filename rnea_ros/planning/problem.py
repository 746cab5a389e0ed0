"""What a motion is planned for: from where to where, inside which limits, at which price. In callables, no robot anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import InputError, RneaError

MOTION = ("position", "velocity", "acceleration", "jerk")


class PlanningError(RneaError):
    """No motion was found; the message says what stands in the way."""


@dataclass(frozen=True, eq=False)
class State:
    """Where a motion starts or ends: q (n,) and qd (n,); qdd (n,), or None where it is left to the plan."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray | None = None

    @property
    def rests(self) -> bool:
        return not self.qd.any() and (self.qdd is None or not self.qdd.any())


@dataclass(frozen=True, eq=False)
class Quantity:
    """Something with limits that depends on the motion at one instant: k numbers.

    order        : of the highest derivative of q that it takes, 0 to 3
    value        : (q, .., order arguments more (samples, n)) -> (samples, k)
    slope        : the same arguments -> order + 1 arrays (samples, k, n), d value / dq, d value / dqd, ..
    lower, upper : (k,), infinite where nothing is enforced
    labels       : (k,), for messages
    linear       : the slope is constant
    """

    name: str
    labels: Sequence[str]
    order: int
    value: Callable[..., np.ndarray]
    slope: Callable[..., Sequence[np.ndarray]]
    lower: np.ndarray
    upper: np.ndarray
    linear: bool = False

    @property
    def enforced(self) -> np.ndarray:
        """Numbers of the components that have a limit."""
        return np.flatnonzero(np.isfinite(self.lower) | np.isfinite(self.upper))

    @property
    def scale(self) -> np.ndarray:
        """(k,) what an excess is measured by: half the range, or the one limit."""
        both = np.isfinite(self.lower) & np.isfinite(self.upper)
        one = np.where(np.isfinite(self.upper), self.upper, np.where(np.isfinite(self.lower), self.lower, 1.0))
        size = np.where(both, np.where(both, self.upper, 0.0) - np.where(both, self.lower, 0.0), 2.0 * np.abs(one)) / 2.0
        return np.where(size > 0.0, size, 1.0)

    def excess(self, values: np.ndarray) -> np.ndarray:
        """(samples, k): by how much a limit is exceeded, relative to scale; negative inside."""
        return np.maximum(values - self.upper, self.lower - values) / self.scale


def of_motion(order: int, labels: Sequence[str], lower: np.ndarray, upper: np.ndarray) -> Quantity:
    """Position, velocity, acceleration or jerk itself as a quantity."""
    n = len(labels)

    def slope(*motion):
        samples = len(motion[0])
        return [np.broadcast_to(np.eye(n) * (k == order), (samples, n, n)) for k in range(order + 1)]

    return Quantity(MOTION[order], labels, order, lambda *motion: motion[order], slope, lower, upper, linear=True)


@dataclass(frozen=True, eq=False)
class Cost:
    """What is minimised: integral over the motion of  time + sum_k effort_k value_k^2  (thesis 4.18: time 1 - u, effort u).

    of : the quantity whose squares are weighted by effort (k,); None if time alone counts
    """

    time: float = 1.0
    effort: np.ndarray = field(default_factory=lambda: np.zeros(0))
    of: Quantity | None = None


@dataclass(frozen=True, eq=False)
class Problem:
    """duration: shortest and longest allowed [s]; equal where it is given."""

    start: State
    goal: State
    quantities: Sequence[Quantity]
    cost: Cost = Cost()
    duration: tuple[float, float] = (1e-3, 1e3)

    @property
    def n(self) -> int:
        return len(self.start.q)


def check(problem: Problem) -> None:
    """Refuses what cannot be planned: InputError for arguments that make no sense, PlanningError for what limits forbid."""
    shortest, longest = problem.duration
    if not 0.0 < shortest <= longest < np.inf:
        raise InputError(f"duration is {problem.duration}; 0 < shortest <= longest < inf is needed [s]")
    for quantity in problem.quantities:
        for label, low, high in zip(quantity.labels, quantity.lower, quantity.upper, strict=True):
            if not low <= high:
                raise InputError(f"{quantity.name} limits of {label} are {low:g} to {high:g}; the lower one must not be above")
    cost = problem.cost
    weights = np.append(cost.effort, cost.time)
    if not (np.isfinite(weights).all() and (weights >= 0.0).all() and weights.any()):
        raise InputError(f"weights are {cost.time} for time and {cost.effort} for effort; none may be negative, all must be "
                         "finite, one must be above zero")
    if cost.time == 0.0 and shortest != longest:
        raise InputError("effort alone is least when the motion takes forever: weight time too, or give the duration")
    if cost.time > 0.0 and shortest != longest and not any(q.order and len(q.enforced) for q in problem.quantities):
        if not cost.effort.any():
            raise InputError("nothing limits how fast the motion can be: no velocity, acceleration, jerk, torque or torque rate "
                             "has a known limit; give one, or weight effort, or give the duration")
    for name, state in (("start", problem.start), ("goal", problem.goal)):
        _refuse_outside(name, state, problem.quantities)


def _refuse_outside(name: str, state: State, quantities: Sequence[Quantity]) -> None:
    """A start or a goal whose known part already exceeds a limit."""
    zero = np.zeros_like(state.q)
    resting = "" if not state.rests else " at rest"
    known = [state.q, state.qd] + ([zero, zero] if state.rests else [] if state.qdd is None else [state.qdd])
    for quantity in quantities:
        if quantity.order >= len(known):
            continue
        values = quantity.value(*(part[None] for part in known[:quantity.order + 1]))[0]
        excess = quantity.excess(values)
        for k in np.flatnonzero(excess > 1e-9):
            raise PlanningError(f"{name}: {quantity.name} of {quantity.labels[k]} is {values[k]:.6g} there{resting}, outside of "
                                f"its limits {quantity.lower[k]:.6g} to {quantity.upper[k]:.6g}; no motion can change that")
