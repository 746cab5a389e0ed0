"""Structure of the equations of motion: how often each is differentiated, and the order in which their systems are eliminated.

Structural analysis: Pryce, "A simple structural analysis method for DAEs", BIT Numerical Mathematics 41 (2001), sections 2 to
4.

    sigma_ij   order of the highest derivative of unknown y_j in equation f_i; ABSENT where f_i does not depend on y_j
    c_i, d_j   offsets: the least non-negative integers with d_j - c_i >= sigma_ij, and equality along an assignment of
                        greatest sum

In stage k = -max(d), ..., -1, 0, 1, ... the equations f_i^(k + c_i) = 0 with k + c_i >= 0 determine the derivatives y_j^(k +
d_j) with k + d_j >= 0. The Jacobian A_ij = d f_i / d y_j^(d_j - c_i) is the same in all stages k >= 0.

Block elimination: solution of a sparse linear system by LU factors of small dense pivot blocks, for any scalar type. The
sparsity pattern is known before the values. A plan lists pivot blocks (rows, columns); each is eliminated from all later rows,
as in Gaussian elimination. In the system of a robot with loops,

    [M  -J^T] [a     ]   [f]
    [J    0 ] [lambda] = [g]

elimination of the pivot blocks J_f (columns of the dependent coordinates) and J_f^T leaves G^T M G, the mass matrix of the
independent coordinates: the projection of khalil-rne (57). The block triangular form of the pattern yields blocks that can be
solved one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..algebra.linalg import LU, lu

# ------------------------------------------------------------------ structural analysis


ABSENT = -1_000_000


def offsets(sigma: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets c (m,) of the equations and d (n,) of the unknowns for a signature matrix sigma (m, n).

    m and n may differ. Equations without their own unknown (constraints that others imply) are differentiated as often
    as d allows, so that their derivatives are enforced too.
    """
    rows, columns = assignment(sigma)
    kept = sigma[rows, columns] > ABSENT
    rows, columns = rows[kept], columns[kept]
    c, before = np.zeros(len(sigma), dtype=int), None
    d = np.zeros(sigma.shape[1], dtype=int)
    while before is None or (c != before).any():  # fixed-point iteration of section 3.3
        before = c.copy()
        d = np.max(sigma + c[:, None], axis=0, initial=0)
        c[rows] = d[columns] - sigma[rows, columns]
    for i in np.setdiff1d(np.arange(len(sigma)), rows):
        present = sigma[i] > ABSENT
        c[i] = np.min((d - sigma[i])[present]) if present.any() else 0
    return c, d


