"""Long recordings are estimated block by block.

A block is estimated from its own samples and from those near it on either side, and from nothing else: an hour is no more to
keep in memory than a minute, and a part of a recording gives, to the last bit, what the whole gives.

The motion in a recording: what comes later is known too, so there is no lag, and no beginning at rest.

The filters of filter_bank.py run over the readings at the times when they were taken (reading_times.py), and give the motion
at an instant when more readings bring nothing. Where a stretch begins, they first run backwards through its beginning: that
tells in which state they start, and with what noise.

The derivatives that a recording lacks: by Kalman smoothing of what was measured, by polynomials of what was planned.

Measured positions have noise, if only the steps of an encoder: they are smoothed (smoother.py). Positions without noise,
sparse or uneven ones, and those that come with accelerations are of a plan: polynomials reproduce them (differentiation.py),
and are fitted too where a window is given. Where stamps are not the times of the readings, these are found first
(reading_times.py). Each block of a long recording (blocks.py) is estimated by itself.

A recording of motion and torques made ready for equations: each reading once, with velocity and acceleration.

What repeats the sample before in every position and torque is a message that was sent twice, and is left out. Times of the
readings, and derivatives, are found as for any recording (recording.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..errors import InputError, some
from .differentiation import ORDERS, Window, checked, estimate_derivatives, with_times
from .filter_bank import DeviationCalibration, FilterBank, SensorLearning
from .position_sensor import PositionNoise, consistent_stamps, without_turns
from .reading_times import ReadingTimes, Stretch, reading_times

SECONDS, SAMPLES = 60.0, 5000  # of a block, and at least so many samples at the recording's mean distance
SIDE = 12  # so much of a block is looked at on either side of it: longer than filters remember, and windows reach


class Blocks(NamedTuple):
    """Block k of a number of them begins at start + k * length [s]; the first with the recording."""

    start: float
    length: float
    number: int

    @classmethod
    def of(cls, first: float, last: float, samples: int) -> Blocks:
        """Of a recording with so many samples from first to last [s]."""
        length = max(SECONDS, SAMPLES * (last - first) / max(samples - 1, 1))
        return cls(first, length, int((last - first) / length) + 1)

    def begin(self, k: int) -> float:
        """When a block begins, and the one before ends [s]; the last has no end, the first is open to what came before."""
        return -math.inf if k <= 0 else math.inf if k >= self.number else self.start + k * self.length

    def around(self, k: int) -> tuple[float, float]:
        """From when to when samples lie that are near both sides of a beginning [s]."""
        side = self.length / SIDE
        return self.begin(k) - side, self.begin(k) + side

    def window(self, k: int) -> tuple[float, float]:
        """From when to when the samples lie that a block is estimated from [s]."""
        return self.around(k)[0], self.around(k + 1)[1]


_LATER, _LATER_PERIODS = 0.2, 70  # s, and at least so many samples: later ones say nothing more about an instant
_BEGINNING = 2000  # samples of a stretch that are first run through backwards
_SPEED = 8  # samples of which the speed at a beginning is taken
_BACKWARDS = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])[:, None, None]  # derivatives by time that runs backwards
_NEARBY = 0.02  # s to either side of an instant: filters that disagree there make its deviation larger
_NOISE = 1.2  # of the noise that filters claim: innovations are not as white as they assume
# Factors of the disagreement of filters in q, qd, qdd, qddd. With them 92 to 99 % of the errors of S-curves with stops (250 Hz
# to 5 kHz) are within two deviations; kalman_smooth motion has smaller errors
_BIAS = np.array([1.2, 1.5, 1.3, 1.2])
_EDGE, _EDGE_PERIODS = 0.05, 7  # s, and so many periods, at both ends of a stretch, in which the motion is not known so well


class Smoothed(NamedTuple):
    """A recording's motion and its standard deviations, (4, samples, n) each: rows q, qd, qdd, qddd; NaN outside of stretches.

    inside : (samples,) whether there are samples on both sides, near enough to matter
    noise  : what was found of the positions
    """

    motion: np.ndarray
    deviation: np.ndarray
    inside: np.ndarray
    noise: PositionNoise


def kalman_smooth(found: ReadingTimes, q: np.ndarray, wanted: np.ndarray) -> Smoothed:
    """Readings q (readings, n) with turns counted, and their times; wanted (samples,): instants of the samples [s]."""
    noise = PositionNoise(np.zeros(q.shape[1]))
    learning, calibration = SensorLearning(noise), DeviationCalibration(q.shape[1])
    motion, deviation = np.full((2, 4, len(wanted), q.shape[1]), np.nan)
    inside = np.zeros(len(wanted), dtype=bool)
    for stretch in found.stretches:
        of = slice(*np.searchsorted(found.reading, (stretch.readings.start, stretch.readings.stop)))
        times = found.times[stretch.readings]
        motion[:, of], deviation[:, of] = _smooth_stretch(stretch, times, q[stretch.readings], wanted[of], learning,
                                                            calibration)
        edge = max(_EDGE, _EDGE_PERIODS * stretch.period)
        inside[of] = (wanted[of] >= times[0] + edge) & (wanted[of] <= times[-1] - edge)
    return Smoothed(motion, deviation, inside, noise)


def _smooth_stretch(stretch: Stretch, times: np.ndarray, q: np.ndarray, wanted: np.ndarray,
             learning: SensorLearning, calibration: DeviationCalibration) -> tuple[np.ndarray, np.ndarray]:
    """Motion and deviations (4, wanted, n) at instants that do not fall."""
    lag = max(_LATER, _LATER_PERIODS * stretch.period)
    steps = np.diff(stretch.numbers)
    first = slice(_BEGINNING, None, -1) if len(q) > _BEGINNING else slice(None, None, -1)
    backwards = _begun(-times[first], q[first], learning, calibration, stretch.period, lag)
    for time, step, positions in zip(-times[first][1:], steps[:len(times[first]) - 1][::-1].tolist(), q[first][1:]):
        _take(backwards, learning, time, step, positions)
    filters = _begun(times, q, learning, calibration, stretch.period, lag)
    filters.begin_with(backwards.states * _BACKWARDS)
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    instants, last = wanted.tolist(), times[-1] + stretch.period
    for time, step, positions in zip(times[1:].tolist(), steps.tolist(), q[1:]):
        while time - instants[len(found)] > lag:  # samples lost at once may take many out of sight
            found.append(filters.smoothed(instants[len(found)], stretch.blur))
        _take(filters, learning, time, step, positions)
    found += [filters.smoothed(min(instant, last), stretch.blur) for instant in instants[len(found):]]
    motion, noise, disagreement = (np.stack(rows, axis=1) for rows in zip(*found))
    near = round(_NEARBY * len(wanted) / max(wanted[-1] - wanted[0], stretch.period))
    deviation = np.hypot(_NOISE * noise, _BIAS[:, None, None] * _largest_nearby(disagreement, near))
    deviation[0] = np.hypot(deviation[0], _repeated(q, near)[_reading_at(times, wanted)] * _position_noise(learning, q))
    return motion, deviation


def _largest_nearby(values: np.ndarray, reach: int) -> np.ndarray:
    """Return the largest of the values (4, N, n) at up to `reach` samples before and after each."""
    padded = np.pad(values, ((0, 0), (reach, reach), (0, 0)))
    width, window = 1, 2 * reach + 1
    while width < window:  # the maximum over a window is that of two shorter ones that cover it
        step = min(width, window - width)
        padded = np.maximum(padded[:, :-step], padded[:, step:])
        width += step
    return padded


def _repeated(q: np.ndarray, reach: int) -> np.ndarray:
    """Return for each reading (N, n) the share of equal neighbours among up to `reach` before and after it.

    Where readings repeat, their mean is no better than one of them: an encoder at rest is off by the same part of a step.
    """
    same = np.pad((np.diff(q, axis=0) == 0.0).astype(float), ((reach + 1, reach), (0, 0)))
    sums = np.cumsum(np.pad(same, ((1, 0), (0, 0))), axis=0)
    window = 2 * reach + 1
    share: np.ndarray = np.minimum((sums[window:] - sums[:-window])[:len(q)] / min(window, len(q)), 1.0)
    return share


def _reading_at(times: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the number of the last reading before or at each instant."""
    return np.clip(np.searchsorted(times, wanted, side="right") - 1, 0, len(times) - 1)


