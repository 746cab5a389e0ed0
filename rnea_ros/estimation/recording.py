"""The derivatives that a recording lacks: by Kalman smoothing of what was measured, by polynomials of what was planned.

Measured positions have noise, if only the steps of an encoder: they are smoothed (smoother.py). Positions without noise,
sparse or uneven ones, and those that come with accelerations are of a plan: polynomials reproduce them (differentiation.py),
and are fitted too where a window is given. Where stamps are not the times of the readings, these are found first
(reading_times.py). Each block of a long recording (blocks.py) is estimated by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from .blocks import Blocks
from .differentiation import ORDERS, Window, checked, estimate_derivatives, with_times
from .reading_times import ReadingTimes, reading_times
from .repairs import without_turns
from .smoother import smooth as kalman_smooth

_EXACT = 2e-8  # rad, m: noise below that is rounding


class Smoothing(NamedTuple):
    """What a recording was smoothed with."""

    rate: float  # of the samples [Hz]
    noise: float  # largest standard deviation of a position that was found [rad, m]
    times: str = ""  # where stamps are not the times of the readings: what was found, for people

    @property
    def method(self) -> str:
        """How derivatives were estimated, for people."""
        return f"Kalman smoothing ({self.rate:.4g} Hz, position noise {self.noise:.2g})" + with_times(self.times)


class RecordingEstimate(NamedTuple):
    """qd, qdd, qddd (N, n) of a recording, and how far off they may be.

    They are of the stamps; where these say nothing of when readings were taken (reading_times.py), of the readings.

    centred   : (N,) whether each is a reading of its own, with others on both sides, near enough to matter
    how       : what was done to estimate them, with the largest noise in a long recording
    deviation : (4, N, n) standard deviations of q, qd, qdd, qddd as they were estimated; None: by polynomials
    q         : (N, n) positions at the same instants: smoothed too, or those given
    wrapped   : numbers of the revolute joints from whose positions jumps of whole turns were removed
    """

    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    centred: np.ndarray
    how: Window | Smoothing
    deviation: np.ndarray | None
    q: np.ndarray
    wrapped: tuple[int, ...] = ()

    def only(self, samples: slice | np.ndarray) -> RecordingEstimate:
        """Some of the samples, by number."""
        qd, qdd, qddd, centred, q = (block[samples] for block in (*self[:4], self.q))
        known = None if self.deviation is None else self.deviation[:, samples]
        return RecordingEstimate(qd, qdd, qddd, centred, self.how, known, q, self.wrapped)


def smooth(t: np.ndarray, q: np.ndarray, joint_types: Sequence[str] = (), window: float | None = None) -> RecordingEstimate:
    """Smooth measured joint positions and return them with velocity, acceleration, jerk and standard deviations.

    t           : (N,) strictly increasing times [s], N >= 4; samples may be lost and times may jitter
    q           : (N, n) positions [rad, m], as an encoder reports them
    joint_types : of the n joints as in a URDF: jumps of whole turns are removed from continuous joints, and from revolute ones
                  where they cannot have moved that far
    window      : time over which polynomials are fitted [s]; None: Kalman smoothing of noisy positions

    The result has q, qd, qdd, qddd (N, n) at t, and deviation (4, N, n), the standard deviation of each, or None where
    polynomials were fitted (positions without noise). Raises InputError for wrong shapes, times or values.
    """
    try:
        t, q = np.asarray(t, dtype=float), np.asarray(q, dtype=float)
    except (TypeError, ValueError):
        raise InputError("t and q hold values that are no numbers; t (N,) and q (N, n) are needed") from None
    if t.ndim != 1 or q.ndim != 2 or len(t) != len(q) or len(joint_types) not in (0, q.shape[1]):
        raise InputError(f"t is {t.shape}, q {q.shape}, with {len(joint_types)} joint types; t (N,), q (N, n) are needed, and "
                         "n joint types or none")
    if not (np.isfinite(t).all() and np.isfinite(q).all()):
        raise InputError("t or q holds a value that is not finite; leave such samples out")
    return estimate_recording(t, q, window=window, joint_types=joint_types)


def estimate_recording(t: np.ndarray, q: np.ndarray, qd: np.ndarray | None = None, qdd: np.ndarray | None = None,
                       window: float | None = None, degree: int = 5, joint_types: Sequence[str] = ()) -> RecordingEstimate:
    """Velocity, acceleration and jerk of a recording; what is given of these is returned as it is.

    t is (N,) [s] and strictly increasing, the others are (N, n). Velocities are not used where positions are smoothed: those
    of drivers are filtered and late. window [s], degree: fit polynomials, see estimate_derivatives. Positions of continuous
    joints among joint_types may jump by whole turns; so may those of revolute joints that cannot have moved that far
    (repairs.py).
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
                                 Smoothing(0.0, 0.0), unknown, known[0])
    since = checked(t, known, degree)
    given, (counted, wrapped) = known[0], without_turns(t, known[0], joint_types)
    found = _estimated(t, since, {**known, 0: counted}, window, degree)
    return found._replace(q=found.q + (given - counted), wrapped=tuple(wrapped))


