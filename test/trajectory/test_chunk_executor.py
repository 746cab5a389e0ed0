"""Action chunks of learned policies: limits at every instant by Pinocchio, continuity, feasible chunks, rejections."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("pinocchio")

from rnea_ros import ChunkExecutor, ChunkOptions, InputError, load
from rnea_ros.execution.controller import TrajectorySpline
from rnea_ros.model.drives import utilizations
from rnea_ros.trajectory import chunk_executor, chunk_spline
from rnea_ros.trajectory.chunk_executor import REASONS
from support.chunk_streams import INSTANT, KINDS, ArrivingChunk, Stream, arm, played, stream, task, utilization
from support.scaling_cases import urdf

PATIENT = ChunkOptions(time_limit=60.0)  # a busy machine finds the same trajectories
PERIOD = 1.0 / 30.0
ARMS = ("panda", "ur5_robot", "random")


def tightened(one, share):
    """Return an arm whose limits of motion and torque rate bind at a share of the speed."""
    limits = replace(one.limits, effort_rate=one.limits.effort_rate * share**2, velocity=one.limits.velocity * share,
                     acceleration=one.limits.acceleration * share, jerk=one.limits.jerk * share**2)
    return one._replace(limits=limits)


def executor(one, **options):
    return ChunkExecutor(one.robot, one.limits, replace(PATIENT, **options))


def started(one, seed=0, speed=0.7, **options):
    """Return an executor at rest at the start of a task, and the task's positions by time."""
    found, intent = executor(one, **options), task(np.random.default_rng(seed), one, speed)
    found.reset(intent(np.zeros(1))[0], 0.0)
    return found, intent


def chunk(intent, stamp, count=50):
    return intent(stamp + PERIOD * np.arange(count))


def require_continuous(times, motion):
    """Check that velocity, acceleration and jerk are consistent derivatives, and that the jerk is continuous."""
    q, qd, qdd, qddd = motion
    for value, rate, scale in ((q, qd, 1.0), (qd, qdd, 10.0), (qdd, qddd, 300.0)):
        slope = np.diff(value, axis=0) / np.diff(times)[:, None]
        assert np.abs(slope - 0.5 * (rate[1:] + rate[:-1])).max() < 1e-3 * scale
    assert np.abs(np.diff(qddd, axis=0)).max() < 0.05 * max(1.0, np.abs(qddd).max())


@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize("kind", KINDS)
def test_random_chunk_streams_keep_every_limit_at_every_instant(name, kind):
    one = tightened(arm(name), 0.7)
    sent = stream(kind, ARMS.index(name), one, rate=(30.0, 10.0, 50.0)[ARMS.index(name)], duration=2.4)
    run = executor(one)
    times, motion, results = played(run, sent)
    assert max(utilization(one, motion).values()) <= 1.0
    require_continuous(times, motion)
    assert len(results) == len(sent.chunks)
    assert sum(run.diagnostics().counts.values()) == len(results)
    assert any(result.accepted for result in results)


@pytest.mark.parametrize("name", ARMS)
def test_stream_beyond_the_limits_is_executed_more_slowly(name):
    one = tightened(arm(name), 0.5)
    sent = stream("smooth", 3, one, duration=2.0, speed=1.0)
    run = executor(one)
    times, motion, results = played(run, sent)
    used = utilization(one, motion)
    assert 0.6 < max(used.values()) <= 1.0
    require_continuous(times, motion)
    assert run.diagnostics().slowed_share > 0.0
    assert any(result.accepted and result.stretch > 1.0 and result.binding for result in results)


def test_points_beyond_the_velocity_limits_are_not_tried_at_their_times():
    """Somewhere between two points a joint has its mean velocity: one attempt is usual, at the speed that the limits allow."""
    one = arm("panda")
    sent = stream("smooth", 0, one, duration=3.0, speed=2.5)
    _, motion, results = played(executor(one), sent, 1e-3)
    assert all(result.stretch > 1.0 for result in results if result.accepted)
    assert np.median([result.attempts for result in results]) == 1.0
    assert np.abs(motion[1] / one.limits.velocity).max() == pytest.approx(0.98, abs=0.02)


