"""Primal-dual interior-point method on condensed programs (Waechter and Biegler 2006, (9)-(29)).

    minimize f(x)  where  c(x) = s,  lower <= s <= upper

The barrier -mu log of the distances of s from its limits keeps it inside. Newton's step for given mu, with z the multipliers
of the limits, lambda = z_upper - z_lower, sigma = z_lower / (s - lower) + z_upper / (upper - s), and ds = c_x dx + c - s:

    (L_xx + c_x^T sigma c_x) dx = -(f_x + c_x^T (barrier slope + sigma (c - s)))

Rows are many, variables few: no matrix is larger than that. A step is accepted if it reduces c - s or the barrier function
(filter); one that is rejected for curvature is corrected once (second-order correction). Shifts of the diagonal keep the
matrix positive definite.

reduce_violation precedes it where the initial guess is far from the limits: Levenberg-Marquardt steps on

    f(x) + price / 2 |v(x)|^2,   v: values beyond their limits, zero inside

Slacks that start inside limits while the motion is far outside block one another, and an interior-point method then makes
small steps. Here inactive limits have no effect, and second derivatives are those of squares, so no step fails for curvature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .condensed import CondensedProgram, Iterate, NewtonSystem
from .problem import ORDERS


@dataclass(frozen=True)
class InteriorPointOptions:
    """Tuning of the line search, of the shift of the diagonal, and of the approach to feasibility."""

    # iterations between two evaluations of the curvature of torque-rate limits in minimum-time problems
    curvature_interval: int = 4
    fraction_to_boundary: float = 0.99  # largest share of the distance to a limit that a step covers
    barrier_factor: float = 0.2  # reduction of mu: linear
    barrier_power: float = 1.5  # and superlinear
    barrier_error_factor: float = 10.0  # mu is reduced when the error is below this multiple of it
    armijo_share: float = 1e-4  # decrease of the objective that a step must bring, as a share of the predicted one
    filter_margin: float = 1e-5  # decrease relative to earlier points of the filter
    rounding_share: float = 1e-13  # relative rounding of the objective
    min_step_share: float = 1e-6  # smallest share of a step
    min_shift: float = 1e-6  # of the diagonal of the Newton system
    first_shift: float = 1e-4
    max_shift: float = 1e8
    shift_increase: float = 8.0  # factor of the shift after a matrix with the wrong inertia,
    shift_decrease: float = 3.0  # and its divisor from one iteration to the next
    limit_relaxation: float = 1e-9  # limits are widened by this
    max_initial_violation: float = 1e4  # larger violations at the beginning are refused
    small_initial_violation: float = 1e-4  # with smaller ones the barrier function has to fall
    multiplier_ratio: float = 1e10  # largest ratio of a multiplier to mu over its slack, and of that to the multiplier
    max_initial_multiplier: float = 1e6
    min_slack: float = 1e-13  # smallest distance of slacks from limits, against rounding
    # iterations without a change of the objective after which rounding keeps slopes from vanishing,
    stalled_iterations: int = 10
    stalled_change: float = 1e-6  # and that relative change
    feasibility_tol: float = 1e-6  # violation of a final point
    rounded_optimality: float = 1e-4  # optimality of a final point from which rounding prevents further steps
    violation_price: float = 0.1  # price of one row beyond its limit by its scale, over the initial objective
    initial_lm_shift: float = 1e-2  # shift of the diagonal in Levenberg-Marquardt steps
    min_lm_shift: float = 1e-8
    max_lm_shift: float = 1e8
    poor_reduction: float = 0.3  # actual over predicted reduction below which the shift is increased,
    good_reduction: float = 0.7  # and above which it is decreased
    min_relative_decrease: float = 0.05  # relative decrease of a step below which the phase ends
    max_approach_steps: int = 40


OPTIONS = InteriorPointOptions()

SOLVED, NO_STEP, TOO_MANY = "solved", "stuck", "too many iterations"


class InteriorPointStart(NamedTuple):
    """Initial barrier mu, smallest initial distance of slacks from limits, and multipliers of the rows, where known."""

    mu: float
    inside: float
    multipliers: np.ndarray | None = None


class InteriorPointResult(NamedTuple):
    """Final point, multipliers, status (SOLVED, or the failure), and iterations."""

    x: np.ndarray
    multipliers: np.ndarray
    status: str
    iterations: int


Watch = Callable[[int, np.ndarray, float], None]


def minimize(program: CondensedProgram, x: np.ndarray, start: InteriorPointStart, tolerance: float, most: int,
             watch: Watch) -> InteriorPointResult:
    """Return a local minimum near x. most: iterations; watch(iteration, x, violation): called after each iteration."""
    return _InteriorPointSearch(program, x, start, tolerance, watch).run(most)


class _MeritValues(NamedTuple):
    """Violation, barrier function, and slope of the barrier function along the step."""

    violation: float
    barrier: float
    descent: float


class _InteriorPointSearch:
    """State of the search: point, c, s, z as in the module docstring; shift: the last one."""

    def __init__(self, program: CondensedProgram, x: np.ndarray, start: InteriorPointStart, tolerance: float, watch: Watch):
        self.program, self.tolerance, self.watch, self.mu = program, tolerance, watch, start.mu
        self.lower, self.upper = program.lower - OPTIONS.limit_relaxation, program.upper + OPTIONS.limit_relaxation
        self.below, self.above = np.isfinite(self.lower), np.isfinite(self.upper)
        self.point = program.evaluate_at(x)
        self.c = program.values(self.point)
        room = np.minimum(start.inside, 0.25 * (self.upper - self.lower))
        self.s = np.clip(self.c, self.lower + room, self.upper - room)
        known = np.zeros_like(self.c) if start.multipliers is None else start.multipliers
        self.z = [np.where(there, np.maximum(np.minimum(self.mu / gap, OPTIONS.max_initial_multiplier), sign * known), 0.0)
                  for there, gap, sign in zip((self.below, self.above), self._gaps(self.s), (-1.0, 1.0))]
        self.shift, self.filter = 0.0, list[tuple[float, float]]()
        self.most = OPTIONS.max_initial_violation * max(1.0, np.abs(self.c - self.s).sum())

    # ------------------------------------------------------------------ numbers of a state

    def _gaps(self, s: np.ndarray) -> list[np.ndarray]:
        return [np.where(self.below, s - self.lower, 1.0), np.where(self.above, self.upper - s, 1.0)]

    def _barrier(self, objective: float, s: np.ndarray) -> float:
        return objective - self.mu * float(np.log(np.concatenate(self._gaps(s))).sum())

    def _error(self, dual: np.ndarray, mu: float) -> float:
        """Return the scaled optimality error (5)."""
        gaps, total = self._gaps(self.s), sum(float(z.sum()) for z in self.z)
        scale = max(100.0, total / max(1, self.below.sum() + self.above.sum())) / 100.0
        complementarity = max(float(np.abs(z * gap - mu)[known].max(initial=0.0))
                              for z, gap, known in zip(self.z, gaps, (self.below, self.above)))
        return max(float(np.abs(dual).max()) / scale, float(np.abs(self.c - self.s).max()), complementarity / scale)

    # ------------------------------------------------------------------ the search

    def run(self, most: int) -> InteriorPointResult:
        program, costs = self.program, list[float]()
        for iteration in range(most + 1):
            program.linearize(self.point)
            costs.append(program.objective(self.point))
            multipliers = self.z[1] - self.z[0]
            dual = program.gradient(multipliers)
            self.watch(iteration, self.point.x, float(np.maximum(self.c - program.upper, program.lower - self.c).max()))
            if self._error(dual, 0.0) <= self.tolerance:
                return InteriorPointResult(self.point.x, multipliers, SOLVED, iteration)
            final = self.mu <= self.tolerance / 10.0 and float(np.abs(self.c - self.s).max()) <= OPTIONS.feasibility_tol
            recent = costs[-OPTIONS.stalled_iterations:]
            if final and len(costs) > len(recent) and np.ptp(recent) <= OPTIONS.stalled_change * abs(costs[-1]):
                return InteriorPointResult(self.point.x, multipliers, SOLVED, iteration)
            if iteration == most:
                break
            while self._error(dual, self.mu) <= OPTIONS.barrier_error_factor * self.mu and self.mu > self.tolerance / 10.0:
                self.mu = max(self.tolerance / 10.0, min(OPTIONS.barrier_factor * self.mu, self.mu**OPTIONS.barrier_power))
                self.filter = []
            if not self._step(multipliers, iteration):
                rounded = final and self._error(dual, 0.0) <= OPTIONS.rounded_optimality
                return InteriorPointResult(self.point.x, multipliers, SOLVED if rounded else NO_STEP, iteration)
        return InteriorPointResult(self.point.x, self.z[1] - self.z[0], TOO_MANY, most)

    def _step(self, multipliers: np.ndarray, iteration: int) -> bool:
        """Take a Newton step, with larger shifts while no share of it is accepted; returns whether one was."""
        program, gaps = self.program, self._gaps(self.s)
        sigma = self.z[0] / gaps[0] + self.z[1] / gaps[1]
        self.slope = np.where(self.above, self.mu / gaps[1], 0.0) - np.where(self.below, self.mu / gaps[0], 0.0)
        if program.effort or program.orders < ORDERS or iteration % OPTIONS.curvature_interval == 0:
            self.curvature = program.curvature(multipliers)
        matrix = program.newton(self.curvature, multipliers, sigma)
        least = 0.0
        while self._factorize(matrix, least):
            step, ds = self._solve_step(matrix, sigma, self.c - self.s)
            if self._line_search(matrix, sigma, gaps, step, ds):
                return True
            least = max(OPTIONS.shift_increase * self.shift, OPTIONS.first_shift)
        return False

    def _factorize(self, matrix: NewtonSystem, least: float) -> bool:
        """Factorize with about the smallest shift that makes the matrix positive definite, starting from the last one."""
        if not least and matrix.factorise(0.0):
            return True
        shift = least or max(OPTIONS.min_shift, self.shift / OPTIONS.shift_decrease)
        while not matrix.factorise(shift):
            shift *= OPTIONS.shift_increase
            if shift > OPTIONS.max_shift:
                return False
        self.shift = shift
        return shift <= OPTIONS.max_shift

    def _solve_step(self, matrix: NewtonSystem, sigma: np.ndarray, distance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return dx, ds for a residual c - s."""
        step = matrix.solve(-self.program.gradient(self.slope + sigma * distance))
        return step, self.program.changes(step) + distance

    def _line_search(self, matrix: NewtonSystem, sigma: np.ndarray, gaps: list[np.ndarray], step: np.ndarray,
                     ds: np.ndarray) -> bool:
        """Search for an accepted share of the step; returns whether there is one."""
        tau, objective = max(OPTIONS.fraction_to_boundary, 1.0 - self.mu), self.program.objective(self.point)
        now = _MeritValues(np.abs(self.c - self.s).sum(), self._barrier(objective, self.s),
                     float(self.program.cost_gradient @ step + self.slope @ ds))
        largest = _step_to_boundary(gaps, ds, tau)
        if step[-1] < 0.0:
            largest = min(largest, -0.5 * self.point.T / step[-1])
        share = largest
        while share > OPTIONS.min_step_share:
            if self._accepts(share, step, ds, now, gaps, tau):
                return True
            if share == largest:  # second-order correction
                again, ds_again = self._solve_step(matrix, sigma, share * (self.c - self.s) + self.missed)
                if self._accepts(_step_to_boundary(gaps, ds_again, tau), again, ds_again, now, gaps, tau):
                    return True
            share *= 0.5
        return False

    def _accepts(self, share: float, step: np.ndarray, ds: np.ndarray, now: _MeritValues, gaps: list[np.ndarray],
                 tau: float) -> bool:
        """Take a share of the step if the filter accepts it."""
        point = self.program.evaluate_at(self.point.x + share * step)
        c, slack = self.program.values(point), OPTIONS.min_slack
        s = np.clip(self.s + share * ds, self.lower + slack, self.upper - slack)
        self.missed = c - s
        violation = np.abs(self.missed).sum()
        barrier = self._barrier(self.program.objective(point), s) if np.isfinite(violation) else np.inf
        if not violation <= self.most or any(violation >= v and barrier >= b for v, b in self.filter):
            return False
        margin = (1.0 - OPTIONS.filter_margin) * now.violation, now.barrier - OPTIONS.filter_margin * now.violation
        small = self.most / OPTIONS.max_initial_violation * OPTIONS.small_initial_violation
        inside = now.violation < small and now.descent < 0.0
        if inside and share * (-now.descent) ** 2.3 > now.violation ** 1.1:  # (19)
            rounding = OPTIONS.rounding_share * abs(now.barrier)
            accepted = barrier <= now.barrier + OPTIONS.armijo_share * share * now.descent + rounding
        else:
            accepted = violation <= margin[0] or barrier <= margin[1]
            if accepted:
                self.filter.append(margin)
        if accepted:
            self._take(point, c, s, gaps, ds, tau)
        return accepted

    def _take(self, point: Iterate, c: np.ndarray, s: np.ndarray, gaps: list[np.ndarray], ds: np.ndarray, tau: float) -> None:
        """Update the multipliers by (12), positive (15), and near mu / gap (16)."""
        self.point, self.c, self.s = point, c, s
        for k, (sign, known, gap, after) in enumerate(zip((1.0, -1.0), (self.below, self.above), gaps, self._gaps(s))):
            z = self.z[k]
            dz = np.where(known, self.mu / gap - z - sign * z / gap * ds, 0.0)
            down = dz < 0.0
            z = z + min(1.0, float((-tau * z[down] / dz[down]).min(initial=1.0))) * dz
            low, high = self.mu / after / OPTIONS.multiplier_ratio, OPTIONS.multiplier_ratio * self.mu / after
            self.z[k] = np.where(known, np.clip(z, low, high), 0.0)


