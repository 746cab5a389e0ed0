"""Who executes what is handed out, as far as a trajectory executor has to know."""

from __future__ import annotations

from typing import Any

from .executed_motion import ExecutedMotion
from .goal import Outcome


class Follower:
    """One that does as it is told, and of which nothing more is known.

    feedback : the newest that it told of a goal on its way: joint_names, actual, error; None where it tells nothing
    """

    feedback: Any = None

    def verdict(self, motion: ExecutedMotion, now: int) -> Outcome | None:
        """What became of a motion whose last reference is at its goal, at time now [ns]; None: that is not known yet."""
        return Outcome()

    def ready(self, asked: int, now: int) -> bool:
        """Whether a change of what was handed out, which has been wanted since `asked` [ns], may be handed out now: it is seen
        to be where it would part from."""
        return True

    def halt(self, motion: ExecutedMotion) -> None:
        """A motion is given up on its way: what was handed out of it must not be played on."""
