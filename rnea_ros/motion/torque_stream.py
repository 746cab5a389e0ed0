"""Torques of a robot along one stream of samples, as a motion is executed: loops are followed from each to the next."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError, Rejected
from ..robots.closed_loops import ClosedLoopRobot
from ..robots.link_side import LinkSideRobot
from ..robots.parallel import ParallelRobot
from ..robots.robot import Dynamics


class TorqueStream:
    """Call with q, qd, qdd, qddd (n,), one sample after the other; returns Dynamics: torques, their rates, and
    gravity's shares. Raises RneaError.

    before : a stream of a robot before; where only its payload was another, this one goes on from there
    """

    def __init__(self, robot: LinkSideRobot, before: TorqueStream | None = None):
        self._robot = robot
        self._tracker: Any = None
        if isinstance(robot, ClosedLoopRobot | ParallelRobot):
            last = before._robot if before is not None else None
            same = isinstance(last, ClosedLoopRobot | ParallelRobot) and last.loops is robot.loops
            self._tracker = before._tracker if same and before is not None else robot.tracker()

    def __call__(self, *motion: np.ndarray) -> Dynamics:
        if self._tracker is None:
            return self._robot.dynamics(*motion)
        try:
            followed = self._tracker.follow(*motion)
        except Rejected as refused:
            raise InputError(refused.detail) from None
        platform = isinstance(self._robot, ParallelRobot)
        return self._robot.along(*(followed if platform else followed[:1]))  # type: ignore[union-attr]  # of these two
