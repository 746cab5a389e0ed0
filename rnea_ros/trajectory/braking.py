"""Transition of the rate of a law that exceeds new limits as little as possible.

When tighter limits or a heavier payload arrive during a motion, its torque may already be outside the new limits, or the
deceleration that is under way may need more than they permit. The path and, at this instant, velocity and acceleration are
given; the jerk is free. The transition is the rate k as a function of the law's time sigma: a spline with a piecewise linear
second derivative, from the present k and kappa to a constant rate within the new limits. With ' = d/dsigma

    kappa = k' k,    w = (k'' k + k'^2) k

so at a fixed sigma each utilization is a polynomial of k, k', k'' with constant coefficients (constraints.py). The transition
solves

    minimize    e - a (rate at the end) + b (mean excess of all limits)
    subject to  |utilization_i(sigma)| <= bound_i + e,  0 < k <= k_max,  rate at the end <= largest permitted rate,  e >= 0

with weights a and b, k_max = 1 or more where velocity limits permit it, and bound_i = 1, or the utilization at the begin where
that is larger and cannot jump (torque, velocity, acceleration). A primal-dual interior-point method solves it (Nocedal and
Wright 2006, chapter 19, with the Hessian of Gauss and Newton). There are twenty unknowns, so a step takes about as long
as the check of a transition. Limits hold at samples; breaks of the law at which the result exceeds them by more are added, and
the search continues.

The solutions include transitions that first continue or accelerate, or slow down further than their end: a motion that
decelerates at a limit needs less torque or torque rate now if it decelerates later, from a higher speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .constraints import BASIS_SIZE, constraint_values

if TYPE_CHECKING:
    from .time_scaling import CoefficientTable


@dataclass(frozen=True)
class BrakingOptions:
    """Tuning of the search.

    Excesses and utilizations are shares of the limits; times are those of the law. Knots and samples are closer at the begin.
    """

    horizon_share: float = 12.0  # length of a transition, in usual transition times
    min_horizon_s: float = 0.5
    max_horizon_s: float = 1.5
    n_knots: int = 20
    knot_power: float = 1.5  # exponent of their positions
    min_gap_s: float = 2e-3  # least distance of a break of the law from the sample before it, at the begin
    gap_growth: float = 0.1  # of the time since the begin, added to it
    n_peaks: int = 8  # most breaks that are sampled because a utilization is larger there than beside
    min_peak: float = 0.03  # by so much
    n_spare: int = 18  # samples that are reserved for what the others miss
    missed_tol: float = 5e-3  # excess beyond that at the samples that is not searched again
    level: float = 0.9965  # utilization that counts as inside
    room: float = 2e-3  # added to a utilization that is larger at the begin
    # initial transitions: begin and end of a change of the rate, in horizons, and the share by which it increases before
    guesses: tuple[tuple[float, float, float], ...] = (
        (0.0, 0.08, 0.0), (0.0, 0.15, 0.0), (0.0, 0.3, 0.0), (0.0, 0.6, 0.0), (0.0, 1.0, 0.0),
        (0.1, 0.5, 0.0), (0.2, 1.0, 0.0), (0.1, 0.5, 0.03), (0.2, 1.0, 0.1))
    guess_rate: float = 0.95  # rate at their end, in largest permitted ones
    end_room: float = 0.02  # of the rate at the end to the largest permitted one, at least, in an initial transition
    max_rate: float = 1.5  # where the velocity limits permit it
    rate_room: float = 5e-4  # of a rate above 1 that they always permit, see time_optimal.CHECKED_LEVEL
    min_rate_share: float = 0.1  # of the smaller of present and largest permitted rate
    margin: float = 0.5  # by which the first e is above the excess, as a share of it
    min_margin: float = 0.02
    later_margin: float = 0.1  # share of these margins for an e that is not above the excess
    min_slack: float = 1e-7
    to_boundary: float = 0.99  # share of the distance to the nearest bound that a step may use
    max_change: float = 0.3  # of the rate in a step
    step_cut: float = 0.3  # factor on a step that increases the excess
    min_step: float = 1e-2  # share of a step that is not shortened further
    centering: tuple[float, float, float] = (0.1, 0.3, 0.6)  # barrier over mean complementarity after steps that were:
    long_steps: tuple[float, float] = (0.8, 0.3)  # longer than the first share, than the second, shorter
    min_barrier: float = 1e-7
    steps: tuple[int, ...] = (14, 5, 4)  # most steps of the search, and of each after breaks were added
    patience: int = 3  # steps that must lower the cost
    good_enough: float = 1e-3  # by so much
    speed_weight: float = 0.01  # a, for a rate in largest permitted ones
    mean_weight: float = 1.0  # b
    smoothing: float = 0.005  # excess below which it counts by its square
    regularization: float = 1e-9


OPTIONS = BrakingOptions()
SAME_TIME_S = 1e-6  # difference of times below which they count as equal


class RateProfile(NamedTuple):
    """Rate k and its time derivative kappa at times of the law sigma; between them k is a cubic of time.

    length : durations of the intervals [s], one less than there are values
    """

    sigma: np.ndarray
    k: np.ndarray
    kappa: np.ndarray
    length: np.ndarray

    def cubics(self) -> list[tuple[float, float, float]]:
        """Return duration, w and its time derivative of each interval."""
        h, change = self.length, np.diff(self.k)
        w = (6.0 * change / h - 4.0 * self.kappa[:-1] - 2.0 * self.kappa[1:]) / h
        slope = (6.0 * (self.kappa[:-1] + self.kappa[1:]) - 12.0 * change / h) / (h * h)
        return list(zip(h.tolist(), w.tolist(), slope.tolist()))


@lru_cache(maxsize=8)
def _spline(n: int, power: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return knots (n + 1,) on [0, 1], and splines by the values of their second derivative at the knots.

    Also return the matrix from these values to the coefficients of truncated powers, the row that gives the first derivative
    at 1, and an orthonormal basis (n + 1, n) of the values that leave it at zero.
    """
    knots = np.linspace(0.0, 1.0, n + 1) ** power
    to_powers = np.linalg.inv(np.column_stack((np.ones(n + 1), np.maximum(knots[:, None] - knots[:-1], 0.0))))
    slope = _derivatives(np.ones(1), knots, to_powers)[1][0]
    return knots, to_powers, slope, np.linalg.qr(np.column_stack((slope, np.eye(n + 1)[:, :n])))[0][:, 1:]


