"""Facts about a model for the nodes: joint parameters, limits, and ModelInfo."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from std_msgs.msg import Header

from rnea_msgs.msg import Drive, ModelInfo, Supply
from rnea_ros import InputError, JointDynamics, Robot
from rnea_ros.errors import some
from rnea_ros.model import drives
from rnea_ros.model.drives import TOTAL, EffortConvention, speed_torque_region
from rnea_ros.model.tree import ContactCalibration, Limits
from rnea_ros.nodes.common.parameter_table import DERIVATIVES, LARGEST
from rnea_ros.nodes.common.parameters import ParameterSet, Values


class RobotFacts:
    """Properties of a robot that nodes report. Arrays are in the order of `joint_names`.

    extra_warnings : warnings about the use of the robot in the node, one sentence each
    """

    extra_warnings: tuple[str, ...] = ()

    def __init__(self, robot: Robot):
        self.robot, self.tree = robot, robot.tree
        self.name, self.n = robot.name, robot.n
        self.joint_names, self.joint_types = robot.joint_names, robot.joint_types
        self.root_link, self.backend, self.model = robot.root_link, robot.backend, robot.model
        self.kind, self.model_id, self.gravity_vector = robot.kind, robot.model_id, robot.gravity_vector
        self.total_mass, self.reconstruction_error = robot.total_mass, robot.reconstruction_error

    @property
    def limits(self) -> Limits:
        """Limits of the joints; NaN: unknown."""
        return self.robot.limits

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the model and its use in the node, one sentence each."""
        return (*self.robot.warnings, *self.extra_warnings)

    def mdh_table(self) -> list[tuple[Any, ...]]:
        """Return the modified DH parameters of every frame, see Robot.mdh_table."""
        return self.robot.mdh_table()


MAX_NAMES_SHOWN = 6  # most names listed in a message


def joint_parameters(robot: RobotFacts) -> Values:
    """Return every joint parameter with its default from the URDF and robot file. Mimic joints have dynamics but no limits.

    Limits above the largest value of the parameter, such as 1e16, are reduced to it.
    """
    defaults: Values = {}
    for k, joint in enumerate(robot.joint_names):
        defaults[f"hold_joints.{joint}"] = math.nan
        calibration = robot.model.contact.get(joint, ContactCalibration())
        defaults |= {f"contact.{joint}.{f.name}": getattr(calibration, f.name) for f in fields(ContactCalibration)}
        prefix = f"joint_limits.{joint}"
        lower, upper = (float(np.clip(limit[k], -LARGEST, LARGEST)) for limit in (robot.limits.lower, robot.limits.upper))
        defaults[f"{prefix}.has_position_limits"] = not math.isnan(lower + upper)
        defaults[f"{prefix}.min_position"], defaults[f"{prefix}.max_position"] = lower, upper
        for quantity in DERIVATIVES:
            value = float(np.clip(getattr(robot.limits, quantity)[k], None, LARGEST))
            defaults[f"{prefix}.has_{quantity}_limits"] = not math.isnan(value)
            defaults[f"{prefix}.max_{quantity}"] = value
    for link in robot.model.links:
        if link.joint:
            defaults |= {f"joint_dynamics.{link.joint}.{f.name}": float(getattr(link.term, f.name))
                      for f in fields(JointDynamics)}
    return defaults


def joint_limits(values: Values, robot: RobotFacts) -> Limits:
    """Return the limits in the parameters; those of effort and effort rate are multiplied by limits_share.*.

    A limit of zero counts as unknown.
    """

    def column(quantity: str, limit: str) -> np.ndarray:
        heads = [f"joint_limits.{joint}" for joint in robot.joint_names]
        known = (values[f"{head}.{limit}"] if values[f"{head}.has_{quantity}_limits"] else math.nan for head in heads)
        return np.fromiter(known, dtype=float, count=len(heads))

    columns = {quantity: column(quantity, f"max_{quantity}") for quantity in DERIVATIVES}
    positive = {quantity: np.where(limit > 0.0, limit, math.nan) for quantity, limit in columns.items()}
    limits = Limits(lower=column("position", "min_position"), upper=column("position", "max_position"), **positive)
    return limits.share(*(values.get(f"limits_share.{quantity}", 1.0) for quantity in ("effort", "effort_rate")))


