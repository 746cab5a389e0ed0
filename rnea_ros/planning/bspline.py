"""Motions as clamped B-splines: basis functions, their derivatives, and the same curve on finer knots.

Barman, thesis, (4.13) q(t) = sum_i B_i(t, s) p_i; (4.14) spaces the knots s evenly, here they may lie anywhere. C. de Boor, A
Practical Guide to Splines: the recursion over degrees, and derivatives as splines of a lower degree.

    u        t / T in [0, 1]
    degree   3 or more
    breaks   (spans + 1,) where polynomial pieces meet, rising from 0 to 1
    s        knots: the breaks, both ends degree + 1 times, so that the curve starts in p_1 and ends in p_m
    m        spans + degree control points
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .problem import ORDERS

POWERS = np.arange(ORDERS)


@dataclass(frozen=True, eq=False)
class Curve:
    """breaks (spans + 1,), control points (m, n), duration T [s]."""

    degree: int
    breaks: np.ndarray
    points: np.ndarray
    duration: float

    def motion(self, span: np.ndarray, u: np.ndarray) -> np.ndarray:
        """y (samples, ORDERS, n): q, qd, qdd, qddd at u, seen from the given spans."""
        points = self.points[span[:, None] + np.arange(self.degree + 1)]
        rate = 1.0 / self.duration if self.duration else 0.0
        return basis(self.breaks, self.degree, span, u) @ points * (rate ** POWERS)[:, None]

    def refined(self, finer: np.ndarray) -> Curve:
        """The same curve on breaks that contain its own.

        Interpolation at the finer knots' averages has one solution: the curve itself.
        """
        u = averages(finer, self.degree)
        span = span_of(finer, u)
        matrix = np.zeros((len(u), len(u)))
        np.put_along_axis(matrix, span[:, None] + np.arange(self.degree + 1), basis(finer, self.degree, span, u)[:, 0], axis=1)
        points = np.linalg.solve(matrix, self.motion(span_of(self.breaks, u), u)[:, 0])
        return Curve(self.degree, finer, points, self.duration)

    def highest(self) -> np.ndarray:
        """(spans, n): the derivative of order `degree` with respect to u, constant in every span."""
        points = self.points
        for order in range(1, self.degree + 1):
            points = _differences(knots(self.breaks, self.degree), self.degree, order, points)
        return points


def knots(breaks: np.ndarray, degree: int) -> np.ndarray:
    return np.concatenate((np.repeat(breaks[0], degree), breaks, np.repeat(breaks[-1], degree)))


def averages(breaks: np.ndarray, degree: int) -> np.ndarray:
    """(m,) of the knots that shape each basis function (Greville): control points on a line there draw that line."""
    return np.convolve(knots(breaks, degree)[1:-1], np.full(degree, 1.0 / degree), mode="valid")


def span_of(breaks: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The span that each u lies in; at a break, the one after it."""
    return np.clip(np.searchsorted(breaks, u, side="right") - 1, 0, len(breaks) - 2)


def basis(breaks: np.ndarray, degree: int, span: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The basis functions that are not zero in the given spans, (samples, ORDERS, degree + 1): B, B', B'', B''' at u.

    Those of span k belong to control points k .. k + degree. u is inside its span or at one of its ends: which derivative is
    meant where the highest ones jump is said by the span.
    """
    s = knots(breaks, degree)
    points = np.eye(len(s) - degree - 1)
    rows = [_values(s, degree, span + degree, u)]
    for order in range(1, ORDERS):
        points = _differences(s, degree, order, points)
        rows.append(_values(s[order:len(s) - order], degree - order, span + degree - order, u) @ points)
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


def _differences(s, degree, order, points):
    """Control points of the derivative of that order, from those of the one before."""
    k = degree - order + 1
    return k * np.diff(points, axis=0) / (s[order + k:len(s) - order] - s[order:len(s) - order - k])[:, None]
