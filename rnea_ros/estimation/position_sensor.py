"""Errors of measured joint positions: encoder resolution, repeated readings, wrong stamps, whole-turn wraps, noise.

All of them are estimated from positions and stamps. filter_bank.py estimates the motion itself.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_SINGLE_PRECISION = float(np.finfo(np.float32).eps)  # relative rounding of drivers that publish single precision


@dataclass(frozen=True)
class PositionSensorOptions:
    """Tuning of resolution, repeated readings, gaps, wraps and noise."""

    max_step_deviation: float = 0.1  # largest distance from a whole number of steps that counts as whole [steps]
    min_on_grid_share: float = 0.95  # smallest share of positions that are whole steps away from the first
    min_levels: int = 8  # fewest different positions for an estimate,
    min_levels_slow: int = 3  # the same for slow joints, whose positions repeat
    min_equal_intervals: int = 4  # repeated readings with equal intervals after which a stream counts as repeating
    # Position change after a repetition, over the smallest change, above which the joint was not read in between
    min_jump_ratio: float = 1.5
    # position change per sample, over the smallest change, above which repetitions are not samples
    fast_motion_ratio: float = 2.5
    overdue_periods: float = 1.5  # reading periods after which an unchanged position counts as a new reading: the robot rests
    early_periods: float = 0.1  # reading periods by which a message may precede the next reading
    max_period_change: float = 0.25  # relative change of the reading period up to which it counts as unchanged
    max_unrepeated: int = 3  # consecutive readings without repetition after which a stream no longer counts as repeating
    min_group_samples: int = 4  # smallest group of samples that is kept although it is far from all others
    max_gap_s: float = 10.0  # gap that separates groups: at least this time [s]
    max_gap_periods: float = 100.0  # and this many median periods
    max_wrap_speed: float = 12.0  # speed above which a change by a whole turn between two samples counts as a wrap [rad/s],
    max_wrap_ratio: float = 3.0  # if it is also this many times the largest speed between all other samples
    noise_memory_s: float = 2.0  # memory of the noise estimate, in time of motion [s]
    # standard deviation of positions without known resolution; those of a simulation may be exact [rad, m]
    min_std: float = 5e-7
    min_noise_samples: float = 16.0  # samples of a moving joint after which its noise is known


OPTIONS = PositionSensorOptions()


def find_resolution(positions: np.ndarray) -> np.ndarray:
    """Return the encoder resolution (n,) of each joint from positions (samples, n); 0 where positions are on no grid.

    Differences of quantized positions are whole multiples of the resolution. Differences of higher order are small multiples,
    however fast the motion, so the smallest of them is the resolution.
    """
    found = np.zeros(positions.shape[1])
    for k, column in enumerate(positions.T):
        levels = len(np.unique(column))
        if levels >= (OPTIONS.min_levels_slow if 2 * levels < len(column) else OPTIONS.min_levels):
            step = _encoder_step(column)
            steps = (column - column[0]) / step
            share = np.mean(np.abs(steps - np.round(steps)) < OPTIONS.max_step_deviation)
            on_grid = np.isfinite(step) and share > OPTIONS.min_on_grid_share
            found[k] = step if on_grid else 0.0
    return found


def _encoder_step(column: np.ndarray) -> float:
    """Return the largest step of which all position differences are multiples; inf without any difference.

    The smallest difference is a first estimate. It is refined by least squares over longer and longer differences, for which
    its relative error must be smaller.
    """
    rounding, difference, found = _SINGLE_PRECISION * float(np.abs(column).max()), column, []
    for _ in range(4):
        difference, rounding = np.diff(difference), 2.0 * rounding
        sizes = np.abs(difference)
        found.append(sizes[sizes > rounding])
    step, reach = float(np.concatenate(found).min(initial=np.inf)), 8.0
    sizes = np.concatenate((*found, np.abs(column - column[0])))
    while reach * step < 4.0 * sizes.max():
        near = sizes[sizes < reach * step]
        whole = np.round(near / step)
        step, reach = float(whole @ near / (whole @ whole)), 4.0 * reach
    return step


class ReadingFilter:
    """Filter that removes repeated readings from a stream: a robot read at 125 Hz may be published at 1 kHz.

    A position that stays equal for some messages and then jumps was not read in between. If that happens at even intervals,
    repeated messages are not samples, unless the next reading is overdue: then the robot rests.

    period : time between readings [s]; 0 while every message is a reading
    """

    def __init__(self) -> None:
        self.period = 0.0
        self._bytes = b""
        self._min_step = np.inf
        self.clear()

    def clear(self) -> None:
        """Discard the state of the stream after an interruption; the period is kept."""
        self._last: np.ndarray | None = None
        self._changed = self._read = 0.0
        self._repeated, self._single = 0, 0
        self._intervals: list[float] = []

    def reading_time(self, stamp: float, q: np.ndarray) -> float | None:
        """Return the time at which the positions q (n,) of a message were read [s]; None if they repeat the last reading."""
        known, self._bytes = self._bytes, q.tobytes()
        if self._last is not None and known == self._bytes:
            self._repeated += 1
            if not self.period:
                return stamp
            if stamp - self._read < OPTIONS.overdue_periods * self.period:
                return None
            self._read += self.period
            return self._read
        if self._last is not None and (self._repeated or self.period):
            self._update_period(stamp - self._changed, np.abs(q - self._last))
        self._last, self._repeated = q.copy(), 0
        self._changed = self._read = stamp
        return stamp

    def _update_period(self, interval: float, moved: np.ndarray) -> None:
        """Update the reading period after a change of position; interval [s], moved: absolute change (n,)."""
        self._min_step = min(self._min_step, float(moved[moved > 0.0].min(initial=np.inf)))
        self._single = 0 if self._repeated else self._single + 1
        if self._single == OPTIONS.max_unrepeated:
            self.period = 0.0
        if not self._repeated:
            self._intervals.clear()
        elif moved.max() > OPTIONS.min_jump_ratio * self._min_step:
            self._intervals = [*self._intervals[1 - OPTIONS.min_equal_intervals:], interval]
            between = interval / (self._repeated + 1)  # messages
            is_enough = len(self._intervals) == OPTIONS.min_equal_intervals
            if is_enough and max(self._intervals) - min(self._intervals) < 2.5 * between:
                period = float(np.median(self._intervals))
                # every change restarts the filters: medians of jittering stamps are the same period
                if abs(period - self.period) > OPTIONS.max_period_change * self.period:
                    self.period = period


def find_new_readings(t: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return which samples of a recording are new readings, (samples,), from times t [s] and positions q (samples, n).

    A position that jumps, repeats and jumps again was not read in between. Where readings are further apart than messages,
    other repeated samples count once per reading period: the robot rests.
    """
    moved = np.abs(np.diff(q, axis=0))
    new = np.append(True, moved.any(axis=1))
    least = moved.min(initial=np.inf, where=moved > 0.0)
    far = np.append(False, moved.max(axis=1, initial=0.0) > OPTIONS.fast_motion_ratio * least)
    changes, run = np.flatnonzero(new), np.cumsum(new) - 1
    leaps = far[changes[:-1]] & far[changes[1:]]
    if not (leaps & (np.diff(changes) > 1)).any():
        return np.ones(len(t), dtype=bool)
    period, spacing = float(np.median(np.diff(t[changes])[leaps])), float(np.median(np.diff(t)))
    begin, end = t[changes][run], np.append(t[changes[1:]], np.inf)[run]  # interval in which the position is unchanged
    rests = end - begin > OPTIONS.overdue_periods * period + spacing
    if period < OPTIONS.overdue_periods * spacing:
        return new | rests | ~np.append(leaps, False)[run]
    due = np.diff(np.floor((t - begin) / period + OPTIONS.early_periods), prepend=0.0) > 0.0
    return new | (rests & due & (end - t > 0.5 * period))


