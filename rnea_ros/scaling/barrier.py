"""Interior point method for the fastest time scaling of a law: the numbers behind profile.py, which says why y = k^2 is the
unknown.

Minimize the integral of 1 / sqrt y - mu sum log (1 - value^2) over a cubic spline y(sigma), for mu -> 0, where the values are
those of the constraints at four points of each interval between knots. Newton's matrix is that of Gauss and Newton for the
constraints (second derivatives of the values left out) and the exact one for the time: positive definite, with a band of four.

With a schedule, the motion must not be anywhere before its time, and what is minimized is its delay at the end and, a
little, on the way. Every t(sigma) depends on all y before; with the delay and its multiplier at each knot as further
unknowns the matrix is still one of a band.
"""

from __future__ import annotations

import numpy as np

from .path import solve_blocks

POINTS = np.array([0.0, 0.5 - 0.1 * 5.0**0.5, 0.5 + 0.1 * 5.0**0.5, 1.0])  # of Lobatto: both ends, exact to degree five
WEIGHTS = np.array([1.0, 5.0, 5.0, 1.0]) / 12.0
EARLY = 1e-4  # s; by which a motion on schedule may be ahead of it
ON_THE_WAY = 0.1  # weight of the mean delay against that at the end
SHRINK = 0.2  # of mu
STEPS = 30  # of Newton for each mu
FLAT = 1e-3  # of the largest y of an interval: the least one between its points
NOTHING = 2e-6  # what a step could still gain, relative, that is not worth it
BLOCK = 8  # knots whose unknowns are eliminated together


