"""One trajectory on its way: where to be, what that asks of the joints, and which limit is nearest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..model.tree import Limits
from ..robots.robot import Robot
from ..scaling.replay import Reference, TrajectoryScaler
from ..scaling.terms import QUANTITIES
from .goal import Goal
from .schedule import Schedule
from .turns import turning


class Sample(NamedTuple):
    """A reference, its effort and effort rate (n,), and what scaling has to say of it.

    planned  : time of the plan at this place [s]
    lateness : behind it, pauses and overrides aside [s]
    speed    : along the path, as a share of the planned one here; NaN where the plan rests
    use      : of the limit that is used most: joint number, quantity
    """

    reference: Reference
    tau: np.ndarray
    tau_rate: np.ndarray
    planned: float
    lateness: float
    speed: float
    use: float
    joint: int
    quantity: str


class ExecutedMotion:
    """A replay of a goal by a robot."""

    def __init__(self, number: int, goal: Goal, replay: TrajectoryScaler, robot: Robot, limits: Limits):
        self.number, self.goal, self.replay = number, goal, replay
        self.joint_names = robot.joint_names
        self.begun, self.stopped = False, ""  # why
        self.peak, self.peak_of = 0.0, ""  # of all samples
        self._schedule = Schedule(replay.plan.law)
        self.carry(robot, limits)

    def carry(self, robot: Robot, limits: Limits) -> None:
        """Another payload, other limits."""
        self.robot, self.turns = robot, turning(robot.joint_types, limits)
        known = np.stack([getattr(limits, quantity) for quantity in QUANTITIES])
        if np.isfinite(known).any():
            self._limits = known

    def stop(self, why: str) -> None:
        self.stopped = self.stopped or why
        self.replay.stop()

    def tick(self, dt: float) -> Sample:
        reference = self.replay.tick(dt)
        tau, tau_rate = self.robot.dynamics(reference.q, reference.qd, reference.qdd, reference.qddd)[:2]
        used = np.abs((tau, tau_rate, reference.qd, reference.qdd, reference.qddd)) / self._limits
        most = int(np.nanargmax(used))
        quantity, joint = divmod(most, used.shape[1])
        use = float(used.flat[most])
        if use > self.peak:
            self.peak, self.peak_of = use, self.described(joint, QUANTITIES[quantity])
        planned, speed = self._schedule.at(reference.s)
        late = self.replay.due - planned
        return Sample(reference, tau, tau_rate, planned, late, reference.sd / speed, use, joint, QUANTITIES[quantity])

    def described(self, joint: int, quantity: str) -> str:
        return f"{quantity.replace('_', ' ')} of {self.joint_names[joint]}"
