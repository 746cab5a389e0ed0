"""Derivatives of sampled joint motion by least-squares polynomials, over stamps with any spacing.

CausalEstimator looks back only, for a running robot; estimate_derivatives looks both ways, for a recording. Windows are
times, not numbers of samples: what a fit makes of noise depends on the time that it sees.
Both fit one polynomial per joint to everything known in a window (positions and any known derivatives, with equal
weight once time is measured in windows) and differentiate it. A motion that is a polynomial of at most the fit's
degree is reproduced exactly.

What a causal fit costs, over a window of T seconds with N evenly spaced samples (N large; test_derivatives.py checks
the table). First, noise of standard deviation s on positions alone; second, noise sv on velocities where they are
known too; last, the error at a motion whose lowest derivative that the fit cannot follow is q4, q5 or q6:

    degree   qdd from s          qddd from s          qdd from sv        qddd from sv        qdd error     qddd error
      3      161 s/(T^2 sqrt N)    317 s/(T^3 sqrt N)  13.6 sv/(T sqrt N)   26 sv/(T^2 sqrt N)  0.11 T^2 q4   0.50 T q4
      4      563 s/(T^2 sqrt N)   2539 s/(T^3 sqrt N)  34.3 sv/(T sqrt N)  159 sv/(T^2 sqrt N)  0.014 T^3 q5  0.11 T^2 q5
      5     1502 s/(T^2 sqrt N)  11427 s/(T^3 sqrt N)  68.9 sv/(T sqrt N)  560 sv/(T^2 sqrt N)  0.0013 T^4 q6 0.015 T^3 q6

Degree 3 therefore shows jerk late by half a window. At a fixed rate, twice the window divides the noise of the jerk
by 11 without velocities and by 6 with them: widen the window before raising the degree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..errors import InputError

TURN = 2.0 * math.pi
ORDERS = 4  # position, velocity, acceleration, jerk
_CAPACITY = 256  # samples kept at most; a faster stream than _CAPACITY / window shortens the window
_CHUNK = 40_000  # samples in the windows that are fitted at once: bounds the memory of a long recording

# Of recordings
WINDOW = 0.15  # s
ENOUGH = 9  # samples: a window that nobody asked for is widened until it holds so many
LONGEST = 2.0  # s that may be asked for: whoever gives a number of samples by mistake hears of it
_EDGE = 1e-5  # of a window: samples on its edge belong to it, in spite of rounding


def _rows(s: np.ndarray, degree: int, order: int) -> np.ndarray:
    """The order-th derivative of 1, s, ..., s^degree at every s: shape s.shape + (degree + 1,)."""
    powers = np.arange(degree + 1)
    factors = np.array([math.perm(k, order) for k in powers], dtype=float)
    return factors * s[..., None] ** np.maximum(powers - order, 0)


class CausalEstimator:
    """Velocity, acceleration and jerk at the newest of a stream of samples.

    window  : seconds looked back (longer where the stream is so slow that a fit needs it)
    degree  : of the polynomial, at least 3; one more sample than this makes the first estimate
    turning : numbers of the joints that may be told a whole turn away at any sample, as of one that wraps at pi
    """

    def __init__(self, joints: int, window: float, degree: int = 3, turning: Sequence[int] = ()):
        self.window, self.degree = window, degree
        self._joints = joints
        self._turning = np.array(turning, dtype=np.intp)
        self._times = np.zeros(2 * _CAPACITY, dtype=np.int64)
        self._samples = np.zeros((2 * _CAPACITY, 2 * joints))  # positions | velocities
        self._first = self._end = 0

    def clear(self) -> None:
        """Forget every sample: the stream was interrupted."""
        self._first = self._end = 0

    def push(self, nanoseconds: int, q: np.ndarray, qd: np.ndarray) -> bool:
        """Add a sample; qd is NaN where unknown. Whether it is one: a repeated stamp is none; what goes back begins anew."""
        if self._end > self._first:
            ahead = nanoseconds - int(self._times[self._end - 1])
            if ahead == 0:
                return False
            if ahead < 0:
                self.clear()
            elif len(self._turning):
                self._turn(ahead * 1e-9, q, qd)
        if self._end == len(self._times):  # slide the live half to the front: rows stay contiguous
            live = slice(self._first, self._end)
            self._end -= self._first
            self._times[: self._end], self._samples[: self._end] = self._times[live], self._samples[live]
            self._first = 0
        self._times[self._end] = nanoseconds
        self._samples[self._end, : self._joints] = q
        self._samples[self._end, self._joints :] = qd
        self._end += 1
        self._forget(nanoseconds - round(self.window * 1e9))
        return True

    def _turn(self, ahead: float, q: np.ndarray, qd: np.ndarray) -> None:
        """Move what is kept by whole turns, so that it leads to a new sample `ahead` seconds after the last one."""
        at, last = self._turning, self._samples[self._end - 1]
        mean = 0.5 * (last[self._joints + at] + qd[at])
        expected = last[at] + ahead * np.where(np.isfinite(mean), mean, 0.0)
        turns = np.round((q[at] - expected) / TURN)
        if turns.any():
            self._samples[self._first : self._end, at] += TURN * turns

    def _forget(self, before: int) -> None:
        while self._end - self._first > _CAPACITY or (
            self._end - self._first > self.degree + 1 and self._times[self._first] < before
        ):
            self._first += 1

    @property
    def ready(self) -> bool:
        return self._end - self._first > self.degree

    def estimate(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Velocity, acceleration, jerk at the newest sample; velocities enter where the whole window has them."""
        live = slice(self._first, self._end)
        ages = (self._times[live] - self._times[self._end - 1]) * 1e-9
        span = -ages[0]
        positions, velocities = np.hsplit(self._samples[live], 2)
        rows, values = _rows(ages / span, self.degree, 0), positions
        if np.isfinite(velocities).all():
            rows = np.concatenate((rows, _rows(ages / span, self.degree, 1)))
            values = np.concatenate((values, span * velocities))
        coefficients = np.linalg.lstsq(rows, values, rcond=None)[0]
        return coefficients[1] / span, 2.0 * coefficients[2] / span**2, 6.0 * coefficients[3] / span**3


