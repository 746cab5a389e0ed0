"""A trajectory as joint_trajectory_controller of ROS 2 executes it: where the joints are to be at any instant.

From where the robot is to the first point, if that is later; between points the polynomial that what they carry determines;
at rest in the last one when it is over. A joint that is not named rests.
"""

from __future__ import annotations

import numpy as np

from .goal import Goal
from .trajectory_spline import TrajectorySpline
from .turns import nearest


class ControllerTrajectory:
    """Position and any derivatives of all joints, by the stamps of joint states."""

    def __init__(self, goal: Goal, now: int, q: np.ndarray, qd: np.ndarray, turns: np.ndarray):
        """Taken over at the instant `now` [ns], at which the robot is at q and moves with qd (n,), NaN where that is unknown;
        turns (n,): the joints that turn without end."""
        rests = list(goal.open)
        points = goal.q.copy()
        points[:, rests] = q[rests]
        self._start, self._now = goal.start or now, now
        self._first = self._start + round(float(goal.times[0]) * 1e9)
        self._duration, self._last = goal.duration, points[-1]
        self._way = self._spline = None
        if now < self._first:
            qd = qd.copy()
            qd[rests] = 0.0
            moving = goal.v is not None and bool(np.isfinite(qd).all())
            ends = np.stack((nearest(q, points[0], turns), points[0]))
            speeds = np.stack((qd, goal.v[0])) if moving else None
            self._way = TrajectorySpline((0.0, (self._first - now) * 1e-9), ends, speeds)
        if len(points) > 1:
            self._spline = TrajectorySpline(goal.times, points, goal.v, goal.a)

    def __call__(self, stamp: int, count: int) -> list[np.ndarray]:
        """Position and its first derivatives at a stamp [ns], `count` arrays (n,)."""
        if self._way is not None and stamp < self._first:
            return self._way((stamp - self._now) * 1e-9, count)
        t = (stamp - self._start) * 1e-9
        if self._spline is not None and t < self._duration:
            return self._spline(t, count)
        return [self._last.copy(), *np.zeros((count - 1, len(self._last)))]
