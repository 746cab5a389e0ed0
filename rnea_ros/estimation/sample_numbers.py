"""Which sample of an evenly read robot each stamp of a recording is of: lost ones are counted, stamps may jitter.

The samples lost before each one make a staircase that only rises. Stamps say how high it is, to within their jitter, and how
far joints moved from one sample to the next says where it rises. The likeliest staircase is found by Viterbi's algorithm
(Forney, The Viterbi algorithm, Proc. IEEE 61, 1973). Every decision rests on the samples nearby, and on nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .sample_clock import BURST, LATE, LOST, TINY, line_through

FIRST, PLACES = 64, 32  # stamps from which a period is found, and at most so many times
_CALM, _NEAR = 3, 100  # samples to either side: of which the jitter is taken off the phase, and of which the phase is taken
_SEEN = 7  # samples to either side by which a stair is guessed
_SPEED = 3  # steps to either side from which the speed is told
_SPREAD = 0.15  # of a step: so well is it known how far joints move in a period
_DECISIVE = 25.0  # what positions say of a single step is no more certain
_SURE, _BACK = 16.0, 0.5  # variances, and of a period: what steps back so far, so surely, so soon, belongs earlier
_CONTRADICTED = 50.0  # variances by which positions say that no sample was lost where stamps say so
_ROUNDING = 0.1  # of a period: stamps are no better
_PLAIN = 0.25  # of a period: stamps that are nowhere further off are of the nearest sample
_REACH = (-2, -1, 0, 1, 2, 3)  # stairs that are tried, from that guess


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
    phase = np.unwrap(np.angle(mean_nearby(np.exp(2j * np.pi * calm), _NEAR))) / (2.0 * np.pi)
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
    variance = 2.0 * noise**2 + (_SPREAD * each) ** 2 + 1e-30
    return Step(*((product / variance).sum(axis=1) for product in (way * way, way * each, each * each)))


def _staircase(level: np.ndarray, base: np.ndarray, variance: float, step: Step) -> np.ndarray:
    """The likeliest: (samples,) of whole numbers that never fall."""
    stamps = np.minimum((level - base - np.array(_REACH)[:, None]) ** 2 / variance, LATE).T.tolist()
    rises, states = np.diff(base, prepend=base[:1]).astype(int).tolist(), range(len(_REACH))
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
    stairs: np.ndarray = np.maximum.accumulate(base.astype(int) + np.array(_REACH)[chosen[::-1]])
    return stairs
