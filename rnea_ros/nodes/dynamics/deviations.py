"""How far off published torques may be: the robot's deviations, whose kernel is compiled beside the stream of states."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from rnea_ros import Robot
from rnea_ros.robots.derivatives import TorqueDeviations


class Deviations:
    """Deviations of torques and rates by those of an estimated motion; None until the robot's kernel is there."""

    def __init__(self) -> None:
        self._workers = ThreadPoolExecutor(max_workers=1, thread_name_prefix="deviations")
        self._robot: Robot | None = None
        self._compiled: Future | None = None

    def prepare(self, robot: Robot) -> None:
        """Compile what a robot needs."""
        q, qd, qdd, qddd = deviation = np.zeros((4, robot.n))
        robot.torque_deviations(q, qd, qdd, qddd, deviation)

    def __call__(self, robot: Robot | None, motion: Sequence[np.ndarray],
                 deviation: np.ndarray | None) -> TorqueDeviations | None:
        if deviation is None or robot is None:
            return None
        if robot is not self._robot:
            self._robot, self._compiled = robot, self._workers.submit(self.prepare, robot)
        if self._compiled is not None and self._compiled.done():
            self._compiled.result()
            self._compiled = None
        q, qd, qdd, qddd = motion
        return robot.torque_deviations(q, qd, qdd, qddd, deviation) if self._compiled is None else None

    def close(self) -> None:
        self._workers.shutdown(wait=True, cancel_futures=True)
