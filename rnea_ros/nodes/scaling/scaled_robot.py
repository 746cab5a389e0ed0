"""The robot of scaling_node: what the parameters describe, and the side of it that trajectories are made for."""

from __future__ import annotations

from typing import Any

from rnea_ros import AnyRobot, BaseState
from rnea_ros.motion.torque_stream import TorqueStream
from rnea_ros.nodes.common.model_request import ModelRequest
from rnea_ros.nodes.dynamics.kinds.served_robot import ServedRobot
from rnea_ros.robots import kinds
from rnea_ros.robots.link_side import level, link_side, unkept

HELD = ("its base moves, and nobody knows how it will while a trajectory is executed: it counts as at rest, as it stands when "
        "the trajectory begins")


class ScaledRobot(ServedRobot):
    """moved : what motions are made for; a base that moves counts as level and at rest until it is known to be tilted"""

    def __init__(self, robot: AnyRobot):
        """Raises InputError for a robot that no motion of the joints alone decides."""
        super().__init__(robot, kinds.trees(robot))
        self.carried = level(robot) is not None
        self.moved = link_side(robot, level(robot))

    @property
    def warnings(self) -> tuple[str, ...]:
        return (*super().warnings, *((HELD,) if self.carried else ()), *unkept(self.robot))

    def tilted(self, quaternion: Any) -> None:
        """How the base stands, x y z w."""
        self.moved = link_side(self.robot, BaseState(quaternion=quaternion))


def served(robot: AnyRobot, request: ModelRequest) -> ScaledRobot:
    """The robot with what ticks need compiled, in the thread that builds models. Raises RneaError."""
    made = ScaledRobot(robot)
    TorqueStream(made.moved)(*kinds.rest(made.moved))
    return made
