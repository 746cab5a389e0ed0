"""Simulated robot that publishes a smooth motion: joint states, and the acceleration and jerk of the same instants.

It moves the joints of any URDF, or the robot of a named demo (demo/catalogue.py).

Publishes
    joint_states (sensor_msgs/JointState)                      position and velocity; effort is NaN: not measured
    dynamics_node/desired_motion (rnea_msgs/JointMotion)       acceleration and jerk
    dynamics_node/base_state (rnea_msgs/BaseStateStamped)      motion of a moving base, if the demo has one
    tf (tf2_msgs/TFMessage)                                    poses of links without a parent joint, if the demo has any
Subscribes
    robot_description (std_msgs/String, latched)               only while the parameter of that name is empty
"""

from __future__ import annotations

import array
import importlib
import importlib.util

import numpy as np
from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Header, String

from rnea_msgs.msg import BaseStateStamped, JointMotion
from rnea_ros import RneaError, Robot
from rnea_ros.demo.catalogue import DEMO_MOTIONS, tree_motion
from rnea_ros.demo.robot_demo import DemoMotion
from rnea_ros.nodes.common.base import BaseMotion, fill_axes
from rnea_ros.nodes.common.diagnostics import steady_timer
from rnea_ros.nodes.common.parameter_table import ParameterEntry
from rnea_ros.nodes.common.parameters import ParameterSet
from rnea_ros.nodes.common.topics import LATCHED
from rnea_ros.robots.inputs.base_state import quaternion

PARAMETERS = (
    ParameterEntry("robot_description", "", "URDF as XML text. Empty: read from the latched topic robot_description",
                   read_only=True),
    ParameterEntry("motion", "auto", "Motion. auto: the paper's motion on the Stanford arm, a sweep on other robots",
                   choices=("auto", "stanford", "sweep", *DEMO_MOTIONS), read_only=True),
    ParameterEntry("rate", 500.0, "Rate of joint states", "Hz", 1.0, 2000.0, read_only=True),
    ParameterEntry("duration", 0.0, "Duration of one way of the motion; 0: default of the motion", "s", 0.0, 3600.0,
                   read_only=True),
)


class DemoRobot(Node):
    """Node that publishes one motion of one robot without end, of the first valid description."""

    def __init__(self) -> None:
        super().__init__("demo_robot", automatically_declare_parameters_from_overrides=True)
        self._values = ParameterSet(self, PARAMETERS, lambda changed: None).values
        self._states = self.create_publisher(JointState, "joint_states", 10)
        self._desired = self.create_publisher(JointMotion, "dynamics_node/desired_motion", 10)
        if self._values["motion"] in DEMO_MOTIONS:
            self._play(DEMO_MOTIONS[self._values["motion"]]())
        elif self._values["robot_description"]:
            self._start(self._values["robot_description"])
        else:
            self._topic = self.create_subscription(String, "robot_description", self._on_description, LATCHED)
            self.get_logger().info(f"waiting for a URDF on {self._topic.topic_name}")

    def _on_description(self, message: String) -> None:
        try:
            self._start(message.data)
        except RneaError as error:
            self.get_logger().error(f"URDF on {self._topic.topic_name} rejected: {error}; waiting for another one")
        else:
            self.destroy_subscription(self._topic)

    def _start(self, text: str) -> None:
        """Start the motion of a URDF. Raises RneaError."""
        robot = Robot.from_urdf(text.encode(), backend="reference")  # only names and limits are needed
        self._play(tree_motion(robot, self._values["motion"], self._values["duration"] or None))

    def _play(self, player: DemoMotion) -> None:
        self._player, names = player, list(player.joint_names)
        self._state = JointState(name=names, effort=array.array("d", [np.nan] * len(names)))
        self._state.header.frame_id = player.root_link
        self._derivatives = JointMotion(joint_names=names)
        self._derivatives.header = self._state.header  # shared: one stamp to set
        self._free_links = FreeLinkPublisher(self, player)
        self._bases = self.create_publisher(BaseStateStamped, "dynamics_node/base_state", 10) if player.base else None
        self._first = self._last = -1
        # Steady clock: the ROS clock may stop or jump; a message then has the motion of its stamp.
        steady_timer(self, 1.0 / self._values["rate"], self._step)
        self.get_logger().info(player.about)

    def _step(self) -> None:
        now = self.get_clock().now()
        if now.nanoseconds == self._last:  # simulated time has not advanced
            return
        self._last = now.nanoseconds
        if self._first < 0:
            self._first = now.nanoseconds
        t = (now.nanoseconds - self._first) * 1e-9
        motion = self._player.motion(t)
        self._state.header.stamp = now.to_msg()
        self._state.position, self._state.velocity = array.array("d", motion.q), array.array("d", motion.qd)
        self._derivatives.acceleration = array.array("d", motion.qdd)
        self._derivatives.jerk = array.array("d", motion.qddd)
        if self._player.base and self._bases:
            moving = BaseMotion(self._player.base(t)).message()
            self._bases.publish(BaseStateStamped(header=self._state.header, state=moving))
        self._desired.publish(self._derivatives)  # first, since dynamics_node needs it when the state arrives
        self._states.publish(self._state)
        self._free_links.publish(self._state.header, t)


class FreeLinkPublisher:
    """Publisher of these poses; inactive if tf2_msgs, which comes with RViz, is not installed."""

    def __init__(self, node: Node, player: DemoMotion):
        self._poses, self._publisher = player.free_links, None
        if player.free_links(0.0) and importlib.util.find_spec("tf2_msgs"):
            self._kind = importlib.import_module("tf2_msgs.msg").TFMessage
            self._publisher = node.create_publisher(self._kind, "/tf", 100)  # launch files remap it into their namespace

    def publish(self, header: Header, t: float) -> None:
        """Publish the poses at time t, with the stamp and the root link of the header."""
        if self._publisher is not None and self._publisher.get_subscription_count():
            self._publisher.publish(self._kind(transforms=[
                _transform_message(header, link, *pose) for link, pose in self._poses(t).items()]))


def _transform_message(header: Header, link: str, R, P) -> TransformStamped:
    message = TransformStamped(header=header, child_frame_id=link)
    fill_axes(message.transform.translation, P)
    fill_axes(message.transform.rotation, quaternion(R))
    return message
