"""Derivatives of recorded joint positions: Kalman smoothing of measured ones, polynomials for planned ones.

Measured positions have noise, if only encoder quantization, and are smoothed. Positions without noise, sparse or uneven
ones, and those that come with accelerations are planned: polynomials reproduce them (differentiation.py). Polynomials are
also fitted if a window is given. Where stamps are not the times of the readings, these are estimated first
(reading_times.py).

The filters of filter_bank.py run over the readings and are evaluated at an instant once later readings change nothing, so
there is no lag. Each stretch is first filtered backwards through its beginning, which gives the initial state and noise.

scipy.signal beside them, on 10 s of smooth motion of seven joints at 500 Hz with encoder steps of 2^-15 turn: the best of
Savitzky and Golay's filters, with a window chosen by the true motion, is off by 0.31 % in acceleration and 0.29 % in jerk, the
best Butterworth filter by 0.09 and 0.45 %; these filters, without a setting, by 0.06 and 0.45 %, in 0.9 s instead of 0.02 s.
Neither of scipy's takes stamps that are not even, or gives standard deviations.

Long recordings are estimated block by block, from the samples of a block and those near it on either side. Memory is
bounded, and a part of a recording gives, to the last bit, the result of the whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..errors import InputError, some
from .differentiation import ORDERS, Window, check_times, estimate_derivatives, with_times
from .filter_bank import JUMPS, DeviationCalibration, FilterBank, SensorLearning, SmoothedState, bandwidths
from .position_sensor import TURN, PositionNoise, consistent_stamps, unwrap_positions
from .reading_times import ReadingTimes, Stretch, reading_times

BLOCK_S, MIN_BLOCK_SAMPLES = 60.0, 5000  # duration of a block [s]; at least this many samples at the recording's mean period
# Block duration over that of the margin on either side, which exceeds the memory of filters and all windows
BLOCK_MARGIN_RATIO = 12


class Blocks(NamedTuple):
    """Division of a recording into blocks: block k begins at start + k * length [s]."""

    start: float
    length: float
    number: int

    @classmethod
    def of(cls, first: float, last: float, samples: int) -> Blocks:
        """Return the blocks of a recording with so many samples from `first` to `last` [s]."""
        length = max(BLOCK_S, MIN_BLOCK_SAMPLES * (last - first) / max(samples - 1, 1))
        return cls(first, length, int((last - first) / length) + 1)

    def begin(self, k: int) -> float:
        """Return the begin of block k [s], the end of block k - 1; -inf for the first block, inf after the last."""
        return -math.inf if k <= 0 else math.inf if k >= self.number else self.start + k * self.length

    def around(self, k: int) -> tuple[float, float]:
        """Return the interval [s] of samples near both sides of the begin of block k."""
        side = self.length / BLOCK_MARGIN_RATIO
        return self.begin(k) - side, self.begin(k) + side

    def window(self, k: int) -> tuple[float, float]:
        """Return the interval [s] of the samples from which block k is estimated."""
        return self.around(k)[0], self.around(k + 1)[1]


@dataclass(frozen=True)
class SmoothingOptions:
    """Tuning of the smoother and of its standard deviations."""

    smoothing_lag_s: float = 0.2  # lag of the smoother: this time [s]
    smoothing_lag_periods: int = 70  # and at least this many samples
    start_samples: int = 2000  # samples of a stretch that are first filtered backwards
    speed_samples: int = 8  # samples from which the initial speed is computed
    # bias: the motion is smoothed again by filters of this order, with this share of the first filters' bandwidth
    bias_order: int = 3
    bias_bandwidth: float = 0.7
    bias_noise: float = 2.0  # variance of noise in the squared difference, as a multiple of the smoothed motion's
    bias_reach: float = 4.0  # interval to either side over which the bias is maximized, in time constants of the filters
    # weight of the filters for jerk that jumps from which the bias counts as that of jumps, and from which it does so wholly
    jump_weights: tuple[float, float] = (0.1, 0.5)
    min_weight: float = 1e-3  # largest weight of a filter below which its bias is not computed
    mirrored_s: float = 1.0  # motion mirrored at both ends, longer than the memory of the filters [s]
    edge_s: float = 0.05  # time at both ends of a stretch in which the motion is less certain [s],
    edge_periods: int = 7  # and periods
    exact_std: float = 2e-8  # position noise below which positions are exact up to rounding [rad, m]


OPTIONS = SmoothingOptions()

_BACKWARDS = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])[:, None, None]  # signs of the derivatives in reversed time
# Variance of the bias in q, qd, qdd, qddd over the squared difference that smoothing again makes, where jerk jumps and where
# it does not; and share of the variance of motion above the bandwidth that filters of smooth motion assume
_JUMP_FACTORS = np.array([0.45, 0.45, 0.45, 2.3])[:, None, None]
_SMOOTH_FACTORS = np.array([0.04, 0.04, 0.04, 0.02])[:, None, None]
_PROCESS_SHARES = np.array([0.25, 0.25, 0.25, 0.05])[:, None, None]
_ZERO_STD = 1.0 / math.sqrt(3.0)  # root mean square of the encoder's zero, which is within one step [steps]


class SmoothedMotion(NamedTuple):
    """Smoothed motion of a recording and its standard deviations, (4, samples, n) each: q, qd, qdd, qddd.

    NaN outside of stretches.

    inside : (samples,) whether there are samples near enough on both sides
    noise  : noise model of the positions
    """

    motion: np.ndarray
    deviation: np.ndarray
    inside: np.ndarray
    noise: PositionNoise


def kalman_smooth(found: ReadingTimes, q: np.ndarray, wanted: np.ndarray) -> SmoothedMotion:
    """Smooth readings q (readings, n) without wraps at their reading times, and evaluate at instants `wanted` (samples,) [s].
    """
    noise = PositionNoise(np.zeros(q.shape[1]))
    learning, calibration = SensorLearning(noise), DeviationCalibration(q.shape[1])
    motion, deviation = np.full((2, 4, len(wanted), q.shape[1]), np.nan)
    inside = np.zeros(len(wanted), dtype=bool)
    for stretch in found.stretches:
        of = slice(*np.searchsorted(found.reading, (stretch.readings.start, stretch.readings.stop)))
        times = found.times[stretch.readings]
        motion[:, of], deviation[:, of] = _smooth_stretch(stretch, times, q[stretch.readings], wanted[of], learning,
                                                            calibration)
        edge = max(OPTIONS.edge_s, OPTIONS.edge_periods * stretch.period)
        inside[of] = (wanted[of] >= times[0] + edge) & (wanted[of] <= times[-1] - edge)
    return SmoothedMotion(motion, deviation, inside, noise)


def _smooth_stretch(stretch: Stretch, times: np.ndarray, q: np.ndarray, wanted: np.ndarray,
             learning: SensorLearning, calibration: DeviationCalibration) -> tuple[np.ndarray, np.ndarray]:
    """Return motion and deviations (4, wanted, n) of one stretch at instants that do not decrease."""
    lag = max(OPTIONS.smoothing_lag_s, OPTIONS.smoothing_lag_periods * stretch.period)
    steps = np.diff(stretch.numbers)
    first = slice(OPTIONS.start_samples, None, -1) if len(q) > OPTIONS.start_samples else slice(None, None, -1)
    backwards = _started_filters(-times[first], q[first], learning, calibration, stretch.period, lag)
    for time, step, positions in zip(-times[first][1:], steps[:len(times[first]) - 1][::-1].tolist(), q[first][1:]):
        _add_sample(backwards, learning, time, step, positions)
    filters = _started_filters(times, q, learning, calibration, stretch.period, lag)
    filters.set_states(backwards.states * _BACKWARDS)
    found: list[SmoothedState] = []
    instants, last = wanted.tolist(), times[-1] + stretch.period
    nearest = _reading_at(times, wanted)
    time_stds = stretch.time_stds[nearest]
    for time, step, positions in zip(times[1:].tolist(), steps.tolist(), q[1:]):
        while time - instants[len(found)] > lag:  # several at once after lost samples
            found.append(filters.smooth_at(instants[len(found)], time_stds[len(found)]))
        _add_sample(filters, learning, time, step, positions)
    for instant, stds in zip(instants[len(found):], time_stds[len(found):]):
        found.append(filters.smooth_at(min(instant, last), stds))
    motion, noise, process, weights = (np.stack(rows, axis=1) for rows in zip(*found))
    width = bandwidths(stretch.period)
    low, high = OPTIONS.jump_weights
    jump = (np.clip(weights[JUMPS].sum(axis=0), *OPTIONS.jump_weights) - low) / (high - low)
    bias = np.maximum(_squared_bias(motion[3], wanted, weights, stretch.period) - OPTIONS.bias_noise * noise, 0.0)
    bias *= _SMOOTH_FACTORS + (_JUMP_FACTORS - _SMOOTH_FACTORS) * jump
    time_constant = math.exp(-np.median(np.tensordot(np.log(width), weights, 1)))
    near = round(OPTIONS.bias_reach * time_constant * len(wanted) / max(wanted[-1] - wanted[0], stretch.period))
    variance = noise + _PROCESS_SHARES * process + _largest_nearby(bias, near)
    at_rest = _repeated_share(q, near)[nearest] * learning.noise.std_at_rest
    variance[0] += at_rest**2 + (_ZERO_STD * learning.noise.resolution) ** 2
    return motion, np.sqrt(variance)


def _squared_bias(jerk: np.ndarray, t: np.ndarray, weights: np.ndarray, period: float) -> np.ndarray:
    """Return the square of what smoothing again takes from the smoothed motion, (4, samples, n).

    Smoothing with the low-pass filter H takes (1 - H) x from a motion x. What it takes from the smoothed motion, which is
    known, shows where that was much (Tukey, Exploratory Data Analysis, 16: twicing). Derivatives follow from the jerk,
    divided by powers of i times the frequency.

    jerk    : (samples, n) smoothed jerk at instants t (samples,) [s]
    weights : (m, samples, n) weights of the filters
    """
    steps = round((t[-1] - t[0]) / period)
    even = t[0] + period * np.arange(steps + 1)
    inner = np.stack([np.interp(even, t, column) for column in jerk.T], axis=1)
    side = min(steps, math.ceil(OPTIONS.mirrored_s / period))
    extended = np.concatenate((inner[side:0:-1], inner, inner[-2:-side - 2:-1]))
    size = 1 << (len(extended) - 1).bit_length()
    extended = np.concatenate((extended, np.linspace(extended[-1], extended[0], size - len(extended))))
    spectrum, frequency = np.fft.rfft(extended, axis=0), TURN * np.fft.rfftfreq(size, period)
    samples = side + np.clip(np.rint((t - t[0]) / period).astype(int), 0, steps)
    difference = np.zeros((ORDERS, *jerk.shape))
    for width, weight in zip(bandwidths(period), weights):
        if weight.max() < OPTIONS.min_weight:
            continue
        ratio = (frequency / (OPTIONS.bias_bandwidth * width)) ** (2 * OPTIONS.bias_order)
        for order in range(ORDERS):
            share = (ratio / (1.0 + ratio)).astype(complex)
            share[1:] /= (1j * frequency[1:]) ** (ORDERS - 1 - order)
            difference[order] += np.fft.irfft(spectrum * share[:, None], size, axis=0)[samples] * weight
    return difference**2


def _largest_nearby(values: np.ndarray, reach: int) -> np.ndarray:
    """Return the maximum of values (4, N, n) over `reach` samples to either side of each."""
    padded = np.pad(values, ((0, 0), (reach, reach), (0, 0)))
    width, window = 1, 2 * reach + 1
    while width < window:  # the maximum over a window is that of two shorter ones that cover it
        step = min(width, window - width)
        padded = np.maximum(padded[:, :-step], padded[:, step:])
        width += step
    return padded


def _repeated_share(q: np.ndarray, reach: int) -> np.ndarray:
    """Return for each reading (N, n) the share of equal neighbours among `reach` readings to either side.

    The mean of repeated readings is no better than one of them: an encoder at rest has a constant quantization error.
    """
    same = np.pad((np.diff(q, axis=0) == 0.0).astype(float), ((reach + 1, reach), (0, 0)))
    sums = np.cumsum(np.pad(same, ((1, 0), (0, 0))), axis=0)
    window = 2 * reach + 1
    share: np.ndarray = np.minimum((sums[window:] - sums[:-window])[:len(q)] / min(window, len(q)), 1.0)
    return share


def _reading_at(times: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the number of the last reading before or at each instant."""
    return np.clip(np.searchsorted(times, wanted, side="right") - 1, 0, len(times) - 1)


