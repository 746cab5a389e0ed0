"""Derivatives of time series by least-squares polynomials, over stamps with any spacing.

estimate_derivatives fits one polynomial per joint to all known data in a window (positions and known derivatives, with equal
weight once time is measured in windows) and differentiates it: for planned motions, which are exact and often sparse, and
where the caller gives a window. Windows are times, not numbers of samples, since the noise of a fit depends on its duration.
A motion that is a polynomial of at most the fit's degree is reproduced exactly. scipy.signal.savgol_filter needs even
sampling and no known derivatives.

LinearTrend computes the rate of a stream without rates, such as that of a force sensor, by a straight line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..errors import InputError

ORDERS = 4  # position, velocity, acceleration, jerk
WINDOW = 0.15  # default window [s]
_CHUNK = 40_000  # samples in the windows that are fitted at once: bounds the memory
DEFAULT_WINDOW_SAMPLES = 9  # samples to which a default window is widened
MAX_WINDOW_S = 2.0  # longest window that may be given [s]: rejects a number of samples given by mistake
_EDGE = 1e-5  # share of a window within which samples belong to it in spite of rounding


def _rows(s: np.ndarray, degree: int, order: int) -> np.ndarray:
    """Return the order-th derivative of 1, s, ..., s^degree at every s: shape s.shape + (degree + 1,)."""
    powers = np.arange(degree + 1)
    factors = np.array([math.perm(k, order) for k in powers], dtype=float)
    return factors * s[..., None] ** np.maximum(powers - order, 0)


class Window(NamedTuple):
    """Description of the windows of polynomials."""

    seconds: float
    samples: int  # in half of the windows or more
    fewest: int  # in any of them
    widened: bool  # from WINDOW, which would hold too few
    times: str = ""  # where stamps are not the times of the readings: what was found, for people

    @property
    def method(self) -> str:
        """Text on how derivatives were estimated."""
        return f"polynomials over {self}" + with_times(self.times)

    def __str__(self) -> str:
        notes = [f"{self.samples} samples"]
        if self.fewest < 0.9 * self.samples:
            notes.append(f"at least {self.fewest}")
        if self.widened:
            notes.append(f"{WINDOW:g} s would hold too few")
        return f"windows of {self.seconds:.3g} s ({', '.join(notes)})"


def with_times(words: str) -> str:
    """Return text on reading times, to append to a method."""
    return words and f"; {words}"


class DerivativeEstimates(NamedTuple):
    """Derivatives qd, qdd, qddd (N, joints) of a recording; centred (N,): whether the window is centred on the sample."""

    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    centred: np.ndarray
    window: Window


def estimate_derivatives(
    t: np.ndarray,
    q: np.ndarray,
    qd: np.ndarray | None = None,
    qdd: np.ndarray | None = None,
    window: float | None = None,
    degree: int = 5,
    joint_types: Sequence[str] = (),
) -> DerivativeEstimates:
    """Return velocity, acceleration and jerk of a recording; given derivatives are used and returned unchanged.

    t is (N,) [s] and strictly increasing, the others are (N, joints). window [s]: InputError if it holds too few samples for
    the degree. None: 0.15 s, or as much as nine samples take where they are further apart. Windows are centred, so there is no
    lag; next to an end, or to a gap longer than half a window, the window lies on one side and the noise grows. Continuous
    joints among joint_types may jump by whole turns: some drivers wrap them at pi. Away from ends, with positions alone, N
    samples in a window of T seconds, noise s on each, and a motion whose derivatives of order six and seven are q6 and q7,
    degree 5 gives

        qdd within 93 s/(T^2 sqrt N) and 8.0e-5 T^4 q6,    qddd within 1410 s/(T^3 sqrt N) and 5.6e-5 T^4 q7.
    """
    known = {order: np.asarray(given, dtype=float) for order, given in enumerate((q, qd, qdd)) if given is not None}
    t = check_times(t, known, degree)
    given, known[0] = known.copy(), known[0].copy()
    turning = [k for k, kind in enumerate(joint_types) if kind == "continuous"]
    known[0][:, turning] = np.unwrap(known[0][:, turning], axis=0)
    degree = min(degree, len(t) - 1)
    seconds, widened = _window_duration(t, window, degree)
    start, stop, centred = _windows(t, seconds, degree + 1)
    counts = stop - start
    estimates = np.empty((ORDERS, *known[0].shape))
    for chunk in np.array_split(np.arange(len(t)), math.ceil(len(t) * int(counts.max()) / _CHUNK)):
        estimates[:, chunk] = _fit(t, known, chunk, start[chunk], counts[chunk], degree)
    for order, block in given.items():
        estimates[order] = block
    used = Window(seconds, int(np.median(counts)), int(counts.min()), widened)
    return DerivativeEstimates(estimates[1], estimates[2], estimates[3], centred, used)


def check_times(t: np.ndarray, known: dict[int, np.ndarray], degree: int) -> np.ndarray:
    """Return times as floats from zero. Raises InputError for times that do not increase, too few samples or wrong shapes."""
    t = np.asarray(t, dtype=float)
    if degree < 3:
        raise InputError(f"degree is {degree}; jerk needs a polynomial of degree 3 or more")
    if len(t) < ORDERS:
        raise InputError(f"{len(t)} samples are too few to estimate jerk; it needs {ORDERS}")
    if not (np.diff(t) > 0).all():
        row = int(np.argmin(np.diff(t) > 0)) + 1
        raise InputError(f"time must increase: sample {row} is at {t[row]:.9g} s, the one before at {t[row - 1]:.9g} s")
    for array in known.values():
        if array.shape != (len(t), known[0].shape[1]):
            raise InputError(f"got an array of shape {array.shape} beside {len(t)} times and q of {known[0].shape}")
    return t - t[0]


def _window_duration(t: np.ndarray, asked: float | None, degree: int) -> tuple[float, bool]:
    """Return the duration of the windows [s], at most that of the recording, and whether it was widened beyond WINDOW."""

    def median_duration(samples: int) -> float:
        """Return the median duration of so many consecutive samples [s]."""
        reach = min(samples | 1, len(t)) - 1
        return float(np.median(t[reach:] - t[:len(t) - reach]))

    enough = median_duration(DEFAULT_WINDOW_SAMPLES)
    seconds = max(WINDOW, enough) if asked is None else asked
    if not 0.0 < seconds <= max(MAX_WINDOW_S, enough):
        raise InputError(f"the window is {seconds:g}; seconds above zero are needed, and at most "
                         f"{max(MAX_WINDOW_S, enough):.3g}")
    if seconds < (least := median_duration(degree + 1)) * (1.0 - _EDGE):
        raise InputError(f"a window of {seconds:g} s holds too few samples: degree {degree} needs {degree + 1 | 1} of them, "
                         f"which take {least:.3g} s here; better {enough:.3g} s")
    return min(seconds, float(t[-1])), asked is None and seconds > WINDOW


def _windows(t: np.ndarray, seconds: float, least: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each sample's window: its first sample, the one after its last, and whether the sample is centred.

    Windows do not extend across a gap longer than half a window. Where lost samples leave fewer than `least`, the nearest in
    order are used at any distance.
    """
    gaps = np.flatnonzero(np.diff(t) > 0.5 * seconds) + 1
    first, last = np.append(0, gaps), np.append(gaps, len(t)) - 1
    lengths = last - first + 1
    low, high = np.repeat(t[first], lengths), np.repeat(np.maximum(t[last] - seconds, t[first]), lengths)
    middle = t - 0.5 * seconds
    begin = np.clip(middle, low, high)
    start = np.searchsorted(t, begin - _EDGE * seconds)
    stop = np.searchsorted(t, begin + (1.0 + _EDGE) * seconds, side="right")
    few = stop - start < least
    start[few] = np.clip(np.flatnonzero(few) - least // 2, 0, len(t) - least)
    stop[few] = start[few] + least
    return start, stop, (np.abs(begin - middle) <= _EDGE * seconds) & ~few


def _fit(t: np.ndarray, known: dict[int, np.ndarray], at: np.ndarray, start: np.ndarray, counts: np.ndarray,
         degree: int) -> np.ndarray:
    """Return derivatives of order 0 to 3 at samples `at`, each from `counts` samples from `start` on: (4, len(at), joints)."""
    offsets_in_window = np.arange(counts.max())
    used = (offsets_in_window < counts[:, None])[:, :, None]
    windows = np.minimum(start[:, None] + offsets_in_window, len(t) - 1)
    span = (t[start + counts - 1] - t[start])[:, None]
    offsets = (t[windows] - t[at, None]) / span
    rows = np.concatenate([used * _rows(offsets, degree, order) for order in known], axis=1)
    values = np.concatenate([used * array[windows] * span[:, :, None] ** order for order, array in known.items()], axis=1)
    coefficients = np.linalg.pinv(rows) @ values
    scale = np.array([math.factorial(order) for order in range(ORDERS)]) / span ** np.arange(ORDERS)
    return np.swapaxes(coefficients[:, :ORDERS] * scale[:, :, None], 0, 1)


_CAPACITY = 256  # largest number of samples; a stream faster than _CAPACITY / window shortens the window


class LinearTrend:
    """Straight line fitted to the samples (size,) of a stream within a window.

    Exact where the numbers are linear in time, at stamps with any spacing. Noise of standard deviation s on each of N evenly
    spaced samples in a window of T seconds gives a slope with standard deviation 3.5 s / (T sqrt N); the slope lags by half a
    window.
    """

    def __init__(self, size: int):
        self._times = np.zeros(2 * _CAPACITY, dtype=np.int64)
        self._samples = np.zeros((2 * _CAPACITY, size))
        self._first = self._end = 0

    def clear(self) -> None:
        """Discard all samples after an interruption of the stream."""
        self._first = self._end = 0

    def __len__(self) -> int:
        """Return the number of samples in the window."""
        return self._end - self._first

    @property
    def newest(self) -> np.ndarray:
        """Last sample (size,)."""
        return self._samples[self._end - 1]

    @property
    def stamp(self) -> int:
        """Stamp of the last sample [ns]."""
        return int(self._times[self._end - 1])

    def push(self, nanoseconds: int, sample: np.ndarray, window: float) -> None:
        """Add a sample at a stamp [ns] and discard those more than `window` [s] older.

        A repeated stamp replaces the last sample; an earlier stamp discards all samples first.
        """
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

    def value_at(self, nanoseconds: int) -> np.ndarray:
        """Return the value (size,) at a stamp [ns]: interpolated within the window, extrapolated along the line beyond it."""
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
        """Return the slope (size,) per second; zero for a single sample."""
        live = slice(self._first, self._end)
        t = (self._times[live] - self.stamp) * 1e-9
        t -= t.mean()
        return t @ self._samples[live] / ((t @ t) or 1.0)
