"""The executor where motions are handed out instead of streamed: everything that may be asked of it, and who follows them."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_ros.execution.states import Phase
from rnea_ros.sim.trajectory_controller import Trajectory, TrajectoryController
from support.reach import LIMITS, POINTS, ROBOT, START
from support.stage import Stage, trajectory


class Followed(Stage):
    """What a controller makes of it, which hears of each message at the next tick."""

    def __init__(self, **values):
        super().__init__(**values)
        self.controller, self.commanded = TrajectoryController(START), []

    def play(self, seconds=np.inf):
        tick = self.executor.tick

        def followed(now, dt):
            self.commanded.append(self.controller.update(now * 1e-9))
            found = tick(now, dt)
            committed = found[0].committed if found else None
            if committed is not None and committed.fresh:
                committed.fresh = False
                times, *fields = committed.points[:4]
                self.controller.take(Trajectory(found[0].zero * 1e-9 + times, *fields), now * 1e-9)
            return found

        self.executor.tick = followed
        try:
            return super().play(seconds)
        finally:
            del self.executor.tick


def check(it):
    q, qd, qdd = (np.array([state[k] for state in it.commanded]) for k in range(3))
    tau = ROBOT.inverse_dynamics(q, qd, qdd)
    rate = np.diff(tau, axis=0) / 1e-3
    assert (np.abs(tau) / LIMITS.effort).max() < 1.06 and (np.abs(rate) / LIMITS.effort_rate).max() < 1.12
    assert it.used() <= 1.0 + 1e-6
    assert np.abs(np.diff(q, axis=0) - 0.5e-3 * (qd[1:] + qd[:-1])).max() < 1e-5


@pytest.mark.parametrize("output", ["trajectory", "horizon"])
def test_a_controller_follows_through_pause_override_limits_and_stop(output):
    it = Followed(output=output)
    it.measured = START
    it.take(trajectory())
    it.play(0.5)
    it.executor.pause()
    it.play(1.0)
    assert it.executor.phase is Phase.PAUSED and not it.commanded[-1][1].any()
    it.executor.resume()
    it.executor.set_override(0.4)
    it.play(0.5)
    it.executor.set_override(1.0)
    it.executor.use(ROBOT, LIMITS.share(effort=1.0, effort_rate=0.7))
    it.settle()
    it.play()
    assert np.abs(it.controller.update(it.now * 1e-9 + 1.0)[0] - POINTS[-1]).max() < 1e-9
    assert "ended at its goal" in it.events[-1]
    check(it)
    it.measured = POINTS[-1]
    it.take(trajectory(POINTS[::-1]))
    it.play(0.6)
    it.executor.stop()
    it.play()
    assert "stopped at" in it.events[-1] and it.executor.phase is Phase.IDLE
    check(it)
    resting = it.samples[-1].reference.q
    assert np.abs(it.controller.update(it.now * 1e-9 + 1.0)[0] - resting).max() < 1e-9
    assert np.abs(resting - START).max() > 0.01


def test_a_new_trajectory_replaces_the_one_that_is_handed_out():
    it = Followed(output="trajectory")
    it.measured = START
    it.take(trajectory())
    it.play(0.5)
    it.measured = np.full(7, np.nan)
    it.take(trajectory(START[None], first=1.0))
    it.play()
    check(it)
    assert np.abs(it.controller.update(it.now * 1e-9 + 1.0)[0] - START).max() < 1e-9
