"""A robot that is not there: moves the joints of a URDF smoothly, as joint states and as the desired motion behind them; or
plays one of the demos of demo/robots, which have robots of their own.

Publishes
    joint_states (sensor_msgs/JointState)                      position and velocity; effort is NaN, nothing measures it
    dynamics_node/desired_motion (rnea_msgs/JointMotion)       acceleration and jerk at the same instants
    dynamics_node/base_state (rnea_msgs/BaseStateStamped)      motion of a base that moves, where a demo has one
    tf (tf2_msgs/TFMessage)                                    poses of links that no joint places, where a demo has any
Subscribes
    robot_description (std_msgs/String, latched)               only while the parameter of that name is empty
"""

from __future__ import annotations

import array
from collections.abc import Sequence

import numpy as np
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from rnea_msgs.msg import BaseStateStamped, JointMotion
from rnea_ros import RneaError, Robot
from rnea_ros.demo.nodes.free_links import FreeLinks
from rnea_ros.demo.robot_demo import Player
from rnea_ros.demo.robots.any_tree import tree_player
from rnea_ros.demo.robots.catalogue import PLAYERS
from rnea_ros.nodes.common.parameter_entry import Entry
from rnea_ros.nodes.common.parameters import ParameterSet
from rnea_ros.nodes.common.robot_description import LATCHED
from rnea_ros.nodes.common.run import run
from rnea_ros.nodes.dynamics.bases.base_motion import BaseMotion

PARAMETERS = (
    Entry("robot_description", "", "URDF as XML text. If empty, the latched topic robot_description is used",
          read_only=True),
    Entry("motion", "auto", "What to play. auto: the paper's motion on the Stanford arm, a sweep elsewhere",
          choices=("auto", "stanford", "sweep", *PLAYERS), read_only=True),
    Entry("rate", 500.0, "Joint states for each second", "Hz", 1.0, 2000.0, read_only=True),
    Entry("duration", 0.0, "Time for one way; 0: as the motion has it", "s", 0.0, 3600.0, read_only=True),
)


class DemoRobot(Node):
    """Plays one motion of one robot for ever, from the first description it gets."""

    def __init__(self) -> None:
        super().__init__("demo_robot", automatically_declare_parameters_from_overrides=True)
        self._values = ParameterSet(self, PARAMETERS, lambda changed: None).values
        self._states = self.create_publisher(JointState, "joint_states", 10)
        self._desired = self.create_publisher(JointMotion, "dynamics_node/desired_motion", 10)
        if self._values["motion"] in PLAYERS:
            self._play(PLAYERS[self._values["motion"]]())
        elif self._values["robot_description"]:
            self._start(self._values["robot_description"])
        else:
            self._topic = self.create_subscription(String, "robot_description", self._on_description, LATCHED)
            self.get_logger().info(f"waiting for a URDF on {self._topic.topic_name}")

    def _on_description(self, message: String) -> None:
        try:
            self._start(message.data)
        except RneaError as error:
            self.get_logger().error(f"waiting for another URDF on {self._topic.topic_name}: {error}")
        else:
            self.destroy_subscription(self._topic)

    def _start(self, text: str) -> None:
        """Raises RneaError."""
        robot = Robot.from_urdf(text.encode(), backend="reference")  # only names and limits are needed
        self._play(tree_player(robot, self._values["motion"], self._values["duration"] or None))

    def _play(self, player: Player) -> None:
        self._player, names = player, list(player.joint_names)
        self._state = JointState(name=names, effort=array.array("d", [np.nan] * len(names)))
        self._state.header.frame_id = player.root_link
        self._derivatives = JointMotion(joint_names=names)
        self._derivatives.header = self._state.header  # one object, shared: one stamp to set
        self._free_links = FreeLinks(self, player)
        self._bases = self.create_publisher(BaseStateStamped, "dynamics_node/base_state", 10) if player.base else None
        self._first = self._last = -1
        # Steady: the ROS clock may stand still or be set; what is sent is then simply what its time asks for.
        self.create_timer(1.0 / self._values["rate"], self._step, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self.get_logger().info(player.about)

    def _step(self) -> None:
        now = self.get_clock().now()
        if now.nanoseconds == self._last:  # simulated time has not moved on
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
            moving = BaseMotion(*self._player.base(t)).message()
            self._bases.publish(BaseStateStamped(header=self._state.header, state=moving))
        self._desired.publish(self._derivatives)  # first, so that it is there when the state asks for it
        self._states.publish(self._state)
        self._free_links.publish(self._state.header, t)


def main(args: Sequence[str] | None = None) -> int:
    return run(DemoRobot, args)


if __name__ == "__main__":
    raise SystemExit(main())
