"""Clamped B-splines on [0, 1]: basis functions, their derivatives, and the same curve on finer knots.

Barman, thesis, (4.13) q(t) = sum_i B_i(t, s) p_i; (4.14) spaces the knots s evenly, here they may lie anywhere. C. de Boor, A
Practical Guide to Splines: the recursion over degrees, and derivatives as splines of a lower degree.

    breaks   (spans + 1,) where polynomial pieces of the curve meet, rising from 0 to 1
    s        knots: the breaks, both ends degree + 1 times, so that the curve starts in p_1 and ends in p_m
    m        spans + degree control points
"""

from __future__ import annotations

import numpy as np

ORDERS = 4  # a curve and its first three derivatives


def basis(breaks: np.ndarray, degree: int, span: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The basis functions that are not zero in the given spans, (samples, ORDERS, degree + 1): B, B', B'', B''' at u.

    Those of span k belong to control points k .. k + degree. u is inside its span or at one of its ends: which derivative is
    meant where the highest ones jump is said by the span.
    """
    s = np.concatenate((np.repeat(breaks[0], degree), breaks, np.repeat(breaks[-1], degree)))
    m = len(s) - degree - 1
    rows, differences = [], np.eye(m)
    for order in range(ORDERS):
        if order > degree:
            rows.append(np.zeros((len(u), m)))
            continue
        lower = degree - order
        rows.append(_values(s[order:len(s) - order], lower, span + lower, u) @ differences)
        if lower:
            inner = s[order + 1:len(s) - order - 1]  # knots of the derivative
            slopes = lower / (inner[lower:] - inner[:len(inner) - lower])
            differences = slopes[:, None] * np.diff(differences, axis=0)
    local = span[:, None, None] + np.arange(degree + 1)
    return np.take_along_axis(np.stack(rows, axis=1), np.broadcast_to(local, (len(u), ORDERS, degree + 1)), axis=2)


def _values(s, degree, interval, u):
    """All basis functions (samples, m) of knots s, seen from the knot interval that u lies in."""
    B = np.eye(len(s) - 1)[interval]
    for d in range(1, degree + 1):
        width = s[d:] - s[:-d]
        share = (u[:, None] - s[:-d]) / np.where(width > 0.0, width, 1.0)  # 0/0 is 0: there B is zero
        B = share[:, :-1] * B[:, :-1] + (1.0 - share[:, 1:]) * B[:, 1:]
    return B


def span_of(breaks: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The span that each u lies in; at a break, the one after it."""
    return np.clip(np.searchsorted(breaks, u, side="right") - 1, 0, len(breaks) - 2)


def refined(breaks: np.ndarray, degree: int, points: np.ndarray, finer: np.ndarray) -> np.ndarray:
    """Control points (m, n) of the same curve on breaks that contain those of the curve.

    Interpolation at the finer knots' averages (Greville), one for each control point, has one solution: the curve itself.
    """
    s = np.concatenate((np.repeat(finer[0], degree), finer, np.repeat(finer[-1], degree)))
    u = np.convolve(s[1:-1], np.full(degree, 1.0 / degree), mode="valid")
    here, there = span_of(breaks, u), span_of(finer, u)
    values = np.einsum("sa,saj->sj", basis(breaks, degree, here, u)[:, 0], points[here[:, None] + np.arange(degree + 1)])
    matrix = np.zeros((len(u), len(u)))
    np.put_along_axis(matrix, there[:, None] + np.arange(degree + 1), basis(finer, degree, there, u)[:, 0], axis=1)
    return np.linalg.solve(matrix, values)
