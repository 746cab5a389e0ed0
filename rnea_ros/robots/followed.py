"""Robots whose other joints follow the active ones, at poses that are known: many samples at once, for paths."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..algorithms import closed_loops
from .coulomb import coulomb, without_coulomb
from .general import GeneralRobot
from .parallel import ParallelRobot
from .shared import Shared


class Followed(Protocol):
    """A robot whose poses are rows (size,) of numbers that q (n,) alone does not decide."""

    @property
    def n(self) -> int: ...

    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """q and the pose there, from which every walk begins."""

    def pose(self, q: np.ndarray, near: np.ndarray) -> np.ndarray:
        """The pose at q that a walk from another one comes to. Raises InputError."""

    def torque_and_rate(self, poses: np.ndarray, *rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(samples, n) each at poses (samples, size), without Coulomb friction. rates: qd, qdd, qddd (samples, n)."""

    def friction(self, pose: np.ndarray) -> np.ndarray:
        """(n,) what Coulomb friction can take of each torque there."""


class FollowedLoops(Shared):
    """Loops of a GeneralRobot without other sections; a pose has all joints of the tree."""

    robot: GeneralRobot

    def __init__(self, robot: GeneralRobot):
        self.robot, self.n, self._coulomb = without_coulomb(robot), robot.n, coulomb(robot.tree.model)

    def start(self) -> tuple[np.ndarray, np.ndarray]:
        return self.robot.start[self.robot.closure.active], self.robot.start

    def pose(self, q: np.ndarray, near: np.ndarray) -> np.ndarray:
        return self.robot.close(q, guess=near)

    def torque_and_rate(self, poses: np.ndarray, *rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        motion = self.robot.closure.motions(poses, *rates)
        return closed_loops.active_torque(motion.G, motion.Gd, *self.robot.tree.torque_and_rate(*motion[:4]))

    def friction(self, pose: np.ndarray) -> np.ndarray:
        still = np.zeros(self.n)
        return np.abs(self.robot.closure.motion(pose, still, still, still).G).T @ self._coulomb


class FollowedPlatform(Shared):
    """Of a ParallelRobot, from its actuators; a pose has the joints of the legs, and the pose of the platform."""

    robot: ParallelRobot

    def __init__(self, robot: ParallelRobot):
        self.robot, self.n, self._coulomb = without_coulomb(robot), robot.n, coulomb(robot.legs.model)

    def start(self) -> tuple[np.ndarray, np.ndarray]:
        joints, pose = self.robot._near(None)
        return joints[self.robot._actuated.active], np.concatenate((joints, pose))

    def pose(self, q: np.ndarray, near: np.ndarray) -> np.ndarray:
        return np.concatenate(self.robot._actuated.reach(q, *self._parts(near)))

    def torque_and_rate(self, poses: np.ndarray, *rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        platform, legs = self.robot._actuated.motions(*self._parts(poses), *rates)
        return self.robot.along(platform, legs)[:2]

    def friction(self, pose: np.ndarray) -> np.ndarray:
        still = np.zeros(self.n)
        legs = self.robot._actuated.motion(*self._parts(pose), still, still, still)[1]
        return np.abs(legs.maps[6:]).T @ self._coulomb

    def _parts(self, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return poses[..., :self.robot.legs.n], poses[..., self.robot.legs.n:]
