"""How far a robot is from where it was sent lately, and how long ago it was sent there.

A robot is behind its references: its controller needs a moment, and what it tells is older still. So a measured place is held
against the reference at its own stamp, and against those of the last `lag` seconds before: the error is the distance from the
nearest of these places, joint by joint. A robot that only lags has none; one that leaves the path, runs ahead, or falls back
further than that has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .turns import nearest

ROOM = 2048  # references that are kept, at least: a second at 2 kHz
PLACES = 16  # within the lag, between which the robot may be; on straight lines
GAP = 0.2  # s; between two references, where nobody knows what was in between


class Tracking(NamedTuple):
    """error : the nearest reference less what is measured (n,), NaN where that is not [rad, m]
    lag   : how long before the stamp the nearest reference was [s]
    slip  : the nearest reference's velocities less those measured (n,), NaN where they are not
    """

    error: np.ndarray
    lag: float
    slip: np.ndarray


class SentReferences:
    """References of n joints, by the time at which they were sent."""

    def __init__(self, n: int):
        self._times, self._motion = np.zeros(2 * ROOM, dtype=np.int64), np.zeros((2, 2 * ROOM, n))
        self._count = 0

    def send(self, now: int, q: np.ndarray, qd: np.ndarray) -> None:
        """At time now [ns]."""
        if self._count == len(self._times):
            self._times[:ROOM], self._motion[:, :ROOM] = self._times[ROOM:], self._motion[:, ROOM:]
            self._count = ROOM
        self._times[self._count], self._motion[:, self._count] = now, (q, qd)
        self._count += 1

    @property
    def begin(self) -> int:
        """The time of the first that is kept; of none that comes [ns], if there is none."""
        return int(self._times[0]) if self._count else np.iinfo(np.int64).max

    def at(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """q and qd (m, n) at times (m, n) [ns] of each joint; before the first as there, after the last as there. None where
        there was no reference for too long. Cubic between two."""
        if self._count < 2:
            return None
        known, joints = self._times[:self._count], np.arange(times.shape[1])
        k = np.clip(known.searchsorted(times, side="right"), 1, self._count - 1)
        h = (known[k] - known[k - 1]) * 1e-9
        if h.max() > GAP:
            return None
        x = np.clip((times - known[k - 1]) * 1e-9 / h, 0.0, 1.0)
        (a, va), (b, vb) = (self._motion[:, place, joints] for place in (k - 1, k))
        bend = 3.0 * (b - a) - h * (2.0 * va + vb), 2.0 * (a - b) + h * (va + vb)
        return a + x * (h * va + x * (bend[0] + x * bend[1])), va + x * (vb - va)

    def tracking(self, stamps: np.ndarray, q: np.ndarray, qd: np.ndarray, lag: float, turns: np.ndarray) -> Tracking | None:
        """Of a robot that was at q with qd at stamps [ns], (n,) each, NaN where unknown; None where the references do not say
        where it was to be.

        lag   : by which it may be behind [s]
        turns : joints that turn without end (n,)
        """
        known = np.isfinite(q)
        if not known.any() or stamps[known].min() < self.begin:
            return None
        stamps = np.where(known, stamps, stamps.max())
        back = np.linspace(0.0, lag, PLACES + 1)
        found = self.at(stamps - np.round(back * 1e9).astype(np.int64)[:, None])
        if found is None:
            return None
        places, speeds = found
        away = places - nearest(q, places[0], turns)
        least, way = np.nan_to_num(away), np.where(known, np.diff(places, axis=0), 0.0)
        x = np.clip(-(least[:-1] * way).sum(axis=1) / np.maximum((way * way).sum(axis=1), 1e-300), 0.0, 1.0)
        error = least[:-1] + x[:, None] * way
        k = int((error * error).sum(axis=1).argmin())
        return Tracking(np.where(known, error[k], np.nan), float(back[k] + x[k] * back[1]), speeds[k] - qd)
