"""One trajectory on its way: where to be, what that asks of the joints, and which limit is nearest."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..errors import Rejected
from ..model.tree import Limits
from ..motion.commanded_effort import DECLARED, CommandedEffort
from ..motion.limit_use import LimitUse, Nearest
from ..motion.torque_stream import TorqueStream
from ..robots import kinds
from ..robots.link_side import LinkSideRobot
from ..robots.robot import Robot
from ..scaling.committed import CommittedMotion
from ..scaling.reference import Reference
from ..scaling.spacing import Quantities
from ..scaling.terms import Constraints
from ..scaling.trajectory_scaler import TrajectoryScaler
from .goal import Goal
from .schedule import Schedule
from .turns import nearest, turning
from .watch import Watch

LATE, MOST_STEPS = 0.5, 20  # share of a control period by which a tick may be late; steps in which a later one advances
GOAL = 1e-9  # of the path, within which it is at its end


def quantities(robot: LinkSideRobot, constraints: Constraints) -> Quantities:
    """What a controller's interpolation is to keep: torque, and torque rate where anything bounds it. Robots with loops are
    followed from sample to sample, which takes too long: acceleration and jerk instead."""
    orders = 2 if constraints.third_order else 1
    if isinstance(robot, Robot):
        return lambda *motion: np.concatenate(robot.torque_and_rate(*motion)[:orders], axis=1)
    return lambda *motion: np.concatenate(motion[2:2 + orders], axis=1)


class Sample(NamedTuple):
    """A reference, its torques and the state of scaling.

    effort, effort_rate                     : (n,) whole joint torque and its rate
    commanded_effort, commanded_effort_rate : (n,) values for the robot's controller
    planned     : time of the plan at this place [s]
    delay       : behind it, pauses and overrides aside [s]
    speed       : along the path, as a share of the planned one here; NaN where the plan rests
    binding     : the nearest limit, and what share of it is used
    """

    reference: Reference
    effort: np.ndarray
    effort_rate: np.ndarray
    commanded_effort: np.ndarray
    commanded_effort_rate: np.ndarray
    planned: float
    delay: float
    speed: float
    binding: Nearest


class ExecutedMotion:
    """A goal that a robot executes, or is ready to: where to be, and what that asks of the joints.

    number    : counted from 1
    committed : what is handed out of it, where it is not streamed
    zero      : time at which it begins [ns]; after the time at which it was begun by what a message may take, where it is
                handed out
    watch     : what is seen of the robot that follows it
    stopped   : why it is not to go on, in a sentence and in a word; empty while it is
    rests     : the last sample, once its reference rests at the end
    steps     : references (q, qd, qdd) of the last tick, one for each control period of it; the last is that of its sample
    """

    def __init__(self, number: int, goal: Goal, scaler: TrajectoryScaler, robot: LinkSideRobot, limits: Limits, watch: Watch,
                 committed: CommittedMotion | None = None, commanded_effort: str = DECLARED):
        self.number, self.goal, self.scaler, self.committed = number, goal, scaler, committed
        self.zero = 0
        self._asked = 0  # since when a change is wanted that is not made yet [ns]
        self.joint_names = robot.joint_names
        self.watch = watch
        self.stopped = self.reason = ""
        self.rests: Sample | None = None
        self.steps: list[Reference] = []
        self.peak, self.peak_of = 0.0, ""  # utilization, of all samples
        self._schedule = Schedule(scaler.plan.law)
        self._torques: TorqueStream | None = None
        self._commanded_contains = commanded_effort
        self.carry(robot, limits)

    def carry(self, robot: LinkSideRobot, limits: Limits) -> None:
        """Another payload, other limits."""
        self._torques, self.turns = TorqueStream(robot, self._torques), turning(robot.joint_types, limits)
        self._commanded = CommandedEffort(robot, self._commanded_contains)
        self.watch.carry(robot, limits)
        self.root_link = kinds.tree(robot).root_link
        if self.committed is not None:
            self.committed.quantities = quantities(robot, self.scaler.constraints)
        if (use := LimitUse.of(robot, limits)).labels:
            self._use = use

    def check_start(self, place: np.ndarray, tolerance: float) -> None:
        """Raises Rejected if a robot at this place (n,), NaN where that is not known, is not where the motion begins."""
        start = self.scaler.plan.path.at(0.0)[0]
        away = np.abs(nearest(place, start, self.turns) - start)
        if np.fmax.reduce(away, initial=0.0) > tolerance:
            worst = int(np.nanargmax(away))
            raise Rejected("not_at_start", f"{self.joint_names[worst]} is {away[worst]:.4g} from where it was when the "
                                           "trajectory came")

    def stop(self, why: str, reason: str = "stopped") -> None:
        if not self.stopped:
            self.stopped, self.reason = why, reason
        self.scaler.stop()

    def begin(self, now: int) -> None:
        """At a time [ns]."""
        self.zero = now + round(self.committed.lead * 1e9) if self.committed is not None else now

    def change(self, constraints: Constraints) -> None:
        """Other limits, or another payload, on its path."""
        (self.committed or self.scaler).change(constraints)

    def tick(self, dt: float, now: int, clock: Callable[[], int],
             ready: Callable[[int, int], bool] = lambda asked, now: True, period: float = np.inf) -> Sample:
        """Return the sample dt [s] after the last tick; of whole trajectories that at time now [ns], by the clock. After the
        end the last sample is returned again.

        ready: see Follower. period: of control [s]; a late tick advances in steps of it (`steps`), so that who interpolates
        between references never has to bridge more than one period.
        """
        if self.rests is not None:
            return self.rests
        if self.committed is None:
            count = int(np.clip(np.ceil(dt / period - LATE), 1, MOST_STEPS))
            for k in range(count):
                reference = self.scaler.tick(dt / count)
                self.steps = [*(self.steps if k else ()), reference]
                if reference.done:
                    break
        else:
            reference = self._seen(self.committed, now, clock, ready)
        assert self._torques is not None
        found = self._torques(reference.q, reference.qd, reference.qdd, reference.qddd)
        binding = self._use.nearest(found.tau, found.tau_rate, reference.q, reference.qd, reference.qdd, reference.qddd)
        planned, speed = self._schedule.at(reference.s)
        delay = self.scaler.due - planned
        if binding.utilization > self.peak:
            self.peak, self.peak_of = binding.utilization, binding.words
        commanded = self._commanded(found, reference.qd, reference.qdd)
        sample = Sample(reference, found.tau, found.tau_rate, *commanded, planned, delay, reference.sd / speed, binding)
        self.rests = sample if reference.done else None
        return sample

    def _seen(self, committed: CommittedMotion, now: int, clock: Callable[[], int],
              ready: Callable[[int, int], bool]) -> Reference:
        t = 1e-9 * (now - self.zero)
        if not committed.stale(t):
            self._asked = 0
        else:
            self._asked = self._asked or now
            if ready(self._asked, now) and committed.renew(lambda: 1e-9 * (clock() - self.zero)):
                self._asked = 0
        return committed.at(t)

    def sendable(self, now: int) -> bool:
        """Whether what is fresh of it reaches who follows before it parts from what he has, if it is sent now [ns]. If not, it
        is taken back with the next tick, or where nobody has anything of the motion yet, that begins later."""
        assert self.committed is not None
        if 1e-9 * (now - self.zero) <= self.committed.send_by:
            return True
        if self.committed.heard_of:
            self.committed.not_sent()
        else:
            self.begin(now)
        return False

    def sent(self, now: int) -> float:
        """What was fresh of it has been sent by now [ns]. Returns by how much that may have been too late [s]."""
        assert self.committed is not None
        late = 1e-9 * (now - self.zero) - self.committed.parts if self.committed.heard_of else 0.0
        self.committed.sent()
        if late > 0.0:
            self.committed.take_longer()
        return late

    @property
    def timing(self) -> str:
        """In words, at its beginning."""
        current, plan = self.scaler.current.law.duration, self.scaler.plan.law.duration
        return f"planned {plan:.2f} s, " + ("as planned" if current <= plan else f"scaled to {current:.2f} s")

    def ended(self, last: Reference) -> tuple[bool, str]:
        """Whether it is at its goal, now that it is at rest, and what is to be said of it."""
        plan = self.scaler.plan
        share = last.s / plan.path.length
        arrived = share > 1.0 - GOAL
        place = "at its goal" if arrived else f"stopped at {share:.1%} of its path"
        return arrived, (f"ended {place} after {last.t:.2f} s, planned {plan.law.duration:.2f} s; used {self.peak:.1%} of "
                         f"{self.peak_of}")
