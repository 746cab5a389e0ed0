"""Listens to a dynamics node for a while and keeps what it says."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from rclpy.qos import QoSProfile

from rnea_msgs.msg import JointDynamics
from rnea_ros.demo.checks import DemoRecording
from rnea_ros.demo.nodes.monitor import POLL, monitor
from rnea_ros.nodes.common.stamps import nanoseconds

FIELDS = ("position", "velocity", "acceleration", "jerk", "effort", "effort_rate")


def record(domain_id: int, seconds: float, patience: float, on_message: Callable[[JointDynamics], None],
           still_there: Callable[[], bool]) -> DemoRecording | None:
    """All messages of `seconds` from the first one on; None if none came within `patience` or the senders have gone."""
    received: list[tuple] = []

    def keep(message: JointDynamics) -> None:
        received.append((nanoseconds(message.header.stamp), *(np.array(getattr(message, field)) for field in FIELDS)))
        on_message(message)

    with monitor("demo_monitor", domain_id) as (node, executor):
        node.create_subscription(JointDynamics, "dynamics_node/joint_dynamics", keep, QoSProfile(depth=1000))
        end = time.monotonic() + patience
        first = True
        while time.monotonic() < end and still_there():
            executor.spin_once(timeout_sec=POLL)
            if received and first:
                first, end = False, time.monotonic() + seconds
        complete = time.monotonic() >= end
    return DemoRecording(*map(np.array, zip(*received))) if received and complete else None
