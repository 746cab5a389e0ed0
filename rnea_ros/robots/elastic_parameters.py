"""Elastic joints and their motors, declared in a YAML file beside the URDF: read and checked, every problem told at once.

    joints:                            # driven by motors: ElasticRobot
      elbow:
        stiffness: 100.0               # N m/rad (prismatic joint: N/m); left out, the joint is rigid
        gear_ratio: 10.0               # turns of the rotor for one of the joint (rad/m); default 1, negative turns it round
        motor_inertia: 0.004           # kg m^2, of the rotor about its own axis
        motor_link: upper_arm          # who carries the motor and turns its spinning rotor; left out, the base, see below
        motor_axis: [0, 0, 1]          # axis of the rotor, in the frame of motor_link; needed with motor_link
        motor_viscous: 0.1             # friction of the motor, as the joint's side of the gear feels it [N m s/rad]
        motor_coulomb: 0.2             # [N m]
        motor_mass: 1.0                # kg; only where the URDF's motor_link does not already hold the rotor
        motor_transverse_inertia: 0.006  # kg m^2, of that rotor about the axes across
        motor_position: [0, 0, 0.3]    # its centre of mass, in the frame of motor_link [m]
    springs:                           # held by nothing but a spring: SpringRobot
      flap: {stiffness: 40.0, rest: 0.7}  # relaxed at q = rest

Without motor_link a rotor spins as if its motor stood in the base: only its own turns count, as for
JointDynamics.rotor_inertia.
This is Spong's model, good where gear ratios are high. With it, the inverse dynamics of any arm needs four derivatives of q.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..algebra.vectors import Z
from ..algorithms.elastic_joints import Spring
from ..algorithms.mixed_joints import Motor
from ..errors import ModelError, shown, some
from ..model import yaml_file
from ..model.tree import JointDynamics, Model
from ..model.yaml_file import number
from .inputs.payload import Payload

SECTIONS = {"joints": "ElasticRobot", "springs": "SpringRobot"}


class Declaration(NamedTuple):
    """Content of a file, unchecked, and a word for where it came from."""

    content: Mapping
    where: str


Source = str | os.PathLike | Mapping | Declaration


class Range(NamedTuple):
    """Of a number: what it must be, in words and as a test."""

    text: str
    holds: Any


POSITIVE = Range("a number above zero", lambda x: x > 0.0)
NOT_NEGATIVE = Range("a number not below zero", lambda x: x >= 0.0)
NOT_ZERO = Range("a number other than zero", lambda x: x != 0.0)
ANY = Range("a number", lambda x: True)
VECTOR = Range("a list of three numbers", None)
NAME = Range("the name of a link", None)

JOINT = {"stiffness": POSITIVE, "gear_ratio": NOT_ZERO, "motor_inertia": NOT_NEGATIVE, "motor_link": NAME,
         "motor_axis": VECTOR, "motor_viscous": NOT_NEGATIVE, "motor_coulomb": NOT_NEGATIVE, "motor_mass": POSITIVE,
         "motor_transverse_inertia": POSITIVE, "motor_position": VECTOR}
SPRING = {"stiffness": POSITIVE, "rest": ANY}
ROTOR = ("motor_transverse_inertia", "motor_position")


class Declared(NamedTuple):
    """Motors in the order of the robot's joints, and the rotors that are to be added to links as rigid bodies."""

    motors: tuple[Motor, ...]
    rotors: tuple[Payload, ...]


def beside(urdf: Any) -> Path:
    """Where the declaration of a URDF is looked for: robot.urdf -> robot.elastic.yaml."""
    text = os.fspath(urdf) if isinstance(urdf, str | os.PathLike) else ""
    if not text or text.lstrip().startswith("<"):
        raise ModelError("a URDF given as text has no folder to look in: give the parameters too, as a path or a mapping",
                         "elastic joints")
    return Path(text).with_suffix(".elastic.yaml")


def read(source: Source) -> Declaration:
    """From the path of a YAML file, or from the mapping in it. ModelError if it cannot be read."""
    if isinstance(source, Declaration):
        return source
    if isinstance(source, Mapping):
        return Declaration(source, "elastic joints")
    content = yaml_file.content(source, "a YAML file is needed there that says, for instance, 'joints: {elbow: "
                                        "{stiffness: 100.0, gear_ratio: 10.0, motor_inertia: 0.004}}'")
    if not isinstance(content, Mapping):
        raise ModelError("holds no 'joints:' and no 'springs:'", str(source))
    return Declaration(content, str(source))


def motors(model: Model, source: Source) -> Declared:
    """The motors of the section `joints`; ModelError lists everything that is wrong."""
    content, where = read(source)
    problems: list[str] = []
    found, rotors = [], []
    for name, entry in _section(model, content, "joints", JOINT, problems).items():
        _check_motor(model, name, entry, problems)
        if not problems:
            found.append(_motor(model, name, entry))
            if "motor_mass" in entry:
                rotors.append(_rotor(model, entry))
    if problems:
        raise ModelError(problems, where)
    return Declared(tuple(sorted(found, key=lambda motor: motor.coordinate)), tuple(rotors))


def springs(model: Model, source: Source) -> dict[int, Spring]:
    """{coordinate: Spring} of the section `springs`; ModelError lists everything that is wrong."""
    content, where = read(source)
    problems: list[str] = []
    found = {}
    for name, entry in _section(model, content, "springs", SPRING, problems).items():
        number = model.joint_names.index(name)
        if "stiffness" not in entry:
            problems.append(f"joint '{name}': stiffness is missing; a number above zero is needed [N m/rad, N/m]")
        followers = [link.joint for link in model.links if link.coordinate == number and link.joint != name]
        if followers:
            problems.append(f"joint '{name}' is followed by {followers}: mimic joints on a spring joint are not supported")
        found[number] = Spring(entry.get("stiffness", math.nan), entry.get("rest", 0.0))
    if problems:
        raise ModelError(problems, where)
    return found


