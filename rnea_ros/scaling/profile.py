"""The fastest time law on a known path, inside limits of torque, torque rate, velocity, acceleration and jerk.

A feasible law S(sigma), for instance a slow quintic from rest to rest, serves as clock. On it the unknown is the square of the
clock's rate,

    y(sigma) = k^2,   k = d sigma / dt,   kappa = dk/dt = y'/2,   w = d kappa/dt = k y''/2          (' = d / d sigma)

and every row of terms.py weighs (1, sqrt y, y, y'/2, y sqrt y, sqrt y y'/2, sqrt y y''/2). Torque and acceleration are linear
in y without friction, torque rate is sqrt y times linear, and the time, the integral of 1 / sqrt y, is convex. Since a clock
that ends at rest has the t^3 of a jerk-limited start in it, y is smooth and positive up to both ends, where sd^2 over s would
have a branch point.

y is a cubic spline, so w is continuous, and so is the torque rate. An interior point method (barrier.py) starts from a
constant y, which is feasible where it is small enough, and every iterate is feasible at the points of its grid; grids get
finer. Between the points a limit may still be exceeded a little. Hence the law is checked densely and limits are tightened
where it was; last, the whole law is slowed by the factor that the closed form gives (closed_form.py). What is returned has
passed that check, at its own speed and at every constant fraction of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InputError, RneaError
from . import law as laws
from .barrier import POINTS, Barrier, refined, spline_at, values_on, weighed
from .closed_form import largest_factor
from .law import TimeLaw
from .terms import BASIS, Constraints, basis, on_clock, use

LEVEL = 0.998  # share of the limits that a profile aims at
MOVING = 0.996  # the same for one that starts in motion, which cannot be slowed afterwards
PASS = 0.999  # share that it may use between the points: the rest is room for a controller to vary its speed, see replay.py
COARSE = 48  # intervals of the first grid
RESOLUTION = 0.04  # s of motion for each interval of the last grid, at most
INSIDE = 0.99  # share of the limits on the grid that a law to start from may come to use
MOST = 1536  # intervals
START, COARSE_GAP, AGAIN, GAP = 0.3, 3e-2, 3e-2, 3e-3  # mu times the number of inequalities, as a share of the time
ROUNDS = 3  # of tightening
BLENDS = (0.95, 0.9, 0.8, 0.6, 0.4, 0.2, 0.0)
TAKEN_BACK = (1.0, 0.99, 0.97, 0.9, 0.8, 0.6, 0.4, 0.2, 0.1, 0.0)
FASTEST = 1e3  # times the slow start's rate: where nothing binds, a clock runs no faster
PARTS = 2  # pieces of the law for each interval
Progress = Callable[[str, float], None]
Curve = Callable[[np.ndarray], np.ndarray]


class NoLaw(RneaError):
    """A law that starts in motion could not be kept inside the limits."""


def check_rest(constraints: Constraints, level: float = 1.0, start: float = 0.0) -> None:
    """InputError if the robot cannot rest somewhere on the path from s = start on: no time law exists then."""
    length, breaks = constraints.path.length, constraints.path.breaks
    s = np.unique(np.concatenate((np.linspace(start, length, 1001), breaks[breaks > start])))
    held = np.abs(constraints(s)[:, 0])
    where, row = np.unravel_index(int(held.argmax()), held.shape)
    if held[where, row] >= level:
        joint = constraints.labels[row][0]
        limit = constraints.limits.effort[joint]
        raise InputError(f"gravity alone takes {held[where, row] * limit:.4g} of the {limit:.4g} N m (N) of "
                         f"{constraints.joint_names[joint]} at s = {s[where]:.4g} of {length:.4g} on the path: "
                         "no speed is slow enough")


def fastest(constraints: Constraints, clock: TimeLaw | None = None, moving: bool = False, ceiling: Curve | None = None,
            due: Curve | None = None, resolution: float = RESOLUTION, progress: Progress | None = None) -> TimeLaw:
    """The fastest law from rest to rest over the whole path, or over the way of `clock`, a law that ends at rest.

    clock    : default quintic over the path; cubic if nothing bounds sddd
    moving   : the law starts with sd and sdd of the clock, which must be inside the limits
    ceiling  : sigma -> the largest rate of the clock there
    due      : sigma -> the earliest time there: the law is never ahead of that, and as little behind as can be
    progress : called with what is being done and the duration so far
    Raises InputError where gravity alone exceeds a limit, NoLaw.
    """
    if not constraints.second_order:
        raise InputError("only velocity limits are known: the fastest motion would jump to speed; give limits of effort or "
                         "acceleration")
    if clock is None:
        check_rest(constraints, LEVEL)
        clock = laws.rest_to_rest(0.0, constraints.path.length, 1.0, 3 if constraints.third_order else 2)
    slow = 1.0 if moving else 0.95 * steady(constraints, clock, LEVEL)
    coarse = [(ceiling, due)]
    if due is not None and not moving:  # a good start: what is nowhere faster than a schedule is never ahead of it
        coarse.insert(0, (np.ones_like, None))
    c = np.full(COARSE + 3, slow * slow)
    for bounds in coarse:
        grid = _Grid(constraints, clock, COARSE, slow, moving, *bounds, progress)
        c = grid.solve(grid.inside(c), START, COARSE_GAP)
    while grid.intervals == COARSE or grid.intervals < min(MOST, grid.needed(c, resolution)):
        grid = _Grid(constraints, clock, 2 * grid.intervals, slow, moving, ceiling, due, progress)
        c = grid.solve(grid.inside(refined(c)), AGAIN, GAP)
    for _ in range(ROUNDS):
        if not grid.tighten(grid.law(c)):
            break
        c = grid.solve(grid.inside(c), AGAIN, GAP)
    return _passed(constraints, grid, c) if moving else slowed(constraints, grid.law(c))


def slowed(constraints: Constraints, law: TimeLaw) -> TimeLaw:
    """The law at the largest constant factor up to 1 at which it, and every slower one, is inside PASS of the limits."""
    factor = steady_factor(constraints, law, PASS)
    return law if factor >= 1.0 else law.slower(factor * (1.0 - 1e-12))


def _passed(constraints: Constraints, grid: _Grid, c: np.ndarray) -> TimeLaw:
    """The same for a law that starts in motion: it can only be taken back towards the one that it was made from."""
    for share in TAKEN_BACK:
        law = grid.law(share * c + (1.0 - share))
        if steady_factor(constraints, law, PASS) >= 1.0:
            return law
    raise NoLaw("the law to start from is not inside the limits")


def steady_factor(constraints: Constraints, law: TimeLaw, share: float) -> float:
    """The largest constant rate up to 1 at which a law, and every slower one, keeps to a share of the limits everywhere."""
    (s, v, a, u), _ = law.densely()
    return largest(constraints(s) / share, v, a, u)


def steady(constraints: Constraints, clock: TimeLaw, share: float, most: float = 1e4) -> float:
    """The largest constant rate of a clock inside a share of the limits, as seen on a coarse grid."""
    s, v, a, u = clock(np.linspace(0.0, clock.duration, 2 * COARSE + 1))
    return largest(constraints(s) / share, v, a, u, most)


def largest(rows: np.ndarray, v: Any, a: Any, u: Any, most: float = 1.0) -> float:
    """The largest factor up to `most` for sd = v, sdd = a, sddd = u (samples,): closed_form.py's polynomials, row by row."""
    b = basis(v, a, u)[..., None] * rows
    polynomials = np.stack((b[:, 0], b[:, 1], b[:, 2] + b[:, 3], b[:, 4] + b[:, 5] + b[:, 6]), axis=-1).reshape(-1, 4)
    suspect = np.abs(polynomials) @ most ** np.arange(4.0) >= 1.0  # the others cannot bind
    return min(most, float(largest_factor(polynomials[suspect]).min(initial=np.inf)))


