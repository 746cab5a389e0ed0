"""Times at which joint positions were read, from stamps that jitter or are late.

Most robots are read at an even rate and stamped by another clock or after a varying delay, or by a driver that publishes the
newest reading at a different rate.

Streams (SampleClock). If positions agree with even times rather than with the stamps, even times are used; if the control loop
is late and its stamps show it, the stamps are used. The decision follows from the slope of the filter innovations over
(velocity x deviation of the stamp from the even time): -1 if the deviation is an error of the stamp, 0 if the sample was taken
at its stamp.

Recordings (reading_times). Samples are numbered first, including lost ones; even times are then those of a local line through
the stamps on both sides. The slope of the positions' distance from the cubics through their neighbours over (velocity x
deviation of the stamp) is 0 if even times are right and 1 if stamps are.

Sample numbers: the count of samples lost before each stamp is a staircase that only rises. Stamps determine its height to
within their jitter; the distance that joints move per sample shows where it rises. The most likely staircase is found by
Viterbi's algorithm (Forney, The Viterbi algorithm, Proc. IEEE 61, 1973).

All results for a sample of a recording depend on nearby samples only, so they do not depend on where a block of it begins.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .position_sensor import find_new_readings

# ------------------------------------------------------------------ stamps of a stream


MEMORY_S, MEMORY_PERIODS = 0.06, 3.0  # memory of the filters: this time and this many periods, the larger [s, periods]


@dataclass(frozen=True)
class SampleClockOptions:
    """Tuning of the clock."""

    learning_samples: int = 400  # samples until which phase and period are those of a line through all stamps;
    # then they follow as if there were so many: a constant delay of all times does little harm, a drifting phase looks like
    # motion
    tracking_samples: int = 1000
    max_known_jitter: float = 0.0012  # jitter over period and (number of stamps)^1.5 below which the period is known
    enough_stamps: int = 64  # number of stamps that always suffices
    jitter_samples: int = 200  # samples in the average of the jitter
    offset_samples: int = 50  # samples in the average of a constant deviation
    max_evidence: float = 5000.0  # bound of the evidence sum: older samples fade
    prior_evidence: float = 5.0  # evidence in favour of even times before there is data
    lost_sample_cost: float = 9.0  # cost of a lost sample, as a sum of squared normalized position errors
    clear_jitter: float = 0.15  # jitter over period below which stamps alone show lost samples
    even_jitter: float = 0.31  # jitter over period below which stamps separate samples,
    uneven_jitter: float = 0.33  # and above which they do not
    min_decrease: float = 30.0  # decrease of the squared line deviations, in variances, that a lost sample must bring
    min_period_s: float = 1e-4  # shortest period; below it, stamps are those of a burst [s]
    drift_factor: float = 30.0  # standard deviation of even times while few: this, times jitter over the number of stamps
    slip_periods: float = 3.0  # lasting deviation in periods at which the clock was set or its phase is wrong
    outlying_jitters: float = 6.0  # a deviation is outlying above this many times the jitter,
    outlying_periods: float = 0.05  # this share of the period,
    outlying_s: float = 2e-5  # and this time [s], added up
    full_share: float = 0.99  # share above which a deviation counts wholly as an error of the stamp
    deviation_share: float = 0.2  # standard deviation of `share` before it was compared, and for unusual deviations,
    min_share_std: float = 0.01  # and its smallest value
    share_memory_blocks: int = 4  # blocks of samples in the average of the squared changes of `share`
    usual_decay: float = 0.9  # decay of the usual deviation per block
    deviation_memory_s: float = 0.25  # memory of the recent deviation [s]
    oscillator_error: float = 3e-5  # relative rate error of a computer's clock
    significant_stds: float = 4.0  # standard deviations of a mean deviation that count as significant
    max_late_cost: float = 30.0  # largest cost of a late stamp, however late, as a sum of squared normalized position errors


CLOCK = SampleClockOptions()

# A step shorter than this share of the period is inside a burst; share of such steps in a burst stream
BURST_STEP, BURST_SHARE = 0.2, 0.28
CLOCK_SET_SAMPLES = 4  # consecutive equal deviations after which the clock counts as set

Misfit = Callable[[float], float]


class SampleClock:
    """Clock of a robot that is read at an even rate: counts samples, including lost ones, and returns the time of each.

    time      : time of the last sample [s]
    deviation : its stamp less its even time [s]
    period    : sampling period [s]
    jitter    : standard deviation of the stamps [s]
    share     : share of the deviations that counts as error of the stamps, 0 to 1
    step      : step by which the stamps' clock was set before the last samples [s]; `time` is in the clock as it is now
    broken    : whether earlier sample times have no relation to later ones
    """

    def __init__(self, stamps: Sequence[float], before: SampleClock | None = None):
        """Start from the first stamps [s], which increase; the first becomes the last sample.

        before: clock of the same stream before a restart.
        """
        self.period, start, self._variance = fit_even_times(np.subtract(stamps, stamps[0]))
        self._even = self.time = self._stamp = stamps[0]
        self._even += start
        self.deviation, self._offset = -start, 0.0
        self.share: float = before.share if before else 1.0
        self.agreement: float = before.agreement if before else 0.0
        self.evidence: float = before.evidence if before else 0.0
        self._age, self._has_order = len(stamps), True
        self.step, self.broken, self._before = 0.0, False, 0.0
        self._outlying: list[tuple[float, float, float]] = []  # samples in a row: deviation, share, what the stamp fits better
        self._recent_deviation = self.jitter  # recent difference between stamps and even times [s]
        self._usual_deviation = 0.0  # largest difference in the blocks from which `share` was learned [s]
        self._share_variance = CLOCK.deviation_share**2  # mean squared change of `share` from block to block
        self._burst_share = float(np.mean(np.diff(stamps) < BURST_STEP * self.period))

    @property
    def known(self) -> bool:
        """True if the first stamps determine the period and phase."""
        clear = self.jitter < CLOCK.max_known_jitter * self.period * self._age**1.5 and self.period > CLOCK.min_period_s
        return clear or self._age >= CLOCK.enough_stamps

    @property
    def even(self) -> bool:
        """True if samples have even times; otherwise they have the times of their stamps."""
        return self._has_order or self._burst_share > BURST_SHARE

    @property
    def jitter(self) -> float:
        """Standard deviation of the stamps [s]."""
        return math.sqrt(self._variance)

    @property
    def phase_std(self) -> float:
        """Standard deviation of the common error of all sample times: the phase error of a line through the stamps [s].

        It is 2 over the root of the number of stamps for a line through all of them, 1.66 for one that follows them.
        """
        factor = 2.0 if self._age < CLOCK.learning_samples else 1.66
        return self.share * factor * self.jitter / math.sqrt(self._age)

    @property
    def rate_std(self) -> float:
        """Standard deviation of the rate of the sample times, relative.

        It is the slope error of a line through the stamps, plus the oscillator's.
        """
        return self.share * 3.5 * self.jitter / (self._age**1.5 * self.period) + CLOCK.oscillator_error

    @property
    def assignment_std(self) -> float:
        """Standard deviation of the part of the recent deviations that is assigned to the wrong cause, stamp or reading [s].

        Deviations as large as before are assigned with the error of `share`, which is small if all blocks of samples give the
        same share. For larger deviations, either cause is possible.
        """
        share_std = max(math.sqrt(self._share_variance), CLOCK.min_share_std)
        unusual = max(self._recent_deviation - self._usual_deviation, 0.0)
        return share_std * self._usual_deviation + CLOCK.deviation_share * unusual

    @property
    def drift_std(self) -> float:
        """Standard deviation of sample times while phase and period are still being estimated [s]."""
        return CLOCK.drift_factor * self.share * self.jitter / self._age

    def advance(self, stamp: float, misfit: Misfit | None, dropped: int = 0) -> int:
        """Add the next sample and return how many periods it comes after the last one, at least 1.

        misfit(time) : sum of the squared normalized position errors if the positions were taken at that time
        dropped      : messages since the last sample whose stamps did not increase
        """
        step, self._stamp = stamp - self._stamp, stamp
        self._age = k = min(self._age + 1, CLOCK.tracking_samples)
        whole = max(1, round(step / self.period)) if self.jitter < CLOCK.clear_jitter * self.period else 1
        off = min(abs(step - whole * self.period), self.period)
        self._variance += (0.5 * off * off - self._variance) / min(k, CLOCK.jitter_samples)
        self._burst_share += (float(step < BURST_STEP * self.period) - self._burst_share) / min(k, CLOCK.jitter_samples)
        self._has_order = self.jitter < (CLOCK.uneven_jitter if self._has_order else CLOCK.even_jitter) * self.period
        self.step, share = 0.0, self.share
        if self.even:
            steps = self._steps(stamp, misfit, dropped) if self._has_order else self._steps_in_burst(misfit)
            before = self.deviation
            self._update_line(stamp - self._even - steps * self.period, steps)
            self.deviation = stamp - self._even
            if not self._outlying:
                self._before = before
            share = self._handle_outlying(stamp, misfit)
        else:
            steps = round(step / self.period - 0.5)
            self.period += (min(step, 2.0 * self.period) - self.period) / k
            self._even, self.deviation, self._offset = stamp, 0.0, 0.0
            self._outlying.clear()
        self.time = max(stamp - share * self.deviation, self.time + 0.1 * self.period)
        off = abs(self.deviation) if self.even else 2.0 * self.jitter
        self._recent_deviation = max(off, self._recent_deviation * math.exp(-min(step / CLOCK.deviation_memory_s, 100.0)))
        return max(1, steps)

    def _handle_outlying(self, stamp: float, misfit: Misfit | None) -> float:
        """Return the share of the last stamp's deviation that is an error of the stamp.

        If the deviation is far larger than the jitter, the stamp was late or the reading was: the positions decide. If several
        consecutive stamps deviate equally, the clock was set or the readings moved in time; the even times are shifted in both
        cases.
        """
        usual = CLOCK.outlying_jitters * self.jitter + CLOCK.outlying_periods * self.period + CLOCK.outlying_s
        if not self._has_order or abs(self.deviation) < usual:
            self._outlying.clear()
            return self.share
        better = misfit(self._even) - misfit(stamp) if misfit else 0.0
        share = self.share if abs(better) < CLOCK.lost_sample_cost else float(better < 0.0)
        self._outlying.append((self.deviation, share, better))
        deviations, shares, better_all = map(np.array, zip(*self._outlying[-CLOCK_SET_SAMPLES:]))
        shift = float(deviations.mean())
        loose = CLOCK.outlying_jitters * self.jitter + CLOCK.outlying_periods * self.period
        if len(deviations) < CLOCK_SET_SAMPLES or np.ptp(deviations) > loose:
            return share  # too few, or unequal
        if abs(deviations[0] - self._before) < 0.5 * abs(shift):
            return share  # the deviation grew gradually: the rate of the clock changes
        self._outlying.clear()
        self._even += shift
        self.deviation, self._offset = stamp - self._even, 0.0
        if better_all.sum() < CLOCK.lost_sample_cost:  # the readings went on as before: the clock was set
            self.step, self.time = shift, self.time + shift
            self.broken = bool((shares < CLOCK.full_share).any())
        return self.share

    def _steps(self, stamp: float, misfit: Misfit | None, dropped: int) -> int:
        """Return how many periods passed; positions decide where stamps are ambiguous. 0: one period too many was counted."""
        periods = (stamp - self._even) / self.period
        nearest = max(0, round(periods))
        variance = self._variance / self.period**2 + 0.01
        if nearest == 1 and abs(periods - nearest) + 2.0 * math.sqrt(variance) < 0.5:
            return nearest

        def cost(steps: int) -> float:
            found = misfit(self._even + steps * self.period) if misfit else 0.0
            late = min((periods - steps) ** 2 / variance, CLOCK.max_late_cost)
            return found + late + CLOCK.lost_sample_cost * (steps != 1)

        return min({1, 1 + dropped, max(0, nearest - 1), nearest, nearest + 1}, key=cost)

    def _steps_in_burst(self, misfit: Misfit | None) -> int:
        """Return how many periods passed where messages come in bursts: one, unless the positions contradict."""
        if misfit is None:
            return 1
        lost = CLOCK.lost_sample_cost
        return min((1, 0, 2, 3), key=lambda steps: misfit(self._even + steps * self.period) + lost * (steps != 1))

    def _update_line(self, error: float, steps: int) -> None:
        """Update phase and period as those of a line through all stamps, later through the last ones."""
        bound = 3.0 * self.jitter + 0.01 * self.period
        if len(self._outlying) > 2 * CLOCK_SET_SAMPLES:  # these are no outliers: the rate has changed
            bound = self.period
        error = min(max(error, -bound), bound)
        k = self._age if self._age < CLOCK.learning_samples else CLOCK.tracking_samples
        self._even += steps * self.period + error * (4 * k - 2) / (k * (k + 1))
        self.period = max(self.period + error * 6.0 / (k * (k + 1) * max(1, steps)), 0.5 * self.period)
        self._offset += (self._stamp - self._even - self._offset) / CLOCK.offset_samples
        if abs(self._offset) > CLOCK.slip_periods * self.period:
            self.broken = True
            return
        significant = CLOCK.significant_stds * self.jitter / math.sqrt(CLOCK.offset_samples) + 0.001 * self.period
        if abs(self._offset) > (significant if self._has_order else 0.75 * self.period):
            self._age = min(self._age, CLOCK.offset_samples)

    def learn(self, deviation: np.ndarray, taken: np.ndarray, velocity: np.ndarray, innovation: np.ndarray,
              variance: np.ndarray) -> None:
        """Update `share` from samples.

        deviation  : (k,) deviations of their stamps [s]
        taken      : (k,) part of each deviation that was removed from the time [s]
        velocity, innovation, variance : (k, n) predicted velocities, innovations and their variances
        """
        moved = velocity * deviation[:, None]
        at_stamp = innovation - velocity * taken[:, None]
        evidence, agreement = float((moved * moved / variance).sum()), -float((moved * at_stamp / variance).sum())
        if evidence > CLOCK.prior_evidence:
            change = min(max(agreement / evidence, 0.0), 1.0) - self.share
            self._share_variance += (change * change - self._share_variance) / CLOCK.share_memory_blocks
            self._usual_deviation = max(float(np.abs(deviation).max()), CLOCK.usual_decay * self._usual_deviation)
        faded = min(1.0, CLOCK.max_evidence / (self.evidence + evidence + 1e-9))
        self.agreement = faded * (self.agreement + agreement)
        self.evidence = faded * (self.evidence + evidence)
        self.share = min(max((self.agreement + CLOCK.prior_evidence) / (self.evidence + CLOCK.prior_evidence), 0.0), 1.0)


def fit_even_times(stamps: np.ndarray) -> tuple[float, float, float]:
    """Return period, start and mean squared deviation of even times fitted to stamps (k,) [s], some samples of which are lost.
    """
    steps = np.diff(stamps)
    numbers = np.cumsum(np.append(0.0, 1.0 + np.maximum(0.0, np.round(steps / np.median(steps) - 1.5))))
    if np.mean(steps < BURST_STEP * steps.mean()) > BURST_SHARE:  # stamps contain no information on single samples
        numbers = np.arange(float(len(stamps)))
    after = np.vstack((np.zeros(len(stamps)), np.tri(len(stamps), k=-1, dtype=float).T[:-1]))  # of a lost sample, or of none
    while True:
        trials = numbers + after
        off = trials - trials.mean(axis=1, keepdims=True)
        period = off @ stamps / (off * off).sum(axis=1)
        left = ((stamps - stamps.mean() - period[:, None] * off) ** 2).sum(axis=1)
        best = int(left.argmin())
        if left[0] - left[best] <= CLOCK.min_decrease * left[best] / len(stamps):
            start = stamps.mean() - period[0] * numbers.mean()
            return float(period[0]), float(start), float(left[0]) / len(stamps)
        numbers = trials[best]


# ------------------------------------------------------------------ stamps of a recording


PERIOD_SAMPLES, MAX_WINDOWS = 64, 32  # stamps from which the period is estimated, and the largest number of such windows


@dataclass(frozen=True)
class ReadingTimesOptions:
    """Tuning of sample numbers and reading times."""

    calm_reach: int = 3  # samples to either side that are averaged before the phase is computed,
    phase_reach: int = 100  # and for the phase
    quantile_reach: int = 7  # samples to either side of the quantile that gives a first guess of a stair
    speed_reach: int = 3  # samples to either side from which the speed is computed
    step_spread: float = 0.15  # relative uncertainty of the distance that joints move in a period
    max_step_cost: float = 25.0  # largest cost of a single step by positions
    min_back_evidence: float = 16.0  # squared normalized motion for a backward step to count as a swapped sample,
    min_back_periods: float = 0.5  # and share of a period
    min_contradiction: float = 50.0  # cost by which positions must contradict the losses that stamps show
    min_stamp_std: float = 0.1  # smallest standard deviation of stamps [periods]
    max_plain_deviation: float = 0.25  # largest deviation of stamps with which each is of the nearest sample [periods]
    # stairs about the first guess among which Viterbi's algorithm searches
    stairs_tried: tuple[int, ...] = (-2, -1, 0, 1, 2, 3)
    gap_s: float = 0.05  # a stretch ends at a gap of this time [s]
    gap_periods: int = 5  # and this many periods
    clip_stds: float = 3.0  # standard deviations at which the deviation of a stamp is clipped in the line fit
    prior_evidence: float = 5.0  # evidence in favour of even times before there is data [variances]
    even_share: float = 0.5  # share of the deviations above which positions decide for even times
    vague_jitter: float = 0.1  # jitter over period above which stamps of messages do not determine reading times
    max_even_jitter: float = 0.33  # jitter over period above which stamps do not separate samples
    min_step: float = 0.1  # smallest distance between two times [periods]
    noise_order: int = 7  # order of the differences that measure noise: motion vanishes in them
    neighbours: tuple[int, ...] = (-2, -1, 1, 2)  # samples whose cubic predicts the one between them


OPTIONS = ReadingTimesOptions()


class SampleNumbers(NamedTuple):
    """Sample numbers of stamps.

    numbers : (samples,) number of each sample, lost ones included
    period  : sampling period [s]
    sent    : whether stamps are the times of messages and contain nothing about single samples
    """

    numbers: np.ndarray
    period: float
    sent: bool


class StepCost(NamedTuple):
    """Cost of x periods since the sample before, from positions: a - 2 b x + c x^2, (samples,) each."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray

    def cost(self, periods: np.ndarray) -> np.ndarray:
        """Return the costs (.., samples) of numbers of periods, at most `max_step_cost`."""
        unlikely: np.ndarray = np.minimum(self.a - 2.0 * self.b * periods + self.c * periods**2, OPTIONS.max_step_cost)
        return unlikely


