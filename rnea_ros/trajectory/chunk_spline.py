"""A motion in time from a moving state through the points of an action chunk to rest: quintic smoothing splines.

Among all C4 splines of degree five on given knots that begin with a given position, velocity, acceleration and jerk and end at
rest, `fit` returns the one that minimizes

    sum of (q(t_i) - p_i)^2 + smoothing * integral of (d^3 q / dt^3)^2 dt

(Reinsch 1967, with the third derivative; time in units of the chunk's period). With smoothing = INTERPOLATION the spline
passes through the points to rounding, and the points leave two parts free, where the integral alone decides: the *bridge* from
the state at the splice to the first point, and the *tail* behind the last point, which brakes to rest with the least jerk and
ends where that is least. Jerk is continuous everywhere, at the splice too, so torque is continuously differentiable.

The smoothing spline cuts off wavelengths below about 2 pi smoothing^(1/6) periods (the transfer function of the unconstrained
problem is 1 / (1 + smoothing w^6)).

Basis functions are B-splines as polynomials in each interval (Cox-de Boor recursion on coefficients). The ends fix the outer
control points: the first four follow from the initial state, the last four are equal. The normal equations are a band matrix.
With about 60 unknowns they are solved as dense ones in 0.1 ms; larger ones are divided, also since threads of BLAS and LAPACK
wait for one another on a busy machine: 100 points took 0.1 s there, and take 0.6 ms.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .path import Path

DEGREE = 5
SIZE = DEGREE + 1
FIXED_START = 4  # control points that the initial position, velocity, acceleration and jerk determine
EQUAL_END = 4  # control points that are equal where velocity, acceleration and jerk are zero
INTERPOLATION = 1e-10  # smoothing with which points are met to rounding
TAIL_INTERVALS = 6
MAX_INTERVALS = 200  # of a bridge or a tail, where points are close together
# multiplications of a matrix product, targets of a part of a larger one, and unknowns: with no more, OpenBLAS uses one thread
MAX_PRODUCT, MAX_TARGETS, MAX_DENSE = 262_144, 48, 80
_FACTORIALS = np.array([math.factorial(k) for k in range(SIZE)], dtype=float)
# integral over an interval of length 1 of products of the third derivatives of x^3, x^4, x^5
_JERK = np.array([6.0, 24.0, 60.0])
_GRAM = _JERK[:, None] * _JERK / (np.arange(3)[:, None] + np.arange(3) + 1.0)


class Targets(NamedTuple):
    """Points of a motion: times (count,) [s], increasing; positions (count, n) [rad, m]; unit: usual period of the points [s].
    """

    times: np.ndarray
    positions: np.ndarray
    unit: float


def fit(state: np.ndarray, targets: Targets, tail: float, smoothing: float = INTERPOLATION) -> Path:
    """Return the motion as a path in time: `path(t)` is q, qd, qdd, qddd at t, from 0 (the splice) to `path.length` (at rest).

    state   : (4, n) position, velocity, acceleration and jerk at time 0
    targets : points with times relative to the splice; none: the motion stops
    tail    : duration of braking after the last target [s]
    """
    unit = targets.unit
    knots = _knots(targets.times, tail, unit)
    basis = _basis(knots / unit)
    scale = unit ** np.arange(FIXED_START)[:, None]
    control = _solve(basis, np.diff(knots) / unit, state * scale, np.searchsorted(knots, targets.times), targets.positions,
                     smoothing)
    local = control[np.arange(len(basis))[:, None] + np.arange(SIZE)]
    coefficients = basis.transpose(0, 2, 1) @ local
    coefficients /= unit ** np.arange(SIZE)[:, None]
    coefficients[0, :FIXED_START] = state / _FACTORIALS[:FIXED_START, None]  # to the last bit
    return Path(knots, coefficients)


def _knots(times: np.ndarray, tail: float, unit: float) -> np.ndarray:
    """Return the knots: at the targets, in the bridge before them and in the tail after them."""
    first = times[0] if len(times) else 0.0
    bridge = min(max(2, math.ceil(first / unit - 1e-9)), MAX_INTERVALS) if len(times) else 1
    before = first * np.arange(bridge) / bridge
    last = times[-1] if len(times) else 0.0
    count = min(max(TAIL_INTERVALS, math.ceil(tail / (2.0 * unit))), MAX_INTERVALS) if len(times) else 2 * TAIL_INTERVALS
    behind = last + tail * np.arange(1, count + 1) / count
    return np.concatenate((before, times, behind)) if len(times) else np.concatenate(([0.0], behind))


def _basis(knots: np.ndarray) -> np.ndarray:
    """Return the B-splines of each interval (intervals, function, power of the time since the start of the interval)."""
    count = len(knots) - 1
    u = np.concatenate((np.full(DEGREE, knots[0]), knots, np.full(DEGREE, knots[-1])))
    windows = sliding_window_view(u, count)[1:2 * DEGREE + 1]  # row k: the k-th of ten knots around each interval
    since = knots[:-1] - windows  # from each knot to the interval's start
    found = np.ones((1, 1, count))  # function, power, interval: those of one degree that are not zero in the interval
    for degree in range(1, SIZE):
        spans = windows[DEGREE:DEGREE + degree] - windows[DEGREE - degree:DEGREE]
        shares = found * np.divide(1.0, spans, out=np.zeros_like(spans), where=spans > 0.0)[:, None]
        found, slopes = np.zeros((degree + 1, degree + 1, count)), np.zeros((degree + 1, degree, count))
        found[1:, :degree] = since[DEGREE - degree:DEGREE, None] * shares
        found[:-1, :degree] -= since[DEGREE:DEGREE + degree, None] * shares
        slopes[1:] = shares
        slopes[:-1] -= shares
        found[:, 1:] += slopes
    return np.ascontiguousarray(found.transpose(2, 0, 1))


def _solve(basis: np.ndarray, h: np.ndarray, state: np.ndarray, at: np.ndarray, positions: np.ndarray,
           smoothing: float) -> np.ndarray:
    """Return the control points (intervals + 5, n)."""
    count = len(basis)
    size = count + DEGREE
    third = basis[:, :, 3:] * h[:, None, None] ** np.arange(3)
    local = (third @ _GRAM) @ third.transpose(0, 2, 1) * h[:, None, None]
    normal = np.zeros((size, size))
    flat, stride = normal.reshape(-1), size + 1
    for a in range(SIZE):
        for b in range(SIZE):  # a diagonal each
            flat[a * size + b: (a + count - 1) * size + b + count: stride] += local[:, a, b]
    normal *= smoothing
    right = np.zeros((size, state.shape[1]))
    is_small = size * size * len(at) <= MAX_PRODUCT
    step = max(1, len(at) if is_small else MAX_TARGETS)
    for first in range(0, len(at), step):
        index, points = at[first:first + step], positions[first:first + step]
        used = slice(0, size) if is_small else slice(index[0], index[-1] + SIZE)
        rows = np.zeros((len(index), size))  # a target is at the start of an interval: there the last function is zero
        rows[np.arange(len(index))[:, None], index[:, None] + np.arange(SIZE)] = basis[index, :, 0]
        rows = rows[:, used]
        normal[used, used] += rows.T @ rows
        right[used] += rows.T @ points
    fixed = np.linalg.solve(basis[0, :FIXED_START, :FIXED_START].T * _FACTORIALS[:FIXED_START, None], state)
    first_equal = size - EQUAL_END
    right -= normal[:, :FIXED_START] @ fixed
    normal[:, first_equal] = normal[:, first_equal:].sum(axis=1)
    normal[first_equal] = normal[first_equal:].sum(axis=0)
    right[first_equal] = right[first_equal:].sum(axis=0)
    free = slice(FIXED_START, first_equal + 1)
    solved = _solve_banded(normal[free, free], right[free])
    return np.concatenate((fixed, solved, np.broadcast_to(solved[-1], (EQUAL_END - 1, state.shape[1]))))


def _solve_banded(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return matrix^-1 right for a positive definite matrix with DEGREE diagonals on each side; large systems are divided."""
    size = len(matrix)
    if size <= MAX_DENSE:
        return np.linalg.solve(matrix, right)
    middle = slice(size // 2, size // 2 + DEGREE)  # what is before and behind is coupled by these unknowns alone
    before, behind = slice(0, middle.start), slice(middle.stop, size)
    halves = [_solve_banded(matrix[half, half], np.concatenate((right[half], matrix[half, middle]), axis=1))
              for half in (before, behind)]
    columns = right.shape[1]
    left = np.concatenate((right[middle], matrix[middle, middle]), axis=1)
    for half, found in zip((before, behind), halves, strict=True):
        left -= matrix[middle, half] @ found
    between = np.linalg.solve(left[:, columns:], left[:, :columns])
    first, last = (found[:, :columns] - found[:, columns:] @ between for found in halves)
    return np.concatenate((first, between, last))
