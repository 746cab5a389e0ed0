"""A path q(s) through given points, smooth enough for a torque rate: three times continuously differentiable or more.

Piecewise polynomials of degree 2 r + 1 in Hermite form: the derivatives 0..r at the points are the unknowns, the first of them
are given. The rest follows from continuity of as many higher derivatives at the inner points, and from straight ends:

    given at the points            degree   unknown    made continuous   zero at both ends   the path is
    q                              5        q', q''    q''', q''''       q'', q'''           C4
    q, direction                   5        q''        q'''              q''                 C3
    q, direction, curvature        7        q'''       q''''             q'''                C4

s is the sum of the chords from point to point, so |q'| is about 1 everywhere. At a stop, where the motion rests, the path may
have a corner.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import InputError, shown
from .polynomials import ORDERS, derivatives

FARTHEST = 1e9  # rad, m; beyond, doubles lie too far apart for a motion
LOOKS = 8  # between two points, for detours
DETOUR = 30.0  # times the sum of chords; no spline through sensible points is as long anywhere
BEFORE = 1e-13  # of the length, by which a leg ends before a corner
NEAR = 1e-6  # of the length; a spline through points that are nearer to each other than that turns roundings into detours


class Path:
    """breaks (pieces + 1,): s at the points; coefficients (pieces, degree + 1, n) of the powers of s - breaks[piece].

    stops: values of s strictly inside, where the motion must rest.
    """

    def __init__(self, breaks: np.ndarray, coefficients: np.ndarray, stops: Iterable[float] = ()):
        self.breaks, self.coefficients, self.stops = breaks, coefficients, tuple(stops)
        self.n = coefficients.shape[2]
        self.length = float(breaks[-1])
        size = coefficients.shape[1]
        # row k: what s^k contributes to q, q', q'', q''', side by side
        stacked = np.zeros((len(coefficients), size, ORDERS, self.n))
        for order in range(ORDERS):
            for k in range(size - order):
                stacked[:, k, order] = math.perm(k + order, order) * coefficients[:, k + order]
        self._stacked = stacked.reshape(len(coefficients), size, ORDERS * self.n)
        self._flat = np.ascontiguousarray(coefficients, dtype=float).reshape(len(coefficients), size * self.n)
        self._inner = breaks[1:-1].tolist()
        self._starts = breaks[:-1].tolist()

    def __reduce__(self) -> tuple:
        return Path, (self.breaks, self.coefficients, self.stops)

    def __call__(self, s: Any) -> np.ndarray:
        """q, q', q'', q''' (4, samples, n) at s (samples,); beyond an end, the end."""
        s = np.clip(np.asarray(s, dtype=float), 0.0, self.length)
        piece = np.searchsorted(self.breaks[1:-1], s, side="right")
        x, size = s - self.breaks[piece], self.coefficients.shape[1]
        (found,) = derivatives(size, self.n)([x[:, None], self._flat[piece]], len(s))
        return np.moveaxis(found, 1, 0)

    def legs(self) -> list[tuple[float, float]]:
        """From stop to stop; a leg ends a hair before its stop, where the path still has the leg's derivatives."""
        edges = [0.0, *self.stops, self.length]
        return [(a, b - BEFORE * self.length if b < self.length else b) for a, b in pairwise(edges)]

    def check_detours(self) -> None:
        """Raises InputError where the path strays from the chords: its points contradict each other."""
        h = np.diff(self.breaks)
        looks = self.breaks[:-1, None] + h[:, None] * np.linspace(0.05, 0.95, LOOKS)
        slope = np.linalg.norm(self(looks.ravel())[1], axis=1).reshape(looks.shape).max(axis=1)
        worst = int(slope.argmax())
        if slope[worst] > DETOUR:
            raise InputError(f"a smooth path would make a detour between points {worst} and {worst + 1} of it, "
                             f"{h[worst]:.3g} apart: there it is {slope[worst]:.3g} times as long. Other points are too near "
                             "to each other for where they lead, or velocities point elsewhere: leave those out")

    def at(self, s: float) -> np.ndarray:
        """The same for one s: (4, n)."""
        s = min(max(s, 0.0), self.length)
        piece = bisect_right(self._inner, s)
        x, power, powers = s - self._starts[piece], 1.0, []
        for _ in range(self._stacked.shape[1]):
            powers.append(power)
            power *= x
        return np.dot(powers, self._stacked[piece]).reshape(ORDERS, self.n)


