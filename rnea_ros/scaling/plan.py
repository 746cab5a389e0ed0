"""From timed points to a path and a planned time law; and from a plan to the law nearest to it that the limits allow.

The path goes through the points, the law passes them at their times: each quintic in time, at rest at both ends, with given
speeds and accelerations where there are any. A plan inside the limits is its own answer. Otherwise each stretch between two
stops is solved for anew (profile.py), on the plan as clock: never ahead of the plan and as little behind as can be, or nowhere
faster than planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..errors import InputError
from . import law as laws
from .law import TimeLaw
from .path import Path, spline, through
from .profile import LEVEL, Curve, Progress, check_rest, fastest, steady_factor
from .terms import Constraints

INTERPOLATIONS = ("positions", "velocities", "accelerations")
SAME = 1e-9  # rad, m; points no further apart are one
AT_REST = 1e-6  # rad/s, m/s
INSIDE = 0.9999  # share of the limits that a plan may use to be left alone: the rest is for what lies between the samples


@dataclass(frozen=True)
class Plan:
    """path, law s(t) from t = 0, and rests: (from, until) the times at which the motion stands still, ends excluded."""

    path: Path
    law: TimeLaw
    rests: tuple[tuple[float, float], ...] = ()

    def legs(self) -> list[tuple[float, float]]:
        """(from, until) the times at which it moves."""
        edges = [0.0, *(t for rest in self.rests for t in rest), self.law.duration]
        return list(zip(edges[0::2], edges[1::2]))

    def slower(self, factor: float) -> Plan:
        """The same with its clock at `factor`."""
        return Plan(self.path, self.law.slower(factor), tuple((a / factor, b / factor) for a, b in self.rests))


def planned(points: Any, times: Any, velocities: Any = None, accelerations: Any = None, interpolation: str = "positions") -> Plan:
    """A plan through points (count, n) at times (count,) [s], with velocities and accelerations (count, n) where known.

    Point to point, the path takes from them what `interpolation` says: positions alone, also the direction of the velocities,
    or also the curvature that the accelerations mean. Inner points with zero velocity, and those that repeat, are stops: the
    path may have a corner there.
    """
    points, times, velocities, accelerations = _checked(points, times, velocities, accelerations)
    if interpolation not in INTERPOLATIONS:
        raise InputError(f"interpolation is '{interpolation}'; allowed are {', '.join(INTERPOLATIONS)}")
    first, last = _groups(points)
    if len(first) < 2:
        raise InputError("the points are all the same: there is nowhere to go")
    speed = None if velocities is None else velocities[first]
    resting = (first != last)[1:-1]
    if speed is not None:
        resting |= np.linalg.norm(speed[1:-1], axis=1) <= AT_REST
    stops = (np.flatnonzero(resting) + 1).tolist()
    path = _path(points[first], speed, None if accelerations is None else accelerations[first], stops, interpolation)
    v, a = _along(path, speed, None if accelerations is None else accelerations[first])
    cuts, pieces, rests = [0, *stops, len(first) - 1], [], []
    for k, (i, j) in enumerate(zip(cuts, cuts[1:])):
        t = times[first].copy()
        t[i] = times[last[i]]  # a point that repeats is left at its last time
        part = slice(i, j + 1)
        pieces.append(_leg(t[part], path.breaks[part], None if v is None else v[part], None if a is None else a[part]))
        if k + 2 < len(cuts):
            rests.append((times[first[j]] - times[last[0]], times[last[j]] - times[last[0]]))
            if last[j] > first[j]:
                pieces.append(laws.wait(float(path.breaks[j]), times[last[j]] - times[first[j]]))
    return Plan(path, pieces[0].then(*pieces[1:]), tuple(rests))


def _checked(points: Any, times: Any, *derivatives: Any) -> tuple:
    try:
        arrays = [None if x is None else np.asarray(x, dtype=float) for x in (points, times, *derivatives)]
    except (TypeError, ValueError) as error:
        raise InputError(f"points, times and their derivatives must be arrays of numbers: {error}") from None
    points, times, *derivatives = arrays
    if points.ndim != 2 or len(points) < 2:
        raise InputError(f"points have shape {points.shape}; two or more rows of one column for each joint are needed; put where the "
                         "robot is in front of a single goal")
    if times.shape != points.shape[:1]:
        raise InputError(f"{len(points)} points with times of shape {times.shape}")
    for name, array in zip(("points", "times", "velocities", "accelerations"), (points, times, *derivatives)):
        if array is not None and name != "times" and array.shape != points.shape:
            raise InputError(f"{name} have shape {array.shape}, points {points.shape}")
        if array is not None and not np.isfinite(array).all():
            where = np.argwhere(~np.isfinite(array))[0].tolist()
            raise InputError(f"{name}{where} is {array[tuple(where)]}; every value must be a finite number")
    late = np.flatnonzero(np.diff(times) <= 0.0)
    if len(late):
        k = int(late[0])
        raise InputError(f"times must increase: point {k + 1} is at {times[k + 1]:g} s, after point {k} at {times[k]:g} s")
    if derivatives[0] is not None:
        for k in (0, -1):
            if np.abs(derivatives[0][k]).max() > AT_REST:
                raise InputError(f"the motion must begin and end at rest; the {'last' if k else 'first'} velocity is "
                                 f"{derivatives[0][k].tolist()}")
    elif derivatives[1] is not None:
        raise InputError("accelerations without velocities have no meaning for the path")
    return points, times, *derivatives


def _groups(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the first and last of each run of equal points."""
    new = np.linalg.norm(np.diff(points, axis=0), axis=1) > SAME
    edges = np.flatnonzero(new)
    return np.concatenate(([0], edges + 1)), np.concatenate((edges, [len(points) - 1]))


