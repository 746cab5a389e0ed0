"""Polynomial of seventh degree through position, velocity, acceleration and jerk at both ends of an interval."""

from __future__ import annotations

from typing import Any

import numpy as np

from .vectors import Array

DEGREE = 7
_POWERS = np.arange(DEGREE + 1)
# Row k: factor of t^(j - k) in the k-th derivative of t^j.
_FACTORS = np.array([[np.prod(np.arange(j, j - k, -1.0)) if j >= k else 0.0 for j in _POWERS] for k in range(4)])


class SepticHermite:
    """Curve on [0, duration] with the derivatives of order 0 to 3 at both ends: (4, n) each."""

    def __init__(self, before: Array, after: Array, duration: float):
        units = duration**np.arange(4.0)[:, None]  # in the unit of time `duration`, where the powers of 1 are 1
        first, last = before * units, after * units
        low = first / np.array([1.0, 1.0, 2.0, 6.0])[:, None]
        high = np.linalg.solve(_FACTORS[:, 4:], last - _FACTORS[:, :4] @ low)
        self.duration, self._units, self._coefficients = duration, units, np.concatenate((low, high))

    def __call__(self, t: Any) -> Array:
        """Return the derivatives of order 0 to 3 at times t: (4, n), or (4, samples, n)."""
        x = np.asarray(t, dtype=float)[..., None] / self.duration
        rows = [(_FACTORS[k] * x**np.maximum(_POWERS - k, 0)) @ self._coefficients for k in range(4)]
        return np.array([row / unit for row, unit in zip(rows, self._units, strict=True)])
