"""Robots whose other joints follow the active ones, at poses that are known: many samples at once, for paths."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..algorithms import closed_loops
from .coulomb import coulomb, without_coulomb
from .robot import Robot
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
    """Loops of a Robot, with platforms, but without other sections; a pose has all joints of the tree."""

    robot: Robot

    def __init__(self, robot: Robot):
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
