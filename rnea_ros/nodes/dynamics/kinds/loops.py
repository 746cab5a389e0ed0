"""Closed loops: passive joints follow from the active ones, from the last sample's pose; sensors they have are compared."""

from __future__ import annotations

import math

import numpy as np

from rnea_ros import ClosedLoopRobot
from rnea_ros.errors import Rejected
from rnea_ros.nodes.dynamics.kinds.served_robot import Loads, Motion, ServedRobot
from rnea_ros.robots.closure.tracking import TrackedMotion
from rnea_ros.robots.robot import Dynamics


class ServedLoops(ServedRobot):
    """ClosedLoopRobot."""

    def __init__(self, robot: ClosedLoopRobot, tolerance: float):
        """tolerance: by how much a passive joint may differ from its sensor."""
        super().__init__(robot, [robot.tree])
        self.optional = self.solved = robot.passive_joints
        self._along, self._tracker = robot.along, robot.tracker(tolerance)
        self._last: TrackedMotion | None = None

    def prepare(self, loads: Loads) -> None:
        assert isinstance(self.robot, ClosedLoopRobot)
        rest = np.zeros((3, self.n))
        found = self.robot.motion(self.robot.start[[*map(self.model.joint_names.index, self.joint_names)]], *rest)
        for given in ({}, loads(found.q, found.qd)):
            self._along(found, **given)

    def take_over(self, before: ServedRobot) -> None:
        if isinstance(before, ServedLoops) and before.model is self.model:
            self._tracker, self._last = before._tracker, before._last

    def dynamics(self, motion: Motion, optional: np.ndarray, loads: Loads, stamp: int) -> Dynamics:
        found = self._last = followed(self._tracker.follow, *motion, None if np.isnan(optional[0]).all() else optional[0])
        return self._along(found.motion, **loads(found.motion.q, found.motion.qd))

    def warnings_now(self) -> list[str]:
        if self._last is None or self._last.agrees:
            return []
        differing = {name: value for name, value in zip(self.solved, self._last.disagreement) if not math.isnan(value)}
        worst = max(differing, key=lambda name: abs(differing[name]))
        return [f"the loops have {worst} {differing[worst]:+.4g} from where it is measured: is it the loops' other branch, a "
                "sensor's zero or sign, or the robot file that is wrong?"]

    def findings(self) -> dict[str, object]:
        if self._last is None:
            return {}
        found: dict[str, object] = {f"loops.{reason.replace(' ', '_')}": count
                                    for reason, count in sorted(self._tracker.counts.items())}
        compared = ((name, value) for name, value in zip(self.solved, self._last.disagreement) if not math.isnan(value))
        return found | {f"{name}.loop_disagreement": f"{value:.3g}" for name, value in compared}


def followed(follow, *sample):
    """What a tracker finds for a sample. Rejected has reasons in the manner of the diagnostics' keys."""
    try:
        return follow(*sample)
    except Rejected as refusal:
        raise Rejected(refusal.reason.replace(" ", "_"), refusal.detail) from None
