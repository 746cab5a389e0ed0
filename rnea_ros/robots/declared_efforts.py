"""Effort conventions of a model's joints from a robot file."""

from __future__ import annotations

from ..model.effort_convention import EffortConvention, Efforts
from ..model.robot_file.robot_file import RobotFile
from ..model.tree import Model


def efforts(model: Model, file: RobotFile) -> Efforts:
    """`effort_convention` holds for both ways, where `commanded_effort` and `measured_effort` say nothing else."""
    return Efforts(*(_convention(model, file, section) for section in ("commanded_effort", "measured_effort")))


def _convention(model: Model, file: RobotFile, section: str) -> EffortConvention:
    given, drives = file.section(section), file.section("drives")
    contains = given.get("contains", file.content.get("effort_convention", "total"))
    quantity, reversed_joints = given.get("quantity", "joint_torque"), given.get("reversed", ())
    per_unit = []
    of = given.get("joints", model.joint_names)
    for name in model.joint_names:
        drive = drives.get(name, {}) if name in of and quantity in ("motor_torque", "current") else {}
        constant = drive.get("torque_constant", 1.0) if quantity == "current" else 1.0
        sign = -1.0 if name in reversed_joints else 1.0
        per_unit.append(sign * constant * drive.get("gear_ratio", 1.0) * drive.get("efficiency", 1.0))
    return EffortConvention(contains, quantity, tuple(per_unit) if set(per_unit) != {1.0} else ())