def through(points: Any, tangents: Any = None, curvatures: Any = None, stops: Sequence[int] = (), s: Any = None) -> Path:
    """The path through points (count, n).

    tangents   : (count, n) directions of q', of any length; a zero row leaves that one to the spline
    curvatures : (count, n) q'', only with tangents
    stops      : numbers of inner points where the motion rests and the path may have a corner
    s          : (count,) increasing values of s at the points instead of the sum of chords
    """
    points = places(points)
    if points.ndim != 2 or len(points) < 2 or not points.shape[1]:
        raise InputError(f"points have shape {points.shape}; two rows or more, of a column for each joint, are needed")
    chords = np.linalg.norm(np.diff(points, axis=0), axis=1)
    if not chords.all():
        where = int(np.argmin(chords))
        raise InputError(f"points {where} and {where + 1} are the same: {points[where].tolist()}")
    s = np.concatenate(([0.0], np.cumsum(chords))) if s is None else np.asarray(s, dtype=float)
    given = [array("tangents", tangents, points.shape)] if tangents is not None else []
    if given and curvatures is not None:
        given.append(array("curvatures", curvatures, points.shape))
    cuts = [0, *sorted(set(stops)), len(points) - 1]
    legs = [_leg(s[a:b + 1], points[a:b + 1], [block[a:b + 1] for block in given]) for a, b in pairwise(cuts)]
    return Path(s, np.concatenate(legs), stops=[float(s[k]) for k in cuts[1:-1]])


def apart(points: np.ndarray, needed: np.ndarray, least: float) -> np.ndarray:
    """(count,) which of the points (count, n) to keep, for none to be within `least` of the one before: all needed ones."""
    keep = np.ones(len(points), dtype=bool)
    if np.linalg.norm(np.diff(points, axis=0), axis=1).min(initial=np.inf) >= least:
        return keep
    last = 0
    for k in range(1, len(points)):
        near = float(np.linalg.norm(points[k] - points[last])) < least
        keep[k], keep[last] = needed[k] or not near, keep[last] and (needed[last] or not needed[k] or not near)
        last = k if keep[k] else last
    return keep


def places(points: Any) -> np.ndarray:
    """Points (count, n) that a path can go through."""
    found = array("points", points)
    if (far := np.abs(found) > FARTHEST).any():
        where = np.argwhere(far)[0].tolist()
        raise InputError(f"points{where} is {found[tuple(where)]:g}; a path goes no further than {FARTHEST:g} rad or m from "
                         "zero")
    return found


