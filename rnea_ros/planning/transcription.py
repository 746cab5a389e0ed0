"""Sums of small dense pieces as a sparse matrix by columns.

The constraints of a plan, row by row: conditions on both ends, then every limit at every node that it is enforced at.

Second derivatives at the nodes: as differences of the analytic slopes, or of the squares alone.

They steer the solver (a tenth of the iterations of a quasi-Newton method); what it finds does not depend on them.

The plan as a nonlinear program: control points and end time in; objective, constraints and their derivatives out.

Barman, thesis, 4.1. x = [control points (m, n), T]; with u = t / T in [0, 1]

    y_r(u) = sum_a B_a^(r)(u) p_a / T^r            r = 0 .. 3: q, qd, qdd, qddd                              (4.13)
    dc/dp_a = sum_r dc/dy_r B_a^(r) / T^r          chain rule; dc/dy_r are the analytic sensitivities        (4.15)
    dc/dT   = sum_r dc/dy_r (-r y_r / T)           the knots move with T

A node sees few of the variables: the control points of its span, and T. The objective T integral_0^1 cost(y) du (4.16, 4.18)
is a Gauss-Lobatto quadrature on the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from .bspline import POWERS, Curve, PlanNodes, basis
from .problem import Problem, Quantity, square_slope


class SparsePattern:
    """Where pieces go, worked out once. rows, columns: of every entry of the pieces, flat; several may meet in one place.

    starts (columns + 1,), rows (entries,): the compressed columns of the matrix. upper: keep the upper triangle alone.
    """

    def __init__(self, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int], upper: bool = False):
        self.shape = shape
        self._kept = np.flatnonzero(rows <= columns) if upper else np.arange(len(rows))
        places, self._entry = np.unique(columns[self._kept] * shape[0] + rows[self._kept], return_inverse=True)
        self.rows = places % shape[0]
        self.starts = np.searchsorted(places // shape[0], np.arange(shape[1] + 1))

    @property
    def diagonal(self) -> np.ndarray:
        """Entries of the matrix: whether they are on its diagonal."""
        return self.rows == np.repeat(np.arange(self.shape[1]), np.diff(self.starts))

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Entries of the matrix from the entries of the pieces."""
        return np.bincount(self._entry, values[self._kept], len(self.rows))

    def dense(self, entries: np.ndarray) -> np.ndarray:
        matrix = np.zeros(self.shape)
        matrix[self.rows, np.repeat(np.arange(self.shape[1]), np.diff(self.starts))] = entries
        return matrix


class LimitRows(NamedTuple):
    """Rows of one quantity: row i is its component[i] at node at[sample[i]]; it is evaluated at the nodes `at` alone."""

    quantity: Quantity
    at: np.ndarray
    sample: np.ndarray
    component: np.ndarray

    def of(self, numbers: np.ndarray) -> np.ndarray:
        """(rows,) from numbers of the components (k,)."""
        return numbers[self.component]


