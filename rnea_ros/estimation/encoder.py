"""What positions tell of the sensor that they come from: its resolution, and whether it was read since the last message."""

from __future__ import annotations

import numpy as np

_ROUNDING = float(np.finfo(np.float32).eps)  # of the largest position: a driver may tell it in single precision
_WHOLE = 0.1  # of a step: so near to a whole number of them is one
_MOST = 0.95  # of the positions that must be whole steps away from the first
_LEVELS, _FEW = 8, 3  # different positions without which nothing is said; of a joint so slow that positions repeat
_ALIKE = 4  # readings in a row that are repeated alike before a stream is taken for a repeating one
_LEAP = 1.5  # of the smallest difference seen: who stands and then moves by more was not read meanwhile
_FAR = 2.5  # of it: even after a lost one, who moves so far at each sample repeats none
_OVERDUE = 1.5  # of the time between readings: a position that is the same by then has been read again
_EARLY = 0.1  # of that time: a message so early tells the next reading
_NOT_REPEATED = 3  # readings in a row without a repetition that end it


def find_resolution(positions: np.ndarray) -> np.ndarray:
    """Distance of the positions (samples, n) that each joint's encoder can tell apart: (n,), 0 where they are on no grid.

    Differences of positions in steps are whole steps, and those of higher order few, however fast the motion: the smallest
    is one.
    """
    found = np.zeros(positions.shape[1])
    for k, column in enumerate(positions.T):
        levels = len(np.unique(column))
        if levels >= (_FEW if 2 * levels < len(column) else _LEVELS):
            step = _step(column)
            places = (column - column[0]) / step
            on_grid = np.isfinite(step) and np.mean(np.abs(places - np.round(places)) < _WHOLE) > _MOST
            found[k] = step if on_grid else 0.0
    return found


def _step(column: np.ndarray) -> float:
    """What all differences may be multiples of, inf without any: the smallest, told better by longer and longer ones."""
    rounding, difference, found = _ROUNDING * float(np.abs(column).max()), column, []
    for _ in range(4):
        difference, rounding = np.diff(difference), 2.0 * rounding
        sizes = np.abs(difference)
        found.append(sizes[sizes > rounding])
    step, reach = float(np.concatenate(found).min(initial=np.inf)), 8.0
    sizes = np.concatenate((*found, np.abs(column - column[0])))
    while reach * step < 4.0 * sizes.max():
        near = sizes[sizes < reach * step]
        whole = np.round(near / step)
        step, reach = float(whole @ near / (whole @ whole)), 4.0 * reach
    return step


class Readings:
    """Which messages bring a new reading: a robot that is read at 125 Hz may be published again and again at 1 kHz.

    A joint that stands in some messages and then leaps was not read in between. Where that happens at even intervals, what is
    repeated is no sample, unless it is still there when the next reading is overdue: then the robot rests.

    period : time between readings [s], 0 while every message brings one
    """

    def __init__(self) -> None:
        self.period = 0.0
        self._bytes = b""
        self._least = np.inf
        self.clear()

    def clear(self) -> None:
        """The stream was interrupted."""
        self._last: np.ndarray | None = None
        self._changed = self._read = 0.0
        self._repeated, self._single = 0, 0
        self._intervals: list[float] = []

    def time(self, stamp: float, q: np.ndarray) -> float | None:
        """When the positions (n,) of this message were read [s]; None: they are those of the last reading."""
        known, self._bytes = self._bytes, q.tobytes()
        if self._last is not None and known == self._bytes:
            self._repeated += 1
            if not self.period:
                return stamp
            if stamp - self._read < _OVERDUE * self.period:
                return None
            self._read += self.period
            return self._read
        if self._last is not None and (self._repeated or self.period):
            self._look(stamp - self._changed, np.abs(q - self._last))
        self._last, self._repeated = q.copy(), 0
        self._changed = self._read = stamp
        return stamp

    def _look(self, interval: float, moved: np.ndarray) -> None:
        """After so long, positions are others."""
        self._least = min(self._least, float(moved[moved > 0.0].min(initial=np.inf)))
        self._single = 0 if self._repeated else self._single + 1
        if self._single == _NOT_REPEATED:
            self.period = 0.0
        if not self._repeated:
            self._intervals.clear()
        elif moved.max() > _LEAP * self._least:
            self._intervals = [*self._intervals[1 - _ALIKE:], interval]
            between = interval / (self._repeated + 1)  # messages
            if len(self._intervals) == _ALIKE and max(self._intervals) - min(self._intervals) < 2.5 * between:
                self.period = float(np.median(self._intervals))


def new_readings(t: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The same of a whole recording at times t (samples,): whether each of q (samples, n) was read since the one before.

    What leaps, is repeated and leaps again was not read in between. Where readings are further apart than messages, other
    repeated ones count as often as readings are due: the robot rests.
    """
    moved = np.abs(np.diff(q, axis=0))
    new = np.append(True, moved.any(axis=1))
    far = np.append(False, moved.max(axis=1, initial=0.0) > _FAR * moved.min(initial=np.inf, where=moved > 0.0))
    changes, run = np.flatnonzero(new), np.cumsum(new) - 1
    leaps = far[changes[:-1]] & far[changes[1:]]
    if not (leaps & (np.diff(changes) > 1)).any():
        return np.ones(len(t), dtype=bool)
    period, apart = float(np.median(np.diff(t[changes])[leaps])), float(np.median(np.diff(t)))
    begin, end = t[changes][run], np.append(t[changes[1:]], np.inf)[run]  # of what is repeated in a sample
    rests = end - begin > _OVERDUE * period + apart
    if period < _OVERDUE * apart:
        return new | rests | ~np.append(leaps, False)[run]
    due = np.diff(np.floor((t - begin) / period + _EARLY), prepend=0.0) > 0.0
    return new | (rests & due & (end - t > 0.5 * period))
