"""Trees on a held base, whose joints have motors: the motion of the joints is all that they need."""

from __future__ import annotations

from typing import Any

import numpy as np

from rnea_ros import Robot
from rnea_ros.nodes.common.robot_description import tried
from rnea_ros.nodes.dynamics.kinds.served_robot import Loads, Motion, ServedRobot
from rnea_ros.nodes.dynamics.marks.body import Body, held
from rnea_ros.robots.robot import Dynamics


class ServedTree(ServedRobot):
    """Robot."""

    scalable = True

    def __init__(self, robot: Robot):
        super().__init__(robot, [robot])
        self.differentiable, self._dynamics = robot, robot.dynamics

    def prepare(self, loads: Loads) -> None:
        tried(self.robot)
        rest = np.zeros((4, self.n))
        self._dynamics(*rest, **loads(*rest[:2]))

    def dynamics(self, motion: Motion, optional: np.ndarray, loads: Loads, stamp: int) -> Dynamics:
        return self._dynamics(*motion, **loads(motion[0], motion[1]))

    def body(self, motion: Motion, loads: dict[str, Any]) -> Body | None:
        return held(self.trees[0], motion, loads)
