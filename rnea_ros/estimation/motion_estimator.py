"""The motion of joints from stamped positions: position to jerk at an instant, and how far off each of them may be."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .encoder import Readings
from .filter_bank import Estimate, FilterBank
from .grading import Grades
from .position_noise import PositionNoise
from .sample_clock import SampleClock
from .sensor_learning import SensorLearning

LAG = 0.03  # s
TURN = 2.0 * math.pi
_GAP, _GAP_PERIODS = 0.05, 5  # s, and so many periods: without samples for longer, the filters begin anew
_FIRST = 8  # samples, and as many more again, from which the period is found
_LEAP, _ENOUGH = 30, 64  # samples lost at once: not likely, the first stamps were of a burst; so many more are waited for then
_RETUNE = 0.01  # of the period: gains are computed again for another one


class MotionEstimator:
    """Takes positions with their stamps, and gives the motion `lag` seconds before the newest of them.

    Lost samples, stamps that jitter, messages that repeat what was read before, single positions that cannot be, and joints
    that wrap at pi are seen for what they are.

    noise      : what is known of the positions
    grades     : what is known of the filters' standard deviations
    clock      : what is known of the stamps
    readings   : whether messages are repeated
    disordered : messages left out since their stamps were a little before the last one
    outliers   : positions left out
    """

    def __init__(self, joints: int, lag: float = LAG, resolution: np.ndarray | float = 0.0, turning: Sequence[int] = ()):
        """lag [s]: 0 for none. resolution: of the encoders [rad, m], one or (n,); 0 finds it in the data.
        turning: numbers of the joints that may be told a whole turn away at any sample."""
        self.lag = lag
        self.noise = PositionNoise(np.broadcast_to(np.asarray(resolution, dtype=float), joints).copy())
        self.readings, self.clock = Readings(), SampleClock((0.0, 1.0))
        self.disordered = self._outliers = 0
        self._turning = np.array(turning, dtype=np.intp)
        self._turned = self._turned_before = np.zeros(joints)  # rad, on top of what is received
        self._learning, self.grades = SensorLearning(self.noise), Grades(joints)
        self._wanted = _FIRST
        self._filters: FilterBank | None = None
        self._heard = False  # of the noise; before, filters cannot tell which of them is good, and begin again with it
        self.clear()

    def clear(self) -> None:
        """The stream was interrupted: nothing of the past says anything about the motion. What is known of noise stays."""
        self._origin: int | None = None
        self._newest, self._turned_at, self._stamp = 0, 0.0, 0.0
        self.readings.clear()
        self._restart()

    def _restart(self) -> None:
        self._outliers = self.outliers
        self._filters = None
        self._waiting: list[tuple[float, np.ndarray]] = []
        self._last: tuple[float, np.ndarray, np.ndarray | None] | None = None
        self._learning.begin()

    # ------------------------------------------------------------------ messages

    def push(self, nanoseconds: int, q: np.ndarray, qd: np.ndarray | None = None) -> bool:
        """Add a message: its stamp, positions (n,), and velocities (n,) where known, which tell how far joints have turned.

        Returns whether it counts: a repeated stamp does not, nor one a little before the last. One that goes back further
        begins anew.
        """
        if self._origin is not None and nanoseconds <= self._newest:
            if self._newest - nanoseconds < _GAP * 1e9:
                self.disordered += nanoseconds < self._newest
                return False
            self.clear()
        if self._origin is None:
            self._origin = nanoseconds
        self._newest = nanoseconds
        before = self.readings.period
        stamp = self.readings.time(self._seconds(nanoseconds), q)
        if self.readings.period != before:
            self._restart()
        if stamp is not None:
            self._read(stamp, q, qd)
        return True

    def estimate(self, nanoseconds: int | None = None) -> Estimate:
        """The motion `lag` before the newest message, or at a stamp that is not before that."""
        assert self._filters, "not ready"
        time = self._seconds(self._newest) - self.lag if nanoseconds is None else self._seconds(nanoseconds)
        newest = self.clock.time + self.clock.period
        found = self._filters.at(min(time, newest), self.clock.blur)
        if time > newest:  # others have been heard since; nothing tells how these went on
            found.deviation[:-1] += (time - newest) * np.abs(found.motion[1:])
        if len(self._turning):
            found.motion[0] -= self._turned if time >= self._turned_at else self._turned_before
        return found

    @property
    def ready(self) -> bool:
        """Whether there is an estimate: the motion had been found by the instant that it is for, and the noise."""
        return self._filters is not None and self._learning.learned and self._filters.settled <= self.clock.time - self.lag

    @property
    def outliers(self) -> int:
        return self._outliers + (self._filters.outliers if self._filters else 0)

    def _seconds(self, nanoseconds: int) -> float:
        return (nanoseconds - (self._origin or 0)) * 1e-9

    # ------------------------------------------------------------------ readings

    def _read(self, stamp: float, q: np.ndarray, qd: np.ndarray | None) -> None:
        """Positions that were read, and are not those of the last reading told again."""
        if self._filters and stamp - self._stamp > max(_GAP, _GAP_PERIODS * self.clock.period):
            self._restart()
        if len(self._turning):
            q = self._unwrapped(stamp, q, qd)
        self._stamp = stamp
        if self._filters:
            self._take(self._filters, stamp, q)
            if self._heard:
                return
        self._waiting.append((stamp, q.copy()))
        if self._filters and self._learning.learned:
            self._heard = True
            self._begin()
        elif not self._filters and len(self._waiting) % _FIRST == 0 and len(self._waiting) >= self._wanted:
            self._begin()

    def _unwrapped(self, stamp: float, q: np.ndarray, qd: np.ndarray | None) -> np.ndarray:
        """Positions that count turns: each is the one next to where its joint must be by now."""
        if self._last is not None:
            before, expected, speed = self._last
            if self._filters:
                expected = self._filters.position(stamp)
            if qd is not None and speed is not None:
                mean = 0.5 * (qd + speed)
                expected = np.where(np.isfinite(mean), self._last[1] + (stamp - before) * mean, expected)
            turned = self._turned.copy()
            turned[self._turning] = TURN * np.round((expected - q) / TURN)[self._turning]
            if (turned != self._turned).any():
                self._turned_at, self._turned_before, self._turned = stamp, self._turned, turned
        unwrapped = q + self._turned
        self._last = stamp, unwrapped, None if qd is None else qd.copy()
        return unwrapped

    def _begin(self) -> None:
        """The period is known: the filters start."""
        clock = SampleClock([stamp for stamp, _ in self._waiting], self.clock)
        if not clock.known:
            return
        (start, q), *others = self._waiting
        self.clock = clock
        t, early = (np.array(block) for block in zip(*self._waiting))
        since = t - t.mean()
        self._filters = filters = FilterBank(start, q, since @ early / (since @ since), self.noise, self.grades,
                                             clock.period, self.lag)
        for stamp, positions in others:
            self._take(filters, stamp, positions)

    def _take(self, filters: FilterBank, stamp: float, q: np.ndarray) -> None:
        """A sample for the filters."""
        clock, settled = self.clock, filters.settled < self.clock.time
        steps = clock.advance(stamp, (lambda time: filters.misfit(time, q)) if settled else None)
        if steps > _LEAP:
            self._wanted = _ENOUGH
            self._restart()
            return
        if abs(clock.period - filters.period) > _RETUNE * filters.period:
            filters.tune(clock.period, self.lag)
        self.noise.wander = clock.wander
        sample = filters.take(clock.time, steps, q)
        if steps == 1 and settled:
            self._learning.see(filters, sample, clock.deviation, stamp - clock.time, clock)
