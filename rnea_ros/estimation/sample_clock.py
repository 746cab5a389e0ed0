"""Times of samples, from stamps that jitter.

Most robots are read at an even rate, and stamped by another clock or after a wait that varies. Where positions agree with the
even times rather than with the stamps, the even times are used; where a loop is late and its stamps say so, the stamps are.
What decides is the slope of the innovations over (velocity x deviation of the stamp from the even time): -1 or 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

MEMORY_S, MEMORY_PERIODS = 0.06, 3.0  # s and periods, in which a difference of times becomes one of rates
_FOUND, _SLOWLY = 400, 1000  # samples after which phase and period are known, and as of how many they are followed then:
# even times may all be late, but where they wander, positions seem to tremble
_ENOUGH = 0.0012  # of a period, for so many stamps to the power of 1.5: so much jitter does not hide the period,
_MOST = 64  # and so many stamps are always enough
_RECENT = 200  # samples that the jitter is taken of
_OFFSET = 50  # samples that a constant deviation is taken of
_MEMORY = 5000.0  # of the sum that the slope is divided by: what was before fades
_DOUBT = 5.0  # of the sum that the slope is divided by: without evidence even times are right
LOST = 9.0  # a lost sample is as unlikely as positions of which the squares, over their variances, sum up to that
_CLEAR = 0.15  # of a period: with less jitter, it is plain from the stamps alone where samples are lost
_EVEN, _UNEVEN = 0.31, 0.33  # of a period: with less jitter samples can be told apart, with more they cannot
_CLEARLY = 30.0  # variances by which the squares of what stamps are off a line must get less for a sample to be lost
TINY, BURST = 0.2, 0.28  # of a period: steps so short are inside of bursts; of the steps: bursts, if so many are that short
_SHORTEST = 1e-4  # s; what seems to be a shorter period may be a burst
_DRIFT = 30.0  # of the jitter over the number of stamps: what even times move about while they are few
_SLIP = 3.0  # periods that stamps are off even times for long: these were set, or it was wrong all along
_OUTLYING, _OUTLYING_PERIODS, _OUTLYING_S = 6.0, 0.05, 2e-5  # times the jitter, the period, and s: what deviates by more
ALIKE = 4  # stamps in a row that deviate alike before the clock counts as set
_WHOLLY = 0.99
_DOUBTED, _DOUBTED_S = 0.2, 0.25  # share of the difference between stamps and even times lately, and what lately is [s]
_OSCILLATOR = 3e-5  # relative error of the rate of a computer's clock
_UNLIKELY = 4.0  # standard deviations of a mean of deviations
LATE = 30.0  # a stamp that is late, however late, is as unlikely as positions of which such squares sum up to that

Misfit = Callable[[float], float]


class SampleClock:
    """Clock of an evenly read robot: it counts samples, lost ones included, and gives the time of each.

    time      : of the last sample [s]
    deviation : of its stamp from the even time [s]
    period    : of the samples [s]
    jitter    : standard deviation of the stamps [s]
    share     : of the deviations that is taken for an error of the stamps, 0 to 1
    step      : the stamps' clock was set by so much before the last samples [s]; `time` is of the clock as it is now
    broken    : the times of the samples before do not go on in those to come
    """

    def __init__(self, stamps: Sequence[float], before: SampleClock | None = None):
        """From the first stamps, which advance; the first of them is then the last sample. before: of the same stream."""
        self.period, start, self._variance = line_through(np.subtract(stamps, stamps[0]))
        self._even = self.time = self._stamp = stamps[0]
        self._even += start
        self.deviation, self._offset = -start, 0.0
        self.share: float = before.share if before else 1.0
        self._agreement: float = before._agreement if before else 0.0
        self._evidence: float = before._evidence if before else 0.0
        self._age, self._readable = len(stamps), True
        self.step, self.broken, self._before = 0.0, False, 0.0
        self._outlying: list[tuple[float, float, float]] = []  # samples in a row: deviation, share, what the stamp fits better
        self._doubt = self.jitter  # s; difference between stamps and even times, lately
        self._tiny = float(np.mean(np.diff(stamps) < TINY * self.period))

    @property
    def known(self) -> bool:
        """Whether the first stamps were enough: samples to come will be where they are expected."""
        clear = self.jitter < _ENOUGH * self.period * self._age**1.5 and self.period > _SHORTEST
        return clear or self._age >= _MOST

    @property
    def even(self) -> bool:
        """Whether samples have even times; otherwise they have those of their stamps."""
        return self._readable or self._tiny > BURST

    @property
    def jitter(self) -> float:
        return math.sqrt(self._variance)

    @property
    def phase_std(self) -> float:
        """Standard deviation of the error that the times of all samples have in common [s]: the phase of a line through the
        stamps, and a share of what stamps and even times differed by lately, for either may be right."""
        return self.share * 2.0 * self.jitter / math.sqrt(self._age) + _DOUBTED * self._doubt

    @property
    def rate_std(self) -> float:
        """Standard deviation of the rate of the times, as a share of it: slope of a line through the stamps, and of the
        difference between stamps and even times over the memory of the filters."""
        window = max(MEMORY_S, MEMORY_PERIODS * self.period)
        return self.share * 3.5 * self.jitter / (self._age**1.5 * self.period) + _DOUBTED * self._doubt / window + _OSCILLATOR

    @property
    def drift_std(self) -> float:
        """Standard deviation of times while phase and period are still being learnt [s]."""
        return _DRIFT * self.share * self.jitter / self._age

    def advance(self, stamp: float, misfit: Misfit | None, dropped: int = 0) -> int:
        """Take the next sample. Returns how many periods it comes after the last one, at least 1.

        misfit(time) : squares of what the positions would be off, were they of that time, over their variances
        dropped      : messages since the last sample whose stamps did not advance
        """
        step, self._stamp = stamp - self._stamp, stamp
        self._age = k = min(self._age + 1, _SLOWLY)
        whole = max(1, round(step / self.period)) if self.jitter < _CLEAR * self.period else 1
        off = min(abs(step - whole * self.period), self.period)
        self._variance += (0.5 * off * off - self._variance) / min(k, _RECENT)
        self._tiny += (float(step < TINY * self.period) - self._tiny) / min(k, _RECENT)
        self._readable = self.jitter < (_UNEVEN if self._readable else _EVEN) * self.period
        self.step, share = 0.0, self.share
        if self.even:
            steps = self._steps(stamp, misfit, dropped) if self._readable else self._counted(misfit)
            before = self.deviation
            self._follow(stamp - self._even - steps * self.period, steps)
            self.deviation = stamp - self._even
            if not self._outlying:
                self._before = before
            share = self._settle_step(stamp, misfit)
        else:
            steps = round(step / self.period - 0.5)
            self.period += (min(step, 2.0 * self.period) - self.period) / k
            self._even, self.deviation, self._offset = stamp, 0.0, 0.0
            self._outlying.clear()
        self.time = max(stamp - share * self.deviation, self.time + 0.1 * self.period)
        off = abs(self.deviation) if self.even else 2.0 * self.jitter
        self._doubt = max(off, self._doubt * math.exp(-min(step / _DOUBTED_S, 100.0)))
        return max(1, steps)

    def _settle_step(self, stamp: float, misfit: Misfit | None) -> float:
        """Share of the deviation of the last stamp that is an error. A stamp that deviates by much more than stamps do was
        late, or the reading was: positions decide. If several in a row deviate alike, the clock was set, or the readings have
        moved in time; both become the even times to come."""
        if not self._readable or abs(self.deviation) < _OUTLYING * self.jitter + _OUTLYING_PERIODS * self.period + _OUTLYING_S:
            self._outlying.clear()
            return self.share
        better = misfit(self._even) - misfit(stamp) if misfit else 0.0
        share = self.share if abs(better) < LOST else float(better < 0.0)
        self._outlying.append((self.deviation, share, better))
        deviations, shares, better_all = map(np.array, zip(*self._outlying[-ALIKE:]))
        shift = float(deviations.mean())
        loose = _OUTLYING * self.jitter + _OUTLYING_PERIODS * self.period
        if len(deviations) < ALIKE or np.ptp(deviations) > loose or abs(deviations[0] - self._before) < 0.5 * abs(shift):
            return share  # too few, not alike, or the rate of the clock changes
        self._outlying.clear()
        self._even += shift
        self.deviation, self._offset = stamp - self._even, 0.0
        if better_all.sum() < LOST:  # the readings went on as before: the clock was set
            self.step, self.time = shift, self.time + shift
            self.broken = bool((shares < _WHOLLY).any())
        return self.share

    def _steps(self, stamp: float, misfit: Misfit | None, dropped: int) -> int:
        """How many periods went by; positions are asked where stamps leave it open. 0: there was one too many before."""
        periods = (stamp - self._even) / self.period
        nearest = max(0, round(periods))
        variance = self._variance / self.period**2 + 0.01
        if nearest == 1 and abs(periods - nearest) + 2.0 * math.sqrt(variance) < 0.5:
            return nearest

        def cost(steps: int) -> float:
            found = misfit(self._even + steps * self.period) if misfit else 0.0
            return found + min((periods - steps) ** 2 / variance, LATE) + LOST * (steps != 1)

        return min({1, 1 + dropped, max(0, nearest - 1), nearest, nearest + 1}, key=cost)

    def _counted(self, misfit: Misfit | None) -> int:
        """How many periods went by where messages come in bursts: one, unless positions say otherwise."""
        if misfit is None:
            return 1
        return min((1, 0, 2, 3), key=lambda steps: misfit(self._even + steps * self.period) + LOST * (steps != 1))

    def _follow(self, error: float, steps: int) -> None:
        """Phase and period, as a line through all stamps has them, later through the last ones."""
        bound = 3.0 * self.jitter + 0.01 * self.period
        if len(self._outlying) > 2 * ALIKE:  # no stray stamps: the rate has changed
            bound = self.period
        error, k = min(max(error, -bound), bound), self._age if self._age < _FOUND else _SLOWLY
        self._even += steps * self.period + error * (4 * k - 2) / (k * (k + 1))
        self.period = max(self.period + error * 6.0 / (k * (k + 1) * max(1, steps)), 0.5 * self.period)
        self._offset += (self._stamp - self._even - self._offset) / _OFFSET
        if abs(self._offset) > _SLIP * self.period:
            self.broken = True
        elif abs(self._offset) > (_UNLIKELY * self.jitter / math.sqrt(_OFFSET) + 0.001 * self.period if self._readable
                                  else 0.75 * self.period):
            self._age = min(self._age, _OFFSET)

    def learn(self, deviation: np.ndarray, taken: np.ndarray, velocity: np.ndarray, innovation: np.ndarray,
              variance: np.ndarray) -> None:
        """From samples: deviations of their stamps and what was taken off (k,); predicted velocities, innovations and their
        variances (k, n)."""
        moved = velocity * deviation[:, None]
        at_stamp = innovation - velocity * taken[:, None]
        evidence = float((moved * moved / variance).sum())
        faded = min(1.0, _MEMORY / (self._evidence + evidence + 1e-9))
        self._agreement = faded * (self._agreement - float((moved * at_stamp / variance).sum()))
        self._evidence = faded * (self._evidence + evidence)
        self.share = min(max((self._agreement + _DOUBT) / (self._evidence + _DOUBT), 0.0), 1.0)


def line_through(stamps: np.ndarray) -> tuple[float, float, float]:
    """Period and start of even times through stamps, some of which are lost, and the variance of what stamps are off them."""
    steps = np.diff(stamps)
    numbers = np.cumsum(np.append(0.0, 1.0 + np.maximum(0.0, np.round(steps / np.median(steps) - 1.5))))
    if np.mean(steps < TINY * steps.mean()) > BURST:  # stamps say nothing of single samples
        numbers = np.arange(float(len(stamps)))
    after = np.vstack((np.zeros(len(stamps)), np.tri(len(stamps), k=-1, dtype=float).T[:-1]))  # of a lost sample, or of none
    while True:
        trials = numbers + after
        off = trials - trials.mean(axis=1, keepdims=True)
        period = off @ stamps / (off * off).sum(axis=1)
        left = ((stamps - stamps.mean() - period[:, None] * off) ** 2).sum(axis=1)
        best = int(left.argmin())
        if left[0] - left[best] <= _CLEARLY * left[best] / len(stamps):
            start = stamps.mean() - period[0] * numbers.mean()
            return float(period[0]), float(start), float(left[0]) / len(stamps)
        numbers = trials[best]
