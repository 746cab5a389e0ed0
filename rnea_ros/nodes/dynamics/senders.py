"""Senders of joint states: identified message by message, and named in diagnostics where several publish the same joints.

What rclpy reports of a message differs: newer ones give the sender's identity, those since Iron the number that the sender
gave the message, Humble's gives nothing.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.node import Node
from rclpy.subscription import Subscription

from rnea_ros.errors import some
from rnea_ros.nodes.dynamics.joint_layouts import SENDERS
from rnea_ros.nodes.dynamics.joint_states import StateReader

OFTEN, LATELY = 3, 2.0  # jumps of stamps within this time [s], which are no accident
GID = 16  # bytes of a publisher's identity
LOST = 1000  # messages of one sender in a row, at most

MessageInfo = Mapping[str, Any]


def with_info(callback: Callable[[bytes, MessageInfo], None]) -> Callable[..., None]:
    """A callback of a message and what is known of it, as this rclpy takes it: Humble's hands on the message alone."""
    return callback if hasattr(Subscription, "CallbackType") else lambda data: callback(data, {})


class Senders:
    """The senders on a topic."""

    def __init__(self, node: Node, topic: str):
        self._node, self._topic = node, topic
        self._jumps: deque[float] = deque(maxlen=OFTEN)  # when, by the steady clock [s]
        self._numbers: list[int] = []  # the newest of each sender, where those are all that there is
        self._identified = self._numbered = False  # whether there are identities, or numbers

    def sender(self, info: MessageInfo) -> bytes:
        """Of a message: the same bytes for the same sender, as far as that can be known."""
        gid = info.get("publisher_gid")
        if gid:
            self._identified = True
            return gid["data"]
        number = info.get("publication_sequence_number")
        if number is None:
            return b""
        self._numbered = True
        return bytes([self._by_number(number)])

    def _by_number(self, number: int) -> int:
        """Each sender counts its own messages: this one comes from whom it brings on the least."""
        steps = [(number - newest, k) for k, newest in enumerate(self._numbers) if 0 < number - newest <= LOST]
        if steps:
            k = min(steps)[1]
            self._numbers[k] = number
            return k
        if len(self._numbers) >= SENDERS:
            self._numbers.clear()
        self._numbers.append(number)
        return len(self._numbers) - 1

    def jumped(self) -> None:
        """The stamp of a message did not go on from the one before."""
        self._jumps.append(time.monotonic())

    def warnings(self, state: StateReader) -> list[str]:
        """Whether, and from whom, the joint states of the same joints come more than once."""
        senders, joints = state.rivals()
        if senders:
            return [f"{len(senders)} senders publish {some(joints)} on {self._topic}: {some(self._names(senders))}; the first "
                    "is used, messages of the others are rejected (other_sender): stop them, or remap their topic"]
        jumping = len(self._jumps) == OFTEN and time.monotonic() - self._jumps[0] < LATELY
        unknown = not (self._identified or self._numbered) and len(self._names()) > len(state.lately())
        if len(self._names()) > 1 and (jumping or unknown):
            why = "stamps jump repeatedly" if jumping else "this ROS distribution does not identify the sender of a message"
            return [f"{why}: if more than one of {some(self._names())} publishes the same joints on {self._topic}, their "
                    "messages are mixed and torques are wrong; stop all but one, or remap their topics"]
        return []

    def _names(self, senders: set[bytes] | None = None) -> list[str]:
        """The nodes that publish here, or those of them that are these senders, where that is known."""
        found = self._node.get_publishers_info_by_topic(self._topic)
        return sorted(f"{publisher.node_namespace.rstrip('/')}/{publisher.node_name}" for publisher in found
                      if senders is None or not self._identified or bytes(publisher.endpoint_gid[:GID]) in senders)
