"""Forward kinematics of a tree: poses of links, Jacobians of points, and time derivatives of Jacobians.

Khalil, "Dynamic modeling of robots using recursive Newton-Euler techniques", section 2, equation (1), and the joint axes of
(16). Quantities are expressed in frame 0, or in the world frame if the pose of the root is given.

    R, p    pose of a frame: p is the position of its origin, R transforms vectors from it to frame 0
    J       Jacobian (6, n) of a point of a link: velocity of the point, then angular velocity
    Jd      time derivative of J along the motion

A revolute joint moves points beyond it with v = z x (p - o) and w = z, a prismatic joint with v = z. A floating root is
equivalent to six joints, three prismatic and three revolute, along its own axes. J is implemented for any scalar type; Jd is
obtained by evaluating it on Taylor series in time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..algebra.taylor import derivative, jets
from ..algebra.vectors import ZERO, cross
from ..model import mdh
from ..model.tree import NO_COORDINATE
from .joint_dynamics import to_links
from .torque_rate import turned, turned_rate


class Pose(NamedTuple):
    """Pose of a frame in another frame: R (3, 3) transforms vectors to it, p (3,) is the origin [m]; or (samples, ...)."""

    R: Any
    p: Any


ORIGIN = Pose(np.eye(3), ZERO)


def within(outer, inner):
    """Return the pose `inner`, which is given in the frame of the pose `outer`, in the reference frame of `outer`."""
    return Pose(outer[0] @ inner[0], outer[1] + outer[0] @ inner[1])


def base_poses(model, q, root=ORIGIN):
    """Return the pose of every link frame in frame 0, equation (1). q: (n,) coordinates; root: pose of link 0."""
    poses = [Pose(*root)]
    for link, variable in zip(model.links[1:], to_links(model, q, offset=True)[1:], strict=True):
        poses.append(within(poses[link.parent], mdh.pose(link, variable)))
    return poses


def link_pose(model, frame, q, point=ZERO, root=ORIGIN):
    """Return the pose of the frame of a URDF link, moved to a point (3,) in it. frame: model.frame(name); root: of link 0."""
    return within(within(base_poses(model, q, root)[frame.link], (frame.R, frame.P)), (np.eye(3), point))


# ---------------------------------------------------------------------- Jacobians


def jacobian(model, frame, q, point=ZERO):
    """Return the Jacobian (6, n) of a point (3,) in the frame of a URDF link."""
    return link_jacobian(model, base_poses(model, q), frame.link, frame.P + frame.R @ point)


def jacobian_rate(model, frame, q, qd, point=ZERO):
    """Return the time derivative (6, n) of the Jacobian of a point that is fixed to the link."""
    return derivative(jacobian(model, frame, jets(q, qd), point), 1)


def free_jacobian(model, frame, q, R, point=ZERO, axes=None):
    """Return the Jacobian (6, 6 + n) in the world frame; the first six columns are those of the base velocity in its frame.

    R (3, 3)    : rotation from base to world
    axes (3, 3) : columns are other axes in the world, in which the base velocity is expressed instead
    """
    poses = base_poses(model, q, (R, ZERO))  # no column depends on where the base is
    P = frame.P + frame.R @ point
    lever = poses[frame.link].p + poses[frame.link].R @ P
    along = np.transpose(R if axes is None else axes)
    base = [_column(sigma, z, lever) for sigma in (mdh.PRISMATIC, mdh.REVOLUTE) for z in along]
    return np.concatenate((np.transpose(base), link_jacobian(model, poses, frame.link, P)), axis=1)


def free_jacobian_rate(model, frame, q, qd, R, velocity, point=ZERO, axes=None):
    """Return the time derivative (6, 6 + n) of free_jacobian. velocity (6,): of the base, in its frame or constant `axes`."""
    seen = R if axes is None else axes
    turning, _ = moving_pose((R, ZERO), np.concatenate((seen @ velocity[:3], seen @ velocity[3:])))
    return derivative(free_jacobian(model, frame, jets(q, qd), turning, point, axes), 1)


def moving_pose(pose, V, *rates):
    """Return a pose as a Taylor series in time, from the twist of the frame and up to two of its time derivatives.

    V (6,): velocity of the origin and angular velocity, both expressed in the reference frame
    """
    R, P = pose
    turning = [twist[3:] for twist in (V, *rates)]
    formulas: tuple[Callable, ...] = (cross, turned, turned_rate)  # derivatives of a vector that turns with the frame
    columns = [jets(x, *(f(*turning[:k + 1], x) for k, f in enumerate(formulas[:len(turning)]))) for x in np.transpose(R)]
    return np.transpose(columns), jets(P, V[:3], *(twist[:3] for twist in rates))


def points(model, attachments, q):
    """Return positions (m, 3) and Jacobians (m, 6, n) of several points. attachments: [(link number, P (3,) in its frame)]"""
    poses = base_poses(model, q)
    positions = [within(poses[k], (np.eye(3), P)).p for k, P in attachments]
    found = [link_jacobian(model, poses, k, P) for k, P in attachments]
    return np.array(positions).reshape(len(attachments), 3), np.array(found).reshape(len(attachments), 6, model.n)


def link_jacobian(model, poses, k, P):
    """Return the Jacobian (6, n) of a point P (3,) in the frame of link k, expressed in the frame of the poses."""
    p = poses[k].p + poses[k].R @ P
    columns = [np.zeros(6)] * model.n
    while k:
        link, (R, o) = model.links[k], poses[k]
        if link.coordinate != NO_COORDINATE:
            columns[link.coordinate] = columns[link.coordinate] + _column(link.sigma, R[:, 2], p - o) * link.multiplier
        k = link.parent
    return np.array(columns).reshape(model.n, 6).T


def _column(sigma, z, lever):
    """Return the velocity (6,) of a point for unit velocity of a joint with axis z, (16). lever: from the axis to the point.
    """
    return np.concatenate((z, ZERO) if sigma == mdh.PRISMATIC else (cross(z, lever), z))
