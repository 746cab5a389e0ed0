"""Trajectories executed tick by tick, without ROS: what is taken, where it begins, and what happens on the way."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import pytest

from rnea_ros import InputError
from rnea_ros.errors import Rejected
from rnea_ros.execution import execution_context
from rnea_ros.execution.executed_motion import ExecutedMotion
from rnea_ros.execution.goal import TrajectoryPoint, check_positions, placed, read
from rnea_ros.execution.joint_state_buffer import JointStateBuffer
from rnea_ros.execution.rate_loop import RateLoop, SimulatedTime
from rnea_ros.execution.schedule import Schedule
from rnea_ros.execution.start_state import StartState
from rnea_ros.execution.trajectory_executor import Phase
from rnea_ros.execution.turns import turning
from rnea_ros.motion.path_dynamics import PathDynamics
from rnea_ros.scaling import trajectory_scaler
from rnea_ros.scaling.points import plan_from_waypoints
from rnea_ros.scaling.trajectory_scaler import TrajectoryScaler
from support.reach import DURATION, EFFORT, LIMITS, POINTS, ROBOT, START
from support.scaling_cases import dynamics
from support.stage import DT, stages, trajectory

NAN = math.nan
NAMES = ("a", "b", "c")
REST = np.full(3, NAN)
UNKNOWN = np.full(3, NAN)


# --- goals ------------------------------------------------------------------------------------------------------------


def test_a_goal_is_in_the_models_order_whatever_the_messages():
    goal = read(NAMES, ["c", "a"], [TrajectoryPoint(0.0, [3.0, 1.0], [0.0, 0.0]),
                                    TrajectoryPoint(2.0, [3.5, 1.5], [0.0, 0.0])], 7)
    assert goal.q.tolist() == [[1.0, 0.0, 3.0], [1.5, 0.0, 3.5]] and goal.v.tolist() == np.zeros((2, 3)).tolist()
    assert (goal.a, goal.open, goal.start, goal.duration) == (None, (1,), 7, 2.0)
    assert placed(goal, np.array([NAN, 9.0, NAN]), 0.01, "refuse", UNKNOWN).q.tolist() == [[1.0, 9.0, 3.0], [1.5, 9.0, 3.5]]
    with pytest.raises(Rejected, match="b: not named, and no joint state") as caught:
        placed(goal, np.array([1.0, NAN, 3.0]), 0.01, "refuse", UNKNOWN)
    assert caught.value.reason == "joint_not_named"


TWO = [TrajectoryPoint(0.0, [0.0] * 3), TrajectoryPoint(1.0, [1.0] * 3)]


@pytest.mark.parametrize(("names", "points", "reason", "detail"), [
    ([], [], "empty", "0 points for 0 joints"),
    (NAMES, [], "empty", "0 points for 3"),
    ("aab", TWO, "duplicate_joint", "a"),
    ("abx", TWO, "unknown_joint", "x: the robot has a, b, c"),
    (NAMES, TWO[::-1], "times", "point 1 is at 0 s, point 0 before it at 1 s"),
    (NAMES, [TWO[0], TWO[0]], "times", "must increase"),
    (NAMES, [TrajectoryPoint(-1.0, [0.0] * 3)], "times", "not below zero"),
    (NAMES, [TrajectoryPoint(NAN, [0.0] * 3)], "times", "finite"),
    (NAMES, [TWO[0], TrajectoryPoint(1.0, [1.0, 2.0])], "wrong_size", "point 1 has 2 positions for 3 joints"),
    (NAMES, [TrajectoryPoint(0.0, []), TrajectoryPoint(1.0, [])], "wrong_size", "no positions"),
    (NAMES, [TWO[0], TrajectoryPoint(1.0, [])], "wrong_size", "point 1 has no positions, others have"),
    (NAMES, [TWO[0], TrajectoryPoint(1.0, [1.0] * 3, [0.0] * 3)], "wrong_size", "point 0 has no velocities, others have"),
    (NAMES, [TWO[0], TrajectoryPoint(1.0, [1.0, NAN, math.inf])], "not_finite", "b = nan, c = inf"),
    (NAMES, [point._replace(velocities=[NAN] * 3) for point in TWO], "not_finite", "velocities of point 0"),
])
def test_what_is_no_goal(names, points, reason, detail):
    with pytest.raises(Rejected, match=detail) as caught:
        read(NAMES, list(names), points)
    assert caught.value.reason == reason


@pytest.mark.parametrize("names", [[f"x{k}" for k in range(10**5)], ["x"] * 10**5, ["x" * 10**6]])
def test_names_without_end_are_cut_short(names):
    with pytest.raises(Rejected) as caught:
        read(NAMES, names, TWO)
    assert len(str(caught.value)) < 1000


def test_where_a_motion_begins():
    def begins(first, place, elsewhere="refuse", points=2, velocities=None):
        rest = [velocities] * 2 if velocities else [(), ()]
        goal = read(NAMES, NAMES, [TrajectoryPoint(first, [0.0] * 3, rest[0]),
                                   TrajectoryPoint(first + 1.0, [1.0] * 3, rest[1])][:points])
        return placed(goal, np.array(place), 0.01, elsewhere, np.array([1.0, NAN, 1.0]))

    for first in (0.0, 2.0):  # at the first point, or nothing known: as it is
        for place in ([0.005, 0.0, 0.0], REST):
            assert begins(first, place).q.tolist() == [[0.0] * 3, [1.0] * 3]
    there = begins(2.0, [0.5, 0.0, NAN])  # a later first point is a place to go to
    assert there.times.tolist() == [0.0, 2.0, 3.0] and there.q[0].tolist() == [0.5, 0.0, 0.0]
    with pytest.raises(Rejected, match=r"a is at 0\.5, and at 0 in the first point") as caught:
        begins(0.0, [0.5, 0.0, 0.0])
    assert caught.value.reason == "not_at_start"
    way = begins(0.0, [0.5, 0.1, 0.0], "prepend", velocities=[0.0] * 3)
    np.testing.assert_allclose(way.times, [0.0, 1.875, 1.975, 2.975])  # half of 1 rad/s, at the peak of a quintic
    assert way.q[:, 0].tolist() == [0.5, 0.0, 0.0, 1.0] and way.v.shape == (4, 3)
    alone = begins(1.5, [0.5, 0.0, 0.0], points=1)
    assert alone.times.tolist() == [0.0, 1.5] and alone.q[0].tolist() == [0.5, 0.0, 0.0]
    with pytest.raises(Rejected, match="a single point needs joint states"):
        begins(1.0, REST, points=1)


def test_paths_stay_within_position_limits():
    robot = dynamics("seven_r").robot
    points = np.zeros((4, 7)) + [0.0, 0.0, 0.0, -1.0, 0.0, 1.0, 0.0]
    points[:, 1] = 0.5, 1.79, 1.6, 0.0
    check_positions(plan_from_waypoints(points[:2], [0.0, 1.0]).path, robot.limits, robot.joint_names)
    with pytest.raises(Rejected, match=r"joint2 would be at 1.8\d* between two points; its limits are -1.8 to 1.8"):
        check_positions(plan_from_waypoints(points, [0.0, 1.0, 2.0, 3.0]).path, robot.limits, robot.joint_names)


def test_places_of_several_senders_and_of_old():
    place = JointStateBuffer()
    place.read(["a", "x"], [1.0, 2.0], 10.0)
    place.read(["b", "a"], [3.0, NAN], 11.0)
    np.testing.assert_array_equal(place.at(NAMES, 9.0), [1.0, 3.0, NAN])
    np.testing.assert_array_equal(place.at(NAMES, 10.5), [NAN, 3.0, NAN])
    with pytest.raises(Rejected, match="1 positions for 2 names"):
        place.read(["a", "b"], [1.0], 12.0)
    assert place.age(NAMES, 11.5).tolist() == [1.5, 0.5, 0.0]
    place.held = {"a": 7.0, "c": 8.0}
    np.testing.assert_array_equal(place.at(NAMES, 10.5), [NAN, 3.0, 8.0])  # nobody ever named c
    place.forget()
    np.testing.assert_array_equal(place.at(NAMES, 0.0), [NAN, NAN, 8.0])


def test_joints_of_others_are_not_remembered_without_end():
    place = JointStateBuffer()
    strangers = [f"x{k}" for k in range(300_000)]
    place.read(["b", *strangers], np.zeros(300_001), 1.0)
    place.attend(NAMES)
    place.read([*strangers[::-1], "c"], np.ones(300_001), 2.0)
    np.testing.assert_array_equal(place.at(NAMES, 0.0), [NAN, 0.0, 1.0])
    assert len(place._seen) < 1100


RAMP = np.arange(0.0, 1.0, 1e-3)[:, None] * np.array([1.0, -2.0, 0.0])  # references, one each millisecond


@pytest.mark.parametrize(("behind", "later", "age", "trusted"), [
    (0.0, 0.0, 0.0, True),
    (0.15, 0.0, 0.0, True),  # on its way
    (0.15, 0.3, 0.4, True),  # the same, told late
    (0.3, 0.0, 0.0, False),  # stopped by itself before the end
    (0.15, 0.1, 0.0, False),  # or just then: it should have come nearer
    (0.004, 5.0, 0.0, True),  # as near as its controller holds it
    (0.6, 0.2, 0.5, False),
    (0.3, 5.0, 6.5, True),  # what came before all that is remembered tells nothing of now
])
def test_joint_states_win_over_the_last_reference(behind, later, age, trusted):
    measured = RAMP[-1 - round(1e3 * behind)]
    whereabouts = StartState(lambda names: measured, lambda names: np.full(3, age))
    for k, q in enumerate(RAMP):
        whereabouts.send(NAMES, q, 10**12 + k * 10**6)
    found = whereabouts.at(NAMES, 10**12 + round((0.999 + later) * 1e9), 0.01, np.zeros(3, dtype=bool))
    assert found.tolist() == (RAMP[-1] if trusted else measured).tolist()


def test_where_the_robot_is_by_whole_turns():
    measured = np.array([3.0 - 4.0 * math.pi, NAN, 0.5 + 2.0 * math.pi])
    whereabouts = StartState(lambda names: measured, lambda names: np.zeros(3))
    turns = np.array([True, True, False])
    np.testing.assert_array_equal(whereabouts.at(NAMES, 0, 0.01, turns), measured)
    whereabouts.send(NAMES, np.array([3.005, 1.0, 0.5 + 2.0 * math.pi]), 0)  # is there
    np.testing.assert_allclose(whereabouts.at(NAMES, 10**9, 0.01, turns), [3.005, 1.0, measured[2]])
    whereabouts.send(NAMES, np.array([3.005, 1.0, 0.5]), 10**9)  # is not: the last one does not turn without end
    np.testing.assert_allclose(whereabouts.at(NAMES, 2 * 10**9, 0.01, turns), [3.0, 1.0, measured[2]])


def test_only_continuous_joints_without_position_limits_turn_without_end():
    limits = replace(LIMITS, lower=np.array([NAN, -1.0, NAN, NAN]), upper=np.array([NAN, 1.0, 2.0, NAN]))
    assert turning(["continuous", "continuous", "continuous", "revolute"], limits).tolist() == [True, False, False, False]


def test_a_goal_goes_on_from_the_robots_count_of_turns():
    turns, turn = np.array([True, True, False]), 2.0 * math.pi

    def begins(first, place, points=2, elsewhere="refuse"):
        goal = read(NAMES, NAMES, [TrajectoryPoint(first + k, [3.0 + k, 0.0, 0.0]) for k in range(points)])
        return placed(goal, np.array(place), 0.01, elsewhere, UNKNOWN, turns)

    there = begins(0.0, [3.005 - turn, NAN, 0.0])
    np.testing.assert_allclose(there.q, [[3.0 - turn, 0.0, 0.0], [4.0 - turn, 0.0, 0.0]])
    assert begins(0.0, [3.0, 2.0 * turn, 0.0]).q[:, 1].tolist() == [2.0 * turn] * 2
    near = begins(2.0, [-3.0, 0.0, 0.0], points=1)  # the short way
    np.testing.assert_allclose(near.q[:, 0], [-3.0, 3.0 - turn])
    way = begins(0.0, [-3.0, 0.0, 0.0], elsewhere="prepend")
    np.testing.assert_allclose(way.q[:, 0], [-3.0, 3.0 - turn, 3.0 - turn, 4.0 - turn])
    with pytest.raises(Rejected, match=r"a is at -3, and at -3\.28319 in the first point"):
        begins(0.0, [-3.0, 0.0, 0.0])
    with pytest.raises(Rejected, match=r"c is at 6\.28319, and at 0"):  # does not turn without end
        begins(0.0, [3.0, 0.0, turn])


def test_the_schedule_is_the_laws_inverse():
    law = plan_from_waypoints([[0.0], [1.0], [1.0], [3.0]], [0.0, 1.0, 1.5, 4.0]).law
    schedule = Schedule(law)
    for s in (*np.linspace(0.0, 3.0, 301), 1.7, 0.2, 2.9):
        t, speed = schedule.at(s)
        assert abs(law.at(t)[0] - s) < 1e-9
        assert math.isnan(speed) or speed == pytest.approx(law.at(float(law.time_at([s])[0]))[1], rel=1e-3, abs=1e-4)
    assert math.isnan(schedule.at(0.0)[1]) and math.isnan(schedule.at(3.0)[1])


# --- motions ----------------------------------------------------------------------------------------------------------

NOTHING = replace(LIMITS, **dict.fromkeys(("effort", "effort_rate", "velocity"), np.full(7, NAN)))


stage = pytest.fixture(stages)


def test_too_fast_is_slowed_just_enough(stage):
    it = stage()
    it.take(trajectory())
    assert it.wakes == 1 and it.performer.phase is Phase.WAITING
    it.play()
    q, qd, qdd, _ = it.motion()
    assert 0.97 < it.used() <= 1.0 and not it.refusals
    assert np.abs(q[-1] - POINTS[-1]).max() < 1e-9 and not np.abs(qd[-1]).any() and not np.abs(qdd[-1]).any()
    path = plan_from_waypoints(POINTS, np.linspace(0.0, DURATION, 4)).path
    assert np.abs(q - path([sample.reference.s for sample in it.samples])[0]).max() < 1e-9
    for sample in it.samples:  # what is said of a sample is so
        reference = sample.reference
        tau, rate = ROBOT.torque_and_rate(reference.q, reference.qd, reference.qdd, reference.qddd)
        assert (tau == sample.tau).all() and (rate == sample.tau_rate).all()
        value = {"effort": tau, "effort_rate": rate, "velocity": reference.qd}[sample.quantity][sample.joint]
        assert abs(value) / getattr(LIMITS, sample.quantity)[sample.joint] == pytest.approx(sample.utilization)
    assert it.samples[-1].delay == pytest.approx(it.samples[-1].reference.t - DURATION, abs=0.01)
    assert "ended at its goal" in it.said[-1] and "planned 0.80 s" in it.said[-1]


def test_solved_first(stage):
    it = stage(solve_first=True)
    it.take(trajectory())
    it.play()
    other = stage()
    other.take(trajectory())
    other.play()
    assert it.used() <= 1.0 and len(it.samples) < len(other.samples)


@pytest.mark.parametrize("interpolation", ["velocities", "accelerations"])
def test_velocities_and_accelerations_shape_the_path(stage, interpolation):
    it = stage(interpolation=interpolation)
    times, v = np.linspace(0.0, DURATION, 4), np.zeros((4, 7))
    v[1:3] = (POINTS[2:] - POINTS[:-2]) / DURATION
    points = [TrajectoryPoint(float(t), q, speed, np.zeros(7)) for t, q, speed in zip(times, POINTS, v)]
    it.take(read(ROBOT.joint_names, ROBOT.joint_names, points))
    it.play()
    path = plan_from_waypoints(POINTS, times, v, np.zeros((4, 7)), interpolation).path
    assert it.used() <= 1.0 and np.abs(it.motion()[0] - path([sample.reference.s for sample in it.samples])[0]).max() < 1e-9
    assert np.abs(it.motion()[0][-1] - POINTS[-1]).max() < 1e-9


def test_pause_lasts_through_new_trajectories(stage):
    it = stage()
    it.take(trajectory())
    it.play(0.7)
    it.performer.pause()
    it.play(1.0)
    assert it.performer.phase is Phase.PAUSED and not np.abs(it.motion()[1][-1]).any()
    late = it.samples[-1].delay
    it.play(0.5)
    assert it.samples[-1].delay == pytest.approx(late)
    rest = it.motion()[0][-1]
    it.take(trajectory(START[None], first=2.0))
    it.play(0.2)
    it.settle()
    it.play(0.2)
    assert it.performer.phase is Phase.PAUSED and np.abs(it.motion()[0][-1] - rest).max() < 1e-12
    it.performer.resume()
    it.play()
    assert np.abs(it.motion()[0][-1] - START).max() < 1e-9 and it.used() <= 1.0
    steps = np.abs(np.diff(it.motion()[0], axis=0)).max(axis=0)
    assert (steps <= 1.01 * LIMITS.velocity * DT).all()  # nowhere a jump


def test_override_and_stop(stage):
    it = stage()
    it.performer.set_override(0.5)
    it.take(trajectory(duration=6.0))
    it.play(1.0)
    assert it.samples[-1].speed == pytest.approx(0.5, rel=1e-6) and it.samples[-1].delay == pytest.approx(0.0, abs=1e-6)
    it.performer.set_override(1.0)
    it.play(1.0)
    assert it.samples[-1].speed == pytest.approx(1.0, rel=1e-6)
    for share in (-0.1, 1.1, NAN):
        with pytest.raises(InputError, match="from 0 to 1"):
            it.performer.set_override(share)
    assert it.performer.stop()
    it.play(0.01)
    assert it.performer.phase is Phase.STOPPING
    it.play()
    assert not np.abs(it.motion()[1][-1]).any() and it.used() <= 1.0 and "stopped at" in it.said[-1]
    assert not it.performer.stop()
    it.take(trajectory(POINTS[2:], first=1.0))  # from where it stands
    it.play()
    assert np.abs(it.motion()[0][-1] - POINTS[-1]).max() < 1e-9


def test_a_new_trajectory_is_refused_if_so_wished(stage):
    it = stage(on_new_trajectory="refuse")
    it.take(trajectory())
    it.play(0.3)
    with pytest.raises(Rejected) as caught:
        it.take(trajectory())
    assert caught.value.reason == "busy"
    it.play()
    assert np.abs(it.motion()[0][-1] - POINTS[-1]).max() < 1e-9


def test_stamps(stage):
    it = stage()
    it.take(trajectory(start=it.now + 500_000_000))
    it.play(0.45)
    assert it.performer.phase is Phase.WAITING and not it.samples
    it.take(trajectory(duration=5.0, start=it.now + 100_000_000))  # another one in its place
    assert [refusal.reason for refusal in it.refusals] == ["replaced"]
    it.play(1.0)
    assert len(it.samples) == pytest.approx(900, abs=2)
    it.take(trajectory(START[None], first=2.0, start=it.now + 300_000_000))
    it.play(0.25)
    assert it.performer.phase is Phase.MOVING
    it.play(0.1)
    assert it.performer.phase is Phase.STOPPING
    it.play()
    assert np.abs(it.motion()[0][-1] - START).max() < 1e-9
    with pytest.raises(Rejected, match="should have ended") as caught:
        it.take(trajectory(start=it.now - 2_000_000_000))
    assert caught.value.reason == "too_late"
    it.take(trajectory(start=it.now - 500_000_000))  # late, and begins at once
    assert it.performer.phase is Phase.WAITING
    assert it.performer.stop() and it.performer.phase is Phase.IDLE


def test_a_robot_that_is_elsewhere(stage):
    it = stage()
    it.measured = POINTS[1].copy()
    it.take(trajectory())
    assert [refusal.reason for refusal in it.refusals] == ["not_at_start"]
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
    assert it.refusals[-1].reason == "not_at_start" and "from where it was when the trajectory came" in str(it.refusals[-1])


def test_a_protective_stop_right_after_a_motion(stage):
    """Or before its end: the robot stands elsewhere, and the next motion begins there."""
    it = stage()
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
    assert [refusal.reason for refusal in it.refusals] == ["not_at_start"]


def test_references_of_a_joint_that_wraps_do_not_jump(stage, monkeypatch):
    """Its joint states come between -pi and pi, its trajectories with any number of turns."""
    turns, turn = np.arange(7) == 6, 2.0 * math.pi
    monkeypatch.setattr(type(ROBOT), "joint_types", tuple("continuous" if at else "revolute" for at in turns))
    it = stage(replace(LIMITS, lower=np.full(7, NAN), upper=np.full(7, NAN)))
    there, it.measured = np.stack([POINTS[0]] * 3), POINTS[0].copy()
    it.measured[6], there[:, 6] = 3.1, (3.1 - turn, 3.6 - turn, 4.1 - turn)
    it.take(trajectory(there, 3.0))
    it.play()
    there[:, 6] = 4.1 - 3.0 * turn, 4.6 - 3.0 * turn, 5.1 - 3.0 * turn  # goes on, in another count
    it.measured = it.motion()[0][-1] - turn * turns
    it.now += 3_000_000_000
    it.take(trajectory(there, 3.0, start=it.now + 200_000_000))
    it.play()
    assert not it.refusals
    q = it.motion()[0][:, 6]
    assert np.abs(np.diff(q)).max() < 0.002 and (q[0], q[-1]) == pytest.approx((3.1, 5.1), abs=1e-6)


@pytest.mark.parametrize(("limits", "points", "reason", "detail"), [
    (LIMITS, np.stack((START, START)), "nowhere_to_go", "all the same"),
    (replace(LIMITS, effort=0.3 * EFFORT), POINTS, "gravity", "gravity alone takes .* of joint2"),
    (NOTHING, POINTS, "limits", "not one limit"),
    (LIMITS, np.stack((START, START + [0, 0, 0, 2.0, 0, 0, 0])), "position_limit", "joint4 would be at 0.5"),
])
def test_what_cannot_be_done_is_refused(stage, limits, points, reason, detail):
    it = stage(limits)
    it.take(trajectory(points))
    (refusal,) = it.refusals
    assert refusal.reason == reason and it.performer.phase is Phase.IDLE
    with pytest.raises(Rejected, match=detail):
        raise refusal


def test_other_limits_and_a_payload_on_the_way(stage):
    it = stage()
    it.take(trajectory())
    it.play(0.6)
    tight = replace(LIMITS, effort=0.93 * EFFORT, velocity=0.6 * LIMITS.velocity)
    it.performer.use(ROBOT, tight)
    it.settle()
    it.play(0.6)
    loaded = ROBOT.with_payload("link7", 0.2)
    changed = len(it.samples)
    it.performer.use(loaded, tight)
    it.settle()
    it.play()
    assert it.samples[changed].tau == pytest.approx(loaded.dynamics(*(x[changed] for x in it.motion())).tau)
    assert it.used(loaded, tight, since=changed + 700) <= 1.0
    assert np.abs(it.motion()[0][-1] - POINTS[-1]).max() < 1e-9


def test_a_payload_that_cannot_be_carried_brings_it_to_rest(stage):
    it = stage()
    it.take(trajectory())
    it.play(0.6)
    it.performer.use(ROBOT.with_payload("link7", 20.0), LIMITS)
    it.settle()
    it.play()
    assert any("cannot go on with the new limits or payload: gravity alone takes" in text for text in it.said)
    assert "stopped at" in it.said[-1] and not np.abs(it.motion()[1][-1]).any()
    it.take(trajectory(START[None], first=2.0))
    assert it.refusals[-1].reason == "gravity"


def test_another_robot_on_the_way(stage):
    it = stage()
    it.take(trajectory())
    it.play(0.5)
    other = dynamics("stanford").robot
    it.performer.use(other, other.limits)
    it.settle()
    it.play()
    assert it.used() <= 1.0 and not np.abs(it.motion()[1][-1]).any()
    it.take(trajectory())
    assert it.refusals[-1].reason == "no_model"


def test_a_clock_that_was_set(stage):
    it = stage()
    it.take(trajectory())
    it.play(0.5)
    it.performer.abort("the clock was set back")
    assert it.performer.phase is Phase.IDLE and it.performer.tick(it.now, DT) is None
    it.take(trajectory())
    it.play()
    assert np.abs(it.motion()[0][-1] - POINTS[-1]).max() < 1e-9


def test_unknown_limits_are_named(stage):
    it = stage(replace(LIMITS, effort_rate=np.where(np.arange(7) == 2, NAN, LIMITS.effort_rate)))
    it.settle()
    assert it.said == ["no effort rate limit of joint3 is known: not enforced"]


# --- ticks ------------------------------------------------------------------------------------------------------------


def test_the_ticker_sleeps_until_it_is_woken_and_keeps_a_record():
    calls = []
    ticker = RateLoop(lambda elapsed: calls.append(elapsed) or len(calls) % 50 != 0, 500.0)
    try:
        time.sleep(0.05)
        assert not calls
        for count in (50, 100):
            ticker.wake()
            end = time.monotonic() + 10.0
            while len(calls) < count and time.monotonic() < end:
                time.sleep(0.01)
            time.sleep(0.05)
            assert len(calls) == count
            ticks, missed, intervals = ticker.record()
            assert ticks == len(intervals) == 49 and missed >= 0 and np.median(intervals) == pytest.approx(0.002, rel=0.5)
    finally:
        ticker.close()


def test_a_motion_follows_simulated_time_but_for_leaps():
    """A coarse clock is none, two leaps are two, and a clock that stands still or goes back moves nothing."""
    def steps(*times):
        clock, found = SimulatedTime(), []
        for now in times:
            found.append(clock.passed(round(now * 1e9), 0.001))
        return [step for step, _ in found], sum(left_out for _, left_out in found)

    assert steps(50.0, 50.002, 50.002, 50.08, 50.0) == (pytest.approx([0.0, 0.002, 0.0, 0.078, 0.0]), 0.0)
    assert steps(50.0, 50.002, 3650.0, 7250.0, 7250.002) == (pytest.approx([0.0, 0.002, 0.001, 0.001, 0.002]),
                                                             pytest.approx(7199.996))
    assert steps(50.0, 50.25, 50.5, 50.75, 53.75) == (pytest.approx([0.0, 0.001, 0.25, 0.25, 0.001]), pytest.approx(3.248))
    clock = SimulatedTime()
    clock.passed(50_000_000_000, 0.001)
    clock.rest()
    assert clock.passed(60_000_000_000, 0.001) == (0.0, 0.0)  # between two motions time may do as it likes


# --- what became of a goal --------------------------------------------------------------------------------------------


def test_each_goal_is_told_once_what_became_of_it(stage):
    """Reached, refused, replaced, stopped, given up: whoever sent it hears of it, and of nobody else's."""
    it, heard = stage(), []

    def goal(name, *args, **options):
        return replace(trajectory(*args, **options), ended=lambda reason, sentence: heard.append((name, reason, sentence)))

    def told(*expected):
        assert [entry[:2] for entry in heard] == list(expected), heard
        heard.clear()

    it.take(goal("there"))
    it.play()
    assert "ended at its goal after" in heard[0][2] and "planned 0.80 s" in heard[0][2]
    told(("there", ""))
    it.take(goal("nowhere", np.stack((POINTS[-1], POINTS[-1]))))
    told(("nowhere", "nowhere_to_go"))
    it.take(goal("dropped", START[None], first=1.0, start=it.now + 1_000_000_000))
    it.take(goal("other", START[None], first=1.0, start=it.now + 1_000_000_000))
    told(("dropped", "replaced"))
    it.performer.stop("changed my mind")
    assert heard[0][2] == "changed my mind"
    told(("other", "stopped"))
    it.take(goal("first", POINTS[::-1], 2.0))
    it.play(0.5)
    it.take(goal("second", START[None], first=2.0))
    it.take(goal("third", START[None], first=1.0))
    told(("second", "replaced"))
    it.play(0.1)
    it.performer.stop("not that one", only=it.performer._pending.ended)
    told(("third", "stopped"))
    it.play()
    assert heard[0][2].startswith("another trajectory came: ended stopped at")
    told(("first", "stopped"))
    last = goal("last", START[None], first=1.0)
    it.take(last)
    it.play(0.3)
    assert not it.performer.stop(only=goal("stranger").ended) and it.performer.phase is Phase.MOVING
    assert it.performer.stop("enough", only=last.ended)
    it.play()
    assert heard[0][2].startswith("enough: ended stopped at")
    told(("last", "stopped"))
    it.take(goal("gone", POINTS[2:], first=2.0))
    it.play(0.5)
    it.performer.abort("the clock was set back")
    told(("gone", "stopped"))
    it.measured = START + 0.2
    it.take(goal("elsewhere", start=it.now + 1_500_000_000, first=2.0))
    it.measured = START
    it.play()
    told(("elsewhere", "not_at_start"))


