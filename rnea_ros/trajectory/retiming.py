"""Retiming: the fastest motion through given points, whatever their times were."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from .constraints import Constraints
from .limit_check import check_rest
from .path import NEAR_DUPLICATE_SHARE, Path, drop_near_duplicates, path_through, validate_waypoints
from .scaled_plan import SAME_POINT_TOL
from .time_law import TimeLaw, rest_to_rest
from .time_optimal import LEVEL, Progress, fastest_law

REST_SPEED_SHARE = 1e-3  # of the largest speed, below which a recorded motion is at rest
INITIAL_GAPS = 8  # between the waypoints that are chosen first
MIN_GAP_SHARE = 1e-4  # of the length between two waypoints


class Route(NamedTuple):
    """Path, largest distance of the given points from it [rad, m, Euclidean norm], and the number of its waypoints."""

    path: Path
    deviation: float
    points: int


def fit_route(points: Any, velocities: Any = None, tolerance: float = 1e-6) -> Route:
    """Return the path through points (count, n), or through as few of them as keep all within the tolerance.

    The motion rests, and the path may have a corner, where points repeat and, inside, where the velocities (count, n) almost
    vanish.
    """
    points = validate_waypoints(points)
    if points.ndim != 2 or not points.size:
        raise InputError(f"points have shape {points.shape}; rows of one column for each joint are needed")
    new = np.concatenate(([True], np.linalg.norm(np.diff(points, axis=0), axis=1) > SAME_POINT_TOL))
    kept = points[new]
    if len(kept) < 2:
        raise InputError(f"the {len(points)} points are all the same: there is nowhere to go")
    repeats = np.diff(np.append(np.flatnonzero(new), len(points))) > 1
    resting = np.zeros(len(kept), dtype=bool) if velocities is None else _rests(np.asarray(velocities, dtype=float)[new])
    stops = [int(k) for k in np.flatnonzero(repeats | resting) if 0 < k < len(kept) - 1]
    s = np.concatenate(([0.0], np.cumsum(np.linalg.norm(np.diff(kept, axis=0), axis=1))))
    initial = np.interp(np.linspace(0.0, s[-1], INITIAL_GAPS + 1), s, np.arange(len(kept)))
    needed = [0, *stops, len(kept) - 1]
    chosen = np.unique(np.concatenate((needed, np.round(initial)))).astype(int)
    chosen = chosen[drop_near_duplicates(kept[chosen], np.isin(chosen, needed), NEAR_DUPLICATE_SHARE * s[-1])]
    while True:
        path = path_through(kept[chosen], stops=[int(np.searchsorted(chosen, k)) for k in stops], s=s[chosen])
        distance = np.linalg.norm(path(s)[0] - kept, axis=1)
        more = _worst_points(distance, s, chosen, tolerance)
        if not more:
            path.check_detours()
            return Route(path, float(distance.max()), len(chosen))
        chosen = np.union1d(chosen, more)


def _rests(velocities: np.ndarray) -> np.ndarray:
    """Return a mask of the samples at which a motion rests on its way: the slowest one of each slow run."""
    speed = np.linalg.norm(velocities, axis=1)
    slow = speed <= REST_SPEED_SHARE * speed.max()
    edges = np.flatnonzero(np.diff(np.concatenate(([False], slow, [False])).astype(int)))
    found = np.zeros(len(speed), dtype=bool)
    for start, end in zip(edges[0::2], edges[1::2]):
        if start > 0 and end < len(speed):
            found[start + int(speed[start:end].argmin())] = True
    return found


def _worst_points(distance: np.ndarray, s: np.ndarray, chosen: np.ndarray, tolerance: float) -> list[int]:
    """Return the most distant point in each gap between chosen ones, if it exceeds the tolerance and is not near to them."""
    found = []
    for a, b in pairwise(chosen):
        k = a + 1 + int(distance[a + 1:b].argmax()) if b > a + 1 else a
        if distance[k] > tolerance and min(s[k] - s[a], s[b] - s[k]) > MIN_GAP_SHARE * s[-1]:
            found.append(k)
    return found


def time_optimal_law(constraints: Constraints, progress: Progress | None = None) -> TimeLaw:
    """Return the fastest law over a path, at rest at both ends and at its stops. Played slower it may exceed limits.

    Raises InputError where gravity alone exceeds a limit.
    """
    check_rest(constraints, LEVEL)
    order = 3 if constraints.third_order else 2
    starts = [rest_to_rest(a, b, 1.0, order) for a, b in constraints.path.legs()]
    pieces = [fastest_law(constraints, start, progress=progress, slower_too=False) for start in starts]
    return pieces[0].then(*pieces[1:])
