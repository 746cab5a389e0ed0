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
STRIDE = 0.3  # rad or shares of the unit of length: the longest step that is taken at once
SHORTEST = 1e-6  # of the way: a walk that has to step shorter has run into a wall
ITERATIONS = 60


class Units(NamedTuple):
    """What counts as one: for every equation, and for every unknown."""

    equations: np.ndarray
    unknowns: np.ndarray

    def length(self, step: np.ndarray) -> float:
        return float(np.abs(step / self.unknowns).max(initial=0.0))


class Inverse(NamedTuple):
    """Least-squares inverse of a Jacobian; its condition number; the motion that is determined worst (unit vector)."""

    matrix: np.ndarray
    condition: float
    weakest: np.ndarray


class Solution(NamedTuple):
    x: np.ndarray
    gap: float
    condition: float


def inverse(J: np.ndarray, units: Units) -> Inverse:
    """Of J (equations, unknowns). The condition number is infinite where J does not determine all unknowns."""
    scaled = J / units.equations[:, None] * units.unknowns
    unknowns = J.shape[1]
    if not unknowns:
        return Inverse(np.zeros(J.T.shape), 1.0, np.zeros(0))
    U, s, Vt = np.linalg.svd(scaled, full_matrices=len(J) < unknowns)
    s = np.append(s, np.zeros(unknowns - len(s)))
    kept = s > s[0] * np.finfo(float).eps * max(J.shape)
    count = int(kept.sum())
    pseudo = (Vt[:count].T / s[:count]) @ U[:, :count].T
    condition = float(s[0] / s[-1]) if kept.all() else np.inf
    return Inverse(units.unknowns[:, None] * pseudo / units.equations, condition, Vt[-1])


def rank(J: np.ndarray, units: Units) -> tuple[int, float]:
    """Rank of J, and the smallest singular value that was counted, relative to the largest."""
    s = np.linalg.svd(J / units.equations[:, None] * units.unknowns, compute_uv=False)
    if not s.size or s[0] == 0.0:
        return 0, 1.0
    count = int((s > s[0] * RANK_TOLERANCE).sum())
    return count, float(s[count - 1] / s[0])


def newton(system: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]], x: np.ndarray, units: Units) -> Solution:
    """Zero of `system` (x -> values, Jacobian) near x, or the closest that Gauss-Newton comes to it."""
    best = Solution(x, np.inf, np.inf)
    for _ in range(ITERATIONS):
        values, J = system(x)
        gap = float(np.abs(values / units.equations).max(initial=0.0))
        if not np.isfinite(gap):
            break
        J_inverse = inverse(J, units)
        settled = best.gap <= CLOSED and gap >= 0.5 * best.gap  # rounding is all that is left
        if gap < best.gap:
            best = Solution(x, gap, J_inverse.condition)
        if settled or gap <= ROUNDING:
            break
        step = -J_inverse.matrix @ values
        x = x + step * min(1.0, STRIDE / max(units.length(step), 1e-300))
    return best


def walk(solve_at: Callable[[float, np.ndarray], Solution], slope_at: Callable[[float, np.ndarray], np.ndarray],
         x: np.ndarray, units: Units, longest: float) -> tuple[np.ndarray, float]:
    """Follow the solution from s = 0 to s = 1 without leaving its branch; returns (x, how far it came).

    solve_at(s, guess) -> Solution; slope_at(s, x) -> dx / ds; longest: step of s that may be taken at once.
    Before a singular pose the slope grows without bound, and the steps that may be taken shrink to nothing.
    """
    s = 0.0
    h = longest = min(1.0, longest)
    while s < 1.0 and h >= SHORTEST:
        target = 1.0 if s + h > 1.0 - SHORTEST else s + h
        ahead = slope_at(s, x) * (target - s)
        if units.length(ahead) <= STRIDE:
            there = solve_at(target, x + ahead)
            on_branch = units.length(there.x - x - ahead) <= STRIDE / 3
            if there.gap <= CLOSED and there.condition <= MAX_CONDITION and on_branch:
                x, s, h = there.x, target, min(2.0 * h, longest)
                continue
        h = 0.5 * h
    return x, s
