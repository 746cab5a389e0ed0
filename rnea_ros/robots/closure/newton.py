"""Loop equations solved by Newton's method: redundant equations allowed, far poses reached by walking there.

A planar loop in space has more equations than it needs: least squares take them all, and the singular values tell whether
the unknowns are determined. Lengths and angles are compared in units of their own (`Units`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

CLOSED = 1e-10  # rad or shares of the unit of length: a larger gap is not closed
MAX_CONDITION = 1e7  # beyond it a pose counts as singular: torques would keep fewer than nine digits
ROUNDING = 1e-15  # a gap below this cannot be made smaller
RANK_TOLERANCE = 1e-7  # a singular value below this share of the largest is zero
STRIDE = 0.3  # rad or shares of the unit of length: the longest step that is taken at once,
CAUTION = 0.5  # or this share of the smallest singular value: another branch may be as near as that
SHORTEST = 1e-6  # of the way: a walk that has to step shorter has run into a wall
ITERATIONS = 60


class Units(NamedTuple):
    """What counts as one: for every equation, and for every unknown."""

    equations: np.ndarray
    unknowns: np.ndarray

    def length(self, step: np.ndarray) -> float:
        return float(np.abs(step / self.unknowns).max(initial=0.0))


class Inverse(NamedTuple):
    """Least-squares inverse of a Jacobian; its condition number; the smallest singular value, 0 at singular poses; and the
    motion that is determined worst (unit vector)."""

    matrix: np.ndarray
    condition: float
    margin: float
    weakest: np.ndarray


class NewtonSolution(NamedTuple):
    x: np.ndarray
    gap: float
    condition: float


def inverse(J: np.ndarray, units: Units) -> Inverse:
    """Of J (equations, unknowns). The condition number is infinite where J does not determine all unknowns."""
    scaled = J / units.equations[:, None] * units.unknowns
    unknowns = J.shape[1]
    if not unknowns:
        return Inverse(np.zeros(J.T.shape), 1.0, np.inf, np.zeros(0))
    U, s, Vt = np.linalg.svd(scaled, full_matrices=len(J) < unknowns)
    s = np.append(s, np.zeros(unknowns - len(s)))
    kept = s > s[0] * np.finfo(float).eps * max(J.shape)
    count = int(kept.sum())
    pseudo = (Vt[:count].T / s[:count]) @ U[:, :count].T
    condition = float(s[0] / s[-1]) if kept.all() else np.inf
    return Inverse(units.unknowns[:, None] * pseudo / units.equations, condition, float(s[-1]), Vt[-1])


def rank(J: np.ndarray, units: Units) -> tuple[int, float]:
    """Rank of J, and the smallest singular value that was counted, relative to the largest."""
    s = np.linalg.svd(J / units.equations[:, None] * units.unknowns, compute_uv=False)
    if not s.size or s[0] == 0.0:
        return 0, 1.0
    count = int((s > s[0] * RANK_TOLERANCE).sum())
    return count, float(s[count - 1] / s[0])


def newton(system: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]], x: np.ndarray, units: Units) -> NewtonSolution:
    """Zero of `system` (x -> values, Jacobian) near x, or the closest that Gauss-Newton comes to it."""
    best = NewtonSolution(x, np.inf, np.inf)
    for _ in range(ITERATIONS):
        values, J = system(x)
        gap = float(np.abs(values / units.equations).max(initial=0.0))
        if not np.isfinite(gap):
            break
        J_inverse = inverse(J, units)
        settled = best.gap <= CLOSED and gap >= 0.5 * best.gap  # rounding is all that is left
        if gap < best.gap:
            best = NewtonSolution(x, gap, J_inverse.condition)
        if settled or gap <= ROUNDING:
            break
        step = -J_inverse.matrix @ values
        x = x + step * min(1.0, STRIDE / max(units.length(step), 1e-300))
    return best


def walk(solve_at: Callable[[float, np.ndarray], NewtonSolution],
         slope_at: Callable[[float, np.ndarray], tuple[np.ndarray, float]],
         x: np.ndarray, units: Units, distance: float) -> tuple[np.ndarray, float]:
    """Follow the solution from s = 0 to s = 1 without leaving its branch; returns (x, how far it came).

    solve_at(s, guess) -> NewtonSolution; slope_at(s, x) -> dx / ds, margin; distance: what else moves between s = 0 and s = 1.
    Branches meet at singular poses. Near one, the smallest singular value tells how near: steps stay well below it, as the
    theorem of Newton and Kantorovich asks for, and shrink to nothing where the walk would have to pass through.
    """
    s = 0.0
    while s < 1.0:
        slope, margin = slope_at(s, x)
        stride = min(STRIDE, CAUTION * margin)
        h = stride / max(distance, units.length(slope), stride)
        while True:
            if h < SHORTEST:
                return x, s
            target = 1.0 if s + h > 1.0 - SHORTEST else s + h
            ahead = x + slope * (target - s)
            there = solve_at(target, ahead)
            if there.gap <= CLOSED and there.condition <= MAX_CONDITION and units.length(there.x - ahead) <= 0.5 * stride:
                break
            h = 0.5 * h
        x, s = there.x, target
    return x, s
