"""Sample times from jittering stamps.

Most robots are read at an even rate and stamped by another clock or after a varying delay. If positions agree with even
times rather than with the stamps, even times are used; if the control loop is late and its stamps show it, the stamps are
used. The decision follows from the slope of the filter innovations over (velocity x deviation of the stamp from the even
time): -1 if the deviation is an error of the stamp, 0 if the sample was taken at its stamp.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

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
    deviation_share: float = 0.2  # share of the recent deviation that counts as uncertainty,
    deviation_memory_s: float = 0.25  # and its memory [s]
    oscillator_error: float = 3e-5  # relative rate error of a computer's clock
    significant_stds: float = 4.0  # standard deviations of a mean deviation that count as significant
    max_late_cost: float = 30.0  # largest cost of a late stamp, however late, as a sum of squared normalized position errors


OPTIONS = SampleClockOptions()

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
        self._burst_share = float(np.mean(np.diff(stamps) < BURST_STEP * self.period))

    @property
    def known(self) -> bool:
        """True if the first stamps determine the period and phase."""
        clear = self.jitter < OPTIONS.max_known_jitter * self.period * self._age**1.5 and self.period > OPTIONS.min_period_s
        return clear or self._age >= OPTIONS.enough_stamps

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
        """Standard deviation of the common error of all sample times [s].

        It is the phase error of a line through the stamps, plus a share of the recent difference between stamps and even
        times, since either may be right.
        """
        return self.share * 2.0 * self.jitter / math.sqrt(self._age) + OPTIONS.deviation_share * self._recent_deviation

    @property
    def rate_std(self) -> float:
        """Standard deviation of the rate of the sample times, relative.

        It is the slope error of a line through the stamps, plus that of the difference between stamps and even times over the
        memory of the filters, plus the oscillator's.
        """
        window = max(MEMORY_S, MEMORY_PERIODS * self.period)
        slope_std = self.share * 3.5 * self.jitter / (self._age**1.5 * self.period)
        return slope_std + OPTIONS.deviation_share * self._recent_deviation / window + OPTIONS.oscillator_error

    @property
    def drift_std(self) -> float:
        """Standard deviation of sample times while phase and period are still being estimated [s]."""
        return OPTIONS.drift_factor * self.share * self.jitter / self._age

    def advance(self, stamp: float, misfit: Misfit | None, dropped: int = 0) -> int:
        """Add the next sample and return how many periods it comes after the last one, at least 1.

        misfit(time) : sum of the squared normalized position errors if the positions were taken at that time
        dropped      : messages since the last sample whose stamps did not increase
        """
        step, self._stamp = stamp - self._stamp, stamp
        self._age = k = min(self._age + 1, OPTIONS.tracking_samples)
        whole = max(1, round(step / self.period)) if self.jitter < OPTIONS.clear_jitter * self.period else 1
        off = min(abs(step - whole * self.period), self.period)
        self._variance += (0.5 * off * off - self._variance) / min(k, OPTIONS.jitter_samples)
        self._burst_share += (float(step < BURST_STEP * self.period) - self._burst_share) / min(k, OPTIONS.jitter_samples)
        self._has_order = self.jitter < (OPTIONS.uneven_jitter if self._has_order else OPTIONS.even_jitter) * self.period
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
        self._recent_deviation = max(off, self._recent_deviation * math.exp(-min(step / OPTIONS.deviation_memory_s, 100.0)))
        return max(1, steps)

    def _handle_outlying(self, stamp: float, misfit: Misfit | None) -> float:
        """Return the share of the last stamp's deviation that is an error of the stamp.

        If the deviation is far larger than the jitter, the stamp was late or the reading was: the positions decide. If several
        consecutive stamps deviate equally, the clock was set or the readings moved in time; the even times are shifted in both
        cases.
        """
        usual = OPTIONS.outlying_jitters * self.jitter + OPTIONS.outlying_periods * self.period + OPTIONS.outlying_s
        if not self._has_order or abs(self.deviation) < usual:
            self._outlying.clear()
            return self.share
        better = misfit(self._even) - misfit(stamp) if misfit else 0.0
        share = self.share if abs(better) < OPTIONS.lost_sample_cost else float(better < 0.0)
        self._outlying.append((self.deviation, share, better))
        deviations, shares, better_all = map(np.array, zip(*self._outlying[-CLOCK_SET_SAMPLES:]))
        shift = float(deviations.mean())
        loose = OPTIONS.outlying_jitters * self.jitter + OPTIONS.outlying_periods * self.period
        if len(deviations) < CLOCK_SET_SAMPLES or np.ptp(deviations) > loose:
            return share  # too few, or unequal
        if abs(deviations[0] - self._before) < 0.5 * abs(shift):
            return share  # the deviation grew gradually: the rate of the clock changes
        self._outlying.clear()
        self._even += shift
        self.deviation, self._offset = stamp - self._even, 0.0
        if better_all.sum() < OPTIONS.lost_sample_cost:  # the readings went on as before: the clock was set
            self.step, self.time = shift, self.time + shift
            self.broken = bool((shares < OPTIONS.full_share).any())
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
            late = min((periods - steps) ** 2 / variance, OPTIONS.max_late_cost)
            return found + late + OPTIONS.lost_sample_cost * (steps != 1)

        return min({1, 1 + dropped, max(0, nearest - 1), nearest, nearest + 1}, key=cost)

    def _steps_in_burst(self, misfit: Misfit | None) -> int:
        """Return how many periods passed where messages come in bursts: one, unless the positions contradict."""
        if misfit is None:
            return 1
        lost = OPTIONS.lost_sample_cost
        return min((1, 0, 2, 3), key=lambda steps: misfit(self._even + steps * self.period) + lost * (steps != 1))

    def _update_line(self, error: float, steps: int) -> None:
        """Update phase and period as those of a line through all stamps, later through the last ones."""
        bound = 3.0 * self.jitter + 0.01 * self.period
        if len(self._outlying) > 2 * CLOCK_SET_SAMPLES:  # these are no outliers: the rate has changed
            bound = self.period
        error = min(max(error, -bound), bound)
        k = self._age if self._age < OPTIONS.learning_samples else OPTIONS.tracking_samples
        self._even += steps * self.period + error * (4 * k - 2) / (k * (k + 1))
        self.period = max(self.period + error * 6.0 / (k * (k + 1) * max(1, steps)), 0.5 * self.period)
        self._offset += (self._stamp - self._even - self._offset) / OPTIONS.offset_samples
        if abs(self._offset) > OPTIONS.slip_periods * self.period:
            self.broken = True
            return
        significant = OPTIONS.significant_stds * self.jitter / math.sqrt(OPTIONS.offset_samples) + 0.001 * self.period
        if abs(self._offset) > (significant if self._has_order else 0.75 * self.period):
            self._age = min(self._age, OPTIONS.offset_samples)

    def learn(self, deviation: np.ndarray, taken: np.ndarray, velocity: np.ndarray, innovation: np.ndarray,
              variance: np.ndarray) -> None:
        """Update `share` from samples.

        deviation  : (k,) deviations of their stamps [s]
        taken      : (k,) part of each deviation that was removed from the time [s]
        velocity, innovation, variance : (k, n) predicted velocities, innovations and their variances
        """
        moved = velocity * deviation[:, None]
        at_stamp = innovation - velocity * taken[:, None]
        evidence = float((moved * moved / variance).sum())
        faded = min(1.0, OPTIONS.max_evidence / (self.evidence + evidence + 1e-9))
        self.agreement = faded * (self.agreement - float((moved * at_stamp / variance).sum()))
        self.evidence = faded * (self.evidence + evidence)
        self.share = min(max((self.agreement + OPTIONS.prior_evidence) / (self.evidence + OPTIONS.prior_evidence), 0.0), 1.0)


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
        if left[0] - left[best] <= OPTIONS.min_decrease * left[best] / len(stamps):
            start = stamps.mean() - period[0] * numbers.mean()
            return float(period[0]), float(start), float(left[0]) / len(stamps)
        numbers = trials[best]
