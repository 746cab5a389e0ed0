"""Derivatives of sampled joint motion by least-squares polynomials, over stamps with any spacing.

CausalEstimator looks back only, for a running robot; estimate_derivatives looks both ways, for a recording.
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

import numpy as np

from .errors import InputError

ORDERS = 4  # position, velocity, acceleration, jerk
_CAPACITY = 256  # samples kept at most; a faster stream than _CAPACITY / window shortens the window
_CHUNK = 4096  # windows fitted at once: bounds the memory of a long recording


def _rows(s: np.ndarray, degree: int, order: int) -> np.ndarray:
    """The order-th derivative of 1, s, ..., s^degree at every s: shape s.shape + (degree + 1,)."""
    powers = np.arange(degree + 1)
    factors = np.array([math.perm(k, order) for k in powers], dtype=float)
    return factors * s[..., None] ** np.maximum(powers - order, 0)


class CausalEstimator:
    """Velocity, acceleration and jerk at the newest of a stream of samples.

    window : seconds looked back (longer where the stream is so slow that a fit needs it)
    degree : of the polynomial, at least 3; one more sample than this makes the first estimate
    """

    def __init__(self, joints: int, window: float, degree: int = 3):
        self.window, self.degree = window, degree
        self._joints = joints
        self._times = np.zeros(2 * _CAPACITY, dtype=np.int64)
        self._samples = np.zeros((2 * _CAPACITY, 2 * joints))  # positions | velocities
        self._first = self._end = 0

    def clear(self) -> None:
        """Forget every sample: the stream was interrupted."""
        self._first = self._end = 0

    def push(self, nanoseconds: int, q: np.ndarray, qd: np.ndarray) -> None:
        """Add a sample; qd is NaN where unknown. A stamp that does not advance is no new sample."""
        if self._end > self._first and nanoseconds <= self._times[self._end - 1]:
            return
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


def estimate_derivatives(
    t: np.ndarray,
    q: np.ndarray,
    qd: np.ndarray | None = None,
    qdd: np.ndarray | None = None,
    samples: int = 9,
    degree: int = 5,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Velocity, acceleration and jerk of a recording (qd, qdd, qddd); what is given is used and returned as it is.

    t is (N,) and strictly increasing, the others are (N, joints). Every estimate looks `samples` / 2 to either side, so
    it has no lag; within that distance of an end the window is one-sided and the noise grows towards the table
    above. With positions alone, spacing h and a rounding or noise of s per position, the defaults give the acceleration
    to 0.44 s / h^2 and the jerk to 0.87 s / h^3 inside: widen the window or lower the degree for measured data.
    """
    known = {order: np.asarray(given, dtype=float) for order, given in enumerate((q, qd, qdd)) if given is not None}
    t, window = _checked(t, known, samples, degree)
    estimates = np.empty((ORDERS, *known[0].shape))
    start = np.clip(np.arange(len(t)) - window // 2, 0, len(t) - window)
    for chunk in np.array_split(np.arange(len(t)), math.ceil(len(t) / _CHUNK)):
        estimates[:, chunk] = _fit(t, known, chunk, start[chunk, None] + np.arange(window), min(degree, window - 1))
    for order, given in known.items():
        estimates[order] = given
    return estimates[1], estimates[2], estimates[3]


def _checked(t: np.ndarray, known: dict[int, np.ndarray], samples: int, degree: int) -> tuple[np.ndarray, int]:
    """Times as floats from zero, and the window's size; InputError says what is wrong."""
    t = np.asarray(t, dtype=float)
    if degree < 3:
        raise InputError(f"degree is {degree}; jerk needs a polynomial of degree 3 or more")
    if samples <= degree:
        raise InputError(f"a window of {samples} samples cannot carry degree {degree}; it needs {degree + 1}")
    if len(t) < ORDERS:
        raise InputError(f"{len(t)} samples are too few to estimate jerk; it needs {ORDERS}")
    if not (np.diff(t) > 0).all():
        row = int(np.argmin(np.diff(t) > 0)) + 1
        raise InputError(f"time must increase: sample {row} is at {t[row]:.9g} s, the one before at {t[row - 1]:.9g} s")
    for array in known.values():
        if array.shape != (len(t), known[0].shape[1]):
            raise InputError(f"got an array of shape {array.shape} beside {len(t)} times and q of {known[0].shape}")
    return t - t[0], min(samples, len(t))


def _fit(t: np.ndarray, known: dict[int, np.ndarray], at: np.ndarray, windows: np.ndarray, degree: int) -> np.ndarray:
    """Derivatives of order 0 to 3 at samples `at`, each from its row of `windows`: (4, len(at), joints)."""
    offsets = t[windows] - t[at, None]
    span = np.ptp(offsets, axis=1)[:, None]
    rows = np.concatenate([_rows(offsets / span, degree, order) for order in known], axis=1)
    values = np.concatenate([array[windows] * span[:, :, None] ** order for order, array in known.items()], axis=1)
    coefficients = np.linalg.pinv(rows) @ values
    scale = np.array([math.factorial(order) for order in range(ORDERS)]) / span ** np.arange(ORDERS)
    return np.swapaxes(coefficients[:, :ORDERS] * scale[:, :, None], 0, 1)
