"""The derivatives that a recording lacks: by Kalman smoothing of what was measured, by polynomials of what was planned.

Measured positions have noise, if only the steps of an encoder: they are smoothed (smoother.py). Positions without noise,
sparse or uneven ones, and those that come with accelerations are of a plan: polynomials reproduce them (differentiation.py),
and are fitted too where a window is given. Where stamps are not the times of the readings, these are found first
(reading_times.py). Each block of a long recording (blocks.py) is estimated by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .blocks import Blocks
from .differentiation import ORDERS, Window, checked, estimate_derivatives, with_times
from .reading_times import FEWEST, ReadingTimes, parts, reading_times
from .sample_clock import line_through
from .smoother import smooth

_EVEN = 0.33  # of a period: stamps that are off even times by less than that, in the mean, are of a robot that is read evenly
_EXACT = 2e-8  # rad, m: noise below that is rounding
_DIFFERENCE = 7  # order of the differences in which noise is seen: motion has vanished from them


class Smoothing(NamedTuple):
    """What a recording was smoothed with."""

    rate: float  # of the samples [Hz]
    noise: float  # largest standard deviation of a position that was found [rad, m]
    times: str = ""  # where stamps are not the times of the readings: what was found, for people

    @property
    def method(self) -> str:
        """How derivatives were estimated, for people."""
        return f"Kalman smoothing ({self.rate:.4g} Hz, positions known to {self.noise:.2g})" + with_times(self.times)


class RecordingEstimate(NamedTuple):
    """qd, qdd, qddd (N, n) of a recording, and how far off they may be.

    centred   : (N,) whether each is a reading of its own, with others on both sides, near enough to matter
    how       : what was done to estimate them, with the largest noise in a long recording
    deviation : (4, N, n) standard deviations of q, qd, qdd, qddd as they were estimated; None: by polynomials
    """

    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    centred: np.ndarray
    how: Window | Smoothing
    deviation: np.ndarray | None = None

    def only(self, samples: slice | np.ndarray) -> RecordingEstimate:
        """Some of the samples, by number."""
        qd, qdd, qddd, centred = (block[samples] for block in self[:4])
        known = None if self.deviation is None else self.deviation[:, samples]
        return RecordingEstimate(qd, qdd, qddd, centred, self.how, known)


def estimate_recording(t: np.ndarray, q: np.ndarray, qd: np.ndarray | None = None, qdd: np.ndarray | None = None,
                       window: float | None = None, degree: int = 5, joint_types: Sequence[str] = ()) -> RecordingEstimate:
    """Velocity, acceleration and jerk of a recording; what is given of these is returned as it is.

    t is (N,) [s] and strictly increasing, the others are (N, n). Velocities are not used where positions are smoothed: those
    of drivers are filtered and late. window [s], degree: fit polynomials, see estimate_derivatives. Continuous joints among
    joint_types may jump by whole turns.
    """
    known = {order: np.asarray(given, dtype=float) for order, given in enumerate((q, qd, qdd)) if given is not None}
    checked(t, known, degree)
    t = np.asarray(t, dtype=float)
    blocks, found = Blocks.of(float(t[0]), float(t[-1]), len(t)), []
    for k in range(blocks.number):
        window_at = slice(*np.searchsorted(t, blocks.window(k)))
        at = t[window_at]
        if (inner := slice(*np.searchsorted(at, (blocks.begin(k), blocks.begin(k + 1))))).stop > inner.start:
            part = estimate_block(at, {order: array[window_at] for order, array in known.items()}, window, degree, joint_types)
            found.append(part.only(inner))
    return joined(found)


def estimate_block(t: np.ndarray, known: dict[int, np.ndarray], window: float | None = None, degree: int = 5,
                   joint_types: Sequence[str] = ()) -> RecordingEstimate:
    """The same of one block and what is near it, of derivatives by order. NaN where samples are too few to tell."""
    if len(t) < ORDERS:
        unknown = np.full((ORDERS, *known[0].shape), np.nan)
        return RecordingEstimate(known.get(1, unknown[1]), known.get(2, unknown[2]), unknown[3], np.zeros(len(t), dtype=bool),
                                 Smoothing(0.0, 0.0), unknown)
    since, counted = checked(t, known, degree), known[0].copy()
    turning = [k for k, kind in enumerate(joint_types) if kind == "continuous"]
    counted[:, turning] = np.unwrap(counted[:, turning], axis=0)
    if 2 not in known and (found := reading_times(since, counted)):
        return _at_reading_times(found, known, window, degree, joint_types)
    stretches = [] if window is not None or 2 in known else _measured(since, counted)
    if not stretches:
        fitted = estimate_derivatives(t, known[0], known.get(1), known.get(2), window, degree, joint_types)
        return RecordingEstimate(fitted.qd, fitted.qdd, fitted.qddd, fitted.centred, fitted.window)
    motion, deviation, centred, smoothed = smooth(since, counted, stretches)
    short = np.isnan(deviation).any(axis=(0, 2))
    if short.any():
        fitted = estimate_derivatives(t, known[0], known.get(1), None, None, degree, joint_types)
        motion[1:, short], centred[short] = [block[short] for block in fitted[:3]], fitted.centred[short]
    for order, block in known.items():
        motion[order] = block
    noise = float(np.sqrt(smoothed.noise.variance(np.zeros(counted.shape[1])).max(initial=0.0)))
    _, qd, qdd, qddd = motion
    return RecordingEstimate(qd, qdd, qddd, centred, Smoothing(1.0 / smoothed.clock.period, noise), deviation)


def joined(found: Sequence[RecordingEstimate]) -> RecordingEstimate:
    """Of blocks that follow each other, one estimate."""
    deviations = [np.full((ORDERS, *part.qd.shape), np.nan) if part.deviation is None else part.deviation for part in found]
    known = any(part.deviation is not None for part in found)
    qd, qdd, qddd, centred = (np.concatenate(blocks) for blocks in zip(*(part[:4] for part in found)))
    return RecordingEstimate(qd, qdd, qddd, centred, what([part.how for part in found]),
                             np.concatenate(deviations, axis=1) if known else None)


def what(hows: Sequence[Window | Smoothing]) -> Window | Smoothing:
    """What to say of several blocks: where any was smoothed, that, with the largest noise."""
    smoothed = [how for how in hows if isinstance(how, Smoothing)]
    return max(smoothed, key=lambda how: how.noise) if smoothed else hows[0]


def _at_reading_times(found: ReadingTimes, known: dict[int, np.ndarray], window: float | None, degree: int,
                      joint_types: Sequence[str]) -> RecordingEstimate:
    """The estimate of each reading at its own time; a sample that repeats it has the same."""
    read = {order: block[found.new] for order, block in known.items()}
    own = estimate_block(found.times[found.new], read, window, degree, joint_types)
    every = own.only(np.cumsum(found.new) - 1)
    return every._replace(centred=every.centred & found.new, how=own.how._replace(times=found.words))


def _measured(t: np.ndarray, q: np.ndarray) -> list[slice]:
    """The stretches to be smoothed: long enough, of even samples, with noise; none where that is a plan."""
    long = [part for part in parts(t) if part.stop - part.start >= FEWEST]
    if not long or not q.shape[1] or not all(_even(t[part]) for part in long):
        return []
    rests = np.concatenate([np.diff(q[part], _DIFFERENCE, axis=0) for part in long])
    noise = np.median(np.abs(rests), axis=0).max() / math.sqrt(math.comb(2 * _DIFFERENCE, _DIFFERENCE))
    return long if noise > _EXACT else []


def _even(t: np.ndarray) -> bool:
    """Whether these are times of even samples, some of which are lost, by stamps that jitter."""
    first = t[:FEWEST] - t[0]
    period, _, variance = line_through(first)
    return math.sqrt(variance) < _EVEN * period
