"""The fastest time law on a known path, inside limits of torque, torque rate, velocity, acceleration and jerk.

An initial law S(sigma) that is feasible, for instance a slow quintic from rest to rest, is played at a rate that varies,
s(t) = S(sigma(t)). The unknown is the square of that rate,

    y(sigma) = k^2,   k = d sigma / dt,   kappa = dk/dt = y'/2,   w = d kappa/dt = k y''/2          (' = d / d sigma)

and every constraint (terms.py) is a sum of (1, sqrt y, y, y'/2, y sqrt y, sqrt y y'/2, sqrt y y''/2) with known coefficients.
Torque and acceleration are linear in y without friction, torque rate is sqrt y times linear, and the time, the integral of
1 / sqrt y, is convex. Since an initial law that ends at rest has the t^3 of a jerk-limited start in it, y is smooth and
positive up to both ends, where sd^2 over s would have a branch point.

y is a cubic spline, so w is continuous, and so is the torque rate. An interior point method (barrier.py) starts from a
constant y, which is feasible where it is small enough, and every iterate is feasible at the points of its grid. The law found
on coarse grids becomes the initial law of the last one: y is then about 1 everywhere, and the grid uniform in the time of the
motion, fine where it is fast. Between the points a limit may still be exceeded a little. Hence the law is checked densely and
the worst places become points of the grid; last, the whole law is slowed by the factor of the closed form (closed_form.py).
What is returned has passed that check, at its own speed and at every constant fraction of it, if that is asked for: a motion
that falls as gravity lets it takes no braking power, but at half its speed it takes some.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..errors import RneaError
from . import law as laws
from .barrier import EACH, POINTS, Barrier
from .closed_form import least_met
from .dense_look import DenseLook, dense_look
from .feasibility import check_bounded, check_rest
from .law import TimeLaw
from .spline import Spline
from .terms import Constraints, Group, shares

LEVEL = 0.998  # share of the limits that a profile aims at
MOVING = 0.996  # the same for one that starts in motion, which cannot be slowed afterwards
PASS = 0.999  # share that it may use between the points: the rest is room to vary its speed, see time_scaling.py
COARSE = 48  # intervals of the first grid
RESOLUTION = 0.04  # s of motion for each interval of the last grid, at most,
FINE = 10_000  # if these make no more intervals
INSIDE = 0.99  # share of the limits on the grid that a law to start from may come to use
MOST = 1536  # intervals of a grid on the given initial law
OUTLINE = 4.0  # times as coarse may that grid be
LEAST_SHARE = 1e-9  # of the largest y
STANDING = 1e-3  # of the largest speed
START, COARSE_GAP, AGAIN, GAP = 0.3, 0.1, 0.1, 2e-3  # mu times the number of inequalities, as a share of the time
GAP_ON_SCHEDULE = 3e-4
ROUNDS = 4  # of tightening
ENOUGH = 0.9995  # of what may be used: a law that is slowed by so little is not worth another round
BLENDS = (0.95, 0.9, 0.8, 0.6, 0.4, 0.2, 0.0)
RATES = (1.0, 0.9995, 0.999, 0.998, 0.995, 0.98, 0.95, 0.9)  # of a law that may break limits where it is played slower
TAKEN_BACK = (1.0, 0.99, 0.95, 0.8, 0.5, 0.2, 0.0)
ATTEMPTS = 40
FASTEST = 1e3  # times the slow start's rate: where nothing binds, no law is played faster
PARTS = np.array([0.0, 0.5])  # shares of each interval at which a piece of the law begins
HALVINGS = 12  # of such an interval, at most
CLOSE = 0.02  # share of an interval
Progress = Callable[[str, float], None]
Curve = Callable[[np.ndarray], np.ndarray]


class NoLaw(RneaError):
    """No law was found, as may happen to one that must start in motion."""


def fastest(constraints: Constraints, initial: TimeLaw | None = None, moving: bool = False, ceiling: Curve | None = None,
            due: Curve | None = None, planned: TimeLaw | None = None, resolution: float = RESOLUTION,
            progress: Progress | None = None, slower_too: bool = True) -> TimeLaw:
    """The fastest law from rest to rest over the whole path, or over the way of `initial`, a law that ends at rest.

    initial  : a law to begin with; default quintic over the path; cubic if nothing bounds sddd
    moving   : the law starts with sd and sdd of the initial one, which must be inside the limits
    ceiling  : s -> the largest sd there
    due      : s -> the earliest time there: the law is never ahead of that, and as little behind as can be
    planned  : with due: a law that is never ahead; another one to begin with, the better one counts
    progress : called with what is being done and the duration so far
    slower_too : whether every slower playing of the law must be inside the limits, as one needs that is to be paused
    Raises InputError where gravity alone exceeds a limit or nothing bounds acceleration, NoLaw.
    """
    if initial is None:
        check_rest(constraints, LEVEL)
        initial = laws.rest_to_rest(0.0, constraints.path.length, 1.0, 3 if constraints.third_order else 2)
    check_bounded(constraints, initial.start, initial.end)
    objectives = _Objectives(moving, ceiling, due, progress)
    gap, knots = GAP if due is None else GAP_ON_SCHEDULE, initial.corners
    if not moving:
        starts = (initial,) if planned is None else (initial, planned)
        outlines = [_outlined(constraints, start, resolution, objectives, planned) for start in starts]
        initial, knots = min(outlines, key=lambda outline: outline[0].duration)
    if due is not None and not moving:  # the shape of a schedule, unlike that of limits, may be far from the initial one's
        grid = _grid_on(constraints, initial, _subdivided(knots, OUTLINE * resolution), objectives)
        initial, knots = grid.law(grid.solve(grid.inside(np.ones(grid.intervals + 3)), START, gap))
    grid = _grid_on(constraints, initial, _subdivided(knots, (2.0 if moving else 1.0) * resolution), objectives)
    near = np.ones(grid.intervals + 3)
    if moving or due is not None:
        c = grid.solve(grid.inside(near), START, gap)
    else:
        c = grid.solve(grid.inside(near), AGAIN, gap, near)
    return _tightened(constraints, grid, c, gap, slower_too)


def _tightened(constraints: Constraints, grid: _Grid, c: np.ndarray, gap: float, slower_too: bool) -> TimeLaw:
    """The best law of some rounds, each with limits kept also where the one before exceeded them."""
    moving, best = grid.objectives.moving, None
    for number in range(ROUNDS + 1):
        law = grid.law(c)[0]
        look = dense_look(constraints, law, PASS)
        if not moving:
            slow = slowed(constraints, law, slower_too, look)
            best = slow if best is None or slow.duration < best.duration else best
        if look.used.max() <= (PASS if moving else PASS / ENOUGH) or number == ROUNDS:
            break
        grid.tighten(law, look)
        c = grid.solve(grid.inside(c), AGAIN, gap, c)
    return _passed(constraints, grid, c) if best is None else best


def _outlined(constraints: Constraints, initial: TimeLaw, resolution: float, objectives: _Objectives,
              planned: TimeLaw | None = None) -> tuple[TimeLaw, np.ndarray]:
    """A law that is about right, and its knots: by grids on the initial one, each twice as fine as the one before."""
    spline = Spline(np.linspace(0.0, initial.duration, COARSE + 1))
    slow = _slow_start(constraints, initial, objectives)
    c = np.full(COARSE + 3, slow * slow)
    if planned is not None:  # what is nowhere faster than a schedule is never ahead of it
        under = objectives._replace(due=None, ceiling=lambda s: planned(planned.time_at(s))[1])
        grid = _Grid(constraints, initial, spline, slow, under)
        c = grid.solve(grid.inside(c), START, COARSE_GAP)
    grid = _Grid(constraints, initial, spline, slow, objectives)
    c = grid.solve(grid.inside(c), START, COARSE_GAP)
    while spline.intervals == COARSE or spline.intervals < min(MOST, grid.time(c) / (OUTLINE * resolution)):
        spline, c = spline.halved(c)
        grid = _Grid(constraints, initial, spline, slow, objectives)
        c = grid.solve(grid.inside(c), AGAIN, COARSE_GAP, c)
    return grid.law(c)


def _grid_on(constraints: Constraints, initial: TimeLaw, knots: np.ndarray, objectives: _Objectives) -> _Grid:
    return _Grid(constraints, initial, Spline(knots), _slow_start(constraints, initial, objectives), objectives)


def _slow_start(constraints: Constraints, initial: TimeLaw, objectives: _Objectives) -> float:
    """A constant rate of the initial law to start from that is inside the limits."""
    return 1.0 if objectives.moving else 0.95 * steady(constraints, initial, LEVEL)


def slowed(constraints: Constraints, law: TimeLaw, slower_too: bool = True, look: DenseLook | None = None) -> TimeLaw:
    """The law at the largest constant factor up to 1 at which it, and every slower one, is inside PASS of the limits.

    Not slower_too: at one of RATES, if it is inside at that one and this is faster.
    look: at the law, if there was one
    """
    polynomials = (look or dense_look(constraints, law, PASS)).polynomials
    factor = largest(polynomials, PASS, constraints.offset)
    if not slower_too:
        for rate in (rate for rate in RATES if rate > factor):
            played = sum(powers * rate**k for k, powers in enumerate(polynomials))
            if shares(played, constraints.offset).max() <= PASS:
                return law.slower(rate)
    return law if factor >= 1.0 else law.slower(factor * (1.0 - 1e-12))


def _passed(constraints: Constraints, grid: _Grid, c: np.ndarray) -> TimeLaw:
    """The same for a law that starts in motion: it can only be taken back towards the one that it was made from."""
    for share in TAKEN_BACK:
        law, _ = grid.law(share * c + (1.0 - share))
        if steady_factor(constraints, law, PASS) >= 1.0:
            return law
    raise NoLaw("the law to start from is not inside the limits")


def steady_factor(constraints: Constraints, law: TimeLaw, share: float) -> float:
    """The largest constant rate up to 1 at which a law, and every slower one, keeps to a share of the limits everywhere."""
    return largest(dense_look(constraints, law, share).polynomials, share, constraints.offset)


def steady(constraints: Constraints, law: TimeLaw, share: float, most: float = 1e4) -> float:
    """The largest constant rate of a law inside a share of the limits, as seen on a coarse grid."""
    motion = law(np.linspace(0.0, law.duration, 2 * COARSE + 1))
    return largest(constraints.polynomials(motion), share, constraints.offset, most)


def largest(polynomials: np.ndarray, share: float, offset: np.ndarray, most: float = 1.0) -> float:
    """The largest constant rate up to `most` of a motion that keeps to a share of the limits, by its polynomials (4, samples,
    constraints) of terms.py: row by row those of closed_form.py."""
    scaled = polynomials / share
    scaled[0] += offset * (1.0 - 1.0 / share)
    close = np.tensordot(most ** np.arange(4.0), np.abs(scaled), axes=1) >= 1.0
    return least_met(scaled[:, close].T, most)


class _Objectives(NamedTuple):
    """What is asked of a law beside the limits: see `fastest`."""

    moving: bool = False
    ceiling: Curve | None = None
    due: Curve | None = None
    progress: Progress | None = None


class _Grid(Barrier):
    """The limits of a path along an initial law."""

    def __init__(self, constraints: Constraints, initial: TimeLaw, spline: Spline, slow: float, objectives: _Objectives):
        self.constraints, self.initial, self.slow, self.objectives = constraints, initial, slow, objectives
        self.level = MOVING if objectives.moving else LEVEL
        knots, steps = spline.knots, spline.steps
        self._nodes = _union(np.append((knots[:-1, None] + steps[:, None] * PARTS).ravel(), knots[-1]), initial.corners)
        sigma = np.append((knots[:-1, None] + steps[:, None] * POINTS[:EACH]).ravel(), initial.duration)
        super().__init__(spline, objectives.moving, None if objectives.due is None else objectives.due(initial(knots[1:])[0]))
        ends = np.cumsum(constraints.sizes)
        self._columns = [slice(begin, end) for begin, end in zip((0, *ends), ends)]
        self._sigma, self._within = sigma, np.append(np.repeat(np.arange(len(steps)), EACH), len(steps) - 1)
        self._top = float(initial(sigma)[1].max())
        self._limits = self._limits_at(sigma)
        self._constrain()

    def _limits_at(self, sigma: np.ndarray) -> list[Group]:
        """Those of the rate alone, of which there are one or two, and those of the constraints."""
        s, v, a, u = self.initial(sigma)
        bounds = [Group((1,), np.full((len(s), 1, 1), 1.0 / (FASTEST * self.slow)))]
        if self.objectives.ceiling is not None:
            standing = STANDING * self._top  # at the ends both speeds vanish
            bound = np.maximum(v, standing) / np.maximum(self.objectives.ceiling(s), standing)
            bounds.append(Group((1,), (np.minimum(bound, INSIDE) if self.objectives.moving else bound)[:, None, None]))
        return bounds + [group.widened(self.level, self.constraints.offset[columns]).on_law(v, a, u)
                         for group, columns in zip(self.constraints.groups(s), self._columns)]

    def _constrain(self) -> None:
        own = EACH * self.intervals + 1
        self.constrain(_together(self._limits), self._sigma[own:])

    def report(self, seconds: float) -> None:
        if self.objectives.progress is not None:
            self.objectives.progress(f"grid of {self.intervals} intervals", seconds)

    def inside(self, c: np.ndarray) -> np.ndarray:
        """The feasible one next to c on the way to a slow start."""
        for _ in range(ATTEMPTS):
            for share in BLENDS:
                blend = share * c + (1.0 - share) * self.slow**2
                if self.feasible(blend):
                    return blend
            if self.objectives.moving:
                break
            self.slow *= 0.7  # a finer grid sees more; slow enough is always feasible
        raise NoLaw("no law inside the limits was found to start from")

    def law(self, c: np.ndarray) -> tuple[TimeLaw, np.ndarray]:
        """s(t) of the initial law at this rate, and the times of the knots.

        A piece that would go back, as one may where the motion all but rests, is halved: what it stands for goes on.
        """
        for _ in range(HALVINGS):
            law = self._drawn(c)
            if not len(back := law.going_back()):
                return law, law.breaks[np.isin(self._nodes, self.spline.knots)]
            self._nodes = np.sort(np.append(self._nodes, 0.5 * (self._nodes[back] + self._nodes[back + 1])))
        raise NoLaw("the law found would go back on the path where it all but rests")

    def _drawn(self, c: np.ndarray) -> TimeLaw:
        """Through its motion at the nodes."""
        sigma = self._nodes
        gauss, weights = np.polynomial.legendre.leggauss(5)
        between = sigma[:-1, None] + np.diff(sigma)[:, None] * 0.5 * (gauss + 1.0)
        least = LEAST_SHARE * c.max()  # y is positive at the points of the grid, not everywhere
        k = np.sqrt(np.maximum(self.spline.values(c, between.ravel())[:, 0], least)).reshape(between.shape)
        t = np.concatenate(([0.0], np.cumsum(0.5 * np.diff(sigma) * (weights / k).sum(axis=1))))
        y, y1, _ = self.spline.values(c, sigma).T
        s, v, a, _ = self.initial(sigma)
        speed, acceleration = np.maximum(v, 0.0) * np.sqrt(np.maximum(y, least)), a * y + 0.5 * v * y1
        speed[-1] = 0.0
        if not self.objectives.moving:
            speed[0] = 0.0
        corners = np.isin(sigma, self.spline.knots) | np.isin(sigma, self.initial.corners)
        return laws.hermite(t, s, speed, acceleration, t[corners])

    def tighten(self, law: TimeLaw, look: DenseLook) -> None:
        """Where a law uses more than PASS of the limits between the points, keep them at the worst place of that interval too;
        where that is done already, tighten them there and next to it."""
        starts = np.searchsorted(look.start, law.breaks[np.isin(self._nodes, self.spline.knots[:-1])])
        most = look.used.max(axis=1)
        over = np.flatnonzero(np.maximum.reduceat(most, starts) > PASS)
        seen = np.isin(over, self._within[EACH * self.intervals + 1:])
        self._tighten_around(np.maximum.reduceat(look.used, starts, axis=0), over[seen])
        ends = np.append(starts[1:], len(most))
        worst = [a + int(most[a:b].argmax()) for a, b in zip(starts[over], ends[over])]
        sigma = np.clip(self.initial.time_at(look.at[worst]), self.spline.knots[over], self.spline.knots[over + 1])
        self._sigma, self._within = np.append(self._sigma, sigma), np.append(self._within, over)
        self._limits = [Group(old.places, np.concatenate((old.values, new.values)))
                        for old, new in zip(self._limits, self._limits_at(sigma))]
        self._constrain()

    def _tighten_around(self, used: np.ndarray, where: np.ndarray) -> None:
        """used (intervals, constraints); where: numbers of the intervals."""
        excess, own = np.ones_like(used), len(self._limits) - len(self._columns)
        excess[where] = np.where(used[where] > PASS, used[where] / self.level, 1.0)
        around = excess.copy()
        around[1:] = np.maximum(around[1:], excess[:-1])
        around[:-1] = np.maximum(around[:-1], excess[1:])
        begin = float(self.objectives.moving)  # rate of the law to start from, which must remain inside
        at_start = np.array([1.0, begin, begin, 0.0, begin, 0.0, 0.0])
        for number, columns in enumerate(self._columns, own):
            group, offset = self._limits[number], self.constraints.offset[columns]
            still = shares(at_start[list(group.places)] @ group.values, offset)
            tighter = np.minimum(around[self._within][:, columns], np.maximum(INSIDE / np.maximum(still, 1e-9), 1.0))
            self._limits[number] = group.widened(1.0 / tighter, offset)


def _together(groups: Sequence[Group]) -> list[Group]:
    """Limits of the rate alone are one: the lowest."""
    of_rate = [np.abs(group.values).max(axis=2, keepdims=True) for group in groups if group.places == (1,)]
    return [Group((1,), np.maximum.reduce(of_rate)), *(group for group in groups if group.places != (1,))]


def _union(sigma: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Both, sorted, without what would be very close to one of the first."""
    k = np.clip(np.searchsorted(sigma, more), 1, len(sigma) - 1)
    near = np.minimum(np.abs(sigma[k] - more), np.abs(more - sigma[k - 1])) < CLOSE * (sigma[k] - sigma[k - 1])
    return np.sort(np.concatenate((sigma, more[~near])))


def _subdivided(knots: np.ndarray, longest: float) -> np.ndarray:
    """With so many equal parts of each interval that none is longer, and without those next to others. FINE parts will do."""
    longest = max(longest, float(knots[-1] - knots[0]) / FINE)
    apart = np.concatenate(([True], np.diff(knots) > CLOSE * longest))
    apart[-1] = True
    knots = knots[apart]
    parts = np.ceil(np.diff(knots) / longest).astype(int)
    inner = [np.linspace(a, b, n, endpoint=False) for a, b, n in zip(knots, knots[1:], parts)]
    return np.append(np.concatenate(inner), knots[-1])
