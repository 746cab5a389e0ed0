"""A node that listens while a demo runs, in a ROS context of its own: signals stay with the caller, who ends processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

POLL = 0.05  # s; to spin at a time


@contextmanager
def monitor(name: str, domain_id: int) -> Iterator[tuple[Node, SingleThreadedExecutor]]:
    """The node, and what spins it."""
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain_id, signal_handler_options=SignalHandlerOptions.NO)
    node, executor = rclpy.create_node(name, context=context), SingleThreadedExecutor(context=context)
    executor.add_node(node)
    try:
        yield node, executor
    finally:
        executor.shutdown()
        node.destroy_node()
        rclpy.try_shutdown(context=context)
