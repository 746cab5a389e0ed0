"""Sums of small dense pieces as a sparse matrix by columns."""

from __future__ import annotations

import numpy as np


class Pattern:
    """Where pieces go, worked out once. rows, columns: of every entry of the pieces, flat; several may meet in one place.

    starts (columns + 1,), rows (entries,): the compressed columns of the matrix. upper: keep the upper triangle alone.
    """

    def __init__(self, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int], upper: bool = False):
        self.shape = shape
        self._kept = np.flatnonzero(rows <= columns) if upper else np.arange(len(rows))
        places, self._entry = np.unique(columns[self._kept] * shape[0] + rows[self._kept], return_inverse=True)
        self.rows = places % shape[0]
        self.starts = np.searchsorted(places // shape[0], np.arange(shape[1] + 1))

    @property
    def diagonal(self) -> np.ndarray:
        """Entries of the matrix: whether they are on its diagonal."""
        return self.rows == np.repeat(np.arange(self.shape[1]), np.diff(self.starts))

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Entries of the matrix from the entries of the pieces."""
        return np.bincount(self._entry, values[self._kept], len(self.rows))

    def dense(self, entries: np.ndarray) -> np.ndarray:
        matrix = np.zeros(self.shape)
        matrix[self.rows, np.repeat(np.arange(self.shape[1]), np.diff(self.starts))] = entries
        return matrix
