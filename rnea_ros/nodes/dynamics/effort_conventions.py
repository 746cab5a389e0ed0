"""Meaning of commanded and measured efforts: parameters over the robot file. Joint efforts are always whole torques."""

from __future__ import annotations

from rnea_ros import InputError
from rnea_ros.model.effort_convention import Efforts
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.dynamics.kinds.served_robot import ServedRobot

FILE = "robot_file"


def efforts(robot: ServedRobot, values: Values) -> Efforts:
    """Return the conventions of the joints that are served."""
    joints = [robot.model.joint_names.index(name) for name in robot.joint_names if name in robot.model.joint_names]
    of_file = (convention.of(joints) for convention in robot.model.efforts)
    contents = (values["commanded_effort"], values["measured_effort"])
    return Efforts(*(convention if contains == FILE else convention._replace(contains=contains)
                     for convention, contains in zip(of_file, contents)))


def check_friction(robot: ServedRobot, found: Efforts) -> None:
    """Raise InputError where a convention needs friction and its share in the torques is not known."""
    for section, convention in zip(Efforts._fields, found):
        if robot.differentiable is None and convention.needs_friction:
            raise InputError(f"{section}_effort is {convention.contains}, which serves robots without loops, springs and "
                             f"moving base; this one is a {robot.kind}. Allowed are total and without_gravity: set parameter "
                             f"{section}_effort, or {section}_effort in the robot file")
