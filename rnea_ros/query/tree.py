"""Tree of a robot as plain names and numbers: joints, MDH tree, inertias, base parameters."""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from typing import Any

from ..algorithms.base_parameters import base_parameters
from ..algorithms.inertial_parameters import ten
from ..model.tree import NO_COORDINATE, Limits, Link
from ..robots.inputs.base_state import quaternion
from ..robots.inputs.payload import unified
from ..robots.tree import TreeDynamics

Rows = list[dict[str, Any]]


def tree(robot: TreeDynamics, floating_base: bool = False, limits: Limits | None = None) -> dict[str, Any]:
    """Return the tree, payloads included. Names, units and frames are those of rnea_msgs/srv/GetTree.

    floating_base : base parameters for a free base
    limits        : instead of the robot's
    """
    links = unified(robot.model, tuple(robot.payloads.values())).links
    return {
        "robot_name": robot.name,
        "root_link": robot.root_link,
        "gravity": robot.gravity_vector.tolist(),
        "total_mass": float(robot.total_mass),
        "joints": _joints(robot, limits or robot.limits),
        "links": [_link(link, robot.joint_names) for link in links],
        "frames": _frames(robot),
        "base_parameters": _base_parameters(robot, floating_base),
        "reconstruction_error": float(robot.reconstruction_error),
        "warnings": list(robot.warnings),
    }


def _joints(robot: TreeDynamics, limits: Limits) -> Rows:
    columns = {f.name: getattr(limits, f.name).tolist() for f in fields(limits)}
    return [{"name": name, "type": kind} | {quantity: column[k] for quantity, column in columns.items()}
            for k, (name, kind) in enumerate(zip(robot.joint_names, robot.joint_types, strict=True))]


def _link(link: Link, joint_names: tuple[str, ...]) -> dict[str, Any]:
    mass, *moments = ten(link.m, link.ms, link.J).tolist()
    return {"name": link.name, "joint": link.joint, "antecedent": link.parent, "sigma": link.sigma, **link.geometry._asdict(),
            "coordinate": "" if link.coordinate == NO_COORDINATE else joint_names[link.coordinate],
            "multiplier": link.multiplier, "offset": link.offset,
            "mass": mass, "first_moment": moments[:3], "inertia": moments[3:],
            "rotor_inertia": link.term.armature, "coulomb": link.term.coulomb, "viscous": link.term.viscous,
            "constant_effort": link.term.offset}


def _frames(robot: TreeDynamics) -> Rows:
    return [{"name": name, "link": frame.link, "position": frame.P.tolist(), "orientation": quaternion(frame.R).tolist()}
            for name, frame in robot.model.frames.items()]


@lru_cache(maxsize=2)
def _base_parameters(robot: TreeDynamics, floating_base: bool) -> Rows:
    """Return the base parameters; cached, since they take seconds for a humanoid and a Robot does not change."""
    model = unified(robot.model, tuple(robot.payloads.values()))
    found = base_parameters(model, robot.gravity_vector.tolist(), free_root=floating_base)
    columns = zip(found.names, found.units, found.values_in(model).tolist(), found.relations(), strict=True)
    return [dict(zip(("name", "unit", "value", "relation"), row, strict=True)) for row in columns]
