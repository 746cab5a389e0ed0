"""Robot that tracks a motion in MuJoCo: computed torque with the package's model, saturating drives, an imperfect plant.

The feedback law is the same for every timing of a path:

    tau = inverse dynamics of (r, rd, rdd + w^2 (r - q) + 2 w (rd - qd))

the planned torque and a PD of bandwidth w in every joint. A drive follows the commanded torque as fast as its limits allow.
Each limit is linear in torque, torque rate and speed of one joint,

    lower <= effort tau + effort_rate d tau/dt + velocity qd <= upper

the torque limit, the limit of its rate (slew), and those of the robot file's drives: voltage, current, speed-torque curve.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..model.drives import DriveLimit
from ..robots.robot import Robot
from .plant import Plant


class SaturatingDrives:
    """Saturating drives of all joints; unknown limits do not act. `tau` (n,) is the torque applied now [N m, N]."""

    def __init__(self, robot: Robot, tau: ArrayLike):
        self.tau = np.array(tau, dtype=float)
        limits, own = robot.limits, getattr(robot, "drive_limits", ())
        lines = [_line(joint, limits.effort_rate[joint], effort_rate=1.0) for joint in range(robot.n)]
        lines += [limit for limit in own if len(limit.joints) == 1 and not limit.power]
        lines += [_line(joint, limits.effort[joint], effort=1.0) for joint in range(robot.n)]
        self._lines = [line for line in lines if np.isfinite(line.upper) and (line.effort or line.effort_rate)]

    def step(self, wanted: np.ndarray, qd: np.ndarray, dt: float) -> np.ndarray:
        """Return the torques (n,) applied after a time dt [s], towards the wanted ones; the last of conflicting limits
        holds.
        """
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


CONTROL_PERIOD_S = 1e-3
PLANT_STEPS_PER_PERIOD = 4
BANDWIDTH_RAD_S = 42.0
MAX_TRACKING_ERROR = 0.25  # rad, m; beyond it tracking is lost and the drives are stopped
Motion = Callable[[np.ndarray], tuple[np.ndarray, ...]]


class TrackingResult(NamedTuple):
    """Tracking result: times t (samples,), reference and actual positions, commanded and applied torques (samples, n).

    lost : whether the tracking error exceeded MAX_TRACKING_ERROR; the samples end there
    """

    t: np.ndarray
    reference: np.ndarray
    q: np.ndarray
    commanded: np.ndarray
    applied: np.ndarray
    lost: bool


def track(plant: Plant, motion: Motion, duration: float, rest: float = 0.2) -> TrackingResult:
    """Simulate tracking of a motion from rest: hold the start, follow for `duration` [s], hold the end.

    motion : function of times (samples,) -> q, qd, qdd, ... (samples, n); at rest after the duration
    rest   : time for which start and end are held [s]; `t` starts at -rest
    """
    t = np.arange(-rest, duration + rest, CONTROL_PERIOD_S)
    r, rd, rdd = motion(np.maximum(t, 0.0))[:3]
    moving = (t >= 0.0)[:, None]
    rd, rdd = rd * moving, rdd * moving
    return follow(plant, r[0], t, lambda k: (r[k], rd[k], rdd[k]))


def follow(plant: Plant, start: np.ndarray, t: np.ndarray,
           reference: Callable[[int], tuple[np.ndarray, ...]]) -> TrackingResult:
    """Simulate tracking of references by the feedback law from rest at `start` (n,), until tracking is lost.

    t : times of the control periods (samples,) [s]; reference : number of a period -> position, velocity, acceleration (n,)
    """
    robot = plant.robot
    plant.set_state(start)
    drives = SaturatingDrives(robot, robot.gravity(start))
    wanted, q, commanded, applied = np.zeros((4, len(t), len(start)))
    for k in range(len(t)):
        r, rd, rdd = reference(k)
        wanted[k], (q[k], qd) = r, plant.joints
        commanded[k] = robot.inverse_dynamics(r, rd, rdd + BANDWIDTH_RAD_S**2 * (r - q[k]) + 2.0 * BANDWIDTH_RAD_S * (rd - qd))
        for _ in range(PLANT_STEPS_PER_PERIOD):
            plant.exert(drives.step(commanded[k], plant.joints[1], plant.timestep))
            plant.advance()
        applied[k] = drives.tau
        if np.abs(r - q[k]).max() > MAX_TRACKING_ERROR:
            till = slice(k + 1)
            return TrackingResult(t[till], wanted[till], q[till], commanded[till], applied[till], True)
    return TrackingResult(t, wanted, q, commanded, applied, False)
