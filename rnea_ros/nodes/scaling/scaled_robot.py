"""The robot of scaling_node: what the parameters describe, and the side of it that trajectories are made for."""

from __future__ import annotations

import numpy as np

from rnea_ros import AnyRobot, BaseState, ElasticRobot, InputError, Robot
from rnea_ros.errors import some
from rnea_ros.motion.commanded_effort import DECLARED, CommandedEffort
from rnea_ros.motion.torque_stream import TorqueStream
from rnea_ros.nodes.common.model_request import ModelRequest
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.common.robot_description import tried
from rnea_ros.nodes.dynamics.kinds.served_robot import ServedRobot
from rnea_ros.nodes.dynamics.kinds.topics import Topics
from rnea_ros.nodes.scaling.base_tilt import BaseTilt, base_tilt
from rnea_ros.robots import kinds
from rnea_ros.robots.link_side import level, link_side, unkept

HELD = "its base moves, and nobody knows how it will while a trajectory is executed: it counts as at rest, "
LEVEL = "and level; where it is tilted, base.source names who tells, or gravity says so, in the frame of the root link"
BOLTED = "base.source means nothing here: it is for a base that something carries (base: prescribed in the robot file)"
TILTED = "and as it is turned when the trajectory comes"


class ScaledRobot(ServedRobot):
    """planned   : what motions are made for; a base that something carries counts as at rest
    commanded : convention of commanded efforts
    """

    def __init__(self, robot: AnyRobot, tilt: BaseTilt | None = None, commanded_effort: str = DECLARED):
        """tilt: of a base that something carries, as long as it does; default level. Raises InputError for a robot that no
        motion of the joints alone decides, nor its efforts as they are to be commanded."""
        super().__init__(robot, kinds.trees(robot))
        self.carried = level(robot) is not None
        self.planned, self._turned = link_side(robot, level(robot)), BaseState().quaternion
        self._take(tilt if tilt is not None and self.carried else BaseTilt())
        if tilt is not None and tilt.topic and not self.carried:
            self.doubts = (BOLTED,)
        self.commanded = CommandedEffort(self.planned, commanded_effort).convention
        if isinstance(robot, ElasticRobot):
            self._check_springs(robot)

    def _take(self, tilt: BaseTilt) -> None:
        self._tilt, self.streams = tilt, [tilt.topic.stream] if tilt.topic else []

    def connect(self, topics: Topics) -> None:
        if self._tilt.topic:
            self._tilt.topic.use(self.model)
            self._tilt.topic.connect(topics)

    def take_over(self, before: ServedRobot) -> None:
        if isinstance(before, ScaledRobot) and before.carried and self.carried:
            self._take(before._tilt)
            self._turn(before._turned)  # a motion under way goes on with the gravity that it began with

    def forget(self) -> None:
        if self._tilt.topic:
            self._tilt.topic.forget()

    def stand(self) -> bool:
        """As the base does now; whether `planned` is another one for it. Raises Rejected where nobody tells."""
        if not self._tilt.topic:
            return False
        base = self._tilt.now(self.gravity_vector)
        if np.array_equal(base.quaternion, self._turned):
            return False
        self._turn(base.quaternion)
        return True

    def _turn(self, quaternion: np.ndarray) -> None:
        self._turned, self.planned = quaternion, link_side(self.robot, BaseState(quaternion=quaternion))

    @property
    def warnings(self) -> tuple[str, ...]:
        held = HELD + (TILTED if self._tilt.topic else LEVEL)
        return (*super().warnings, *((held,) if self.carried else ()), *unkept(self.robot))

    def _check_springs(self, robot: ElasticRobot) -> None:
        """Raise InputError where commanded efforts are those of the motor behind a spring."""
        motors = {name for name, unit in zip(self.joint_names, self.commanded.per_unit) if abs(unit) != 1.0}
        behind = [name for name in robot.elastic_joints if name in motors]
        if behind or (robot.elastic_joints and self.commanded.needs_friction):
            raise InputError(f"commanded efforts of {some(behind or robot.elastic_joints)} are those of springs here: "
                             "friction, torque and current of the motor behind one take two derivatives more. Let "
                             "commanded_effort be a joint_torque that is total or without_gravity")


def served(values: Values, robot: AnyRobot, request: ModelRequest) -> ScaledRobot:
    """The robot with what ticks need compiled, in the thread that builds models. Raises RneaError."""
    made = ScaledRobot(robot, base_tilt(values), values["commanded_effort"])
    if isinstance(made.planned, Robot):
        tried(made.planned)
    else:
        TorqueStream(made.planned)(*kinds.rest(made.planned))
    return made
