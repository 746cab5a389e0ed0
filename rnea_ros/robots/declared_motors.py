"""Elastic joints and their motors in a robot file, in numbers of the model.

    version: 1
    elastic_joints:
      elbow: {stiffness: 100.0}        # N m/rad (prismatic joint: N/m); joints that are not named are rigid
    drives:
      elbow:
        gear_ratio: 10.0               # turns of the rotor for one of the joint (rad/m); default 1, negative turns it round
        rotor_inertia: 0.004           # kg m^2, of the rotor about its own axis
        viscous: 0.1                   # friction of motor and gear, on the joint's side [N m s/rad]
        coulomb: 0.2                   # [N m]
    motors:
      elbow:
        link: upper_arm                # link that carries the motor and turns its spinning rotor; default: the base, see below
        axis: [0, 0, 1]                # axis of the rotor, in the frame of the link
        mass: 1.0                      # kg; only where the URDF's link does not already hold the rotor
        transverse_inertia: 0.006      # kg m^2, of that rotor about the axes across
        position: [0, 0, 0.3]          # its centre of mass, in the frame of the link [m]

A rotor in the base, or on no link that is named, counts by its own turns alone, as JointDynamics.rotor_inertia does.
This is Spong's model, good where gear ratios are high. With it, the inverse dynamics of any arm needs four derivatives of q.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..algebra.vectors import Z
from ..algorithms.equations import Motor
from ..model.robot_file.robot_file import RobotFile
from ..model.robot_file.validation import Problem
from ..model.tree import JointDynamics, Model
from .inputs.payload import Payload

MOTORS = ("elastic_joints", "motors", "drives")


class Declared(NamedTuple):
    """Motors in the order of the robot's joints, and the rotors that are to be added to links as rigid bodies."""

    motors: tuple[Motor, ...]
    rotors: tuple[Payload, ...]


def motors(model: Model, whole: RobotFile) -> Declared:
    """Return the motors of elastic joints and those on links; ModelError lists everything that is wrong.

    Drives of other joints are rotor inertia and friction of the joint, see declared_joints.py.
    """
    named = {*whole.section("elastic_joints"), *whole.section("motors")}
    if not named:
        return Declared((), ())
    kept = {joint: entry for joint, entry in whole.section("drives").items() if joint in named}
    file = whole.only(MOTORS).over({"drives": kept}).checked(model)
    springs, carriers, drives = (file.section(name) for name in MOTORS)
    names = [name for name in model.joint_names if name in named]
    file.refuse([Problem(("drives", link.joint), ": has a rotor inertia among the joint dynamics already; declare it here or "
                                                 "there, not twice")
                 for link in model.links if link.joint in names and link.term.rotor_inertia])
    found = [_motor(model, name, springs.get(name, {}), carriers.get(name, {}), drives.get(name, {})) for name in names]
    rotors = [_rotor(model, carriers[name], drives.get(name, {})) for name in names if "mass" in carriers.get(name, {})]
    return Declared(tuple(found), tuple(rotors))


def _motor(model: Model, name: str, spring: Mapping[str, Any], carrier: Mapping[str, Any], drive: Mapping[str, Any]) -> Motor:
    term = JointDynamics(drive.get("rotor_inertia", 0.0), drive.get("gear_ratio", 1.0), drive.get("coulomb", 0.0),
                         drive.get("viscous", 0.0))
    number, axis = 0, Z  # of a motor in the base any axis will do: it does not turn
    if carrier:
        frame = model.frame(carrier["link"])
        number, axis = frame.link, frame.R @ _direction(carrier)
    return Motor(model.joint_names.index(name), number, axis, term, float(spring.get("stiffness", math.inf)))


def _rotor(model: Model, carrier: Mapping[str, Any], drive: Mapping[str, Any]) -> Payload:
    """Return the rotor at rest as a rigid body: (1) makes it the same at every angle."""
    z, across = _direction(carrier), carrier["transverse_inertia"]
    inertia = across * np.eye(3) + (drive.get("rotor_inertia", 0.0) - across) * np.outer(z, z)
    return Payload.on_link(model, carrier["link"], carrier["mass"], carrier.get("position", (0.0, 0.0, 0.0)), inertia)


def _direction(carrier: Mapping[str, Any]) -> np.ndarray:
    axis = np.array(carrier["axis"], dtype=float)
    return axis / np.linalg.norm(axis)
