"""Which motors can do no more: measured efforts against the limits of joints and their drives."""

from __future__ import annotations

import numpy as np

from ..model.drive_limits import uses
from ..model.tree import Limits
from ..robots import kinds
from ..robots.link_side import LinkSideRobot
from ..robots.robot import Robot
from .joint_state_buffer import Measurement

FULL = 0.98  # share of a limit at which a motor counts as saturated


class Saturation:
    """Call with a measurement: whether each joint's motor is at a limit of its torque, current, voltage or speed (n,)."""

    def __init__(self, robot: LinkSideRobot, limits: Limits, share: float = 1.0):
        """share: of the efforts, to which the limits leave a reserve for feedback."""
        self._robot, self._effort = robot, limits.effort / share
        self._drives = [limit for limit in robot.drive_limits if len(limit.joints) == 1 and limit.effort]
        self._joints = np.array([limit.joints[0] for limit in self._drives], dtype=int)
        self._convention = kinds.tree(robot).model.efforts.measured

    def __call__(self, measured: Measurement) -> np.ndarray:
        torque = self._torque(measured)
        with np.errstate(invalid="ignore"):
            full = np.abs(torque) >= FULL * self._effort
        if self._drives and np.isfinite(torque).any():
            tau, qd = np.nan_to_num(torque), np.nan_to_num(measured.qd)
            np.logical_or.at(full, self._joints, uses(self._drives, tau, np.zeros_like(tau), qd) >= FULL)
        return full

    def _torque(self, measured: Measurement) -> np.ndarray:
        """All that the motors do (n,), NaN where that is not known."""
        if self._convention.plain:
            return measured.effort
        if not isinstance(self._robot, Robot) or not np.isfinite(measured[1:]).all():
            return np.full(len(measured.q), np.nan)
        return self._robot.measured_torque(measured.effort, measured.q, measured.qd)
