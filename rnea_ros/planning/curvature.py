"""Second derivatives at the nodes: as differences of the analytic slopes, or of the squares alone.

They steer the solver (a tenth of the iterations of a quasi-Newton method); what it finds does not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from .problem import Problem, Quantity, square_slope
from .rows import Rows

STEP = 1e-7  # relative
SAMPLES = 500  # looked at in one call, about
# (problem, rows, y, u (K,), weight (K,), multipliers) -> (K, ORDERS, n, ORDERS, n): second derivatives by y of weight times
# the cost's rate, plus multipliers times rows, at each node alone
Curvature = Callable[[Problem, Rows, np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def of_lagrangian(problem: Problem, rows: Rows, y: np.ndarray, u: np.ndarray, weight: np.ndarray,
                  multipliers: np.ndarray) -> np.ndarray:
    """All of it."""
    total = np.zeros((*y.shape, *y.shape[1:]))
    for quantity, at, factors in rows.factors(multipliers):
        if not quantity.linear:
            total[at] += differences(partial(_weighted, quantity, factors), y[at], quantity.order)
    for weights, quantity, at in problem.cost.squares(u):
        total[at] += weight[at, None, None, None, None] * differences(partial(square_slope, weights, quantity), y[at],
                                                                      quantity.order)
    return (total + total.transpose(0, 3, 4, 1, 2)) / 2.0


def gauss_newton(problem: Problem, rows: Rows, y: np.ndarray, u: np.ndarray, weight: np.ndarray,
                 multipliers: np.ndarray) -> np.ndarray:
    """What first derivatives know of it: 2 effort (d value / dy)^2, never negative. For costs that are sums of squares."""
    total = np.zeros((*y.shape, *y.shape[1:]))
    for weights, quantity, at in problem.cost.squares(u):
        slopes = quantity.slopes(y[at]).reshape(len(at), len(weights), -1)
        weighted = slopes * (2.0 * weight[at, None] * weights)[:, :, None]
        total[at] += (weighted.swapaxes(1, 2) @ slopes).reshape(len(at), *total.shape[1:])
    return total


def _weighted(quantity: Quantity, factors: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.einsum("kc,kcrj->krj", np.tile(factors, (len(y) // len(factors), 1)), quantity.slopes(y))


def differences(slope: Callable[[np.ndarray], np.ndarray], y: np.ndarray, order: int) -> np.ndarray:
    """Derivatives of slope (K, ORDERS, n) with respect to y up to the given order; many steps in one call."""
    count, n = len(y), y.shape[2]
    here, found = slope(y), np.zeros((*y.shape, *y.shape[1:]))
    ways = [(r, j) for r in range(order + 1) for j in range(n)]
    together = max(1, SAMPLES // count)
    for first in range(0, len(ways), together):
        some = ways[first:first + together]
        moved = np.repeat(y[None], len(some), axis=0)
        for step, (r, j) in zip(moved, some):
            step[:, r, j] += STEP * (1.0 + np.abs(y[:, r, j]))
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
    steps = STEP * (1.0 + np.abs(y[:, :curved]))
    found = np.empty((count, width, curved))
    together = max(1, 2 * SAMPLES // count)
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