def _path(points: np.ndarray, velocities: Any, accelerations: Any, stops: Sequence[int], interpolation: str) -> Path:
    """The path through points; directions and curvatures where the plan moves, what a spline makes of it where it rests."""
    plain = through(points, stops=stops)
    if interpolation == "positions" or velocities is None:
        return plain
    tangents = through(points, velocities, stops=stops)
    if interpolation == "velocities" or accelerations is None:
        return tangents
    at_points = tangents(tangents.breaks)
    size = np.linalg.norm(velocities, axis=1, keepdims=True)
    moving = size > AT_REST
    direction = velocities / np.where(moving, size, 1.0)  # q' of length one, so sd = |qd| and qdd = q'' sd^2 + q' sdd
    along = (direction * accelerations).sum(axis=1, keepdims=True)
    curvatures = np.where(moving, (accelerations - direction * along) / np.where(moving, size, 1.0) ** 2, at_points[2])
    return through(points, velocities, curvatures, stops=stops)


def _along(path: Path, velocities: Any, accelerations: Any) -> tuple[Any, Any]:
    """sd and sdd at the points."""
    if velocities is None:
        return None, None
    _, q1, q2, _ = path(path.breaks)
    square = (q1 * q1).sum(axis=1)
    v = np.maximum((q1 * velocities).sum(axis=1) / square, 0.0)
    if accelerations is None:
        return v, None
    return v, (q1 * (accelerations - q2 * v[:, None] ** 2)).sum(axis=1) / square


def _leg(t: np.ndarray, s: np.ndarray, v: Any, a: Any) -> TimeLaw:
    """From rest to rest through s at t; a spline where speeds or accelerations are not given, made monotone where it goes back."""
    known = np.stack([x for x in (s, v) if x is not None], axis=1)[..., None]
    if known.shape[1] == 2:
        known[0, 1] = known[-1, 1] = 0.0
    coefficients = spline(t, known, 2, rest=True)[..., 0]
    speeds = np.append(coefficients[:, 1], 0.0)
    accelerations = np.append(2.0 * coefficients[:, 2], 0.0) if a is None else a.copy()
    accelerations[0] = accelerations[-1] = 0.0  # else the torque would jump
    for _ in range(60):
        law = laws.hermite(t, s, speeds, accelerations)
        inside, first = law.densely()
        backwards = np.minimum.reduceat(inside[1], first) < -1e-12 * (s[-1] - s[0])
        if not backwards.any():
            break
        at = np.flatnonzero(backwards)
        for k in (at, at + 1):  # with both zero a quintic is monotone
            speeds[k] *= 0.7
            accelerations[k] *= 0.5
    return law


