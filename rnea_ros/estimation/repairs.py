"""Repair of recordings: samples with wrong stamps, and revolute joints whose driver wraps the position by whole turns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

TURN = 2.0 * np.pi
_FEWEST = 4  # samples of a group that is kept although it is far from all others
_FAR_S, _FAR_PERIODS = 10.0, 100.0  # s, and so many median periods: groups further apart are far from each other
_MAX_SPEED = 12.0  # rad/s; no joint moves a whole turn between two samples faster than this,
_MAX_RATIO = 3.0  # or faster than so many times its largest speed between all other samples


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
    if len(samples) < 2 * _FEWEST:
        return kept
    steps = np.diff(t[samples])
    far = steps > max(_FAR_S, _FAR_PERIODS * float(np.median(steps)))
    if far.any():
        groups = np.split(samples, np.flatnonzero(far) + 1)
        kept = kept.copy()
        for group in groups:
            if len(group) < _FEWEST < max(map(len, groups)):
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
    found: np.ndarray = np.where((speed > _MAX_SPEED) & (speed > _MAX_RATIO * np.maximum(rest, fastest)), turns, 0.0)
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
