"""Listens to a dynamics node for a while and keeps what it says."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from rclpy.qos import QoSProfile
from std_msgs.msg import Empty

from rnea_msgs.msg import JointDynamics
from rnea_ros.demo.nodes.monitor import POLL, monitor
from rnea_ros.demo.recording import DemoRecording, Heard, Series
from rnea_ros.nodes.common.robot_description import LATCHED
from rnea_ros.nodes.common.stamps import nanoseconds

Received = tuple[DemoRecording, Heard]

FIELDS = ("position", "velocity", "acceleration", "jerk", "effort", "effort_rate")
DEEP = QoSProfile(depth=1000)
LISTENS = "demo_listens"
SLOWEST = 20.0  # a simulated robot may be slower than time


def record(domain_id: int, seconds: float, patience: float, on_message: Callable[[JointDynamics], None],
           still_there: Callable[[], bool], beside: Mapping[str, tuple[str, str]] | None = None) -> Received | None:
    """All messages of `seconds`, by their stamps, from when all topics have been heard; None if one was not within `patience`,
    or if the senders have gone or take SLOWEST times as long.

    beside: other topics to listen to, key -> (type as "geometry_msgs/PoseStamped", topic)
    When the first message of each topic has come, a latched message on demo_listens says so.
    """
    received: list[tuple] = []
    others: dict[str, list[tuple[int, list[float]]]] = {key: [] for key in beside or {}}

    def keep(message: JointDynamics) -> None:
        received.append((nanoseconds(message.header.stamp), *(np.array(getattr(message, field)) for field in FIELDS)))
        on_message(message)

    with monitor("demo_monitor", domain_id) as (node, executor):
        node.create_subscription(JointDynamics, "dynamics_node/joint_dynamics", keep, DEEP)
        for key, (kind, topic) in (beside or {}).items():
            node.create_subscription(message_type(kind), topic, partial(_keep_numbers, others[key]), DEEP)
        listens = node.create_publisher(Empty, LISTENS, LATCHED)
        end, told, complete = time.monotonic() + patience, False, False
        while time.monotonic() < end and still_there() and not complete:
            executor.spin_once(timeout_sec=POLL)
            if not told and received and all(others.values()):
                told, end = True, time.monotonic() + SLOWEST * seconds
                del received[:-1]
                listens.publish(Empty())
            complete = told and received[-1][0] - received[0][0] >= seconds * 1e9
    if not complete:
        return None
    return DemoRecording(*map(np.array, zip(*received))), {key: _series(kept) for key, kept in others.items()}


def _keep_numbers(kept: list[tuple[int, list[float]]], message: Any) -> None:
    kept.append((nanoseconds(message.header.stamp), list(numbers(message))))


def _series(kept: list[tuple[int, list[float]]]) -> Series:
    if not kept:
        return Series(np.zeros(0, dtype=int), np.zeros((0, 0)))
    return Series(*map(np.array, zip(*kept)))


def message_type(name: str) -> Any:
    """The class of "geometry_msgs/PoseStamped"."""
    package, kind = name.split("/")
    return getattr(importlib.import_module(f"{package}.msg"), kind)


def numbers(message: Any) -> Iterator[float]:
    """All numbers of a message but its header's, in the order of its fields."""
    for name in message.get_fields_and_field_types():
        value = getattr(message, name)
        if name == "header" or isinstance(value, str):
            continue
        if hasattr(value, "get_fields_and_field_types"):
            yield from numbers(value)
        elif isinstance(value, (int, float)):
            yield float(value)
        else:
            yield from (float(part) for part in value if isinstance(part, (int, float)))