def test_noise_of_points_near_the_velocity_limits_does_not_slow_the_motion():
    one = arm("panda")
    intent, rng, times = task(np.random.default_rng(5), one, 0.7), np.random.default_rng(6), np.arange(0.0, 3.0, 5e-3)
    fastest = np.abs(np.gradient(intent(times), 5e-3, axis=0)).max()
    run = executor(one._replace(limits=replace(one.limits, velocity=np.full(7, 1.03 * fastest))))
    run.reset(intent(np.zeros(1))[0], 0.0)
    motion = []
    for k, t in enumerate(times.tolist()):
        if k % 40 == 20:  # every 0.2 s, 0.1 s old
            points = chunk(intent, t - 0.1)
            assert run.push(t - 0.1, points + 0.003 * rng.standard_normal(points.shape), PERIOD, now=t).accepted
        motion.append(run.sample(t)[0])
    assert np.sqrt(((np.array(motion) - intent(times)) ** 2).mean()) < 0.02  # rad


def test_chunk_stream_with_a_payload_keeps_the_limits():
    """The limits hold with the payload, under which the same stream would exceed them if it were left out."""
    heavy, light = tightened(arm("ur5_robot", 6.0), 0.7), tightened(arm("ur5_robot"), 0.7)
    heavy = heavy._replace(limits=replace(heavy.limits, effort=0.75 * heavy.limits.effort))
    sent = stream("disagreeing", 1, heavy, duration=2.0)
    run = executor(heavy)
    assert max(utilization(heavy, played(run, sent)[1]).values()) <= 1.0
    ignorant = executor(heavy._replace(robot=light.robot))
    assert max(utilization(heavy, played(ignorant, sent)[1]).values()) > 1.0


@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize("rate", [10.0, 30.0, 50.0])
def test_feasible_stream_is_executed_unchanged(name, rate):
    one = arm(name)
    sent = stream("smooth", 2, one, rate=rate, duration=3.0, speed=0.4, count=25)
    times, motion, results = played(executor(one), sent)
    assert all(result.accepted and result.stretch == 1.0 and result.delay < 1e-9 for result in results)
    period = 1.0 / rate
    points = np.arange(np.ceil(0.5 / period), np.floor(2.9 / period)) * period
    at = np.rint(points / INSTANT).astype(int)
    between = motion[0, at] + motion[1, at] * (points - times[at])[:, None]
    assert np.abs(between - sent.intent(points)).max() < 1e-6


def test_chunk_is_executed_from_the_splice_on():
    """The motion before the splice is unchanged; the splice is one lead after the chunk."""
    run, intent = started(arm("panda"), speed=0.3)
    before = np.array([run.sample_ahead(t) for t in np.arange(0.0, 0.2, 0.01)])
    result = run.push(0.0, chunk(intent, 0.0), period=PERIOD, now=0.1)
    assert result.accepted and 0.1 + run.options.lead <= result.splice_time <= 0.1 + run.options.lead + PERIOD
    after = np.array([run.sample_ahead(t) for t in np.arange(0.0, 0.2, 0.01)])
    same = np.arange(0.0, 0.2, 0.01) <= result.splice_time
    assert np.array_equal(before[same], after[same]) and not np.array_equal(before[~same], after[~same])


@pytest.mark.parametrize("name", ARMS)
def test_robot_comes_to_rest_after_the_last_chunk(name):
    one = arm(name)
    run, intent = started(one)
    assert run.push(0.0, chunk(intent, 0.0), period=PERIOD, now=0.05).accepted
    times = np.arange(0.0, run.end_time + 0.2, INSTANT)
    motion = np.array([run.sample(t) for t in times]).swapaxes(0, 1)
    assert max(utilization(one, motion).values()) <= 1.0
    assert np.abs(motion[1:, -1]).max() == 0.0
    require_continuous(times, motion)


@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize("when", [0.3, 0.75, 1.1, 1.55])
def test_stop_at_any_time_keeps_the_limits_and_ends_at_rest(name, when):
    one = arm(name)
    sent = stream("disagreeing", 1, one, duration=2.0)
    run, ends = executor(one), []
    times, motion, results = played(run, sent, actions=[(when, lambda t: ends.append(run.stop(t)))])
    assert max(utilization(one, motion).values()) <= 1.0
    require_continuous(times, motion)
    assert np.abs(motion[1:, times > ends[0]]).max() == 0.0
    assert ends[0] < when + 1.6
    assert {result.reason for result in results[-2:]} == {"stopped"}
    run.resume()
    assert not run.is_stopped


