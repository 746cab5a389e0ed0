"""Files from before the robot file, of loops, elastic joints or limits, and nodes' parameters: read as sections of it.

    loops    active: [..]  loops: {tip: ..}  start: {..}        loops: {active: [..], cut_joints: {tip: ..}, start: {..}}
    elastic  joints: {elbow: {stiffness: .., motor_link: ..}}   elastic_joints, motors, drives: see JOINT below
             springs: {flap: ..}                                springs: {flap: ..}
    limits   joint_limits: {elbow: {max_effort: ..}}            limits: {elbow: {max_effort: ..}}

Of nodes' parameters, /**: {ros__parameters: {joint_limits: .., joint_dynamics: ..}}, what they say of the robot is read,
also by their whole names, joint_limits.elbow.max_effort: 90.0; all else is the node's. What a file says of a node by name goes
over what it says of all, as in ROS; two nodes with different robots are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from ...errors import near, shown
from .problem import Path, Problem

LOOPS, ELASTIC, LIMITS = ("active", "loops", "start"), ("joints", "springs"), "joint_limits"
PARAMETERS = "ros__parameters"
DYNAMICS = {"rotor_inertia": "drives", "gear_ratio": "drives",
            **dict.fromkeys(("coulomb", "viscous", "offset", "smoothing", "stribeck", "stribeck_velocity", "asymmetry",
                             "load_dependent", "load_smoothing"),
                            "friction")}
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
    """Of a file of limits, or of a node's parameters."""
    if LIMITS in content:
        return _parameters("limits", {(): content}, _unknown(content, (LIMITS,), ()))
    if any(str(key).startswith(f"{LIMITS}.") for key in content):
        return _parameters("limits", {(): content}, [])
    nodes = {(node, PARAMETERS): inner[PARAMETERS] for node, inner in content.items()
             if isinstance(inner, Mapping) and PARAMETERS in inner}
    if not nodes or len(nodes) < len(content):
        return None
    general_first = sorted(nodes, key=lambda inside: "*" not in str(inside[0]))
    return _parameters("a node's parameters", {inside: nodes[inside] for inside in general_first}, [])


def _parameters(kind: str, parts: Mapping[Path, Any], problems: list[Problem]) -> Old:
    """parts: what to read, by where it is; what comes later goes over what is said of all nodes."""
    said, first = _of_robot(parts, problems), next(iter(parts))
    sections: dict[str, Any] = {"version": 1}
    written: dict[Path, Path] = {(): first}
    payload: dict[str, tuple[Path, Any]] = {}
    for name, (old, value) in said.items():
        head, _, rest = name.partition(".")
        joint, _, key = rest.rpartition(".")
        if head == "payload":
            payload[rest] = old, value
        elif head in ("gravity", "use_friction"):
            _put(sections, ("urdf_friction" if head == "use_friction" else head,), value, written, old)
        else:
            section = "limits" if head == LIMITS else DYNAMICS[key]
            _put(sections, (section, *filter(None, (joint, key))), _as_number(value), written, old)
    if (link := payload.pop("link", ((), ""))[1]) and payload.get("mass", ((), 0.0))[1]:
        for key, (old, value) in payload.items():
            _put(sections, ("payloads", link, key), value, written, old)
    if first and len(sections) == 1:
        problems = [Problem(first, f"says nothing of the robot: no '{LIMITS}', no 'joint_dynamics'")]
    return Old(kind, sections, partial(_looked_up, written), problems)


def _of_robot(parts: Mapping[Path, Any], problems: list[Problem]) -> dict[str, tuple[Path, Any]]:
    """Name -> where it is, and value; what two nodes say differently is a problem."""
    found: dict[str, tuple[Path, Any]] = {}
    for inside, given in parts.items():
        for path, value in _leaves(given if isinstance(given, Mapping) else {}, ()):
            name = ".".join(map(str, path))
            head, _, rest = name.partition(".")
            if not (head in (LIMITS, "payload") or (head in ("gravity", "use_friction") and not rest)
                    or (head == "joint_dynamics" and rest.rpartition(".")[2] in DYNAMICS)):
                continue
            before, other = found.get(name, ((), value))
            if before and shown(other, 1000) != shown(value, 1000) and "*" not in str(before[0]):
                problems.append(Problem((*inside, *path), f"is {shown(value)}, and {shown(other)} for node '{before[0]}'; of "
                                                          "one robot both must say the same"))
            found[name] = (*inside, *path), value
    return found


def _leaves(given: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(given, Mapping) and (given or not path):
        for key, value in given.items():
            yield from _leaves(value, (*path, key))
    else:
        yield path, given


def _put(sections: dict[str, Any], path: Path, value: Any, written: dict[Path, Path], old: Path) -> None:
    """A value into nested mappings; where it was written, and what it is in."""
    *outer, last = path
    inside: Any = sections
    for key in outer:
        inside = inside.setdefault(key, {})
    if isinstance(inside, dict):
        inside[last] = value
    for k in range(1, len(path) + 1):
        written.setdefault(path[:k], old[:max(1, len(old) - len(path) + k)])


def _looked_up(written: Mapping[Path, Path], path: Path) -> Path:
    """Of a value that is missing, the place around it and its name."""
    known = path
    while known not in written:
        known = known[:-1]
    return (*written[known], *path[len(known):])


def _as_number(value: Any) -> Any:
    """What people quote is a number to nodes as well."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _unknown(content: Mapping, allowed: Any, inside: Path) -> list[Problem]:
    return [Problem((*inside, key), f"is not known; allowed are {', '.join(allowed)}{near(key, allowed)}")
            for key in content if key not in allowed]