class Window(NamedTuple):
    """What a recording was fitted over."""

    seconds: float
    samples: int  # in half of the windows or more
    fewest: int  # in any of them
    widened: bool  # from WINDOW, which would hold too few

    def __str__(self) -> str:
        notes = [f"{self.samples} samples"]
        if self.fewest < 0.9 * self.samples:
            notes.append(f"in places {self.fewest}")
        if self.widened:
            notes.append(f"{WINDOW:g} s would hold too few")
        return f"windows of {self.seconds:.3g} s ({', '.join(notes)})"


class Estimates(NamedTuple):
    """qd, qdd, qddd (N, joints) of a recording, and whether each estimate (N,) looks as far ahead as back."""

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
) -> Estimates:
    """Velocity, acceleration and jerk of a recording; of these, what is given is used and returned as it is.

    t is (N,) [s] and strictly increasing, the others are (N, joints). window [s]: InputError if it holds too few samples for
    the degree. None: 0.15 s, or as much as nine samples take where they are further apart. An estimate looks half a window
    to either side, so it has no lag; next to an end, or to a gap longer than that, the window lies on one side and the noise
    grows towards the table above. Continuous joints among joint_types may jump by whole turns: some drivers wrap
    them at pi. In between, with positions alone, N samples in a window of T seconds, noise s on each, and
    a motion whose derivatives of order six and seven are q6 and q7, degree 5 gives

        qdd within 93 s/(T^2 sqrt N) and 8.0e-5 T^4 q6,    qddd within 1410 s/(T^3 sqrt N) and 5.6e-5 T^4 q7.
    """
    known = {order: np.asarray(given, dtype=float) for order, given in enumerate((q, qd, qdd)) if given is not None}
    t = _checked(t, known, degree)
    given, known[0] = known.copy(), known[0].copy()
    turning = [k for k, kind in enumerate(joint_types) if kind == "continuous"]
    known[0][:, turning] = np.unwrap(known[0][:, turning], axis=0)
    degree = min(degree, len(t) - 1)
    seconds, widened = _width(t, window, degree)
    start, stop, centred = _windows(t, seconds, degree + 1)
    counts = stop - start
    estimates = np.empty((ORDERS, *known[0].shape))
    for chunk in np.array_split(np.arange(len(t)), math.ceil(len(t) * int(counts.max()) / _CHUNK)):
        estimates[:, chunk] = _fit(t, known, chunk, start[chunk], counts[chunk], degree)
    for order, block in given.items():
        estimates[order] = block
    used = Window(seconds, int(np.median(counts)), int(counts.min()), widened)
    return Estimates(estimates[1], estimates[2], estimates[3], centred, used)


def _checked(t: np.ndarray, known: dict[int, np.ndarray], degree: int) -> np.ndarray:
    """Times as floats from zero; InputError says what is wrong."""
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


def _width(t: np.ndarray, asked: float | None, degree: int) -> tuple[float, bool]:
    """Seconds of the windows, at most the whole recording, and whether these are more than WINDOW because they must be."""

    def taken(samples: int) -> float:
        """What so many samples in a row, one of them in the middle, take in half of all places."""
        reach = min(samples | 1, len(t)) - 1
        return float(np.median(t[reach:] - t[:len(t) - reach]))

    enough = taken(ENOUGH)
    seconds = max(WINDOW, enough) if asked is None else asked
    if not 0.0 < seconds <= max(LONGEST, enough):
        raise InputError(f"the window is {seconds:g}; seconds above zero are needed, and at most {max(LONGEST, enough):.3g}")
    if seconds < (least := taken(degree + 1)) * (1.0 - _EDGE):
        raise InputError(f"a window of {seconds:g} s holds too few samples: degree {degree} needs {degree + 1 | 1} of them, "
                         f"which take {least:.3g} s here; better {enough:.3g} s")
    return min(seconds, float(t[-1])), asked is None and seconds > WINDOW


def _windows(t: np.ndarray, seconds: float, least: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each sample's window: its first sample, the one after its last, and whether the sample is in the middle.

    A gap longer than half a window is an end: windows do not reach across. Where lost samples leave fewer than `least`, the
    nearest in order are taken, wherever they are.
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
    """Derivatives of order 0 to 3 at samples `at`, each from `counts` samples from `start` on: (4, len(at), joints)."""
    places = np.arange(counts.max())
    used = (places < counts[:, None])[:, :, None]
    windows = np.minimum(start[:, None] + places, len(t) - 1)
    span = (t[start + counts - 1] - t[start])[:, None]
    offsets = (t[windows] - t[at, None]) / span
    rows = np.concatenate([used * _rows(offsets, degree, order) for order in known], axis=1)
    values = np.concatenate([used * array[windows] * span[:, :, None] ** order for order, array in known.items()], axis=1)
    coefficients = np.linalg.pinv(rows) @ values
    scale = np.array([math.factorial(order) for order in range(ORDERS)]) / span ** np.arange(ORDERS)
    return np.swapaxes(coefficients[:, :ORDERS] * scale[:, :, None], 0, 1)
