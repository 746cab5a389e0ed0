"""The plan as a nonlinear program: control points and end time in, objective and constraints and their derivatives out.

Barman, thesis, 4.1. x = [control points (m, n), T]; with u = t / T in [0, 1]

    y_r(u) = sum_a B_a^(r)(u) p_a / T^r            r = 0 .. 3: q, qd, qdd, qddd                              (4.13)
    dc/dp_a = sum_r dc/dy_r B_a^(r) / T^r          chain rule: dc/dy_r are the analytic sensitivities        (4.15)
    dc/dT   = sum_r dc/dy_r (-r y_r / T)           knots move with T

Constraints c(y) are enforced at nodes. The integral of the cost is Gauss-Lobatto quadrature on the same nodes. Second
derivatives take differences of the analytic slopes, node by node: they steer the solver and do not decide what it finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .bspline import ORDERS, basis
from .problem import Problem, Quantity, of_motion
from .sparse import Pattern

STEP = 6e-6  # of differences of slopes, relative: cube root of the rounding error
POWERS = np.arange(ORDERS)


class Nodes(NamedTuple):
    """Instants at which the motion is looked at, (K,) each.

    span   : of the breaks; decides the side at a break
    u      : t / T
    weight : of the quadrature over u
    """

    span: np.ndarray
    u: np.ndarray
    weight: np.ndarray


class Block(NamedTuple):
    """Rows of constraints: components of a quantity at some nodes, between limits (components,), divided by scale."""

    quantity: Quantity
    nodes: np.ndarray
    components: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    scale: np.ndarray


class Transcription:
    def __init__(self, problem: Problem, breaks: np.ndarray, degree: int, nodes: Nodes):
        self.problem, self.nodes, self.n = problem, nodes, problem.n
        self.m = len(breaks) - 1 + degree
        self.size = self.m * self.n + 1
        self.B = basis(breaks, degree, nodes.span, nodes.u)
        self.points = nodes.span[:, None] + np.arange(degree + 1)  # (K, a) control points that a node sees
        self.blocks = [*_ends(problem, len(nodes.u)), *_limits(problem, nodes, degree)]
        local = (self.points[:, :, None] * self.n + np.arange(self.n)).reshape(len(nodes.u), -1)
        self.columns = np.hstack((local, np.full((len(local), 1), self.size - 1)))  # (K, a n + 1)
        self.jacobian_pattern = Pattern(*self._jacobian_places(), (self.rows, self.size))
        width = self.columns.shape[1]
        self.hessian_pattern = Pattern(np.repeat(self.columns, width, 1).ravel(), np.tile(self.columns, (1, width)).ravel(),
                                       (self.size, self.size), upper=True)

    @property
    def rows(self) -> int:
        return sum(len(block.nodes) * len(block.components) for block in self.blocks)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the constraints, (rows,) each."""
        lower = [np.tile(block.lower / block.scale, len(block.nodes)) for block in self.blocks]
        upper = [np.tile(block.upper / block.scale, len(block.nodes)) for block in self.blocks]
        return np.concatenate(lower), np.concatenate(upper)

    def motion(self, x: np.ndarray) -> np.ndarray:
        """y (K, ORDERS, n): q, qd, qdd, qddd at the nodes."""
        points = x[:-1].reshape(self.m, self.n)
        return (self.B @ points[self.points]) / x[-1] ** POWERS[:, None]

    # ------------------------------------------------------------------ values and first derivatives

    def objective(self, x: np.ndarray) -> float:
        return x[-1] * float(self.nodes.weight @ self._price(self.motion(x)))

    def gradient(self, x: np.ndarray) -> np.ndarray:
        y, T = self.motion(x), x[-1]
        local = self._local(T * self.nodes.weight[:, None, None] * self._price_slope(y), y, T)
        total = np.bincount(self.columns.ravel(), local.ravel(), self.size)
        total[-1] += self.nodes.weight @ self._price(y)
        return total

    def constraints(self, x: np.ndarray) -> np.ndarray:
        y = self.motion(x)
        return np.concatenate([(_value(block.quantity, y[block.nodes])[:, block.components] / block.scale).ravel()
                               for block in self.blocks])

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """The entries of jacobian_pattern."""
        y, T = self.motion(x), x[-1]
        parts = []
        for block in self.blocks:
            slope = _slope(block.quantity, y[block.nodes])[:, block.components] / block.scale[:, None, None]
            for k in range(len(block.components)):
                parts.append(self._local(slope[:, k], y[block.nodes], T, block.nodes).ravel())
        return self.jacobian_pattern(np.concatenate(parts))

    def _local(self, slope, y, T, nodes=slice(None)):
        """(4.15): derivatives with respect to what a node sees, its control points and T, (K, a n + 1) from slope (K, ORDERS, n)."""
        by_points = np.einsum("krj,kra->kaj", slope / T ** POWERS[:, None], self.B[nodes])
        by_T = np.einsum("krj,krj,r->k", slope, y, -POWERS / T)
        return np.column_stack((by_points.reshape(len(by_points), -1), by_T))

    def _jacobian_places(self):
        rows, columns, begin = [], [], 0
        for block in self.blocks:
            count = len(block.components)
            for k in range(count):
                own = begin + k + count * np.arange(len(block.nodes))
                rows.append(np.repeat(own, self.columns.shape[1]))
                columns.append(self.columns[block.nodes].ravel())
            begin += count * len(block.nodes)
        return np.concatenate(rows), np.concatenate(columns)

    # ------------------------------------------------------------------ second derivatives

    def hessian(self, x: np.ndarray, objective: float, multipliers: np.ndarray) -> np.ndarray:
        """The entries of hessian_pattern: of objective times the objective plus multipliers times constraints."""
        y, T = self.motion(x), x[-1]
        weight = objective * self.nodes.weight
        price = weight[:, None, None] * self._price_slope(y)
        slope, curvature = self._node_lagrangian(y, T * weight, multipliers)
        slope = slope + T * price
        seen = self.B / (T ** POWERS)[:, None]  # (K, ORDERS, a): dy_r/dp
        n, count = self.n, len(y)
        bent = np.einsum("krisj,ksb->kribj", curvature, seen)
        width = self.columns.shape[1]
        local = np.zeros((count, width, width))
        local[:, :-1, :-1] = np.einsum("kra,kribj->kaibj", seen, bent).reshape(count, width - 1, width - 1)
        by_T = -POWERS[:, None] * y / T
        cross = np.einsum("kribj,kri->kbj", bent, by_T)
        cross += np.einsum("krj,r,kra->kaj", slope, -POWERS / T, seen) + np.einsum("krj,kra->kaj", price, seen)
        local[:, :-1, -1] = local[:, -1, :-1] = cross.reshape(count, width - 1)
        local[:, -1, -1] = np.einsum("krisj,kri,ksj->k", curvature, by_T, by_T)
        local[:, -1, -1] += np.einsum("krj,krj,r->k", slope, y, POWERS * (POWERS + 1) / T**2)
        local[:, -1, -1] += 2.0 * np.einsum("krj,krj->k", price, by_T)
        return self.hessian_pattern(local.ravel())

    def _node_lagrangian(self, y, weight, multipliers):
        """Slope of the constraints' part (K, ORDERS, n), curvature of constraints and weighted price (K, ORDERS, n, ORDERS, n)."""
        count, n = len(y), self.n
        slope, curvature = np.zeros((count, ORDERS, n)), np.zeros((count, ORDERS, n, ORDERS, n))
        cost = self.problem.cost
        for quantity, factors in self._factors(multipliers):
            slope += np.einsum("kc,kcrj->krj", factors, _slope(quantity, y))
            if not quantity.linear:
                curvature += _differences(lambda z, q=quantity, f=factors: np.einsum("dkc,dkcrj->dkrj", f[None], _many(_slope, q, z)),
                                          y, quantity.order)
        if cost.of is not None:
            curvature += _differences(lambda z: weight[:, None, None] * self._price_slope(z.reshape(-1, ORDERS, n)).reshape(z.shape), y, cost.of.order)
        return slope, (curvature + curvature.transpose(0, 3, 4, 1, 2)) / 2.0

    def _factors(self, multipliers):
        """(quantity, multipliers (K, k)) of every quantity that has rows."""
        found, begin = {}, 0
        for block in self.blocks:
            shape = (len(block.nodes), len(block.components))
            size = shape[0] * shape[1]
            quantity, factors = found.setdefault(id(block.quantity), (block.quantity, np.zeros((len(self.nodes.u), len(block.quantity.labels)))))
            factors[np.ix_(block.nodes, block.components)] += multipliers[begin:begin + size].reshape(shape) / block.scale
            begin += size
        return found.values()

    # ------------------------------------------------------------------ what a motion costs

    def _price(self, y):
        """(K,) per second."""
        cost = self.problem.cost
        effort = 0.0 if cost.of is None else _value(cost.of, y) ** 2 @ cost.effort
        return cost.time + effort + np.zeros(len(y))

    def _price_slope(self, y):
        """(K, ORDERS, n)."""
        cost = self.problem.cost
        if cost.of is None:
            return np.zeros_like(y)
        return np.einsum("kc,kcrj->krj", 2.0 * cost.effort * _value(cost.of, y), _slope(cost.of, y))


