"""Simulated arm with elastic joints, for a controller of motor torques and for dynamics_node.

Brakes hold it until the controller and dynamics_node answer. Then it advances by one step per command, in simulated time that
runs only as fast as commands and torques arrive.

Publishes
    encoders (sensor_msgs/JointState)                          joints and motors of elastic joints, before the command
    joint_states (sensor_msgs/JointState)                      the same, with the motor torques: NaN while the brakes hold
    dynamics_node/desired_motion (rnea_msgs/JointMotion)       exact acceleration and jerk of the simulation
    elastic_controller/joint_trajectory (trajectory_msgs/JointTrajectory)   reference, period by period
Subscribes
    joint_commands (sensor_msgs/JointState)                    effort of all motors, with the stamp of the encoders
    dynamics_node/joint_dynamics (rnea_msgs/JointDynamics)     each message allows the next step
    demo_listens (std_msgs/Empty, latched)                     sent by `rnea demo` when its recording has begun
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Empty, Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_msgs.msg import JointDynamics, JointMotion
from rnea_ros import InputError, load
from rnea_ros.demo.elastic_control import REFERENCE_PERIOD_S, START, ElasticArm, ElasticArmState, reference
from rnea_ros.nodes.common.diagnostics import steady_timer
from rnea_ros.nodes.common.parameter_table import ParameterEntry
from rnea_ros.nodes.common.parameters import ParameterSet
from rnea_ros.nodes.common.process import run
from rnea_ros.nodes.common.topics import LATCHED, duration, nanoseconds

PARAMETERS = (
    ParameterEntry("robot_description", "", "URDF as XML text", read_only=True),
    ParameterEntry("robot_file", "", "Path of the robot file", read_only=True),
    ParameterEntry("motion", "elastic", "Reference motion: the sines of Hua et al., section V", choices=("elastic",),
                   read_only=True),
    ParameterEntry("held", False, "Whether the brakes hold until a message on demo_listens", read_only=True),
    ParameterEntry("rate", 500.0, "Rate of commands", "Hz", 250.0, 2000.0, read_only=True),
)
SECOND = 1_000_000_000  # ns
POINTS_PER_PERIOD = 81
HOLD_TICKS = 10  # ticks between messages while the brakes hold
HOLD_TIME_STEP_NS = 1000  # advance of simulated time per message while the brakes hold
START_DELAY_NS = SECOND // 2  # from the start of the node to the first period of the reference
SEND_AHEAD_NS = SECOND // 2  # time before the end of a period at which the next one is sent
ANSWER_TIMEOUT_S = 0.2  # after it the encoders are sent again, since a message may be lost


class ElasticPlantNode(Node):
    """Node that simulates the arm with elastic joints."""

    def __init__(self) -> None:
        super().__init__("elastic_plant", automatically_declare_parameters_from_overrides=True)
        values = ParameterSet(self, PARAMETERS).values
        robot = load(values["robot_description"].encode(), values["robot_file"])
        if robot.is_fixed_tree or robot.n != len(START):
            raise InputError(f"this plant simulates urdf/hua_arm.urdf; '{robot.name}' is another robot")
        elastic = [robot.joint_names.index(name) for name in robot.elastic_joints]
        start = START, START[elastic], 0.0 * START, 0.0 * START[elastic]
        self._plant, self._step = ElasticArm(robot, start, 1.0 / values["rate"]), round(SECOND / values["rate"])
        self._names, self._frame = [*robot.joint_names, *robot.motor_joints.values()], robot.root_link
        self._rest = ElasticArmState(np.array([np.concatenate(pair) for pair in (start[:2], *(3 * (start[2:],)))]),
                                     np.full(robot.n, np.nan), np.zeros(robot.n))
        self._awaited = {"elastic_controller", "dynamics_node", *(["rnea demo"] if values["held"] else [])}
        self._now, self._ticks, self._moving = self.get_clock().now().nanoseconds, 0, False
        self._begin = self._now + START_DELAY_NS
        self._next_period = self._begin  # start of the next period of the reference
        self._missing_answers: set[str] = set()  # answers that are missing for the next step
        self._encoders_sent_s = 0.0  # steady time of the last encoder message [s]
        self._encoders, self._states = (self.create_publisher(JointState, name, 10) for name in ("encoders", "joint_states"))
        self._desired = self.create_publisher(JointMotion, "dynamics_node/desired_motion", 10)
        self._trajectories = self.create_publisher(JointTrajectory, "elastic_controller/joint_trajectory", 10)
        self.create_subscription(JointState, "joint_commands", self._on_command, 10)
        self.create_subscription(JointDynamics, "dynamics_node/joint_dynamics", self._on_dynamics, 10)
        self.create_subscription(Empty, "demo_listens", lambda message: self._awaited.discard("rnea demo"), LATCHED)
        steady_timer(self, 1.0 / values["rate"], self._tick)
        self.get_logger().info(f"brakes hold {robot.name} until elastic_controller and dynamics_node answer")

    # ------------------------------------------------------------------ time

    def _tick(self) -> None:
        if self._moving:
            if not self._missing_answers or time.monotonic() > self._encoders_sent_s + ANSWER_TIMEOUT_S:
                self._publish_encoders()
        else:
            self._ticks += 1
            if self._ticks % HOLD_TICKS == 0:
                self._hold()

    def _hold(self) -> None:
        """Publish the state of rest while the brakes hold; open them when all nodes have answered."""
        if not self._awaited:
            self._now, self._moving = self._begin, True
            self.get_logger().info("brakes opened")
        else:
            self._now += HOLD_TIME_STEP_NS
            self._publish_state(self._rest)
        if "elastic_controller" in self._awaited and self._trajectories.get_subscription_count():
            self._next_period = self._begin
            self._send_period()
        self._publish_encoders()

    def _on_command(self, message: JointState) -> None:
        self._awaited.discard("elastic_controller")
        if not self._moving or "command" not in self._missing_answers or nanoseconds(message.header.stamp) != self._now:
            return  # the brakes hold, or this is a second answer
        self._missing_answers = {"dynamics"}
        efforts = dict(zip(message.name, message.effort))
        self._publish_state(self._plant.command(np.array([efforts[name] for name in self._plant.robot.joint_names])))
        self._plant.advance()
        self._now += self._step
        if self._now + SEND_AHEAD_NS > self._next_period:
            self._send_period()

    def _on_dynamics(self, message: JointDynamics) -> None:
        self._awaited.discard("dynamics_node")
        self._missing_answers.discard("dynamics")

    # ------------------------------------------------------------------ messages

    def _publish_encoders(self) -> None:
        self._encoders_sent_s, self._missing_answers = time.monotonic(), {"command"}
        q, q_motor, qd, qd_motor = self._plant.sensors
        self._encoders.publish(JointState(header=self._header(), name=self._names, position=[*q.tolist(), *q_motor.tolist()],
                                          velocity=[*qd.tolist(), *qd_motor.tolist()]))

    def _publish_state(self, state: ElasticArmState) -> None:
        header, (q, qd, qdd, qddd) = self._header(), state.motion.tolist()
        unknown = [math.nan] * (len(self._names) - len(state.tau))
        # first, since dynamics_node needs it when the state arrives
        self._desired.publish(JointMotion(header=header, joint_names=self._names, acceleration=qdd, jerk=qddd))
        self._states.publish(JointState(header=header, name=self._names, position=q, velocity=qd,
                                        effort=[*state.tau.tolist(), *unknown]))

    def _send_period(self) -> None:
        """Publish the next period of the reference, from the end of the last one."""
        message = JointTrajectory(header=_stamped_header(self._next_period, self._frame),
                                  joint_names=list(self._plant.robot.joint_names))
        for t in np.linspace(0.0, REFERENCE_PERIOD_S, POINTS_PER_PERIOD):
            position, velocity, acceleration = (part.tolist() for part in reference(t))
            message.points.append(JointTrajectoryPoint(positions=position, velocities=velocity, accelerations=acceleration,
                                                       time_from_start=duration(t)))
        self._trajectories.publish(message)
        self._next_period += round(REFERENCE_PERIOD_S * SECOND)

    def _header(self) -> Header:
        return _stamped_header(self._now, self._frame)


def _stamped_header(nanosecond: int, frame: str) -> Header:
    return Header(stamp=Time(sec=nanosecond // SECOND, nanosec=nanosecond % SECOND), frame_id=frame)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; return the exit code."""
    return run([ElasticPlantNode], args)


if __name__ == "__main__":
    raise SystemExit(main())
