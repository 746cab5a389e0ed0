"""Trajectory executor without ROS: accepted goals, start of motions, and changes during execution."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from rnea_ros import InputError
from rnea_ros.errors import Rejected
from rnea_ros.execution.goal import TrajectoryPoint, read_goal
from rnea_ros.execution.states import Phase
from rnea_ros.trajectory.scaled_plan import plan_from_waypoints
from support.executor_harness import DT, ExecutorHarness, trajectory
from support.overspeed_motion import DURATION, EFFORT, LIMITS, POINTS, ROBOT, START
from support.scaling_cases import dynamics

NAN = math.nan
NOTHING = replace(LIMITS, **dict.fromkeys(("effort", "effort_rate", "velocity"), np.full(7, NAN)))


def test_trajectory_too_fast_is_slowed_to_its_limits():
    sim = ExecutorHarness()
    sim.take(trajectory())
    assert sim.wakes == 1 and sim.executor.phase is Phase.WAITING
    sim.play()
    q, qd, qdd, _ = sim.motion()
    assert 0.97 < sim.used() <= 1.0 and not sim.rejected
    assert np.abs(q[-1] - POINTS[-1]).max() < 1e-9 and not np.abs(qd[-1]).any() and not np.abs(qdd[-1]).any()
    path = plan_from_waypoints(POINTS, np.linspace(0.0, DURATION, 4)).path
    assert np.abs(q - path([sample.reference.s for sample in sim.samples])[0]).max() < 1e-9
    for sample in sim.samples:  # what is said of a sample is so
        reference = sample.reference
        tau, rate = ROBOT.torque_and_rate(reference.q, reference.qd, reference.qdd, reference.qddd)
        assert (tau == sample.effort).all() and (rate == sample.effort_rate).all()
        value = {"effort": tau, "effort_rate": rate, "velocity": reference.qd}[sample.binding.quantity]
        joint = ROBOT.joint_names.index(sample.binding.owner)
        limit = getattr(LIMITS, sample.binding.quantity)[joint]
        assert abs(value[joint]) / limit == pytest.approx(sample.binding.utilization)
    assert sim.samples[-1].delay == pytest.approx(sim.samples[-1].reference.t - DURATION, abs=0.01)
    assert "ended at its goal" in sim.events[-1] and "planned 0.80 s" in sim.events[-1]


def test_motion_optimized_before_its_start_keeps_limits_and_ends_earlier():
    sim = ExecutorHarness(solve_first=True)
    sim.take(trajectory())
    sim.play()
    other = ExecutorHarness()
    other.take(trajectory())
    other.play()
    assert sim.used() <= 1.0 and len(sim.samples) < len(other.samples)


@pytest.mark.parametrize("interpolation", ["velocities", "accelerations"])
def test_waypoint_velocities_and_accelerations_shape_the_path(interpolation):
    sim = ExecutorHarness(interpolation=interpolation)
    times, v = np.linspace(0.0, DURATION, 4), np.zeros((4, 7))
    v[1:3] = (POINTS[2:] - POINTS[:-2]) / DURATION
    points = [TrajectoryPoint(float(t), q, speed, np.zeros(7)) for t, q, speed in zip(times, POINTS, v)]
    sim.take(read_goal(ROBOT.joint_names, ROBOT.joint_names, points))
    sim.play()
    path = plan_from_waypoints(POINTS, times, v, np.zeros((4, 7)), interpolation).path
    assert sim.used() <= 1.0 and np.abs(sim.motion()[0] - path([sample.reference.s for sample in sim.samples])[0]).max() < 1e-9
    assert np.abs(sim.motion()[0][-1] - POINTS[-1]).max() < 1e-9


def test_pause_continues_when_a_new_trajectory_arrives():
    sim = ExecutorHarness()
    sim.take(trajectory())
    sim.play(0.7)
    sim.executor.pause()
    sim.play(1.0)
    assert sim.executor.phase is Phase.PAUSED and not np.abs(sim.motion()[1][-1]).any()
    late = sim.samples[-1].delay
    sim.play(0.5)
    assert sim.samples[-1].delay == pytest.approx(late)
    rest = sim.motion()[0][-1]
    sim.take(trajectory(START[None], first=2.0))
    sim.play(0.2)
    sim.settle()
    sim.play(0.2)
    assert sim.executor.phase is Phase.PAUSED and np.abs(sim.motion()[0][-1] - rest).max() < 1e-12
    sim.executor.resume()
    sim.play()
    assert np.abs(sim.motion()[0][-1] - START).max() < 1e-9 and sim.used() <= 1.0
    steps = np.abs(np.diff(sim.motion()[0], axis=0)).max(axis=0)
    assert (steps <= 1.01 * LIMITS.velocity * DT).all()  # continuous


def test_override_slows_and_stop_ends_the_motion():
    sim = ExecutorHarness()
    sim.executor.set_override(0.5)
    sim.take(trajectory(duration=6.0))
    sim.play(1.0)
    assert sim.samples[-1].speed == pytest.approx(0.5, rel=1e-6) and sim.samples[-1].delay == pytest.approx(0.0, abs=1e-6)
    sim.executor.set_override(1.0)
    sim.play(1.0)
    assert sim.samples[-1].speed == pytest.approx(1.0, rel=1e-6)
    for share in (-0.1, 1.1, NAN):
        with pytest.raises(InputError, match="from 0 to 1"):
            sim.executor.set_override(share)
    assert sim.executor.stop()
    sim.play(0.01)
    assert sim.executor.phase is Phase.STOPPING
    sim.play()
    assert not np.abs(sim.motion()[1][-1]).any() and sim.used() <= 1.0 and "stopped at" in sim.events[-1]
    assert not sim.executor.stop()
    sim.take(trajectory(POINTS[2:], first=1.0))  # from where it stands
    sim.play()
    assert np.abs(sim.motion()[0][-1] - POINTS[-1]).max() < 1e-9


def test_new_trajectory_during_a_motion_is_rejected_if_configured():
    sim = ExecutorHarness(on_new_trajectory="refuse")
    sim.take(trajectory())
    sim.play(0.3)
    with pytest.raises(Rejected) as caught:
        sim.take(trajectory())
    assert caught.value.reason == "busy"
    sim.play()
    assert np.abs(sim.motion()[0][-1] - POINTS[-1]).max() < 1e-9


@pytest.mark.parametrize("late", [0.0, 0.0004, 0.02])
def test_motion_starts_exactly_at_its_stamp_within_a_cycle(late):
    """A cycle of 20 ms that contains the start advances the motion only from the start."""
    sim = ExecutorHarness()
    start = sim.now + 500_000_000
    sim.take(trajectory(start=start))
    sim.now = start - 20_000_000
    assert sim.executor.tick(sim.now, 0.02) is None
    sim.now = start + round(late * 1e9)
    assert sim.executor.tick(sim.now, 0.02)[1].reference.t == pytest.approx(late, abs=2e-9)


def test_late_and_future_stamps_decide_the_start():
    sim = ExecutorHarness()
    sim.take(trajectory(start=sim.now + 500_000_000))
    sim.play(0.45)
    assert sim.executor.phase is Phase.WAITING and not sim.samples
    sim.take(trajectory(duration=5.0, start=sim.now + 100_000_000))  # replaced by another one
    assert [rejected.reason for rejected in sim.rejected] == ["replaced"]
    sim.play(1.0)
    assert len(sim.samples) == pytest.approx(900, abs=2)
    sim.take(trajectory(START[None], first=2.0, start=sim.now + 300_000_000))
    sim.play(0.25)
    assert sim.executor.phase is Phase.MOVING
    sim.play(0.1)
    assert sim.executor.phase is Phase.STOPPING
    sim.play()
    assert np.abs(sim.motion()[0][-1] - START).max() < 1e-9
    with pytest.raises(Rejected, match="should have ended") as caught:
        sim.take(trajectory(start=sim.now - 2_000_000_000))
    assert caught.value.reason == "too_late"
    sim.take(trajectory(start=sim.now - 500_000_000))  # late, and begins at once
    assert sim.executor.phase is Phase.WAITING
    assert sim.executor.stop() and sim.executor.phase is Phase.IDLE


def test_way_to_rest_is_complete_however_many_samples_it_has():
    """Regression: it ended in the middle of the motion after 1000 samples, half a second at the highest rate."""
    sim = ExecutorHarness()
    sim.take(trajectory())
    sim.play(0.6)
    motion, samples = sim.executor.compute_stop(sim.now, 1e-4)
    last = samples[-1].reference
    assert last.done and not last.qd.any() and last.s < motion.path.length and sim.executor.phase is Phase.IDLE
    assert len(samples) > 1000


def test_stamp_far_in_the_future_is_reported_or_rejected():
    sim = ExecutorHarness()
    sim.take(trajectory(start=sim.now + 5_000_000_000))
    assert "the trajectory waits: its stamp is 5.0 s ahead of this node's clock" in sim.events
    with pytest.raises(Rejected, match="compare the clocks of both machines") as caught:
        sim.take(trajectory(start=sim.now + 31_536_000_000_000_000))
    assert caught.value.reason == "too_early"


def test_trajectory_with_too_many_points_is_rejected():
    points = [TrajectoryPoint(0.01 * k, POINTS[0]) for k in range(20_001)]
    with pytest.raises(Rejected, match="20001 points, at most 20000 are allowed: resample") as caught:
        read_goal(ROBOT.joint_names, ROBOT.joint_names, points)
    assert caught.value.reason == "too_many_points"


def test_late_cycle_yields_a_reference_for_each_control_period():
    """The quintics of a controller between references deviate over 5 ms, but not over 1 ms."""
    late, regular = ExecutorHarness(), ExecutorHarness()
    for sim in (late, regular):
        sim.take(trajectory())
        for _ in range(3):  # ready, begun
            sim.worker.work(), sim.solver.work()
            sim.executor.tick(sim.now, DT)
    late.executor.tick(late.now, 5.0 * DT)
    references = [regular.executor.tick(regular.now, DT)[1].reference for _ in range(5)]
    steps = late.executor.motion.control_steps
    assert len(steps) == 5
    for step, reference in zip(steps, references):
        assert np.abs(step.q - reference.q).max() < 1e-12 and np.abs(step.qdd - reference.qdd).max() < 1e-9


def test_trajectory_is_rejected_if_the_robot_is_not_at_its_start():
    sim = ExecutorHarness()
    sim.measured = POINTS[1].copy()
    sim.take(trajectory())
    assert [rejected.reason for rejected in sim.rejected] == ["not_at_start"]
    sim.take(trajectory(first=2.0))
    sim.play()
    assert np.abs(sim.motion()[0][0] - POINTS[1]).max() < 1e-6 and np.abs(sim.motion()[0][-1] - POINTS[-1]).max() < 1e-9
    sim.measured = sim.motion()[0][-150]  # it is on its way there: it goes on from the last reference
    assert np.abs(sim.measured - POINTS[-1]).max() > 0.02
    sim.take(trajectory(POINTS[2:][::-1], first=1.0))
    sim.play()
    sim.measured = POINTS[2] + 0.005  # as near as its controller holds it
    sim.now += 2_000_000_000
    sim.take(trajectory(START[None], first=2.0))
    sim.play()
    assert np.abs(np.diff(sim.motion()[0], axis=0)).max() < 0.005
    sim.measured = START.copy()
    sim.take(trajectory(start=sim.now + 1_500_000_000))
    sim.measured = START + 0.2
    sim.play()
    assert sim.rejected[-1].reason == "not_at_start" and "from where it was when the trajectory came" in str(sim.rejected[-1])


def test_motion_after_a_protective_stop_starts_at_the_robot():
    """The robot stopped before the end of its motion; the next motion starts at its position."""
    sim = ExecutorHarness()
    sim.take(trajectory())
    sim.play()
    ended, stood = len(sim.samples), sim.motion()[0][-400]
    sim.measured = stood
    sim.now += 10_000_000
    sim.take(trajectory(START[None], first=2.0))
    sim.play()
    np.testing.assert_allclose(sim.motion()[0][ended], stood, atol=1e-6)
    sim.measured = START + 0.05  # moved by hand, half a second after the motion
    sim.now += 500_000_000
    sim.take(trajectory())
    assert [rejected.reason for rejected in sim.rejected] == ["not_at_start"]


def test_references_of_a_wrapped_joint_do_not_jump(monkeypatch):
    """Joint states are between -pi and pi; trajectories contain any number of turns."""
    turns, turn = np.arange(7) == 6, 2.0 * math.pi
    monkeypatch.setattr(type(ROBOT), "joint_types", tuple("continuous" if at else "revolute" for at in turns))
    sim = ExecutorHarness(replace(LIMITS, lower=np.full(7, NAN), upper=np.full(7, NAN)))
    there, sim.measured = np.stack([POINTS[0]] * 3), POINTS[0].copy()
    sim.measured[6], there[:, 6] = 3.1, (3.1 - turn, 3.6 - turn, 4.1 - turn)
    sim.take(trajectory(there, 3.0))
    sim.play()
    there[:, 6] = 4.1 - 3.0 * turn, 4.6 - 3.0 * turn, 5.1 - 3.0 * turn  # goes on, in another count
    sim.measured = sim.motion()[0][-1] - turn * turns
    sim.now += 3_000_000_000
    sim.take(trajectory(there, 3.0, start=sim.now + 200_000_000))
    sim.play()
    assert not sim.rejected
    q = sim.motion()[0][:, 6]
    assert np.abs(np.diff(q)).max() < 0.002 and (q[0], q[-1]) == pytest.approx((3.1, 5.1), abs=1e-6)


@pytest.mark.parametrize(("limits", "points", "reason", "detail"), [
    (LIMITS, np.stack((START, START)), "nowhere_to_go", "all equal: the robot is at the goal already"),
    (replace(LIMITS, effort=0.3 * EFFORT), POINTS, "gravity", "gravity alone takes .* of joint2"),
    (NOTHING, POINTS, "limits", "not one limit"),
    (replace(LIMITS, lower=LIMITS.lower + 10.0), POINTS, "limits", "position limits of joint1 are .*: no position is inside"),
    (LIMITS, np.stack((START, START + [0, 0, 0, 2.0, 0, 0, 0])), "position_limit", "joint4 would be at 0.5"),
])
def test_infeasible_requests_are_rejected(limits, points, reason, detail):
    sim = ExecutorHarness(limits)
    sim.take(trajectory(points))
    (rejected,) = sim.rejected
    assert rejected.reason == reason and sim.executor.phase is Phase.IDLE
    with pytest.raises(Rejected, match=detail):
        raise rejected


def test_new_limits_and_payload_during_a_motion_are_kept():
    sim = ExecutorHarness()
    sim.take(trajectory())
    sim.play(0.6)
    tight = replace(LIMITS, effort=0.93 * EFFORT, velocity=0.6 * LIMITS.velocity)
    sim.executor.set_robot(ROBOT, tight)
    sim.settle()
    sim.play(0.6)
    loaded = ROBOT.with_payload("link7", 0.2)
    assert any("slows down for new limits or another payload: limits are exceeded for" in text for text in sim.events)
    changed = len(sim.samples)
    sim.executor.set_robot(loaded, tight)
    sim.settle()
    sim.play()
    assert sim.samples[changed].effort == pytest.approx(loaded.dynamics(*(x[changed] for x in sim.motion())).tau)
    assert sim.used(loaded, tight, since=changed + 700) <= 1.0
    assert np.abs(sim.motion()[0][-1] - POINTS[-1]).max() < 1e-9


def test_payload_too_heavy_to_hold_brings_the_motion_to_rest():
    sim = ExecutorHarness()
    sim.take(trajectory())
    sim.play(0.6)
    sim.executor.set_robot(ROBOT.with_payload("link7", 20.0), LIMITS)
    sim.settle()
    sim.play()
    assert any("cannot go on with the new limits or payload: gravity alone takes" in text for text in sim.events)
    assert "stopped at" in sim.events[-1] and not np.abs(sim.motion()[1][-1]).any()
    sim.take(trajectory(START[None], first=2.0))
    assert sim.rejected[-1].reason == "gravity"


def test_new_robot_model_during_a_motion_brings_it_to_rest():
    sim = ExecutorHarness()
    sim.take(trajectory())
    sim.play(0.5)
    other = dynamics("stanford").robot
    sim.executor.set_robot(other, other.limits)
    sim.settle()
    sim.play()
    assert sim.used() <= 1.0 and not np.abs(sim.motion()[1][-1]).any()
    sim.take(trajectory())
    assert sim.rejected[-1].reason == "no_model"


def test_abort_after_a_clock_change_ends_the_motion_and_the_next_one_succeeds():
    sim = ExecutorHarness()
    sim.take(trajectory())
    sim.play(0.5)
    sim.executor.abort("the clock was set back")
    assert sim.executor.phase is Phase.IDLE and sim.executor.tick(sim.now, DT) is None
    sim.take(trajectory())
    sim.play()
    assert np.abs(sim.motion()[0][-1] - POINTS[-1]).max() < 1e-9


def test_unknown_limits_are_reported_as_not_enforced():
    sim = ExecutorHarness(replace(LIMITS, effort_rate=np.where(np.arange(7) == 2, NAN, LIMITS.effort_rate)))
    sim.settle()
    assert sim.events == ["no effort rate limit of joint3 is known: not enforced"]


def test_each_goal_receives_exactly_one_result():
    """Goals are reached, rejected, replaced, stopped and aborted."""
    sim, outcomes = ExecutorHarness(), []

    def goal(name, *args, **options):
        return replace(trajectory(*args, **options), on_end=lambda outcome: outcomes.append((name, *outcome)))

    def check(*expected):
        assert [entry[:2] for entry in outcomes] == list(expected), outcomes
        outcomes.clear()

    sim.take(goal("there"))
    sim.play()
    assert "ended at its goal after" in outcomes[0][2] and "planned 0.80 s" in outcomes[0][2]
    check(("there", ""))
    sim.take(goal("nowhere", np.stack((POINTS[-1], POINTS[-1]))))
    check(("nowhere", "nowhere_to_go"))
    sim.take(goal("dropped", START[None], first=1.0, start=sim.now + 1_000_000_000))
    sim.take(goal("other", START[None], first=1.0, start=sim.now + 1_000_000_000))
    check(("dropped", "replaced"))
    sim.executor.stop("changed my mind")
    assert outcomes[0][2] == "changed my mind"
    check(("other", "stopped"))
    sim.take(goal("first", POINTS[::-1], 2.0))
    sim.play(0.5)
    sim.take(goal("second", START[None], first=2.0))
    sim.take(goal("third", START[None], first=1.0))
    check(("second", "replaced"))
    sim.play(0.1)
    sim.executor.stop("not that one", only=sim.executor.waiting.on_end)
    check(("third", "stopped"))
    sim.play()
    assert outcomes[0][2].startswith("another trajectory came: ended stopped at")
    check(("first", "stopped"))
    last = goal("last", START[None], first=1.0)
    sim.take(last)
    sim.play(0.3)
    assert not sim.executor.stop(only=goal("stranger").on_end) and sim.executor.phase is Phase.MOVING
    assert sim.executor.stop("enough", only=last.on_end)
    sim.play()
    assert outcomes[0][2].startswith("enough: ended stopped at")
    check(("last", "stopped"))
    sim.take(goal("gone", POINTS[2:], first=2.0))
    sim.play(0.5)
    sim.executor.abort("the clock was set back")
    check(("gone", "stopped"))
    sim.measured = START + 0.2
    sim.take(goal("elsewhere", start=sim.now + 1_500_000_000, first=2.0))
    sim.measured = START
    sim.play()
    check(("elsewhere", "not_at_start"))


def test_requests_and_their_effects_are_reported():
    sim = ExecutorHarness()
    sim.executor.pause()
    sim.executor.pause()
    sim.take(trajectory())
    sim.play(0.1)
    assert sim.events[0] == "paused" and sim.events[1].startswith("motion 1 is ready, and waits, paused: planned 0.80 s")
    sim.executor.resume()
    sim.executor.set_override(0.5)
    sim.executor.set_override(0.5)
    sim.play(0.3)
    sim.executor.stop()
    sim.executor.stop()
    assert sim.events[2:] == ["resumed", "override: 0.5 of the speed", "motion 1 comes to rest: a stop was requested"]
    sim.play()
    sim.take(trajectory(START[None], first=1.0, start=sim.now + 5_000_000_000))
    sim.executor.stop("changed my mind")
    assert "the waiting trajectory is dropped: changed my mind" in sim.events
