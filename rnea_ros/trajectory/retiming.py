"""Retiming: the fastest motion through given points, whose times are ignored; thermal load of motor windings.

motion = retime_motion(robot, points)     # points of the joints with motors
q, qd, qdd, qddd = motion(np.arange(0.0, motion.duration, 1e-3))

The thermal load of a winding with the time constant T is computed for one motion from cold, and for continuous repetition:

    T d load/dt = (tau / tau_c)^2 - load          load 1: permitted continuously by the data sheet (drive_utilization.py)

The load is linear in the squared torque. If one motion of period P from cold ends with the load I, the load at the start and
end of a continuously repeated motion is I / (1 - exp(-P / T)); its exponential decay is added to the load from cold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, some
from ..model.drives import Drive, DriveLimit
from ..model.tree import Limits
from ..robots import validation
from ..robots.base_state import BaseState
from ..robots.robot import Robot
from .constraints import QUANTITIES, Constraints
from .limit_check import check_rest, steady_rate
from .limit_utilization import rate_notes, resolve_limits
from .path import NEAR_DUPLICATE_SHARE, Path, drop_near_duplicates, path_through, validate_waypoints
from .path_dynamics import PathDynamics, default_base, link_side, unenforceable_limits
from .scaled_plan import SAME_POINT_TOL
from .time_law import TimeLaw, rest_to_rest
from .time_optimal import LEVEL, Progress, fastest_law

POSITION_SAMPLES = 2001  # samples along the path for the check of position limits
REST_SPEED_SHARE = 1e-3  # speed over the largest speed below which a recorded motion is at rest
INITIAL_GAPS = 8  # number of gaps between the initially selected waypoints
MIN_GAP_SHARE = 1e-4  # shortest gap between two waypoints, relative to the length of the path


class Route(NamedTuple):
    """Path through recorded points.

    deviation : largest distance (Euclidean norm over joints) of the points from the path [rad, m]
    points    : number of waypoints of the path
    """

    path: Path
    deviation: float
    points: int


def fit_route(points: Any, velocities: Any = None, tolerance: float = 1e-6) -> Route:
    """Return a path through a small subset of points (count, n), such that all points are within a tolerance of the path.

    velocities : (count, n) velocities at the points [rad/s, m/s]; None: unknown
    tolerance  : largest distance of the points from the path [rad, m]

    Points that repeat, and interior points with almost zero velocity, are stops, at which the path may have a corner.
    """
    points = validate_waypoints(points)
    if points.ndim != 2 or not points.size:
        raise InputError(f"points have shape {points.shape}; rows of one column for each joint are needed")
    new = np.concatenate(([True], np.linalg.norm(np.diff(points, axis=0), axis=1) > SAME_POINT_TOL))
    kept = points[new]
    if len(kept) < 2:
        raise InputError(f"the {len(points)} points are all equal; at least two different points are needed")
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
    """Return a mask of the interior samples at which a motion is at rest: the slowest sample of each slow interval."""
    speed = np.linalg.norm(velocities, axis=1)
    slow = speed <= REST_SPEED_SHARE * speed.max()
    edges = np.flatnonzero(np.diff(np.concatenate(([False], slow, [False])).astype(int)))
    at_rest = np.zeros(len(speed), dtype=bool)
    for start, end in zip(edges[0::2], edges[1::2]):
        if start > 0 and end < len(speed):
            at_rest[start + int(speed[start:end].argmin())] = True
    return at_rest


def _worst_points(distance: np.ndarray, s: np.ndarray, chosen: np.ndarray, tolerance: float) -> list[int]:
    """Return the most distant point in each gap between chosen points, if it exceeds the tolerance and is not near them."""
    worst = []
    for a, b in pairwise(chosen):
        k = a + 1 + int(distance[a + 1:b].argmax()) if b > a + 1 else a
        if distance[k] > tolerance and min(s[k] - s[a], s[b] - s[k]) > MIN_GAP_SHARE * s[-1]:
            worst.append(k)
    return worst


def time_optimal_law(constraints: Constraints, progress: Progress | None = None) -> TimeLaw:
    """Return the fastest time law on a path, at rest at both ends and at its stops.

    At a lower rate, the motion may exceed limits. Raises InputError if gravity alone exceeds a limit.
    """
    check_rest(constraints, LEVEL)
    order = 3 if constraints.third_order else 2
    starts = [rest_to_rest(a, b, 1.0, order) for a, b in constraints.path.legs()]
    pieces = [fastest_law(constraints, start, progress=progress, slower_too=False) for start in starts]
    return pieces[0].then(*pieces[1:])


# ------------------------------------------------------------------------------------------------------------------ robots


@dataclass(frozen=True, eq=False)
class Retimed:
    """Motion along a route: q(s) of its path with the time law s(t). notes: remarks for users, one sentence each."""

    route: Route
    law: TimeLaw
    notes: tuple[str, ...] = ()

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return self.law.duration

    def __call__(self, t: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return q, qd, qdd, qddd at time t [s]: (n,) each, or (samples, n) at times (samples,); at rest after the end."""
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
    """Return the fastest motion through points, at rest at both ends, within all known limits except position limits.

    The torque of an elastic joint is that of its spring (link_side).

    points       : (count, n) positions of the joints with motors [rad, m]
    velocities   : (count, n) velocities [rad/s, m/s]; the motion stops where they are zero, and where points repeat
    limits       : default: those of the model. For others use dataclasses.replace(robot.limits, effort_rate=...); NaN: unknown
    drive_limits : limits of voltage, current, power, ...; default: those of the robot file
    tolerance    : largest distance of the points from the path [rad, m]; increase it for noisy recordings
    progress     : function that is called with a description and the current duration [s]
    base         : state of a moving base, at rest

    Raises InputError for invalid arguments, and if gravity alone exceeds a limit.
    """
    if not robot.n:
        raise InputError(f"robot '{robot.name}' has no movable joint; at least one is needed for retiming")
    moved = link_side(robot, base)
    points = validation.coordinates("points", points, robot.joint_names)
    if points.ndim != 2 or len(points) < 2:
        raise InputError(f"points have shape {points.shape}; (count, {robot.n}) with two points at least are needed")
    if velocities is not None:
        velocities = validation.coordinates("velocities", velocities, robot.joint_names)
        if velocities.shape != points.shape:
            raise InputError(f"velocities have shape {velocities.shape}, points {points.shape}; equal shapes are needed")
    if not (np.isfinite(validation.numbers("tolerance", tolerance)) and tolerance >= 0.0):
        raise InputError(f"tolerance is {tolerance:g}; a finite number, at least 0, is needed [rad, m]")
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
    return [f"points are up to {way.deviation:.3g} away from the path, more than the tolerance of {tolerance:.3g}: they are "
            "too "
            "close together, or too noisy"]


