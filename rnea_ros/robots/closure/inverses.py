"""Least-squares inverses of the Jacobians of loop equations, and how well these determine their unknowns.

A planar loop in space has more equations than it needs: least squares take them all, and the singular values show whether
the unknowns are determined. Kernels solve the same by `TracedInverse`, which knows bounds of the singular values.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...algebra.linalg import LeastSquares
from .units import Units

MAX_CONDITION = 1e7  # beyond it a pose counts as singular: torques would keep fewer than nine digits
EASY = 1e6  # condition number up to which bounds do instead of singular values
RANK_TOLERANCE = 1e-7  # a singular value below this share of the largest is zero
FAR = 1e300  # the smallest singular value where there is nothing to solve for


class Inverse(NamedTuple):
    """Least-squares inverse of a Jacobian; its condition number; the smallest singular value, 0 at singular poses; and the
    motion that is determined worst (unit vector).
    """

    matrix: np.ndarray
    condition: float
    margin: float
    weakest: np.ndarray

    def __matmul__(self, r: np.ndarray) -> np.ndarray:
        return self.matrix @ r


class TracedInverse:
    """Inverse for any scalar, so that a kernel can be traced: `condition` is an upper bound, `margin` a lower bound.

    The Jacobian must determine all unknowns; where it does not, `condition` is large, or no number.
    """

    def __init__(self, J: np.ndarray, units: Units):
        self._units, scaled = units, J / units.equations[:, None] * units.unknowns
        self.condition: Any = 1.0
        self.margin: Any = FAR
        with np.errstate(all="ignore"):  # of floats, at singular poses
            self._inverse = LeastSquares(scaled)
            if units.unknowns.size:
                self.condition, self.margin = norm(scaled.ravel()) * self._inverse.norm, 1.0 / self._inverse.norm

    def __matmul__(self, r: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            found = self._inverse @ (r.T / self._units.equations).T
        return (found.T * self._units.unknowns).T


def norm(x: Any) -> Any:
    """2-norm, for any scalar."""
    return np.sqrt(sum((a * a for a in x), 0.0))


def inverse(J: np.ndarray, units: Units) -> Inverse:
    """Return the inverse of J (equations, unknowns). Its condition number is infinite if J does not determine all unknowns."""
    scaled = J / units.equations[:, None] * units.unknowns
    unknowns = J.shape[1]
    if not unknowns:
        return Inverse(np.zeros(J.T.shape), 1.0, FAR, np.zeros(0))
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
