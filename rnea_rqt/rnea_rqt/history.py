"""The last minute of all quantities, for a strip chart: a second takes the same room, however many samples it has."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rnea_rqt.data import QUANTITIES, Sample

INTERVAL = 1.0 / 60.0  # s; of its samples the least and the greatest are kept
CAPACITY = 3600  # intervals
GAP = 0.25  # s without samples that break a curve


class Curve(NamedTuple):
    """Points of a line without gaps: s before the newest sample, and values."""

    time: np.ndarray
    value: np.ndarray


class History:
    """A ring of intervals. A stamp that goes back further than the ring clears it."""

    def __init__(self, rows: int = 0):
        self.clear(rows)

    def clear(self, rows: int) -> None:
        self._number = np.full(CAPACITY, -1, dtype=np.int64)  # of the interval that a slot holds
        self._newest = -1
        self._least, self._most = (np.full((CAPACITY, len(QUANTITIES), rows), np.nan, dtype=np.float32) for _ in range(2))

    def add(self, sample: Sample) -> None:
        number = int(sample.stamp // INTERVAL)
        if number < self._newest - round(GAP / INTERVAL):  # a recording that begins again
            self.clear(sample.value.shape[1])
        slot = number % CAPACITY
        if self._number[slot] != number:
            self._number[slot] = number
            self._least[slot] = self._most[slot] = sample.value
        else:
            np.fmin(self._least[slot], sample.value, out=self._least[slot], casting="same_kind")
            np.fmax(self._most[slot], sample.value, out=self._most[slot], casting="same_kind")
        self._newest = max(self._newest, number)

    def curves(self, quantity: int, row: int, span: float, points: int) -> list[Curve]:
        """Return the curves of the last `span` seconds, with about so many points."""
        numbers = np.arange(self._newest - min(round(span / INTERVAL), CAPACITY - 1), self._newest + 1)
        slots = numbers % CAPACITY
        least, most = self._least[slots, quantity, row], self._most[slots, quantity, row]
        there = (self._number[slots] == numbers) & np.isfinite(least)
        if not there.any():
            return []
        numbers, least, most = numbers[there], least[there], most[there]
        joined = max(1, round(2.0 * span / INTERVAL / points))
        starts = np.flatnonzero(np.diff(numbers // joined, prepend=-1))  # by number, so that no point moves as time goes on
        time = (numbers[starts] // joined * joined - self._newest) * INTERVAL
        pieces = np.flatnonzero(np.diff(time) > GAP + joined * INTERVAL) + 1
        columns = time, np.minimum.reduceat(least, starts), np.maximum.reduceat(most, starts)
        return [_line(joined * INTERVAL, *piece) for piece in zip(*(np.split(column, pieces) for column in columns))]


def _line(interval: float, time: np.ndarray, least: np.ndarray, most: np.ndarray) -> Curve:
    """Through both values of each interval, first through the one that is nearer to what was before."""
    falls = np.diff(least + most, prepend=(least + most)[0]) < 0.0
    both = np.stack((np.where(falls, most, least), np.where(falls, least, most)), axis=1)
    keep = np.stack((np.ones(len(time), dtype=bool), least != most), axis=1)
    times = np.stack((time, np.minimum(time + 0.8 * interval, 0.0)), axis=1)
    return Curve(times[keep], both[keep])
