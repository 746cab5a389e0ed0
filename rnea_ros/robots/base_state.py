"""State of a base that moves: where it is, how it is turned, how fast it goes; and what follows from the rate of each.

Conventions, for all of the package:

* pose: position of the base link's origin in the world, quaternion x y z w that takes vectors from the base to the world;
* velocity: of the origin, then angular, both relative to the world and seen along the axes of the base (a body twist);
* acceleration: second time derivative of the origin's position, then time derivative of the angular velocity, both taken in
  the world and then seen along the axes of the base. An accelerometer at the origin that hangs still in free fall shows this
  less gravity. It is often called classical; `spatial` gives the body's spatial acceleration, which Pinocchio uses, and which
  is the rate of the six numbers of `velocity`: linear part less w x v, angular part the same;
* jerk: time derivatives of both accelerations, taken in the world and then seen along the axes of the base.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..algebra.taylor import Jet, derivative, jets
from ..algebra.vectors import cross, rpy
from ..errors import InputError, shown
from ..model.tree import frozen
from . import validation

QUATERNION_SLACK = 1e-3  # a longer way from unit length is no rounding


@dataclass(frozen=True, eq=False)
class BaseState:
    """Pose and velocity of a base, and its acceleration and jerk where its motion is given; see the module for conventions.

    position (3,) [m], quaternion (4,) x y z w, velocity (6,) [m/s, rad/s]; or (samples, ...) each
    acceleration, jerk : (6,) or (samples, 6) each; a base of which neither is given is free
    rates : instead of these, rates (k, 6) or (samples, k, 6) of the six numbers of `velocity` from the first up. Elastic
            joints on a base whose motion is given need `order` - 1 of them
    """

    position: Any = (0.0, 0.0, 0.0)
    quaternion: Any = (0.0, 0.0, 0.0, 1.0)
    velocity: Any = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    acceleration: Any = None
    jerk: Any = None
    rates: Any = None

    def __post_init__(self) -> None:
        self._check_motion()
        if self._is_plain():
            return
        for name, size in (("position", 3), ("quaternion", 4), ("velocity", 6)):
            object.__setattr__(self, name, np.array(_block(name, getattr(self, name), size)))
        length = np.linalg.norm(self.quaternion, axis=-1, keepdims=True)
        if (np.abs(length - 1.0) > QUATERNION_SLACK).any():
            raise InputError(f"base quaternion {self.quaternion.tolist()!r:.120} has length {length.ravel()[0]:.6g}; it must "
                             "be 1, in the order x y z w")
        object.__setattr__(self, "quaternion", self.quaternion / length)

    def _check_motion(self) -> None:
        for name in ("acceleration", "jerk"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, _block(name, value, 6))
        if self.rates is not None:
            rates = validation.numbers("base rates", self.rates)
            if rates.ndim not in (2, 3) or rates.shape[-1] != 6 or not np.isfinite(rates).all():
                raise InputError(f"base rates has shape {rates.shape}; (k, 6) or (samples, k, 6) finite numbers are needed")
            if self.acceleration is not None or self.jerk is not None:
                raise InputError("base: rates are given beside acceleration or jerk; give one of them")
            object.__setattr__(self, "rates", rates)

    def _is_plain(self) -> bool:
        """Convert tuples of finite floats, as messages have them, without the checks that other values need; return whether
        that is all.
        """
        p, q, v = self.position, self.quaternion, self.velocity
        if not (type(p) is type(q) is type(v) is tuple and (len(p), len(q), len(v)) == (3, 4, 6)):
            return False
        numbers = p + q + v
        if set(map(type, numbers)) != {float} or not math.isfinite(sum(numbers)):
            return False
        length = math.hypot(*q)
        if abs(length - 1.0) > QUATERNION_SLACK:
            return False
        for name, array in (("position", np.array(p)), ("quaternion", np.array(q) / length), ("velocity", np.array(v))):
            object.__setattr__(self, name, array)
        return True

    @property
    def is_given(self) -> bool:
        """True where the base's motion is given by acceleration, jerk or rates."""
        return self.acceleration is not None or self.jerk is not None or self.rates is not None

    @property
    def free(self) -> BaseState:
        """Pose and velocity alone, as of a free base."""
        return self.with_motion()

    def with_motion(self, acceleration: Any = None, jerk: Any = None, rates: Any = None) -> BaseState:
        """Return the same state with a given motion."""
        twin = object.__new__(BaseState)
        twin.__dict__.update(self.__dict__, acceleration=acceleration, jerk=jerk, rates=rates)
        twin._check_motion()
        return twin

    def arrays(self) -> list[np.ndarray]:
        """Return all that is given, (size,) or (samples, size) each."""
        motion = [self.acceleration, self.jerk]
        if self.rates is not None and self.rates.ndim == 3:
            motion.append(self.rates[:, 0])
        return [self.position, self.quaternion, self.velocity, *(value for value in motion if value is not None)]

    def at(self, k: int) -> BaseState:
        """Return one of many samples."""
        def row(value: Any, dimensions: int = 2) -> Any:
            return value[k] if value is not None and value.ndim == dimensions else value

        return BaseState(row(self.position), row(self.quaternion), row(self.velocity), row(self.acceleration), row(self.jerk),
                         row(self.rates, 3))

    def velocity_rates(self) -> np.ndarray:
        """Return rates (k, 6) of the six numbers of `velocity` from the first up: two of acceleration and jerk, or `rates`."""
        if self.rates is not None:
            return np.asarray(self.rates)
        a, j = (np.zeros(6) if value is None else value for value in (self.acceleration, self.jerk))
        v, w = self.velocity[:3], self.velocity[3:]
        first = self.spatial(a)
        wd = first[3:]
        # a = v' + w x v; its derivative in the world, seen along the base, is a' + w x a
        linear = j[:3] - np.cross(w, a[:3]) - np.cross(wd, v) - np.cross(w, first[:3])
        return np.array([first, np.concatenate((linear, j[3:] - np.cross(w, wd)))])

    def moved_by(self, rates: np.ndarray) -> BaseState:
        """Return the motion at this pose of the numbers (3, 6) of the velocity and their first and second rates."""
        return BaseState(self.position, self.quaternion, rates[0], base_acceleration(rates), base_jerk(rates))

    @cached_property
    def turn(self) -> np.ndarray:
        """(9,) or (samples, 9): the rotation, row by row, as kernels take it."""
        return frozen(self.rotation.reshape(*self.rotation.shape[:-2], 9))

    @cached_property
    def rotation(self) -> np.ndarray:
        """(3, 3) or (samples, 3, 3): from base to world."""
        many = self.quaternion.ndim > 1
        x, y, z, w = np.moveaxis(self.quaternion, -1, 0) if many else self.quaternion.tolist()  # floats are quicker
        rows = [[1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
                [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
                [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)]]
        return frozen(np.moveaxis(np.array(rows), (0, 1), (-2, -1)) if many else np.array(rows))

    def into_world(self, v: Any) -> np.ndarray:
        """Vectors (..., 3) of the base, along the axes of the world; six numbers as two vectors."""
        return _turn(self.rotation, v)

    def into_base(self, v: Any) -> np.ndarray:
        """Vectors (..., 3) of the world, along the axes of the base; six numbers as two vectors."""
        return _turn(np.swapaxes(self.rotation, -1, -2), v)

    def spatial(self, acceleration: Any) -> np.ndarray:
        """Body's spatial acceleration (6,), the rate of the numbers of `velocity`, from the true one."""
        found: np.ndarray = np.asarray(acceleration, dtype=float) - self._turning()
        return found

    def classical(self, spatial: Any) -> np.ndarray:
        """Return the true acceleration (6,) from the body's spatial one."""
        found: np.ndarray = np.asarray(spatial, dtype=float) + self._turning()
        return found

    def _turning(self) -> np.ndarray:
        wxv = np.cross(self.velocity[..., 3:], self.velocity[..., :3])
        return np.concatenate((wxv, np.zeros_like(wxv)), axis=-1)

    def vector(self) -> np.ndarray:
        """Return the 13 numbers, for integrators: position, quaternion, velocity."""
        return np.concatenate((self.position, self.quaternion, self.velocity), axis=-1)

    def vector_rate(self, acceleration: Any) -> np.ndarray:
        """Rates of the 13 numbers under a true acceleration (6,)."""
        w, (xyz, s) = self.velocity[..., 3:], np.split(self.quaternion, [3], axis=-1)
        turn = np.concatenate((s * w + np.cross(xyz, w), -(xyz * w).sum(axis=-1, keepdims=True)), axis=-1) / 2.0
        return np.concatenate((self.into_world(self.velocity[..., :3]), turn, self.spatial(acceleration)), axis=-1)

    @classmethod
    def from_vector(cls, x: np.ndarray) -> BaseState:
        """Return the state from the 13 numbers of an integrator; the quaternion is normalized."""
        q = x[..., 3:7]
        return cls(x[..., :3], q / np.linalg.norm(q, axis=-1, keepdims=True), x[..., 7:13])


def _turn(R: np.ndarray, v: Any) -> np.ndarray:
    v = np.asarray(v, dtype=float)
    pairs = v.reshape(*v.shape[:-1], v.shape[-1] // 3, 3)
    turned: np.ndarray = np.einsum("...ij,...kj->...ki", R, pairs)
    return turned.reshape(*turned.shape[:-2], v.shape[-1])


def quaternion(R: np.ndarray) -> np.ndarray:
    """x y z w (..., 4) of rotations (..., 3, 3): eigenvector of the largest eigenvalue of a symmetric 4 x 4, right for any
    angle.
    """
    Rt = np.swapaxes(R, -1, -2)
    A, trace = R - Rt, np.trace(R, axis1=-2, axis2=-1)[..., None]
    K = np.empty((*R.shape[:-2], 4, 4))
    K[..., :3, :3] = R + Rt - np.eye(3) * trace[..., None]
    K[..., :3, 3] = K[..., 3, :3] = np.stack((A[..., 2, 1], A[..., 0, 2], A[..., 1, 0]), axis=-1)
    K[..., 3, 3:] = trace
    q = np.linalg.eigh(K)[1][..., -1]
    return np.where(q[..., 3:] >= 0.0, q, -q)


def _block(name: str, value: Any, size: int) -> np.ndarray:
    array = validation.numbers(f"base {name}", value)
    if array.ndim not in (1, 2) or array.shape[-1] != size or not np.isfinite(array).all():
        raise InputError(f"base {name} is {value!r:.120}; ({size},) or (samples, {size}) finite numbers are needed")
    return array


def base_acceleration(rates: np.ndarray) -> np.ndarray:
    """Return the true acceleration (..., 6) of a base from numbers (..., k, 6) of its velocity and their rates."""
    x = rates.T  # (6, k, ...): components first
    return np.concatenate((x[:3, 1] + cross(x[3:, 0], x[:3, 0]), x[3:, 1])).T


def base_jerk(rates: np.ndarray) -> np.ndarray:
    """Return the true jerk (..., 6) of a base likewise."""
    x = rates.T
    v, w, vd, wd = x[:3, 0], x[3:, 0], x[:3, 1], x[3:, 1]
    linear = x[:3, 2] + cross(wd, v) + cross(w, 2.0 * vd + cross(w, v))
    return np.concatenate((linear, x[3:, 2] + cross(w, wd))).T


def given(base: BaseState | None) -> BaseState:
    """Return the base's state. Raises InputError if it is missing."""
    if not isinstance(base, BaseState):
        raise InputError(f"base is {shown(base)}; the state of the free base is needed: base=BaseState(position, quaternion, "
                         "velocity), or base=BaseState() for one at rest at the world's origin")
    return base


def base_motion(pose: Callable[[Any], tuple[Any, Any]], t: Any) -> BaseState:
    """Return state, acceleration and jerk of a base whose pose is given over time, exact.

    pose : t -> (position (3,), rotation (3, 3) from base to world), with plain operators and numpy functions: it is called
           with a jet instead of a number, and so differentiates itself
    t    : time [s], a number or (samples,)
    """
    if np.ndim(t):
        states = [base_motion(pose, one) for one in np.asarray(t, dtype=float)]
        return BaseState(*(np.array([getattr(state, name) for state in states]) for name in (
            "position", "quaternion", "velocity", "acceleration", "jerk")))
    p, R = (np.array([derivative(part, k) for k in range(4)], dtype=float) for part in pose(Jet([float(t), 1.0, 0.0, 0.0])))
    spin = jets(*R[1:]) @ jets(*R[:3]).T  # [w] = Rdot R^T in the world
    w, wd, wdd = (np.array([W[2, 1], W[0, 2], W[1, 0]], dtype=float) for W in (derivative(spin, k) for k in range(3)))
    velocity, acceleration, jerk = (np.concatenate((R[0].T @ x, R[0].T @ y)) for x, y in zip(p[1:], (w, wd, wdd), strict=True))
    return BaseState(p[0], quaternion(R[0]), velocity, acceleration, jerk)


def from_coordinates(motion: np.ndarray) -> BaseState:
    """Return state, acceleration and jerk of a base from its coordinates.

    motion : (4, 6) or (4, samples, 6): x y z and roll pitch yaw [m, rad], and their first three time derivatives
    """
    columns = [Jet([motion[0, ..., k], motion[1, ..., k], motion[2, ..., k] / 2.0, motion[3, ..., k] / 6.0]) for k in range(6)]
    turn = rpy(*columns[3:])
    R = [_stacked(derivative(turn, order)) for order in range(4)]
    Rt = [np.swapaxes(part, -1, -2) for part in R]
    spin = (R[1] @ Rt[0], R[2] @ Rt[0] + R[1] @ Rt[1], R[3] @ Rt[0] + 2.0 * R[2] @ Rt[1] + R[1] @ Rt[2])  # of [w] = Rdot R^T
    turns = [np.stack((W[..., 2, 1], W[..., 0, 2], W[..., 1, 0]), axis=-1) for W in spin]
    velocity, acceleration, jerk = (
        np.concatenate([(Rt[0] @ part[..., None])[..., 0] for part in (motion[k, ..., :3], w)], axis=-1)
        for k, w in enumerate(turns, start=1))
    return BaseState(motion[0, ..., :3], quaternion(R[0]), velocity, acceleration, jerk)


def _stacked(entries: np.ndarray) -> np.ndarray:
    """(..., 3, 3) of (3, 3) entries that are arrays (...)."""
    rows = [np.stack(np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in row)), axis=-1) for row in entries]
    return np.stack(rows, axis=-2)
