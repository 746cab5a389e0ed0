"""The motion that stays as near to a plan as the limits allow.

A plan inside the limits is its own answer. Otherwise each stretch between two stops is solved for anew (profile.py): never
ahead of the plan and as little behind as can be, or, not to catch up, nowhere faster than planned. Where the fastest law is
never ahead of the plan, as with most that are much too fast, it is the answer; where it is ahead by a moment, it is once it
begins a moment later. What takes over from another law (`handed_over`) is solved for as a whole, or first for a moment of it
(`hastened`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import law as laws
from .barrier import EARLY
from .feasibility import check_rest
from .grid import LEVEL, Curve, NoLaw, Progress
from .law import SPACING, TimeLaw
from .path import Path
from .profile import fastest, steady_factor
from .terms import Constraints

SOON = 0.02  # s, by which a motion may begin later than it could
WORTH = 1.02  # times the shortest duration: to begin in time, and not later at full speed
MOMENT, LONG = 5.0, 2.0  # s of a motion that are solved for first, and how many times that must be left of it
LOOKS = 400  # at the rest of it
INSIDE = 0.9999  # share of the limits that a plan may use to be left alone: the rest is for what lies between the samples


@dataclass(frozen=True)
class ScaledPlan:
    """path, law s(t) from t = 0, and rests: (from, until) the times at which the motion stands still, both ends excluded."""

    path: Path
    law: TimeLaw
    rests: tuple[tuple[float, float], ...] = ()

    def legs(self) -> list[tuple[float, float]]:
        """(from, until) the times at which it moves."""
        edges = [0.0, *(t for rest in self.rests for t in rest), self.law.duration]
        return list(zip(edges[0::2], edges[1::2]))

    def slower(self, factor: float) -> ScaledPlan:
        """The same, played at the rate `factor`."""
        return ScaledPlan(self.path, self.law.slower(factor), tuple((a / factor, b / factor) for a, b in self.rests))


def fits(constraints: Constraints, law: TimeLaw) -> bool:
    """Whether a law, and every slower playing of it, is inside the limits."""
    return steady_factor(constraints, law, INSIDE) >= 1.0


def follow(constraints: Constraints, plan: ScaledPlan, catch_up: bool = True, progress: Progress | None = None) -> ScaledPlan:
    """The motion nearest to a plan inside the limits; the plan itself if it is.

    catch_up : whether the motion may be faster than planned to make good a delay; it is never ahead of the plan
    Raises InputError where gravity alone exceeds a limit.
    """
    check_rest(constraints, LEVEL)
    return _completed(constraints, plan, catch_up, [], [], 0, 0.0, progress=progress)


def handed_over(constraints: Constraints, current: ScaledPlan, at: float, plan: ScaledPlan, catch_up: bool, offset: float,
                progress: Progress | None = None) -> ScaledPlan:
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
        return _completed(constraints, plan, catch_up, pieces, rests, number, late, waited=at - since, progress=progress)
    remaining, until = current.law.between(at, end), plan.legs()[number][1]
    ceiling, due = _kept(plan, catch_up, until, at + offset)
    law = fastest(constraints, remaining, True, ceiling, due, progress=progress)
    late = at + offset + law.duration - until
    return _completed(constraints, plan, catch_up, [current.law.between(0.0, at), law], rests, number + 1, late,
                      progress=progress)


def hastened(constraints: Constraints, current: ScaledPlan, at: float, plan: ScaledPlan, catch_up: bool, offset: float,
             progress: Progress | None = None) -> ScaledPlan | None:
    """As `handed_over`, for MOMENT alone: then it is again the current motion, which it joins without a step of speed or
    acceleration, sooner up to the next rest. None where that would be most of what is left, or is not found."""
    number, (start, end) = next((k, leg) for k, leg in enumerate(current.legs()) if at < leg[1])
    if at <= start or end - at < LONG * MOMENT:
        return None
    remaining, joint = current.law.between(at, end), at + MOMENT
    near = remaining.between(0.0, MOMENT)
    ceiling, due = _kept(plan, catch_up, plan.legs()[number][1], at + offset)
    try:
        law = fastest(constraints, near, True, ceiling, progress=progress, joined=True)
        if due is not None and _ahead(law, due := _not_sooner(due, remaining)) > EARLY:
            law = fastest(constraints, near, True, due=due, progress=progress, joined=True)
    except NoLaw:
        return None
    gain, rests = near.duration - law.duration, list(current.rests)
    pieces = [law, current.law.between(joint, end)]
    if number < len(rests):
        pieces += [laws.wait(remaining.end, gain), current.law.between(end, current.law.duration)]
        rests[number] = end - gain, rests[number][1]
    return ScaledPlan(plan.path, current.law.between(0.0, at).then(*pieces), tuple(rests))


def _not_sooner(due: Curve, remaining: TimeLaw) -> Curve:
    """When it is due for MOMENT of a law, for what follows not to be ahead of what is due: that then comes sooner, too."""
    t = np.linspace(MOMENT, remaining.duration, LOOKS)
    spare = max(float((t[:-1] - due(remaining(t)[0])[1:]).min()), 0.0)  # whatever lies between
    return lambda s: np.maximum(due(s), remaining.time_at(s) - spare)


def _ahead(law: TimeLaw, due: Curve) -> float:
    """By how much, at most [s]."""
    t, (s, *_), _ = law.sampled(SPACING)
    return float((due(s) - t).max())


def _completed(constraints: Constraints, plan: ScaledPlan, catch_up: bool, pieces: list[TimeLaw],
               rests: list[tuple[float, float]],
               number: int, late: float, waited: float = 0.0, progress: Progress | None = None) -> ScaledPlan:
    """The pieces, and the plan's legs from `number` on.

    late: at the end of the pieces; waited: how long the motion rests there already.
    """
    legs = plan.legs()
    for k in range(number, len(legs)):
        start, end = legs[k]
        planned = plan.law.between(start, end)
        if k:
            planned_rest = start - legs[k - 1][1]
            rest = max(planned_rest - late, waited)
            late, waited = late + rest - planned_rest, 0.0
            now = sum(piece.duration for piece in pieces)
            rests.append((now, now + rest))
            pieces += [laws.wait(planned.start, rest)] if rest > 0.0 else []
        law = planned
        if (late > 0.0 and catch_up) or not fits(constraints, planned):
            law = _nearest(constraints, plan, planned, catch_up, end, start + late, progress)
        late += law.duration - planned.duration
        pieces.append(law)
    return ScaledPlan(plan.path, pieces[0].then(*pieces[1:]), tuple(rests))


def _nearest(constraints: Constraints, plan: ScaledPlan, planned: TimeLaw, catch_up: bool, until: float, now: float,
             progress: Progress | None) -> TimeLaw:
    """From rest to rest over the way of `planned`, the plan's own leg: see `_kept`."""
    ceiling, due = _kept(plan, catch_up, until, now)
    if due is None:
        return fastest(constraints, planned, ceiling=ceiling, progress=progress)
    quintic = laws.rest_to_rest(planned.start, planned.end, 1.0, 3 if constraints.third_order else 2)
    law = fastest(constraints, quintic, progress=progress)
    ahead = _ahead(law, due)
    if ahead <= EARLY:
        return law
    waiting = laws.wait(planned.start, ahead).then(law)  # nowhere ahead of the plan, and nothing ends earlier
    if ahead <= SOON:
        return waiting
    try:
        timely = fastest(constraints, law, due=due, planned=planned, progress=progress)
    except NoLaw:
        return waiting
    return timely if timely.duration <= WORTH * waiting.duration else waiting


def _kept(plan: ScaledPlan, catch_up: bool, until: float, now: float) -> tuple[Curve | None, Curve | None]:
    """What keeps a law to a leg of the plan, see `fastest`: a ceiling, or a time that it is due.

    until: when the leg is planned to end; now: planned time at the law's start.
    """
    if not catch_up:
        return lambda s: plan.law(plan.law.time_at(s))[1], None
    return None, lambda s: np.minimum(plan.law.time_at(s), until) - now