def _estimated(t: np.ndarray, since: np.ndarray, known: dict[int, np.ndarray], window: float | None,
               degree: int) -> RecordingEstimate:
    """Return the estimate of positions in which whole turns are counted. since: t from zero on [s]."""
    if 2 in known:
        return _fitted(t, known, window, degree)
    times = reading_times(since, known[0])
    if window is None and times.even and times.noise.max(initial=0.0) > _EXACT:
        return _smoothed(t, known, times, degree)
    if not times.vague:
        return _fitted(t, known, window, degree)
    read = {order: block[times.new] for order, block in known.items()}
    own = _fitted(times.times, read, window, degree).only(times.reading)
    return own._replace(centred=own.centred & times.new, how=own.how._replace(times=times.words))


def _fitted(t: np.ndarray, known: dict[int, np.ndarray], window: float | None, degree: int) -> RecordingEstimate:
    """Return the estimate by polynomials."""
    fitted = estimate_derivatives(t, known[0], known.get(1), known.get(2), window, degree)
    return RecordingEstimate(fitted.qd, fitted.qdd, fitted.qddd, fitted.centred, fitted.window, None, known[0])


def _smoothed(t: np.ndarray, known: dict[int, np.ndarray], times: ReadingTimes, degree: int) -> RecordingEstimate:
    """Return the estimate by Kalman filters; what lies outside of long stretches by polynomials."""
    counted = known[0]
    wanted = times.times[times.reading] if times.vague else t - t[0]
    (q, *derivatives), deviation, inside, noise = kalman_smooth(times, counted[times.new], wanted)
    inside &= times.new
    if (short := np.isnan(deviation).any(axis=(0, 2))).any():
        fitted = _fitted(t, {order: known[order] for order in known if order < 2}, None, degree).only(short)
        q[short], inside[short] = fitted.q, fitted.centred
        for block, estimate in zip(derivatives, fitted[:3]):
            block[short] = estimate
    period = float(np.median([stretch.period for stretch in times.stretches]))
    largest = float(np.sqrt(noise.variance(np.zeros(counted.shape[1])).max(initial=0.0)))
    return RecordingEstimate(known.get(1, derivatives[0]), derivatives[1], derivatives[2], inside,
                             Smoothing(1.0 / period, largest, times.words), deviation, q)


def joined(found: Sequence[RecordingEstimate]) -> RecordingEstimate:
    """Of blocks that follow each other, one estimate."""
    deviations = [np.full((ORDERS, *part.qd.shape), np.nan) if part.deviation is None else part.deviation for part in found]
    known = any(part.deviation is not None for part in found)
    qd, qdd, qddd, centred, q = (np.concatenate(blocks) for blocks in zip(*((*part[:4], part.q) for part in found)))
    wrapped = sorted({joint for part in found for joint in part.wrapped})
    return RecordingEstimate(qd, qdd, qddd, centred, what([part.how for part in found]),
                             np.concatenate(deviations, axis=1) if known else None, q, tuple(wrapped))


def what(hows: Sequence[Window | Smoothing]) -> Window | Smoothing:
    """What to say of several blocks: where any was smoothed, that, with the largest noise."""
    smoothed = [how for how in hows if isinstance(how, Smoothing)]
    return max(smoothed, key=lambda how: how.noise) if smoothed else hows[0]
