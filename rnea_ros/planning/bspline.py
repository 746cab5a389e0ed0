"""Clamped B-splines: basis functions, refinement of knots, quadrature nodes, and planned motions.

Barman, thesis, (4.13) q(t) = sum_i B_i(t, s) p_i; (4.14) uses evenly spaced knots s, here any spacing is allowed. Splines
are scipy's; the piece to evaluate at a break is given explicitly.

    u        t / T in [0, 1]
    degree   3 or more
    breaks   (spans + 1,) where polynomial pieces meet, increasing from 0 to 1
    s        knots: the breaks, both ends degree + 1 times, so that the curve starts in p_1 and ends in p_m
    m        spans + degree control points

Nodes are the Gauss-Lobatto points of every span, both ends included: a quadrature, and both sides of a discontinuity at a
break. After a solution, spans are halved where active limits change (split_spans), and peaks of limited quantities between
the nodes become nodes (find_peaks).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from .problem import ORDERS

POWERS = np.arange(ORDERS)


@dataclass(frozen=True, eq=False)
class Curve:
    """Motion as a B-spline: breaks (spans + 1,), control points (m, n), duration T [s]."""

    degree: int
    breaks: np.ndarray
    points: np.ndarray
    duration: float

    def motion(self, span: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return y (samples, ORDERS, n): q, qd, qdd, qddd at u (samples,), evaluated in the given spans."""
        points = self.points[span[:, None] + np.arange(self.degree + 1)]
        rate = 1.0 / self.duration if self.duration else 0.0
        return basis(self.breaks, self.degree, span, u) @ points * (rate ** POWERS)[:, None]

    def refined(self, finer: np.ndarray) -> Curve:
        """Return the same curve on finer breaks, which contain its own.

        It is the unique interpolant at the Greville abscissae of the finer knots.
        """
        from scipy.interpolate import make_interp_spline

        u = greville_abscissae(finer, self.degree)
        positions = self.motion(span_of(self.breaks, u), u)[:, 0]
        points = make_interp_spline(u, positions, self.degree, knots(finer, self.degree)).c
        return Curve(self.degree, finer, points, self.duration)

    def highest(self) -> np.ndarray:
        """Return the derivative of order `degree` with respect to u, constant in every span, (spans, n)."""
        from scipy.interpolate import BSpline

        spline = BSpline(knots(self.breaks, self.degree), self.points, self.degree)
        return spline.derivative(self.degree)((self.breaks[:-1] + self.breaks[1:]) / 2.0)


def knots(breaks: np.ndarray, degree: int) -> np.ndarray:
    """Return the clamped knots of breaks."""
    return np.concatenate((np.repeat(breaks[0], degree), breaks, np.repeat(breaks[-1], degree)))


def greville_abscissae(breaks: np.ndarray, degree: int) -> np.ndarray:
    """Return the Greville abscissae (m,), averages of the knots of each basis function."""
    return np.convolve(knots(breaks, degree)[1:-1], np.full(degree, 1.0 / degree), mode="valid")


