"""A performer whose time is told by the test, tick by tick; without ROS."""

from __future__ import annotations

import math

import numpy as np

from rnea_ros.errors import Rejected
from rnea_ros.execution import execution_context
from rnea_ros.execution.goal import TrajectoryPoint, read
from rnea_ros.execution.trajectory_executor import Phase, TrajectoryExecutor
from rnea_ros.motion.path_dynamics import PathDynamics
from support.reach import DURATION, DYNAMICS, LIMITS, POINTS, ROBOT

VALUES = {"interpolation": "positions", "catch_up": True, "solve_first": False, "start_tolerance": 0.01,
          "start_mismatch": "refuse", "on_new_trajectory": "replace"}
DT = 1e-3


def trajectory(points=POINTS, duration=DURATION, first=0.0, start=0):
    times = first + np.linspace(0.0, duration, len(points)) if len(points) > 1 else [first]
    return read(ROBOT.joint_names, ROBOT.joint_names, [TrajectoryPoint(float(t), q) for t, q in zip(times, points)], start)


class Stage:
    """A performer whose time is told by the test."""

    def __init__(self, limits=LIMITS, **values):
        self.samples, self.said, self.refusals, self.measured = [], [], [], np.full(7, math.nan)
        self.now, self.wakes = 1_000_000_000, 0
        self.performer = TrajectoryExecutor(VALUES | values, lambda names: self.measured, lambda well,
                                            text: self.said.append(text),
                                   self.refusals.append, self.wake)
        self.performer.use(ROBOT, limits)

    def wake(self):
        self.wakes += 1

    def take(self, goal):
        self.performer.take(goal, self.now)
        self.settle()

    def settle(self):
        """Until the workers have done what they had to do."""
        for worker in (self.performer._maker, self.performer._solver, self.performer._maker):
            worker.submit(int).result()

    def play(self, seconds=math.inf):
        """Until then, or the end of all motions; the solver keeps pace with the ticks."""
        begun = self.now
        while self.performer.phase not in (Phase.IDLE, Phase.NO_MODEL) and self.now - begun < seconds * 1e9:
            self.now += round(DT * 1e9)
            try:
                found = self.performer.tick(self.now, DT)
            except Rejected as refusal:
                self.refusals.append(refusal)
                found = None
            if found:
                self.samples.append(found[1])
            if len(self.samples) % 50 == 0 or self.performer.motion is None:
                self.settle()
            assert self.now - begun < 60e9
        return self

    def motion(self):
        return [np.array([getattr(sample.reference, name) for sample in self.samples]) for name in ("q", "qd", "qdd", "qddd")]

    def used(self, robot=ROBOT, limits=LIMITS, since=0):
        motion = [x[since:] for x in self.motion()]
        tau, rate = robot.torque_and_rate(*motion)
        return max(np.abs(value / limit).max() for value, limit in ((tau, limits.effort), (rate, limits.effort_rate),
                                                                    (motion[1], limits.velocity)))

    def close(self):
        self.performer.close()


def stages(monkeypatch):
    """A fixture: makes stages, whose robot is compiled once for all tests."""
    compiled = {ROBOT: DYNAMICS}
    monkeypatch.setattr(execution_context, "PathDynamics", lambda robot: compiled.get(robot) or PathDynamics(robot))
    made = []

    def make(*args, **values):
        made.append(Stage(*args, **values))
        return made[-1]

    yield make
    for one in made:
        one.close()