def assignment(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return row and column numbers of an assignment of greatest total weight; weights (m, n) of integers.

    Hungarian method with shortest augmenting paths (Kuhn 1955; Jonker and Volgenant 1987), O(min(m, n)^2 max(m, n)). Rows
    with a free column among their best begin with it, which leaves few paths to search.
    """
    if weights.shape[0] > weights.shape[1]:
        columns, rows = assignment(weights.T)
        order = np.argsort(rows)
        return rows[order], columns[order]
    cost = -np.asarray(weights, dtype=float)
    m, n = cost.shape
    u, v = np.zeros(m + 1), np.zeros(n + 1)  # dual variables; index 0 is a dummy row and column
    matched = np.zeros(n + 1, dtype=int)  # row of each column
    waiting = []
    u[1:] = cost.min(axis=1, initial=np.inf)
    best = cost == u[1:, None]
    for row in range(1, m + 1):
        free = best[row - 1] & (matched[1:] == 0)
        if free.any():
            matched[1 + int(np.argmax(free))] = row
        else:
            waiting.append(row)
    for row in waiting:
        matched[0], column = row, 0
        least, previous, done = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=int), np.zeros(n + 1, dtype=bool)
        while matched[column]:
            done[column] = True
            i = matched[column]
            reduced = cost[i - 1] - u[i] - v[1:]
            better = ~done[1:] & (reduced < least[1:])
            least[1:][better], previous[1:][better] = reduced[better], column
            nearest = int(np.argmin(np.where(done[1:], np.inf, least[1:]))) + 1
            step = least[nearest]
            u[matched[done]] += step
            v[done] -= step
            least[~done] -= step
            column = nearest
        while column:
            matched[column], column = matched[previous[column]], previous[column]
    found = sorted((int(i) - 1, j) for j, i in enumerate(matched[1:]) if i)
    return np.array([i for i, _ in found], dtype=int), np.array([j for _, j in found], dtype=int)


# ------------------------------------------------------------------ block elimination


class EliminationBlock(NamedTuple):
    """Square block of a matrix: indices (k,) of its rows and (k,) of its columns."""

    rows: np.ndarray
    columns: np.ndarray


def triangular_blocks(pattern: np.ndarray) -> list[EliminationBlock] | None:
    """Return the irreducible blocks of a boolean pattern (n, n), in the order in which they can be solved one by one.

    Returns None if every matrix with this pattern is singular. Duff and Reid, "An implementation of Tarjan's algorithm for the
    block triangularization of a matrix", ACM TOMS 4 (1978).
    """
    n = len(pattern)
    if pattern.shape != (n, n):
        return None
    column_of = _matching(pattern)
    if column_of is None:
        return None
    reach = pattern[:, column_of] | np.eye(n, dtype=bool)  # row i needs the unknown of row j
    while True:
        further = (reach.astype(np.float32) @ reach.astype(np.float32)) > 0.0
        if (further == reach).all():
            break
        reach = further
    mutual, blocks, done = reach & reach.T, list[EliminationBlock](), np.zeros(n, dtype=bool)
    for i in np.argsort(reach.sum(axis=1), kind="stable"):
        if not done[i]:
            block = np.flatnonzero(mutual[i])
            done[block] = True
            blocks.append(EliminationBlock(block, column_of[block]))
    return blocks


def _matching(pattern: np.ndarray) -> np.ndarray | None:
    """Return for each row of a pattern (n, n) a column (n,) with an entry, all different, by augmenting paths.

    Returns None if there is no such matching.
    """
    columns = [np.flatnonzero(row).tolist() for row in pattern]
    row_of: dict[int, int] = {}
    column_of: dict[int, int] = {}
    for first in sorted(range(len(columns)), key=lambda i: len(columns[i])):
        came_from: dict[int, int] = {}  # column -> row from which the search reached it
        front = [first]
        while front and not any(j not in row_of for j in came_from):
            i = front.pop(0)
            fresh = [j for j in columns[i] if j not in came_from]
            came_from |= dict.fromkeys(fresh, i)
            front += [row_of[j] for j in fresh if j in row_of]
        free: int | None = next((j for j in came_from if j not in row_of), None)
        while free is not None:  # along the path back to the first row, each row takes the next column
            i = came_from[free]
            before = column_of.get(i)
            row_of[free], column_of[i], free = i, free, before
        if first not in column_of:
            return None
    return np.array([column_of[i] for i in range(len(columns))], dtype=int)


def plan(pattern: np.ndarray, preferred: Sequence[EliminationBlock] = ()) -> list[EliminationBlock] | None:
    """Return pivot blocks of a pattern (n, n): the preferred blocks, then those of the remaining pattern with fill-in.

    Returns None if the remaining pattern is singular.
    """
    pattern, rows, columns = pattern.copy(), np.arange(pattern.shape[0]), np.arange(pattern.shape[1])
    for block in preferred:
        rows, columns = np.setdiff1d(rows, block.rows), np.setdiff1d(columns, block.columns)
        touched = rows[pattern[np.ix_(rows, block.columns)].any(axis=1)]
        filled = columns[pattern[np.ix_(block.rows, columns)].any(axis=0)]
        pattern[np.ix_(touched, filled)] = True
    rest = triangular_blocks(pattern[np.ix_(rows, columns)])
    return None if rest is None else [*preferred, *(EliminationBlock(rows[one.rows], columns[one.columns]) for one in rest)]


class Factors:
    """Cache of LU factors; a block and its negated transpose share their factors.

    made : factored matrices with their factors
    """

    def __init__(self) -> None:
        self.made: list[tuple[np.ndarray, LU]] = []
        self._by_entries: dict[Any, LU] = {}

    def solver(self, P: np.ndarray) -> Any:
        """Return the function B -> P^-1 B."""
        key = _entries(P)
        if key not in self._by_entries:
            transposed = self._by_entries.get(_entries(-P.T))
            if transposed is not None:
                return lambda B: -transposed.solve_transposed(B)
            self._by_entries[key] = lu(P)
            self.made.append((P, self._by_entries[key]))
        return self._by_entries[key].solve


def _entries(P: np.ndarray) -> Any:
    """Return a key that identifies a square matrix by its values, or by the node numbers of its symbols."""
    return len(P), *(getattr(x, "number", None) if hasattr(x, "number") else x for x in P.ravel().tolist())


class Elimination:
    """Factorization of a matrix by a plan, for any scalar type. Entries that are the number 0 cause no operations."""

    def __init__(self, A: np.ndarray, blocks: Sequence[EliminationBlock], factors: Factors | None = None):
        factors = factors or Factors()
        A, rows, columns = np.array(A, dtype=object), np.arange(len(A)), np.arange(len(A))
        self._steps = []
        for block in blocks:
            rows, columns = np.setdiff1d(rows, block.rows), np.setdiff1d(columns, block.columns)
            solve = factors.solver(A[np.ix_(*block)])
            right = columns[_nonzero_mask(A[np.ix_(block.rows, columns)]).any(axis=0)]
            later = rows[_nonzero_mask(A[np.ix_(rows, block.columns)]).any(axis=1)]
            X = solve(A[np.ix_(block.rows, right)]) if len(right) else np.zeros((len(block.rows), 0), dtype=object)
            L = A[np.ix_(later, block.columns)]
            if len(right) and len(later):
                A[np.ix_(later, right)] = A[np.ix_(later, right)] - _product(L, X)
            self._steps.append((block, solve, right, later, X, L))

    def solve(self, b: Any) -> np.ndarray:
        """Return x (n,) with A x = b."""
        b = np.array(b, dtype=object)
        x = np.zeros(len(b), dtype=object)
        for block, solve, _, later, _, L in self._steps:
            x[block.columns] = solve(b[block.rows])
            if len(later):
                b[later] = b[later] - _product(L, x[block.columns][:, None])[:, 0]
        for block, _, right, _, X, _ in self._steps[::-1]:
            if len(right):
                x[block.columns] = x[block.columns] - _product(X, x[right][:, None])[:, 0]
        return x


def _product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return A @ B without operations on entries that are the number 0 (numpy's product would include them)."""
    product = np.zeros((len(A), B.shape[1]), dtype=object)
    present = _nonzero_mask(B)
    for i, row in enumerate(A.tolist()):
        for k, a in enumerate(row):
            if not (isinstance(a, float) and a == 0.0):
                for j in np.flatnonzero(present[k]):
                    product[i, j] = product[i, j] + a * B[k, j]
    return product


def _nonzero_mask(A: np.ndarray) -> np.ndarray:
    """Return a mask of the entries that are not the number 0."""
    mask = [not (isinstance(x, float | int) and x == 0.0) for x in A.ravel().tolist()]
    return np.array(mask, dtype=bool).reshape(A.shape)
