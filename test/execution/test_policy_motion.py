"""Action chunks in a trajectory executor: one motion inside the limits, with stop, pause and override."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from rnea_ros.execution.controller import TrajectorySpline
from rnea_ros.execution.executed_motion import ActionChunk, PolicyMotion
from rnea_ros.execution.states import Phase
from rnea_ros.trajectory import chunk_executor
from support.executor_harness import DT, ExecutorHarness, trajectory
from support.overspeed_motion import LIMITS, POINTS, ROBOT, START

NS = 1_000_000_000
PERIOD = 1.0 / 30.0
COUNT = 30
OUTPUTS = ("points", "horizon")


def intent(t):
    """Return the positions (samples, 7) of a policy at times since its start [s], from START at rest."""
    t = np.maximum(np.asarray(t, dtype=float), 0.0)[:, None]
    return START + 0.15 * (1.0 - np.cos(1.5 * t)) * np.array([1.0, 0.5, -0.6, 0.7, 0.8, -0.5, 1.0])


class Policy:
    """Policy that sends a chunk every 0.2 s from an observation that is 0.1 s old."""

    def __init__(self, **values):
        self.sim = ExecutorHarness(**values)
        self.sim.measured, self.began = START.copy(), self.sim.now
        self.sim.settle()

    @property
    def t(self):
        return 1e-9 * (self.sim.now - self.began)

    def chunk(self, stamp, offset=0.0, names=ROBOT.joint_names, times=False):
        columns = [ROBOT.joint_names.index(name) for name in names]
        points = intent(stamp + PERIOD * np.arange(COUNT))[:, columns] + offset
        return ActionChunk(self.began + round(stamp * NS), names, points.tolist(),
                           PERIOD * np.arange(COUNT) if times else None)

    def push(self, chunk=None):
        """Push a chunk; return its result if it is known immediately."""
        before = len(self.sim.results)
        self.sim.executor.push_chunk(chunk or self.chunk(self.t - 0.1), self.sim.now)
        self.sim.settle()
        return self.sim.results[-1] if len(self.sim.results) > before else None

    def run(self, seconds):
        for _ in range(round(seconds / 0.2)):
            self.push()
            self.play(0.2)
        return self

    def play(self, seconds=60.0):
        self.sim.play(seconds)
        if self.sim.executor.phase is Phase.IDLE:  # advance the clock
            self.sim.now = max(self.sim.now, self.began)
        return self

    @property
    def phase(self):
        return self.sim.executor.phase

    def require_one_motion(self, since=0):
        """Check that positions, velocities and accelerations are consistent, and torques inside the limits."""
        assert self.sim.used(since=since) <= 1.0
        q, qd, qdd, qddd = (x[since:] for x in self.sim.motion())
        for value, rate, scale in ((q, qd, 1e-6), (qd, qdd, 1e-4), (qdd, qddd, 0.3)):
            change = np.diff(value, axis=0) - 0.5 * DT * (rate[1:] + rate[:-1])
            assert np.abs(change).max() < scale


@pytest.mark.parametrize("output", OUTPUTS)
def test_policy_motion_is_executed_to_rest(output):
    policy = Policy(output=output).run(2.0)
    assert [result.reason for result in policy.sim.results] == ["accepted"] * 10 and policy.phase is Phase.MOVING
    t = np.array([sample.reference.t for sample in policy.sim.samples])
    q = policy.sim.motion()[0]
    late = t > 0.5
    assert np.abs(q[late] - intent(t[late] + 1e-3)).max() < 3e-3
    policy.play()
    policy.require_one_motion()
    last = policy.sim.samples[-1]
    assert policy.phase is Phase.IDLE and last.reference.done and not last.reference.qd.any()
    assert any("no chunk was accepted for 0.5 s" in text and "10 chunks accepted" in text for text in policy.sim.events)
    policy.sim.measured = last.reference.q.copy()
    assert policy.push(policy.chunk(policy.t, 0.9)) is None and policy.play(0.1).phase is Phase.MOVING  # a new motion
    assert policy.sim.results[-1].reason == "step_too_large" and policy.sim.executor.motion.number == 2


def test_published_points_determine_the_motion_until_rest():
    """A controller that interpolates the published points reproduces the motion, also with updated points."""
    policy = Policy(output="horizon")
    published = []

    def publish():
        motion = policy.sim.executor.motion
        if isinstance(motion, PolicyMotion) and motion.rolling.is_fresh:
            assert motion.can_splice_in_time(policy.sim.now)
            published.append((motion.rolling.splice_time, TrajectorySpline(*motion.rolling.points[:4])))
            assert motion.mark_sent(policy.sim.now) <= 0.0

    for k in range(180):
        if k % 30 == 0:
            policy.push(policy.chunk(policy.t - 0.1, 0.01 * (k // 30 % 2)))
        policy.play(0.01)
        publish()
    assert len(published) == 6
    assert np.abs(published[-1][1](99.0, 3)[1]).max() < 1e-12
    samples = [sample.reference for sample in policy.sim.samples]
    for (splice, spline), (until, _) in zip(published, [*published[1:], (np.inf, None)]):
        for reference in samples:
            if splice - 0.1 < reference.t < until:
                q, _, qdd = spline(reference.t, 3)
                assert np.abs(q - reference.q).max() < 1e-8 and np.abs(qdd - reference.qdd).max() < 1e-5


def test_trajectory_too_late_for_its_splice_is_not_executed():
    policy = Policy(output="horizon")
    policy.push()
    policy.play(0.3)
    motion = policy.sim.executor.motion
    assert motion.rolling.is_fresh
    motion.mark_sent(policy.began + 1)
    assert policy.push().accepted
    policy.sim.now += round(0.5 * NS)  # the process is suspended before it is sent
    assert motion.rolling.lead_time == 0.2
    policy.sim.executor.tick(policy.sim.now, DT)
    assert not motion.can_splice_in_time(policy.sim.now) and motion.rolling.lead_time == 0.4
    policy.play(0.1)
    assert not motion.rolling.is_fresh and policy.push().accepted
    assert 0.2 < motion.rolling.lead_time < 0.4  # it recovers with each chunk


@pytest.mark.parametrize("output", OUTPUTS)
def test_lead_grows_when_chunks_are_not_planned_in_time(output, monkeypatch):
    """Each reading of the clock is 0.08 s after the previous one, too slow for half of the lead of 0.2 s."""
    clock = iter(0.08 * np.arange(10_000))
    monkeypatch.setattr(chunk_executor, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    policy = Policy(output=output).run(1.0)
    assert [result.reason for result in policy.sim.results] == ["not_in_time"] + ["accepted"] * 4
    shown = policy.sim.executor.motion.diagnostics(policy.sim.samples[-1].reference)
    assert 0.2 < float(shown["policy.lead_s"]) < 0.4
    policy.play()
    policy.require_one_motion()


def test_policy_motion_does_not_begin_outside_position_limits():
    policy = Policy()
    policy.sim.measured = START + 10.0
    result = policy.push()
    assert result.reason == "start" and "it must be between" in result.message and policy.phase is Phase.IDLE


@pytest.mark.parametrize("output", OUTPUTS)
def test_policy_motion_can_be_paused_slowed_and_stopped(output):
    policy = Policy(output=output).run(1.0)
    policy.sim.executor.pause()
    policy.play(1.0)
    assert policy.phase is Phase.PAUSED and policy.push().reason == "paused"
    policy.sim.executor.resume()
    here = policy.sim.samples[-1].reference.q
    policy.began += round(0.3 * NS)
    assert policy.push(policy.chunk(policy.t, here - intent([policy.t])[0])).accepted
    policy.play(0.5)
    policy.sim.executor.set_override(0.5)
    policy.play(0.01)
    here = policy.sim.samples[-1].reference.q
    result = policy.push(policy.chunk(policy.t, here - intent([policy.t])[0]))
    assert result.accepted and result.stretch == pytest.approx(2.0)
    policy.play(0.3)
    assert policy.sim.executor.stop()
    assert policy.play().phase is Phase.IDLE and policy.push().reason == "stopped"
    assert any("a stop was requested" in text for text in policy.sim.events)
    policy.require_one_motion()
    policy.sim.executor.resume()
    here = policy.sim.samples[-1].reference.q
    policy.sim.measured = here.copy()
    policy.push(policy.chunk(policy.t, here - intent([policy.t])[0]))
    policy.play(0.1)
    assert policy.sim.results[-1].accepted and policy.phase is Phase.MOVING


def test_trajectory_replaces_a_policy_and_chunks_are_rejected_until_it_ends():
    policy = Policy(output="horizon").run(0.6)
    policy.sim.measured[:] = np.nan
    here = policy.sim.samples[-1].reference.q
    policy.sim.take(trajectory(here[None] + 0.2, first=3.0))
    assert policy.push().reason == "busy"
    while policy.phase is not Phase.MOVING:
        policy.play(0.05)
    assert policy.push().reason == "busy"  # the trajectory is executed now
    policy.play()
    assert np.abs(policy.sim.samples[-1].reference.q - here - 0.2).max() < 1e-6 and policy.sim.used() <= 1.0


def test_chunks_may_name_a_subset_of_joints_with_point_times():
    policy = Policy()
    names = tuple(ROBOT.joint_names[k] for k in (5, 0, 3))
    policy.push(policy.chunk(-0.1, names=names, times=True))
    policy.play(0.9)
    q = policy.sim.samples[-1].reference.q
    assert np.abs(q[[5, 0, 3]] - intent([0.9])[0, [5, 0, 3]]).max() < 5e-3
    assert np.abs(q[[1, 2, 4, 6]] - START[[1, 2, 4, 6]]).max() < 1e-6


def test_invalid_chunks_are_rejected_with_a_reason():
    policy = Policy(policy_frequency=0.0)
    policy.push()
    policy.play(0.1)
    assert policy.sim.results[-1].reason == "bad_times" and "policy_frequency" in policy.sim.results[-1].message
    ragged = policy.chunk(0.0, times=True)
    ragged.positions[3].append(0.0)
    assert policy.push(ragged).reason == "wrong_shape"
    assert policy.push(policy.chunk(0.0, np.nan, times=True)).reason == "not_finite"
    assert policy.push(ActionChunk(policy.sim.now, ("elbow",), [[0.0]], [0.0])).reason == "unknown_joint"
    unknown = Policy()
    unknown.sim.measured[:] = np.nan
    assert unknown.push().reason == "no_position" and unknown.phase is Phase.IDLE
    assert not unknown.sim.rejected and unknown.push().reason == "no_position"
    preparing = Policy()
    preparing.sim.executor.push_chunk(preparing.chunk(-0.1), preparing.sim.now)
    preparing.sim.executor.push_chunk(preparing.chunk(0.0), preparing.sim.now)
    assert [result.reason for result in preparing.sim.results] == ["replaced"]
    preparing.sim.settle()
    preparing.play(0.1)
    assert [result.reason for result in preparing.sim.results] == ["replaced", "accepted"]


@pytest.mark.parametrize("output", OUTPUTS)
def test_new_limits_during_a_policy_motion_are_kept(output):
    policy = Policy(output=output).run(0.8)
    tight = replace(LIMITS, effort_rate=0.7 * LIMITS.effort_rate)
    policy.sim.executor.set_robot(ROBOT, tight)
    policy.sim.settle()
    policy.play(0.1)
    since = len(policy.sim.samples)
    policy.run(1.0)
    policy.play()
    assert policy.sim.used(limits=tight, since=since) <= 1.0
    policy.require_one_motion()
    assert policy.sim.results[-1].accepted


def test_infeasible_new_limits_end_the_motion():
    policy = Policy().run(0.8)
    policy.sim.executor.set_robot(ROBOT, replace(LIMITS, effort=0.05 * LIMITS.effort))
    policy.sim.settle()
    assert policy.play().phase is Phase.IDLE and not policy.sim.samples[-1].reference.qd.any()
    expected = "cannot go on with the new limits or payload: no motion to rest keeps"
    assert any(expected in text for text in policy.sim.events)
    assert policy.push().reason == "stopped"


def test_motion_continues_without_jump_after_a_suspension():
    """The process is suspended for one second."""
    policy = Policy(output="points").run(1.0)
    policy.sim.now += NS
    policy.play(0.05)
    assert policy.push().accepted
    policy.run(0.6)
    policy.play()
    policy.require_one_motion()


def test_new_policy_motion_starts_at_the_measured_position():
    policy = Policy().run(0.4)
    policy.sim.executor.abort("the clock was set back")
    assert policy.push().reason == "stopped"
    policy.sim.executor.resume()
    policy.sim.measured = POINTS[1].copy()
    policy.sim.samples.clear()
    policy.push(policy.chunk(policy.t, POINTS[1] - intent([policy.t])[0]))
    policy.play(0.02)
    assert np.abs(policy.sim.samples[0].reference.q - POINTS[1]).max() < 1e-9