class ConstraintRows:
    """lower <= values <= upper, limits divided by their scale.

    A row looks at one node, or, where it ties the ends, at two: term i belongs to row[i] and looks at node[i]. key (rows, 3)
    tells rows apart from one program to the next on the same breaks. Below, y (K, ORDERS, n) is the motion at all nodes.
    """

    def __init__(self, problem: Problem, nodes: PlanNodes, degree: int):
        self.ends, self.last, count = problem.ends, nodes.regular - 1, len(problem.ends.value)
        self.limits = list(_limit_rows(problem, nodes, degree))
        self._begins, self._stops = (np.flatnonzero(table.any(axis=(1, 2))) for table in (self.ends.first, self.ends.last))
        ends = np.column_stack((np.full(count, -1), np.arange(count), np.zeros(count, dtype=int)))
        self.key = np.concatenate((ends, *(np.column_stack((np.full(len(own.sample), problem.limited.index(own.quantity)),
                                                            own.at[own.sample], own.component)) for own in self.limits)))
        self.row = np.concatenate((self._begins, self._stops, np.arange(count, len(self.key))))
        self.node = np.concatenate((0 * self._begins, 0 * self._stops + self.last, self.key[count:, 1]))
        self._scale = self._listed(np.ones(count), [own.of(own.quantity.scale) for own in self.limits])
        self.lower = self._listed(self.ends.value, [own.of(own.quantity.lower) for own in self.limits]) / self._scale
        self.upper = self._listed(self.ends.value, [own.of(own.quantity.upper) for own in self.limits]) / self._scale

    def values(self, y: np.ndarray) -> np.ndarray:
        ends = self.ends.miss(y[0], y[self.last]) + self.ends.value
        limits = [own.quantity.values(y[own.at])[own.sample, own.component] for own in self.limits]
        return self._listed(ends, limits) / self._scale

    def slopes(self, y: np.ndarray) -> np.ndarray:
        """(terms, ORDERS, n)."""
        ends = np.concatenate((self.ends.first[self._begins], self.ends.last[self._stops]))
        limits = [own.quantity.slopes(y[own.at])[own.sample, own.component] for own in self.limits]
        return self._listed(ends, limits) / self._scale[self.row, None, None]

    def weighted(self, y: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
        """(K, ORDERS, n): slope of the sum of multipliers times rows."""
        total = np.zeros_like(y)
        np.add.at(total, self.node, multipliers[self.row, None, None] * self.slopes(y))
        return total

    def factors(self, multipliers: np.ndarray) -> Iterator[tuple[Quantity, np.ndarray, np.ndarray]]:
        """(quantity, nodes at, factors (at, k)): multipliers of rows as factors of the quantities themselves."""
        start = len(self.ends.value)
        for own in self.limits:
            table, part = np.zeros((len(own.at), len(own.quantity.labels))), slice(start, start + len(own.sample))
            table[own.sample, own.component] = multipliers[part] / self._scale[part]
            yield own.quantity, own.at, table
            start = part.stop

    def carried(self, multipliers: np.ndarray, to: ConstraintRows) -> np.ndarray:
        """Multipliers of these rows for other ones, zero for what is new there."""
        keys = np.concatenate((self.key, to.key)) - np.minimum(self.key.min(axis=0), to.key.min(axis=0))
        here, there = np.split(np.ravel_multi_index(tuple(keys.T), keys.max(axis=0) + 1), [len(self.key)])
        order = np.argsort(here)
        at = order[np.searchsorted(here, there, sorter=order).clip(max=len(here) - 1)]
        return np.where(here[at] == there, multipliers[at], 0.0)

    @staticmethod
    def _listed(ends: np.ndarray, limits: list[np.ndarray]) -> np.ndarray:
        return np.concatenate((ends, *limits))


def _limit_rows(problem: Problem, nodes: PlanNodes, degree: int) -> Iterator[LimitRows]:
    """What is continuous at the breaks is looked at once there, what jumps from both sides; single limits at single nodes."""
    once = np.append(True, np.diff(nodes.u[:nodes.regular]) > 0.0)
    for number, quantity in enumerate(problem.limited):
        wanted = np.zeros((len(nodes.u), len(quantity.labels)), dtype=bool)
        regular = (once | (quantity.order >= degree)) & quantity.holds(nodes.u[:nodes.regular])
        wanted[:nodes.regular, quantity.enforced] = regular[:, None]
        for k, (which, component) in enumerate(nodes.single):
            if which == number:
                wanted[nodes.regular + k, component] = True
        at = np.flatnonzero(wanted.any(axis=1))
        if len(at):
            yield LimitRows(quantity, at, *np.nonzero(wanted[at]))


DIFFERENCE_STEP = 1e-7  # relative
BATCH_SAMPLES = 500  # looked at in one call, about
# (problem, rows, y, u (K,), weight (K,), multipliers) -> (K, ORDERS, n, ORDERS, n): second derivatives by y of weight times
# the cost's rate, plus multipliers times rows, at each node alone
Curvature = Callable[[Problem, ConstraintRows, np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def lagrangian_curvature(problem: Problem, rows: ConstraintRows, y: np.ndarray, u: np.ndarray, weight: np.ndarray,
                  multipliers: np.ndarray) -> np.ndarray:
    """All of it."""
    total = np.zeros((*y.shape, *y.shape[1:]))
    for quantity, at, factors in rows.factors(multipliers):
        if not quantity.linear:
            total[at] += differences(partial(_weighted_slopes, quantity, factors), y[at], quantity.order)
    for weights, quantity, at in problem.cost.squares(u):
        total[at] += weight[at, None, None, None, None] * differences(partial(square_slope, weights, quantity), y[at],
                                                                      quantity.order)
    return (total + total.transpose(0, 3, 4, 1, 2)) / 2.0


def gauss_newton_curvature(problem: Problem, rows: ConstraintRows, y: np.ndarray, u: np.ndarray, weight: np.ndarray,
                 multipliers: np.ndarray) -> np.ndarray:
    """What first derivatives know of it: 2 effort (d value / dy)^2, never negative. For costs that are sums of squares."""
    total = np.zeros((*y.shape, *y.shape[1:]))
    for weights, quantity, at in problem.cost.squares(u):
        slopes = quantity.slopes(y[at]).reshape(len(at), len(weights), -1)
        weighted = slopes * (2.0 * weight[at, None] * weights)[:, :, None]
        total[at] += (weighted.swapaxes(1, 2) @ slopes).reshape(len(at), *total.shape[1:])
    return total


def _weighted_slopes(quantity: Quantity, factors: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.einsum("kc,kcrj->krj", np.tile(factors, (len(y) // len(factors), 1)), quantity.slopes(y))


def differences(slope: Callable[[np.ndarray], np.ndarray], y: np.ndarray, order: int) -> np.ndarray:
    """Derivatives of slope (K, ORDERS, n) with respect to y up to the given order; many steps in one call."""
    count, n = len(y), y.shape[2]
    here, found = slope(y), np.zeros((*y.shape, *y.shape[1:]))
    ways = [(r, j) for r in range(order + 1) for j in range(n)]
    together = max(1, BATCH_SAMPLES // count)
    for first in range(0, len(ways), together):
        some = ways[first:first + together]
        moved = np.repeat(y[None], len(some), axis=0)
        for step, (r, j) in zip(moved, some):
            step[:, r, j] += DIFFERENCE_STEP * (1.0 + np.abs(y[:, r, j]))
        slopes = slope(moved.reshape(-1, *y.shape[1:])).reshape(len(some), *y.shape)
        for step, there, (r, j) in zip(moved, slopes, some):
            found[..., r, j] = (there - here) / (step[:, r, j] - y[:, r, j])[:, None, None]
    return found


def node_curvature(quantity: Quantity, factors: np.ndarray, y: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """(K, w, w), w = (order + 1) n: second derivatives of factors (K, k) times values; slopes (K, k, w) at y are known.

    Differences by the lower derivatives alone, where the quantity is linear in the others.
    """
    count, width, orders = len(y), slopes.shape[-1], quantity.order + 1
    n = width // orders
    here, curved = (factors[:, None, :] @ slopes)[:, 0], min(quantity.affine, orders) * n
    y = y[:, :orders].reshape(count, width)
    steps = DIFFERENCE_STEP * (1.0 + np.abs(y[:, :curved]))
    found = np.empty((count, width, curved))
    together = max(1, 2 * BATCH_SAMPLES // count)
    for first in range(0, curved, together):
        some = np.arange(first, min(first + together, curved))
        moved = np.repeat(y[None], len(some), axis=0)
        moved[np.arange(len(some)), :, some] += steps[:, some].T
        motion = moved.reshape(-1, orders, n).swapaxes(0, 1)
        weights = np.tile(factors[:, None, :], (len(some), 1, 1))
        there = np.concatenate([(weights @ table)[:, 0] for table in quantity.slope(*motion)], axis=-1)
        found[:, :, some] = ((there.reshape(len(some), count, width) - here) / steps[:, some].T[..., None]).transpose(1, 2, 0)
    total = np.zeros((count, width, width))
    total[:, :, :curved] = found
    total[:, :curved, curved:] = found[:, curved:].swapaxes(1, 2)
    total[:, :curved, :curved] = (found[:, :curved] + found[:, :curved].swapaxes(1, 2)) / 2.0
    return total


class Transcription:
    """size: number of variables; rows: the constraints. Entries of sparse matrices are in the order of their pattern.

    curvature : of what the nodes contribute to the Hessian, see curvature.py
    damping   : added to its diagonal
    """

    def __init__(self, problem: Problem, breaks: np.ndarray, degree: int, nodes: PlanNodes,
                 curvature: Curvature = lagrangian_curvature, damping: float = 0.0):
        self.problem, self.breaks, self.degree, self.nodes = problem, breaks, degree, nodes
        self.curvature, self.damping = curvature, damping
        self.rows = ConstraintRows(problem, nodes, degree)
        self.B = basis(breaks, degree, nodes.span, nodes.u)
        n, count = problem.n, len(nodes.u)
        self.size = (len(breaks) - 1 + degree) * n + 1
        local = nodes.span[:, None] * n + np.arange((degree + 1) * n)
        self.seen = np.hstack((local, np.full((count, 1), self.size - 1)))  # (K, w) variables that a node sees

    @cached_property
    def jacobian_pattern(self) -> SparsePattern:
        width = self.seen.shape[1]
        columns = self.seen[self.rows.node].ravel()
        return SparsePattern(np.repeat(self.rows.row, width), columns, (len(self.rows.lower), self.size))

    @cached_property
    def hessian_pattern(self) -> SparsePattern:
        width = self.seen.shape[1]
        rows, columns = np.repeat(self.seen, width, axis=1).ravel(), np.tile(self.seen, width).ravel()
        return SparsePattern(rows, columns, (self.size, self.size), upper=True)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the variables."""
        m, unlimited = (self.size - 1) // self.problem.n, np.full(self.problem.n, np.inf)
        lower, upper = self.problem.box or (-unlimited, unlimited)
        return np.append(np.tile(lower, m), self.problem.duration[0]), np.append(np.tile(upper, m), self.problem.duration[1])

    def variables(self, curve: Curve) -> np.ndarray:
        return np.append(curve.points.ravel(), curve.duration)

    def curve(self, x: np.ndarray) -> Curve:
        return Curve(self.degree, self.breaks, x[:-1].reshape(-1, self.problem.n), float(x[-1]))

    def motion(self, x: np.ndarray) -> np.ndarray:
        """y (K, ORDERS, n), (4.13)."""
        points = x[self.seen[:, :-1]].reshape(len(self.B), -1, self.problem.n)
        return self.B @ points / x[-1] ** POWERS[:, None]

    def objective(self, x: np.ndarray) -> float:
        return x[-1] * (self.nodes.weight @ self.problem.cost.rate(self.motion(x), self.nodes.inner))

    def gradient(self, x: np.ndarray) -> np.ndarray:
        y = self.motion(x)
        slope = x[-1] * self.nodes.weight[:, None, None] * self.problem.cost.slope(y, self.nodes.inner)
        total = np.bincount(self.seen.ravel(), self._chained(slope, y, x[-1]).ravel(), self.size)
        total[-1] += self.nodes.weight @ self.problem.cost.rate(y, self.nodes.inner)
        return total

    def constraints(self, x: np.ndarray) -> np.ndarray:
        return self.rows.values(self.motion(x))

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        y, at = self.motion(x), self.rows.node
        return self.jacobian_pattern(self._chained(self.rows.slopes(y), y[at], x[-1], at).ravel())

    def _chained(self, slope, y, T, at=slice(None)):
        """(4.15): slope (K, ORDERS, n) with respect to y becomes (K, w) with respect to what each node sees."""
        by_points = np.einsum("krj,kra->kaj", slope / T ** POWERS[:, None], self.B[at])
        by_T = np.einsum("krj,krj,r->k", slope, y, -POWERS / T)
        return np.column_stack((by_points.reshape(len(y), -1), by_T))

    def hessian(self, x: np.ndarray, objective: float, multipliers: np.ndarray) -> np.ndarray:
        """Upper triangle of the second derivatives of objective times the objective plus multipliers times constraints.

        With z what a node sees and L(y) its share: (dy/dz)^T L_yy dy/dz + L_y y_zz, and the product rule for the T before the
        integral.
        """
        y, T = self.motion(x), x[-1]
        weight = objective * self.nodes.weight
        cost_slope = weight[:, None, None] * self.problem.cost.slope(y, self.nodes.inner)
        slope = T * cost_slope + self.rows.weighted(y, multipliers)
        L_yy = self.curvature(self.problem, self.rows, y, self.nodes.inner, T * weight, multipliers)
        y_z = self._dy_dz(y, T)
        flat = y_z.reshape(len(y), -1, y_z.shape[-1])
        H = flat.transpose(0, 2, 1) @ L_yy.reshape(len(y), flat.shape[1], -1) @ flat
        y_zT, y_TT = -POWERS[:, None, None] * y_z[..., :-1] / T, (POWERS * (POWERS + 1.0))[:, None] * y / T**2
        mixed = np.einsum("krj,krjz->kz", slope, y_zT) + np.einsum("krj,krjz->kz", cost_slope, y_z[..., :-1])
        H[:, :-1, -1] += mixed
        H[:, -1, :-1] += mixed
        H[:, -1, -1] += np.einsum("krj,krj->k", slope, y_TT) + 2.0 * np.einsum("krj,krj->k", cost_slope, y_z[..., -1])
        return self.hessian_pattern(H.ravel()) + self.damping * self.hessian_pattern.diagonal

    def _dy_dz(self, y, T):
        """(K, ORDERS, n, w)."""
        n = self.problem.n
        table = np.zeros((*y.shape, self.seen.shape[1]))
        for j in range(n):
            table[:, :, j, j:-1:n] = self.B / (T ** POWERS)[:, None]
        table[..., -1] = -POWERS[:, None] * y / T
        return table
