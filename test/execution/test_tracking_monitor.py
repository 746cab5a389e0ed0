"""Tracking monitor with a simulated weak, delayed or blocked robot: slowed and stopped motions, and reports."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from rnea_ros.errors import Rejected
from rnea_ros.execution.goal import read_tolerances, resolve_tolerances
from rnea_ros.execution.joint_states import Measurement, no_measurement
from rnea_ros.execution.states import Phase
from rnea_ros.execution.tracking_monitor import SaturationDetector, SentReferences
from rnea_ros.trajectory.scaled_plan import plan_from_waypoints
from support.executor_harness import MONITOR_OFF, ExecutorHarness, trajectory
from support.overspeed_motion import EFFORT, LIMITS, POINTS, ROBOT, START
from support.weak_robot import WeakRobot

SWEEP = START + np.array([[0.0] * 7, [0.9, 0.15, -0.2, 0.1, 0.2, 0.1, 0.2], [1.8, 0.3, -0.4, -0.2, 0.3, 0.3, 0.3],
                          [2.6, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0]])
WEAK_EFFORT = np.where(np.arange(7) == 0, 6.0, EFFORT)  # effort of a robot whose first motor is weak [N m]
WEAK = np.where(np.arange(7) == 0, 0.7, 1.0)
NAMES = ROBOT.joint_names


class ReportingRobot(WeakRobot):
    """Weak robot whose efforts are reported in another unit."""

    def __init__(self, unit):
        super().__init__(START, WEAK, effort=WEAK_EFFORT)
        self._unit = unit

    def seen(self, names):
        found = super().seen(names)
        return found._replace(effort=found.effort / self._unit)


def off_the_path(robot, points=SWEEP, duration=1.0):
    path = plan_from_waypoints(points, np.linspace(0.0, duration, len(points))).path
    way = path(np.linspace(0.0, path.length, 4001))[0]
    return max(np.abs(way - q).max(axis=1).min() for q in robot.positions[::5])


def swept(robot, **values):
    limits = replace(LIMITS, effort=WEAK_EFFORT, effort_rate=20.0 * WEAK_EFFORT)
    sim = ExecutorHarness(limits, robot, **values)
    sim.take(trajectory(SWEEP, 1.0))
    sim.play()
    assert sim.used(limits=limits) <= 1.0 and "ended at its goal" in sim.events[-1]
    return sim


def test_monitor_slows_a_robot_with_a_weak_motor_so_that_it_stays_on_its_path():
    """The motor is 30 % too weak, and the motion reaches its limit; without monitor the robot leaves the path."""
    lost, kept = (WeakRobot(START, WEAK, effort=WEAK_EFFORT) for _ in range(2))
    swept(lost)
    sim = swept(kept, **{"watch.tolerance": 0.02})
    assert off_the_path(lost) > 0.5 and off_the_path(kept) < 0.05
    assert np.abs(kept.q - SWEEP[-1]).max() < 1e-3 < 0.5 < np.abs(lost.q - SWEEP[-1]).max()
    slowed = [text for text in sim.events if "is slowed: the tracking error of joint" in text]
    assert any("0.02 are allowed (watch.tolerance)" in text for text in slowed)


def test_robot_that_follows_is_not_slowed_after_the_clock_was_set_back():
    """Regression: it was compared with references from before. It is monitored again, not only once the time has returned."""
    sim = ExecutorHarness(robot=WeakRobot(START, delay=50), **{"watch.tolerance": 0.01, "watch.path_tolerance": 0.02})
    sim.take(trajectory())
    sim.play(0.6)
    monitor = sim.executor.motion.monitor
    sim.now -= 400_000_000
    sim.play(0.2)
    before = monitor.status
    sim.play(0.1)
    assert monitor.status != before
    sim.play()
    assert "ended at its goal" in sim.events[-1] and not any("slowed" in text for text in sim.events)


def test_robot_with_a_constant_delay_is_not_slowed():
    """The robot is 50 ms behind its references, and its states are 50 ms old."""
    robot = WeakRobot(START, delay=50, age=50)
    sim = ExecutorHarness(robot=robot, **{"watch.tolerance": 0.01, "watch.path_tolerance": 0.02})
    sim.take(trajectory())
    motion = sim.executor
    sim.play(1.0)
    behind = np.abs(sim.samples[-1].reference.q - robot.q).max()
    seen = motion.motion.monitor.status
    assert behind > 0.1 and seen.error < 0.003 and seen.lag == pytest.approx(0.05, abs=0.005)
    sim.play()
    assert not any("is slowed" in text for text in sim.events) and "ended at its goal" in sim.events[-1]


def test_blocked_joint_stops_the_motion_and_the_next_one_starts_at_the_robot():
    robot = WeakRobot(START)
    sim = ExecutorHarness(robot=robot, **{"watch.tolerance": 0.02, "watch.path_tolerance": 0.1})
    reported = []
    robot.blocked[4] = True
    sim.take(replace(trajectory(), on_end=reported.append))
    sim.play()
    (outcome,) = reported
    assert outcome.reason == "path_tolerance" and "the position of joint5 is 0.1" in outcome.message
    assert "0.1 rad allowed (path_tolerance)" in outcome.message and "stopped at" in outcome.message
    assert 0.1 < np.abs(robot.q - sim.samples[-1].reference.q).max() < 0.2  # stops soon after the block
    assert not sim.motion()[1][-1].any() and sim.used() <= 1.0 and sim.executor.phase is Phase.IDLE
    robot.blocked[4] = False
    sim.measured = robot.q
    sim.take(trajectory(np.stack((robot.q, START)), 2.0))
    sim.play()
    assert "ended at its goal" in sim.events[-1] and np.abs(robot.q - START).max() < 1e-3


@pytest.mark.parametrize(("time", "there"), [(1.0, True), (0.1, False)])
def test_motion_ends_when_the_robot_arrives_or_the_goal_time_has_passed(time, there):
    robot = WeakRobot(START, delay=300)
    sim = ExecutorHarness(robot=robot, **{"watch.goal_tolerance": 0.005, "watch.goal_time": time})
    reported = []
    sim.take(replace(trajectory(), on_end=reported.append))
    sim.play(0.1)
    while sim.executor.motion.final_sample is None:
        sim.play(0.01)
    assert sim.executor.phase is Phase.SETTLING and not sim.samples[-1].reference.done and not reported
    sim.play()
    waited = (sim.now - robot.now) * 1e-9
    assert waited < 0.01 and sim.samples[-1].reference.done and reported[0].reason == ("" if there else "goal_tolerance")
    assert ("rad off, 0.005 rad allowed (goal_tolerance)" in reported[0].message) is not there
    assert (np.abs(robot.q - POINTS[-1]).max() < 0.01) == there


def test_motion_waiting_for_the_robot_at_its_goal_can_be_stopped():
    robot = WeakRobot(START, delay=5000)
    sim = ExecutorHarness(robot=robot, **{"watch.goal_tolerance": 0.005, "watch.goal_time": 0.0})
    reported = []
    sim.take(replace(trajectory(), on_end=reported.append))
    sim.play(6.0)
    assert sim.executor.phase is Phase.SETTLING
    sim.executor.stop()
    sim.play()
    assert reported[0].reason == "stopped" and sim.executor.phase is Phase.IDLE


def test_saturated_motor_that_loses_tracking_slows_before_the_tolerance_is_reached():
    """The second robot reports efforts at its limits when saturated."""
    limits, shares = replace(LIMITS, effort=WEAK_EFFORT, effort_rate=20.0 * WEAK_EFFORT), []
    for unit in (1.0, WEAK):
        sim = ExecutorHarness(limits, ReportingRobot(unit), **{"watch.tolerance": 0.5})
        sim.take(trajectory(SWEEP, 1.0))
        sim.play(0.8)
        shares.append(sim.executor.motion.monitor.speed_share)
    assert shares[1] < shares[0] and any("a motor is saturated, and its joint loses tracking" in text for text in sim.events)


# --- parts ------------------------------------------------------------------------------------------------------------


def measured(q, stamp, qd=None, effort=None):
    n = len(q)
    none = np.full(n, math.nan)
    return Measurement(np.full(n, stamp), np.array(q), none if qd is None else qd, none if effort is None else effort)


def circle(t):
    """Return q and qd of two joints on a circle."""
    return np.array([np.cos(t), np.sin(t)]), np.array([-np.sin(t), np.cos(t)])


def test_error_across_the_path_and_lag_along_it_are_distinguished():
    sent, off = SentReferences(2), np.zeros(2, dtype=bool)
    for k in range(5000):  # more than the buffer holds
        sent.add(k * 1_000_000, *circle(k * 1e-3))
    stamps = np.full(2, 4_500_000_000)
    here = circle(4.5)[0]
    for lag, across in ((0.0, 0.0), (0.0334, 0.0), (0.05, 0.03), (0.02, -0.01)):
        q = circle(4.5 - lag)[0] * (1.0 + across)
        found = sent.tracking_error(stamps, q, circle(4.5)[1], 0.1, off)
        np.testing.assert_allclose(np.linalg.norm(found.position), abs(across), atol=2e-5)
        assert found.lag == pytest.approx(lag, abs=1e-3)
    ahead = sent.tracking_error(stamps, circle(4.55)[0], circle(4.5)[1], 0.1, off)
    far = sent.tracking_error(stamps, circle(4.3)[0], circle(4.5)[1], 0.1, off)
    assert np.linalg.norm(ahead.position) == pytest.approx(0.05, rel=1e-2) and ahead.lag == 0.0
    assert np.linalg.norm(far.position) == pytest.approx(0.1, rel=1e-2) and far.lag == pytest.approx(0.1)
    turned = sent.tracking_error(stamps, here + [2.0 * math.pi, 0.0], circle(4.5)[1], 0.1, np.array([True, False]))
    assert np.abs(turned.position).max() < 1e-9
    unknown = sent.tracking_error(stamps, np.array([math.nan, here[1]]), circle(4.5)[1], 0.1, off)
    assert math.isnan(unknown.position[0]) and abs(unknown.position[1]) < 1e-6


def test_tracking_error_is_unknown_in_gaps_of_the_references():
    sent, off = SentReferences(1), np.zeros(1, dtype=bool)
    assert sent.tracking_error(np.array([5]), np.zeros(1), np.zeros(1), 0.1, off) is None
    for t in (1.0, 1.1, 1.2, 2.0, 2.1):
        sent.add(round(t * 1e9), np.array([t * t]), np.array([2.0 * t]))
    for stamp, known in ((0.9, False), (1.15, True), (1.5, False), (2.05, False), (2.3, True)):
        found = sent.tracking_error(np.array([round(stamp * 1e9)]), np.array([1.0]), np.array([0.0]), 0.1, off)
        assert (found is not None) is known, stamp
    assert sent.at(np.array([[1_150_000_000]]))[0] == pytest.approx(1.15**2)  # exact for a parabola


def entry(name="joint1", position=0.0, velocity=0.0, acceleration=0.0):
    return SimpleNamespace(name=name, position=position, velocity=velocity, acceleration=acceleration)


def test_tolerances_of_a_goal_override_parameters_as_in_control_msgs():
    asked = read_tolerances(NAMES, [entry(position=0.1), entry("joint2", -1.0, 0.5)], [entry("joint3", 0.0, -1.0)], -1.0)
    values = MONITOR_OFF | {"watch.path_tolerance": 0.2, "watch.goal_tolerance": 0.01, "watch.goal_time": 3.0}
    found = resolve_tolerances(asked, 7, values)
    assert found.path[0].tolist() == [0.1, math.inf, *[0.2] * 5] and found.path[1, :2].tolist() == [math.inf, 0.5]
    assert found.goal[0].tolist() == [0.01] * 7 and np.isinf(found.goal[1:]).all() and found.time == math.inf
    assert resolve_tolerances(None, 7, values).time == 3.0 and np.isinf(resolve_tolerances(None, 7, MONITOR_OFF).path).all()
    known = measured(START, 1, np.zeros(7))
    asked.check(NAMES, known)
    with pytest.raises(Rejected, match="path_tolerance of the velocity of joint2 cannot be checked"):
        asked.check(NAMES, known._replace(qd=np.full(7, math.nan)))
    with pytest.raises(Rejected, match="goal_tolerance of the acceleration of joint1"):
        read_tolerances(NAMES, [], [entry(acceleration=1.0)]).check(NAMES, known)
    for wrong, reason in ((entry("joint8"), "unknown_joint"),
                          (entry(position=-0.5), "tolerance"), (entry(velocity=math.nan), "tolerance")):
        with pytest.raises(Rejected) as refused:
            read_tolerances(NAMES, [wrong], [])
        assert refused.value.reason == reason


def test_saturation_is_detected_at_the_effort_limits():
    limits = replace(LIMITS, effort=0.5 * EFFORT)
    full = SaturationDetector(ROBOT, limits, 0.5)  # half of the efforts is a reserve
    assert full(measured(START, 1, None, 0.99 * EFFORT)).all() and not full(measured(START, 1, None, 0.9 * EFFORT)).any()
    assert full(measured(START, 1, None, np.where(np.arange(7) == 4, -EFFORT, 0.0))).tolist() == [k == 4 for k in range(7)]
    assert not full(no_measurement(NAMES)).any()
