"""Wrenches from one link's frame to another's: the transform of the six numbers, and its rate as both links move.

Seen from link i, frame j stands at (R, p) and moves with v = dp/dt and w, all along the axes of i. Then (as khalil-rne (23))

    f_i = R f_j                 df_i/dt = R df_j/dt + w x f_i
    n_i = R n_j + p x f_i       dn_i/dt = R dn_j/dt + w x R n_j + v x f_i + p x df_i/dt
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..algebra.vectors import skew
from ..model.tree import Model
from .tree import TreeDynamics


class WrenchTransform(NamedTuple):
    """X (6, 6) takes force and moment about the frame's origin from the frame to the link; X_rate (6, 6) is its rate."""

    X: np.ndarray
    X_rate: np.ndarray

    def __call__(self, wrench: np.ndarray, rate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Wrench and rate of its six numbers (6,) in the link's frame, from those in the other frame."""
        return self.X @ wrench, self.X @ rate + self.X_rate @ wrench


def rigid_transform(model: Model, link: str, frame: str) -> WrenchTransform | None:
    """Return the transform from a frame that is fixed in a link; None if joints are between them."""
    here, there = model.frame(link), model.frame(frame)
    if here.link != there.link:
        return None
    return _transform(here.R.T @ there.R, here.R.T @ (there.P - here.P), np.zeros(3), np.zeros(3))


def moving_transform(robot: TreeDynamics, link: str, frame: str, q: np.ndarray, qd: np.ndarray) -> WrenchTransform:
    """Return the transform from any frame of the robot, at one sample q, qd (n,)."""
    here, there = robot.link_pose(link, q), robot.link_pose(frame, q)
    own, other = robot.link_velocity(link, q, qd), robot.link_velocity(frame, q, qd)
    away, turn, inward = there.p - here.p, other[3:] - own[3:], here.R.T
    drift = other[:3] - own[:3] - skew(own[3:]) @ away
    return _transform(inward @ there.R, inward @ away, inward @ drift, inward @ turn)


def _transform(R: np.ndarray, p: np.ndarray, v: np.ndarray, w: np.ndarray) -> WrenchTransform:
    X, X_rate = np.zeros((2, 6, 6))
    R_rate = skew(w) @ R
    X[:3, :3] = X[3:, 3:] = R
    X[3:, :3] = skew(p) @ R
    X_rate[:3, :3] = X_rate[3:, 3:] = R_rate
    X_rate[3:, :3] = skew(v) @ R + skew(p) @ R_rate
    return WrenchTransform(X, X_rate)