def _step_to_boundary(gaps: list[np.ndarray], ds: np.ndarray, tau: float) -> float:
    """Return the largest share of a step with which no slack loses more than tau of its distance from a limit."""
    share = 1.0
    for gap, change in zip(gaps, (ds, -ds)):
        down = change < 0.0
        share = min(share, float((-tau * gap[down] / change[down]).min(initial=1.0)))
    return share


class ApproachResult(NamedTuple):
    """Point and number of iterations."""

    x: np.ndarray
    iterations: int


def reduce_violation(program: CondensedProgram, x: np.ndarray, most: int, watch: Watch) -> ApproachResult:
    """Return a point with small violation after a few cheap steps; it is not a solution. watch: as in minimize."""
    at, shift = program.evaluate_at(x), OPTIONS.initial_lm_shift
    price = OPTIONS.violation_price * (program.objective(at) or 1.0)
    v, merit = _penalized_merit(program, at, price)
    for iteration in range(min(most, OPTIONS.max_approach_steps)):
        watch(iteration, at.x, float(np.abs(v).max(initial=0.0)))
        program.linearize(at)
        slope = program.gradient(price * v)
        matrix = program.newton(program.squares(), price * v, price * (v != 0.0))
        before = merit
        while True:
            if shift > OPTIONS.max_lm_shift:
                return ApproachResult(at.x, iteration)
            step = matrix.solve(-slope) if matrix.factorise(shift) else None
            there = at if step is None else program.evaluate_at(at.x + step)
            v_there, merit_there = _penalized_merit(program, there, price)
            if step is not None and merit_there < merit:
                break
            shift *= 4.0
        gained = (merit - merit_there) / (-0.5 * slope @ step)
        if gained > OPTIONS.good_reduction:
            shift = max(shift / 4.0, OPTIONS.min_lm_shift)
        elif gained < OPTIONS.poor_reduction:
            shift *= 2.0
        at, v, merit = there, v_there, merit_there
        if before - merit < OPTIONS.min_relative_decrease * before:
            return ApproachResult(at.x, iteration + 1)
    return ApproachResult(at.x, min(most, OPTIONS.max_approach_steps))


def _penalized_merit(program: CondensedProgram, at: Iterate, price: float) -> tuple[np.ndarray, float]:
    """Return v (rows,) and the merit function."""
    c = program.values(at)
    v = np.maximum(c - program.upper, 0.0) - np.maximum(program.lower - c, 0.0)
    merit = program.objective(at) + price / 2.0 * float(v @ v)
    return v, merit if np.isfinite(merit) else np.inf
