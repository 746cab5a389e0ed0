"""A controller that follows trajectories as joint_trajectory_controller of ros2_controllers does, without ROS.

Between two points it interpolates by what they both have: linear with positions alone, cubic with velocities, quintic with
accelerations too. A new trajectory replaces the one before as a whole. Before its first point the controller comes from its
own state, behind its last point it holds that. Refused is what ends in the past and what does not end at rest, unless that
is allowed. A trajectory may be a goal of its action: it ends where another goal comes, not where a trajectory without one
does, which is then what is judged; and where it is cancelled all stops at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError

AT_REST = 1e-9  # rad/s, m/s


@dataclass(frozen=True)
class Trajectory:
    """Points at times (count,) [s] by any clock; q, and qd, qdd or None (count, n)."""

    times: np.ndarray
    q: np.ndarray
    qd: np.ndarray | None = None
    qdd: np.ndarray | None = None


def interpolated(a: tuple[np.ndarray, ...], b: tuple[np.ndarray, ...], h: float, t: float) -> tuple[np.ndarray, ...]:
    """q, qd, qdd at t from 0 to h, between states of as many derivatives as both have."""
    orders = min(len(a), len(b))
    powers = range(2 * orders)
    rows = np.array([[_slope(k, order, x) for k in powers] for x in (0.0, h) for order in range(orders)])
    coefficients = np.linalg.solve(rows, np.stack((*a[:orders], *b[:orders])))
    return tuple(np.array([_slope(k, order, t) for k in powers]) @ coefficients for order in range(3))


def _slope(k: int, order: int, t: float) -> float:
    """Of the power k of t, its derivative of an order."""
    return float(np.prod(np.arange(k, k - order, -1))) * t ** (k - order) if k >= order else 0.0


class TrajectoryController:
    """Where to be, from trajectories that come when they like.

    state : q, qd, qdd that were commanded last (n,) each
    ended : goals, and what became of them: succeeded, preempted, canceled
    """

    def __init__(self, q: np.ndarray, nonzero_velocity_at_end: bool = False):
        self.state: tuple[np.ndarray, ...] = np.array(q, dtype=float), np.zeros(len(q)), np.zeros(len(q))
        self._nonzero_end = nonzero_velocity_at_end
        self._trajectory: Trajectory | None = None
        self._from: tuple[float, tuple[np.ndarray, ...]] = (0.0, self.state)
        self._goal: Any = None
        self.ended: list[tuple[Any, str]] = []

    def take(self, trajectory: Trajectory, now: float, goal: Any = None) -> None:
        """Raises InputError for what it refuses; the one before goes on."""
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
            self.ended.append((self._goal, how))
        self._goal = None

    def check(self, trajectory: Trajectory, now: float) -> None:
        """Raises InputError."""
        times = trajectory.times
        if not len(times) or (np.diff(times) <= 0.0).any():
            raise InputError("times of points must increase")
        if times[-1] < now:
            raise InputError(f"the trajectory ends {now - times[-1]:.3f} s in the past")
        ends_moving = trajectory.qd is not None and np.abs(trajectory.qd[-1]).max() > AT_REST
        if ends_moving and not self._nonzero_end:
            raise InputError("the velocity of the last point is not zero: set allow_nonzero_velocity_at_trajectory_end")

    def update(self, now: float) -> tuple[np.ndarray, ...]:
        """q, qd, qdd to be commanded now."""
        if self._trajectory is not None:
            self.state = self._sampled(self._trajectory, now)
            if now >= self._trajectory.times[-1]:
                self._end("succeeded")
        return self.state

    def _sampled(self, points: Trajectory, now: float) -> tuple[np.ndarray, ...]:
        times = points.times
        fields = [field for field in (points.q, points.qd, points.qdd) if field is not None]
        number = int(np.searchsorted(times, now, side="right"))
        if number == len(times):
            rest = np.zeros_like(points.q[-1])
            return points.q[-1], *(rest if field is None else field[-1] for field in (points.qd, points.qdd))
        following = tuple(field[number] for field in fields)
        since, before = self._from if number == 0 else (times[number - 1], tuple(field[number - 1] for field in fields))
        h = times[number] - since
        return interpolated(before, following, h, min(max(now - since, 0.0), h)) if h > 0.0 else self.state