def _position_noise(learning: SensorLearning, q: np.ndarray) -> np.ndarray:
    """Return the standard deviation (n,) of one position at rest."""
    return np.sqrt(learning.noise.variance(np.zeros(q.shape[1])))


def _begun(times: np.ndarray, q: np.ndarray, learning: SensorLearning, calibration: DeviationCalibration, period: float,
           lag: float) -> FilterBank:
    """Filters at the first sample, with the speed of the first few."""
    learning.begin()
    since = times[:_SPEED] - times[:_SPEED].mean()
    return FilterBank(float(times[0]), q[0], since @ q[:_SPEED] / (since @ since), learning.noise, calibration, period, lag)


def _take(filters: FilterBank, learning: SensorLearning, time: float, steps: int, q: np.ndarray) -> None:
    sample = filters.take(time, steps, q)
    if steps == 1 and filters.settled < time:
        learning.update(filters, sample)


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


FEWEST = 64  # samples


@dataclass(frozen=True, eq=False)
class Prepared:
    """t (samples,) [s]; q, qd, qdd, tau (samples, n). notes: what was done to the recording, for people; how: derivatives."""

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    notes: tuple[str, ...]
    how: Window | Smoothing | None


def turns_removed(joints: Sequence[str]) -> str:
    """Return the note on revolute joints whose positions were unwrapped."""
    return f"positions of {some(joints)} jump by whole turns: unwrapped (declare such joints as continuous in the URDF)"