def fits(constraints: Constraints, law: TimeLaw) -> bool:
    """Whether a law, and every slower playing of it, is inside the limits."""
    return steady_factor(constraints, law, INSIDE) >= 1.0


def follow(constraints: Constraints, plan: Plan, catch_up: bool = True, progress: Progress | None = None) -> Plan:
    """The motion nearest to a plan inside the limits; the plan itself if it is.

    catch_up : whether the motion may be faster than planned to make good a delay; it is never ahead of the plan
    Raises InputError where gravity alone exceeds a limit.
    """
    check_rest(constraints, LEVEL)
    return _completed(constraints, plan, catch_up, [], [], 0, 0.0, progress=progress)


def handed_over(constraints: Constraints, current: Plan, at: float, plan: Plan, catch_up: bool, offset: float) -> Plan:
    """The current motion up to its time `at`, and from there the one nearest to the plan inside these limits.

    What is left of the current motion must be inside the limits, at all rates up to 1. offset: by how much the current
    motion's time is ahead of the plan's [s]. Raises NoLaw.
    """
    number, (start, end) = next((k, leg) for k, leg in enumerate(current.legs()) if at < leg[1])
    rests = [rest for rest in current.rests if rest[1] <= at]
    if at <= start:
        since = current.legs()[number - 1][1] if number else 0.0
        pieces = [current.law.between(0.0, since)] if number else []
        late = since + offset - (plan.legs()[number - 1][1] if number else 0.0)
        return _completed(constraints, plan, catch_up, pieces, rests, number, late, waited=at - since)
    clock, until = current.law.between(at, end), plan.legs()[number][1]
    law = fastest(constraints, clock, moving=True, **_kept(plan, clock, until, at + offset, catch_up))
    late = at + offset + law.duration - until
    return _completed(constraints, plan, catch_up, [current.law.between(0.0, at), law], rests, number + 1, late)


def _completed(constraints: Constraints, plan: Plan, catch_up: bool, pieces: list[TimeLaw], rests: list[tuple[float, float]], number: int,
               late: float, waited: float = 0.0, progress: Progress | None = None) -> Plan:
    """The pieces, and the plan's legs from `number` on. late: at the end of the pieces; waited: how long the motion rests there already."""
    legs = plan.legs()
    for k in range(number, len(legs)):
        start, end = legs[k]
        clock = plan.law.between(start, end)
        if k:
            planned_rest = start - legs[k - 1][1]
            rest = max(planned_rest - late, waited, 0.0)
            late, waited = late + rest - planned_rest, 0.0
            now = sum(piece.duration for piece in pieces)
            rests.append((now, now + rest))
            pieces += [laws.wait(clock.start, rest)] if rest > 0.0 else []
        law = clock
        if (late > 0.0 and catch_up) or not fits(constraints, clock):
            law = fastest(constraints, clock, ceiling=None if catch_up else np.ones_like,
                          due=partial(np.add, -late) if catch_up else None, progress=progress)
        late += law.duration - clock.duration
        pieces.append(law)
    return Plan(plan.path, pieces[0].then(*pieces[1:]), tuple(rests))


def _kept(plan: Plan, clock: TimeLaw, until: float, now: float, catch_up: bool) -> dict[str, Curve]:
    """The plan on the clock of another law, as `fastest` takes it. until: when the leg is planned to end; now: planned time at the clock's start."""

    def due(sigma: np.ndarray) -> np.ndarray:
        return np.minimum(plan.law.time_at(clock(sigma)[0]), until) - now

    def ceiling(sigma: np.ndarray) -> np.ndarray:
        s, v, _, _ = clock(sigma)
        slow = 1e-3 * clock(clock.breaks)[1].max()  # at the end both speeds vanish
        return np.maximum(plan.law(plan.law.time_at(s))[1], slow) / np.maximum(v, slow)

    return {"due": due} if catch_up else {"ceiling": ceiling}
