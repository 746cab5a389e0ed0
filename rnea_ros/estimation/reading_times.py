"""Which sample of an evenly read robot each stamp of a recording is of: lost ones are counted, stamps may jitter.

The samples lost before each one make a staircase that only rises. Stamps say how high it is, to within their jitter, and how
far joints moved from one sample to the next says where it rises. The likeliest staircase is found by Viterbi's algorithm
(Forney, The Viterbi algorithm, Proc. IEEE 61, 1973). Every decision rests on the samples nearby, and on nothing else.

When the positions of a recording were read: one clock for all of it, which knows what comes later.

Most robots are read at an even rate, and stamped by another clock, after a wait that varies, or by a driver that publishes the
newest reading at a rate of its own. Samples are numbered (sample_numbers.py), lost ones included; even times are those of a
line through the stamps nearby, on both sides. Whether these or the stamps are right, positions say: where they agree with
even times, deviations of the stamps are errors. The slope of what positions are off the cubics through their neighbours over
(velocity x deviation of the stamp) is 0 then, else 1.

All of this is found of each sample from NEAR others before and after it. So it is the same wherever a block begins.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from .position_sensor import new_readings
from .sample_clock import BURST, LATE, LOST, TINY, line_through

FIRST, PLACES = 64, 32  # stamps from which a period is found, and at most so many times
_CALM, _PHASE_REACH = 3, 100  # samples to either side that are averaged: before the phase is computed; for the phase
_SEEN = 7  # samples to either side by which a stair is guessed
_SPEED = 3  # steps to either side from which the speed is told
_STEP_SPREAD = 0.15  # of a step: so well is it known how far joints move in a period
_DECISIVE = 25.0  # what positions say of a single step is no more certain
_SURE, _BACK = 16.0, 0.5  # variances, and of a period: what steps back so far, so surely, so soon, belongs earlier
_CONTRADICTED = 50.0  # variances by which positions say that no sample was lost where stamps say so
_ROUNDING = 0.1  # of a period: stamps are no better
_PLAIN = 0.25  # of a period: stamps that are nowhere further off are of the nearest sample
_STAIRS_TRIED = (-2, -1, 0, 1, 2, 3)  # stairs that are tried, from that guess


class Numbers(NamedTuple):
    """numbers (samples,) of the samples, lost ones included; period [s]; sent: whether stamps tell when messages were sent,
    and nothing of single samples."""

    numbers: np.ndarray
    period: float
    sent: bool


class Step(NamedTuple):
    """What positions say of how many periods x went by since the sample before: squares a - 2 b x + c x^2, (samples,) each."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray

    def unlikely(self, periods: np.ndarray) -> np.ndarray:
        """(.., samples) these squares, up to what is decisive."""
        unlikely: np.ndarray = np.minimum(self.a - 2.0 * self.b * periods + self.c * periods**2, _DECISIVE)
        return unlikely


def sample_numbers(t: np.ndarray, q: np.ndarray, noise: np.ndarray) -> Numbers:
    """Of FIRST samples or more at stamps t (samples,) that increase; positions q (samples, n), with such noise (n,)."""
    starts = np.unique(np.linspace(0, len(t) - FIRST, PLACES).astype(int))
    period = float(np.median([line_through(t[k:k + FIRST])[0] for k in starts]))
    step = _steps(t, q, noise, period)
    if np.mean(np.diff(t) < TINY * period) <= BURST:
        numbers = np.arange(len(t)) + _stairs(t / period - np.arange(len(t)), step)
        taken = np.diff(numbers, prepend=numbers[0] - 1)
        contradicted = step.unlikely(taken) - step.unlikely(np.ones(len(t)))
        if contradicted[taken > 1].sum() < _CONTRADICTED:
            return Numbers(numbers - numbers[0], period, False)
    trials = np.arange(1.0, 4.0)[:, None]
    cost = step.unlikely(trials) + LOST * (trials != 1.0)
    cost[:, 0] = 0.0
    return Numbers(np.cumsum(cost.argmin(axis=0) + 1) - 1, period, True)


def _stairs(late: np.ndarray, step: Step) -> np.ndarray:
    """(samples,) how many were lost before each, by what stamps are late beside a count of what came [periods]."""
    calm = mean_nearby(late, _CALM)
    phase = np.unwrap(np.angle(mean_nearby(np.exp(2j * np.pi * calm), _PHASE_REACH))) / (2.0 * np.pi)
    level = late - phase
    near = np.round(level)
    if np.abs(level - near).max() < _PLAIN and (np.diff(near) >= 0.0).all():
        return near.astype(int)
    jitter = np.median(np.abs(late - calm)) / 0.6
    return _staircase(level, np.round(_low_nearby(level)), jitter**2 + _ROUNDING**2, step)