def sample_numbers(t: np.ndarray, q: np.ndarray, noise: np.ndarray) -> SampleNumbers:
    """Return sample numbers for stamps t (samples,) that increase, PERIOD_SAMPLES or more.

    q (samples, n): positions; noise (n,): their standard deviations.
    """
    starts = np.unique(np.linspace(0, len(t) - PERIOD_SAMPLES, MAX_WINDOWS).astype(int))
    period = float(np.median([fit_even_times(t[k:k + PERIOD_SAMPLES])[0] for k in starts]))
    step = _steps(t, q, noise, period)
    if np.mean(np.diff(t) < BURST_STEP * period) <= BURST_SHARE:
        numbers = np.arange(len(t)) + _stairs(t / period - np.arange(len(t)), step)
        taken = np.diff(numbers, prepend=numbers[0] - 1)
        contradicted = step.cost(taken) - step.cost(np.ones(len(t)))
        if contradicted[taken > 1].sum() < OPTIONS.min_contradiction:
            return SampleNumbers(numbers - numbers[0], period, False)
    trials = np.arange(1.0, 4.0)[:, None]
    cost = step.cost(trials) + CLOCK.lost_sample_cost * (trials != 1.0)
    cost[:, 0] = 0.0
    return SampleNumbers(np.cumsum(cost.argmin(axis=0) + 1) - 1, period, True)


