"""What positions tell of the sensor that they come from: its resolution, and whether it was read since the last message.

Repair of recordings: samples with wrong stamps, and revolute joints whose driver wraps the position by whole turns.

Noise of measured positions: the encoder's steps, noise beside them, errors of the times; and how it is learnt.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

_SINGLE_PRECISION = float(np.finfo(np.float32).eps)  # of the largest position: a driver may tell it in single precision
_WHOLE = 0.1  # of a step: so near to a whole number of them is one
_MOST = 0.95  # of the positions that must be whole steps away from the first
_LEVELS, _FEW = 8, 3  # different positions without which nothing is said; of a joint so slow that positions repeat
_ALIKE = 4  # readings in a row that are repeated alike before a stream is taken for a repeating one
_LEAP = 1.5  # of the smallest difference seen: who stands and then moves by more was not read meanwhile
_FAR = 2.5  # of it: even after a lost one, who moves so far at each sample repeats none
_OVERDUE = 1.5  # of the time between readings: a position that is the same by then has been read again
_EARLY = 0.1  # of that time: a message so early tells the next reading
_NOT_REPEATED = 3  # readings in a row without a repetition that end it


def find_resolution(positions: np.ndarray) -> np.ndarray:
    """Distance of the positions (samples, n) that each joint's encoder can tell apart: (n,), 0 where they are on no grid.

    Differences of positions in steps are whole steps, and those of higher order few, however fast the motion: the smallest
    is one.
    """
    found = np.zeros(positions.shape[1])
    for k, column in enumerate(positions.T):
        levels = len(np.unique(column))
        if levels >= (_FEW if 2 * levels < len(column) else _LEVELS):
            step = _encoder_step(column)
            places = (column - column[0]) / step
            on_grid = np.isfinite(step) and np.mean(np.abs(places - np.round(places)) < _WHOLE) > _MOST
            found[k] = step if on_grid else 0.0
    return found


def _encoder_step(column: np.ndarray) -> float:
    """What all differences may be multiples of, inf without any: the smallest, told better by longer and longer ones."""
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


class Readings:
    """Which messages bring a new reading: a robot that is read at 125 Hz may be published again and again at 1 kHz.

    A joint that stands in some messages and then leaps was not read in between. Where that happens at even intervals, what is
    repeated is no sample, unless it is still there when the next reading is overdue: then the robot rests.

    period : time between readings [s], 0 while every message brings one
    """

    def __init__(self) -> None:
        self.period = 0.0
        self._bytes = b""
        self._least = np.inf
        self.clear()

    def clear(self) -> None:
        """The stream was interrupted."""
        self._last: np.ndarray | None = None
        self._changed = self._read = 0.0
        self._repeated, self._single = 0, 0
        self._intervals: list[float] = []

    def time(self, stamp: float, q: np.ndarray) -> float | None:
        """When the positions (n,) of this message were read [s]; None: they are those of the last reading."""
        known, self._bytes = self._bytes, q.tobytes()
        if self._last is not None and known == self._bytes:
            self._repeated += 1
            if not self.period:
                return stamp
            if stamp - self._read < _OVERDUE * self.period:
                return None
            self._read += self.period
            return self._read
        if self._last is not None and (self._repeated or self.period):
            self._look(stamp - self._changed, np.abs(q - self._last))
        self._last, self._repeated = q.copy(), 0
        self._changed = self._read = stamp
        return stamp

    def _look(self, interval: float, moved: np.ndarray) -> None:
        """After so long, positions are others."""
        self._least = min(self._least, float(moved[moved > 0.0].min(initial=np.inf)))
        self._single = 0 if self._repeated else self._single + 1
        if self._single == _NOT_REPEATED:
            self.period = 0.0
        if not self._repeated:
            self._intervals.clear()
        elif moved.max() > _LEAP * self._least:
            self._intervals = [*self._intervals[1 - _ALIKE:], interval]
            between = interval / (self._repeated + 1)  # messages
            if len(self._intervals) == _ALIKE and max(self._intervals) - min(self._intervals) < 2.5 * between:
                self.period = float(np.median(self._intervals))


def new_readings(t: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The same of a whole recording at times t (samples,): whether each of q (samples, n) was read since the one before.

    What leaps, is repeated and leaps again was not read in between. Where readings are further apart than messages, other
    repeated ones count as often as readings are due: the robot rests.
    """
    moved = np.abs(np.diff(q, axis=0))
    new = np.append(True, moved.any(axis=1))
    far = np.append(False, moved.max(axis=1, initial=0.0) > _FAR * moved.min(initial=np.inf, where=moved > 0.0))
    changes, run = np.flatnonzero(new), np.cumsum(new) - 1
    leaps = far[changes[:-1]] & far[changes[1:]]
    if not (leaps & (np.diff(changes) > 1)).any():
        return np.ones(len(t), dtype=bool)
    period, apart = float(np.median(np.diff(t[changes])[leaps])), float(np.median(np.diff(t)))
    begin, end = t[changes][run], np.append(t[changes[1:]], np.inf)[run]  # of what is repeated in a sample
    rests = end - begin > _OVERDUE * period + apart
    if period < _OVERDUE * apart:
        return new | rests | ~np.append(leaps, False)[run]
    due = np.diff(np.floor((t - begin) / period + _EARLY), prepend=0.0) > 0.0
    return new | (rests & due & (end - t > 0.5 * period))


