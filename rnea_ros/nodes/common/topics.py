"""Topics that only some robots have: created when the first robot needs them, kept for the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile

from rnea_ros.nodes.common.diagnostics import Stream
from rnea_ros.nodes.fastpath.messages import RawPublisher


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
