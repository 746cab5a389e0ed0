"""Node that returns stored bytes on the three topics for each joint state: the least that a node in Python can cost.

It waits for its only subscription and copies the stamp of the message; nothing is computed.
"""

from __future__ import annotations

import sys
from contextlib import suppress

import numpy as np
import rclpy
from naive_node import SENSOR
from rclpy.executors import ExternalShutdownException
from rclpy.impl.implementation_singleton import rclpy_implementation as rcl
from rclpy.node import Node
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from rnea_msgs.msg import JointDynamics

STAMP = slice(4, 12)  # of the header, after the four bytes of the encapsulation


def main() -> None:
    rclpy.init(args=[])
    node = Node("dynamics_node")
    names = sys.argv[1:]
    rows = {name: np.ones(len(names)) for name, kind in JointDynamics.get_fields_and_field_types().items()
            if kind == "sequence<double>" and not name.startswith(("drive", "supply", "input"))}
    state = JointState(name=names, position=np.ones(len(names)), velocity=np.ones(len(names)), effort=np.ones(len(names)))
    messages = {"joint_effort": state, "joint_effort_rate": state, "joint_dynamics": JointDynamics(joint_names=names, **rows)}
    outputs = [(node.create_publisher(type(message), f"~/{topic}", 10).handle, bytearray(serialize_message(message)))
               for topic, message in messages.items()]
    subscription = node.create_subscription(JointState, "joint_states", lambda data: None, SENSOR, raw=True).handle
    wait_set = rcl.WaitSet(1, 0, 0, 0, 0, 0, node.context.handle)
    while True:
        wait_set.clear_entities()
        wait_set.add_subscription(subscription)
        wait_set.wait(-1)
        taken = subscription.take_message(JointState, True)
        for publisher, data in outputs if taken else ():
            if publisher.get_subscription_count():
                data[STAMP] = taken[0][STAMP]
                publisher.publish_raw(bytes(data))


if __name__ == "__main__":
    with suppress(KeyboardInterrupt, ExternalShutdownException):
        main()
