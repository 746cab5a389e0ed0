"""Calls of a robot by the motion of its platform, or of all its platforms, instead of that of its actuators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Array
from ..errors import InputError, some
from ..model.tree import frozen
from .inputs.platform_motion import PlatformMotion

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