def test_invalid_chunks_are_rejected_with_every_reason():
    one = arm("panda")
    run = executor(one)
    points = np.tile(one.middle, (20, 1))
    assert run.push(0.0, points, period=0.1).reason == "no_position"
    run.reset(one.middle, 10.0)
    nan, outside, jump, far = points.copy(), points.copy(), points.copy(), points.copy()
    nan[3, 2], outside[5, 1] = np.nan, one.limits.upper[1] + 0.1
    jump[10:, 0] += 0.7
    far[:, 0] += 1.0
    cases = {
        "not_finite": [(10.0, nan, {}), (np.nan, points, {})],
        "wrong_shape": [(10.0, points[:, :-1], {}), (10.0, points[0], {}), (10.0, points[:0], {}), (10.0, "text", {}),
                        (10.0, points[:, :0], {"joints": ()}), (10.0, np.tile(points, (51, 1)), {})],
        "unknown_joint": [(10.0, points[:, :2], {"joints": ("panda_joint1", "elbow")}),
                          (10.0, points[:, :2], {"joints": ("panda_joint1", "panda_joint1")})],
        "bad_times": [(10.0, points, {"period": 0.0}), (10.0, points, {"period": None}),
                      (10.0, points, {"times": np.zeros(20)}), (10.0, points, {"times": np.arange(3.0)}),
                      (10.0, points, {"period": 1e-6}), (10.0, points, {"period": 10.0}),  # found by fuzzing: TB of knots
                      (10.0, points[:3], {"times": [0.0, 1e-3, 20.0]})],
        "outside_position_limits": [(10.0, outside, {})],
        "step_too_large": [(10.0, jump, {}), (10.0, far, {})],
        "too_old": [(8.5, points, {}), (9.5, points[:3], {})],
        "in_the_future": [(20.0, points, {})],
    }
    for reason, pushes in cases.items():
        for stamp, positions, options in pushes:
            result = run.push(stamp, positions, **({"period": 0.1} | options))
            assert (result.reason, bool(result.message)) == (reason, True)
    assert run.push(10.0, points, period=0.1).accepted
    assert run.push(10.0, points, period=0.1).reason == "not_advancing"
    assert run.push(9.9, points, period=0.1).reason == "not_advancing"
    run.stop(10.1)
    assert run.push(10.2, points, period=0.1).reason == "stopped"
    run.resume()
    assert run.push(10.3, points, period=0.1, now=10.3).accepted
    hasty = ChunkExecutor(one.robot, one.limits, ChunkOptions(time_limit=0.0))
    hasty.reset(one.middle, 0.0)
    assert hasty.push(0.0, points, period=0.1).reason == "not_in_time"
    zigzag = one.middle + 0.4 * np.where(np.arange(20)[:, None] % 2, 1.0, -1.0) * (np.arange(7) == 3)
    wide = executor(one, tolerance=0.0, max_stretch=1.0, max_step=1.0)
    wide.reset(one.middle, 0.0)
    result = wide.push(0.0, zigzag, period=0.05)
    assert result.reason == "infeasible" and result.binding
    seen = {"accepted", "no_position", "stopped", "not_advancing", "not_in_time", "infeasible", *cases}
    assert seen == set(REASONS)


def test_rejected_chunk_does_not_change_the_motion():
    run, intent = started(arm("panda"))
    run.push(0.0, chunk(intent, 0.0), period=PERIOD, now=0.05)
    times = np.arange(0.1, 2.0, 0.01)
    before = np.array([run.sample_ahead(t) for t in times])
    for bad in (chunk(intent, 0.2) * np.nan, chunk(intent, 0.2)[:, 1:], chunk(intent, 0.2) + 1.0):
        assert not run.push(0.2, bad, period=PERIOD, now=0.1).accepted
    assert np.array_equal(before, [run.sample_ahead(t) for t in times])


def test_chunk_may_name_a_subset_of_joints_in_any_order():
    one = arm("panda")
    names = one.robot.joint_names
    (straight, intent), (shuffled, _), (some, _) = (started(one, speed=0.4) for _ in range(3))
    order = np.random.default_rng(0).permutation(len(names))
    points = chunk(intent, 0.0)
    assert straight.push(0.0, points, period=PERIOD, now=0.1).accepted
    assert shuffled.push(0.0, points[:, order], period=PERIOD, joints=[names[k] for k in order], now=0.1).accepted
    assert some.push(0.0, points[:, [4, 1]], period=PERIOD, joints=(names[4], names[1]), now=0.1).accepted
    t = 0.1 + 30 * PERIOD
    assert np.array_equal(straight.sample(t), shuffled.sample(t))
    q = some.sample(t)[0]
    others = [0, 2, 3, 5, 6]
    assert np.abs(q[others] - intent(np.zeros(1))[0][others]).max() < 1e-9
    assert np.abs(q[[4, 1]] - straight.sample(t)[0][[4, 1]]).max() < 1e-6


