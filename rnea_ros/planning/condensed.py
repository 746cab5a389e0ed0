"""Condensed programs for the interior-point method: inequality constraints only, with Newton systems in few unknowns.

CondensedProgram: start and goal are known. They determine up to three control points at each end as functions of T:
q(0) = p_1, T qd(0) = B_1' p_1 + B_2' p_2 and so on. These are not variables, and limits that they alone determine are not
constraints: at an active limit there would be no interior.

A limit c of a node adds sigma c_y^T c_y to the second derivatives G by its y = (q .. qddd). Chained to the control points of
its span by B^T G B / T^(r + s) and summed, that is a matrix A of bandwidth (degree + 1) n, with T as a border:

    [ A   h ] [ dp ]   [ a ]
    [ h^T d ] [ dT ] = [ b ]

ReducedProgram: start or goal is free or coupled to the other, and the duration is given. The conditions E p = e are linear
in the control points and leave p = p_0 + Z w free, with orthonormal columns of Z: Newton's equations A dp = a become
Z^T A Z dw = Z^T a. First and last control points meet in the conditions, so the system is dense, but small.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from .bspline import POWERS, basis
from .problem import ORDERS, EndState, Quantity
from .transcription import LimitRows, Transcription, gauss_newton_curvature, node_curvature


class BandAssembler:
    """Assembly of banded matrices from contributions of nodes.

    Node k depends on the control points span[k] .. span[k] + width - 1, of n coordinates each, through B (K, orders, width):
    the basis functions of its derivatives.
    """

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
        """Return the sums (spans, ...) of contributions (K, ...) per span."""
        total = np.zeros((self.spans, *pieces.shape[1:]))
        total[self._some] = np.add.reduceat(pieces[self._order], self._starts[self._some], axis=0)
        return total

    def vector(self, pieces: np.ndarray) -> np.ndarray:
        """Return the sum of B^T pieces (K, orders, n), (points n,); zero for fixed coordinates."""
        local = self._summed(self.B.swapaxes(1, 2) @ pieces)
        total = np.zeros((self.count, self.n))
        for a in range(self.width):
            total[a:a + self.spans] += local[:, a]
        return np.where(self.free, total.ravel(), 0.0)

    def matrix(self, G: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Return the lower bands (width n, points n) of the sum of (scale B)^T G (scale B).

        G (K, orders n, orders n) symmetric, scale (orders,).
        """
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


class NewtonSystem(Protocol):
    """Linear system of a Newton step."""

    def factorise(self, shift: float) -> bool:
        """Factorize the matrix plus a shift of its diagonal; return whether it is positive definite."""

    def solve(self, right: np.ndarray) -> np.ndarray:
        """Solve with the last factorization."""


class BorderedSystem:
    """System [[A, h], [h^T, d]] with A in lower bands. Call `factorise` before `solve`."""

    def __init__(self, bands: np.ndarray, border: np.ndarray, corner: float, free: np.ndarray):
        self.bands, self.border, self.corner, self.fixed = bands, border, corner, ~free

    def factorise(self, shift: float) -> bool:
        """Factorize the matrix plus a shift of its diagonal; return whether it is positive definite."""
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


class ProjectedSystem:
    """System Z^T A Z + damping, with A in lower bands and orthonormal columns of Z. Call `factorise` before `solve`.

    Right-hand side and solution have the size of A with a border; the unknown of the border is fixed.
    """

    def __init__(self, bands: np.ndarray, Z: np.ndarray, damping: float):
        size = bands.shape[1]
        A = np.zeros((size, size))
        for below, band in enumerate(bands):
            A[np.arange(below, size), np.arange(size - below)] = band[:size - below]
        self.Z, self.matrix = Z, Z.T @ (A + np.tril(A, -1).T) @ Z + damping * np.eye(Z.shape[1])

    def factorise(self, shift: float) -> bool:
        """Factorize the matrix plus a shift of its diagonal; return whether it is positive definite."""
        from scipy.linalg import lapack

        self._factor, info = lapack.dpotrf(self.matrix + shift * np.eye(len(self.matrix)), lower=1)
        return not info

    def solve(self, right: np.ndarray) -> np.ndarray:
        from scipy.linalg import lapack

        inner, _ = lapack.dpotrs(self._factor, self.Z.T @ right[:-1], lower=1)
        return np.append(self.Z @ inner, 0.0)


MIN_MULTIPLIER_SHARE = 1e-3  # multiplier over the largest below which the curvature of a node is omitted
MIN_LIMIT_WIDTH = 1e-5  # relative distance below which two limits are an equation


