"""The robot as a whole: its mass centre, the wrench on its base, and the zero-moment point on the ground."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rnea_ros import BaseState
from rnea_ros.robots.moving_tree import zero_moment_point
from rnea_ros.robots.tree import TreeDynamics

UNKNOWN_POINT, UNKNOWN_WRENCH = np.full(3, np.nan), np.full(6, np.nan)


class WholeBody(NamedTuple):
    """Quantities in the frame of the root link; NaN where unknown.

    center_of_mass    : (3,) [m]
    base_wrench       : (6,) exerted on the base by what carries it, about the frame's origin [N, N m]
    zero_moment_point : (3,) on the plane through that origin, normal to gravity [m]
    """

    center_of_mass: np.ndarray
    base_wrench: np.ndarray = UNKNOWN_WRENCH
    zero_moment_point: np.ndarray = UNKNOWN_POINT


def on_fixed_base(tree: TreeDynamics, motion: Sequence[np.ndarray], loads: dict[str, Any]) -> WholeBody:
    """Return the whole body of a tree on a base at rest. motion: of all its joints, (n,) each, up to the jerk."""
    forces = tree.recursion(*motion, **loads)[1]
    wrench = np.concatenate((forces.f[0], forces.n[0]))
    g = tree.gravity_vector
    weight = tree.total_mass * float(np.linalg.norm(g))
    point = zero_moment_point(wrench, weight, np.zeros(3), -g) if weight else UNKNOWN_POINT
    return WholeBody(tree.center_of_mass(*motion[:2]).position, wrench, point)


def on_moving_base(tree: TreeDynamics, motion: Sequence[np.ndarray], wrench: np.ndarray, base: BaseState | None) -> WholeBody:
    """Return the whole body of a tree on a base that moves and needs a wrench. base: None where its pose is not known."""
    center = tree.center_of_mass(*motion[:2]).position
    if base is None:
        return WholeBody(center, wrench)
    return WholeBody(center, wrench, base.into_base(zero_moment_point_of(tree, wrench, base) - base.position))


def zero_moment_point_of(tree: TreeDynamics, wrench: np.ndarray, base: BaseState) -> np.ndarray:
    """Return the zero-moment point (3,) in the world, on the plane z = 0, of a wrench (6,) on the base along its axes."""
    force, moment = np.split(base.into_world(wrench), 2)
    weight = tree.total_mass * float(np.linalg.norm(tree.gravity_vector))
    if not weight:
        return UNKNOWN_POINT
    return zero_moment_point(np.concatenate((force, moment + np.cross(base.position, force))), weight, np.zeros(3),
                             np.array([0.0, 0.0, 1.0]))
