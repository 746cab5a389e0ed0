"""One trajectory on its way: where to be, what that asks of the joints, and which limit is nearest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..model.tree import Limits
from ..robots.robot import Robot
from ..scaling.terms import QUANTITIES
from ..scaling.trajectory_scaler import Reference, TrajectoryScaler
from .goal import Goal
from .schedule import Schedule
from .turns import turning


class Sample(NamedTuple):
    """A reference, its effort and effort rate (n,), and what scaling has to say of it.

    planned     : time of the plan at this place [s]
    delay       : behind it, pauses and overrides aside [s]
    speed       : along the path, as a share of the planned one here; NaN where the plan rests
    utilization : of the nearest limit, which is that of `quantity` of joint number `joint`
    """

    reference: Reference
    tau: np.ndarray
    tau_rate: np.ndarray
    planned: float
    delay: float
    speed: float
    utilization: float
    joint: int
    quantity: str


class ExecutedMotion:
    """A goal on its way to being executed by a robot: its trajectory scaler, and what that asks of the joints."""

    def __init__(self, number: int, goal: Goal, scaler: TrajectoryScaler, robot: Robot, limits: Limits):
        self.number, self.goal, self.scaler = number, goal, scaler
        self.joint_names = robot.joint_names
        self.begun, self.stopped = False, ""  # why
        self.peak, self.peak_of = 0.0, ""  # of all samples
        self._schedule = Schedule(scaler.plan.law)
        self.carry(robot, limits)

    def carry(self, robot: Robot, limits: Limits) -> None:
        """Another payload, other limits."""
        self.robot, self.turns = robot, turning(robot.joint_types, limits)
        known = np.stack([getattr(limits, quantity) for quantity in QUANTITIES])
        if np.isfinite(known).any():
            self._limits = known

    def stop(self, why: str) -> None:
        self.stopped = self.stopped or why
        self.scaler.stop()

    def tick(self, dt: float) -> Sample:
        reference = self.scaler.tick(dt)
        tau, tau_rate = self.robot.dynamics(reference.q, reference.qd, reference.qdd, reference.qddd)[:2]
        used = np.abs((tau, tau_rate, reference.qd, reference.qdd, reference.qddd)) / self._limits
        most = int(np.nanargmax(used))
        quantity, joint = divmod(most, used.shape[1])
        utilization = float(used.flat[most])
        if utilization > self.peak:
            self.peak, self.peak_of = utilization, self.described(joint, QUANTITIES[quantity])
        planned, speed = self._schedule.at(reference.s)
        delay = self.scaler.due - planned
        return Sample(reference, tau, tau_rate, planned, delay, reference.sd / speed, utilization, joint, QUANTITIES[quantity])

    def described(self, joint: int, quantity: str) -> str:
        return f"{quantity.replace('_', ' ')} of {self.joint_names[joint]}"