def array(name: str, value: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Finite numbers of a shape."""
    try:
        found = np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} are not an array of numbers: {shown(value)}") from None
    if shape is not None and found.shape != shape:
        raise InputError(f"{name} have shape {found.shape}; {shape} is needed")
    if not np.isfinite(found).all():
        where = np.argwhere(~np.isfinite(found))[0].tolist()
        raise InputError(f"{name}{where} is {found[tuple(where)]}; every value must be a finite number")
    return found


def _leg(s: np.ndarray, points: np.ndarray, given: list[np.ndarray]) -> np.ndarray:
    """Coefficients between two stops."""
    known = points[:, None]
    if given:
        free = spline(s, known, 2)[:, 1]  # q' of the path without directions: for ends, and for its length
        free = np.concatenate((free, _slope_at_end(s, spline(s, known, 2))[None]))
        size = np.linalg.norm(given[0], axis=1, keepdims=True)
        tangents = np.where(size > 0.0, given[0] / np.where(size > 0.0, size, 1.0), free)
        known = np.stack((points, tangents, *given[1:]), axis=1)
    return spline(s, known, 3 if len(given) == 2 else 2)


def _slope_at_end(s: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    h = s[-1] - s[-2]
    return sum(k * h ** (k - 1) * coefficients[-1, k] for k in range(1, coefficients.shape[1]))


def spline(s: np.ndarray, known: np.ndarray, r: int, rest: bool = False) -> np.ndarray:
    """Coefficients (pieces, 2 r + 2, n) of the spline of degree 2 r + 1 with the derivatives 0..g `known` (points, g + 1, n).

    rest: all unknown derivatives up to r vanish at both ends; else those from r on do.
    """
    h = np.diff(s)
    free = r + 1 - known.shape[1]
    scale = h[:, None] ** np.arange(r + 1)  # from derivatives in s to derivatives over a unit interval
    high = _unit_hermite(r)
    whole = np.concatenate((known, _unknown(h, known, r, free, rest, scale, high)), axis=1)
    ends = np.concatenate((whole[:-1] * scale[..., None], whole[1:] * scale[..., None]), axis=1)
    ends[:, 0], ends[:, r + 1] = 0.0, np.diff(known[:, 0], axis=0)  # from the first point: what both share would only round
    low = ends[:, :r + 1] / np.array([math.factorial(k) for k in range(r + 1)])[:, None]
    low[:, 0] = known[:-1, 0]
    return np.concatenate((low, high @ ends), axis=1) * (h[:, None] ** -np.arange(2.0 * r + 2.0))[..., None]


def _unit_hermite(r: int) -> np.ndarray:
    """(r + 1, 2 r + 2): coefficients of x^(r+1) .. x^(2r+1) from the derivatives 0..r at x = 0, then at x = 1."""
    at_1 = np.array([[math.perm(k, j) for k in range(2 * r + 2)] for j in range(r + 1)], dtype=float)
    low = np.diag([1.0 / math.factorial(k) for k in range(r + 1)])
    return np.linalg.solve(at_1[:, r + 1:], np.hstack((-at_1[:, :r + 1] @ low, np.eye(r + 1))))


def _unknown(h: np.ndarray, known: np.ndarray, r: int, free: int, rest: bool, scale: np.ndarray,
             high: np.ndarray) -> np.ndarray:
    """The remaining derivatives (points, free, n): no jump of derivatives r+1 .. r+free at inner points."""
    orders = range(r + 1, r + 1 + free)
    powers = range(r + 1, 2 * r + 2)
    at_0 = np.array([[math.factorial(j) * (j == k) for k in powers] for j in orders], dtype=float).reshape(free, r + 1) @ high
    at_1 = np.array([[math.perm(k, j) for k in powers] for j in orders], dtype=float).reshape(free, r + 1) @ high
    back = h[:, None] ** -np.array([float(j) for j in orders])
    both = np.concatenate((scale, scale), axis=1)[:, None]
    start, end = ((back[..., None] * block * both).reshape(len(h), free, 2, r + 1) for block in (at_0, at_1))
    rows = np.zeros((len(h) + 1, 3, free, r + 1))  # of the equations: the point before, the point itself, the point behind
    rows[1:, 0], rows[1:, 1] = end[:, :, 0], end[:, :, 1]
    rows[:-1, 1] -= start[:, :, 0]
    rows[:-1, 2] = -start[:, :, 1]
    rows[0], rows[-1] = 0.0, 0.0
    for row in range(free):
        order = (r + 1 - free if rest else r) + row
        if order <= r:
            rows[0, 1, row, order] = rows[-1, 1, row, order] = 1.0
        else:
            rows[0, 1:, row] = start[0, order - r - 1]
            rows[-1, :2, row] = end[-1, order - r - 1]
    cut = r + 1 - free
    right = -(rows[:, 1, :, 1:cut] @ known[:, 1:])
    steps = np.diff(known[:, :1], axis=0)  # what all points share, changes nothing but roundings
    right[1:] -= rows[1:, 0, :, 1:cut] @ known[:-1, 1:] - rows[1:, 0, :, :1] @ steps
    right[:-1] -= rows[:-1, 2, :, 1:cut] @ known[1:, 1:] + rows[:-1, 2, :, :1] @ steps
    return solve_blocks(rows[:, 0, :, cut:], rows[:, 1, :, cut:], rows[:, 2, :, cut:], right)


def solve_blocks(before: np.ndarray, here: np.ndarray, behind: np.ndarray, right: np.ndarray) -> np.ndarray:
    """X (count, size, n) with before[i] X[i-1] + here[i] X[i] + behind[i] X[i+1] = right[i].

    Every other unknown is eliminated, all of these at once, then every other one of those that are left (odd-even reduction).
    """
    count, size = len(here), here.shape[1]
    if count == 1:
        return np.linalg.solve(here, right)
    solved = np.linalg.solve(here[1::2], np.concatenate((before[1::2], behind[1::2], right[1::2]), axis=2))
    # X[odd] = rest - low X[before] - high X[behind]
    low, high, rest = map(np.ascontiguousarray, np.split(solved, (size, 2 * size), axis=2))
    onward, back = behind[:count - 1:2], before[2::2]
    follow = slice(0, len(back))  # the odd ones that have one behind
    left, middle, ahead, share = (np.array(block[::2]) for block in (before, here, behind, right))
    middle[:len(onward)] -= onward @ low
    share[:len(onward)] -= onward @ rest
    ahead[:len(onward)] = -onward @ high
    left[1:] = -back @ low[follow]
    middle[1:] -= back @ high[follow]
    share[1:] -= back @ rest[follow]
    X = np.empty_like(right)
    X[::2] = kept = solve_blocks(left, middle, ahead, share)
    X[1::2] = rest - low @ kept[:len(rest)]
    X[1:-1:2] -= high[follow] @ kept[1:]
    return X
