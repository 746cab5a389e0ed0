"""A robot that is not there: it follows a scaling node exactly, and sends it to and fro, too fast, for ever. After a
stop it first goes back to where it began.

Publishes
    scaling_node/joint_trajectory (trajectory_msgs/JointTrajectory)   a second after the last one has ended
    joint_states (sensor_msgs/JointState)                             where the last reference is; at 50 Hz while it rests
    dynamics_node/desired_motion (rnea_msgs/JointMotion)              acceleration and jerk of the reference
Subscribes
    scaling_node/scaled_motion (rnea_msgs/ScaledMotion)
"""

from __future__ import annotations

import array
from collections.abc import Sequence

import numpy as np
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from rnea_msgs.msg import JointMotion, ScaledMotion
from rnea_ros import Robot
from rnea_ros.demo.nodes.scaling_recorder import trajectory
from rnea_ros.demo.task import too_fast
from rnea_ros.nodes.common.parameter_entry import Entry
from rnea_ros.nodes.common.parameters import ParameterSet
from rnea_ros.nodes.common.run import run

PARAMETERS = (
    Entry("robot_description", "", "URDF as XML text", read_only=True),
    Entry("speed", 2.0, "How many times faster than the limits of the demo allow the trajectories are planned", low=0.05,
          high=20.0, read_only=True),
)
STILL = 0.02  # s; between joint states at rest
REST = 1.0  # s; between two motions
AT = 1e-3  # rad, m; no further from a place is at it


class DemoFollower(Node):
    def __init__(self) -> None:
        super().__init__("demo_follower", automatically_declare_parameters_from_overrides=True)
        values = ParameterSet(self, PARAMETERS).values
        robot = Robot.from_urdf(values["robot_description"].encode())
        self._task, self._names, self._frame = too_fast(robot, values["speed"]), list(robot.joint_names), robot.root_link
        self._reference = ScaledMotion(position=self._task.points[0], **{
            name: np.zeros(robot.n) for name in ("velocity", "acceleration", "jerk")})
        self._rested = 0.0
        self._states = self.create_publisher(JointState, "joint_states", 10)
        self._desired = self.create_publisher(JointMotion, "dynamics_node/desired_motion", 10)
        self._trajectories = self.create_publisher(JointTrajectory, "scaling_node/joint_trajectory", 10)
        self.create_subscription(ScaledMotion, "scaling_node/scaled_motion", self._follow, 10)
        self.create_timer(STILL, self._rest, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self.get_logger().info(f"sending {robot.name} to and fro in {self._task.times[-1]:.2f} s each way; this demo's limits "
                               f"allow {self._task.fastest:.2f} s")

    def _follow(self, message: ScaledMotion) -> None:
        self._reference, self._rested = message, 0.0
        self._tell()

    def _rest(self) -> None:
        self._rested += STILL
        if self._rested > 2 * STILL:
            self._tell()
        if self._rested > REST and self._trajectories.get_subscription_count():
            self._rested = 0.0
            self._trajectories.publish(trajectory(self._names, *self._next()))

    def _next(self) -> tuple[np.ndarray, np.ndarray]:
        """Points and times: from end to end; from anywhere else, where a stop has left the robot, to the first end."""
        here, points, times = np.array(self._reference.position), self._task.points, self._task.times
        first, last = (bool(np.abs(here - end).max() < AT) for end in (points[0], points[-1]))
        if first:
            return points, times
        return (points[::-1], times[-1] - times[::-1]) if last else (np.array([here, points[0]]), times[[0, -1]])

    def _tell(self) -> None:
        reference = self._reference
        state = JointState(name=self._names, position=reference.position, velocity=reference.velocity,
                           effort=array.array("d", [np.nan] * len(self._names)))
        state.header.stamp, state.header.frame_id = self.get_clock().now().to_msg(), self._frame
        desired = JointMotion(header=state.header, joint_names=self._names, acceleration=reference.acceleration,
                              jerk=reference.jerk)
        self._desired.publish(desired)  # first, so that it is there when the state asks for it
        self._states.publish(state)


def main(args: Sequence[str] | None = None) -> int:
    return run(DemoFollower, args)


if __name__ == "__main__":
    raise SystemExit(main())
