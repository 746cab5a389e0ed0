"""Kalman filters of joint motion: a bank of integrator chains, weighted by likelihood, with smoothing at a fixed lag.

A chain is a position and its derivatives; the highest derivative is the integral of white noise. Jerk that jumps (S-curves)
needs 4 states, smooth motion 6. The bandwidth w [rad/s], above which a filter treats motion as noise, follows from the
densities of drive and position noise: w^(2 states) = drive density / noise density. All joints share the same steady gains:
gains depend on the bandwidth alone, and covariances are in units of the variance of one position.

The filters of a bank differ in order and bandwidth. Their estimates are weighted by the likelihood of their recent innovations
(Bar-Shalom, Li, Kirubarajan, Estimation with Applications to Tracking and Navigation, 11.6). Innovations after an instant
correct the estimate at that instant (Simon, Optimal State Estimation, 7.3 for steady gains, 9.3 for fixed-lag smoothing).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .position_sensor import PositionNoise, find_resolution
from .reading_times import MEMORY_PERIODS, MEMORY_S, SampleClock

STATES = 6  # states of the longest chain: position to fifth derivative
ORDERS = 4  # states that are returned: position, velocity, acceleration, jerk
SMOOTHED_STATES = 5  # states that are smoothed; snap carries the jerk from a sample to the instant of the estimate


@dataclass(frozen=True)
class FilterBankOptions:
    """Tuning of filters, weights, smoothing, calibration and sensor learning."""

    reference_period_s: float = 0.002  # sampling period at which position noise of variance 1 has this density [s]
    max_bandwidth_period: float = 1.5  # bandwidth times period above which a filter follows single samples
    min_variance_ratio: float = 1e-6  # smallest variance after smoothing, over that before it
    max_doublings: int = 40  # largest number of doubling steps of the Riccati equation
    riccati_tolerance: float = 1e-13  # relative change at which the doubling ends
    min_period_s: float = 1e-5  # shorter periods use the gains of this one [s]
    reference_filter: int = 2  # number of a filter of BANK with little lag and little noise
    forgetting_time_s: float = 0.06  # memory of the likelihood: this time [s]
    forgetting_periods: int = 10  # and at least this many samples
    weight_delay_s: float = 0.04  # innovations later than this after an instant do not change the weights at it [s]
    smoothing_delays: tuple[int, ...] = (2, 3, 4)  # later instants, in delays, at which a filter of a recording must fit
    # while fewer of its time constants are over: smoothing uses the innovations until then
    smoothing_time_constants: float = 3.0
    min_log_likelihood_gap: float = 6.0  # log-likelihood by which a filter fits clearly worse: less is chance
    calibration_s: float = 0.032  # time between two calibrations [s]
    calibration_samples: int = 4  # and at least so many samples
    settled_s: float = 0.15  # time after which later samples change an estimate little [s]
    initial_scale: float = 1.5  # of the standard deviations
    min_scale: float = 0.6
    max_scale: float = 6.0
    share_outside: float = 0.046  # share of normal errors beyond two standard deviations
    scale_step: float = 0.15  # growth of the logarithm of the scale; it shrinks by share_outside times this
    likelihood_saturation: float = 9.0  # squared normalized innovation at which the likelihood saturates
    velocity_noise_square: float = 9.0  # squared normalized velocity below which a velocity is noise
    noiseless_square: float = 1e-3  # squared normalized innovation below which a position contains no noise
    outlier_square: float = 100.0  # squared normalized innovation above which a single position is an outlier,
    outlier_spacing: int = 10  # if it is the only one in this many samples
    # squared normalized innovation above which the motion is not of the kind the covariance assumes
    surprising_square: float = 4.0
    surprise_memory_s: float = 0.15  # time constant of the larger deviations after such an innovation [s]
    # time until the error of the initial state is within its covariance, times the bandwidth
    start_time_constants: float = 6.0
    disagreement_weight: float = 2.0  # weight of the variance between filters: at times all err to the same side
    settling_time_constants: float = 12.0  # time until the fastest filter follows the motion, times its bandwidth
    max_lags: int = 8192  # samples within the lag at most: more, of stamps microseconds apart, would take long to tune for
    extra_samples: int = 8  # samples that are stored beyond the lag
    free_samples: int = 128  # free space before the history is moved to the front
    max_uneven_share: float = 0.2  # relative deviation from the period below which steps use the steady gains
    period_grid: float = 1.01  # ratio of neighbouring periods that have their own gains,
    step_grid: float = 1.1  # of uneven steps,
    longest_step_grid: float = 1.4  # of longest steps
    converged_difference: float = 0.1  # relative difference of covariances below which the filter counts as steady
    max_lost_samples: int = 64  # largest number of lost samples that are predicted one by one
    time_error_stds: float = 2.0  # standard deviations added to a derivative that is multiplied with a time error
    linear_time_s: float = 1e-6  # time differences below this are linearized [s]
    equal_step_s: float = 1e-8  # steps that differ by less are equal [s]
    block_samples: int = 16  # samples per update of noise and clock, for the first blocks
    later_block_samples: int = 48  # and for later ones
    blocks_per_search: int = 4  # blocks per search for the encoder resolution
    rare_search_after: int = 64  # searches without success after which only every so many-th set of blocks is searched


OPTIONS = FilterBankOptions()

# Number of states and bandwidth [rad/s] of each filter
BANK = ((4, 60.0), (4, 100.0), (4, 160.0), (4, 260.0),
        (6, 16.0), (6, 27.0), (6, 45.0), (6, 75.0), (6, 125.0), (6, 210.0))
_NUMBER = np.arange(STATES)
_FIRST = np.eye(STATES)[0]
_LATER = np.maximum(_NUMBER - _NUMBER[:, None], 0)  # order of the derivative from row i to column k
_TAYLOR = np.array([[1.0 / math.factorial(k - i) if k >= i else 0.0 for k in _NUMBER] for i in _NUMBER])
_HAS = np.array([states for states, _ in BANK])[:, None] > _NUMBER  # (m, 6): which states each chain has
_HAS_BOTH = _HAS[:, :, None] & _HAS[:, None, :]


def transition(step: float) -> np.ndarray:
    """Return the transition matrix (6, 6) of a chain over a step [s]: state(t + step) = transition @ state(t)."""
    return _TAYLOR * np.power(step, _NUMBER)[_LATER]


class FilterGains(NamedTuple):
    """Steady gains of the m chains for samples at one period.

    K         : (6, m, 1) gain of the newest state
    S         : (m, 1) variance of an innovation
    log_S     : (m, 1) logarithm of S
    P         : (m, 6, 6) covariance of the predicted state
    known     : (m, 6, 6) covariance of the updated state, with 1 / bandwidth as the unit of time
    weights   : (m, 5, lags) smoothing gain of the state at a sample for the innovations of that sample and of each
                later one
    variance  : (lags, 4, m) variance of that state after so many innovations
    """

    K: np.ndarray
    S: np.ndarray
    log_S: np.ndarray
    P: np.ndarray
    known: np.ndarray
    weights: np.ndarray
    variance: np.ndarray


def bandwidths(period: float) -> np.ndarray:
    """Return the bandwidths (m,) [rad/s] of the chains for samples at a period [s]."""
    return np.minimum([width for _, width in BANK], OPTIONS.max_bandwidth_period / period)


@functools.lru_cache(maxsize=256)
def steady_gains(period: float, lags: int) -> FilterGains:
    """Return the steady gains for samples at a period [s], with smoothing by the innovations of up to `lags` samples."""
    width = bandwidths(period)
    F, Q = _discretize(width, period)
    P = _riccati(F, Q)
    S = P[:, 0, 0] + 1.0
    K = P[:, :, 0] / S[:, None]
    error_transition = np.swapaxes(F - (F @ K[:, :, None]) * _FIRST, 1, 2)  # from one prediction error to the next, transposed
    back = np.eye(STATES)[:, :1] / S[:, None, None]
    while back.shape[2] < lags:  # doubles the number of later innovations
        back = np.concatenate((back, error_transition @ back), axis=2)
        error_transition = error_transition @ error_transition
    weights = P @ back[:, :, :lags]
    gained = np.cumsum(weights[:, :ORDERS] ** 2 * S[:, None, None], axis=2)
    before = np.diagonal(P, axis1=1, axis2=2)[:, :ORDERS, None]
    unit = width[:, None] ** _NUMBER
    variance = np.maximum(before - gained, OPTIONS.min_variance_ratio * before) * unit[:, :ORDERS, None] ** 2
    return FilterGains(np.ascontiguousarray((K * unit).T)[..., None], S[:, None], np.log(S)[:, None],
                 P * unit[:, :, None] * unit[:, None, :], P - K[:, :, None] * P[:, None, 0],
                 weights[:, :SMOOTHED_STATES] * unit[:, :SMOOTHED_STATES, None], np.ascontiguousarray(variance.T))


def gains_after_step(known: np.ndarray, period: float, step: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return K, S, log S and `known` of FilterGains for a sample `step` [s] after one with the covariance `known`.

    This is one step of the Riccati equation: the gain is that of a Kalman filter for any sequence of steps.
    """
    F, Q = _cached_discretization(period, step)
    P = F @ known @ np.swapaxes(F, 1, 2) + Q
    S = P[:, 0, 0] + 1.0
    gain = P[:, :, 0] / S[:, None]
    known = P - gain[:, :, None] * P[:, None, 0]
    K = gain * bandwidths(period)[:, None] ** _NUMBER
    return K.T[..., None], S[:, None], np.log(S)[:, None], 0.5 * (known + np.swapaxes(known, 1, 2))