class Iterate(NamedTuple):
    """Variables x = [control points, T], with the motion y (K, orders, n) and its derivative by T."""

    x: np.ndarray
    T: float
    y: np.ndarray
    y_T: np.ndarray


def is_condensable(program: Transcription) -> bool:
    """Return whether start and goal are known, and limits are the only constraints."""
    problem = program.problem
    known = all(np.isfinite(state.q).all() and not (np.isnan(state.qd) & np.isfinite(state.qdd)).any()
                for state in (problem.start, problem.goal))
    return (known and has_wide_limits(program) and problem.coupling is None and problem.box is None and not program.damping
            and len(program.breaks) + program.degree > 7)


def has_wide_limits(program: Transcription) -> bool:
    """Return whether no pair of limits is so close that it is an equation."""
    rows, ends = program.rows, len(program.problem.ends.value)
    return bool(((rows.upper - rows.lower)[ends:] > MIN_LIMIT_WIDTH).all())


class CondensedProgram:
    """Program whose only constraints are limits.

    lower, upper : (rows,) limits of the values; the last row is T
    kept         : indices of the rows in the original program
    given        : whether T is prescribed
    """

    def __init__(self, program: Transcription):
        self.program, self.problem, self.n = program, program.problem, program.problem.n
        rows, skipped = program.rows, len(program.problem.ends.value)
        squares = (quantity for _, quantity, _ in self.problem.cost.squares(program.nodes.inner))
        self.orders = 1 + max([2, *(own.quantity.order for own in rows.limits), *(quantity.order for quantity in squares)])
        self.limits, kept = [], []
        for own in rows.limits:
            open_ = ~_rows_fixed_by_ends(own, self.problem, rows.last)
            kept.append(open_)
            self.limits.append(_LimitBlock(own, open_, len(program.nodes.span)))
        self.kept = skipped + np.flatnonzero(np.concatenate([*kept, np.zeros(0, dtype=bool)]))
        shortest, longest = self.problem.duration
        self.given = longest - shortest < MIN_LIMIT_WIDTH
        ends = (-np.inf, np.inf) if self.given else (shortest, longest)
        self.lower, self.upper = np.append(rows.lower[self.kept], ends[0]), np.append(rows.upper[self.kept], ends[1])
        self.B, self.powers = np.ascontiguousarray(program.B[:, :self.orders]), POWERS[:self.orders]
        self.count, degree = len(program.breaks) - 1 + program.degree, program.degree
        self.local = program.nodes.span[:, None] + np.arange(degree + 1)
        self.ends, fixed = self._end_points()
        self.free = ~fixed.ravel()
        self.bands = BandAssembler(program.nodes.span, len(program.breaks) - 1, self.B, self.n, self.free)

    def _end_points(self) -> tuple[np.ndarray, np.ndarray]:
        return _end_points(self.program)

    # ------------------------------------------------------------------ where one is

    def evaluate_at(self, x: np.ndarray) -> Iterate:
        """Return the iterate at x; only the free control points and T are used."""
        T = self.problem.duration[0] if self.given else float(x[-1])
        fixed, moving = self.ends[0] + T * self.ends[1] + T**2 * self.ends[2], self.ends[1] + 2.0 * T * self.ends[2]
        points = np.where(self.free, x[:-1], fixed.ravel()).reshape(-1, self.n)
        scale = T ** -self.powers[:, None].astype(float)
        y = self.B @ points[self.local] * scale
        y_T = -self.powers[:, None] / T * y
        if moving.any():
            y_T += self.B @ moving[self.local] * scale
        return Iterate(np.append(points, T), T, y, y_T)

    def objective(self, at: Iterate) -> float:
        """Return the objective."""
        nodes, cost = self.program.nodes, self.problem.cost
        return float(at.T * (nodes.weight @ cost.rate(_with_all_orders(at.y), nodes.inner)))

    def values(self, at: Iterate) -> np.ndarray:
        """Return the values of the constraints (rows,)."""
        return np.concatenate([*(limit.values(at.y) for limit in self.limits), [at.T]])

    # ------------------------------------------------------------------ first derivatives

    def linearize(self, at: Iterate) -> None:
        """Compute the first derivatives at an iterate, for the following calls."""
        nodes, cost = self.program.nodes, self.problem.cost
        for limit in self.limits:
            limit.linearise(at.y)
        self.here, self.scale = at, at.T ** -self.powers[:, None].astype(float)
        self.effort = any(True for _ in cost.squares(nodes.inner))
        whole = _with_all_orders(at.y)
        self.cost_slope = nodes.weight[:, None, None] * cost.slope(whole, nodes.inner)[:, :self.orders]
        self.cost_rate = float(nodes.weight @ cost.rate(whole, nodes.inner))
        self.cost_gradient = self._by_variables(at.T * self.cost_slope, self.cost_rate)

    def _weighted(self, multipliers: np.ndarray) -> np.ndarray:
        """Return the derivative (K, orders, n) of multipliers times values with respect to y."""
        total, start = np.zeros_like(self.here.y), 0
        for limit in self.limits:
            limit.add_weighted(total, multipliers[start:start + limit.size])
            start += limit.size
        return total

    def gradient(self, multipliers: np.ndarray) -> np.ndarray:
        """Return the gradient (size,) of the objective plus multipliers times values."""
        return self.cost_gradient + self._by_variables(self._weighted(multipliers), multipliers[-1])

    def _by_variables(self, slope: np.ndarray, by_T: float) -> np.ndarray:
        """Return the derivative (size,) with respect to the variables, from those by y (K, orders, n) and by T."""
        by_T = 0.0 if self.given else by_T + (slope * self.here.y_T).sum()
        return np.append(self.bands.vector(slope * self.scale) if slope.any() else 0.0 * self.here.x[:-1], by_T)

    def changes(self, step: np.ndarray) -> np.ndarray:
        """Return the directional derivatives (rows,) of the values along a step."""
        points = np.where(self.free, step[:-1], 0.0).reshape(-1, self.n)
        dy = self.B @ points[self.local] * self.scale + self.here.y_T * step[-1]
        return np.concatenate([*(limit.changes(dy) for limit in self.limits), [step[-1]]])

    # ------------------------------------------------------------------ second derivatives

    def curvature(self, multipliers: np.ndarray, small: float = MIN_MULTIPLIER_SHARE) -> np.ndarray:
        """Return the second derivatives (K, orders n, orders n) of T times the cost plus multipliers times values, by y.

        small : share of the largest multiplier below which nodes are omitted

        If the program uses Gauss-Newton, only squares are included.
        """
        if self.program.curvature is gauss_newton_curvature:
            return self.squares()
        total, start = self.squares(exact=True), 0
        for limit in self.limits:
            limit.add_curvature(total, self.here.y, multipliers[start:start + limit.size], small)
            start += limit.size
        return total

    def squares(self, exact: bool = False) -> np.ndarray:
        """Return the second derivatives of T times the cost, or their positive semidefinite Gauss-Newton part if not exact."""
        nodes, total = self.program.nodes, np.zeros((len(self.here.y), self.orders * self.n, self.orders * self.n))
        for weights, quantity, at in self.problem.cost.squares(nodes.inner):
            total[at] += square_curvature(quantity, weights, self.here.T * nodes.weight[at], _with_all_orders(self.here.y)[at],
                                          self.orders, exact)
        return total

    def newton(self, curvature: np.ndarray, multipliers: np.ndarray, sigma: np.ndarray) -> NewtonSystem:
        """Return the Newton system: second derivatives plus sigma times squares of the row gradients."""
        G, start, here = curvature.copy(), 0, self.here
        for limit in self.limits:
            limit.add_squares(G, sigma[start:start + limit.size])
            start += limit.size
        count, T, powers = len(G), here.T, self.powers[:, None]
        slope = self._weighted(multipliers) + T * self.cost_slope
        flat_T = here.y_T.reshape(count, -1, 1)
        G_T = (G @ flat_T).reshape(here.y.shape)
        border = self.bands.vector((G_T - powers / T * slope + self.cost_slope) * self.scale)
        y_TT = powers * (powers + 1.0) / T**2 * here.y + self._end_curvature(T)
        corner = (G_T * here.y_T).sum() + (slope * y_TT).sum() + 2.0 * (self.cost_slope * here.y_T).sum() + sigma[-1]
        bands = self.bands.matrix(G, self.scale[:, 0])
        return self._equations(bands, border, corner)

    def _equations(self, bands: np.ndarray, border: np.ndarray, corner: float) -> NewtonSystem:
        if self.given:
            border, corner = 0.0 * border, 1.0
        return BorderedSystem(bands, border, corner, self.free)

    def _end_curvature(self, T: float) -> np.ndarray | float:
        """Return the part of the second derivative of y by T due to the ends."""
        moving, twice = self.ends[1] + 2.0 * T * self.ends[2], 2.0 * self.ends[2]
        if not moving.any():
            return 0.0
        powers = self.powers[:, None]
        return (self.B @ twice[self.local] - 2.0 * powers / T * (self.B @ moving[self.local])) * self.scale


