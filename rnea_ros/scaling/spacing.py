"""Points of a motion, so close that the quintics between them ask for hardly more than the motion itself.

A controller that is given positions, velocities and accelerations at some instants moves by a polynomial of degree five from
each to the next. It passes all points exactly, but between them its acceleration and jerk are its own, and with them torque
and torque rate: far from what was planned, where points lie far apart or on either side of a corner of the jerk. So the points
begin far apart, what the quintics ask for between them is compared with what is planned there, and where that is too much a
point is added: at a corner if there is one, else in the middle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .path import Path, spline

LONGEST, SHORTEST = 0.1, 5e-4  # s; between two points
REST = 0.02  # s; the least that a motion takes: where it only rests
LOOKS = 8  # into each interval between points
EXCESS = 0.06  # share of its peak by which a quantity may exceed what is planned in the interval
AWAY = 1e-4  # rad, m; off the planned position
RESTING = 1e-3  # of the largest peak of all joints: a joint with less all but rests
BEFORE = 1.0 - 1e-6  # of an interval: its last look, before the next one begins
TINY = 1e-6  # of a quantity that is zero throughout

Motion = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]
Quantities = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


class Points(NamedTuple):
    """times (count,), q, qd, qdd (count, n), at rest at the end.

    excess : by what share of its peak a quantity exceeds, between the points, what is planned
    peaks  : of each quantity
    """

    times: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    excess: float
    peaks: np.ndarray


def quintics(times: np.ndarray, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> Motion:
    """The motion of a controller through points: q, qd, qdd, qddd at times between the first and the last."""
    path = Path(times - times[0], spline(times - times[0], np.stack((q, qd, qdd), axis=1), 2))
    return lambda t: tuple(path(t - times[0]))


def spaced(motion: Motion, begin: float, end: float, corners: np.ndarray, quantities: Quantities,
           peaks: np.ndarray | None = None, excess: float = EXCESS) -> Points:
    """Points of a motion from `begin` to `end`.

    corners    : times where the jerk bends or jumps
    quantities : (q, qd, qdd, qddd) (samples, n) each -> what is not to be exceeded (samples, any): torques and their rates
    peaks      : of each quantity; excess is a share of these, or of the motion's own where these are larger
    """
    times = np.linspace(begin, max(end, begin + REST), max(int(np.ceil((end - begin) / LONGEST)), 1) + 1)
    first, worst, intervals = True, 0.0, np.arange(len(times) - 1)
    while True:
        points = motion(times)
        a, b = times[intervals], times[intervals + 1]
        t = (a[:, None] + (b - a)[:, None] * np.linspace(0.0, BEFORE, LOOKS + 1)).ravel()
        planned, moved = motion(t), quintics(times, *points[:3])(t)
        asked, got = (np.abs(quantities(*it)).reshape(len(a), LOOKS + 1, -1).max(axis=1) for it in (planned, moved))
        if first:  # it sees all of the motion
            own = asked.max(axis=0)
            own = own if peaks is None else np.maximum(peaks, own)
            peaks, first = np.maximum(own, RESTING * own.max() + TINY), False
        assert peaks is not None
        over = ((got - asked) / peaks).max(axis=1)
        away = np.abs(planned[0] - moved[0]).reshape(len(a), -1).max(axis=1)
        parted = ((over > excess) | (away > AWAY)) & (b - a >= 2.0 * SHORTEST)
        worst = max(worst, float(over[~parted].max(initial=0.0)))
        if not parted.any():
            return Points(times, *points[:3], worst, peaks)
        cuts = np.array([_cut(*ends, corners) for ends in zip(a[parted], b[parted])])
        before, times = times, np.sort(np.concatenate((times, cuts)))
        intervals = np.flatnonzero(~(np.isin(times[:-1], before) & np.isin(times[1:], before)))


def _cut(a: float, b: float, corners: np.ndarray) -> float:
    """Where to part an interval: at the corner nearest to its middle; in the middle where there is none."""
    first, last = corners.searchsorted((a + SHORTEST, b - SHORTEST))
    middle = 0.5 * (a + b)
    return float(min(corners[first:last], key=lambda t: abs(t - middle), default=middle))
