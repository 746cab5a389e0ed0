"""Simulated arm with elastic joints, and its controller.

elastic_plant: brakes hold the arm until the controller and dynamics_node answer. Then it advances by one step
per command, in simulated time that runs only as fast as commands and torques arrive.

Publishes
    encoders (sensor_msgs/JointState)                          joints and motors of elastic joints, before the command
    joint_states (sensor_msgs/JointState)                      the same, with the motor torques: NaN while the brakes hold
    dynamics_node/desired_motion (rnea_msgs/JointMotion)       exact acceleration and jerk of the simulation
    elastic_controller/joint_trajectory (trajectory_msgs/JointTrajectory)   reference, period by period
Subscribes
    joint_commands (sensor_msgs/JointState)                    effort of all motors, with the stamp of the encoders
    dynamics_node/joint_dynamics (rnea_msgs/JointDynamics)     each message allows the next step
    demo_listens (std_msgs/Empty, latched)                     sent by `rnea demo` when its recording has begun

elastic_controller: inverse dynamics of Hua et al., eqs. (37)-(49), motor torques for a JointTrajectory.

Publishes
    joint_commands (sensor_msgs/JointState)                 effort of every motor, with the stamp of the encoder message
Subscribes
    encoders (sensor_msgs/JointState)                       joints, and motors, named by motor_joint in the robot file
    ~/joint_trajectory (trajectory_msgs/JointTrajectory)    positions, velocities and accelerations; starts at its stamp and
                                                            replaces the previous one
"""

from __future__ import annotations

import math
import time
from collections import deque

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Empty, Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_msgs.msg import JointDynamics, JointMotion
from rnea_ros import InputError, RneaError, load
from rnea_ros.demo.elastic_control import (
    DESIRED,
    GAINS,
    REFERENCE_PERIOD_S,
    START,
    ElasticArm,
    ElasticArmState,
    InverseDynamicsController,
    reference,
)
from rnea_ros.execution.controller import TrajectorySpline
from rnea_ros.nodes.common.diagnostics import steady_timer
from rnea_ros.nodes.common.parameter_table import ParameterEntry
from rnea_ros.nodes.common.parameters import ParameterSet
from rnea_ros.nodes.common.topics import LATCHED, duration, nanoseconds

PLANT_PARAMETERS = (
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


class ElasticPlant(Node):
    """Node that simulates the arm with elastic joints."""

    def __init__(self) -> None:
        super().__init__("elastic_plant", automatically_declare_parameters_from_overrides=True)
        values = ParameterSet(self, PLANT_PARAMETERS).values
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


CONTROLLER_PARAMETERS = (
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
        values = ParameterSet(self, CONTROLLER_PARAMETERS).values
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
