"""Polled subscriptions for fast topics: an executor that wakes up for each message would be most of the work."""

from __future__ import annotations

from typing import Any

import rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy


class Streams:
    """Subscriptions of a node without executor, by names."""

    def __init__(self, beside: Node):
        self._node = rclpy.create_node(f"{beside.get_name()}_streams", context=beside.context, enable_rosout=False,
                                       start_parameter_services=False)
        self._open: dict[str, Any] = {}

    def watch(self, name: str, kind: Any, topic: str, depth: int) -> None:
        """Subscribe; the newest `depth` messages are kept, older ones are dropped. Replaces a subscription of this name."""
        newest = QoSProfile(depth=depth, reliability=ReliabilityPolicy.BEST_EFFORT)
        if name in self._open:
            self._node.destroy_subscription(self._open.pop(name))
        self._open[name] = self._node.create_subscription(kind, topic, _no_source, newest)

    def take(self, name: str) -> list[Any]:
        """All messages that wait."""
        found: list[Any] = []
        if subscription := self._open.get(name):
            with subscription.handle:
                while taken := subscription.handle.take_message(subscription.msg_type, False):
                    found.append(taken[0])
        return found

    def end(self) -> None:
        self._open.clear()
        self._node.destroy_node()


def _no_source(_: Any) -> None:
    """Return the callbacks that an executor would call."""