def test_point_times_are_equivalent_to_a_period():
    (one, intent), (other, _) = (started(arm("panda"), speed=0.4) for _ in range(2))
    points = chunk(intent, 0.0)
    one.push(0.0, points, period=PERIOD, now=0.1)
    other.push(0.0, points, times=PERIOD * np.arange(50), now=0.1)
    assert np.array_equal(one.sample(0.9), other.sample(0.9))


def test_smoothing_stays_within_the_tolerance():
    """The noise exceeds the limits without smoothing."""
    one = tightened(arm("panda"), 0.6)
    run, intent = started(one, speed=0.4, tolerance=0.015)
    noisy = chunk(intent, 0.0) + 0.003 * np.random.default_rng(4).normal(size=(50, 7))
    result = run.push(0.0, noisy, period=PERIOD, now=0.1)
    assert result.accepted and result.stretch == 1.0 and 1e-4 < result.deviation <= 0.015
    points = PERIOD * np.arange(result.skipped, 50)
    assert np.abs([run.sample(t)[0] for t in points] - noisy[result.skipped:]).max() <= 0.015 + 1e-9
    rough, _ = started(one, speed=0.4, tolerance=0.0)
    exact = rough.push(0.0, noisy, period=PERIOD, now=0.1)
    assert not exact.accepted or exact.stretch > 1.0


def test_ensemble_of_overlapping_chunks_is_their_weighted_mean():
    """The weights are exp(-decay k), oldest first."""
    one = arm("panda")
    run, intent = started(one, speed=0.3, blending="ensemble", ensemble_decay=0.5, max_step=0.5)
    offset = np.zeros(7)
    offset[2] = 0.01
    assert run.push(0.0, chunk(intent, 0.0), period=PERIOD, now=0.1).accepted
    assert run.push(6 * PERIOD, chunk(intent, 6 * PERIOD) + offset, period=PERIOD, now=0.3).accepted
    t = 36 * PERIOD
    weights = np.exp(-0.5 * np.arange(2))
    assert np.abs(run.sample(t)[0] - intent([t])[0] - offset * weights[1] / weights.sum()).max() < 1e-6


def test_alignment_removes_an_offset_at_the_splice():
    """The motion follows the chunk at once, and the offset decays; without alignment, points are skipped."""
    one = arm("panda")
    found = {}
    for alignment in ("time", "offset"):
        run, intent = started(one, speed=0.3, alignment=alignment)
        run.push(0.0, chunk(intent, 0.0), period=PERIOD, now=0.1)
        found[alignment] = run.push(6 * PERIOD, chunk(intent, 6 * PERIOD) + 0.05, period=PERIOD, now=0.3)
        assert found[alignment].accepted
        assert np.abs(run.sample(1.5)[0] - intent([1.5])[0] - 0.05).max() < 1e-4
    assert found["offset"].attempts < found["time"].attempts and found["offset"].skipped < found["time"].skipped


def test_motion_rejoins_the_policy_after_lost_chunks():
    """Chunks are lost until the robot is at rest; the next one is accepted, and the delay is recovered."""
    one = arm("panda")
    sent = stream("smooth", 4, one, duration=6.0, speed=0.5)
    sent.chunks = [part for part in sent.chunks if not 0.5 < part.stamp < 2.5]
    run = executor(one)
    times, motion, results = played(run, sent, 1e-3)
    assert max(utilization(one, motion, 1e-3).values()) <= 1.0
    assert all(result.accepted for result in results)
    assert np.abs(motion[0, -1200:-1000] - sent.intent(times[-1200:-1000])).max() < 1e-4


