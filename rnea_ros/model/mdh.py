"""Modified Denavit-Hartenberg geometry of trees (Khalil and Kleinfinger 1986; khalil-rne section 2, equation 1).

Frame j in the frame of its antecedent i:

    iTj = Rot(z, gamma) Tran(z, b) Rot(x, alpha) Tran(x, d) Rot(z, theta) Tran(z, r)

with z_j along the axis of joint j. The first four are constant; theta (sigma = 0) or r (sigma = 1) holds the
joint variable; sigma = 2 is a frame fixed in its antecedent.

`assign_mdh_frames` assigns the frames of a tree of joint axes. Input: bodies, each with the constant pose of its frame U in
its parent's, and a joint axis through the origin of U. Output: for each body a frame M, fixed to it, with z along the joint
axis and x along the common normal to a succeeding axis.

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
from typing import NamedTuple

import numpy as np

from ..algebra.vectors import cross, rot_x, rot_z, skew

REVOLUTE, PRISMATIC, FIXED = 0, 1, 2

ANGLE_TOLERANCE = 1e-14  # rad; what composing rotations in doubles leaves, not what an author's rounded pi leaves
NEARLY_PARALLEL = 0.05  # rad; closer axes have their common normal too far away to be of use
LENGTH_TOLERANCE = 1e-15  # m


class Parameters(NamedTuple):
    """MDH parameters: gamma, alpha, theta in rad; b, d, r in m. theta and r at joint variable zero."""

    gamma: float
    b: float
    alpha: float
    d: float
    theta: float
    r: float


def cos_sin(angle: float, q=None):
    """Return cosine and sine of a constant angle, or of angle + q for any scalar q.

    Multiples of a right angle are exact: kernels then omit zeros, and exchange cosine and sine instead of adding pi/2 to q.
    """
    quarter = round(angle / (np.pi / 2))
    right = abs(angle - quarter * (np.pi / 2)) <= ANGLE_TOLERANCE
    if q is None:
        q = 0.0 if right else angle
    elif not right:
        q = q + angle
    c, s = np.cos(q), np.sin(q)
    return ((c, s), (-s, c), (-c, -s), (s, -c))[quarter % 4 if right else 0]


def constant_part(p: Parameters) -> tuple[np.ndarray, np.ndarray]:
    """Return rotation (3, 3) and translation (3,) of Rot(z, gamma) Tran(z, b) Rot(x, alpha) Tran(x, d)."""
    Rz = rot_z(*cos_sin(p.gamma))
    return Rz @ rot_x(*cos_sin(p.alpha)), Rz @ np.array([p.d, 0.0, p.b])


def pose(link, q):
    """Return rotation iRj (3, 3) and position iPj (3,) of a link's frame in its antecedent's, equation (1). q: any scalar."""
    c, s = cos_sin(link.theta, q if link.sigma == REVOLUTE else None)
    r = link.r + q if link.sigma == PRISMATIC else link.r
    return link.C @ rot_z(c, s), link.D + link.C[:, 2] * r


def from_pose(R: np.ndarray, P: np.ndarray, on_normal: bool = False) -> Parameters:
    """Return the six parameters of a constant pose (R, P).

    on_normal: x_i was laid along the common normal of z_i and z_j, so gamma = b = 0 by construction.
    Parallel axes leave b and r (and, if they coincide, gamma and theta) undetermined: then b = 0, or gamma = 0.
    The parameters are exact for any pose, but b and r grow without bound as the axes approach parallel.
    """
    if np.hypot(R[0, 2], R[1, 2]) <= ANGLE_TOLERANCE:  # parallel or anti-parallel
        return _parallel(R, P, on_normal)
    gamma = 0.0 if on_normal else _snap(np.arctan2(R[0, 2], -R[1, 2]))
    Rg = rot_z(*cos_sin(gamma)).T
    R, P = Rg @ R, Rg @ P
    alpha = _snap(np.arctan2(-R[1, 2], R[2, 2]))
    ca, sa = cos_sin(alpha)
    theta = _angle_about_z(rot_x(ca, sa).T @ R)
    r = -P[1] / sa
    return Parameters(gamma, 0.0 if on_normal else _clean(P[2] - ca * r), alpha, _clean(P[0]), theta, _clean(r))


def _parallel(R: np.ndarray, P: np.ndarray, on_normal: bool) -> Parameters:
    alpha = 0.0 if R[2, 2] > 0.0 else np.pi
    d = float(P[0]) if on_normal else float(np.hypot(P[0], P[1]))
    gamma = 0.0 if on_normal or d <= LENGTH_TOLERANCE else _snap(np.arctan2(P[1], P[0]))
    ca, sa = cos_sin(alpha)
    theta = _angle_about_z(rot_x(ca, sa).T @ rot_z(*cos_sin(gamma)).T @ R)
    return Parameters(gamma, 0.0, alpha, _clean(d), theta, _clean(ca * P[2]))


def _angle_about_z(R: np.ndarray) -> float:
    return _snap(np.arctan2(R[1, 0] - R[0, 1], R[0, 0] + R[1, 1]))


def _snap(angle: float) -> float:
    quarter = round(angle / (np.pi / 2))
    near = abs(angle - quarter * (np.pi / 2)) <= ANGLE_TOLERANCE
    return float(quarter * (np.pi / 2) if near else angle)


def _clean(length: float) -> float:
    return 0.0 if abs(length) <= LENGTH_TOLERANCE else float(length)


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
    if np.linalg.norm(n) > NEARLY_PARALLEL:
        foot = np.dot(cross(p, zc), n) / np.dot(n, n)
        towards_child = np.dot(p, n)
        if abs(towards_child) <= LENGTH_TOLERANCE * np.linalg.norm(n):  # they intersect: both ways are the same
            towards_child = np.dot(perpendicular_axis(z), n)
        return FramePose(_axes(z, n if towards_child >= 0.0 else -n), z * foot, j)
    if np.linalg.norm(n) > ANGLE_TOLERANCE:
        return _frame_without_child(z, z * np.dot(z, p))
    origin_c = p + child.R @ child_frame.P
    foot = np.dot(origin_c, z)
    aside = origin_c - z * foot
    if np.linalg.norm(aside) <= LENGTH_TOLERANCE:
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


def mdh_parameters(R: np.ndarray, P: np.ndarray, on_normal: bool) -> list[Parameters]:
    """Return one row of MDH parameters for the pose (R, P), or two with a fixed frame between."""
    if not ANGLE_TOLERANCE < np.hypot(R[0, 2], R[1, 2]) <= NEARLY_PARALLEL:
        return [from_pose(R, P, on_normal)]
    quarter = rot_x(0.0, 1.0)  # 90 degrees: z at a right angle
    return [from_pose(quarter, P), from_pose(quarter.T @ R, np.zeros(3))]


def reconstruction_error(bodies: list[TreeBody], mdh_poses: list[FramePose], links: list, numbers: list[int]) -> float:
    """Return the largest deviation of any frame from its body [m and rad], at zero and at two other poses."""
    worst, moved = 0.0, {number: j for j, number in enumerate(numbers)}  # by which joint variable a link is moved
    for q in (np.zeros(len(bodies)), np.linspace(-1.0, 1.5, len(bodies)), np.linspace(2.0, -2.5, len(bodies))):
        chain = [(np.eye(3), np.zeros(3))]
        for link in links[1:]:
            value = q[moved[len(chain)]] if len(chain) in moved else 0.0
            chain.append(_compose(chain[link.parent], pose(link, value)))
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
    if body.sigma == PRISMATIC:
        return np.eye(3), body.axis * q
    K = skew(body.axis)
    return np.eye(3) + K * np.sin(q) + K @ K * (1.0 - np.cos(q)), np.zeros(3)
