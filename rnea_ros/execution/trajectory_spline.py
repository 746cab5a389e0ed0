"""Points with positions, and with velocities and accelerations where they are known, as a function of time.

Between two points a polynomial of the lowest degree that has all that both say: first without velocities, third with them,
fifth with accelerations too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError


def _ends(count: int) -> np.ndarray:
    """[value, slope, curvature at 0, and at 1] of `count` coefficients, lowest power first."""
    powers, orders = range(count), range(count // 2)
    return np.array([[np.prod(np.arange(p - d + 1, p + 1.0)) * (end ** (p - d)) if p >= d else 0.0 for p in powers]
                     for end in (0.0, 1.0) for d in orders])


class TrajectorySpline:
    """Position and any derivatives of joints at any time; before the first point and after the last one, those of the ends."""

    def __init__(self, times: Any, q: Any, qd: Any = None, qdd: Any = None):
        """times (points,) [s], ascending; the others (points, n). Raises InputError."""
        given = [np.asarray(x, dtype=float) for x in (q, qd, qdd) if x is not None]
        self.times = np.asarray(times, dtype=float)
        sound = all(x.ndim == 2 and len(x) == len(self.times) and np.isfinite(x).all() for x in given)
        if len(self.times) < 2 or not (np.diff(self.times) > 0.0).all() or not sound or (qd is None and qdd is not None):
            raise InputError("a trajectory needs two points or more, at ascending times, each with finite positions, with "
                             "velocities or without, and with accelerations too or without, of all joints")
        h = np.diff(self.times)[:, None]
        ends = [x[part] * h**d for part in (slice(None, -1), slice(1, None)) for d, x in enumerate(given)]
        self._coefficients = np.linalg.solve(_ends(2 * len(given)), np.array(ends).transpose(1, 0, 2))  # (segments, ., n)

    def __call__(self, t: float, count: int) -> list[np.ndarray]:
        """Position and its first derivatives at time t, `count` arrays (n,)."""
        t = float(np.clip(t, self.times[0], self.times[-1]))
        k = min(int(np.searchsorted(self.times, t, side="right")) - 1, len(self.times) - 2)
        h, c = self.times[k + 1] - self.times[k], self._coefficients[k]
        powers = ((t - self.times[k]) / h) ** np.arange(len(c))
        found = []
        for order in range(count):
            found.append(powers[:len(c)] @ c / h**order)
            c = c[1:] * np.arange(1.0, max(len(c), 1))[:, None]
        return found
