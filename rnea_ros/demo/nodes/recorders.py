"""Recording nodes: they subscribe to the nodes of a demo and keep their messages.

Each runs in a separate ROS context without signal handlers: the caller handles signals and ends processes.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from rclpy.signals import SignalHandlerOptions
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_msgs.msg import JointDynamics, ModelInfo, ScaledMotion
from rnea_msgs.srv import SetOverride
from rnea_ros.demo.robot_demo import DemoRecording, Topics, TopicSeries
from rnea_ros.nodes.common.topics import LATCHED, duration, nanoseconds

POLL_S = 0.05  # of one spin


@contextmanager
def recording_node(name: str, domain_id: int) -> Iterator[tuple[Node, SingleThreadedExecutor]]:
    """Create a node and its executor in a new context."""
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


def watch_dynamics(topic: str | None, wait: float, seconds: float, show: Callable[[JointDynamics, Sequence[str]], bool]
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

    with recording_node("rnea_watch", domain) as (node, executor):
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
            executor.spin_once(timeout_sec=POLL_S)
            if state["received"] and wait:
                end, wait = time.monotonic() + seconds, 0.0
    return chosen, others


ReceivedDynamics = tuple[DemoRecording, Topics]

FIELDS = ("position", "velocity", "acceleration", "jerk", "effort", "effort_rate")
RECORDER_QOS = QoSProfile(depth=1000)
MAX_SLOWDOWN = 20.0  # of a simulated robot, relative to real time


def record_dynamics(domain_id: int, seconds: float, timeout_s: float, on_message: Callable[[JointDynamics], None],
                    still_there: Callable[[], bool],
                    topics: Mapping[str, tuple[str, str]] | None = None) -> ReceivedDynamics | None:
    """Return all messages of `seconds` by their stamps, from the time at which every topic has a message.

    None if a topic has no message within `timeout_s`, or if the senders end or take more than MAX_SLOWDOWN times as long.
    topics : further topics, key -> (type as "geometry_msgs/PoseStamped", topic)
    """
    received: list[tuple] = []
    others: dict[str, list[tuple[int, list[float]]]] = {key: [] for key in topics or {}}

    def keep(message: JointDynamics) -> None:
        received.append((nanoseconds(message.header.stamp), *(np.array(getattr(message, field)) for field in FIELDS)))
        on_message(message)

    with recording_node("demo_monitor", domain_id) as (node, executor):
        node.create_subscription(JointDynamics, "dynamics_node/joint_dynamics", keep, RECORDER_QOS)
        for key, (kind, topic) in (topics or {}).items():
            node.create_subscription(message_type(kind), topic, partial(_keep_numbers, others[key]), RECORDER_QOS)
        end, started, complete = time.monotonic() + timeout_s, False, False
        while time.monotonic() < end and still_there() and not complete:
            executor.spin_once(timeout_sec=POLL_S)
            if not started and received and all(others.values()):
                started, end = True, time.monotonic() + MAX_SLOWDOWN * seconds
                del received[:-1]
            complete = started and received[-1][0] - received[0][0] >= seconds * 1e9
    if not complete:
        return None
    return DemoRecording(*map(np.array, zip(*received))), {key: _to_series(kept) for key, kept in others.items()}


def _keep_numbers(kept: list[tuple[int, list[float]]], message: Any) -> None:
    kept.append((nanoseconds(message.header.stamp), list(numbers(message))))


def _to_series(kept: list[tuple[int, list[float]]]) -> TopicSeries:
    if not kept:
        return TopicSeries(np.zeros(0, dtype=int), np.zeros((0, 0)))
    return TopicSeries(*map(np.array, zip(*kept)))


def message_type(name: str) -> Any:
    """Return the message class of a name as "geometry_msgs/PoseStamped"."""
    package, kind = name.split("/")
    return getattr(importlib.import_module(f"{package}.msg"), kind)


def numbers(message: Any) -> Iterator[float]:
    """Yield all numbers of a message except its header's, in the order of the fields."""
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


class ServiceCall(NamedTuple):
    """Service call when the motion reaches a share of its path, `seconds` after the previous call; after a pause, the time
    counts from the state of rest.
    """

    progress: float
    seconds: float
    service: str
    share: float = 1.0


def trajectory_message(joint_names: Sequence[str], points: np.ndarray, times: np.ndarray) -> JointTrajectory:
    """Return the trajectory of waypoints (points, n) at times (points,) [s]."""
    message = JointTrajectory(joint_names=list(joint_names))
    for t, q in zip(times, points):
        message.points.append(JointTrajectoryPoint(positions=q.tolist(), time_from_start=duration(t)))
    return message


class ServiceSequence:
    """Sequence of service calls during a motion."""

    def __init__(self, node: Node, calls: Sequence[ServiceCall]):
        self._waiting, self._since, self._pausing = list(calls), 0.0, False
        self._triggers = {name: node.create_client(Trigger, f"scaling_node/{name}") for name in ("pause", "resume")}
        self._override = node.create_client(SetOverride, "scaling_node/override")

    def is_ready(self) -> bool:
        """Return whether all services are available."""
        return all(client.service_is_ready() for client in (*self._triggers.values(), self._override))

    def on_sample(self, scaled: ScaledMotion) -> None:
        if self._pausing and scaled.phase == ScaledMotion.PAUSED:
            self._since, self._pausing = scaled.t, False
        if not self._waiting or self._pausing:
            return
        call = self._waiting[0]
        if scaled.progress >= call.progress and scaled.t >= self._since + call.seconds:
            self._waiting.pop(0)
            self._since, self._pausing = scaled.t, call.service == "pause"
            if call.service == "override":
                self._override.call_async(SetOverride.Request(share=call.share))
            else:
                self._triggers[call.service].call_async(Trigger.Request())


def record_scaling(domain_id: int, message: JointTrajectory, calls: Sequence[ServiceCall], timeout_s: float,
                   on_message: Callable[[Any], None], still_there: Callable[[], bool]) -> list[ScaledMotion]:
    """Return all messages of one motion; fewer if it does not end within `timeout_s` or the node ended."""
    received: list[ScaledMotion] = []
    with recording_node("scaling_monitor", domain_id) as (node, executor):
        sequence = ServiceSequence(node, calls)

        def keep(scaled: ScaledMotion) -> None:
            received.append(scaled)
            on_message(scaled)
            sequence.on_sample(scaled)

        node.create_subscription(ScaledMotion, "scaling_node/scaled_motion", keep, QoSProfile(depth=5000))
        publisher = node.create_publisher(JointTrajectory, "scaling_node/joint_trajectory", 10)
        end, sent = time.monotonic() + timeout_s, False
        while time.monotonic() < end and still_there() and not (received and received[-1].phase == ScaledMotion.ENDED):
            executor.spin_once(timeout_sec=POLL_S)
            found = publisher.get_subscription_count() and node.count_publishers("scaling_node/scaled_motion")
            if not sent and found and sequence.is_ready():
                publisher.publish(message)
                sent = True
    return received
