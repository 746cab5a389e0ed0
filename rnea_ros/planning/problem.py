"""What a motion is planned for: from where to where, inside which limits, at which price. In callables, no robot anywhere.

How a plan is made, and how its making is watched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError

ORDERS = 4  # a motion y (samples, ORDERS, n): q, qd, qdd, qddd
MOTION = ("position", "velocity", "acceleration", "jerk")
SHORTEST, LONGEST = 1e-3, 1e3  # s
SAME = 1e-9  # shares of a duration that are one instant


@dataclass(frozen=True, eq=False)
class EndState:
    """Where a motion starts or ends: q, qd, qdd (n,); NaN is left to the plan."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray

    @classmethod
    def free(cls, n: int) -> EndState:
        """All of it left to the plan."""
        return cls(*np.full((3, n), np.nan))

    @property
    def rests(self) -> bool:
        """At a known place, and nothing says that it moves."""
        return bool(np.isfinite(self.q).all() and not self.qd.any() and not np.nan_to_num(self.qdd).any())


class Ends(NamedTuple):
    """Linear conditions on the first and the last instant: first . y(0) + last . y(T) = value.

    first, last : (rows, ORDERS, n); value : (rows,)
    """

    first: np.ndarray
    last: np.ndarray
    value: np.ndarray

    def miss(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """(rows,) by how much they fail with y(0) and y(T) (ORDERS, n)."""
        return np.tensordot(self.first, first, 2) + np.tensordot(self.last, last, 2) - self.value


def none(n: int) -> Ends:
    nothing = np.zeros((0, ORDERS, n))
    return Ends(nothing, nothing, np.zeros(0))


def both(*ends: Ends) -> Ends:
    return Ends(*(np.concatenate(parts) for parts in zip(*ends)))


def held(state: EndState, last: bool) -> Ends:
    """The motion has that state at its first or its last instant."""
    y = np.stack((state.q, state.qd, state.qdd))
    order, joint = np.nonzero(np.isfinite(y))
    rows, n = len(order), y.shape[1]
    table = np.zeros((rows, ORDERS, n))
    table[np.arange(rows), order, joint] = 1.0
    nothing = np.zeros_like(table)
    return Ends(nothing, table, y[order, joint]) if last else Ends(table, nothing, y[order, joint])


def tied(order: int, matrix: np.ndarray, offset: np.ndarray) -> Ends:
    """y_order(T) = matrix y_order(0) + offset: a motion that continues as its own mirror image, for one."""
    first, last = np.zeros((2, len(offset), ORDERS, matrix.shape[1]))
    first[:, order], last[:, order] = -matrix, np.eye(*matrix.shape)
    return Ends(first, last, offset)


@dataclass(frozen=True, eq=False)
class Quantity:
    """Something that depends on the motion at one instant and may have limits: k numbers.

    labels       : (k,), for messages
    order        : of the highest derivative of q that it takes, 0 to 3
    value        : (q, .. order derivatives more, (samples, n) each) -> (samples, k)
    slope        : the same arguments -> order + 1 arrays (samples, k, n): d value / dq, d value / dqd, ..
    lower, upper : (k,); infinite: no limit; NaN: unknown, hence not enforced
    linear       : the slope is constant
    affine       : order from which on the derivatives of q enter linearly: torque is M(q) qdd + h(q, qd), hence 2
    windows      : (from, until) shares of the duration in which the limits hold, both included; none: always. As a term of
                   the cost it counts there alone
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

    @property
    def enforced(self) -> np.ndarray:
        """Numbers of the components that have a limit."""
        return np.flatnonzero(np.isfinite(self.lower) | np.isfinite(self.upper))

    @property
    def scale(self) -> np.ndarray:
        """(k,) what an excess is measured by: half the range, or the one limit."""
        lower, upper = (np.nan_to_num(limit, nan=0.0, posinf=0.0, neginf=0.0) for limit in (self.lower, self.upper))
        both = np.isfinite(self.lower) & np.isfinite(self.upper)
        size = np.where(both, (upper - lower) / 2.0, np.abs(upper + lower))
        return np.where(size > 0.0, size, 1.0)

    def values(self, y: np.ndarray) -> np.ndarray:
        """(samples, k) along a motion y."""
        return self.value(*np.swapaxes(y[:, :self.order + 1], 0, 1))

    def slopes(self, y: np.ndarray) -> np.ndarray:
        """(samples, k, ORDERS, n); zero for derivatives that it does not take."""
        tables = self.slope(*np.swapaxes(y[:, :self.order + 1], 0, 1))
        filled = np.zeros((len(y), len(self.labels), *y.shape[1:]))
        for r, table in enumerate(tables):
            filled[:, :, r] = table
        return filled

    def holds(self, u: np.ndarray) -> np.ndarray:
        """(samples,) whether u = t / T is in a window."""
        return np.any([(low - SAME <= u) & (u <= high + SAME) for low, high in self.windows or [(0.0, 1.0)]], axis=0)

    def excess(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        """(samples, k): by how much a limit is exceeded, relative to scale; negative inside, -inf where there is none."""
        values = self.values(y)
        excess = np.nan_to_num(np.fmax(values - self.upper, self.lower - values) / self.scale, nan=-np.inf)
        return np.where(self.holds(u)[:, None], excess, -np.inf)


def of_motion(order: int, labels: Sequence[str], lower: np.ndarray, upper: np.ndarray, name: str = "",
              windows: Sequence[tuple[float, float]] = ()) -> Quantity:
    """Position, velocity, acceleration or jerk itself as a quantity."""
    unit = np.eye(len(labels))

    def slope(*motion):
        return [np.broadcast_to(unit * (k == order), (len(motion[0]), *unit.shape)) for k in range(order + 1)]

    return Quantity(name or MOTION[order], labels, order, lambda *motion: motion[order], slope, lower, upper, linear=True,
                    windows=windows)


@dataclass(frozen=True, eq=False)
class Cost:
    """What is minimised: the integral over the motion of  time + sum_k effort_k value_k^2  (thesis 4.18: 1 - u and u).

    of   : the quantity whose squares are weighted by effort (k,); None if time alone counts
    more : (weights (k,), quantity): further squares. Below, u says where in the motion the samples are, see Nodes.inner
    """

    time: float = 1.0
    effort: np.ndarray = field(default_factory=lambda: np.zeros(0))
    of: Quantity | None = None
    more: Sequence[tuple[np.ndarray, Quantity]] = ()

    @property
    def weighted(self) -> bool:
        """Whether anything but time counts."""
        return self.of is not None or bool(self.more)

    def squares(self, u: np.ndarray) -> Iterator[tuple[np.ndarray, Quantity, np.ndarray]]:
        """(weights, quantity, samples that it counts at), term by term."""
        for weights, quantity in (*([] if self.of is None else [(self.effort, self.of)]), *self.more):
            yield weights, quantity, np.flatnonzero(quantity.holds(u))

    def rate(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        """(samples,) per second."""
        total = np.full(len(y), self.time, dtype=y.dtype)
        for weights, quantity, at in self.squares(u):
            total[at] += quantity.values(y[at]) ** 2 @ weights
        return total

    def slope(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        """(samples, ORDERS, n) of the rate."""
        total = np.zeros_like(y)
        for weights, quantity, at in self.squares(u):
            total[at] += square_slope(weights, quantity, y[at])
        return total


def square_slope(weights: np.ndarray, quantity: Quantity, y: np.ndarray) -> np.ndarray:
    """(samples, ORDERS, n) of the weighted sum of a quantity's squares."""
    return np.einsum("kc,kcrj->krj", 2.0 * weights * quantity.values(y), quantity.slopes(y))


@dataclass(frozen=True, eq=False)
class Problem:
    """The motion of least cost from start to goal inside all limits.

    duration : shortest and longest allowed [s]; equal where it is given
    coupling : what ties first and last instant beside start and goal
    box      : (lower, upper) (n,) each: bounds of the control points, which keep q inside too; equal: the coordinate is frozen
    """

    start: EndState
    goal: EndState
    quantities: Sequence[Quantity]
    cost: Cost = Cost()
    duration: tuple[float, float] = (SHORTEST, LONGEST)
    coupling: Ends | None = None
    box: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def n(self) -> int:
        return len(self.start.q)

    @property
    def ends(self) -> Ends:
        """All conditions on the first and the last instant."""
        return both(held(self.start, last=False), held(self.goal, last=True), self.coupling or none(self.n))

    @property
    def nothing_moves(self) -> bool:
        """Start and goal are one and the same state of rest, and nothing is asked for between them, no duration either."""
        same = np.array_equal(self.start.q, self.goal.q) and self.start.rests and self.goal.rests
        return same and self.duration[0] <= SHORTEST and not any(quantity.windows for quantity in self.limited)

    @property
    def limited(self) -> list[Quantity]:
        """The quantities that have a limit."""
        return [quantity for quantity in self.quantities if len(quantity.enforced)]

    def excess(self, y: np.ndarray, u: np.ndarray) -> list[np.ndarray]:
        """Of every quantity that has a limit, in that order: relative excess (samples, k) of a motion y at u."""
        return [quantity.excess(y, u) for quantity in self.limited]


@dataclass(frozen=True)
class Settings:
    """How a plan is made.

    degree      : of the splines: with 3 the torque is continuous, with 4 its rate too
    spans       : polynomial pieces to begin with
    refinements : how often spans are halved where the plan asks for it; ends when the objective gains less than `gain`
    gain        : relative
    tolerance   : excess over a limit that is let pass between the nodes, relative
    best_of     : plans from different starting guesses, of which the best is kept
    tries       : starting guesses before giving up
    iterations  : of the solver, for each of its calls
    gauss_newton: the solver's Hessian from first derivatives alone; for costs that are sums of squares
    damping     : added to the diagonal of the solver's Hessian (Levenberg, Marquardt): shorter steps where it is too flat
    optimality  : of the solver: what may be left of slopes at the optimum; None: its own, which is small
    solver      : options of IPOPT, by its names for them; they overrule the planner's own
    instants    : shares of the duration, 0 and 1 among them, at which limits are kept and the cost is summed (trapezoids);
                  knots stay as they are, and limits are kept where they are found exceeded, too. None: where the plan itself
                  asks for it. One that is there twice ends what came before and begins what comes after
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
        if self.instants is not None and not _rise_from_0_to_1(self.instants):
            raise InputError(f"instants are {self.instants!r:.60}; shares of the duration are needed that rise from 0 to 1")


def _rise_from_0_to_1(values: Sequence[float]) -> bool:
    return len(values) > 1 and values[0] == 0.0 and values[-1] == 1.0 and all(a <= b for a, b in pairwise(values))


class Smoothing(NamedTuple):
    """Search for the smoothest motion that takes little longer than the best one.

    tolerance : share of the best motion's duration by which the smoothest one may be longer
    cost      : what is least in the smoothest motion; time has no weight in it
    """

    tolerance: float
    cost: Cost


class SolverProgress(NamedTuple):
    """After each iteration of the solver. violation: of the worst constraint, relative to its limit."""

    stage: str
    iteration: int
    duration: float
    control_points: int
    violation: float


Report = Callable[[SolverProgress], None]
