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
from .newton import WINDOW
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
NEAR, NEAR_ON_SCHEDULE = 0.1, 0.01  # of the gap, that a step could still gain: near enough to a centre
CLOSE = 1e-3  # slack at least of what a law that is about right would exceed
FLAT = 1e-3  # of the largest y of an interval: the least one between its points
NOTHING = 2e-6  # what a step could still gain, relative, that is not worth it


class _Look(NamedTuple):
    """The motion by coefficients c: values of the constraints (points, constraints); slacks of the schedule (intervals,),
    EARLY added; the cost, inf where c is not feasible, the sum of the slacks' logarithms, and by what share a slack has become
    less since a look before, at most."""

    c: np.ndarray
    values: np.ndarray
    delay: np.ndarray
    cost: float
    logs: float
    fall: float

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
        self._weights = spline.steps[:, None] * WEIGHTS
        cost = self._weights
        if due is not None:  # the integral of t by parts
            places = spline.knots[:-1, None] + spline.steps[:, None] * POINTS
            ahead = (spline.knots[-1] - places) / (spline.knots[-1] - spline.knots[0])
            cost = cost * (1.0 + ON_THE_WAY * ahead)
        self._cost = np.append(cost[:, :EACH], 0.0)  # of the points in their order, of which the last is no interval's own
        self._cost[EACH::EACH] += cost[:, EACH]
        self._points = EACH * np.arange(self.intervals)[:, None] + np.arange(EACH + 1)  # of each interval

    def constrain(self, groups: Sequence[Group], more: np.ndarray) -> None:
        """Constraints at the points: EACH of every interval, the end, and places `more` (samples,) anywhere."""
        own, last = self._bases[:, :EACH].reshape(-1, 3 * WINDOW), self._bases[-1:, -1].reshape(1, -1)
        self._more, others = self.spline.basis(more)
        self._basis = np.concatenate((own, last, others.reshape(-1, 3 * WINDOW)))
        within = np.concatenate((np.repeat(np.arange(self.intervals), EACH), [self.intervals - 1], self._more))
        self._places, total = self._windows[within], len(self._basis)
        count = sum(group.values.shape[2] for group in groups)
        self._rows = np.concatenate([group.values.reshape(total, -1) for group in groups], axis=1)
        self._weight = np.append(self._cost, np.zeros(len(more)))[:, None]
        self._values, self._shares = newton.of_points(tuple((group.places, group.values.shape[2]) for group in groups))
        self._unseen = np.zeros(count)
        self._count = 2 * count * total + (0 if self.due is None else self.intervals)  # of inequalities

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
        seen = look if near is None else self._look(near)
        slacks = np.concatenate((1.0 - seen.values, 1.0 + seen.values), axis=1), seen.delay
        self._multipliers = [mu / (slack if near is None else np.maximum(slack, CLOSE)) for slack in slacks]
        step = _Step(look, mu, 1.0, 0.0)
        while True:
            look, step = self._centred(look, mu, step)
            self.report(self.time(look.c))
            if mu <= last:
                return look.c
            mu = max(SHRINK * mu, last)

    def _y(self, c: np.ndarray) -> np.ndarray:
        """(intervals, points)."""
        return np.einsum("ipa,ia->ip", self._bases[:, :, 0], c[self._windows])

    def _look(self, c: np.ndarray, before: _Look | None = None) -> _Look:
        unseen = self._unseen if before is None else before.values
        values, found = self._values([c[self._places], self._basis, self._rows, unseen], len(self._places))
        slowness, left, largest, fall = found.T
        delay = np.empty(0)
        with np.errstate(invalid="ignore"):
            if self.due is not None:
                delay = EARLY + np.cumsum((self._weights * slowness[self._points]).sum(axis=1)) - self.due
                fall = fall if before is None else np.append(fall, 1.0 - delay / before.delay)
            inside = left.min() > 0.0 and largest.max() < 1.0 and (delay > 0.0).all()
        if not inside or self._stands(c):
            return _Look(c, values, delay, np.inf, 0.0, float(fall.max()))
        cost = float(self._cost @ slowness[:len(self._cost)])
        return _Look(c, values, delay, cost, float(np.log(left).sum() + np.log(delay).sum()), float(fall.max()))

    def _stands(self, c: np.ndarray) -> bool:
        """Whether the law stands still or goes back somewhere; y lies between the coefficients that matter."""
        windows = [c[k:len(c) - WINDOW + 1 + k] for k in range(WINDOW)]
        doubtful = (np.minimum.reduce(windows) < FLAT * np.maximum.reduce(windows)).any()
        return bool(doubtful and (self.spline.lowest(c) < FLAT * self._y(c).max(axis=1)).any())

    def _gathered(self, points: np.ndarray) -> np.ndarray:
        """(intervals, size): sums over the points (points, size) of each."""
        own = EACH * self.intervals
        found = np.asarray(sum(points[k:own:EACH] for k in range(EACH)))
        found[-1] += points[own]
        if len(self._more):
            np.add.at(found, self._more, points[own + 1:])
        return found

    def _centred(self, look: _Look, mu: float, step: _Step) -> tuple[_Look, _Step]:
        """The minimum for mu, by primal-dual steps from one that may be far; the multipliers follow."""
        near = NEAR if self.due is None else NEAR_ON_SCHEDULE  # what a delay on the way costs is little
        for _ in range(STEPS):
            direction, slope = self._newton(look, mu, step)
            step = _Step(look, mu, 1.0, 0.0)
            if not slope > 0.0:  # too close to the limits to go on
                break
            new, length = self._stepped(look, direction, slope, mu)
            if new is None:
                break
            look, step = new, _Step(look, mu, 1.0 / length, 1.0)
            if slope < max(near * mu * self._count, NOTHING * look.merit(mu)):
                break
        return look, step

    def _stepped(self, look: _Look, direction: np.ndarray, slope: float, mu: float) -> tuple[_Look | None, float]:
        """A step that brings the merit down, no longer than Newton's, and its length; None where only rounding is left."""
        y, change = (np.einsum("pa,pa->p", self._basis[:, :WINDOW], x[self._places]) for x in (look.c, direction))
        length = min(1.0, TOWARDS / max(float((-change / y).max()), TOWARDS))
        merit = look.merit(mu)
        while length > SHORTEST:
            new = self._look(look.c + length * direction, look)
            if new.merit(mu) <= merit - 0.1 * length * slope:
                return new, length
            longest = 0.5 * length
            if np.isinf(new.cost):  # by the slacks that were seen, as if they fell evenly
                longest = TOWARDS * length / new.fall if 1.0 < new.fall < 1.0 / SHORTEST else longest
            length = longest
        return None, 0.0

    def _newton(self, look: _Look, mu: float, step: _Step) -> tuple[np.ndarray, float]:
        """The direction, and how fast the merit falls along it, once the multipliers have followed the step that led here."""
        multipliers, total = self._multipliers, len(self._places)
        found, multipliers[0] = self._shares(
            [look.c[self._places], self._basis, self._rows, self._weight, look.values, step.start.values, multipliers[0],
             np.array([mu, *step[1:]])], total)
        found = self._gathered(found)
        matrix, gradient = found[:, :-WINDOW], found[:, -WINDOW:]
        if self.due is None:
            direction = newton.minimum(matrix, gradient, self.fixed)
        else:
            slack, before = look.delay, step.start.delay
            multipliers[1] = newton.followed(multipliers[1], slack, 1.0 / slack, before, 1.0 / before, step[1:])
            y = self._y(look.c)
            L = np.einsum("ip,ipa->ia", -0.5 * self._weights / (y * np.sqrt(y)), self._bases[:, :, 0])
            direction = newton.minimum(matrix, gradient, self.fixed, L, multipliers[1] / slack, -mu / slack)
            gradient = gradient + L * np.cumsum((-mu / slack)[::-1])[::-1, None]
        if not np.isfinite(direction).all():
            return direction, 0.0
        return direction, -float(np.einsum("ia,ia->", gradient, direction[self._windows]))


class _Step(NamedTuple):
    """What the multipliers have still to follow: where a step began, its mu, 1 / its length; and 0 where there was none."""

    start: _Look
    mu: float
    per_length: float
    any: float
