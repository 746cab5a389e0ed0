"""A path q(s) through given points, smooth enough for a torque rate: at least three times continuously differentiable.

Piecewise polynomials of degree 2 r + 1, in Hermite form: the derivatives 0..r at the points are the unknowns, of which the
first ones are given. What is left is fixed by continuity of the next ones at the inner points and by their vanishing at the ends:

    given at the points                  degree   unknown          made continuous        the path is
    q                                    5        q', q''          q''', q''''            C4
    q, direction of q'                   5        q''              q'''                   C3
    q, direction of q', curvature q''    7        q'''             q''''                  C4

s is the chord length from point to point, hence natural: |q'| is about 1 everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

ORDERS = 4  # q, q', q'', q'''


@dataclass(frozen=True, eq=False)
class Path:
    """breaks (pieces + 1,): s at the points; coefficients (pieces, degree + 1, n) of powers of s - breaks[piece]."""

    breaks: np.ndarray
    coefficients: np.ndarray

    @property
    def length(self) -> float:
        return float(self.breaks[-1])

    @property
    def n(self) -> int:
        return self.coefficients.shape[2]

    def __call__(self, s):
        """q, q', q'', q''' (4, samples, n) at s (samples,)."""
        s = np.asarray(s, dtype=float)
        piece = np.clip(np.searchsorted(self.breaks, s, side="right") - 1, 0, len(self.coefficients) - 1)
        powers = _powers(s - self.breaks[piece], self.coefficients.shape[1])
        return np.swapaxes(powers @ self.coefficients[piece], 0, 1)


def _powers(x, size):
    """Derivatives 0..3 of 1, x, ..., x^(size - 1): (samples, 4, size)."""
    plain = np.ones((size, len(x)))
    for k in range(1, size):
        plain[k] = plain[k - 1] * x
    rows = np.zeros((len(x), ORDERS, size))
    for order in range(ORDERS):
        for k in range(order, size):
            rows[:, order, k] = math.perm(k, order) * plain[k - order]
    return rows


def through(points, q1=None, q2=None):
    points = np.asarray(points, float)
    s = np.concatenate(([0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))))
    known = [points] + [x for x in (q1, q2) if x is not None]
    r = 3 if len(known) == 3 else 2
    return Path(s, _spline(s, np.stack(known, 1), r))


def _high(r):
    """The coefficients r+1..2r+1 of the unit Hermite polynomial from derivatives at 0 and at 1: (r+1, r+1) each."""
    k = np.arange(2 * r + 2)
    ends = np.array([[math.perm(j, i) for j in k] for i in range(r + 1)], dtype=float)
    low = np.diag([1.0 / math.factorial(i) for i in range(r + 1)])
    inverse = np.linalg.inv(ends[:, r + 1:])
    return -inverse @ ends[:, :r + 1] @ low, inverse


def _spline(s, known, r):
    """Coefficients (pieces, 2r+2, n) from the given derivatives (points, g+1, n)."""
    count, given, n = known.shape
    h = np.diff(s)
    left, right = _high(r)
    free = r + 1 - given
    orders = range(r + 1, r + 1 + free)
    at0 = np.array([[math.factorial(j) if k == j else 0.0 for k in range(r + 1, 2 * r + 2)] for j in orders]).reshape(free, r + 1)
    at1 = np.array([[math.perm(k, j) for k in range(r + 1, 2 * r + 2)] for j in orders], dtype=float).reshape(free, r + 1)
    scale = h[:, None] ** np.arange(r + 1)  # h^k
    unscale = h[:, None] ** -np.array([float(j) for j in orders]) if free else np.zeros((len(h), 0))
    # jump equations: blocks
    S = lambda A, i: unscale[i][:, None] * A * scale[i]
    X = np.zeros((count, free, n))
    if free:
        lower, diag, upper, rhs = [], [], [], []
        for i in range(count):
            L = np.zeros((free, r + 1)); D = np.zeros((free, r + 1)); U = np.zeros((free, r + 1))
            if i > 0:
                L = S(at1 @ left, i - 1); D = D + S(at1 @ right, i - 1)
            if i < count - 1:
                D = D - S(at0 @ left, i); U = -S(at0 @ right, i)
            b = -D[:, :given] @ known[i]
            if i > 0: b = b - L[:, :given] @ known[i - 1]
            if i < count - 1: b = b - U[:, :given] @ known[i + 1]
            lower.append(L[:, given:]); diag.append(D[:, given:]); upper.append(U[:, given:]); rhs.append(b)
        for i in range(1, count):
            f = np.linalg.solve(diag[i - 1].T, lower[i].T).T
            diag[i] = diag[i] - f @ upper[i - 1]
            rhs[i] = rhs[i] - f @ rhs[i - 1]
        X[-1] = np.linalg.solve(diag[-1], rhs[-1])
        for i in range(count - 2, -1, -1):
            X[i] = np.linalg.solve(diag[i], rhs[i] - upper[i] @ X[i + 1])
    full = np.concatenate((known, X), axis=1)
    a = full[:-1] * scale[:, :, None]
    b = full[1:] * scale[:, :, None]
    low = a / np.array([math.factorial(i) for i in range(r + 1)])[None, :, None]
    high = left @ a + right @ b
    return np.concatenate((low, high), axis=1) * (h[:, None] ** -np.arange(2.0 * r + 2))[:, :, None]
