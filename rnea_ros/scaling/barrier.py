"""Interior point method for the fastest time scaling of a law: the numbers behind profile.py, which says why y = k^2 is the
unknown.

Minimize the integral of 1 / sqrt y - mu sum log (1 - value^2) over a cubic spline y(sigma), for mu -> 0, where the values are
those of the constraints at the knots and at two points between. Newton's matrix is that of Gauss and Newton for the
constraints and the exact one for the time: positive definite, with a band of four (newton.py).

With a schedule, the motion must not be anywhere before its time, and what is minimized is its delay at the end and, a
little, on the way. Every t(sigma) depends on all y before: the delay at each knot is a further unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from . import newton
from .newton import PAIRS, WINDOW
from .spline import Spline
from .terms import Group

POINTS = np.array([0.0, 0.5 - 0.1 * 5.0**0.5, 0.5 + 0.1 * 5.0**0.5, 1.0])  # of Lobatto: both ends, exact to degree five
WEIGHTS = np.array([1.0, 5.0, 5.0, 1.0]) / 12.0
EACH = len(POINTS) - 1  # of an interval's points are its own, the last one is the next interval's first
EARLY = 1e-4  # s; by which a motion on schedule may be ahead of it
ON_THE_WAY = 0.1  # weight of the mean delay against that at the end
SHRINK = 0.2  # of mu
STEPS = 30  # of Newton for each mu
SHORTEST = 1e-6  # step of Newton
TOWARDS = 0.95  # of the way to a limit, or to standing still, at most in one step
NEAR = 1e-2  # of the gap, that a step could still gain: near enough to a centre
CLOSE = 1e-3  # slack at least of what a law that is about right would exceed
ASTRAY = 1e3  # times the multiplier that a slack has in the centre, or one over that
FLAT = 1e-3  # of the largest y of an interval: the least one between its points
NOTHING = 2e-6  # what a step could still gain, relative, that is not worth it


class _Look(NamedTuple):
    """The motion by coefficients c: y (intervals, points); slacks of the constraints, (points, constraints) up and down, and
    of the schedule (intervals,), EARLY added; the cost, inf where c is not feasible, and the sum of the slacks' logarithms."""

    c: np.ndarray
    y: np.ndarray
    slacks: list[np.ndarray]
    cost: float
    logs: float

    def merit(self, mu: float) -> float:
        return self.cost - mu * self.logs


