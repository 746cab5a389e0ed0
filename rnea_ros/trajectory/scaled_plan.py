"""Plan: path with a time law, made from timed waypoints, and the motion nearest to a plan within the limits.

A plan within the limits is returned unchanged. Otherwise each leg between two stops is solved (time_optimal.py) so that it is
never ahead of the plan and as little behind as possible; without catching up, it is nowhere faster than planned. If the
fastest law is never ahead of the plan (usual for plans that are much too fast), it is the solution; if it is ahead by a short
time, it is the solution with a later start. A law that replaces a current one is solved for its whole length (`replan_from`),
or first for a horizon (`replan_horizon`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import InputError
from .constraints import Constraints
from .interior_point import EARLY_TOL_S
from .limit_check import check_rest, steady_rate
from .path import (
    NEAR_DUPLICATE_SHARE,
    Path,
    drop_near_duplicates,
    finite_array,
    hermite_spline,
    path_through,
    validate_waypoints,
)
from .time_law import SAMPLE_SPACING_S, TimeLaw, hermite_law, rest_law, rest_to_rest
from .time_optimal import LEVEL, Curve, NoLaw, Progress, fastest_law

MAX_START_DELAY_S = 0.02  # longest avoidable delay of the start of a motion
WORTHWHILE_RATIO = 1.02  # ratio of durations up to which a punctual start is preferred to a later one at full speed
HORIZON_S = 5.0  # part of a motion that is solved first
MIN_HORIZONS_LEFT = 2.0  # remaining horizons below which the whole motion is solved at once
N_SAMPLES_REMAINING = 400  # samples of the motion after the horizon
PLAN_LEVEL = 0.9999  # utilization up to which a plan is returned unchanged; margin for peaks between samples
INTERPOLATIONS = ("positions", "velocities", "accelerations")  # waypoint data used for the path
SAME_POINT_TOL = 1e-9  # distance of equal points [rad, m]
REST_SPEED = 1e-6  # speed below which a waypoint is at rest [rad/s, m/s]
MAX_MONOTONE_ATTEMPTS = 60


@dataclass(frozen=True)
class ScaledPlan:
    """Path with a time law s(t) from t = 0. rests: (from, until) times of intermediate stops [s]"""

    path: Path
    law: TimeLaw
    rests: tuple[tuple[float, float], ...] = ()

    def legs(self) -> list[tuple[float, float]]:
        """Return the (from, until) times during which the motion moves [s]."""
        edges = [0.0, *(t for rest in self.rests for t in rest), self.law.duration]
        return list(zip(edges[0::2], edges[1::2]))

    def slower(self, rate: float) -> ScaledPlan:
        """Return the plan executed at a constant rate."""
        return ScaledPlan(self.path, self.law.slower(rate), tuple((a / rate, b / rate) for a, b in self.rests))


# ------------------------------------------------------------------------------------------------------------ from waypoints


@dataclass(frozen=True)
class _Waypoints:
    """Distinct waypoints q, v, a (count, n), with the times at which each is reached and left; v and a may be None."""

    q: np.ndarray
    reached: np.ndarray
    left: np.ndarray
    v: Any
    a: Any

    @property
    def stops(self) -> list[int]:
        """Indices of the inner waypoints at rest."""
        resting = self.left > self.reached
        if self.v is not None:
            resting = resting | (np.linalg.norm(self.v, axis=1) <= REST_SPEED)
        return (np.flatnonzero(resting[1:-1]) + 1).tolist()

    def select(self, keep: np.ndarray) -> _Waypoints:
        v, a = (None if block is None else block[keep] for block in (self.v, self.a))
        return _Waypoints(self.q[keep], self.reached[keep], self.left[keep], v, a)


def plan_from_waypoints(points: Any, times: Any, velocities: Any = None, accelerations: Any = None,
                        interpolation: str = "positions") -> ScaledPlan:
    """Return the plan through points (count, n) at times (count,) [s], with velocities and accelerations where known.

    The path passes the points, except those that are nearly duplicates; the law passes all at their times: quintic in time
    from each to the next, at rest at both ends, with the given speeds and accelerations. Inner points with zero velocity, and
    those that repeat, are stops: the motion rests there, and the path may have a corner.

    interpolation : waypoint data used for the path: "positions"; "velocities": also their directions; "accelerations": also
                    the curvatures that they mean
    """
    if interpolation not in INTERPOLATIONS:
        raise InputError(f"interpolation is '{interpolation}'; allowed are {', '.join(INTERPOLATIONS)}")
    given = _checked(points, times, velocities, accelerations)
    s = np.concatenate(([0.0], np.cumsum(np.linalg.norm(np.diff(given.q, axis=0), axis=1))))
    edges = [0, *given.stops, len(given.q) - 1]
    keep = drop_near_duplicates(given.q, np.isin(np.arange(len(given.q)), edges), NEAR_DUPLICATE_SHARE * s[-1])
    path = _path(given.select(keep), interpolation, s[keep])
    path.check_detours()
    v, a = _along_path(path, given, s)
    pieces, rests = [], []
    for (i, j), (_, end) in zip(pairwise(edges), path.legs(), strict=True):
        if i:
            rests.append((given.reached[i] - given.left[0], given.left[i] - given.left[0]))
            pieces += [rest_law(float(s[i]), rests[-1][1] - rests[-1][0])] if rests[-1][1] > rests[-1][0] else []
        part = slice(i, j + 1)
        t = np.concatenate((given.left[i:i + 1], given.reached[i + 1:j + 1]))
        pieces.append(_leg_law(t, np.append(s[i:j], end), None if v is None else v[part], None if a is None else a[part]))
    return ScaledPlan(path, pieces[0].then(*pieces[1:]), tuple(rests))


def _checked(points: Any, times: Any, velocities: Any, accelerations: Any) -> _Waypoints:
    q = validate_waypoints(points)
    if q.ndim != 2 or len(q) < 2 or not q.shape[1]:
        raise InputError(f"points have shape {q.shape}; two rows or more, of a column for each joint, are needed; put where "
                         "the robot is before a single goal")
    t = finite_array("times", times, q.shape[:1])
    v = None if velocities is None else finite_array("velocities", velocities, q.shape)
    a = None if accelerations is None else finite_array("accelerations", accelerations, q.shape)
    early = np.flatnonzero(np.diff(t) <= 0.0)
    if len(early):
        k = int(early[0])
        raise InputError(f"times must increase: point {k + 1} is at {t[k + 1]:g} s, point {k} before it at {t[k]:g} s")
    if v is None and a is not None:
        raise InputError("accelerations are given without velocities: the motion along the path needs both")
    for k in (0, -1):
        if v is not None and np.abs(v[k]).max() > REST_SPEED:
            which = "last" if k else "first"
            raise InputError(f"the motion must begin and end at rest, but the {which} velocity is {v[k].tolist()}")
    return _merge_repeated(q, t, v, a)


def _merge_repeated(points: np.ndarray, times: np.ndarray, v: Any, a: Any) -> _Waypoints:
    """Merge runs of equal points."""
    new = np.linalg.norm(np.diff(points, axis=0), axis=1) > SAME_POINT_TOL
    first, last = np.flatnonzero(np.append(True, new)), np.flatnonzero(np.append(new, True))
    if len(first) < 2:
        raise InputError(f"the {len(points)} points are all equal; at least two different points are needed")
    return _Waypoints(points[first], times[first], times[last], None if v is None else v[first],
                      None if a is None else a[first])


def _path(given: _Waypoints, interpolation: str, s: np.ndarray) -> Path:
    """Return the path, with directions and curvatures at moving waypoints, and without at waypoints at rest."""
    q, v, a, stops = given.q, given.v, given.a, given.stops
    if interpolation == "positions" or v is None:
        return path_through(q, stops=stops, s=s)
    size = np.linalg.norm(v, axis=1, keepdims=True)
    moving = size > REST_SPEED
    v, size = np.where(moving, v, 0.0), np.where(moving, size, 1.0)  # the direction of noise is not used
    path = path_through(q, v, stops=stops, s=s)
    if interpolation == "velocities" or a is None:
        return path
    tangent = v / size  # q' of length one, so sd = |qd|, and qdd = q'' sd^2 + q' sdd
    curvature = (a - tangent * (tangent * a).sum(axis=1, keepdims=True)) / size**2
    return path_through(q, v, np.where(moving, curvature, path(s)[2]), stops=stops, s=s)


def _along_path(path: Path, given: _Waypoints, s: np.ndarray) -> tuple[Any, Any]:
    """Return sd and sdd at the waypoints."""
    if given.v is None:
        return None, None
    _, q1, q2, _ = path(s)
    square = (q1 * q1).sum(axis=1)
    v = np.maximum((q1 * given.v).sum(axis=1) / square, 0.0)
    return v, None if given.a is None else (q1 * (given.a - q2 * v[:, None] ** 2)).sum(axis=1) / square


def _leg_law(t: np.ndarray, s: np.ndarray, v: Any, a: Any) -> TimeLaw:
    """Return the time law from rest to rest through s at times t; a spline if speeds or accelerations are unknown.

    Speeds and accelerations are reduced where s would decrease.
    """
    known = np.stack([x for x in (s, v) if x is not None], axis=1)[..., None]
    known[[0, -1], 1:] = 0.0
    coefficients = hermite_spline(t, known, 2, rest=True)[..., 0]
    speeds, accelerations = np.append(coefficients[:, 1], 0.0), np.append(2.0 * coefficients[:, 2], 0.0)
    if a is not None:
        accelerations[1:-1] = a[1:-1]  # zero at both ends: else the torque would jump there
    for _ in range(MAX_MONOTONE_ATTEMPTS):
        law = hermite_law(t - t[0], s, speeds, accelerations)
        pieces = law.non_monotone_pieces()
        if not len(pieces):
            break
        for k in (pieces, pieces + 1):  # with both zero a quintic is monotone
            speeds[k] *= 0.7
            accelerations[k] *= 0.5
    return law


# ----------------------------------------------------------------------------------------------------------- inside limits


def is_feasible(constraints: Constraints, law: TimeLaw) -> bool:
    """Return whether a law is within the limits at its own and every lower constant rate."""
    return steady_rate(constraints, law, PLAN_LEVEL) >= 1.0


def follow_plan(constraints: Constraints, plan: ScaledPlan, catch_up: bool = True,
                progress: Progress | None = None) -> ScaledPlan:
    """Return the motion within the limits that is nearest to a plan; the plan itself if it is within them.

    catch_up : whether the motion may be faster than planned after a delay; it is never ahead of the plan

    Raises InputError if gravity alone exceeds a limit.
    """
    check_rest(constraints, LEVEL)
    return _append_legs(constraints, plan, catch_up, [], [], 0, 0.0, progress=progress)


def replan_from(constraints: Constraints, current: ScaledPlan, at: float, plan: ScaledPlan, catch_up: bool, offset: float,
                progress: Progress | None = None) -> ScaledPlan:
    """Return the current motion up to its time `at` [s], and from there the one nearest to the plan inside new limits.

    The rest of the current motion must be inside the limits, at all rates up to 1. Raises NoLaw.

    offset : time of the current motion ahead of the plan's [s]
    """
    number, (start, end) = next((k, leg) for k, leg in enumerate(current.legs()) if at < leg[1])
    rests = [rest for rest in current.rests if rest[1] <= at]
    if at <= start:
        since = current.legs()[number - 1][1] if number else 0.0
        pieces = [current.law.segment(0.0, since)] if number else []
        late = since + offset - (plan.legs()[number - 1][1] if number else 0.0)
        return _append_legs(constraints, plan, catch_up, pieces, rests, number, late, waited=at - since, progress=progress)
    remaining, until = current.law.segment(at, end), plan.legs()[number][1]
    ceiling, due = _plan_bounds(plan, catch_up, until, at + offset)
    law = fastest_law(constraints, remaining, True, ceiling, due, progress=progress)
    late = at + offset + law.duration - until
    return _append_legs(constraints, plan, catch_up, [current.law.segment(0.0, at), law], rests, number + 1, late,
                        progress=progress)


def replan_horizon(constraints: Constraints, current: ScaledPlan, at: float, plan: ScaledPlan, catch_up: bool, offset: float,
                   progress: Progress | None = None) -> ScaledPlan | None:
    """Replan like `replan_from`, but only for HORIZON_S; after the horizon, the motion is the current one.

    The new law joins the current one with continuous speed and acceleration, earlier in time up to the next rest. Returns None
    if the horizon would cover most of the motion, or no law is found.
    """
    number, (start, end) = next((k, leg) for k, leg in enumerate(current.legs()) if at < leg[1])
    if at <= start or end - at < MIN_HORIZONS_LEFT * HORIZON_S:
        return None
    remaining, joint = current.law.segment(at, end), at + HORIZON_S
    near = remaining.segment(0.0, HORIZON_S)
    ceiling, due = _plan_bounds(plan, catch_up, plan.legs()[number][1], at + offset)
    try:
        law = fastest_law(constraints, near, True, ceiling, progress=progress, joined=True)
        if due is not None and _max_lead(law, due := _bound_for_rest(due, remaining)) > EARLY_TOL_S:
            law = fastest_law(constraints, near, True, due=due, progress=progress, joined=True)
    except NoLaw:
        return None
    gain, rests = near.duration - law.duration, list(current.rests)
    pieces = [law, current.law.segment(joint, end)]
    if number < len(rests):
        pieces += [rest_law(remaining.end, gain), current.law.segment(end, current.law.duration)]
        rests[number] = end - gain, rests[number][1]
    return ScaledPlan(plan.path, current.law.segment(0.0, at).then(*pieces), tuple(rests))


def _bound_for_rest(due: Curve, remaining: TimeLaw) -> Curve:
    """Return the earliest times within the horizon such that the rest of the motion, shifted with it, is not ahead of `due`.
    """
    t = np.linspace(HORIZON_S, remaining.duration, N_SAMPLES_REMAINING)
    spare = max(float((t[:-1] - due(remaining(t)[0])[1:]).min()), 0.0)  # conservative between samples
    return lambda s: np.maximum(due(s), remaining.time_at(s) - spare)


def _max_lead(law: TimeLaw, due: Curve) -> float:
    """Return the largest time by which a law is ahead [s]."""
    t, (s, *_), _ = law.sample(SAMPLE_SPACING_S)
    return float((due(s) - t).max())


def _append_legs(constraints: Constraints, plan: ScaledPlan, catch_up: bool, pieces: list[TimeLaw],
                 rests: list[tuple[float, float]], number: int, late: float, waited: float = 0.0,
                 progress: Progress | None = None) -> ScaledPlan:
    """Append the legs of the plan from `number` to pieces of a law.

    late   : delay at the end of the pieces [s]
    waited : time for which the motion already rests there [s]
    """
    legs = plan.legs()
    for k in range(number, len(legs)):
        start, end = legs[k]
        planned = plan.law.segment(start, end)
        if k:
            planned_rest = start - legs[k - 1][1]
            rest = max(planned_rest - late, waited)
            late, waited = late + rest - planned_rest, 0.0
            now = sum(piece.duration for piece in pieces)
            rests.append((now, now + rest))
            pieces += [rest_law(planned.start, rest)] if rest > 0.0 else []
        law = planned
        if (late > 0.0 and catch_up) or not is_feasible(constraints, planned):
            law = _nearest_law(constraints, plan, planned, catch_up, end, start + late, progress)
        late += law.duration - planned.duration
        pieces.append(law)
    return ScaledPlan(plan.path, pieces[0].then(*pieces[1:]), tuple(rests))


def _nearest_law(constraints: Constraints, plan: ScaledPlan, planned: TimeLaw, catch_up: bool, until: float, now: float,
                 progress: Progress | None) -> TimeLaw:
    """Return the law from rest to rest nearest to `planned`, the corresponding leg of the plan; see `_plan_bounds`."""
    ceiling, due = _plan_bounds(plan, catch_up, until, now)
    if due is None:
        return fastest_law(constraints, planned, ceiling=ceiling, progress=progress)
    quintic = rest_to_rest(planned.start, planned.end, 1.0, 3 if constraints.third_order else 2)
    law = fastest_law(constraints, quintic, progress=progress)
    lead = _max_lead(law, due)
    if lead <= EARLY_TOL_S:
        return law
    delayed = rest_law(planned.start, lead).then(law)  # nowhere ahead of the plan, and no law ends earlier
    if lead <= MAX_START_DELAY_S:
        return delayed
    try:
        on_schedule = fastest_law(constraints, law, due=due, planned=planned, progress=progress)
    except NoLaw:
        return delayed
    return on_schedule if on_schedule.duration <= WORTHWHILE_RATIO * delayed.duration else delayed


def _plan_bounds(plan: ScaledPlan, catch_up: bool, until: float, now: float) -> tuple[Curve | None, Curve | None]:
    """Return the ceiling, or the schedule, that bounds a law by a leg of the plan; see `fastest_law`.

    until : planned end of the leg [s]
    now   : planned time at the start of the law [s]
    """
    if not catch_up:
        return lambda s: plan.law(plan.law.time_at(s))[1], None
    return None, lambda s: np.minimum(plan.law.time_at(s), until) - now
