"""A thread that calls at a rate for as long as there is something to do, and keeps a record of how well it did; and how far a
motion moves on from one call to the next."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

KEPT = 4096  # intervals, of which percentiles are taken
LEAP, COARSEST = 0.1, 1.0  # s of simulated time: a longer step is a leap, unless steps are as long as that; which they may be


class RateLoop:
    """Calls step(seconds since the last call) at a rate, from wake() until step returns False.

    A thread of its own holds the rate better than a timer of an executor, which has other things to wait for, and costs half.
    A call that is late is not made up for: the next one comes a period later, and is told how much time has gone by.
    begin is called once, by the thread itself. Where either raises, the thread ends, and `failure` tells.
    """

    def __init__(self, step: Callable[[float], bool], rate: float, begin: Callable[[], None] = lambda: None):
        self.rate = rate
        self._step, self._begin = step, begin
        self._awake, self._closed = threading.Event(), False
        self._intervals, self._count, self._missed = np.zeros(KEPT), 0, 0
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="ticks", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        self._awake.set()

    def close(self, timeout: float | None = None) -> bool:
        """End the thread, waiting for at most a timeout [s]; return whether it has ended."""
        self._closed = True
        self._awake.set()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def record(self) -> tuple[int, int, np.ndarray]:
        """Ticks, missed ticks, intervals [s], since the last call."""
        count, missed = self._count, self._missed
        self._count = self._missed = 0
        return count, missed, self._intervals[:min(count, KEPT)].copy()

    def failure(self) -> BaseException | None:
        """What has ended the thread, if anything has; that is told once."""
        failure, self._failure = self._failure, None
        return failure

    def _run(self) -> None:
        try:
            self._begin()
            self._serve()
        except BaseException as error:  # is for others to tell
            self._failure = error

    def _serve(self) -> None:
        while not self._closed:
            self._awake.wait()
            self._awake.clear()
            last = due = time.monotonic()
            while not self._closed:
                due += 1.0 / self.rate
                late = time.monotonic() - due
                if late < 0.0:
                    time.sleep(-late)
                elif late > 1.0 / self.rate:
                    self._missed += int(late * self.rate)
                    due += late
                now = time.monotonic()
                if not self._step(now - last):
                    break
                self._intervals[self._count % KEPT] = now - last
                self._count += 1
                last = now


def limited(elapsed: float, longest: float) -> tuple[float, float]:
    """How far a motion moves on, and what it leaves out [s]: where a call comes late it is delayed, and does not jump."""
    return min(elapsed, longest), max(elapsed - longest, 0.0)


class SimulatedTime:
    """Steps of a clock that somebody else sets. A motion follows them, but for leaps: its next reference would leap as far.

    A leap is more than LEAP and more than twice the step before, which a coarse clock does not exceed.
    """

    def __init__(self) -> None:
        self._last, self._usual = 0, 0.0

    def rest(self) -> None:
        """What passes from now on until the next call of `passed` is nobody's."""
        self._last = 0

    def passed(self, now: int, period: float) -> tuple[float, float]:
        """How far a motion moves on until now [ns], and what it leaves out [s]; in a leap it moves on by a period."""
        last, self._last = self._last, now
        step = (now - last) * 1e-9 if last else 0.0
        if step <= 0.0:
            return 0.0, 0.0
        leap = step > max(LEAP, 2.0 * self._usual)
        self._usual = min(step, COARSEST)
        return (period, step - period) if leap else (step, 0.0)


class Pace:
    """How far a motion moves on at each tick: by the steady clock, or by a simulated one.

    lost : what it left out [s]: of ticks that came late, and of leaps
    """

    def __init__(self, report: Callable[[bool, str], None]):
        """report(whether all is well, a sentence)"""
        self._report, self._simulated, self.lost = report, SimulatedTime(), 0.0

    def rest(self) -> None:
        """Nothing moves until the next call of `passed`."""
        self._simulated.rest()

    def passed(self, elapsed: float, period: float, longest: float, now: int | None = None) -> float:
        """The step [s]. elapsed: since the last tick; longest: in periods; now: what the simulated clock shows [ns], if it is
        by that."""
        if now is None:
            step, left_out = limited(elapsed, longest * period)
        else:
            step, left_out = self._simulated.passed(now, period)
            if left_out:
                self._report(False, f"simulated time leapt ahead by {step + left_out:.3f} s: the motion does not")
        self.lost += left_out
        return step
