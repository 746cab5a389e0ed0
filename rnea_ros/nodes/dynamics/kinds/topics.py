"""Topics that only some kinds of robots have: made when the first robot wants them, kept for the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile

from rnea_ros.nodes.common.diagnostics import Stream
from rnea_ros.nodes.fastpath.messages import RawPublisher


class Topics:
    """Of one node. Whoever asks for a topic that is there already gets that one."""

    def __init__(self, node: Node, outgoing: int, incoming: QoSProfile, moved: Callable[[Stream, int, int], None],
                 received: Callable[[], None] = lambda: None):
        """moved(stream, arrival [ns], stamp [ns]) is to be called when a message of a stream gives the robot's motion at a
        stamp; received() is called after each message."""
        self.moved, self._received = moved, received
        self._node, self._outgoing, self._incoming = node, outgoing, incoming
        self._publishers: dict[str, RawPublisher] = {}
        self._heard: dict[str, Callable[[bytes], None]] = {}

    def publisher(self, kind: Any, name: str) -> RawPublisher:
        if name not in self._publishers:
            self._publishers[name] = RawPublisher(self._node.create_publisher(kind, name, self._outgoing))
        return self._publishers[name]

    def hear(self, kind: Any, name: str, callback: Callable[[bytes], None]) -> None:
        """The bytes of every message go to this callback from now on, and to no other."""
        def receive(data: bytes) -> None:
            self._heard[name](data)
            self._received()

        if name not in self._heard:
            self._node.create_subscription(kind, name, receive, self._incoming, raw=True)
        self._heard[name] = callback

    def clock(self) -> int:
        """What the node's clock shows [ns]."""
        return int(self._node.get_clock().now().nanoseconds)
