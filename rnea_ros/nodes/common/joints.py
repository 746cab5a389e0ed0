"""What the parameters say about the joints of a model: their limits and what acts at them beside the links."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from rnea_ros import InputError, JointDynamics
from rnea_ros.errors import some
from rnea_ros.model.tree import ContactCalibration, Limits
from rnea_ros.nodes.common.parameter_table import DERIVATIVES, LARGEST
from rnea_ros.nodes.common.parameters import ParameterSet, Values
from rnea_ros.nodes.common.robot_facts import RobotFacts

FEW = 6  # names in a sentence


def described(robot: RobotFacts) -> Values:
    """Every joint parameter of a model, with the value that its URDF gives. Mimic joints have dynamics but no limits.

    Limits of 1e16 and the like mean that there is none: they become the largest that the parameter may have.
    """
    found: Values = {}
    for k, joint in enumerate(robot.joint_names):
        found[f"hold_joints.{joint}"] = math.nan
        learnt = robot.model.contact.get(joint, ContactCalibration())
        found |= {f"contact.{joint}.{f.name}": getattr(learnt, f.name) for f in fields(ContactCalibration)}
        prefix = f"joint_limits.{joint}"
        lower, upper = (float(np.clip(limit[k], -LARGEST, LARGEST)) for limit in (robot.limits.lower, robot.limits.upper))
        found[f"{prefix}.has_position_limits"] = not math.isnan(lower + upper)
        found[f"{prefix}.min_position"], found[f"{prefix}.max_position"] = lower, upper
        for quantity in DERIVATIVES:
            value = float(np.clip(getattr(robot.limits, quantity)[k], None, LARGEST))
            found[f"{prefix}.has_{quantity}_limits"] = not math.isnan(value)
            found[f"{prefix}.max_{quantity}"] = value
    for link in robot.model.links:
        if link.joint:
            found |= {f"joint_dynamics.{link.joint}.{f.name}": float(getattr(link.term, f.name))
                      for f in fields(JointDynamics)}
    return found


def joint_limits(values: Values, robot: RobotFacts) -> Limits:
    """Return the limits that the declared parameters amount to, those of torques times the share to plan with.

    A limit of zero is unknown: no actuator has it.
    """

    def column(quantity: str, limit: str) -> np.ndarray:
        heads = [f"joint_limits.{joint}" for joint in robot.joint_names]
        known = (values[f"{head}.{limit}"] if values[f"{head}.has_{quantity}_limits"] else math.nan for head in heads)
        return np.fromiter(known, dtype=float, count=len(heads))

    found = {quantity: column(quantity, f"max_{quantity}") for quantity in DERIVATIVES}
    found = {quantity: np.where(limit > 0.0, limit, math.nan) for quantity, limit in found.items()}
    limits = Limits(lower=column("position", "min_position"), upper=column("position", "max_position"), **found)
    return limits.share(*(values.get(f"limits_share.{quantity}", 1.0) for quantity in ("effort", "effort_rate")))


def check_positions(values: Values) -> None:
    """InputError where parameters leave a joint no position to be at."""
    for name, lower in values.items():
        head = name.removesuffix(".min_position")
        upper_name = f"{head}.max_position"
        if head != name and values.get(f"{head}.has_position_limits", True) and lower > values.get(upper_name, math.inf):
            raise InputError(f"{name} is {lower:g}, above {upper_name}, {values[upper_name]:g}: no position is inside; "
                             "to change both, set them in one atomic call")


def warnings(parameters: ParameterSet, robot: RobotFacts) -> list[str]:
    """What the user said of joints that has no effect, and why."""
    found, strangers, values = [], [], parameters.values
    for name, value in parameters.given.items():
        head, _, key = name.rpartition(".")
        quantity = key.removeprefix("max_").removeprefix("min_")
        has = f"{head}.has_{quantity}_limits"
        if name not in values:
            strangers.append(name)
        elif key.startswith(("max_", "min_")) and value == value and not values.get(has, True):
            found.append(f"parameter '{name}' has no effect while '{has}' is false: set it to true")
    if strangers:
        names = some(strangers, FEW, quoted=True)
        which = f"parameters {names} name" if len(strangers) > 1 else f"parameter {names} names"
        found.append(f"{which} no joint of robot '{robot.name}' ({some(robot.joint_names)})")
    return found


def excesses(limits: Limits, joint_names: Sequence[str], motion: Sequence[np.ndarray]) -> list[str]:
    """Where a motion (q, qd, qdd, qddd) is outside its limits, one sentence each: most often wrong units or a wrong URDF."""
    found = []
    q, *derivatives = motion
    for k, joint in enumerate(joint_names):
        if q[k] < limits.lower[k] or q[k] > limits.upper[k]:
            found.append(f"{joint} is at {q[k]:.4g}, outside its limits {limits.lower[k]:.4g} to {limits.upper[k]:.4g}")
        for quantity, values in zip(DERIVATIVES, derivatives):
            limit = getattr(limits, quantity)[k]
            if abs(values[k]) > limit:
                found.append(f"{joint} has {quantity} {values[k]:.4g}, beyond its limit {limit:.4g}")
    return found
