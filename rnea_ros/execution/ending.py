"""How a motion ends: its last reference is sent; its robot and who follows it have a say in whether it is at its goal."""

from __future__ import annotations

from typing import NamedTuple

from ..scaling.reference import Reference
from .executed_motion import ExecutedMotion
from .follower import Follower
from .goal import Outcome

LEFT = "path_tolerance"  # the reason of a motion that was stopped because its robot had left the path


class Ending(NamedTuple):
    """What its sender is told, what is said of it, and whether it failed though its references are at its goal."""

    outcome: Outcome
    words: str
    failed: bool


def ending(motion: ExecutedMotion, last: Reference, follower: Follower, now: int) -> Ending | None:
    """Of a motion at rest, at time now [ns]; None while somebody has still to say so."""
    arrived, ended = motion.ended(last)
    stopped = Outcome(motion.reason, motion.stopped)
    outcome = _verdict(motion, follower, now) if arrived and motion.reason != LEFT else stopped
    if outcome is None and not motion.stopped:
        return None
    reason, why = outcome = outcome or stopped
    failed = bool(reason) and outcome is not stopped
    return Ending(Outcome(reason, f"{why}: {ended}" if why else ended), ended + (f"; {why}" if failed else ""), failed)


def _verdict(motion: ExecutedMotion, follower: Follower, now: int) -> Outcome | None:
    """The follower's, or else of the robot."""
    found = follower.verdict(motion, now)
    return motion.watch.verdict if found == Outcome() else found
