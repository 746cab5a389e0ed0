"""Derivative estimates: exact on polynomials, and as noisy and as late as their documentation says."""

import numpy as np
import pytest

from rnea_ros import InputError
from rnea_ros.derivatives import CausalEstimator, estimate_derivatives

EPOCH = 1_700_000_000_123_456_789  # ns; stamps of today leave a double no digits to spare


def polynomial(t, coefficients):
    """Columns of values, and of their first three derivatives: (4, len(t), columns)."""
    columns = [np.polynomial.Polynomial(c) for c in coefficients]
    return np.array([np.stack([p.deriv(order)(t) for p in columns], axis=-1) for order in range(4)])


def stream(estimator, t, q, qd=None):
    for k, seconds in enumerate(t):
        estimator.push(EPOCH + round(seconds * 1e9), q[k], np.full(q.shape[1], np.nan) if qd is None else qd[k])
    return estimator.estimate()


def uneven(rng, samples, step):
    return np.cumsum(rng.integers(1, 10, samples)) * step / 5.0


@pytest.mark.parametrize("degree", [3, 4, 5])
@pytest.mark.parametrize("with_velocity", [False, True])
def test_causal_fit_is_exact_on_polynomials(degree, with_velocity):
    rng = np.random.default_rng(degree)
    t = uneven(rng, 60, 0.001)
    motion = polynomial(t, rng.uniform(-2, 2, (3, degree + 1)))
    estimates = stream(CausalEstimator(3, 0.05, degree), t, motion[0], motion[1] if with_velocity else None)
    for estimate, exact, tolerance in zip(estimates, motion[1:, -1], (1e-9, 1e-6, 1e-3)):  # rounding, divided by T^order
        np.testing.assert_allclose(estimate, exact, atol=tolerance)


def test_causal_fit_forgets_what_is_outside_its_window():
    t = np.arange(0.0, 3.0, 0.001)  # wraps the buffer many times
    motion = polynomial(t, [[0.0, 1.0, -3.0, 2.0]])
    motion[:, :2900] = 99.0
    _, _, qddd = stream(CausalEstimator(1, 0.05), t, motion[0], motion[1])
    assert qddd == pytest.approx(motion[3, -1], rel=1e-6)


def test_causal_fit_of_a_slow_stream_takes_what_it_needs():
    t = np.arange(6) * 0.2
    motion = polynomial(t, [[1.0, -2.0, 3.0, 4.0]])
    estimator = CausalEstimator(1, 0.05)
    assert not estimator.ready
    for estimate, exact in zip(stream(estimator, t, motion[0]), motion[1:, -1]):
        assert estimate == pytest.approx(exact)


def test_stamps_that_do_not_advance_are_no_samples():
    estimator = CausalEstimator(1, 1.0)
    for stamp in (10, 20, 20, 15, 30):
        estimator.push(stamp, np.zeros(1), np.zeros(1))
    assert not estimator.ready  # three samples, a cubic needs four
    estimator.push(40, np.zeros(1), np.zeros(1))
    assert estimator.ready
    estimator.clear()
    assert not estimator.ready


@pytest.mark.parametrize(("degree", "qdd_noise", "qddd_noise", "qdd_error", "qddd_error"), [
    (3, 161, 317, 0.11, 0.50), (4, 563, 2539, 0.014, 0.11), (5, 1502, 11427, 0.0013, 0.015)])
def test_documented_noise_and_lag(degree, qdd_noise, qddd_noise, qdd_error, qddd_error):
    """The fit is linear: its answers to an impulse at each sample are the weights that noise is summed with."""
    samples, window = 200, 0.2
    t = np.linspace(0.0, window, samples)
    _, qdd, qddd = stream(CausalEstimator(samples, window, degree), t, np.eye(samples))
    assert np.linalg.norm(qdd) * window**2 * samples**0.5 == pytest.approx(qdd_noise, rel=0.1)
    assert np.linalg.norm(qddd) * window**3 * samples**0.5 == pytest.approx(qddd_noise, rel=0.1)
    motion = polynomial(t, [[0.0] * (degree + 1) + [1.0]])
    unmatched = np.prod(np.arange(1.0, degree + 2))  # the constant derivative of order degree + 1
    _, qdd, qddd = stream(CausalEstimator(1, window, degree), t, motion[0])
    assert abs(qdd[0] - motion[2, -1, 0]) / unmatched / window ** (degree - 1) == pytest.approx(qdd_error, rel=0.1)
    assert abs(qddd[0] - motion[3, -1, 0]) / unmatched / window ** (degree - 2) == pytest.approx(qddd_error, rel=0.1)


