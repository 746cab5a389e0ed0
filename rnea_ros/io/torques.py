"""Joint torques and their rates along a recorded motion, part after part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..robots.program import MOTORS
from ..robots.robot import Robot
from . import csv_files, recording
from .recording import RecordedMotion

TorqueAndRate = Callable[[RecordedMotion], tuple[np.ndarray, np.ndarray]]


class Torques(NamedTuple):
    """Times (k,) [s], positions, velocities, torques and their rates, accelerations and jerks (k, n).

    deviation : standard deviations of torques and rates (2, k, n), if requested; NaN where unknown
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    tau_rate: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    deviation: np.ndarray | None = None

    @property
    def table(self) -> np.ndarray:
        """Rows of a file: (k, 1 + 2 n), with deviations (k, 1 + 4 n)."""
        return np.column_stack((self.t, self.tau, self.tau_rate, *(() if self.deviation is None else self.deviation)))


def torque_columns(joint_names: tuple[str, ...], deviations: bool = False) -> list[str]:
    """Return the names of the columns of a table of torques."""
    kinds = ("tau", "tau_rate", "std_tau", "std_tau_rate")[:4 if deviations else 2]
    return ["t"] + [f"{kind}_{name}" for kind in kinds for name in joint_names]


def motion_parts(motion: RecordedMotion) -> Iterator[RecordedMotion]:
    """Yield parts of a motion that are computed at once, to bound memory."""
    for k in range(0, len(motion.t), csv_files.CHUNK):
        yield motion.only(slice(k, k + csv_files.CHUNK))


def compute_torques(torque_and_rate: TorqueAndRate, motion: RecordedMotion) -> Torques:
    """Return the torques of one part of a motion."""
    tau, tau_rate = torque_and_rate(motion)
    q, qd, qdd, qddd = (block[:, :tau.shape[1]] for block in (motion.q, motion.qd, motion.qdd, motion.qddd))
    return Torques(motion.t, q, qd, tau, tau_rate, qdd, qddd)


def torque_function(robot: Robot) -> TorqueAndRate:
    """Return a function from a motion with the columns of the robot's schema to torques and their rates (samples, n).

    It is called part after part. A moving base follows the recording. Raises InputError if the recording is insufficient.
    """
    if not robot.is_fixed_tree:
        return _sequential(robot)
    return lambda motion: robot.torque_and_rate(motion.q, motion.qd, motion.qdd, motion.qddd)


def _general(robot: Robot, motion: RecordedMotion, guess: Any) -> tuple[np.ndarray, np.ndarray]:
    if not robot.has_moving_base:
        if recording.motor_names(robot):
            motors: dict[str, Any] = dict(zip(MOTORS, recording.other_motion(robot, motion), strict=True))
            return robot.torque_and_rate(*recording.joint_motion(robot, motion), guess=guess, **motors)
        return robot.torque_and_rate(*recording.flat_motion(robot, motion), guess=guess)
    base, acceleration, jerk = recording.base_motion(robot, motion)
    return robot.torque_and_rate(*recording.joint_motion(robot, motion), base=base, base_acceleration=acceleration,
                                 base_jerk=jerk, guess=guess)


def _sequential(robot: Robot) -> TorqueAndRate:
    """Return a function that continues the loops from one part of the motion to the next."""
    pose: Any = None  # of all joints of the tree

    def torque_and_rate(motion: RecordedMotion) -> tuple[np.ndarray, np.ndarray]:
        nonlocal pose
        before, moved = pose, recording.joint_motion(robot, motion)
        pose = robot.close(moved[0], guess=before)[-1]
        return _general(robot, motion, before)

    return torque_and_rate


def torque_deviations(robot: Robot, motion: RecordedMotion) -> np.ndarray | None:
    """Return standard deviations of torques and rates (2, samples, n), NaN where unknown; None if all are unknown."""
    if motion.deviation is None or not robot.is_fixed_tree:
        return None
    known = np.isfinite(motion.deviation).all(axis=(0, 2))
    found = np.full((2, *motion.q.shape), np.nan)
    found[:, known] = robot.torque_deviations(motion.q[known], motion.qd[known], motion.qdd[known], motion.qddd[known],
                                              motion.deviation[:, known])
    return found