def _started_filters(times: np.ndarray, q: np.ndarray, learning: SensorLearning, calibration: DeviationCalibration,
                     period: float, lag: float) -> FilterBank:
    """Return filters started at the first sample with the speed of the first few."""
    learning.restart()
    since = times[:OPTIONS.speed_samples] - times[:OPTIONS.speed_samples].mean()
    speed = since @ q[:OPTIONS.speed_samples] / (since @ since)
    return FilterBank(float(times[0]), q[0], speed, learning.noise, calibration, period, lag)


def _add_sample(filters: FilterBank, learning: SensorLearning, time: float, steps: int, q: np.ndarray) -> None:
    """Add a sample to the filters and to the noise estimate."""
    sample = filters.add_sample(time, steps, q)
    if steps == 1 and filters.settled < time:
        learning.update(filters, sample)


class Smoothing(NamedTuple):
    """Description of a Kalman smoothing."""

    rate: float  # of the samples [Hz]
    noise: float  # largest standard deviation of a position that was found [rad, m]
    times: str = ""  # where stamps are not the times of the readings: what was found, for people

    @property
    def method(self) -> str:
        """Text on how derivatives were estimated."""
        return f"Kalman smoothing ({self.rate:.4g} Hz, position noise {self.noise:.2g})" + with_times(self.times)


