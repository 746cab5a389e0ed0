"""Retiming: the fastest motion through given points; their times are ignored.

motion = retime_motion(robot, points)     # of any robot: the joints with motors are moved, the others follow
q, qd, qdd, qddd = motion(np.arange(0.0, motion.duration, 1e-3))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, some
from ..model.drives import DriveLimit
from ..model.tree import Limits
from ..robots.inputs import validation
from ..robots.inputs.base_state import BaseState
from ..robots.robot import Robot
from .constraints import QUANTITIES, Constraints
from .limit_check import check_rest, steady_rate
from .limit_utilization import rate_notes, resolve_limits
from .link_side import link_side, unenforceable_limits
from .path import NEAR_DUPLICATE_SHARE, Path, drop_near_duplicates, path_through, validate_waypoints
from .path_dynamics import PathDynamics
from .scaled_plan import SAME_POINT_TOL
from .time_law import TimeLaw, rest_to_rest
from .time_optimal import LEVEL, Progress, fastest_law

POSITION_SAMPLES = 2001  # along the path, for position limits
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


# ------------------------------------------------------------------------------------------------------------------ robots


@dataclass(frozen=True, eq=False)
class Retimed:
    """Motion along a route: q(s) by its path, s(t) by the law. notes: remarks for users, one sentence each."""

    route: Route
    law: TimeLaw
    notes: tuple[str, ...] = ()

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return self.law.duration

    def __call__(self, t: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return q, qd, qdd, qddd at time t [s]: (n,) each, or (samples, n) at times (samples,); then it rests."""
        if np.ndim(t) == 0:
            q, qd, qdd, qddd = (array[0] for array in self([t]))
            return q, qd, qdd, qddd
        s, *rates = self.law(t)
        q, q1, q2, q3 = self.route.path(s)
        sd, sdd, sddd = (rate[:, None] for rate in rates)
        return q, q1 * sd, q2 * sd**2 + q1 * sdd, q3 * sd**3 + 3.0 * q2 * sd * sdd + q1 * sddd


def retime_motion(robot: Robot, points: Any, velocities: Any = None, limits: Limits | None = None, tolerance: float = 1e-6,
                  progress: Progress | None = None, drive_limits: Sequence[DriveLimit] | None = None,
                  base: BaseState | None = None) -> Retimed:
    """Return the fastest motion through points (count, n), at rest at both ends, inside all known limits except of position.

    Torques are those of trajectory.link_side: where a joint is elastic, that of its spring.
    velocities : (count, n); the motion stops where they vanish, and where points repeat
    limits     : default those of the URDF; dataclasses.replace(robot.limits, effort_rate=...) for more, NaN is unknown.
                 effort_rate limits the rate of the whole torque, commanded_effort_rate that of the torque without what the
                 robot's controller adds
    drive_limits : of voltage, current, power, ...; default those of the robot file
    tolerance  : largest distance of points from the path [rad, m]; larger for noisy recordings
    progress   : called with a description and the duration so far
    base       : state of a moving base, at rest
    Raises InputError for invalid arguments, and where gravity alone exceeds a limit.
    """
    if not robot.n:
        raise InputError(f"robot '{robot.name}' has no joint that moves: there is nothing to retime")
    moved = link_side(robot, base)
    points = validation.coordinates("points", points, robot.joint_names)
    if points.ndim != 2 or len(points) < 2:
        raise InputError(f"points have shape {points.shape}; (count, {robot.n}) with two points at least are needed")
    if velocities is not None:
        velocities = validation.coordinates("velocities", velocities, robot.joint_names)
        if velocities.shape != points.shape:
            raise InputError(f"velocities have shape {velocities.shape}, points {points.shape}; they must be the same")
    if not (np.isfinite(validation.numbers("tolerance", tolerance)) and tolerance >= 0.0):
        raise InputError(f"tolerance is {tolerance:g}; a finite number, zero or more, is needed [rad, m]")
    limits = resolve_limits(moved, limits)
    way = fit_route(points, velocities, tolerance)
    constraints = PathDynamics(moved).constraints(way.path, limits, drive_limits)
    notes = (*_unknown_limit_notes(constraints), *rate_notes(moved, limits), *unenforceable_limits(robot),
             *_deviation_notes(way, tolerance), *_position_limit_notes(robot, limits, way))
    law = time_optimal_law(constraints, progress)
    return Retimed(way, law, (*notes, *slower_playback_notes(constraints, law)))


def _unknown_limit_notes(constraints: Constraints) -> list[str]:
    found = []
    for quantity in QUANTITIES:
        names = [constraints.joint_names[k] for k, which in constraints.unknown if which == quantity]
        if names:
            every = len(names) == len(constraints.joint_names)
            found.append(quantity.replace("_", " ") + ("" if every else f" of {some(names)}"))
    return [f"no limits known, hence not enforced: {'; '.join(found)}"] if found else []


def _deviation_notes(way: Route, tolerance: float) -> list[str]:
    if way.deviation <= tolerance:
        return []
    return [f"points lie up to {way.deviation:.3g} off the path: they are too close together, or too noisy, to be followed "
            "more closely"]


def slower_playback_notes(constraints: Constraints, law: TimeLaw) -> list[str]:
    """Return a note if limits are exceeded at a lower speed, as of a motion that falls or brakes by gravity."""
    if (factor := steady_rate(constraints, law, 1.0)) >= 1.0:
        return []
    rate = 0.5 * (1.0 + factor)
    used = constraints.utilization(law.slower(rate).sample_pieces(constraints.path.breaks)[0]).max(axis=0)
    limit = constraints.describe(int(used.argmax()))
    return [f"limits are kept at this speed, not at every lower one: at {rate:.0%} of it, {limit} would be {used.max():.0%} "
            "of its limit. Retime with other limits rather than slow this motion"]


def _position_limit_notes(robot: Robot, limits: Limits, way: Route) -> list[str]:
    """Return notes where the path leaves position limits: it is given, so they are not enforced."""
    q = way.path(np.linspace(0.0, way.path.length, POSITION_SAMPLES))[0]
    low, high = q.min(axis=0), q.max(axis=0)
    return [f"the path takes {name} from {low[k]:.5g} to {high[k]:.5g}, outside its limits {limits.lower[k]:.5g} to "
            f"{limits.upper[k]:.5g}" for k, name in enumerate(robot.joint_names)
            if low[k] < limits.lower[k] or high[k] > limits.upper[k]]
