"""Steady Kalman filters of one joint: chains of derivatives driven by white noise, from slow to fast.

A chain is a position and its derivatives; the last one is the integral of white noise. The two kinds of motion that robots
make ask for two lengths: jerk that jumps (S-curves) for 4 states, smooth motion for 6. How strong the drive is beside the
noise of the positions decides how quick a filter is: its bandwidth w [rad/s], from which on it takes motion for noise, is
w**(2 states) = drive density / noise density. Several filters run side by side; filter_bank.py weighs them.

All of it is the same for every joint, whatever its noise: gains depend on the bandwidth alone, and covariances are in units of
the variance of one position. Simon, Optimal State Estimation, 7.3 (steady filter) and 9.3 (fixed-lag smoothing).

The filters of all joints side by side: a step for each sample, and the motion at an instant out of all of them.

A filter is as good as its drive fits the motion, and its innovations tell how well it does: estimates are weighed by the
likelihood of the latest innovations (Bar-Shalom, Li, Kirubarajan, Estimation with Applications to Tracking and Navigation,
11.6). The innovations that came after an instant correct the estimate for it (Simon, Optimal State Estimation, 9.3).
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from .position_sensor import PositionNoise, find_resolution
from .sample_clock import MEMORY_PERIODS, MEMORY_S, SampleClock

STATES = 6  # of the longest chain: position .. fifth derivative
ORDERS = 4  # of them that are given out: position, velocity, acceleration, jerk
SHOWN = 5  # of them that are smoothed: snap carries the jerk from a sample to the instant asked for
REFERENCE = 0.002  # s; noise of variance 1 on positions at this distance has the density 1 * REFERENCE
BANK = ((4, 60.0), (4, 100.0), (4, 160.0), (4, 260.0),
        (6, 16.0), (6, 27.0), (6, 45.0), (6, 75.0), (6, 125.0), (6, 210.0))  # states, bandwidth
_MAX_BANDWIDTH_PERIOD = 1.5  # bandwidth times period: beyond it a filter sees single samples
_MIN_VARIANCE_RATIO = 1e-6  # of a variance: what is left of it after smoothing is not less
_DOUBLINGS = 40
_RICCATI_TOLERANCE = 1e-13
_MIN_PERIOD_S = 1e-5  # s; gains of shorter distances are those of this one
_NUMBER = np.arange(STATES)
_FIRST = np.eye(STATES)[0]
_LATER = np.maximum(_NUMBER - _NUMBER[:, None], 0)  # how many derivatives column k is from row i
_TAYLOR = np.array([[1.0 / math.factorial(k - i) if k >= i else 0.0 for k in _NUMBER] for i in _NUMBER])
_HAS = np.array([states for states, _ in BANK])[:, None] > _NUMBER  # (m, 6): which states a chain has
_HAS_BOTH = _HAS[:, :, None] & _HAS[:, None, :]


def transition(step: float) -> np.ndarray:
    """The chain over some time [s]: state(t + step) = transition @ state(t), (6, 6)."""
    return _TAYLOR * np.power(step, _NUMBER)[_LATER]


class Gains(NamedTuple):
    """Steady gains of the m chains, for samples at one distance.

    K         : (6, m, 1) correction of the newest state by its innovation
    S         : (m, 1) variance of an innovation
    log_S     : (m, 1) logarithm of S
    P         : (m, 6, 6) covariance of the state predicted for a sample
    known     : (m, 6, 6) covariance of the state with the sample, with 1 / bandwidth for the unit of time
    weights   : (m, 5, lags) correction of the state at a sample, by the innovations of that sample and of each after it
    variance  : (lags, 4, m) variance of that state when so many innovations have come in
    """

    K: np.ndarray
    S: np.ndarray
    log_S: np.ndarray
    P: np.ndarray
    known: np.ndarray
    weights: np.ndarray
    variance: np.ndarray


def bandwidths(period: float) -> np.ndarray:
    """Return the bandwidths (m,) [rad/s] of the chains for samples at this distance [s]."""
    return np.minimum([width for _, width in BANK], _MAX_BANDWIDTH_PERIOD / period)


@functools.lru_cache(maxsize=256)
def steady_gains(period: float, lags: int) -> Gains:
    """Return the gains for samples at this distance [s]; a state is corrected by the innovations of up to `lags` samples."""
    width = bandwidths(period)
    F, Q = _step(width, period)
    P = _riccati(F, Q)
    S = P[:, 0, 0] + 1.0
    K = P[:, :, 0] / S[:, None]
    onward = np.swapaxes(F - (F @ K[:, :, None]) * _FIRST, 1, 2)  # error of one prediction to the next, transposed
    back, weights = np.eye(STATES)[:, :1] / S[:, None, None], np.empty((len(P), STATES, lags))
    for k in range(lags):
        weights[:, :, k] = (P @ back)[:, :, 0]
        back = onward @ back
    gained = np.cumsum(weights[:, :ORDERS] ** 2 * S[:, None, None], axis=2)
    before = np.diagonal(P, axis1=1, axis2=2)[:, :ORDERS, None]
    unit = width[:, None] ** _NUMBER
    variance = np.maximum(before - gained, _MIN_VARIANCE_RATIO * before) * unit[:, :ORDERS, None] ** 2
    return Gains(np.ascontiguousarray((K * unit).T)[..., None], S[:, None], np.log(S)[:, None],
                 P * unit[:, :, None] * unit[:, None, :], P - K[:, :, None] * P[:, None, 0],
                 weights[:, :SHOWN] * unit[:, :SHOWN, None], np.ascontiguousarray(variance.T))


def gains_after_step(known: np.ndarray, period: float, step: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return K, S, log S and `known`, as Gains has them, of a sample this step after one with the covariance `known`.

    One step of the Riccati equation: whatever the steps before were, the gain is that of a Kalman filter for them."""
    F, Q = _drive(period, step)
    P = F @ known @ np.swapaxes(F, 1, 2) + Q
    S = P[:, 0, 0] + 1.0
    gain = P[:, :, 0] / S[:, None]
    known = P - gain[:, :, None] * P[:, None, 0]
    K = gain * bandwidths(period)[:, None] ** _NUMBER
    return K.T[..., None], S[:, None], np.log(S)[:, None], 0.5 * (known + np.swapaxes(known, 1, 2))


