"""Motions as clamped B-splines: basis functions, their derivatives, and the same curve on finer knots.

Barman, thesis, (4.13) q(t) = sum_i B_i(t, s) p_i; (4.14) spaces the knots s evenly, here they may lie anywhere. Splines are
scipy's; which piece is meant where two meet is said here.

    u        t / T in [0, 1]
    degree   3 or more
    breaks   (spans + 1,) where polynomial pieces meet, rising from 0 to 1
    s        knots: the breaks, both ends degree + 1 times, so that the curve starts in p_1 and ends in p_m
    m        spans + degree control points

What planning hands back.

Where a plan is looked at, and where it is made finer.

Nodes are the Gauss-Lobatto points of every span, both ends included: a quadrature, and for what jumps at a break, both sides.
Two things happen after a solution, each from what it showed:

    split  spans are halved where a bound changes hands, or pieces are too long for another reason
    peaks  between the nodes a quantity may bulge out of its limits: the tops of the bulges become nodes
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


@dataclass(frozen=True, eq=False)
class PlannedMotion:
    """A planned motion.

    objective  : integral of the cost; the duration where time alone counts
    excess     : limited quantity -> by how much it is beyond a limit anywhere, relative, looked at much more densely than
                 planned; negative: what is left
    iterations : of the solver, all its calls together
    notes      : what is worth knowing, one sentence each: limits that are unknown, steps that failed
    """

    curve: Curve
    objective: float
    excess: dict[str, float]
    iterations: int
    notes: tuple[str, ...] = ()

    @property
    def duration(self) -> float:
        """[s]."""
        return self.curve.duration

    @property
    def control_points(self) -> int:
        return len(self.curve.points)

    def __call__(self, t: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return q, qd, qdd, qddd at time t [s] from 0 to the duration: (n,) each, or (samples, n) at times (samples,).

        Where the jerk jumps, it is the value after the jump.
        """
        if np.ndim(t) == 0:
            q, qd, qdd, qddd = (array[0] for array in self(np.asarray([t], dtype=float)))
            return q, qd, qdd, qddd
        u = np.asarray(t, dtype=float) / (self.duration or 1.0)
        if u.ndim != 1 or not ((u >= 0.0) & (u <= 1.0 + 1e-12)).all():
            raise InputError(f"t is {t!r:.60}; a time, or times (samples,), from 0 to {self.duration:.17g} s are needed")
        q, qd, qdd, qddd = np.swapaxes(self.curve.motion(span_of(self.curve.breaks, u), np.minimum(u, 1.0)), 0, 1)
        return q, qd, qdd, qddd


SPLIT_THRESHOLD = 0.3  # spans are halved whose need is more than this share of the largest
SAMPLES_PER_SPAN = 40  # in every span, for peaks
BREAK_OFFSET = 1e-6  # of the duration


class PlanNodes(NamedTuple):
    """Instants at which a motion is looked at, (K,) each: `regular` ones, then single ones.

    span   : that the instant belongs to; decides the side at a break
    u      : t / T
    weight : of the quadrature over u
    single : (number of the limited quantity, component) of the one limit that is enforced at each of the others
    """

    span: np.ndarray
    u: np.ndarray
    weight: np.ndarray
    single: Sequence[tuple[int, int]] = ()

    @property
    def regular(self) -> int:
        return len(self.u) - len(self.single)

    @property
    def inner(self) -> np.ndarray:
        """u; where two nodes meet, each a little to its own side: a cost that begins there counts at the second alone."""
        meet = np.diff(self.u) == 0.0
        return self.u + BREAK_OFFSET * (np.append(False, meet).astype(float) - np.append(meet, False))


class LimitPeak(NamedTuple):
    """A place where component of limited quantity `number` bulges beyond its limit, relative excess `height`."""

    u: float
    height: float
    number: int
    component: int


def lobatto_nodes(breaks: np.ndarray, per_span: int, peaks: Sequence[LimitPeak] = ()) -> PlanNodes:
    """Lobatto nodes of all spans; peaks as single nodes, which weigh nothing."""
    polynomial = np.polynomial.legendre.Legendre.basis(per_span - 1)
    x = np.concatenate(([-1.0], np.sort(polynomial.deriv().roots().real), [1.0]))
    weights = np.diff(breaks)[:, None] / (per_span * (per_span - 1) * polynomial(x) ** 2)
    u = _interpolate_spans(breaks, (x + 1.0) / 2.0)
    return _with_peaks(peaks, breaks, np.repeat(np.arange(len(u)), per_span), u.ravel(), weights.ravel())


def prescribed_nodes(breaks: np.ndarray, u: np.ndarray, peaks: Sequence[LimitPeak] = ()) -> PlanNodes:
    """Prescribed nodes, both ends among them; the quadrature is the trapezoid rule; peaks as above."""
    steps = np.diff(u) / 2.0
    return _with_peaks(peaks, breaks, span_of(breaks, u), u, np.append(steps, 0.0) + np.append(0.0, steps))


def _with_peaks(peaks, breaks, span, u, weight):
    tops = np.array([peak.u for peak in peaks])
    return PlanNodes(np.append(span, span_of(breaks, tops)), np.append(u, tops), np.append(weight, 0.0 * tops),
                 [(peak.number, peak.component) for peak in peaks])


def evenly_spread(breaks: np.ndarray, per_span: int) -> PlanNodes:
    """Evenly spread nodes, ends of every span included."""
    u = _interpolate_spans(breaks, np.linspace(0.0, 1.0, per_span)).ravel()
    return PlanNodes(np.repeat(np.arange(len(breaks) - 1), per_span), u, np.zeros(per_span * (len(breaks) - 1)))


def _interpolate_spans(breaks, shares):
    """(spans, shares) places in every span; its ends exactly."""
    return breaks[:-1, None] * (1.0 - shares) + breaks[1:, None] * shares


def split_spans(curve: Curve) -> np.ndarray:
    """Finer breaks, where the highest derivative (one value in each span) says that pieces are too long.

    Where a bound changes hands, what should jump becomes a ramp of a span or two, and the highest derivative a spike there; or
    it takes a value between two levels. In both cases it differs from both neighbourhoods, two spans wide; times the width
    to the power of the degree, that is the size of the error.
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
    """Tops of the bulges of a quantity's excess (K, k) seen at evenly spread nodes: parabolas through three neighbours each.

    Each parabola answers for half a step to both sides, the first and last of a span for what is left of it.
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
