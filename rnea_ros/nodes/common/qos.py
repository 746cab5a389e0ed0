"""Quality of service of all topics and services of the nodes."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

LATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
# Best effort: subscribers receive reliable and best-effort publishers, and a lost message is not repeated late.
DYNAMICS_QUEUE = 100  # at 1 kHz no message is lost while the process, or a subscriber, is not scheduled for 0.1 s
DYNAMICS_SENSOR = QoSProfile(depth=DYNAMICS_QUEUE, reliability=ReliabilityPolicy.BEST_EFFORT)
SCALING_SENSOR = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)  # only recent states are used
LATEST_STATE = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
REQUESTS = QoSProfile(depth=100)  # waiting requests and responses; the default of 10 loses some of a burst of many clients
TRAJECTORIES = QoSProfile(depth=10)
