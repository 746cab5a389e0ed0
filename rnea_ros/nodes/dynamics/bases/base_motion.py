"""BaseMotion: what is known of a moving base at one instant, for the robot and for messages."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rnea_msgs.msg import BaseState as BaseStateMessage
from rnea_ros import BaseState

NOWHERE = np.full(3, np.nan)


class BaseMotion(NamedTuple):
    """State, acceleration and jerk (6,) of a base, with the conventions of robots/inputs/base_state.py.

    Torques depend on the acceleration less gravity, seen along the axes of the base. So where nobody knows how the base is
    turned, the world is one that has the base's axes at this instant; where nobody knows where it is, it is at the origin.

    oriented, placed : whether the orientation is known, and the position
    as_told          : the message that says all this, if one does
    """

    state: BaseState
    acceleration: np.ndarray
    jerk: np.ndarray
    oriented: bool = True
    placed: bool = True
    as_told: BaseStateMessage | None = None

    def message(self) -> BaseStateMessage:
        """NaN is what is not known."""
        if self.as_told is not None:
            return self.as_told
        state, told = self.state, BaseStateMessage()
        orientation = state.quaternion if self.oriented else np.full(4, np.nan)
        linear = state.velocity[:3] if self.placed else NOWHERE
        acceleration = self.acceleration[:3] if self.oriented else NOWHERE
        _fill(told.pose.position, state.position if self.placed else NOWHERE)
        _fill(told.pose.orientation, orientation)
        for six, first, angular in ((told.twist, linear, state.velocity), (told.acceleration, acceleration, self.acceleration),
                                    (told.jerk, self.jerk[:3], self.jerk)):
            _fill(six.linear, first)
            _fill(six.angular, angular[3:])
        return told


def six(message: Any) -> tuple[float, ...]:
    """Of a Twist or an Accel."""
    return *three(message.linear), *three(message.angular)


def three(message: Any) -> tuple[float, float, float]:
    """Of a Vector3 or a Point."""
    return message.x, message.y, message.z


def four(message: Any) -> tuple[float, float, float, float]:
    """Of a Quaternion."""
    return message.x, message.y, message.z, message.w


def _fill(message: Any, numbers: np.ndarray) -> None:
    for axis, number in zip("xyzw", numbers):
        setattr(message, axis, float(number))
