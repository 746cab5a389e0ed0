"""What lies beneath a robot of any kind: its tree of links, what the kind adds to it, a pose to begin with, a fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from ..algebra.arrays import Array
from ..errors import some
from ..model.tree import Frame
from .general import GeneralRobot
from .protocol import AnyRobot
from .robot import Robot


def has_moving_base(robot: AnyRobot) -> bool:
    """Return whether calls of the robot take base=BaseState(...)."""
    return isinstance(robot, GeneralRobot) and robot.has_moving_base


def tree(robot: AnyRobot) -> Robot:
    """The tree of links that a robot of any kind has: cut open, without springs and motors."""
    if isinstance(robot, GeneralRobot):
        return robot.tree
    return cast(Robot, robot)


def links(robot: AnyRobot) -> tuple[str, ...]:
    """Names of all links."""
    hidden = robot.loops.hidden(robot.tree.model) if isinstance(robot, GeneralRobot) and robot.loops else ()
    return tuple(link for link in tree(robot).model.frames if link not in hidden)


def joints(robot: AnyRobot) -> tuple[str, ...]:
    """Names of all joints of the tree that the robot has."""
    hidden = robot.loops.virtual if isinstance(robot, GeneralRobot) and robot.loops else ()
    return tuple(name for k, name in enumerate(tree(robot).joint_names) if k not in hidden)


def rest(robot: AnyRobot) -> Array:
    """(order + 1, n): q, qd ... of a robot that stands still; with all joints at zero, or where its loops are closed."""
    motion = np.zeros((robot.order + 1, robot.n))
    if isinstance(robot, GeneralRobot):
        motion[0] = robot.start[[tree(robot).joint_names.index(name) for name in robot.joint_names]]
    return motion


def model_id(robot: AnyRobot) -> str:
    """Fingerprint of everything that decides the numbers: 16 hexadecimal digits; of a tree alone, that of the tree."""
    found, declared = tree(robot).model_id, _declared(robot)
    if not declared:
        return found
    return hashlib.sha256(repr((type(robot).__name__, [found], _plain(declared))).encode()).hexdigest()[:16]


def _declared(robot: AnyRobot) -> tuple[Any, ...]:
    """What the kind adds, in numbers."""
    if isinstance(robot, GeneralRobot):
        return (robot.declaration,)
    return ()


def _plain(value: Any) -> Any:
    """Lists of numbers and words, each written out in full."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Frame):
        value = (value.link, value.R, value.P)
    if isinstance(value, Mapping):
        return [(key, _plain(entry)) for key, entry in sorted(value.items())]
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


def couplings(robot: Robot) -> list[str]:
    """Return the motors of coupled transmissions with their speeds: "wrist.motor_6 = 32 joint_5 + 32 joint_6"."""
    return [f"{motor.name} = " + " + ".join(f"{ratio:g} {robot.joint_names[k]}" for k, ratio in zip(
        motor.coordinates, motor.ratios, strict=True)) for motor in robot.model.coupled_motors]


def described(robot: AnyRobot) -> list[str]:
    """What the kind of robot adds to its tree, a line each."""
    lines: list[tuple[str, Any]] = []
    lines.append(("coupled motors", couplings(tree(robot))))
    if isinstance(robot, GeneralRobot):
        roles = robot.roles
        platforms = [f"{link}, {robot.model.links[robot.model.frame(link).link].m:.6g} kg" for link in robot.platforms]
        lines += [("platform", platforms), ("motion given", roles.given), ("state", roles.state),
                  ("follows", roles.follows), ("elastic joints", robot.elastic_joints),
                  ("motors", [f"{robot.tree.joint_names[motor.coordinate]} on {robot.model.links[motor.link].name}"
                              for motor in roles.motors]), ("contacts", [cut.name for cut in roles.contacts]),
                  ("wheels", [wheel.name for wheel in roles.wheels])]
    payloads = tree(robot).payloads
    lines.append(("payloads", [f"{payload.mass:g} kg on {link}" for link, payload in payloads.items()]))
    return [type(robot).__name__, *(f"{what}: {some(values)}" for what, values in lines if values)]
