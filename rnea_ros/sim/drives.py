"""Drives that saturate: what motors exert of the torques that a controller asks for.

A torque is followed as fast as the drive's limits allow. Each of them is a line in torque, torque rate and speed of one joint,

    lower <= effort tau + effort_rate d tau/dt + velocity qd <= upper

the torque limit, the limit of its rate (slew), and those of the robot file's drives: voltage, current, speed-torque curve.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..model.drive_limits import DriveLimit, factors
from ..robots.protocol import AnyRobot


class Drives:
    """Of all joints of a robot, with its own limits; unknown ones do not act. `tau` (n,) is what they exert now."""

    def __init__(self, robot: AnyRobot, tau: ArrayLike):
        self.tau = np.array(tau, dtype=float)
        limits, own = robot.limits, getattr(robot, "drive_limits", ())
        lines = [_line(joint, limits.effort_rate[joint], effort_rate=1.0) for joint in range(robot.n)]
        lines += [limit for limit in own if len(limit.joints) == 1 and not limit.power]
        lines += [_line(joint, limits.effort[joint], effort=1.0) for joint in range(robot.n)]
        self._lines = [line for line in lines if np.isfinite(line.upper) and (line.effort or line.effort_rate)]
        by = factors(self._lines, robot.n)
        self._joint = np.array([line.joints[0] for line in self._lines], dtype=int)
        self._by = by

    def step(self, wanted: np.ndarray, qd: np.ndarray, dt: float) -> np.ndarray:
        """What they exert a time dt later (n,), on the way to the wanted torque; where limits contradict, the last holds."""
        rate = (wanted - self.tau) / dt
        for line in self._lines:
            (joint,) = line.joints
            now = line.effort * self.tau[joint] + line.velocity * qd[joint]
            slope = line.effort * dt + line.effort_rate
            ends = (line.lower - now) / slope, (line.upper - now) / slope
            rate[joint] = min(max(rate[joint], min(ends)), max(ends))
        self.tau = self.tau + dt * rate
        return self.tau


def _line(joint: int, limit: float, effort: float = 0.0, effort_rate: float = 0.0) -> DriveLimit:
    return DriveLimit("", "", (joint,), -limit, limit, effort=effort, effort_rate=effort_rate)
