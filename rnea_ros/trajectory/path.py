"""Path q(s) through given waypoints, smooth enough for a torque rate: three times continuously differentiable or more.

Piecewise polynomials of degree 2 r + 1 in Hermite form: the derivatives 0..r at the waypoints are the unknowns, the first of
them are given. The rest follows from continuity of as many higher derivatives at the inner waypoints, and from straight ends:

    given at the waypoints         degree   unknown    made continuous   zero at both ends   the path is
    q                              5        q', q''    q''', q''''       q'', q'''           C4
    q, direction                   5        q''        q'''              q''                 C3
    q, direction, curvature        7        q'''       q''''             q'''                C4

scipy.interpolate.make_interp_spline builds the first row in 0.14 ms, this module in 0.96 ms (10 points, 7 joints); it has no
rows with given directions or curvatures, and no stops.

s is the sum of the chords from waypoint to waypoint, so |q'| is about 1 everywhere. At a stop, where the motion rests, the
path may have a corner.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ..codegen.kernel import Tiles
from ..errors import InputError, shown
from .sample_kernels import N_DERIVATIVES, SampleFunction, polynomial_derivatives

MAX_COORDINATE = 1e9  # rad, m; beyond, the spacing of doubles is too coarse for a motion
DETOUR_SAMPLES = 8  # between two waypoints
MAX_DETOUR_RATIO = 30.0  # of |q'|; no spline through consistent waypoints exceeds it
LEG_END_GAP = 1e-13  # share of the length by which a leg ends before a corner
NEAR_DUPLICATE_SHARE = 1e-6  # of the length; waypoints nearer to each other turn rounding errors into detours


class Path:
    """Path as piecewise polynomials.

    breaks       : (pieces + 1,) s at the waypoints
    coefficients : (pieces, degree + 1, n) of the powers of s - breaks[piece]
    stops        : values of s strictly inside at which the motion must rest
    """

    def __init__(self, breaks: np.ndarray, coefficients: np.ndarray, stops: Iterable[float] = ()):
        self.breaks, self.coefficients, self.stops = breaks, coefficients, tuple(stops)
        self.n = coefficients.shape[2]
        self.length = float(breaks[-1])
        self._flat = np.ascontiguousarray(coefficients, dtype=float).reshape(len(coefficients), -1)
        self._inner = breaks[1:-1].tolist()
        self._starts = breaks[:-1].tolist()

    def __reduce__(self) -> tuple:
        return Path, (self.breaks, self.coefficients, self.stops)

    def __call__(self, s: Any) -> np.ndarray:
        """Return q, q', q'', q''' (4, samples, n) at s (samples,); beyond an end, those of the end."""
        blocks = self._blocks(s)
        (found,) = self._derivatives(blocks, len(blocks[0]))
        return np.moveaxis(found, 1, 0)

    def tiled(self, s: np.ndarray) -> list[Tiles]:
        """Return the same at s (samples,) as four blocks of tiles."""
        (found,) = self._derivatives.tiled(self._blocks(s), len(s))
        return [Tiles(found.data[:, k * self.n:(k + 1) * self.n], found.count) for k in range(N_DERIVATIVES)]

    @property
    def _derivatives(self) -> SampleFunction:
        return polynomial_derivatives(self.coefficients.shape[1], self.n)

    def _blocks(self, s: Any) -> list[np.ndarray]:
        s = np.clip(np.asarray(s, dtype=float), 0.0, self.length)
        piece = np.searchsorted(self.breaks[1:-1], s, side="right")
        return [(s - self.breaks[piece])[:, None], self._flat[piece]]

    @cached_property
    def _stacked(self) -> np.ndarray:
        """Row k of each piece: contribution of the k-th power to q, q', q'', q''', side by side."""
        size = self.coefficients.shape[1]
        stacked = np.zeros((len(self.coefficients), size, N_DERIVATIVES, self.n))
        for order in range(N_DERIVATIVES):
            for k in range(size - order):
                stacked[:, k, order] = math.perm(k + order, order) * self.coefficients[:, k + order]
        return stacked.reshape(len(self.coefficients), size, N_DERIVATIVES * self.n)

    def at(self, s: float) -> np.ndarray:
        """Return q, q', q'', q''' (4, n) at one s: in microseconds, but for the first call."""
        s = min(max(s, 0.0), self.length)
        piece = bisect_right(self._inner, s)
        x, power, powers = s - self._starts[piece], 1.0, []
        for _ in range(self._stacked.shape[1]):
            powers.append(power)
            power *= x
        return np.dot(powers, self._stacked[piece]).reshape(N_DERIVATIVES, self.n)

    def legs(self) -> list[tuple[float, float]]:
        """Return the intervals of s between stops; each ends just before its stop, where the leg's derivatives hold."""
        edges = [0.0, *self.stops, self.length]
        return [(a, b - LEG_END_GAP * self.length if b < self.length else b) for a, b in pairwise(edges)]

    def check_detours(self) -> None:
        """Raise InputError where the path strays from the chords: its waypoints contradict each other."""
        h = np.diff(self.breaks)
        s = self.breaks[:-1, None] + h[:, None] * np.linspace(0.05, 0.95, DETOUR_SAMPLES)
        slope = np.linalg.norm(self(s.ravel())[1], axis=1).reshape(s.shape).max(axis=1)
        worst = int(slope.argmax())
        if slope[worst] > MAX_DETOUR_RATIO:
            raise InputError(f"a smooth path would make a detour between points {worst} and {worst + 1} of it, "
                             f"{h[worst]:.3g} apart: there it is {slope[worst]:.3g} times as long. Other points are too near "
                             "to each other for where they lead, or velocities point elsewhere: leave those out")


