"""What a robot means by the effort of a joint: the only definition, for torques that it is given and those that it reports.

The exact torque tau of a joint holds everything that its motor has to do. A robot's own controller may add gravity, or
friction too; and its numbers may be torques of the motor before the gear, or currents. So

    effort = (tau - added) / per_unit,    added: gravity, friction, or nothing

One formula and its inverse: gravity is taken off where the robot adds it, and put back where it was taken off; never twice.
Where a robot's drivers report one thing or another, its file says `unknown`, and efforts are refused rather than believed.
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
    """contains : one of CONTENTS
    quantity : one of QUANTITIES, or UNKNOWN
    per_unit : joint torque by one unit of the quantity, sign included, of each joint; empty: 1 each
    """

    contains: str = CONTENTS[0]
    quantity: str = QUANTITIES[0]
    per_unit: tuple[float, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether it is the exact torque itself."""
        return self.contains == CONTENTS[0] and not self.per_unit and self.quantity != UNKNOWN

    @property
    def description(self) -> str:
        """What the effort contains, and as which quantity."""
        unit = {"motor_torque": ", as motor torque", "current": ", as motor current"}.get(self.quantity, "")
        return CONTENT_WORDS[self.contains] + unit

    def of(self, joints: Sequence[int]) -> EffortConvention:
        """That of some joints, by number."""
        return self._replace(per_unit=tuple(self.per_unit[k] for k in joints)) if self.per_unit else self

    @property
    def needs_friction(self) -> bool:
        return self.contains == CONTENTS[2]

    def added(self, gravity: np.ndarray, friction: np.ndarray | float = 0.0) -> np.ndarray:
        """What the robot adds by itself, of the shares of gravity and friction in tau, or of their rates."""
        if self.contains == CONTENTS[0]:
            return np.zeros_like(gravity)
        return gravity + friction if self.needs_friction else gravity

    def effort(self, tau: np.ndarray, gravity: np.ndarray, friction: np.ndarray | float = 0.0) -> np.ndarray:
        """As the robot has it, of an exact torque; or of its rate, gravity's and friction's."""
        found = tau - self.added(gravity, friction)
        return found / self.per_unit if self.per_unit else found

    def torque(self, effort: np.ndarray, gravity: np.ndarray, friction: np.ndarray | float = 0.0) -> np.ndarray:
        """The exact torque of an effort as the robot has it: the inverse of `effort`. InputError where that is unknown."""
        if self.quantity == UNKNOWN:
            raise InputError("what this robot's efforts are is unknown, for its drivers differ: a robot file can say it, as "
                             f"measured_effort: {{contains: {CONTENTS[0]}, quantity: {' | '.join(QUANTITIES)}}}; of motor "
                             "currents `rnea identify --currents` finds the gains")
        return (effort * self.per_unit if self.per_unit else effort) + self.added(gravity, friction)


class Efforts(NamedTuple):
    """commanded: torques that the robot's controller is given; measured: those that its joint states report."""

    commanded: EffortConvention = EffortConvention()
    measured: EffortConvention = EffortConvention()


TOTAL = Efforts()
