"""A trajectory that asks too much of a robot: points, times twice as fast as the limits allow, and those limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..model.tree import Limits
from ..motion.path_dynamics import PathDynamics
from ..robots.robot import Robot
from ..scaling.plan import ScaledPlan
from ..scaling.points import plan_from_waypoints
from ..scaling.retime import time_optimal
from ..scaling.terms import Constraints
from .motion import sweep

COUNT = 6  # points
SLOW = 2.0  # s; for a look at what the motion takes
HOLD, MOVE = 1.3, 0.6  # shares of that: of gravity, of all else
SWING = 0.15  # s, from one end of the effort limits to the other


class Task(NamedTuple):
    """fastest: what the limits allow [s]."""

    points: np.ndarray
    times: np.ndarray
    limits: Limits
    plan: ScaledPlan
    fastest: float


def too_fast(robot: Robot, speed: float = 2.0) -> Task:
    """A wave of all joints through the middle of their ranges. Limits of the URDF hold where they are tighter."""
    reach = sweep(robot.joint_types, robot.limits)
    middle, half = (reach.start + reach.end) / 2.0, (reach.end - reach.start) / 2.0
    waves = np.sin(2.2 * np.arange(COUNT)[:, None] + 1.7 * np.arange(robot.n))
    points = middle + half * waves
    limits = _limits(robot, plan_from_waypoints(points, np.linspace(0.0, SLOW, COUNT)))
    path = plan_from_waypoints(points, np.linspace(0.0, SLOW, COUNT)).path
    dynamics = PathDynamics(robot)
    law = time_optimal(Constraints(path, dynamics, dynamics.limits(limits), robot.joint_names))
    times = np.array([0.0, *law.time_at(path.breaks[1:-1]), law.duration]) / speed
    return Task(points, times, limits, plan_from_waypoints(points, times), law.duration)


def motion(plan: ScaledPlan, t: Any) -> tuple[np.ndarray, ...]:
    """q, qd, qdd, qddd (samples, n) of a plan at times t (samples,)."""
    s, v, a, u = plan.law(t)
    q, q1, q2, q3 = plan.path(s)
    v, a, u = v[:, None], a[:, None], u[:, None]
    return q, q1 * v, q2 * v**2 + q1 * a, q3 * v**3 + 3.0 * q2 * v * a + q1 * u


def _limits(robot: Robot, slow: ScaledPlan) -> Limits:
    state = motion(slow, np.linspace(0.0, slow.law.duration, 501))
    tau, _, gravity, _ = robot.dynamics(*state)
    effort = HOLD * np.abs(gravity).max(axis=0) + MOVE * np.abs(tau - gravity).max(axis=0)
    effort = np.fmin(np.where(effort > 0.0, effort, np.nan), robot.limits.effort)  # a joint may move no mass
    return replace(robot.limits, effort=effort, effort_rate=np.fmin(2.0 * effort / SWING, robot.limits.effort_rate))


def parameters(robot: Robot, limits: Limits) -> dict[str, Any]:
    """These limits as parameters of a node, where they are known, by whole names: a parameter file's parser mixes up nested
    ones that contain dots."""
    found: dict[str, Any] = {}
    for name, effort, rate in zip(robot.joint_names, limits.effort.tolist(), limits.effort_rate.tolist()):
        if np.isfinite(effort):
            found |= {f"joint_limits.{name}.has_effort_limits": True, f"joint_limits.{name}.max_effort": effort,
                      f"joint_limits.{name}.has_effort_rate_limits": True, f"joint_limits.{name}.max_effort_rate": rate}
    return found
