"""What a URDF looks like: its visual boxes, cylinders and spheres, in a pose. Meshes are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

from ..algebra.vectors import rpy
from ..algorithms.kinematics import Pose
from ..io.figures import draw_polygons

SIDES = 20  # of what is round
PLAIN = (0.55, 0.6, 0.65)  # where the URDF says of no colour
LIGHT = np.array([0.35, -0.5, 0.8]) / np.linalg.norm([0.35, -0.5, 0.8])


class Shape(NamedTuple):
    """Faces (corners, 3) in the link's frame [m], seen from outside counterclockwise; colour red, green, blue."""

    link: str
    faces: list[np.ndarray]
    colour: tuple[float, ...]


def shapes(urdf: str) -> list[Shape]:
    """All visuals that are drawn."""
    robot = ElementTree.fromstring(urdf)
    colours = {material.get("name"): material.find("color") for material in robot.iter("material")
               if material.find("color") is not None}
    return [Shape(link.get("name", ""), faces, _colour(visual, colours))
            for link in robot.findall("link") for visual in link.findall("visual") if (faces := list(_faces(visual)))]


def draw(axis, drawn: list[Shape], poses: Sequence[Callable[[str], Pose]]) -> None:
    """On 3D axes: the robot in all poses, the last one in full, those before pale."""
    points = []
    for number, link_pose in enumerate(poses, start=1):
        faces, colours = [], []
        for shape in drawn:
            R, P = link_pose(shape.link)
            faces += [P + face @ np.asarray(R).T for face in shape.faces]
            colours += [_shaded(shape.colour, face) for face in faces[-len(shape.faces):]]
        draw_polygons(axis, faces, colours, 1.0 if number == len(poses) else 0.2)
        points += faces
    low, high = (end(np.concatenate(points), axis=0) for end in (np.min, np.max))
    axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    axis.set_box_aspect(high - low, zoom=1.1)
    axis.set_axis_off()


def _colour(visual, colours) -> tuple[float, ...]:
    material = visual.find("material")
    found = None if material is None else material.find("color")
    if found is None and material is not None:
        found = colours.get(material.get("name"))
    return PLAIN if found is None else tuple(map(float, found.get("rgba").split()[:3]))


def _shaded(colour: tuple[float, ...], face: np.ndarray) -> tuple[float, ...]:
    normal = np.cross(face[1] - face[0], face[2] - face[1])
    bright = 0.72 + 0.28 * float(normal @ LIGHT / (np.linalg.norm(normal) or 1.0))
    return tuple(min(1.0, bright * part) for part in colour)


def _faces(visual) -> Iterator[np.ndarray]:
    geometry, origin = visual.find("geometry")[0], visual.find("origin")
    P, R = np.zeros(3), np.eye(3)
    if origin is not None:
        P, R = _numbers(origin, "xyz"), np.array(rpy(*_numbers(origin, "rpy")), dtype=float)
    makers = {"box": _box, "cylinder": _cylinder, "sphere": _sphere}
    for face in makers[geometry.tag](geometry) if geometry.tag in makers else ():
        yield P + face @ R.T


def _numbers(element, name: str) -> np.ndarray:
    return np.array(element.get(name, "0 0 0").split(), dtype=float)


def _box(geometry) -> Iterator[np.ndarray]:
    half = _numbers(geometry, "size") / 2.0
    for k in range(3):
        for side in (-1.0, 1.0):
            corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]], dtype=float)[::int(side)]
            face = np.empty((4, 3))
            face[:, k], face[:, (k + 1) % 3], face[:, (k + 2) % 3] = side, corners[:, 0], corners[:, 1]
            yield face * half


def _rings(rings: list[tuple[float, float]]) -> Iterator[np.ndarray]:
    """Solid of revolution about z through rings (radius, height), from the bottom up."""
    turn = 2.0 * np.pi * np.arange(SIDES + 1) / SIDES
    circles = [np.column_stack((r * np.cos(turn), r * np.sin(turn), np.full(SIDES + 1, z))) for r, z in rings]
    yield circles[0][:0:-1]
    for low, high in pairwise(circles):
        for k in range(SIDES):
            yield np.array([low[k], low[k + 1], high[k + 1], high[k]])
    yield circles[-1][:-1]


def _cylinder(geometry) -> Iterator[np.ndarray]:
    radius, half = float(geometry.get("radius")), float(geometry.get("length")) / 2.0
    return _rings([(radius, -half), (radius, half)])


def _sphere(geometry) -> Iterator[np.ndarray]:
    radius, angles = float(geometry.get("radius")), np.linspace(-1.5, 1.5, 11)
    return _rings([(radius * np.cos(a), radius * np.sin(a)) for a in angles])
