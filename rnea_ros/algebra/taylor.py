"""Truncated Taylor series in time as a scalar: run an algorithm on jets and its result comes with its exact rates.

A `Jet` holds x(t), x'(t), x''(t)/2!, ... up to a fixed order. Any text that is written for any scalar, evaluated on q = jet(q,
qd), qd = jet(qd, qdd), qdd = jet(qdd, qddd), gives its outputs and their time derivatives: no formula is differentiated by
hand. The coefficients may themselves be floats, complex numbers or traced symbols.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .vectors import Array


class Jet:
    """Coefficients of a Taylor series, lowest order first. Array first, scalar second, as everywhere."""

    __slots__ = ("c",)

    def __init__(self, coefficients: Sequence[Any]):
        self.c = tuple(coefficients)

    def _other(self, other: Any) -> tuple | None:
        """Coefficients of the other operand; None leaves it to numpy."""
        if isinstance(other, Jet):
            return other.c
        if isinstance(other, np.ndarray):
            return None
        return (other, *[0.0] * (len(self.c) - 1))

    def __neg__(self) -> Jet:
        return Jet([-a for a in self.c])

    def __add__(self, other: Any) -> Jet:
        b = self._other(other)
        return NotImplemented if b is None else Jet([x + y for x, y in zip(self.c, b, strict=True)])

    __radd__ = __add__

    def __sub__(self, other: Any) -> Jet:
        b = self._other(other)
        return NotImplemented if b is None else Jet([x - y for x, y in zip(self.c, b, strict=True)])

    def __rsub__(self, other: Any) -> Jet:
        return -self + other

    def __mul__(self, other: Any) -> Jet:
        if isinstance(other, np.ndarray):
            return NotImplemented
        if not isinstance(other, Jet):
            return Jet([a * other for a in self.c])
        return Jet([_convolve(self.c, other.c, k) for k in range(len(self.c))])

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Jet:
        if isinstance(other, np.ndarray):
            return NotImplemented
        if not isinstance(other, Jet):
            return Jet([a / other for a in self.c])
        quotient: list[Any] = []
        for k, a in enumerate(self.c):  # a = quotient * other, coefficient by coefficient
            quotient.append((a - sum((quotient[i] * other.c[k - i] for i in range(k)), 0.0)) / other.c[0])
        return Jet(quotient)

    def __rtruediv__(self, other: Any) -> Jet:
        return NotImplemented if isinstance(other, np.ndarray) else Jet(self._other(other) or ()) / self

    def _sin_cos(self) -> tuple[Jet, Jet]:
        """Return sine and cosine, by sin' = cos x' and cos' = -sin x', coefficient by coefficient."""
        s, c = [np.sin(self.c[0])], [np.cos(self.c[0])]
        for k in range(1, len(self.c)):
            s.append(sum(((i / k) * self.c[i] * c[k - i] for i in range(1, k + 1)), 0.0))
            c.append(-sum(((i / k) * self.c[i] * s[k - i] for i in range(1, k + 1)), 0.0))
        return Jet(s), Jet(c)

    def sin(self) -> Jet:
        return self._sin_cos()[0]

    def cos(self) -> Jet:
        return self._sin_cos()[1]

    def tanh(self) -> Jet:
        """Return the hyperbolic tangent, by y' = (1 - y^2) x'."""
        y = [np.tanh(self.c[0])]
        for k in range(1, len(self.c)):
            slope = [(1.0 if i == 0 else 0.0) - _convolve(y, y, i) for i in range(k)]
            y.append(sum((((k - i) / k) * self.c[k - i] * slope[i] for i in range(k)), 0.0))
        return Jet(y)

    def sqrt(self) -> Jet:
        """Return the square root, by y y = x."""
        y = [np.sqrt(self.c[0])]
        for k in range(1, len(self.c)):
            y.append((self.c[k] - sum((y[i] * y[k - i] for i in range(1, k)), 0.0)) / (2.0 * y[0]))
        return Jet(y)


def _convolve(a: Sequence[Any], b: Sequence[Any], k: int) -> Any:
    total = 0.0 + a[0] * b[k]
    for i in range(1, k + 1):
        total = total + a[i] * b[k - i]
    return total


def jets(*derivatives: Any) -> np.ndarray:
    """Array of jets from arrays of the same shape: value, first, second, ... time derivative."""
    arrays = [np.asarray(d) for d in derivatives]
    result = np.empty(arrays[0].shape, dtype=object)
    for index in np.ndindex(arrays[0].shape):
        result[index] = Jet([array[index] / math.factorial(k) if k > 1 else array[index] for k, array in enumerate(arrays)])
    return result


def derivative(values: Any, order: int) -> np.ndarray:
    """Return the order-th time derivative of every jet in an array or nested list; constants have none."""
    array = np.asarray(values, dtype=object)
    result = np.empty(array.shape, dtype=object)
    for index in np.ndindex(array.shape):
        x = array[index]
        if isinstance(x, Jet):
            result[index] = x.c[order] * float(math.factorial(order)) if order > 1 else x.c[order]
        else:
            result[index] = x if order == 0 else 0.0
    return result


def derivatives_of_time(function: Callable[[Jet], Any], t: float, order: int) -> list[np.ndarray]:
    """Return the value of a function of time at t [s] and its derivatives up to `order`, by automatic differentiation."""
    values = function(Jet([t, 1.0, *[0.0] * (order - 1)]))
    return [derivative(values, k).astype(float) for k in range(order + 1)]


def smooth_step(x: Any) -> Any:
    """Return a step from 0 (x <= 0) to 1 (x >= 1) with three continuous derivatives; x: a number or a jet of numbers."""
    value = x.c[0] if isinstance(x, Jet) else x
    if not 0.0 < value < 1.0:
        return x * 0.0 + float(value >= 1.0)
    return x * x * x * x * (35.0 - 84.0 * x + 70.0 * x * x - 20.0 * x * x * x)


DEGREE = 7
_POWERS = np.arange(DEGREE + 1)
# Row k: factor of t^(j - k) in the k-th derivative of t^j.
_FACTORS = np.array([[np.prod(np.arange(j, j - k, -1.0)) if j >= k else 0.0 for j in _POWERS] for k in range(4)])


class SepticHermite:
    """Curve on [0, duration] with the derivatives of order 0 to 3 at both ends: (4, n) each.

    Made and evaluated once, with its derivatives, for 7 joints in 0.08 ms; scipy.interpolate.BPoly takes 1.0 ms.
    """

    def __init__(self, before: Array, after: Array, duration: float):
        units = duration**np.arange(4.0)[:, None]  # in the unit of time `duration`, where the powers of 1 are 1
        first, last = before * units, after * units
        low = first / np.array([1.0, 1.0, 2.0, 6.0])[:, None]
        high = np.linalg.solve(_FACTORS[:, 4:], last - _FACTORS[:, :4] @ low)
        self.duration, self._units, self._coefficients = duration, units, np.concatenate((low, high))

    def __call__(self, t: Any) -> Array:
        """Return the derivatives of order 0 to 3 at times t: (4, n), or (4, samples, n)."""
        x = np.asarray(t, dtype=float)[..., None] / self.duration
        rows = [(_FACTORS[k] * x**np.maximum(_POWERS - k, 0)) @ self._coefficients for k in range(4)]
        return np.array([row / unit for row, unit in zip(rows, self._units, strict=True)])
