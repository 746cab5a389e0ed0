"""Where the ground holds a robot: the zero-moment point of what it exerts."""

from __future__ import annotations

import numpy as np

from ..algebra.arrays import Array

LEAST = 1e-9  # of the weight: with less than that nothing presses on the ground


def zero_moment_point(reaction: Array, weight: float, ground: Array, normal: Array) -> Array:
    """The point (3,) or (samples, 3) of a plane about which the ground's reaction has no tilting moment [m].

    reaction : (6,) or (samples, 6): force, and moment about the origin [N, N m]
    weight   : of the robot [N]; ground: a point of the plane; normal: out of it, of any length
    NaN while nothing presses on the ground.
    """
    up = normal / np.linalg.norm(normal)
    f, n = np.split(reaction, 2, axis=-1)
    pressure = (f @ up)[..., None]
    return ground + np.cross(up, n - np.cross(ground, f)) / np.where(pressure > LEAST * weight, pressure, np.nan)
