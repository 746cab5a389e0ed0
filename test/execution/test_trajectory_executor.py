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
from support.reach import DURATION, EFFORT, LIMITS, POINTS, ROBOT, START
from support.scaling_cases import dynamics
from support.stage import DT, Stage, trajectory

NAN = math.nan
NOTHING = replace(LIMITS, **dict.fromkeys(("effort", "effort_rate", "velocity"), np.full(7, NAN)))


def test_trajectory_too_fast_is_slowed_to_its_limits():
    it = Stage()
    it.take(trajectory())
    assert it.wakes == 1 and it.executor.phase is Phase.WAITING
    it.play()
    q, qd, qdd, _ = it.motion()
    assert 0.97 < it.used() <= 1.0 and not it.rejected
    assert np.abs(q[-1] - POINTS[-1]).max() < 1e-9 and not np.abs(qd[-1]).any() and not np.abs(qdd[-1]).any()
    path = plan_from_waypoints(POINTS, np.linspace(0.0, DURATION, 4)).path
    assert np.abs(q - path([sample.reference.s for sample in it.samples])[0]).max() < 1e-9
    for sample in it.samples:  # what is said of a sample is so
        reference = sample.reference
        tau, rate = ROBOT.torque_and_rate(reference.q, reference.qd, reference.qdd, reference.qddd)
        assert (tau == sample.effort).all() and (rate == sample.effort_rate).all()
        value = {"effort": tau, "effort_rate": rate, "velocity": reference.qd}[sample.binding.quantity]
        joint = ROBOT.joint_names.index(sample.binding.owner)
        limit = getattr(LIMITS, sample.binding.quantity)[joint]
        assert abs(value[joint]) / limit == pytest.approx(sample.binding.utilization)
    assert it.samples[-1].delay == pytest.approx(it.samples[-1].reference.t - DURATION, abs=0.01)
    assert "ended at its goal" in it.events[-1] and "planned 0.80 s" in it.events[-1]


def test_motion_optimized_before_its_start_keeps_limits_and_ends_earlier():
    it = Stage(solve_first=True)
    it.take(trajectory())
    it.play()
    other = Stage()
    other.take(trajectory())
    other.play()
    assert it.used() <= 1.0 and len(it.samples) < len(other.samples)


@pytest.mark.parametrize("interpolation", ["velocities", "accelerations"])
def test_waypoint_velocities_and_accelerations_shape_the_path(interpolation):
    it = Stage(interpolation=interpolation)
    times, v = np.linspace(0.0, DURATION, 4), np.zeros((4, 7))
    v[1:3] = (POINTS[2:] - POINTS[:-2]) / DURATION
    points = [TrajectoryPoint(float(t), q, speed, np.zeros(7)) for t, q, speed in zip(times, POINTS, v)]
    it.take(read_goal(ROBOT.joint_names, ROBOT.joint_names, points))
    it.play()
    path = plan_from_waypoints(POINTS, times, v, np.zeros((4, 7)), interpolation).path
    assert it.used() <= 1.0 and np.abs(it.motion()[0] - path([sample.reference.s for sample in it.samples])[0]).max() < 1e-9
    assert np.abs(it.motion()[0][-1] - POINTS[-1]).max() < 1e-9


def test_pause_continues_when_a_new_trajectory_arrives():
    it = Stage()
    it.take(trajectory())
    it.play(0.7)
    it.executor.pause()
    it.play(1.0)
    assert it.executor.phase is Phase.PAUSED and not np.abs(it.motion()[1][-1]).any()
    late = it.samples[-1].delay
    it.play(0.5)
    assert it.samples[-1].delay == pytest.approx(late)
    rest = it.motion()[0][-1]
    it.take(trajectory(START[None], first=2.0))
    it.play(0.2)
    it.settle()
    it.play(0.2)
    assert it.executor.phase is Phase.PAUSED and np.abs(it.motion()[0][-1] - rest).max() < 1e-12
    it.executor.resume()
    it.play()
    assert np.abs(it.motion()[0][-1] - START).max() < 1e-9 and it.used() <= 1.0
    steps = np.abs(np.diff(it.motion()[0], axis=0)).max(axis=0)
    assert (steps <= 1.01 * LIMITS.velocity * DT).all()  # continuous


