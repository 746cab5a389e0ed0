"""What a robot's controller is to be given for its motors to exert whole torques: those, less what it adds by itself."""

from __future__ import annotations

import numpy as np

from ..errors import InputError
from ..robots import kinds
from ..robots.link_side import LinkSideRobot
from ..robots.robot import Dynamics, Robot

DECLARED = "robot_file"


class CommandedEffort:
    """Call with the dynamics of a sample and its qd, qdd (n,); returns efforts as they are commanded, and their exact rates.

    convention : what they mean
    """

    def __init__(self, robot: LinkSideRobot, contains: str = DECLARED):
        """contains: one of CONTENTS, over what the robot declares. InputError where friction is not known apart."""
        model = kinds.tree(robot).model
        declared = model.efforts.commanded.of([model.joint_names.index(name) for name in robot.joint_names])
        self.convention = declared if contains == DECLARED else declared._replace(contains=contains)
        self._robot = robot
        if self.convention.needs_friction and not isinstance(robot, Robot):
            raise InputError(f"commanded efforts {self.convention.contains} take a robot without loops, springs and motors on "
                             f"links, whose friction is known apart; '{robot.name}' is a {type(robot).__name__}. total and "
                             "without_gravity serve it")

    def __call__(self, found: Dynamics, qd: np.ndarray, qdd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        convention, robot = self.convention, self._robot
        if convention.plain:
            return found.tau, found.tau_rate
        needed = convention.needs_friction and isinstance(robot, Robot)
        friction, friction_rate = robot.friction(qd, qdd) if needed else (0.0, 0.0)
        return (convention.effort(found.tau, found.gravity, friction),
                convention.effort(found.tau_rate, found.gravity_rate, friction_rate))
