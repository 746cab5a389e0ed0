"""The drives that a robot file declares, and their limits: lines in torque, torque rate and speed, or their product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ModelWarning
from ..model.drives import Drive, DriveLimit, Supply, speed_torque_region
from ..model.robot_file.robot_file import RobotFile
from ..model.robot_file.schema import CONVENTIONS
from ..model.tree import Model
from .declared_joints import TWO_SIDED

NO_LIMIT = 10.0  # times the known one of two limits: as good as none
ALIKE = 0.15  # relative: motor constants on data sheets are rounded, and measured warm or cold
KNOWN = {"back_emf_constant", "velocity_constant"}  # either determines k_e
Sheet = Mapping[str, Any]


def drives(model: Model, file: RobotFile) -> tuple[Drive, ...]:
    """Return the drives of section `drives`, in the order of the joints that have their own coordinate."""
    sheets, springs = file.section("drives"), file.section("elastic_joints")
    return tuple(_drive(name, sheets[name], springs.get(name, {})) for name in model.joint_names if name in sheets)


def supplies(model: Model, file: RobotFile) -> tuple[Supply, ...]:
    """Return the supplies of a robot file."""
    return tuple(Supply(name, tuple(given.get("joints", model.joint_names)), **_numbers(given))
                 for name, given in file.section("supplies").items())


def drive_limits(model: Model, file: RobotFile) -> tuple[DriveLimit, ...]:
    """Return the limits of sections `drives`, `limits` and `supplies`, in this order, for joints of the model."""
    found = [limit for drive in drives(model, file) for limit in _limits(drive, (model.joint_names.index(drive.joint),))]
    for k, joint in enumerate(model.joints):
        given = file.section("limits").get(joint.name, {})
        for quantity in TWO_SIDED:
            if (least := given.get(f"min_{quantity}")) is not None:
                most = given.get(f"max_{quantity}", getattr(joint, quantity))
                found.append(DriveLimit(quantity, joint.name, (k,), least, most, **{quantity: 1.0}))
    for supply in supplies(model, file):
        found += _power(supply.name, tuple(map(model.joint_names.index, supply.joints)), supply)
    return tuple(found)


def _drive(name: str, sheet: Sheet, spring: Sheet) -> Drive:
    found = _numbers(sheet)
    if "torque_constant" in sheet and (KNOWN & set(sheet) or 1.0 in CONVENTIONS[sheet.get("current_convention", "dc")]):
        found["back_emf_constant"] = back_emf_constant(sheet)
    if spring:
        found["transmission_stiffness"] = float(spring["stiffness"])
    corners = tuple((float(speed), float(torque)) for speed, torque in sheet.get("speed_torque_curve", ()))
    return Drive(name, current_convention=sheet.get("current_convention", "dc"), speed_torque_curve=corners, **found)


def _numbers(given: Sheet) -> dict[str, Any]:
    return {key: float(value) for key, value in given.items() if key in Drive._fields and isinstance(value, int | float)}


def _limits(drive: Drive, joints: tuple[int, ...]) -> Iterator[DriveLimit]:
    for quantity, limit in (("current", drive.max_current), ("voltage", drive.supply_voltage),
                            ("motor_velocity", drive.max_motor_velocity)):
        if limit == limit:
            yield DriveLimit(quantity, drive.joint, joints, -limit, limit, **getattr(drive, quantity)._asdict())
    yield from _power(drive.joint, joints, drive)
    yield from _speed_torque(drive.joint, joints, drive.speed_torque_curve)


def back_emf_constant(drive: Sheet) -> float:
    """k_e: as given, or from k_v, or the k_t of a motor whose power is voltage times current (dc, q_axis)."""
    if "velocity_constant" in drive:
        return 1.0 / float(drive["velocity_constant"])
    return float(drive.get("back_emf_constant", drive["torque_constant"]))


def warnings(file: RobotFile) -> tuple[ModelWarning, ...]:
    """Return warnings about motor constants that contradict each other: power is voltage times current in every convention."""
    found = []
    for name, drive in file.section("drives").items():
        convention = drive.get("current_convention", "dc")
        wanted = CONVENTIONS[convention]
        if "torque_constant" not in drive or not KNOWN & set(drive):
            continue
        ratio = drive["torque_constant"] / back_emf_constant(drive)
        if min(abs(ratio / one - 1.0) for one in wanted) > ALIKE:
            expected = " or ".join(f"{one:.3g}" for one in wanted)
            found.append(ModelWarning("motor_constants", f"drives.{name}: torque_constant is {ratio:.3g} times "
                                                         f"back_emf_constant; with current_convention {convention} it must be "
                                                         f"{expected} times: is one of them peak, the other rms, or per 1000 "
                                                         "turns a minute?"))
    return tuple(found)


def _power(owner: str, joints: tuple[int, ...], given: Drive | Supply) -> Iterator[DriveLimit]:
    upper, braking = np.nan_to_num((given.max_power, given.max_braking_power)).tolist()
    if upper or braking:
        yield DriveLimit("power", owner, joints, -(braking or NO_LIMIT * upper), upper or NO_LIMIT * braking, power=1.0)


def _speed_torque(name: str, joints: tuple[int, ...], corners: Sequence[Sequence[float]]) -> Iterator[DriveLimit]:
    """Return a limit for each pair of opposite sides of the region, or for a side that has none."""
    region = speed_torque_region(corners) if len(corners) else np.zeros((0, 2))
    seen: list[np.ndarray] = []
    for a, b in zip(region, np.roll(region, -1, axis=0)):
        normal = np.array([b[1] - a[1], a[0] - b[0]])
        normal = normal / (normal @ a)  # 1 on this side
        if any(np.allclose(normal, -other, rtol=1e-9) for other in seen):
            continue
        seen.append(normal)
        yield DriveLimit("speed_torque", name, joints, float((region @ normal).min()), 1.0, velocity=float(normal[0]),
                         effort=float(normal[1]))
