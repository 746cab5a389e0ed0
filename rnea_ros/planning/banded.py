"""Symmetric matrices of a spline's control points: small pieces added up in bands; with a border, or in some directions."""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Bands:
    """Where the pieces of K nodes go. Node k sees control points span[k] .. span[k] + width - 1, of n coordinates each, by
    B (K, orders, width): those of its derivatives."""

    def __init__(self, span: np.ndarray, spans: int, B: np.ndarray, n: int, free: np.ndarray):
        width = B.shape[2]
        self.B, self.n, self.width, self.spans, self.free = B, n, width, spans, free
        self.count = spans - 1 + width
        self._order = np.argsort(span, kind="stable")
        self._starts = np.searchsorted(span[self._order], np.arange(spans))
        self._some = np.append(np.diff(self._starts) > 0, self._starts[-1] < len(span))
        each = int(np.bincount(span, minlength=spans).min())
        self._even = self._order[self._starts[:, None] + np.arange(each)]  # (spans, each): as many nodes in every span,
        self._rest = np.setdiff1d(np.arange(len(span)), self._even)  # and those that some spans have beside them
        self._span = span[self._rest]
        point, distance, j, i = np.ogrid[:self.count, :width, :n, :n]
        offset, column = np.broadcast_arrays(distance * n + i - j, point * n + j)
        below = (offset >= 0) & (point + distance < self.count)
        offset, column = offset[below], column[below]
        self._from, self._to = np.flatnonzero(below), column * width * n + offset  # of blocks, in bands by columns
        both = free[column] & free[np.minimum(column + offset, len(free) - 1)]
        self._keep = both.astype(float)
        self._upper = np.triu_indices(width)  # pairs of control points: the others mirror them
        first, second = self._upper
        pairs = (B[:, :, None, first] * B[:, None, :, second]).reshape(len(B), -1, len(first)).swapaxes(1, 2)
        self._pairs = pairs[self._even].swapaxes(1, 2).reshape(spans, len(first), -1)
        self._rest_pairs = pairs[self._rest]

    def _summed(self, pieces: np.ndarray) -> np.ndarray:
        """(spans, ...) from (K, ...)."""
        total = np.zeros((self.spans, *pieces.shape[1:]))
        total[self._some] = np.add.reduceat(pieces[self._order], self._starts[self._some], axis=0)
        return total

    def vector(self, pieces: np.ndarray) -> np.ndarray:
        """(points n,): sum of B^T pieces (K, orders, n). Zero where nothing is free."""
        local = self._summed(self.B.swapaxes(1, 2) @ pieces)
        total = np.zeros((self.count, self.n))
        for a in range(self.width):
            total[a:a + self.spans] += local[:, a]
        return np.where(self.free, total.ravel(), 0.0)

    def matrix(self, G: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Lower bands (width n, points n) of the sum of (scale B)^T G (scale B); G (K, orders n, orders n) symmetric, scale
        (orders,)."""
        K, orders, width = self.B.shape
        n, spans = self.n, self.spans
        by_orders = G.reshape(K, orders, n, orders, n).swapaxes(2, 3) * np.outer(scale, scale)[:, :, None, None]
        by_orders = by_orders.reshape(K, orders**2, n * n)
        local = self._pairs @ by_orders[self._even].reshape(spans, -1, n * n)
        np.add.at(local, self._span, self._rest_pairs @ by_orders[self._rest])
        local = local.reshape(spans, -1, n, n)  # pair, j, i
        blocks = np.zeros((self.count, width, n, n))
        for pair, (a, b) in enumerate(zip(*self._upper)):
            blocks[a:a + spans, b - a] += local[:, pair]
        bands = np.zeros(width * n * self.count * n)
        bands[self._to] = blocks.ravel()[self._from] * self._keep
        return bands.reshape((width * n, -1), order="F")


class Equations(Protocol):
    def factorise(self, shift: float) -> bool:
        """Whether the matrix plus shift on its diagonal is positive definite."""

    def solve(self, right: np.ndarray) -> np.ndarray:
        """With the matrix that was factorised last."""


class Bordered:
    """[[A, h], [h^T, d]]: A in lower bands. `factorise` before `solve`."""

    def __init__(self, bands: np.ndarray, border: np.ndarray, corner: float, free: np.ndarray):
        self.bands, self.border, self.corner, self.fixed = bands, border, corner, ~free

    def factorise(self, shift: float) -> bool:
        """Whether the matrix plus shift on its diagonal is positive definite."""
        from scipy.linalg import lapack

        bands = self.bands.copy(order="F")
        bands[0] += shift
        bands[0, self.fixed] = 1.0
        self._factor, info = lapack.dpbtrf(bands, lower=1, overwrite_ab=1)
        if info:
            return False
        self._across, _ = lapack.dpbtrs(self._factor, self.border, lower=1)
        self._rest = self.corner + shift - self.border @ self._across
        return bool(self._rest > 0.0)

    def solve(self, right: np.ndarray) -> np.ndarray:
        from scipy.linalg import lapack

        inner, _ = lapack.dpbtrs(self._factor, right[:-1], lower=1)
        last = (right[-1] - self.border @ inner) / self._rest
        return np.append(inner - self._across * last, last)


class Projected:
    """Z^T A Z + damping: A in lower bands, the columns of Z orthonormal. Right side and solution are those of A and a border,
    which does not move. `factorise` before `solve`."""

    def __init__(self, bands: np.ndarray, Z: np.ndarray, damping: float):
        size = bands.shape[1]
        A = np.zeros((size, size))
        for below, band in enumerate(bands):
            A[np.arange(below, size), np.arange(size - below)] = band[:size - below]
        self.Z, self.matrix = Z, Z.T @ (A + np.tril(A, -1).T) @ Z + damping * np.eye(Z.shape[1])

    def factorise(self, shift: float) -> bool:
        """Whether the matrix plus shift on its diagonal is positive definite."""
        from scipy.linalg import lapack

        self._factor, info = lapack.dpotrf(self.matrix + shift * np.eye(len(self.matrix)), lower=1)
        return not info

    def solve(self, right: np.ndarray) -> np.ndarray:
        from scipy.linalg import lapack

        inner, _ = lapack.dpotrs(self._factor, self.Z.T @ right[:-1], lower=1)
        return np.append(self.Z @ inner, 0.0)
