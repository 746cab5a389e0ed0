"""Cubic splines, as the unknown of barrier.py is one: by coefficients of B-splines, four of which matter in an interval."""

from __future__ import annotations

import numpy as np


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

    def basis(self, sigma: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the intervals of places sigma (samples,), and y, y', y'' there by the coefficients (samples, 3, 4)."""
        k = self._interval(sigma)
        h = self.steps[k]
        bases = _derivatives((sigma - self.knots[k]) / h) @ self._polynomials[k]
        return k, bases / h[:, None, None] ** np.arange(3.0)[:, None]

    def values(self, c: np.ndarray, sigma: np.ndarray) -> np.ndarray:
        """y, y', y'' (samples, 3) at places sigma."""
        x, h, (y0, y1, y2, y3) = self._cubics(c, sigma)
        return np.stack((((y3 * x + y2) * x + y1) * x + y0, ((3.0 * y3 * x + 2.0 * y2) * x + y1) / h,
                         (6.0 * y3 * x + 2.0 * y2) / (h * h)), axis=1)

    def heights(self, c: np.ndarray, sigma: np.ndarray) -> np.ndarray:
        """y alone (samples,)."""
        x, _, (y0, y1, y2, y3) = self._cubics(c, sigma)
        return ((y3 * x + y2) * x + y1) * x + y0

    def _cubics(self, c: np.ndarray, sigma: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the intervals of places sigma: the share of each that lies before the place, its length, and y by the powers
        (4, samples) of that share."""
        k = self._interval(sigma)
        return (sigma - self.knots[k]) / self.steps[k], self.steps[k], self._powers(c)[:, k]

    def _interval(self, sigma: np.ndarray) -> np.ndarray:
        return np.clip(np.searchsorted(self.knots, sigma, side="right") - 1, 0, self.intervals - 1)

    def _powers(self, c: np.ndarray) -> np.ndarray:
        """(4, intervals): y by the powers of the share of each interval."""
        return np.einsum("ipa,ia->pi", self._polynomials, np.lib.stride_tricks.sliding_window_view(c, 4))

    def lowest(self, c: np.ndarray) -> np.ndarray:
        """(intervals,) the least y inside of each, where it has a minimum there, else y at its middle."""
        y0, y1, y2, y3 = self._powers(c)
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
