"""Input shapers: residual vibration of an oscillator, limits of the shaped motion, rejected arguments."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rnea_ros import InputError, input_shaper

STEP = np.polynomial.Polynomial([0, 0, 0, 0, 35, -84, 70, -20])


def rest_to_rest(duration, count=201):
    t = np.linspace(0.0, duration, count)
    return t, np.array([STEP.deriv(k)(t / duration) / duration**k for k in range(4)])[:, :, None] * [1.0, -0.5]


def swing(t, acceleration, frequency, ratio):
    """Return the residual amplitude of an oscillator after the acceleration of its support, by quadrature."""
    damped = frequency * np.sqrt(1.0 - ratio * ratio)

    def slope(time, y):
        return [y[1], -2.0 * ratio * frequency * y[1] - frequency**2 * y[0] - np.interp(time, t, acceleration)]

    y, speed = solve_ivp(slope, (t[0], t[-1]), [0.0, 0.0], rtol=1e-9, atol=1e-12, max_step=0.002).y[:, -1]
    return np.hypot(y, (speed + ratio * frequency * y) / damped)


@pytest.mark.parametrize("kind, order", [("zv", 1), ("zvd", 2), ("zvdd", 3)])
@pytest.mark.parametrize("ratio", [0.0, 0.1])
def test_shaped_motion_leaves_no_vibration_at_the_shaper_frequency(kind, order, ratio):
    frequency = 9.0
    t, motion = rest_to_rest(0.4)
    shaper = input_shaper(frequency, ratio, kind)
    times, shaped = shaper.shape(t, motion)
    before, after = swing(t, motion[2, :, 0], frequency, ratio), swing(times, shaped[2, :, 0], frequency, ratio)
    assert before > 0.05 and after < 2e-4
    off = [swing(times, shaped[2, :, 0], 1.1 * frequency, ratio)]
    assert off[0] < 0.2**order * before * 1.5
    assert abs(shaper.duration - order * np.pi / (frequency * np.sqrt(1.0 - ratio**2))) < 1e-12


def test_shaper_for_two_frequencies_cancels_both_and_keeps_the_limits():
    t, motion = rest_to_rest(0.5)
    times, shaped = input_shaper([7.0, 23.0], [0.02, 0.0], "zv").shape(t, motion)
    for frequency, ratio in ((7.0, 0.02), (23.0, 0.0)):
        assert swing(times, shaped[2, :, 0], frequency, ratio) < 5e-4
    assert (np.abs(shaped).max(axis=1) <= np.abs(motion).max(axis=1) * (1.0 + 1e-9)).all()
    np.testing.assert_allclose(shaped[0, [0, -1]], motion[0, [0, -1]], atol=1e-12)
    slopes = np.gradient(shaped[0, :, 0], times)
    np.testing.assert_allclose(slopes[1:-1], shaped[1, 1:-1, 0], atol=1e-3 * np.abs(shaped[1]).max())


def test_shaper_interpolates_a_seventh_degree_polynomial_exactly():
    t, motion = rest_to_rest(0.5, 5)
    times, shaped = input_shaper(1e8, 0.0, "zv").shape(t, motion)  # impulses microseconds apart: almost the same motion
    expected = np.array([STEP.deriv(k)(np.minimum(times / 0.5, 1.0)) / 0.5**k for k in range(4)])
    np.testing.assert_allclose(shaped[:, :, 0], expected, atol=2e-3)


def test_invalid_shaper_arguments_are_rejected():
    t, motion = rest_to_rest(0.5)
    with pytest.raises(InputError, match="allowed are zv, zvd, zvdd"):
        input_shaper(3.0, 0.0, "zz")
    with pytest.raises(InputError, match="from 0 to below 1"):
        input_shaper(3.0, 1.0)
    with pytest.raises(InputError, match="two or more rising times"):
        input_shaper(3.0).shape(t[::-1], motion)
