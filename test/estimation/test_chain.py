"""Steady gains of chains of derivatives: against scipy's Riccati equation and textbook recursions with full matrices."""

import math

import numpy as np
import pytest
from scipy.linalg import expm, solve_discrete_are

from rnea_ros.estimation.filter_bank import (
    BANK,
    NOISE_SHARE,
    OPTIONS,
    ORDERS,
    SMOOTHED_STATES,
    STATES,
    bandwidths,
    gains_after_step,
    noise_correlations,
    round_to_grid,
    steady_gains,
    transition,
)


def model(m, period, step=None):
    """Return F and Q of chain m over a step, with time unit 1 / bandwidth; Q by van Loan's matrix exponential."""
    states, width = BANK[m][0], bandwidths(period)[m]
    A = np.diag(np.ones(states - 1), 1)
    L = np.zeros((states, states))
    L[-1, -1] = width * OPTIONS.reference_period_s
    block = expm(np.block([[-A, L], [np.zeros_like(A), A.T]]) * width * (step or period))
    F = block[states:, states:].T
    Q = F @ block[:states, states:]
    return F, 0.5 * (Q + Q.T)


def scaled(m, period):
    return bandwidths(period)[m] ** np.arange(BANK[m][0])


def test_transition_matrix_is_the_matrix_exponential():
    np.testing.assert_allclose(transition(0.3), expm(0.3 * np.diag(np.ones(STATES - 1), 1)), rtol=1e-14)


@pytest.mark.parametrize("period", [0.0005, 0.002, 0.008, 0.1])
@pytest.mark.parametrize("m", range(len(BANK)))
def test_gains_solve_the_riccati_equation(m, period):
    states, unit = BANK[m][0], scaled(m, period)
    F, Q = model(m, period)
    P = solve_discrete_are(F.T, np.eye(1, states).T, Q, np.eye(1))
    found = steady_gains(period, 3)
    np.testing.assert_allclose(found.P[m, :states, :states] / unit / unit[:, None], P, rtol=1e-6)
    np.testing.assert_allclose(found.S[m], P[0, 0] + 1.0, rtol=1e-9)
    np.testing.assert_allclose(found.K[:states, m, 0] / unit, P[:, 0] / (P[0, 0] + 1.0), rtol=1e-7)
    assert not found.K[states:, m].any() and not found.weights[m, states:].any()


@pytest.mark.parametrize("m", range(len(BANK)))
def test_smoothing_weights_match_rauch_tung_striebel(m):
    """States and standard deviations are compared with the textbook recursion."""
    period, lags, states = 0.004, 12, BANK[m][0]
    found, unit = steady_gains(period, lags), scaled(m, period)
    F, _ = model(m, period)
    P = found.P[m, :states, :states] / unit / unit[:, None]
    K = P[:, 0] / (P[0, 0] + 1.0)
    innovations = np.random.default_rng(m).normal(size=lags)
    x, predicted, filtered = np.zeros(states), [], []
    for innovation in innovations:
        predicted.append(x)
        filtered.append(x + K * innovation)
        x = F @ filtered[-1]
    left = P - np.outer(K, P[0])
    back = left @ F.T @ np.linalg.inv(P)
    smoothed, covariance = filtered[-1], left
    for k in reversed(range(lags - 1)):
        smoothed = filtered[k] + back @ (smoothed - predicted[k + 1])
        covariance = left + back @ (covariance - P) @ back.T
    shown = min(states, SMOOTHED_STATES)
    np.testing.assert_allclose(found.weights[m, :shown] @ innovations / unit[:shown], smoothed[:shown] - predicted[0][:shown],
                               rtol=1e-6, atol=1e-8)
    deviation = np.sqrt(found.variance[lags - 1, :, m]) / unit[:ORDERS]
    np.testing.assert_allclose(deviation, np.sqrt(np.diag(covariance)[:ORDERS]), rtol=1e-6)


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_gain_after_a_gap_matches_the_propagated_covariance(steps):
    period = 0.002
    found = steady_gains(period, 2)
    K, S, _, _ = gains_after_step(found.known, period, steps * period)
    if steps == 1:
        np.testing.assert_allclose(K, found.K, rtol=1e-7, atol=1e-12)
    for m, (states, _) in enumerate(BANK):
        F, Q = model(m, period, steps * period)
        unit = scaled(m, period)
        left = (found.P[m] - np.outer(found.K[:, m], found.P[m, 0]))[:states, :states] / unit / unit[:, None]
        P = F @ left @ F.T + Q
        assert S[m, 0] == pytest.approx(P[0, 0] + 1.0, rel=1e-9)
        np.testing.assert_allclose(K[:states, m, 0] / unit, P[:, 0] / (P[0, 0] + 1.0), rtol=1e-6)


