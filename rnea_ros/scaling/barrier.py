"""Interior point method for the fastest rate of a clock: the numbers behind profile.py, which says why y = k^2 is the unknown.

Minimize the integral of 1 / sqrt y - mu sum log (1 - value^2) over a uniform cubic spline y(sigma), for mu -> 0, where the
values are those of the rows at four points of each interval. Newton's matrix is that of Gauss and Newton for the rows (second
derivatives of the values left out) and the exact one for the time: positive definite, with a band of four.

With a schedule, the motion must not be anywhere before its time, and what is minimized is its lateness at the end and, a
little, on the way. Every t(sigma) depends on all y before, so the matrix is full then.
"""

from __future__ import annotations

import numpy as np

from .path import solve_blocks

POINTS = np.array([0.0, 0.5 - 0.1 * 5.0**0.5, 0.5 + 0.1 * 5.0**0.5, 1.0])  # of Lobatto: both ends, and exact to degree five
WEIGHTS = np.array([1.0, 5.0, 5.0, 1.0]) / 12.0
EARLY = 1e-4  # s; by which a motion on schedule may be ahead of it
ON_THE_WAY = 0.1  # weight of mean lateness against that at the end
SHRINK = 0.2  # of mu
STEPS = 30  # of Newton for each mu
NOTHING = 2e-6  # what a step could still gain, relative, that is not worth it
BLOCK = 8  # unknowns eliminated together


def spline_at(x: np.ndarray, step: float) -> np.ndarray:
    """(samples, 3, 4): y, y', y'' at shares x of an interval from the four coefficients that matter there."""
    o = np.ones_like(x)
    y = np.stack(((1 - x) ** 3, 3 * x**3 - 6 * x**2 + 4, -3 * x**3 + 3 * x**2 + 3 * x + 1, x**3), axis=-1) / 6.0
    y1 = np.stack((-(1 - x) ** 2, 3 * x**2 - 4 * x, -3 * x**2 + 2 * x + 1, x**2), axis=-1) / 2.0
    y2 = np.stack((1 - x, 3 * x - 2, o - 3 * x, x), axis=-1)
    return np.stack((y, y1 / step, y2 / step**2), axis=1)


def refined(c: np.ndarray) -> np.ndarray:
    """Coefficients of the same spline on intervals of half the size."""
    finer = np.empty(2 * len(c) - 3)
    finer[0::2] = 0.5 * (c[:-1] + c[1:])
    finer[1::2] = (c[:-2] + 6.0 * c[1:-1] + c[2:]) / 8.0
    return finer


def values_on(c: np.ndarray, spline: np.ndarray) -> np.ndarray:
    """y, y', y'' (intervals, samples, 3)."""
    windows = np.lib.stride_tricks.sliding_window_view(c, 4)
    return np.einsum("pda,ka->kpd", spline, windows)


def weighed(y: np.ndarray) -> np.ndarray:
    """(..., 7): what the rows of terms.py weigh, from (..., 3) y, y', y'', with k = sqrt y, kappa = y'/2, w = k y''/2."""
    y, y1, y2 = np.moveaxis(y, -1, 0)
    k = np.sqrt(y)
    return np.stack((np.ones_like(y), k, y, 0.5 * y1, y * k, 0.5 * k * y1, 0.5 * k * y2), axis=-1)


def weighed_slope(y: np.ndarray) -> np.ndarray:
    """(..., 3, 7): derivatives of `weighed` by y, y', y''."""
    y, y1, y2 = np.moveaxis(y, -1, 0)
    k = np.sqrt(y)
    slope = np.zeros((*y.shape, 3, 7))
    slope[..., 0, 1], slope[..., 0, 2], slope[..., 0, 4] = 0.5 / k, 1.0, 1.5 * k
    slope[..., 0, 5], slope[..., 0, 6] = y1 / (4.0 * k), y2 / (4.0 * k)
    slope[..., 1, 3], slope[..., 1, 5] = 0.5, 0.5 * k
    slope[..., 2, 6] = 0.5 * k
    return slope