@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize("ahead", [1e-4, 0.03, 0.2])
@pytest.mark.parametrize("speed", [0.0, 0.7])
def test_chunk_of_one_point_is_executed_for_any_lead(name, ahead, speed):
    """The point is reached later where the limits do not allow it in time; the motion ends at rest there."""
    one = arm(name)
    run, intent = started(one, speed=max(speed, 0.1))
    if speed:
        assert run.push(0.0, chunk(intent, 0.0), period=PERIOD, now=0.05).accepted
    now = 0.9 if speed else 0.02
    goal = run.sample_ahead(now + run.lead)[0] + 0.02
    result = run.push(now - 0.01, goal[None], times=[0.01 + run.lead + ahead], now=now)
    assert result.accepted and result.attempts > 0
    times = np.arange(now, run.end_time + 0.1, INSTANT)
    motion = np.array([run.sample(t) for t in times]).swapaxes(0, 1)
    assert max(utilization(one, motion).values()) <= 1.0
    require_continuous(times, motion)
    assert np.abs(motion[0] - goal).max(axis=1).min() < 1e-3 and not motion[1:, -1].any()


def test_two_policies_with_different_latencies_move_different_joints():
    """The second one's observations are always older than those of the first, and no chunk is rejected for that."""
    one = arm("panda")
    run, intent = started(one, 5, 0.5)
    arm_joints, wrist = list(one.robot.joint_names[:6]), [one.robot.joint_names[6]]
    step, motion = 5e-4, []
    for k in range(6000):
        t = k * step
        if k % 400 == 0:  # every 0.2 s, 0.1 s old
            stamp = t - 0.1
            assert run.push(stamp, chunk(intent, stamp)[:, :6], PERIOD, joints=arm_joints, now=t).accepted
        if k % 600 == 100:  # every 0.3 s, 0.35 s old
            stamp = t - 0.35
            points = intent(stamp + 0.1 * np.arange(15))[:, 6:]
            assert run.push(stamp, points, 0.1, joints=wrist, now=t).accepted
        motion.append(run.sample(t))
    motion, times = np.array(motion).swapaxes(0, 1), step * np.arange(6000)
    assert max(utilization(one, motion, step).values()) <= 1.0
    off = np.abs(motion[0] - intent(times))[times > 1.0].max(axis=0)
    assert off.max() < 0.01
    assert run.push(2.6, chunk(intent, 2.6), PERIOD, now=3.0).reason == "not_advancing"  # older than that of six of its joints


@pytest.mark.parametrize("kind", ["smooth", "disagreeing"])
def test_chunks_with_two_points_are_executed(kind):
    """Chunks of 0.2 s are 0.1 s old: each is a bridge and a brake, both of which take longer where limits bind."""
    one = arm("panda")
    _, motion, results = played(executor(one), stream(kind, 4, one, rate=5.0, count=2, duration=2.0), 5e-4)
    assert max(utilization(one, motion, 5e-4).values()) <= 1.0
    assert sum(result.accepted for result in results) >= 0.8 * len(results)


