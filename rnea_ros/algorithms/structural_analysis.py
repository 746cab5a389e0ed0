"""Structural analysis of differential-algebraic equations: how often each equation must be differentiated.

Pryce, "A simple structural analysis method for DAEs", BIT Numerical Mathematics 41 (2001), sections 2 to 4.

    sigma_ij   order of the highest derivative of unknown y_j in equation f_i; ABSENT where f_i does not depend on y_j
    c_i, d_j   offsets: the least non-negative integers with d_j - c_i >= sigma_ij, and equality along an assignment of
                        greatest sum

In stage k = -max(d), ..., -1, 0, 1, ... the equations f_i^(k + c_i) = 0 with k + c_i >= 0 determine the derivatives y_j^(k +
d_j) with k + d_j >= 0. The Jacobian A_ij = d f_i / d y_j^(d_j - c_i) is the same in all stages k >= 0.
"""

from __future__ import annotations

import numpy as np

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
