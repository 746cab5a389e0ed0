"""What an arm in another process did, in a file that it writes and we read: one row of numbers for each period.

A row has the time [s], 1 where the arm is lost, and of all joints where to be, where it is, the torques that were asked for
and those that were exerted.
"""

from __future__ import annotations

from io import BufferedWriter
from pathlib import Path

import numpy as np

from ...sim.tracking import TrackedMotion

MOVED = 1e-9  # rad, m


def add(file: BufferedWriter, t: float, lost: bool, *parts: np.ndarray) -> None:
    """parts: wanted, q, asked, exerted (n,)."""
    file.write(np.concatenate(([t, lost], *parts)).tobytes())


class Recording:
    """Of an arm with n joints; it may still be growing."""

    def __init__(self, path: Path, n: int):
        self._path, self._n, self._begin = path, n, 0

    def forget(self) -> None:
        """What has been until now."""
        self._begin = self._path.stat().st_size // self._row

    @property
    def _row(self) -> int:
        return 8 * (2 + 4 * self._n)

    def motion(self, rest: float) -> TrackedMotion | None:
        """From `rest` [s] before it first was to move, to `rest` after it was to stand still, or until it was lost; its times
        are from the beginning of the motion. None as long as there is no such motion."""
        whole = self._path.stat().st_size // self._row - self._begin
        if not whole:
            return None
        rows = np.fromfile(self._path, count=whole * self._row // 8, offset=self._begin * self._row).reshape(whole, -1)
        wanted, *others = np.split(rows[:, 2:], 4, axis=1)
        moving = np.flatnonzero(np.abs(np.diff(wanted, axis=0)).max(axis=1) > 0.0)
        if not len(moving):
            return None
        q, asked, exerted = others
        t, lost = rows[:, 0] - rows[moving[0], 0], bool(rows[-1, 1])
        if not lost and t[-1] < t[moving[-1] + 1] + rest:
            return None
        part = (t >= -rest) & (lost | (t <= t[moving[-1] + 1] + rest))
        return TrackedMotion(t[part], wanted[part], q[part], asked[part], exerted[part], lost)


def duration(tracked: TrackedMotion) -> float:
    """How long it was to move [s]."""
    return float(tracked.t[1:][np.abs(np.diff(tracked.reference, axis=0)).max(axis=1) > MOVED][-1])