def span_of(breaks: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return the span that contains each u; at a break, the one after it."""
    return np.clip(np.searchsorted(breaks, u, side="right") - 1, 0, len(breaks) - 2)


def basis(breaks: np.ndarray, degree: int, span: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return the non-zero basis functions in the given spans, (samples, ORDERS, degree + 1): B, B', B'', B''' at u.

    Those of span k belong to control points k .. k + degree. u is inside its span or at one of its ends; the span determines
    the side where the highest derivatives jump.
    """
    from scipy.interpolate import BSpline

    s, identity = knots(breaks, degree), np.eye(len(breaks) - 1 + degree)
    after, before = BSpline(s, identity, degree), BSpline(-s[::-1], identity[::-1], degree)  # at a break; the second mirrored
    ending = span_of(breaks, u) != span
    values = np.stack([after(u, order) for order in POWERS], axis=1)
    values[ending] = np.stack([(-1.0) ** order * before(-u[ending], order) for order in POWERS], axis=1)
    local = span[:, None, None] + np.arange(degree + 1)
    return np.take_along_axis(values, np.broadcast_to(local, (len(u), ORDERS, degree + 1)), axis=2)


@dataclass(frozen=True, eq=False)
class PlannedMotion:
    """Planned motion.

    objective  : integral of the cost; the duration for time-optimal plans
    excess     : largest relative excess of each limited quantity on a grid much denser than that of the plan; negative: margin
    iterations : iterations of all solver calls
    notes      : unknown limits and failed steps, one sentence each
    """

    curve: Curve
    objective: float
    excess: dict[str, float]
    iterations: int
    notes: tuple[str, ...] = ()

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return self.curve.duration

    @property
    def control_points(self) -> int:
        """Number of control points."""
        return len(self.curve.points)

    def __call__(self, t: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return q, qd, qdd, qddd at time t [s] from 0 to the duration: (n,) each, or (samples, n) at times (samples,).

        At a discontinuity, the jerk is its value after the jump.
        """
        if np.ndim(t) == 0:
            q, qd, qdd, qddd = (array[0] for array in self(np.asarray([t], dtype=float)))
            return q, qd, qdd, qddd
        u = np.asarray(t, dtype=float) / (self.duration or 1.0)
        if u.ndim != 1 or not ((u >= 0.0) & (u <= 1.0 + 1e-12)).all():
            raise InputError(f"t is {t!r:.60}; a time, or times (samples,), from 0 to {self.duration:.17g} s are needed")
        q, qd, qdd, qddd = np.swapaxes(self.curve.motion(span_of(self.curve.breaks, u), np.minimum(u, 1.0)), 0, 1)
        return q, qd, qdd, qddd


SPLIT_THRESHOLD = 0.3  # error estimate over the largest above which a span is halved
SAMPLES_PER_SPAN = 40  # samples of every span in the search for peaks
BREAK_OFFSET = 1e-6  # offset of coinciding nodes into their own span, as a share of the duration


class PlanNodes(NamedTuple):
    """Instants at which a motion is evaluated, (K,) each: `regular` nodes, then single nodes.

    span   : span of the node; it determines the side at a break
    u      : t / T
    weight : weight of the quadrature over u
    single : (index of the limited quantity, component) of the only limit that is enforced at each single node
    """

    span: np.ndarray
    u: np.ndarray
    weight: np.ndarray
    single: Sequence[tuple[int, int]] = ()

    @property
    def regular(self) -> int:
        """Number of regular nodes."""
        return len(self.u) - len(self.single)

    @property
    def inner(self) -> np.ndarray:
        """u, with coinciding nodes moved slightly into their own span: a cost that starts there applies only to the second."""
        meet = np.diff(self.u) == 0.0
        return self.u + BREAK_OFFSET * (np.append(False, meet).astype(float) - np.append(meet, False))


class LimitPeak(NamedTuple):
    """Peak of a component of limited quantity `number` above its limit, with the relative excess `height`."""

    u: float
    height: float
    number: int
    component: int


def lobatto_nodes(breaks: np.ndarray, per_span: int, peaks: Sequence[LimitPeak] = ()) -> PlanNodes:
    """Return the Gauss-Lobatto nodes of all spans; peaks become single nodes without weight."""
    polynomial = np.polynomial.legendre.Legendre.basis(per_span - 1)
    x = np.concatenate(([-1.0], np.sort(polynomial.deriv().roots().real), [1.0]))
    weights = np.diff(breaks)[:, None] / (per_span * (per_span - 1) * polynomial(x) ** 2)
    u = _interpolate_spans(breaks, (x + 1.0) / 2.0)
    return _with_peaks(peaks, breaks, np.repeat(np.arange(len(u)), per_span), u.ravel(), weights.ravel())


def prescribed_nodes(breaks: np.ndarray, u: np.ndarray, peaks: Sequence[LimitPeak] = ()) -> PlanNodes:
    """Return prescribed nodes, including both ends, with the trapezoidal rule; for peaks see lobatto_nodes."""
    steps = np.diff(u) / 2.0
    return _with_peaks(peaks, breaks, span_of(breaks, u), u, np.append(steps, 0.0) + np.append(0.0, steps))


def _with_peaks(peaks, breaks, span, u, weight):
    tops = np.array([peak.u for peak in peaks])
    return PlanNodes(np.append(span, span_of(breaks, tops)), np.append(u, tops), np.append(weight, 0.0 * tops),
                 [(peak.number, peak.component) for peak in peaks])


def evenly_spread(breaks: np.ndarray, per_span: int) -> PlanNodes:
    """Return evenly spaced nodes, including the ends of every span."""
    u = _interpolate_spans(breaks, np.linspace(0.0, 1.0, per_span)).ravel()
    return PlanNodes(np.repeat(np.arange(len(breaks) - 1), per_span), u, np.zeros(per_span * (len(breaks) - 1)))


def _interpolate_spans(breaks, shares):
    """Return instants (spans, shares) in every span, exact at its ends."""
    return breaks[:-1, None] * (1.0 - shares) + breaks[1:, None] * shares


def split_spans(curve: Curve) -> np.ndarray:
    """Return finer breaks where the highest derivative (one value in each span) indicates that spans are too long.

    Where the active limit changes, a step becomes a ramp of one or two spans and the highest derivative a spike, or a value
    between two levels. In both cases it differs from both neighbourhoods, two spans wide; times the width to the power of the
    degree, this estimates the error.
    """
    highest = curve.highest()
    edge = np.full((2, highest.shape[1]), np.inf)
    padded = np.concatenate((edge, highest, edge))
    left = np.maximum(np.abs(highest - padded[1:-3]), np.abs(highest - padded[:-4]))
    right = np.maximum(np.abs(highest - padded[3:-1]), np.abs(highest - padded[4:]))
    deviation = np.minimum(left, right)
    need = np.diff(curve.breaks) ** curve.degree * np.where(np.isfinite(deviation), deviation, 0.0).max(axis=1)
    chosen = np.flatnonzero(need > SPLIT_THRESHOLD * need.max())
    return np.sort(np.concatenate((curve.breaks, (curve.breaks[chosen] + curve.breaks[chosen + 1]) / 2.0)))


def find_peaks(at: PlanNodes, number: int, excess: np.ndarray, tolerance: float) -> Iterator[LimitPeak]:
    """Yield peaks of the excess (K, k) of a quantity at evenly spaced nodes, by parabolas through three neighbours.

    Each parabola is used for half a step on both sides, the first and last one of a span up to its end.
    """
    excess = np.maximum(excess, -1.0)  # -inf where there is no limit
    a, b, c = excess[:-2], excess[1:-1], excess[2:]
    limited = np.minimum(np.minimum(a, b), c) > -1.0  # at all three: next to others a window begins or ends
    bend, lean = a - 2.0 * b + c, (c - a) / 2.0
    hollow = ~(bend < 0.0)  # or a line
    shift = np.where(hollow, np.inf, -lean / np.where(hollow, 1.0, bend))
    top = np.where(hollow, -np.inf, b + lean * np.where(hollow, 0.0, shift) / 2.0)
    inside = (at.span[:-2] == at.span[2:])[:, None]
    before = np.where(np.append(True, at.span[:-3] != at.span[1:-2]), -1.0, -0.5)[:, None]
    after = np.where(np.append(at.span[2:-1] != at.span[3:], True), 1.0, 0.5)[:, None]
    for k, j in np.argwhere(limited & inside & (before <= shift) & (shift <= after) & (top > tolerance)):
        yield LimitPeak(float(at.u[k + 1] + shift[k, j] * (at.u[k + 2] - at.u[k + 1])), float(top[k, j]), number, int(j))