def test_lead_grows_while_searches_are_slow_and_shrinks_afterwards(monkeypatch):
    """Each reading of the clock is 30 ms after the previous one, too slow for half of the first lead."""
    one = arm("panda")
    intent = task(np.random.default_rng(0), one, 0.4)
    run, clock = ChunkExecutor(one.robot, one.limits), iter(0.03 * np.arange(10_000))
    run.reset(intent(np.zeros(1))[0], 0.0)
    monkeypatch.setattr(chunk_executor, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    results, leads = [], [run.lead]
    for k in range(12):
        stamp = 6 * k * PERIOD
        results.append(run.push(stamp, chunk(intent, stamp) + 0.02 * (-1.0) ** k, period=PERIOD, now=stamp + 0.1).reason)
        leads.append(run.lead)
    assert results[0] == "not_in_time" and leads[1] == 2.0 * leads[0]
    assert results.count("accepted") >= 9 and set(results) == {"accepted", "not_in_time"}
    assert max(leads) <= run.options.max_lead
    monkeypatch.undo()
    longest = run.lead
    stamps = 2.4 + 6 * PERIOD * np.arange(4)
    assert all(run.push(stamp, chunk(intent, stamp), period=PERIOD, now=stamp + 0.1).accepted for stamp in stamps)
    assert run.options.lead <= run.lead < longest
    assert run.diagnostics().lead == run.lead
    run.max_lead = 0.06
    assert run.lead == 0.06


def test_diagnostics_state_ages_and_delays():
    run, intent = started(arm("panda"))
    run.push(0.0, chunk(intent, 0.0), period=PERIOD, now=0.1)
    run.push(0.1, chunk(intent, 0.1)[:, 1:], period=PERIOD, now=0.2)
    run.sample(0.5)
    found = run.diagnostics()
    assert found.counts == {"accepted": 1, "wrong_shape": 1}
    assert found.observation_age == pytest.approx(0.5)
    assert found.time_to_rest == pytest.approx(run.end_time - 0.5)
    assert found.slowed_share == 0.0 and found.delay == pytest.approx(0.0)


@pytest.mark.parametrize("name", ["panda", "ur5_robot"])
@pytest.mark.parametrize(("kind", "speed"), [("smooth", 1.0), ("disagreeing", 0.7), ("late", 1.0), ("lost", 1.0)])
def test_chunk_stream_keeps_position_dependent_velocity_limits(name, kind, speed):
    """The limit is written independently from docs/robot_file.md: sqrt(2 a d) - offset at distance d from the end."""
    one, deceleration, offset = arm(name), 0.3, 0.05
    ends = one.middle + 0.53 * one.reach * np.array([[-1.0], [1.0]])
    zones = {joint: {"max_velocity": 2.0, "velocity_by_position": {
        "velocity_offset": offset, "deceleration_limit": deceleration, "lower_position_limit": lower,
        "upper_position_limit": upper}} for joint, lower, upper in zip(one.robot.joint_names, *ends.tolist(), strict=True)}
    zoned = one._replace(robot=load(urdf(name).read_text(encoding="utf-8"), {"version": 1, "limits": zones}))
    sent = stream(kind, 3, one, duration=2.4, speed=speed)

    def share(motion):
        q, qd = motion[:2]
        distance = np.where(qd > 0.0, ends[1] - q, q - ends[0])
        allowed = np.minimum(np.sqrt(2.0 * deceleration * np.maximum(distance, 0.0)) - offset, 2.0)
        return float(np.where(np.abs(qd) > 1e-3, np.abs(qd) / np.maximum(allowed, 1e-6), 0.0).max())

    run = executor(zoned)
    times, motion, results = played(run, sent)
    assert 0.5 < share(motion) <= 1.0
    assert max(utilization(one, motion).values()) <= 1.0
    require_continuous(times, motion)
    assert any(result.accepted for result in results)
    assert share(played(executor(one), sent, 1e-3)[1]) > 1.1  # the stream needs the limit


def test_chunk_stream_keeps_drive_limits():
    """The supply voltage of the motors limits the motion."""
    one = arm("ur5_robot")
    names = one.robot.joint_names
    file = {"version": 1, "drives": {name: {"gear_ratio": 100.0, "torque_constant": 0.1, "resistance": 0.3,
                                            "supply_voltage": 14.0} for name in names}}
    robot = load(urdf("ur5_robot").read_text(encoding="utf-8"), file)
    assert robot.drive_limits
    limited = one._replace(robot=robot)
    sent = stream("smooth", 5, one, duration=2.0, speed=1.2)
    run = executor(limited)
    _, motion, results = played(run, sent, 1e-3)
    tau, tau_rate = robot.torque_and_rate(*motion)
    free = played(executor(one), sent, 1e-3)[1]
    assert utilizations(robot.drive_limits, tau, tau_rate, motion[1]).max() <= 1.0
    assert utilizations(robot.drive_limits, *robot.torque_and_rate(*free), free[1]).max() > 1.0
    assert any(result.accepted for result in results)


def test_reset_rejects_positions_that_cannot_be_held():
    one = arm("panda")
    run = executor(one._replace(limits=replace(one.limits, effort=0.1 * one.limits.effort)))
    stretched = np.clip(np.array([0.0, 1.5, 0.0, -0.1, 0.0, 1.6, 0.0]), one.limits.lower, one.limits.upper)
    with pytest.raises(InputError, match="cannot rest"):
        run.reset(stretched, 0.0)
    with pytest.raises(InputError, match="must be between"):
        run.reset(one.limits.upper + 1.0, 0.0)
    with pytest.raises(InputError, match="finite"):
        run.reset(one.middle * np.nan, 0.0)
    with pytest.raises(InputError, match="call reset"):
        run.stop(0.0)


@pytest.mark.parametrize("options", [{"lead": 0.0}, {"blending": "mean"}, {"alignment": "space"}, {"max_stretch": 0.5},
                                     {"limit_share": 1.1}, {"tolerance": -1.0}, {"ensemble_size": 0}])
def test_invalid_chunk_options_are_rejected(options):
    with pytest.raises(InputError):
        ChunkOptions(**options)


@pytest.mark.parametrize("count", [12, 200])
def test_chunk_spline_passes_its_points_and_ends_at_rest(count):
    rng = np.random.default_rng(3)
    state, times = rng.normal(size=(4, 3)), np.cumsum(rng.uniform(0.05, 0.15, count))
    points = rng.normal(size=(count, 3))
    path = chunk_spline.fit(state, chunk_spline.Targets(times, points, 0.1), 0.5)
    assert np.abs(path(times)[0] - points).max() < 1e-6  # for steps of about 1 rad
    assert np.abs(path(np.zeros(1))[:, 0] - state).max() < 1e-12
    assert np.abs(path(np.array([path.length]))[1:]).max() < 1e-6
    inner = path.breaks[1:-1]
    for order, jump in enumerate(np.abs(path(inner + 1e-9) - path(inner - 1e-9)).max(axis=(1, 2))):
        assert jump < 1e-4 * max(1.0, np.abs(path(np.linspace(0.0, path.length, 999))[order]).max())


def test_smoothing_damps_a_sine_with_the_sixth_power_of_its_frequency():
    """The gain far from the ends is 1 / (1 + smoothing w^6)."""
    times = np.arange(1.0, 120.0)
    for wavelength in (8.0, 12.0, 20.0):
        w = 2.0 * np.pi / wavelength
        points, smoothing = np.sin(w * times)[:, None], (12.0 / (2.0 * np.pi)) ** 6
        path = chunk_spline.fit(np.zeros((4, 1)), chunk_spline.Targets(times, points, 1.0), 20.0, smoothing)
        found = path(times)[0, 40:80, 0]
        gain = found @ np.sin(w * times[40:80]) / np.sum(np.sin(w * times[40:80]) ** 2)
        assert gain == pytest.approx(1.0 / (1.0 + smoothing * w**6), rel=0.05)


def test_simulated_streams_contain_the_faults_of_their_names():
    one = arm("panda")
    faulty = stream("faulty", 0, one)
    assert any(np.isnan(part.positions).any() for part in faulty.chunks)
    assert any(part.positions.shape[1] == 6 for part in faulty.chunks)
    disordered = [part.stamp for part in stream("disordered", 0, one).chunks]
    assert disordered != sorted(disordered) and len(set(disordered)) < len(disordered)
    assert isinstance(faulty, Stream) and isinstance(faulty.chunks[0], ArrivingChunk)


# ------------------------------------------------------------------ changed limits and speed, execution in another process


def cut_motion(run, times):
    return np.array([run.sample(t) for t in times]).swapaxes(0, 1)


@pytest.mark.parametrize("name", ARMS)
def test_quintics_through_the_waypoints_reproduce_the_committed_trajectory(name):
    """The comparison covers splices."""
    one = arm(name)
    sent = stream("disagreeing", 2, one, duration=1.6)
    run, found = executor(one), []
    played(run, sent, 1e-2, actions=[(1.25, lambda t: found.append((run.committed().waypoints(t - 0.6), run.committed())))])
    (times, *points), committed = found[0]
    assert (np.diff(times) > 1e-6).all() and times[0] <= 0.65 and not points[1][-1].any() and not points[2][-1].any()
    spline = TrajectorySpline(times, *points)
    for t in np.linspace(times[0], times[-1] - 1e-6, 2000):
        for value, exact, scale in zip(spline(t, 4), committed.sample(t), (1e-9, 1e-7, 1e-5, 1e-2)):
            assert np.abs(value - exact).max() < scale


def test_trajectory_that_was_not_passed_on_is_withdrawn():
    run, intent = started(arm("panda"))
    times = np.arange(0.2, 3.0, 0.01)
    run.push(0.0, chunk(intent, 0.0), period=PERIOD, now=0.05)
    assert run.has_changed and 0.1 <= run.committed().splice_time < 0.15
    run.mark_passed_on(run.committed())
    assert not run.has_changed
    before = np.array([run.sample_ahead(t) for t in times])
    run.push(0.1, chunk(intent, 0.1) + 0.02, period=PERIOD, now=0.2)
    first = run.committed()
    assert run.push(0.2, chunk(intent, 0.2) + 0.03, period=PERIOD, now=0.3).accepted
    assert run.committed().splice_time == first.splice_time  # both are unknown to who plays it
    run.mark_passed_on(first)  # without the second one
    assert run.has_changed and run.committed().splice_time > first.splice_time
    run.withdraw()
    assert not run.has_changed
    assert np.array_equal([first.sample(t) for t in times], [run.sample_ahead(t) for t in times])
    assert not np.array_equal(before, [run.sample_ahead(t) for t in times])
    assert run.push(0.3, chunk(intent, 0.3), period=PERIOD, now=0.4).accepted


def test_trajectory_computed_after_its_splice_is_not_committed(monkeypatch):
    """The thread is suspended while it computes, and another thread continues to sample."""
    run, intent = started(arm("panda"))
    assert run.push(0.0, chunk(intent, 0.0), period=PERIOD, now=0.05).accepted
    fit, before = chunk_spline.fit, [run.sample_ahead(t) for t in (0.35, 0.8, 1.5)]

    def suspended(*args, **options):
        run.sample(0.35)
        return fit(*args, **options)

    monkeypatch.setattr(chunk_spline, "fit", suspended)
    assert run.push(0.1, chunk(intent, 0.1) + 0.01, period=PERIOD, now=0.2).reason == "not_in_time"
    assert np.array_equal(before, [run.sample_ahead(t) for t in (0.35, 0.8, 1.5)])
    monkeypatch.undo()
    assert run.push(0.3, chunk(intent, 0.3), period=PERIOD, now=0.4).accepted


def test_motion_is_continuous_when_threads_sample_and_push_concurrently():
    """One thread samples references while another one commits trajectories."""
    one = arm("panda")
    run, intent = started(one, speed=0.6)
    began, samples, ends = time.monotonic(), [], threading.Event()

    def tick():
        while not ends.is_set():
            t = time.monotonic() - began
            samples.append((t, run.sample(t)))

    ticking = threading.Thread(target=tick)
    ticking.start()
    for k in range(12):
        now = time.monotonic() - began
        run.push(now, chunk(intent, now) + 0.01 * (-1) ** k, period=PERIOD, now=now)
        time.sleep(0.05)
    ends.set()
    ticking.join()
    assert run.diagnostics().counts["accepted"] > 1
    t, motion = np.array([when for when, _ in samples]), np.array([what for _, what in samples])
    h = np.diff(t)[:, None]
    moved = np.diff(motion[:, 0], axis=0) - 0.5 * h * (motion[1:, 1] + motion[:-1, 1])
    assert (np.abs(moved) <= h**3 * 700.0 + h**2 * 1e-2 + 1e-12).all()


def test_limits_and_payload_can_be_changed_during_a_chunk_motion():
    """New limits hold after the lead if a feasible stop exists; a motion inside them continues."""
    one = arm("ur5_robot")
    tighter = replace(one.limits, acceleration=0.8 * one.limits.acceleration, velocity=0.9 * one.limits.velocity)
    for limits, goes_on in ((replace(one.limits, velocity=2.0 * one.limits.velocity), True), (tighter, None)):
        run, intent = started(one, speed=0.9)
        assert run.push(0.0, chunk(intent, 0.0), period=PERIOD, now=0.05).accepted
        times = np.arange(0.5, 3.0, INSTANT)
        before = np.array([run.sample_ahead(t) for t in times[::50]])
        run.sample(0.5)
        assert run.set_robot(one.robot, limits) == ""
        motion = cut_motion(run, times)
        if goes_on:
            assert np.array_equal(before, motion.swapaxes(0, 1)[::50])
        else:
            later = motion[:, times > 0.56]
            assert max(utilization(one._replace(limits=limits), later).values()) <= 1.0
        require_continuous(times, motion)
    run, intent = started(one, speed=0.9)
    run.push(0.0, chunk(intent, 0.0), period=PERIOD, now=0.05)
    run.sample(0.5)
    assert "effort" in run.set_robot(one.robot, replace(one.limits, effort=0.02 * one.limits.effort))  # not even at rest
    with pytest.raises(InputError, match="make another executor"):
        run.set_robot(arm("panda").robot)
    assert run.joint_names == one.robot.joint_names


def test_requested_speed_share_slows_the_chunks():
    one = arm("panda")
    run, intent = started(one, speed=0.4)
    run.set_speed(0.5)
    result = run.push(0.0, chunk(intent, 0.0), period=PERIOD, now=0.05)
    assert result.accepted and result.stretch == 2.0 and run.diagnostics().slowed_share == 0.0
    assert np.abs(run.sample_ahead(2.1)[0] - intent([1.0])[0]).max() < 0.05 and run.end_time > 3.0
    for share in (0.0, 1.1, np.nan):
        with pytest.raises(InputError, match="share"):
            run.set_speed(share)
