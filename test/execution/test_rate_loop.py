"""Periodic calls with a simulated clock, and steps of simulated time."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from rnea_ros.execution import rate_loop
from rnea_ros.execution.rate_loop import RateLoop, SimulatedClock, limit_step


class FakeTime:
    """Replacement of module time; the clock advances only by sleeps and by declared durations of calls."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class LoopHarness:
    """Loop at 500 Hz with a simulated clock and its recorded intervals; it stops after `rest` calls."""

    def __init__(self, monkeypatch, rest=50, took=lambda number: 0.0):
        self.clock, self.intervals, self.rest, self.took = FakeTime(), [], rest, took
        monkeypatch.setattr(rate_loop, "time", self.clock)
        self.resting = threading.Semaphore(0)
        self.loop = RateLoop(self.call, 500.0)

    def call(self, elapsed):
        self.intervals.append(elapsed)
        self.clock.now += self.took(len(self.intervals))
        more = len(self.intervals) % self.rest != 0
        if not more:
            self.resting.release()
        return more

    def run(self):
        """Run the loop until it stops."""
        self.loop.wake()
        assert self.resting.acquire(timeout=30.0)


@pytest.fixture
def calls(monkeypatch):
    made = []

    def make(**options):
        made.append(LoopHarness(monkeypatch, **options))
        return made[-1]

    yield make
    for one in made:
        one.loop.close()


def test_loop_sleeps_until_woken_and_records_its_intervals(calls):
    harness = calls()
    for count in (50, 100):
        assert len(harness.intervals) == count - 50
        harness.run()
        ticks, missed, intervals = harness.loop.take_statistics()
        assert (ticks, missed) == (49, 0) and len(harness.intervals) == count
        np.testing.assert_allclose(intervals, 0.002)
    assert harness.loop.take_statistics()[0] == 0


def test_time_of_a_call_is_that_of_its_elapsed_time_if_the_process_is_suspended_before_it_runs(calls):
    """Otherwise a suspension between the two readings of the clock would be in no interval."""
    begun = []
    harness = calls(rest=6, took=lambda number: begun.append((harness.loop.began, harness.clock.now)) or 0.7 * (number == 3))
    harness.run()
    steps = np.diff([began for began, _ in begun])
    np.testing.assert_allclose(steps, harness.intervals[1:])
    assert steps.max() > 0.7 and all(began == now for began, now in begun)


def test_late_call_is_counted_and_not_repeated(calls):
    """The next call is one period later; each call receives the elapsed time."""
    harness = calls(rest=6, took=lambda number: 0.009 if number == 3 else 0.0)
    harness.run()
    np.testing.assert_allclose(harness.intervals, [0.002, 0.002, 0.002, 0.009, 0.002, 0.002])
    ticks, missed, _ = harness.loop.take_statistics()
    assert (ticks, missed) == (5, 3)


def test_error_that_ends_the_loop_thread_is_reported_once(calls):
    def took(number):
        raise MemoryError(number)

    harness = calls(took=took)
    harness.loop.wake()
    harness.loop._thread.join(30.0)
    assert repr(harness.loop.take_failure()) == "MemoryError(1)" and harness.loop.take_failure() is None


def test_step_of_a_late_call_is_limited():
    assert limit_step(0.001, 0.005) == (0.001, 0.0)
    assert limit_step(0.012, 0.005) == (0.005, pytest.approx(0.007))


def test_steps_follow_simulated_time_except_for_jumps():
    """Steps of a coarse clock are not jumps, each jump is ignored, and a stopped or backward clock gives steps of zero."""
    def steps(*times):
        clock, found = SimulatedClock(), []
        for now in times:
            found.append(clock.step(round(now * 1e9), 0.001))
        return [step for step, _ in found], sum(left_out for _, left_out in found)

    assert steps(50.0, 50.002, 50.002, 50.08, 50.0) == (pytest.approx([0.0, 0.002, 0.0, 0.078, 0.0]), 0.0)
    assert steps(50.0, 50.002, 3650.0, 7250.0, 7250.002) == (pytest.approx([0.0, 0.002, 0.001, 0.001, 0.002]),
                                                             pytest.approx(7199.996))
    assert steps(50.0, 50.25, 50.5, 50.75, 53.75) == (pytest.approx([0.0, 0.001, 0.25, 0.25, 0.001]), pytest.approx(3.248))
    clock = SimulatedClock()
    clock.step(50_000_000_000, 0.001)
    clock.reset()
    assert clock.step(60_000_000_000, 0.001) == (0.0, 0.0)  # between two motions jumps of the clock have no effect
