"""Stand-in for joint_trajectory_controller of ros2_controllers, without ROS.

Between two points it interpolates with the derivatives that both have: linear with positions only, cubic with velocities,
quintic with accelerations too. A new trajectory replaces the previous one completely. Before its first point the controller
interpolates from its own state, after its last point it holds that point. Rejected: trajectories that end in the past, and
those that do not end at rest, unless allowed. A trajectory may belong to an action goal: the goal ends when another goal is
accepted, not when a trajectory without a goal replaces its points; cancelling stops the motion at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rnea_ros import InputError

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
