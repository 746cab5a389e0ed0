"""Derivatives of recordings by local polynomials: exact on polynomials, with the documented noise."""

import numpy as np
import pytest

from rnea_ros import InputError
from rnea_ros.estimation.differentiation import WINDOW, estimate_derivatives


def polynomial(t, coefficients):
    """Return polynomials and their first three derivatives, (4, len(t), columns)."""
    columns = [np.polynomial.Polynomial(c) for c in coefficients]
    return np.array([np.stack([p.deriv(order)(t) for p in columns], axis=-1) for order in range(4)])


def uneven(rng, samples, step):
    return np.cumsum(rng.integers(1, 10, samples)) * step / 5.0


@pytest.mark.parametrize("known", [1, 2, 3])
@pytest.mark.parametrize("samples", [4, 7, 50, 5000])
def test_derivatives_of_polynomials_are_exact(known, samples):
    rng = np.random.default_rng(samples)
    t = 5.0 + uneven(rng, samples, 0.01)
    motion = polynomial((t - t[0]) / (t[-1] - t[0]), rng.uniform(-1, 1, (2, 4)))
    motion /= ((t[-1] - t[0]) ** np.arange(4))[:, None, None]
    estimates = estimate_derivatives(t, *motion[:known])
    for order, (estimate, exact) in enumerate(zip(estimates[:3], motion[1:]), start=1):
        np.testing.assert_allclose(estimate, exact, atol=1e-13 / np.diff(t).min() ** order)


def test_derivatives_of_a_sine_are_accurate_inside_the_recording():
    t = np.linspace(0.0, 2.0, 401)
    exact = np.array([np.sin(2 * t), 2 * np.cos(2 * t), -4 * np.sin(2 * t), -8 * np.cos(2 * t)])[:, :, None]
    _, qdd, qddd, inside, _ = estimate_derivatives(t, exact[0])
    assert inside[15:-15].all() and not inside[[14, -15]].any()
    np.testing.assert_allclose(qdd[inside], exact[2, inside], atol=3e-6)
    np.testing.assert_allclose(qddd[inside], exact[3, inside], atol=5e-6)
    _, _, qddd, *_ = estimate_derivatives(t, *exact[:3])
    np.testing.assert_allclose(qddd[inside], exact[3, inside], atol=5e-5)
    np.testing.assert_allclose(qddd, exact[3], atol=2e-3)


def test_given_derivatives_are_returned_unchanged():
    t, q = np.arange(10.0), np.zeros((10, 1))
    given = np.random.default_rng(1).normal(size=(10, 1))
    assert np.array_equal(estimate_derivatives(t, q, given).qd, given)
    assert np.array_equal(estimate_derivatives(t, q, qdd=given).qdd, given)


def test_velocity_and_jerk_are_estimated_from_positions_and_accelerations():
    t = np.linspace(0.0, 1.0, 60)
    motion = polynomial(t, [[1.0, 2.0, 3.0, 4.0, 5.0]])
    qd, _, qddd, *_ = estimate_derivatives(t, motion[0], qdd=motion[2])
    np.testing.assert_allclose(qd, motion[1], rtol=1e-9)
    np.testing.assert_allclose(qddd, motion[3], rtol=1e-9)


@pytest.mark.parametrize("rate", [200, 1000])
def test_noise_and_bias_of_derivatives_match_the_documentation(rate):
    window, t = 0.2, np.arange(0.0, 0.6, 1.0 / rate)
    samples, at = window * rate + 1.0, len(t) // 2
    _, qdd, qddd, inside, used = estimate_derivatives(t, np.eye(len(t)), window=window)
    assert inside[at] and used.samples == samples
    assert np.linalg.norm(qdd[at]) * window**2 * samples**0.5 == pytest.approx(93, rel=0.1)
    assert np.linalg.norm(qddd[at]) * window**3 * samples**0.5 == pytest.approx(1410, rel=0.1)
    x = (t - t[at]) / window
    powers = np.stack((x**6, x**7), axis=1)  # q6 = 720 / T^6, q7 = 5040 / T^7
    _, qdd, qddd, *_ = estimate_derivatives(t, powers, window=window)
    assert abs(qdd[at, 0]) * window**2 / 720 == pytest.approx(8.0e-5, rel=0.1)
    assert abs(qddd[at, 1]) * window**3 / 5040 == pytest.approx(5.6e-5, rel=0.1)


def test_window_is_a_duration_for_any_sampling_rate():
    """The window is a time span for any spacing; a default window with too few samples is widened."""
    times = {rate: np.arange(5 * rate) / rate for rate in (1000, 500, 20)}
    said = {rate: str(estimate_derivatives(t, t[:, None]).window) for rate, t in times.items()}
    assert said == {1000: "windows of 0.15 s (151 samples)", 500: "windows of 0.15 s (75 samples)",
                    20: "windows of 0.4 s (9 samples, 0.15 s would hold too few)"}
    t = np.append(np.arange(0.0, 2.0, 0.002), np.arange(2.0, 4.0, 0.01))  # the rate of the recorder changes
    noise = np.random.default_rng(0).normal(size=(len(t), 1))
    _, _, qddd, inside, _ = estimate_derivatives(t, noise)
    fast, slow = (qddd[inside & part].std() for part in (t < 1.9, t > 2.1))
    assert 1.5 < slow / fast < 3.5  # 5 ** 0.5 by the documented law; less than 0.01 with windows of a fixed number of samples


