"""Executor with output trajectory or horizon: all requests, and the resulting motion of a simulated controller."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rnea_ros.execution.executor import TrajectoryFollower
from rnea_ros.execution.goal import Outcome
from rnea_ros.execution.states import Phase
from rnea_ros.sim.trajectory_controller import TrajectoryPoints
from support.followed_stage import FollowedStage
from support.reach import LIMITS, POINTS, ROBOT, START
from support.stage import trajectory


class Followed(FollowedStage):
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
    it = Followed(output=output)
    it.take(trajectory())
    it.play(seconds)
    return it


@pytest.mark.parametrize("output", ["trajectory", "horizon"])
def test_controller_motion_is_continuous_through_pause_override_limits_and_stop(output):
    it = begun(0.5, output)
    it.executor.pause()
    it.play(1.0)
    assert it.executor.phase is Phase.PAUSED and not it.commanded[-1][1].any()
    it.executor.resume()
    it.executor.set_override(0.4)
    it.play(0.5)
    it.executor.set_override(1.0)
    it.executor.set_robot(ROBOT, LIMITS.share(effort=1.0, effort_rate=0.7))
    it.settle()
    it.play()
    assert np.abs(it.at_last() - POINTS[-1]).max() < 1e-9
    assert "ended at its goal" in it.events[-1]
    it.check()
    it.measured = POINTS[-1]
    it.take(trajectory(POINTS[::-1]))
    it.play(0.6)
    it.executor.stop()
    it.play()
    assert "stopped at" in it.events[-1] and it.executor.phase is Phase.IDLE
    it.check()
    resting = it.samples[-1].reference.q
    assert np.abs(it.at_last() - resting).max() < 1e-9
    assert np.abs(resting - START).max() > 0.01


@pytest.mark.parametrize("at", [1.58, 1.62, 1.67])
def test_new_limits_near_the_end_of_the_trajectory_have_no_effect(at):
    """The law has ended where the new limits would begin to apply."""
    it = begun(at)
    it.executor.set_robot(ROBOT, LIMITS.share(effort=1.0, effort_rate=0.7))
    it.play()
    assert "ended at its goal" in it.events[-1] and np.abs(it.at_last() - POINTS[-1]).max() < 1e-9
    assert not any("internal error" in event for event in it.events), it.events


def test_new_trajectory_replaces_the_sent_one():
    it = begun(0.5)
    it.measured = np.full(7, np.nan)
    it.take(trajectory(START[None], first=1.0))
    it.play()
    it.check()
    assert np.abs(it.at_last() - START).max() < 1e-9


@pytest.mark.parametrize("output", ["trajectory", "horizon"])
def test_rapid_override_changes_cause_no_jump(output):
    it = begun(0.8, output)
    for share in np.linspace(0.9, 0.2, 8):
        it.executor.set_override(share)
        it.play(0.004)
    it.play(1.0)
    it.executor.set_override(1.0)
    it.play()
    it.check()
    assert np.abs(it.at_last() - POINTS[-1]).max() < 1e-9


@pytest.mark.parametrize("output", ["trajectory", "horizon"])
def test_suspension_before_sending_causes_no_jump(output):
    """The process is suspended before the first message, and after a change was planned."""
    it = Followed(output=output)
    it.stopped = 700
    it.take(trajectory())
    it.play(0.7)
    it.executor.set_override(0.4)
    it.stopped = 700
    it.play()
    assert not it.stopped
    it.check()
    assert np.abs(it.at_last() - POINTS[-1]).max() < 1e-9


def test_late_message_is_reported_and_doubles_the_lead_time():
    it = begun(0.5)
    it.executor.set_override(0.5)
    motion, rolling = it.executor.motion, it.executor.motion.rolling
    assert motion.tick(0.0, it.now, lambda: it.now) and rolling.is_fresh
    lead, parts = rolling.lead_time, motion.start_ns + round(1e9 * rolling.splice_time)
    assert motion.can_splice_in_time(it.now) and motion.mark_sent(parts + 100_000_000) == pytest.approx(0.1, abs=1e-8)
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
    it, reported = Followed(output=output), []
    it.executor.follower = SlowFollower()
    it.executor.follower.says = says
    it.take(replace(trajectory(), on_end=reported.append))
    it.play(0.5)
    return it, reported


@pytest.mark.parametrize("output", ["points", "trajectory"])
def test_motion_ends_with_the_outcome_of_its_follower(output):
    it, reported = played(Outcome("", "Goal successfully reached!"), output)
    it.play()
    assert it.samples[-1].reference.done and not it.samples[-2].reference.done
    assert it.now - it.executor.follower.asked > 1_000_000_000 and np.abs(it.samples[-1].reference.q - POINTS[-1]).max() < 1e-9
    (outcome,) = reported
    assert not outcome.reason and outcome.message.startswith("Goal successfully reached!: ended at its goal")
    it, reported = played(Outcome("path_tolerance", "joint 3 is held"), output)
    it.play()
    assert reported[0].reason == "path_tolerance" and "; joint 3 is held" in it.events[-1]
    start = it.executor._start.positions(ROBOT.joint_names, it.now, 0.01, it.measured)
    assert it.executor.phase is Phase.IDLE and start is START


def test_stop_and_abort_do_not_wait_for_the_follower():
    it, reported = played(None)
    it.play(5.0)
    assert it.executor.phase is Phase.SETTLING
    it.executor.stop("cancelled")
    it.play()
    assert reported[0].reason == "stopped" and reported[0].message.startswith("cancelled: ended at its goal")
    it, reported = played(None)
    motion = it.executor.motion
    it.executor.abort("the controller refuses it", "controller_refused")
    assert reported[0] == ("controller_refused", "the controller refuses it") and it.executor.follower.halted is motion