TURN = 2.0 * np.pi
_MIN_GROUP_SAMPLES = 4  # samples of a group that is kept although it is far from all others
_MAX_GAP_S, _MAX_GAP_PERIODS = 10.0, 100.0  # s, and so many median periods: groups further apart are far from each other
_MAX_WRAP_SPEED = 12.0  # rad/s; no joint moves a whole turn between two samples faster than this,
_MAX_WRAP_RATIO = 3.0  # or faster than so many times its largest speed between all other samples


def consistent_stamps(t: np.ndarray) -> np.ndarray:
    """Return which samples (N,) belong to the largest set whose stamps t (N,) [s] strictly increase.

    That set is the longest increasing subsequence of the stamps (Fredman, On computing the length of longest increasing
    subsequences, Discrete Math. 11, 1975): one stamp far ahead or far behind costs one sample, not all that follow it. Of this
    set, groups of fewer than four samples that are far from all others (a stamp of zero at the beginning) are left out too.
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
    if len(samples) < 2 * _MIN_GROUP_SAMPLES:
        return kept
    steps = np.diff(t[samples])
    far = steps > max(_MAX_GAP_S, _MAX_GAP_PERIODS * float(np.median(steps)))
    if far.any():
        groups = np.split(samples, np.flatnonzero(far) + 1)
        kept = kept.copy()
        for group in groups:
            if len(group) < _MIN_GROUP_SAMPLES < max(map(len, groups)):
                kept[group] = False
    return kept


def impossible_turns(step: np.ndarray, period: np.ndarray | float, fastest: np.ndarray | float) -> np.ndarray:
    """Return the whole turns in steps of revolute joints between two samples, 0 where the joint may have moved that far.

    step    : change of position [rad]
    period  : time between the samples, above zero [s]
    fastest : largest speed between other samples [rad/s]
    """
    turns = np.round(step / TURN)
    speed, rest = np.abs(step) / period, np.abs(step - TURN * turns) / period
    found: np.ndarray = np.where((speed > _MAX_WRAP_SPEED) & (speed > _MAX_WRAP_RATIO * np.maximum(rest, fastest)), turns, 0.0)
    return found


def without_turns(t: np.ndarray, q: np.ndarray, joint_types: Sequence[str]) -> tuple[np.ndarray, list[int]]:
    """Return the positions (N, n) with whole turns counted, and the numbers of the revolute joints that a driver wrapped.

    Jumps of continuous joints are unwrapped always. Those of revolute joints are unwrapped where the joint cannot have moved
    that far between two samples: at more than 12 rad/s, and at three times its largest speed between all other samples.
    """
    counted = q.copy()
    continuous = [k for k, kind in enumerate(joint_types) if kind == "continuous"]
    counted[:, continuous] = np.unwrap(q[:, continuous], axis=0)
    wrapped = []
    for k, kind in enumerate(joint_types):
        if kind == "revolute" and np.ptp(q[:, k]) > np.pi:
            step, period = np.diff(q[:, k]), np.diff(t)
            others = (np.abs(step) / period)[np.abs(step) < np.pi].max(initial=0.0)
            turns = impossible_turns(step, period, others)
            if turns.any():
                counted[1:, k] -= TURN * np.cumsum(turns)
                wrapped.append(k)
    return counted, wrapped


_NOISE_MEMORY_S = 2.0  # s of motion
_MIN_STD = 5e-7  # rad, m; of positions on no grid that is known: those of a simulation may be exact
_MIN_NOISE_SAMPLES = 16.0  # samples of a moving joint after which its noise is known


class PositionNoise:
    """Variances of the positions of n joints: resolution**2 / 12 + deviation**2 + (jitter**2 + drift_std**2) velocity**2.

    resolution : (n,) distance of the positions that an encoder can tell apart, 0 where it is not known
    deviation  : (n,) standard deviation of what comes on top of it
    jitter     : standard deviation that is left in the times of the samples [s], the same for all joints
    drift_std     : what those times may be off because the clock is still being found out [s]; set from outside
    known      : (n,) whether all this is no mere guess
    """

    def __init__(self, resolution: np.ndarray):
        self.resolution, self.deviation = resolution, np.zeros_like(resolution)
        self.jitter = self.drift_std = 0.0
        self._sums = np.zeros((5, len(resolution)))
        self._add_up()

    @property
    def std_at_rest(self) -> np.ndarray:
        """Standard deviations (n,) of positions at rest."""
        return self._std_at_rest

    def variance(self, velocity: np.ndarray) -> np.ndarray:
        """(n,) or (k, n) of positions measured at these velocities."""
        blur = self.jitter * self.jitter + self.drift_std * self.drift_std
        return self._still + blur * velocity * velocity if blur else np.broadcast_to(self._still, velocity.shape)

    def learn(self, period: float, velocity: np.ndarray, square: np.ndarray, moving: np.ndarray) -> None:
        """From samples (k, n) at a period: squared innovations of a filter that follows any motion, by what they would be for
        positions of variance 1. moving: where a position differs from the one before; others say nothing."""
        v2 = velocity * velocity
        rows = np.stack([np.ones_like(v2), v2, v2 * v2, square, square * v2])
        faded = np.exp(-period / _NOISE_MEMORY_S * moving.sum(axis=0))
        self._sums = faded * self._sums + (rows * moving).sum(axis=1)
        n, v2, v4, s, sv2 = self._sums  # a line through squares over v2: one slope for all joints, an intercept for each
        slope = float((n * sv2 - v2 * s).sum()) / max(float((n * v4 - v2 * v2).sum()), 1e-300)
        self.jitter = math.sqrt(max(slope, 0.0))
        rest = (s - self.jitter**2 * v2) / np.maximum(n, 1e-9) - self.resolution**2 / 12.0
        self.deviation = np.sqrt(np.maximum(rest, 0.0))
        self._add_up()

    def resolved(self, found: np.ndarray) -> None:
        """Resolutions (n,) were found, 0 where not."""
        finer = (found > 0.0) & ((self.resolution == 0.0) | (found < 0.9 * self.resolution))
        self.resolution = np.where(finer, found, self.resolution)
        self._add_up()

    def _add_up(self) -> None:
        encoder = np.where(self.resolution > 0.0, self.resolution / math.sqrt(12.0), _MIN_STD)
        self._still = encoder**2 + self.deviation**2
        self._std_at_rest = np.sqrt(self._still)
        self.known = (self.resolution > 0.0) | (self._sums[0] > _MIN_NOISE_SAMPLES)
