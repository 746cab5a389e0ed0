"""One trajectory on its way: where to be, what that asks of the joints, and which limit is nearest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..errors import Rejected
from ..model.tree import Limits
from ..motion.limit_use import LimitUse, Nearest
from ..motion.torque_stream import TorqueStream
from ..robots import kinds
from ..robots.link_side import LinkSideRobot
from ..scaling.reference import Reference
from ..scaling.trajectory_scaler import TrajectoryScaler
from .goal import Goal
from .schedule import Schedule
from .turns import nearest, turning

GOAL = 1e-9  # of the path, within which it is at its end


class Sample(NamedTuple):
    """A reference, its effort and effort rate (n,), and what scaling has to say of it.

    planned     : time of the plan at this place [s]
    delay       : behind it, pauses and overrides aside [s]
    speed       : along the path, as a share of the planned one here; NaN where the plan rests
    binding     : the nearest limit, and what share of it is used
    """

    reference: Reference
    tau: np.ndarray
    tau_rate: np.ndarray
    planned: float
    delay: float
    speed: float
    binding: Nearest


class ExecutedMotion:
    """A goal that a robot executes, or is ready to: where to be, and what that asks of the joints.

    number  : counted from 1
    stopped : why it is not to go on; empty while it is
    """

    def __init__(self, number: int, goal: Goal, scaler: TrajectoryScaler, robot: LinkSideRobot, limits: Limits):
        self.number, self.goal, self.scaler = number, goal, scaler
        self.joint_names = robot.joint_names
        self.stopped = ""
        self.peak, self.peak_of = 0.0, ""  # utilization, of all samples
        self._schedule = Schedule(scaler.plan.law)
        self._torques: TorqueStream | None = None
        self.carry(robot, limits)

    def carry(self, robot: LinkSideRobot, limits: Limits) -> None:
        """Another payload, other limits."""
        self._torques, self.turns = TorqueStream(robot, self._torques), turning(robot.joint_types, limits)
        self.root_link = kinds.tree(robot).root_link
        if (use := LimitUse(robot.joint_names, limits, robot.drive_limits)).labels:
            self._use = use

    def check_start(self, place: np.ndarray, tolerance: float) -> None:
        """Raises Rejected if a robot at this place (n,), NaN where that is not known, is not where the motion begins."""
        start = self.scaler.plan.path.at(0.0)[0]
        away = np.abs(nearest(place, start, self.turns) - start)
        if np.fmax.reduce(away, initial=0.0) > tolerance:
            worst = int(np.nanargmax(away))
            raise Rejected("not_at_start", f"{self.joint_names[worst]} is {away[worst]:.4g} from where it was when the "
                                           "trajectory came")

    def stop(self, why: str) -> None:
        self.stopped = self.stopped or why
        self.scaler.stop()

    def tick(self, dt: float) -> Sample:
        reference = self.scaler.tick(dt)
        assert self._torques is not None
        tau, tau_rate = self._torques(reference.q, reference.qd, reference.qdd, reference.qddd)
        binding = self._use.nearest(tau, tau_rate, reference.qd, reference.qdd, reference.qddd)
        planned, speed = self._schedule.at(reference.s)
        delay = self.scaler.due - planned
        if binding.utilization > self.peak:
            self.peak, self.peak_of = binding.utilization, binding.words
        return Sample(reference, tau, tau_rate, planned, delay, reference.sd / speed, binding)

    @property
    def timing(self) -> str:
        """In words, at its beginning."""
        current, plan = self.scaler.current.law.duration, self.scaler.plan.law.duration
        return f"planned {plan:.2f} s, " + ("as planned" if current <= plan else f"slowed, {current:.2f} s at first")

    def ended(self, last: Reference) -> tuple[bool, str]:
        """Whether it is at its goal, now that it is at rest, and what is to be said of it."""
        plan = self.scaler.plan
        share = last.s / plan.path.length
        arrived = share > 1.0 - GOAL
        place = "at its goal" if arrived else f"stopped at {share:.1%} of its path"
        return arrived, (f"ended {place} after {last.t:.2f} s, planned {plan.law.duration:.2f} s; used {self.peak:.1%} of "
                         f"{self.peak_of}")
