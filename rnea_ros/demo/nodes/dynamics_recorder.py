"""Listens to a dynamics node for a while and keeps what it says."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions

from rnea_msgs.msg import JointDynamics
from rnea_ros.demo.checks import DemoRecording
from rnea_ros.nodes.common.stamps import nanoseconds

FIELDS = ("position", "velocity", "acceleration", "jerk", "effort", "effort_rate")
POLL = 0.05  # s


def record(domain_id: int, seconds: float, patience: float, on_message: Callable[[JointDynamics], None],
           still_there: Callable[[], bool]) -> DemoRecording | None:
    """All messages of `seconds` from the first one on; None if none came within `patience` or the senders have gone.

    Signals stay with the caller, which has processes to clean up.
    """
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain_id, signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node("demo_monitor", context=context)
    heard: list[tuple] = []

    def keep(message: JointDynamics) -> None:
        heard.append((nanoseconds(message.header.stamp), *(np.array(getattr(message, field)) for field in FIELDS)))
        on_message(message)

    node.create_subscription(JointDynamics, "dynamics_node/joint_dynamics", keep, QoSProfile(depth=1000))
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    try:
        end = time.monotonic() + patience
        first = True
        while time.monotonic() < end and still_there():
            executor.spin_once(timeout_sec=POLL)
            if heard and first:
                first, end = False, time.monotonic() + seconds
        complete = time.monotonic() >= end
    finally:
        executor.shutdown()
        node.destroy_node()
        rclpy.try_shutdown(context=context)
    return DemoRecording(*map(np.array, zip(*heard))) if heard and complete else None