# --- what fails that never should -------------------------------------------------------------------------------------

FAILING = [InputError("no"), MemoryError(), KeyboardInterrupt()]
TIGHT = replace(LIMITS, effort=0.93 * EFFORT)


def fail(error):
    def failing(*args, **options):
        raise error

    return failing


@pytest.mark.parametrize("error", FAILING, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("where", [(PathDynamics, "limits"), (execution_context, "check_rest"), (ExecutedMotion, "carry"),
                                   (TrajectoryScaler, "change"), (trajectory_scaler, "assessed")], ids=lambda where: where[1])
def test_new_limits_that_cannot_be_taken_over_bring_the_motion_to_rest(stage, monkeypatch, where, error):
    it, heard = stage(), []
    it.take(replace(trajectory(), ended=lambda *told: heard.append(told)))
    it.play(0.6)
    with monkeypatch.context() as patch:
        patch.setattr(*where, fail(error))
        it.performer.use(ROBOT, TIGHT)
        it.settle()
        it.play(0.05)
        assert it.performer.phase is Phase.STOPPING
    it.play()
    why = "no" if isinstance(error, InputError) else f"internal error, please report it: {error!r}"
    ((reason, sentence),) = heard
    assert reason == "stopped" and "cannot go on with the new limits or payload: " in sentence and why in sentence
    assert not np.abs(it.motion()[1][-1]).any() and it.samples[-1].reference.s < it.samples[0].reference.s + 10.0
    assert any(why in text for text in it.said) and it.used() <= 1.0
    before = len(it.samples)
    it.performer.use(ROBOT, TIGHT)  # mended: all is well again
    it.take(trajectory(START[None], first=1.5))
    it.play()
    assert np.abs(it.motion()[0][-1] - START).max() < 1e-9 and it.used(limits=TIGHT, since=before) <= 1.0


@pytest.mark.parametrize("error", FAILING[1:], ids=lambda error: type(error).__name__)
def test_a_motion_that_cannot_be_made_is_refused(stage, monkeypatch, error):
    it, heard = stage(), []
    with monkeypatch.context() as patch:
        patch.setattr(execution_context, "plan_from_waypoints", fail(error))
        it.take(replace(trajectory(), ended=lambda *told: heard.append(told)))
    assert [refusal.reason for refusal in it.refusals] == ["internal_error"] == [reason for reason, _ in heard]
    assert repr(error) in str(it.refusals[0]) and it.performer.phase is Phase.IDLE
    it.take(trajectory())
    it.play()
    assert np.abs(it.motion()[0][-1] - POINTS[-1]).max() < 1e-9


def test_no_thread_for_a_motion(stage, monkeypatch):
    it = stage()
    it.settle()
    with monkeypatch.context() as patch:
        patch.setattr(it.performer._maker, "submit", fail(RuntimeError("can't start new thread")))
        it.performer.take(trajectory(), it.now)
        with pytest.raises(RuntimeError):  # whoever asks for other limits hears that they are not taken
            it.performer.use(ROBOT, TIGHT)
    assert [refusal.reason for refusal in it.refusals] == ["internal_error"] and it.performer.phase is Phase.IDLE


@pytest.mark.parametrize("error", FAILING, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("where", [(ExecutedMotion, "tick"), (TrajectoryScaler, "tick")], ids=lambda where: where[0].__name__)
def test_a_tick_that_fails_brings_the_motion_to_rest(stage, monkeypatch, where, error):
    it, heard = stage(), []
    it.take(replace(trajectory(), ended=lambda *told: heard.append(told)))
    it.play(0.6)
    with monkeypatch.context() as patch:
        patch.setattr(*where, fail(error))
        for _ in range(3):
            assert it.performer.tick(it.now, DT) is None
    assert it.performer.phase is Phase.STOPPING and sum("a tick failed" in text for text in it.said) == 1
    it.play()
    ((reason, sentence),) = heard
    assert reason == "stopped" and sentence.startswith("a tick failed") and not np.abs(it.motion()[1][-1]).any()


def test_ticks_that_fail_for_ever_give_the_motion_up(stage, monkeypatch):
    it, heard = stage(), []
    it.take(replace(trajectory(), ended=lambda *told: heard.append(told)))
    it.play(0.6)
    with monkeypatch.context() as patch:
        patch.setattr(TrajectoryScaler, "tick", fail(ZeroDivisionError("no")))
        for _ in range(200):
            it.performer.tick(it.now, DT)
    ((reason, sentence),) = heard
    assert reason == "stopped" and "100 ticks in a row failed" in sentence and it.performer.phase is Phase.IDLE
    it.take(trajectory())
    it.play()
    assert np.abs(it.motion()[0][-1] - POINTS[-1]).max() < 1e-9


@pytest.mark.parametrize("error", FAILING, ids=lambda error: type(error).__name__)
def test_a_law_that_cannot_be_solved_leaves_the_slower_one(stage, monkeypatch, error):
    """What is played is inside the limits to its end, so it may go on."""
    it = stage()
    with monkeypatch.context() as patch:
        patch.setattr(trajectory_scaler, "handed_over", fail(error))
        it.take(trajectory())
        it.play()
    assert np.abs(it.motion()[0][-1] - POINTS[-1]).max() < 1e-9 and it.used() <= 1.0
    assert any(text.startswith("the motion goes on as it was: ") for text in it.said)


def test_a_sender_that_cannot_be_told_keeps_nobody_else_waiting(stage):
    it = stage()
    it.take(replace(trajectory(), ended=fail(RuntimeError("gone"))))
    it.play(0.4)
    it.take(trajectory(START[None], first=1.5))
    it.play()
    assert np.abs(it.motion()[0][-1] - START).max() < 1e-9
    assert sum("who sent a trajectory could not be told that it stopped" in text and "gone" in text for text in it.said) == 1


def test_what_is_asked_of_it_is_said(stage):
    it = stage()
    it.performer.pause()
    it.performer.pause()
    it.take(trajectory())
    it.play(0.1)
    assert it.said[0] == "paused" and it.said[1].startswith("motion 1 is ready, and waits, paused: planned 0.80 s")
    it.performer.resume()
    it.performer.set_override(0.5)
    it.performer.set_override(0.5)
    it.play(0.3)
    it.performer.stop()
    it.performer.stop()
    assert it.said[2:] == ["resumed", "override: 0.5 of the speed", "motion 1 comes to rest: it was asked to stop"]
    it.play()
    it.take(trajectory(START[None], first=1.0, start=it.now + 5_000_000_000))
    it.performer.stop("changed my mind")
    assert "the trajectory that waited is dropped: changed my mind" in it.said