def path_through(points: Any, tangents: Any = None, curvatures: Any = None, stops: Sequence[int] = (), s: Any = None) -> Path:
    """Return the path through waypoints (count, n).

    tangents   : (count, n) directions of q', of any length; a zero row leaves that one to the spline
    curvatures : (count, n) q'', only with tangents
    stops      : numbers of inner waypoints where the motion rests and the path may have a corner
    s          : (count,) increasing values of s at the waypoints instead of the sum of chords
    """
    points = validate_waypoints(points)
    if points.ndim != 2 or len(points) < 2 or not points.shape[1]:
        raise InputError(f"points have shape {points.shape}; two rows or more, of a column for each joint, are needed")
    chords = np.linalg.norm(np.diff(points, axis=0), axis=1)
    if not chords.all():
        k = int(np.argmin(chords))
        raise InputError(f"points {k} and {k + 1} are the same: {points[k].tolist()}")
    s = np.concatenate(([0.0], np.cumsum(chords))) if s is None else np.asarray(s, dtype=float)
    given = [finite_array("tangents", tangents, points.shape)] if tangents is not None else []
    if given and curvatures is not None:
        given.append(finite_array("curvatures", curvatures, points.shape))
    cuts = [0, *sorted(set(stops)), len(points) - 1]
    legs = [_leg_coefficients(s[a:b + 1], points[a:b + 1], [block[a:b + 1] for block in given]) for a, b in pairwise(cuts)]
    return Path(s, np.concatenate(legs), stops=[float(s[k]) for k in cuts[1:-1]])


def drop_near_duplicates(points: np.ndarray, needed: np.ndarray, min_distance: float) -> np.ndarray:
    """Return a mask (count,) of the points (count, n) to keep: all needed ones, others at a distance from the last kept."""
    keep = np.ones(len(points), dtype=bool)
    if np.linalg.norm(np.diff(points, axis=0), axis=1).min(initial=np.inf) >= min_distance:
        return keep
    last = 0
    for k in range(1, len(points)):
        is_near = float(np.linalg.norm(points[k] - points[last])) < min_distance
        keep[k], keep[last] = needed[k] or not is_near, keep[last] and (needed[last] or not needed[k] or not is_near)
        last = k if keep[k] else last
    return keep


def validate_waypoints(points: Any) -> np.ndarray:
    """Return waypoints (count, n) as an array. Raises InputError for values that are not finite or too large."""
    found = finite_array("points", points)
    if (far := np.abs(found) > MAX_COORDINATE).any():
        index = np.argwhere(far)[0].tolist()
        raise InputError(f"points{index} is {found[tuple(index)]:g}; a path goes no further than {MAX_COORDINATE:g} rad or m "
                         "from zero")
    return found


