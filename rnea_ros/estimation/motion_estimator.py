"""The motion of joints from stamped positions: position to jerk at an instant, and how far off each of them may be."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

import numpy as np

from ..errors import Rejected
from .filter_bank import DeviationCalibration, Estimate, FilterBank, SensorLearning
from .position_sensor import TURN, PositionNoise, Readings, impossible_turns
from .sample_clock import ALIKE, SampleClock

LAG = 0.03  # s
_GAP, _GAP_PERIODS = 0.05, 5  # s, and so many periods: without samples for longer, the filters begin anew
_FIRST = 8  # samples, and as many more again, from which the period is found
_LEAP, _ENOUGH = 30, 64  # samples lost at once: not likely, the first stamps were of a burst; so many more are waited for then
_UNSEEN = 0.1 * np.array([[1.5], [9.0], [48.0], [96.0]])  # of an encoder's step: the most that a cubic can move within it
_COARSE = 1e-3  # rad, m; largest step of an encoder whose resolution is not found
_RESTARTED = 3  # messages in a row before the newest stamp: the clock of the sender was set back
_ROUNDING = 1e-9  # rad, m; steps that differ by less are the same
_STANDING, _STANDING_PERIODS = 0.03, 8.0  # s and periods without a change of position, from which on joints are slow
_STOOD = 4.0  # times that: for so long after it stood, a joint's position is known no better than to its encoder's step
_SLOW = 0.01  # s; period from which on that is so
_NOTHING, _NONE = np.zeros((4, 1)), np.zeros(1, dtype=bool)
_RECEIVED = 256  # positions kept at least, and as many more
_NEARBY = 2.5  # of the longest step between stamps lately: positions of so long before and after an instant are near it
_STEPS_REMEMBERED = 0.3  # s
_SPEED, _SPEED_SAMPLES = 3.0, 8  # times the mean speed of so many samples on both sides: no joint is faster
_FASTEST_REMEMBERED = 5.0  # s; largest speed of revolute joints, which tells wraps from motion
_SPREAD = 6.0  # standard deviations of a position
_FASTER = 0.7  # of the period before a gap: messages that come faster may have waited for the end of the gap
_WAITING, _LONGEST_WAIT = 2.5, 1.0  # gaps, and at most so many seconds, until those that waited have come
_TRUSTED = 0.5  # s; a stream without a gap for so long has no messages that waited
_UNEVEN_SHARE = 0.35  # of derivatives, times jitter over period: least deviation where samples have the times of their stamps
_RETUNE = 0.01  # of the period: gains are computed again for another one


class ReceivedPositions:
    """The last positions received, and the cone that they allow at an instant: no result of a filter or of a clock is part of
    it, other than the standard deviation of a position."""

    def __init__(self, joints: int):
        self._positions = np.zeros((2 * _RECEIVED, joints))
        self._least = np.full(joints, np.inf)  # smallest distance between two positions in a row: a step of the encoder
        self.clear()

    def clear(self) -> None:
        """Forget all positions; the steps of the encoders stay."""
        self._stamps: list[float] = []
        self._longest = 0.0
        self.moved = np.zeros(len(self._least))  # largest distance between two positions in a row, lately
        self._step = np.zeros(len(self._least))  # last distance between two positions in a row
        self._stood = np.full(len(self._least), -np.inf)  # s; stamp of the last position that equals the one before
        self._changed = np.zeros(len(self._least))  # s; stamp of the first position, or of the last after another step

    def push(self, stamp: float, q: np.ndarray) -> None:
        """Add positions (n,) at a stamp [s]."""
        end = len(self._stamps)
        if end == len(self._positions):
            self._positions[:_RECEIVED], end = self._positions[_RECEIVED:], _RECEIVED
            del self._stamps[:_RECEIVED]
        if end:
            step = max(stamp - self._stamps[-1], 0.0)
            kept = math.exp(-step / _STEPS_REMEMBERED)
            self._longest = max(step, self._longest * kept)
            moved = np.abs(q - self._positions[end - 1])
            self.moved *= kept
            np.maximum(self.moved, moved, out=self.moved)
            moves = moved > 0.0
            np.minimum(self._least, moved, out=self._least, where=moves)
            self._stood[~moves] = stamp
            self._changed[np.abs(moved - self._step) > _ROUNDING] = stamp
            self._step = moved
        else:
            self._changed[:] = stamp
        self._stamps.append(stamp)
        self._positions[end] = q

    def shift(self, step: float, samples: int) -> None:
        """Shift the stamps of all but the last samples by a step of the clock [s]."""
        last = max(len(self._stamps) - samples, 0)
        self._stamps[:last] = [stamp + step for stamp in self._stamps[:last]]

    def unseen(self, time: float, period: float, resolution: np.ndarray) -> np.ndarray:
        """Return what joints may move, and the derivatives of that (4, n), within one step of their encoders.

        It counts for joints that stood lately or moved by the same step from sample to sample, and where the resolution (n,)
        is not found (0) and samples are so slow that the innovations of the filters contain more motion than noise."""
        least = max(_STANDING, _STANDING_PERIODS * period)
        if (period < _SLOW and time - float(self._stood.max(initial=-np.inf)) > _STOOD * least
                and time - float(self._changed.min(initial=time)) <= least):
            return _NOTHING
        standing = time - self._changed
        counts = (time - self._stood <= _STOOD * least) | (standing > least)
        if period >= _SLOW:
            counts |= resolution == 0.0
        step = np.where(counts, np.where(resolution > 0.0, resolution, np.minimum(self._least, _COARSE)), 0.0)
        found: np.ndarray = _UNSEEN * step / np.maximum(standing, least) ** np.arange(4)[:, None]
        found[1:, standing <= least] = 0.0
        return found

    def outside(self, time: float, q: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """Return whether each joint (n,), or any (1,), cannot have this position at an instant [s]: it is outside the range
        received within a few steps, by more than `spread` (n,) and what the joint moves from the nearest one until then."""
        stamps, end = self._stamps, len(self._stamps)
        near = min(max(bisect.bisect_left(stamps, time), 1), end - 1)
        away: np.ndarray = np.abs(q - self._positions[near]) - self.moved - spread
        if np.maximum.reduce(away, initial=-1.0) <= 0.0:
            return _NONE
        reach = _NEARBY * self._longest
        first = max(min(bisect.bisect_left(stamps, time - reach), near - 1), 0)
        last = max(bisect.bisect_left(stamps, time + reach), near + 1)
        around = self._positions[first:last]
        wide = slice(max(first - _SPEED_SAMPLES, 0), min(last + _SPEED_SAMPLES, end))
        seconds = max(stamps[wide.stop - 1] - stamps[wide.start], 1e-9)
        speed = _SPEED * np.ptp(self._positions[wide], axis=0) / seconds
        away = np.maximum(around.min(axis=0) - q, q - around.max(axis=0)) - spread - self.moved
        outside: np.ndarray = ~(away <= speed * min(abs(stamp - time) for stamp in stamps[first:last]))  # NaN is outside
        return outside


class MotionEstimator:
    """Takes positions with their stamps, and gives the motion `lag` seconds before the newest of them.

    Lost samples, stamps that jitter, messages that repeat what was read before, single positions that cannot be, and joints
    that wrap at pi are seen for what they are.

    noise      : what is known of the positions
    calibration : factors of the filters' standard deviations
    clock      : what is known of the stamps
    readings   : whether messages are repeated
    diverged   : estimates rejected since they were outside of the cone that received positions allow
    disordered : messages left out since their stamps were a little before the last one
    outliers   : positions left out
    wraps      : (n,) jumps of revolute joints by whole turns that were removed
    """

    def __init__(self, joints: int, lag: float = LAG, resolution: np.ndarray | float = 0.0, turning: Sequence[int] = (),
                 revolute: Sequence[int] = ()):
        """lag [s]: 0 for none. resolution: of the encoders [rad, m], one or (n,); 0 finds it in the data.
        turning: numbers of the joints whose positions may change by whole turns from one sample to the next.
        revolute: numbers of others that turn; jumps that no joint can move (repairs.impossible_turns) are removed."""
        self.lag = lag
        self.noise = PositionNoise(np.broadcast_to(np.asarray(resolution, dtype=float), joints).copy())
        self.readings, self.clock = Readings(), SampleClock((0.0, 1.0))
        self.disordered = self.diverged = self._outliers = 0
        self._received = ReceivedPositions(joints)
        self._turning, self._revolute = np.array(turning, dtype=np.intp), np.array(revolute, dtype=np.intp)
        self._fastest, self.wraps = np.zeros(len(self._revolute)), np.zeros(joints, dtype=int)
        self._turned = self._turned_before = np.zeros(joints)  # rad, on top of what is received
        self._learning, self.calibration = SensorLearning(self.noise), DeviationCalibration(joints)
        self._wanted, self._period = _FIRST, 0.0  # s; of the samples, when the filters last began
        self._origin: int | None = None  # ns; first stamp
        self._trusted = 0.0  # s; period of samples that did not wait for the end of a gap; zero: not known yet
        self._filters: FilterBank | None = None
        self._heard = False  # of the noise; before, filters cannot tell which of them is good, and begin again with it
        self.clear()

    def clear(self) -> None:
        """The stream was interrupted: nothing of the past says anything about the motion. What is known of noise stays."""
        self._gap = self._origin is not None  # whether samples may have waited for the end of a gap
        self._origin = None
        self._behind = 0  # messages in a row whose stamps are before the newest one
        self._newest, self._turned_at, self._stamp = 0, 0.0, 0.0
        self._waited = _TRUSTED  # s; stamp from which on samples did not wait
        self.readings.clear()
        self._restart()

    def _restart(self) -> None:
        self._dropped = 0
        self._outliers = self.outliers
        self._received.clear()
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
            self._behind += nanoseconds < self._newest
            if self._newest - nanoseconds < _GAP * 1e9 and self._behind < _RESTARTED:
                self.disordered += nanoseconds < self._newest
                self._dropped += nanoseconds < self._newest
                return False
            self.clear()
        if self._origin is None:
            self._origin = nanoseconds
        self._newest, self._behind = nanoseconds, 0
        before = self.readings.period
        stamp = self.readings.time(self._seconds(nanoseconds), q)
        if self.readings.period != before:
            self._restart()
        if stamp is not None:
            self._read(stamp, q, qd)
        return True

    def estimate(self, nanoseconds: int | None = None) -> Estimate:
        """The motion `lag` before the newest message, or at a stamp that is not before that.

        Raises Rejected: `estimate_diverged` where the received positions do not allow the estimated ones; the filters start
        again then. `history_too_short` for an instant long before the lag."""
        assert self._filters, "not ready"
        time = self._seconds(self._newest) - self.lag if nanoseconds is None else self._seconds(nanoseconds)
        newest = self.clock.time + self.clock.period
        if time < self.clock.time - self.lag - max(_GAP, _GAP_PERIODS * self.clock.period):
            raise Rejected("history_too_short", f"the instant is {self.clock.time - time:.3f} s before the newest sample; "
                                                f"estimates go back {self.lag:g} s", passing=True)
        found = self._filters.at(min(time, newest), self.clock.phase_std, self.clock.rate_std)
        if time > newest:  # no sample tells how the joints went on
            found.deviation[:-1] += (time - newest) * np.abs(found.motion[1:])
        if not self.clock.even:
            share = _UNEVEN_SHARE * self.clock.jitter / self.clock.period
            np.maximum(found.deviation[1:], share * np.abs(found.motion[1:4]), out=found.deviation[1:])
        outside = self._received.outside(time, found.motion[0], _SPREAD * self.noise.std_at_rest)
        if outside is not _NONE and outside.any():
            self._diverged(found, int(outside.argmax()))
        unseen = self._received.unseen(time, self.clock.period, self.noise.resolution)
        if unseen is not _NOTHING:
            np.maximum(found.deviation, unseen, out=found.deviation)
        if len(self._turning) or self.wraps.any():
            found.motion[0] -= self._turned if time >= self._turned_at else self._turned_before
        return found

    def _diverged(self, found: Estimate, joint: int) -> None:
        """Begin anew; raises Rejected."""
        self.diverged += 1
        self._heard = False
        self._restart()
        raise Rejected("estimate_diverged", f"the estimated position of joint {joint + 1} of {found.motion.shape[1]} in the "
                                            f"message is {found.motion[0, joint]:.6g}, out of reach of the positions received "
                                            "around that instant; nothing is published and the filters start again. Stamps "
                                            "that jitter by more than a period, or two senders on one topic, cause this")

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
        gap = stamp - self._stamp
        if self._period and gap > max(_GAP, _GAP_PERIODS * self._period):
            self._restart()
            self._gap, self._waited = True, stamp + min(_WAITING * gap, _LONGEST_WAIT)
        if len(self._turning) or len(self._revolute):
            q = self._unwrapped(stamp, q, qd)
        self._stamp = stamp
        self._received.push(stamp, q)
        if self._filters:
            self._take(self._filters, stamp, q)
            if stamp > self._waited:
                self._trusted = self.clock.period
            if self._heard:
                return
        self._waiting.append((stamp, q.copy()))
        if self._filters and self._learning.learned:
            self._heard = True
            self._begin()
        elif not self._filters and len(self._waiting) % _FIRST == 0 and len(self._waiting) >= self._wanted:
            self._begin()

    def _unwrapped(self, stamp: float, q: np.ndarray, qd: np.ndarray | None) -> np.ndarray:
        """Return positions that count turns: of continuous joints the ones next to where they must be by now, of revolute
        joints without the jumps that no joint can move."""
        if self._last is not None:
            before, expected, speed = self._last
            turned = self._turned.copy()
            if len(self._revolute):
                turned[self._revolute] -= self._wrapped(stamp - before, (q + self._turned - expected)[self._revolute])
            if qd is not None and speed is not None:
                mean = 0.5 * (qd + speed)
                expected = np.where(np.isfinite(mean), expected + (stamp - before) * mean, expected)
            turned[self._turning] = TURN * np.round((expected - q) / TURN)[self._turning]
            if (turned != self._turned).any():
                self._turned_at, self._turned_before, self._turned = stamp, self._turned, turned
        unwrapped = q + self._turned
        self._last = stamp, unwrapped, None if qd is None else qd.copy()
        return unwrapped

    def _wrapped(self, seconds: float, step: np.ndarray) -> np.ndarray:
        """Return the angles [rad] by which revolute joints jumped and cannot have moved."""
        # stamps of a burst are closer than samples: only where the period is known they tell how fast a joint is
        period = max(seconds, self.clock.period if self._filters else 0.0, 1e-9)
        turns = impossible_turns(step, period, self._fastest)
        self.wraps[self._revolute] += turns != 0.0
        speed = np.where(np.abs(step) < math.pi, np.abs(step), 0.0) / period if self._filters else 0.0
        self._fastest = np.maximum(speed, self._fastest * math.exp(-period / _FASTEST_REMEMBERED))
        angles: np.ndarray = TURN * turns
        return angles

    def _begin(self) -> None:
        """The period is known: the filters start."""
        clock = SampleClock([stamp for stamp, _ in self._waiting], self.clock)
        if not clock.known:
            return
        suspected = clock.period < _FASTER * self._trusted if self._trusted else self._gap
        if suspected and self._waiting[-1][0] < self._waited:
            self._waiting.clear()
            return
        (start, q), *others = self._waiting
        self.clock, self._period = clock, clock.period
        t, early = (np.array(block) for block in zip(*self._waiting))
        since = t - t.mean()
        self._filters = filters = FilterBank(start, q, since @ early / (since @ since), self.noise, self.calibration,
                                             clock.period, self.lag)
        for stamp, positions in others:
            self._take(filters, stamp, positions)

    def _take(self, filters: FilterBank, stamp: float, q: np.ndarray) -> None:
        """A sample for the filters."""
        clock, settled = self.clock, filters.settled < self.clock.time
        steps = clock.advance(stamp, (lambda time: filters.misfit(time, q)) if settled else None, self._dropped)
        self._dropped = 0
        if steps > _LEAP or clock.broken:
            self._wanted = _ENOUGH
            self._restart()
            return
        if clock.step:
            filters.shift(clock.step)
            self._received.shift(clock.step, ALIKE)
        if abs(clock.period - filters.period) > _RETUNE * filters.period:
            filters.tune(clock.period, self.lag)
            self._period = clock.period
        self.noise.drift_std = clock.drift_std if clock.even else clock.jitter
        sample = filters.take(clock.time, steps, q)
        if steps == 1 and settled:
            self._learning.update(filters, sample, clock.deviation, stamp - clock.time, clock)
