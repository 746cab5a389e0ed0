"""Closed loops: passive joints follow from the active ones, from the last sample's pose; sensors they have are compared."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rnea_ros.errors import Rejected
from rnea_ros.robots.closure.tracking import Found, LoopTracker, TrackedPose


class FollowedLoops:
    """The loops of a robot along the stream of its samples, and what is to be said of them."""

    def __init__(self, tracker: LoopTracker):
        self._tracker = tracker
        self._last: TrackedPose | None = None

    def locate(self, independent: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return positions of all joints of the tree from those of the independent ones; others: measured, NaN where unknown.
        Raises Rejected.
        """
        found: TrackedPose = followed(self._tracker.locate, independent, _sensed(others))
        self._last = found
        return found.pose

    @property
    def begun(self) -> bool:
        """Whether there is a last pose."""
        return self._tracker.last is not None

    def move(self, function: Callable[[np.ndarray], tuple[Found, np.ndarray]]) -> Found:
        """Return function(pose near the closed one), which returns its result and the closed pose. Raises Rejected."""
        self._last = None
        found: Found = followed(self._tracker.move, function)
        return found

    def warnings(self) -> list[str]:
        if self._last is None or self._last.agrees:
            return []
        differing = dict(self._compared(self._last))
        worst = max(differing, key=lambda name: abs(differing[name]))
        return [f"the loops have {worst} {differing[worst]:+.4g} from where it is measured: is it the loops' other branch, a "
                "sensor's zero or sign, or the robot file that is wrong?"]

    def findings(self) -> dict[str, object]:
        found: dict[str, object] = {f"loops.{reason.replace(' ', '_')}": count
                                    for reason, count in sorted(self._tracker.counts.items())}
        compared = [] if self._last is None else self._compared(self._last)
        return found | {f"{name}.loop_disagreement": f"{value:.3g}" for name, value in compared}

    def _compared(self, found: TrackedPose) -> list[tuple[str, float]]:
        """Passive joints that are measured, and how they differ from that."""
        compared = zip(self._tracker.passive_joints, found.disagreement)
        return [(name, value) for name, value in compared if not math.isnan(value)]


def _sensed(positions: np.ndarray) -> np.ndarray | None:
    """The positions, or None where none is known."""
    return None if np.isnan(positions).all() else positions


def followed(follow, *sample):
    """What a tracker finds for a sample. Rejected has reasons in the manner of the diagnostics' keys."""
    try:
        return follow(*sample)
    except Rejected as refusal:
        raise Rejected(refusal.reason.replace(" ", "_"), refusal.detail) from None