@functools.lru_cache(maxsize=1024)
def _drive(period: float, step: float) -> tuple[np.ndarray, np.ndarray]:
    return _step(bandwidths(period), step)


def on_grid(seconds: float, ratio: float) -> float:
    """Return the nearest power of a ratio [s]: gains of distances that differ by less than that are computed once."""
    return float(ratio ** round(math.log(max(seconds, _MIN_PERIOD_S)) / math.log(ratio)))


def _step(width: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Transition and covariance of the drive over some time [s], (m, 6, 6) each, with 1 / width for the unit of time:
    every number is near one then."""
    x = (width * step)[:, None, None]
    F = np.where(_HAS_BOTH, _TAYLOR * x**_LATER, 0.0)
    left = np.where(_HAS, _HAS.sum(axis=1)[:, None] - 1 - _NUMBER, 0)  # derivatives from a state to the last one
    both = left[:, :, None] + left[:, None, :] + 1
    factorial = np.array([math.factorial(k) for k in range(STATES)])[left]
    Q = np.where(_HAS_BOTH, x**both / (both * factorial[:, :, None] * factorial[:, None, :]), 0.0)
    return F, Q * (width * REFERENCE)[:, None, None]


def _riccati(F: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """P = F (P - P h h' P / (1 + h' P h)) F' + Q with h = (1, 0, ...), by doubling: each step covers twice the time.

    Anderson and Moore, Optimal Filtering, 6.7.
    """
    A, P, G = np.swapaxes(F, 1, 2), Q, np.zeros_like(Q)
    G[:, 0, 0] = 1.0
    for _ in range(_DOUBLINGS):
        D = np.linalg.inv(np.eye(STATES) + G @ P)
        A, G, grown = A @ D @ A, G + A @ D @ G @ np.swapaxes(A, 1, 2), np.swapaxes(A, 1, 2) @ P @ D @ A
        P = P + grown
        if np.abs(grown).max() <= _RICCATI_TOLERANCE * np.abs(P).max():
            break
    return 0.5 * (P + np.swapaxes(P, 1, 2))


QUICKEST = max(range(len(BANK)), key=lambda m: BANK[m][1])  # follows any motion: its innovations are noise
MIDDLE = 2  # of the bank: neither lags nor trembles much
FORGETTING_TIME_S, FORGETTING_PERIODS = 0.06, 10  # s, and at least so many samples: older innovations count less than 1 / e
LATER_S = 0.04  # s; innovations later than that after an instant say nothing about the motion at it
PRIOR_LOG_ODDS = 2.0 * np.log([[width] for _, width in BANK])  # of equally likely filters the more sluggish one is right
_CALIBRATION_S, _CALIBRATION_SAMPLES = 0.032, 4  # s, and at least so many samples, between two corrections that are compared
_SETTLED_S = 0.15  # s; samples that come later change an estimate little
_INITIAL_SCALE, _LEAST_SCALE, _LARGEST_SCALE = 1.5, 0.6, 6.0
_SHARE_OUTSIDE = 0.046  # of the errors are beyond two standard deviations
_SCALE_STEP = 0.15  # by which the logarithm of the scale grows; it falls by so much less that both are in balance
_CLIP = 9.0  # of a squared innovation over its variance: what is further off is no more unlikely
_OUTLIER = 100.0  # of a squared innovation over its variance: a single position so far off is left out,
_CALM = 10  # if it is the only one in so many samples
_SURPRISING = 4.0  # of that square: what is further off was no motion of the kind that deviations are claimed for
_SURPRISED = 0.15  # s; in which the deviations that follow such an innovation fall by e
_FOUND = 6.0  # over a filter's bandwidth: until the errors of its first state are smaller than those that it claims
_DISAGREEMENT = 2.0  # of the variance between filters counts: they are all wrong to the same side, at times
_SETTLING = 12.0  # over the quickest filter's bandwidth: until it has found the motion
_KEPT, _SPACE = 8, 128  # samples kept beside those that may be asked for, and room to grow before they are moved to the front
_EVEN = 0.2  # of the period: steps that differ by less have the gains of the period
_PERIODS, _STEPS, _LONGEST = 1.01, 1.1, 1.4  # ratios of the periods, uneven steps and longest steps with gains of their own
_CONVERGED = 0.3  # of each covariance: those that differ by less from the steady ones are these
_MOST_LOST = 64  # samples that are passed over at once
_UNSURE = 2.0  # standard deviations of a velocity, for which its product with an error of time counts
_SHIFT = np.eye(ORDERS, SHOWN, 1)  # error of the motion by one of the time: each order by the next
_AT = 1e-6  # s; nearer to a sample, the motion is linear in time
_SAME = 1e-8  # s; steps that differ by less are the same


_BLOCK, _LATER_BLOCKS = 16, 48  # samples from which noise and clock are learnt, first and later
_SEARCHED = 4  # blocks in which a resolution is looked for, each time that so many have come,
_SELDOM = 64  # until so many looks were in vain: then rarely


class Estimate(NamedTuple):
    """motion: q, qd, qdd, qddd of the joints at an instant, (4, n). deviation: their standard deviations, (4, n)."""

    motion: np.ndarray
    deviation: np.ndarray


class Sample(NamedTuple):
    """Position, predicted velocity, and innovation of the quickest filter, (n,) each."""

    position: np.ndarray
    velocity: np.ndarray
    innovation: np.ndarray


def negative_log_likelihood(square: np.ndarray, log_variance: np.ndarray) -> np.ndarray:
    """Return the negative log-likelihood of an innovation; square: squared, over its variance. Far off it is clipped."""
    return 0.5 * (square / (1.0 + square / _CLIP) + log_variance)


def _moved_on(motion: np.ndarray, ahead: float) -> np.ndarray:
    """Return a motion (5, n) a time [s] later, (4, n)."""
    if abs(ahead) < _AT:
        return motion[:ORDERS] + ahead * motion[1:]
    moved: np.ndarray = transition(ahead)[:ORDERS, :SHOWN] @ motion
    return moved


class DeviationCalibration:
    """Factors of the standard deviations, learnt from how far later samples move what was estimated without them.

    Filters take the derivatives of motion for white noise. Real motion is smoother most of the time, and jumps now and then:
    filters claim too much or too little. Each joint's standard deviations are multiplied by a scale, which grows when a
    correction is beyond two of them and falls when it is not, until 95 % are inside. No distribution is assumed (adaptive
    conformal inference under distribution shift, Gibbs and Candes, NeurIPS 2021, with the logarithm of the scale).

    scale : (4, n) factors of the standard deviations of position, velocity, acceleration and jerk
    """

    def __init__(self, joints: int):
        self.scale = np.full((4, joints), _INITIAL_SCALE)

    def update(self, corrected: np.ndarray, claimed: np.ndarray, moving: np.ndarray) -> None:
        """Add how much later samples moved estimates (4, n) with such deviations; joints at rest (n,) are left out."""
        outside = np.abs(corrected) > 2.0 * self.scale * claimed
        grown = self.scale * np.exp(_SCALE_STEP * (outside - _SHARE_OUTSIDE))
        self.scale = np.where(moving, np.minimum(np.maximum(grown, _LEAST_SCALE), _LARGEST_SCALE), self.scale)


class FilterBank:
    """Bank of m Kalman filters for each of n joints, weighted by the likelihood of their innovations.

    Gains are those of the steps between the samples: no sequence of steps makes a filter unstable.

    settled  : time since which the quickest filter follows the motion [s], inf: not yet
    outliers : positions left out
    expected : variance of the quickest filter's innovations, for positions of variance 1
    """

    def __init__(self, time: float, q: np.ndarray, qd: np.ndarray, noise: PositionNoise, calibration: DeviationCalibration,
                 period: float, lag: float):
        """Start at the first sample and the speed there, with a period, for instants up to `lag` back [s]."""
        m, n = len(BANK), len(q)
        self.settled, self.outliers = math.inf, 0
        self._calibration, self._compared = calibration, q
        self._noise, self._variance = noise, noise.variance(np.zeros(n))
        self._x = np.zeros((STATES, m, n))  # of the last sample
        self._x[0], self._x[1] = q[None], qd[None]
        self._likelihood, self._calm = np.zeros((m, n)), np.zeros(n)
        self._likelihoods = np.zeros((1, m, n))  # of each sample
        self._surprise = np.zeros((m, n))  # largest squared innovation lately, over _SURPRISING times its variance
        self._mean_square = np.ones((m, n))  # of innovations lately, over their variance; smaller ones count as 1
        self._begun = time
        self._longest = 0.0  # longest step lately [s]
        self._count = self._end = self._room = 1
        self._times, self._positions = [time], q[None].copy()
        self._uneven = -1  # number of the last sample after an uneven step
        self._filtered, self._innovations = np.zeros((1, m, SHOWN, n)), np.zeros((m, 1, n))
        self._filtered[0] = self._x[:SHOWN].swapaxes(0, 1)
        self.tune(period, lag)

    def tune(self, period: float, lag: float) -> None:
        """Get the gains for samples at this distance, and instants up to `lag` back [s]."""
        self.period, self._lag, self._settled_samples = period, lag, math.ceil(max(_SETTLED_S / period, 1.0))
        self._calibration_samples = max(round(_CALIBRATION_S / period), _CALIBRATION_SAMPLES)
        self._grid = on_grid(period, _PERIODS)
        self._lags = self._samples_within(lag, period)
        gains = self._gains = steady_gains(self._grid, self._lags)
        one, self._even = np.ones(self._x.shape[2]), transition(period)
        self._steady = gains.K * one, gains.S * one, gains.log_S * one  # for all joints: faster
        memory = max(MEMORY_S, MEMORY_PERIODS * period)
        self._rates = np.diag(np.arange(ORDERS + 1.0))[:ORDERS]
        self._rates[2:, 1] += 1.0 / memory, 1.0 / memory**2
        self._later = max(round(LATER_S / period), 1)
        self._forgetting = max(FORGETTING_TIME_S, FORGETTING_PERIODS * period)
        self._width = bandwidths(period)
        self._settling = math.ceil(_SETTLING / min(BANK[QUICKEST][1] * period, 1.0))
        self.expected = float(self._gains.S[QUICKEST, 0])
        self._uneven, self._known = -1, self._gains.known

    @staticmethod
    def _samples_within(lag: float, period: float) -> int:
        return math.ceil(max(lag, _SETTLED_S) / period) + 3

    @property
    def states(self) -> np.ndarray:
        """(6, m, n) of all filters at the last sample."""
        return self._x

    def begin_with(self, states: np.ndarray) -> None:
        """Set the states (6, m, n) at the first sample."""
        self._x, self._filtered[0] = states.copy(), states[:SHOWN].swapaxes(0, 1)

    def shift(self, step: float) -> None:
        """Shift the times of all samples by a step of the clock [s]."""
        self._times = [time + step for time in self._times]
        self.settled += step
        self._begun += step

    def misfit(self, time: float, q: np.ndarray) -> float:
        """Return the sum of squared errors over variances of q (n,), if it is of that time; 0.25 periods count as 1."""
        position, velocity = transition(time - self._times[self._end - 1])[:2] @ self._x[:, MIDDLE]
        variance = self._variance * self._gains.S[MIDDLE] + (0.25 * self.period * velocity) ** 2
        return float(np.minimum((q - position) ** 2 / variance, 25.0).sum())

    def take(self, time: float, steps: int, q: np.ndarray) -> Sample:
        """Add the positions q (n,) of a sample so many periods after the last one."""
        steps = min(steps, _MOST_LOST)
        if self._end + steps > self._room:
            self._make_room(steps)
        step = time - self._times[self._end - 1]
        if steps > 1:
            self._pass_over(step / steps, steps - 1)
        (K, S, log_S), end = self._gains_after(step), self._end
        x = self._moved(step)
        innovation = q - x[0]
        self._variance = variance = self._noise.variance(x[1, MIDDLE])
        square = innovation * innovation
        square /= S * variance
        if self.settled < time and (square[QUICKEST] > _OUTLIER).any():
            innovation, square = self._without_outliers(innovation, square)
        kept = math.exp(-step / self._forgetting)
        self._likelihood *= kept
        self._likelihood -= negative_log_likelihood(square, log_S)
        self._innovations[:, end], self._positions[end] = innovation, q
        self._likelihoods[end] = self._likelihood
        self._mean_square *= kept
        self._mean_square += (1.0 - kept) * np.maximum(square, 1.0)
        self._surprise *= math.exp(-2.0 * step / _SURPRISED)
        np.maximum(self._surprise, square * (1.0 / _SURPRISING), out=self._surprise)
        self._longest = max(step, self._longest * math.exp(-step / _SURPRISED))
        self._times.append(time)
        self._end, self._count = end + 1, self._count + 1
        if self.settled == math.inf and self._count >= self._settling:
            self.settled = time
        velocity = x[1, MIDDLE].copy()
        x += innovation * K
        self._x, self._filtered[end] = x, x[:SHOWN].swapaxes(0, 1)
        if not self._count % self._calibration_samples:
            place = end - self._settled_samples
            if place > 0 and self.settled < self._times[place]:
                self._calibrate(place)
        return Sample(self._positions[end], velocity, self._innovations[QUICKEST, end])

    def at(self, time: float, phase_std: float = 0.0, rate_std: float = 0.0) -> Estimate:
        """Return the motion at an instant that is not before the lag.

        phase_std : standard deviation of the error that all times have in common [s]
        rate_std  : standard deviation of the rate of all times, as a share of it
        """
        place = self._place(time)
        motion, deviation = self._mixed(place, self._end)
        deviation *= self._calibration.scale
        ahead = time - self._times[place]
        if abs(ahead) > _AT:
            deviation[:-1] += abs(ahead) * deviation[1:]
        if phase_std or rate_std:
            size = np.abs(motion)
            size[:ORDERS] += _UNSURE * deviation
            deviation += (phase_std * _SHIFT + rate_std * self._rates) @ size
        return Estimate(_moved_on(motion, ahead), deviation)

    def _mixed(self, place: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the motion (5, n) at a sample by the innovations up to another, and its standard deviations (4, n)."""
        each, weights = self._weighted(place, end)
        squared = np.maximum(self._surprise, self._mean_square)
        squared *= weights
        squared *= weights
        age = self._times[end - 1] - self._begun
        if age < _FOUND / self._width.min():
            squared *= np.maximum(_FOUND / (self._width * max(age, self.period))[:, None], 1.0) ** 4
        claimed = self._claimed(end - place) @ squared
        claimed *= self._variance
        middle = each[MIDDLE].copy()
        each -= middle
        weighted = each * weights[:, None]
        away = np.add.reduce(weighted)
        weighted *= each  # filters that disagree
        claimed += _DISAGREEMENT * np.maximum(np.add.reduce(weighted) - away * away, 0.0)[:ORDERS]
        return middle + away, np.sqrt(claimed)

    def _weighted(self, place: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the motion (m, 5, n) of the filters at a sample by the innovations up to another, and their weights."""
        smoothing = self._gains.weights
        if self._uneven > place:  # the correction is an integral over time; a lost sample adds nothing to it
            since = (np.array(self._times[place:end]) - self._times[place]) / self.period
            places = np.minimum(np.rint(since[1:]).astype(int), self._lags - 1)
            steps = np.diff(since)
            smoothing = smoothing[:, :, places] * np.minimum(steps, 1.0 / steps)
        else:
            smoothing = smoothing[:, :, 1:end - place]
        each = smoothing @ self._innovations[:, place + 1:end]
        each += self._filtered[place]
        weights = self._likelihoods[min(place + self._later, end - 1)] - PRIOR_LOG_ODDS
        weights -= np.maximum.reduce(weights)
        np.exp(weights, out=weights)
        weights /= np.add.reduce(weights)
        return each, weights

    def _claimed(self, later: int) -> np.ndarray:
        """Return the variance (4, m) of a state by the innovations of so many samples: those of the longest step lately."""
        if self._longest <= (1.0 + _EVEN) * self.period:
            return self._gains.variance[later - 1]
        step = on_grid(self._longest, _LONGEST)
        variance = steady_gains(step, self._samples_within(self._lag, step)).variance
        return variance[min(max(int(later * self.period / step), 1), len(variance)) - 1]

    def smoothed(self, time: float, phase_std: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the motion at an instant, its noise and the disagreement of the filters, (4, n) each, for later innovations.

        The noise is the mean of the standard deviations that the filters have if their drives fit the motion; the disagreement
        is the mean distance of their estimates, which shows where the drives do not fit. Unlike the deviation of `at`, neither
        multiplies with an innovation. phase_std: standard deviation of the error that all times have in common [s].
        """
        place = self._place(time)
        each, weights = self._weighted(place, self._end)
        weights = weights[:, None]
        motion = (each * weights).sum(axis=0)
        noise = np.sqrt(self._gains.variance[self._end - place - 1]) @ weights[:, 0] * np.sqrt(self._variance)
        disagreement = (np.abs(each[:, :ORDERS] - motion[:ORDERS]) * weights).sum(axis=0)
        if phase_std > _AT:
            noise = np.hypot(noise, phase_std * motion[1:])
        ahead = time - self._times[place]
        shown = _moved_on(motion, ahead)
        return shown, noise, disagreement

    def _calibrate(self, place: int) -> None:
        """Compare the motion at a sample, as estimated when it was the newest one, with the estimate by later samples."""
        (early, claimed), (late, _) = self._mixed(place, place + 1), self._mixed(place, self._end)
        position = self._positions[place]
        self._calibration.update(late[:ORDERS] - early[:ORDERS], claimed, position != self._compared)
        self._compared = position.copy()

    def _moved(self, step: float) -> np.ndarray:
        """Return the states (6, m, n) after a time [s]."""
        F = self._even if abs(step - self.period) < _SAME else transition(step)
        return (F @ self._x.reshape(STATES, -1)).reshape(self._x.shape)

    def _place(self, time: float) -> int:
        """Return the number of the sample next to an instant."""
        last, times = self._end - 1, self._times
        first = max(0, last + 1 - self._lags)
        place = min(max(last - round((times[last] - time) / self.period), first), last)
        while place < last and times[place + 1] - time <= time - times[place]:
            place += 1
        while place > first and time - times[place - 1] < times[place] - time:
            place -= 1
        return place

    def _without_outliers(self, innovation: np.ndarray, square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Leave out single positions that no motion explains."""
        far = (square[QUICKEST] > _OUTLIER) & (self._calm < self._count) & self._noise.known
        self._calm = np.where(far, self._count + _CALM, self._calm)
        self.outliers += int(far.sum())
        return np.where(far, 0.0, innovation), np.where(far, 0.0, square)

    def _gains_after(self, step: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return K, S and log S of a sample, this time after the last one [s]: the steady ones only where steps are even."""
        steady, even = self._gains, abs(step - self.period) <= _EVEN * self.period
        if even and self._known is steady.known:
            return self._steady
        K, S, log_S, known = gains_after_step(self._known, self._grid, on_grid(step, _STEPS))
        if even and (np.abs(known - steady.known) <= _CONVERGED * np.abs(steady.known)).all():
            known = steady.known
        self._known = known
        if not even:
            self._uneven = self._end
        return K, S, log_S

    def _pass_over(self, step: float, lost: int) -> None:
        """Predict lost samples."""
        last = self._times[self._end - 1]
        for k in range(1, lost + 1):
            end = self._end
            self._filtered[end], self._innovations[:, end] = self._moved(k * step)[:SHOWN].swapaxes(0, 1), 0.0
            self._positions[end], self._likelihoods[end] = self._positions[end - 1], self._likelihood
            self._times.append(last + k * step)
            self._end = end + 1

    def _make_room(self, steps: int) -> None:
        """Move what is still needed to the front of longer histories."""
        kept = slice(max(0, self._end - self._lags - _KEPT), self._end)
        count = kept.stop - kept.start
        self._room = count + _SPACE + steps

        def longer(history: np.ndarray, axis: int = 0) -> np.ndarray:
            shape = list(history.shape)
            shape[axis] = self._room
            made = np.empty(shape)
            at = (slice(None),) * axis
            made[(*at, slice(0, count))] = history[(*at, kept)]
            return made

        self._times, self._end = self._times[kept], count
        self._uneven -= kept.start
        self._positions, self._filtered = longer(self._positions), longer(self._filtered)
        self._likelihoods, self._innovations = longer(self._likelihoods), longer(self._innovations, 1)


class SensorLearning:
    """Learns noise, clock and encoder steps from the samples that filters took, a few at a time.

    noise   : what is known of the positions
    learned : whether anything was learnt since it began anew
    """

    def __init__(self, noise: PositionNoise):
        self.noise = noise
        self._looks = 0
        self._positions: list[np.ndarray] = []
        self.begin()

    def begin(self) -> None:
        """Samples to come do not follow those before. What is known of noise stays."""
        self.learned = False
        self._blocks = 0
        self._block: list[tuple] = []

    def update(self, filters: FilterBank, sample: Sample, deviation: float = 0.0, taken: float = 0.0,
            clock: SampleClock | None = None) -> None:
        """A sample, one period after the last one. deviation, taken: of its stamp, and what of that the clock took off."""
        self._block.append((deviation, taken, *sample))
        if len(self._block) == (_LATER_BLOCKS if self._blocks > _SEARCHED else _BLOCK):
            self._learn(filters, clock)

    def _learn(self, filters: FilterBank, clock: SampleClock | None) -> None:
        deviation, taken, position, velocity, innovation = map(np.array, zip(*self._block))
        expected = filters.expected
        moving = np.diff(position, axis=0, prepend=position[:1]) != 0.0
        if clock:
            clock.learn(deviation, taken, velocity, innovation, expected * self.noise.variance(velocity))
        self.noise.learn(filters.period, velocity, innovation * innovation / expected, moving)
        self._block.clear()
        self._blocks += 1
        self.learned = True
        self._search(position, moving)

    def _search(self, position: np.ndarray, moving: np.ndarray) -> None:
        """Look for the resolutions that are not known yet, in the latest positions."""
        unknown = self.noise.resolution == 0.0
        if not moving[:, unknown].any():
            return
        self._positions.append(position)
        if len(self._positions) == _SEARCHED:
            self._looks += 1
            if self._looks < _SELDOM or self._looks % _SELDOM == 0:
                self.noise.resolved(find_resolution(np.concatenate(self._positions)))
            self._positions.clear()
