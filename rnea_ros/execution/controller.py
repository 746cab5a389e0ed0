"""Model of joint_trajectory_controller (ros2_controllers): its parameters, its interpolation, the jerk of its reference.

The rules are read from its source. Where versions name a parameter differently, all names are known; a parameter that a
controller does not have counts as its default.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, some
from .goal import Goal
from .joint_states import unwrap_to

Parameters = Mapping[str, Any]
PARAMETERS = ("joints", "command_interfaces", "state_interfaces", "interpolation_method", "allow_partial_joints_goal",
              "allow_nonzero_velocity_at_trajectory_end", "allow_trajectory_replacement", "interpolate_from_desired_state",
              "open_loop_control", "speed_scaling.initial_scaling_factor", "constraints.goal_time",
              "constraints.stopped_velocity_tolerance", "update_rate")


# ------------------------------------------------------------------------------------------------------------- parameters


class Finding(NamedTuple):
    """Problem of a controller with what to set, and whether it cannot execute trajectories because of it."""

    refuses: bool
    text: str


def check_controller(controller: Parameters, joint_names: Sequence[str], parameters: Parameters) -> list[Finding]:
    """Return what keeps a controller from executing what it will be sent.

    controller : parameters of the controller
    parameters : parameters output, points_stop_time, reference_effort and controller.interface of the sender
    """
    streams_points = parameters["output"] == "points"
    check_interface = parameters["controller.interface"] == "action"
    return [*_check_joints(controller, joint_names),
            *(_check_points(controller, parameters) if streams_points else _check_trajectories(controller)),
            *(_check_goals(controller, streams_points) if check_interface else ())]


def _check_joints(controller: Parameters, joint_names: Sequence[str]) -> Iterator[Finding]:
    controlled = controller.get("joints") or joint_names
    missing = [name for name in joint_names if name not in controlled]
    extra = [name for name in controlled if name not in joint_names]
    if missing:
        yield Finding(True, f"it has no {some(missing)}: set its joints to those of the robot description")
    elif extra and not controller.get("allow_partial_joints_goal", False):
        yield Finding(True, f"it also has {some(extra)}, which get no references: set its allow_partial_joints_goal")


def _check_points(controller: Parameters, parameters: Parameters) -> Iterator[Finding]:
    """Check for single points, each replaced by the next one."""
    stops = parameters["points_stop_time"] > 0.0
    if not stops and not controller.get("allow_nonzero_velocity_at_trajectory_end", False):
        yield Finding(True, "it would reject every point that moves, and go straight to the last one: set its "
                            "allow_nonzero_velocity_at_trajectory_end, or points_stop_time or output: horizon here")
    if parameters["reference_effort"] and "effort" not in controller.get("command_interfaces", ("effort",)):
        yield Finding(True, "it rejects points with effort, having no such command interface: set reference_effort: false")
    if not controller.get("interpolate_from_desired_state", controller.get("open_loop_control", False)):
        yield Finding(False, "it begins each point where the robot is measured, behind its reference: set its "
                             "interpolate_from_desired_state, or output: trajectory here")


def _check_trajectories(controller: Parameters) -> Iterator[Finding]:
    """Check for whole trajectories with stamps."""
    method = controller.get("interpolation_method", "splines")
    factor = controller.get("speed_scaling.initial_scaling_factor", 1.0)
    if method != "splines":
        yield Finding(True, f"its interpolation_method is {method}: it would jump from point to point; set splines")
    if controller.get("allow_trajectory_replacement", False):
        yield Finding(True, "it would begin a trajectory that starts in the past, as each change does, at its present "
                            "position, and the robot would jump: set its allow_trajectory_replacement: false")
    if factor != 1.0:
        yield Finding(True, f"its speed_scaling.initial_scaling_factor is {factor:g}: it would be late, and jump with each "
                            "change; set 1.0, and ~/override here")


def _check_goals(controller: Parameters, streams_points: bool) -> Iterator[Finding]:
    """Check for goals of the action."""
    if streams_points:
        yield Finding(True, "controller.interface action needs output trajectory or horizon: points are for its topic")
    tolerances = [name for name, value in controller.items()
                  if name.startswith("constraints.") and name.endswith(".goal") and value]
    if not controller.get("constraints.goal_time", 0.0) and tolerances:
        yield Finding(False, "it waits without end for a robot that stays outside its constraints.<joint>.goal, or is faster "
                             "than constraints.stopped_velocity_tolerance: set its constraints.goal_time")


# ---------------------------------------------------------------------------------------------------------- interpolation


def _boundary_matrix(count: int) -> np.ndarray:
    """Return the matrix from `count` coefficients, lowest power first, to (value, slope, curvature) at 0, and at 1."""
    powers, orders = range(count), range(count // 2)
    return np.array([[np.prod(np.arange(p - d + 1, p + 1.0)) * (end ** (p - d)) if p >= d else 0.0 for p in powers]
                     for end in (0.0, 1.0) for d in orders])


class TrajectorySpline:
    """Interpolation of joint_trajectory_controller between points with stamps, constant before the first and after the last.

    Between two points the polynomial of the lowest degree that has all data of both: linear for positions, cubic with
    velocities, quintic with accelerations.
    """

    def __init__(self, times: Any, q: Any, qd: Any = None, qdd: Any = None):
        """Interpolate points (points, n) at times (points,) [s], ascending. Raises InputError."""
        given = [np.asarray(x, dtype=float) for x in (q, qd, qdd) if x is not None]
        self.times = np.asarray(times, dtype=float)
        valid = all(x.ndim == 2 and len(x) == len(self.times) and np.isfinite(x).all() for x in given)
        if len(self.times) < 2 or not (np.diff(self.times) > 0.0).all() or not valid or (qd is None and qdd is not None):
            raise InputError("a trajectory needs two points or more, at ascending times, each with finite positions, with "
                             "velocities or without, and with accelerations too or without, of all joints")
        h = np.diff(self.times)[:, None]
        ends = [x[part] * h**d for part in (slice(None, -1), slice(1, None)) for d, x in enumerate(given)]
        self._coefficients = np.linalg.solve(_boundary_matrix(2 * len(given)),
                                             np.array(ends).transpose(1, 0, 2))  # (segments, powers, n)

    def __call__(self, t: float, count: int) -> list[np.ndarray]:
        """Return position and its first derivatives at time t [s], `count` arrays (n,)."""
        t = float(np.clip(t, self.times[0], self.times[-1]))
        k = min(int(np.searchsorted(self.times, t, side="right")) - 1, len(self.times) - 2)
        h, c = self.times[k + 1] - self.times[k], self._coefficients[k]
        powers = ((t - self.times[k]) / h) ** np.arange(len(c))
        found = []
        for order in range(count):
            found.append(powers[:len(c)] @ c / h**order)
            c = c[1:] * np.arange(1.0, max(len(c), 1))[:, None]
        return found


class ControllerTrajectory:
    """Reference of joint_trajectory_controller while it executes a goal, by the stamps of joint states.

    It moves from where the robot is to the first point, if that is later; interpolates between points; and rests in the last
    one. A joint that is not named rests.
    """

    def __init__(self, goal: Goal, now: int, q: np.ndarray, qd: np.ndarray, continuous: np.ndarray):
        """Take over a goal at time `now` [ns], when the robot is at q and moves with qd (n,), NaN where unknown.

        continuous : joints (n,) that may be wrapped
        """
        unnamed = list(goal.unnamed)
        points = goal.q.copy()
        points[:, unnamed] = q[unnamed]
        self._start, self._now = goal.start or now, now
        self._first = self._start + round(float(goal.times[0]) * 1e9)
        self._duration, self._last = goal.duration, points[-1]
        self._approach = self._spline = None
        if now < self._first:
            qd = qd.copy()
            qd[unnamed] = 0.0
            has_velocities = goal.v is not None and bool(np.isfinite(qd).all())
            ends = np.stack((unwrap_to(q, points[0], continuous), points[0]))
            velocities = np.stack((qd, goal.v[0])) if has_velocities else None
            self._approach = TrajectorySpline((0.0, (self._first - now) * 1e-9), ends, velocities)
        if len(points) > 1:
            self._spline = TrajectorySpline(goal.times, points, goal.v, goal.a)

    def __call__(self, stamp: int, count: int) -> list[np.ndarray]:
        """Return position and its first derivatives at a stamp [ns], `count` arrays (n,)."""
        if self._approach is not None and stamp < self._first:
            return self._approach((stamp - self._now) * 1e-9, count)
        t = (stamp - self._start) * 1e-9
        if self._spline is not None and t < self._duration:
            return self._spline(t, count)
        return [self._last.copy(), *np.zeros((count - 1, len(self._last)))]


class ReferenceJerk:
    """Estimator of the jerk of a reference that is known by samples of position, velocity and acceleration.

    A controller joins points by polynomials of degree three or five. Two samples of one such piece determine it, and with it
    the jerk, exactly. Where a piece ends between them they do not fit, and that polynomial deviates far from the mean jerk,
    the difference of the accelerations over the time. The deviation is limited by the mean jerks of the intervals before.

    Call with time [s], q, qd, qdd (n,), one sample after the other; returns the jerk at that sample, NaN at the first.
    """

    def __init__(self) -> None:
        self._last: tuple[float, np.ndarray, np.ndarray, np.ndarray] | None = None
        self._means: deque[np.ndarray] = deque(maxlen=3)  # mean jerks of the last intervals

    def __call__(self, t: float, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        last, self._last = self._last, (t, q.copy(), qd.copy(), qdd.copy())
        if last is None:
            return np.full_like(q, np.nan)
        before, q0, qd0, qdd0 = last
        h = t - before
        mean = (qdd - qdd0) / h
        self._means.append(mean)
        if len(self._means) < 3:
            return mean
        # third derivative at its end of the polynomial of fifth degree through both samples
        jerk = (60.0 * (q - q0) / h - 24.0 * qd0 - 36.0 * qd) / h**2 + (9.0 * qdd - 3.0 * qdd0) / h
        first, second, third = self._means
        # bound by first and second differences of the means: the deviation of a quadratic jerk is smaller
        bound = 2.0 * np.abs(third - second) + np.abs(third - 2.0 * second + first)
        return mean + np.clip(jerk - mean, -bound, bound)
