"""scaling_node with the stand-in for joint_trajectory_controller, and the motion commanded by it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rnea_ros.trajectory.scaled_plan import plan_from_waypoints
from support.overspeed_motion import DURATION, LIMITS, POINTS, ROBOT, START
from support.ros_helpers import RosDomain
from support.scaling_bench import NAMES, Bench

ROUNDING = 1e-6  # rad
LONGEST_STEP = 0.03  # s
CONTROLLER = "/joint_trajectory_controller"
REACH = 1.2  # m; of the arm, so that a radian of any joint moves the tool by no more


class CommandedMotion(NamedTuple):
    """Commands of the controller: t (samples,) [s since the first], q, qd, qdd (samples, n)."""

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray

    @property
    def torques(self) -> np.ndarray:
        return ROBOT.inverse_dynamics(self.q, self.qd, self.qdd)

    @property
    def rate(self) -> np.ndarray:
        """Return the torque rate between consecutive updates (samples - 1, n)."""
        return np.diff(self.torques, axis=0) / np.diff(self.t)[:, None]

    def used(self, limits=LIMITS) -> tuple[float, float]:
        """Return the largest utilizations of torque and torque-rate limits."""
        return float((np.abs(self.torques) / limits.effort).max()), float((np.abs(self.rate) / limits.effort_rate).max())

    def times_planned(self, rates: np.ndarray) -> float:
        """Return the largest ratio of commanded to planned (samples, n) peak torque rate of a joint."""
        return float((np.abs(self.rate).max(axis=0) / np.abs(rates).max(axis=0)).max())

    def off_the_path(self, points=POINTS) -> float:
        """Return the approximate largest distance from the path [m]."""
        path = plan_from_waypoints(points, np.linspace(0.0, DURATION, len(points))).path
        way = path(np.linspace(0.0, path.length, 4001))[0]
        return REACH * max(_distance(way, q) for q in self.q[::5])

    def jump(self) -> float:
        """Return the difference between a position and the integrated velocities, as a share of the distance at full
        acceleration.

        Consecutive updates are compared; steps that are too long for the trapezoidal rule are skipped.
        """
        dt = np.diff(self.t)[:, None]
        strayed = np.abs(np.diff(self.q, axis=0) - 0.5 * dt * (self.qd[1:] + self.qd[:-1]))
        shares = strayed / (dt**2 * np.abs(self.qdd).max() + ROUNDING)
        return float(shares[dt[:, 0] < LONGEST_STEP].max())


def _distance(way: np.ndarray, q: np.ndarray) -> float:
    """Return the distance of a point from a polygon."""
    k = int(np.linalg.norm(way - q, axis=1).argmin())
    return min(_from_segment(a, b, q) for a, b in pairwise(way[max(k - 1, 0):k + 2]))


def _from_segment(a: np.ndarray, b: np.ndarray, q: np.ndarray) -> float:
    share = np.clip((q - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
    return float(np.linalg.norm(q - a - share * (b - a)))


class ControllerBench(Bench):
    """Bench with a robot that tracks its controller exactly."""

    names = NAMES

    def __init__(self, ros: RosDomain, folder: Path, output: str = "trajectory", controller: dict[str, Any] | None = None,
                 **parameters: Any):
        self.file = folder / "commanded.txt"
        self.controller = ros.start("trajectory_controller", {
            "joints": NAMES, "start": START.tolist(), "log": str(self.file), **(controller or {})})
        super().__init__(ros, **{"output": output, "control_rate": 200.0, "controller.name": CONTROLLER, **parameters})
        self.seen = 0

    def commanded(self) -> CommandedMotion:
        """Return the commands since the last call."""
        lines = self.file.read_text().splitlines()
        complete = [line.split() for line in lines[self.seen:-1]]
        self.seen = len(lines) - 1
        stamps = np.array([int(line[0]) for line in complete])
        fields = np.array([line[1:] for line in complete], dtype=float).reshape(len(complete), 3, -1)
        return CommandedMotion(1e-9 * (stamps - stamps[0]), *np.moveaxis(fields, 1, 0))

    @property
    def position(self) -> np.ndarray:
        """Last commanded position of the robot."""
        return self._last[0]

    @property
    def rests(self) -> bool:
        """True if the robot has been at rest for half a second, so that no message is waiting."""
        rows = [line.split() for line in self.file.read_text().splitlines()[:-1][-1000:]]
        stamps = np.array([int(row[0]) for row in rows])
        lately = np.flatnonzero(stamps > stamps[-1] - 500_000_000)
        velocities = np.array([rows[k][1:] for k in lately], dtype=float).reshape(len(lately), 3, -1)[:, 1]
        return bool(lately[0] > 0 and np.abs(velocities).max() < 1e-9)

    @property
    def _last(self) -> np.ndarray:
        """Return the last q, qd, qdd (3, n)."""
        return np.array(self.file.read_text().splitlines()[-2].split()[1:], dtype=float).reshape(3, -1)