class _LimitBlock:
    """Constrained rows of one quantity, scaled: values, gradients and contributions to nodes."""

    def __init__(self, own: LimitRows, open_: np.ndarray, nodes: int):
        self.quantity, self.at = own.quantity, own.at
        self._there = slice(None) if len(own.at) == nodes else own.at  # views, where it is all nodes
        self.sample, self.component = own.sample[open_], own.component[open_]
        self.size, self.scale = len(self.sample), own.quantity.scale
        self.width = own.quantity.order + 1
        self._constant: np.ndarray | None = None
        self._alone: np.ndarray | None = None  # (k,) numbers of the derivatives, where each component is one of them

    def _table(self, numbers: np.ndarray) -> np.ndarray:
        """Return (at, k) from an array over rows, divided by the scale."""
        table = np.zeros((len(self.at), len(self.scale)))
        table[self.sample, self.component] = numbers
        return table / self.scale

    def values(self, y: np.ndarray) -> np.ndarray:
        return (self.quantity.values(y[self._there]) / self.scale)[self.sample, self.component]

    def linearise(self, y: np.ndarray) -> None:
        """Compute the gradients (at or 1, k, (order + 1) n)."""
        if self.quantity.linear:
            if self._constant is None:
                motion = y[self.at[:1], :self.width].swapaxes(0, 1)
                self._constant = np.concatenate(self.quantity.slope(*motion), axis=-1)
                by, count = np.abs(self._constant[0]).argmax(axis=1), (self._constant[0] != 0.0).sum(axis=1)
                self._alone = by if (count == 1).all() and len(set(by)) == len(by) else None
            self.slopes = self._constant
        else:
            self.slopes = np.concatenate(self.quantity.slope(*y[self._there, :self.width].swapaxes(0, 1)), axis=-1)

    def add_weighted(self, total: np.ndarray, multipliers: np.ndarray) -> None:
        found = (self._table(multipliers)[:, None, :] @ self.slopes)[:, 0]
        total[self._there, :self.width] += found.reshape(len(self.at), self.width, -1)

    def changes(self, dy: np.ndarray) -> np.ndarray:
        flat = dy[self._there, :self.width].reshape(len(self.at), -1, 1)
        return ((self.slopes @ flat)[..., 0] / self.scale)[self.sample, self.component]

    def add_squares(self, G: np.ndarray, sigma: np.ndarray) -> None:
        width = self.slopes.shape[-1]
        weights = self._table(sigma) / self.scale
        if self._alone is not None:
            G[self.at[:, None], self._alone, self._alone] += weights * (self.slopes[0] ** 2).sum(axis=1)
            return
        G[self._there, :width, :width] += (self.slopes.swapaxes(-1, -2) * weights[:, None, :]) @ self.slopes

    def add_curvature(self, G: np.ndarray, y: np.ndarray, multipliers: np.ndarray, small: float) -> None:
        if not self.quantity.linear:
            width = self.slopes.shape[-1]
            factors = self._table(multipliers)
            some = np.abs(factors * self.scale).max(axis=1)
            here = np.flatnonzero(some >= small * some.max())
            G[self.at[here], :width, :width] += node_curvature(self.quantity, factors[here], y[self.at[here]],
                                                               self.slopes[here])