def slower_playback_notes(constraints: Constraints, law: TimeLaw) -> list[str]:
    """Return a note, in a list, if limits are exceeded at a lower speed (motions that are driven or braked by gravity)."""
    if (factor := steady_rate(constraints, law, 1.0)) >= 1.0:
        return []
    rate = 0.5 * (1.0 + factor)
    used = constraints.utilization(law.slower(rate).sample_pieces(constraints.path.breaks)[0]).max(axis=0)
    limit = constraints.describe(int(used.argmax()))
    return [f"limits are satisfied at this speed, but not at every lower one: at {rate:.0%} of it, {limit} is "
            f"{used.max():.0%} "
            "of its limit. For a slower motion, retime with lower limits"]


def _position_limit_notes(robot: Robot, limits: Limits, way: Route) -> list[str]:
    """Return a note for each joint whose position limits the path exceeds; they are not enforced on a given path."""
    q = way.path(np.linspace(0.0, way.path.length, POSITION_SAMPLES))[0]
    low, high = q.min(axis=0), q.max(axis=0)
    return [f"the path moves {name} from {low[k]:.5g} to {high[k]:.5g}, outside its limits {limits.lower[k]:.5g} to "
            f"{limits.upper[k]:.5g}" for k, name in enumerate(robot.joint_names)
            if low[k] < limits.lower[k] or high[k] > limits.upper[k]]


# ------------------------------------------------------------------ continuous duty


BLOCK_TIME_CONSTANTS = 30.0  # length of a block in time constants, for which exponentials do not lose precision
STORED_SAMPLES = 200  # samples kept of each part that is added
N_SAMPLES = 4001  # samples of a motion
MIN_RATE, RATE_STEP, BISECTIONS = 0.02, 0.97, 30  # search for a rate: smallest rate, factor of a step, bisections


class ThermalLoad(NamedTuple):
    """Largest thermal load of each winding (k,), 1 at the continuous limit: one motion from cold, continuous repetition."""

    joints: tuple[str, ...]
    once: np.ndarray
    repeated: np.ndarray

    @property
    def descriptions(self) -> list[str]:
        """Sentences for users."""
        return [f"thermal load of {joint}: at most {100.0 * once:.1f} % from cold, {100.0 * again:.1f} % if repeated "
                "continuously"
                for joint, once, again in zip(self.joints, self.once, self.repeated)]


def thermal_drives(robot: Robot) -> tuple[Drive, ...]:
    """Return the drives of rigid joints with known continuous torque and thermal time constant."""
    springs = robot.elastic_joints if not robot.is_fixed_tree else ()
    return tuple(drive for drive in robot.tree.model.drives if drive.joint in robot.joint_names
                 and drive.joint not in springs and np.isfinite(drive.continuous * drive.thermal_time_constant))