class _Grid(Barrier):
    """The limits of a path on a uniform grid over a clock."""

    def __init__(self, constraints: Constraints, clock: TimeLaw, intervals: int, slow: float, moving: bool,
                 ceiling: Curve | None, due: Curve | None, progress: Progress | None = None):
        self.constraints, self.clock, self.slow, self.moving, self.progress = constraints, clock, slow, moving, progress
        self.level = MOVING if moving else LEVEL
        step = clock.duration / intervals
        sigma = self._places(POINTS, intervals, step).ravel()
        s, v, a, u = clock(sigma)
        bounds = np.zeros((len(s), BASIS, 2))
        bounds[:, 1, 0] = 1.0 / (FASTEST * slow)
        bounds[:, 1, 1] = 0.0 if ceiling is None else 1.0 / ceiling(sigma)
        rows = np.concatenate((on_clock(constraints(s) / self.level, v, a, u), bounds), axis=2)
        super().__init__(np.ascontiguousarray(rows.reshape(intervals, len(POINTS), BASIS, -1)), step, 3 if moving else 0,
                         None if due is None else due(np.arange(1, intervals + 1) * step))

    def needed(self, c: np.ndarray, resolution: float) -> float:
        """Intervals for this resolution, also where a law that starts in motion is still as slow as its clock."""
        return max(self.time(c), 0.5 * self.clock.duration if self.moving else 0.0) / resolution

    def report(self, seconds: float) -> None:
        if self.progress is not None:
            self.progress(f"grid of {self.intervals} intervals", seconds)

    def _places(self, x: np.ndarray, intervals: int, step: float) -> np.ndarray:
        """(intervals, samples) places on the clock at shares x of each interval."""
        return np.minimum((np.arange(intervals)[:, None] + x) * step, self.clock.duration)

    def inside(self, c: np.ndarray) -> np.ndarray:
        """The feasible one next to c on the way to a slow start."""
        while True:
            for share in BLENDS:
                blend = share * c + (1.0 - share) * self.slow**2
                if np.isfinite(self.merit(blend, 0.0)):
                    return blend
            if self.moving:
                raise NoLaw("the law to start from is not inside the limits")
            self.slow *= 0.8  # a finer grid sees more; slow enough is always feasible

    def law(self, c: np.ndarray) -> TimeLaw:
        """s(t) of the clock at this rate."""
        nodes, weights = np.polynomial.legendre.leggauss(5)
        parts = np.arange(PARTS)
        gauss = ((parts[:, None] + 0.5 * (nodes + 1.0)) / PARTS).ravel()
        y = values_on(c, spline_at(gauss, self.step))[..., 0].reshape(self.intervals, PARTS, -1)
        t = np.concatenate(([0.0], np.cumsum((0.5 * self.step / PARTS) * (weights / np.sqrt(y)).sum(axis=-1))))
        y, y1, _ = np.moveaxis(values_on(c, spline_at(parts / PARTS, self.step)).reshape(-1, 3), -1, 0)
        last = values_on(c[-4:], spline_at(np.ones(1), self.step))[0, 0]
        k, kappa = np.sqrt(np.append(y, last[0])), 0.5 * np.append(y1, last[1])
        sigma = np.append(self._places(parts / PARTS, self.intervals, self.step), self.clock.duration)
        s, v, a, _ = self.clock(sigma)
        speed, acceleration = v * k, a * k * k + v * kappa
        speed[-1] = 0.0
        if not self.moving:
            speed[0] = 0.0
        return laws.hermite(t, s, speed, acceleration)

    def tighten(self, law: TimeLaw) -> bool:
        """Tighten limits around the intervals where the law uses more than PASS of them; whether there were any."""
        (s, v, a, u), first = law.densely()
        used = np.maximum.reduceat(np.abs(use(self.constraints(s), v, a, u)), first[::PARTS], axis=0)
        excess = np.where(used > PASS, used / self.level, 1.0)
        around = excess.copy()
        around[1:] = np.maximum(around[1:], excess[:-1])
        around[:-1] = np.maximum(around[:-1], excess[1:])
        if self.moving:  # the law to start from must remain inside
            start = np.abs((weighed(np.array([1.0, 0.0, 0.0])) @ self.rows)[..., :used.shape[1]]).max(axis=1)
            around = np.minimum(around, np.maximum(INSIDE / np.maximum(start, 1e-9), 1.0))
        self.rows[..., :used.shape[1]] *= around[:, None, None]
        return bool((used > PASS).any())

