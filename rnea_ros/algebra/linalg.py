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
