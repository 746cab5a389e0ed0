"""Fastest time law on a known path, inside limits of torque, torque rate, velocity, acceleration and jerk.

An initial law S(sigma) that is feasible, for instance a slow quintic from rest to rest, is played at a rate that varies,
s(t) = S(sigma(t)). The unknown is the square of that rate,

    y(sigma) = k^2,   k = d sigma / dt,   kappa = dk/dt = y'/2,   w = d kappa/dt = k y''/2          (' = d / d sigma)

and every constraint (constraints.py) is a sum of (1, sqrt y, y, y'/2, y sqrt y, sqrt y y'/2, sqrt y y''/2) with known
coefficients. Torque and acceleration are linear in y without friction, torque rate is sqrt y times linear, and the time, the
integral of 1 / sqrt y, is convex. Since an initial law that ends at rest contains the t^3 of a jerk-limited start, y is smooth
and positive up to both ends, where sd^2 over s would have a branch point.

y is a cubic spline, so w is continuous, and so is the torque rate. An interior-point method (interior_point.py) starts from a
constant y, which is feasible where it is small enough, and every iterate is feasible at the points of its grid. The law found
on coarse grids becomes the initial law of the last one: y is then about 1 everywhere, and the grid uniform in the time of the
motion, fine where it is fast. Between the points a limit may still be exceeded a little. Hence the spline is evaluated
half-way between them, the worst instants are added to the grid, and the problem is solved once more. The law found is checked
between samples too (limit_check.py), with another round where it exceeds limits; last, the whole law is slowed by a factor
(speed_factor.py). The result has passed that check, at its own speed and, if requested, at every constant fraction of it: a
motion that falls by gravity takes no braking power, but at half its speed it takes some.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..errors import RneaError
from .constraints import ConstraintGroup, Constraints, at_rate, limit_shares
from .interior_point import (
    LOBATTO_POINTS,
    LOCAL_RADIUS,
    N_LOCAL,
    N_OWN,
    CubicSpline,
    InteriorPointSolver,
    SplineIterate,
    local_lengths,
)
from .limit_check import LimitCheck, check_acceleration_bounded, check_limits, check_rest, largest_rate, steady_rate
from .time_law import TimeLaw, divide_intervals, hermite_law, rest_to_rest

Progress = Callable[[str, float], None]
Curve = Callable[[np.ndarray], np.ndarray]

LEVEL = 0.998  # share of the limits that a law aims at
CHECKED_LEVEL = 0.999  # share that it may use between the points: the rest is room to vary its speed, see time_scaling.py
PEAK_TOL = 3e-5  # of the limits, by which a peak may exceed the samples of a check around it
RESOLUTION_S = 0.04  # motion per interval of the last grid, at most
MAX_FINE_INTERVALS = 10_000  # of the last grid
FIRST_RATE = 3.0  # of the first guess, over a constant rate inside the limits: it is slowed where it exceeds them
COARSE_INTERVALS = 48  # of the first grid, or more:
COARSE_INTERVALS_PER_PIECE = 2  # of the path
MAX_COARSE_INTERVALS = 1536  # of a grid on the given initial law
COARSE_RATIO = 4.0  # by which the intervals of such a grid may be longer
# mu times the number of inequalities, as a share of the time: at the start and the end of the first solution, of later ones
START_GAP, COARSE_GAP, RESTART_GAP, FINAL_GAP, FINAL_GAP_ON_SCHEDULE = 0.3, 0.1, 0.1, 2e-3, 3e-4
MAX_TIGHTENING_ROUNDS = 4
NEAR_LEVEL = 5e-4  # of the limits, below the level of the check: the next law is constrained where this one is so near
NEAR_LEVEL_OF_BULGE, MIN_BULGE = 0.01, 1e-3  # the same where it uses by so much more than at the points around
TIGHT_ENOUGH = 0.9995  # of the share: a law that is slowed by so little is not solved for again
MIN_LOCAL_RATE = 0.997  # of a law that is slowed only where it exceeds limits
LENGTH_ROUNDING = 1e-9  # of a factor by which it is slowed
LOCAL_SLOWING = 1.5  # times as much as the whole law would be: most of it is reached in the middle only
TRIED_RATES = (1.0, 0.9995, 0.999, 0.998, 0.995, 0.98, 0.95, 0.9)  # of a law that may exceed limits where played slower
WITHDRAWAL_SHARES = (1.0, 0.99, 0.95, 0.8, 0.5, 0.2, 0.0)  # between the initial law and the one found
INITIAL_LEVEL = 0.99  # share of the limits on the grid that an initial law may use
MIN_Y_SHARE = 1e-9  # of the largest y
STANDING_SPEED_SHARE = 1e-3  # of the largest speed
MAX_LOCAL_BLENDS = 6  # in each of which a guess is slowed where it exceeds limits:
BLEND_LEVEL, MIN_BLEND = 0.98, 0.3  # to this share of a limit, but not by a smaller factor
BLENDS = (0.95, 0.9, 0.8, 0.6, 0.4, 0.2, 0.0)  # between a slow start and a guess
MAX_BLEND_ATTEMPTS = 40
MAX_RATE = 1e3  # of the slow start's rate, where nothing binds
BETWEEN_POINTS = 0.5 * (LOBATTO_POINTS[1:] + LOBATTO_POINTS[:-1])
PIECE_STARTS = np.array([0.0, 0.5])  # shares of each interval at which a piece of the law begins
MAX_PIECE_HALVINGS = 12
NEAR_KNOT_SHARE = 0.02  # of an interval, within which two knots are one
GAUSS_POINTS, GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(5)


class NoLaw(RneaError):
    """Error: no time law was found, as may happen to one that must start in motion, or the request was cancelled."""


@dataclass(frozen=True)
class Objectives:
    """Objectives of a law beside the limits; see `fastest_law`.

    level, checked_level : shares of the limits on the grid, and between its points. A law that starts in motion cannot be
                           slowed afterwards, and one that also ends in motion is continued by another one
    """

    moving: bool = False
    ceiling: Curve | None = None
    due: Curve | None = None
    progress: Progress | None = None
    joined: bool = False

    @property
    def level(self) -> float:
        return 0.975 if self.joined else 0.996 if self.moving else LEVEL

    @property
    def checked_level(self) -> float:
        return 0.985 if self.joined else CHECKED_LEVEL if self.moving else CHECKED_LEVEL - PEAK_TOL


def fastest_law(constraints: Constraints, initial: TimeLaw | None = None, moving: bool = False, ceiling: Curve | None = None,
                due: Curve | None = None, planned: TimeLaw | None = None, resolution: float = RESOLUTION_S,
                progress: Progress | None = None, slower_too: bool = True, joined: bool = False) -> TimeLaw:
    """Return the fastest law from rest to rest over the whole path, or over that of `initial`, a law that ends at rest.

    initial    : law to begin with; default quintic over the path; cubic if nothing bounds sddd
    moving     : the law starts with sd and sdd of the initial one, which must be inside the limits
    ceiling    : s -> the largest sd there
    due        : s -> the earliest time there: the law is never ahead of that, and as little behind as possible
    planned    : with due: a law that is never ahead; another one to begin with, the better one counts
    resolution : motion per interval of the last grid [s]
    progress   : called with a description and the duration so far; may raise NoLaw to cancel
    slower_too : whether every slower playing of the law must be inside the limits, as one needs that is to be paused
    joined     : with moving: it ends with sd and sdd of the initial one, which does not come to rest
    Raises InputError where gravity alone exceeds a limit or nothing bounds acceleration, NoLaw.
    """
    if initial is None:
        check_rest(constraints, LEVEL)
        initial = rest_to_rest(0.0, constraints.path.length, 1.0, 3 if constraints.third_order else 2)
    check_acceleration_bounded(constraints, initial.start, initial.end)
    objectives = Objectives(moving, ceiling, due, progress, joined)
    gap, knots = FINAL_GAP if due is None else FINAL_GAP_ON_SCHEDULE, initial.corners
    if not moving:
        starts = (initial,) if planned is None else (initial, planned)
        coarse = [_solve_coarsely(constraints, start, resolution, objectives, planned) for start in starts]
        initial, knots = min(coarse, key=lambda found: found[0].duration)
    if due is not None and not moving:  # the shape of a schedule, unlike that of limits, may be far from the initial one's
        grid = _grid_on(constraints, initial, _subdivided(knots, COARSE_RATIO * resolution), objectives)
        initial, knots = grid.law(grid.solve(np.ones(grid.intervals + 3), START_GAP, gap))
    grid = _grid_on(constraints, initial, _subdivided(knots, (2.0 if moving else 1.0) * resolution), objectives)
    is_warm = not moving and due is None
    c = grid.solve(np.ones(grid.intervals + 3), RESTART_GAP if is_warm else START_GAP, gap, is_warm)
    return _tighten(constraints, grid, c, gap, slower_too)


def _tighten(constraints: Constraints, grid: Grid, c: np.ndarray, gap: float, slower_too: bool) -> TimeLaw:
    """Return the best law of some rounds, each with constraints also at the points where the one before exceeded them."""
    moving, most, best = grid.objectives.moving, grid.objectives.checked_level, None
    if grid.tighten_between_points(c):  # most of what the first law would exceed, for a fraction of a check
        c = grid.solve(c, RESTART_GAP, gap, warm=True)
    for number in range(MAX_TIGHTENING_ROUNDS + 1):
        law, knots = grid.law(c)
        check = check_limits(constraints, law, most)
        first = np.searchsorted(check.start, knots[:-1])  # checked interval in each interval of the grid
        slow = slow_to_limits(constraints, law, slower_too, check, most)
        if (not moving or slow is law) and (best is None or slow.duration < best.duration):
            best = slow
        if check.used.max() <= (most if moving else most / TIGHT_ENOUGH) or number == MAX_TIGHTENING_ROUNDS:
            break
        if not moving and law.duration > MIN_LOCAL_RATE * slow.duration:
            slowed = _slowed_locally(constraints, grid, c, slower_too, check, knots, first, law.duration / slow.duration)
            best = min(best, slowed, key=lambda one: one.duration)
            if slowed.duration <= law.duration / TIGHT_ENOUGH:
                break
        grid.tighten(check, first)
        c = grid.solve(c, RESTART_GAP, gap, warm=True)
    return _withdraw(constraints, grid, c) if best is None else best


def _slowed_locally(constraints: Constraints, grid: Grid, c: np.ndarray, slower_too: bool, check: LimitCheck,
                    knots: np.ndarray, first: np.ndarray, rate: float) -> TimeLaw:
    """Return the law of `Grid.slow_locally` inside the limits, checked only where it differs from that of c.

    check, knots, first : limit check of the law of c, its times at the knots of the grid, and as for `Grid.tighten`
    """
    most, slower = grid.objectives.checked_level, grid.slow_locally(c, check, first, rate)
    law, times = grid.law(slower)
    is_changed = np.asarray(sliding_window_view(slower != c, N_LOCAL).any(axis=1))
    if not is_changed.any():
        return slow_to_limits(constraints, law, slower_too, check, most)
    again = check_limits(constraints, law, most, parts=(times[:-1][is_changed], times[1:][is_changed]))
    number = np.searchsorted(knots, check.instant, side="right") - 1
    is_kept = ~is_changed[np.clip(number, 0, len(is_changed) - 1)]
    polynomials, constraint = (np.concatenate((old[is_kept], new)) for old, new in zip(check[1:3], again[1:3]))
    return slow_to_limits(constraints, law, slower_too, again._replace(polynomials=polynomials, constraint=constraint), most)


def _withdraw(constraints: Constraints, grid: Grid, c: np.ndarray) -> TimeLaw:
    """Return a law between the initial one and the one found that passes the check: one in motion cannot be slowed."""
    for share in WITHDRAWAL_SHARES:
        law, _ = grid.law(share * c + (1.0 - share))
        if steady_rate(constraints, law, grid.objectives.checked_level) >= 1.0:
            return law
    raise NoLaw("the initial law in motion is not inside the limits")


def _solve_coarsely(constraints: Constraints, initial: TimeLaw, resolution: float, objectives: Objectives,
                    planned: TimeLaw | None = None) -> tuple[TimeLaw, np.ndarray]:
    """Return an approximate law, and its knots: by grids on the initial one, each twice as fine as the one before."""
    intervals, pieces = COARSE_INTERVALS, constraints.path.breaks.searchsorted([initial.start, initial.end])
    while intervals < min(COARSE_INTERVALS_PER_PIECE * (pieces[1] - pieces[0]), MAX_COARSE_INTERVALS):
        intervals *= 2
    spline = CubicSpline(np.linspace(0.0, initial.duration, intervals + 1))
    slow = _slow_start(constraints, initial, objectives)
    c = np.full(intervals + 3, (slow if planned is not None else FIRST_RATE * slow) ** 2)
    if planned is not None:  # a law that is nowhere faster than a schedule is never ahead of it
        below = replace(objectives, due=None, ceiling=lambda s: planned(planned.time_at(s))[1])
        grid = Grid(constraints, initial, spline, slow, below)
        c = grid.solve(c, START_GAP, COARSE_GAP)
    grid = Grid(constraints, initial, spline, slow, objectives)
    c = grid.solve(c, START_GAP, COARSE_GAP)
    while spline.intervals == intervals or spline.intervals < min(
            MAX_COARSE_INTERVALS, grid.time(c) / (COARSE_RATIO * resolution)):
        spline, c = spline.refined(c)
        grid = Grid(constraints, initial, spline, slow, objectives)
        c = grid.solve(c, RESTART_GAP, COARSE_GAP, warm=True)
    return grid.law(c)


def _grid_on(constraints: Constraints, initial: TimeLaw, knots: np.ndarray, objectives: Objectives) -> Grid:
    return Grid(constraints, initial, CubicSpline(knots), _slow_start(constraints, initial, objectives), objectives)


def _slow_start(constraints: Constraints, initial: TimeLaw, objectives: Objectives) -> float:
    """Return a constant rate of the initial law inside the limits."""
    return 1.0 if objectives.moving else 0.95 * _coarse_steady_rate(constraints, initial, LEVEL)


def _coarse_steady_rate(constraints: Constraints, law: TimeLaw, share: float, most: float = 1e4) -> float:
    """Return the largest constant rate of a law inside a share of the limits, by few samples."""
    motion = law(np.linspace(0.0, law.duration, 2 * COARSE_INTERVALS + 1))
    polynomials = constraints.rate_polynomials(motion)
    return largest_rate(polynomials.reshape(-1, 4), share, np.tile(constraints.offset, len(polynomials)), most)


def slow_to_limits(constraints: Constraints, law: TimeLaw, slower_too: bool = True, check: LimitCheck | None = None,
                   share: float = CHECKED_LEVEL) -> TimeLaw:
    """Return the law at the largest constant rate up to 1 at which it, and every slower one, is inside a share of the limits.

    slower_too : if not, the law at one of TRIED_RATES, if it is inside at that one and this is faster
    check      : limit check of the law, if there is one
    """
    check = check or check_limits(constraints, law, share)
    polynomials, offset = check.polynomials, constraints.offset[check.constraint]
    factor = largest_rate(polynomials, share, offset)
    if not slower_too:
        for rate in (rate for rate in TRIED_RATES if rate > factor):
            if limit_shares(at_rate(polynomials.T, rate), offset).max(initial=0.0) <= share:
                return law.slower(rate)
    return law if factor >= 1.0 else law.slower(factor * (1.0 - 1e-12))


def _subdivided(knots: np.ndarray, longest: float) -> np.ndarray:
    """Return knots with each interval divided into equal parts no longer than `longest`, near-duplicate knots removed."""
    longest = max(longest, float(knots[-1] - knots[0]) / MAX_FINE_INTERVALS)
    first, inner, last = np.split(knots, (1, len(knots) - 1))
    is_apart = np.minimum(np.diff(knots[:-1]), last - inner) > NEAR_KNOT_SHARE * longest
    knots = np.concatenate((first, inner[is_apart], last))
    start, _, _ = divide_intervals(knots[:-1], knots[1:], np.ceil(np.diff(knots) / longest).astype(int))
    return np.append(start, knots[-1])


class Grid(InteriorPointSolver):
    """Grid on an initial law: the constraints of a path at its points, and the law that a solution stands for."""

    def __init__(self, constraints: Constraints, initial: TimeLaw, spline: CubicSpline, slow: float, objectives: Objectives):
        """Make a grid. slow: constant rate of the initial law inside the limits."""
        self.constraints, self.initial, self.slow, self.objectives = constraints, initial, slow, objectives
        knots, steps = spline.knots, spline.steps
        self._nodes = _union(np.append((knots[:-1, None] + steps[:, None] * PIECE_STARTS).ravel(), knots[-1]), initial.corners)
        sigma = np.append((knots[:-1, None] + steps[:, None] * LOBATTO_POINTS[:N_OWN]).ravel(), initial.duration)
        due = None if objectives.due is None else objectives.due(initial(knots[1:])[0])
        super().__init__(spline, (objectives.moving, objectives.joined), due)
        ends = np.cumsum(constraints.sizes)
        self._numbers = [slice(begin, end) for begin, end in zip((0, *ends), ends)]  # constraints of each group
        self._sigma, self._interval_of = sigma, np.append(np.repeat(np.arange(len(steps)), N_OWN), len(steps) - 1)
        self._max_speed = float(initial(sigma)[1].max())
        self._groups = self._groups_at(sigma)
        self._set_constraints()

    def _groups_at(self, sigma: np.ndarray) -> list[ConstraintGroup]:
        """Return one or two bounds on the rate alone, and the groups of the constraints."""
        s, v, a, u = self.initial(sigma)
        bounds = [ConstraintGroup((1,), np.full((len(s), 1, 1), 1.0 / (MAX_RATE * self.slow)))]
        if self.objectives.ceiling is not None:
            standing = STANDING_SPEED_SHARE * self._max_speed  # at the ends both speeds vanish
            bound = np.maximum(v, standing) / np.maximum(self.objectives.ceiling(s), standing)
            bound = np.minimum(bound, INITIAL_LEVEL) if self.objectives.moving else bound
            bounds.append(ConstraintGroup((1,), bound[:, None, None]))
        return bounds + self.constraints.groups_on_law(s, v, a, u, self.objectives.level)

    def _set_constraints(self) -> None:
        own = N_OWN * self.intervals + 1
        self.constrain(_merge_rate_bounds(self._groups), self._sigma[own:])

    def report(self, c: np.ndarray) -> None:
        if self.objectives.progress is not None:
            self.objectives.progress(f"grid of {self.intervals} intervals", self.time(c))

    def feasible_near(self, guess: SplineIterate) -> SplineIterate:
        """Return an iterate that is slower than a guess where that exceeds limits; else one between it and a slow start."""
        iterate = guess
        for _ in range(0 if self.objectives.moving else MAX_LOCAL_BLENDS):
            if (iterate.largest < BLEND_LEVEL).all():  # what it violates is no limit
                break
            lengths = np.clip(BLEND_LEVEL / np.fmax(iterate.largest, BLEND_LEVEL), MIN_BLEND, 1.0)
            lengths[np.isnan(iterate.largest)] = MIN_BLEND
            lengths = local_lengths(self.least_at_points(lengths), min(LOCAL_RADIUS, self.intervals // 8))
            iterate = self._evaluate(iterate.c * lengths)
            if self.is_interior(iterate):
                return iterate
        for _ in range(MAX_BLEND_ATTEMPTS):
            for share in BLENDS:
                iterate = self._evaluate(share * guess.c + (1.0 - share) * self.slow**2)
                if iterate.is_feasible:
                    return iterate
            if self.objectives.moving:
                break
            self.slow *= 0.7  # a finer grid has more constraints; slow enough is always feasible
        raise NoLaw("no law inside the limits was found to start from")

    def law(self, c: np.ndarray) -> tuple[TimeLaw, np.ndarray]:
        """Return s(t) of the initial law at this rate, and the times of the knots.

        A piece on which s would decrease, as may happen near rest, is halved: the exact motion is monotone.
        """
        for _ in range(MAX_PIECE_HALVINGS):
            law = self._interpolate(c)
            if not len(pieces := law.non_monotone_pieces()):
                return law, law.breaks[np.isin(self._nodes, self.spline.knots)]
            self._nodes = np.sort(np.append(self._nodes, 0.5 * (self._nodes[pieces] + self._nodes[pieces + 1])))
        raise NoLaw("the law found would move back on the path near rest")

    def _interpolate(self, c: np.ndarray) -> TimeLaw:
        """Return the law through the motion at the nodes."""
        sigma = self._nodes
        between = sigma[:-1, None] + np.diff(sigma)[:, None] * 0.5 * (GAUSS_POINTS + 1.0)
        least = MIN_Y_SHARE * c.max()  # y is positive at the points of the grid, not everywhere
        k = np.sqrt(np.maximum(self.spline.values(c, between.ravel()), least)).reshape(between.shape)
        t = np.concatenate(([0.0], np.cumsum(0.5 * np.diff(sigma) * (GAUSS_WEIGHTS / k).sum(axis=1))))
        y, y1, _ = self.spline.derivatives(c, sigma).T
        s, v, a, _ = self.initial(sigma)
        speed, acceleration = np.maximum(v, 0.0) * np.sqrt(np.maximum(y, least)), a * y + 0.5 * v * y1
        if not self.objectives.moving:
            speed[0] = 0.0
        if not self.objectives.joined:
            speed[-1] = 0.0
        corners = np.isin(sigma, self.spline.knots) | np.isin(sigma, self.initial.corners)
        return hermite_law(t, s, speed, acceleration, t[corners])

    def slow_locally(self, c: np.ndarray, check: LimitCheck, first: np.ndarray, rate: float) -> np.ndarray:
        """Return coefficients that are slower than c where its law uses too much: `rate` would be slow enough everywhere.

        The margin between the level of the grid and that of the check leaves room for the transitions. first: see `tighten`.
        """
        used = np.maximum.reduceat(check.used.max(axis=1), first)
        share = 1.0 - LOCAL_SLOWING * (1.0 - rate * rate)
        lengths = local_lengths(np.where(self.least_of_intervals(-used) < -self.objectives.checked_level, share, 1.0),
                                min(LOCAL_RADIUS, self.intervals // 16))
        return np.where(lengths > 1.0 - LENGTH_ROUNDING, c, c * lengths)

    def tighten(self, check: LimitCheck, first: np.ndarray) -> None:
        """Tighten the constraints where a law uses more than `checked_level` of the limits between the points.

        The limits of such an interval and of its neighbours are tightened by the excess. Points are added at the worst instant
        of each of these intervals, and of those that come near to that level, which the next law would exceed.

        first : number of the first checked interval in each interval of the grid
        """
        used, ends = check.used.max(axis=1), np.append(first[1:], len(check.used))
        near = np.flatnonzero(np.maximum.reduceat(used, first) > self.objectives.checked_level - NEAR_LEVEL)
        worst = np.array([a + int(used[a:b].argmax()) for a, b in zip(first[near], ends[near])])
        s, begin, end = check.worst_s[worst], self.spline.knots[near], self.spline.knots[near + 1]
        sigma = np.where(np.isfinite(s), np.clip(self.initial.time_at(np.nan_to_num(s)), begin, end), 0.5 * (begin + end))
        self._tighten_limits(np.maximum.reduceat(check.used, first, axis=0))
        self._add_points(sigma, near)

    def tighten_between_points(self, c: np.ndarray) -> bool:
        """Tighten as `tighten` does where the spline exceeds `checked_level` half-way between the points of the grid.

        Return whether it does so anywhere.
        """
        sigma = (self.spline.knots[:-1, None] + self.spline.steps[:, None] * BETWEEN_POINTS).ravel()
        s, v, a, u = self.initial(sigma)
        y, y1, y2 = self.spline.derivatives(c, sigma).T
        k = np.sqrt(np.maximum(y, MIN_Y_SHARE * c.max()))
        motion = np.stack((s, v * k, a * y + 0.5 * v * y1, k * (u * y + 1.5 * a * y1 + 0.5 * v * y2)))  # by `substitute_law`
        used = self.constraints.utilization(motion)
        largest = used.max(axis=1).reshape(-1, len(BETWEEN_POINTS))
        most, worst = largest.max(axis=1), largest.argmax(axis=1)
        if most.max() <= self.objectives.checked_level:
            return False
        at_points = self.objectives.level * self._evaluate(c).largest[:N_OWN * self.intervals + 1]
        bulge = (largest - np.maximum(at_points[:-1], at_points[1:]).reshape(largest.shape)).max(axis=1)
        room = np.where(bulge > MIN_BULGE, NEAR_LEVEL_OF_BULGE, NEAR_LEVEL)
        near = np.flatnonzero(most > self.objectives.checked_level - room)
        self._tighten_limits(used.reshape(*largest.shape, -1).max(axis=1))
        self._add_points(sigma.reshape(largest.shape)[near, worst[near]], near)
        return True

    def _add_points(self, sigma: np.ndarray, interval: np.ndarray) -> None:
        """Constrain the motion at further sigma (points,) in these intervals (points,) too."""
        self._sigma, self._interval_of = np.append(self._sigma, sigma), np.append(self._interval_of, interval)
        self._groups = [ConstraintGroup(old.columns, np.concatenate((old.values, new.values)))
                        for old, new in zip(self._groups, self._groups_at(sigma))]
        self._set_constraints()

    def _tighten_limits(self, used: np.ndarray) -> None:
        """Tighten the limits that are exceeded in an interval, and in its neighbours too; used (intervals, constraints)."""
        excess = np.where(used > self.objectives.checked_level, used / self.objectives.level, 1.0)
        around = excess.copy()
        around[1:] = np.maximum(around[1:], excess[:-1])
        around[:-1] = np.maximum(around[:-1], excess[1:])
        points = np.flatnonzero(np.any(around > 1.0, axis=1, keepdims=True)[self._interval_of, 0])
        around, first = around[self._interval_of[points]], len(self._groups) - len(self._numbers)
        begin = float(self.objectives.moving)  # rate of the law to start from, which must remain inside
        at_start = np.array([1.0, begin, begin, 0.0, begin, 0.0, 0.0])
        for number, constraints in enumerate(self._numbers, first):
            columns, values = self._groups[number]
            offset = self.constraints.offset[constraints]
            still = limit_shares(at_start[list(columns)] @ values[points], offset)
            tighter = np.minimum(around[:, constraints], np.maximum(INITIAL_LEVEL / np.maximum(still, 1e-9), 1.0))
            values[points] = ConstraintGroup(columns, values[points]).widened(1.0 / tighter, offset).values


def _merge_rate_bounds(groups: Sequence[ConstraintGroup]) -> list[ConstraintGroup]:
    """Merge all bounds on the rate alone into the lowest one."""
    of_rate = [np.abs(group.values).max(axis=2, keepdims=True) for group in groups if group.columns == (1,)]
    return [ConstraintGroup((1,), np.maximum.reduce(of_rate)), *(group for group in groups if group.columns != (1,))]


def _union(sigma: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Return both, sorted, without those of `more` that are near one of the first."""
    k = np.clip(np.searchsorted(sigma, more), 1, len(sigma) - 1)
    near = np.minimum(np.abs(sigma[k] - more), np.abs(more - sigma[k - 1])) < NEAR_KNOT_SHARE * (sigma[k] - sigma[k - 1])
    return np.sort(np.concatenate((sigma, more[~near])))
