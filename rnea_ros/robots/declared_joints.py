"""Declarations of joints and links in a robot file, as numbers of a model: limits, drives, friction, payloads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..model.drives import VelocityByPosition
from ..model.robot_file.robot_file import RobotFile
from ..model.robot_file.schema import QUANTITIES
from ..model.robot_file.validation import position_range
from ..model.tree import ContactCalibration, CoupledMotor, Joint, JointDynamics, Model

FORCE = "joint_force"
ARRAYS = tuple(quantity for quantity in QUANTITIES if quantity != FORCE)
TWO_SIDED = ("effort", "velocity")  # may differ up and down
FRICTION = ("coulomb", "viscous", "offset", "smoothing", "stribeck", "stribeck_velocity", "asymmetry",
            "load_dependent", "load_smoothing")


def limited(model: Model, file: RobotFile) -> Model:
    """Return the model with the limits of the file over its own."""
    given = file.section("limits")
    joints = [_limited(joint, given[joint.name], position_range(given[joint.name], model.limits, k)) if joint.name in given
              else joint for k, joint in enumerate(model.joints)]
    return replace(model, joints=tuple(joints))


def _limited(joint: Joint, given: Mapping[str, Any], position: tuple[float, float]) -> Joint:
    found = {quantity: limit(given, quantity, getattr(joint, quantity)) for quantity in ARRAYS}
    for quantity in TWO_SIDED:
        if f"min_{quantity}" in given:  # the narrower one, for callers with one limit; drive limits have both
            found[quantity] = min(found[quantity], -given[f"min_{quantity}"])
    return replace(joint, lower=position[0], upper=position[1], **found)  # type: ignore[arg-type]  # of numbers all


def velocity_by_position(model: Model, file: RobotFile) -> tuple[VelocityByPosition, ...]:
    """Return the velocity limits of joints that must be slower near their position limits."""
    given = file.section("limits")
    zones = {name: given[name].get("velocity_by_position") for name in model.joint_names if name in given}
    return tuple(VelocityByPosition(name, **{"velocity_offset": 0.0, **zone}) for name, zone in zones.items() if zone)


def limit(given: Mapping[str, Any], quantity: str, before: float) -> float:
    """Return the limit that a section gives for a quantity, else the one before."""
    if given.get(f"has_{quantity}_limits") is False:
        return np.nan
    return float(given.get(f"max_{quantity}", before))


def joint_forces(file: RobotFile) -> dict[str, float]:
    """{joint: largest internal force [N]}, mimic joints included."""
    found = {joint: limit(given, FORCE, np.nan) for joint, given in file.section("limits").items()}
    return {joint: force for joint, force in found.items() if force == force}


def contact(file: RobotFile) -> dict[str, ContactCalibration]:
    """Return the contact thresholds of the file by joint."""
    return {joint: ContactCalibration(**{name: float(value) for name, value in given.items()})
            for joint, given in file.section("contact").items()}


def joint_dynamics(model: Model, file: RobotFile, motors: Collection[str] = ()) -> dict[str, JointDynamics]:
    """Drives and friction by joint, over what the model has. motors: joints whose drive counts elsewhere, as a motor."""
    drives, friction = file.section("drives"), file.section("friction")
    return {link.joint: _term(link.term, {} if link.joint in motors else drives.get(link.joint, {}),
                              friction.get(link.joint, {}))
            for link in model.links if link.joint in {**drives, **friction}}


def _term(term: JointDynamics, drive: Mapping[str, Any], friction: Mapping[str, Any]) -> JointDynamics:
    found = {key: float(friction[key]) for key in FRICTION if key in friction}
    found |= {key: float(drive[key]) for key in ("rotor_inertia", "gear_ratio") if key in drive}
    for key in ("coulomb", "viscous"):
        found[key] = found.get(key, getattr(term, key)) + drive.get(key, 0.0)
    return replace(term, **found)


def coupled_motors(model: Model, file: RobotFile) -> tuple[CoupledMotor, ...]:
    """Return the motors of coupled transmissions, without the joints that do not turn them."""
    found = []
    for name, coupling in file.section("couplings").items():
        for motor, given in coupling["motors"].items():
            turned = {model.joint_names.index(joint): float(ratio)
                      for joint, ratio in zip(coupling["joints"], given["ratios"], strict=True) if ratio}
            term = {key: float(given[key]) for key in ("rotor_inertia", "coulomb", "viscous") if key in given}
            smoothing = float(given.get("smoothing", JointDynamics().smoothing * max(map(abs, turned.values()))))
            found.append(CoupledMotor(f"{name}.{motor}", tuple(turned), tuple(turned.values()),
                                      JointDynamics(**term, smoothing=smoothing)))
    return tuple(found)


class DeclaredPayload(NamedTuple):
    """Arguments of with_payload."""

    link: str
    mass: float
    com: Any
    inertia: Any


def payloads(file: RobotFile) -> Iterator[DeclaredPayload]:
    """Yield the payloads of a robot file."""
    for link, given in file.section("payloads").items():
        xx, xy, xz, yy, yz, zz = given.get("inertia", (0.0,) * 6)
        yield DeclaredPayload(link, given["mass"], given.get("com", (0.0,) * 3), ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
