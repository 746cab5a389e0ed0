"""The jerk that a reference has and nobody tells: between two samples of a trajectory that carry accelerations.

A controller joins points by polynomials of third or fifth degree. Two samples of one such piece determine it, and with it the
jerk, exactly. Where a piece ends between them, they do not fit: then that polynomial swings far from the mean jerk, which is
the difference of the accelerations over the time. How far it may be from it, the mean jerks before say.
"""

from __future__ import annotations

from collections import deque

import numpy as np


class ReferenceJerk:
    """Call with time [s], q, qd, qdd (n,), one sample after the other; returns the jerk at that sample, NaN at the first."""

    def __init__(self) -> None:
        self._last: tuple[float, np.ndarray, np.ndarray, np.ndarray] | None = None
        self._means: deque[np.ndarray] = deque(maxlen=3)  # of the last intervals

    def __call__(self, t: float, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        last, self._last = self._last, (t, q.copy(), qd.copy(), qdd.copy())
        if last is None:
            return np.full_like(q, np.nan)
        before, q0, qd0, qdd0 = last
        h = t - before
        mean = (qdd - qdd0) / h
        self._means.append(mean)
        if len(self._means) < 3:
            return mean
        # third derivative at its end of the polynomial of fifth degree through both samples
        jerk = (60.0 * (q - q0) / h - 24.0 * qd0 - 36.0 * qd) / h**2 + (9.0 * qdd - 3.0 * qdd0) / h
        first, second, third = self._means
        most = 2.0 * np.abs(third - second) + np.abs(third - 2.0 * second + first)  # of a quadratic jerk it is less
        return mean + np.clip(jerk - mean, -most, most)