def swapped(t: np.ndarray, q: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """(samples,) whether a sample was told before one that was taken earlier: joints seem to step back."""
    period = float(np.median(np.diff(t)))
    step = _steps(t, q, noise, period)
    back = (step.c > _SURE) & (step.b < -_BACK * step.c) & (np.diff(t, prepend=-np.inf) < _BACK * period)
    return back | np.append(back[1:], False)


def mean_nearby(x: np.ndarray, reach: int) -> np.ndarray:
    """Of each number and those up to so many places before and after it, by Hann's window; at the ends, of those there are."""
    reach = min(reach, (len(x) - 1) // 2)
    window = np.hanning(2 * reach + 3)[1:-1]
    mean: np.ndarray = np.convolve(x, window, "same") / np.convolve(np.ones(len(x)), window, "same")
    return mean


def _low_nearby(x: np.ndarray) -> np.ndarray:
    """The lower quarter of each number and those near it: some stamps may be late, few are early."""
    nearby = np.lib.stride_tricks.sliding_window_view(np.pad(x, _SEEN, mode="edge"), 2 * _SEEN + 1)
    low: np.ndarray = np.partition(nearby, _SEEN // 2, axis=1)[:, _SEEN // 2]
    return low


def _steps(t: np.ndarray, q: np.ndarray, noise: np.ndarray, period: float) -> Step:
    """From the way of each step, and the speed nearby."""
    last, here = len(t) - 1, np.arange(len(t))
    before, after = np.maximum(here - 1 - _SPEED, 0), np.minimum(here + _SPEED, last)
    way = np.diff(q, axis=0, prepend=q[:1])
    each = (q[after] - q[before]) / (t[after] - t[before])[:, None] * period  # in a period
    variance = 2.0 * noise**2 + (_STEP_SPREAD * each) ** 2 + 1e-30
    return Step(*((product / variance).sum(axis=1) for product in (way * way, way * each, each * each)))


def _staircase(level: np.ndarray, base: np.ndarray, variance: float, step: Step) -> np.ndarray:
    """The likeliest: (samples,) of whole numbers that never fall."""
    stamps = np.minimum((level - base - np.array(_STAIRS_TRIED)[:, None]) ** 2 / variance, LATE).T.tolist()
    rises, states = np.diff(base, prepend=base[:1]).astype(int).tolist(), range(len(_STAIRS_TRIED))
    costs, came = list(stamps[0]), []
    for own, rise, a, b, c in zip(stamps[1:], rises[1:], *(block[1:].tolist() for block in step)):
        most = rise + states[-1] + 1
        steps = [min(a - 2.0 * b * x + c * x * x, _DECISIVE) + LOST * (x > 1) for x in range(1, most + 1)]
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
    stairs: np.ndarray = np.maximum.accumulate(base.astype(int) + np.array(_STAIRS_TRIED)[chosen[::-1]])
    return stairs


_GAP, _GAP_PERIODS = 0.05, 5  # s, and so many periods: a stretch ends where samples are missing for longer
NEAR = 300  # readings to either side
_SLIP = 3.0  # standard deviations: a stamp that is further off the line counts as one that is so far off
_DOUBT = 5.0  # variances: without evidence even times are right
_HALF = 0.5  # of the deviations: from there on positions say that even times are right
_VAGUE = 0.1  # of a period: stamps of messages that are so far off even times say nothing of readings
_UNEVEN = 0.33  # of a period: no stamps that are further off tell samples apart
_LEAST_STEP = 0.1  # of a period, between two times
_DIFFERENCE = 7  # order of the differences in which noise is seen: motion has vanished from them
_NEIGHBOURS = (-2, -1, 1, 2)  # samples through which a cubic tells the one between


class Stretch(NamedTuple):
    """Readings without a gap.

    readings : which of a recording's
    numbers  : (readings,) of even samples, those lost included
    period   : of them [s]
    jitter   : standard deviation of the stamps [s]
    blur     : standard deviation of what times near each other are off together [s]
    even     : whether samples are even
    vague    : whether stamps say nothing of when readings were taken: messages come in bursts, or at another rate
    """

    readings: slice
    numbers: np.ndarray
    period: float
    jitter: float
    blur: float
    even: bool
    vague: bool


class ReadingTimes(NamedTuple):
    """Of a recording.

    new       : (samples,) whether each brings a reading: it does not repeat the one before, nor belong before it
    times     : (readings,) when each was taken [s]
    stretches : of readings, without those that are too short
    noise     : (n,) standard deviations of positions
    words     : where stamps are not of the readings: what was found, for people
    """

    new: np.ndarray
    times: np.ndarray
    stretches: tuple[Stretch, ...]
    noise: np.ndarray
    words: str

    @property
    def reading(self) -> np.ndarray:
        """(samples,) number of the reading of each."""
        return np.cumsum(self.new) - 1

    @property
    def even(self) -> bool:
        """Whether samples are even."""
        return bool(self.stretches) and all(stretch.even for stretch in self.stretches)

    @property
    def vague(self) -> bool:
        """Whether stamps do not say when readings were taken."""
        return any(stretch.vague for stretch in self.stretches)


def reading_times(t: np.ndarray, q: np.ndarray) -> ReadingTimes:
    """Of samples q (samples, n) with turns counted, at stamps t (samples,), increasing."""
    new = new_readings(t, q)
    noise = _noise([q[new][part] for part in _long(t[new])], q.shape[1])
    new[new] = ~swapped(t[new], q[new], noise)
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
    """The stretches without a gap that are long enough."""
    longest = max(_GAP, _GAP_PERIODS * float(np.median(np.diff(t))))
    ends = [0, *(np.flatnonzero(np.diff(t) > longest) + 1).tolist(), len(t)]
    return [slice(a, b) for a, b in itertools.pairwise(ends) if b - a >= FIRST]


def _stretch(part: slice, stamps: np.ndarray, q: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, Stretch]:
    """When each reading was taken, and what was found of them."""
    found = sample_numbers(stamps, q, noise)
    even, jitter = _even_times(found, stamps)
    period = float((even[-1] - even[0]) / found.numbers[-1])
    share = _share(found.numbers, period, stamps - even, q, noise)
    least = found.numbers * (_LEAST_STEP * period)
    times = np.maximum.accumulate(stamps + share * (even - stamps) - least) + least
    believed, loose = float(np.median(share)), jitter / period
    sent = found.sent and believed > _HALF
    return times, Stretch(part, found.numbers, period, jitter, believed * jitter * (0.75 / NEAR) ** 0.5,
                          sent or loose < _UNEVEN, sent and loose > _VAGUE and bool(np.ptp(q, axis=0).any()))


def _even_times(found: Numbers, stamps: np.ndarray) -> tuple[np.ndarray, float]:
    """Those of a line through the stamps near each reading, by least squares, and the standard deviation of stamps."""
    grid = found.numbers * found.period
    late = stamps - stamps[0] - grid
    line = _local_line(found.numbers, late)
    for _ in range(2):
        jitter = float(np.std(late - line))
        line = _local_line(found.numbers, line + np.clip(late - line, -_SLIP * jitter, _SLIP * jitter))
    return stamps[0] + grid + line, float(np.std(late - line))


def _local_line(numbers: np.ndarray, values: np.ndarray) -> np.ndarray:
    """At each number, the line by least squares through values (k,) at numbers (k,) nearby, weighed by Hann's window."""
    reach = min(NEAR, int(numbers[-1]))
    grid = np.zeros((2, int(numbers[-1]) + 1))
    grid[:, numbers] = np.ones(len(numbers)), values
    place = np.arange(reach, -reach - 1, -1.0) / (reach + 1)
    window = np.hanning(2 * reach + 3)[1:-1]
    (n, x, xx), (y, xy, _) = [[np.convolve(row, window * place**k)[reach:len(row) + reach] for k in range(3)] for row in grid]
    line: np.ndarray = ((xx * y - x * xy) / (n * xx - x * x))[numbers]
    return line


def _share(numbers: np.ndarray, period: float, deviation: np.ndarray, q: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """(readings,) how much of the deviations of the stamps nearby [s] are errors, 0 to 1."""
    velocity = np.gradient(q, numbers, axis=0) / period
    moved, rest = _off_cubics(numbers, velocity * deviation[:, None]), _off_cubics(numbers, q)
    variance = (2.0 * noise) ** 2 + 1e-30
    evidence = mean_nearby((moved * moved / variance).sum(axis=1), NEAR) * NEAR
    agreement = mean_nearby((moved * (moved - rest) / variance).sum(axis=1), NEAR) * NEAR
    share: np.ndarray = np.clip((agreement + _DOUBT) / (evidence + _DOUBT), 0.0, 1.0)
    return share


def _off_cubics(numbers: np.ndarray, values: np.ndarray) -> np.ndarray:
    """How far values (k, n) at numbers (k,) are from the cubics through their neighbours; 0 at the ends."""
    middle = np.arange(2, len(numbers) - 2)
    places = [(numbers[middle + k] - numbers[middle]).astype(float) for k in _NEIGHBOURS]
    rest = np.zeros(values.shape)
    rest[middle] = values[middle]
    for i, k in enumerate(_NEIGHBOURS):
        weight = np.prod([-other / (places[i] - other) for j, other in enumerate(places) if j != i], axis=0)
        rest[middle] -= values[middle + k] * weight[:, None]
    return rest


def _noise(stretches: list[np.ndarray], joints: int) -> np.ndarray:
    """Return the standard deviation of each joint's positions (joints,), from differences in which motion has vanished.

    An encoder at rest repeats one position, which contains no noise: differences of exactly zero are left out, so that a
    robot that rests most of the time has the noise that it has in motion.
    """
    noise = np.zeros(joints)
    if stretches:
        rests = np.abs(np.concatenate([np.diff(q, _DIFFERENCE, axis=0) for q in stretches]))
        for k, column in enumerate(rests.T):
            if (column > 0.0).any():
                noise[k] = np.median(column[column > 0.0])
    return noise / math.sqrt(math.comb(2 * _DIFFERENCE, _DIFFERENCE))