class RecordingEstimate(NamedTuple):
    """Estimated derivatives of a recording, (N, n) each, and their standard deviations.

    They refer to the stamps, or to the reading times where stamps do not determine these (reading_times.py).

    centred   : (N,) whether each is a separate reading with others near enough on both sides
    how       : how they were estimated, with the largest noise in a long recording
    deviation : (4, N, n) standard deviations of q, qd, qdd, qddd; None for polynomials
    q         : (N, n) positions at the same instants: smoothed, or as given
    wrapped   : numbers of the revolute joints from which whole-turn jumps were removed
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
        """Return the estimate of some samples, by number."""
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
    """Return velocity, acceleration and jerk of a recording; given derivatives are returned unchanged.

    t is (N,) [s] and strictly increasing, the others are (N, n). Velocities are not used in smoothing: those of drivers are
    filtered and late. window [s], degree: fit polynomials, see estimate_derivatives. Positions of continuous joints among
    joint_types may jump by whole turns, and so may those of revolute joints that cannot have moved that far
    (position_sensor.py).
    """
    known = {order: np.asarray(given, dtype=float) for order, given in enumerate((q, qd, qdd)) if given is not None}
    check_times(t, known, degree)
    t = np.asarray(t, dtype=float)
    blocks, found = Blocks.of(float(t[0]), float(t[-1]), len(t)), []
    for k in range(blocks.number):
        window_at = slice(*np.searchsorted(t, blocks.window(k)))
        at = t[window_at]
        if (inner := slice(*np.searchsorted(at, (blocks.begin(k), blocks.begin(k + 1))))).stop > inner.start:
            part = estimate_block(at, {order: array[window_at] for order, array in known.items()}, window, degree, joint_types)
            found.append(part.only(inner))
    return join_estimates(found)


def estimate_block(t: np.ndarray, known: dict[int, np.ndarray], window: float | None = None, degree: int = 5,
                   joint_types: Sequence[str] = ()) -> RecordingEstimate:
    """Return the estimate of one block and the samples near it; known: arrays by order. NaN where samples are too few."""
    if len(t) < ORDERS:
        unknown = np.full((ORDERS, *known[0].shape), np.nan)
        return RecordingEstimate(known.get(1, unknown[1]), known.get(2, unknown[2]), unknown[3], np.zeros(len(t), dtype=bool),
                                 Smoothing(0.0, 0.0), unknown, known[0])
    since = check_times(t, known, degree)
    given, (counted, wrapped) = known[0], unwrap_positions(t, known[0], joint_types)
    found = _estimated(t, since, {**known, 0: counted}, window, degree)
    return found._replace(q=found.q + (given - counted), wrapped=tuple(wrapped))


def _estimated(t: np.ndarray, since: np.ndarray, known: dict[int, np.ndarray], window: float | None,
               degree: int) -> RecordingEstimate:
    """Return the estimate for positions without wraps. since: t from zero [s]."""
    if 2 in known:
        return _fitted(t, known, window, degree)
    times = reading_times(since, known[0])
    if window is None and times.even and times.noise.max(initial=0.0) > OPTIONS.exact_std:
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
    """Return the estimate by Kalman smoothing; by polynomials outside of long stretches."""
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


def join_estimates(found: Sequence[RecordingEstimate]) -> RecordingEstimate:
    """Return one estimate of consecutive blocks."""
    deviations = [np.full((ORDERS, *part.qd.shape), np.nan) if part.deviation is None else part.deviation for part in found]
    known = any(part.deviation is not None for part in found)
    qd, qdd, qddd, centred, q = (np.concatenate(blocks) for blocks in zip(*((*part[:4], part.q) for part in found)))
    wrapped = sorted({joint for part in found for joint in part.wrapped})
    return RecordingEstimate(qd, qdd, qddd, centred, combined_method([part.how for part in found]),
                             np.concatenate(deviations, axis=1) if known else None, q, tuple(wrapped))


def combined_method(hows: Sequence[Window | Smoothing]) -> Window | Smoothing:
    """Return the description for several blocks: that with the largest noise among the smoothed ones."""
    smoothed = [how for how in hows if isinstance(how, Smoothing)]
    return max(smoothed, key=lambda how: how.noise) if smoothed else hows[0]


MIN_SAMPLES = 64  # fewest samples of a recording


@dataclass(frozen=True, eq=False)
class PreparedRecording:
    """Recording prepared for identification: each reading once, with velocity and acceleration.

    t (samples,) [s]; q, qd, qdd, tau (samples, n); notes: changes made to the recording; how: method of the derivatives.
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    notes: tuple[str, ...]
    how: Window | Smoothing | None


