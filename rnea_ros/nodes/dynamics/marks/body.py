"""The robot as a whole: its mass centre, the wrench that its base needs, and where that presses on the ground."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from visualization_msgs.msg import Marker

from rnea_ros import BaseState, Robot
from rnea_ros.nodes.common.robot_facts import RobotFacts
from rnea_ros.nodes.dynamics.marks.arrows import WrenchMark
from rnea_ros.nodes.dynamics.marks.shapes import SKY, VERMILLION, YELLOW, colour, marker
from rnea_ros.robots.zero_moment import zero_moment_point

NOWHERE, UNKNOWN = np.full(3, np.nan), np.full(6, np.nan)


class Body(NamedTuple):
    """In the frame of the root link; NaN where unknown.

    center_of_mass    : (3,) [m]
    base_wrench       : (6,) that what carries the base exerts on it, about the frame's origin [N, N m]
    zero_moment_point : (3,) on the plane through that origin, across gravity [m]
    """

    center_of_mass: np.ndarray
    base_wrench: np.ndarray = UNKNOWN
    zero_moment_point: np.ndarray = NOWHERE


def held(tree: Robot, motion: Sequence[np.ndarray], loads: dict[str, Any]) -> Body:
    """Of a tree on a base at rest. motion: of all its joints, (n,) each, up to the jerk."""
    forces = tree.recursion(*motion, **loads)[1]
    wrench = np.concatenate((forces.f[0], forces.n[0]))
    g = tree.gravity_vector
    weight = tree.total_mass * float(np.linalg.norm(g))
    pressed = zero_moment_point(wrench, weight, np.zeros(3), -g) if weight else NOWHERE
    return Body(tree.center_of_mass(*motion[:2]).position, wrench, pressed)


def carried(tree: Robot, motion: Sequence[np.ndarray], wrench: np.ndarray, base: BaseState | None) -> Body:
    """Return the body of a tree on a base that moves and needs a wrench. base: None where its pose is not known."""
    center = tree.center_of_mass(*motion[:2]).position
    if base is None:
        return Body(center, wrench)
    return Body(center, wrench, base.into_base(pressure_point(tree, wrench, base) - base.position))


def pressure_point(tree: Robot, wrench: np.ndarray, base: BaseState) -> np.ndarray:
    """Return the zero-moment point (3,) in the world, on the plane z = 0, of a wrench (6,) on the base along its axes."""
    force, moment = np.split(base.into_world(wrench), 2)
    weight = tree.total_mass * float(np.linalg.norm(tree.gravity_vector))
    if not weight:
        return NOWHERE
    return zero_moment_point(np.concatenate((force, moment + np.cross(base.position, force))), weight, np.zeros(3),
                             np.array([0.0, 0.0, 1.0]))


class BodyMarks:
    """In the frame of the root link."""

    def __init__(self, robot: RobotFacts, size: float, one: Sequence[float]):
        """size, one: see WrenchMark."""
        root = robot.root_link
        self._mass = marker("center_of_mass", 0, Marker.SPHERE, root, 0.2 * size, colour(YELLOW))
        self._press = marker("zero_moment_point", 0, Marker.CYLINDER, root, 0.3 * size, colour(VERMILLION))
        self._press.scale.z = 0.02 * size
        self._wrench = WrenchMark("base_wrench", 0, root, size, one, SKY)
        self.marks = [self._mass, self._press, *self._wrench.marks]

    def fill(self, body: Body) -> None:
        for mark, place in ((self._mass, body.center_of_mass), (self._press, body.zero_moment_point)):
            known = bool(np.isfinite(place).all())
            mark.action = Marker.ADD if known else Marker.DELETE
            if known:
                p = mark.pose.position
                p.x, p.y, p.z = map(float, place)
        self._wrench.fill(body.base_wrench)