def _value(quantity, y):
    return quantity.value(*(y[:, r] for r in range(quantity.order + 1)))


def _slope(quantity, y):
    """(K, k, ORDERS, n); zero where the quantity takes no such derivative."""
    slopes = quantity.slope(*(y[:, r] for r in range(quantity.order + 1)))
    filled = np.zeros((len(y), len(quantity.labels), ORDERS, y.shape[2]))
    for r, table in enumerate(slopes):
        filled[:, :, r] = table
    return filled


def _many(function, quantity, z):
    result = function(quantity, z.reshape(-1, *z.shape[2:]))
    return result.reshape(*z.shape[:2], *result.shape[1:])


def _differences(slope, y, order):
    """Central differences (K, ORDERS, n, ORDERS, n) of slope (directions, K, ORDERS, n) -> the same shape."""
    count, orders, n = y.shape
    directions = (order + 1) * n
    unit = np.zeros((directions, 1, orders * n))
    unit[np.arange(directions), 0, np.arange(directions)] = 1.0
    unit = unit.reshape(directions, 1, orders, n)
    step = STEP * (1.0 + np.abs(y)) * unit
    change = (slope(y + step) - slope(y - step)) / (2.0 * step.sum((2, 3), keepdims=True))
    full = np.zeros((count, orders, n, orders * n))
    full[..., :directions] = np.moveaxis(change, 0, -1)
    return full.reshape(count, orders, n, orders, n)


def _ends(problem: Problem, count: int):
    """The rows of start and goal: equalities at the first and the last node."""
    for node, state in ((0, problem.start), (count - 1, problem.goal)):
        for order, value in enumerate((state.q, state.qd, state.qdd)):
            if value is not None:
                quantity = of_motion(order, [""] * problem.n, value, value)
                yield Block(quantity, np.array([node]), np.arange(problem.n), value, value, np.ones(problem.n))


def _limits(problem: Problem, nodes: Nodes, degree: int):
    """The rows of the limits: what is continuous at the breaks is looked at once there, the rest from both sides."""
    once = np.append(True, np.diff(nodes.u) > 0.0)
    for quantity in problem.quantities:
        k = quantity.enforced
        if len(k):
            where = np.flatnonzero(once if quantity.order < degree else np.ones_like(once))
            yield Block(quantity, where, k, quantity.lower[k], quantity.upper[k], quantity.scale[k])
