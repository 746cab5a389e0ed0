"""Modified Denavit-Hartenberg frames for a tree of joint axes (khalil-rne section 2).

Input: bodies, each with the constant pose of its frame U in its parent's, and a joint axis through the origin of U.
Output: for each body a frame M, fixed to it, with z along the joint axis and x along the common normal to a succeeding axis.

Which succeeding axis, and what where the common normal is not unique or not usable:
* several children: the first one; the others get gamma and b;
* intersecting axes: origin at the intersection, x along z_i x z_j or against it, whichever is nearer to an axis of U;
* parallel or anti-parallel axes: the normal through the child's origin, so that the child's r is zero;
* coincident axes: the child's own origin and x, so that the child's theta and r are zero;
* nearly parallel axes, whose common normal may lie hundreds of metres away (calibrated arms): the normal is not used, and a
  fixed frame (sigma = 2) with its z at a right angle keeps every parameter of the order of the link's size;
* leaves: origin of U, x along an axis of U.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..algebra.vectors import cross, rot_x, skew
from . import mdh


@dataclass
class TreeBody:
    """Rigid body while the tree is built. R, P: pose of its frame U in the parent's U at joint variable zero; axis in U."""

    name: str
    joint: str
    parent: int
    sigma: int
    R: np.ndarray
    P: np.ndarray
    axis: np.ndarray
    m: float = 0.0
    ms: np.ndarray = field(default_factory=lambda: np.zeros(3))
    J: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))


@dataclass
class FramePose:
    """Pose (R, P) of frame M in U. normal_to: index of the child whose common normal defines x, 0 if none."""

    R: np.ndarray
    P: np.ndarray
    normal_to: int = 0


def assign_mdh_frames(bodies: list[TreeBody]) -> list[FramePose]:
    """Return frame M of every body, leaves first: a parallel axis depends on its child. bodies[0] is the root, whose M is
    U.
    """
    mdh_poses = [FramePose(np.eye(3), np.zeros(3)) for _ in bodies]
    successor = {body.parent: j for j, body in reversed(list(enumerate(bodies))) if j}
    for i in range(len(bodies) - 1, 0, -1):
        body, j = bodies[i], successor.get(i, 0)
        mdh_poses[i] = _along_normal(body, bodies[j], mdh_poses[j], j) if j else _frame_without_child(body.axis, np.zeros(3))
    return mdh_poses


def _along_normal(body: TreeBody, child: TreeBody, child_frame: FramePose, j: int) -> FramePose:
    z, zc, p = body.axis, child.R @ child.axis, child.P
    n = cross(z, zc)
    if np.linalg.norm(n) > mdh.NEARLY_PARALLEL:
        foot = np.dot(cross(p, zc), n) / np.dot(n, n)
        towards_child = np.dot(p, n)
        if abs(towards_child) <= mdh.LENGTH_TOLERANCE * np.linalg.norm(n):  # they intersect: both ways are the same
            towards_child = np.dot(perpendicular_axis(z), n)
        return FramePose(_axes(z, n if towards_child >= 0.0 else -n), z * foot, j)
    if np.linalg.norm(n) > mdh.ANGLE_TOLERANCE:
        return _frame_without_child(z, z * np.dot(z, p))
    origin_c = p + child.R @ child_frame.P
    foot = np.dot(origin_c, z)
    aside = origin_c - z * foot
    if np.linalg.norm(aside) <= mdh.LENGTH_TOLERANCE:
        aside = child.R @ child_frame.R[:, 0]
    return FramePose(_axes(z, aside), z * foot, j)


def _frame_without_child(z: np.ndarray, origin: np.ndarray) -> FramePose:
    return FramePose(_axes(z, perpendicular_axis(z)), origin)


def perpendicular_axis(z: np.ndarray) -> np.ndarray:
    """Return the axis of the frame that is closest to perpendicular to z, made perpendicular: zeros of a URDF stay zero."""
    order = np.roll(np.arange(3), -(int(np.abs(z).argmax()) + 1))  # cyclic: z gives x, x gives y, y gives z
    x = np.eye(3)[min(order, key=lambda k: round(abs(float(z[k])), 9))]
    return _axes(z, x)[:, 0]


def _axes(z: np.ndarray, x: np.ndarray) -> np.ndarray:
    x = x / np.linalg.norm(x)
    x = x - z * np.dot(z, x)
    x = x / np.linalg.norm(x)
    return np.column_stack((x, cross(z, x), z))


def relative_pose(bodies: list[TreeBody], mdh_poses: list[FramePose], j: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the pose of frame M of body j in frame M of its parent, at joint variable zero."""
    body, here = bodies[j], mdh_poses[j]
    above = mdh_poses[body.parent]
    R, P = body.R @ here.R, body.P + body.R @ here.P
    return above.R.T @ R, above.R.T @ (P - above.P)


def mdh_parameters(R: np.ndarray, P: np.ndarray, on_normal: bool) -> list[mdh.Parameters]:
    """Return one row of MDH parameters for the pose (R, P), or two with a fixed frame between."""
    if not mdh.ANGLE_TOLERANCE < np.hypot(R[0, 2], R[1, 2]) <= mdh.NEARLY_PARALLEL:
        return [mdh.from_pose(R, P, on_normal)]
    quarter = rot_x(0.0, 1.0)  # 90 degrees: z at a right angle
    return [mdh.from_pose(quarter, P), mdh.from_pose(quarter.T @ R, np.zeros(3))]


def reconstruction_error(bodies: list[TreeBody], mdh_poses: list[FramePose], links: list, numbers: list[int]) -> float:
    """Return the largest deviation of any frame from its body [m and rad], at zero and at two other poses."""
    worst, moved = 0.0, {number: j for j, number in enumerate(numbers)}  # by which joint variable a link is moved
    for q in (np.zeros(len(bodies)), np.linspace(-1.0, 1.5, len(bodies)), np.linspace(2.0, -2.5, len(bodies))):
        chain = [(np.eye(3), np.zeros(3))]
        for link in links[1:]:
            value = q[moved[len(chain)]] if len(chain) in moved else 0.0
            chain.append(_compose(chain[link.parent], mdh.pose(link, value)))
        truth = [(np.eye(3), np.zeros(3))]
        for body, value in zip(bodies[1:], q[1:], strict=True):
            truth.append(_compose(_compose(truth[body.parent], (body.R, body.P)), _motion(body, value)))
        for j, frame in enumerate(mdh_poses):
            R, P = _compose(truth[j], (frame.R, frame.P))
            worst = max(worst, float(np.abs(chain[numbers[j]][0] - R).max()), float(np.abs(chain[numbers[j]][1] - P).max()))
    return worst


def _compose(a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return a[0] @ b[0], a[1] + a[0] @ b[1]


def _motion(body: TreeBody, q: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the motion of a joint by the URDF's axis, without MDH parameters."""
    if body.sigma == mdh.PRISMATIC:
        return np.eye(3), body.axis * q
    K = skew(body.axis)
    return np.eye(3) + K * np.sin(q) + K @ K * (1.0 - np.cos(q)), np.zeros(3)
