"""Parameter files of ROS, looked at before nodes are started: what each node is given, and whether all get the same robot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rnea_ros import InputError
from rnea_ros.errors import some
from rnea_ros.model.yaml_file import read
from rnea_ros.nodes.common.parameter_table import JOINT_DYNAMICS, MODEL, find

PARAMETERS = "ros__parameters"
FREE = ("robot_description", "backend")  # launch gives the one to all; the other changes no number
ROBOT = tuple(entry for entry in MODEL + JOINT_DYNAMICS if entry.name not in FREE)


def given(path: str | Path, node: str) -> dict[str, Any]:
    """Names and values of the parameters that a file has for a node of this full name (/left/dynamics_node). RneaError if it
    is no YAML."""
    found: dict[str, Any] = {}
    for name, values in _sections(read(path, "parameters of nodes are needed").content):
        pattern = re.escape(f"/{name.lstrip('/')}").replace(r"/\*", r"(/\w+)")  # as rcl: /* is one name, /** any number
        if re.fullmatch(pattern.replace(r"\*", "*"), node):
            found |= _flat(values)
    return found


def check_same_robot(path: str | Path, nodes: Sequence[str]) -> None:
    """Raise InputError if a file gives nodes, by their full names, robots that differ."""
    if len(nodes) < 2:
        return
    robots = {node: _robot(given(path, node)) for node in nodes}
    names = {name for robot in robots.values() for name in robot}
    differing = sorted(name for name in names if len({repr(robot.get(name)) for robot in robots.values()}) > 1)
    if differing:
        raise InputError(f"{path}: {some(nodes)} would compute with different robots, since {some(differing)} "
                         f"{'differs' if len(differing) == 1 else 'differ'} among them: what a robot is belongs under /**, "
                         "the section for every node")


def _robot(values: dict[str, Any]) -> dict[str, Any]:
    """What values say of the robot; what they leave out is as in the tables, where those know it."""
    defaults = {entry.name: entry.default for entry in MODEL if entry in ROBOT}
    return defaults | {name: value for name, value in values.items() if find(name, ROBOT)}


def _sections(tree: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(names of nodes, parameters); names may be nested, as namespaces are."""
    if isinstance(tree, dict):
        for name, below in tree.items():
            if name == PARAMETERS:
                yield prefix, below
            else:
                yield from _sections(below, f"{prefix}/{name}".lstrip("/") if prefix else str(name))


def _flat(tree: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(tree, dict):
        return {}
    found: dict[str, Any] = {}
    for name, value in tree.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return found
