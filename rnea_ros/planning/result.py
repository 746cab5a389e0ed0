"""What planning hands back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError
from .bspline import Curve, span_of


@dataclass(frozen=True, eq=False)
class PlannedMotion:
    """A planned motion.

    objective  : integral of the cost; the duration where time alone counts
    excess     : limited quantity -> by how much it is beyond a limit anywhere, relative, looked at much more densely than
                 planned; negative: what is left
    iterations : of the solver, all its calls together
    notes      : what is worth knowing, one sentence each: limits that are unknown, steps that failed
    """

    curve: Curve
    objective: float
    excess: dict[str, float]
    iterations: int
    notes: tuple[str, ...] = ()

    @property
    def duration(self) -> float:
        """[s]."""
        return self.curve.duration

    @property
    def control_points(self) -> int:
        return len(self.curve.points)

    def __call__(self, t: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return q, qd, qdd, qddd at time t [s] from 0 to the duration: (n,) each, or (samples, n) at times (samples,).

        Where the jerk jumps, it is the value after the jump.
        """
        if np.ndim(t) == 0:
            q, qd, qdd, qddd = (array[0] for array in self(np.asarray([t], dtype=float)))
            return q, qd, qdd, qddd
        u = np.asarray(t, dtype=float) / (self.duration or 1.0)
        if u.ndim != 1 or not ((u >= 0.0) & (u <= 1.0 + 1e-12)).all():
            raise InputError(f"t is {t!r:.60}; a time, or times (samples,), from 0 to {self.duration:.17g} s are needed")
        q, qd, qdd, qddd = np.swapaxes(self.curve.motion(span_of(self.curve.breaks, u), np.minimum(u, 1.0)), 0, 1)
        return q, qd, qdd, qddd
