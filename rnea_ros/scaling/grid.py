"""The limits of a path along an initial law, at the points of a grid: what barrier.py solves, and the law that this means.

profile.py says what the unknown is and which grids there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..errors import RneaError
from . import law as laws
from .barrier import EACH, POINTS, Barrier
from .dense_look import DenseLook
from .law import TimeLaw
from .spline import Spline
from .terms import Constraints, Group, shares

LEVEL = 0.998  # share of the limits that a profile aims at
MOVING = 0.996  # the same for one that starts in motion, which cannot be slowed afterwards
JOINED = 0.975  # the same for one from which, too, another is solved for before it ends
PASS = 0.999  # share that it may use between the points: the rest is room to vary its speed, see time_scaling.py
PASS_JOINED = 0.985
INSIDE = 0.99  # share of the limits on the grid that a law to start from may come to use
LEAST_SHARE = 1e-9  # of the largest y
STANDING = 1e-3  # of the largest speed
BLENDS = (0.95, 0.9, 0.8, 0.6, 0.4, 0.2, 0.0)
ATTEMPTS = 40
FASTEST = 1e3  # times the slow start's rate: where nothing binds, no law is played faster
PARTS = np.array([0.0, 0.5])  # shares of each interval at which a piece of the law begins
HALVINGS = 12  # of such an interval, at most
CLOSE = 0.02  # share of an interval
GAUSS, WEIGHTS = np.polynomial.legendre.leggauss(5)
Progress = Callable[[str, float], None]
Curve = Callable[[np.ndarray], np.ndarray]


class NoLaw(RneaError):
    """No law was found, as may happen to one that must start in motion."""


class Objectives(NamedTuple):
    """What is asked of a law beside the limits: see `fastest`."""

    moving: bool = False
    ceiling: Curve | None = None
    due: Curve | None = None
    progress: Progress | None = None
    joined: bool = False


class Grid(Barrier):
    """The limits of a path along an initial law."""

    def __init__(self, constraints: Constraints, initial: TimeLaw, spline: Spline, slow: float, objectives: Objectives):
        self.constraints, self.initial, self.slow, self.objectives = constraints, initial, slow, objectives
        self.level, self.most = ((JOINED, PASS_JOINED) if objectives.joined else
                                 (MOVING if objectives.moving else LEVEL, PASS))
        knots, steps = spline.knots, spline.steps
        self._nodes = _union(np.append((knots[:-1, None] + steps[:, None] * PARTS).ravel(), knots[-1]), initial.corners)
        sigma = np.append((knots[:-1, None] + steps[:, None] * POINTS[:EACH]).ravel(), initial.duration)
        due = None if objectives.due is None else objectives.due(initial(knots[1:])[0])
        super().__init__(spline, (objectives.moving, objectives.joined), due)
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
        return bounds + [group.widened(self.level, self.constraints.offset[columns])
                         for group, columns in zip(self.constraints.groups_on_law(s, v, a, u), self._columns)]

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
        between = sigma[:-1, None] + np.diff(sigma)[:, None] * 0.5 * (GAUSS + 1.0)
        least = LEAST_SHARE * c.max()  # y is positive at the points of the grid, not everywhere
        k = np.sqrt(np.maximum(self.spline.heights(c, between.ravel()), least)).reshape(between.shape)
        t = np.concatenate(([0.0], np.cumsum(0.5 * np.diff(sigma) * (WEIGHTS / k).sum(axis=1))))
        y, y1, _ = self.spline.values(c, sigma).T
        s, v, a, _ = self.initial(sigma)
        speed, acceleration = np.maximum(v, 0.0) * np.sqrt(np.maximum(y, least)), a * y + 0.5 * v * y1
        if not self.objectives.moving:
            speed[0] = 0.0
        if not self.objectives.joined:
            speed[-1] = 0.0
        corners = np.isin(sigma, self.spline.knots) | np.isin(sigma, self.initial.corners)
        return laws.hermite(t, s, speed, acceleration, t[corners])

    def tighten(self, law: TimeLaw, look: DenseLook) -> None:
        """Where a law uses more than `most` of the limits between the points, keep them at the worst place of that interval
        too; where that is done already, tighten them there and next to it."""
        starts = np.searchsorted(look.start, law.breaks[np.isin(self._nodes, self.spline.knots[:-1])])
        most = look.used.max(axis=1)
        over = np.flatnonzero(np.maximum.reduceat(most, starts) > self.most)
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
        excess[where] = np.where(used[where] > self.most, used[where] / self.level, 1.0)
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
