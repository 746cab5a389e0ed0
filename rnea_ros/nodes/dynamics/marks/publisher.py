"""~/markers: made and sent at a rate of its own, while somebody wants them."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions, QoSPolicyKind
from rclpy.timer import Timer
from visualization_msgs.msg import MarkerArray

from rnea_ros.errors import Rejected
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.dynamics.kinds.served_robot import ServedRobot
from rnea_ros.nodes.dynamics.marks.markers import Markers, message
from rnea_ros.nodes.dynamics.messages import DynamicsMessages

DEPTH = 10
WHOLE_RATE, STAYING_RATE = 10.0, 1.0  # Hz; of marks that cost more to compute, and of those that stay as they are


class Shown(NamedTuple):
    """What there is to show: a robot, its last results and the loads that they are with, wrenches (6,) on its links."""

    robot: ServedRobot
    out: DynamicsMessages
    loads: dict[str, Any]
    wrenches: Mapping[str, np.ndarray]


class MarkerPublisher:
    """Publisher of the markers of one node.

    Its QoS can be overridden: `durability: transient_local` keeps the last markers for late-joining subscribers.
    """

    def __init__(self, node: Node, look: Callable[[], Shown | None]):
        """look() is None while nothing is computed."""
        policies = [QoSPolicyKind.DEPTH, QoSPolicyKind.DURABILITY, QoSPolicyKind.HISTORY, QoSPolicyKind.RELIABILITY]
        self._publisher = node.create_publisher(MarkerArray, "~/markers", QoSProfile(depth=DEPTH),
                                                qos_overriding_options=QoSOverridingOptions(policies))
        self._node, self._look = node, look
        self._clock = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer: Timer | None = None
        self._markers: Markers | None = None
        self._rate, self._size, self._count = 0.0, 0.0, 0

    def configure(self, values: Values) -> None:
        """Parameters are so now, or the robot is another one."""
        self._markers, self._size, self._count = None, values["markers.size"], 0
        rate = values["markers.rate"] if values["publish_markers"] else 0.0
        if rate != self._rate:
            if self._timer is not None:
                self._node.destroy_timer(self._timer)
            self._timer = self._node.create_timer(1.0 / rate, self._tick, clock=self._clock) if rate else None
            self._rate = rate

    def _tick(self) -> None:
        try:
            shown = self._look() if self._publisher.get_subscription_count() else None
            if shown is None:
                self._count = 0
            else:
                self._publisher.publish(self._message(shown))
        except Rejected:
            pass  # counted where it came from: a wrench that is out of date, a base that is not heard
        except Exception:  # pictures must not end what computes torques
            self._node.get_logger().error(traceback.format_exc(), throttle_duration_sec=10.0)

    def _message(self, shown: Shown) -> MarkerArray:
        markers = self._markers = self._markers or Markers(shown.robot, self._size, shown.robot.cuts)
        markers.fill(shown.out, shown.wrenches, shown.robot.constraint_wrenches())
        marks = markers.changing
        if self._due(WHOLE_RATE) and (body := shown.robot.body([*shown.out.motion], shown.loads)) is not None:
            markers.fill_whole(body)
            marks = marks + markers.whole
        if self._due(STAYING_RATE):
            markers.fill_staying(shown.out)
            marks = marks + markers.staying
        self._count += 1
        return message(marks, shown.out.header.stamp)

    def _due(self, rate: float) -> bool:
        return self._count % max(1, round(self._rate / rate)) == 0
