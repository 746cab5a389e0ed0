"""Momentum observer: first-order filter response, and estimation of its noise."""

import numpy as np
import pytest

from rnea_ros.estimation.external_effort import MIN_NOISE_SAMPLES, MomentumObserver

DT, GAIN = 1e-3, 40.0


def body(external, seconds, noise_p=0.0, noise_tau=0.0, rng=None):
    """Yield p, drift and known force of a mass of 2 kg under a varying known force and an external force."""
    rng, p = rng or np.random.default_rng(0), 0.0
    for k in range(round(seconds / DT)):
        t = k * DT
        known, drift = 3.0 * np.sin(4.0 * t), -0.3
        yield t, np.array([p + noise_p * rng.standard_normal()]), np.array([drift]), np.array(
            [known + noise_tau * rng.standard_normal()])
        p += DT * (3.0 * np.sin(4.0 * (t + DT / 2)) + drift + external(t))


def observed(samples):
    observer = MomentumObserver(1, GAIN)
    found = [(t, float(observer.push(DT, p, drift, tau)[0])) for t, p, drift, tau in samples]
    return observer, np.array(found).T


def test_observer_responds_like_a_first_order_filter():
    _, (t, r) = observed(body(lambda t: 5.0, 0.3))
    assert np.abs(r - 5.0 * (1.0 - np.exp(-GAIN * t))).max() < 5.0 * GAIN * DT


def test_observer_is_zero_without_external_effort():
    _, (_, r) = observed(body(lambda t: 0.0, 2.0))
    assert np.abs(r).max() < 1e-4


@pytest.mark.parametrize(("noise_p", "noise_tau"), [(1e-2, 0.0), (0.0, 0.5), (5e-3, 0.3)])
def test_observer_estimates_its_noise(noise_p, noise_tau):
    observer, (t, r) = observed(body(lambda t: 0.0, 20.0, noise_p, noise_tau, np.random.default_rng(3)))
    assert observer.noise[0] == pytest.approx(r[t > 1.0].std(), rel=0.15)


def test_contact_does_not_increase_the_noise_estimate():
    quiet, _ = observed(body(lambda t: 0.0, 3.0, 1e-3, 0.1))
    pushed, _ = observed(body(lambda t: 20.0 * (t > 2.9), 3.0, 1e-3, 0.1))
    assert pushed.noise[0] == pytest.approx(quiet.noise[0], rel=0.1)


def test_noise_is_unknown_after_start_and_gap():
    observer, (_, r) = observed(body(lambda t: 5.0, 0.2))
    assert np.isfinite(observer.noise).all() and r[-1] > 4.0
    assert observer.push(1.0, np.ones(1), np.zeros(1), np.zeros(1)) == 0.0
    assert np.isinf(observer.noise).all()
    fresh = MomentumObserver(1, GAIN)
    for _ in range(MIN_NOISE_SAMPLES):
        assert np.isinf(fresh.noise).all()
        fresh.push(DT, np.ones(1), np.zeros(1), np.zeros(1))
