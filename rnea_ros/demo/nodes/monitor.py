"""Nodes that only listen, each in a ROS context of its own: signals stay with the caller, which ends processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from rclpy.signals import SignalHandlerOptions

from rnea_msgs.msg import JointDynamics, ModelInfo
from rnea_ros.nodes.common.robot_description import LATCHED

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


def watch(topic: str | None, wait: float, seconds: float, show: Callable[[JointDynamics, Sequence[str]], bool]
          ) -> tuple[str | None, list[str]]:
    """Show the messages of a JointDynamics topic until `show` returns False, or for `seconds` after the first one.

    topic : its name; None for the first topic of that type
    wait  : longest time until the first message [s]
    show  : called with each message and the joint types of the model, empty while these are unknown
    Returns the topic, None if there is none, and the other topics of that type.
    """
    domain = int(os.environ.get("ROS_DOMAIN_ID") or 0)
    kinds: dict[str, str] = {}
    state = {"going": True, "received": False}

    def on_message(message: JointDynamics) -> None:
        if state["going"]:
            state["received"] = True
            state["going"] = show(message, [kinds.get(name, "revolute") for name in message.joint_names])

    with monitor("rnea_watch", domain) as (node, executor):
        subscription, chosen, others = None, None, []
        end = time.monotonic() + wait
        while state["going"] and time.monotonic() < end:
            if subscription is None:
                topics = node.get_topic_names_and_types()
                found = sorted(name for name, types in topics if "rnea_msgs/msg/JointDynamics" in types)
                chosen = node.resolve_topic_name(topic) if topic else found[0] if found else None
                others = [name for name in found if name != chosen]
                if chosen and (chosen in found or topic):
                    subscription = node.create_subscription(JointDynamics, chosen, on_message, qos_profile_sensor_data)
                    node.create_subscription(ModelInfo, f"{chosen.rpartition('/')[0]}/model_info",
                                             lambda info: kinds.update(zip(info.joint_names, info.joint_types)), LATCHED)
            executor.spin_once(timeout_sec=POLL)
            if state["received"] and wait:
                end, wait = time.monotonic() + seconds, 0.0
    return chosen, others
