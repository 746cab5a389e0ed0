"""Velocity limits that depend on the position: a joint may move no faster than it can be stopped before its end.

    qd <=  max(0, -o + sqrt(2 a (upper - q)))          and never above max_velocity
    qd >= -max(0, -o + sqrt(2 a (q - lower)))

as Franka publishes them (libfranka, rate_limiting.h and joint_velocity_limits.h): o is an offset of the velocity, a the
deceleration, and the positions lie a little beyond those of the joint.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

LEAST = 1e-9  # rad/s, m/s; where none is allowed, a share of it is large, not infinite


class VelocityByPosition(NamedTuple):
    """Of one joint; units rad, s, or m, s."""

    joint: str
    velocity_offset: float
    deceleration_limit: float
    lower_position_limit: float
    upper_position_limit: float


class VelocityLimits:
    """Limits of joints with a limit of their own, max_velocity (n,), NaN where unknown."""

    def __init__(self, joint_names: Sequence[str], max_velocity: np.ndarray, by_position: Sequence[VelocityByPosition]):
        known = [one for one in by_position if one.joint in joint_names]
        self.joints = [joint_names.index(one.joint) for one in known]
        self.most = np.asarray(max_velocity, dtype=float)
        numbers = np.array([one[1:] for one in known]).reshape(-1, 4).T
        self.zones = numbers[0], 2.0 * numbers[1], numbers[2:]  # o, 2 a, both ends

    def __call__(self, q: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """(..., n) how fast each joint may be at q (..., n) the way it goes, by the sign of direction (..., n)."""
        found = np.broadcast_to(self.most, q.shape).copy()
        k, (offset, twice, (lower, upper)) = self.joints, self.zones
        way = np.where(direction[..., k] < 0.0, q[..., k] - lower, upper - q[..., k])
        allowed = np.sqrt(np.maximum(twice * way, 0.0)) - offset
        found[..., k] = np.minimum(found[..., k], np.maximum(allowed, 0.0))
        return found
