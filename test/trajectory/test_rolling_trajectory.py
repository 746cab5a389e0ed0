"""Rolling trajectories: motion of a controller that receives changes late, or not at all."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from rnea_ros.trajectory.rolling_trajectory import (
    LEAD_S,
    MAX_EXCESS,
    WAYPOINT_OPTIONS,
    RollingTrajectory,
    Rollout,
    quintic_motion,
)
from rnea_ros.trajectory.trajectory_scaler import TrajectoryScaler
from support.scaling_cases import DelayedExecutor, Motion

TICK = 5e-3  # s


@pytest.fixture(scope="module")
def motion():
    return Motion("seven_r", 1)


def scaler(motion, delay=10**9, at_once=True):
    return TrajectoryScaler(motion.here, motion.plan, at_once=at_once, worker=DelayedExecutor(delay))


def quantities(motion):
    return lambda *sample: np.concatenate(motion.robot.torque_and_rate(*sample), axis=1)


class Controller:
    """Controller that executes the points received last, after a transmission delay."""

    def __init__(self, rolling, late):
        self.rolling, self.late = rolling, late
        self.inbox = []
        self.points = None

    def update(self, t):
        if self.rolling.is_fresh:
            self.rolling.mark_published()
            self.inbox.append((t + self.late, self.rolling.points))
        while self.inbox and (self.points is None or self.inbox[0][0] <= t):
            self.points = self.inbox.pop(0)[1]
            self.motion = quintic_motion(*self.points[:4])
        first, last = self.points.times[[0, -1]]
        q, qd, qdd, qddd = (x[0] for x in self.motion(np.array([np.clip(t, first, last)])))
        rests = t > last
        return (q, 0 * qd, 0 * qdd, 0 * qddd) if rests else (q, qd, qdd, qddd)


def play(rolling, motion, actions=(), late=0.03, until=60.0, hangs=()):
    """Return the commands of the controller and the plan in each cycle: two arrays (4, cycles, n), and times."""
    controller, t, waiting = Controller(rolling, late), 0.0, sorted(actions, key=lambda action: action[0])
    commanded, planned, times = [], [], []
    while t < until:
        rolling.scaler._worker.step()
        awake = not any(a <= t < b for a, b in hangs)
        while awake and waiting and waiting[0][0] <= t:
            waiting.pop(0)[1](rolling)
        if awake and rolling.needs_replan(t):
            rolling.replan(partial(float, t))
        reference = rolling.at(t)
        commanded.append(controller.update(t) if awake or controller.points else None)
        planned.append((reference.q, reference.qd, reference.qdd, reference.qddd))
        times.append(t)
        if reference.done and not waiting:
            break
        t += TICK
    return np.swapaxes(commanded, 0, 1), np.swapaxes(planned, 0, 1), np.array(times)


def check(motion, commanded, planned, limits=None):
    """Check that commands are on the path, nearly inside the limits, and without jumps; the plan is inside."""
    asked, got = (np.abs(quantities(motion)(*blocks)) for blocks in (planned, commanded))
    limits = limits or motion.limits
    assert (asked / np.concatenate((limits.effort, limits.effort_rate))).max() <= 1.0 + 1e-6
    assert (got.max(axis=0) / asked.max(axis=0)).max() <= 1.0 + MAX_EXCESS
    assert np.abs(commanded[0] - planned[0]).max() < 1.5 * WAYPOINT_OPTIONS.position_tol
    moved = np.diff(commanded[0], axis=0) - 0.5 * TICK * (commanded[1][1:] + commanded[1][:-1])
    bends = np.abs(motion.robot.limits.velocity).max() * TICK**2 * 5.0
    assert np.abs(moved).max() < bends


def test_rollout_equals_the_motion_of_a_scaler_with_the_same_steps():
    """The comparison is exact up to rounding; set_state restores a scaler."""
    motion = Motion("ur5_robot", 3)
    ahead, stepped = scaler(motion), scaler(motion)
    for one in (ahead, stepped):
        one.override(0.4)
        one.tick(TICK)
        one.override(1.0)
    rollout = Rollout(ahead, TICK)
    starts = rollout.starts
    assert len(starts) > 20
    seen = [stepped.tick(dt) for dt in np.diff(starts)]
    for k, name in enumerate(("q", "qd", "qdd")):
        whole = np.array([getattr(reference, name) for reference in seen])
        assert np.abs(rollout(starts[1:])[k] - whole).max() < 1e-9 * np.abs(whole).max()
    between, h = 0.5 * (starts[:-1] + starts[1:]), 1e-6
    jerk = (rollout(between + h)[2] - rollout(between - h)[2]) / (2.0 * h)
    assert np.abs(rollout(between)[3] - jerk).max() < 1e-4 * np.abs(jerk).max()
    rollout.set_state(ahead, starts[11])
    assert np.abs(ahead.reference().q - seen[10].q).max() < 1e-12
    rollout.set_state(ahead, rollout.end)
    assert ahead.done and np.abs(ahead.reference().q - motion.points[-1]).max() < 1e-9


def test_rollout_from_just_before_rest_ends_at_rest(motion):
    """Regression: the jerk of a transition with 1e-16 s left was continued, a jump of 1 mrad in the sent points."""
    scaled = scaler(motion)
    for _ in range(100):
        scaled.tick(TICK)
    scaled.stop()
    first = Rollout(scaled, 0.5)
    first.set_state(scaled, begin := np.nextafter(first.end, 0.0))
    here = scaled.reference().q
    assert scaled.time_scaling.left > 0.0
    q, qd, *_ = Rollout(scaled, begin)(begin + np.linspace(0.0, 0.02, 5))
    assert np.abs(q - here).max() < 1e-12 and np.abs(qd).max() < 1e-12


@pytest.mark.parametrize("horizon", [np.inf, 0.5])
def test_rolling_motion_keeps_limits_through_pause_override_new_limits_and_delay(motion, horizon):
    """The controller receives a better law, pause, override, new limits and a stop, each 30 ms late."""
    tighter = motion.constraints(motion.path, motion.limits._replace(effort_rate=0.8 * motion.limits.effort_rate))
    actions = [(0.9, lambda scaled: scaled.scaler.pause()), (1.7, lambda scaled: scaled.scaler.resume()),
               (2.2, lambda scaled: scaled.scaler.override(0.3)), (2.5, lambda scaled: scaled.scaler.override(1.0)),
               (2.9, lambda scaled: scaled.change(tighter))]
    rolling = RollingTrajectory(scaler(motion, delay=60), quantities(motion), horizon)
    commanded, planned, times = play(rolling, motion, actions)
    check(motion, commanded, planned)
    late = times > 5.0
    check(motion, commanded[:, late], planned[:, late], tighter.limits)
    assert rolling.scaler.done and np.abs(commanded[0][-1] - motion.points[-1]).max() < 1e-6
    paused = (times > 1.4) & (times < 1.7)
    assert not commanded[1][paused].any()


def test_motion_ends_at_rest_when_the_planner_never_runs_again(motion):
    rolling = RollingTrajectory(scaler(motion), quantities(motion), 0.5)
    commanded, planned, _ = play(rolling, motion, hangs=[(0.7, 99.0)], until=3.0)
    check(motion, commanded, planned)
    points = rolling.points
    assert not np.abs(points.qd[-1]).max() > 1e-9
    difference_ = points.q[-1] - motion.path(np.linspace(0.0, motion.path.length, 20001))[0]
    assert np.linalg.norm(difference_, axis=1).min() < 1e-3 and np.abs(points.q[-1] - motion.points[-1]).max() > 0.01
    whole = RollingTrajectory(scaler(motion), quantities(motion)).points
    assert np.abs(whole.q[-1] - motion.points[-1]).max() < 1e-9 and not np.abs(whole.qd[-1]).max() > 1e-9


def test_motion_survives_a_planner_hang_of_one_second(motion):
    """A request takes effect when its result arrives, not in the past."""
    rolling = RollingTrajectory(scaler(motion), quantities(motion), 0.5)
    actions = [(1.0, lambda scaled: scaled.scaler.pause()), (2.6, lambda scaled: scaled.scaler.resume())]
    commanded, planned, _ = play(rolling, motion, actions, hangs=[(0.8, 1.8)])
    check(motion, commanded, planned)
    assert rolling.scaler.done


def test_trajectory_computed_too_late_is_not_published(motion):
    rolling = RollingTrajectory(scaler(motion), quantities(motion))
    rolling.is_fresh, before, lead = False, rolling.points, rolling.lead_time
    rolling.scaler.pause()
    clock = iter([1.0, 1.0 + 2.0])
    assert rolling.needs_replan(1.0) and not rolling.replan(lambda: next(clock))
    assert rolling.points is before and not rolling.is_fresh and rolling.lead_time == 2.0 * lead
    assert rolling.needs_replan(3.0) and rolling.replan(lambda: 3.0) and rolling.is_fresh
    still = before.times[(before.times > 2.9) & (before.times < 3.0 + LEAD_S)]
    assert np.isin(still, rolling.points.times).all()


def test_trajectory_that_could_not_be_sent_is_discarded(motion):
    """The planner is suspended for 0.7 s after planning a change; it continues from the trajectory that was sent."""
    rolling = RollingTrajectory(scaler(motion, delay=60), quantities(motion))
    controller, commanded, planned, t, held = Controller(rolling, 0.0), [], [], 0.0, ()
    tighter = motion.constraints(motion.path, motion.limits._replace(effort_rate=0.8 * motion.limits.effort_rate))
    while not rolling.scaler.done:
        rolling.scaler._worker.step()
        if t == pytest.approx(0.8):
            rolling.scaler.override(0.5)
            rolling.change(tighter)
            assert rolling.replan(partial(float, t))
            assert rolling.splice_time < 1.2 and rolling.send_deadline < rolling.splice_time
            rolling.withdraw()
            held = t, t + 0.7
        if not held or not held[0] <= t < held[1]:
            if rolling.needs_replan(t):
                rolling.replan(partial(float, t))
            reference = rolling.at(t)
            planned.append((reference.q, reference.qd, reference.qdd, reference.qddd))
            commanded.append(controller.update(t))
        else:
            commanded.append(controller.update(t))  # without a message
            planned.append(commanded[-1])
        t += TICK
    check(motion, np.swapaxes(commanded, 0, 1), np.swapaxes(planned, 0, 1))
    assert rolling.scaler.constraints is tighter and rolling.splice_time > held[1] and rolling.scaler.command[2] == 0.5


def test_motion_paused_before_its_start_begins_on_resume(motion):
    paused = scaler(motion)
    paused.pause()
    rolling = RollingTrajectory(paused, quantities(motion))
    assert not rolling.points.qd.any()
    commanded, planned, _ = play(rolling, motion, [(1.0, lambda scaled: scaled.scaler.resume())])
    check(motion, commanded, planned)
    assert rolling.scaler.done
