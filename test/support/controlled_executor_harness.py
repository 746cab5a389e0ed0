"""Executor harness whose motions are sent to a simulated trajectory controller at 1 kHz."""

from __future__ import annotations

from concurrent.futures import Future

import numpy as np

from support.executor_harness import ExecutorHarness
from support.overspeed_motion import LIMITS, ROBOT, START
from support.trajectory_controller import TrajectoryController


def done(value) -> Future:
    future = Future()
    future.set_result(value)
    return future


def failed(error) -> Future:
    future = Future()
    future.set_exception(error)
    return future


class ControlledExecutorHarness(ExecutorHarness):
    """Executor harness with a trajectory controller; `commanded` has the states of all its updates."""

    def __init__(self, **values):
        super().__init__(**values)
        self.controller, self.commanded, self.measured = TrajectoryController(START), [], START

    def update(self):
        """Update the controller before each tick."""
        self.commanded.append(self.controller.update(self.now * 1e-9))

    def send(self, motion, sample):
        """Pass the result of a tick to the controller."""
        raise NotImplementedError

    def play(self, seconds=np.inf):
        tick = self.executor.tick

        def followed(now, dt):
            self.update()
            found = tick(now, dt)
            if found is not None:
                self.send(*found)
            return found

        self.executor.tick = followed
        try:
            return super().play(seconds)
        finally:
            del self.executor.tick

    def at_last(self):
        """Return the position at which the controller rests."""
        return self.controller.update(self.now * 1e-9 + 1.0)[0]

    def check(self):
        """Check that commands are within the limits and form one smooth curve."""
        q, qd, qdd = (np.array([state[k] for state in self.commanded]) for k in range(3))
        tau = ROBOT.inverse_dynamics(q, qd, qdd)
        rate = np.diff(tau, axis=0) / 1e-3
        assert (np.abs(tau) / LIMITS.effort).max() < 1.06 and (np.abs(rate) / LIMITS.effort_rate).max() < 1.12
        assert self.used() <= 1.0 + 1e-6
        assert np.abs(np.diff(q, axis=0) - 0.5e-3 * (qd[1:] + qd[:-1])).max() < 1e-5
