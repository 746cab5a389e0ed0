"""Limits of joints from a YAML file, named as in ros2_control and MoveIt, over those of the URDF.

    joint_limits:
      shoulder:
        min_position: -3.0              # rad or m; both, where the URDF has none
        max_position: 3.0
        max_velocity: 2.0
        max_acceleration: 15.0
        max_jerk: 500.0
        max_effort: 90.0                # N m or N
        max_effort_rate: 2000.0         # N m/s or N/s; nothing in ROS names it yet
        max_joint_force: 400.0          # N: norm of the internal force that the joint transmits; also of mimic joints
        has_velocity_limits: false      # takes a limit away: not known, not enforced

What the file leaves out stays as in the URDF. A node's parameter file, /**: {ros__parameters: {joint_limits: ..}}, is one too,
also with parameters by their whole names, joint_limits.shoulder.max_effort: 90.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ModelError, near, shown, some
from ..model import yaml_file
from ..model.tree import Limits, frozen
from ..robots.robot import Robot

KEYS = {"min_position": "lower", "max_position": "upper",
        **{f"max_{field.name}": field.name for field in fields(Limits) if field.name not in ("lower", "upper")}}
FORCE = "max_joint_force"
SWITCHES = {"has_position_limits": ("min_position", "max_position"),
            **{f"has_{key.removeprefix('max_')}_limits": (key,) for key in [*KEYS, FORCE] if not key.endswith("position")}}


def read(path: str | Path, robot: Robot) -> tuple[Limits, dict[str, float]]:
    """The limits of a robot, and the largest internal joint forces by joint. ModelError tells everything that is wrong."""
    values = {field.name: np.array(getattr(robot.limits, field.name)) for field in fields(Limits)}
    forces: dict[str, float] = {}
    problems: list[str] = []
    for joint, given in _joint_limits(path).items():
        if joint not in robot.moving_joints:
            problems.append(f"joint '{joint}' does not exist; the joints are {some(robot.moving_joints)}")
            continue
        limits = _numbers(joint, given, problems)
        if FORCE in limits:
            forces[joint] = limits.pop(FORCE)
        if limits and joint not in robot.joint_names:
            problems.append(f"joint '{joint}' follows another one (mimic): only {FORCE} can be given for it")
            continue
        for key, value in limits.items():
            values[KEYS[key]][robot.joint_names.index(joint)] = value
        if "min_position" in limits or "max_position" in limits:
            problems += _range(joint, *(float(values[name][robot.joint_names.index(joint)]) for name in ("lower", "upper")))
    if problems:
        raise ModelError(problems, str(path))
    return Limits(**{name: frozen(array) for name, array in values.items()}), {k: v for k, v in forces.items() if v == v}


def _range(joint: str, lower: float, upper: float) -> list[str]:
    """What is wrong with position limits after those of the file went over those of the URDF."""
    if np.isnan(lower) != np.isnan(upper):
        return [f"joint '{joint}': of min_position and max_position only one is known; give both"]
    if lower > upper:
        return [f"joint '{joint}': min_position {lower:g} is above max_position {upper:g}"]
    return []


def _joint_limits(path: str | Path) -> Mapping[str, Any]:
    given = yaml_file.content(path, "a mapping 'joint_limits' of joints to their limits is needed there")
    if isinstance(given, Mapping) and len(given) == 1:  # the parameter file of a node
        inner = next(iter(given.values()))
        given = inner["ros__parameters"] if isinstance(inner, Mapping) and "ros__parameters" in inner else given
    found = given.get("joint_limits", _by_whole_names(given)) if isinstance(given, Mapping) else None
    if not isinstance(found, Mapping):
        raise ModelError("holds no mapping 'joint_limits' of joints to their limits", str(path))
    return found


def _by_whole_names(given: Mapping) -> dict[str, dict[str, Any]] | None:
    """joint_limits.<joint>.<limit>: as nodes need them for joints whose names contain dots."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in given.items():
        head, _, rest = str(name).partition(".")
        joint, _, limit = rest.rpartition(".")
        if head == "joint_limits" and joint:
            found.setdefault(joint, {})[limit] = value
    return found or None


def _numbers(joint: str, given: Any, problems: list[str]) -> dict[str, float]:
    """The limits of one joint by key; NaN for those that are switched off."""
    if not isinstance(given, Mapping):
        problems.append(f"joint '{joint}': {given!r:.60} is no mapping of limits")
        return {}
    found: dict[str, float] = {}
    for key, value in given.items():
        if key in SWITCHES and isinstance(value, bool):
            continue
        if key not in KEYS and key != FORCE:
            wrong = "must be true or false" if key in SWITCHES else f"is not known{near(key, [*KEYS, FORCE, *SWITCHES])}"
            problems.append(f"joint '{joint}': '{key}' {wrong}")
        elif not np.isfinite(value := _number(given[key])):
            problems.append(f"joint '{joint}': {key} is {shown(given[key], 60)}; a finite number is needed")
        elif value <= 0.0 and not key.endswith("position"):
            problems.append(f"joint '{joint}': {key} is {value:g}; a number above zero is needed")
        else:
            found[key] = value
    off = [key for switch, keys in SWITCHES.items() if given.get(switch) is False for key in keys]
    return {**found, **dict.fromkeys(off, np.nan)}


def _number(value: Any) -> float:
    """NaN for what is none. YAML 1.1 takes 1e3 for text; the parameter files of nodes, and people, for a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return np.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return np.nan
