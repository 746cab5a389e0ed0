"""The motion in a recording: what comes later is known too, so there is no lag, and no beginning at rest.

The filters of motion_estimator.py run over the recording, and give the motion at each sample when more samples bring nothing.
Where a part begins, they first run backwards through its beginning: that tells in which state they start, and with what noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .encoder import Readings
from .filter_bank import Estimate
from .motion_estimator import MotionEstimator

_LATER, _LATER_PERIODS = 0.2, 70  # s, and at least so many samples: later ones say nothing more about an instant
_BEGINNING = 2000  # samples of a part that are first run through backwards
_BACKWARDS = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])[:, None, None]  # derivatives by time that runs backwards
_EDGE, _EDGE_PERIODS = 0.05, 7  # s, and so many periods, at both ends of a part, in which the motion is not known so well


class Smoothed(NamedTuple):
    """A recording's motion and its standard deviations, (4, samples, n) each: rows q, qd, qdd, qddd; NaN outside of stretches.

    inside    : (samples,) whether there are samples on both sides, near enough to matter
    estimator : what was found of noise and stamps
    """

    motion: np.ndarray
    deviation: np.ndarray
    inside: np.ndarray
    estimator: MotionEstimator


def smooth(t: np.ndarray, q: np.ndarray, stretches: list[slice]) -> Smoothed:
    """t (samples,) [s] strictly increasing, q (samples, n) with turns counted; stretches: without gaps."""
    period = float(np.median(np.diff(t)))
    estimator = MotionEstimator(q.shape[1], max(_LATER, _LATER_PERIODS * period))
    stamps = np.round((t - t[0]) * 1e9).astype(np.int64)
    motion, deviation = np.full((2, 4, *q.shape), np.nan)
    inside = np.zeros(len(t), dtype=bool)
    for stretch in stretches:
        motion[:, stretch], deviation[:, stretch] = _part(estimator, stamps[stretch], q[stretch])
        ends = t[stretch][[0, -1]]
        inside[stretch] = (np.abs(t[stretch, None] - ends) >= max(_EDGE, _EDGE_PERIODS * period)).all(axis=1)
    return Smoothed(motion, deviation, inside, estimator)


def _part(estimator: MotionEstimator, stamps: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Motion and deviations of a stretch, (4, samples, n) each."""
    new = _readings(estimator, stamps, q)
    stamps_of_new = stamps[new]
    estimator.clear()
    first = slice(_BEGINNING - 1, None, -1) if len(stamps_of_new) > _BEGINNING else slice(None, None, -1)
    for stamp, positions in zip(stamps_of_new[first].tolist(), q[new][first]):
        estimator.push(-stamp, positions)
    states = estimator.states
    estimator.clear()
    if states is not None:
        estimator.begin_with(states * _BACKWARDS)
    found: list[Estimate] = []
    lag, wanted = round(estimator.lag * 1e9), stamps.tolist()
    for stamp, positions in zip(stamps_of_new.tolist(), q[new]):
        estimator.push(stamp, positions)
        while estimator.states is not None and stamp - wanted[len(found)] >= lag:
            found.append(estimator.estimate(wanted[len(found)]))
    found += [estimator.estimate(stamp) for stamp in wanted[len(found):]]
    motion, deviation = (np.stack(rows, axis=1) for rows in zip(*found))
    return motion, deviation


def _readings(estimator: MotionEstimator, stamps: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Numbers of the samples that bring a new reading: all, but where a robot's states were published again and again."""
    readings = Readings()
    for _ in range(2):  # the second time, their rate is known
        readings.clear()
        times = [readings.time(1e-9 * stamp, positions) for stamp, positions in zip(stamps.tolist(), q)]
        if not readings.period:
            return np.arange(len(stamps))
    return np.array([k for k, time in enumerate(times) if time is not None])