class Barrier:
    """Constraints at the points of a spline's intervals, whose values must stay within -1 and 1: see `constrain`.

    fixed : whether the first three coefficients stay, and the last three
    due   : a schedule: the earliest times (intervals,) at the ends of the intervals [s]
    """

    def __init__(self, spline: Spline, fixed: tuple[bool, bool] = (False, False), due: np.ndarray | None = None):
        self.spline, self.fixed, self.due, self.intervals = spline, fixed, due, spline.intervals
        self._windows = np.arange(self.intervals)[:, None] + np.arange(WINDOW)  # the coefficients that matter in each interval
        self._bases = spline.at(POINTS)
        self._basis = np.ascontiguousarray(self._bases[:, :, 0])  # of y (intervals, points, 4)
        self._squares = np.stack([self._basis[..., a] * self._basis[..., b] for a, b in PAIRS], axis=-1)
        self._weights = spline.steps[:, None] * WEIGHTS
        self._cost = self._weights
        if due is not None:  # the integral of t by parts
            places = spline.knots[:-1, None] + spline.steps[:, None] * POINTS
            ahead = (spline.knots[-1] - places) / (spline.knots[-1] - spline.knots[0])
            self._cost = self._cost * (1.0 + ON_THE_WAY * ahead)

    def constrain(self, groups: Sequence[Group], more: np.ndarray) -> None:
        """Constraints at the points: EACH of every interval, the end, and places `more` (samples,) anywhere."""
        own, last = self._bases[:, :EACH].reshape(-1, 3 * WINDOW), self._bases[-1:, -1].reshape(1, -1)
        self._more, others = self.spline.basis(more)
        bases = np.concatenate((own, last, others.reshape(-1, 3 * WINDOW)))
        count = sum(group.values.shape[2] for group in groups)
        rows = np.concatenate([group.values.reshape(len(bases), -1) for group in groups], axis=1)
        self._given = np.concatenate((bases[:, :WINDOW], bases, rows), axis=1)  # c is to come
        self._asked = np.concatenate((bases[:, :WINDOW], bases, np.empty((len(bases), 2 * count)), rows), axis=1)
        self._values, self._shares = newton.of_points(tuple((group.places, group.values.shape[2]) for group in groups))
        self._count = 2 * count * len(bases) + (0 if self.due is None else self.intervals)  # of inequalities

    def time(self, c: np.ndarray) -> float:
        return float((self._weights / np.sqrt(self._y(c))).sum())

    def feasible(self, c: np.ndarray) -> bool:
        return bool(np.isfinite(self._look(c).cost))

    def report(self, seconds: float) -> None:
        """Told the time so far."""

    def solve(self, c: np.ndarray, first: float, gap: float, near: np.ndarray | None = None) -> np.ndarray:
        """Follow mu from first to gap, both as a share of the time; c must be feasible, and so is the result.

        near : coefficients that are about right but may not be feasible, as c is, which was made from them
        """
        mu, last = (share * self.time(c) / self._count for share in (first, gap))
        look = self._look(c)
        slacks = look.slacks if near is None else [np.maximum(slack, CLOSE) for slack in self._look(near).slacks]
        multipliers = [mu / slack for slack in slacks]
        while True:
            look = self._centred(look, mu, multipliers)
            self.report(self.time(look.c))
            if mu <= last:
                return look.c
            mu = max(SHRINK * mu, last)

    def _y(self, c: np.ndarray) -> np.ndarray:
        """(intervals, points)."""
        return (self._basis @ c[self._windows][..., None])[..., 0]

    def _look(self, c: np.ndarray) -> _Look:
        y, windows = self._y(c), c[self._windows]
        own = EACH * self.intervals
        self._given[:own].reshape(self.intervals, EACH, -1)[..., :WINDOW] = windows[:, None]
        self._given[own, :WINDOW], self._given[own + 1:, :WINDOW] = windows[-1], windows[self._more]
        with np.errstate(invalid="ignore"):
            values, left = self._values(self._given)
            slacks = [1.0 - values, 1.0 + values]
            if self.due is not None:
                slacks.append(EARLY + np.cumsum((self._weights / np.sqrt(y)).sum(axis=1)) - self.due)
        if self._stands(y, windows, c) or not all(slack.min() > 0.0 for slack in slacks):
            return _Look(c, y, slacks, np.inf, 0.0)
        logs = np.log(left).sum() + sum(np.log(slack).sum() for slack in slacks[2:])
        return _Look(c, y, slacks, float((self._cost / np.sqrt(y)).sum()), float(logs))

    def _stands(self, y: np.ndarray, windows: np.ndarray, c: np.ndarray) -> bool:
        """Whether the law stands still or goes back somewhere; y lies between the coefficients that matter."""
        if not y.min() > 0.0:
            return True
        doubtful = (windows.min(axis=1) < FLAT * windows.max(axis=1)).any()
        return bool(doubtful and (self.spline.lowest(c) < FLAT * y.max(axis=1)).any())

    def _gathered(self, points: np.ndarray) -> np.ndarray:
        """(intervals, size): sums over the points (points, size) of each."""
        own = EACH * self.intervals
        found = np.asarray(sum(points[k:own:EACH] for k in range(EACH)))
        found[-1] += points[own]
        if len(self._more):
            np.add.at(found, self._more, points[own + 1:])
        return found

    def _centred(self, look: _Look, mu: float, multipliers: list[np.ndarray]) -> _Look:
        """The minimum for mu, by primal-dual steps from one that may be far; the multipliers follow."""
        for _ in range(STEPS):
            direction, slope = self._newton(look, mu, multipliers)
            if not slope > 0.0:  # too close to the limits to go on
                return look
            new, length = self._stepped(look, direction, slope, mu)
            if new is None:
                return look
            _follow(multipliers, look.slacks, new.slacks, length, mu)
            look = new
            if slope < max(NEAR * mu * self._count, NOTHING * look.merit(mu)):
                return look
        return look

    def _stepped(self, look: _Look, direction: np.ndarray, slope: float, mu: float) -> tuple[_Look | None, float]:
        """A step that brings the merit down, no longer than Newton's, and its length; None where only rounding is left."""
        falls = -self._y(direction) / look.y
        length = min(1.0, TOWARDS / max(float(falls.max()), TOWARDS))
        merit = look.merit(mu)
        while length > SHORTEST:
            new = self._look(look.c + length * direction)
            if new.merit(mu) <= merit - 0.1 * length * slope:
                return new, length
            longest = 0.5 * length
            if np.isinf(new.cost):  # by the slacks that were seen, as if they fell evenly
                rate = max(float((1.0 - after / before).max()) for before, after in zip(look.slacks, new.slacks))
                longest = TOWARDS * length / rate if 1.0 < rate < 1.0 / SHORTEST else longest
            length = longest
        return None, 0.0

    def _newton(self, look: _Look, mu: float, multipliers: list[np.ndarray]) -> tuple[np.ndarray, float]:
        """The direction, and how fast the merit falls along it."""
        y, (up, down, *delay) = look.y, look.slacks
        force, count = mu / up - mu / down, up.shape[1]
        self._asked[:, :WINDOW], self._asked[:, 4 * WINDOW:4 * WINDOW + count] = self._given[:, :WINDOW], force
        self._asked[:, 4 * WINDOW + count:4 * WINDOW + 2 * count] = multipliers[0] / up + multipliers[1] / down
        gradient, matrix = map(self._gathered, self._shares(self._asked))
        by_y = -0.5 / (y * np.sqrt(y))
        cost = self._cost * by_y
        gradient += (cost[:, None] @ self._basis)[:, 0]
        matrix += ((-1.5 * cost / y)[:, None] @ self._squares)[:, 0]
        if not delay:
            direction = newton.minimum(matrix, gradient, self.fixed)
        else:
            L = ((self._weights * by_y)[:, None] @ self._basis)[:, 0]
            direction = newton.minimum(matrix, gradient, self.fixed, L, multipliers[2] / delay[0], -mu / delay[0])
            gradient += L * np.cumsum((-mu / delay[0])[::-1])[::-1, None]
        if not np.isfinite(direction).all():
            return direction, 0.0
        return direction, -float((gradient * direction[self._windows]).sum())


def _follow(multipliers: list[np.ndarray], before: list[np.ndarray], now: list[np.ndarray], length: float, mu: float) -> None:
    """Each multiplier to where z slack = mu by Newton's step, of which slacks have gone so far; near that of the slack now."""
    steps = [(mu - z * (old + (new - old) / length)) / old
             for z, old, new in zip(multipliers, before, now)]
    falls = max(float((-step / z).max()) for step, z in zip(steps, multipliers))
    share = min(1.0, 0.99 / max(falls, 0.99))
    for number, (z, step, slack) in enumerate(zip(multipliers, steps, now)):
        centred = mu / slack
        multipliers[number] = np.clip(z + share * step, centred / ASTRAY, centred * ASTRAY)
