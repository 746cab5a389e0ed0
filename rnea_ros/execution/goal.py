"""A trajectory as it was sent: whether it is one that this robot can be given, and where it begins.

The conventions are those of joint_trajectory_controller: a first point with time 0 is where the robot is already; with a later
time it is the first place to go to from where the robot is. Joints that are not named hold their position.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, Rejected, some
from ..model.tree import Limits
from ..scaling.path import Path
from .joint_state_buffer import Measurement
from .tolerances import Tolerances
from .turns import nearest

SLOWLY = 0.5  # share of the velocity limits with which a robot that is elsewhere goes to the first point
UNKNOWN = 0.5  # rad/s, m/s; where no velocity limit is known
SHORTEST, REST = 0.5, 0.1  # s; of the way to the first point, and there
MAX_DELAY_S = 3600.0  # by which the stamp of a trajectory may be ahead of the clock
MAX_POINTS = 20_000  # of a trajectory; preparing takes about a second for each thousand
MANY_POINTS = 1000  # from which preparing is reported
EDGE = 1e-6  # rad, m; by which a path may touch its position limits


@contextmanager
def refusing(reason: str) -> Iterator[None]:
    """What the library does not accept, refused for a reason."""
    try:
        yield
    except InputError as error:
        raise Rejected(reason, str(error)) from None


class Outcome(NamedTuple):
    """What became of a goal: why it was not executed to its end, a word as in Rejected, none if it was; and a sentence."""

    reason: str = ""
    sentence: str = ""


OnEnd = Callable[[Outcome], None]


def nobody(outcome: Outcome) -> None:
    """Asks what became of a goal."""


class TrajectoryPoint(NamedTuple):
    """Of a trajectory; velocities and accelerations may be empty."""

    time: float
    positions: Sequence[float]
    velocities: Sequence[float] = ()
    accelerations: Sequence[float] = ()


@dataclass(frozen=True)
class Goal:
    """Points q (count, n) at times (count,), in the order of joint_names, with v and a (count, n) or None.

    open       : numbers of the joints that were not named; their columns are zero until it is placed
    start      : when to begin, 0 at once [ns]
    on_end     : called once with what became of it
    tolerances : that it asks for
    """

    joint_names: tuple[str, ...]
    times: np.ndarray
    q: np.ndarray
    v: Any
    a: Any
    open: tuple[int, ...]
    start: int = 0
    on_end: OnEnd = nobody
    tolerances: Tolerances | None = None

    @property
    def duration(self) -> float:
        return float(self.times[-1])

    def check_tolerances(self, measured: Measurement) -> None:
        """Raises Rejected if nothing tells what is to be inside of them."""
        if self.tolerances is not None:
            self.tolerances.check(self.joint_names, measured)


def read(joint_names: tuple[str, ...], names: Sequence[str], points: Sequence[TrajectoryPoint], start: int = 0) -> Goal:
    """The trajectory `points` of joints `names`, in the order of joint_names. Raises Rejected."""
    if not points or not names:
        raise Rejected("empty", f"the trajectory has {len(points)} points for {len(names)} joints; ~/stop ends a motion")
    if len(points) > MAX_POINTS:
        raise Rejected("too_many_points", f"the trajectory has {len(points)} points, at most {MAX_POINTS} are allowed: "
                                          "resample it, or send it in parts")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise Rejected("duplicate_joint", f"named more than once: {some(twice)}")
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
    q, v, a = (_rows(field, names, points, columns, n) for field in ("positions", "velocities", "accelerations"))
    if q is None:
        raise Rejected("wrong_size", "the points have no positions")
    return Goal(joint_names, times, q, v, a, tuple(k for k in range(n) if k not in columns), start)


def _rows(field: str, names: Sequence[str], points: Sequence[TrajectoryPoint], columns: list[int],
          n: int) -> np.ndarray | None:
    """(count, n), zero where a joint is not named; None if no point has the field."""
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


def placed(goal: Goal, place: np.ndarray, tolerance: float, elsewhere: str, velocity: np.ndarray,
           turns: np.ndarray | bool = False) -> Goal:
    """The same from where the robot is, place (n,), NaN where that is not known. Raises Rejected.

    tolerance : rad, m; no further away is at the first point
    elsewhere : "refuse" or "prepend": what to do with a first point at time 0 that the robot is not at
    velocity  : limits (n,), NaN where unknown, for the way there
    turns     : joints (n,) that turn without end: they go on from the robot's count of turns, the short way to the first point
    """
    lost = [goal.joint_names[k] for k in goal.open if not np.isfinite(place[k])]
    if lost:
        raise Rejected("joint_not_named", f"{some(lost)}: not named, and no joint state tells where to hold them")
    q = goal.q.copy()
    q[:, goal.open] = place[list(goal.open)]
    q += nearest(q[0], place, np.asarray(turns)) - q[0]
    goal = replace(goal, q=q, open=())
    known = np.isfinite(place)
    away = np.where(known, np.abs(place - q[0]), 0.0)
    if away.max() <= tolerance:
        if len(q) == 1 and not known.any():
            raise Rejected("one_point", "a single point needs joint states, which tell where the robot is")
        return goal if len(q) > 1 else _before(goal, place, max(goal.duration, SHORTEST))
    place = np.where(known, place, q[0])
    if goal.times[0] > 0.0:
        return _before(goal, place, 0.0)
    worst = int(away.argmax())
    if elsewhere == "refuse":
        raise Rejected("not_at_start", f"{goal.joint_names[worst]} is at {place[worst]:.6g}, and at {q[0, worst]:.6g} in the "
                      f"first point, at time 0 (start_tolerance {tolerance:g}); give it a later time, or set start_mismatch")
    speed = SLOWLY * np.where(np.isfinite(velocity), velocity, UNKNOWN / SLOWLY)
    way = max(SHORTEST, float((1.875 * away / speed).max()))  # 1.875: the peak of a quintic from rest to rest
    there = _resting(goal, np.stack((place, q[0])), np.array([0.0, way]))
    return _joined(there, goal, way + REST) if len(q) > 1 else there


def _before(goal: Goal, place: np.ndarray, delay: float) -> Goal:
    """From a place at time 0, everything later by a delay."""
    return _joined(_resting(goal, place[None], np.zeros(1)), goal, delay)


def _resting(goal: Goal, q: np.ndarray, times: np.ndarray) -> Goal:
    """Points at which the robot rests, with what fields the goal has."""
    v, a = (None if x is None else np.zeros_like(q) for x in (goal.v, goal.a))
    return replace(goal, times=times, q=q, v=v, a=a)


def _joined(first: Goal, then: Goal, delay: float) -> Goal:
    v, a = (None if x is None else np.concatenate((x, y)) for x, y in ((first.v, then.v), (first.a, then.a)))
    times, q = np.concatenate((first.times, then.times + delay)), np.concatenate((first.q, then.q))
    return replace(then, times=times, q=q, v=v, a=a)


def check_positions(path: Path, limits: Limits, joint_names: Sequence[str]) -> None:
    """Raises Rejected if a path leaves the position limits, at its points or between them."""
    s = np.unique(np.concatenate((np.linspace(0.0, path.length, 1001), path.breaks)))
    q = path(s)[0]
    beyond = np.fmax(np.fmax(limits.lower - q, q - limits.upper), 0.0)  # NaN: unknown
    if beyond.max() > EDGE:
        k, joint = (int(x) for x in np.unravel_index(int(beyond.argmax()), beyond.shape))
        between = "" if np.isin(s[k], path.breaks) else " between two points"
        raise Rejected("position_limit", f"{joint_names[joint]} would be at {q[k, joint]:.6g}{between}; its limits are "
                      f"{limits.lower[joint]:.6g} to {limits.upper[joint]:.6g}")