def finite_array(name: str, value: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Return an array of finite numbers, of a shape if given. Raises InputError."""
    try:
        found = np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} are not an array of numbers: {shown(value)}") from None
    if shape is not None and found.shape != shape:
        raise InputError(f"{name} have shape {found.shape}; {shape} is needed")
    if not np.isfinite(found).all():
        index = np.argwhere(~np.isfinite(found))[0].tolist()
        raise InputError(f"{name}{index} is {found[tuple(index)]}; every value must be a finite number")
    return found


# ---------------------------------------------------------------------------------------------------------------- splines


def _leg_coefficients(s: np.ndarray, points: np.ndarray, given: list[np.ndarray]) -> np.ndarray:
    """Return the coefficients between two stops."""
    known = points[:, None]
    if given:
        # q' of the path without directions: at the waypoints without a direction
        free = hermite_spline(s, known, 2)[:, 1]
        free = np.concatenate((free, _slope_at_end(s, hermite_spline(s, known, 2))[None]))
        size = np.linalg.norm(given[0], axis=1, keepdims=True)
        tangents = np.where(size > 0.0, given[0] / np.where(size > 0.0, size, 1.0), free)
        known = np.stack((points, tangents, *given[1:]), axis=1)
    return hermite_spline(s, known, 3 if len(given) == 2 else 2)


def _slope_at_end(s: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    h = s[-1] - s[-2]
    return sum(k * h ** (k - 1) * coefficients[-1, k] for k in range(1, coefficients.shape[1]))


def hermite_spline(s: np.ndarray, known: np.ndarray, r: int, rest: bool = False) -> np.ndarray:
    """Return the coefficients (pieces, 2 r + 2, n) of the spline of degree 2 r + 1 with derivatives 0..g `known`.

    known : (points, g + 1, n)
    rest  : all unknown derivatives up to r vanish at both ends; else those from r on do
    """
    h = np.diff(s)
    free = r + 1 - known.shape[1]
    scale = h[:, None] ** np.arange(r + 1)  # from derivatives by s to derivatives over a unit interval
    high = _unit_hermite(r)
    whole = np.concatenate((known, _unknown_derivatives(h, known, r, free, rest, scale, high)), axis=1)
    ends = np.concatenate((whole[:-1] * scale[..., None], whole[1:] * scale[..., None]), axis=1)
    # relative to the first point: a common offset only adds rounding errors
    ends[:, 0], ends[:, r + 1] = 0.0, np.diff(known[:, 0], axis=0)
    low = ends[:, :r + 1] / np.array([math.factorial(k) for k in range(r + 1)])[:, None]
    low[:, 0] = known[:-1, 0]
    return np.concatenate((low, high @ ends), axis=1) * (h[:, None] ** -np.arange(2.0 * r + 2.0))[..., None]


def _unit_hermite(r: int) -> np.ndarray:
    """Return the matrix (r + 1, 2 r + 2) from the derivatives 0..r at x = 0, then at x = 1, to coefficients r+1 .. 2r+1."""
    at_1 = np.array([[math.perm(k, j) for k in range(2 * r + 2)] for j in range(r + 1)], dtype=float)
    low = np.diag([1.0 / math.factorial(k) for k in range(r + 1)])
    return np.linalg.solve(at_1[:, r + 1:], np.hstack((-at_1[:, :r + 1] @ low, np.eye(r + 1))))


def _unknown_derivatives(h: np.ndarray, known: np.ndarray, r: int, free: int, rest: bool, scale: np.ndarray,
                         high: np.ndarray) -> np.ndarray:
    """Return the remaining derivatives (points, free, n), for which r+1 .. r+free do not jump at inner points."""
    orders = range(r + 1, r + 1 + free)
    powers = range(r + 1, 2 * r + 2)
    at_0 = np.array([[math.factorial(j) * (j == k) for k in powers] for j in orders], dtype=float).reshape(free, r + 1) @ high
    at_1 = np.array([[math.perm(k, j) for k in powers] for j in orders], dtype=float).reshape(free, r + 1) @ high
    to_s = h[:, None] ** -np.array([float(j) for j in orders])
    both = np.concatenate((scale, scale), axis=1)[:, None]
    start, end = ((to_s[..., None] * block * both).reshape(len(h), free, 2, r + 1) for block in (at_0, at_1))
    rows = np.zeros((len(h) + 1, 3, free, r + 1))  # equations at each point: by the point before, itself, the one behind
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
    steps = np.diff(known[:, :1], axis=0)  # a common offset of the points only adds rounding errors
    right[1:] -= rows[1:, 0, :, 1:cut] @ known[:-1, 1:] - rows[1:, 0, :, :1] @ steps
    right[:-1] -= rows[:-1, 2, :, 1:cut] @ known[1:, 1:] + rows[:-1, 2, :, :1] @ steps
    return solve_block_tridiagonal(rows[:, 0, :, cut:], rows[:, 1, :, cut:], rows[:, 2, :, cut:], right)


def solve_block_tridiagonal(before: np.ndarray, here: np.ndarray, behind: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return X (count, size, n) with before[i] X[i-1] + here[i] X[i] + behind[i] X[i+1] = right[i], by odd-even reduction.

    Every other unknown is eliminated, all of these at once, then every other one of those that remain.
    """
    count, size = len(here), here.shape[1]
    if count == 1:
        return np.linalg.solve(here, right)
    solved = np.linalg.solve(here[1::2], np.concatenate((before[1::2], behind[1::2], right[1::2]), axis=2))
    # X[odd] = rest - low X[before] - high X[behind]
    low, high, rest = map(np.ascontiguousarray, np.split(solved, (size, 2 * size), axis=2))
    to_behind, to_before = behind[:count - 1:2], before[2::2]
    has_behind = slice(0, len(to_before))  # the odd unknowns that have one behind
    left, middle, ahead, share = (np.array(block[::2]) for block in (before, here, behind, right))
    middle[:len(to_behind)] -= to_behind @ low
    share[:len(to_behind)] -= to_behind @ rest
    ahead[:len(to_behind)] = -to_behind @ high
    left[1:] = -to_before @ low[has_behind]
    middle[1:] -= to_before @ high[has_behind]
    share[1:] -= to_before @ rest[has_behind]
    X = np.empty_like(right)
    X[::2] = even = solve_block_tridiagonal(left, middle, ahead, share)
    X[1::2] = rest - low @ even[:len(rest)]
    X[1:-1:2] -= high[has_behind] @ even[1:]
    return X
