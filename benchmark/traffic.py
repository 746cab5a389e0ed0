"""Traffic of the node benchmark: joint states at a fixed rate out, results in, each trip timed.

A separate process, ``python traffic.py '{"rate": 1000, ...}'``. Each line of its input is a number of seconds, after which it
prints one line of JSON; the stamps continue from one to the next. Results are taken as raw bytes, from a separate wait set:
what the receiving side costs would otherwise hide what the node costs.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import time
from contextlib import suppress
from typing import Any

import numpy as np
import rclpy
from builtin_interfaces.msg import Time
from rclpy.impl.implementation_singleton import rclpy_implementation as rcl
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

from rnea_msgs.msg import JointDynamics, JointMotion

SENSOR = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)
TOPICS = {"joint_effort": JointState, "joint_effort_rate": JointState, "joint_dynamics": JointDynamics}
STAMP = struct.Struct("<iI")  # at byte 4 of every message that begins with a header
DISCOVERY, DRAIN = 20.0, 0.5  # s
NANOSECONDS = 1_000_000_000


class Traffic:
    """rate [1/s], desired_every: one desired motion for so many states, names: the joints, node, topics: whom to listen to."""

    def __init__(self, node: str, topics: list[str], names: list[str], rate: float, desired_every: int):
        self.node = Node("traffic")
        self.rate, self.desired_every, self.period_ns = rate, desired_every, round(NANOSECONDS / rate)
        self.states = self.node.create_publisher(JointState, "joint_states", SENSOR)
        self.desired = self.node.create_publisher(JointMotion, f"{node}/desired_motion", SENSOR)
        self.topics = topics
        self.subscriptions = [self.node.create_subscription(TOPICS[topic], f"{node}/{topic}", lambda _: None, 100, raw=True)
                              for topic in topics]
        zeros = [0.0] * len(names)
        self.state = JointState(name=names, position=zeros, velocity=zeros, effort=zeros)
        self.motion = JointMotion(joint_names=names, acceleration=zeros, jerk=zeros)
        self.phases = np.linspace(0.0, 2.0, len(names))
        self.wait_set = rcl.WaitSet(len(self.subscriptions), 0, 0, 0, 0, 0, self.node.context.handle)
        self.first, self.sent = 0, np.zeros(0)  # number of the first message of a run; times of its messages
        self.trips: dict[str, dict[int, float]] = {}

    def connect(self) -> None:
        """Wait until all endpoints are discovered."""
        end = time.monotonic() + DISCOVERY
        while not (self.states.get_subscription_count() and all(s.get_publisher_count() for s in self.subscriptions)):
            if time.monotonic() > end:
                raise SystemExit("the node was not found")
            time.sleep(0.05)

    def run(self, seconds: float) -> dict[str, Any]:
        """Publish for some seconds and return what came back."""
        count, self.first = int(seconds * self.rate), self.first + len(self.sent)
        self.sent, self.trips = np.zeros(count), {topic: {} for topic in self.topics}
        start = time.monotonic() + 0.01
        for k in range(count):
            self._receive(start + k / self.rate)
            self._send(k)
        self._receive(time.monotonic() + DRAIN)
        return {"sent": count, "seconds": time.monotonic() - start - DRAIN,
                "trips_us": {topic: [1e6 * seen[k] if k in seen else None for k in range(count)]
                             for topic, seen in self.trips.items()}}

    def _send(self, k: int) -> None:
        number = self.first + k
        angles = number / self.rate + self.phases
        seconds, nanoseconds = divmod(number * self.period_ns, NANOSECONDS)
        stamp = Time(sec=1 + seconds, nanosec=nanoseconds)
        if k % self.desired_every == 0:
            self.motion.header.stamp = stamp
            self.motion.acceleration, self.motion.jerk = (-np.sin(angles)).tolist(), (-np.cos(angles)).tolist()
            self.desired.publish(self.motion)
        self.state.header.stamp = stamp
        self.state.position, self.state.velocity = np.sin(angles).tolist(), np.cos(angles).tolist()
        self.sent[k] = time.monotonic()
        self.states.publish(self.state)

    def _receive(self, until: float) -> None:
        """Take what comes until a time."""
        wait_set = self.wait_set
        while (left := until - time.monotonic()) > 0.0:
            wait_set.clear_entities()
            for subscription in self.subscriptions:
                wait_set.add_subscription(subscription.handle)
            wait_set.wait(int(left * 1e9))
            for k, (topic, subscription) in enumerate(zip(self.topics, self.subscriptions)):
                while wait_set.is_ready("subscription", k) and (taken := subscription.handle.take_message(None, True)):
                    seconds, nanoseconds = STAMP.unpack_from(taken[0], 4)
                    number = ((seconds - 1) * NANOSECONDS + nanoseconds) // self.period_ns - self.first
                    if 0 <= number < len(self.sent) and seconds > 0:
                        self.trips[topic][number] = time.monotonic() - self.sent[number]


def main() -> None:
    wanted = json.loads(sys.argv[1])
    with suppress(OSError):  # a clock that comes too late would be taken for a slow node
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(60))
    rclpy.init(args=[])
    traffic = Traffic(wanted["node"], wanted["topics"], wanted["names"], wanted["rate"], wanted["desired_every"])
    traffic.connect()
    time.sleep(wanted["settle"])
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(traffic.run(float(line))), flush=True)


if __name__ == "__main__":
    main()
