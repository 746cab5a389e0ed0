"""What the parameters say about the joints of a model: their limits and what acts at them beside the links."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import NamedTuple

import numpy as np

from rnea_ros import JointTerm, Robot
from rnea_ros.nodes.parameters import DERIVATIVES, ParameterSet, Values


class Limits(NamedTuple):
    """What the joints may do, by joint; NaN where unknown. A limit of zero is unknown too: nobody has such a joint."""

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    jerk: np.ndarray
    effort: np.ndarray
    effort_rate: np.ndarray


def described(robot: Robot) -> Values:
    """Every joint parameter of a model, with the value that its URDF gives. Mimic joints have dynamics but no limits."""
    found: Values = {}
    for k, joint in enumerate(robot.joint_names):
        prefix = f"joint_limits.{joint}"
        lower, upper = float(robot.limits.lower[k]), float(robot.limits.upper[k])
        found[f"{prefix}.has_position_limits"] = not math.isnan(lower + upper)
        found[f"{prefix}.min_position"], found[f"{prefix}.max_position"] = lower, upper
        for quantity in DERIVATIVES:
            value = float(getattr(robot.limits, quantity)[k])
            found[f"{prefix}.has_{quantity}_limits"] = not math.isnan(value)
            found[f"{prefix}.max_{quantity}"] = value
    for link in robot.model.links:
        if link.joint:
            found |= {f"joint_dynamics.{link.joint}.{f.name}": float(getattr(link.term, f.name)) for f in fields(JointTerm)}
    return found


def limits(values: Values, joint_names: Sequence[str]) -> Limits:
    """The limits that the declared parameters amount to."""

    def column(quantity: str, limit: str) -> np.ndarray:
        prefixes = [f"joint_limits.{joint}" for joint in joint_names]
        return np.array([values[f"{p}.{limit}"] if values[f"{p}.has_{quantity}_limits"] else math.nan for p in prefixes], dtype=float)

    positions = column("position", "min_position"), column("position", "max_position")
    derivatives = [column(quantity, f"max_{quantity}") for quantity in DERIVATIVES]
    return Limits(*positions, *(np.where(values > 0.0, values, math.nan) for values in derivatives))


def doubts(parameters: ParameterSet, robot: Robot) -> list[str]:
    """What the user said of joints that has no effect, and why."""
    found = []
    for name in parameters.given:
        head, _, quantity = name.rpartition(".")
        has = f"{head}.has_{quantity.removeprefix('max_').removeprefix('min_')}_limits"
        if name not in parameters.values:
            found.append(f"parameter '{name}' names no joint of robot '{robot.name}'; its joints: {', '.join(robot.joint_names)}")
        elif has != name and not parameters.values.get(has, True):
            found.append(f"parameter '{name}' has no effect while '{has}' is false")
    return found
