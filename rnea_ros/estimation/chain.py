"""Steady Kalman filters of one joint: chains of derivatives driven by white noise, from slow to fast.

A chain is a position and its derivatives; the last one is the integral of white noise. The two kinds of motion that robots
make ask for two lengths: jerk that jumps (S-curves) for 4 states, smooth motion for 6. How strong the drive is beside the
noise of the positions decides how quick a filter is: its bandwidth w [rad/s], from which on it takes motion for noise, is
w**(2 states) = drive density / noise density. Several filters run side by side; filter_bank.py weighs them.

All of it is the same for every joint, whatever its noise: gains depend on the bandwidth alone, and covariances are in units of
the variance of one position. Simon, Optimal State Estimation, 7.3 (steady filter) and 9.3 (fixed-lag smoothing).
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

STATES = 6  # of the longest chain: position .. fifth derivative
ORDERS = 4  # of them that are given out: position, velocity, acceleration, jerk
SHOWN = 5  # of them that are smoothed: snap carries the jerk from a sample to the instant asked for
REFERENCE = 0.002  # s; noise of variance 1 on positions at this distance has the density 1 * REFERENCE
BANK = ((4, 60.0), (4, 100.0), (4, 160.0), (4, 260.0),
        (6, 16.0), (6, 27.0), (6, 45.0), (6, 75.0), (6, 125.0), (6, 210.0))  # states, bandwidth
MEMORY_S, MEMORY_PERIODS = 0.06, 3.0  # s and periods, in which a difference of times becomes one of rates
_QUICKEST = 1.5  # bandwidth times period: beyond it a filter sees single samples
_LEAST = 1e-6  # of a variance: what is left of it after smoothing is not less
_DOUBLINGS = 40
_CONVERGED = 1e-13
_SHORTEST = 1e-5  # s; gains of shorter distances are those of this one
_NUMBER = np.arange(STATES)
_FIRST = np.eye(STATES)[0]
_LATER = np.maximum(_NUMBER - _NUMBER[:, None], 0)  # how many derivatives column k is from row i
_TAYLOR = np.array([[1.0 / math.factorial(k - i) if k >= i else 0.0 for k in _NUMBER] for i in _NUMBER])
_HAS = np.array([states for states, _ in BANK])[:, None] > _NUMBER  # (m, 6): which states a chain has
_BOTH = _HAS[:, :, None] & _HAS[:, None, :]


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
    return np.minimum([width for _, width in BANK], _QUICKEST / period)


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
    variance = np.maximum(before - gained, _LEAST * before) * unit[:, :ORDERS, None] ** 2
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
    return float(ratio ** round(math.log(max(seconds, _SHORTEST)) / math.log(ratio)))


def _step(width: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Transition and covariance of the drive over some time [s], (m, 6, 6) each, with 1 / width for the unit of time:
    every number is near one then."""
    x = (width * step)[:, None, None]
    F = np.where(_BOTH, _TAYLOR * x**_LATER, 0.0)
    left = np.where(_HAS, _HAS.sum(axis=1)[:, None] - 1 - _NUMBER, 0)  # derivatives from a state to the last one
    both = left[:, :, None] + left[:, None, :] + 1
    factorial = np.array([math.factorial(k) for k in range(STATES)])[left]
    Q = np.where(_BOTH, x**both / (both * factorial[:, :, None] * factorial[:, None, :]), 0.0)
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
        if np.abs(grown).max() <= _CONVERGED * np.abs(P).max():
            break
    return 0.5 * (P + np.swapaxes(P, 1, 2))
