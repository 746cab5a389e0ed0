"""Functions of the kernels of forward kinematics: algorithms/kinematics.py for one URDF link of a model.

point (3,)         : in the link's frame
base_rotation (9,) : from base to world, row by row; base_position (3,), base_velocity (6,): see base_state.py
twist (6,)         : of the root, along the axes of the world, as of a platform
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...algorithms import kinematics
from ...model.tree import Model
from .store import KernelFunction


def link_pose(frame, model, gravity, options, q, point):
    """Return R and p of the link."""
    return kinematics.link_pose(model, frame, q, point)


def link_velocity(frame, model, gravity, options, q, qd, point):
    """Return the velocity of the point and the angular velocity."""
    return [kinematics.jacobian(model, frame, q, point) @ qd]


def jacobian(frame, model, gravity, options, q, point):
    """Return the Jacobian of the point."""
    return [kinematics.jacobian(model, frame, q, point)]


def jacobian_rate(frame, model, gravity, options, q, qd, point):
    """Return its rate."""
    return [kinematics.jacobian_rate(model, frame, q, qd, point)]


def free_link_pose(frame, model, gravity, options, q, point, base_rotation, base_position):
    """Return R and p of the link in the world."""
    return kinematics.link_pose(model, frame, q, point, (np.reshape(base_rotation, (3, 3)), base_position))


def free_link_velocity(frame, model, gravity, options, q, qd, point, base_rotation, base_velocity):
    """Return the velocity of the point and the angular velocity on a moving base."""
    J = kinematics.free_jacobian(model, frame, q, np.reshape(base_rotation, (3, 3)), point)
    return [J @ np.concatenate((base_velocity, qd))]


def free_jacobian(frame, model, gravity, options, q, point, base_rotation):
    """Return the Jacobian by base and joints."""
    return [kinematics.free_jacobian(model, frame, q, np.reshape(base_rotation, (3, 3)), point)]


def free_jacobian_rate(frame, model, gravity, options, q, qd, point, base_rotation, base_velocity):
    """Return its rate."""
    R = np.reshape(base_rotation, (3, 3))
    return [kinematics.free_jacobian_rate(model, frame, q, qd, R, base_velocity, point)]


BASE, MOVING = ("base_rotation", "base_position"), ("base_rotation", "base_velocity")
BLOCKS = {link_pose: ("q", "point"), link_velocity: ("q", "qd", "point"), jacobian: ("q", "point"),
          jacobian_rate: ("q", "qd", "point"), free_link_pose: ("q", "point", *BASE),
          free_link_velocity: ("q", "qd", "point", *MOVING), free_jacobian: ("q", "point", "base_rotation"),
          free_jacobian_rate: ("q", "qd", "point", *MOVING)}


def of_link(function: Callable[..., Any], model: Model, link: str) -> KernelFunction:
    """Return a function of this module for one URDF link; InputError names the links that exist."""
    return KernelFunction((function, link), partial(function, model.frame(link)), BLOCKS[function], any_base=True,
                          massless=True)