def _derivatives(x: np.ndarray, knots: np.ndarray, to_powers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return value, first and second derivative (samples, knots) at x of splines that begin with 0 and slope 0."""
    x, ramp = x[:, None], np.maximum(x[:, None] - knots[:-1], 0.0)
    return (np.hstack((0.5 * x * x, ramp**3 / 6.0)) @ to_powers, np.hstack((x, 0.5 * ramp * ramp)) @ to_powers,
            np.hstack((np.ones_like(x), ramp)) @ to_powers)


class _Rates(NamedTuple):
    """Affine function from the unknowns to k, k', k'' (' = d/dsigma) at samples: constants, and matrices."""

    constant: list[np.ndarray]
    matrix: list[np.ndarray]

    def __call__(self, y: np.ndarray) -> list[np.ndarray]:
        return [c + m @ y for c, m in zip(self.constant, self.matrix)]


class _Step(NamedTuple):
    """Step of the unknowns, of e, and of the multipliers, and the possible shares of the first two and of the last."""

    y: np.ndarray
    e: float
    multipliers: np.ndarray
    length: float
    dual_length: float


def _utilization(coefficients: np.ndarray, k: np.ndarray, k1: np.ndarray, k2: np.ndarray) -> np.ndarray:
    """Return the utilization (samples, constraints) of all limits but velocity."""
    return constraint_values(coefficients, k, k1 * k, (k2 * k + k1 * k1) * k)


class BrakingProblem:
    """Search for the transition from a state (sigma, k, kappa) that exceeds the limits of a table as little as possible."""

    def __init__(self, table: CoefficientTable, sigma: float, k: float, kappa: float, most: float, used: np.ndarray,
                 transition_time: float):
        """Prepare the search.

        most : largest rate at the end of the transition
        used : present utilization (limits,) of what cannot jump, zero for the others, and last that of velocity
        """
        o = OPTIONS
        horizon = float(np.clip(o.horizon_share * transition_time, o.min_horizon_s, o.max_horizon_s))
        end = min(sigma + horizon, table.law.duration)
        self._ends_at_rest = end >= table.law.duration  # then every rate is within the limits at the end
        self._table, self._sigma, self._length = table, sigma, end - sigma
        self._k, self._slope, self._most = k, kappa / k * self._length, most
        self._least = o.min_rate_share * min(k, most)
        at, before = self._sample_times()
        self._share, self._last = (at - sigma) / self._length, len(at) - o.n_spare - 1  # number of the sample at the end
        self._next = self._last + 1  # spare sample
        self._rates = self._rates_at(self._share)
        self._matrices = np.stack(self._rates.matrix, axis=1)
        self._coefficients, self._speed = table.coefficients(at, before), table.velocity(at)
        # faster than the law only within velocity limits
        fastest = np.minimum(o.max_rate, o.level / np.maximum(self._speed, o.level / o.max_rate))
        self._largest = np.maximum(fastest, max(1.0, k) + o.rate_room)
        weight = np.gradient(self._share)  # of the samples in a mean
        weight[self._last + 1:] = 0.0
        self._mean, self._weight = weight, np.repeat(weight, self._coefficients.shape[2])
        self._bound = np.where(used > o.level, used + o.room, o.level)

    def _sample_times(self) -> tuple[np.ndarray, np.ndarray]:
        """Return times of the law to sample, breaks of its jerk twice, and whether each sample is just before a break."""
        o, table, begin, end = OPTIONS, self._table, self._sigma, self._sigma + self._length
        table.extend(end)
        first, last = (int(x) for x in table.edges.searchsorted((begin + SAME_TIME_S, end - SAME_TIME_S)))
        edges = self._edges = table.edges[first:last]
        peaks = table.peaks_at_edges(first, last)
        largest = np.argsort(-peaks, kind="stable")[:o.n_peaks]
        is_peak = np.zeros(len(edges), dtype=bool)
        is_peak[largest[peaks[largest] > o.min_peak]] = True
        knots = _spline(o.n_knots, o.knot_power)[0]
        forced = begin + self._length * np.union1d(knots, 0.5 * (knots[1:] + knots[:-1]))[1:-1]
        times = np.concatenate((edges, forced))
        order = np.argsort(times, kind="stable")
        kept: list[tuple[float, bool]] = [(begin, False)]
        last_time = begin
        for number, time in zip(order.tolist(), times[order].tolist()):
            is_edge = number < len(edges)
            is_far = time - last_time >= o.min_gap_s + o.gap_growth * (time - begin)
            if not is_edge:
                kept.append((time, False))
            elif is_peak[number] or is_far:
                kept += [(time, True), (time, False)]
            else:
                continue
            last_time = time
        spare = [(end, True)] * o.n_spare  # for what is missed between the samples
        at, before = zip(*kept, (end, True), *spare)
        return np.array(at), np.array(before)

    def _rates_at(self, share: np.ndarray) -> _Rates:
        """Return k, k', k'' at shares of the length as functions of the unknowns; k' is zero at the end."""
        knots, to_powers, slope, free = _spline(OPTIONS.n_knots, OPTIONS.knot_power)
        matrices, fixed = _derivatives(share, knots, to_powers), slope * (-self._slope / (slope @ slope))
        begins = (self._k + self._slope * share, np.full_like(share, self._slope), np.zeros_like(share))
        scales = (1.0, 1.0 / self._length, 1.0 / self._length**2)
        return _Rates([(b + m @ fixed) * x for b, m, x in zip(begins, matrices, scales)],
                      [m @ free * x for m, x in zip(matrices, scales)])

    def _jacobian(self, k: np.ndarray, k1: np.ndarray, k2: np.ndarray) -> np.ndarray:
        """Return the derivatives (samples, constraints, unknowns) of the utilization."""
        weights = np.zeros((len(k), 3, BASIS_SIZE))
        weights[:, 0, 1], weights[:, 0, 2], weights[:, 0, 3], weights[:, 0, 4] = 1.0, 2.0 * k, k1, 3.0 * k * k
        weights[:, 0, 5], weights[:, 0, 6] = 2.0 * k * k1, 2.0 * k2 * k + k1 * k1
        weights[:, 1, 3], weights[:, 1, 5], weights[:, 1, 6] = k, k * k, 2.0 * k1 * k
        weights[:, 2, 6] = k * k
        return (weights @ self._coefficients).swapaxes(1, 2) @ self._matrices

    def _excess(self, rates: list[np.ndarray]) -> tuple[np.ndarray, float]:
        """Return utilizations (samples, constraints), and the excess beyond the bounds, at least zero."""
        used = _utilization(self._coefficients, *rates)
        beyond = np.abs(used) - self._bound[:-1]
        return used, max(float(beyond.max()), float((rates[0] * self._speed).max() - self._bound[-1]), 0.0)

    def _cost(self, k: np.ndarray, used: np.ndarray, excess: float) -> float:
        """Return what is minimized, from rates, utilizations and the excess."""
        mean_excess = float(self._weight @ np.maximum(np.abs(used) - OPTIONS.level, 0.0).ravel()
                            + self._mean @ np.maximum(k * self._speed - OPTIONS.level, 0.0))
        return excess + OPTIONS.mean_weight * mean_excess - OPTIONS.speed_weight / self._most * float(k[self._last])

    def _guess(self) -> np.ndarray:
        """Return the unknowns of the best of some transitions to a rate below the largest permitted one."""
        o, k, matrix, constant = OPTIONS, self._k, self._rates.matrix[0], self._rates.constant[0]
        end = k if self._ends_at_rest else o.guess_rate * min(k, self._most)
        highest, row = (1.0 - o.end_room) * self._most, matrix[self._last]
        inverse = np.linalg.solve(matrix.T @ matrix + o.regularization * np.eye(matrix.shape[1]), matrix.T)
        found = []
        for since, until, rise in o.guesses:
            x = np.clip((self._share - since) / (until - since), 0.0, 1.0)
            rate = k + (end - k) * x * x * (3.0 - 2.0 * x) + self._slope * self._share * np.exp(-self._share / until)
            if rise:
                rate += rise * k * np.maximum(self._share * (2.0 * since - self._share), 0.0) / since**2
            y = inverse @ (rate - constant)
            beyond = float(constant[self._last] + row @ y) - highest
            if not self._ends_at_rest and beyond > 0.0:
                y -= beyond * row / (row @ row)
            rates = self._rates(y)
            rates[0] = np.clip(rates[0], self._least, self._largest)
            found.append((self._cost(rates[0], *self._excess(rates)), y))
        return min(found, key=lambda one: one[0])[1]

    def solve(self) -> RateProfile | None:
        """Return the transition with the least excess that was found; None if there is none from 0 to 1."""
        o, y, best = OPTIONS, self._guess(), None
        rates = self._rates(y)
        used, excess = self._excess(rates)
        e = excess + max(o.margin * excess, o.min_margin)
        slack = self._slacks(e, rates, used)
        multipliers = 1.0 / slack
        multipliers /= multipliers[:2 * used.size + len(used)].sum()
        centering, barrier = o.centering[-1], o.min_barrier
        for round_, steps in enumerate(o.steps):
            if round_:
                missed = self._missed(y, excess)
                if not len(missed):
                    break
                multipliers[self._add(missed)] = barrier / o.min_margin
                rates = self._rates(y)
                used, excess = self._excess(rates)
                e = max(e, excess + o.later_margin * max(o.margin * excess, o.min_margin))
                slack = self._slacks(e, rates, used)
            best = (self._cost(rates[0], used, excess), y) if self._is_possible(rates[0]) else None
            history = [best[0] if best else np.inf]
            for _ in range(steps):
                barrier = max(centering * float(slack @ multipliers) / len(slack), o.min_barrier)
                step = self._step(rates, used, slack, multipliers, barrier)
                if step is None:
                    break
                length = step.length
                while True:
                    rates = self._rates(y + length * step.y)
                    used, found = self._excess(rates)
                    if found < max(e + length * step.e, excess) or length < o.min_step:
                        break
                    length *= o.step_cut
                y, e, excess = y + length * step.y, e + length * step.e, found
                multipliers = multipliers + step.dual_length * step.multipliers
                if e <= excess + o.min_slack:
                    e = excess + o.later_margin * max(o.margin * excess, o.min_margin)
                slack = self._slacks(e, rates, used)
                shortest = min(length, step.dual_length)
                centering = o.centering[sum(shortest < long for long in o.long_steps)]
                cost = self._cost(rates[0], used, excess)
                if self._is_possible(rates[0]) and (best is None or cost < best[0]):
                    best = cost, y
                history.append(best[0] if best else np.inf)
                if len(history) > o.patience and history[-1 - o.patience] - history[-1] < o.good_enough:
                    break
            if best is not None:
                y = best[1]
                rates = self._rates(y)
                used, excess = self._excess(rates)
        return None if best is None else self._profile(best[1])

    def _missed(self, y: np.ndarray, excess: float) -> np.ndarray:
        """Return the breaks of the law (breaks,) at which a utilization is beyond the excess at the samples."""
        edges, o = self._edges, OPTIONS
        if not len(edges):
            return edges
        at, before = np.repeat(edges, 2), np.tile([True, False], len(edges))
        k, k1, k2 = self._rates_at((at - self._sigma) / self._length)(y)
        used = _utilization(self._table.coefficients(at, before), k, k1, k2)
        beyond = (np.abs(used) - self._bound[:-1]).max(axis=1).reshape(-1, 2).max(axis=1)
        spare = len(self._share) - self._next
        worst = np.argsort(-beyond)[:spare // 4 + 1 if spare > 1 else 0]
        return edges[worst[beyond[worst] > excess + o.missed_tol]]

    def _add(self, times: np.ndarray) -> np.ndarray:
        """Sample both sides of breaks of the law; return the numbers of their rows in the list of slacks."""
        at, before = np.repeat(times, 2), np.tile([True, False], len(times))
        slots = np.arange(self._next, self._next + len(at))
        self._next += len(at)
        self._share[slots] = (at - self._sigma) / self._length
        added = self._rates_at(self._share[slots])
        for order in range(3):
            self._rates.constant[order][slots] = added.constant[order]
            self._rates.matrix[order][slots] = added.matrix[order]
        self._matrices[slots] = np.stack(added.matrix, axis=1)
        self._coefficients[slots] = self._table.coefficients(at, before)
        self._speed[slots] = self._table.velocity(at)
        size = self._coefficients.shape[2]
        rows = (slots[:, None] * size + np.arange(size)).ravel()
        return np.concatenate((rows, rows + len(self._share) * size))

    def _is_possible(self, k: np.ndarray) -> bool:
        """Return whether the rates (samples,) are within their bounds."""
        k, last, largest = k[:self._last + 1], k[self._last], self._largest[:self._last + 1]
        return bool(k.min() > self._least and (k < largest).all() and (self._ends_at_rest or last <= self._most))

    def _slacks(self, e: float, rates: list[np.ndarray], used: np.ndarray) -> np.ndarray:
        """Return the slacks of all bounds: utilizations up and down, velocity, e, then those of the rate."""
        bound, k, regular = self._bound[:-1] + e, rates[0], rates[0][:self._last + 1]
        end = [] if self._ends_at_rest else [self._most - k[self._last]]
        slacks = ((bound - used).ravel(), (bound + used).ravel(), self._bound[-1] + e - k * self._speed, [e],
                  self._largest[1:len(regular)] - regular[1:], regular - self._least, end)
        return np.maximum(np.concatenate(slacks), OPTIONS.min_slack)

    def _step(self, rates: list[np.ndarray], used: np.ndarray, slack: np.ndarray, multipliers: np.ndarray,
              barrier: float) -> _Step | None:
        """Return a Newton step of the optimality conditions with the barrier; None if it is not finite."""
        o, matrix = OPTIONS, self._rates.matrix[0]
        n, rows, values = matrix.shape[1], used.size, used.ravel()
        J, regular = self._jacobian(*rates).reshape(rows, n), matrix[:self._last + 1]
        # slopes of the slacks behind those of utilizations
        fast = self._speed[:, None] * matrix
        others = np.vstack((-fast, np.zeros((1, n)), -regular[1:], regular,
                            *(() if self._ends_at_rest else (-regular[-1:],))))
        by_e = np.zeros(len(slack))  # slopes of all slacks by e
        by_e[:2 * rows + len(matrix) + 1] = 1.0
        curvature, pull = multipliers / slack, barrier / slack
        up, down, other = np.split(curvature, (rows, 2 * rows))
        pull_up, pull_down, other_pull = np.split(pull, (rows, 2 * rows))
        beyond = np.maximum(np.abs(values) - o.level, 0.0)
        mean = o.mean_weight * self._weight / np.maximum(beyond, o.smoothing)
        gradient, hessian = np.empty(n + 1), np.empty((n + 1, n + 1))
        gradient[:n] = J.T @ (pull_up - pull_down + mean * beyond * np.sign(values)) - others.T @ other_pull
        faster = np.maximum(rates[0] * self._speed - o.level, 0.0)
        mean_faster = o.mean_weight * self._mean / np.maximum(faster, o.smoothing)
        gradient[:n] += fast.T @ (mean_faster * faster) - o.speed_weight / self._most * regular[-1]
        gradient[n] = 1.0 - by_e @ pull
        hessian[:n, :n] = J.T @ ((up + down + mean * (beyond > 0.0))[:, None] * J) + others.T @ (other[:, None] * others)
        hessian[:n, :n] += fast.T @ ((mean_faster * (faster > 0.0))[:, None] * fast)
        hessian[:n, n] = hessian[n, :n] = J.T @ (down - up) + others.T @ (other * by_e[2 * rows:])
        hessian[n, n] = by_e @ curvature
        hessian.flat[::n + 2] += o.regularization
        try:
            step = -np.linalg.solve(hessian, gradient)
        except np.linalg.LinAlgError:
            return None
        if not np.isfinite(step).all():
            return None
        change = J @ step[:n]
        slope = np.concatenate((-change, change, others @ step[:n])) + by_e * step[n]
        dual = pull - curvature * slope - multipliers
        length = min(_longest(slack, slope), o.max_change / max(float(np.abs(matrix @ step[:n]).max()), o.max_change))
        return _Step(step[:n], float(step[n]), dual, length, _longest(multipliers, dual))

    def _profile(self, y: np.ndarray) -> RateProfile:
        """Return the transition, in intervals between breaks of the law, knots and their middles; times by Simpson's rule."""
        knots = self._sigma + self._length * _spline(OPTIONS.n_knots, OPTIONS.knot_power)[0]
        inside = np.union1d(self._edges, np.concatenate((knots[1:-1], 0.5 * (knots[1:] + knots[:-1]))))
        inside = inside[np.diff(inside, append=np.inf) > SAME_TIME_S]
        sigma = np.concatenate((knots[:1], inside, knots[-1:]))
        share = (sigma - self._sigma) / self._length
        middle = self._rates_at(0.5 * (share[1:] + share[:-1]))(y)[0]
        k, slope, _ = self._rates_at(share)(y)
        length = np.diff(sigma) * (1.0 / k[:-1] + 4.0 / middle + 1.0 / k[1:]) / 6.0
        kappa = slope * k
        kappa[-1] = 0.0  # but for rounding
        return RateProfile(sigma, k, kappa, length)


def _longest(values: np.ndarray, step: np.ndarray) -> float:
    """Return the share of a step, up to 1, that leaves positive values positive."""
    nearest = float((-step / values).max())
    return min(1.0, OPTIONS.to_boundary / nearest) if nearest > 0.0 else 1.0
