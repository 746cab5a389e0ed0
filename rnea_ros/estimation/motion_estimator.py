"""Online estimation of joint motion from stamped positions: position to jerk at an instant, with standard deviations."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import Rejected
from .filter_bank import DeviationCalibration, FilterBank, MotionEstimate, SensorLearning
from .position_sensor import TURN, PositionNoise, ReadingFilter, implausible_turns
from .reading_times import CLOCK_SET_SAMPLES, SampleClock

LAG = 0.03  # default lag of the estimate behind the newest sample [s]


@dataclass(frozen=True)
class MotionEstimatorOptions:
    """Tuning of gaps, starts, and bounds of the estimate."""

    # the filters restart after a gap longer than both
    gap_s: float = 0.05  # [s]
    gap_periods: int = 5  # sampling periods
    unknown_gap_s: float = 0.5  # replaces gap_s while the sampling period is unknown: bursts may be that far apart [s]
    start_samples: int = 8  # samples from which the period is first estimated; estimated again after every so many samples
    max_lost_samples: int = 30  # consecutive lost samples above which the filters restart: they started within a burst
    retry_samples: int = 64  # samples from which the period is estimated after such a restart
    max_assumed_step: float = 1e-3  # largest assumed step of an encoder with unknown resolution [rad, m]
    restarted_messages: int = 3  # consecutive messages before the newest stamp after which the sender's clock was set back
    equal_step: float = 1e-9  # steps that differ by less are equal [rad, m]
    # a joint counts as slow after both times without a change of position
    standing_s: float = 0.03  # [s]
    standing_periods: float = 8.0  # sampling periods
    # multiple of that time during which the position of a joint that stood is uncertain by one encoder step
    standing_memory: float = 4.0
    slow_period_s: float = 0.01  # sampling period from which this applies to every encoder of unknown resolution [s]
    buffer_samples: int = 256  # positions kept; the buffer holds twice as many
    nearby_steps: float = 2.5  # positions are near an instant within this multiple of the longest recent sampling interval
    step_memory_s: float = 0.3  # time constant with which the longest sampling interval is forgotten [s]
    speed_factor: float = 3.0  # bound of the speed, as a multiple of the mean speed
    speed_samples: int = 8  # samples on both sides of an instant for the mean speed
    # time constant with which the largest speed of revolute joints is forgotten; it separates wraps from motion [s]
    top_speed_memory_s: float = 5.0
    position_stds: float = 6.0  # margin of the bounds of the estimate, in standard deviations of a position
    # messages may have been queued during a gap if the period after it is below this multiple of the period before it
    queued_period_ratio: float = 0.7
    queue_gaps: float = 2.5  # duration of queued messages after a gap, as a multiple of the gap,
    max_queue_s: float = 1.0  # and its maximum [s]
    queue_memory_s: float = 0.5  # time without a gap after which no queued messages are expected [s]
    # smallest relative standard deviation of derivatives for jittering stamps, as a multiple of jitter / period
    uneven_share: float = 0.35
    retune_change: float = 0.01  # relative change of the period after which gains are computed again


OPTIONS = MotionEstimatorOptions()

# largest derivatives 0 to 3 of a cubic polynomial that stays within one encoder step during time T [steps / T^k]
_CUBIC_WITHIN_STEP = 0.1 * np.array([[1.5], [9.0], [48.0], [96.0]])
_ALL_RESOLVED, _NONE_OUTSIDE = np.zeros((4, 1)), np.zeros(1, dtype=bool)


class ReceivedPositions:
    """Buffer of received positions, with bounds of the position at an instant that do not depend on filters and clock.

    moved : (n,) largest recent difference between consecutive positions [rad, m]
    """

    def __init__(self, joints: int):
        self._positions = np.zeros((2 * OPTIONS.buffer_samples, joints))
        self._least = np.full(joints, np.inf)  # smallest difference between consecutive positions: one encoder step
        self.clear()

    def clear(self) -> None:
        """Discard all positions; the encoder steps are kept."""
        self._stamps: list[float] = []
        self._longest = 0.0
        self.moved = np.zeros(len(self._least))
        self._step = np.zeros(len(self._least))  # last difference between consecutive positions
        self._stood = np.full(len(self._least), -np.inf)  # stamp of the last position equal to its predecessor [s]
        self._changed = np.zeros(len(self._least))  # stamp of the last change of the step; at first, of the first position [s]

    def push(self, stamp: float, q: np.ndarray) -> None:
        """Add positions q (n,) at a stamp [s]."""
        end = len(self._stamps)
        if end == len(self._positions):
            self._positions[:OPTIONS.buffer_samples], end = self._positions[OPTIONS.buffer_samples:], OPTIONS.buffer_samples
            del self._stamps[:OPTIONS.buffer_samples]
        if end:
            step = max(stamp - self._stamps[-1], 0.0)
            kept = math.exp(-step / OPTIONS.step_memory_s)
            self._longest = max(step, self._longest * kept)
            moved = np.abs(q - self._positions[end - 1])
            self.moved *= kept
            np.maximum(self.moved, moved, out=self.moved)
            moves = moved > 0.0
            np.minimum(self._least, moved, out=self._least, where=moves)
            np.copyto(self._stood, stamp, where=~moves)
            np.copyto(self._changed, stamp, where=np.abs(moved - self._step) > OPTIONS.equal_step)
            self._step = moved
        else:
            self._changed[:] = stamp
        self._stamps.append(stamp)
        self._positions[end] = q

    def shift(self, step: float, samples: int) -> None:
        """Shift the stamps of all but the last samples by a step of the clock [s]."""
        last = max(len(self._stamps) - samples, 0)
        self._stamps[:last] = [stamp + step for stamp in self._stamps[:last]]

    def within_one_step(self, time: float, period: float, resolution: np.ndarray) -> np.ndarray:
        """Return the largest position, velocity, acceleration and jerk of motion within one encoder step, (4, n) or (4, 1).

        They are nonzero for joints that stood recently or moved by equal steps from sample to sample, and for joints of
        unknown resolution if the sampling period is so long that innovations contain more motion than noise.

        time       : instant [s]
        period     : sampling period [s]
        resolution : (n,) encoder resolution [rad, m]; 0: unknown
        """
        least = max(OPTIONS.standing_s, OPTIONS.standing_periods * period)
        if (period < OPTIONS.slow_period_s and time - float(self._stood.max(initial=-np.inf)) > OPTIONS.standing_memory * least
                and time - float(self._changed.min(initial=time)) <= least):
            return _ALL_RESOLVED
        standing = time - self._changed
        counts = (time - self._stood <= OPTIONS.standing_memory * least) | (standing > least)
        if period >= OPTIONS.slow_period_s:
            counts |= resolution == 0.0
        step = np.where(counts, np.where(resolution > 0.0, resolution, np.minimum(self._least, OPTIONS.max_assumed_step)), 0.0)
        bounds: np.ndarray = _CUBIC_WITHIN_STEP * step / np.maximum(standing, least) ** np.arange(4)[:, None]
        bounds[1:, standing <= least] = 0.0
        return bounds

    def is_outside(self, time: float, q: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """Return a mask (n,) of joints that cannot have position q (n,) at an instant [s]; (1,), False, if there are none.

        A position is impossible outside the range received within a few steps, extended by `spread` (n,) and by the motion
        from the nearest sample to the instant.
        """
        stamps, end = self._stamps, len(self._stamps)
        near = min(max(bisect.bisect_left(stamps, time), 1), end - 1)
        away: np.ndarray = np.abs(q - self._positions[near]) - self.moved - spread
        if np.maximum.reduce(away, initial=-1.0) <= 0.0:
            return _NONE_OUTSIDE
        reach = OPTIONS.nearby_steps * self._longest
        first = max(min(bisect.bisect_left(stamps, time - reach), near - 1), 0)
        last = max(bisect.bisect_left(stamps, time + reach), near + 1)
        around = self._positions[first:last]
        wide = slice(max(first - OPTIONS.speed_samples, 0), min(last + OPTIONS.speed_samples, end))
        seconds = max(stamps[wide.stop - 1] - stamps[wide.start], 1e-9)
        speed = OPTIONS.speed_factor * np.ptp(self._positions[wide], axis=0) / seconds
        away = np.maximum(around.min(axis=0) - q, q - around.max(axis=0)) - spread - self.moved
        outside: np.ndarray = ~(away <= speed * min(abs(stamp - time) for stamp in stamps[first:last]))  # NaN is outside
        return outside


class MotionEstimator:
    """Estimator of joint motion from stamped positions, `lag` seconds before the newest sample.

    It handles lost samples, jittering stamps, repeated readings, outliers, and joints whose driver wraps at pi.

    noise       : noise model of the positions
    calibration : factors of the filters' standard deviations
    clock       : clock of the samples
    readings    : filter of repeated readings
    diverged    : number of estimates rejected because they left the bounds of the received positions
    disordered  : number of messages dropped because their stamp is slightly before the last one
    outliers    : number of outlying positions
    wraps       : (n,) number of jumps by whole turns that were removed from revolute joints
    """

    def __init__(self, joints: int, lag: float = LAG, resolution: np.ndarray | float = 0.0, turning: Sequence[int] = (),
                 revolute: Sequence[int] = ()):
        """Start without samples.

        joints     : number of joints n
        lag        : lag of the estimates; 0 disables the lag [s]
        resolution : encoder resolution, scalar or (n,); 0: estimated from the data [rad, m]
        turning    : indices of continuous joints, whose positions may change by whole turns
        revolute   : indices of revolute joints, from which implausible whole turns are removed
        """
        self.lag = lag
        self.noise = PositionNoise(np.broadcast_to(np.asarray(resolution, dtype=float), joints).copy())
        self.readings, self.clock = ReadingFilter(), SampleClock((0.0, 1.0))
        self.disordered = self.diverged = self._outliers = 0
        self._received = ReceivedPositions(joints)
        self._turning, self._revolute = np.array(turning, dtype=np.intp), np.array(revolute, dtype=np.intp)
        self._fastest, self.wraps = np.zeros(len(self._revolute)), np.zeros(joints, dtype=int)
        self._turned = self._turned_before = np.zeros(joints)  # whole turns added to received positions, now and before [rad]
        self._learning, self.calibration = SensorLearning(self.noise), DeviationCalibration(joints)
        self._wanted = OPTIONS.start_samples  # samples needed for the next estimate of the period
        self._period = 0.0  # sampling period at the last start of the filters; 0: unknown [s]
        self._origin: int | None = None  # first stamp [ns]
        self._trusted = 0.0  # period of samples that were not queued during a gap; 0: unknown [s]
        self._filters: FilterBank | None = None
        self._noise_known = False  # the filters restart with better gains once the noise is known
        self.clear()

    def clear(self, is_interrupted: bool = True) -> None:
        """Discard all samples; the noise model is kept.

        is_interrupted: True if the next samples come after a gap, during which they may have been queued
        """
        self._gap = is_interrupted and self._origin is not None  # whether samples may have been queued during a gap
        self._origin = None
        self._behind = 0  # consecutive messages with stamps before the newest one
        self._newest, self._turned_at, self._stamp = 0, 0.0, 0.0
        self._waited = OPTIONS.queue_memory_s  # stamp from which samples are not queued [s]
        self.readings.clear()
        self._restart()

    def _restart(self) -> None:
        self._dropped = 0
        self._outliers = self.outliers
        self._received.clear()
        self._filters = None
        self._waiting: list[tuple[float, np.ndarray]] = []
        self._last: tuple[float, np.ndarray, np.ndarray | None] | None = None
        self._learning.restart()

    # ------------------------------------------------------------------ messages

    def push(self, nanoseconds: int, q: np.ndarray, qd: np.ndarray | None = None) -> bool:
        """Add a message; return whether it is used.

        nanoseconds : stamp [ns]
        q           : (n,) positions [rad, m]
        qd          : (n,) velocities, which determine how far continuous joints turned between samples; NaN or None: unknown

        Repeated and slightly older stamps are dropped; a stamp older than a gap restarts the estimator.
        """
        if self._origin is not None and nanoseconds <= self._newest:
            self._behind += nanoseconds < self._newest
            if self._newest - nanoseconds < OPTIONS.gap_s * 1e9 and self._behind < OPTIONS.restarted_messages:
                self.disordered += nanoseconds < self._newest
                self._dropped += nanoseconds < self._newest
                return False
            self.clear()
        if self._origin is None:
            self._origin = nanoseconds
        self._newest, self._behind = nanoseconds, 0
        before = self.readings.period
        stamp = self.readings.reading_time(self._seconds(nanoseconds), q)
        if self.readings.period != before:
            self._restart()
            self._period = 0.0  # samples are as far apart as readings, not as messages
        if stamp is not None:
            self._add_reading(stamp, q, qd)
        return True

    def estimate(self, nanoseconds: int | None = None) -> MotionEstimate:
        """Return the motion `lag` before the newest message, or at a stamp [ns] within the lag. Requires `ready`.

        Raises Rejected: `estimate_diverged` if the received positions contradict the estimate (the filters restart);
        `history_too_short` for an instant long before the lag.
        """
        assert self._filters, "the estimator is not ready"
        time = self._seconds(self._newest) - self.lag if nanoseconds is None else self._seconds(nanoseconds)
        newest = self.clock.time + self.clock.period
        if time < self.clock.time - self.lag - max(OPTIONS.gap_s, OPTIONS.gap_periods * self.clock.period):
            raise Rejected("history_too_short", f"the instant is {self.clock.time - time:.3f} s before the newest sample; "
                                                f"estimates go back {self.lag:g} s", passing=True)
        clock = self.clock
        result = self._filters.estimate_at(min(time, newest), clock.phase_std, clock.rate_std, clock.assignment_std)
        if time > newest:  # extrapolation beyond the newest sample
            result.deviation[:-1] += (time - newest) * np.abs(result.motion[1:])
        if not self.clock.even:
            share = OPTIONS.uneven_share * self.clock.jitter / self.clock.period
            np.maximum(result.deviation[1:], share * np.abs(result.motion[1:4]), out=result.deviation[1:])
        outside = self._received.is_outside(time, result.motion[0], OPTIONS.position_stds * self.noise.std_at_rest)
        if outside is not _NONE_OUTSIDE and outside.any():
            self._reject_diverged(result, int(outside.argmax()))
        unresolved = self._received.within_one_step(time, self.clock.period, self.noise.resolution)
        if unresolved is not _ALL_RESOLVED:
            np.maximum(result.deviation, unresolved, out=result.deviation)
        if len(self._turning) or self.wraps.any():
            result.motion[0] -= self._turned if time >= self._turned_at else self._turned_before
        return result

    def _reject_diverged(self, result: MotionEstimate, joint: int) -> None:
        """Restart the filters and raise Rejected."""
        self.diverged += 1
        self._noise_known = False
        self._restart()
        raise Rejected("estimate_diverged", f"the estimated position of joint {joint + 1} of {result.motion.shape[1]} in the "
                                            f"message is {result.motion[0, joint]:.6g}, out of reach from the positions "
                                            "received around that instant; the estimate is discarded and the filters "
                                            "restart. Possible causes: stamps that jitter by more than a period, two senders "
                                            "on one topic")

    @property
    def ready(self) -> bool:
        """True if `estimate` can be called: the noise is known, and the filters have converged at its instant."""
        return self._filters is not None and self._learning.learned and self._filters.settled <= self.clock.time - self.lag

    @property
    def outliers(self) -> int:
        """Number of outlying positions that were ignored."""
        return self._outliers + (self._filters.outliers if self._filters else 0)

    def _seconds(self, nanoseconds: int) -> float:
        return (nanoseconds - (self._origin or 0)) * 1e-9

    # ------------------------------------------------------------------ readings

    def _add_reading(self, stamp: float, q: np.ndarray, qd: np.ndarray | None) -> None:
        """Add a new reading: stamp [s], positions (n,), velocities (n,) or None."""
        gap = stamp - self._stamp
        if gap > self._longest_step():
            self._restart()
            self._gap, self._waited = True, stamp + min(OPTIONS.queue_gaps * gap, OPTIONS.max_queue_s)
        if len(self._turning) or len(self._revolute):
            q = self._unwrap(stamp, q, qd)
        self._stamp = stamp
        self._received.push(stamp, q)
        if self._filters:
            self._add_sample(self._filters, stamp, q)
            if stamp > self._waited:
                self._trusted = self.clock.period
            if self._noise_known:
                return
        self._waiting.append((stamp, q.copy()))
        if self._filters and self._learning.learned:
            self._noise_known = True
            self._start_filters()
        elif not self._filters and len(self._waiting) % OPTIONS.start_samples == 0 and len(self._waiting) >= self._wanted:
            self._start_filters()

    def _longest_step(self) -> float:
        """Return the time between two samples above which it counts as a gap [s]."""
        if self._period:
            return max(OPTIONS.gap_s, OPTIONS.gap_periods * self._period)
        if len(self._waiting) < 2:
            return math.inf
        mean = (self._waiting[-1][0] - self._waiting[0][0]) / (len(self._waiting) - 1)
        return max(OPTIONS.unknown_gap_s, OPTIONS.gap_periods * mean)

    def _unwrap(self, stamp: float, q: np.ndarray, qd: np.ndarray | None) -> np.ndarray:
        """Return positions (n,) without wraps.

        Whole turns are chosen so that continuous joints stay near their expected position; from revolute joints, implausible
        turns are removed.
        """
        if self._last is not None:
            before, expected, speed = self._last
            turned = self._turned
            if len(self._revolute):
                angles = self._implausible_angles(stamp - before, (q + turned - expected)[self._revolute])
                if angles is not None:
                    turned = turned.copy()
                    turned[self._revolute] -= angles
            if len(self._turning):
                if qd is not None and speed is not None:
                    mean = 0.5 * (qd + speed)
                    expected = np.where(np.isfinite(mean), expected + (stamp - before) * mean, expected)
                turned = turned.copy()
                turned[self._turning] = TURN * np.round((expected - q) / TURN)[self._turning]
            if turned is not self._turned and (turned != self._turned).any():
                self._turned_at, self._turned_before, self._turned = stamp, self._turned, turned
        unwrapped = q + self._turned
        self._last = stamp, unwrapped, None if qd is None else qd.copy()
        return unwrapped

    def _implausible_angles(self, seconds: float, step: np.ndarray) -> np.ndarray | None:
        """Return the implausible part of a step of the revolute joints: whole turns [rad] (r,); None: it is plausible."""
        # stamps within a burst are closer than samples: the speed is known only with the sampling period
        period = max(seconds, self.clock.period if self._filters else 0.0, 1e-9)
        distance = np.abs(step)
        angles: np.ndarray | None = None
        if not np.maximum.reduce(distance) < math.pi:
            turns = implausible_turns(step, period, self._fastest)
            self.wraps[self._revolute] += turns != 0.0
            angles = TURN * turns
            distance[~(distance < math.pi)] = 0.0
        self._fastest *= math.exp(-period / OPTIONS.top_speed_memory_s)
        if self._filters:
            np.maximum(self._fastest, distance / period, out=self._fastest)
        return angles

    def _start_filters(self) -> None:
        """Start the filters once the period is known."""
        clock = SampleClock([stamp for stamp, _ in self._waiting], self.clock)
        if not clock.known:
            return
        suspected = clock.period < OPTIONS.queued_period_ratio * self._trusted if self._trusted else self._gap
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
            self._add_sample(filters, stamp, positions)

    def _add_sample(self, filters: FilterBank, stamp: float, q: np.ndarray) -> None:
        """Add a sample to the clock and the filters; restart if the clock is broken."""
        clock, settled = self.clock, filters.settled < self.clock.time
        steps = clock.advance(stamp, (lambda time: filters.misfit(time, q)) if settled else None, self._dropped)
        self._dropped = 0
        if steps > OPTIONS.max_lost_samples or clock.broken:
            self._wanted = OPTIONS.retry_samples
            self._restart()
            return
        if clock.step:
            filters.shift(clock.step)
            self._received.shift(clock.step, CLOCK_SET_SAMPLES)
        if abs(clock.period - filters.period) > OPTIONS.retune_change * filters.period:
            filters.tune(clock.period, self.lag)
            self._period = clock.period
        self.noise.drift_std = clock.drift_std if clock.even else clock.jitter
        sample = filters.add_sample(clock.time, steps, q)
        if steps == 1 and settled:
            self._learning.update(filters, sample, clock.deviation, stamp - clock.time, clock)
