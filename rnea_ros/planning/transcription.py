"""Transcription of a planning problem to a nonlinear program in control points and duration.

Barman, thesis, 4.1. x = [control points (m, n), T]; with u = t / T in [0, 1]

    y_r(u) = sum_a B_a^(r)(u) p_a / T^r            r = 0 .. 3: q, qd, qdd, qddd                              (4.13)
    dc/dp_a = sum_r dc/dy_r B_a^(r) / T^r          chain rule; dc/dy_r are the analytic sensitivities        (4.15)
    dc/dT   = sum_r dc/dy_r (-r y_r / T)           the knots move with T

A node depends on few variables: the control points of its span, and T. The objective T integral_0^1 cost(y) du (4.16, 4.18)
is a Gauss-Lobatto quadrature on the nodes. Rows are the conditions on both ends, then every limit at every node where it is
enforced. Second derivatives at the nodes are differences of the analytic slopes, or of squares alone (Gauss-Newton); they
determine the number of iterations (a tenth of that of a quasi-Newton method), not the solution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from .bspline import POWERS, Curve, PlanNodes, basis
from .problem import PlanningProblem, Quantity, square_slope


class SparsePattern:
    """Sparsity pattern of a matrix that is the sum of small dense blocks.

    rows, columns: of every entry of the blocks, flat; several may coincide. starts (columns + 1,), rows (entries,): compressed
    columns of the matrix. upper: keep the upper triangle only.
    """

    def __init__(self, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int], upper: bool = False):
        self.shape = shape
        self._kept = np.flatnonzero(rows <= columns) if upper else np.arange(len(rows))
        positions, self._entry = np.unique(columns[self._kept] * shape[0] + rows[self._kept], return_inverse=True)
        self.rows = positions % shape[0]
        self.starts = np.searchsorted(positions // shape[0], np.arange(shape[1] + 1))

    @property
    def diagonal(self) -> np.ndarray:
        """Mask of the matrix entries that are on its diagonal."""
        return self.rows == np.repeat(np.arange(self.shape[1]), np.diff(self.starts))

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Return the entries of the matrix from the entries of the blocks."""
        return np.bincount(self._entry, values[self._kept], len(self.rows))

    def dense(self, entries: np.ndarray) -> np.ndarray:
        """Return the dense matrix."""
        matrix = np.zeros(self.shape)
        matrix[self.rows, np.repeat(np.arange(self.shape[1]), np.diff(self.starts))] = entries
        return matrix


class LimitRows(NamedTuple):
    """Rows of one quantity: row i is its component[i] at node at[sample[i]]; it is evaluated at the nodes `at` only."""

    quantity: Quantity
    at: np.ndarray
    sample: np.ndarray
    component: np.ndarray

    def component_values(self, numbers: np.ndarray) -> np.ndarray:
        """Return (rows,) from values of the components (k,)."""
        return numbers[self.component]


