"""The limits of drives that a robot file declares, from the numbers of data sheets.

With N rotor turns for one of the joint, motor constants k_t (torque by current) and k_e (voltage by speed), efficiency eta of
the gear, winding R and L, and stiffness k between rotor and link, the joint's torque tau, its rate and its speed qd give

    current         i = tau / (k_t N eta)
    voltage         V = R i + L di/dt + k_e N qd
    motor velocity  N (qd + d tau/dt / k)
    power           tau qd

Each is a line in (tau, d tau/dt, qd), or their product, and the exact torque rate makes the voltage exact. eta counts as if
the motor always drove: when it brakes, the gear's losses help it, and the current is smaller than this.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..model.drive_limits import DriveLimit, speed_torque_region
from ..model.robot_file.robot_file import RobotFile
from ..model.robot_file.schema import CONVENTIONS
from ..model.tree import Model

NO_LIMIT = 10.0  # times the known one of two limits: as good as none
ALIKE = 0.15  # relative: motor constants on data sheets are rounded, and measured warm or cold
Drive = Mapping[str, Any]


def drive_limits(model: Model, file: RobotFile) -> tuple[DriveLimit, ...]:
    """Of `drives`, `limits` and `supplies`, in this order; joints of the model alone."""
    drives, stiff = file.section("drives"), file.section("elastic_joints")
    found = [limit for name in model.joint_names if name in drives
             for limit in _drive(name, model.joint_names.index(name),
                                 {**drives[name], **_stiffness(stiff.get(name, {}))})]
    for k, joint in enumerate(model.joints):
        given = file.section("limits").get(joint.name, {})
        if (least := given.get("min_effort")) is not None:
            found.append(DriveLimit("effort", joint.name, (k,), least, given.get("max_effort", joint.effort), effort=1.0))
    for name, supply in file.section("supplies").items():
        joints = tuple(model.joint_names.index(joint) for joint in supply.get("joints", model.joint_names))
        found += _power(name, joints, supply)
    return tuple(found)


def _stiffness(elastic: Mapping[str, Any]) -> dict[str, float]:
    return {"transmission_stiffness": elastic["stiffness"]} if elastic else {}


def _drive(name: str, joint: int, drive: Drive) -> Iterator[DriveLimit]:
    ratio, at = drive.get("gear_ratio", 1.0), (name, (joint,))
    constant = drive.get("torque_constant")
    by_torque = 1.0 / (constant * ratio * drive.get("efficiency", 1.0)) if constant else math.nan  # A / (N m)
    if limit := drive.get("max_current"):
        yield DriveLimit("current", *at, -limit, limit, effort=by_torque)
    if limit := drive.get("supply_voltage"):
        yield DriveLimit("voltage", *at, -limit, limit, effort=drive["resistance"] * by_torque,
                         effort_rate=drive.get("inductance", 0.0) * by_torque, velocity=back_emf_constant(drive) * ratio)
    if limit := drive.get("max_motor_velocity"):
        stiffness = drive.get("transmission_stiffness", math.inf)
        yield DriveLimit("motor_velocity", *at, -limit, limit, effort_rate=ratio / stiffness, velocity=ratio)
    yield from _power(name, (joint,), drive)
    yield from _speed_torque(name, joint, drive.get("speed_torque_curve", ()))


def back_emf_constant(drive: Drive) -> float:
    """k_e: as given, or from k_v, or the k_t of a motor whose power is voltage times current (dc, q_axis)."""
    if "velocity_constant" in drive:
        return 1.0 / float(drive["velocity_constant"])
    return float(drive.get("back_emf_constant", drive["torque_constant"]))


def doubts(file: RobotFile) -> tuple[str, ...]:
    """Motor constants that do not belong together: one sentence each. Power is voltage times current, in every convention."""
    found = []
    for name, drive in file.section("drives").items():
        convention = drive.get("current_convention", "dc")
        wanted = CONVENTIONS[convention]
        if "torque_constant" not in drive or not {"back_emf_constant", "velocity_constant"} & set(drive):
            continue
        ratio = drive["torque_constant"] / back_emf_constant(drive)
        if min(abs(ratio / one - 1.0) for one in wanted) > ALIKE:
            found.append(f"drives.{name}: torque_constant is {ratio:.3g} times back_emf_constant; with current_convention "
                         f"{convention} it is {' or '.join(f'{one:.3g}' for one in wanted)} times: is one of them peak, the "
                         "other rms, or per 1000 turns a minute?")
    return tuple(found)


def _power(owner: str, joints: tuple[int, ...], given: Mapping[str, Any]) -> Iterator[DriveLimit]:
    upper, braking = given.get("max_power", 0.0), given.get("max_braking_power", 0.0)
    if upper or braking:
        yield DriveLimit("power", owner, joints, -(braking or NO_LIMIT * upper), upper or NO_LIMIT * braking, power=1.0)


def _speed_torque(name: str, joint: int, corners: Sequence[Sequence[float]]) -> Iterator[DriveLimit]:
    """A limit for each pair of opposite sides of the region, or for a side that has none."""
    region = speed_torque_region(corners) if len(corners) else np.zeros((0, 2))
    seen: list[np.ndarray] = []
    for a, b in zip(region, np.roll(region, -1, axis=0)):
        normal = np.array([b[1] - a[1], a[0] - b[0]])
        normal = normal / (normal @ a)  # 1 on this side
        if any(np.allclose(normal, -other, rtol=1e-9) for other in seen):
            continue
        seen.append(normal)
        yield DriveLimit("speed_torque", name, (joint,), float((region @ normal).min()), 1.0, velocity=float(normal[0]),
                         effort=float(normal[1]))
