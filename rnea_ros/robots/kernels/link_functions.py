"""What the kernels of forward kinematics evaluate: algorithms/kinematics.py for one URDF link of a model.

point (3,)         : in the link's frame
base_rotation (9,) : from base to world, row by row; base_position (3,), base_velocity (6,): see base_state.py
twist (6,)         : of the root, along the axes of the world, as of a platform
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...algorithms import kinematics
from ...model.tree import Frame, Model


@dataclass(frozen=True)
class LinkFunction:
    """A function of this module for one link; equal to another for the same link, so that a kernel store knows it again."""

    evaluate: Callable[..., Sequence[Any]]
    model: Model
    frame: Frame

    def __call__(self, options: Any, **blocks: Any) -> Sequence[Any]:
        return self.evaluate(self.model, self.frame, **blocks)


def link_pose(model, frame, q, point):
    return kinematics.link_pose(model, frame, q, point)


def link_velocity(model, frame, q, qd, point):
    return [kinematics.jacobian(model, frame, q, point) @ qd]


def jacobian(model, frame, q, point):
    return [kinematics.jacobian(model, frame, q, point)]


def jacobian_rate(model, frame, q, qd, point):
    return [kinematics.jacobian_rate(model, frame, q, qd, point)]


def free_link_pose(model, frame, q, point, base_rotation, base_position):
    return kinematics.link_pose(model, frame, q, point, (np.reshape(base_rotation, (3, 3)), base_position))


def free_link_velocity(model, frame, q, qd, point, base_rotation, base_velocity):
    J = kinematics.free_jacobian(model, frame, q, np.reshape(base_rotation, (3, 3)), point)
    return [J @ np.concatenate((base_velocity, qd))]


def free_jacobian(model, frame, q, point, base_rotation):
    return [kinematics.free_jacobian(model, frame, q, np.reshape(base_rotation, (3, 3)), point)]


def free_jacobian_rate(model, frame, q, qd, point, base_rotation, base_velocity):
    R = np.reshape(base_rotation, (3, 3))
    return [kinematics.free_jacobian_rate(model, frame, q, qd, R, base_velocity, point)]


def platform_jacobian(model, frame, q, point, base_rotation):
    return [kinematics.free_jacobian(model, frame, q, np.reshape(base_rotation, (3, 3)), point, np.eye(3))]


def platform_jacobian_rate(model, frame, q, point, base_rotation, twist):
    return [kinematics.free_jacobian_rate(model, frame, q, q, np.reshape(base_rotation, (3, 3)), twist, point, np.eye(3))]
