"""Interior-point method for the fastest time scaling of a law; time_optimal.py says why y = k^2 is the unknown.

Minimize the integral of 1 / sqrt y - mu sum log (1 - value^2) over a cubic spline y(sigma), for mu -> 0, where the values are
those of the constraints at the knots and at two points between. Newton's matrix is that of Gauss and Newton for the
constraints and the exact one for the time: positive definite, with a band of four. Its system is solved by a Riccati
recursion over the intervals, `riccati_backward` and `riccati_forward`: the minimum of

    sum over intervals [ g'd + d'H d / 2 + q z + w z^2 / 2 ],   z = z before + L d

where d are the changes of an interval's four coefficients and z is the change of the delay at its end. What comes after an
interval is a quadratic function V of its last three coefficients and of z; the backward pass substitutes z, adds the
interval's own terms, and eliminates the fourth coefficient. Work is linear in the number of intervals.

A single step length would be set by the nearest limit of the whole path, and a path of a minute has thousands. Far apart
intervals hardly depend on each other, so on long grids without a schedule step lengths vary along the path: `local_lengths`.

With a schedule, the motion must not be anywhere before its time, and what is minimized is its delay at the end and, a
little, on the way. Every t(sigma) depends on all y before: the delay at each knot is a further unknown.

`evaluate_constraints`, `assemble_kkt` and the two passes are written for any scalar and compiled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cache, partial, reduce
from operator import mul
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..codegen import kernel
from ..codegen.kernel import Tiles
from ..codegen.program import larger
from .constraints import ConstraintGroup
from .sample_kernels import SampleFunction

N_LOCAL = 4  # coefficients of the spline that act in an interval
LOBATTO_POINTS = np.array([0.0, 0.5 - 0.1 * 5.0**0.5, 0.5 + 0.1 * 5.0**0.5, 1.0])  # both ends, exact to degree five
LOBATTO_WEIGHTS = np.array([1.0, 5.0, 5.0, 1.0]) / 12.0
N_OWN = len(LOBATTO_POINTS) - 1  # points of an interval; its last one is the first of the next interval
EARLY_TOL_S = 1e-4  # by which a motion on schedule may be ahead of it
DELAY_WEIGHT = 0.1  # of the mean delay against that at the end
MU_FACTOR = 0.27  # by which mu decreases
MAX_NEWTON_STEPS = 30  # for each mu
MIN_STEP_LENGTH = 1e-6
FRACTION_TO_BOUNDARY = 0.95  # of the way to a limit, or to y = 0, in one step (Wächter and Biegler 2006)
CENTRALITY, CENTRALITY_ON_SCHEDULE = 0.1, 0.01  # share of the gap that a step could still gain at a center
LOCAL_FRACTION = 0.9  # of that way in a step with local lengths, whose variation adds to what it changes
LOCAL_RADIUS = 16  # intervals around a limit in which a local step length is reduced
MIN_LOCAL_INTERVALS = 300  # of a grid on which the step length varies
MAX_LOCAL_TRIALS = 3  # of one step
UNKNOWN_LENGTH = 0.1  # where y is negative after a full step
MAX_FIRST_VALUE = 0.999  # of a constraint at the beginning
MIN_SLACK = 1e-3  # slack that is assumed where an initial guess violates a constraint
DEGENERATE_SHARE = 1e-3  # of the largest y of an interval: the least allowed between its points
MIN_RELATIVE_DECREASE = 2e-6  # of the merit that is worth a step
FIXED_VARIABLE_PENALTY = 1e12  # times the largest curvature
MULTIPLIER_CLIP = 1e3  # bound on a multiplier over its value at the center, and on its inverse
MIN_MULTIPLIER_SHARE = 0.01  # of a multiplier that remains after a step
# index of the entries of symmetric matrices in the list of their upper triangle; three rows
SYMMETRIC_INDEX = {3: [[0, 1, 2], [1, 3, 4], [2, 4, 5]], 4: [[0, 1, 2], [1, 4, 5], [2, 5, 7]]}
PAIRS = [(a, b) for a in range(N_LOCAL) for b in range(a, N_LOCAL)]  # upper triangle, in the order of its ten entries

Groups = tuple[tuple[tuple[int, ...], int], ...]  # columns of the basis with coefficients, and number of constraints


# ------------------------------------------------------------------------------------------------------------------ spline


class CubicSpline:
    """Cubic spline with simple knots (intervals + 1,), twice continuously differentiable: intervals + 3 coefficients.

    The coefficients are those of B-splines, four of which act in an interval.
    """

    def __init__(self, knots: np.ndarray):
        self.knots, self.steps = knots, np.diff(knots)
        self.intervals = len(self.steps)
        h = self.steps
        extended = np.concatenate((knots[0] - h[0] * np.array([2.0, 1.0]), knots, knots[-1] + h[-1] * np.array([1.0, 2.0])))
        t = sliding_window_view(extended, 6)[:, :, None]  # the knots that act on each interval
        shares = np.arange(4) / 3.0
        x = t[:, 2] + h[:, None] * shares
        bases = [np.ones_like(x)]
        for degree in range(1, 4):  # de Boor's recursion
            saved, bases_below = np.zeros_like(x), bases
            bases = []
            for r, below in enumerate(bases_below):
                right, left = t[:, 3 + r], t[:, 3 + r - degree]
                part = below / (right - left)
                bases.append(saved + (right - x) * part)
                saved = (x - left) * part
            bases.append(saved)
        powers = np.linalg.inv(shares[:, None] ** np.arange(4))
        self._polynomials = powers @ np.stack(bases, axis=-1)  # (intervals, powers of the share, coefficients)

    def basis_at_shares(self, x: np.ndarray) -> np.ndarray:
        """Return y, y', y'' by the four local coefficients (intervals, samples, 3, 4), at shares x of every interval."""
        return _power_derivatives(x) @ self._polynomials[:, None] / self.steps[:, None, None, None] ** np.arange(3.0)[:, None]

    def basis_at(self, sigma: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the interval of each sigma (samples,), and y, y', y'' by its local coefficients (samples, 3, 4)."""
        k = self._interval(sigma)
        h = self.steps[k]
        bases = _power_derivatives((sigma - self.knots[k]) / h) @ self._polynomials[k]
        return k, bases / h[:, None, None] ** np.arange(3.0)[:, None]

    def derivatives(self, c: np.ndarray, sigma: np.ndarray) -> np.ndarray:
        """Return y, y', y'' (samples, 3) at sigma."""
        x, h, (y0, y1, y2, y3) = self._local_cubics(c, sigma)
        return np.stack((((y3 * x + y2) * x + y1) * x + y0, ((3.0 * y3 * x + 2.0 * y2) * x + y1) / h,
                         (6.0 * y3 * x + 2.0 * y2) / (h * h)), axis=1)

    def values(self, c: np.ndarray, sigma: np.ndarray) -> np.ndarray:
        """Return y (samples,) at sigma."""
        x, _, (y0, y1, y2, y3) = self._local_cubics(c, sigma)
        return ((y3 * x + y2) * x + y1) * x + y0

    def _local_cubics(self, c: np.ndarray, sigma: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the share of its interval before each sigma, the interval's length, y by powers (4, samples) of the share."""
        k = self._interval(sigma)
        return (sigma - self.knots[k]) / self.steps[k], self.steps[k], self._powers(c)[:, k]

    def _interval(self, sigma: np.ndarray) -> np.ndarray:
        return np.clip(np.searchsorted(self.knots, sigma, side="right") - 1, 0, self.intervals - 1)

    def _powers(self, c: np.ndarray) -> np.ndarray:
        """Return y by the powers of the share of each interval (4, intervals)."""
        return np.einsum("ipa,ia->pi", self._polynomials, sliding_window_view(c, 4))

    def interior_minima(self, c: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Return the least y inside of these intervals (numbers,), where it has a minimum there, else y at its middle."""
        y0, y1, y2, y3 = np.einsum("ipa,ia->pi", self._polynomials[numbers], c[numbers[:, None] + np.arange(N_LOCAL)])
        discriminant = y2 * y2 - 3.0 * y1 * y3
        q = np.abs(y2) + np.sqrt(np.maximum(discriminant, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):  # of the two forms of the root the one without cancellation
            x = np.where(y2 > 0.0, -y1 / q, q / (3.0 * y3))
        x = np.where((discriminant > 0.0) & (x > 0.0) & (x < 1.0), x, 0.5)
        return ((y3 * x + y2) * x + y1) * x + y0

    def refined(self, c: np.ndarray) -> tuple[CubicSpline, np.ndarray]:
        """Return the same function, of a uniform spline, on intervals of half the length, and its coefficients."""
        finer = np.empty(2 * len(c) - 3)
        finer[0::2] = 0.5 * (c[:-1] + c[1:])
        finer[1::2] = (c[:-2] + 6.0 * c[1:-1] + c[2:]) / 8.0
        return CubicSpline(np.linspace(self.knots[0], self.knots[-1], 2 * self.intervals + 1)), finer


def _power_derivatives(x: np.ndarray) -> np.ndarray:
    """Return 1, x, x^2, x^3 and their first two derivatives (samples, 3, 4)."""
    o, i = np.zeros_like(x), np.ones_like(x)
    rows = ((i, x, x**2, x**3), (o, i, 2.0 * x, 3.0 * x**2), (o, o, 2.0 * i, 6.0 * x))
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


# -------------------------------------------------------------------------------------------------------- kernels at points


def evaluate_constraints(groups: Groups, c: Any, basis: Any, rows: Any, before: Any) -> tuple[Any, ...]:
    """Evaluate all constraints at one point.

    Returns their values; and 1 / sqrt y, the product of all 1 - value^2, the largest |value|, and the largest share by which a
    slack has decreased since the values `before`. rows: coefficients by group, by column, by constraint.
    """
    motion = _spline_values(c, basis)
    powers = _basis_of_rate(*motion)
    values = [sum(r * powers[p] for p, r in row) for row in _constraint_rows(groups, rows)]
    decreases = [(new - old) * part for new, old in zip(values, before) for part in _inverse_slacks(old)]
    signed = [decrease * sign for decrease, sign in zip(decreases, (1.0, -1.0) * len(values))]
    return (values, 1.0 / np.sqrt(motion[0]), reduce(mul, [1.0 - value * value for value in values]),
            reduce(larger, map(abs, values)), reduce(larger, signed))


def assemble_kkt(groups: Groups, c: Any, basis: Any, rows: Any, weight: Any, values: Any, before: Any, multipliers: Any,
                 step: Any, per_length: Any) -> tuple[list, ...]:
    """Return the terms of one point in Newton's matrix (10, upper triangle) and in the gradient (4) of the merit.

    Also return the updated multipliers of all upper limits and all lower ones. Second derivatives of the constraints are
    neglected (Gauss-Newton).

    weight     : of 1 / sqrt y in the cost
    step       : mu; then of the step that led here from the values `before` mu, and 1, or 0 where there was none
    per_length : 1 / length of that step
    """
    (y, *_), slopes, mu = _spline_values(c, basis), _basis_derivatives(*_spline_values(c, basis)), step[0]
    towards = step[1], per_length[0], step[2]
    per_y = weight[0] / (y * np.sqrt(y))
    first, second = [-0.5 * per_y, 0.0, 0.0], [[0.0] * 3 for _ in range(3)]  # derivatives of the merit by y, y', y''
    second[0][0] = 0.75 * per_y / y
    updated: list[list] = [[], []]
    for number, (row, value, old) in enumerate(zip(_constraint_rows(groups, rows), values, before)):
        force, curvature = 0.0, 0.0
        for side, (sign, inverse, inverse_old) in enumerate(zip((1.0, -1.0), _inverse_slacks(value), _inverse_slacks(old))):
            z = multipliers[side * len(values) + number]
            z = multiplier_step(z, 1.0 - sign * value, inverse, 1.0 - sign * old, inverse_old, towards)
            force, curvature = force + sign * mu * inverse, curvature + z * inverse
            updated[side].append(z)
        slope = [sum(r * by[p] for p, r in row) for by in slopes]
        for i in range(3):
            first[i] = first[i] + force * slope[i]
            for j in range(i, 3):
                second[i][j] = second[i][j] + curvature * slope[i] * slope[j]
    B = [[basis[N_LOCAL * i + a] for a in range(N_LOCAL)] for i in range(3)]
    half = [[sum(second[min(i, j)][max(i, j)] * B[j][a] for j in range(3)) for a in range(N_LOCAL)] for i in range(3)]
    gradient = [sum(B[i][a] * first[i] for i in range(3)) for a in range(N_LOCAL)]
    return [sum(B[i][a] * half[i][b] for i in range(3)) for a, b in PAIRS] + gradient, [*updated[0], *updated[1]]


def multiplier_step(z: Any, slack: Any, inverse: Any, before: Any, inverse_before: Any, step: Any) -> Any:
    """Return the multiplier of a slack after Newton's step towards z slack = mu.

    The multiplier keeps a share of its value, and stays within a factor of the value at the center.

    inverse : 1 / slack
    step    : mu, 1 / length of the step that the slack has gone, and 0 to leave the multiplier as it is
    """
    mu, per_length, any_ = step
    change = mu * inverse_before - z * (1.0 + (slack - before) * inverse_before * per_length)
    z = larger(z + any_ * change, MIN_MULTIPLIER_SHARE * z)
    return -larger(-larger(z, mu / MULTIPLIER_CLIP * inverse), -MULTIPLIER_CLIP * mu * inverse)


def _inverse_slacks(value: Any) -> tuple[Any, Any]:
    """Return 1 / slack of both limits of a value, by one division."""
    both = 1.0 / (1.0 - value * value)
    return (1.0 + value) * both, (1.0 - value) * both


def _spline_values(c: Any, basis: Any) -> list[Any]:
    """Return y, y', y''."""
    return [sum(basis[N_LOCAL * k + a] * c[a] for a in range(N_LOCAL)) for k in range(3)]


def _basis_of_rate(y: Any, y1: Any, y2: Any) -> list[Any]:
    """Return the basis of constraints.py for k = sqrt y, kappa = y'/2, w = k y''/2."""
    k = np.sqrt(y)
    return [1.0, k, y, 0.5 * y1, y * k, 0.5 * k * y1, 0.5 * k * y2]


def _basis_derivatives(y: Any, y1: Any, y2: Any) -> list[list[Any]]:
    """Return the derivatives of that basis by y, y', y''."""
    k = np.sqrt(y)
    return [[0.0, 0.5 / k, 1.0, 0.0, 1.5 * k, 0.25 * y1 / k, 0.25 * y2 / k], [0.0, 0.0, 0.0, 0.5, 0.0, 0.5 * k, 0.0],
            [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5 * k]]


def _constraint_rows(groups: Groups, rows: Any) -> Iterator[list[tuple[int, Any]]]:
    """Yield (column, coefficient) pairs of each constraint."""
    start = 0
    for columns, count in groups:
        for number in range(count):
            yield [(column, rows[start + count * i + number]) for i, column in enumerate(columns)]
        start += count * len(columns)


@cache
def point_kernels(groups: Groups) -> tuple[SampleFunction, SampleFunction]:
    """Return `evaluate_constraints` and `assemble_kkt` for many points."""
    count = sum(count for _, count in groups)
    inputs = {"c": N_LOCAL, "basis": 3 * N_LOCAL, "rows": sum(len(columns) * count for columns, count in groups)}
    more = {"weight": 1, "values": count, "before": count, "multipliers": 2 * count, "step": 3, "per_length": 1}
    return (SampleFunction(partial(evaluate_constraints, groups), {**inputs, "before": count}),
            SampleFunction(partial(assemble_kkt, groups), {**inputs, **more}))


# --------------------------------------------------------------------------------------------------------- Riccati recursion


def riccati_backward(state: Any, H: Any, g: Any, L: Any = None, w: Any = None, q: Any = None) -> tuple[list, ...]:
    """Eliminate the fourth coefficient of an interval.

    state : V of the interval behind: its matrix by the upper triangle, its gradient

    Returns the factors by which the fourth coefficient follows from the forward state, its constant term, and the state for
    the interval before.
    """
    size = N_LOCAL if L is None else N_LOCAL + 1
    indices = [1, 2, 3] if L is None else [1, 2, 3, 4]
    W, b = [[0.0] * size for _ in range(size)], [0.0] * size
    numbers = iter(state)
    for n, i in enumerate(indices):
        for j in indices[n:]:
            W[i][j] = W[j][i] = next(numbers)
    for i in indices:
        b[i] = next(numbers)
    if L is not None:
        W[4][4], b[4] = W[4][4] + w[0], b[4] + q[0]
        for i in range(N_LOCAL):  # z = z before + L d: first the columns, then the rows
            b[i] = b[i] + L[i] * b[4]
        for m in range(size):
            for i in range(N_LOCAL):
                W[m][i] = W[m][i] + W[m][4] * L[i]
        for m in range(size):
            for i in range(N_LOCAL):
                W[i][m] = W[i][m] + L[i] * W[4][m]
    for (i, j), h in zip(PAIRS, H):
        W[i][j] = W[i][j] + h
        W[j][i] = W[i][j]
    b = [b[i] + g[i] if i < N_LOCAL else b[i] for i in range(size)]
    kept = [0, 1, 2] if L is None else [0, 1, 2, 4]
    inverse = 1.0 / W[3][3]
    factors, rest = [W[i][3] * inverse for i in kept], b[3] * inverse
    matrix = [W[i][j] - W[i][3] * factors[kept.index(j)] for n, i in enumerate(kept) for j in kept[n:]]
    return factors, [rest], [*matrix, *(b[i] - W[i][3] * rest for i in kept)]


def riccati_forward(state: Any, factors: Any, rest: Any, L: Any = None) -> tuple[list]:
    """Return the forward state of the next interval.

    state : changes of the first three coefficients of an interval, and z before
    """
    last = -rest[0]
    for number, factor in zip(state, factors):
        last = last - factor * number
    if L is None:
        return ([state[1], state[2], last],)
    change = sum(l * d for l, d in zip(L, [*state[:3], last]))
    return ([state[1], state[2], last, state[3] + change],)


@cache
def riccati_kernels(scheduled: bool) -> tuple[kernel.Kernel, kernel.Kernel]:
    """Return the backward and the forward pass as recurrences."""
    backend, size = kernel.available("llvm"), 4 if scheduled else 3
    delay = {"L": N_LOCAL} if scheduled else {}
    quadratic = {"state": size * (size + 1) // 2 + size, "H": len(PAIRS), "g": N_LOCAL, **delay}
    return (kernel.build(riccati_backward, {**quadratic, **({"w": 1, "q": 1} if scheduled else {})}, backend),
            kernel.build(riccati_forward, {"state": size, "factors": size, "rest": 1, **delay}, backend))


def solve_newton(H: np.ndarray, g: np.ndarray, fixed: tuple[bool, bool], L: np.ndarray | None = None,
                 w: np.ndarray | None = None, q: np.ndarray | None = None) -> np.ndarray:
    """Return the changes (intervals + 3,) of all coefficients, from H (intervals, 10), g, L (intervals, 4), w, q (intervals,).

    fixed: whether the first three coefficients are fixed, and the last three
    """
    backward, forward = riccati_kernels(L is not None)
    size = 3 if L is None else 4
    states = (size * (size + 1) // 2 + size, size)
    given = [H, g, *(x.reshape(len(H), -1) for x in (L, w, q) if x is not None)]
    rows = np.zeros((len(H), states[0] + sum(block.shape[1] for block in given)))
    np.concatenate([block[::-1] for block in given], axis=1, out=rows[:, states[0]:])
    if fixed[1]:  # V behind the last interval penalizes any change
        rows[0, [0, size, 2 * size - 1]] = FIXED_VARIABLE_PENALTY * H.max()
    found = backward.sweep(rows, states[0])
    state = np.zeros((len(H), size))
    if not fixed[0]:
        V = found[-1, size + 1:]
        # before the first interval there is no delay: minimize V over the three coefficients alone
        state[0, :3] = np.linalg.solve(V[SYMMETRIC_INDEX[size]], -V[-size:][:3])
    start = state[0, :3].copy()
    rows = np.concatenate([state, found[::-1, :size + 1]] + ([] if L is None else [L]), axis=1)
    return np.concatenate((start, forward.sweep(rows, size)[:, 2]))


# ------------------------------------------------------------------------------------------------------------------ solver


class SplineIterate(NamedTuple):
    """Iterate with coefficients c.

    values   : (constraints) values of the constraints at all points
    delay    : (intervals,) slacks of the schedule, EARLY_TOL_S added
    cost     : inf where c is not feasible
    logs     : sum of the logarithms of all slacks
    largest  : (points,) largest magnitude of a value; NaN where y is negative
    decrease : (points,) largest share by which a slack has decreased since an iterate before; one more with a schedule
    """

    c: np.ndarray
    values: Tiles
    delay: np.ndarray
    cost: float
    logs: float
    largest: np.ndarray
    decrease: np.ndarray

    @property
    def is_feasible(self) -> bool:
        """True if all constraints hold at their points."""
        return bool(np.isfinite(self.cost))

    def merit(self, mu: float) -> float:
        return self.cost - mu * self.logs


class _Step(NamedTuple):
    """Step that the multipliers have still to follow: its start, its mu, 1 / its length; and 0 where there was none.

    per_length : number, or (points,) for a step with local lengths
    """

    start: SplineIterate
    mu: float
    per_length: Any
    any: float

    def blocks(self, mu: float) -> list[np.ndarray]:
        """Return the inputs `step` and `per_length` of `assemble_kkt`."""
        return [np.array([mu, self.mu, self.any]), np.reshape(self.per_length, (-1, 1) if np.ndim(self.per_length) else 1)]


def local_lengths(largest: np.ndarray, radius: int) -> np.ndarray:
    """Return step lengths of coefficients that vary smoothly and are nowhere above the largest (coefficients,) allowed ones.

    Least lengths as far as `radius` coefficients around, then the means of these over half as far, twice: all that a result is
    made of is within reach of its coefficient. Second differences are of order 1 / radius^2, so that y'' hardly changes.
    """
    width, span, least = 2 * radius + 1, 1, _padded(largest, radius, radius, np.inf, np.inf)
    while 2 * span <= width:  # least of `span` lengths from each on
        least, span = np.minimum(least[:-span], least[span:]), 2 * span
    rest = width - span
    least = np.minimum(least[:len(least) - rest], least[rest:])
    for half in (radius // 2, radius - radius // 2):
        sums = np.cumsum(_padded(least, half + 1, half, least[0], least[-1]))
        least = (sums[2 * half + 1:] - sums[:-2 * half - 1]) / (2 * half + 1)
    return least


def _padded(values: np.ndarray, before: int, behind: int, first: float, last: float) -> np.ndarray:
    """Return values with so many numbers `first` before and `last` behind; np.pad takes longer than all else here."""
    found = np.empty(before + len(values) + behind)
    found[:before], found[before:before + len(values)], found[before + len(values):] = first, values, last
    return found


class InteriorPointSolver(ABC):
    """Primal-dual interior-point solver for the coefficients of a spline, with constraints set by `constrain`.

    fixed : whether the first three coefficients are fixed, and the last three
    due   : schedule: earliest times (intervals,) at the ends of the intervals [s]
    """

    def __init__(self, spline: CubicSpline, fixed: tuple[bool, bool] = (False, False), due: np.ndarray | None = None):
        self.spline, self.fixed, self.due, self.intervals = spline, fixed, due, spline.intervals
        self._windows = np.arange(self.intervals)[:, None] + np.arange(N_LOCAL)  # local coefficients of each interval
        self._bases = spline.basis_at_shares(LOBATTO_POINTS)
        self._weights = spline.steps[:, None] * LOBATTO_WEIGHTS
        cost = self._weights
        if due is not None:  # the mean delay: the integral of t, by parts
            sigma = spline.knots[:-1, None] + spline.steps[:, None] * LOBATTO_POINTS
            ahead = (spline.knots[-1] - sigma) / (spline.knots[-1] - spline.knots[0])
            cost = cost * (1.0 + DELAY_WEIGHT * ahead)
        self._cost = np.append(cost[:, :N_OWN], 0.0)  # of the points in their order; the last one is the end
        self._cost[N_OWN::N_OWN] += cost[:, N_OWN]
        self._points = N_OWN * np.arange(self.intervals)[:, None] + np.arange(N_OWN + 1)  # of each interval

    def constrain(self, groups: Sequence[ConstraintGroup], more: np.ndarray) -> None:
        """Set the constraints, whose values must stay within -1 and 1.

        groups : at N_OWN points of every interval, at the end, and at further sigma `more` (samples,)
        """
        own, last = self._bases[:, :N_OWN].reshape(-1, 3 * N_LOCAL), self._bases[-1:, -1].reshape(1, -1)
        self._more, others = self.spline.basis_at(more)
        basis = np.concatenate((own, last, others.reshape(-1, 3 * N_LOCAL)))
        interval = np.concatenate((np.repeat(np.arange(self.intervals), N_OWN), [self.intervals - 1], self._more))
        self._interval, self._local, total = interval, self._windows[interval], len(basis)
        used = [group.used_columns() for group in groups]
        count = sum(group.values.shape[2] for group in groups)
        self._evaluate_kernel, self._kkt_kernel = point_kernels(
            tuple((tuple(group.columns[k] for k in columns), group.values.shape[2]) for group, columns in zip(groups, used)))
        rows = [group.values[:, k] for group, columns in zip(groups, used) for k in columns]
        weight = np.append(self._cost, np.zeros(len(more)))[:, None]
        self._y_basis = np.ascontiguousarray(basis[:, :N_LOCAL])
        # turned once, read in every step
        self._basis, self._rows, self._weight = (Tiles.of(blocks, self._evaluate_kernel.lanes)
                                                 for blocks in ([basis], rows, [weight]))
        self._zeros = np.zeros(count)
        self._count = 2 * count * total + (0 if self.due is None else self.intervals)  # number of inequalities

    def time(self, c: np.ndarray) -> float:
        """Return the duration [s]."""
        return float((self._weights / np.sqrt(self._y(c))).sum())

    @abstractmethod
    def report(self, c: np.ndarray) -> None:
        """Report the coefficients so far; called for each mu."""

    def is_interior(self, iterate: SplineIterate) -> bool:
        """Return whether a solution may start from an iterate."""
        return iterate.is_feasible and bool(iterate.largest.max() < MAX_FIRST_VALUE)

    @abstractmethod
    def feasible_near(self, guess: SplineIterate) -> SplineIterate:
        """Return an interior iterate near one that is not interior."""

    def solve(self, c: np.ndarray, first: float, gap: float, warm: bool = False) -> np.ndarray:
        """Return the solution, by decreasing mu from `first` to `gap`, both as a share of the duration.

        c    : coefficients to start from, or near to, where they are not feasible
        warm : they are about right, and say which constraints will be active
        """
        guess = self._evaluate(c)
        iterate = guess if self.is_interior(guess) else self.feasible_near(guess)
        guess = guess if warm else iterate
        mu, last = (share * self.time(iterate.c) / self._count for share in (first, gap))
        values, least = guess.values.data, 0.0 if guess is iterate else MIN_SLACK
        slack = np.concatenate((-values, values), axis=1)
        slack += 1.0
        self._multipliers = Tiles(np.divide(mu, np.fmax(slack, least, out=slack), out=slack), guess.values.count)
        self._delay_multipliers = mu / np.maximum(guess.delay, least)
        step = _Step(iterate, mu, 1.0, 0.0)
        while True:
            iterate, step = self._center(iterate, mu, step)
            self.report(iterate.c)
            if mu <= last:
                return iterate.c
            mu = max(MU_FACTOR * mu, last)

    def _y(self, c: np.ndarray) -> np.ndarray:
        """Return y (intervals, points)."""
        return np.einsum("ipa,ia->ip", self._bases[:, :, 0], c[self._windows])

    def _evaluate(self, c: np.ndarray, before: SplineIterate | None = None) -> SplineIterate:
        before_values = self._zeros if before is None else before.values
        values, slowness, slack_products, largest, decrease = self._evaluate_kernel.tiled(
            [c[self._local], self._basis, self._rows, before_values], len(self._local))
        delay = np.empty(0)
        with np.errstate(invalid="ignore"):
            if self.due is not None:
                delay = EARLY_TOL_S + np.cumsum((self._weights * slowness[self._points]).sum(axis=1)) - self.due
                decrease = decrease if before is None else np.append(decrease, 1.0 - delay / before.delay)
            inside = slack_products.min() > 0.0 and largest.max() < 1.0 and (delay > 0.0).all()
        if not inside or self._is_degenerate(c):
            return SplineIterate(c, values, delay, np.inf, 0.0, largest, decrease)
        cost = float(self._cost @ slowness[:len(self._cost)])
        logs = float(np.log(slack_products).sum() + np.log(delay).sum())
        return SplineIterate(c, values, delay, cost, logs, largest, decrease)

    def _is_degenerate(self, c: np.ndarray) -> bool:
        """Return whether y almost vanishes, or is negative, between points: the law would rest or reverse there.

        y lies between its local coefficients, so most intervals need no closer check.
        """
        if c.min() > DEGENERATE_SHARE * c.max():
            return False
        windows = [c[k:len(c) - N_LOCAL + 1 + k] for k in range(N_LOCAL)]
        suspect = np.flatnonzero(np.minimum.reduce(windows) < DEGENERATE_SHARE * np.maximum.reduce(windows))
        if not len(suspect):
            return False
        largest = np.einsum("ipa,ia->ip", self._bases[suspect, :, 0], c[self._windows[suspect]]).max(axis=1)
        return bool((self.spline.interior_minima(c, suspect) < DEGENERATE_SHARE * largest).any())

    def _sum_by_interval(self, points: np.ndarray) -> np.ndarray:
        """Return the sums (intervals, size) over the points (points, size) of each interval."""
        own = N_OWN * self.intervals
        found = points[0:own:N_OWN] + points[1:own:N_OWN]
        for k in range(2, N_OWN):
            found += points[k:own:N_OWN]
        found[-1] += points[own]
        if len(self._more):
            np.add.at(found, self._more, points[own + 1:])
        return found

    def _center(self, iterate: SplineIterate, mu: float, step: _Step) -> tuple[SplineIterate, _Step]:
        """Return the approximate minimum of the merit for mu, by primal-dual steps."""
        centrality = CENTRALITY if self.due is None else CENTRALITY_ON_SCHEDULE  # the delay on the way has a small weight
        for _ in range(MAX_NEWTON_STEPS):
            direction, gradient = self._newton_direction(iterate, mu, step)
            slope = self._decrease_along(gradient, direction)
            step = _Step(iterate, mu, 1.0, 0.0)
            if not slope > 0.0:  # too close to the limits for a descent direction
                break
            found = self._local_search(iterate, direction, gradient, mu) if self._has_local_lengths else None
            new, length = found or self._line_search(iterate, direction, slope, mu)
            if new is None:
                break
            iterate, step = new, _Step(iterate, mu, 1.0 / length, 1.0)
            if slope < max(centrality * mu * self._count, MIN_RELATIVE_DECREASE * iterate.merit(mu)):
                break
        return iterate, step

    @property
    def _has_local_lengths(self) -> bool:
        return self.due is None and self.intervals >= MIN_LOCAL_INTERVALS

    def _local_search(self, iterate: SplineIterate, direction: np.ndarray, gradient: np.ndarray,
                      mu: float) -> tuple[SplineIterate, np.ndarray] | None:
        """Return an iterate with a lower merit by local step lengths, and the lengths (points,); None where none is found."""
        c, merit, radius = iterate.c, iterate.merit(mu), min(LOCAL_RADIUS, self.intervals // 8)
        lengths, decrease = np.ones(len(c)), self._decrease_of_y(c, direction)
        if decrease is not None:
            lengths = local_lengths(self.least_at_points(_local_fraction(decrease)), radius)
        for _ in range(MAX_LOCAL_TRIALS):
            change = lengths * direction
            slope, new = self._decrease_along(gradient, change), self._evaluate(c + change, iterate)
            if new.is_feasible:
                of_intervals = np.mean([lengths[a:a + self.intervals] for a in range(N_LOCAL)], axis=0)
                return (new, of_intervals[self._interval]) if slope > 0.0 and new.merit(mu) <= merit - 0.1 * slope else None
            lengths = lengths * local_lengths(self.least_at_points(_local_fraction(new.decrease)), radius)
        return None

    def least_at_points(self, points: np.ndarray) -> np.ndarray:
        """Return the least values (coefficients,) at all points (points,) that a coefficient acts at."""
        own = N_OWN * self.intervals
        intervals = np.minimum(points[:own].reshape(-1, N_OWN).min(axis=1), points[N_OWN:own + 1:N_OWN])
        np.minimum.at(intervals, self._more, points[own + 1:])
        return self.least_of_intervals(intervals)

    def least_of_intervals(self, intervals: np.ndarray) -> np.ndarray:
        """Return the least values (coefficients,) of all intervals (intervals,) that a coefficient acts in."""
        found = np.full(self.intervals + N_LOCAL - 1, np.inf)
        for a in range(N_LOCAL):
            window = found[a:a + self.intervals]
            np.minimum(window, intervals, out=window)
        return found

    def _line_search(self, iterate: SplineIterate, direction: np.ndarray, slope: float,
                     mu: float) -> tuple[SplineIterate | None, float]:
        """Return an iterate with a lower merit, and the length of the step; None where only rounding is left."""
        decrease = self._decrease_of_y(iterate.c, direction)
        length = 1.0 if decrease is None else FRACTION_TO_BOUNDARY / max(float(decrease.max()), FRACTION_TO_BOUNDARY)
        merit = iterate.merit(mu)
        while length > MIN_STEP_LENGTH:
            new = self._evaluate(iterate.c + length * direction, iterate)
            if new.merit(mu) <= merit - 0.1 * length * slope:
                return new, length
            longest = 0.5 * length
            if np.isinf(new.cost):  # extrapolate linearly to the length at which the first slack would vanish
                largest = float(new.decrease.max())
                bounded = 1.0 < largest < 1.0 / MIN_STEP_LENGTH
                longest = FRACTION_TO_BOUNDARY * length / largest if bounded else longest
            length = longest
        return None, 0.0

    def _decrease_of_y(self, c: np.ndarray, change: np.ndarray) -> np.ndarray | None:
        """Return the share (points,) of y by which it decreases; None where a full step is short enough.

        Both are sums of local coefficients with the same positive weights, so that no share exceeds those of positive
        coefficients. These may become negative where y does not.
        """
        if c.min() > 0.0 and (-change / c).max() <= LOCAL_FRACTION:
            return None
        y, y_change = (np.einsum("pa,pa->p", self._y_basis, x[self._local]) for x in (c, change))
        return np.asarray(-y_change / y)

    def _decrease_along(self, gradient: np.ndarray, change: np.ndarray) -> float:
        """Return the decrease of the merit along a change of the coefficients, 0 if that is not finite."""
        if not np.isfinite(change).all():
            return 0.0
        return -float(sum(gradient[:, a] @ change[a:a + self.intervals] for a in range(N_LOCAL)))

    def _newton_direction(self, iterate: SplineIterate, mu: float, step: _Step) -> tuple[np.ndarray, np.ndarray]:
        """Update the multipliers for the last step; return the direction, and the gradient (intervals, 4) of the merit."""
        found, self._multipliers = self._kkt_kernel.tiled(
            [iterate.c[self._local], self._basis, self._rows, self._weight, iterate.values, step.start.values,
             self._multipliers, *step.blocks(mu)], len(self._local), kept=[1])
        found = self._sum_by_interval(found)
        matrix, gradient = found[:, :-N_LOCAL], found[:, -N_LOCAL:]
        if self.due is None:
            direction = solve_newton(matrix, gradient, self.fixed)
        else:
            slack, before = iterate.delay, step.start.delay
            self._delay_multipliers = multiplier_step(self._delay_multipliers, slack, 1.0 / slack, before, 1.0 / before,
                                                      step[1:])
            y = self._y(iterate.c)
            L = np.einsum("ip,ipa->ia", -0.5 * self._weights / (y * np.sqrt(y)), self._bases[:, :, 0])
            direction = solve_newton(matrix, gradient, self.fixed, L, self._delay_multipliers / slack, -mu / slack)
            gradient = gradient + L * np.cumsum((-mu / slack)[::-1])[::-1, None]
        return direction, gradient


def _local_fraction(decrease: np.ndarray) -> np.ndarray:
    """Return the step lengths at which no share that decreases by `decrease` in a full step leaves less than it must."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(decrease > LOCAL_FRACTION, LOCAL_FRACTION / decrease, 1.0)
    return np.where(np.isfinite(decrease), found, UNKNOWN_LENGTH)