def square_curvature(quantity: Quantity, weights: np.ndarray, times: np.ndarray, y: np.ndarray, orders: int,
                     exact: bool) -> np.ndarray:
    """Return the second derivatives of times * sum of weights values^2 by y (K, ORDERS, n).

    They are 2 w v' v'^T, plus 2 (w v) v'' if exact.
    """
    slopes = quantity.slopes(y)[:, :, :orders].reshape(len(y), len(weights), -1)
    factors = 2.0 * weights * times[:, None]
    total = (slopes.swapaxes(1, 2) * factors[:, None, :]) @ slopes
    if exact and not quantity.linear:
        width = (quantity.order + 1) * y.shape[2]
        total[:, :width, :width] += node_curvature(quantity, factors * quantity.values(y), y, slopes[..., :width])
    return total


def _with_all_orders(y: np.ndarray) -> np.ndarray:
    """Return y extended to all ORDERS by zeros."""
    return y if y.shape[1] == ORDERS else np.concatenate((y, np.zeros((len(y), ORDERS - y.shape[1], y.shape[2]))), axis=1)


def _rows_fixed_by_ends(own: LimitRows, problem, last: int) -> np.ndarray:
    """Return a mask (rows,) of rows that start or goal determine for every motion; they are checked beforehand."""
    found = np.zeros(len(own.sample), dtype=bool)
    for node, state in ((0, problem.start), (last, problem.goal)):
        found |= (own.at[own.sample] == node) & fixed_by_end(state, own.quantity)[own.component]
    return found


