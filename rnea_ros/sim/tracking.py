"""Controllers of simulated robots: a stand-in for joint_trajectory_controller, and computed torque on an imperfect plant.

`TrajectoryController` is that of ros2_controllers without ROS. Between two points it interpolates with the derivatives that
both have: linear with positions only, cubic with velocities, quintic with accelerations too. A new trajectory replaces the
previous one completely. Before its first point the controller interpolates from its own state, after its last point it holds
that point. Rejected: trajectories that end in the past, and those that do not end at rest, unless allowed. A trajectory may
belong to an action goal: the goal ends when another goal is accepted, not when a trajectory without a goal replaces its
points; cancelling stops the motion at once.

`track` follows a motion in MuJoCo: computed torque with the package's model, saturating drives. The feedback law is the same
for every timing of a path:

    tau = inverse dynamics of (r, rd, rdd + w^2 (r - q) + 2 w (rd - qd))

the planned torque and a PD of bandwidth w in every joint. A drive follows the commanded torque as fast as its limits allow.
Each limit is linear in torque, torque rate and speed of one joint,

    lower <= effort tau + effort_rate d tau/dt + velocity qd <= upper

the torque limit, the limit of its rate (slew), and those of the robot file's drives: voltage, current, speed-torque curve.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError
from ..model.drives import DriveLimit
from ..robots.robot import Robot
from .plant import Plant

MAX_END_VELOCITY = 1e-9  # rad/s, m/s; counts as rest


@dataclass(frozen=True)
class TrajectoryPoints:
    """Points of a trajectory at times (count,) [s] of any clock; q, and qd, qdd or None (count, n)."""

    times: np.ndarray
    q: np.ndarray
    qd: np.ndarray | None = None
    qdd: np.ndarray | None = None


def interpolate(a: tuple[np.ndarray, ...], b: tuple[np.ndarray, ...], h: float, t: float) -> tuple[np.ndarray, ...]:
    """Return q, qd, qdd at time t in [0, h] between two states, with as many derivatives as both have."""
    orders = min(len(a), len(b))
    powers = range(2 * orders)
    rows = np.array([[_power_derivative(k, order, x) for k in powers] for x in (0.0, h) for order in range(orders)])
    coefficients = np.linalg.solve(rows, np.stack((*a[:orders], *b[:orders])))
    return tuple(np.array([_power_derivative(k, order, t) for k in powers]) @ coefficients for order in range(3))


def _power_derivative(k: int, order: int, t: float) -> float:
    """Return the derivative of the given order of t**k."""
    return float(np.prod(np.arange(k, k - order, -1))) * t ** (k - order) if k >= order else 0.0


class TrajectoryController:
    """Trajectory controller: computes the commanded state from the trajectories that it receives.

    state          : commanded q, qd, qdd (n,) of the last update
    finished_goals : goals and their outcome: succeeded, preempted, canceled
    """

    def __init__(self, q: np.ndarray, nonzero_velocity_at_end: bool = False):
        self.state: tuple[np.ndarray, ...] = np.array(q, dtype=float), np.zeros(len(q)), np.zeros(len(q))
        self._nonzero_end = nonzero_velocity_at_end
        self._trajectory: TrajectoryPoints | None = None
        self._from: tuple[float, tuple[np.ndarray, ...]] = (0.0, self.state)
        self._goal: Any = None
        self.finished_goals: list[tuple[Any, str]] = []

    def set_trajectory(self, trajectory: TrajectoryPoints, now: float, goal: Any = None) -> None:
        """Replace the current trajectory. Raises InputError if it is rejected; the current one then continues."""
        self.check(trajectory, now)
        self._trajectory, self._from = trajectory, (now, self.state)
        if goal is not None:
            self._end("preempted")
            self._goal = goal

    def cancel(self, goal: Any) -> None:
        if goal is self._goal is not None:
            self._end("canceled")
            rest = np.zeros_like(self.state[0])
            self._trajectory, self.state = None, (self.state[0], rest, rest)

    def _end(self, how: str) -> None:
        if self._goal is not None:
            self.finished_goals.append((self._goal, how))
        self._goal = None

    def check(self, trajectory: TrajectoryPoints, now: float) -> None:
        """Raise InputError if a trajectory is rejected."""
        times = trajectory.times
        if not len(times) or (np.diff(times) <= 0.0).any():
            raise InputError("times of points must increase")
        if times[-1] < now:
            raise InputError(f"the trajectory ends {now - times[-1]:.3f} s in the past")
        ends_moving = trajectory.qd is not None and np.abs(trajectory.qd[-1]).max() > MAX_END_VELOCITY
        if ends_moving and not self._nonzero_end:
            raise InputError("the velocity of the last point is not zero: set allow_nonzero_velocity_at_trajectory_end")

    def update(self, now: float) -> tuple[np.ndarray, ...]:
        """Return the commanded q, qd, qdd (n,) at time now [s]."""
        if self._trajectory is not None:
            self.state = self._sample(self._trajectory, now)
            if now >= self._trajectory.times[-1]:
                self._end("succeeded")
        return self.state

    def _sample(self, points: TrajectoryPoints, now: float) -> tuple[np.ndarray, ...]:
        times = points.times
        fields = [field for field in (points.q, points.qd, points.qdd) if field is not None]
        number = int(np.searchsorted(times, now, side="right"))
        if number == len(times):
            rest = np.zeros_like(points.q[-1])
            return points.q[-1], *(rest if field is None else field[-1] for field in (points.qd, points.qdd))
        following = tuple(field[number] for field in fields)
        since, before = self._from if number == 0 else (times[number - 1], tuple(field[number - 1] for field in fields))
        h = times[number] - since
        return interpolate(before, following, h, min(max(now - since, 0.0), h)) if h > 0.0 else self.state


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


class TrackingSimulation:
    """A plant under the feedback law, advanced by one control period at a time, from rest at q (n,)."""

    def __init__(self, plant: Plant, q: np.ndarray):
        self._plant, self._robot = plant, plant.robot
        plant.set_state(q)
        self.drives = SaturatingDrives(plant.robot, plant.robot.gravity(q))

    def step(self, r: np.ndarray, rd: np.ndarray, rdd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Advance by CONTROL_PERIOD_S; return positions and commanded torques (n,) at the beginning of the period."""
        q, qd = self._plant.joints
        commanded = self._robot.inverse_dynamics(r, rd, rdd + BANDWIDTH_RAD_S**2 * (r - q) + 2.0 * BANDWIDTH_RAD_S * (rd - qd))
        for _ in range(PLANT_STEPS_PER_PERIOD):
            self._plant.exert(self.drives.step(commanded, self._plant.joints[1], self._plant.timestep))
            self._plant.advance()
        return q, commanded


def track(plant: Plant, motion: Motion, duration: float, rest: float = 0.2) -> TrackingResult:
    """Simulate tracking of a motion from rest: hold the start, follow for `duration` [s], hold the end.

    motion : function of times (samples,) -> q, qd, qdd, ... (samples, n); at rest after the duration
    rest   : time for which start and end are held [s]; `t` starts at -rest
    """
    t = np.arange(-rest, duration + rest, CONTROL_PERIOD_S)
    r, rd, rdd = motion(np.maximum(t, 0.0))[:3]
    moving = (t >= 0.0)[:, None]
    rd, rdd = rd * moving, rdd * moving
    tracker = TrackingSimulation(plant, r[0])
    q, commanded, applied = np.zeros((3, *r.shape))
    for k in range(len(t)):
        q[k], commanded[k] = tracker.step(r[k], rd[k], rdd[k])
        applied[k] = tracker.drives.tau
        if np.abs(r[k] - q[k]).max() > MAX_TRACKING_ERROR:
            till = slice(k + 1)
            return TrackingResult(t[till], r[till], q[till], commanded[till], applied[till], True)
    return TrackingResult(t, r, q, commanded, applied, False)
