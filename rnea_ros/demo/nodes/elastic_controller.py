"""Inverse-dynamics controller of an arm with elastic joints, Hua et al., eqs. (37)-(49): motor torques for a JointTrajectory.

Publishes
    joint_commands (sensor_msgs/JointState)                 effort of every motor, with the stamp of the encoder message
Subscribes
    encoders (sensor_msgs/JointState)                       joints, and motors, named by motor_joint in the robot file
    ~/joint_trajectory (trajectory_msgs/JointTrajectory)    positions, velocities and accelerations; starts at its stamp and
                                                            replaces the previous one
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from rnea_ros import InputError, RneaError, load
from rnea_ros.demo.elastic_control import DESIRED, GAINS, InverseDynamicsController
from rnea_ros.execution.controller import TrajectorySpline
from rnea_ros.nodes.common.parameter_table import ParameterEntry
from rnea_ros.nodes.common.parameters import ParameterSet
from rnea_ros.nodes.common.process import run
from rnea_ros.nodes.common.topics import nanoseconds

PARAMETERS = (
    ParameterEntry("robot_description", "", "URDF as XML text", read_only=True),
    ParameterEntry("robot_file", "", "Path of the robot file", read_only=True),
    ParameterEntry("motion", "", "Ignored: the controller follows any trajectory", read_only=True),
    ParameterEntry("rate", 500.0, "Ignored: a command is sent for each encoder message", "Hz", read_only=True),
    ParameterEntry("slope", GAINS["slope"], "Gain Lambda_q of eq. (37)", "1/s", 1e-3, 1e4, read_only=True),
    ParameterEntry("damping", GAINS["damping"], "Gain K_Dq of eq. (39)", "N m s/rad", 1e-3, 1e6, read_only=True),
    ParameterEntry("motor_slope", GAINS["motor_slope"], "Gain Lambda_theta of eq. (45)", "1/s", 1e-3, 1e4, read_only=True),
    ParameterEntry("motor_damping", GAINS["motor_damping"], "Gain K_Dtheta of eq. (49)", "N m s/rad", 1e-3, 1e6,
                   read_only=True),
)


class ElasticController(Node):
    """Node with the controller; without a trajectory it sends no commands."""

    def __init__(self) -> None:
        super().__init__("elastic_controller", automatically_declare_parameters_from_overrides=True)
        values = ParameterSet(self, PARAMETERS).values
        robot = load(values["robot_description"].encode(), values["robot_file"])
        if robot.is_fixed_tree or len(robot.motor_joints) != len(robot.elastic_joints):
            raise InputError(f"'{robot.name}' needs elastic joints in its robot file, each with a motor_joint")
        self._joints, self._motors = list(robot.joint_names), [robot.motor_joints[name] for name in robot.elastic_joints]
        self._law = InverseDynamicsController(robot, **{name: values[name] for name in GAINS})
        self._trajectories: deque[tuple[int, TrajectorySpline]] = deque()  # begin [ns], in this order
        self._commands = self.create_publisher(JointState, "joint_commands", 10)
        self.create_subscription(JointTrajectory, "~/joint_trajectory", self._on_trajectory, 10)
        self.create_subscription(JointState, "encoders", self._on_encoders, 10)
        self.get_logger().info(f"controls '{robot.name}': {', '.join(f'{name} {values[name]:g}' for name in GAINS)}")

    def _on_trajectory(self, message: JointTrajectory) -> None:
        try:
            trajectory = self._read_trajectory(message)
        except RneaError as error:
            self.get_logger().error(f"trajectory rejected: {error}; the previous one stays active", throttle_duration_sec=5.0)
            return
        begin = nanoseconds(message.header.stamp)
        while self._trajectories and self._trajectories[-1][0] >= begin:
            self._trajectories.pop()
        self._trajectories.append((begin, trajectory))

    def _read_trajectory(self, message: JointTrajectory) -> TrajectorySpline:
        """Return the trajectory of a message. Raises InputError."""
        if sorted(message.joint_names) != sorted(self._joints):
            raise InputError(f"joint_names is {list(message.joint_names)}; {self._joints} are needed, in any order")
        order = [message.joint_names.index(name) for name in self._joints]
        times = [nanoseconds(point.time_from_start) * 1e-9 for point in message.points]
        parts = [[getattr(point, field) for point in message.points] for field in ("positions", "velocities", "accelerations")]
        if any(len(row) != len(order) for part in parts for row in part):
            raise InputError("each point needs positions, velocities and accelerations of all joints")
        return TrajectorySpline(np.array(times), *(np.array(part).reshape(-1, len(order))[:, order] for part in parts))

    def _on_encoders(self, message: JointState) -> None:
        now = nanoseconds(message.header.stamp)
        while len(self._trajectories) > 1 and self._trajectories[1][0] <= now:
            self._trajectories.popleft()
        if not self._trajectories:
            return
        begin, trajectory = self._trajectories[0]
        try:
            q, q_motor, qd, qd_motor = self._state(message)
            tau = self._law(trajectory((now - begin) * 1e-9, len(DESIRED)), q, q_motor, qd, qd_motor).tau
        except RneaError as error:
            self.get_logger().error(f"no command sent: {error}", throttle_duration_sec=5.0)
            return
        self._commands.publish(JointState(header=message.header, name=self._joints, effort=tau.tolist()))

    def _state(self, message: JointState) -> list[list[float]]:
        """Return q, q_motor, qd, qd_motor of an encoder message. Raises InputError."""
        position, velocity = dict(zip(message.name, message.position)), dict(zip(message.name, message.velocity))
        missing = [name for name in (*self._joints, *self._motors) if name not in position or name not in velocity]
        if missing:
            raise InputError(f"encoders lack position or velocity of {', '.join(missing)}")
        return [[part[name] for name in names] for part in (position, velocity) for names in (self._joints, self._motors)]


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; return the exit code."""
    return run([ElasticController], args)


if __name__ == "__main__":
    raise SystemExit(main())
