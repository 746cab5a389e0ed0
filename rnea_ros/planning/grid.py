"""Where a plan is looked at, and where it is made finer.

Nodes are the Gauss-Lobatto points of every span, both ends included: a quadrature, and for what jumps at a break, both sides.
Two things happen after a solution, each from what it showed:

    split  spans are halved where a bound changes hands, or pieces are too long for another reason
    peaks  between the nodes a quantity may bulge out of its limits: the tops of the bulges become nodes
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .bspline import Curve, span_of

SPLIT = 0.3  # spans are halved whose need is more than this share of the largest
LOOKS = 40  # in every span, for peaks
INNER = 1e-6  # of the duration


class Nodes(NamedTuple):
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
        return self.u + INNER * (np.append(False, meet).astype(float) - np.append(meet, False))


class Peak(NamedTuple):
    """A place where component of limited quantity `number` bulges beyond its limit, relative excess `height`."""

    u: float
    height: float
    number: int
    component: int


def nodes(breaks: np.ndarray, per_span: int, peaks: Sequence[Peak] = ()) -> Nodes:
    """Lobatto nodes of all spans; peaks as single nodes, which weigh nothing."""
    polynomial = np.polynomial.legendre.Legendre.basis(per_span - 1)
    x = np.concatenate(([-1.0], np.sort(polynomial.deriv().roots().real), [1.0]))
    weights = np.diff(breaks)[:, None] / (per_span * (per_span - 1) * polynomial(x) ** 2)
    u = _inside(breaks, (x + 1.0) / 2.0)
    return _with(peaks, breaks, np.repeat(np.arange(len(u)), per_span), u.ravel(), weights.ravel())


def sampled(breaks: np.ndarray, u: np.ndarray, peaks: Sequence[Peak] = ()) -> Nodes:
    """Prescribed nodes, both ends among them; the quadrature is the trapezoid rule; peaks as above."""
    steps = np.diff(u) / 2.0
    return _with(peaks, breaks, span_of(breaks, u), u, np.append(steps, 0.0) + np.append(0.0, steps))


def _with(peaks, breaks, span, u, weight):
    tops = np.array([peak.u for peak in peaks])
    return Nodes(np.append(span, span_of(breaks, tops)), np.append(u, tops), np.append(weight, 0.0 * tops),
                 [(peak.number, peak.component) for peak in peaks])


def looks(breaks: np.ndarray, per_span: int) -> Nodes:
    """Evenly spread nodes, ends of every span included."""
    return Nodes(np.repeat(np.arange(len(breaks) - 1), per_span), _inside(breaks, np.linspace(0.0, 1.0, per_span)).ravel(),
                 np.zeros(per_span * (len(breaks) - 1)))


def _inside(breaks, shares):
    """(spans, shares) places in every span; its ends exactly."""
    return breaks[:-1, None] * (1.0 - shares) + breaks[1:, None] * shares


def split(curve: Curve) -> np.ndarray:
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
    chosen = np.flatnonzero(need > SPLIT * need.max())
    return np.sort(np.concatenate((curve.breaks, (curve.breaks[chosen] + curve.breaks[chosen + 1]) / 2.0)))


def peaks(at: Nodes, number: int, excess: np.ndarray, tolerance: float) -> Iterator[Peak]:
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
        yield Peak(float(at.u[k + 1] + shift[k, j] * (at.u[k + 2] - at.u[k + 1])), float(top[k, j]), number, int(j))
