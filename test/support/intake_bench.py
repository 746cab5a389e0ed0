"""Node with parameters and a robot description source, spun in the test process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from std_msgs.msg import String

from rnea_ros import JointDynamics, Robot
from rnea_ros.nodes.common.parameter_table import JOINT_DYNAMICS, QUERY_TABLE
from rnea_ros.nodes.common.parameters import ParameterSet
from rnea_ros.nodes.common.robot_description import RobotDescriptionSource
from support.node_bench import ARM, urdf
from support.ros_helpers import free_domain

OTHER = urdf("other", 3.0).replace('"turn"', '"yaw"')  # another joint name, same links


class Bench:
    """Node with a robot description source, spun by the test."""

    def __init__(self, **overrides):
        self.context = Context()
        self.context.init(domain_id=free_domain())
        given = [Parameter(name.replace("__", "."), value=value) for name, value in overrides.items()]
        self.node = Node("intake", context=self.context, enable_rosout=False, parameter_overrides=given,
                         automatically_declare_parameters_from_overrides=True)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.robots, self.refusals = [], []
        self.settings = ParameterSet(self.node, QUERY_TABLE, lambda changed: self.intake.changed(changed))
        self.intake = RobotDescriptionSource(self.node, self.settings, self.robots.append, self.refusals.append)

    def close(self):
        self.intake.close()
        self.executor.shutdown()
        self.node.destroy_node()
        self.context.try_shutdown()

    def settle(self):
        end = time.monotonic() + 60.0
        while not self.intake.settled:
            assert time.monotonic() < end
            self.executor.spin_once(timeout_sec=0.01)
        return self

    def set(self, **values):
        """Set parameters; return the reason of a rejection, or ''."""
        return self.node.set_parameters_atomically(
            [Parameter(name.replace("__", "."), value=value) for name, value in values.items()]).reason

    def get(self, name):
        return self.node.get_parameter(name).value

    def receive(self, text):
        self.intake._on_description(serialize_message(String(data=text)))

    def consistent(self):
        """Return whether the current model matches the reported parameters."""
        self.settle()
        robot = self.robots[-1]
        fields = [entry.name.rpartition(".")[2] for entry in JOINT_DYNAMICS]
        terms = {link.joint: JointDynamics(**{field: self.get(f"joint_dynamics.{link.joint}.{field}") for field in fields})
                 for link in robot.model.links if link.joint}
        text = self.get("robot_description") or {"arm": ARM, "other": OTHER}[robot.name]
        made = Robot.from_urdf(text, gravity=self.get("gravity"), joint_dynamics=terms, backend="reference")
        if self.get("payload.link"):
            xx, xy, xz, yy, yz, zz = self.get("payload.inertia")
            made = made.with_payload(self.get("payload.link"), self.get("payload.mass"), self.get("payload.com"),
                                     [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        assert made.model_id == robot.model_id
        return True


@contextmanager
def benches() -> Iterator[Callable[..., Bench]]:
    """Yield a function that creates benches; all are closed at the end."""
    made = []

    def make(**overrides):
        made.append(Bench(**overrides))
        return made[-1]

    yield make
    for one in made:
        one.close()
