"""Forward kinematics of a tree: poses of its links, Jacobians of their points, and the rates of these.

Khalil, "Dynamic modeling of robots using recursive Newton-Euler techniques", section 2, equation (1), and the joint axes of
(16). Everything is seen in frame 0, or in the world where the root's own pose in it is given.

    R, p    pose of a frame: p the position of its origin, R takes vectors from it to frame 0
    J       Jacobian (6, n) of a point of a link: linear rows first, velocity of that point; then angular velocity
    Jd      rate of J along the motion

A revolute joint turns what lies beyond it about its axis z, v = z x (p - o), w = z; a prismatic one shifts it along, v = z. A
free root is six such joints, three slides and three turns along its own axes. Nothing is differentiated by hand: J is written
once, for any scalar, and Jd is its value on Taylor series in time.
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
    """Pose of a frame in another: R (3, 3) takes vectors to the other, p (3,) is the origin [m]; or (samples, ...) each."""

    R: Any
    p: Any


ORIGIN = Pose(np.eye(3), ZERO)


def within(outer, inner):
    """Pose of a frame, given in a frame whose own pose is `outer`."""
    return Pose(outer[0] @ inner[0], outer[1] + outer[0] @ inner[1])


def base_poses(model, q, root=ORIGIN):
    """Pose of every link's frame in frame 0: equation (1) along each branch. q: the n coordinates; root: of link 0."""
    poses = [Pose(*root)]
    for link, variable in zip(model.links[1:], to_links(model, q, offset=True)[1:], strict=True):
        poses.append(within(poses[link.parent], mdh.pose(link, variable)))
    return poses


def link_pose(model, frame, q, point=ZERO, root=ORIGIN):
    """Pose of a URDF link's frame, moved to a point (3,) of it. frame: model.frame(name)."""
    return within(within(base_poses(model, q, root)[frame.link], (frame.R, frame.P)), (np.eye(3), point))


# ---------------------------------------------------------------------- Jacobians


def jacobian(model, frame, q, point=ZERO):
    """(6, n) of a point (3,) of a URDF link's frame."""
    return link_jacobian(model, base_poses(model, q), frame.link, frame.P + frame.R @ point)


def jacobian_rate(model, frame, q, qd, point=ZERO):
    """(6, n), of a point that the link carries along."""
    return derivative(jacobian(model, frame, jets(q, qd), point), 1)


def free_jacobian(model, frame, q, R, point=ZERO, axes=None):
    """(6, 6 + n) in the world, the base's columns first: for its velocity along its own axes. R (3, 3): from base to world.

    axes (3, 3): the columns are other axes in the world, along which the base's velocity is seen instead.
    """
    poses = base_poses(model, q, (R, ZERO))  # no column depends on where the base is
    P = frame.P + frame.R @ point
    lever = poses[frame.link].p + poses[frame.link].R @ P
    along = np.transpose(R if axes is None else axes)
    base = [_column(sigma, z, lever) for sigma in (mdh.PRISMATIC, mdh.REVOLUTE) for z in along]
    return np.concatenate((np.transpose(base), link_jacobian(model, poses, frame.link, P)), axis=1)


def free_jacobian_rate(model, frame, q, qd, R, velocity, point=ZERO, axes=None):
    """(6, 6 + n). velocity (6,): of the base, along its own axes, or those given, which do not turn."""
    seen = R if axes is None else axes
    turning, _ = moving_pose((R, ZERO), np.concatenate((seen @ velocity[:3], seen @ velocity[3:])))
    return derivative(free_jacobian(model, frame, jets(q, qd), turning, point, axes), 1)


def moving_pose(pose, V, *rates):
    """Return a pose as a series in time, from the frame's twist and its first and second rates, as far as given.

    V (6,): velocity of the origin, angular velocity, both in the frame that the pose is seen from.
    """
    R, P = pose
    turning = [twist[3:] for twist in (V, *rates)]
    formulas: tuple[Callable, ...] = (cross, turned, turned_rate)  # derivatives of a vector that turns with the frame
    columns = [jets(x, *(f(*turning[:k + 1], x) for k, f in enumerate(formulas[:len(turning)]))) for x in np.transpose(R)]
    return np.transpose(columns), jets(P, V[:3], *(twist[:3] for twist in rates))


def points(model, attachments, q):
    """Positions (m, 3) and Jacobians (m, 6, n) of many points. attachments: [(link number, P (3,) in its frame)]"""
    poses = base_poses(model, q)
    positions = [within(poses[k], (np.eye(3), P)).p for k, P in attachments]
    found = [link_jacobian(model, poses, k, P) for k, P in attachments]
    return np.array(positions).reshape(len(attachments), 3), np.array(found).reshape(len(attachments), 6, model.n)


def link_jacobian(model, poses, k, P):
    """Return the Jacobian (6, n) of the point P (3,) in the frame of link k, along the axes in which the poses are seen."""
    p = poses[k].p + poses[k].R @ P
    columns = [np.zeros(6)] * model.n
    while k:
        link, (R, o) = model.links[k], poses[k]
        if link.coordinate != NO_COORDINATE:
            columns[link.coordinate] = columns[link.coordinate] + _column(link.sigma, R[:, 2], p - o) * link.multiplier
        k = link.parent
    return np.array(columns).reshape(model.n, 6).T


def _column(sigma, z, lever):
    """(6,) velocity of a point under unit velocity of a joint with axis z (16). lever: from the axis to the point."""
    return np.concatenate((z, ZERO) if sigma == mdh.PRISMATIC else (cross(z, lever), z))
