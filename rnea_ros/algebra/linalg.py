"""Small dense solves in plain loops, for any scalar: floats, complex numbers, jets, traced symbols.

Traced, they are part of the machine code: a system of 6 equations with 4 right-hand sides takes 0.1 to 0.3 us there, a call of
np.linalg.solve 4.4 us; of 18 equations 2.1 and 16 us.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from .taylor import Jet


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
    """Return the unit lower L (rows of lists) and diagonal D with A = L D L^T."""
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
    """Return whether a scalar is the constant zero; a traced symbol is not, regardless of its later value."""
    return isinstance(x, float | int) and x == 0.0


# ---------------------------------------------------------------------- LU factors


def lu(A: Any) -> LU:
    """Return the LU factor of a square matrix A (n, n) with partial pivoting, for any scalar; n may be zero.

    Of jets, the constant term alone is factored and serves all orders: A_0 X_k = B_k - sum A_i X_(k-i). Of traced symbols,
    the factor is a block of the graph whose loops run inside the kernel: pivots are chosen when it runs.
    """
    A = np.asarray(A)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"a matrix to be factored has shape {A.shape}; it must be square")
    entries = A.ravel().tolist()
    if any(isinstance(x, Jet) for x in entries):
        return _SeriesLU(A)
    symbol = next((x for x in entries if hasattr(x, "factored")), None)
    return _NumericLU(A) if symbol is None else _SymbolicLU(symbol.factored(A), len(A))


class LU(ABC):
    """Factor P A = L U of a square matrix A (n, n).

    smallest, largest : magnitude of the smallest and of the largest pivot; their ratio is near zero where A is singular, and
        negative where an entry is not a number. Solutions then have no correct digits: callers must check the pivots. With
        n = 0 both are 1.
    """

    smallest: Any
    largest: Any
    _n: int

    def __len__(self) -> int:
        """Return n."""
        return self._n

    def solve(self, B: Any) -> np.ndarray:
        """Return X (n,) or (n, m) with A X = B."""
        return self._solved(np.asarray(B), transposed=False)

    def solve_transposed(self, B: Any) -> np.ndarray:
        """Return X (n,) or (n, m) with A^T X = B."""
        return self._solved(np.asarray(B), transposed=True)

    @abstractmethod
    def _solved(self, B: np.ndarray, transposed: bool) -> np.ndarray:
        """Return X with A X = B, or A^T X = B."""


class _ColumnLU(LU):
    """LU factor that solves for columns of scalars."""

    def _solved(self, B: np.ndarray, transposed: bool) -> np.ndarray:
        """Solve column by column of jets' coefficients; columns of zeros cost nothing."""
        if B.ndim == 1:
            return self._solved(B[:, None], transposed)[:, 0]
        orders = {len(x.c) for x in B.ravel().tolist() if isinstance(x, Jet)} if B.dtype == object else set()
        if orders:
            (order,) = orders
            return _from_coefficients([self._solved(part, transposed) for part in _coefficients(B, order)])
        wanted = [k for k in range(B.shape[1]) if not all(_is_zero(x) for x in B[:, k].tolist())]
        if len(wanted) == B.shape[1]:
            return self._columns(B, transposed)
        X = np.zeros(B.shape, dtype=object)
        if wanted:
            X[:, wanted] = self._columns(B[:, wanted], transposed)
        return X

    @abstractmethod
    def _columns(self, B: np.ndarray, transposed: bool) -> np.ndarray:
        """Return X (n, m) for columns B (n, m) without jets."""


class _NumericLU(_ColumnLU):
    """LU of floats or complex numbers, in place as LAPACK stores it; reciprocals of the pivots on the diagonal."""

    def __init__(self, A: np.ndarray):
        entries, self._n = A.tolist(), len(A)
        is_complex = any(isinstance(x, complex) for row in entries for x in row)
        self._A = A = np.array(entries, dtype=complex if is_complex else float).reshape(len(A), len(A))
        self._swaps: list[int] = []
        pivots = []
        with np.errstate(all="ignore"):
            for k in range(len(A)):
                p = k + int(np.argmax(np.abs(A[k:, k])))
                self._swaps.append(p)
                A[[k, p]] = A[[p, k]]
                size = float(np.abs(A[k, k]))
                pivots.append(size if size >= 0.0 else -1.0)
                A[k, k] = 1.0 / A[k, k]
                A[k + 1:, k] *= A[k, k]
                A[k + 1:, k + 1:] -= np.outer(A[k + 1:, k], A[k, k + 1:])
        self.smallest, self.largest = min(pivots, default=1.0), max(pivots, default=1.0)

    def _columns(self, B, transposed):
        A, n = self._A, self._n
        B = np.array(B, dtype=np.result_type(B, A)) if B.dtype != object else B.copy()
        with np.errstate(all="ignore"):
            if not transposed:
                for k, p in enumerate(self._swaps):
                    B[[k, p]] = B[[p, k]]
                for k in range(n):
                    B[k + 1:] = B[k + 1:] - A[k + 1:, k, None] * B[k]
                for k in range(n - 1, -1, -1):
                    B[k] = B[k] * A[k, k]
                    B[:k] = B[:k] - A[:k, k, None] * B[k]
                return B
            for k in range(n):
                B[k] = B[k] * A[k, k]
                B[k + 1:] = B[k + 1:] - A[k, k + 1:, None] * B[k]
            for k in range(n - 1, -1, -1):
                B[:k] = B[:k] - A[k, :k, None] * B[k]
            for k in range(n - 1, -1, -1):
                p = self._swaps[k]
                B[[k, p]] = B[[p, k]]
        return B


class _SymbolicLU(_ColumnLU):
    """LU of traced symbols: a node of their graph."""

    def __init__(self, factor: Any, n: int):
        self._factor, self._n = factor, n
        self.smallest, self.largest = factor.smallest, factor.largest

    def _columns(self, B, transposed):
        return np.array(self._factor.solved(B.ravel().tolist(), transposed), dtype=object).reshape(B.shape)


class _SeriesLU(LU):
    """LU of jets."""

    def __init__(self, A: np.ndarray):
        (order,) = {len(x.c) for x in A.ravel().tolist() if isinstance(x, Jet)}
        constant, *self._rest = _coefficients(A, order)
        self._constant, self._n = lu(constant), len(A)
        self.smallest, self.largest = self._constant.smallest, self._constant.largest

    def _solved(self, B, transposed):
        if B.ndim == 1:
            return self._solved(B[:, None], transposed)[:, 0]
        solve = self._constant.solve_transposed if transposed else self._constant.solve
        X: list[np.ndarray] = []
        for right in _coefficients(B, len(self._rest) + 1):
            for A, x in zip(self._rest, X[::-1], strict=False):
                right = right - (A.T if transposed else A) @ x
            X.append(solve(right))
        return _from_coefficients(X)


def _coefficients(B: np.ndarray, order: int) -> list[np.ndarray]:
    """Return the Taylor coefficients of an array of jets, and of plain scalars, as arrays of its shape."""
    found = [np.zeros(B.shape, dtype=object) for _ in range(order)]
    for index in np.ndindex(B.shape):
        x = B[index]
        for k in range(order):
            found[k][index] = x.c[k] if isinstance(x, Jet) else (x if k == 0 else 0.0)
    return found


def _from_coefficients(parts: list[np.ndarray]) -> np.ndarray:
    X = np.empty(parts[0].shape, dtype=object)
    for index in np.ndindex(X.shape):
        X[index] = Jet([part[index] for part in parts])
    return X
