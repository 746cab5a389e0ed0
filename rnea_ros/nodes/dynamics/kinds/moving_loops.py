"""Closed loops on a base that moves, as of legs with rods: the loops are closed first, then all moves with the base."""

from __future__ import annotations

from typing import Any

import numpy as np

from rnea_ros import BaseState, FloatingLoopRobot
from rnea_ros.nodes.dynamics.bases.base_motion import BaseMotion
from rnea_ros.nodes.dynamics.bases.base_sources import BaseSource
from rnea_ros.nodes.dynamics.kinds.loops import FollowedLoops, resting
from rnea_ros.nodes.dynamics.kinds.moving_bases import Evaluated, ServedMovingBase
from rnea_ros.nodes.dynamics.kinds.served_robot import Loads, Motion, ServedRobot
from rnea_ros.robots.closure.loop_equations import LoopMotion


class ServedMovingLoops(ServedMovingBase):
    """FloatingLoopRobot."""

    def __init__(self, robot: FloatingLoopRobot, source: BaseSource, tolerance: float):
        """tolerance: by how much a passive joint may differ from its sensor."""
        super().__init__(robot, robot.free, source)
        self.optional = self.solved = robot.passive_joints
        self.cuts = robot.loops.cuts
        self._looped, self._loops = robot, FollowedLoops(robot.tracker(tolerance))

    def prepare(self, loads: Loads) -> None:
        found = resting(self._looped)
        for given in ({}, loads(found.q, found.qd)):
            self._along(found, BaseMotion(BaseState(), *np.zeros((2, 6))), given)

    def take_over(self, before: ServedRobot) -> None:
        super().take_over(before)
        if isinstance(before, ServedMovingLoops) and before.model is self.model:
            self._loops = before._loops

    def _evaluate(self, motion: Motion, optional: np.ndarray, loads: Loads, base: BaseMotion) -> Evaluated:
        found = self._loops.follow(motion, optional)
        return self._along(found, base, loads(found.q, found.qd))

    def _along(self, motion: LoopMotion, base: BaseMotion, loads: dict[str, Any]) -> Evaluated:
        found = self._looped.prescribed_along(motion, base=base.state, base_acceleration=base.acceleration,
                                              base_jerk=base.jerk, **loads)
        return found, self._looped.gravity_along(motion, base=base.state)

    def _tree_motion(self, motion: Motion) -> Motion:
        return self._loops.tree_motion

    def warnings_now(self) -> list[str]:
        return super().warnings_now() + self._loops.warnings()

    def findings(self) -> dict[str, object]:
        return super().findings() | self._loops.findings()
