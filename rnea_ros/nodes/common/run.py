"""Spin a node until a signal ends it, with the exit code that a launch file expects."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import cast

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions, install_signal_handlers

from rnea_ros import RneaError
from rnea_ros.nodes.common.failures import Failures
from rnea_ros.nodes.common.shutdown import SIGNALS, Finishing, graceful_shutdown, noted_signals
from rnea_ros.nodes.fastpath.executor import LeanExecutor


def run(make_node: Callable[[], Node], args: Sequence[str] | None = None) -> int:
    """Spin a node until SIGINT or SIGTERM. Returns the exit code: 0, or 1 if the node was given bad parameters. A callback
    that fails is logged and counted, and does not end it.

    A node with an attribute `lean` that is true is spun by the LeanExecutor's own way. One with a method `finish` may first
    bring to an end what is under way.
    """
    came = noted_signals()
    # rclpy's handlers end the context. While a node is made, that made processes crash in the middleware: they come after it.
    rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    node = None
    try:
        executor = LeanExecutor()
        node = make_node()
        install_signal_handlers(SignalHandlerOptions.ALL)
        if came:
            raise ExternalShutdownException
        executor.lean = getattr(node, "lean", False)
        executor.on_failure = Failures(node).add
        executor.add_node(node)
        with graceful_shutdown(cast(Finishing, node)) if hasattr(node, "finish") else nullcontext():
            executor.spin()
    except ExternalShutdownException:
        pass
    except (RneaError, ParameterException) as error:
        print(f"cannot start: {error}", file=sys.stderr)
        return 1
    except Exception:
        if rclpy.ok() and not came:  # else a signal ended the context in the middle of something: that is no failure
            raise
    finally:
        for number in SIGNALS:  # a second one must not interrupt the cleaning up
            signal.signal(number, signal.SIG_IGN)
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()
    return 0