def test_override_slows_and_stop_ends_the_motion():
    it = Stage()
    it.executor.set_override(0.5)
    it.take(trajectory(duration=6.0))
    it.play(1.0)
    assert it.samples[-1].speed == pytest.approx(0.5, rel=1e-6) and it.samples[-1].delay == pytest.approx(0.0, abs=1e-6)
    it.executor.set_override(1.0)
    it.play(1.0)
    assert it.samples[-1].speed == pytest.approx(1.0, rel=1e-6)
    for share in (-0.1, 1.1, NAN):
        with pytest.raises(InputError, match="from 0 to 1"):
            it.executor.set_override(share)
    assert it.executor.stop()
    it.play(0.01)
    assert it.executor.phase is Phase.STOPPING
    it.play()
    assert not np.abs(it.motion()[1][-1]).any() and it.used() <= 1.0 and "stopped at" in it.events[-1]
    assert not it.executor.stop()
    it.take(trajectory(POINTS[2:], first=1.0))  # from where it stands
    it.play()
    assert np.abs(it.motion()[0][-1] - POINTS[-1]).max() < 1e-9


def test_new_trajectory_during_a_motion_is_rejected_if_configured():
    it = Stage(on_new_trajectory="refuse")
    it.take(trajectory())
    it.play(0.3)
    with pytest.raises(Rejected) as caught:
        it.take(trajectory())
    assert caught.value.reason == "busy"
    it.play()
    assert np.abs(it.motion()[0][-1] - POINTS[-1]).max() < 1e-9


@pytest.mark.parametrize("late", [0.0, 0.0004, 0.02])
def test_motion_starts_exactly_at_its_stamp_within_a_cycle(late):
    """A cycle of 20 ms that contains the start advances the motion only from the start."""
    it = Stage()
    start = it.now + 500_000_000
    it.take(trajectory(start=start))
    it.now = start - 20_000_000
    assert it.executor.tick(it.now, 0.02) is None
    it.now = start + round(late * 1e9)
    assert it.executor.tick(it.now, 0.02)[1].reference.t == pytest.approx(late, abs=2e-9)


def test_late_and_future_stamps_decide_the_start():
    it = Stage()
    it.take(trajectory(start=it.now + 500_000_000))
    it.play(0.45)
    assert it.executor.phase is Phase.WAITING and not it.samples
    it.take(trajectory(duration=5.0, start=it.now + 100_000_000))  # replaced by another one
    assert [rejected.reason for rejected in it.rejected] == ["replaced"]
    it.play(1.0)
    assert len(it.samples) == pytest.approx(900, abs=2)
    it.take(trajectory(START[None], first=2.0, start=it.now + 300_000_000))
    it.play(0.25)
    assert it.executor.phase is Phase.MOVING
    it.play(0.1)
    assert it.executor.phase is Phase.STOPPING
    it.play()
    assert np.abs(it.motion()[0][-1] - START).max() < 1e-9
    with pytest.raises(Rejected, match="should have ended") as caught:
        it.take(trajectory(start=it.now - 2_000_000_000))
    assert caught.value.reason == "too_late"
    it.take(trajectory(start=it.now - 500_000_000))  # late, and begins at once
    assert it.executor.phase is Phase.WAITING
    assert it.executor.stop() and it.executor.phase is Phase.IDLE


def test_stamp_far_in_the_future_is_reported_or_rejected():
    it = Stage()
    it.take(trajectory(start=it.now + 5_000_000_000))
    assert "the trajectory waits: its stamp is 5.0 s ahead of this node's clock" in it.events
    with pytest.raises(Rejected, match="compare the clocks of both machines") as caught:
        it.take(trajectory(start=it.now + 31_536_000_000_000_000))
    assert caught.value.reason == "too_early"


def test_trajectory_with_too_many_points_is_rejected():
    points = [TrajectoryPoint(0.01 * k, POINTS[0]) for k in range(20_001)]
    with pytest.raises(Rejected, match="20001 points, at most 20000 are allowed: resample") as caught:
        read_goal(ROBOT.joint_names, ROBOT.joint_names, points)
    assert caught.value.reason == "too_many_points"


def test_late_cycle_yields_a_reference_for_each_control_period():
    """The quintics of a controller between references deviate over 5 ms, but not over 1 ms."""
    late, regular = Stage(), Stage()
    for it in (late, regular):
        it.take(trajectory())
        for _ in range(3):  # ready, begun
            it.worker.work(), it.solver.work()
            it.executor.tick(it.now, DT)
    late.executor.tick(late.now, 5.0 * DT)
    references = [regular.executor.tick(regular.now, DT)[1].reference for _ in range(5)]
    steps = late.executor.motion.control_steps
    assert len(steps) == 5
    for step, reference in zip(steps, references):
        assert np.abs(step.q - reference.q).max() < 1e-12 and np.abs(step.qdd - reference.qdd).max() < 1e-9


