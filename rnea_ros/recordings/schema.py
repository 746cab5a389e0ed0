"""Columns that a recording of a robot needs: its joints, the motors of its elastic joints, its moving base.

Motors of elastic joints have the names that `motor_joint` of the robot file gives them; their positions are those behind the
gear. A moving base is recorded as six more joints: its position in the world, and roll, pitch and yaw as in URDFs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..errors import InputError, some
from ..robots import kinds
from ..robots.elastic import ElasticRobot
from ..robots.general import GeneralRobot
from ..robots.inputs.base_state import BaseState, from_coordinates
from ..robots.protocol import AnyRobot
from .motion_csv import BLOCKS, RecordedMotion, derivative

BASE = ("base_x", "base_y", "base_z", "base_roll", "base_pitch", "base_yaw")  # [m, rad]
BASE_TYPES = ("prismatic",) * 3 + ("continuous",) * 3


class RecordingSchema(NamedTuple):
    """Joints and derivatives that are read from a recording of a robot.

    names, types : of the joints, those of the robot first
    blocks       : q and as many of its derivatives as the robot can use
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    blocks: tuple[str, ...] = BLOCKS


def recording_schema(robot: AnyRobot) -> RecordingSchema:
    """Return what is read from a recording of a robot."""
    names, types = robot.joint_names, robot.joint_types
    if kinds.has_moving_base(robot):
        return RecordingSchema((*names, *BASE), (*types, *BASE_TYPES))
    if isinstance(robot, GeneralRobot):
        return RecordingSchema(names, types, tuple(map(derivative, range(robot.order + 1))))
    if isinstance(robot, ElasticRobot):
        if motors := motor_names(robot):
            elastic = [types[names.index(joint)] for joint in robot.elastic_joints]
            return RecordingSchema((*names, *motors), (*types, *elastic))
        return RecordingSchema(names, types, tuple(map(derivative, range(robot.order + 1))))
    return RecordingSchema(names, types)


def motor_names(robot: ElasticRobot) -> tuple[str, ...]:
    """Return the names of the motors of all elastic joints; none where the robot file does not name every one."""
    found = robot.motor_joints
    return tuple(found[joint] for joint in robot.elastic_joints) if len(found) == len(robot.elastic_joints) else ()


def joint_motion(robot: AnyRobot, motion: RecordedMotion) -> tuple[np.ndarray, ...]:
    """Return q, qd, qdd, qddd (samples, n) of the robot's own joints."""
    return tuple(block[:, :robot.n] for block in (motion.q, motion.qd, motion.qdd, motion.qddd))


def other_motion(robot: AnyRobot, motion: RecordedMotion) -> tuple[np.ndarray, ...]:
    """Return q, qd, qdd, qddd (samples, k) of the motors or the base."""
    return tuple(block[:, robot.n:] for block in (motion.q, motion.qd, motion.qdd, motion.qddd))


def base_motion(robot: AnyRobot, motion: RecordedMotion) -> tuple[BaseState, np.ndarray, np.ndarray]:
    """Return state, acceleration and jerk of the base, one for each sample."""
    return from_coordinates(np.stack(other_motion(robot, motion)))


def flat_motion(robot: ElasticRobot | GeneralRobot, motion: RecordedMotion) -> tuple[np.ndarray, ...]:
    """Return q and as many derivatives as the torque rate takes."""
    given = (*joint_motion(robot, motion), *motion.higher)
    return given[:robot.order + 1]


def check_blocks(robot: AnyRobot, blocks: Sequence[str]) -> None:
    """Raise InputError where the motion of the motors of elastic joints does not follow from these blocks."""
    missing = [block for block in recording_schema(robot).blocks[len(BLOCKS):] if block not in blocks]
    if missing and isinstance(robot, ElasticRobot | GeneralRobot):
        columns = some(f"{block}_<joint>" for block in missing)
        raise InputError(f"how the motors of robot '{robot.name}' move behind the elastic joints {some(robot.elastic_joints)} "
                         f"is not known. Either the recording needs columns {columns}; or "
                         "the robot file names the motors as the recording does (elastic_joints.<joint>.motor_joint), and "
                         "that has their positions")
