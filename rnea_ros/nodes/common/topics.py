"""Topics of the nodes: quality of service, stamps and their jumps, goals of trajectory messages, topics made on demand."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from builtin_interfaces.msg import Duration, Time
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from trajectory_msgs.msg import JointTrajectory

from rnea_ros.errors import Rejected
from rnea_ros.execution.goal import Goal, TrajectoryPoint, read_goal
from rnea_ros.nodes.common.cdr import RawPublisher, Stamp
from rnea_ros.nodes.common.diagnostics import Stream


class Topics:
    """Topics of one node, each created once."""

    def __init__(self, node: Node, outgoing: int, incoming: QoSProfile, moved: Callable[[Stream, int, int], None],
                 received: Callable[[], None] = lambda: None):
        """moved(stream, arrival [ns], stamp [ns]) is called when a message of a stream gives the robot's motion at a stamp;
        received() is called after each message.
        """
        self.moved, self._received = moved, received
        self._node, self._outgoing, self._incoming = node, outgoing, incoming
        self._publishers: dict[str, RawPublisher] = {}
        self._callbacks: dict[str, Callable[[bytes], None]] = {}

    def publisher(self, kind: Any, name: str) -> RawPublisher:
        """Return the publisher of a topic."""
        if name not in self._publishers:
            self._publishers[name] = RawPublisher(self._node.create_publisher(kind, name, self._outgoing))
        return self._publishers[name]

    def subscribe(self, kind: Any, name: str, callback: Callable[[bytes], None]) -> None:
        """Pass the bytes of every message to this callback from now on, and to no other."""
        def receive(data: bytes) -> None:
            self._callbacks[name](data)
            self._received()

        if name not in self._callbacks:
            self._node.create_subscription(kind, name, receive, self._incoming, raw=True)
        self._callbacks[name] = callback

    def clock(self) -> int:
        """Return the time of the node's clock [ns]."""
        return int(self._node.get_clock().now().nanoseconds)


LATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
# Best effort: subscribers receive reliable and best-effort publishers, and a lost message is not repeated late.
DYNAMICS_QUEUE = 100  # at 1 kHz no message is lost while the process, or a subscriber, is not scheduled for 0.1 s
DYNAMICS_SENSOR = QoSProfile(depth=DYNAMICS_QUEUE, reliability=ReliabilityPolicy.BEST_EFFORT)
SCALING_SENSOR = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)  # only recent states are used
LATEST_STATE = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
REQUEST_QUEUE = QoSProfile(depth=100)  # requests and responses; the default of 10 loses some of a burst of many clients
TRAJECTORIES = QoSProfile(depth=10)


CHECKED_STEP_NS = 1_000_000_000  # ns; larger steps of the stamps are checked more closely
DISORDER_NS = 50_000_000  # ns; by less than that, a stamp that goes back is that of a message out of order
UNKNOWN_STAMP = -(2**63)  # a stamp that none can have


def nanoseconds(stamp: Time | Stamp) -> int:
    """Return a stamp or a duration as nanoseconds."""
    return stamp.sec * 1_000_000_000 + stamp.nanosec


def duration(seconds: float) -> Duration:
    """Return seconds as a message."""
    whole, part = divmod(round(seconds * 1e9), 1_000_000_000)
    return Duration(sec=whole, nanosec=part)


class Jumped(Rejected):
    """Error: the stamp is not continuous with the last one; earlier data is invalid."""


class Timeline:
    """Check that the stamps of a stream advance like time. A single jump backward, or far forward, is rejected; the next
    message starts anew, unless the step back is short, as for messages out of order.
    """

    def __init__(self, clock: Callable[[], int] = time.time_ns):
        """clock() returns the node's time [ns]; it is called only for suspicious stamps, since those of played recordings are
        far from it and valid.
        """
        self._clock = clock
        self.arrival = 0  # of the last message, by the steady clock [ns]
        self.forget()

    def forget(self) -> None:
        """Accept any stamp next, after the clock was set."""
        self._last = UNKNOWN_STAMP

    def advance(self, stamp: Time | Stamp) -> int:
        """Return the stamp [ns]. Raises Jumped, or Rejected for a message out of order."""
        now, last, before = nanoseconds(stamp), self._last, self.arrival
        self._last, self.arrival = now, time.monotonic_ns()
        step = now - last
        if not 0 <= step <= CHECKED_STEP_NS and last != UNKNOWN_STAMP:
            if -DISORDER_NS < step < 0:
                self._last = last
                raise Rejected("stamp_disordered", f"the stamp is {-step * 1e-9:.6f} s before the one of the last message")
            if step < 0:
                raise Jumped("stamp_went_back", f"the stamp is {-step * 1e-9:.6f} s before the one of the last message")
            elapsed, ahead = self.arrival - before, now - self._clock()
            if step - elapsed > CHECKED_STEP_NS and ahead > CHECKED_STEP_NS:
                raise Jumped("stamp_ahead", f"the stamp is {step * 1e-9:.3f} s after the one of the last message, which came "
                             f"{elapsed * 1e-9:.3f} s ago, and {ahead * 1e-9:.3f} s ahead of this node's clock")
        return now


def goal_from_message(message: JointTrajectory, joint_names: tuple[str, ...]) -> Goal:
    """Return the goal of a JointTrajectory for a robot with these joints. Raises Rejected."""
    points = [TrajectoryPoint(nanoseconds(p.time_from_start) * 1e-9, p.positions, p.velocities, p.accelerations)
              for p in message.points]
    return read_goal(joint_names, list(message.joint_names), points, nanoseconds(message.header.stamp))