def test_trajectory_is_rejected_if_the_robot_is_not_at_its_start():
    it = Stage()
    it.measured = POINTS[1].copy()
    it.take(trajectory())
    assert [rejected.reason for rejected in it.rejected] == ["not_at_start"]
    it.take(trajectory(first=2.0))
    it.play()
    assert np.abs(it.motion()[0][0] - POINTS[1]).max() < 1e-6 and np.abs(it.motion()[0][-1] - POINTS[-1]).max() < 1e-9
    it.measured = it.motion()[0][-150]  # it is on its way there: it goes on from the last reference
    assert np.abs(it.measured - POINTS[-1]).max() > 0.02
    it.take(trajectory(POINTS[2:][::-1], first=1.0))
    it.play()
    it.measured = POINTS[2] + 0.005  # as near as its controller holds it
    it.now += 2_000_000_000
    it.take(trajectory(START[None], first=2.0))
    it.play()
    assert np.abs(np.diff(it.motion()[0], axis=0)).max() < 0.005
    it.measured = START.copy()
    it.take(trajectory(start=it.now + 1_500_000_000))
    it.measured = START + 0.2
    it.play()
    assert it.rejected[-1].reason == "not_at_start" and "from where it was when the trajectory came" in str(it.rejected[-1])


def test_motion_after_a_protective_stop_starts_at_the_robot():
    """The robot stopped before the end of its motion; the next motion starts at its position."""
    it = Stage()
    it.take(trajectory())
    it.play()
    ended, stood = len(it.samples), it.motion()[0][-400]
    it.measured = stood
    it.now += 10_000_000
    it.take(trajectory(START[None], first=2.0))
    it.play()
    np.testing.assert_allclose(it.motion()[0][ended], stood, atol=1e-6)
    it.measured = START + 0.05  # moved by hand, half a second after the motion
    it.now += 500_000_000
    it.take(trajectory())
    assert [rejected.reason for rejected in it.rejected] == ["not_at_start"]


def test_references_of_a_wrapped_joint_do_not_jump(monkeypatch):
    """Joint states are between -pi and pi; trajectories contain any number of turns."""
    turns, turn = np.arange(7) == 6, 2.0 * math.pi
    monkeypatch.setattr(type(ROBOT), "joint_types", tuple("continuous" if at else "revolute" for at in turns))
    it = Stage(replace(LIMITS, lower=np.full(7, NAN), upper=np.full(7, NAN)))
    there, it.measured = np.stack([POINTS[0]] * 3), POINTS[0].copy()
    it.measured[6], there[:, 6] = 3.1, (3.1 - turn, 3.6 - turn, 4.1 - turn)
    it.take(trajectory(there, 3.0))
    it.play()
    there[:, 6] = 4.1 - 3.0 * turn, 4.6 - 3.0 * turn, 5.1 - 3.0 * turn  # goes on, in another count
    it.measured = it.motion()[0][-1] - turn * turns
    it.now += 3_000_000_000
    it.take(trajectory(there, 3.0, start=it.now + 200_000_000))
    it.play()
    assert not it.rejected
    q = it.motion()[0][:, 6]
    assert np.abs(np.diff(q)).max() < 0.002 and (q[0], q[-1]) == pytest.approx((3.1, 5.1), abs=1e-6)


@pytest.mark.parametrize(("limits", "points", "reason", "detail"), [
    (LIMITS, np.stack((START, START)), "nowhere_to_go", "all the same"),
    (replace(LIMITS, effort=0.3 * EFFORT), POINTS, "gravity", "gravity alone takes .* of joint2"),
    (NOTHING, POINTS, "limits", "not one limit"),
    (replace(LIMITS, lower=LIMITS.lower + 10.0), POINTS, "limits", "position limits of joint1 are .*: no position is inside"),
    (LIMITS, np.stack((START, START + [0, 0, 0, 2.0, 0, 0, 0])), "position_limit", "joint4 would be at 0.5"),
])
def test_infeasible_requests_are_rejected(limits, points, reason, detail):
    it = Stage(limits)
    it.take(trajectory(points))
    (rejected,) = it.rejected
    assert rejected.reason == reason and it.executor.phase is Phase.IDLE
    with pytest.raises(Rejected, match=detail):
        raise rejected


def test_new_limits_and_payload_during_a_motion_are_kept():
    it = Stage()
    it.take(trajectory())
    it.play(0.6)
    tight = replace(LIMITS, effort=0.93 * EFFORT, velocity=0.6 * LIMITS.velocity)
    it.executor.set_robot(ROBOT, tight)
    it.settle()
    it.play(0.6)
    loaded = ROBOT.with_payload("link7", 0.2)
    changed = len(it.samples)
    it.executor.set_robot(loaded, tight)
    it.settle()
    it.play()
    assert it.samples[changed].effort == pytest.approx(loaded.dynamics(*(x[changed] for x in it.motion())).tau)
    assert it.used(loaded, tight, since=changed + 700) <= 1.0
    assert np.abs(it.motion()[0][-1] - POINTS[-1]).max() < 1e-9