class Spline:
    """Cubic, twice continuously differentiable, with simple knots (intervals + 1,): intervals + 3 coefficients."""

    def __init__(self, knots: np.ndarray):
        self.knots, self.steps = knots, np.diff(knots)
        self.intervals = len(self.steps)
        h = self.steps
        around = np.concatenate((knots[0] - h[0] * np.array([2.0, 1.0]), knots, knots[-1] + h[-1] * np.array([1.0, 2.0])))
        t = np.lib.stride_tricks.sliding_window_view(around, 6)[:, :, None]  # the knots that matter on each interval
        shares = np.arange(4) / 3.0
        x = t[:, 2] + h[:, None] * shares
        bases = [np.ones_like(x)]
        for degree in range(1, 4):  # de Boor's recursion
            saved, bases_below = np.zeros_like(x), bases
            bases = []
            for r, below in enumerate(bases_below):
                right, left = t[:, 3 + r], t[:, 3 + r - degree]
                part = below / (right - left)
                bases.append(saved + (right - x) * part)
                saved = (x - left) * part
            bases.append(saved)
        powers = np.linalg.inv(shares[:, None] ** np.arange(4))
        self._polynomials = powers @ np.stack(bases, axis=-1)  # (intervals, powers of the share, coefficients)

    def at(self, x: np.ndarray) -> np.ndarray:
        """(intervals, samples, 3, 4): y, y', y'' at shares x of every interval, by the four coefficients that matter there."""
        return _derivatives(x) @ self._polynomials[:, None] / self.steps[:, None, None, None] ** np.arange(3.0)[:, None]

    def values(self, c: np.ndarray, sigma: np.ndarray) -> np.ndarray:
        """y, y', y'' (samples, 3) at places sigma."""
        k = np.clip(np.searchsorted(self.knots, sigma, side="right") - 1, 0, self.intervals - 1)
        h = self.steps[k]
        bases = _derivatives((sigma - self.knots[k]) / h) @ self._polynomials[k]
        return (bases @ c[k[:, None] + np.arange(4)][..., None])[..., 0] / h[:, None] ** np.arange(3.0)

    def lowest(self, c: np.ndarray) -> np.ndarray:
        """(intervals,) the least y inside of each, where it has a minimum there, else y at its middle."""
        y0, y1, y2, y3 = (self._polynomials @ np.lib.stride_tricks.sliding_window_view(c, 4)[..., None])[..., 0].T
        root = y2 * y2 - 3.0 * y1 * y3
        bend = np.abs(y2) + np.sqrt(np.maximum(root, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):  # of the two forms the one without cancellation
            x = np.where(y2 > 0.0, -y1 / bend, bend / (3.0 * y3))
        x = np.where((root > 0.0) & (x > 0.0) & (x < 1.0), x, 0.5)
        return ((y3 * x + y2) * x + y1) * x + y0

    def halved(self, c: np.ndarray) -> tuple[Spline, np.ndarray]:
        """The same function, of a uniform spline, on intervals of half the size."""
        finer = np.empty(2 * len(c) - 3)
        finer[0::2] = 0.5 * (c[:-1] + c[1:])
        finer[1::2] = (c[:-2] + 6.0 * c[1:-1] + c[2:]) / 8.0
        return Spline(np.linspace(self.knots[0], self.knots[-1], 2 * self.intervals + 1)), finer


def _derivatives(x: np.ndarray) -> np.ndarray:
    """(samples, 3, 4): 1, x, x^2, x^3 and their first two derivatives."""
    o, i = np.zeros_like(x), np.ones_like(x)
    rows = ((i, x, x**2, x**3), (o, i, 2.0 * x, 3.0 * x**2), (o, o, 2.0 * i, 6.0 * x))
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def weighed(y: np.ndarray) -> np.ndarray:
    """What the coefficients of terms.py multiply (..., 7), from y, y', y'' (..., 3): k = sqrt y, kappa = y'/2, w = k y''/2."""
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
    """Constraint coefficients, rows (intervals, points, 7, constraints), on the intervals of a spline; values must stay within
    -1 and 1.

    fixed : number of leading coefficients that stay
    due   : a schedule: the earliest times (intervals,) at the ends of the intervals [s]
    """

    def __init__(self, rows: np.ndarray, spline: Spline, fixed: int = 0, due: np.ndarray | None = None):
        self.rows, self.spline, self.fixed, self.due = rows, spline, fixed, due
        self.intervals = spline.intervals
        self._bases = spline.at(POINTS)
        self._weights = spline.steps[:, None] * WEIGHTS
        self._cost = self._weights
        if due is not None:  # the integral of t by parts
            places = spline.knots[:-1, None] + spline.steps[:, None] * POINTS
            ahead = (spline.knots[-1] - places) / (spline.knots[-1] - spline.knots[0])
            self._cost = self._cost * (1.0 + ON_THE_WAY * ahead)
        self._count = 2 * rows[:, :, 0].size  # of inequalities

    def _y(self, c: np.ndarray) -> np.ndarray:
        """y, y', y'' (intervals, points, 3)."""
        return np.einsum("kpda,ka->kpd", self._bases, np.lib.stride_tricks.sliding_window_view(c, 4))

    def time(self, c: np.ndarray) -> float:
        return float((self._weights / np.sqrt(self._y(c)[..., 0])).sum())

    def merit(self, c: np.ndarray, mu: float) -> float:
        """inf where c is not feasible."""
        y = self._y(c)
        if y[..., 0].min() <= 0.0 or (self.spline.lowest(c) < FLAT * y[..., 0].max(axis=1)).any():
            return np.inf  # between its points, too, the law must not stand still or go back
        values = (weighed(y)[..., None, :] @ self.rows)[..., 0, :]
        left = 1.0 - values * values
        if not left.min() > 0.0:
            return np.inf
        value = float((self._cost / np.sqrt(y[..., 0])).sum() - mu * np.log(left).sum())
        if self.due is not None:
            delay = self._delay(y)
            value = value - mu * float(np.log(delay).sum()) if delay.min() > 0.0 else np.inf
        return value

    def _delay(self, y: np.ndarray) -> np.ndarray:
        """(intervals,) at the end of each, EARLY added."""
        assert self.due is not None
        return EARLY + np.cumsum((self._weights / np.sqrt(y[..., 0])).sum(axis=1)) - self.due

    def report(self, seconds: float) -> None:
        """Told the time so far."""

    def solve(self, c: np.ndarray, first: float, gap: float) -> np.ndarray:
        """Follow mu from first to gap, both as a share of the time; c must be feasible, and so is the result."""
        mu, last = (share * self.time(c) / self._count for share in (first, gap))
        while True:
            c = self._centred(c, mu)
            self.report(self.time(c))
            if mu <= last:
                return c
            mu = max(SHRINK * mu, last)

    def _centred(self, c: np.ndarray, mu: float) -> np.ndarray:
        merit = self.merit(c, mu)
        for _ in range(STEPS):
            try:
                direction, slope = self._newton(c, mu)
            except np.linalg.LinAlgError:  # too close to the limits to go on
                break
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
        y = self._y(c)
        values = (weighed(y)[..., None, :] @ self.rows)[..., 0, :]
        slopes = weighed_slope(y) @ self.rows
        above, below = 1.0 / (1.0 - values), 1.0 / (1.0 + values)
        gradient = (slopes @ (mu * (above - below))[..., None])[..., 0]
        gradient[..., 0] -= 0.5 * self._cost * y[..., 0] ** -1.5
        hessian = (slopes * (mu * (above**2 + below**2))[..., None, :]) @ np.swapaxes(slopes, -1, -2)
        hessian[..., 0, 0] += 0.75 * self._cost * y[..., 0] ** -2.5
        local = np.einsum("kpda,kpd->ka", self._bases, gradient)
        square = (np.swapaxes(self._bases, 2, 3) @ hessian @ self._bases).sum(axis=1)
        return self._solved(local, square) if self.due is None else self._solved_on_schedule(y, mu, local, square)

    def _solved(self, local: np.ndarray, square: np.ndarray) -> tuple[np.ndarray, float]:
        system = _Band(self.intervals + 3)
        self._curve(system, square)
        return self._step(system, self._gathered(local))

    def _solved_on_schedule(self, y: np.ndarray, mu: float, local: np.ndarray, square: np.ndarray) -> tuple[np.ndarray, float]:
        """With z the change of the delay l at each knot, and p its multiplier:

        H dc + L' p = -g,   z[k] - z[k-1] = L[k] dc,   p[k] - p[k+1] = mu z[k] / l[k]^2
        """
        delay = self._delay(y)
        L = np.einsum("kp,kpa->ka", -0.5 * self._weights * y[..., 0] ** -1.5, self._bases[:, :, 0])
        system, at = _Band(self.intervals + 3, 3), np.arange(self.intervals)
        self._curve(system, square)
        last = np.arange(self.intervals, self.intervals + 3)  # without a delay of their own
        for kind in (1, 2):
            system.add(at, kind, at, kind, np.ones(self.intervals))
            system.add(last, kind, last, kind, np.ones(3))
        system.add(at[1:], 1, at[:-1], 1, -np.ones(self.intervals - 1))
        system.add(at[:-1], 2, at[1:], 2, -np.ones(self.intervals - 1))
        system.add(at, 2, at, 1, -mu / delay**2)
        for a in range(4):
            free = at + a >= self.fixed
            system.add((at + a)[free], 0, at[free], 2, L[free, a])
            system.add(at[free], 1, (at + a)[free], 0, -L[free, a])
        ahead = np.cumsum((-mu / delay)[::-1])[::-1]
        return self._step(system, self._gathered(local + L * ahead[:, None]))

    def _gathered(self, local: np.ndarray) -> np.ndarray:
        """(coefficients,) from the shares of each interval."""
        found = np.zeros(self.intervals + 3)
        for a in range(4):
            found[a:a + self.intervals] += local[:, a]
        return found

    def _curve(self, system: _Band, square: np.ndarray) -> None:
        """Add the matrices (intervals, 4, 4) of the intervals; coefficients that stay have a row of their own."""
        at, stay = np.arange(self.intervals), np.arange(self.fixed)
        for a in range(4):
            for b in range(4):
                free = (at + a >= self.fixed) & (at + b >= self.fixed)
                system.add((at + a)[free], 0, (at + b)[free], 0, square[free, a, b])
        system.add(stay, 0, stay, 0, np.ones(self.fixed))

    def _step(self, system: _Band, gradient: np.ndarray) -> tuple[np.ndarray, float]:
        gradient[:self.fixed] = 0.0
        direction = system.solve(-gradient)
        return direction, -float(gradient @ direction)


class _Band:
    """Linear equations of `kinds` unknowns at each of many knots, which know of those a few knots away.

    In blocks: at these sizes threads of a linear algebra library cost more than they give.
    """

    def __init__(self, knots: int, kinds: int = 1):
        self.knots, self.kinds, self.size = knots, kinds, BLOCK * kinds
        count = -(-knots // BLOCK)
        self.blocks = np.zeros((3, count, self.size, self.size))  # left of the diagonal, on it, right of it
        idle = np.arange(knots, BLOCK * count)
        for kind in range(kinds):
            self.add(idle, kind, idle, kind, np.ones(len(idle)))

    def add(self, row: np.ndarray, row_kind: int, column: np.ndarray, column_kind: int, values: np.ndarray) -> None:
        """To the unknown of `column_kind` at knots `column` in the equations of `row_kind` at knots `row`, no place twice."""
        r, c = row // BLOCK, column // BLOCK
        self.blocks[1 + c - r, r, row % BLOCK * self.kinds + row_kind, column % BLOCK * self.kinds + column_kind] += values

    def solve(self, right: np.ndarray) -> np.ndarray:
        """The unknowns of the first kind, with `right` in their equations and 0 in the others."""
        padded = np.zeros((self.blocks.shape[1] * BLOCK, self.kinds))
        padded[:self.knots, 0] = right
        before, here, behind = self.blocks
        solution = solve_blocks(before, here, behind, padded.reshape(-1, self.size, 1))
        return solution.reshape(-1, self.kinds)[:self.knots, 0]