def _stairs(late: np.ndarray, step: StepCost) -> np.ndarray:
    """Return the number of samples lost before each (samples,), from the delay of stamps [periods] against a message count."""
    calm = mean_nearby(late, OPTIONS.calm_reach)
    phase = np.unwrap(np.angle(mean_nearby(np.exp(2j * np.pi * calm), OPTIONS.phase_reach))) / (2.0 * np.pi)
    level = late - phase
    near = np.round(level)
    if np.abs(level - near).max() < OPTIONS.max_plain_deviation and (np.diff(near) >= 0.0).all():
        return near.astype(int)
    jitter = np.median(np.abs(late - calm)) / 0.6
    return _staircase(level, np.round(_low_nearby(level)), jitter**2 + OPTIONS.min_stamp_std**2, step)


def find_swapped(t: np.ndarray, q: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return which samples (samples,) were published before one that was taken earlier: joints seem to step back."""
    period = float(np.median(np.diff(t)))
    step = _steps(t, q, noise, period)
    is_early = np.diff(t, prepend=-np.inf) < OPTIONS.min_back_periods * period
    back = (step.c > OPTIONS.min_back_evidence) & (step.b < -OPTIONS.min_back_periods * step.c) & is_early
    return back | np.append(back[1:], False)


def mean_nearby(x: np.ndarray, reach: int) -> np.ndarray:
    """Return the moving average of x with Hann's window over `reach` values to either side; at the ends over those available.
    """
    reach = min(reach, (len(x) - 1) // 2)
    window = np.hanning(2 * reach + 3)[1:-1]
    mean: np.ndarray = np.convolve(x, window, "same") / np.convolve(np.ones(len(x)), window, "same")
    return mean


def _low_nearby(x: np.ndarray) -> np.ndarray:
    """Return the lower quartile of values nearby: some stamps may be late, few are early."""
    reach = OPTIONS.quantile_reach
    nearby = np.lib.stride_tricks.sliding_window_view(np.pad(x, reach, mode="edge"), 2 * reach + 1)
    low: np.ndarray = np.partition(nearby, OPTIONS.quantile_reach // 2, axis=1)[:, OPTIONS.quantile_reach // 2]
    return low


def _steps(t: np.ndarray, q: np.ndarray, noise: np.ndarray, period: float) -> StepCost:
    """Return the cost of steps from the distance moved in each and the speed nearby."""
    last, here = len(t) - 1, np.arange(len(t))
    before, after = np.maximum(here - 1 - OPTIONS.speed_reach, 0), np.minimum(here + OPTIONS.speed_reach, last)
    distance = np.diff(q, axis=0, prepend=q[:1])
    each = (q[after] - q[before]) / (t[after] - t[before])[:, None] * period  # in a period
    variance = 2.0 * noise**2 + (OPTIONS.step_spread * each) ** 2 + 1e-30
    return StepCost(*((product / variance).sum(axis=1) for product in (distance * distance, distance * each, each * each)))


def _staircase(level: np.ndarray, base: np.ndarray, variance: float, step: StepCost) -> np.ndarray:
    """Return the most likely staircase, (samples,) integers that never decrease, by Viterbi's algorithm."""
    squares = (level - base - np.array(OPTIONS.stairs_tried)[:, None]) ** 2 / variance
    stamps = np.minimum(squares, CLOCK.max_late_cost).T.tolist()
    rises, states = np.diff(base, prepend=base[:1]).astype(int).tolist(), range(len(OPTIONS.stairs_tried))
    costs, came = list(stamps[0]), []
    for own, rise, a, b, c in zip(stamps[1:], rises[1:], *(block[1:].tolist() for block in step)):
        most = rise + states[-1] + 1
        steps = [min(a - 2.0 * b * x + c * x * x, OPTIONS.max_step_cost) + CLOCK.lost_sample_cost * (x > 1)
                 for x in range(1, most + 1)]
        found, origin = [], []
        for state in states:
            height = rise + state  # over the lowest stair of the sample before
            best, start = min(((costs[k] + steps[height - k], k) for k in states if k <= height), default=(np.inf, 0))
            found.append(best + own[state])
            origin.append(start)
        costs = found
        came.append(origin)
    state = min(states, key=costs.__getitem__)
    chosen = [state]
    for origin in reversed(came):
        chosen.append(state := origin[state])
    stairs: np.ndarray = np.maximum.accumulate(base.astype(int) + np.array(OPTIONS.stairs_tried)[chosen[::-1]])
    return stairs


NEARBY_READINGS = 300  # readings to either side that determine even times


class Stretch(NamedTuple):
    """Consecutive readings without a gap.

    readings : slice of the recording's readings
    numbers  : (readings,) sample numbers, lost samples included
    period   : sampling period [s]
    jitter   : standard deviation of the stamps [s]
    time_std : (readings,) standard deviation of the common error of the times near each reading [s]
    even     : whether samples are even
    vague    : whether stamps do not determine reading times: messages come in bursts or at another rate
    """

    readings: slice
    numbers: np.ndarray
    period: float
    jitter: float
    time_std: np.ndarray
    even: bool
    vague: bool

    @property
    def time_stds(self) -> np.ndarray:
        """Standard deviations (readings, 4) of the common error of nearby times [s] and of its first three derivatives.

        A mean of independent errors by Hann's window of half width L has derivatives with pi / (sqrt(3) L), then pi / L times
        the standard deviation.
        """
        step = math.pi / (NEARBY_READINGS * self.period)
        factors: np.ndarray = np.array([1.0, step, step**2, step**3]) / math.sqrt(3.0)
        factors[0] = 1.0
        return self.time_std[:, None] * factors


class ReadingTimes(NamedTuple):
    """Reading times of a recording.

    new       : (samples,) whether each sample is a new reading: not a repetition, not swapped
    times     : (readings,) time of each reading [s]
    stretches : stretches of readings, without those that are too short
    noise     : (n,) standard deviations of positions
    words     : text on reading times that differ from the stamps; empty otherwise
    """

    new: np.ndarray
    times: np.ndarray
    stretches: tuple[Stretch, ...]
    noise: np.ndarray
    words: str

    @property
    def reading(self) -> np.ndarray:
        """Number of the reading of each sample, (samples,)."""
        return np.cumsum(self.new) - 1

    @property
    def even(self) -> bool:
        """True if all samples are even."""
        return bool(self.stretches) and all(stretch.even for stretch in self.stretches)

    @property
    def vague(self) -> bool:
        """True if stamps do not determine reading times."""
        return any(stretch.vague for stretch in self.stretches)


def reading_times(t: np.ndarray, q: np.ndarray) -> ReadingTimes:
    """Return the reading times of positions q (samples, n) without wraps at increasing stamps t (samples,) [s]."""
    new = find_new_readings(t, q)
    noise = _noise([q[new][part] for part in _long(t[new])], q.shape[1])
    new[new] = ~find_swapped(t[new], q[new], noise)
    stamps, readings, long = t[new], q[new], _long(t[new])
    times, stretches, off = stamps.copy(), [], 0.0
    for part in long:
        times[part], stretch = _stretch(part, stamps[part], readings[part], noise)
        stretches.append(stretch)
        off = max(off, float(np.abs(times[part] - stamps[part]).max()))
    found = ReadingTimes(new, times, tuple(stretches), noise, "")
    if not found.vague:
        return found
    return found._replace(words=f"positions are smooth at even times, {1e3 * np.median([s.period for s in stretches]):.4g} ms "
                                f"apart, not at those of the stamps, which are up to {1e3 * off:.2g} ms off")


def _long(t: np.ndarray) -> list[slice]:
    """Return the stretches without a gap that are long enough."""
    longest = max(OPTIONS.gap_s, OPTIONS.gap_periods * float(np.median(np.diff(t))))
    ends = [0, *(np.flatnonzero(np.diff(t) > longest) + 1).tolist(), len(t)]
    return [slice(a, b) for a, b in itertools.pairwise(ends) if b - a >= PERIOD_SAMPLES]


def _stretch(part: slice, stamps: np.ndarray, q: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, Stretch]:
    """Return the time of each reading of a stretch and its properties."""
    found = sample_numbers(stamps, q, noise)
    even, jitter, error = _even_times(found, stamps)
    period = float((even[-1] - even[0]) / found.numbers[-1])
    share = _share(found.numbers, period, stamps - even, q, noise)
    least = found.numbers * (OPTIONS.min_step * period)
    times = np.maximum.accumulate(stamps + share * (even - stamps) - least) + least
    believed, loose = float(np.median(share)), jitter / period
    sent = found.sent and believed > OPTIONS.even_share
    return times, Stretch(part, found.numbers, period, jitter, believed * jitter * error,
                          sent or loose < OPTIONS.max_even_jitter,
                          sent and loose > OPTIONS.vague_jitter and bool(np.ptp(q, axis=0).any()))


def _even_times(found: SampleNumbers, stamps: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
    """Return even times from a local line through the stamps by least squares, the standard deviation of the stamps, and the
    standard deviation of each even time over that of the stamps.
    """
    grid = found.numbers * found.period
    late = stamps - stamps[0] - grid
    line, error = _local_line(found.numbers, late)
    for _ in range(2):
        jitter = float(np.std(late - line))
        near = line + np.clip(late - line, -OPTIONS.clip_stds * jitter, OPTIONS.clip_stds * jitter)
        line, error = _local_line(found.numbers, near)
    return stamps[0] + grid + line, float(np.std(late - line)), error


def _local_line(numbers: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the local line through values (k,) at numbers (k,) by least squares with Hann's window, at each number.

    The second result is the standard deviation of the line for independent values with standard deviation 1.
    """
    reach = min(NEARBY_READINGS, int(numbers[-1]))
    grid = np.zeros((2, int(numbers[-1]) + 1))
    grid[:, numbers] = np.ones(len(numbers)), values
    offset = np.arange(reach, -reach - 1, -1.0) / (reach + 1)
    window = np.hanning(2 * reach + 3)[1:-1]
    # Local moments of the weights (n, x, xx) and of the values (y, xy) about each number
    (n, x, xx), (y, xy, _) = [[np.convolve(row, window * offset**k)[reach:len(row) + reach] for k in range(3)]
                              for row in grid]
    n2, x2, xx2 = (np.convolve(grid[0], window**2 * offset**k)[reach:len(grid[0]) + reach] for k in range(3))
    size = n * xx - x * x
    error = np.sqrt(np.maximum(xx * xx * n2 - 2.0 * xx * x * x2 + x * x * xx2, 0.0)) / size
    return ((xx * y - x * xy) / size)[numbers], error[numbers]


def _share(numbers: np.ndarray, period: float, deviation: np.ndarray, q: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return how much of the deviations of nearby stamps [s] are errors, (readings,), 0 to 1."""
    velocity = np.gradient(q, numbers, axis=0) / period
    moved, rest = _off_cubics(numbers, velocity * deviation[:, None]), _off_cubics(numbers, q)
    variance = (2.0 * noise) ** 2 + 1e-30
    evidence = mean_nearby((moved * moved / variance).sum(axis=1), NEARBY_READINGS) * NEARBY_READINGS
    agreement = mean_nearby((moved * (moved - rest) / variance).sum(axis=1), NEARBY_READINGS) * NEARBY_READINGS
    share: np.ndarray = np.clip((agreement + OPTIONS.prior_evidence) / (evidence + OPTIONS.prior_evidence), 0.0, 1.0)
    return share


def _off_cubics(numbers: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the distance of values (k, n) at numbers (k,) from the cubics through their neighbours; 0 at the ends."""
    middle = np.arange(2, len(numbers) - 2)
    distances = [(numbers[middle + k] - numbers[middle]).astype(float) for k in OPTIONS.neighbours]
    rest = np.zeros(values.shape)
    rest[middle] = values[middle]
    for i, k in enumerate(OPTIONS.neighbours):
        weight = np.prod([-other / (distances[i] - other) for j, other in enumerate(distances) if j != i], axis=0)
        rest[middle] -= values[middle + k] * weight[:, None]
    return rest


def _noise(stretches: list[np.ndarray], joints: int) -> np.ndarray:
    """Return the standard deviation of each joint's positions (joints,) from high-order differences, in which motion vanishes.

    An encoder at rest repeats one position, which contains no noise: differences of exactly zero are skipped, so that rest
    does not lower the estimate.
    """
    noise = np.zeros(joints)
    if stretches:
        rests = np.abs(np.concatenate([np.diff(q, OPTIONS.noise_order, axis=0) for q in stretches]))
        for k, column in enumerate(rests.T):
            if (column > 0.0).any():
                noise[k] = np.median(column[column > 0.0])
    return noise / math.sqrt(math.comb(2 * OPTIONS.noise_order, OPTIONS.noise_order))
