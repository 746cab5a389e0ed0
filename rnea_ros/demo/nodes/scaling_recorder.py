"""Sends a trajectory to a scaling node, interferes with it on its way, and keeps what the node says."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_msgs.msg import ScaledMotion
from rnea_msgs.srv import SetOverride
from rnea_ros.demo.nodes.monitor import POLL, monitor
from rnea_ros.nodes.common.stamps import duration


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


class Interference:
    """Does what is to be done on the way, each act in its turn."""

    def __init__(self, node: Node, acts: Sequence[Act]):
        self._waiting, self._since, self._pausing = list(acts), 0.0, False
        self._triggers = {name: node.create_client(Trigger, f"scaling_node/{name}") for name in ("pause", "resume")}
        self._override = node.create_client(SetOverride, "scaling_node/override")

    def ready(self) -> bool:
        """Whether all services are there."""
        return all(client.service_is_ready() for client in (*self._triggers.values(), self._override))

    def look(self, scaled: ScaledMotion) -> None:
        if self._pausing and scaled.phase == ScaledMotion.PAUSED:
            self._since, self._pausing = scaled.t, False
        if not self._waiting or self._pausing:
            return
        act = self._waiting[0]
        if scaled.progress >= act.progress and scaled.t >= self._since + act.seconds:
            self._waiting.pop(0)
            self._since, self._pausing = scaled.t, act.service == "pause"
            if act.service == "override":
                self._override.call_async(SetOverride.Request(share=act.share))
            else:
                self._triggers[act.service].call_async(Trigger.Request())


def record(domain_id: int, message: JointTrajectory, acts: Sequence[Act], patience: float, on_message: Callable[[Any], None],
           still_there: Callable[[], bool]) -> list[ScaledMotion]:
    """All messages of one motion; fewer if it does not end in time or the node has gone."""
    received: list[ScaledMotion] = []
    with monitor("scaling_monitor", domain_id) as (node, executor):
        interference = Interference(node, acts)

        def keep(scaled: ScaledMotion) -> None:
            received.append(scaled)
            on_message(scaled)
            interference.look(scaled)

        node.create_subscription(ScaledMotion, "scaling_node/scaled_motion", keep, QoSProfile(depth=5000))
        publisher = node.create_publisher(JointTrajectory, "scaling_node/joint_trajectory", 10)
        end, sent = time.monotonic() + patience, False
        while time.monotonic() < end and still_there() and not (received and received[-1].phase == ScaledMotion.ENDED):
            executor.spin_once(timeout_sec=POLL)
            found = publisher.get_subscription_count() and node.count_publishers("scaling_node/scaled_motion")
            if not sent and found and interference.ready():
                publisher.publish(message)
                sent = True
    return received
