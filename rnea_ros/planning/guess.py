"""Motions to start a solver from: straight to the goal, then with more and more of a detour; as fast as limits allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .bspline import Curve, averages
from .grid import nodes
from .problem import ORDERS, Problem

DURATIONS = 60  # tried on each guess
DETOUR = 0.3  # of the first detour, times the distance to go plus one


class Way(NamedTuple):
    """Straight from pose to pose: poses (k, n) from start to goal, and shares (k,) of the duration when they are passed."""

    shares: np.ndarray
    poses: np.ndarray


def guesses(problem: Problem, breaks: np.ndarray, degree: int, way: Way | None = None) -> Iterator[Curve]:
    """Endless; the same for the same problem. way: to begin with instead of the straight one."""
    u = np.clip((averages(breaks, degree) - breaks[1]) / (breaks[-2] - breaks[1]), 0.0, 1.0)[:, None]
    start, goal = _places(problem)
    distance = goal - start
    line = start + u**3 * (10.0 - 15.0 * u + 6.0 * u**2) * distance
    if way is not None:
        line = np.stack([np.interp(u[:, 0], way.shares, place) for place in way.poses.T], axis=1)
    random, size = np.random.default_rng(0), 0.0
    while True:
        waves = random.normal(size=(2, problem.n)) * size * (1.0 + np.abs(distance))
        bumps = (u * (1.0 - u)) ** 3 * 64.0
        yield paced(problem, Curve(degree, breaks, line + bumps * (waves[0] + waves[1] * (2.0 * u - 1.0)), 1.0))
        size += DETOUR


def _places(problem):
    """Of start and goal; where one of them is free, that of the other one, or zero, inside the box."""
    start = np.where(np.isnan(problem.start.q), np.nan_to_num(problem.goal.q), problem.start.q)
    goal = np.where(np.isnan(problem.goal.q), start, problem.goal.q)
    return (start, goal) if problem.box is None else (np.clip(start, *problem.box), np.clip(goal, *problem.box))


def paced(problem: Problem, curve: Curve) -> Curve:
    """The curve at the duration that costs least among those that keep the limits; if none does, that comes nearest."""
    at = nodes(curve.breaks, curve.degree + 2)
    y = curve.motion(at.span, at.u)
    durations = np.unique(np.geomspace(*problem.duration, DURATIONS))
    cost, excess = [], []
    for T in durations:
        now = y / (T ** np.arange(ORDERS))[:, None]
        cost.append(T * at.weight @ problem.cost.rate(now, at.inner))
        excess.append(max((found.max() for found in problem.excess(now, at.u)), default=0.0))
    inside = np.array(excess) <= 0.0
    best = np.where(inside, cost, np.inf) if inside.any() else np.array(excess)
    return Curve(curve.degree, curve.breaks, curve.points, float(durations[best.argmin()]))