def prepare(t: np.ndarray, q: np.ndarray, tau: np.ndarray, qd: np.ndarray | None = None, qdd: np.ndarray | None = None,
            window: float | None = None, joint_types: tuple[str, ...] = (), joint_names: tuple[str, ...] = ()) -> Prepared:
    """From positions and torques (samples, n) at times t (samples,).

    Velocities count only where accelerations are given too, as of a simulation: those of drivers are filtered and late.
    window [s]: of polynomials instead of Kalman smoothing. Raises InputError for too few samples.
    """
    t, notes = np.asarray(t, dtype=float), []
    consistent = consistent_stamps(t)
    same = np.concatenate(([False], (np.diff(q, axis=0) == 0.0).all(axis=1) & (np.diff(tau, axis=0) == 0.0).all(axis=1)))
    repeated = consistent & same
    for wrong, text in ((~consistent, "with stamps that do not increase"), (repeated, "that repeat the reading before")):
        if wrong.any():
            notes.append(f"{np.count_nonzero(wrong)} of {len(t)} samples {text} are left out")
    new = consistent & ~repeated
    if np.count_nonzero(new) < FEWEST:
        raise InputError(f"the recording has {np.count_nonzero(new)} samples that differ; {FEWEST} are the fewest, some "
                         "thousands of 20 s or more are good")
    t, q, tau = t[new], q[new], tau[new]
    if qd is not None and qdd is not None:
        return Prepared(t, q, np.asarray(qd)[new], np.asarray(qdd)[new], tau, tuple(notes), None)
    guesses = estimate_recording(t, q, window=window, joint_types=joint_types)
    if guesses.wrapped:
        notes.append(turns_removed([joint_names[k] if joint_names else f"joint {k + 1}" for k in guesses.wrapped]))
    good = guesses.centred
    if not good.any():
        raise InputError(f"the recording is too short: derivatives are estimated by {guesses.how.method}")
    return Prepared(t[good], q[good], guesses.qd[good], guesses.qdd[good], tau[good], tuple(notes), guesses.how)
