"""Small dense solves in plain loops, for any scalar: floats, complex numbers, jets, traced symbols."""

from __future__ import annotations

from typing import Any

import numpy as np


def solve_positive(A, B):
    """X with A X = B for a symmetric positive definite A (n, n) and B (n,) or (n, m); only A's lower half is read.

    A = L D L^T without pivoting, which a positive definite matrix does not need: the order of operations is the
    same for every value, so the solve can be traced.
    """
    n = len(A)
    L, D = _factor(A)
    Y: list[Any] = []
    for i in range(n):
        y = B[i]
        for k in range(i):
            y = y - Y[k] * L[i][k]
        Y.append(y)
    X: list[Any] = [None] * n
    for i in range(n - 1, -1, -1):
        x = Y[i] / D[i]
        for k in range(i + 1, n):
            x = x - X[k] * L[k][i]
        X[i] = x
    return np.array(X)


def pivots(A):
    """[D] of A = L D L^T: what is left of each diagonal entry when the earlier unknowns have adapted; zero in a singular A."""
    return _factor(A)[1]


def _factor(A):
    """Unit lower L (rows of lists) and diagonal D with A = L D L^T."""
    L: list[list[Any]] = []
    D: list[Any] = []
    for i in range(len(A)):
        row: list[Any] = []
        for j in range(i):
            x = A[i][j]
            for k in range(j):
                x = x - row[k] * L[j][k] * D[k]
            row.append(x / D[j])
        d = A[i][i]
        for k in range(i):
            d = d - row[k] * row[k] * D[k]
        L.append(row)
        D.append(d)
    return L, D


class LeastSquares:
    """Least-squares inverse of J (m, n), m >= n, whose columns are independent: ``LeastSquares(J) @ B`` is X with J X = B.

    J P = Q R, one column after the other, by the modified method of Gram and Schmidt; the columns of B go through the same
    steps, which makes X as exact as Householder's method does (Bjoerck 1967). Nothing is chosen by value, so the solve can be
    traced. Structural zeros cost nothing: blocks on a diagonal are solved separately, and the permutation P takes the columns
    with the fewest nonzero entries first, since a dense column fills every later one (legs first, then their platform).
    """

    def __init__(self, J):
        columns = np.transpose(J)
        self._order = sorted(range(len(columns)), key=lambda k: sum(not _is_zero(x) for x in columns[k]))
        self._Q: list[Any] = []
        self._R: list[list[Any]] = []  # columns above the diagonal
        self._inverses: list[Any] = []  # of the diagonal
        for column in (columns[k] for k in self._order):
            above, rest = self._along(column)
            inverse = 1.0 / np.sqrt(rest @ rest)
            self._Q.append(rest * inverse)
            self._R.append(above)
            self._inverses.append(inverse)

    def __matmul__(self, B):
        """B (m,) or (m, k) -> (n,) or (n, k)."""
        if np.ndim(B) == 2:
            return np.transpose([self @ b for b in np.transpose(B)])
        permuted = self._back(self._along(B)[0])
        return np.array([permuted[self._order.index(k)] for k in range(len(permuted))])

    @property
    def norm(self):
        """Frobenius norm of the inverse: at least one over the smallest singular value of J."""
        columns = [self._back([float(i == k) for i in range(k + 1)]) for k in range(len(self._R))]
        return np.sqrt(sum((x * x for column in columns for x in column), 0.0))

    def _along(self, b):
        """Return the coefficients of b along the columns of Q, and the remainder of b."""
        found = []
        for q in self._Q:
            found.append(q @ b)
            b = b - q * found[-1]
        return found, b

    def _back(self, c):
        """Return x with R x = c; c may end where its zeros begin."""
        x = list(c)
        for k in range(len(x) - 1, -1, -1):
            x[k] = x[k] * self._inverses[k]
            for i, r in enumerate(self._R[k]):
                x[i] = x[i] - x[k] * r
        return x


def _is_zero(x: Any) -> bool:
    """Return whether a scalar is the constant zero; a traced symbol is not, whatever its value will be."""
    return isinstance(x, float | int) and x == 0.0