def test_payload_too_heavy_to_hold_brings_the_motion_to_rest():
    it = Stage()
    it.take(trajectory())
    it.play(0.6)
    it.executor.set_robot(ROBOT.with_payload("link7", 20.0), LIMITS)
    it.settle()
    it.play()
    assert any("cannot go on with the new limits or payload: gravity alone takes" in text for text in it.events)
    assert "stopped at" in it.events[-1] and not np.abs(it.motion()[1][-1]).any()
    it.take(trajectory(START[None], first=2.0))
    assert it.rejected[-1].reason == "gravity"


def test_new_robot_model_during_a_motion_brings_it_to_rest():
    it = Stage()
    it.take(trajectory())
    it.play(0.5)
    other = dynamics("stanford").robot
    it.executor.set_robot(other, other.limits)
    it.settle()
    it.play()
    assert it.used() <= 1.0 and not np.abs(it.motion()[1][-1]).any()
    it.take(trajectory())
    assert it.rejected[-1].reason == "no_model"


def test_abort_after_a_clock_change_ends_the_motion_and_the_next_one_succeeds():
    it = Stage()
    it.take(trajectory())
    it.play(0.5)
    it.executor.abort("the clock was set back")
    assert it.executor.phase is Phase.IDLE and it.executor.tick(it.now, DT) is None
    it.take(trajectory())
    it.play()
    assert np.abs(it.motion()[0][-1] - POINTS[-1]).max() < 1e-9


def test_unknown_limits_are_reported_as_not_enforced():
    it = Stage(replace(LIMITS, effort_rate=np.where(np.arange(7) == 2, NAN, LIMITS.effort_rate)))
    it.settle()
    assert it.events == ["no effort rate limit of joint3 is known: not enforced"]


def test_each_goal_receives_exactly_one_result():
    """Goals are reached, rejected, replaced, stopped and aborted."""
    it, outcomes = Stage(), []

    def goal(name, *args, **options):
        return replace(trajectory(*args, **options), on_end=lambda outcome: outcomes.append((name, *outcome)))

    def check(*expected):
        assert [entry[:2] for entry in outcomes] == list(expected), outcomes
        outcomes.clear()

    it.take(goal("there"))
    it.play()
    assert "ended at its goal after" in outcomes[0][2] and "planned 0.80 s" in outcomes[0][2]
    check(("there", ""))
    it.take(goal("nowhere", np.stack((POINTS[-1], POINTS[-1]))))
    check(("nowhere", "nowhere_to_go"))
    it.take(goal("dropped", START[None], first=1.0, start=it.now + 1_000_000_000))
    it.take(goal("other", START[None], first=1.0, start=it.now + 1_000_000_000))
    check(("dropped", "replaced"))
    it.executor.stop("changed my mind")
    assert outcomes[0][2] == "changed my mind"
    check(("other", "stopped"))
    it.take(goal("first", POINTS[::-1], 2.0))
    it.play(0.5)
    it.take(goal("second", START[None], first=2.0))
    it.take(goal("third", START[None], first=1.0))
    check(("second", "replaced"))
    it.play(0.1)
    it.executor.stop("not that one", only=it.executor.waiting.on_end)
    check(("third", "stopped"))
    it.play()
    assert outcomes[0][2].startswith("another trajectory came: ended stopped at")
    check(("first", "stopped"))
    last = goal("last", START[None], first=1.0)
    it.take(last)
    it.play(0.3)
    assert not it.executor.stop(only=goal("stranger").on_end) and it.executor.phase is Phase.MOVING
    assert it.executor.stop("enough", only=last.on_end)
    it.play()
    assert outcomes[0][2].startswith("enough: ended stopped at")
    check(("last", "stopped"))
    it.take(goal("gone", POINTS[2:], first=2.0))
    it.play(0.5)
    it.executor.abort("the clock was set back")
    check(("gone", "stopped"))
    it.measured = START + 0.2
    it.take(goal("elsewhere", start=it.now + 1_500_000_000, first=2.0))
    it.measured = START
    it.play()
    check(("elsewhere", "not_at_start"))


def test_requests_and_their_effects_are_reported():
    it = Stage()
    it.executor.pause()
    it.executor.pause()
    it.take(trajectory())
    it.play(0.1)
    assert it.events[0] == "paused" and it.events[1].startswith("motion 1 is ready, and waits, paused: planned 0.80 s")
    it.executor.resume()
    it.executor.set_override(0.5)
    it.executor.set_override(0.5)
    it.play(0.3)
    it.executor.stop()
    it.executor.stop()
    assert it.events[2:] == ["resumed", "override: 0.5 of the speed", "motion 1 comes to rest: a stop was requested"]
    it.play()
    it.take(trajectory(START[None], first=1.0, start=it.now + 5_000_000_000))
    it.executor.stop("changed my mind")
    assert "the waiting trajectory is dropped: changed my mind" in it.events
