"""Robots on a base that moves: its motion is heard, and the wrench that it must get from the world is told."""

from __future__ import annotations

import time
from collections import deque
from typing import Any, NamedTuple

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Wrench, WrenchStamped

from rnea_msgs.msg import BaseDynamics, BaseStateStamped
from rnea_ros import BaseState, FloatingRobot, InputError
from rnea_ros.errors import Rejected
from rnea_ros.nodes.common.diagnostics import Stream
from rnea_ros.nodes.common.stamps import Jumped, Timeline
from rnea_ros.nodes.dynamics.kinds.served_robot import Loads, Motion, ServedRobot
from rnea_ros.nodes.dynamics.kinds.topics import Topics
from rnea_ros.nodes.fastpath.raw_messages import Reader
from rnea_ros.robots.floating import PrescribedBase
from rnea_ros.robots.robot import Dynamics

KEPT = 16  # base states, by stamp: a joint state is paired with the newest that is not after it


class BaseMotion(NamedTuple):
    """One message: as it came, and in the library's terms."""

    stamp: int
    message: Any
    state: BaseState
    acceleration: np.ndarray
    jerk: np.ndarray


class ServedMovingBase(ServedRobot):
    """FloatingRobot: torques for the motion of joints and base, the latter from ~/base_state. The wrench that the base needs
    is on ~/base_wrench, and with its rate on ~/base_dynamics."""

    def __init__(self, robot: FloatingRobot, timeout: float):
        """timeout: how old the newest base state may be, by arrival [s]."""
        super().__init__(robot, [robot.robot])
        self._floating, self._timeout = robot, timeout
        self._stream, self._read = Stream("base_state"), Reader(BaseStateStamped)
        self.streams = [self._stream]
        self._kept: deque[BaseMotion] = deque(maxlen=KEPT)
        self._last: tuple[BaseMotion, PrescribedBase] | None = None

    def describe(self, info: Any) -> None:
        super().describe(info)
        info.base = "floating"

    def prepare(self, loads: Loads) -> None:
        rest = np.zeros((4, self.n))
        for given in ({}, loads(*rest[:2])):
            self._floating.prescribed_base(*rest, base=BaseState(), **given)
        self._floating.gravity_and_rate(*rest[:2], base=BaseState())

    def connect(self, topics: Topics) -> None:
        self._timeline = Timeline(topics.clock)
        self._wrenches = topics.publisher(WrenchStamped, "~/base_wrench")
        self._whole = topics.publisher(BaseDynamics, "~/base_dynamics")
        topics.hear(BaseStateStamped, "~/base_state", self._on_base)

    def take_over(self, before: ServedRobot) -> None:
        if isinstance(before, ServedMovingBase):
            self._kept, self._stream = before._kept, before._stream
            self.streams = before.streams

    # ------------------------------------------------------------------ in

    def _on_base(self, data: bytes) -> None:
        arrival = time.monotonic_ns()
        self._stream.received += 1
        try:
            found = self._heard(self._read(data))
            self._kept.append(found)
            self._stream.accept(arrival, found.stamp)
        except Rejected as refusal:
            self._stream.drop(refusal)
            if isinstance(refusal, Jumped):
                self._kept.clear()

    def _heard(self, message: BaseStateStamped) -> BaseMotion:
        """Raises Rejected."""
        given = message.state
        p, o = given.pose.position, given.pose.orientation
        try:
            state = BaseState((p.x, p.y, p.z), (o.x, o.y, o.z, o.w), _six(given.twist))
        except InputError as error:
            raise Rejected("base_state_unusable", str(error)) from None
        acceleration, jerk = np.array(_six(given.acceleration)), np.array(_six(given.jerk))
        if not (np.isfinite(acceleration).all() and np.isfinite(jerk).all()):
            raise Rejected("base_state_unusable", f"base acceleration {acceleration.tolist()} or jerk {jerk.tolist()} is not "
                                                  "finite")
        return BaseMotion(self._timeline.advance(message.header.stamp), message, state, acceleration, jerk)

    def _at(self, stamp: int) -> BaseMotion:
        """The newest that is not after the stamp [ns]; raises Rejected where there is none of use."""
        age = self._stream.age(time.monotonic_ns())
        if not self._kept:
            raise Rejected("base_state_missing", "how the base moves is not known: nothing usable on ~/base_state yet",
                           passing=True)
        if age > self._timeout:
            raise Rejected("base_state_timeout", f"the newest base state came {age:.3f} s ago, base.timeout is "
                                                 f"{self._timeout:g} s")
        return next((found for found in reversed(self._kept) if found.stamp <= stamp), self._kept[0])

    # ------------------------------------------------------------------ out

    def dynamics(self, motion: Motion, optional: np.ndarray, loads: Loads, stamp: int) -> Dynamics:
        base = self._at(stamp)
        found = self._floating.prescribed_base(*motion, base=base.state, base_acceleration=base.acceleration,
                                               base_jerk=base.jerk, **loads(motion[0], motion[1]))
        self._last = base, found
        return Dynamics(found.tau, found.tau_rate, *self._floating.gravity_and_rate(*motion[:2], base=base.state))

    def tell(self, when: Time) -> None:
        if self._last is None:
            return
        base, found = self._last
        if self._wrenches.has_subscribers():
            self._wrenches.send(_stamped(WrenchStamped(wrench=_wrench(found.base_wrench)), when, self.root_link))
        if self._whole.has_subscribers():
            told = BaseDynamics(state=base.message.state, wrench=_wrench(found.base_wrench),
                                wrench_rate=_wrench(found.base_wrench_rate))
            point = told.zero_moment_point
            point.x, point.y, point.z = map(float, self._floating.zero_moment_point(found.base_wrench, base=base.state))
            self._whole.send(_stamped(told, when, self.root_link))


def _six(message: Any) -> tuple[float, ...]:
    """Of a Twist or an Accel."""
    return tuple(getattr(part, axis) for part in (message.linear, message.angular) for axis in "xyz")


def _wrench(six: np.ndarray) -> Wrench:
    made = Wrench()
    f, n = made.force, made.torque
    f.x, f.y, f.z, n.x, n.y, n.z = map(float, six)
    return made


def _stamped(message: Any, when: Time, frame: str) -> Any:
    message.header.stamp, message.header.frame_id = when, frame
    return message
