"""The robot of scaling_node: what the parameters describe, and the side of it that trajectories are made for."""

from __future__ import annotations

from rnea_ros import AnyRobot, Robot
from rnea_ros.model.effort_convention import TOTAL
from rnea_ros.motion.torque_stream import TorqueStream
from rnea_ros.nodes.common.model_request import ModelRequest
from rnea_ros.nodes.common.robot_description import tried
from rnea_ros.nodes.dynamics.kinds.served_robot import ServedRobot
from rnea_ros.robots import kinds
from rnea_ros.robots.link_side import level, link_side, unkept

HELD = ("its base moves, and nobody knows how it will while a trajectory is executed: it counts as level and at rest; where "
        "it is tilted, parameter gravity says so, in the frame of the root link")
WHOLE = ("efforts here are whole torques of the joints, gravity and friction included, whatever effort_convention and "
         "commanded_effort of the robot file say: a controller that adds gravity itself would count it twice")


class ScaledRobot(ServedRobot):
    """planned : what motions are made for; a base that something carries counts as level and at rest"""

    def __init__(self, robot: AnyRobot):
        """Raises InputError for a robot that no motion of the joints alone decides."""
        super().__init__(robot, kinds.trees(robot))
        self.carried = level(robot) is not None
        self.planned = link_side(robot, level(robot))

    @property
    def warnings(self) -> tuple[str, ...]:
        said = ((HELD, self.carried), (WHOLE, self.model.efforts.commanded != TOTAL.commanded))
        return (*super().warnings, *(text for text, holds in said if holds), *unkept(self.robot))


def served(robot: AnyRobot, request: ModelRequest) -> ScaledRobot:
    """The robot with what ticks need compiled, in the thread that builds models. Raises RneaError."""
    made = ScaledRobot(robot)
    if isinstance(made.planned, Robot):
        tried(made.planned)
    else:
        TorqueStream(made.planned)(*kinds.rest(made.planned))
    return made
