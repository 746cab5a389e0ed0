"""Thread that calls a function at a fixed rate, with timing statistics, and the time step of a motion for each call."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

MAX_INTERVALS = 4096  # most intervals stored for percentiles
MAX_CLOCK_STEP_S = 0.1  # longer steps of simulated time are jumps, unless previous steps were as long
MAX_COARSE_STEP_S = 1.0  # longest time step of a coarse simulated clock


class RateLoop:
    """Loop that calls step(seconds since the last call) at a fixed rate, from wake() until step returns False.

    A separate thread is more punctual than a timer of an executor, which also waits for other work, and uses half of the
    processor time. Late calls are not repeated: the next call follows one period later, and its argument is the elapsed time.
    The thread calls on_start once. If either function raises, the thread ends, and `take_failure` returns the error.

    began : time of the monotonic clock at which the elapsed time of the current call was measured [s]
    """

    def __init__(self, step: Callable[[float], bool], rate: float, on_start: Callable[[], None] = lambda: None):
        self.rate, self.began = rate, time.monotonic()
        self._step, self._on_start = step, on_start
        self._awake, self._closed = threading.Event(), False
        self._intervals, self._count, self._missed = np.zeros(MAX_INTERVALS), 0, 0
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="ticks", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Start calling `step`."""
        self._awake.set()

    def close(self, timeout: float | None = None) -> bool:
        """End the thread, wait for it at most `timeout` [s], and return whether it has ended."""
        self._closed = True
        self._awake.set()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def take_statistics(self) -> tuple[int, int, np.ndarray]:
        """Return the number of ticks, of missed ticks, and the intervals [s], since the last call."""
        count, missed = self._count, self._missed
        self._count = self._missed = 0
        return count, missed, self._intervals[:min(count, MAX_INTERVALS)].copy()

    def take_failure(self) -> BaseException | None:
        """Return the error that ended the thread, the first time; then None."""
        failure, self._failure = self._failure, None
        return failure

    def _run(self) -> None:
        try:
            self._on_start()
            self._serve()
        except BaseException as error:  # reported by the owner
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
                self.began = now = time.monotonic()
                if not self._step(now - last):
                    break
                self._intervals[self._count % MAX_INTERVALS] = now - last
                self._count += 1
                last = now


def limit_step(elapsed: float, longest: float) -> tuple[float, float]:
    """Return (time step of a motion, remaining elapsed time) [s]: after a late call, the motion is delayed and does not jump.
    """
    return min(elapsed, longest), max(elapsed - longest, 0.0)


class SimulatedClock:
    """Time steps of a simulated clock. Jumps are ignored, because references would jump too.

    A jump is a step of more than MAX_CLOCK_STEP_S and more than twice the previous step, which a coarse clock does not exceed.
    """

    def __init__(self) -> None:
        self._last, self._last_step = 0, 0.0

    def reset(self) -> None:
        """Ignore the time until the next call of `step`."""
        self._last = 0

    def step(self, now: int, period: float) -> tuple[float, float]:
        """Return the time step of a motion until `now` [ns], and the ignored time [s]; a jump counts as one period."""
        last, self._last = self._last, now
        step = (now - last) * 1e-9 if last else 0.0
        if step <= 0.0:
            return 0.0, 0.0
        is_jump = step > max(MAX_CLOCK_STEP_S, 2.0 * self._last_step)
        self._last_step = min(step, MAX_COARSE_STEP_S)
        return (period, step - period) if is_jump else (step, 0.0)


class StepLimiter:
    """Time step by which each tick advances a motion, from the monotonic clock or a simulated clock.

    lost : time by which motions were delayed by late ticks and clock jumps [s]
    """

    def __init__(self, on_event: Callable[[bool, str], None]):
        """Create the limiter. on_event: called with (is_ok, message)."""
        self._on_event, self._simulated, self.lost = on_event, SimulatedClock(), 0.0

    def reset(self) -> None:
        """Ignore the time until the next call of `step`, because nothing moves."""
        self._simulated.reset()

    def step(self, elapsed: float, period: float, longest: float, now: int | None = None) -> float:
        """Return the time step [s].

        elapsed : time since the last tick on the monotonic clock [s]
        period  : control period [s]
        longest : longest time step, in periods
        now     : time of the simulated clock [ns]; None without one
        """
        if now is None:
            step, left_out = limit_step(elapsed, longest * period)
        else:
            step, left_out = self._simulated.step(now, period)
            if left_out:
                self._on_event(False, f"simulated time jumped ahead by {step + left_out:.3f} s: the motion does not follow it")
        self.lost += left_out
        return step
