"""Distances that a planned motion keeps: of spheres on the robot's links from obstacles, and from one another.

    shape = [Sphere("forearm", (0.0, 0.0, 0.1), 0.08), Sphere("hand", (0.0, 0.0, 0.0), 0.06)]
    plan_motion(robot, start, goal, clearance=Clearance(shape, [Obstacle((0.5, 0.0, 0.4), 0.1)]))

A distance is kept as its square, |a - b|^2 >= (r_a + r_b + margin)^2: the norm has no slope where it vanishes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from ..planning.problem import Quantity
from ..robots import kinds
from ..robots.inputs import validation
from ..robots.link_side import LinkSideRobot


class Sphere(NamedTuple):
    """A part of the robot: on a link, around center (3,) in the link's frame [m], of a radius [m]."""

    link: str
    center: Sequence[float] | np.ndarray
    radius: float


class Obstacle(NamedTuple):
    """A sphere that stands still: center (3,) in the root link's frame, radius [m]."""

    center: Sequence[float] | np.ndarray
    radius: float


@dataclass(frozen=True)
class Clearance:
    """What stays apart.

    spheres   : the robot's shape
    obstacles : that no sphere may touch
    margin    : kept between surfaces [m]
    pairs     : (i, j) numbers of spheres that may not touch each other; default all whose links are neither the same nor
                neighbours at a joint; (): none
    """

    spheres: Sequence[Sphere]
    obstacles: Sequence[Obstacle] = ()
    margin: float = 0.0
    pairs: Sequence[tuple[int, int]] | None = None

    def quantities(self, robot: LinkSideRobot) -> list[Quantity]:
        """InputError: a link that the robot does not have, a radius that is none, a pair of spheres that do not exist."""
        spheres = [Sphere(ball.link, validation.vector("center of a sphere", ball.center, 3), _radius(ball))
                   for ball in self.spheres]
        stones = [Obstacle(validation.vector("center of an obstacle", stone.center, 3), _radius(stone))
                  for stone in self.obstacles]
        given = _apart(robot, spheres) if self.pairs is None else self.pairs
        pairs = [(int(i), int(j)) for i, j in given]
        if wrong := [tuple(one) for one, pair in zip(given, pairs)
                     if tuple(one) != pair or not 0 <= min(pair) < max(pair) < len(spheres)]:
            raise InputError(f"pairs has {wrong[0]}; two different numbers from 0 to {len(spheres) - 1} are needed")
        names = [f"sphere {k} on {ball.link}" for k, ball in enumerate(spheres)]
        outside = [(k, stone) for k in range(len(spheres)) for stone in range(len(stones))]
        found = []
        if outside:
            labels = [f"{names[k]} from obstacle {stone}" for k, stone in outside]
            reach = np.array([spheres[k].radius + stones[stone].radius for k, stone in outside]) + self.margin
            still = np.array([stones[stone].center for _, stone in outside])
            found.append(_distances("squared distance to obstacles", labels, robot, [spheres[k] for k, _ in outside], still,
                                    reach))
        if pairs:
            labels = [f"{names[i]} from {names[j]}" for i, j in pairs]
            reach = np.array([spheres[i].radius + spheres[j].radius for i, j in pairs]) + self.margin
            found.append(_distances("squared distance to itself", labels, robot, [spheres[i] for i, _ in pairs],
                                    [spheres[j] for _, j in pairs], reach))
        return found

    def nearest(self, robot: LinkSideRobot, q: np.ndarray) -> tuple[float, str]:
        """The least distance between surfaces at q (samples, n) [m], below zero inside one another, and whose it is; infinite
        where nothing is to stay apart."""
        found = [(np.inf, "nothing")]
        for quantity in self.quantities(robot):
            gaps = (np.sqrt(quantity.values(q[:, None])) - np.sqrt(quantity.lower)).min(axis=0)
            found.append((float(gaps.min()) + self.margin, quantity.labels[int(gaps.argmin())]))
        return min(found)


def _radius(ball: Sphere | Obstacle) -> float:
    radius = float(validation.numbers("radius", ball.radius))
    if not 0.0 <= radius < np.inf:
        raise InputError(f"radius is {radius:g}; a number from zero is needed [m]")
    return radius


def _apart(robot: LinkSideRobot, spheres: Sequence[Sphere]) -> list[tuple[int, int]]:
    """Pairs on links that are neither one body nor joined by a joint."""
    model = kinds.tree(robot).model
    parents = {k: link.parent for k, link in enumerate(model.links) if k}
    on = [model.frame(ball.link).link for ball in spheres]
    return [(i, j) for i, j in combinations(range(len(spheres)), 2)
            if on[i] != on[j] and parents.get(on[i]) != on[j] and parents.get(on[j]) != on[i]]


def _distances(name: str, labels: Sequence[str], robot: LinkSideRobot, these: Sequence[Sphere],
               those: np.ndarray | Sequence[Sphere], reach: np.ndarray) -> Quantity:
    """|a - b|^2 of centers a of these and b of those, or of points (k, 3) that stand still; reach (k,): the least distance."""

    def value(q):
        return ((_centers(robot, these, q) - _centers(robot, those, q)) ** 2).sum(axis=-1)

    def slope(q):
        apart = 2.0 * (_centers(robot, these, q) - _centers(robot, those, q))
        return [np.einsum("skc,skcn->skn", apart, _jacobians(robot, these, q) - _jacobians(robot, those, q))]

    return Quantity(name, labels, 0, value, slope, reach**2, np.full(len(reach), np.inf))


def _centers(robot, balls, q):
    """(samples, k, 3), or (k, 3) of what stands still."""
    return balls if isinstance(balls, np.ndarray) else _once(balls, lambda ball: robot.link_pose(ball.link, q, ball.center).p)


def _jacobians(robot, balls, q):
    """(samples, k, 3, n)."""
    return 0.0 if isinstance(balls, np.ndarray) else _once(
        balls, lambda ball: robot.jacobian(ball.link, q, ball.center)[..., :3, :])


def _once(balls, evaluate):
    """Side by side along axis 1; a sphere that stands in many pairs is asked for once."""
    known = {id(ball): evaluate(ball) for ball in balls}
    return np.stack([known[id(ball)] for ball in balls], axis=1)
