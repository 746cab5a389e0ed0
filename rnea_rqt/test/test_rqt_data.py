"""Data structures without Qt: utilizations, held peaks, chart history, inbox of messages."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from rnea_rqt.data import INDEX, Light, Peaks, utilization
from rnea_rqt.history import CAPACITY, INTERVAL, History
from rnea_rqt.inbox import LATE, MOST, Inbox

from shown import LIGHTS, MOTION, robot, sample

EFFORT, POWER = INDEX["effort"], INDEX["power"]


def test_utilization_uses_the_limit_of_the_same_sign():
    value = np.array([30.0, -30.0, 0.0, 5.0, 5.0])
    low, high = np.array([-10.0, -10.0, -10.0, np.nan, 0.0]), np.array([60.0, 60.0, 60.0, np.nan, 0.0])
    np.testing.assert_array_equal(utilization(value, low, high), [0.5, 3.0, 0.0, np.nan, np.nan])


def test_peaks_hold_extremes_of_all_samples_until_reset():
    arm, peaks = robot(), Peaks(6)
    peaks.update([sample(arm, effort=value) for value in (1.0, 7.0, -3.0, 2.0)])
    assert (peaks.low[EFFORT] == -3.0).all() and (peaks.high[EFFORT] == 7.0).all() and np.isnan(peaks.high[POWER]).all()
    peaks.reset(2)
    assert np.isnan(peaks.low).all() and peaks.low.shape[1] == 2


@pytest.mark.parametrize("rate", [20.0, 1000.0])
@pytest.mark.parametrize("span", [5.0, 60.0])
def test_curve_keeps_extremes_and_order_in_time(rate, span):
    arm, history = robot(2), History(2)
    times = np.arange(0.0, 8.0, 1.0 / rate)
    for time in times:
        history.add(sample(arm, 100.0 + time, effort=np.sin(time)))
    (curve,) = history.curves(EFFORT, 1, span, 800)
    assert (np.diff(curve.time) >= 0.0).all() and curve.time[-1] <= 0.0
    assert curve.time[0] == pytest.approx(-min(span, 8.0), abs=0.1)
    shown = np.sin(times[times >= 8.0 - span])
    assert curve.value.max() == pytest.approx(shown.max(), abs=1e-4)
    assert np.abs(np.interp(times - times[-1], curve.time, curve.value) - np.sin(times))[times >= 8.05 - span].max() < 0.12
    assert len(curve.time) <= 1000


def test_curve_is_split_at_gaps_and_unknown_values():
    arm, history = robot(2), History(2)
    for time in [*np.arange(0.0, 1.0, 0.02), *np.arange(3.0, 4.0, 0.02)]:
        history.add(sample(arm, time, effort=time))
    assert [round(float(curve.value[0])) for curve in history.curves(EFFORT, 0, 10.0, 500)] == [0, 3]
    assert history.curves(POWER, 0, 10.0, 500) == []


def test_chart_is_cleared_when_time_restarts_but_not_by_late_samples():
    arm, history = robot(2), History(2)
    history.add(sample(arm, 50.0, effort=1.0))
    history.add(sample(arm, 49.9, effort=2.0))
    assert sum(len(curve.value) for curve in history.curves(EFFORT, 0, 10.0, 500)) == 2
    history.add(sample(arm, 5.0, effort=3.0))
    (curve,) = history.curves(EFFORT, 0, 60.0, 500)
    assert curve.value.tolist() == [3.0]


def test_chart_history_keeps_only_its_capacity():
    arm, history = robot(1), History(1)
    for number in range(2 * CAPACITY):
        history.add(sample(arm, (number + 0.5) * INTERVAL, effort=float(number)))
    (curve,) = history.curves(EFFORT, 0, 60.0, 2 * CAPACITY)
    assert curve.value.min() >= CAPACITY and curve.value.max() == 2 * CAPACITY - 1


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def test_inbox_returns_each_message_once():
    inbox, arm = Inbox(Clock()), robot()
    assert inbox.take().age == np.inf
    inbox.put_robot(arm)
    for k in range(5):
        inbox.put_sample(sample(arm, k))
    inbox.put_motion(MOTION)
    first, second = inbox.take(), inbox.take()
    assert first.robot is arm and len(first.samples) == 5 and first.motion is MOTION and first.rate == 5.0
    assert second.robot is None and not second.samples and second.motion is None
    assert inbox.robot is arm  # the reader of messages still needs it


def test_inbox_reports_the_age_of_messages():
    clock = Clock()
    inbox, arm = Inbox(clock), robot()
    inbox.put_sample(sample(arm))
    for light in LIGHTS:
        inbox.put_light(light)
    clock.now += 0.25
    assert inbox.take().age == 0.25 and inbox.take().lights == LIGHTS
    clock.now += LATE
    assert [light.level for light in inbox.take().lights] == [3, 3] and inbox.take().age == 0.25 + LATE


def test_diagnostics_of_nodes_that_are_not_watched_are_removed():
    inbox = Inbox(Clock())
    for light in (*LIGHTS, Light("/dynamics_node: callbacks", 2, "failed")):
        inbox.put_light(light)
    inbox.keep_lights({"/dynamics_node"})
    assert [light.name for light in inbox.take().lights] == ["/dynamics_node: dynamics", "/dynamics_node: callbacks"]


def test_inbox_size_is_bounded_while_it_is_not_read():
    inbox, arm = Inbox(), robot()
    for k in range(MOST + 10):
        inbox.put_sample(sample(arm, k))
    assert len(samples := inbox.take().samples) == MOST and samples[-1].stamp == MOST + 9


def test_inbox_loses_no_samples_between_threads():
    inbox, arm, count = Inbox(), robot(1), 2000
    thread = threading.Thread(target=lambda: [inbox.put_sample(sample(arm, k)) for k in range(count)])
    thread.start()
    stamps = []
    while thread.is_alive() or len(stamps) < count:
        stamps += [one.stamp for one in inbox.take().samples]
        if not thread.is_alive() and len(stamps) < count:
            stamps += [one.stamp for one in inbox.take().samples]
            break
    assert stamps == list(range(count))
