"""Where loops are cut: both frames of each cut joint, which lie upon each other while the loops are closed; and what cut
joints, contacts and wheels exert there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from visualization_msgs.msg import Marker

from rnea_ros.algorithms.closed_loops import Cut
from rnea_ros.model.tree import Frame, Model
from rnea_ros.nodes.dynamics.marks.arrows import WrenchMark
from rnea_ros.nodes.dynamics.marks.shapes import GREEN, SKY, VERMILLION, colour, marker
from rnea_ros.robots.solution import ConstraintWrench

ENDS = ((SKY, 0.12), (VERMILLION, 0.09))  # of the first and the second frame: colour, share of the size


def cut_marks(cuts: tuple[Cut, ...], model: Model, size: float) -> list[Marker]:
    """Spheres. Those on a platform are left out: its frames are in no tree."""
    found = []
    for k, cut in enumerate(cuts):
        for end, frame, (shade, share) in zip((0, 1), (cut.first, cut.second), ENDS):
            if frame.link >= 0:
                found.append(_sphere(2 * k + end, model, frame, share * size, shade))
    return found


def _sphere(number: int, model: Model, frame: Frame, size: float, shade: tuple[float, float, float]) -> Marker:
    """Its place in the frame of a URDF link that is fixed in the same link of the model."""
    name, own = next((name, own) for name, own in model.frames.items() if own.link == frame.link)
    made = marker("cut_joint", number, Marker.SPHERE, name, size, colour(shade, 0.7))
    x, y, z = np.asarray(own.R.T @ (frame.P - own.P), dtype=float).tolist()
    p = made.pose.position
    p.x, p.y, p.z = x, y, z
    return made


class ConstraintMarks:
    """Wrench of each cut joint, contact and wheel on a link, at its point, in the frame of the link.

    size, one: see WrenchMark
    """

    def __init__(self, size: float, one: Sequence[float]):
        self._size, self._one = size, one
        self._wrenches: dict[str, WrenchMark] = {}

    @property
    def marks(self) -> list[Marker]:
        return [mark for wrench in self._wrenches.values() for mark in wrench.marks]

    def fill(self, wrenches: Mapping[str, ConstraintWrench]) -> None:
        """Set the marks of all constraints, by name."""
        for name, found in wrenches.items():
            if name not in self._wrenches:
                self._wrenches[name] = WrenchMark("constraint", len(self._wrenches), found.link, self._size, self._one, GREEN)
            self._wrenches[name].fill(found.wrench)
            for mark in self._wrenches[name].marks:
                p = mark.pose.position
                p.x, p.y, p.z = map(float, found.point)
