"""What efforts mean, by parameters over the robot file."""

from __future__ import annotations

from rnea_ros import InputError
from rnea_ros.model.effort_convention import Efforts
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.dynamics.kinds.served_robot import ServedRobot

FILE = "robot_file"


def efforts(robot: ServedRobot, values: Values) -> Efforts:
    """Of the joints that are served."""
    joints = [robot.model.joint_names.index(name) for name in robot.joint_names if name in robot.model.joint_names]
    commanded, measured = (convention.of(joints) for convention in robot.model.efforts)
    both, measured_alone = values["effort_convention"], values["measured_effort"]
    if both != FILE:
        commanded, measured = commanded._replace(contains=both), measured._replace(contains=both)
    return Efforts(commanded, measured if measured_alone == FILE else measured._replace(contains=measured_alone))


def check_friction(robot: ServedRobot, found: Efforts) -> None:
    """InputError where the share of friction in torques is not known apart."""
    if robot.differentiable is None and any(convention.needs_friction for convention in found):
        raise InputError(f"effort_convention {found.commanded.contains} serves robots without loops, springs and moving base; "
                         f"this one is a {robot.kind}")
