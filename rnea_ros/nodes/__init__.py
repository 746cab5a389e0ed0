"""Thin ROS 2 adapters around the library: parse, call, publish."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node

from rnea_ros import RneaError


def run(make_node: Callable[[], Node], args: Sequence[str] | None = None) -> int:
    """Spin a node until SIGINT or SIGTERM. Returns the exit code: 0, or 1 if the node was given bad parameters."""
    rclpy.init(args=args)
    node = None
    try:
        node = make_node()
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        executor.spin()
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except (RneaError, ParameterException) as error:
        print(f"cannot start: {error}", file=sys.stderr)
        return 1
    finally:
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()
    return 0