@pytest.mark.parametrize(("degree", "qdd_noise", "qddd_noise"), [(3, 13.6, 26), (4, 34.3, 159), (5, 68.9, 560)])
def test_documented_noise_of_velocities(degree, qdd_noise, qddd_noise):
    samples, window = 200, 0.2
    t = np.linspace(0.0, window, samples)
    _, qdd, qddd = stream(CausalEstimator(samples, window, degree), t, np.zeros((samples, samples)), np.eye(samples))
    assert np.linalg.norm(qdd) * window * samples**0.5 == pytest.approx(qdd_noise, rel=0.1)
    assert np.linalg.norm(qddd) * window**2 * samples**0.5 == pytest.approx(qddd_noise, rel=0.1)


@pytest.mark.parametrize("known", [1, 2, 3])
@pytest.mark.parametrize("samples", [4, 7, 50, 5000])
def test_recording_is_exact_on_polynomials(known, samples):
    rng = np.random.default_rng(samples)
    t = 5.0 + uneven(rng, samples, 0.01)
    motion = polynomial((t - t[0]) / (t[-1] - t[0]), rng.uniform(-1, 1, (2, 4)))
    motion /= ((t[-1] - t[0]) ** np.arange(4))[:, None, None]
    estimates = estimate_derivatives(t, *motion[:known])
    for order, (estimate, exact) in enumerate(zip(estimates, motion[1:]), start=1):
        np.testing.assert_allclose(estimate, exact, atol=1e-13 / np.diff(t).min() ** order)


def test_recording_of_a_smooth_motion():
    t = np.linspace(0.0, 2.0, 401)
    exact = np.array([np.sin(2 * t), 2 * np.cos(2 * t), -4 * np.sin(2 * t), -8 * np.cos(2 * t)])[:, :, None]
    _, qdd, qddd = estimate_derivatives(t, exact[0])
    np.testing.assert_allclose(qdd[5:-5], exact[2, 5:-5], atol=1e-6)
    np.testing.assert_allclose(qddd[5:-5], exact[3, 5:-5], atol=1e-5)
    _, _, qddd = estimate_derivatives(t, *exact[:3])
    np.testing.assert_allclose(qddd, exact[3], atol=5e-5)


def test_recording_keeps_what_is_given():
    t, q = np.arange(10.0), np.zeros((10, 1))
    given = np.random.default_rng(1).normal(size=(10, 1))
    qd, _, _ = estimate_derivatives(t, q, given)
    assert np.array_equal(qd, given)
    _, qdd, _ = estimate_derivatives(t, q, qdd=given)
    assert np.array_equal(qdd, given)


def test_recording_with_accelerations_but_no_velocities():
    t = np.linspace(0.0, 1.0, 60)
    motion = polynomial(t, [[1.0, 2.0, 3.0, 4.0, 5.0]])
    qd, _, qddd = estimate_derivatives(t, motion[0], qdd=motion[2])
    np.testing.assert_allclose(qd, motion[1], rtol=1e-9)
    np.testing.assert_allclose(qddd, motion[3], rtol=1e-9)


def test_documented_noise_of_a_recording():
    samples, step = 41, 0.01
    _, qdd, qddd = estimate_derivatives(np.arange(samples) * step, np.eye(samples))
    assert np.linalg.norm(qdd[20]) * step**2 == pytest.approx(0.44, rel=0.02)
    assert np.linalg.norm(qddd[20]) * step**3 == pytest.approx(0.87, rel=0.02)


@pytest.mark.parametrize(("arguments", "complaint"), [
    ({"t": [0.0, 1.0, 1.0, 2.0], "q": np.zeros((4, 1))}, "sample 2 is at 1 s"),
    ({"t": [0.0, 1.0, 2.0], "q": np.zeros((3, 1))}, "too few"),
    ({"t": np.arange(9.0), "q": np.zeros((8, 1))}, r"\(8, 1\)"),
    ({"t": np.arange(9.0), "q": np.zeros((9, 1)), "degree": 2}, "degree is 2"),
    ({"t": np.arange(9.0), "q": np.zeros((9, 1)), "samples": 5}, "5 samples cannot carry degree 5"),
    ({"t": [0.0, np.nan, 2.0, 3.0], "q": np.zeros((4, 1))}, "time must increase"),
])
def test_errors_say_what_is_wrong(arguments, complaint):
    with pytest.raises(InputError, match=complaint):
        estimate_derivatives(**arguments)