def unwrapped_note(joints: Sequence[str]) -> str:
    """Return the note on revolute joints whose positions were unwrapped."""
    return f"positions of {some(joints)} jump by whole turns: unwrapped (declare such joints as continuous in the URDF)"


def prepare(t: np.ndarray, q: np.ndarray, tau: np.ndarray, qd: np.ndarray | None = None, qdd: np.ndarray | None = None,
            window: float | None = None, joint_types: tuple[str, ...] = (), joint_names: tuple[str, ...] = (),
            ) -> PreparedRecording:
    """Return a recording of positions and torques (samples, n) at times t (samples,) prepared for equations.

    A sample that repeats the one before in every position and torque is a message that was sent twice, and is removed.
    Velocities are used only if accelerations are given too, as of a simulation: those of drivers are filtered and late.
    window [s]: time over which polynomials are fitted instead of Kalman smoothing. Raises InputError for too few samples.
    """
    t, notes = np.asarray(t, dtype=float), []
    consistent = consistent_stamps(t)
    same = np.concatenate(([False], (np.diff(q, axis=0) == 0.0).all(axis=1) & (np.diff(tau, axis=0) == 0.0).all(axis=1)))
    repeated = consistent & same
    for wrong, text in ((~consistent, "with stamps that do not increase"), (repeated, "that repeat the reading before")):
        if wrong.any():
            notes.append(f"{np.count_nonzero(wrong)} of {len(t)} samples {text} are left out")
    new = consistent & ~repeated
    if np.count_nonzero(new) < MIN_SAMPLES:
        raise InputError(f"the recording has {np.count_nonzero(new)} samples that differ; {MIN_SAMPLES} are the fewest, some "
                         "thousands over 20 s or more are recommended")
    t, q, tau = t[new], q[new], tau[new]
    if qd is not None and qdd is not None:
        return PreparedRecording(t, q, np.asarray(qd)[new], np.asarray(qdd)[new], tau, tuple(notes), None)
    guesses = estimate_recording(t, q, window=window, joint_types=joint_types)
    if guesses.wrapped:
        notes.append(unwrapped_note([joint_names[k] if joint_names else f"joint {k + 1}" for k in guesses.wrapped]))
    good = guesses.centred
    if not good.any():
        raise InputError(f"the recording is too short: derivatives are estimated by {guesses.how.method}")
    return PreparedRecording(t[good], q[good], guesses.qd[good], guesses.qdd[good], tau[good], tuple(notes), guesses.how)
