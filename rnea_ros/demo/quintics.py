"""A trajectory of points with velocities and accelerations as a function of time: polynomials of fifth degree between them."""

from __future__ import annotations

import numpy as np

from ..errors import InputError

COUNT = 6  # coefficients of each
# [value, slope, curvature at 0, and at 1] of the coefficients, lowest power first
ENDS = np.array([[np.prod(np.arange(p - d + 1, p + 1.0)) * (end ** (p - d)) if p >= d else 0.0 for p in range(COUNT)]
                 for end in (0.0, 1.0) for d in range(3)])


class Quintics:
    """Position and any derivatives of joints at any time; before the first point and after the last one, those of the ends."""

    def __init__(self, times: np.ndarray, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray):
        """times (points,) [s], ascending; the others (points, n). Raises InputError."""
        arrays = [np.asarray(x, dtype=float) for x in (q, qd, qdd)]
        self.times = np.asarray(times, dtype=float)
        sound = all(x.ndim == 2 and len(x) == len(self.times) and np.isfinite(x).all() for x in arrays)
        if len(self.times) < 2 or not (np.diff(self.times) > 0.0).all() or not sound:
            raise InputError("a trajectory needs two points or more, at ascending times, each with finite position, velocity "
                             "and acceleration of all joints")
        h = np.diff(self.times)[:, None]
        ends = [x[part] * h**d for part in (slice(None, -1), slice(1, None)) for d, x in enumerate(arrays)]
        self._coefficients = np.linalg.solve(ENDS, np.array(ends).transpose(1, 0, 2))  # (segments, 6, n)

    def __call__(self, t: float, count: int) -> list[np.ndarray]:
        """Position and its first derivatives at time t, `count` arrays (n,)."""
        t = float(np.clip(t, self.times[0], self.times[-1]))
        k = min(int(np.searchsorted(self.times, t, side="right")) - 1, len(self.times) - 2)
        h = self.times[k + 1] - self.times[k]
        powers = ((t - self.times[k]) / h) ** np.arange(COUNT)
        found, c = [], self._coefficients[k]
        for order in range(count):
            found.append(powers[:len(c)] @ c / h**order)
            c = c[1:] * np.arange(1.0, len(c))[:, None]
        return found
