"""Sends a trajectory to a scaling node, interferes with it on its way, and keeps what the node says."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_msgs.msg import ScaledMotion
from rnea_msgs.srv import SetOverride
from rnea_ros.nodes.scaling.messages import duration

POLL = 0.05  # s


class Act(NamedTuple):
    """To be done when the motion has come to a share of its path, so many seconds after the act before; if that was a pause,
    after it had brought the motion to rest."""

    progress: float
    seconds: float
    service: str
    share: float = 1.0


def trajectory(joint_names: Sequence[str], points: np.ndarray, times: np.ndarray) -> JointTrajectory:
    message = JointTrajectory(joint_names=list(joint_names))
    for t, q in zip(times, points):
        message.points.append(JointTrajectoryPoint(positions=q.tolist(), time_from_start=duration(t)))
    return message


def record(domain_id: int, message: JointTrajectory, acts: Sequence[Act], patience: float, on_message: Callable[[Any], None],
           still_there: Callable[[], bool]) -> list[ScaledMotion]:
    """All messages of one motion; fewer if it does not end in time or the node has gone. Signals stay with the caller."""
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain_id, signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node("scaling_monitor", context=context)
    heard: list[ScaledMotion] = []
    waiting, since, pausing = list(acts), 0.0, False

    def keep(scaled: ScaledMotion) -> None:
        nonlocal since, pausing
        heard.append(scaled)
        on_message(scaled)
        if pausing and scaled.phase == ScaledMotion.PAUSED:
            since, pausing = scaled.t, False
        if waiting and not pausing and scaled.progress >= waiting[0].progress and scaled.t >= since + waiting[0].seconds:
            act = waiting.pop(0)
            since, pausing = scaled.t, act.service == "pause"
            if act.service == "override":
                override.call_async(SetOverride.Request(share=act.share))
            else:
                triggers[act.service].call_async(Trigger.Request())

    node.create_subscription(ScaledMotion, "scaling_node/scaled_motion", keep, QoSProfile(depth=5000))
    publisher = node.create_publisher(JointTrajectory, "scaling_node/joint_trajectory", 10)
    triggers = {name: node.create_client(Trigger, f"scaling_node/{name}") for name in ("pause", "resume")}
    override = node.create_client(SetOverride, "scaling_node/override")
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    try:
        end, sent = time.monotonic() + patience, False
        while time.monotonic() < end and still_there() and not (heard and heard[-1].phase == ScaledMotion.ENDED):
            executor.spin_once(timeout_sec=POLL)
            ready = all(client.service_is_ready() for client in (*triggers.values(), override))
            found = publisher.get_subscription_count() and node.count_publishers("scaling_node/scaled_motion")
            if not sent and ready and found:
                publisher.publish(message)
                sent = True
    finally:
        executor.shutdown()
        node.destroy_node()
        rclpy.try_shutdown(context=context)
    return heard
