"""Motions handed out to their end: what a controller makes of them, whenever it hears of a change, and if it never does."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from rnea_ros.scaling.committed import LEAD, CommittedMotion
from rnea_ros.scaling.forecast import Forecast
from rnea_ros.scaling.foreseeable import ForeseeableScaler
from rnea_ros.scaling.spacing import AWAY, EXCESS, quintics
from support.scaling_cases import Later, Motion

TICK = 5e-3  # s


@pytest.fixture(scope="module")
def motion():
    return Motion("seven_r", 1)


def scaler(motion, delay=10**9, at_once=True):
    return ForeseeableScaler(motion.here, motion.plan, at_once=at_once, worker=Later(delay))


def quantities(motion):
    return lambda *sample: np.concatenate(motion.robot.torque_and_rate(*sample), axis=1)


class Controller:
    """Follows the points that it has heard of last, which it hears of some time after they were sent."""

    def __init__(self, committed, late):
        self.committed, self.late = committed, late
        self.inbox = []
        self.points = None

    def update(self, t):
        if self.committed.fresh:
            self.committed.sent()
            self.inbox.append((t + self.late, self.committed.points))
        while self.inbox and (self.points is None or self.inbox[0][0] <= t):
            self.points = self.inbox.pop(0)[1]
            self.motion = quintics(*self.points[:4])
        first, last = self.points.times[[0, -1]]
        q, qd, qdd, qddd = (x[0] for x in self.motion(np.array([np.clip(t, first, last)])))
        rests = t > last
        return (q, 0 * qd, 0 * qdd, 0 * qddd) if rests else (q, qd, qdd, qddd)


def play(committed, motion, actions=(), late=0.03, until=60.0, hangs=()):
    """What the controller commands and what is planned, tick by tick: two arrays (4, ticks, n), and times."""
    controller, t, waiting = Controller(committed, late), 0.0, sorted(actions, key=lambda action: action[0])
    commanded, planned, times = [], [], []
    while t < until:
        committed.scaler._worker.step()
        awake = not any(a <= t < b for a, b in hangs)
        while awake and waiting and waiting[0][0] <= t:
            waiting.pop(0)[1](committed)
        if awake and committed.stale(t):
            committed.renew(partial(float, t))
        reference = committed.at(t)
        commanded.append(controller.update(t) if awake or controller.points else None)
        planned.append((reference.q, reference.qd, reference.qdd, reference.qddd))
        times.append(t)
        if reference.done and not waiting:
            break
        t += TICK
    return np.swapaxes(commanded, 0, 1), np.swapaxes(planned, 0, 1), np.array(times)


def check(motion, commanded, planned, limits=None):
    """On the path, inside the limits as planned, hardly more as commanded, never a jump."""
    asked, got = (np.abs(quantities(motion)(*it)) for it in (planned, commanded))
    limits = limits or motion.limits
    assert (asked / np.concatenate((limits.effort, limits.effort_rate))).max() <= 1.0 + 1e-6
    assert (got.max(axis=0) / asked.max(axis=0)).max() <= 1.0 + EXCESS
    assert np.abs(commanded[0] - planned[0]).max() < 1.5 * AWAY
    moved = np.diff(commanded[0], axis=0) - 0.5 * TICK * (commanded[1][1:] + commanded[1][:-1])
    bends = np.abs(motion.robot.limits.velocity).max() * TICK**2 * 5.0
    assert np.abs(moved).max() < bends


def test_a_forecast_is_what_ticks_make():
    """A scaler that is ticked through the same steps makes the same motion, to rounding; and one can be put back."""
    motion = Motion("ur5_robot", 3)
    ahead, ticked = scaler(motion), scaler(motion)
    for it in (ahead, ticked):
        it.override(0.4)
        it.tick(TICK)
        it.override(1.0)
    forecast = Forecast(ahead, TICK)
    starts = forecast.starts
    assert len(starts) > 20
    seen = [ticked.tick(dt) for dt in np.diff(starts)]
    for k, name in enumerate(("q", "qd", "qdd")):
        whole = np.array([getattr(reference, name) for reference in seen])
        assert np.abs(forecast(starts[1:])[k] - whole).max() < 1e-9 * np.abs(whole).max()
    between, h = 0.5 * (starts[:-1] + starts[1:]), 1e-6
    jerk = (forecast(between + h)[2] - forecast(between - h)[2]) / (2.0 * h)
    assert np.abs(forecast(between)[3] - jerk).max() < 1e-4 * np.abs(jerk).max()
    forecast.place(ahead, starts[11])
    assert np.abs(ahead.reference().q - seen[10].q).max() < 1e-12
    forecast.place(ahead, forecast.end)
    assert ahead.done and np.abs(ahead.reference().q - motion.points[-1]).max() < 1e-9


def test_what_is_foreseen_from_a_moment_before_the_rest_rests(motion):
    """There is still a jerk, of a transition with 1e-16 s left. It went on in what was handed out: a leap of a milliradian."""
    it = scaler(motion)
    for _ in range(100):
        it.tick(TICK)
    it.stop()
    first = Forecast(it, 0.5)
    first.place(it, begin := np.nextafter(first.end, 0.0))
    here = it.reference().q
    assert it.time_scaling.left > 0.0
    q, qd, *_ = Forecast(it, begin)(begin + np.linspace(0.0, 0.02, 5))
    assert np.abs(q - here).max() < 1e-12 and np.abs(qd).max() < 1e-12


@pytest.mark.parametrize("horizon", [np.inf, 0.5])
def test_all_that_may_happen(motion, horizon):
    """A better law, pause, override, other limits, and a stop, with a controller that hears of each 30 ms later."""
    tighter = motion.constraints(motion.path, motion.limits._replace(effort_rate=0.8 * motion.limits.effort_rate))
    actions = [(0.9, lambda it: it.scaler.pause()), (1.7, lambda it: it.scaler.resume()),
               (2.2, lambda it: it.scaler.override(0.3)), (2.5, lambda it: it.scaler.override(1.0)),
               (2.9, lambda it: it.change(tighter))]
    committed = CommittedMotion(scaler(motion, delay=60), quantities(motion), horizon)
    commanded, planned, times = play(committed, motion, actions)
    check(motion, commanded, planned)
    late = times > 5.0
    check(motion, commanded[:, late], planned[:, late], tighter.limits)
    assert committed.scaler.done and np.abs(commanded[0][-1] - motion.points[-1]).max() < 1e-6
    paused = (times > 1.4) & (times < 1.7)
    assert not commanded[1][paused].any()


def test_who_never_calls_again_leaves_a_motion_that_ends_at_rest(motion):
    committed = CommittedMotion(scaler(motion), quantities(motion), 0.5)
    commanded, planned, _ = play(committed, motion, hangs=[(0.7, 99.0)], until=3.0)
    check(motion, commanded, planned)
    points = committed.points
    assert not np.abs(points.qd[-1]).max() > 1e-9
    place = points.q[-1] - motion.path(np.linspace(0.0, motion.path.length, 20001))[0]
    assert np.linalg.norm(place, axis=1).min() < 1e-3 and np.abs(points.q[-1] - motion.points[-1]).max() > 0.01
    whole = CommittedMotion(scaler(motion), quantities(motion)).points
    assert np.abs(whole.q[-1] - motion.points[-1]).max() < 1e-9 and not np.abs(whole.qd[-1]).max() > 1e-9


def test_a_hang_of_a_second(motion):
    """What was asked for meanwhile begins when it is heard of, not in the past."""
    committed = CommittedMotion(scaler(motion), quantities(motion), 0.5)
    actions = [(1.0, lambda it: it.scaler.pause()), (2.6, lambda it: it.scaler.resume())]
    commanded, planned, _ = play(committed, motion, actions, hangs=[(0.8, 1.8)])
    check(motion, commanded, planned)
    assert committed.scaler.done


def test_what_takes_too_long_is_not_sent(motion):
    committed = CommittedMotion(scaler(motion), quantities(motion))
    committed.fresh, before, lead = False, committed.points, committed.lead
    committed.scaler.pause()
    clock = iter([1.0, 1.0 + 2.0])
    assert committed.stale(1.0) and not committed.renew(lambda: next(clock))
    assert committed.points is before and not committed.fresh and committed.lead == 2.0 * lead
    assert committed.stale(3.0) and committed.renew(lambda: 3.0) and committed.fresh
    still = before.times[(before.times > 2.9) & (before.times < 3.0 + LEAD)]
    assert np.isin(still, committed.points.times).all()


def test_what_could_not_be_sent_is_taken_back(motion):
    """A maker that is stopped for 0.7 s after it has foreseen a change: it goes on from what the others have."""
    committed = CommittedMotion(scaler(motion, delay=60), quantities(motion))
    controller, commanded, planned, t, held = Controller(committed, 0.0), [], [], 0.0, ()
    tighter = motion.constraints(motion.path, motion.limits._replace(effort_rate=0.8 * motion.limits.effort_rate))
    while not committed.scaler.done:
        committed.scaler._worker.step()
        if t == pytest.approx(0.8):
            committed.scaler.override(0.5)
            committed.change(tighter)
            assert committed.renew(partial(float, t)) and committed.parts < 1.2 and committed.send_by < committed.parts
            committed.not_sent()
            held = t, t + 0.7
        if not held or not held[0] <= t < held[1]:
            if committed.stale(t):
                committed.renew(partial(float, t))
            reference = committed.at(t)
            planned.append((reference.q, reference.qd, reference.qdd, reference.qddd))
            commanded.append(controller.update(t))
        else:
            commanded.append(controller.update(t))  # and is told nothing
            planned.append(commanded[-1])
        t += TICK
    check(motion, np.swapaxes(commanded, 0, 1), np.swapaxes(planned, 0, 1))
    assert committed.scaler.constraints is tighter and committed.parts > held[1] and committed.scaler.wishes[2] == 0.5


def test_a_pause_that_waits_at_the_start(motion):
    paused = scaler(motion)
    paused.pause()
    committed = CommittedMotion(paused, quantities(motion))
    assert not committed.points.qd.any()
    commanded, planned, _ = play(committed, motion, [(1.0, lambda it: it.scaler.resume())])
    check(motion, commanded, planned)
    assert committed.scaler.done
