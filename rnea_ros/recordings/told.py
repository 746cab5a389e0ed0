"""What a recording must tell of a robot beside its joints, in columns of their own: motors behind springs, a base that moves.

The motors of elastic joints are read under the names that `motor_joint` of the robot file gives them, seen behind their gears.
A base that moves is read as six joints more: its place in the world, and roll, pitch, yaw as URDFs have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..errors import InputError, some
from ..robots import kinds
from ..robots.elastic import ElasticRobot
from ..robots.inputs.base_state import BaseState, from_coordinates
from ..robots.protocol import AnyRobot
from .motion_csv import BLOCKS, RecordedMotion, derivative

BASE = ("base_x", "base_y", "base_z", "base_roll", "base_pitch", "base_yaw")  # [m, rad]
TURNS = ("prismatic",) * 3 + ("continuous",) * 3


class Told(NamedTuple):
    """names, types: columns, those of the robot's joints first; blocks: q and derivatives, as far as they may be wanted."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    blocks: tuple[str, ...] = BLOCKS


def told(robot: AnyRobot) -> Told:
    """What is to be read."""
    names, types = robot.joint_names, robot.joint_types
    if isinstance(robot, kinds.MOVING):
        return Told((*names, *BASE), (*types, *TURNS))
    if isinstance(robot, ElasticRobot):
        if motors := measured(robot):
            elastic = [types[names.index(joint)] for joint in robot.elastic_joints]
            return Told((*names, *motors), (*types, *elastic))
        return Told(names, types, tuple(map(derivative, range(robot.order + 1))))
    return Told(names, types)


def measured(robot: ElasticRobot) -> tuple[str, ...]:
    """Names of the motors of all elastic joints; none where the robot file does not name every one."""
    found = robot.motor_joints
    return tuple(found[joint] for joint in robot.elastic_joints) if len(found) == len(robot.elastic_joints) else ()


def joints(robot: AnyRobot, motion: RecordedMotion) -> tuple[np.ndarray, ...]:
    """q, qd, qdd, qddd (samples, n) of the robot's own joints."""
    return tuple(block[:, :robot.n] for block in (motion.q, motion.qd, motion.qdd, motion.qddd))


def others(robot: AnyRobot, motion: RecordedMotion) -> tuple[np.ndarray, ...]:
    """The same of what else was read."""
    return tuple(block[:, robot.n:] for block in (motion.q, motion.qd, motion.qdd, motion.qddd))


def base(robot: AnyRobot, motion: RecordedMotion) -> tuple[BaseState, np.ndarray, np.ndarray]:
    """State, acceleration and jerk of the base, one for each sample."""
    return from_coordinates(np.stack(others(robot, motion)))


def flat(robot: ElasticRobot, motion: RecordedMotion) -> tuple[np.ndarray, ...]:
    """q and as many derivatives as the torque rate takes."""
    given = (*joints(robot, motion), *motion.higher)
    return given[:robot.order + 1]


def check(robot: AnyRobot, blocks: Sequence[str]) -> None:
    """Raise InputError where a recording with these blocks does not say how the motors of elastic joints move."""
    missing = [block for block in told(robot).blocks[len(BLOCKS):] if block not in blocks]
    if missing and isinstance(robot, ElasticRobot):
        columns = some(f"{block}_<joint>" for block in missing)
        raise InputError(f"how the motors of robot '{robot.name}' move behind the elastic joints {some(robot.elastic_joints)} "
                         f"is not known. Either the recording needs columns {columns}; or "
                         "the robot file names the motors as the recording does (elastic_joints.<joint>.motor_joint), and "
                         "that has their positions")