def _section(model: Model, content: Mapping, section: str, allowed: Mapping[str, Range],
             problems: list[str]) -> dict[str, dict[str, Any]]:
    """Entries whose joint exists, with the values that are what they must be."""
    problems += [f"'{key}' is not known; the sections are {', '.join(SECTIONS)}" for key in content if key not in SECTIONS]
    entries = content.get(section)
    if not isinstance(entries, Mapping) or not entries:
        others = [key for key in SECTIONS if key != section and key in content]
        hint = f"; it has '{others[0]}', which {SECTIONS[others[0]]} reads" if others else ""
        problems.append(f"{SECTIONS[section]} needs a section '{section}' with at least one joint{hint}")
        return {}
    good = {}
    for name, entry in entries.items():
        if name not in model.joint_names:
            problems.append(_no_such_joint(model, name))
        elif not isinstance(entry, Mapping):
            problems.append(f"joint '{name}' needs values such as 'stiffness: 100.0', not {shown(entry, 60)}")
        else:
            good[name] = {key: _value(f"joint '{name}': {key}", value, allowed, key, problems) for key, value in entry.items()}
    return good


def _no_such_joint(model: Model, name: Any) -> str:
    leader = next((model.joint_names[link.coordinate] for link in model.links if link.joint and link.joint == name), "")
    why = f"only follows '{leader}'" if leader else f"is not in robot '{model.name}'"
    return f"joint {shown(name, 60)} {why}; its joints: {some(model.joint_names)}"


def _value(where: str, value: Any, allowed: Mapping[str, Range], key: Any, problems: list[str]) -> Any:
    """The value as a float, array or string, or as it is with a problem noted."""
    if key not in allowed:
        problems.append(f"{where} is not known; allowed are {', '.join(allowed)}")
        return value
    needed = allowed[key]
    if needed is NAME:
        good = isinstance(value, str)
    elif needed is VECTOR:
        numbers = [number(x) for x in value] if isinstance(value, list | tuple | np.ndarray) else []
        good, value = len(numbers) == 3 and all(map(math.isfinite, numbers)), numbers if len(numbers) == 3 else value
    else:
        size = number(value)
        good = math.isfinite(size) and needed.holds(size)
        value = size if good else value
    if not good:
        problems.append(f"{where} is {shown(value, 60)}; {needed.text} is needed")
    return value


def _check_motor(model: Model, name: str, entry: Mapping[str, Any], problems: list[str]) -> None:
    """What the values of one joint need of each other and of the model."""
    where = f"joint '{name}':"
    link = entry.get("motor_link")
    if isinstance(link, str) and link not in model.frames:
        problems.append(f"{where} motor_link '{link}' is not in robot '{model.name}'; its links: {some(model.frames)}")
    if ("motor_axis" in entry) != ("motor_link" in entry):
        problems.append(f"{where} motor_link and motor_axis need each other: the axis is seen in that link's frame")
    if "motor_axis" in entry and np.shape(entry["motor_axis"]) == (3,) and not np.any(entry["motor_axis"]):
        problems.append(f"{where} motor_axis is {shown(entry['motor_axis'], 60)}; a direction is needed")
    if "stiffness" in entry and not entry.get("motor_inertia"):
        problems.append(f"{where} an elastic joint needs motor_inertia above zero: nothing else holds its motor back")
    if "motor_mass" in entry and not {"motor_link", "motor_transverse_inertia"} <= set(entry):
        problems.append(f"{where} motor_mass needs motor_link and motor_transverse_inertia: all of the rotor is added there")
    if "motor_mass" in entry and number(entry.get("motor_inertia")) > 2.0 * number(entry.get("motor_transverse_inertia")):
        problems.append(f"{where} motor_inertia {entry['motor_inertia']} exceeds twice motor_transverse_inertia "
                        f"{entry['motor_transverse_inertia']}; no body is like that")
    alone = " and ".join(key for key in ROTOR if key in entry and "motor_mass" not in entry)
    if alone:
        problems.append(f"{where} {alone} without motor_mass; leave them out where the URDF's link holds the rotor")
    if any(link.term.rotor_inertia for link in model.links if link.joint == name):
        problems.append(f"{where} has a rotor inertia among the joint dynamics already; declare it here or there, not twice")


def _motor(model: Model, name: str, entry: Mapping[str, Any]) -> Motor:
    term = JointDynamics(entry.get("motor_inertia", 0.0), entry.get("gear_ratio", 1.0), entry.get("motor_coulomb", 0.0),
                     entry.get("motor_viscous", 0.0))
    number, axis = 0, Z  # of a motor in the base any axis will do: it does not turn
    if "motor_link" in entry:
        frame = model.frame(entry["motor_link"])
        number, axis = frame.link, frame.R @ _direction(entry)
    return Motor(model.joint_names.index(name), number, axis, term, entry.get("stiffness", math.inf))


def _rotor(model: Model, entry: Mapping[str, Any]) -> Payload:
    """The rotor at rest as a rigid body: (1) makes it the same at every angle."""
    z, across = _direction(entry), entry["motor_transverse_inertia"]
    inertia = across * np.eye(3) + (entry.get("motor_inertia", 0.0) - across) * np.outer(z, z)
    place = entry.get("motor_position", (0.0, 0.0, 0.0))
    return Payload.on_link(model, entry["motor_link"], entry["motor_mass"], place, inertia)


def _direction(entry: Mapping[str, Any]) -> np.ndarray:
    axis = np.array(entry["motor_axis"], dtype=float)
    return axis / np.linalg.norm(axis)
