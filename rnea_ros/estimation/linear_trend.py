"""The rate of a stream of numbers that carries none, such as a force sensor's: a straight line of least squares."""

from __future__ import annotations

import numpy as np

_CAPACITY = 256  # samples kept at most; a faster stream than _CAPACITY / window shortens the window


class LinearTrend:
    """The newest of a stream of samples (size,) and the slope of the straight line fitted to those of the last seconds.

    Exact where the numbers are linear in time, at stamps with any spacing. Noise of standard deviation s on each of N evenly
    spaced samples in a window of T seconds gives a slope with 3.5 s / (T sqrt N), and the slope is late by half a window.
    """

    def __init__(self, size: int):
        self._times = np.zeros(2 * _CAPACITY, dtype=np.int64)
        self._samples = np.zeros((2 * _CAPACITY, size))
        self._first = self._end = 0

    def clear(self) -> None:
        """Forget every sample: the stream was interrupted."""
        self._first = self._end = 0

    def __len__(self) -> int:
        """Samples in the window."""
        return self._end - self._first

    @property
    def newest(self) -> np.ndarray:
        """The last sample (size,)."""
        return self._samples[self._end - 1]

    @property
    def stamp(self) -> int:
        """Of the last sample [ns]."""
        return int(self._times[self._end - 1])

    def push(self, nanoseconds: int, sample: np.ndarray, window: float) -> None:
        """Add a sample, forget those more than `window` [s] before; a repeated stamp replaces, one before begins anew."""
        if len(self) and nanoseconds <= self.stamp:
            self._end -= 1
            if nanoseconds < self._times[self._end]:
                self.clear()
        if self._end == len(self._times):  # slide the live half to the front: rows stay contiguous
            live, self._first, self._end = slice(self._first, self._end), 0, len(self)
            self._times[:self._end], self._samples[:self._end] = self._times[live].copy(), self._samples[live].copy()
        self._times[self._end], self._samples[self._end] = nanoseconds, sample
        self._end += 1
        late = np.searchsorted(self._times[self._first:self._end], nanoseconds - round(window * 1e9))
        self._first = max(self._first + int(late), self._end - _CAPACITY)

    def at(self, nanoseconds: int) -> np.ndarray:
        """(size,) at a stamp: between the samples of the window as they came, beyond them along the line."""
        live = slice(self._first, self._end)
        k = int(np.searchsorted(self._times[live], nanoseconds)) + self._first
        if k == self._end or (k == self._first and self._times[k] != nanoseconds):
            return self.newest + (nanoseconds - self.stamp) * 1e-9 * self.slope()
        if self._times[k] == nanoseconds:
            return self._samples[k]
        (t, after), (x, y) = self._times[k - 1:k + 1], self._samples[k - 1:k + 1]
        interpolated: np.ndarray = x + (nanoseconds - t) / (after - t) * (y - x)
        return interpolated

    def slope(self) -> np.ndarray:
        """(size,) per second; zero where the window holds a single sample."""
        live = slice(self._first, self._end)
        t = (self._times[live] - self.stamp) * 1e-9
        t -= t.mean()
        return t @ self._samples[live] / ((t @ t) or 1.0)
