"""Calls at a rate, by a clock that the test sets; and steps of simulated time."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from rnea_ros.execution import rate_loop
from rnea_ros.execution.rate_loop import RateLoop, SimulatedClock, limit_step


class SetClock:
    """Replacement of the module time whose clock advances only by sleeps and by declared durations of calls."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class Calls:
    """A loop at 500 Hz with its own clock, and the intervals that it passes to its calls; each rests after so many."""

    def __init__(self, monkeypatch, rest=50, took=lambda number: 0.0):
        self.clock, self.intervals, self.rest, self.took = SetClock(), [], rest, took
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
        """Run the loop until it rests."""
        self.loop.wake()
        assert self.resting.acquire(timeout=30.0)


@pytest.fixture
def calls(monkeypatch):
    made = []

    def make(**options):
        made.append(Calls(monkeypatch, **options))
        return made[-1]

    yield make
    for one in made:
        one.loop.close()


def test_the_loop_sleeps_until_it_is_woken_and_keeps_a_record(calls):
    it = calls()
    for count in (50, 100):
        assert len(it.intervals) == count - 50
        it.run()
        ticks, missed, intervals = it.loop.take_statistics()
        assert (ticks, missed) == (49, 0) and len(it.intervals) == count
        np.testing.assert_allclose(intervals, 0.002)
    assert it.loop.take_statistics()[0] == 0


def test_a_call_that_comes_late_is_not_made_up_for(calls):
    """The next call is a period later, and each gets the time that has passed."""
    it = calls(rest=6, took=lambda number: 0.009 if number == 3 else 0.0)
    it.run()
    np.testing.assert_allclose(it.intervals, [0.002, 0.002, 0.002, 0.009, 0.002, 0.002])
    ticks, missed, _ = it.loop.take_statistics()
    assert (ticks, missed) == (5, 3)


def test_an_error_that_ends_the_thread_is_reported_once(calls):
    def took(number):
        raise MemoryError(number)

    it = calls(took=took)
    it.loop.wake()
    it.loop._thread.join(30.0)
    assert repr(it.loop.take_failure()) == "MemoryError(1)" and it.loop.take_failure() is None


def test_a_motion_does_not_jump_when_a_call_comes_late():
    assert limit_step(0.001, 0.005) == (0.001, 0.0)
    assert limit_step(0.012, 0.005) == (0.005, pytest.approx(0.007))


def test_a_motion_follows_simulated_time_but_for_leaps():
    """A coarse clock is none, two leaps are two, and a clock that stands still or goes back moves nothing."""
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