def fixed_by_end(state: EndState, quantity: Quantity) -> np.ndarray:
    """Return a mask (k,) of the components of a quantity that an end state determines."""
    given = np.isfinite([state.q, state.qd, state.qdd, np.full_like(state.q, np.nan)])
    if not quantity.linear:
        return np.full(len(quantity.labels), given[:quantity.order + 1].all())
    return ~(quantity.slopes(np.zeros((1, *given.shape)))[0] * ~given).any(axis=(1, 2))


def _end_points(program: Transcription) -> tuple[np.ndarray, np.ndarray]:
    """Return the control points that start and goal determine.

    (3, points, n) coefficients of 1, T, T^2; (points, n) mask of fixed points.
    """
    breaks, degree, problem = program.breaks, program.degree, program.problem
    count = len(breaks) - 1 + degree
    table, fixed = np.zeros((3, count, problem.n)), np.zeros((count, problem.n), dtype=bool)
    ends = ((problem.start, 0, 0.0, np.arange(3)), (problem.goal, len(breaks) - 2, 1.0, count - 1 - np.arange(3)))
    for state, span, u, points in ends:
        functions = basis(breaks, degree, np.array([span]), np.array([u]))[0, :3]
        functions = functions[:, :3] if u == 0.0 else functions[:, :-4:-1]
        given = np.isfinite([state.q, state.qd, state.qdd]).sum(axis=0)
        y = np.stack((state.q, state.qd, state.qdd))
        for j, known in enumerate(given):
            solved = np.linalg.inv(functions[:known, :known])
            table[:known, points[:known], j] = (solved * y[:known, j]).T
            fixed[points[:known], j] = True
    return table, fixed


RANK_TOL = 1e-10  # singular value over the largest below which a condition is redundant


def is_reducible(program: Transcription) -> bool:
    """Return whether the duration is given, and the only constraints are limits and linear end conditions."""
    shortest, longest = program.problem.duration
    return longest - shortest < MIN_LIMIT_WIDTH and program.problem.box is None and has_wide_limits(program)


class ReducedProgram(CondensedProgram):
    """Condensed program in the null space of the end conditions."""

    def __init__(self, program: Transcription):
        super().__init__(program)
        self.E, self.e = _end_conditions(program)
        U, sizes, V = np.linalg.svd(self.E)
        rank = int((sizes > RANK_TOL * sizes.max(initial=0.0)).sum())
        self.Z, self._back = V[rank:].T, V[:rank].T @ (U[:, :rank] / sizes[:rank]).T

    def _end_points(self) -> tuple[np.ndarray, np.ndarray]:
        """Return no fixed points, because the end conditions contain them."""
        return np.zeros((3, self.count, self.n)), np.zeros((self.count, self.n), dtype=bool)

    def evaluate_at(self, x: np.ndarray) -> Iterate:
        """Return the iterate at the projection of x on the end conditions."""
        return super().evaluate_at(np.append(x[:-1] - self._back @ (self.E @ x[:-1] - self.e), x[-1]))

    def gradient(self, multipliers: np.ndarray) -> np.ndarray:
        found = super().gradient(multipliers)
        return np.append(self.Z @ (self.Z.T @ found[:-1]), 0.0)

    def _equations(self, bands: np.ndarray, *_border: object) -> ProjectedSystem:
        return ProjectedSystem(bands, self.Z, self.program.damping)


def _end_conditions(program: Transcription) -> tuple[np.ndarray, np.ndarray]:
    """Return E (rows, points n) and e (rows,) of the end conditions E p = e."""
    problem, breaks, degree = program.problem, program.breaks, program.degree
    ends, T = problem.ends, problem.duration[0]
    E = np.zeros((len(ends.value), len(breaks) - 1 + degree, problem.n))
    for table, span, u in ((ends.first, 0, 0.0), (ends.last, len(breaks) - 2, 1.0)):
        functions = basis(breaks, degree, np.array([span]), np.array([u]))[0] / T ** POWERS[:, None]
        E[:, span:span + degree + 1] += np.einsum("erj,ra->eaj", table, functions)
    return E.reshape(len(E), -1), ends.value
