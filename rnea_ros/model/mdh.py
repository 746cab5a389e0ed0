"""Modified Denavit-Hartenberg geometry of trees (Khalil and Kleinfinger 1986; khalil-rne section 2, equation 1).

Frame j in the frame of its antecedent i:

    iTj = Rot(z, gamma) Tran(z, b) Rot(x, alpha) Tran(x, d) Rot(z, theta) Tran(z, r)

with z_j along the axis of joint j. The first four are constant; theta (sigma = 0) or r (sigma = 1) holds the
joint variable; sigma = 2 is a frame fixed in its antecedent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..algebra.vectors import rot_x, rot_z

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