def test_windows_do_not_extend_across_gaps():
    rng = np.random.default_rng(4)
    t = np.concatenate([start + uneven(rng, 300, 0.002) for start in (0.0, 10.0)])
    late = t > 9.0
    motion = polynomial(t, [[1.0, 2.0, 3.0, -1.0]])
    motion[:, late] = polynomial(t[late] - 10.0, [[-4.0, 1.0, 2.0, 5.0]])
    estimates = estimate_derivatives(t, motion[0])
    for estimate, exact, tolerance in zip(estimates[:3], motion[1:], (1e-9, 1e-6, 1e-3)):
        np.testing.assert_allclose(estimate, exact, atol=tolerance)
    ends = np.array([t[0], t[~late][-1], t[late][0], t[-1]])
    assert np.array_equal(estimates.centred, (np.abs(t[:, None] - ends) >= 0.5 * WINDOW).all(axis=1))


def test_continuous_joints_are_unwrapped():
    t = np.arange(0.0, 2.0, 0.01)
    motion = polynomial(t, [[3.0, 4.0, -2.0, 1.0, 0.5], [0.0, -9.0, 2.0]])
    wrapped = (motion[0] + np.pi) % (2.0 * np.pi) - np.pi
    assert np.abs(np.diff(wrapped, axis=0)).max() > 6.0
    estimates = estimate_derivatives(t, wrapped, joint_types=("continuous", "continuous"))
    for estimate, exact, tolerance in zip(estimates[:3], motion[1:], (1e-9, 1e-7, 1e-5)):
        np.testing.assert_allclose(estimate, exact, atol=tolerance)
    assert np.abs(estimate_derivatives(t, wrapped, joint_types=("revolute", "revolute")).qd).max() > 50.0


def test_lost_samples_are_replaced_by_the_nearest_ones():
    t = np.delete(np.arange(0.0, 3.0, 0.02), slice(60, 90, 2))
    t = np.delete(t, slice(65, 68))
    motion = polynomial(t, [[1.0, 2.0, 3.0, -1.0, 0.5, 0.2]])
    estimates = estimate_derivatives(t, motion[0], window=0.15)
    assert estimates.window.fewest == 6 and "at least 6" in str(estimates.window)
    np.testing.assert_allclose(estimates.qddd, motion[3], atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rate", [125, 500, 1000])
def test_derivatives_of_encoder_positions_are_accurate(seed, rate):
    """Encoder with 2^17 counts per turn, jittering stamps, one percent of the samples lost."""
    rng = np.random.default_rng(seed)
    t = np.sort(np.arange(0.0, 5.0, 1.0 / rate) + 0.1 / rate * rng.uniform(-1.0, 1.0, 5 * rate))[rng.random(5 * rate) > 0.01]
    w, phase, step = rng.uniform(1.0, 4.0, 6), rng.uniform(0.0, 6.0, 6), 2.0 * np.pi / 2**17
    exact = [w**k * np.sin(np.outer(t, w) + phase + k * np.pi / 2.0) for k in range(4)]
    _, qdd, qddd, inside, _ = estimate_derivatives(t, np.round(exact[0] / step) * step)
    for estimate, true, share in ((qdd, exact[2], 0.005), (qddd, exact[3], 0.2)):
        assert np.std((estimate - true)[inside]) < share * np.std(true)


@pytest.mark.parametrize(("arguments", "complaint"), [
    ({"t": [0.0, 1.0, 1.0, 2.0], "q": np.zeros((4, 1))}, "sample 2 is at 1 s"),
    ({"t": [0.0, 1.0, 2.0], "q": np.zeros((3, 1))}, "too few"),
    ({"t": np.arange(9.0), "q": np.zeros((8, 1))}, r"\(8, 1\)"),
    ({"t": np.arange(9.0), "q": np.zeros((9, 1)), "degree": 2}, "degree is 2"),
    ({"t": np.arange(9.0), "q": np.zeros((9, 1)), "window": 5.0}, "5 s holds too few .* needs 7 .* take 6 s .* 8 s"),
    ({"t": np.arange(9.0), "q": np.zeros((9, 1)), "window": 15.0}, "the window is 15; seconds above zero .* at most 8"),
    ({"t": np.arange(9.0) / 9, "q": np.zeros((9, 1)), "window": 9}, "the window is 9; seconds above zero .* at most 2"),
    ({"t": np.arange(9.0), "q": np.zeros((9, 1)), "window": np.nan}, "the window is nan"),
    ({"t": [0.0, np.nan, 2.0, 3.0], "q": np.zeros((4, 1))}, "time must increase"),
])
def test_invalid_recordings_raise_descriptive_errors(arguments, complaint):
    with pytest.raises(InputError, match=complaint):
        estimate_derivatives(**arguments)
