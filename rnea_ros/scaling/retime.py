"""Offline: the fastest motion through given points, whatever their times were."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from . import law as laws
from .feasibility import check_rest
from .law import TimeLaw
from .path import NEAR, Path, apart, places, through
from .points import SAME
from .profile import LEVEL, Progress, fastest
from .terms import Constraints

STANDING = 1e-3  # share of the largest speed below which a recorded motion counts as standing
FIRST = 8  # gaps between the first choice of points
CLOSEST = 1e-4  # share of the length between two points of the path at least


class Route(NamedTuple):
    """A path, how far from it the given points are [rad, m, Euclidean norm], and how many of them it was laid through."""

    path: Path
    deviation: float
    points: int


def route(points: Any, velocities: Any = None, tolerance: float = 1e-6) -> Route:
    """The path through points (count, n), or through as few of them as keep all within the tolerance.

    The motion rests, and the path may have a corner, where points repeat and, inside, where the velocities (count, n) all but
    vanish.
    """
    points = places(points)
    if points.ndim != 2 or not points.size:
        raise InputError(f"points have shape {points.shape}; rows of one column for each joint are needed")
    new = np.concatenate(([True], np.linalg.norm(np.diff(points, axis=0), axis=1) > SAME))
    kept = points[new]
    if len(kept) < 2:
        raise InputError(f"the {len(points)} points are all the same: there is nowhere to go")
    repeats = np.diff(np.append(np.flatnonzero(new), len(points))) > 1
    standing = np.zeros(len(kept), dtype=bool) if velocities is None else _standing(np.asarray(velocities, dtype=float)[new])
    stops = [int(k) for k in np.flatnonzero(repeats | standing) if 0 < k < len(kept) - 1]
    s = np.concatenate(([0.0], np.cumsum(np.linalg.norm(np.diff(kept, axis=0), axis=1))))
    wanted = np.interp(np.linspace(0.0, s[-1], FIRST + 1), s, np.arange(len(kept)))
    needed = [0, *stops, len(kept) - 1]
    chosen = np.unique(np.concatenate((needed, np.round(wanted)))).astype(int)
    chosen = chosen[apart(kept[chosen], np.isin(chosen, needed), NEAR * s[-1])]
    while True:
        path = through(kept[chosen], stops=[int(np.searchsorted(chosen, k)) for k in stops], s=s[chosen])
        away = np.linalg.norm(path(s)[0] - kept, axis=1)
        more = _worst(away, s, chosen, tolerance)
        if not more:
            path.check_detours()
            return Route(path, float(away.max()), len(chosen))
        chosen = np.union1d(chosen, more)


def _standing(velocities: np.ndarray) -> np.ndarray:
    """Where a motion comes to rest on its way: the slowest sample of each run of all but standing ones."""
    speed = np.linalg.norm(velocities, axis=1)
    slow = speed <= STANDING * speed.max()
    edges = np.flatnonzero(np.diff(np.concatenate(([False], slow, [False])).astype(int)))
    found = np.zeros(len(speed), dtype=bool)
    for start, end in zip(edges[0::2], edges[1::2]):
        if start > 0 and end < len(speed):
            found[start + int(speed[start:end].argmin())] = True
    return found


def _worst(away: np.ndarray, s: np.ndarray, chosen: np.ndarray, tolerance: float) -> list[int]:
    """The point furthest off the path in each gap between chosen ones, if it is too far and not too near to them."""
    found = []
    for a, b in pairwise(chosen):
        k = a + 1 + int(away[a + 1:b].argmax()) if b > a + 1 else a
        if away[k] > tolerance and min(s[k] - s[a], s[b] - s[k]) > CLOSEST * s[-1]:
            found.append(k)
    return found


def time_optimal(constraints: Constraints, progress: Progress | None = None) -> TimeLaw:
    """The fastest law over a path, at rest at both ends and at its stops. Played slower it may exceed limits.

    InputError where gravity alone exceeds a limit.
    """
    check_rest(constraints, LEVEL)
    order = 3 if constraints.third_order else 2
    starts = [laws.rest_to_rest(a, b, 1.0, order) for a, b in constraints.path.legs()]
    pieces = [fastest(constraints, start, progress=progress, slower_too=False) for start in starts]
    return pieces[0].then(*pieces[1:])
