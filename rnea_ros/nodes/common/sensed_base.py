"""Motion of a base from its sensors: acceleration and jerk of its origin, as rates in the world frame.

All vectors are expressed in the axes of the base, w is its angular velocity. Sensors measure components: the rate, in the
world, of a vector with components x that change by xd is

    xd + w x x                                                                            (a)

so the angular acceleration is wd, and its own rate wdd + w x wd. Of a point at r, fixed in the base, exceed the origin's

    acceleration   wd x r + w x (w x r)                                                   (b)
    jerk           wdd x r + 2 wd x (w x r) + w x (wd x r) + w x (w x (w x r))             (c), wdd as the world sees it

Gravity is constant in the world: what an accelerometer shows, acceleration less gravity, has the jerk for its rate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rnea_ros.algebra.vectors import cross
from rnea_ros.model.tree import Model
from rnea_ros.robots.inputs.base_state import BaseState, quaternion

UPSIDE_DOWN = 1e-9  # rad; so near to half a turn its axis is lost in rounding


class SensedMotion(NamedTuple):
    """velocity, acceleration, jerk of the base, (6,) each, as base_state.py has them. Where an accelerometer was asked,
    gravity is taken off the acceleration, and the linear velocity is NaN.
    """

    velocity: np.ndarray
    acceleration: np.ndarray
    jerk: np.ndarray


class Mount(NamedTuple):
    """Pose of a frame that is fixed in the base: rotation R (3, 3) to the base, also as a quaternion; position r (3,) [m]."""

    R: np.ndarray
    turn: np.ndarray
    r: np.ndarray

    def along_base(self, linear: np.ndarray, angular: np.ndarray) -> np.ndarray:
        """Return two vectors (3,) of the frame along the axes of the base, (6,)."""
        return np.concatenate((self.R @ linear, self.R @ angular))


def mounts(model: Model) -> dict[str, Mount]:
    """Return the links of the URDF that are fixed in the base."""
    return {name: Mount(frame.R, quaternion(frame.R), frame.P) for name, frame in model.frames.items() if frame.link == 0}


def point_motion(r: np.ndarray, w: np.ndarray, acceleration: np.ndarray, jerk: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return acceleration and jerk (6,) of the point at r, from those of the origin: (b), (c)."""
    wd, wdd, v = acceleration[3:], jerk[3:], cross(w, r)
    a = acceleration[:3] + cross(wd, r) + cross(w, v)
    j = jerk[:3] + cross(wdd, r) + 2.0 * cross(wd, v) + cross(w, cross(wd, r) + cross(w, v))
    return np.concatenate((a, wd)), np.concatenate((j, wdd))


def from_imu(r: np.ndarray, signals: np.ndarray) -> SensedMotion:
    """Return the motion of the base from an IMU at r.

    signals: (3, 6) acceleration less gravity and angular velocity, their first and second derivatives
    """
    (s, w), (sd, wd), (_, wdd) = signals.reshape(3, 2, 3)
    acceleration, jerk = np.concatenate((s, wd)), np.concatenate((sd + cross(w, s), wdd + cross(w, wd)))  # (a)
    return SensedMotion(np.concatenate((np.full(3, np.nan), w)), *point_motion(-r, w, acceleration, jerk))


def from_twist(r: np.ndarray, signals: np.ndarray) -> SensedMotion:
    """Return the motion of the base from a twist at r.

    signals: (3, 6) velocity of the point at r and angular velocity, their first and second derivatives
    """
    (v, w), (vd, wd), (vdd, wdd) = signals.reshape(3, 2, 3)
    a, ad = vd + cross(w, v), vdd + cross(wd, v) + cross(w, vd)
    acceleration, jerk = np.concatenate((a, wd)), np.concatenate((ad + cross(w, a), wdd + cross(w, wd)))  # (a)
    return SensedMotion(velocity_of_origin(r, signals[0]), *point_motion(-r, w, acceleration, jerk))


def velocity_of_origin(r: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    """Return the velocity (6,) of the base from that of the point at r."""
    return np.concatenate((velocity[:3] - cross(velocity[3:], r), velocity[3:]))


def upright(force: np.ndarray, gravity: np.ndarray) -> np.ndarray:
    """Return the quaternion of a base at rest from its specific force (3,) along its axes, and gravity (3,) of the world.

    It is the shortest rotation that aligns both; the angle about the vertical is not determined.
    """
    lengths = np.linalg.norm(force) * np.linalg.norm(gravity)
    if not lengths:
        return np.array([0.0, 0.0, 0.0, 1.0])
    turn = np.append(cross(force, -gravity), lengths - force @ gravity) / lengths
    if np.linalg.norm(turn) < UPSIDE_DOWN:  # half a turn about any axis perpendicular to it
        turn = np.append(cross(force, np.eye(3)[np.argmin(np.abs(force))]), 0.0)
    return turn / np.linalg.norm(turn)


def product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the rotation q followed by p, as quaternions x y z w (4,)."""
    return np.append(p[3] * q[:3] + q[3] * p[:3] + cross(p[:3], q[:3]), p[3] * q[3] - p[:3] @ q[:3])


def inverse(q: np.ndarray) -> np.ndarray:
    """Return the inverse of a unit quaternion."""
    return q * (-1.0, -1.0, -1.0, 1.0)


def extrapolate_base(base: BaseState, seconds: float) -> BaseState:
    """Return the base after some seconds of constant velocity along its own axes."""
    if not seconds:
        return base
    turned = product(base.quaternion, _turn(0.5 * seconds * base.velocity[3:]))
    halfway = BaseState(base.position, turned / np.linalg.norm(turned), base.velocity)
    end = product(halfway.quaternion, _turn(0.5 * seconds * base.velocity[3:]))
    step = halfway.into_world(base.velocity[:3]) * seconds
    return BaseState(base.position + step, end / np.linalg.norm(end), base.velocity)


def pose_difference(one: BaseState, other: BaseState) -> tuple[float, float]:
    """Return distance [m] and angle [rad] between two bases."""
    turn = product(inverse(one.quaternion), other.quaternion)
    angle = 2.0 * np.arctan2(np.linalg.norm(turn[:3]), abs(turn[3]))
    return float(np.linalg.norm(other.position - one.position)), float(angle)


def _turn(vector: np.ndarray) -> np.ndarray:
    """Return the quaternion of a rotation vector (3,)."""
    half = 0.5 * float(np.linalg.norm(vector))
    return np.append(vector * (0.5 * np.sinc(half / np.pi)), np.cos(half))
