"""3-vectors, rotations and inertias about a point, for any scalar (float, complex, traced symbol).

Arrays are small numpy arrays, of dtype object where symbols are inside. The rule for products is
array first, scalar second: ``z * qd``. 6-vectors have their linear part first.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]  # type of returned arrays
Z = np.array([0.0, 0.0, 1.0])
ZERO = np.zeros(3)


def cross(a, b):
    """Return the cross product of two 3-vectors."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def skew(a):
    """Return the matrix of the cross product: ``skew(a) @ b == cross(a, b)``."""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def rot_x(c, s):
    """Return the rotation about x for the cosine and sine of the angle."""
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def rot_z(c, s):
    """Return the rotation about z for the cosine and sine of the angle."""
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def rpy(roll, pitch, yaw):
    """Return the rotation of URDF's ``rpy`` [rad]: about the fixed axes x, then y, then z."""
    cr, sr, cp, sp, cy, sy = np.cos(roll), np.sin(roll), np.cos(pitch), np.sin(pitch), np.cos(yaw), np.sin(yaw)
    rot_y = np.array([[cp, 0.0, sp], [0.0, 1.0, 0.0], [-sp, 0.0, cp]])
    return rot_z(cy, sy) @ rot_y @ rot_x(cr, sr)


def rpy_angles(R):
    """Return roll, pitch and yaw [rad] of a rotation (3, 3), as in URDF; at pitch = +-90 degrees, roll is zero."""
    (xx, xy, _), (yx, yy, _), (zx, zy, zz) = np.asarray(R).tolist()
    across = math.hypot(xx, yx)
    pitch = math.atan2(-zx, across)
    if across < 1e-9:
        return 0.0, pitch, math.atan2(-xy, yy)
    return math.atan2(zy, zz), pitch, math.atan2(yx, xx)


def quaternion(x, y, z, w):
    """Return the rotation of a quaternion x, y, z, w of any length above zero."""
    v, s = np.array([x, y, z]), 2.0 / (x * x + y * y + z * z + w * w)
    return np.eye(3) + s * (w * skew(v) + skew(v) @ skew(v))


def shift(J, ms, m, p):
    """Return inertia and first moments (J, ms) about a reference point from which the body is displaced by p.

    J (3, 3) about the old point [kg m^2], ms (3,) first moments [kg m], m mass [kg], p (3,) displacement of the body [m].
    From J = sum m_k (|x_k|^2 1 - x_k x_k^T) with x_k -> x_k + p.
    """
    pms = np.outer(p, ms)
    cross_terms = 2.0 * np.dot(p, ms) * np.eye(3) - pms - pms.T
    return J + cross_terms + m * (np.dot(p, p) * np.eye(3) - np.outer(p, p)), ms + m * np.asarray(p)


def rotate_inertia(R, J, ms):
    """Return (J, ms) expressed in another frame. R transforms vectors of the old frame to the new one."""
    return R @ J @ R.T, R @ ms
