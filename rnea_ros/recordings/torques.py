"""Torques of a motion that comes in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, some
from ..robots.closed_loops import ClosedLoopRobot
from ..robots.elastic import ElasticRobot
from ..robots.inputs.platform_motion import PlatformMotion
from ..robots.parallel import ParallelRobot
from ..robots.protocol import AnyRobot
from ..robots.robot import Robot
from ..robots.springs import SpringRobot
from . import motion_csv
from .motion_csv import RecordedMotion

SERVED = (Robot, ClosedLoopRobot, ElasticRobot, ParallelRobot, SpringRobot)  # whose torques a recording can tell
FOLLOWED = (ClosedLoopRobot, ParallelRobot)  # of which each pose is found from the one before

TorqueAndRate = Callable[..., tuple[np.ndarray, np.ndarray]]


class Torques(NamedTuple):
    """Times (k,) [s], positions, velocities, torques and their rates (k, n)."""

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    tau_rate: np.ndarray


def columns(joint_names: tuple[str, ...]) -> list[str]:
    """Of a table of torques."""
    return ["t"] + [f"{kind}_{name}" for kind in ("tau", "tau_rate") for name in joint_names]


def parts(motion: RecordedMotion) -> Iterator[RecordedMotion]:
    """What is computed at once: the whole may be of any length."""
    for k in range(0, len(motion.t), motion_csv.CHUNK):
        yield motion.only(slice(k, k + motion_csv.CHUNK))


def torques(torque_and_rate: TorqueAndRate, motion: RecordedMotion) -> Torques:
    """Of one part."""
    return Torques(motion.t, motion.q, motion.qd, *torque_and_rate(motion.q, motion.qd, motion.qdd, motion.qddd))


def asked(robot: AnyRobot) -> TorqueAndRate:
    """torque_and_rate of q, qd, qdd, qddd (samples, n), part after part. InputError where these do not say enough."""
    if isinstance(robot, ElasticRobot) and robot.order > 3:
        raise InputError(f"the torque rate of robot '{robot.name}' needs {robot.order} derivatives of q, for joints "
                         f"{some(robot.elastic_joints)} are elastic; a recording has three. rnea_ros.load gives it in Python")
    if isinstance(robot, ClosedLoopRobot | ParallelRobot):
        return _following(robot)
    return robot.torque_and_rate


def _following(robot: ClosedLoopRobot | ParallelRobot) -> TorqueAndRate:
    """Loops and platform are followed from one part of the motion to the next."""
    pose: Any = None  # of all joints of the tree, or of the platform

    def torque_and_rate(q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, qddd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        nonlocal pose
        before = pose
        if isinstance(robot, ParallelRobot):
            moved = robot.platform_motion(q, qd, qdd, qddd, guess=before)
            pose = PlatformMotion(moved.position[-1], moved.rotation[-1])
        else:
            pose = robot.close(q, guess=before)[-1]
        return robot.torque_and_rate(q, qd, qdd, qddd, guess=before)

    return torque_and_rate


def deviations(robot: AnyRobot, motion: RecordedMotion) -> np.ndarray | None:
    """Standard deviations of torques and rates (2, samples, n), NaN where the motion's are not known; None without any."""
    if motion.deviation is None or not isinstance(robot, Robot):
        return None
    known = np.isfinite(motion.deviation).all(axis=(0, 2))
    found = np.full((2, *motion.q.shape), np.nan)
    found[:, known] = robot.torque_deviations(motion.q[known], motion.qd[known], motion.qdd[known], motion.qddd[known],
                                              motion.deviation[:, known])
    return found
