"""ModelInfo: joints, units, frames, limits and warnings of a node's model."""

from __future__ import annotations

import numpy as np
from builtin_interfaces.msg import Time
from std_msgs.msg import Header

from rnea_msgs.msg import Drive, ModelInfo, Supply
from rnea_ros.model import drives
from rnea_ros.model.drive_limits import speed_torque_region
from rnea_ros.model.effort_convention import TOTAL, EffortConvention
from rnea_ros.model.tree import Limits
from rnea_ros.nodes.common.robot_facts import RobotFacts


def commanded_units(robot: RobotFacts, commanded: EffortConvention) -> list[str]:
    """Return the unit of each joint's commanded effort."""
    if commanded.quantity == "current":
        return ["A"] * robot.n
    motor = commanded.quantity == "motor_torque"
    return ["N.m" if motor or kind != "prismatic" else "N" for kind in robot.joint_types]


def commanded_rate_limit(limits: Limits, commanded: EffortConvention) -> np.ndarray:
    """Return the limits of the rates of commanded efforts, in the units of these; Limits has them at the joint."""
    return limits.commanded_effort_rate / np.abs(commanded.per_unit or 1.0)


def model_info(robot: RobotFacts, limits: Limits, stamp: Time, commanded: EffortConvention = TOTAL.commanded) -> ModelInfo:
    """Return all that a subscriber needs to interpret the numbers."""
    rotary = [kind != "prismatic" for kind in robot.joint_types]
    info = ModelInfo(header=Header(stamp=stamp, frame_id=robot.root_link))
    info.model_id, info.robot_name, info.root_link = robot.model_id, robot.name, robot.root_link
    info.base, info.backend, info.kind = "fixed", robot.backend, "Robot"
    info.measured_joints = list(robot.joint_names)
    info.total_mass, info.gravity = float(robot.total_mass), robot.gravity_vector
    info.joint_names, info.joint_types = list(robot.joint_names), list(robot.joint_types)
    info.effort_units = ["N.m" if turns else "N" for turns in rotary]
    info.effort_rate_units = ["N.m/s" if turns else "N/s" for turns in rotary]
    info.effort_limit, info.effort_rate_limit = limits.effort.tolist(), limits.effort_rate.tolist()
    info.commanded_effort_contains, info.commanded_effort_quantity = commanded.contains, commanded.quantity
    info.commanded_effort_units = commanded_units(robot, commanded)
    info.commanded_effort_rate_limit = commanded_rate_limit(limits, commanded).tolist()
    info.velocity_limit = limits.velocity.tolist()
    info.drives = [_drive(drive) for drive in robot.model.drives if drive.joint in robot.joint_names]
    info.supplies = [Supply(**{**supply._asdict(), "joints": list(supply.joints)}) for supply in robot.model.supplies]
    columns = [list(column) for column in zip(*robot.mdh_table())] or [[] for _ in range(9)]
    (info.frame_names, info.parent, info.sigma, info.gamma, info.b, info.alpha, info.d, info.theta, info.r) = columns
    info.reconstruction_error = float(robot.reconstruction_error)
    info.warnings = list(robot.warnings)
    return info


def _drive(drive: drives.Drive) -> Drive:
    numbers = {name: value for name, value in drive._asdict().items() if name in Drive.get_fields_and_field_types()}
    found = Drive(**numbers, continuous_effort=drive.continuous_torque)
    if drive.speed_torque_curve:
        found.speed_torque_velocity, found.speed_torque_effort = speed_torque_region(drive.speed_torque_curve).T.tolist()
    return found
