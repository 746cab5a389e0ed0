"""The motion of a platform in the base frame: pose, twist, acceleration and jerk, checked, and made from angles."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.vectors import Array
from ..errors import InputError, some
from ..model.tree import frozen
from .validation import numbers, sound

ORTHONORMAL = 1e-9
REST = frozen(np.zeros(6))


class PlatformMotion(NamedTuple):
    """One sample, or many along a first axis.

    position     (..., 3)     of the platform frame's origin in the base frame [m]
    rotation     (..., 3, 3)  takes vectors from the platform frame to the base frame
    velocity     (..., 6)     of that origin, then the angular velocity w, in the base frame [m/s, rad/s]
    acceleration (..., 6)     time derivative of the velocity's six numbers
    jerk         (..., 6)     and of the acceleration's
    """

    position: Any
    rotation: Any
    velocity: Any = REST
    acceleration: Any = REST
    jerk: Any = REST

    @classmethod
    def from_rpy(cls, position: Sequence[Any], angles: Sequence[Any]) -> PlatformMotion:
        """Return the motion from position and URDF's rpy, each with three time derivatives: (3,) or (samples, 3) each.

        The angular velocity and its rates are written in axes that turn with the yaw angle, where they are short.
        """
        P, given = ([np.asarray(x, dtype=float) for x in values] for values in (position, angles))
        many = P[0].ndim > 1
        (roll, pitch, yaw), (A, B, C), (Ad, Bd, Cd), (Add, Bdd, Cdd) = (x.T if many else x.tolist() for x in given)
        quick = not many and math.isfinite(roll + pitch + yaw)
        sin, cos = (math.sin, math.cos) if quick else (np.sin, np.cos)
        sr, cr, sp, cp, sy, cy = sin(roll), cos(roll), sin(pitch), cos(pitch), sin(yaw), cos(yaw)
        u, z = A * cp, C - A * sp  # with B, the angular velocity in those axes
        ud, zd = Ad * cp - A * B * sp, Cd - Ad * sp - A * B * cp
        udd = Add * cp - 2.0 * Ad * B * sp - A * Bd * sp - A * B * B * cp
        zdd = Cdd - Add * sp - 2.0 * Ad * B * cp - A * Bd * cp + A * B * B * sp
        x, y = ud - C * B, Bd + C * u
        xd, yd = udd - Cd * B - C * Bd - C * y, Bdd + Cd * u + C * ud + C * x
        wds = [(cy * a - sy * b, sy * a + cy * b, c) for a, b, c in ((u, B, z), (x, y, zd), (xd, yd, zdd))]
        rows = [(cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
                (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr), (-sp, cp * sr, cp * cr)]
        if not many:
            return cls(P[0], np.array(rows), *(np.array((*v.tolist(), *w)) for v, w in zip(P[1:], wds, strict=True)))
        rates = (np.concatenate((v, np.stack(w, axis=-1)), axis=-1) for v, w in zip(P[1:], wds, strict=True))
        return cls(P[0], np.moveaxis(np.array(rows), -1, 0), *rates)

    def at_rest(self) -> PlatformMotion:
        """Return the pose without rates."""
        return PlatformMotion(self.position, self.rotation)

    def checked(self) -> PlatformMotion:
        """Return the motion as arrays of consistent shapes. Raises InputError for other shapes."""
        if self._sound():
            return self
        shapes = ((3,), (3, 3), (6,), (6,), (6,))
        arrays = [_array(name, value, shape) for name, value, shape in zip(self._fields, self, shapes, strict=True)]
        counts = {len(array) for array, shape in zip(arrays, shapes, strict=True) if array.ndim > len(shape)}
        if len(counts) > 1:
            raise InputError(f"platform motion: arrays have different numbers of samples, {sorted(counts)}")
        for count in counts:
            arrays = [np.broadcast_to(array, (count, *shape)) for array, shape in zip(arrays, shapes, strict=True)]
        if not all(map(is_rotation, arrays[1].reshape(-1, 3, 3).tolist())):
            raise InputError("platform rotation is not a rotation matrix: its columns must be orthonormal and right-handed to "
                             f"{ORTHONORMAL:g}")
        return PlatformMotion(*arrays)

    def _sound(self) -> bool:
        """Return whether it is one sample of valid arrays already."""
        P, R, *rates = self
        return (sound(P, 3) and type(R) is np.ndarray and R.shape == (3, 3) and sound(R.ravel(), 9) and is_rotation(R.tolist())
                and all(sound(rate, 6) for rate in rates))

    def rows(self) -> np.ndarray:
        """(30,) or (samples, 30): rotation row by row, position, velocity, acceleration, jerk."""
        P, R, *rates = self
        return np.concatenate((np.reshape(R, (*np.shape(P)[:-1], 9)), P, *rates), axis=-1)


def is_rotation(rows: Sequence[Sequence[float]]) -> bool:
    """Return whether the columns of a (3, 3) matrix of floats are orthonormal and right-handed."""
    x, y, z = zip(*rows, strict=True)
    products = (*(_dot(a, a) - 1.0 for a in (x, y, z)), _dot(x, y), _dot(y, z), _dot(z, x))
    return max(map(abs, products)) <= ORTHONORMAL and _dot(x, (y[1] * z[2] - y[2] * z[1], y[2] * z[0] - y[0] * z[2],
                                                              y[0] * z[1] - y[1] * z[0])) > 0.0


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _array(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    array = numbers(f"platform {name}", value)
    if array.shape[-len(shape):] != shape or array.ndim > len(shape) + 1:
        many = ("samples", *shape)
        raise InputError(f"platform {name} has shape {array.shape}; {shape} or ({', '.join(map(str, many))}) is needed")
    if not np.isfinite(array).all():
        raise InputError(f"platform {name} holds a number that is not finite")
    return array


MISSING = frozen(np.zeros(0))  # default of arguments that are needed unless motion=PlatformMotion(...) is given
DERIVATIVES = ("q", "qd", "qdd", "qddd")

Platforms = PlatformMotion | Mapping[str, PlatformMotion]  # of the one platform, or of each by its link

Method = TypeVar("Method", bound=Callable[..., Any])


class PlatformRobot(Protocol):
    """A robot with a platform, as `by_platform` needs it."""

    joint_names: Any
    platforms: Any

    def actuator_motion(self, motion: Platforms, guess: ArrayLike | None, orders: int) -> tuple[list[Array], Array]:
        """Return derivatives of q from order 0 to 3, and the first closed pose (tree.n,)."""

    def pose_of(self, guess: Platforms) -> Array:
        """Return the closed pose (tree.n,) at a pose of the platforms."""


def by_platform(method: Method) -> Method:
    """Make a method of q, qd, ... serve motion=PlatformMotion(...) and guess=PlatformMotion(...) too; with several platforms
    {link: PlatformMotion(...)} of each.
    """
    parameters = list(signature(method).parameters.values())[1:]
    arrays = [parameter.name for parameter in parameters if parameter.default is MISSING]
    positional = [parameter.name for parameter in parameters]
    derivatives = [name for name in DERIVATIVES if name in positional]
    leading = positional.index(arrays[0]) if arrays else 0
    needed, orders = leading + len(arrays), len(derivatives) - 1 if derivatives else 3

    @wraps(method)
    def call(self: PlatformRobot, *args: Any, motion: Platforms | None = None, guess: Any = None,
             **options: Any) -> Any:
        if motion is not None:
            if len(args) > leading or any(name in options for name in derivatives):
                raise InputError("the motion is given twice, by the active joints and by motion=; give one of them")
            found, guess = self.actuator_motion(motion, guess, orders)
            if derivatives:
                options.update(zip(derivatives, found, strict=False))
            else:
                args = (*args, *found)
        elif type(guess) is PlatformMotion or isinstance(guess, Mapping):
            guess = self.pose_of(guess)
        if len(args) < needed and (missing := [name for name in arrays[max(0, len(args) - leading):] if name not in options]):
            other = "; or give motion=PlatformMotion(position, rotation, velocity, ...)" if self.platforms and (
                missing[0] in DERIVATIVES) else ""
            raise InputError(f"{missing[0]} is missing: a column for each of {some(self.joint_names)} is needed{other}")
        return method(self, *args, guess=guess, **options)

    return cast(Method, call)
