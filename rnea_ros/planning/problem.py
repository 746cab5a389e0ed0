"""Planning problem: boundary states, limited quantities and cost as functions of arrays, and the settings of the planner."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError

ORDERS = 4  # a motion y (samples, ORDERS, n) consists of q, qd, qdd, qddd
MOTION = ("position", "velocity", "acceleration", "jerk")
MIN_DURATION, MAX_DURATION = 1e-3, 1e3  # default bounds of the duration [s]
SAME_INSTANT = 1e-9  # shares of the duration closer than this are one instant


@dataclass(frozen=True, eq=False)
class EndState:
    """Boundary state of a motion: q, qd, qdd (n,); NaN is free."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray

    @classmethod
    def free(cls, n: int) -> EndState:
        """Return a state without conditions."""
        return cls(*np.full((3, n), np.nan))

    @property
    def is_at_rest(self) -> bool:
        """True if the position is known and no motion is prescribed."""
        return bool(np.isfinite(self.q).all() and not self.qd.any() and not np.nan_to_num(self.qdd).any())


class EndConditions(NamedTuple):
    """Linear conditions on the first and the last instant: first . y(0) + last . y(T) = value.

    first, last : (rows, ORDERS, n); value : (rows,)
    """

    first: np.ndarray
    last: np.ndarray
    value: np.ndarray

    def residual(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Return the residuals (rows,) for y(0) and y(T) (ORDERS, n)."""
        return np.tensordot(self.first, first, 2) + np.tensordot(self.last, last, 2) - self.value


def no_conditions(n: int) -> EndConditions:
    """Return conditions without rows."""
    nothing = np.zeros((0, ORDERS, n))
    return EndConditions(nothing, nothing, np.zeros(0))


def join_conditions(*ends: EndConditions) -> EndConditions:
    """Return all rows of several conditions."""
    return EndConditions(*(np.concatenate(parts) for parts in zip(*ends)))


def state_conditions(state: EndState, last: bool) -> EndConditions:
    """Return the conditions that the motion has a state at its first or last instant."""
    y = np.stack((state.q, state.qd, state.qdd))
    order, joint = np.nonzero(np.isfinite(y))
    rows, n = len(order), y.shape[1]
    table = np.zeros((rows, ORDERS, n))
    table[np.arange(rows), order, joint] = 1.0
    nothing = np.zeros_like(table)
    return EndConditions(nothing, table, y[order, joint]) if last else EndConditions(table, nothing, y[order, joint])


def coupled_ends(order: int, matrix: np.ndarray, offset: np.ndarray) -> EndConditions:
    """Return the conditions y_order(T) = matrix y_order(0) + offset, such as continuation as a mirror image."""
    first, last = np.zeros((2, len(offset), ORDERS, matrix.shape[1]))
    first[:, order], last[:, order] = -matrix, np.eye(*matrix.shape)
    return EndConditions(first, last, offset)


@dataclass(frozen=True, eq=False)
class Quantity:
    """Function of the motion at one instant that may have limits: k numbers.

    labels       : (k,) for messages
    order        : highest derivative of q in its arguments, 0 to 3
    value        : (q, .. order derivatives more, (samples, n) each) -> (samples, k)
    slope        : the same arguments -> order + 1 arrays (samples, k, n): d value / dq, d value / dqd, ..
    lower, upper : (k,) limits; infinite: none; NaN: unknown, hence not enforced
    linear       : whether the slope is constant
    affine       : order from which on derivatives of q enter linearly: torque is M(q) qdd + h(q, qd), hence 2
    lagrangian   : whether the values are k = n torques of a mechanism: M(q), the last slope, determines how they depend on
                   squares of qd (Christoffel symbols)
    windows      : (from, until) shares of the duration in which the limits hold, both included; none: always. A term of the
                   cost counts within them only
    """

    name: str
    labels: Sequence[str]
    order: int
    value: Callable[..., np.ndarray]
    slope: Callable[..., Sequence[np.ndarray]]
    lower: np.ndarray
    upper: np.ndarray
    linear: bool = False
    windows: Sequence[tuple[float, float]] = ()
    affine: int = ORDERS
    lagrangian: bool = False

    @property
    def enforced(self) -> np.ndarray:
        """Numbers of the components that have a limit."""
        return np.flatnonzero(np.isfinite(self.lower) | np.isfinite(self.upper))

    @property
    def scale(self) -> np.ndarray:
        """Scale of an excess (k,): half the range, or the single limit."""
        lower, upper = (np.nan_to_num(limit, nan=0.0, posinf=0.0, neginf=0.0) for limit in (self.lower, self.upper))
        both = np.isfinite(self.lower) & np.isfinite(self.upper)
        size = np.where(both, (upper - lower) / 2.0, np.abs(upper + lower))
        return np.where(size > 0.0, size, 1.0)

    def values(self, y: np.ndarray) -> np.ndarray:
        """Return the values (samples, k) along a motion y."""
        return self.value(*np.swapaxes(y[:, :self.order + 1], 0, 1))

    def slopes(self, y: np.ndarray) -> np.ndarray:
        """Return the derivatives (samples, k, ORDERS, n); zero for orders on which it does not depend."""
        tables = self.slope(*np.swapaxes(y[:, :self.order + 1], 0, 1))
        filled = np.zeros((len(y), len(self.labels), *y.shape[1:]))
        for r, table in enumerate(tables):
            filled[:, :, r] = table
        return filled

    def is_active(self, u: np.ndarray) -> np.ndarray:
        """Return whether u = t / T (samples,) is within a window."""
        windows = self.windows or [(0.0, 1.0)]
        return np.any([(low - SAME_INSTANT <= u) & (u <= high + SAME_INSTANT) for low, high in windows], axis=0)

    def excess(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return by how much limits are exceeded (samples, k), relative to scale; negative inside, -inf without a limit."""
        values = self.values(y)
        excess = np.nan_to_num(np.fmax(values - self.upper, self.lower - values) / self.scale, nan=-np.inf)
        return np.where(self.is_active(u)[:, None], excess, -np.inf)


def motion_quantity(order: int, labels: Sequence[str], lower: np.ndarray, upper: np.ndarray, name: str = "",
              windows: Sequence[tuple[float, float]] = ()) -> Quantity:
    """Return position, velocity, acceleration or jerk as a quantity."""
    unit = np.eye(len(labels))

    def slope(*motion):
        return [np.broadcast_to(unit * (k == order), (len(motion[0]), *unit.shape)) for k in range(order + 1)]

    return Quantity(name or MOTION[order], labels, order, lambda *motion: motion[order], slope, lower, upper, linear=True,
                    windows=windows)


@dataclass(frozen=True, eq=False)
class Cost:
    """Cost: integral over the motion of time + sum_k effort_k value_k^2 (thesis 4.18, with weights 1 - u and u).

    of   : quantity whose squares are weighted by effort (k,); None: time only
    more : (weights (k,), quantity): further squares. u: position of the samples in the motion, see PlanNodes.inner
    """

    time: float = 1.0
    effort: np.ndarray = field(default_factory=lambda: np.zeros(0))
    of: Quantity | None = None
    more: Sequence[tuple[np.ndarray, Quantity]] = ()

    @property
    def has_squares(self) -> bool:
        """True if the cost contains more than time."""
        return self.of is not None or bool(self.more)

    def squares(self, u: np.ndarray) -> Iterator[tuple[np.ndarray, Quantity, np.ndarray]]:
        """Yield (weights, quantity, samples at which it counts) of each term."""
        for weights, quantity in (*([] if self.of is None else [(self.effort, self.of)]), *self.more):
            yield weights, quantity, np.flatnonzero(quantity.is_active(u))

    def rate(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return the cost per second (samples,)."""
        total = np.full(len(y), self.time, dtype=y.dtype)
        for weights, quantity, at in self.squares(u):
            total[at] += quantity.values(y[at]) ** 2 @ weights
        return total

    def slope(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return the derivative of the rate (samples, ORDERS, n)."""
        total = np.zeros_like(y)
        for weights, quantity, at in self.squares(u):
            total[at] += square_slope(weights, quantity, y[at])
        return total


def square_slope(weights: np.ndarray, quantity: Quantity, y: np.ndarray) -> np.ndarray:
    """Return the derivative (samples, ORDERS, n) of the weighted sum of a quantity's squares."""
    return np.einsum("kc,kcrj->krj", 2.0 * weights * quantity.values(y), quantity.slopes(y))


@dataclass(frozen=True, eq=False)
class PlanningProblem:
    """Motion of least cost from start to goal within all limits.

    duration : shortest and longest allowed [s]; equal if prescribed
    coupling : further conditions on the first and last instant
    box      : (lower, upper) (n,) each: bounds of the control points, which bound q too; equal: the coordinate is frozen
    """

    start: EndState
    goal: EndState
    quantities: Sequence[Quantity]
    cost: Cost = Cost()
    duration: tuple[float, float] = (MIN_DURATION, MAX_DURATION)
    coupling: EndConditions | None = None
    box: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return len(self.start.q)

    @property
    def ends(self) -> EndConditions:
        """All conditions on the first and the last instant."""
        return join_conditions(state_conditions(self.start, last=False), state_conditions(self.goal, last=True),
                               self.coupling or no_conditions(self.n))

    @property
    def is_trivial(self) -> bool:
        """True if start and goal are the same state of rest, without windows or a prescribed duration between them."""
        same = np.array_equal(self.start.q, self.goal.q) and self.start.is_at_rest and self.goal.is_at_rest
        return same and self.duration[0] <= MIN_DURATION and not any(quantity.windows for quantity in self.limited)

    @property
    def limited(self) -> list[Quantity]:
        """Quantities that have a limit."""
        return [quantity for quantity in self.quantities if len(quantity.enforced)]

    def excess(self, y: np.ndarray, u: np.ndarray) -> list[np.ndarray]:
        """Return the relative excess (samples, k) of a motion y at u over each limited quantity."""
        return [quantity.excess(y, u) for quantity in self.limited]


@dataclass(frozen=True)
class PlanSettings:
    """Settings of the planner.

    degree      : of the splines: with 3 the torque is continuous, with 4 its rate too
    spans       : initial number of polynomial pieces
    refinements : largest number of refinements of the knots; ends when the objective gains less than `gain`
    gain        : relative
    tolerance   : largest excess over a limit between the nodes, relative
    best_of     : number of plans from different initial guesses, of which the best is kept
    tries       : initial guesses before giving up
    iterations  : largest number of iterations of each solver call
    gauss_newton: Hessian from first derivatives only; for costs that are sums of squares
    damping     : added to the diagonal of the Hessian (Levenberg, Marquardt): shorter steps where it is nearly singular
    optimality  : optimality tolerance of the solver; None: its default
    solver      : options of IPOPT by their names; they override the planner's
    instants    : shares of the duration, including 0 and 1, at which limits are enforced and the cost is summed (trapezoidal
                  rule); knots are unchanged, and limits are also enforced where they are found exceeded. None: chosen by the
                  planner. An instant that occurs twice ends the preceding interval and begins the next
    """

    degree: int = 3
    spans: int = 12
    refinements: int = 8
    gain: float = 3e-4
    tolerance: float = 1e-6
    best_of: int = 1
    tries: int = 4
    iterations: int = 500
    gauss_newton: bool = False
    damping: float = 0.0
    optimality: float | None = None
    solver: Mapping[str, Any] = field(default_factory=dict)
    instants: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        allowed = {"degree": (3, 7), "spans": (3, 1000), "refinements": (0, 20), "gain": (0.0, 1.0), "tolerance": (1e-7, 1.0),
                   "best_of": (1, 1000), "tries": (1, 1000), "iterations": (1, 100_000), "damping": (0.0, 1e6)}
        for name, (low, high) in allowed.items():
            if not low <= getattr(self, name) <= high:
                raise InputError(f"{name} is {getattr(self, name)}; {low} to {high} is allowed")
        if self.optimality is not None and not 1e-9 <= self.optimality <= 1.0:
            raise InputError(f"optimality is {self.optimality}; 1e-9 to 1 is allowed, or None")
        if self.instants is not None and not _increases_from_0_to_1(self.instants):
            raise InputError(f"instants are {self.instants!r:.60}; shares of the duration are needed that rise from 0 to 1")


def _increases_from_0_to_1(values: Sequence[float]) -> bool:
    return len(values) > 1 and values[0] == 0.0 and values[-1] == 1.0 and all(a <= b for a, b in pairwise(values))


class SmoothingSettings(NamedTuple):
    """Search for the smoothest motion that takes little longer than the best one.

    tolerance : largest additional duration, relative to the best motion
    cost      : cost that the smoothest motion minimizes; time has no weight in it
    """

    tolerance: float
    cost: Cost


class SolverProgress(NamedTuple):
    """Progress after an iteration of the solver. violation: of the worst constraint, relative to its limit."""

    stage: str
    iteration: int
    duration: float
    control_points: int
    violation: float


Report = Callable[[SolverProgress], None]
