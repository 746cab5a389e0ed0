"""Executor with output trajectory or horizon: all requests, and the resulting motion of a simulated controller."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rnea_ros.execution.executor import TrajectoryFollower
from rnea_ros.execution.goal import Outcome
from rnea_ros.execution.states import Phase
from support.controlled_executor_harness import ControlledExecutorHarness
from support.executor_harness import trajectory
from support.overspeed_motion import LIMITS, POINTS, ROBOT, START
from support.trajectory_controller import TrajectoryPoints


class Followed(ControlledExecutorHarness):
    """Motion of a controller that receives each message in the next cycle."""

    stopped = 0  # ms; duration of a suspension before the next message

    def stop(self):
        """Suspend the process before it sends; the controller continues."""
        for _ in range(self.stopped):
            self.now += 1_000_000
            self.update()
        self.stopped = 0

    def send(self, motion, sample):
        before, rolling = self.now, motion.rolling
        if rolling is not None and rolling.is_fresh:
            self.stop()
        if rolling is not None and rolling.is_fresh and motion.can_splice_in_time(self.now):
            assert motion.mark_sent(self.now) <= 0.0
            times, *fields = rolling.points[:4]
            self.controller.set_trajectory(TrajectoryPoints(motion.start_ns * 1e-9 + times, *fields), before * 1e-9)


def begun(seconds, output="trajectory"):
    """Return a harness with a motion executed for some time."""
    sim = Followed(output=output)
    sim.take(trajectory())
    sim.play(seconds)
    return sim


@pytest.mark.parametrize("output", ["trajectory", "horizon"])
def test_controller_motion_is_continuous_through_pause_override_limits_and_stop(output):
    sim = begun(0.5, output)
    sim.executor.pause()
    sim.play(1.0)
    assert sim.executor.phase is Phase.PAUSED and not sim.commanded[-1][1].any()
    sim.executor.resume()
    sim.executor.set_override(0.4)
    sim.play(0.5)
    sim.executor.set_override(1.0)
    sim.executor.set_robot(ROBOT, LIMITS.share(effort=1.0, effort_rate=0.7))
    sim.settle()
    sim.play()
    assert np.abs(sim.at_last() - POINTS[-1]).max() < 1e-9
    assert "ended at its goal" in sim.events[-1]
    sim.check()
    sim.measured = POINTS[-1]
    sim.take(trajectory(POINTS[::-1]))
    sim.play(0.6)
    sim.executor.stop()
    sim.play()
    assert "stopped at" in sim.events[-1] and sim.executor.phase is Phase.IDLE
    sim.check()
    resting = sim.samples[-1].reference.q
    assert np.abs(sim.at_last() - resting).max() < 1e-9
    assert np.abs(resting - START).max() > 0.01


@pytest.mark.parametrize("at", [1.58, 1.62, 1.67])
def test_new_limits_near_the_end_of_the_trajectory_have_no_effect(at):
    """The law has ended where the new limits would begin to apply."""
    sim = begun(at)
    sim.executor.set_robot(ROBOT, LIMITS.share(effort=1.0, effort_rate=0.7))
    sim.play()
    assert "ended at its goal" in sim.events[-1] and np.abs(sim.at_last() - POINTS[-1]).max() < 1e-9
    assert not any("internal error" in event for event in sim.events), sim.events


def test_new_trajectory_replaces_the_sent_one():
    sim = begun(0.5)
    sim.measured = np.full(7, np.nan)
    sim.take(trajectory(START[None], first=1.0))
    sim.play()
    sim.check()
    assert np.abs(sim.at_last() - START).max() < 1e-9


@pytest.mark.parametrize("output", ["trajectory", "horizon"])
def test_rapid_override_changes_cause_no_jump(output):
    sim = begun(0.8, output)
    for share in np.linspace(0.9, 0.2, 8):
        sim.executor.set_override(share)
        sim.play(0.004)
    sim.play(1.0)
    sim.executor.set_override(1.0)
    sim.play()
    sim.check()
    assert np.abs(sim.at_last() - POINTS[-1]).max() < 1e-9


@pytest.mark.parametrize("output", ["trajectory", "horizon"])
def test_suspension_before_sending_causes_no_jump(output):
    """The process is suspended before the first message, and after a change was planned."""
    sim = Followed(output=output)
    sim.stopped = 700
    sim.take(trajectory())
    sim.play(0.7)
    sim.executor.set_override(0.4)
    sim.stopped = 700
    sim.play()
    assert not sim.stopped
    sim.check()
    assert np.abs(sim.at_last() - POINTS[-1]).max() < 1e-9


def test_late_message_is_reported_and_doubles_the_lead_time():
    sim = begun(0.5)
    sim.executor.set_override(0.5)
    motion, rolling = sim.executor.motion, sim.executor.motion.rolling
    assert motion.tick(0.0, sim.now, lambda: sim.now) and rolling.is_fresh
    lead, parts = rolling.lead_time, motion.start_ns + round(1e9 * rolling.splice_time)
    assert motion.can_splice_in_time(sim.now) and motion.mark_sent(parts + 100_000_000) == pytest.approx(0.1, abs=1e-8)
    assert not rolling.is_fresh and rolling.lead_time == 2.0 * lead


class SlowFollower(TrajectoryFollower):
    """Follower that reaches the goal one second late, with an outcome set by the test."""

    says, halted, asked = Outcome(), None, None

    def goal_outcome(self, motion, now):
        self.asked = self.asked or now
        return self.says if now - self.asked > 1_000_000_000 else None

    def cancel(self, motion):
        self.halted = motion


def played(says, output="trajectory"):
    sim, reported = Followed(output=output), []
    sim.executor.follower = SlowFollower()
    sim.executor.follower.says = says
    sim.take(replace(trajectory(), on_end=reported.append))
    sim.play(0.5)
    return sim, reported


@pytest.mark.parametrize("output", ["points", "trajectory"])
def test_motion_ends_with_the_outcome_of_its_follower(output):
    sim, reported = played(Outcome("", "Goal successfully reached!"), output)
    sim.play()
    assert sim.samples[-1].reference.done and not sim.samples[-2].reference.done
    assert sim.now - sim.executor.follower.asked > 1_000_000_000
    assert np.abs(sim.samples[-1].reference.q - POINTS[-1]).max() < 1e-9
    (outcome,) = reported
    assert not outcome.reason and outcome.message.startswith("Goal successfully reached!: ended at its goal")
    sim, reported = played(Outcome("path_tolerance", "joint 3 is held"), output)
    sim.play()
    assert reported[0].reason == "path_tolerance" and "; joint 3 is held" in sim.events[-1]
    start = sim.executor._start.positions(ROBOT.joint_names, sim.now, 0.01, sim.measured)
    assert sim.executor.phase is Phase.IDLE and start is START


def test_stop_and_abort_do_not_wait_for_the_follower():
    sim, reported = played(None)
    sim.play(5.0)
    assert sim.executor.phase is Phase.SETTLING
    sim.executor.stop("cancelled")
    sim.play()
    assert reported[0].reason == "stopped" and reported[0].message.startswith("cancelled: ended at its goal")
    sim, reported = played(None)
    motion = sim.executor.motion
    sim.executor.abort("the controller refuses it", "controller_refused")
    assert reported[0] == ("controller_refused", "the controller refuses it") and sim.executor.follower.halted is motion
