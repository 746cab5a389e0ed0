"""A simulated arm with elastic joints: motor torques in, what its sensors would tell out. No ROS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..robots.general import GeneralRobot
from .elastic_control import accelerations

NEAR = 3e-5  # s; over which the jerk is differentiated


class PlantState(NamedTuple):
    """One instant: position .. jerk of joints and motors of elastic joints (4, n + Ne); torques of all motors (n,), whose line
    they follow from here on, and their rates."""

    motion: np.ndarray
    tau: np.ndarray
    tau_rate: np.ndarray


class ElasticPlant:
    """The robot under its drives, which go on along the line through the last two commands. Time advances by command alone, so
    what comes out does not depend on how long a command takes."""

    def __init__(self, robot: GeneralRobot, start: Sequence[np.ndarray], step: float):
        """start: q, q_motor, qd, qd_motor. step: from one command to the next [s]."""
        self.robot, self.step = robot, step
        self._x, self._half = np.concatenate(start), robot.n + len(robot.elastic_joints)
        self._tau: np.ndarray | None = None
        self._rate = np.zeros(robot.n)

    @property
    def sensors(self) -> tuple[np.ndarray, ...]:
        """q, q_motor, qd, qd_motor."""
        n, half = self.robot.n, self._half
        return self._x[:n], self._x[n:half], self._x[half:half + n], self._x[half + n:]

    def command(self, tau: np.ndarray) -> PlantState:
        """What the motors exert from this instant on."""
        if self._tau is not None:
            self._rate = (tau - self._tau) / self.step
        self._tau = tau
        slope = self._slope(0.0, self._x)
        after, before = (self._slope(h, self._x + h * slope) for h in (NEAR, -NEAR))
        jerk = (after - before)[self._half:] / (2 * NEAR)
        motion = np.array([self._x[:self._half], self._x[self._half:], slope[self._half:], jerk])
        return PlantState(motion, tau, self._rate)

    def advance(self) -> None:
        """To the next command, by a step of the classical Runge-Kutta rule."""
        x, h = self._x, self.step
        a = self._slope(0.0, x)
        b = self._slope(h / 2, x + a * (h / 2))
        c = self._slope(h / 2, x + b * (h / 2))
        d = self._slope(h, x + c * h)
        self._x = x + (a + 2.0 * b + 2.0 * c + d) * (h / 6)

    def _slope(self, since: float, x: np.ndarray) -> np.ndarray:
        """dx/dt so long after the command [s]."""
        assert self._tau is not None
        n, half = self.robot.n, self._half
        found = accelerations(self.robot, x[:n], x[half:half + n], self._tau + since * self._rate, q_motor=x[n:half],
                              qd_motor=x[half + n:])
        return np.concatenate((x[half:], found))
