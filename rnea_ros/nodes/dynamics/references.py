"""Motions that are known because somebody has them executed: no estimation where the truth is known.

Either scaling_node tells the motion with all derivatives, instant by instant; or a joint_trajectory_controller tells it, with
most of them; or that follows a trajectory, which says it all beforehand.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from trajectory_msgs.msg import JointTrajectory

from rnea_msgs.msg import ScaledMotion
from rnea_ros.errors import InputError, Rejected
from rnea_ros.execution.controller_trajectory import ControllerTrajectory
from rnea_ros.execution.goal import Goal
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.common.stamps import nanoseconds
from rnea_ros.nodes.dynamics.controller_states import ControllerStates, JointTrajectoryControllerState
from rnea_ros.nodes.dynamics.joint_states import StateReader
from rnea_ros.nodes.dynamics.reference_motions import MISSING, ReferenceMotions, ScaledMotions
from rnea_ros.nodes.fastpath.raw_messages import Reader
from rnea_ros.nodes.trajectories import goal

FAR = 3_600_000_000_000  # ns; nobody sends a trajectory so long before it begins


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
    """All of them, of which the parameter reference.source says the one that counts."""

    def __init__(self, joint_names: Sequence[str], state: StateReader, turning: Sequence[int] = (),
                 clock: Callable[[], int] = time.time_ns, order: int = 3):
        turns = np.isin(np.arange(len(joint_names)), list(turning))
        self.scaled = ScaledMotions(joint_names, clock)
        self.controller = ControllerStates(joint_names, turning, clock)
        self.trajectory = ExecutedTrajectory(joint_names, lambda: state.stamp, turns)
        self._of: dict[str, ReferenceMotions | ExecutedTrajectory] = {
            "scaled_motion": self.scaled, "controller_state": self.controller,
            "trajectory": self.trajectory}
        self._state, self._count = state, order + 1

    def motion(self, source: str, timeout: float = math.inf) -> tuple[np.ndarray, ...]:
        """Of the state just read. Raises Rejected."""
        return tuple(self._of[source].motion(self._state, timeout, self._count))

    def clear(self) -> None:
        for reference in self._of.values():
            reference.clear()

    def forget(self) -> None:
        for reference in self._of.values():
            reference.forget()


class Topic(NamedTuple):
    """Where a reference comes from, and what reads it; kind is None where its messages are not installed."""

    kind: Any
    name: str
    qos: QoSProfile
    read: Callable[[References, Any], int]


SENSOR = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)
TOPICS = {  # by reference.source
    "scaled_motion": Topic(ScaledMotion, "~/scaled_motion", SENSOR, lambda of, message: of.scaled.read(message)),
    "controller_state": Topic(JointTrajectoryControllerState, "~/controller_state", SENSOR,
                              lambda of, message: of.controller.read(message)),
    "trajectory": Topic(JointTrajectory, "~/joint_trajectory", QoSProfile(depth=10),
                        lambda of, message: of.trajectory.read(message))}


def listen(node: Node, take: Callable[[Callable[[Any], int]], None]) -> None:
    """To all topics; take: what has a MotionSource read a message, and counts it."""
    for kind, name, qos, read in TOPICS.values():
        if kind is not None:
            node.create_subscription(kind, name, partial(_heard, take, read, Reader(kind)), qos, raw=True)


def _heard(take: Callable[..., None], read: Callable[[References, Any], int], reader: Reader, data: bytes) -> None:
    take(lambda source: read(source.references, reader(data)))


def check(values: Values) -> None:
    """InputError where the messages of the reference are not installed."""
    source = values["reference.source"]
    if values["motion_source"] == "reference" and TOPICS[source].kind is None:
        raise InputError(f"reference.source {source} needs the messages of control_msgs, which is not installed")


def topics(values: Values) -> list[str]:
    """What has to come for a reference to be known."""
    return [TOPICS[values["reference.source"]].name] if values["motion_source"] == "reference" else []