@functools.lru_cache(maxsize=1024)
def _cached_discretization(period: float, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Return transition and drive covariance of the chains for samples at a period, over a step [s]."""
    return _discretize(bandwidths(period), step)


@functools.lru_cache(maxsize=256)
def noise_correlations(period: float) -> np.ndarray:
    """Return the correlations (4, m, m) of the noise of two smoothed chains in each derivative, for samples at a period [s].

    A smoothed chain of s states with bandwidth w is the low-pass filter H = 1 / (1 + (v / w)^(2 s)) for motion of frequency v,
    and the covariance of the k-th derivatives is proportional to the integral of v^(2 k) H1 H2.
    """
    states = np.array([[states] for states, _ in BANK])
    width = bandwidths(period)[:, None] * (OPTIONS.reference_period_s / period) ** (0.5 / states)
    frequency = np.geomspace(0.01 * width.min(), 20.0 * width.max(), 2000)
    passed = 1.0 / (1.0 + (frequency / width) ** (2 * states))
    covariance = np.array([(passed * frequency ** (2 * k + 1)) @ passed.T for k in range(ORDERS)])
    std = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    return covariance / (std[:, :, None] * std[:, None, :])


def round_to_grid(seconds: float, ratio: float) -> float:
    """Return the nearest power of a ratio, so that gains are computed once for nearly equal periods or steps."""
    return float(ratio ** round(math.log(max(seconds, OPTIONS.min_period_s)) / math.log(ratio)))


def _discretize(width: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Return transition and drive covariance over a step [s], (m, 6, 6) each, with 1 / width as the unit of time.

    In this unit all entries are of order one.
    """
    x = (width * step)[:, None, None]
    F = np.where(_HAS_BOTH, _TAYLOR * x**_LATER, 0.0)
    left = np.where(_HAS, _HAS.sum(axis=1)[:, None] - 1 - _NUMBER, 0)  # derivatives from a state to the last one
    both = left[:, :, None] + left[:, None, :] + 1
    factorial = np.array([math.factorial(k) for k in range(STATES)])[left]
    Q = np.where(_HAS_BOTH, x**both / (both * factorial[:, :, None] * factorial[:, None, :]), 0.0)
    return F, Q * (width * OPTIONS.reference_period_s)[:, None, None]


def _riccati(F: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Solve P = F (P - P h h' P / (1 + h' P h)) F' + Q with h = (1, 0, ...) by doubling: each step covers twice the time.

    Anderson and Moore, Optimal Filtering, 6.7.
    """
    A, P, G = np.swapaxes(F, 1, 2), Q, np.zeros_like(Q)
    G[:, 0, 0] = 1.0
    for _ in range(OPTIONS.max_doublings):
        D = np.linalg.inv(np.eye(STATES) + G @ P)
        A, G, grown = A @ D @ A, G + A @ D @ G @ np.swapaxes(A, 1, 2), np.swapaxes(A, 1, 2) @ P @ D @ A
        P = P + grown
        if np.abs(grown).max() <= OPTIONS.riccati_tolerance * np.abs(P).max():
            break
    return 0.5 * (P + np.swapaxes(P, 1, 2))


# Share of the noise in the variance of a smoothed chain, (4, m); the remainder is motion above the bandwidth, if its highest
# derivative is the integral of white noise: ratio of the integrals of v^(2 k) H^2 and v^(2 k) H, see noise_correlations
NOISE_SHARE = np.array([[1.0 - (2 * k + 1) / (2 * states) for states, _ in BANK] for k in range(ORDERS)])
JUMPS = np.array([states for states, _ in BANK]) == min(states for states, _ in BANK)  # chains of jerk that jumps
FASTEST = max(range(len(BANK)), key=lambda m: BANK[m][1])  # follows any motion: its innovations are noise
PRIOR_LOG_ODDS = 2.0 * np.log([[width] for _, width in BANK])  # prior in favour of lower bandwidth, (m, 1)
# Squared factors (4, 4, 5) of the derivatives of a time error e and of a motion x in the k-th derivative of e x' (Leibniz)
_TIME_TERMS = np.array([[[math.comb(k, j) ** 2 * float(i == k + 1 - j) for i in range(SMOOTHED_STATES)] for k in range(ORDERS)]
                        for j in range(ORDERS)])
_SHIFT = np.eye(ORDERS, SMOOTHED_STATES, 1)  # effect of a time error on each derivative: the next one


class MotionEstimate(NamedTuple):
    """Estimated motion at an instant and its standard deviation: q, qd, qdd, qddd, (4, n) each."""

    motion: np.ndarray
    deviation: np.ndarray


class SmoothedState(NamedTuple):
    """Smoothed motion at an instant.

    motion  : (4, n) q, qd, qdd, qddd
    noise   : (4, n) variance by the noise of the positions
    process : (4, n) variance that the filters of smooth motion assume for motion above their bandwidth
    weights : (m, n) weights of the filters, in single precision
    """

    motion: np.ndarray
    noise: np.ndarray
    process: np.ndarray
    weights: np.ndarray


class FilterSample(NamedTuple):
    """Position, predicted velocity and innovation of the fastest filter at a sample, (n,) each."""

    position: np.ndarray
    velocity: np.ndarray
    innovation: np.ndarray


def negative_log_likelihood(square: np.ndarray, log_variance: np.ndarray) -> np.ndarray:
    """Return the negative log-likelihood of an innovation from its squared normalized value.

    Far beyond the saturation the density is that of an outlier of unknown size, proportional to 1 / |innovation| (Jeffreys'
    prior of a scale). An outlier then counts nearly the same for all filters, but a filter that does not follow the motion
    still counts less than one that does, although both are far from their variance, as at the onset of a motion.
    """
    ratio = square / OPTIONS.likelihood_saturation
    return 0.5 * (square / (1.0 + ratio) + 0.5 * np.log1p(ratio * ratio) + log_variance)


def _extrapolate(motion: np.ndarray, ahead: float) -> np.ndarray:
    """Extrapolate a motion (5, n) by a time [s]; returns (4, n)."""
    if abs(ahead) < OPTIONS.linear_time_s:
        return motion[:ORDERS] + ahead * motion[1:]
    moved: np.ndarray = transition(ahead)[:ORDERS, :SMOOTHED_STATES] @ motion
    return moved


class DeviationCalibration:
    """Calibration of the standard deviations by the corrections that later samples bring.

    Filters model the derivatives of motion as white noise. Real motion is smoother most of the time and jumps now and then, so
    the covariance is too large or too small. The standard deviations of each joint are multiplied by a scale that grows when a
    correction exceeds two of them and shrinks when it does not, until 95 % are inside. No distribution is assumed (adaptive
    conformal inference under distribution shift, Gibbs and Candes, NeurIPS 2021, with the logarithm of the scale).

    scale : (4, n) factors of the standard deviations of position, velocity, acceleration and jerk
    """

    def __init__(self, joints: int):
        self.scale = np.full((4, joints), OPTIONS.initial_scale)

    def update(self, corrected: np.ndarray, claimed: np.ndarray, moving: np.ndarray) -> None:
        """Update the scale by corrections (4, n) of estimates.

        claimed: their standard deviations; moving (n,): joints at rest are skipped.
        """
        outside = np.abs(corrected) > 2.0 * self.scale * claimed
        grown = self.scale * np.exp(OPTIONS.scale_step * (outside - OPTIONS.share_outside))
        self.scale = np.where(moving, np.minimum(np.maximum(grown, OPTIONS.min_scale), OPTIONS.max_scale), self.scale)


class FilterBank:
    """Bank of m Kalman filters for each of n joints, weighted by the likelihood of their innovations.

    Gains are those of the actual steps between samples, so that no sequence of steps makes a filter unstable.

    settled  : time since which the fastest filter follows the motion [s]; inf: not yet
    outliers : number of positions that were ignored as outliers
    expected : variance of the fastest filter's innovations for positions of variance 1
    """

    def __init__(self, time: float, q: np.ndarray, qd: np.ndarray, noise: PositionNoise, calibration: DeviationCalibration,
                 period: float, lag: float):
        """Start at the first sample: time [s], q, qd (n,); period [s]; estimates are available up to `lag` back [s].
        """
        m, n = len(BANK), len(q)
        self.settled, self.outliers = math.inf, 0
        self._calibration, self._compared = calibration, q
        self._noise, self._variance = noise, noise.variance(np.zeros(n))
        self._recent_variance = self._variance  # largest variance of the positions in memory: it depends on the velocity
        self._x = np.zeros((STATES, m, n))  # of the last sample
        self._x[0], self._x[1] = q[None], qd[None]
        self._likelihood, self._calm = np.zeros((m, n)), np.zeros(n)
        self._likelihoods = np.zeros((1, m, n))  # of each sample
        self._recent_surprise = np.zeros((m, n))  # recent largest squared innovation, over the surprising one
        self._mean_square = np.ones((m, n))  # recent squared innovations over their variance; smaller ones count as 1
        self._ignored: np.ndarray | None = None  # distance of the last positions from the prediction if they are outliers
        self._begun = time
        self._longest = 0.0  # longest recent step [s]
        self._count = self._end = self._room = 1
        self._times, self._positions = [time], q[None].copy()
        self._uneven = -1  # number of the last sample after an uneven step
        self._filtered, self._innovations = np.zeros((1, m, SMOOTHED_STATES, n)), np.zeros((m, 1, n))
        self._filtered[0] = self._x[:SMOOTHED_STATES].swapaxes(0, 1)
        self.tune(period, lag)

    def tune(self, period: float, lag: float) -> None:
        """Set the gains for a period [s] and for instants up to `lag` back [s], or as far as `max_lags` samples."""
        self.period, self._lag, self._lags = period, lag, self._samples_within(lag, period)
        self._settled_samples = min(math.ceil(max(OPTIONS.settled_s / period, 1.0)), self._lags - 1)
        self._calibration_samples = max(round(OPTIONS.calibration_s / period), OPTIONS.calibration_samples)
        self._grid = round_to_grid(period, OPTIONS.period_grid)
        gains = self._gains = steady_gains(self._grid, self._lags)
        self._correlations = noise_correlations(self._grid)
        one, self._even = np.ones(self._x.shape[2]), transition(period)
        self._steady = gains.K * one, gains.S * one, gains.log_S * one  # for all joints: faster
        memory = max(MEMORY_S, MEMORY_PERIODS * period)
        self._rates = np.diag(np.arange(ORDERS + 1.0))[:ORDERS]
        self._rates[2:, 1] += 1.0 / memory, 1.0 / memory**2
        self._assignment = _SHIFT + self._rates / memory
        self._later = max(round(OPTIONS.weight_delay_s / period), 1)
        self._forgetting = max(OPTIONS.forgetting_time_s, OPTIONS.forgetting_periods * period)
        self._width = bandwidths(period)
        self._settling = math.ceil(OPTIONS.settling_time_constants / min(BANK[FASTEST][1] * period, 1.0))
        self.expected = float(self._gains.S[FASTEST, 0])
        self._uneven, self._known = -1, self._gains.known

    @property
    def velocity_variance(self) -> np.ndarray:
        """Variance (n,) of the predicted velocity in FilterSample by the noise of the positions."""
        variance: np.ndarray = self._gains.P[OPTIONS.reference_filter, 1, 1] * self._variance
        return variance

    @staticmethod
    def _samples_within(lag: float, period: float) -> int:
        return min(math.ceil(max(lag, OPTIONS.settled_s) / period) + 3, OPTIONS.max_lags)

    @property
    def states(self) -> np.ndarray:
        """States (6, m, n) of all filters at the last sample."""
        return self._x

    def set_states(self, states: np.ndarray) -> None:
        """Set the states (6, m, n) at the first sample."""
        self._x, self._filtered[0] = states.copy(), states[:SMOOTHED_STATES].swapaxes(0, 1)

    def shift(self, step: float) -> None:
        """Shift the times of all samples by a step of the clock [s]."""
        self._times = [time + step for time in self._times]
        self.settled += step
        self._begun += step

    def misfit(self, time: float, q: np.ndarray) -> float:
        """Return the sum of squared normalized errors of positions q (n,) if they were taken at a time [s].

        An error of a quarter period of the time adds to the variance.
        """
        position, velocity = transition(time - self._times[self._end - 1])[:2] @ self._x[:, OPTIONS.reference_filter]
        variance = self._variance * self._gains.S[OPTIONS.reference_filter] + (0.25 * self.period * velocity) ** 2
        error = q - position
        return float(np.add.reduce(np.minimum(error * error / variance, 25.0)))

    def add_sample(self, time: float, steps: int, q: np.ndarray) -> FilterSample:
        """Add the positions q (n,) of a sample at a time [s], `steps` periods after the last one."""
        steps = min(steps, OPTIONS.max_lost_samples)
        if self._end + steps > self._room:
            self._make_room(steps)
        step = time - self._times[self._end - 1]
        if steps > 1:
            self._predict_lost(step / steps, steps - 1)
        (K, S, log_S), end = self._gains_after(step), self._end
        x = self._predict(step)
        innovation = q - x[0]
        self._variance = variance = self._noise.variance(x[1, OPTIONS.reference_filter])
        square = innovation * innovation
        square /= S * variance
        self._ignored = None
        if self.settled < time and np.maximum.reduce(square[FASTEST], initial=0.0) > OPTIONS.outlier_square:
            innovation, square = self._remove_outliers(innovation, square)
        kept = math.exp(-step / self._forgetting)
        self._recent_variance = np.maximum(variance, kept * self._recent_variance)
        self._likelihood *= kept
        # an encoder at rest repeats its position: that the innovations vanish is no evidence for slow filters
        self._likelihood -= negative_log_likelihood(square, log_S) * (np.maximum.reduce(square) > OPTIONS.noiseless_square)
        self._innovations[:, end], self._positions[end] = innovation, q
        self._likelihoods[end] = self._likelihood
        self._mean_square *= kept
        self._mean_square += (1.0 - kept) * np.maximum(square, 1.0)
        self._recent_surprise *= math.exp(-2.0 * step / OPTIONS.surprise_memory_s)
        np.maximum(self._recent_surprise, square * (1.0 / OPTIONS.surprising_square), out=self._recent_surprise)
        self._longest = max(step, self._longest * math.exp(-step / OPTIONS.surprise_memory_s))
        self._times.append(time)
        self._end, self._count = end + 1, self._count + 1
        if self.settled == math.inf and self._count >= self._settling:
            self.settled = time
        velocity = x[1, OPTIONS.reference_filter].copy()
        x += innovation * K
        self._x, self._filtered[end] = x, x[:SMOOTHED_STATES].swapaxes(0, 1)
        if not self._count % self._calibration_samples:
            sample = end - self._settled_samples
            if sample > 0 and self.settled < self._times[sample]:
                self._calibrate(sample)
        return FilterSample(self._positions[end], velocity, self._innovations[FASTEST, end])

    def estimate_at(self, time: float, phase_std: float = 0.0, rate_std: float = 0.0,
                    assignment_std: float = 0.0) -> MotionEstimate:
        """Return the motion at an instant within the lag.

        phase_std      : standard deviation of the error common to all sample times [s]
        rate_std       : relative standard deviation of the rate of all sample times
        assignment_std : standard deviation of the part of the stamps' recent deviations that is assigned to the wrong cause;
                         wrong times and wrong filter states have this cause in common, so their deviations add up [s]
        """
        sample = self._nearest_sample(time)
        motion, deviation = self._combine(sample, self._end)
        deviation *= self._calibration.scale
        ahead = time - self._times[sample]
        if abs(ahead) > OPTIONS.linear_time_s:
            deviation[:-1] += abs(ahead) * deviation[1:]
        if self._ignored is not None and time > self._times[self._end - 2]:  # it may be right: the next sample decides
            np.maximum(deviation[0], self._ignored, out=deviation[0])
        if phase_std or rate_std:
            size = np.abs(motion)
            size[:ORDERS] += OPTIONS.time_error_stds * deviation
            deviation = np.hypot(deviation, (phase_std * _SHIFT + rate_std * self._rates) @ size)
            if assignment_std:
                deviation += assignment_std * (self._assignment @ size)
        return MotionEstimate(_extrapolate(motion, ahead), deviation)

    def _combine(self, sample: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the motion (5, n) and its standard deviations (4, n) at a sample, from innovations before sample `end`."""
        each, weights = self._filter_estimates(sample, end)
        squared = np.maximum(self._recent_surprise, self._mean_square)
        squared *= weights
        squared *= weights
        age = self._times[end - 1] - self._begun
        if age < OPTIONS.start_time_constants / self._width.min():
            squared *= np.maximum(OPTIONS.start_time_constants / (self._width * max(age, self.period))[:, None], 1.0) ** 4
        claimed = self._modelled_variance(end - sample) @ squared
        claimed *= self._recent_variance
        middle = each[OPTIONS.reference_filter].copy()
        each -= middle
        weighted = each * weights[:, None]
        away = np.add.reduce(weighted)
        weighted *= each  # filters that disagree
        claimed += OPTIONS.disagreement_weight * np.maximum(np.add.reduce(weighted) - away * away, 0.0)[:ORDERS]
        return middle + away, np.sqrt(claimed)

    def _filter_estimates(self, sample: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Return motion (m, 5, n) and weights (m, n) of the filters at a sample, from innovations before sample `end`."""
        smoothing = self._gains.weights
        if self._uneven > sample:  # smoothing approximates an integral over time: scale gains by the steps, skip lost samples
            since = (np.array(self._times[sample:end]) - self._times[sample]) / self.period
            lags = np.minimum(np.rint(since[1:]).astype(int), self._lags - 1)
            steps = np.diff(since)
            smoothing = smoothing[:, :, lags] * np.minimum(steps, 1.0 / steps)
        else:
            smoothing = smoothing[:, :, 1:end - sample]
        each = smoothing @ self._innovations[:, sample + 1:end]
        each += self._filtered[sample]
        return each, self._weights(min(sample + self._later, end - 1))

    def _weights(self, sample: int) -> np.ndarray:
        """Return the weights (m, n) of the filters by their innovations up to a sample."""
        weights: np.ndarray = np.exp(self._relative_likelihoods(sample))
        weights /= np.add.reduce(weights)
        return weights

    def _smoothing_weights(self, sample: int) -> np.ndarray:
        """Return the weights (m, n) of smoothed estimates at a sample.

        Smoothing of a slow filter uses innovations long after the sample. Its weight is that of the instant at which it fits
        worst, compared with the best filter, among those within the reach of its gains.
        """
        last, lead = self._end - 1, self._later
        worst = self._relative_likelihoods(min(sample + lead, last))
        for later in OPTIONS.smoothing_delays:
            slow = self._width * (later * OPTIONS.weight_delay_s) < OPTIONS.smoothing_time_constants
            there = self._relative_likelihoods(min(sample + later * lead, last))
            worst[slow] = np.minimum(worst[slow], there[slow] + OPTIONS.min_log_likelihood_gap)
        weights: np.ndarray = np.exp(worst - np.maximum.reduce(worst))
        weights /= np.add.reduce(weights)
        return weights

    def _relative_likelihoods(self, sample: int) -> np.ndarray:
        """Return the log-likelihoods (m, n) of the filters up to a sample, less that of the best one."""
        found: np.ndarray = self._likelihoods[sample] - PRIOR_LOG_ODDS
        found -= np.maximum.reduce(found)
        return found

    def _modelled_variance(self, later: int) -> np.ndarray:
        """Return the variance (4, m) of a state after innovations of so many samples, for the longest recent step."""
        if self._longest <= (1.0 + OPTIONS.max_uneven_share) * self.period:
            return self._gains.variance[later - 1]
        step = self._grid * round_to_grid(self._longest / self._grid, OPTIONS.longest_step_grid)
        variance = steady_gains(step, self._samples_within(self._lag, step)).variance
        return variance[min(max(round(later * self._grid / step), 1), len(variance)) - 1]

    def smooth_at(self, time: float, time_stds: np.ndarray) -> SmoothedState:
        """Return the smoothed motion at an instant, with the parts of its variance and the weights of the filters.

        Unlike the deviation of `estimate_at`, the variances are not scaled by innovations.

        time_stds: standard deviations (4,) of the error common to nearby sample times [s] and of its derivatives
        """
        sample = self._nearest_sample(time)
        each, _ = self._filter_estimates(sample, self._end)
        weights = self._smoothing_weights(sample)
        motion = (each * weights[:, None]).sum(axis=0)
        variances = self._gains.variance
        process = (1.0 - NOISE_SHARE) * variances[-1]
        # after few samples, what is not known yet counts as noise
        stds = np.sqrt(variances[self._end - sample - 1] - process)[:, :, None] * weights
        noise = (stds * (self._correlations @ stds)).sum(axis=1) * self._variance
        if time_stds[0] > OPTIONS.linear_time_s:
            noise += np.tensordot(time_stds**2, _TIME_TERMS, 1) @ motion**2
        found = _extrapolate(motion, time - self._times[sample])
        return SmoothedState(found, noise, (process * ~JUMPS) @ weights * self._variance, weights.astype(np.float32))

    def _calibrate(self, sample: int) -> None:
        """Compare the estimate of a sample when it was the newest with the estimate after later samples."""
        (early, claimed), (late, _) = self._combine(sample, sample + 1), self._combine(sample, self._end)
        position = self._positions[sample]
        self._calibration.update(late[:ORDERS] - early[:ORDERS], claimed, position != self._compared)
        self._compared = position.copy()

    def _predict(self, step: float) -> np.ndarray:
        """Return the states (6, m, n) predicted over a time [s]."""
        F = self._even if abs(step - self.period) < OPTIONS.equal_step_s else transition(step)
        return (F @ self._x.reshape(STATES, -1)).reshape(self._x.shape)

    def _nearest_sample(self, time: float) -> int:
        """Return the number of the sample nearest to an instant."""
        last, times = self._end - 1, self._times
        first = max(0, last + 1 - self._lags)
        sample = min(max(last - round((times[last] - time) / self.period), first), last)
        while sample < last and times[sample + 1] - time <= time - times[sample]:
            sample += 1
        while sample > first and time - times[sample - 1] < times[sample] - time:
            sample -= 1
        return sample

    def _remove_outliers(self, innovation: np.ndarray, square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Set innovations of single outlying positions to zero."""
        far = (square[FASTEST] > OPTIONS.outlier_square) & (self._calm < self._count) & self._noise.known
        self._calm = np.where(far, self._count + OPTIONS.outlier_spacing, self._calm)
        self.outliers += int(far.sum())
        self._ignored = np.where(far, np.abs(innovation[FASTEST]), 0.0)
        return np.where(far, 0.0, innovation), np.where(far, 0.0, square)

    def _gains_after(self, step: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return K, S and log S for a sample after a step [s]; the steady gains where steps are even."""
        steady, even = self._gains, abs(step - self.period) <= OPTIONS.max_uneven_share * self.period
        if even and self._known is steady.known:
            return self._steady
        # on a grid that contains the period: even steps have the steady gains
        rounded = self._grid * round_to_grid(max(step, OPTIONS.min_period_s) / self._grid, OPTIONS.step_grid)
        K, S, log_S, known = gains_after_step(self._known, self._grid, rounded)
        if even and (np.abs(known - steady.known) <= OPTIONS.converged_difference * np.abs(steady.known)).all():
            known = steady.known
        self._known = known
        if not even:
            self._uneven = self._end
        return K, S, log_S

    def _predict_lost(self, step: float, lost: int) -> None:
        """Add predictions in place of lost samples."""
        last = self._times[self._end - 1]
        for k in range(1, lost + 1):
            end = self._end
            self._filtered[end], self._innovations[:, end] = self._predict(k * step)[:SMOOTHED_STATES].swapaxes(0, 1), 0.0
            self._positions[end], self._likelihoods[end] = self._positions[end - 1], self._likelihood
            self._times.append(last + k * step)
            self._end = end + 1

    def _make_room(self, steps: int) -> None:
        """Move the samples that are still needed to the front of a longer history."""
        kept = slice(max(0, self._end - self._lags - OPTIONS.extra_samples), self._end)
        count = kept.stop - kept.start
        self._room = count + OPTIONS.free_samples + steps

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
    """Estimator of noise, clock errors and encoder resolution from the innovations of a filter bank, block by block.

    noise   : noise model of the positions
    learned : whether anything was learned since the last restart
    """

    def __init__(self, noise: PositionNoise):
        self.noise = noise
        self._searches = 0
        self._positions: list[np.ndarray] = []
        self.restart()

    def restart(self) -> None:
        """Discard the current block: later samples do not continue earlier ones. The noise model is kept."""
        self.learned = False
        self._blocks = 0
        self._block: list[tuple] = []

    def update(self, filters: FilterBank, sample: FilterSample, deviation: float = 0.0, taken: float = 0.0,
            clock: SampleClock | None = None) -> None:
        """Add a sample one period after the last one.

        deviation: its stamp less its even time [s]; taken: part of it removed by the clock [s].
        """
        self._block.append((deviation, taken, *sample))
        first = self._blocks <= OPTIONS.blocks_per_search
        if len(self._block) == (OPTIONS.block_samples if first else OPTIONS.later_block_samples):
            self._learn(filters, clock)

    def _learn(self, filters: FilterBank, clock: SampleClock | None) -> None:
        """Update the clock and the noise model by one block of samples."""
        deviation, taken, position, velocity, innovation = map(np.array, zip(*self._block))
        expected = filters.expected
        moving = np.diff(position, axis=0, prepend=position[:1]) != 0.0
        # velocities within their noise contain no time errors: their relation to innovations is that of the filters
        velocity[velocity**2 <= OPTIONS.velocity_noise_square * filters.velocity_variance] = 0.0
        if clock:
            clock.learn(deviation, taken, velocity, innovation, expected * self.noise.variance(velocity))
        self.noise.learn(filters.period, velocity, innovation * innovation / expected, moving)
        self._block.clear()
        self._blocks += 1
        self.learned = True
        self._search(position, moving)

    def _search(self, position: np.ndarray, moving: np.ndarray) -> None:
        """Search for unknown resolutions in the latest positions."""
        unknown = self.noise.resolution == 0.0
        if not moving[:, unknown].any():
            return
        self._positions.append(position)
        if len(self._positions) == OPTIONS.blocks_per_search:
            self._searches += 1
            if self._searches < OPTIONS.rare_search_after or self._searches % OPTIONS.rare_search_after == 0:
                self.noise.set_resolution(find_resolution(np.concatenate(self._positions)))
            self._positions.clear()