class ConstraintRows:
    """Constraints lower <= values <= upper, divided by the scale of their limits.

    A row depends on one node, or, for coupled ends, on two: term i belongs to row[i] and node[i]. key (rows, 3) identifies
    rows between programs on the same breaks. y (K, ORDERS, n) is the motion at all nodes.
    """

    def __init__(self, problem: PlanningProblem, nodes: PlanNodes, degree: int):
        self.ends, self.last, count = problem.ends, nodes.regular - 1, len(problem.ends.value)
        self.limits = list(_limit_rows(problem, nodes, degree))
        self._begins, self._stops = (np.flatnonzero(table.any(axis=(1, 2))) for table in (self.ends.first, self.ends.last))
        ends = np.column_stack((np.full(count, -1), np.arange(count), np.zeros(count, dtype=int)))
        self.key = np.concatenate((ends, *(np.column_stack((np.full(len(own.sample), problem.limited.index(own.quantity)),
                                                            own.at[own.sample], own.component)) for own in self.limits)))
        self.row = np.concatenate((self._begins, self._stops, np.arange(count, len(self.key))))
        self.node = np.concatenate((0 * self._begins, 0 * self._stops + self.last, self.key[count:, 1]))
        self._scale = self._listed(np.ones(count), [own.component_values(own.quantity.scale) for own in self.limits])
        lower = [own.component_values(own.quantity.lower) for own in self.limits]
        upper = [own.component_values(own.quantity.upper) for own in self.limits]
        self.lower = self._listed(self.ends.value, lower) / self._scale
        self.upper = self._listed(self.ends.value, upper) / self._scale

    def values(self, y: np.ndarray) -> np.ndarray:
        """Return the values of all rows."""
        ends = self.ends.residual(y[0], y[self.last]) + self.ends.value
        limits = [own.quantity.values(y[own.at])[own.sample, own.component] for own in self.limits]
        return self._listed(ends, limits) / self._scale

    def slopes(self, y: np.ndarray) -> np.ndarray:
        """Return the derivatives of all terms (terms, ORDERS, n)."""
        ends = np.concatenate((self.ends.first[self._begins], self.ends.last[self._stops]))
        limits = [own.quantity.slopes(y[own.at])[own.sample, own.component] for own in self.limits]
        return self._listed(ends, limits) / self._scale[self.row, None, None]

    def weighted(self, y: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
        """Return the derivative (K, ORDERS, n) of the sum of multipliers times rows."""
        total = np.zeros_like(y)
        np.add.at(total, self.node, multipliers[self.row, None, None] * self.slopes(y))
        return total

    def factors(self, multipliers: np.ndarray) -> Iterator[tuple[Quantity, np.ndarray, np.ndarray]]:
        """Yield (quantity, nodes at, factors (at, k)): multipliers of rows as factors of the quantities."""
        start = len(self.ends.value)
        for own in self.limits:
            table, part = np.zeros((len(own.at), len(own.quantity.labels))), slice(start, start + len(own.sample))
            table[own.sample, own.component] = multipliers[part] / self._scale[part]
            yield own.quantity, own.at, table
            start = part.stop

    def transfer_multipliers(self, multipliers: np.ndarray, to: ConstraintRows) -> np.ndarray:
        """Return multipliers of these rows for the rows of another program, zero for new rows."""
        keys = np.concatenate((self.key, to.key)) - np.minimum(self.key.min(axis=0), to.key.min(axis=0))
        here, there = np.split(np.ravel_multi_index(tuple(keys.T), keys.max(axis=0) + 1), [len(self.key)])
        order = np.argsort(here)
        at = order[np.searchsorted(here, there, sorter=order).clip(max=len(here) - 1)]
        return np.where(here[at] == there, multipliers[at], 0.0)

    @staticmethod
    def _listed(ends: np.ndarray, limits: list[np.ndarray]) -> np.ndarray:
        return np.concatenate((ends, *limits))


def _limit_rows(problem: PlanningProblem, nodes: PlanNodes, degree: int) -> Iterator[LimitRows]:
    """Yield the rows of each quantity: continuous ones once at breaks, others on both sides; single limits at single nodes."""
    once = np.append(True, np.diff(nodes.u[:nodes.regular]) > 0.0)
    for number, quantity in enumerate(problem.limited):
        wanted = np.zeros((len(nodes.u), len(quantity.labels)), dtype=bool)
        regular = (once | (quantity.order >= degree)) & quantity.is_active(nodes.u[:nodes.regular])
        wanted[:nodes.regular, quantity.enforced] = regular[:, None]
        for k, (which, component) in enumerate(nodes.single):
            if which == number:
                wanted[nodes.regular + k, component] = True
        at = np.flatnonzero(wanted.any(axis=1))
        if len(at):
            yield LimitRows(quantity, at, *np.nonzero(wanted[at]))


DIFFERENCE_STEP = 1e-7  # relative step of differences
BATCH_SAMPLES = 500  # approximate number of samples per call
# (problem, rows, y, u (K,), weight (K,), multipliers) -> (K, ORDERS, n, ORDERS, n): second derivatives by y of weight times
# the cost's rate, plus multipliers times rows, at each node alone
Curvature = Callable[[PlanningProblem, ConstraintRows, np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def lagrangian_curvature(problem: PlanningProblem, rows: ConstraintRows, y: np.ndarray, u: np.ndarray, weight: np.ndarray,
                  multipliers: np.ndarray) -> np.ndarray:
    """Return the second derivatives of the Lagrangian at each node."""
    total = np.zeros((*y.shape, *y.shape[1:]))
    for quantity, at, factors in rows.factors(multipliers):
        if not quantity.linear:
            total[at] += differences(partial(_slopes_times_factors, quantity, factors), y[at], quantity.order)
    for weights, quantity, at in problem.cost.squares(u):
        total[at] += weight[at, None, None, None, None] * differences(partial(square_slope, weights, quantity), y[at],
                                                                      quantity.order)
    return (total + total.transpose(0, 3, 4, 1, 2)) / 2.0


def gauss_newton_curvature(problem: PlanningProblem, rows: ConstraintRows, y: np.ndarray, u: np.ndarray, weight: np.ndarray,
                 multipliers: np.ndarray) -> np.ndarray:
    """Return 2 effort (d value / dy)^2 at each node, which is never negative; for costs that are sums of squares."""
    total = np.zeros((*y.shape, *y.shape[1:]))
    for weights, quantity, at in problem.cost.squares(u):
        slopes = quantity.slopes(y[at]).reshape(len(at), len(weights), -1)
        weighted = slopes * (2.0 * weight[at, None] * weights)[:, :, None]
        total[at] += (weighted.swapaxes(1, 2) @ slopes).reshape(len(at), *total.shape[1:])
    return total


def _slopes_times_factors(quantity: Quantity, factors: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.einsum("kc,kcrj->krj", np.tile(factors, (len(y) // len(factors), 1)), quantity.slopes(y))


def differences(slope: Callable[[np.ndarray], np.ndarray], y: np.ndarray, order: int) -> np.ndarray:
    """Return derivatives of slope (K, ORDERS, n) with respect to y up to the given order, several steps per call."""
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
    """Return the second derivatives (K, w, w), w = (order + 1) n, of factors (K, k) times values; slopes (K, k, w) are given.

    Differences by the lower derivatives only, where the quantity is linear in the others; of torques M qdd + C(q, qd) qd + g
    by q only. M determines C by its Christoffel symbols: with A_jk = d(f^T M)_j / dq_k, the second derivatives of f^T C qd by
    qd are A + A^T - sum_k f_k dM/dq_k, of which the last term is one difference along f.
    """
    count, width, orders = len(y), slopes.shape[-1], quantity.order + 1
    n = width // orders
    here, curved = (factors[:, None, :] @ slopes)[:, 0], min(quantity.affine, orders) * n
    y = y[:, :orders].reshape(count, width)
    steps = DIFFERENCE_STEP * (1.0 + np.abs(y[:, :curved]))
    found = np.empty((count, width, curved))
    together, moves = max(1, 2 * BATCH_SAMPLES // count), n if quantity.lagrangian else curved
    for first in range(0, moves, together):
        some = np.arange(first, min(first + together, moves))
        moved = np.repeat(y[None], len(some), axis=0)
        moved[np.arange(len(some)), :, some] += steps[:, some].T
        motion = moved.reshape(-1, orders, n).swapaxes(0, 1)
        weights = np.tile(factors[:, None, :], (len(some), 1, 1))
        there = np.concatenate([(weights @ table)[:, 0] for table in quantity.slope(*motion)], axis=-1)
        found[:, :, some] = ((there.reshape(len(some), count, width) - here) / steps[:, some].T[..., None]).transpose(1, 2, 0)
    if quantity.lagrangian:
        step = DIFFERENCE_STEP / np.maximum(np.abs(factors).max(axis=1, keepdims=True), np.finfo(float).tiny)
        moved = y.reshape(count, orders, n).swapaxes(0, 1).copy()
        moved[0] += step * factors
        M, A = slopes[..., -n:], found[:, -n:, :n]
        found[:, n:2 * n, n:] = A + A.swapaxes(1, 2) - (quantity.slope(*moved)[2] - M) / step[..., None]
        found[:, :n, n:], found[:, 2 * n:, n:] = found[:, n:2 * n, :n].swapaxes(1, 2), 0.0
    total = np.zeros((count, width, width))
    total[:, :, :curved] = found
    total[:, :curved, curved:] = found[:, curved:].swapaxes(1, 2)
    total[:, :curved, :curved] = (found[:, :curved] + found[:, :curved].swapaxes(1, 2)) / 2.0
    return total


class Transcription:
    """Nonlinear program of a planning problem. Entries of sparse matrices are in the order of their pattern.

    size      : number of variables
    rows      : the constraints
    curvature : function for the nodes' contribution to the Hessian
    damping   : added to the diagonal of the Hessian
    """

    def __init__(self, problem: PlanningProblem, breaks: np.ndarray, degree: int, nodes: PlanNodes,
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
        """Sparsity of the Jacobian."""
        width = self.seen.shape[1]
        columns = self.seen[self.rows.node].ravel()
        return SparsePattern(np.repeat(self.rows.row, width), columns, (len(self.rows.lower), self.size))

    @cached_property
    def hessian_pattern(self) -> SparsePattern:
        """Sparsity of the upper triangle of the Hessian."""
        width = self.seen.shape[1]
        rows, columns = np.repeat(self.seen, width, axis=1).ravel(), np.tile(self.seen, width).ravel()
        return SparsePattern(rows, columns, (self.size, self.size), upper=True)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of the variables."""
        m, unlimited = (self.size - 1) // self.problem.n, np.full(self.problem.n, np.inf)
        lower, upper = self.problem.box or (-unlimited, unlimited)
        return np.append(np.tile(lower, m), self.problem.duration[0]), np.append(np.tile(upper, m), self.problem.duration[1])

    def variables(self, curve: Curve) -> np.ndarray:
        """Return the variables of a curve."""
        return np.append(curve.points.ravel(), curve.duration)

    def curve(self, x: np.ndarray) -> Curve:
        """Return the curve of variables x."""
        return Curve(self.degree, self.breaks, x[:-1].reshape(-1, self.problem.n), float(x[-1]))

    def motion(self, x: np.ndarray) -> np.ndarray:
        """Return y (K, ORDERS, n) at the nodes (4.13)."""
        points = x[self.seen[:, :-1]].reshape(len(self.B), -1, self.problem.n)
        return self.B @ points / x[-1] ** POWERS[:, None]

    def objective(self, x: np.ndarray) -> float:
        """Return the objective."""
        return x[-1] * (self.nodes.weight @ self.problem.cost.rate(self.motion(x), self.nodes.inner))

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient of the objective."""
        y = self.motion(x)
        slope = x[-1] * self.nodes.weight[:, None, None] * self.problem.cost.slope(y, self.nodes.inner)
        total = np.bincount(self.seen.ravel(), self._chained(slope, y, x[-1]).ravel(), self.size)
        total[-1] += self.nodes.weight @ self.problem.cost.rate(y, self.nodes.inner)
        return total

    def constraints(self, x: np.ndarray) -> np.ndarray:
        """Return the values of the constraints."""
        return self.rows.values(self.motion(x))

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """Return the entries of the Jacobian of the constraints."""
        y, at = self.motion(x), self.rows.node
        return self.jacobian_pattern(self._chained(self.rows.slopes(y), y[at], x[-1], at).ravel())

    def _chained(self, slope, y, T, at=slice(None)):
        """Return the derivatives (K, w) by the variables of each node from those by y (K, ORDERS, n) (4.15)."""
        by_points = np.einsum("krj,kra->kaj", slope / T ** POWERS[:, None], self.B[at])
        by_T = np.einsum("krj,krj,r->k", slope, y, -POWERS / T)
        return np.column_stack((by_points.reshape(len(y), -1), by_T))

    def hessian(self, x: np.ndarray, objective: float, multipliers: np.ndarray) -> np.ndarray:
        """Return the upper triangle of the Hessian of objective times the objective plus multipliers times constraints.

        With z the variables of a node and L(y) its share: (dy/dz)^T L_yy dy/dz + L_y y_zz, and the product rule for the factor
        T of the integral.
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
        """Return dy / dz of each node, (K, ORDERS, n, w)."""
        n = self.problem.n
        table = np.zeros((*y.shape, self.seen.shape[1]))
        for j in range(n):
            table[:, :, j, j:-1:n] = self.B / (T ** POWERS)[:, None]
        table[..., -1] = -POWERS[:, None] * y / T
        return table
