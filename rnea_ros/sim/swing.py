"""Motors that swing about a pose, held by joint control: for arms, and for machines with closed loops."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..robots.protocol import AnyRobot


class Swing:
    """Torques (n,) of the motors over time, from their motion: gravity's share at the middle, and a pull towards the aim.

    middle : positions (n,) [rad, m]; reach : amplitudes (n,), of one round in `period` seconds, each joint a little later
    stiffness, damping : of the control, one number or (n,)
    """

    def __init__(self, robot: AnyRobot, middle: ArrayLike, reach: ArrayLike, period: float, stiffness: ArrayLike,
                 damping: ArrayLike):
        self._middle, self._reach, self._rate = np.asarray(middle, float), np.asarray(reach, float), 2.0 * np.pi / period
        self._stiffness, self._damping = np.asarray(stiffness, float), np.asarray(damping, float)
        self._gravity, self._phase = robot.gravity(middle), 0.7 * np.arange(robot.n)

    def __call__(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Of motors as they are."""
        grown = 1.0 - np.exp(-2.0 * t)
        angle = self._rate * t + self._phase
        aim, aim_rate = grown * self._reach * np.sin(angle), grown * self._reach * self._rate * np.cos(angle)
        return self._gravity + self._stiffness * (self._middle + aim - q) + self._damping * (aim_rate - qd)