@pytest.mark.parametrize("steps", [(0.1, 0.1, 1.0, 3.0, 20.0), (0.05, 0.05, 0.05, 12.0), (1.0, 2.0), (0.1, 4.0)])
def test_filter_errors_stay_bounded_for_any_sequence_of_steps(steps):
    """Steps in periods: errors of the states stay near their standard deviations. Gains of an even period let the quickest
    filters grow by 1e50.
    """
    rng, period = np.random.default_rng(4), 0.004
    unit = bandwidths(period)[:, None] ** np.arange(STATES)
    known, error = steady_gains(period, 2).known, np.zeros((len(BANK), STATES))
    for _ in range(400):
        step = round_to_grid(float(rng.choice(steps)) * period, 1.1)
        K, _, _, known = gains_after_step(known, period, step)
        error = error @ transition(step).T
        error -= K[:, :, 0].T * (error[:, :1] - 1e-3 * rng.normal(size=(len(BANK), 1)))
        spread = np.sqrt(np.diagonal(known, axis1=1, axis2=2))
        assert (np.abs(error / unit) <= 10.0 * spread + 1.0).all()


def test_filters_attenuate_motion_above_their_bandwidth():
    """The smoother halves a sine of the bandwidth, for w ** (2 states) = drive / noise."""
    for m, (_, width) in enumerate(BANK):
        period, lags = 0.2 / width, 200
        found = steady_gains(period, lags)
        q = np.sin(width * period * np.arange(4 * lags) + 0.3)
        x, predicted, innovations = np.zeros(STATES), [], []
        for position in q:
            predicted.append(x[0])
            innovations.append(position - x[0])
            x = transition(period) @ (x + found.K[:, m, 0] * innovations[-1])
        smoothed = [predicted[k] + found.weights[m, 0] @ innovations[k:k + lags] for k in range(2 * lags, 3 * lags)]
        share = math.sqrt(np.mean(np.square(smoothed)) / np.mean(q[2 * lags:3 * lags] ** 2))
        denser = OPTIONS.reference_period_s / period  # than at the reference period, noise is so much less dense
        assert share == pytest.approx(denser / (1.0 + denser), rel=0.02)


@pytest.mark.parametrize("period", [0.001, 0.004])
def test_noise_of_smoothed_chains_is_the_response_to_white_noise(period):
    """Oracle: responses of the filters to a unit impulse, smoothed at each instant; their products summed over instants."""
    lags, memory = round(0.25 / period), round(1.5 / period)
    gains, F = steady_gains(round_to_grid(period, OPTIONS.period_grid), lags), transition(period)
    x, innovations, filtered = np.zeros((STATES, len(BANK))), [], []
    for k in range(memory + lags + 1):  # the impulse is the sample number `lags`
        x = np.where(np.arange(STATES)[:, None] < [states for states, _ in BANK], F @ x, 0.0)
        innovations.append(float(k == lags) - x[0])
        x = x + gains.K[:, :, 0] * innovations[-1]
        filtered.append(x[:ORDERS])
    later = np.lib.stride_tricks.sliding_window_view(np.array(innovations), lags, axis=0)  # (instants, m, lags)
    response = np.array(filtered[:len(later)]) + np.einsum("mkl,tml->tkm", gains.weights[:, :ORDERS, 1:], later[:, :, 1:])
    covariance = np.einsum("tki,tkj->kij", response, response)
    std = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    slow = np.array([width * period < 0.4 and width > 40.0 for _, width in BANK])  # without the limits of period and lags
    np.testing.assert_allclose((std**2 / gains.variance[-1])[:, slow], NOISE_SHARE[:, slow], rtol=0.06)
    expected = noise_correlations(period)
    np.testing.assert_allclose((covariance / (std[:, :, None] * std[:, None]))[:, slow][:, :, slow],
                               expected[:, slow][:, :, slow], atol=0.03)
