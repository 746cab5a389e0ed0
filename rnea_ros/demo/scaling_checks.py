"""Is what `rnea demo --scaling` received right? Inside the limits, on the path, efforts to the last bit, at the goal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..robots.robot import Robot
from .checks import Verdict
from .motion import MotionSample
from .task import Task

ROUNDING = 1e-6  # of a limit
NEAR = 1e-9  # rad, m; of the path


class Played(NamedTuple):
    """What was received: times t and places s (samples,), joints (samples, n), phases (samples,)."""

    t: np.ndarray
    s: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    tau: np.ndarray
    tau_rate: np.ndarray
    phase: np.ndarray
    override: np.ndarray

    @property
    def motion(self) -> MotionSample:
        return MotionSample(self.q, self.qd, self.qdd, self.qddd)


def inside(robot: Robot, task: Task, played: Played) -> Verdict:
    """Every sample is inside every limit: torques and rates by the library, from the positions that were received."""
    limits = task.limits
    tau, rate = robot.torque_and_rate(*played.motion)
    used = {"torque": tau / limits.effort, "torque rate": rate / limits.effort_rate, "velocity": played.qd / limits.velocity}
    shares = {name: np.fmax.reduce(np.abs(share), axis=None, initial=0.0) for name, share in used.items()}
    worst = ", ".join(f"{name} {share:.2%}" for name, share in shares.items())
    return Verdict(max(shares.values()) <= 1.0 + ROUNDING, f"all samples inside the limits: at most {worst}")


def on_path(task: Task, played: Played) -> Verdict:
    away = float(np.abs(played.q - task.plan.path(played.s)[0]).max())
    return Verdict(away < NEAR, f"all samples on the path, to {away:.1e} rad (m); allowed {NEAR:g}")


def arrived(task: Task, played: Played) -> Verdict:
    away = float(np.abs(played.q[-1] - task.points[-1]).max())
    rest = float(np.abs(played.qd[-1]).max())
    passed = away < NEAR and rest < NEAR and 2 in played.phase
    return Verdict(passed, f"paused, resumed, and at rest in the end, {away:.1e} rad (m) from the goal")