def check_positions(values: Values) -> None:
    """Raise InputError if the lower position limit of a joint is above its upper limit."""
    for name, lower in values.items():
        head = name.removesuffix(".min_position")
        upper_name = f"{head}.max_position"
        if head != name and values.get(f"{head}.has_position_limits", True) and lower > values.get(upper_name, math.inf):
            raise InputError(f"{name} is {lower:g}; at most {upper_name}, {values[upper_name]:g}, is allowed. To change both "
                             "limits, set them in one atomic call")


def ineffective_parameters(parameters: ParameterSet, robot: RobotFacts) -> list[str]:
    """Return warnings about joint parameters that the user has set without effect."""
    notes, unknown, values = [], [], parameters.values
    for name, value in parameters.given.items():
        head, _, key = name.rpartition(".")
        quantity = key.removeprefix("max_").removeprefix("min_")
        has = f"{head}.has_{quantity}_limits"
        if name not in values:
            unknown.append(name)
        elif key.startswith(("max_", "min_")) and value == value and not values.get(has, True):
            notes.append(f"parameter '{name}' has no effect while '{has}' is false: set it to true")
    if unknown:
        names = some(unknown, MAX_NAMES_SHOWN, quoted=True)
        subject = f"parameters {names} name" if len(unknown) > 1 else f"parameter {names} names"
        notes.append(f"{subject} no joint of robot '{robot.name}' ({some(robot.joint_names)})")
    return notes


def limit_violations(limits: Limits, joint_names: Sequence[str], motion: Sequence[np.ndarray]) -> list[str]:
    """Return a sentence for each limit that a motion exceeds. Usual causes are a wrong unit or a wrong URDF.

    motion: q, qd, qdd, qddd, (n,) each
    """
    violations = []
    q, *derivatives = motion
    for k, joint in enumerate(joint_names):
        if q[k] < limits.lower[k] or q[k] > limits.upper[k]:
            violations.append(f"{joint} is at {q[k]:.4g}, outside its limits {limits.lower[k]:.4g} to {limits.upper[k]:.4g}")
        for quantity, values in zip(DERIVATIVES, derivatives):
            limit = getattr(limits, quantity)[k]
            if abs(values[k]) > limit:
                violations.append(f"{joint} has {quantity} {values[k]:.4g}, beyond its limit {limit:.4g}")
    return violations


def commanded_units(robot: RobotFacts, commanded: EffortConvention) -> list[str]:
    """Return the unit of each joint's commanded effort."""
    if commanded.quantity == "current":
        return ["A"] * robot.n
    motor = commanded.quantity == "motor_torque"
    return ["N.m" if motor or kind != "prismatic" else "N" for kind in robot.joint_types]


def commanded_rate_limit(limits: Limits, commanded: EffortConvention) -> np.ndarray:
    """Return the rate limits (n,) of the commanded efforts, in their units; those in `limits` are at the joint."""
    return limits.commanded_effort_rate / np.abs(commanded.per_unit or 1.0)


def model_info(robot: RobotFacts, limits: Limits, stamp: Time, commanded: EffortConvention = TOTAL.commanded) -> ModelInfo:
    """Return the message with everything that subscribers need to interpret published values."""
    rotary = [kind != "prismatic" for kind in robot.joint_types]
    info = ModelInfo(header=Header(stamp=stamp, frame_id=robot.root_link))
    info.model_id, info.robot_name, info.root_link = robot.model_id, robot.name, robot.root_link
    info.base, info.backend, info.kind = robot.model.base, robot.backend, robot.kind
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
    message = Drive(**numbers, continuous_effort=drive.continuous_torque)
    if drive.speed_torque_curve:
        message.speed_torque_velocity, message.speed_torque_effort = speed_torque_region(drive.speed_torque_curve).T.tolist()
    return message
