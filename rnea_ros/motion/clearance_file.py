"""A YAML file of what a planned motion keeps apart: spheres on the robot's links, obstacles. docs/planning.md shows one.

    margin: 0.01
    spheres: [{link: link2, center: [0.4, 0.0, 0.0], radius: 0.05}]
    obstacles: [{center: [0.27, -0.22, 0.0], radius: 0.05}]
"""

from __future__ import annotations

import os
from typing import Any

from ..model import yaml_file
from ..model.robot_file import validation
from ..model.robot_file.robot_file import RobotFile
from ..robots import kinds
from ..robots.protocol import AnyRobot
from .clearance import Clearance, Obstacle, Sphere

HINT = "a file is needed there that says, for instance, 'spheres: [{link: hand, center: [0.0, 0.0, 0.1], radius: 0.08}]'"
LARGEST = 1e6  # m


def _vector(count: int, text: str) -> dict[str, Any]:
    number = {"type": "number", "minimum": -LARGEST, "maximum": LARGEST}
    return {"type": "array", "items": number, "minItems": count, "maxItems": count, "description": text}


def _length(text: str) -> dict[str, Any]:
    return {"type": "number", "minimum": 0, "maximum": LARGEST, "description": text}


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


def read(path: str | os.PathLike[str], robot: AnyRobot) -> Clearance:
    """ModelError with all that is wrong, each with its line and column, links that the robot does not have among it."""
    document = yaml_file.read(path, HINT)
    content, links = document.content, validation.Names((), {}, kinds.links(robot))
    file = RobotFile(content, document.where, document.places)  # it reports problems in the same form
    file.refuse(validation.schema_problems(content, links, SCHEMA))
    return Clearance([Sphere(**ball) for ball in content["spheres"]],
                     [Obstacle(**stone) for stone in content.get("obstacles", ())], float(content.get("margin", 0.0)),
                     content.get("pairs"))
