"""The motion in a recording: what comes later is known too, so there is no lag, and no beginning at rest.

The filters of filter_bank.py run over the readings at the times when they were taken (reading_times.py), and give the motion
at an instant when more readings bring nothing. Where a stretch begins, they first run backwards through its beginning: that
tells in which state they start, and with what noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .filter_bank import DeviationCalibration, FilterBank
from .position_noise import PositionNoise, SensorLearning
from .reading_times import ReadingTimes, Stretch

_LATER, _LATER_PERIODS = 0.2, 70  # s, and at least so many samples: later ones say nothing more about an instant
_BEGINNING = 2000  # samples of a stretch that are first run through backwards
_SPEED = 8  # samples of which the speed at a beginning is taken
_BACKWARDS = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])[:, None, None]  # derivatives by time that runs backwards
_NEARBY = 0.02  # s to either side of an instant: filters that disagree there make its deviation larger
_NOISE = 1.2  # of the noise that filters claim: innovations are not as white as they assume
# Factors of the disagreement of filters in q, qd, qdd, qddd. With them 92 to 99 % of the errors of S-curves with stops (250 Hz
# to 5 kHz) are within two deviations; smooth motion has smaller errors
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


def smooth(found: ReadingTimes, q: np.ndarray, wanted: np.ndarray) -> Smoothed:
    """Readings q (readings, n) with turns counted, and their times; wanted (samples,): instants of the samples [s]."""
    noise = PositionNoise(np.zeros(q.shape[1]))
    learning, calibration = SensorLearning(noise), DeviationCalibration(q.shape[1])
    motion, deviation = np.full((2, 4, len(wanted), q.shape[1]), np.nan)
    inside = np.zeros(len(wanted), dtype=bool)
    for stretch in found.stretches:
        of = slice(*np.searchsorted(found.reading, (stretch.readings.start, stretch.readings.stop)))
        times = found.times[stretch.readings]
        motion[:, of], deviation[:, of] = _stretch(stretch, times, q[stretch.readings], wanted[of], learning, calibration)
        edge = max(_EDGE, _EDGE_PERIODS * stretch.period)
        inside[of] = (wanted[of] >= times[0] + edge) & (wanted[of] <= times[-1] - edge)
    return Smoothed(motion, deviation, inside, noise)


def _stretch(stretch: Stretch, times: np.ndarray, q: np.ndarray, wanted: np.ndarray,
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
