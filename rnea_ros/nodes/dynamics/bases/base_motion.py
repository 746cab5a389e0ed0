"""Motion of a moving base at one instant, its interpolation, and its messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from rnea_msgs.msg import BaseState as BaseStateMessage
from rnea_ros import BaseState
from rnea_ros.algebra.vectors import cross
from rnea_ros.nodes.common.sensed_base import inverse, product
from rnea_ros.nodes.dynamics.pairing import extrapolated, interpolated

UNKNOWN = np.full(3, np.nan)


class BaseMotion(NamedTuple):
    """State, acceleration and jerk (6,) of a base, with the conventions of robots/inputs/base_state.py.

    Torques depend on the acceleration less gravity along the axes of the base. So where the orientation is unknown, the world
    is taken to have the base's axes at this instant; where the position is unknown, it is the origin.

    has_orientation, has_position : whether the orientation and the position are known
    numbers : numbers of the message with this motion, if there is one: pose, twist, acceleration, jerk (25,)
    """

    state: BaseState
    acceleration: np.ndarray
    jerk: np.ndarray
    has_orientation: bool = True
    has_position: bool = True
    numbers: tuple[float, ...] | None = None

    def message(self) -> BaseStateMessage:
        """Return the motion as a message, NaN where unknown."""
        state, found = self.state, BaseStateMessage()
        orientation = state.quaternion if self.has_orientation else np.full(4, np.nan)
        linear = state.velocity[:3] if self.has_position else UNKNOWN
        acceleration = self.acceleration[:3] if self.has_orientation else UNKNOWN
        if (given := self.numbers) is not None:
            _fill(found.pose.position, given[:3])
            _fill(found.pose.orientation, given[3:7])
            halves: tuple[Any, ...] = (found.twist, found.acceleration, found.jerk)
            for k, six in enumerate(halves):
                _fill(six.linear, given[7 + 6 * k:10 + 6 * k])
                _fill(six.angular, given[10 + 6 * k:13 + 6 * k])
            return found
        _fill(found.pose.position, state.position if self.has_position else UNKNOWN)
        _fill(found.pose.orientation, orientation)
        for six, first, angular in ((found.twist, linear, state.velocity),
                                    (found.acceleration, acceleration, self.acceleration),
                                    (found.jerk, self.jerk[:3], self.jerk)):
            _fill(six.linear, first)
            _fill(six.angular, angular[3:])
        return found


# ---------------------------------------------------------------------- between messages

def between(first: BaseMotion, second: BaseMotion, span: float, seconds: float) -> BaseMotion:
    """Return the motion `seconds` after the first one, `span` [s] before the second one: Hermite polynomials of position and
    quaternion with three derivatives each.
    """
    (p, q), (p_end, q_end) = map(_rows, (first, second))
    q_end = q_end if q[0] @ q_end[0] >= 0.0 else -q_end
    return _motion(interpolated(p, p_end, span, seconds), interpolated(q, q_end, span, seconds))


def carried(motion: BaseMotion, seconds: float) -> BaseMotion:
    """Return the motion so long after [s], by the Taylor series of position and quaternion."""
    return _motion(*(extrapolated(rows, seconds) for rows in _rows(motion)))


def _rows(motion: BaseMotion) -> tuple[np.ndarray, np.ndarray]:
    """Position in the world (4, 3) and quaternion (4, 4), each with its first three time derivatives."""
    state, q = motion.state, motion.state.quaternion
    w, wd = state.velocity[3:], motion.acceleration[3:]
    wdd = motion.jerk[3:] - cross(w, wd)  # of the components
    qd = 0.5 * _times(q, w)
    qdd = 0.5 * (_times(qd, w) + _times(q, wd))
    qddd = 0.5 * (_times(qdd, w) + 2.0 * _times(qd, wd) + _times(q, wdd))
    rates = [state.into_world(six[:3]) for six in (state.velocity, motion.acceleration, motion.jerk)]
    return np.array([state.position, *rates]), np.array([q, qd, qdd, qddd])


def _motion(p: np.ndarray, q: np.ndarray) -> BaseMotion:
    """Return the inverse of `_rows`; the quaternion's length may differ from 1 by the error of interpolation."""
    q = q / np.linalg.norm(q[0])
    back = inverse(q[0])
    w, wd, third = (2.0 * product(back, rate)[:3] for rate in q[1:])
    wdd = third + 0.25 * (w @ w) * w - 0.5 * cross(w, wd)
    turned = BaseState(quaternion=q[0])
    v, a, j = map(turned.into_base, p[1:])
    return BaseMotion(BaseState(p[0], q[0], np.concatenate((v, w))), np.concatenate((a, wd)),
                      np.concatenate((j, wdd + cross(w, wd))))


def _times(q: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Product of a quaternion and a vector (3,), taken for one without a scalar part."""
    return product(q, np.append(w, 0.0))


# ---------------------------------------------------------------------- from messages

def six(message: Any) -> tuple[float, ...]:
    """Return the numbers of a Twist or an Accel."""
    return *three(message.linear), *three(message.angular)


def three(message: Any) -> tuple[float, float, float]:
    """Return the numbers of a Vector3 or a Point."""
    return message.x, message.y, message.z


def four(message: Any) -> tuple[float, float, float, float]:
    """Return the numbers of a Quaternion."""
    return message.x, message.y, message.z, message.w


def _fill(message: Any, numbers: Iterable[float]) -> None:
    for axis, number in zip("xyzw", numbers):
        setattr(message, axis, float(number))
