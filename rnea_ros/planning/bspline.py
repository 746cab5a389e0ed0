"""Motions as clamped B-splines: basis functions, their derivatives, and the same curve on finer knots.

Barman, thesis, (4.13) q(t) = sum_i B_i(t, s) p_i; (4.14) spaces the knots s evenly, here they may lie anywhere. Splines are
scipy's; which piece is meant where two meet is said here.

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
    """A motion: breaks (spans + 1,), control points (m, n), duration T [s]."""

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
        from scipy.interpolate import make_interp_spline

        u = averages(finer, self.degree)
        places = self.motion(span_of(self.breaks, u), u)[:, 0]
        points = make_interp_spline(u, places, self.degree, knots(finer, self.degree)).c
        return Curve(self.degree, finer, points, self.duration)

    def highest(self) -> np.ndarray:
        """(spans, n): the derivative of order `degree` with respect to u, constant in every span."""
        from scipy.interpolate import BSpline

        spline = BSpline(knots(self.breaks, self.degree), self.points, self.degree)
        return spline.derivative(self.degree)((self.breaks[:-1] + self.breaks[1:]) / 2.0)


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
    from scipy.interpolate import BSpline

    s, identity = knots(breaks, degree), np.eye(len(breaks) - 1 + degree)
    after, before = BSpline(s, identity, degree), BSpline(-s[::-1], identity[::-1], degree)  # at a break; the second mirrored
    ending = span_of(breaks, u) != span
    values = np.stack([after(u, order) for order in POWERS], axis=1)
    values[ending] = np.stack([(-1.0) ** order * before(-u[ending], order) for order in POWERS], axis=1)
    local = span[:, None, None] + np.arange(degree + 1)
    return np.take_along_axis(values, np.broadcast_to(local, (len(u), ORDERS, degree + 1)), axis=2)
