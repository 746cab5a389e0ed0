"""Effort conventions: the relation of a robot's effort values to exact joint torques.

The exact torque tau of a joint is everything that its motor exerts. A robot's own controller may add gravity or friction, and
its values may be torques of the motor before the gear, or currents:

    effort = (tau - added) / per_unit,    added: gravity, friction, or nothing

Only this formula and its inverse are used, so that gravity is subtracted once where the robot adds it, and added once where it
was subtracted. If the drivers of a robot differ, its file declares `unknown`, and efforts are rejected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..errors import InputError

CONTENTS = ("total", "without_gravity", "without_gravity_and_friction")
CONTENT_WORDS = dict(zip(CONTENTS, (
    "the whole joint torque", "the joint torque without gravity, which the robot's controller adds",
    "the joint torque without gravity and friction, which the robot's controller adds")))
QUANTITIES = ("joint_torque", "motor_torque", "current")
UNKNOWN = "unknown"


class EffortConvention(NamedTuple):
    """Meaning of an effort.

    contains : one of CONTENTS
    quantity : one of QUANTITIES, or UNKNOWN
    per_unit : joint torque per unit of the quantity, with sign, for each joint; empty: 1 each
    """

    contains: str = CONTENTS[0]
    quantity: str = QUANTITIES[0]
    per_unit: tuple[float, ...] = ()

    @property
    def plain(self) -> bool:
        """Return whether the effort is the exact torque."""
        return self.contains == CONTENTS[0] and not self.per_unit and self.quantity != UNKNOWN

    @property
    def description(self) -> str:
        """Description: content and quantity of the effort."""
        unit = {"motor_torque": ", as motor torque", "current": ", as motor current"}.get(self.quantity, "")
        return CONTENT_WORDS[self.contains] + unit

    def of(self, joints: Sequence[int]) -> EffortConvention:
        """Return the convention of some joints, by index."""
        return self._replace(per_unit=tuple(self.per_unit[k] for k in joints)) if self.per_unit else self

    @property
    def needs_friction(self) -> bool:
        return self.contains == CONTENTS[2]

    def added(self, gravity: np.ndarray, friction: np.ndarray | float = 0.0) -> np.ndarray:
        """Return the share of tau that the robot adds itself, from gravity and friction, or from their rates."""
        if self.contains == CONTENTS[0]:
            return np.zeros_like(gravity)
        return gravity + friction if self.needs_friction else gravity

    def effort(self, tau: np.ndarray, gravity: np.ndarray, friction: np.ndarray | float = 0.0) -> np.ndarray:
        """Return the effort of an exact torque; or its rate from the rates of torque, gravity and friction."""
        found = tau - self.added(gravity, friction)
        return found / self.per_unit if self.per_unit else found

    def torque(self, effort: np.ndarray, gravity: np.ndarray, friction: np.ndarray | float = 0.0) -> np.ndarray:
        """Return the exact torque of an effort, the inverse of `effort`. Raises InputError if the convention is unknown."""
        if self.quantity == UNKNOWN:
            raise InputError("what this robot's efforts are is unknown, for its drivers differ: a robot file can say it, as "
                             f"measured_effort: {{contains: {CONTENTS[0]}, quantity: {' | '.join(QUANTITIES)}}}; of motor "
                             "currents `rnea identify --currents` finds the gains")
        return (effort * self.per_unit if self.per_unit else effort) + self.added(gravity, friction)


class Efforts(NamedTuple):
    """Conventions of a robot: commanded efforts of its controller, measured efforts of its joint states."""

    commanded: EffortConvention = EffortConvention()
    measured: EffortConvention = EffortConvention()


TOTAL = Efforts()
