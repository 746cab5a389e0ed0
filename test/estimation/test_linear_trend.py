"""Slope of a line fitted to the last samples: exact on lines, with the documented noise and lag."""

import numpy as np
import pytest

from rnea_ros.estimation.differentiation import LinearTrend

EPOCH = 1_700_000_000_123_456_789  # ns; stamps of today leave a double no digits to spare


def stream(t, values, window=0.05):
    trend = LinearTrend(values.shape[1])
    for seconds, sample in zip(t, values):
        trend.push(EPOCH + round(seconds * 1e9), sample, window)
    return trend


def test_trend_is_exact_on_lines_at_any_spacing():
    rng = np.random.default_rng(1)
    t = np.cumsum(rng.integers(1, 10, 3000)) * 1e-3
    start, slope = rng.uniform(-50.0, 50.0, (2, 6))
    trend = stream(t, start + t[:, None] * slope)
    np.testing.assert_allclose(trend.slope(), slope, atol=1e-9 * np.abs(start + t[-1] * slope).max() / 0.05)
    np.testing.assert_array_equal(trend.newest, start + t[-1] * slope)
    assert trend.stamp == EPOCH + round(t[-1] * 1e9) and 5 < len(trend) < 51


def test_trend_discards_samples_outside_its_window_and_capacity():
    t = np.arange(4000) * 1e-4
    trend = stream(t, np.where(t < t[-1] - 0.05, 1e9, t)[:, None])
    assert trend.slope() == pytest.approx(1.0) and len(trend) == 256


def test_trend_handles_gaps_repeated_and_decreasing_stamps():
    trend = stream([0.0, 0.01, 1.0], np.array([[0.0], [1.0], [5.0]]))
    assert len(trend) == 1 and trend.slope() == 0.0
    trend.push(trend.stamp, np.array([6.0]), 0.05)
    assert (len(trend), trend.newest) == (1, 6.0)
    trend.push(trend.stamp + 10**7, np.array([7.0]), 0.05)
    assert trend.slope() == pytest.approx(100.0)
    trend.push(trend.stamp - 1, np.array([8.0]), 0.05)
    assert (len(trend), trend.newest) == (1, 8.0)
    trend.clear()
    assert len(trend) == 0


def test_trend_noise_and_lag_match_the_documentation():
    rng, t, window = np.random.default_rng(2), np.arange(51) * 1e-3, 0.05
    slopes = [stream(t, rng.normal(size=(51, 6))).slope() for _ in range(300)]
    assert np.std(slopes) == pytest.approx(3.46 / (window * np.sqrt(51)), rel=0.1)
    assert stream(t, t[:, None] ** 2).slope() == pytest.approx(2.0 * (t[-1] - window / 2))


def test_trend_interpolates_between_samples():
    t = np.arange(6) * 0.01
    trend = stream(t, np.where(t < 0.025, 0.0, 10.0)[:, None])  # as at a foot contact
    for seconds, value in ((0.02, 0.0), (0.015, 0.0), (0.025, 5.0), (0.03, 10.0), (0.05, 10.0)):
        assert trend.value_at(EPOCH + round(seconds * 1e9)) == pytest.approx(value)
    for seconds in (-0.01, 0.06):  # outside of the window
        assert trend.value_at(EPOCH + round(seconds * 1e9)) == pytest.approx(10.0 + (seconds - 0.05) * trend.slope())
    alone = stream([0.0], np.array([[3.0]]))
    assert [alone.value_at(EPOCH + shift) for shift in (-5, 0, 5)] == [3.0] * 3
