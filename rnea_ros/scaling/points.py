"""Timed points, as a planner sends them, to a path and a planned time law.

The path goes through the points, but for one that is all but at another; the law passes all at their times: quintic in time
from each to the next, at rest at both ends, with given speeds and accelerations where there are any. Inner points with zero
velocity, and those that repeat, are stops: the motion rests there, and the path may have a corner.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import InputError
from . import law as laws
from .law import TimeLaw
from .path import NEAR, Path, apart, array, places, spline, through
from .plan import ScaledPlan

INTERPOLATIONS = ("positions", "velocities", "accelerations")
SAME = 1e-9  # rad, m; points no further apart are one
AT_REST = 1e-6  # rad/s, m/s
ATTEMPTS = 60  # at a law that never goes back


@dataclass(frozen=True)
class _Points:
    """q, v, a (count, n) of points that differ from their neighbours, when each is reached and left; v and a may be None."""

    q: np.ndarray
    reached: np.ndarray
    left: np.ndarray
    v: Any
    a: Any

    @property
    def stops(self) -> list[int]:
        resting = self.left > self.reached
        if self.v is not None:
            resting = resting | (np.linalg.norm(self.v, axis=1) <= AT_REST)
        return (np.flatnonzero(resting[1:-1]) + 1).tolist()

    def only(self, keep: np.ndarray) -> _Points:
        """Some of the points."""
        v, a = (None if block is None else block[keep] for block in (self.v, self.a))
        return _Points(self.q[keep], self.reached[keep], self.left[keep], v, a)


def plan_from_waypoints(points: Any, times: Any, velocities: Any = None, accelerations: Any = None,
            interpolation: str = "positions") -> ScaledPlan:
    """A plan through points (count, n) at times (count,) [s], with velocities and accelerations (count, n) where known.

    The law takes its speeds from velocities and accelerations. The path takes from them what `interpolation` says: nothing
    ("positions"), also the direction of the velocities, or also the curvature that the accelerations mean.
    """
    if interpolation not in INTERPOLATIONS:
        raise InputError(f"interpolation is '{interpolation}'; allowed are {', '.join(INTERPOLATIONS)}")
    given = _checked(points, times, velocities, accelerations)
    s = np.concatenate(([0.0], np.cumsum(np.linalg.norm(np.diff(given.q, axis=0), axis=1))))
    edges = [0, *given.stops, len(given.q) - 1]
    keep = apart(given.q, np.isin(np.arange(len(given.q)), edges), NEAR * s[-1])
    path = _path(given.only(keep), interpolation, s[keep])
    path.check_detours()
    v, a = _along(path, given, s)
    pieces, rests = [], []
    for (i, j), (_, end) in zip(pairwise(edges), path.legs(), strict=True):
        if i:
            rests.append((given.reached[i] - given.left[0], given.left[i] - given.left[0]))
            pieces += [laws.wait(float(s[i]), rests[-1][1] - rests[-1][0])] if rests[-1][1] > rests[-1][0] else []
        part = slice(i, j + 1)
        t = np.concatenate((given.left[i:i + 1], given.reached[i + 1:j + 1]))
        pieces.append(_leg(t, np.append(s[i:j], end), None if v is None else v[part], None if a is None else a[part]))
    return ScaledPlan(path, pieces[0].then(*pieces[1:]), tuple(rests))


def _checked(points: Any, times: Any, velocities: Any, accelerations: Any) -> _Points:
    q = places(points)
    if q.ndim != 2 or len(q) < 2 or not q.shape[1]:
        raise InputError(f"points have shape {q.shape}; two rows or more, of a column for each joint, are needed; put where "
                         "the robot is before a single goal")
    t = array("times", times, q.shape[:1])
    v = None if velocities is None else array("velocities", velocities, q.shape)
    a = None if accelerations is None else array("accelerations", accelerations, q.shape)
    early = np.flatnonzero(np.diff(t) <= 0.0)
    if len(early):
        k = int(early[0])
        raise InputError(f"times must increase: point {k + 1} is at {t[k + 1]:g} s, point {k} before it at {t[k]:g} s")
    if v is None and a is not None:
        raise InputError("accelerations without velocities say nothing of the motion along the path")
    for k in (0, -1):
        if v is not None and np.abs(v[k]).max() > AT_REST:
            which = "last" if k else "first"
            raise InputError(f"the motion must begin and end at rest, but the {which} velocity is {v[k].tolist()}")
    return _merged(q, t, v, a)


def _merged(points: np.ndarray, times: np.ndarray, v: Any, a: Any) -> _Points:
    """Runs of equal points made one."""
    new = np.linalg.norm(np.diff(points, axis=0), axis=1) > SAME
    first, last = np.flatnonzero(np.append(True, new)), np.flatnonzero(np.append(new, True))
    if len(first) < 2:
        raise InputError(f"the {len(points)} points are all the same: there is nowhere to go")
    return _Points(points[first], times[first], times[last], None if v is None else v[first], None if a is None else a[first])


def _path(given: _Points, interpolation: str, s: np.ndarray) -> Path:
    """Directions and curvatures where the plan moves, what a spline makes of them where it rests."""
    q, v, a, stops = given.q, given.v, given.a, given.stops
    if interpolation == "positions" or v is None:
        return through(q, stops=stops, s=s)
    size = np.linalg.norm(v, axis=1, keepdims=True)
    moving = size > AT_REST
    v, size = np.where(moving, v, 0.0), np.where(moving, size, 1.0)  # noise has a direction, too
    path = through(q, v, stops=stops, s=s)
    if interpolation == "velocities" or a is None:
        return path
    along = v / size  # q' of length one, so sd = |qd|, and qdd = q'' sd^2 + q' sdd
    bend = (a - along * (along * a).sum(axis=1, keepdims=True)) / size**2
    return through(q, v, np.where(moving, bend, path(s)[2]), stops=stops, s=s)


def _along(path: Path, given: _Points, s: np.ndarray) -> tuple[Any, Any]:
    """sd and sdd at the points."""
    if given.v is None:
        return None, None
    _, q1, q2, _ = path(s)
    square = (q1 * q1).sum(axis=1)
    v = np.maximum((q1 * given.v).sum(axis=1) / square, 0.0)
    return v, None if given.a is None else (q1 * (given.a - q2 * v[:, None] ** 2)).sum(axis=1) / square


def _leg(t: np.ndarray, s: np.ndarray, v: Any, a: Any) -> TimeLaw:
    """From rest to rest through s at t: a spline where speeds or accelerations are not given, held back where it went back."""
    known = np.stack([x for x in (s, v) if x is not None], axis=1)[..., None]
    known[[0, -1], 1:] = 0.0
    coefficients = spline(t, known, 2, rest=True)[..., 0]
    speeds, bends = np.append(coefficients[:, 1], 0.0), np.append(2.0 * coefficients[:, 2], 0.0)
    if a is not None:
        bends[1:-1] = a[1:-1]  # zero at both ends: else the torque would jump there
    for _ in range(ATTEMPTS):
        law = laws.hermite(t - t[0], s, speeds, bends)
        back = law.going_back()
        if not len(back):
            break
        for k in (back, back + 1):  # with both zero a quintic is monotone
            speeds[k] *= 0.7
            bends[k] *= 0.5
    return law