class Barrier:
    """rows (intervals, points, 7, rows) on intervals of length `step`; values must stay within -1 and 1.

    fixed : number of leading coefficients that stay
    due   : a schedule: the earliest times (intervals,) at the ends of the intervals [s]
    """

    def __init__(self, rows: np.ndarray, step: float, fixed: int = 0, due: np.ndarray | None = None):
        self.rows, self.step, self.fixed, self.due = rows, step, fixed, due
        self.intervals = len(rows)
        self.spline = spline_at(POINTS, step)
        self.weights = WEIGHTS * step
        self.cost = np.broadcast_to(self.weights, (self.intervals, len(POINTS)))
        if due is not None:  # the integral of t by parts
            ahead = 1.0 - (np.arange(self.intervals)[:, None] + POINTS) / self.intervals
            self.cost = self.cost * (1.0 + ON_THE_WAY * ahead)
        self.count = 2 * rows[:, :, 0].size  # of inequalities

    def time(self, c: np.ndarray) -> float:
        return float((self.weights / np.sqrt(values_on(c, self.spline)[..., 0])).sum())

    def merit(self, c: np.ndarray, mu: float) -> float:
        """inf where c is not feasible."""
        y = values_on(c, self.spline)
        if y[..., 0].min() <= 0.0:
            return np.inf
        values = (weighed(y)[..., None, :] @ self.rows)[..., 0, :]
        left = 1.0 - values * values
        if not left.min() > 0.0:
            return np.inf
        value = float((self.cost / np.sqrt(y[..., 0])).sum() - mu * np.log(left).sum())
        if self.due is not None:
            lateness = self._lateness(y)
            value = value - mu * float(np.log(lateness).sum()) if lateness.min() > 0.0 else np.inf
        return value

    def _lateness(self, y: np.ndarray) -> np.ndarray:
        """(intervals,) at the end of each, EARLY added."""
        assert self.due is not None
        return EARLY + np.cumsum((self.weights / np.sqrt(y[..., 0])).sum(axis=1)) - self.due

    def report(self, seconds: float) -> None:
        """Told the time so far."""

    def solve(self, c: np.ndarray, first: float, gap: float) -> np.ndarray:
        """Follow mu from first to gap, both as a share of the time; c must be feasible, and so is the result."""
        mu, last = (share * self.time(c) / self.count for share in (first, gap))
        while True:
            c = self._centred(c, mu)
            self.report(self.time(c))
            if mu <= last:
                return c
            mu = max(SHRINK * mu, last)

    def _centred(self, c: np.ndarray, mu: float) -> np.ndarray:
        merit = self.merit(c, mu)
        for _ in range(STEPS):
            direction, slope = self._newton(c, mu)
            length = 1.0
            while (new := self.merit(c + length * direction, mu)) > merit - 0.1 * length * slope:
                length *= 0.5
                if length < 1e-6:
                    return c
            c, merit = c + length * direction, new
            if slope < max(5.0 * mu, NOTHING * merit):
                break
        return c

    def _newton(self, c: np.ndarray, mu: float) -> tuple[np.ndarray, float]:
        """Newton's direction, and how fast the merit falls along it."""
        y = values_on(c, self.spline)
        values = (weighed(y)[..., None, :] @ self.rows)[..., 0, :]
        slopes = weighed_slope(y) @ self.rows
        above, below = 1.0 / (1.0 - values), 1.0 / (1.0 + values)
        gradient = (slopes @ (mu * (above - below))[..., None])[..., 0]
        gradient[..., 0] -= 0.5 * self.cost * y[..., 0] ** -1.5
        hessian = (slopes * (mu * (above**2 + below**2))[..., None, :]) @ np.swapaxes(slopes, -1, -2)
        hessian[..., 0, 0] += 0.75 * self.cost * y[..., 0] ** -2.5
        local = np.einsum("pda,kpd->ka", self.spline, gradient)
        square = (np.swapaxes(self.spline, 1, 2) @ hessian @ self.spline).sum(axis=1)
        g, H = self._assembled(local, square)
        if self.due is not None:
            self._keep_schedule(y, mu, g, H)
        g, H = g[self.fixed:], H[self.fixed:, self.fixed:]
        solution = _solve_banded(H, -g) if self.due is None else np.linalg.solve(H, -g)
        direction = np.concatenate((np.zeros(self.fixed), solution))
        return direction, -float(g @ direction[self.fixed:])

    def _assembled(self, local: np.ndarray, square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        size, at = self.intervals + 3, np.arange(self.intervals)
        g, H = np.zeros(size), np.zeros((size, size))
        for a in range(4):
            g[at + a] += local[:, a]
            for b in range(4):
                H[at + a, at + b] += square[:, a, b]
        return g, H

    def _keep_schedule(self, y: np.ndarray, mu: float, g: np.ndarray, H: np.ndarray) -> None:
        """Add the schedule's share to the gradient and to the matrix."""
        at = np.arange(self.intervals)
        slopes = np.zeros((self.intervals, self.intervals + 3))
        local = -0.5 * (self.weights * y[..., 0] ** -1.5) @ self.spline[:, 0]
        for a in range(4):
            slopes[at, at + a] = local[:, a]
        slopes = np.cumsum(slopes, axis=0) / self._lateness(y)[:, None]
        g -= mu * slopes.sum(axis=0)
        H += mu * slopes.T @ slopes


def _solve_banded(H: np.ndarray, right: np.ndarray) -> np.ndarray:
    """A banded system by blocks: at these sizes threads of a linear algebra library cost more than they give."""
    count = -(-len(right) // BLOCK)
    padded, b = np.eye(count * BLOCK), np.zeros(count * BLOCK)
    padded[:len(right), :len(right)], b[:len(right)] = H, right
    blocks = padded.reshape(count, BLOCK, count, BLOCK)
    at = np.arange(count)
    before, behind = np.zeros((2, count, BLOCK, BLOCK))
    before[1:], behind[:-1] = blocks[at[1:], :, at[:-1]], blocks[at[:-1], :, at[1:]]
    return solve_blocks(before, blocks[at, :, at], behind, b.reshape(count, BLOCK, 1)).ravel()[:len(right)]
