"""Trajectory goal: validation of a received trajectory, its start and its tolerances.

The conventions are those of joint_trajectory_controller: a first point at time 0 is the current position of the robot; a first
point at a later time is a position to move to. Joints that the trajectory does not name hold their position.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..errors import InputError, Rejected, near, shown, some
from ..model.tree import Limits
from ..trajectory.path import Path
from .joint_states import Measurement, unwrap_to

MAX_DELAY_S = 3600.0  # largest time from the clock to the stamp of a trajectory
MAX_POINTS = 20_000  # most points of a trajectory; preparation takes about one second per thousand
MANY_POINTS = 1000  # number of points from which the preparation is reported
POSITION_LIMIT_TOL = 1e-6  # permitted excess of position limits [rad, m]
TOLERANCE_FIELDS = ("position", "velocity", "acceleration")
NO_TOLERANCE = -1.0  # value of control_msgs/JointTolerance that disables a tolerance


@dataclass(frozen=True)
class ApproachOptions:
    """Options of the motion from the robot to the first point of a trajectory.

    speed_share : share of the velocity limits that is used
    speed       : speed if the velocity limit is unknown [rad/s, m/s]
    min_s       : shortest duration [s]
    rest_s      : time at rest in the first point [s]
    """

    speed_share: float = 0.5
    speed: float = 0.5
    min_s: float = 0.5
    rest_s: float = 0.1


APPROACH = ApproachOptions()


@contextmanager
def rejecting(reason: str) -> Iterator[None]:
    """Context manager that converts an InputError of the block to Rejected with a reason."""
    try:
        yield
    except InputError as error:
        raise Rejected(reason, str(error)) from None


class Outcome(NamedTuple):
    """Result of a goal: reason of the failure (a key, as in Rejected; empty: success) and a message."""

    reason: str = ""
    message: str = ""


OnEnd = Callable[[Outcome], None]


def ignore_outcome(outcome: Outcome) -> None:
    """Do nothing: the default result callback."""


# ------------------------------------------------------------------------------------------------------------ tolerances


class JointTolerance(Protocol):
    """Message control_msgs/JointTolerance."""

    name: str
    position: float
    velocity: float
    acceleration: float


class Tolerances(NamedTuple):
    """Tolerances of a goal: rows are position, velocity and acceleration; inf is no tolerance, NaN the default.

    path : (3, n) maximum deviation during the motion
    goal : (3, n) maximum deviation at the end
    time : time after the last reference within which the robot must be inside `goal` [s]; NaN is the default
    """

    path: np.ndarray
    goal: np.ndarray
    time: float = math.nan

    def with_defaults(self, path: float, goal: float, time: float) -> Tolerances:
        """Replace NaN by the position tolerances `path` and `goal` (0 disables) and by the goal time [s].

        Velocities and accelerations have no default tolerance.
        """
        defaults = (np.array([[value or np.inf], [np.inf], [np.inf]]) for value in (path, goal))
        on_path, at_goal = (np.where(np.isnan(given), default, given) for given, default in zip(self[:2], defaults))
        return Tolerances(on_path, at_goal, time if math.isnan(self.time) else self.time)

    def check(self, joint_names: Sequence[str], measured: Measurement) -> None:
        """Raise Rejected if a quantity with a tolerance is not measured."""
        known = np.isfinite(np.stack((measured.q, measured.qd, np.full(len(joint_names), np.nan))))
        for name, given in zip(("path_tolerance", "goal_tolerance"), self[:2]):
            field, joint = (np.argwhere(np.isfinite(given) & ~known).tolist() or [[-1, -1]])[0]
            if field >= 0:
                raise Rejected("not_measured", f"{name} of the {TOLERANCE_FIELDS[field]} of {joint_names[joint]} cannot be "
                               "checked: no joint state contains it; give 0 for the default of the parameters, -1 for no "
                               "tolerance")


def default_tolerances(n: int) -> Tolerances:
    """Return tolerances of n joints, all default."""
    return Tolerances(*np.full((2, 3, n), np.nan))


def read_tolerances(joint_names: Sequence[str], path: Iterable[JointTolerance], goal: Iterable[JointTolerance],
                    time: float = 0.0) -> Tolerances:
    """Convert messages to Tolerances: 0 is the default, -1 no tolerance. Raises Rejected."""
    rows = [_tolerance_rows(joint_names, name, given) for name, given in (("path_tolerance", path), ("goal_tolerance", goal))]
    return Tolerances(rows[0], rows[1], math.inf if time < 0.0 else time or math.nan)


def _tolerance_rows(joint_names: Sequence[str], field: str, given: Iterable[JointTolerance]) -> np.ndarray:
    rows = np.full((3, len(joint_names)), np.nan)
    for entry in given:
        if entry.name not in joint_names:
            raise Rejected("unknown_joint", f"{field}: {shown(entry.name)}; the robot has {some(joint_names, 32)}"
                                            f"{near(entry.name, joint_names)}")
        for row, quantity in zip(rows, TOLERANCE_FIELDS):
            value = getattr(entry, quantity)
            if not (value >= 0.0 or value == NO_TOLERANCE):
                raise Rejected("tolerance", f"{field}: {quantity} of {entry.name} is {value:g}; it must be above zero, 0 for "
                                            "the default or -1 for no tolerance")
            row[joint_names.index(entry.name)] = np.inf if value == NO_TOLERANCE else value or np.nan
    return rows


def resolve_tolerances(given: Tolerances | None, n: int, parameters: Mapping[str, Any]) -> Tolerances:
    """Return the tolerances of a goal; those that it does not set are taken from the parameters."""
    return (given or default_tolerances(n)).with_defaults(
        parameters["watch.path_tolerance"], parameters["watch.goal_tolerance"], parameters["watch.goal_time"] or math.inf)


# ------------------------------------------------------------------------------------------------------------------ goal


class TrajectoryPoint(NamedTuple):
    """Point of a received trajectory; velocities and accelerations may be empty."""

    time: float
    positions: Sequence[float]
    velocities: Sequence[float] = ()
    accelerations: Sequence[float] = ()


@dataclass(frozen=True)
class Goal:
    """Valid trajectory: points q (count, n) at times (count,) [s], in the order of joint_names; v and a (count, n) or None.

    unnamed    : indices of the joints that were not named; their columns are zero until `anchor_to_start`
    start      : start time [ns]; 0: immediately
    on_end     : result callback, called once
    tolerances : requested tolerances; None: those of the parameters
    """

    joint_names: tuple[str, ...]
    times: np.ndarray
    q: np.ndarray
    v: Any
    a: Any
    unnamed: tuple[int, ...]
    start: int = 0
    on_end: OnEnd = ignore_outcome
    tolerances: Tolerances | None = None

    @property
    def duration(self) -> float:
        """Time of the last point [s]."""
        return float(self.times[-1])

    def check_tolerances(self, measured: Measurement) -> None:
        """Raise Rejected if a quantity with a tolerance is not measured."""
        if self.tolerances is not None:
            self.tolerances.check(self.joint_names, measured)


def read_goal(joint_names: tuple[str, ...], names: Sequence[str], points: Sequence[TrajectoryPoint], start: int = 0) -> Goal:
    """Return the trajectory `points` of joints `names` as a goal in the order of joint_names. Raises Rejected."""
    if not points or not names:
        raise Rejected("empty", f"the trajectory has {len(points)} points for {len(names)} joints; ~/stop ends a motion")
    if len(points) > MAX_POINTS:
        raise Rejected("too_many_points", f"the trajectory has {len(points)} points, at most {MAX_POINTS} are allowed: "
                                          "resample it, or send it in parts")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise Rejected("duplicate_joint", f"named more than once: {some(repeated)}")
    unknown = [name for name in names if name not in joint_names]
    if unknown:
        raise Rejected("unknown_joint", f"{some(unknown)}: the robot has {some(joint_names, 32)}")
    times = np.array([point.time for point in points])
    if not np.isfinite(times).all() or times[0] < 0.0:
        raise Rejected("times", f"times begin with {times[0]:g} s; they must be finite and not below zero")
    late = np.flatnonzero(np.diff(times) <= 0.0)
    if len(late):
        k = int(late[0])
        raise Rejected("times", f"times must increase: point {k + 1} is at {times[k + 1]:g} s, point {k} before it at "
                               f"{times[k]:g} s")
    columns = [joint_names.index(name) for name in names]
    n = len(joint_names)
    q, v, a = (_point_rows(field, names, points, columns, n) for field in ("positions", "velocities", "accelerations"))
    if q is None:
        raise Rejected("wrong_size", "the points have no positions")
    return Goal(joint_names, times, q, v, a, tuple(k for k in range(n) if k not in columns), start)


def _point_rows(field: str, names: Sequence[str], points: Sequence[TrajectoryPoint], columns: list[int],
                n: int) -> np.ndarray | None:
    """Return a field of all points (count, n), zero where a joint is not named; None if no point has the field."""
    given = [getattr(point, field) for point in points]
    if not any(len(values) for values in given):
        return None
    for k, values in enumerate(given):
        if not len(values):
            raise Rejected("wrong_size", f"point {k} has no {field}, others have: give them for all points or for none")
        if len(values) != len(names):
            raise Rejected("wrong_size", f"point {k} has {len(values)} {field} for {len(names)} joints")
        wrong = [f"{name} = {value}" for name, value in zip(names, values) if not np.isfinite(value)]
        if wrong:
            raise Rejected("not_finite", f"{field} of point {k}: {some(wrong)}")
    rows = np.zeros((len(points), n))
    rows[:, columns] = given
    return rows


# ----------------------------------------------------------------------------------------------------------------- start


def anchor_to_start(goal: Goal, position: np.ndarray, tolerance: float, mismatch: str, velocity: np.ndarray,
                    continuous: np.ndarray | bool = False) -> Goal:
    """Return the goal as a motion that starts at the position (n,) of the robot; NaN: unknown. Raises Rejected.

    tolerance  : distance up to which the robot counts as being at the first point [rad, m]
    mismatch   : treatment of a first point at time 0 away from the robot: "refuse", or "prepend" a motion to it
    velocity   : (n,) velocity limits for that motion; NaN: unknown
    continuous : (n,) mask of joints that may be wrapped: they start at the turn of the robot and move to the first point on
                 the shorter way
    """
    unknown = [goal.joint_names[k] for k in goal.unnamed if not np.isfinite(position[k])]
    if unknown:
        raise Rejected("joint_not_named", f"{some(unknown)}: not named in the trajectory, and no joint state contains the "
                                          "position to hold")
    q = goal.q.copy()
    q[:, goal.unnamed] = position[list(goal.unnamed)]
    q += unwrap_to(q[0], position, np.asarray(continuous)) - q[0]
    goal = replace(goal, q=q, unnamed=())
    known = np.isfinite(position)
    distance = np.where(known, np.abs(position - q[0]), 0.0)
    if distance.max() <= tolerance:
        if len(q) == 1 and not known.any():
            raise Rejected("one_point", "a single point needs joint states: the position to start from is unknown")
        return goal if len(q) > 1 else _prepend_position(goal, position, max(goal.duration, APPROACH.min_s))
    position = np.where(known, position, q[0])
    if goal.times[0] > 0.0:
        return _prepend_position(goal, position, 0.0)
    worst = int(distance.argmax())
    if mismatch == "refuse":
        raise Rejected("not_at_start", f"{goal.joint_names[worst]} is at {position[worst]:.6g}, and at {q[0, worst]:.6g} in "
                      f"the first point, at time 0 (start_tolerance {tolerance:g}); give it a later time, or set "
                      "start_mismatch")
    speed = APPROACH.speed_share * np.where(np.isfinite(velocity), velocity, APPROACH.speed / APPROACH.speed_share)
    # 1.875 is the peak speed of a quintic from rest to rest, as a multiple of its mean speed
    duration = max(APPROACH.min_s, float((1.875 * distance / speed).max()))
    approach = _at_rest(goal, np.stack((position, q[0])), np.array([0.0, duration]))
    return _concatenate(approach, goal, duration + APPROACH.rest_s) if len(q) > 1 else approach


def _prepend_position(goal: Goal, position: np.ndarray, delay: float) -> Goal:
    """Return the goal, delayed by `delay` [s], with a position at time 0 before it."""
    return _concatenate(_at_rest(goal, position[None], np.zeros(1)), goal, delay)


def _at_rest(goal: Goal, q: np.ndarray, times: np.ndarray) -> Goal:
    """Return points at rest, with the fields of the points of the goal."""
    v, a = (None if x is None else np.zeros_like(q) for x in (goal.v, goal.a))
    return replace(goal, times=times, q=q, v=v, a=a)


def _concatenate(first: Goal, second: Goal, delay: float) -> Goal:
    v, a = (None if x is None else np.concatenate((x, y)) for x, y in ((first.v, second.v), (first.a, second.a)))
    times, q = np.concatenate((first.times, second.times + delay)), np.concatenate((first.q, second.q))
    return replace(second, times=times, q=q, v=v, a=a)


def check_position_limits(path: Path, limits: Limits, joint_names: Sequence[str]) -> None:
    """Raise Rejected if a path exceeds the position limits at or between its points."""
    s = np.unique(np.concatenate((np.linspace(0.0, path.length, 1001), path.breaks)))
    q = path(s)[0]
    excess = np.fmax(np.fmax(limits.lower - q, q - limits.upper), 0.0)  # NaN limits are unknown
    if excess.max() > POSITION_LIMIT_TOL:
        k, joint = (int(x) for x in np.unravel_index(int(excess.argmax()), excess.shape))
        between = "" if np.isin(s[k], path.breaks) else " between two points"
        raise Rejected("position_limit", f"{joint_names[joint]} would be at {q[k, joint]:.6g}{between}; its limits are "
                      f"{limits.lower[joint]:.6g} to {limits.upper[joint]:.6g}")
