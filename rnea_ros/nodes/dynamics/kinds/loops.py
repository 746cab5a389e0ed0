"""Closed loops: passive joints follow from the active ones, from the last sample's pose; sensors they have are compared."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rnea_ros import ClosedLoopRobot
from rnea_ros.errors import Rejected
from rnea_ros.nodes.dynamics.kinds.served_robot import Loads, Motion, ServedRobot
from rnea_ros.nodes.dynamics.marks.body import Body, held
from rnea_ros.robots.closure.loop_equations import LoopMotion
from rnea_ros.robots.closure.tracking import Found, LoopTracker, TrackedMotion, TrackedPose
from rnea_ros.robots.robot import Dynamics


class FollowedLoops:
    """The loops of a robot along the stream of its samples, and what is to be said of them."""

    def __init__(self, tracker: LoopTracker):
        self._tracker = tracker
        self._last: TrackedMotion | TrackedPose | None = None

    def follow(self, motion: Motion, optional: np.ndarray) -> LoopMotion:
        """Return the motion of all joints; arguments as of ServedRobot.dynamics. Raises Rejected."""
        found: TrackedMotion = followed(self._tracker.follow, *motion, _sensed(optional[0]))
        self._last = found
        return found.motion

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

    @property
    def tree_motion(self) -> Motion:
        """Of all joints in the last sample, up to the jerk."""
        assert isinstance(self._last, TrackedMotion)
        return self._last.motion[:4]

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

    def _compared(self, found: TrackedMotion | TrackedPose) -> list[tuple[str, float]]:
        """Passive joints that are measured, and how they differ from that."""
        compared = zip(self._tracker.passive_joints, found.disagreement)
        return [(name, value) for name, value in compared if not math.isnan(value)]


class ServedLoops(ServedRobot):
    """ClosedLoopRobot."""

    def __init__(self, robot: ClosedLoopRobot, tolerance: float):
        """tolerance: by how much a passive joint may differ from its sensor."""
        super().__init__(robot, [robot.tree])
        self.optional = self.solved = robot.passive_joints
        self.cuts = robot.loops.cuts
        self._looped, self._along, self._loops = robot, robot.along, FollowedLoops(robot.tracker(tolerance))

    def prepare(self, loads: Loads) -> None:
        found = resting(self._looped)
        for given in ({}, loads(found.q, found.qd)):
            self._along(found, **given)

    def take_over(self, before: ServedRobot) -> None:
        if isinstance(before, ServedLoops) and before.model is self.model:
            self._loops = before._loops

    def dynamics(self, motion: Motion, optional: np.ndarray, loads: Loads, stamp: int) -> Dynamics:
        found = self._loops.follow(motion, optional)
        return self._along(found, **loads(found.q, found.qd))

    def body(self, motion: Motion, loads: dict[str, Any]) -> Body | None:
        return held(self.trees[0], self._loops.tree_motion, loads)

    def warnings_now(self) -> list[str]:
        return self._loops.warnings()

    def findings(self) -> dict[str, object]:
        return self._loops.findings()


def resting(robot: ClosedLoopRobot) -> LoopMotion:
    """Return the motion at rest in the pose where the loops are closed first."""
    start = robot.start[[*map(robot.tree.joint_names.index, robot.joint_names)]]
    return robot.motion(start, *np.zeros((3, robot.n)))


def _sensed(positions: np.ndarray) -> np.ndarray | None:
    """The positions, or None where none is known."""
    return None if np.isnan(positions).all() else positions


def followed(follow, *sample):
    """What a tracker finds for a sample. Rejected has reasons in the manner of the diagnostics' keys."""
    try:
        return follow(*sample)
    except Rejected as refusal:
        raise Rejected(refusal.reason.replace(" ", "_"), refusal.detail) from None
