"""Torques of a robot along one stream of samples, as a motion is executed: loops are followed from each to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InputError, Rejected
from ..robots.general import GeneralRobot
from ..robots.link_side import LinkSideRobot
from ..robots.robot import Dynamics


class TorqueStream:
    """Call with q, qd, qdd, qddd (n,), one sample after the other; returns Dynamics: torques, their rates, and
    gravity's shares. Raises RneaError.

    before : a stream of a robot before; where only its payload was another, this one goes on from there
    """

    def __init__(self, robot: LinkSideRobot, before: TorqueStream | None = None):
        self._robot = robot
        self._tracker: Any = None
        if isinstance(robot, GeneralRobot):
            last = before._robot if before is not None else None
            same = isinstance(last, GeneralRobot) and last.loops is robot.loops
            self._tracker = before._tracker if same and before is not None else robot.tracker()

    def __call__(self, *motion: np.ndarray) -> Dynamics:
        if self._tracker is None:
            return self._robot.dynamics(*motion)
        try:
            found: Dynamics = self._tracker.move(self._at(motion))
            return found
        except Rejected as refused:
            raise InputError(refused.detail) from None

    def _at(self, motion: tuple[np.ndarray, ...]) -> Callable[[np.ndarray], tuple[Dynamics, np.ndarray]]:
        """The dynamics of one sample and its closed pose, from a pose near it."""
        robot = self._robot
        assert isinstance(robot, GeneralRobot)

        def solved(guess: np.ndarray) -> tuple[Dynamics, np.ndarray]:
            return robot.dynamics(*motion, guess=guess), robot.close(motion[0], guess=guess)

        return solved
