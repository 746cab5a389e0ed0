"""The plan as a nonlinear program: control points and end time in; objective, constraints and their derivatives out.

Barman, thesis, 4.1. x = [control points (m, n), T]; with u = t / T in [0, 1]

    y_r(u) = sum_a B_a^(r)(u) p_a / T^r            r = 0 .. 3: q, qd, qdd, qddd                              (4.13)
    dc/dp_a = sum_r dc/dy_r B_a^(r) / T^r          chain rule; dc/dy_r are the analytic sensitivities        (4.15)
    dc/dT   = sum_r dc/dy_r (-r y_r / T)           the knots move with T

A node sees few of the variables: the control points of its span, and T. The objective T integral_0^1 cost(y) du (4.16, 4.18)
is a Gauss-Lobatto quadrature on the nodes.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from .bspline import POWERS, Curve, basis
from .curvature import Curvature, of_lagrangian
from .grid import Nodes
from .problem import Problem
from .rows import Rows
from .sparse import Pattern


class Transcription:
    """size: number of variables; rows: the constraints. Entries of sparse matrices are in the order of their pattern.

    curvature : of what the nodes contribute to the Hessian, see curvature.py
    damping   : added to its diagonal
    """

    def __init__(self, problem: Problem, breaks: np.ndarray, degree: int, nodes: Nodes,
                 curvature: Curvature = of_lagrangian, damping: float = 0.0):
        self.problem, self.breaks, self.degree, self.nodes = problem, breaks, degree, nodes
        self.curvature, self.damping = curvature, damping
        self.rows = Rows(problem, nodes, degree)
        self.B = basis(breaks, degree, nodes.span, nodes.u)
        n, count = problem.n, len(nodes.u)
        self.size = (len(breaks) - 1 + degree) * n + 1
        local = nodes.span[:, None] * n + np.arange((degree + 1) * n)
        self.seen = np.hstack((local, np.full((count, 1), self.size - 1)))  # (K, w) variables that a node sees

    @cached_property
    def jacobian_pattern(self) -> Pattern:
        width = self.seen.shape[1]
        return Pattern(np.repeat(self.rows.row, width), self.seen[self.rows.node].ravel(), (len(self.rows.lower), self.size))

    @cached_property
    def hessian_pattern(self) -> Pattern:
        width = self.seen.shape[1]
        return Pattern(np.repeat(self.seen, width, axis=1).ravel(), np.tile(self.seen, width).ravel(), (self.size, self.size),
                       upper=True)

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
