"""Clearance of a planned motion: distances of spheres on the robot's links from obstacles, and from one another.

    shape = [Sphere("forearm", (0.0, 0.0, 0.1), 0.08), Sphere("hand", (0.0, 0.0, 0.0), 0.06)]
    plan_motion(robot, start, goal, clearance=Clearance(shape, [Obstacle((0.5, 0.0, 0.4), 0.1)]))

The constraint is |a - b|^2 >= (r_a + r_b + margin)^2: squared, as the norm has no derivative where it vanishes.
`read_clearance` reads a YAML file; docs/planning.md shows one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..model import robot_file_validation as file_validation
from ..model import yaml_file
from ..model.robot_file import RobotFile
from ..planning.problem import Quantity
from ..robots import validation
from ..robots.robot import Robot


class Sphere(NamedTuple):
    """Sphere of the robot's shape: on a link, center (3,) in the link's frame [m], radius [m]."""

    link: str
    center: Sequence[float] | np.ndarray
    radius: float


class Obstacle(NamedTuple):
    """Fixed sphere: center (3,) in the root link's frame [m], radius [m]."""

    center: Sequence[float] | np.ndarray
    radius: float


@dataclass(frozen=True)
class Clearance:
    """Minimum distances of a motion.

    spheres   : shape of the robot
    obstacles : fixed spheres that no sphere may touch
    margin    : least distance between surfaces [m]
    pairs     : (i, j) numbers of spheres that may not touch each other; default all whose links are neither the same nor
                neighbours at a joint; (): none
    """

    spheres: Sequence[Sphere]
    obstacles: Sequence[Obstacle] = ()
    margin: float = 0.0
    pairs: Sequence[tuple[int, int]] | None = None

    def quantities(self, robot: Robot) -> list[Quantity]:
        """Return the squared distances as limited quantities. Raises InputError for an unknown link, radius, or pair."""
        spheres = [Sphere(ball.link, validation.vector("center of a sphere", ball.center, 3), _radius(ball))
                   for ball in self.spheres]
        stones = [Obstacle(validation.vector("center of an obstacle", stone.center, 3), _radius(stone))
                  for stone in self.obstacles]
        given = _separate_pairs(robot, spheres) if self.pairs is None else self.pairs
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

    def nearest(self, robot: Robot, q: np.ndarray) -> tuple[float, str]:
        """Return the least distance between surfaces at q (samples, n) [m], negative for overlap, and its label.

        Infinite without obstacles and pairs.
        """
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


def _separate_pairs(robot: Robot, spheres: Sequence[Sphere]) -> list[tuple[int, int]]:
    """Return the pairs of spheres on links that are neither one body nor joined by a joint."""
    model = robot.tree.model
    parents = {k: link.parent for k, link in enumerate(model.links) if k}
    on = [model.frame(ball.link).link for ball in spheres]
    return [(i, j) for i, j in combinations(range(len(spheres)), 2)
            if on[i] != on[j] and parents.get(on[i]) != on[j] and parents.get(on[j]) != on[i]]


def _distances(name: str, labels: Sequence[str], robot: Robot, these: Sequence[Sphere],
               those: np.ndarray | Sequence[Sphere], reach: np.ndarray) -> Quantity:
    """Return |a - b|^2 of centers a of these and b of those, or of fixed points (k, 3); reach (k,): least distance."""

    def value(q):
        return ((_centers(robot, these, q) - _centers(robot, those, q)) ** 2).sum(axis=-1)

    def slope(q):
        difference = 2.0 * (_centers(robot, these, q) - _centers(robot, those, q))
        return [np.einsum("skc,skcn->skn", difference, _jacobians(robot, these, q) - _jacobians(robot, those, q))]

    return Quantity(name, labels, 0, value, slope, reach**2, np.full(len(reach), np.inf))


def _centers(robot, balls, q):
    """Return centers (samples, k, 3), or (k, 3) of fixed points."""
    return balls if isinstance(balls, np.ndarray) else _once(balls, lambda ball: robot.link_pose(ball.link, q, ball.center).p)


def _jacobians(robot, balls, q):
    """Return the Jacobians of centers (samples, k, 3, n)."""
    return 0.0 if isinstance(balls, np.ndarray) else _once(
        balls, lambda ball: robot.jacobian(ball.link, q, ball.center)[..., :3, :])


def _once(balls, evaluate):
    """Evaluate each sphere once, and stack the results along axis 1."""
    known = {id(ball): evaluate(ball) for ball in balls}
    return np.stack([known[id(ball)] for ball in balls], axis=1)


# -------------------------------------------------------------------------------------------------------------------- file

HINT = "a file is needed there that says, for instance, 'spheres: [{link: hand, center: [0.0, 0.0, 0.1], radius: 0.08}]'"
MAX_LENGTH = 1e6  # m


def _vector(count: int, text: str) -> dict[str, Any]:
    number = {"type": "number", "minimum": -MAX_LENGTH, "maximum": MAX_LENGTH}
    return {"type": "array", "items": number, "minItems": count, "maxItems": count, "description": text}


def _length(text: str) -> dict[str, Any]:
    return {"type": "number", "minimum": 0, "maximum": MAX_LENGTH, "description": text}


def _each(text: str, least: int, **properties: dict[str, Any]) -> dict[str, Any]:
    entry = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {"type": "array", "items": entry, "minItems": least, "description": text}


RADIUS = _length("Its radius [m].")
SCHEMA: dict[str, Any] = {
    "type": "object", "additionalProperties": False, "required": ["spheres"], "properties": {
        "margin": _length("Kept between surfaces; default 0 [m]."),
        "spheres": _each("The robot's shape.", 1, link={"type": "string", "format": "link", "description": "Link it is on."},
                         center=_vector(3, "In the frame of the link [m]."), radius=RADIUS),
        "obstacles": _each("Spheres that stand still.", 0, center=_vector(3, "In the root link's frame [m]."), radius=RADIUS),
        "pairs": {"type": "array", "items": _vector(2, "Numbers of two spheres, from 0."), "description":
                  "Spheres that may not touch each other; default all whose links are neither the same nor neighbours at a "
                  "joint; []: none."}}}


def read_clearance(path: str | os.PathLike[str], robot: Robot) -> Clearance:
    """Read a clearance file. Raises ModelError with all problems, each with line and column, unknown links included."""
    document = yaml_file.read(path, HINT)
    content, links = document.content, file_validation.Names((), {}, robot.links)
    file = RobotFile(content, document.where, document.marks)  # it reports problems in the same form
    file.refuse(file_validation.schema_problems(content, links, SCHEMA))
    return Clearance([Sphere(**ball) for ball in content["spheres"]],
                     [Obstacle(**stone) for stone in content.get("obstacles", ())], float(content.get("margin", 0.0)),
                     content.get("pairs"))
