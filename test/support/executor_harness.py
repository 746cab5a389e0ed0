"""Trajectory executor without threads: the test advances the clock tick by tick and runs the workers."""

from __future__ import annotations

import math
from collections import deque
from concurrent.futures import Executor, Future

import numpy as np

from rnea_ros.errors import Rejected
from rnea_ros.execution.executor import TrajectoryExecutor
from rnea_ros.execution.goal import TrajectoryPoint, read_goal
from rnea_ros.execution.joint_states import no_measurement
from rnea_ros.execution.states import Phase
from support.overspeed_motion import DURATION, LIMITS, POINTS, ROBOT

MONITOR_OFF = {"watch.tolerance": 0.0, "watch.path_tolerance": 0.0, "watch.goal_tolerance": 0.0, "watch.goal_time": 0.0,
               "watch.lag": 0.1, "watch.recovery": 5.0}
VALUES = {"interpolation": "positions", "catch_up": True, "solve_first": False, "start_tolerance": 0.01,
          "start_mismatch": "refuse", "on_new_trajectory": "replace", "output": "points",
          "control_rate": 1000.0, "horizon": 0.5, "lead": 0.1, "commanded_effort": "robot_file", **MONITOR_OFF,
          "policy_frequency": 30.0, "policy.timeout": 0.5, "policy.lead": 0.2, "policy.max_age": 1.0, "policy.max_step": 0.5,
          "policy.tolerance": 0.02, "policy.max_stretch": 6.0, "policy.blending": "newest", "policy.ensemble_decay": 0.01,
          "policy.alignment": "time", "policy.alignment_time": 0.1}
DT = 1e-3


def trajectory(points=POINTS, duration=DURATION, first=0.0, start=0):
    times = first + np.linspace(0.0, duration, len(points)) if len(points) > 1 else [first]
    points = [TrajectoryPoint(float(t), q) for t, q in zip(times, points)]
    return read_goal(ROBOT.joint_names, ROBOT.joint_names, points, start)


class DeferredExecutor(Executor):
    """Worker that works on request."""

    def __init__(self):
        self._waiting = deque()

    def submit(self, work, /, *args):
        future = Future()
        self._waiting.append((future, work, args))
        return future

    def work(self):
        """Execute all waiting work; return whether there was any."""
        found = bool(self._waiting)
        while self._waiting:
            future, work, args = self._waiting.popleft()
            try:
                future.set_result(work(*args))
            except BaseException as error:  # a real worker passes on every error, too
                future.set_exception(error)
        return found


class ExecutorHarness:
    """Trajectory executor for `arm` with recorded reports and, optionally, a simulated robot."""

    def __init__(self, limits=LIMITS, robot=None, arm=ROBOT, **values):
        self.samples, self.events, self.rejected, self.measured = [], [], [], np.full(arm.n, math.nan)
        self.results = []  # of action chunks
        self.now, self.wakes = 1_000_000_000, 0
        self.worker, self.solver, self.robot = DeferredExecutor(), DeferredExecutor(), robot
        self.executor = TrajectoryExecutor(
            VALUES | values, lambda names: self.measured, lambda well, text: self.events.append(text), self.rejected.append,
            self.wake, worker=self.worker, solver=self.solver, clock=lambda: self.now,
            measurement=self._measurement, on_chunk=self.results.append)
        self.executor.set_robot(arm, limits)

    def _measurement(self, names):
        return self.robot.seen(names) if self.robot and self.robot.reported else no_measurement(names)

    def wake(self):
        self.wakes += 1

    def take(self, goal):
        self.executor.accept(goal, self.now)
        self.settle()

    def settle(self):
        """Execute the work of the workers until none is left."""
        while self.worker.work() or self.solver.work():
            pass

    def play(self, seconds=math.inf):
        """Tick until a time, or the end of all motions; the solver keeps pace with the ticks."""
        begun = self.now
        while self.executor.phase not in (Phase.IDLE, Phase.NO_MODEL) and self.now - begun < seconds * 1e9:
            self.now += round(DT * 1e9)
            try:
                found = self.executor.tick(self.now, DT)
            except Rejected as rejected:
                self.rejected.append(rejected)
                found = None
            if found:
                self.samples.append(found[1])
                if self.robot:
                    self.robot.tick(found[1].reference, self.now)
            if len(self.samples) % 50 == 0 or self.executor.motion is None:
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