class ThermalAccumulator:
    """Accumulator of the thermal load of a motion whose samples are added in parts."""

    def __init__(self, drives: Sequence[Drive], joint_names: Sequence[str]):
        self.joints = tuple(drive.joint for drive in drives)
        self._columns = [joint_names.index(joint) for joint in self.joints]
        self._continuous = np.array([drive.continuous for drive in drives])
        self._constant = np.array([drive.thermal_time_constant for drive in drives])
        self._load, self._last = np.zeros(len(drives)), (np.zeros(0), np.zeros((0, len(drives))))
        self._begin, self._t, self._loads = 0.0, [np.zeros(0)], [np.zeros((0, len(drives)))]

    def add(self, t: np.ndarray, tau: np.ndarray) -> None:
        """Add samples in their order: t (samples,) [s], tau (samples, n)."""
        share = np.nan_to_num((tau[:, self._columns] / self._continuous) ** 2)
        if not len(self._last[0]):
            self._begin = float(t[0])
        t, share = np.concatenate((self._last[0], t)), np.concatenate((self._last[1], share))
        self._last = t[-1:], share[-1:]
        loads = _loads(t, share, self._constant, self._load)
        self._load = loads[-1]
        kept = np.unique(np.linspace(0, len(t) - 1, STORED_SAMPLES).astype(int))
        self._t.append(t[kept])
        self._loads.append(loads[kept])

    def load(self, pause: float = 0.0) -> ThermalLoad:
        """Return the thermal load. pause: time between two motions, at the last torque [s]."""
        t, loads, last = np.concatenate(self._t) - self._begin, np.concatenate(self._loads), self._last[1]
        if not len(t):
            return ThermalLoad(self.joints, self._load, self._load)
        cooled = np.exp(-pause / self._constant)
        period = t[-1] + pause
        end = last[0] + (self._load - last[0]) * cooled
        again = end / -np.expm1(-period / self._constant) if period > 0.0 else last[0]
        repeated = (loads + again * np.exp(-t[:, None] / self._constant)).max(axis=0)
        return ThermalLoad(self.joints, loads.max(axis=0), np.maximum(repeated, again))


def _loads(t: np.ndarray, share: np.ndarray, constant: np.ndarray, load: np.ndarray) -> np.ndarray:
    """Return the loads (samples, k) for the load (k,) at the first sample; the squared torque is averaged between samples."""
    result, begin = np.empty_like(share), 0
    result[0] = load
    while begin < len(t) - 1:
        end = max(int(t.searchsorted(t[begin] + BLOCK_TIME_CONSTANTS * constant.min(initial=np.inf), side="right")), begin + 2)
        grown = np.exp((t[begin:end, None] - t[begin]) / constant) if end > begin + 2 else None
        mean = 0.5 * (share[begin:end - 1] + share[begin + 1:end])
        if grown is None:  # one step of any length
            decay = np.exp(-(t[begin + 1] - t[begin]) / constant)
            result[begin + 1] = mean[0] + (result[begin] - mean[0]) * decay
        else:
            result[begin + 1:end] = (result[begin] + np.cumsum(mean * np.diff(grown, axis=0), axis=0)) / grown[1:]
        begin = end - 1
    return result


def slow_to_continuous_duty(robot: Robot, motion: Retimed, pause: float = 0.0) -> Retimed:
    """Return the motion at the largest speed at which continuous repetition is within the thermal limits of the windings.

    pause : time between two motions, in the final pose [s]

    Raises InputError if gravity alone exceeds the limits.
    """
    if not (np.isfinite(pause) and pause >= 0.0):
        raise InputError(f"pause is {pause:g}; a finite number, at least 0, is needed [s]")
    drives = thermal_drives(robot)
    if not drives:
        raise InputError(f"the thermal load of robot '{robot.name}' is unknown: declare continuous_current or "
                         "continuous_torque, "
                         "and thermal_time_constant, of at least one drive in the robot file")
    moved = link_side(robot, default_base(robot))

    def loads(rate: float) -> np.ndarray:
        slow = replace(motion, law=motion.law.slower(rate))
        t = np.linspace(0.0, slow.duration, N_SAMPLES)
        accumulator = ThermalAccumulator(drives, robot.joint_names)
        accumulator.add(t, moved.inverse_dynamics(*slow(t)[:3]))
        return accumulator.load(pause).repeated

    high = low = 1.0
    if (hot := loads(1.0)).max() <= 1.0:
        return motion
    while loads(low).max() > 1.0:
        high, low = low, low * RATE_STEP
        if low < MIN_RATE:
            worst = drives[int(loads(low).argmax())].joint
            raise InputError(f"continuous repetition overheats {worst} even at {MIN_RATE:.0%} of the speed: gravity alone "
                             "exceeds "
                             "its continuous torque")
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if loads(middle).max() <= 1.0 else (low, middle)
    hottest = drives[int(hot.argmax())].joint
    note = (f"slowed to {low:.1%} of the speed for continuous repetition: at full speed {hottest} would reach {hot.max():.0%} "
            "of "
            "its thermal limit")
    return replace(motion, law=motion.law.slower(low), notes=(*motion.notes, note))
