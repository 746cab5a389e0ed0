"""What takes longer than a tick: what other limits or another payload mean for a motion, and the law that takes over next.

Plain functions of what can be pickled: a worker may be a thread or another process. It may pass `progress`, which raises
NoLaw when the answer is no longer wanted.
"""

from __future__ import annotations

from typing import NamedTuple

from ..errors import InputError
from .dense_look import dense_look
from .feasibility import check_rest
from .plan import ScaledPlan, handed_over, hastened
from .profile import PASS, Progress, largest
from .terms import Constraints
from .time_scaling import CoefficientTable

ROOM = 0.98  # share of the limits that a law may use from which another one is to be solved for
AHEAD = 4.0  # s of a law, that there is a table for when it is handed to ticks; they make the rest where it is needed


class Assessment(NamedTuple):
    """Law under new constraints: the largest constant rate inside them, and the coefficients to verify transitions with.

    Where factor < 1, `slower` is the law at that rate, with its coefficients.
    """

    factor: float
    table: CoefficientTable
    slower: tuple[ScaledPlan, CoefficientTable] | None


class Handover(NamedTuple):
    """A motion that shares the present one's law up to its time `at`, and goes its own way from there: as a whole, or for a
    moment after which it goes on as the present one."""

    at: float
    motion: ScaledPlan
    table: CoefficientTable
    whole: bool


def assess(constraints: Constraints, current: ScaledPlan, sigma: float, progress: Progress | None = None) -> Assessment:
    """What new constraints mean for a motion from its time sigma on. InputError where gravity alone exceeds a limit, and where
    nothing of the motion is left."""
    if sigma >= current.law.duration:
        raise InputError("the motion is at its end: other limits are for the next one")
    check_rest(constraints, PASS, float(current.law.at(sigma)[0]))
    table = CoefficientTable(constraints, current.law, sigma, AHEAD)
    rest = current.law.between(sigma, current.law.duration)
    look = dense_look(constraints, rest, ROOM)
    offset = constraints.offset[look.of]
    factor = largest(look.polynomials, ROOM, offset)
    if factor >= 1.0:
        return Assessment(1.0, table, None)
    factor *= 1.0 - 1e-12
    slower = current.slower(factor)
    return Assessment(factor, table, (slower, CoefficientTable(constraints, slower.law, sigma / factor, AHEAD)))


def next_law(constraints: Constraints, current: ScaledPlan, at: float, plan: ScaledPlan, catch_up: bool, offset: float,
             since: float = 0.0, soon: bool = False, progress: Progress | None = None) -> Handover:
    """The motion nearest to the plan from the present one's time `at` on; see plan.handed_over. Raises NoLaw.

    since : the present one's time, now
    soon  : of a long motion for the next moment alone, which takes no longer for a longer one; see plan.hastened
    """
    early = hastened(constraints, current, at, plan, catch_up, offset, progress) if soon else None
    motion = early or handed_over(constraints, current, at, plan, catch_up, offset, progress)
    return Handover(at, motion, CoefficientTable(constraints, motion.law, since, at - since + AHEAD), early is None)
