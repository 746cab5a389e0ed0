"""Files from before the robot file, of loops, elastic joints or limits: read as sections of it.

    loops    active: [..]  loops: {tip: ..}  start: {..}        loops: {active: [..], cut_joints: {tip: ..}, start: {..}}
    elastic  joints: {elbow: {stiffness: .., motor_link: ..}}   elastic_joints, motors, drives: see JOINT below
             springs: {flap: ..}                                springs: {flap: ..}
    limits   joint_limits: {elbow: {max_effort: ..}}            limits: {elbow: {max_effort: ..}}

A node's parameter file, /**: {ros__parameters: {joint_limits: ..}}, is one of limits too, also with parameters by their whole
names, joint_limits.elbow.max_effort: 90.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from ...errors import near
from .problem import Path, Problem

LOOPS, ELASTIC, LIMITS = ("active", "loops", "start"), ("joints", "springs"), "joint_limits"
# Of an elastic joint: the old key, its section now, and its key there.
JOINT = {"stiffness": ("elastic_joints", "stiffness"), "gear_ratio": ("drives", "gear_ratio"),
         "motor_inertia": ("drives", "rotor_inertia"), "motor_viscous": ("drives", "viscous"),
         "motor_coulomb": ("drives", "coulomb"), "motor_link": ("motors", "link"), "motor_axis": ("motors", "axis"),
         "motor_mass": ("motors", "mass"), "motor_transverse_inertia": ("motors", "transverse_inertia"),
         "motor_position": ("motors", "position")}
WAS = {now: key for key, now in JOINT.items()}


class Old(NamedTuple):
    """kind: a word for the file; content: as a robot file's; written: from a path there to that in the old file."""

    kind: str
    content: dict[str, Any]
    written: Callable[[Path], Path]
    problems: list[Problem]


def as_it_is(path: Path) -> Path:
    """Of a robot file."""
    return path


def converted(content: Mapping) -> Old | None:
    """None if it is no old file."""
    if "version" in content:
        return None
    limits = _limits(content)
    if limits is not None:
        return limits
    if any(key in content for key in ELASTIC):
        return _elastic(content)
    if "active" in content or ("loops" in content and not _new_loops(content["loops"])):
        return _loops(content)
    return None


def _new_loops(loops: Any) -> bool:
    return isinstance(loops, Mapping) and bool({"active", "cut_joints"} & set(loops))


def _loops(content: Mapping) -> Old:
    loops = {{"loops": "cut_joints"}.get(key, key): value for key, value in content.items() if key in LOOPS}
    return Old("loops", {"version": 1, "loops": loops}, _in_loops, _unknown(content, LOOPS, ()))


def _in_loops(path: Path) -> Path:
    return ("loops", *path[2:]) if path[1:2] == ("cut_joints",) else path[1:]


def _elastic(content: Mapping) -> Old:
    problems = _unknown(content, ELASTIC, ())
    sections: dict[str, Any] = {"version": 1}
    joints = content.get("joints", {})
    if not isinstance(joints, Mapping):
        return Old("elastic joints", sections | {"elastic_joints": joints}, _in_elastic, problems)
    for name, entry in joints.items():
        if not isinstance(entry, Mapping):
            sections.setdefault("elastic_joints", {})[name] = entry
            continue
        problems += _unknown(entry, JOINT, ("joints", name))
        for key, value in entry.items():
            if key in JOINT:
                section, now = JOINT[key]
                sections.setdefault(section, {}).setdefault(name, {})[now] = value
    if "springs" in content:
        sections["springs"] = content["springs"]
    return Old("elastic joints", sections, _in_elastic, problems)


def _in_elastic(path: Path) -> Path:
    if not path or path[0] == "springs":
        return path
    key = WAS.get((str(path[0]), str(path[2])), path[2]) if len(path) > 2 else None
    return ("joints", path[1], key, *path[3:]) if key else ("joints", *path[1:])


def _limits(content: Mapping) -> Old | None:
    inside: Path = ()
    given: Any = content
    if len(content) == 1:  # the parameter file of a node
        (node, inner), = content.items()
        if isinstance(inner, Mapping) and "ros__parameters" in inner:
            given, inside = inner["ros__parameters"], (node, "ros__parameters")
    parameters = given if isinstance(given, Mapping) else {}
    limits = parameters.get(LIMITS) or _by_whole_names(parameters)
    if LIMITS not in parameters and not limits:
        return Old("limits", {"version": 1}, as_it_is, [
            Problem(inside, f"holds no mapping '{LIMITS}' of joints to their limits")]) if inside else None
    problems = [] if inside or LIMITS not in parameters else _unknown(content, (LIMITS,), ())
    if isinstance(limits, Mapping):
        limits = {joint: {key: _as_number(value) for key, value in entry.items()} if isinstance(entry, Mapping) else entry
                  for joint, entry in limits.items()}
    return Old("limits", {"version": 1, "limits": limits}, partial(_in_limits, inside, LIMITS not in parameters), problems)


def _in_limits(inside: Path, by_whole_names: bool, path: Path) -> Path:
    if by_whole_names and len(path) == 3:
        return (*inside, f"{LIMITS}.{path[1]}.{path[2]}")
    return (*inside, LIMITS, *path[1:]) if path else inside


def _by_whole_names(content: Mapping) -> dict[str, dict[str, Any]]:
    """joint_limits.<joint>.<limit>: as nodes need them for joints whose names contain dots."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in content.items():
        head, _, rest = str(name).partition(".")
        joint, _, limit = rest.rpartition(".")
        if head == LIMITS and joint:
            found.setdefault(joint, {})[limit] = value
    return found


def _as_number(value: Any) -> Any:
    """What people quote is a number to nodes as well."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _unknown(content: Mapping, allowed: Any, inside: Path) -> list[Problem]:
    return [Problem((*inside, key), f"is not known; allowed are {', '.join(allowed)}{near(key, allowed)}")
            for key in content if key not in allowed]
