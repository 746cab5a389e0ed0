"""Where a plan is looked at, and where it is made finer.

Nodes are the Gauss-Lobatto points of every span, both ends included: a quadrature, and for what jumps at a break, both sides.
Two things happen after a solution, each from what it showed:

    split  spans are halved where the curve bends more than its pieces can follow: where a bound changes hands
    peaks  between the nodes a quantity may bulge out of its limits: the tops of the bulges become nodes
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .bspline import Curve, span_of

SPLIT = 0.05  # spans are halved whose need is more than this share of the largest
LOOKS = 40  # in every span, for peaks


class Nodes(NamedTuple):
    """Instants at which a motion is looked at, (K,) each.

    span   : that the instant belongs to; decides the side at a break
    u      : t / T
    weight : of the quadrature over u
    """

    span: np.ndarray
    u: np.ndarray
    weight: np.ndarray


def nodes(breaks: np.ndarray, per_span: int, extra: np.ndarray | None = None) -> Nodes:
    """Lobatto nodes of all spans, and those at `extra`, which weigh nothing."""
    polynomial = np.polynomial.legendre.Legendre.basis(per_span - 1)
    x = np.concatenate(([-1.0], np.sort(polynomial.deriv().roots().real), [1.0]))
    weights = 1.0 / (per_span * (per_span - 1) * polynomial(x) ** 2)
    u = _inside(breaks, (x + 1.0) / 2.0)
    span = np.repeat(np.arange(len(u)), per_span)
    weight = np.diff(breaks)[:, None] * weights
    extra = np.zeros(0) if extra is None else extra
    all_u, all_spans = np.concatenate((u.ravel(), extra)), np.concatenate((span, span_of(breaks, extra)))
    order = np.lexsort((all_u, all_spans))
    return Nodes(all_spans[order], all_u[order], np.concatenate((weight.ravel(), np.zeros(len(extra))))[order])


def looks(breaks: np.ndarray, per_span: int) -> Nodes:
    """Evenly spread nodes, ends of every span included."""
    return Nodes(np.repeat(np.arange(len(breaks) - 1), per_span), _inside(breaks, np.linspace(0.0, 1.0, per_span)).ravel(),
                 np.zeros(per_span * (len(breaks) - 1)))


def _inside(breaks, shares):
    """(spans, shares) places in every span; its ends exactly."""
    return breaks[:-1, None] * (1.0 - shares) + breaks[1:, None] * shares


def split(curve: Curve) -> np.ndarray:
    """Finer breaks: the jumps of the highest derivative at the ends of a span, times its width to that power, say how far
    the curve may be from what a finer one would be."""
    jumps = np.abs(np.diff(curve.highest(), axis=0)).max(axis=1)
    need = np.diff(curve.breaks) ** curve.degree * np.maximum(np.append(jumps[:1], jumps), np.append(jumps, jumps[-1:]))
    chosen = np.flatnonzero(need > SPLIT * need.max())
    return np.sort(np.concatenate((curve.breaks, (curve.breaks[chosen] + curve.breaks[chosen + 1]) / 2.0)))


def peaks(at: Nodes, excess: np.ndarray, tolerance: float) -> np.ndarray:
    """Tops of the bulges of excess (K, k) seen at evenly spread nodes: parabolas through three neighbours each.

    Each parabola answers for half a step to both sides, the first and last of a span for what is left of it.
    """
    a, b, c = excess[:-2], excess[1:-1], excess[2:]
    bend, lean = a - 2.0 * b + c, (c - a) / 2.0
    shift = np.where(bend < 0.0, -lean / np.where(bend < 0.0, bend, 1.0), np.inf)
    inside = (at.span[:-2] == at.span[2:])[:, None]
    before = np.where(np.append(True, at.span[:-3] != at.span[1:-2]), -1.0, -0.5)[:, None]
    after = np.where(np.append(at.span[2:-1] != at.span[3:], True), 1.0, 0.5)[:, None]
    top = b + lean * shift / 2.0
    k, j = np.nonzero(inside & (before <= shift) & (shift <= after) & (np.where(np.isfinite(shift), top, -1.0) > tolerance))
    return np.unique(at.u[k + 1] + shift[k, j] * (at.u[k + 2] - at.u[k + 1]))
