"""Second derivatives at the nodes, as differences of the analytic slopes.

They steer the solver (a tenth of the iterations of a quasi-Newton method); what it finds does not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from .problem import Problem, Quantity
from .rows import Rows

STEP = 1e-7  # relative


def of_lagrangian(problem: Problem, rows: Rows, y: np.ndarray, weight: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    """(K, ORDERS, n, ORDERS, n): of weight (K,) times the cost's rate, plus multipliers times rows, at each node alone."""
    total = np.zeros((*y.shape, *y.shape[1:]))
    for quantity, factors in rows.factors(multipliers):
        if not quantity.linear:
            total += differences(partial(_weighted, quantity, factors), y, quantity.order)
    if problem.cost.of is not None:
        total += differences(lambda z: weight[:, None, None] * problem.cost.slope(z), y, problem.cost.of.order)
    return (total + total.transpose(0, 3, 4, 1, 2)) / 2.0


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
