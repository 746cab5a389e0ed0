"""Motions that are known because somebody has them executed: no estimation where the truth is known.

Either scaling_node tells the motion with all derivatives, instant by instant, or a joint_trajectory_controller follows a
trajectory, which says it all beforehand.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from trajectory_msgs.msg import JointTrajectory

from rnea_msgs.msg import ScaledMotion
from rnea_ros.errors import Rejected, some
from rnea_ros.execution.controller_trajectory import ControllerTrajectory
from rnea_ros.execution.goal import Goal
from rnea_ros.nodes.common.stamps import UNKNOWN, nanoseconds
from rnea_ros.nodes.dynamics.desired_motion import StampedMotions
from rnea_ros.nodes.dynamics.joint_states import StateReader
from rnea_ros.nodes.fastpath.raw_messages import Reader
from rnea_ros.nodes.trajectories import goal

FIELDS = ("position", "velocity", "acceleration", "jerk")  # of ScaledMotion
KEPT = 512  # scaled motions: joint states may be a quarter of a second late at the highest control rate
FAR = 3_600_000_000_000  # ns; nobody sends a trajectory so long before it begins
MISSING = "reference_missing"


class ScaledMotions(StampedMotions):
    """What scaling_node says of the motion under way."""

    def __init__(self, joint_names: Sequence[str], clock: Callable[[], int] = time.time_ns):
        super().__init__(joint_names, FIELDS, clock, kept=KEPT)
        self._ended = UNKNOWN  # the stamp of the end of the last motion, if none has begun since

    def read(self, message: ScaledMotion) -> int:
        """The stamp [ns]. Raises Rejected."""
        strange = self._map.locate(message.joint_names).others
        if strange:
            raise Rejected("unknown_joint", f"not of this robot: {some(strange)}")
        stamp = super().read(message)
        self._ended = stamp if message.phase == ScaledMotion.ENDED else UNKNOWN
        return stamp

    def motion(self, state: StateReader, timeout: float, count: int) -> list[np.ndarray]:
        """Position .. jerk at the stamp of the state: the last motion that is not after it, carried on to it by its own
        derivatives. Raises Rejected."""
        found = self.before(state.stamp)
        if found is None:
            raise Rejected(MISSING, "no scaled motion yet that is not after the joint state", passing=True)
        since = (state.stamp - found[0]) * 1e-9
        if since > timeout and found[0] != self._ended:
            raise Rejected("reference_timeout", f"the last scaled motion is {since:.3f} s before the joint state")
        q, qd, qdd, qddd = found[1]
        if since > timeout:  # at rest, since a motion has ended
            since = 0.0
        return [q + since * (qd + since / 2.0 * (qdd + since / 3.0 * qddd)), qd + since * (qdd + since / 2.0 * qddd),
                qdd + since * qddd, qddd.copy()]


class ExecutedTrajectory:
    """The last trajectory that was sent to a joint_trajectory_controller."""

    def __init__(self, joint_names: Sequence[str], newest: Callable[[], int], turns: np.ndarray):
        """newest() is the stamp of the newest joint state [ns], 0 if none came; turns (n,): joints that turn without end."""
        self._joint_names, self._newest, self._turns = tuple(joint_names), newest, turns
        self._next: Goal | None = None
        self._now: ControllerTrajectory | None = None

    def read(self, message: JointTrajectory) -> int:
        """The stamp from which it counts [ns]. Raises Rejected; the one before stays then."""
        given, newest = goal(message, self._joint_names), self._newest()
        if given.a is not None and given.v is None:
            raise Rejected("velocity_missing", "the points have accelerations, but no velocities")
        if given.start and given.start + given.duration * 1e9 < newest:
            late = (newest - given.start) * 1e-9 - given.duration
            raise Rejected("trajectory_past", f"it ended {late:.3f} s before the newest joint state")
        if given.start and newest and given.start - newest > FAR:
            far = (given.start - newest) * 1e-9
            raise Rejected("trajectory_far", f"it begins {far:.0f} s after the newest joint state, by another clock")
        self._next = given
        return nanoseconds(message.header.stamp) or newest

    def motion(self, state: StateReader, timeout: float, count: int) -> list[np.ndarray]:
        """Position and its first derivatives, `count` arrays, at the stamp of the state. Raises Rejected."""
        if self._next is not None:  # taken over by the first state that comes after it
            self._now = ControllerTrajectory(self._next, state.stamp, state.q, state.qd, self._turns)
            self._next = None
        if self._now is None:
            raise Rejected(MISSING, "no trajectory yet", passing=True)
        return self._now(state.stamp, count)

    def clear(self) -> None:
        """Forget it: the states' clock jumped."""
        self._now = self._next = None

    forget = clear


class References:
    """Both, of which the parameter reference.source says the one that counts."""

    def __init__(self, joint_names: Sequence[str], state: StateReader, turning: Sequence[int] = (),
                 clock: Callable[[], int] = time.time_ns, order: int = 3):
        turns = np.isin(np.arange(len(joint_names)), list(turning))
        self.scaled = ScaledMotions(joint_names, clock)
        self.trajectory = ExecutedTrajectory(joint_names, lambda: state.stamp, turns)
        self._state, self._count = state, order + 1

    def motion(self, source: str, timeout: float = math.inf) -> tuple[np.ndarray, ...]:
        """Of the state just read. Raises Rejected."""
        chosen = self.scaled if source == "scaled_motion" else self.trajectory
        return tuple(chosen.motion(self._state, timeout, self._count))

    def clear(self) -> None:
        self.scaled.clear()
        self.trajectory.clear()

    def forget(self) -> None:
        self.scaled.forget()
        self.trajectory.forget()


TOPICS: tuple[tuple[Any, str, QoSProfile, Callable[[References, Any], int]], ...] = (  # and what reads their messages
    (ScaledMotion, "~/scaled_motion", QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT),
     lambda references, message: references.scaled.read(message)),
    (JointTrajectory, "~/joint_trajectory", QoSProfile(depth=10),
     lambda references, message: references.trajectory.read(message)))


def listen(node: Node, take: Callable[[Callable[[Any], int]], None]) -> None:
    """To both topics; take: what has a MotionSource read a message, and counts it."""
    for kind, name, qos, read in TOPICS:
        node.create_subscription(kind, name, partial(_heard, take, read, Reader(kind)), qos, raw=True)


def _heard(take: Callable[..., None], read: Callable[[References, Any], int], reader: Reader, data: bytes) -> None:
    take(lambda source: read(source.references, reader(data)))