TURN = 2.0 * np.pi


def consistent_stamps(t: np.ndarray) -> np.ndarray:
    """Return which samples (N,) belong to the largest set whose stamps t (N,) [s] strictly increase.

    The set is the longest increasing subsequence of the stamps (Fredman, On computing the length of longest increasing
    subsequences, Discrete Math. 11, 1975): one stamp far ahead or far behind costs one sample, not all that follow it. Groups
    of fewer than four samples that are far from all others, such as a stamp of zero at the beginning, are removed too.
    """
    kept = np.isfinite(t)
    if not (kept.all() and (np.diff(t) > 0.0).all()):
        kept = _longest_increasing(t, np.flatnonzero(kept))
    return _without_distant(t, kept)


def _longest_increasing(t: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return which samples (N,) are in the longest strictly increasing subsequence of t at the candidates."""
    lowest: list[float] = []  # lowest last stamp of the increasing subsequences of length k + 1
    last: list[int] = []  # its sample
    before = np.full(len(t), -1)
    for k, stamp in zip(candidates.tolist(), t[candidates].tolist()):
        length = bisect_left(lowest, stamp)
        if length:
            before[k] = last[length - 1]
        if length == len(lowest):
            lowest.append(stamp)
            last.append(k)
        else:
            lowest[length], last[length] = stamp, k
    kept, k = np.zeros(len(t), dtype=bool), last[-1] if last else -1
    while k >= 0:
        kept[k] = True
        k = before[k]
    return kept


def _without_distant(t: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Return `kept` without groups of very few samples that are far from all others."""
    samples = np.flatnonzero(kept)
    if len(samples) < 2 * OPTIONS.min_group_samples:
        return kept
    steps = np.diff(t[samples])
    far = steps > max(OPTIONS.max_gap_s, OPTIONS.max_gap_periods * float(np.median(steps)))
    if far.any():
        groups = np.split(samples, np.flatnonzero(far) + 1)
        kept = kept.copy()
        for group in groups:
            if len(group) < OPTIONS.min_group_samples < max(map(len, groups)):
                kept[group] = False
    return kept


def implausible_turns(step: np.ndarray, period: np.ndarray | float, fastest: np.ndarray | float) -> np.ndarray:
    """Return the whole turns in position steps of revolute joints; 0 where the joint may have moved that far.

    step    : change of position between two samples [rad]
    period  : time between the samples, above zero [s]
    fastest : largest speed between other samples [rad/s]
    """
    turns = np.round(step / TURN)
    speed, rest = np.abs(step) / period, np.abs(step - TURN * turns) / period
    usual = OPTIONS.max_wrap_ratio * np.maximum(rest, fastest)
    found: np.ndarray = np.where((speed > OPTIONS.max_wrap_speed) & (speed > usual), turns, 0.0)
    return found


def unwrap_positions(t: np.ndarray, q: np.ndarray, joint_types: Sequence[str]) -> tuple[np.ndarray, list[int]]:
    """Return positions (N, n) with whole turns removed, and the numbers of the revolute joints that wrapped.

    Continuous joints are always unwrapped. Revolute joints are unwrapped where they cannot have moved a whole turn between two
    samples: at more than 12 rad/s, and at three times their largest speed between all other samples.
    """
    counted = q.copy()
    continuous = [k for k, kind in enumerate(joint_types) if kind == "continuous"]
    counted[:, continuous] = np.unwrap(q[:, continuous], axis=0)
    wrapped = []
    for k, kind in enumerate(joint_types):
        if kind == "revolute" and np.ptp(q[:, k]) > np.pi:
            step, period = np.diff(q[:, k]), np.diff(t)
            others = (np.abs(step) / period)[np.abs(step) < np.pi].max(initial=0.0)
            turns = implausible_turns(step, period, others)
            if turns.any():
                counted[1:, k] -= TURN * np.cumsum(turns)
                wrapped.append(k)
    return counted, wrapped


class PositionNoise:
    """Noise model of n joint positions: variance = resolution^2 / 12 + deviation^2 + (jitter^2 + drift_std^2) velocity^2.

    resolution : (n,) encoder resolution; 0 if unknown [rad, m]
    deviation  : (n,) standard deviation of noise beside quantization [rad, m]
    jitter     : remaining standard deviation of the sample times, equal for all joints [s]
    drift_std  : standard deviation of sample times while the clock is still being estimated; set by the caller [s]
    known      : (n,) whether the model was estimated from data
    """

    def __init__(self, resolution: np.ndarray):
        self.resolution, self.deviation = resolution, np.zeros_like(resolution)
        self.jitter = self.drift_std = 0.0
        self._sums = np.zeros((5, len(resolution)))
        self._update_variance()

    @property
    def std_at_rest(self) -> np.ndarray:
        """Standard deviation (n,) of positions at rest [rad, m]."""
        return self._std_at_rest

    def variance(self, velocity: np.ndarray) -> np.ndarray:
        """Return the variance of positions measured at velocities (n,) or (k, n)."""
        time_variance = self.jitter * self.jitter + self.drift_std * self.drift_std
        if not time_variance:
            return self._variance_at_rest if velocity.ndim == 1 else np.broadcast_to(self._variance_at_rest, velocity.shape)
        return self._variance_at_rest + time_variance * velocity * velocity

    def learn(self, period: float, velocity: np.ndarray, square: np.ndarray, moving: np.ndarray) -> None:
        """Update the model from samples (k, n) at one period [s].

        velocity : predicted velocities
        square   : squared innovations of the fastest filter, divided by their variance for positions of variance 1
        moving   : whether a position differs from the one before; other samples are not used
        """
        v2 = velocity * velocity
        rows = np.stack([np.ones_like(v2), v2, v2 * v2, square, square * v2])
        faded = np.exp(-period / OPTIONS.noise_memory_s * moving.sum(axis=0))
        self._sums = faded * self._sums + (rows * moving).sum(axis=1)
        # Straight line through squares over v2: the slope, jitter^2, is common to all joints; the intercept is the variance
        # at rest of each joint
        n, v2, v4, s, sv2 = self._sums
        slope = float((n * sv2 - v2 * s).sum()) / max(float((n * v4 - v2 * v2).sum()), 1e-300)
        self.jitter = math.sqrt(max(slope, 0.0))
        rest = (s - self.jitter**2 * v2) / np.maximum(n, 1e-9) - self.resolution**2 / 12.0
        self.deviation = np.sqrt(np.maximum(rest, 0.0))
        self._update_variance()

    def set_resolution(self, found: np.ndarray) -> None:
        """Set the resolution (n,) of joints where a finer one was found; 0 leaves a joint unchanged."""
        finer = (found > 0.0) & ((self.resolution == 0.0) | (found < 0.9 * self.resolution))
        self.resolution = np.where(finer, found, self.resolution)
        self._update_variance()

    def _update_variance(self) -> None:
        """Update the variance at rest and the flag `known`."""
        encoder = np.where(self.resolution > 0.0, self.resolution / math.sqrt(12.0), OPTIONS.min_std)
        self._variance_at_rest = encoder**2 + self.deviation**2
        self._std_at_rest = np.sqrt(self._variance_at_rest)
        self.known = (self.resolution > 0.0) | (self._sums[0] > OPTIONS.min_noise_samples)
