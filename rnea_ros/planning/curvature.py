"""Second derivatives at the nodes: as differences of the analytic slopes, or of the squares alone.

They steer the solver (a tenth of the iterations of a quasi-Newton method); what it finds does not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from .problem import Problem, Quantity
from .rows import Rows

STEP = 1e-7  # relative
# (problem, rows, y, weight (K,), multipliers) -> (K, ORDERS, n, ORDERS, n): second derivatives by y of weight times the
# cost's rate, plus multipliers times rows, at each node alone
Curvature = Callable[[Problem, Rows, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def of_lagrangian(problem: Problem, rows: Rows, y: np.ndarray, weight: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    """All of it."""
    total = np.zeros((*y.shape, *y.shape[1:]))
    for quantity, at, factors in rows.factors(multipliers):
        if not quantity.linear:
            total[at] += differences(partial(_weighted, quantity, factors), y[at], quantity.order)
    if problem.cost.of is not None:
        total += differences(lambda z: weight[:, None, None] * problem.cost.slope(z), y, problem.cost.of.order)
    return (total + total.transpose(0, 3, 4, 1, 2)) / 2.0


def gauss_newton(problem: Problem, rows: Rows, y: np.ndarray, weight: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    """What first derivatives know of it: 2 effort (d value / dy)^2, never negative. For costs that are sums of squares."""
    cost = problem.cost
    if cost.of is None:
        return np.zeros((*y.shape, *y.shape[1:]))
    slopes = cost.of.slopes(y)
    return np.einsum("k,c,kcrj,kcsi->krjsi", 2.0 * weight, cost.effort, slopes, slopes, optimize=True)


def _weighted(quantity: Quantity, factors: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.einsum("kc,kcrj->krj", factors, quantity.slopes(y))


def differences(slope: Callable[[np.ndarray], np.ndarray], y: np.ndarray, order: int) -> np.ndarray:
    """Derivatives of slope (K, ORDERS, n) with respect to y up to the given order."""
    here, found = slope(y), np.zeros((*y.shape, *y.shape[1:]))
    for r in range(order + 1):
        for j in range(y.shape[2]):
            step = np.zeros_like(y)
            step[:, r, j] = STEP * (1.0 + np.abs(y[:, r, j]))
            found[..., r, j] = (slope(y + step) - here) / step[:, r, j, None, None]
    return found
