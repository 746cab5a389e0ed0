"""Sine and cosine of kernels against decimal arithmetic with 60 digits and the C library."""

from __future__ import annotations

from decimal import Decimal, getcontext

import numpy as np
import pytest

from rnea_ros.codegen import kernel, llvm_text

getcontext().prec = 60
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")


@pytest.fixture(scope="module")
def pair():
    return kernel.build(lambda x: [[np.sin(x[0])], [np.cos(x[0])]], {"x": 1}, "llvm")


def exact(x):
    """Return sine and cosine of a double, correctly rounded."""
    r = Decimal(float(x)) % (2 * PI)
    sine, cosine, term = Decimal(0), Decimal(0), Decimal(1)
    for k in range(1, 120):
        if k % 2:
            cosine += term if k % 4 == 1 else -term
        else:
            sine += term if k % 4 == 2 else -term
        term = term * r / k
        if k > 8 and abs(term) < Decimal(10) ** -45:
            break
    return float(sine), float(cosine)


def angles():
    rng = np.random.default_rng(0)
    halves = np.arange(-40, 41) * (np.pi / 4)
    far = np.round(rng.uniform(-6e4, 6e4, 60)) * (np.pi / 2)
    near = [np.nextafter(x, side) for x in (*halves, *far) for side in (-np.inf, np.inf)]
    edge = [llvm_text.NEAR, np.nextafter(llvm_text.NEAR, np.inf), -llvm_text.NEAR, 1e6, 1e15, -1e22]
    tiny = [0.0, -0.0, 5e-324, 1e-300, 1e-20, 1e-8, -1e-8]
    return np.concatenate((halves, far, near, edge, tiny, rng.uniform(-10, 10, 400), rng.uniform(-1e5, 1e5, 400)))


def test_sine_and_cosine_match_decimal_arithmetic(pair):
    x = angles()
    found = np.array(pair(x[:, None]))[:, :, 0].T
    error = np.abs(found - np.array([exact(value) for value in x]))
    assert error.max() < 4e-16, (x[error.max(axis=1).argmax()], error.max())


def test_sine_and_cosine_match_the_c_library(pair):
    x = np.random.default_rng(1).uniform(-1e5, 1e5, 100_000)
    sine, cosine = pair(x[:, None])
    assert np.abs(sine[:, 0] - np.sin(x)).max() < 4e-16 and np.abs(cosine[:, 0] - np.cos(x)).max() < 4e-16


def test_large_angles_are_passed_to_the_c_library(pair):
    x = np.array([1.1e5, -3e9, 1e300, 2.0**52])
    sine, cosine = pair(x[:, None])
    np.testing.assert_array_equal(sine[:, 0], np.sin(x))
    np.testing.assert_array_equal(cosine[:, 0], np.cos(x))


def test_sine_and_cosine_of_infinity_and_nan_are_nan(pair):
    sine, cosine = pair(np.array([[0.0], [-0.0], [np.nan], [np.inf], [-np.inf]]))
    assert sine[:2, 0].tolist() == [0.0, 0.0] and cosine[:2, 0].tolist() == [1.0, 1.0]
    assert np.isnan(sine[2:]).all() and np.isnan(cosine[2:]).all()


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 17, 40])
def test_vectorized_sine_and_cosine_match_single_values(count):
    """One large angle sends its whole vector to the C library, without changes beyond rounding."""
    def text(x):
        return [[np.sin(a) for a in x], [np.cos(a) for a in x[::2]], [np.sin(np.cos(a) * 3.0) for a in x]]

    found = kernel.build(text, {"x": count}, "llvm")
    for seed in range(3):
        x = np.random.default_rng(seed).uniform(-5, 5, count)
        x[-1] += 1e7 * (seed == 1)
        for a, b in zip(found(x), text(x), strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-15)


def test_sine_and_cosine_polynomials_have_the_stated_accuracy():
    for k in range(1, 60):
        s = (PI / 4) ** 2 * k / 59
        r = s.sqrt()
        sine, cosine = (sum(Decimal(c) * s**j for j, c in enumerate(p)) for p in (llvm_text.SINE, llvm_text.COSINE))
        true = [Decimal(0), Decimal(0)]
        term = Decimal(1)
        for j in range(60):
            true[(j + 1) % 2] += term * (-1) ** (j // 2)
            term = term * r / (j + 1)
        assert abs(r + r * s * sine - true[0]) < Decimal("2e-17")
        assert abs(1 - s / 2 + s * s * cosine - true[1]) < Decimal("2e-17")
    assert sum(map(Decimal, llvm_text.HALF_PI)) - PI / 2 < Decimal(10) ** -36
