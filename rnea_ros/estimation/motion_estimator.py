"""The motion of joints from stamped positions: position to jerk at an instant, and how far off each of them may be."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import Rejected
from .encoder import Readings
from .filter_bank import DeviationCalibration, Estimate, FilterBank
from .position_noise import PositionNoise, SensorLearning
from .repairs import TURN, impossible_turns
from .sample_clock import ALIKE, SampleClock

LAG = 0.03  # s
_GAP, _GAP_PERIODS = 0.05, 5  # s, and so many periods: without samples for longer, the filters begin anew
_FIRST = 8  # samples, and as many more again, from which the period is found
_LEAP, _ENOUGH = 30, 64  # samples lost at once: not likely, the first stamps were of a burst; so many more are waited for then
_CHANGE, _REMEMBERED = 0.4, 0.15  # of what an estimate differs from the last one, for so long [s]: its deviation is no less
_ODD, _ODD_REMEMBERED = 3.0, 0.2  # after a stamp out of line, deviations are larger by so much, and for so long [s]
_LOOSE, _LOOSELY = 0.15, 10.0  # of a period: for each of the jitter beyond that, deviations are larger by so much
_UNSEEN = 0.15  # of an encoder's step
_STANDING, _STANDING_PERIODS = 0.03, 8.0  # s and periods without a change of position, from which on joints are slow
_NOTHING = np.zeros((4, 1))
_RECEIVED = 256  # positions kept at least, and as many more
_NEARBY = 2.5  # of the longest step between stamps lately: positions of so long before and after an instant are near it
_STEPS_REMEMBERED = 0.3  # s
_SPEED, _SPEED_SAMPLES = 3.0, 8  # times the mean speed of so many samples on both sides: without a limit, no joint is faster
_LATE = 0.5  # of the longest step between stamps lately: a stamp may be later, but joints seldom move at their limit then
_LIMITS = 1.1  # velocity limits that no joint passes
_FASTEST_REMEMBERED = 5.0  # s; largest speed of revolute joints, which tells wraps from motion
_SPREAD = 6.0  # standard deviations of a position
_RETUNE = 0.01  # of the period: gains are computed again for another one


class ReceivedPositions:
    """The last positions received, and the cone that they allow at an instant: nothing that a filter or a clock computes is
    part of it, other than the deviation of a position."""

    def __init__(self, joints: int, velocity_limits: np.ndarray | None):
        """velocity_limits (n,) [rad/s, m/s]: NaN, 0 or None where they are not known."""
        limits = np.zeros(joints) if velocity_limits is None else np.asarray(velocity_limits, dtype=float)
        self._limits = np.where(np.isfinite(limits), np.abs(limits), 0.0)
        self._limited, self._none = bool(self._limits.any()), np.zeros(joints, dtype=bool)
        self._stamps, self._positions = np.zeros(2 * _RECEIVED), np.zeros((2 * _RECEIVED, joints))
        self._least = np.full(joints, np.inf)  # smallest distance between two positions in a row: a step of the encoder
        self.clear()

    def clear(self) -> None:
        self._end, self._longest = 0, 0.0
        self._moved = np.zeros(len(self._limits))  # largest distance between two positions in a row, lately
        self._changed = np.zeros(len(self._limits))  # s; stamp of the first position, or of the last that differed

    def push(self, stamp: float, q: np.ndarray) -> None:
        if self._end == len(self._stamps):
            self._stamps[:_RECEIVED], self._positions[:_RECEIVED] = self._stamps[_RECEIVED:], self._positions[_RECEIVED:]
            self._end = _RECEIVED
        if self._end:
            step = max(stamp - float(self._stamps[self._end - 1]), 0.0)
            kept = math.exp(-step / _STEPS_REMEMBERED)
            self._longest = max(step, self._longest * kept)
            moved = np.abs(q - self._positions[self._end - 1])
            self._moved = np.maximum(moved, self._moved * kept)
            changed = moved > 0.0
            self._least = np.where(changed, np.minimum(moved, self._least), self._least)
            self._changed = np.where(changed, stamp, self._changed)
        else:
            self._changed[:] = stamp
        self._stamps[self._end], self._positions[self._end] = stamp, q
        self._end += 1

    def shift(self, step: float, samples: int) -> None:
        """The clock was set by a step [s] before the last samples."""
        self._stamps[:max(self._end - samples, 0)] += step

    @property
    def moved(self) -> np.ndarray:
        """Largest distance (n,) between two positions in a row lately."""
        return self._moved

    def unseen(self, time: float, period: float) -> np.ndarray:
        """(4, n) what joints may move, and the derivatives of that, without their encoders' changing by a step."""
        standing = time - self._changed
        if time - float(self._changed.min(initial=time)) <= max(_STANDING, _STANDING_PERIODS * period):
            return _NOTHING
        slow = (self._least < np.inf) & (standing > max(_STANDING, _STANDING_PERIODS * period))
        step, seconds = np.where(slow, _UNSEEN * self._least, 0.0), np.where(slow, standing, 1.0)
        found: np.ndarray = step / seconds ** np.arange(4)[:, None]
        return found

    def outside(self, time: float, q: np.ndarray, qd: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """Return whether each joint (n,) cannot have such a position and velocity at an instant [s]: the position is outside
        the range of those received within a few steps, by more than `spread` (n,) and what the joint moves from the nearest
        one until then; or the velocity is a multiple of the limit and of the speed received."""
        stamps, positions = self._stamps[:self._end], self._positions[:self._end]
        reach = _NEARBY * self._longest
        first, near, last = stamps.searchsorted((time - reach, time, time + reach)).tolist()
        near = min(max(near, 1), self._end - 1)
        if not self._limited and near:  # quick: between its two neighbours, no position is outside
            a, b = positions[near - 1], positions[near]
            if (np.minimum(a, b) - spread <= q).all() and (q <= np.maximum(a, b) + spread).all():
                return self._none
        first, last = max(min(first, near - 1), 0), max(last, near + 1)
        around = positions[first:last]
        away: np.ndarray = np.maximum(around.min(axis=0) - q, q - around.max(axis=0)) - spread
        fast = (self._limits > 0.0) & ~(np.abs(qd) <= _SPEED * self._limits)
        if fast.any() or not (away <= 0.0).all():
            wide = slice(max(first - _SPEED_SAMPLES, 0), min(last + _SPEED_SAMPLES, self._end))
            seconds = float(stamps[wide][-1] - stamps[wide][0])
            speed = np.maximum(self._limits, _SPEED * np.ptp(positions[wide], axis=0) / max(seconds, 1e-9))
            fast &= ~(np.abs(qd) <= _SPEED * speed)
            away -= speed * float(np.abs(stamps[first:last] - time).min())
            away -= self._moved  # at least a step of the encoder, which may not be known yet
        nearest = near if abs(stamps[near] - time) < abs(stamps[near - 1] - time) else near - 1
        step = np.where(np.isfinite(self._least), self._least, 0.0)
        cone = _LIMITS * self._limits * (abs(float(stamps[nearest]) - time) + _LATE * self._longest) + spread + 2.0 * step
        beyond = (self._limits > 0.0) & ~(np.abs(q - positions[nearest]) <= cone)
        outside: np.ndarray = ~(away <= 0.0) | beyond | fast  # NaN is outside
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
                 velocity_limits: np.ndarray | None = None, revolute: Sequence[int] = ()):
        """lag [s]: 0 for none. resolution: of the encoders [rad, m], one or (n,); 0 finds it in the data.
        turning: numbers of the joints whose positions may change by whole turns from one sample to the next.
        revolute: numbers of others that turn; jumps that no joint can move (repairs.impossible_turns) are removed.
        velocity_limits (n,) [rad/s, m/s]: None, NaN or 0 where they are not known; then the speed of what was received."""
        self.lag = lag
        self.noise = PositionNoise(np.broadcast_to(np.asarray(resolution, dtype=float), joints).copy())
        self.readings, self.clock = Readings(), SampleClock((0.0, 1.0))
        self.disordered = self.diverged = self._outliers = 0
        self._received = ReceivedPositions(joints, velocity_limits)
        self._turning, self._revolute = np.array(turning, dtype=np.intp), np.array(revolute, dtype=np.intp)
        self._fastest, self.wraps = np.zeros(len(self._revolute)), np.zeros(joints, dtype=int)
        self._turned = self._turned_before = np.zeros(joints)  # rad, on top of what is received
        self._learning, self.calibration = SensorLearning(self.noise), DeviationCalibration(joints)
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
        self._dropped = 0
        self._outliers = self.outliers
        self._received.clear()
        self._odd = -math.inf  # s; when a stamp was last out of line
        self._before: tuple[float, int, np.ndarray] | None = None
        self._change = np.zeros((4, len(self._turned)))
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
                self._dropped += nanoseconds < self._newest
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
        if time > newest:  # others have been heard since; nothing tells how these went on
            found.deviation[:-1] += (time - newest) * np.abs(found.motion[1:])
        spread = _SPREAD * self.noise.std_at_rest
        outside = self._received.outside(time, found.motion[0], found.motion[1], spread)
        if outside.any():
            self._diverged(found, int(outside.argmax()))
        found = found._replace(deviation=self._consistent(time, found))
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

    def _consistent(self, time: float, found: Estimate) -> np.ndarray:
        """Deviations (4, n) of an estimate that are no smaller than what the last ones were off each other."""
        made = self._newest
        before, self._before = self._before, (time, made, found.motion)
        assert self._filters
        if before is not None and made != before[1]:
            step = time - before[0]
            if abs(step - (made - before[1]) * 1e-9) < 1e-6:
                change = np.abs(found.motion - self._filters.transition(step)[:4, :4] @ before[2])
                self._change = np.maximum(change, self._change * math.exp(-step / _REMEMBERED))
        loose = max(self.clock.jitter / self.clock.period - _LOOSE, 0.0)
        wider = 1.0 + _LOOSELY * loose + _ODD * math.exp(-max(self.clock.time - self._odd, 0.0) / _ODD_REMEMBERED)
        deviation: np.ndarray = np.maximum(wider * found.deviation, _CHANGE * self._change)
        return np.maximum(deviation, self._received.unseen(time, self.clock.period))

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
        if len(self._turning) or len(self._revolute):
            q = self._unwrapped(stamp, q, qd)
        self._stamp = stamp
        self._received.push(stamp, q)
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
        """Return positions that count turns: of continuous joints the ones next to where they must be by now, of revolute
        joints without the jumps that no joint can move."""
        if self._last is not None and (len(self._revolute) or not self._turns_little(q, qd)):
            before, expected, speed = self._last
            turned = self._turned.copy()
            if len(self._revolute):
                turned[self._revolute] -= self._wrapped(stamp - before, (q + self._turned - expected)[self._revolute])
            if self._filters:
                reach = 2.0 * self._received.moved  # filters that are astray must not turn a joint
                expected = np.clip(self._filters.position(stamp), expected - reach, expected + reach)
            if qd is not None and speed is not None:
                mean = 0.5 * (qd + speed)
                expected = np.where(np.isfinite(mean), self._last[1] + (stamp - before) * mean, expected)
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

    def _turns_little(self, q: np.ndarray, qd: np.ndarray | None) -> bool:
        """Return whether turning joints move so little, and by so little were moved lately, that none can have wrapped."""
        assert self._last is not None
        if qd is not None:
            return False
        step = np.abs(q + self._turned - self._last[1])[self._turning]
        return bool(step.max() < 0.25 * TURN and self._received.moved[self._turning].max() < 0.125 * TURN)

    def _begin(self) -> None:
        """The period is known: the filters start."""
        clock = SampleClock([stamp for stamp, _ in self._waiting], self.clock)
        if not clock.known:
            return
        (start, q), *others = self._waiting
        self.clock = clock
        t, early = (np.array(block) for block in zip(*self._waiting))
        since = t - t.mean()
        self._filters = filters = FilterBank(start, q, since @ early / (since @ since), self.noise, self.calibration,
                                             clock.period, self.lag, exact=True)
        for stamp, positions in others:
            self._take(filters, stamp, positions)

    def _take(self, filters: FilterBank, stamp: float, q: np.ndarray) -> None:
        """A sample for the filters."""
        clock, settled = self.clock, filters.settled < self.clock.time
        steps = clock.advance(stamp, (lambda time: filters.misfit(time, q)) if settled else None, self._dropped)
        if clock.odd or self._dropped:
            self._odd = clock.time
        self._dropped = 0
        if steps > _LEAP or clock.broken:
            self._wanted = _ENOUGH
            self._restart()
            return
        if clock.step:
            filters.shift(clock.step)
            self._odd = clock.time
            self._received.shift(clock.step, ALIKE)
        if abs(clock.period - filters.period) > _RETUNE * filters.period:
            filters.tune(clock.period, self.lag)
        self.noise.drift_std = clock.drift_std if clock.even else clock.jitter
        sample = filters.take(clock.time, steps, q)
        if steps == 1 and settled:
            self._learning.update(filters, sample, clock.deviation, stamp - clock.time, clock)
