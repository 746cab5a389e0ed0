"""An arm with elastic joints that is not there: simulated, for a controller of motor torques and for dynamics_node.

It is held by its brakes until the controller answers and dynamics_node tells torques; then it moves, one step for each
command, in a time of its own that goes on only as fast as commands and torques come.

Publishes
    encoders (sensor_msgs/JointState)                          joints and motors of elastic joints, before a command is known
    joint_states (sensor_msgs/JointState)                      the same, and what the motors exert: NaN while brakes hold
    dynamics_node/desired_motion (rnea_msgs/JointMotion)       acceleration and jerk of all of them, as the simulation has them
    elastic_controller/joint_trajectory (trajectory_msgs/JointTrajectory)   where to go, round after round
Subscribes
    joint_commands (sensor_msgs/JointState)                    effort of all motors, with the stamp of the encoders
    dynamics_node/joint_dynamics (rnea_msgs/JointDynamics)     each lets it go on
    demo_listens (std_msgs/Empty, latched)                     by `rnea demo`: the recording has begun
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Empty, Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_msgs.msg import JointDynamics, JointMotion
from rnea_ros import GeneralRobot, InputError, load
from rnea_ros.demo.elastic_plant import ElasticPlant, PlantState
from rnea_ros.demo.robots.elastic import ROUND, START, desired
from rnea_ros.nodes.common.parameter_entry import Entry
from rnea_ros.nodes.common.parameters import ParameterSet
from rnea_ros.nodes.common.robot_description import LATCHED
from rnea_ros.nodes.common.run import run
from rnea_ros.nodes.common.stamps import duration, nanoseconds

PARAMETERS = (
    Entry("robot_description", "", "URDF as XML text", read_only=True),
    Entry("robot_file", "", "Path of the robot file", read_only=True),
    Entry("motion", "elastic", "What is wanted of it: the sines of Hua et al., section V", choices=("elastic",),
          read_only=True),
    Entry("held", False, "Whether the brakes hold until somebody listens who says so on demo_listens", read_only=True),
    Entry("rate", 500.0, "Commands for each second", "Hz", 250.0, 2000.0, read_only=True),
)
SECOND = 1_000_000_000  # ns
POINTS = 81  # of a round
HELD = 10  # ticks; from one message to the next while brakes hold
CREEP = 1000  # ns; so far does time go on meanwhile
LATER = SECOND // 2  # ns; after the node's start the first round begins, whenever brakes open
AHEAD = SECOND // 2  # ns; so long before a round ends the next one is sent
PATIENCE = 0.2  # s; after which it waits no longer, and tells encoders again: a message may be lost


class ElasticPlantNode(Node):
    def __init__(self) -> None:
        super().__init__("elastic_plant", automatically_declare_parameters_from_overrides=True)
        values = ParameterSet(self, PARAMETERS).values
        robot = load(values["robot_description"].encode(), values["robot_file"])
        if not isinstance(robot, GeneralRobot) or robot.n != len(START):
            raise InputError(f"this plant simulates urdf/hua_arm.urdf; '{robot.name}' is another robot")
        elastic = [robot.joint_names.index(name) for name in robot.elastic_joints]
        start = START, START[elastic], 0.0 * START, 0.0 * START[elastic]
        self._plant, self._step = ElasticPlant(robot, start, 1.0 / values["rate"]), round(SECOND / values["rate"])
        self._names, self._frame = [*robot.joint_names, *robot.motor_joints.values()], robot.root_link
        self._rest = PlantState(np.array([np.concatenate(pair) for pair in (start[:2], *(3 * (start[2:],)))]),
                                np.full(robot.n, np.nan), np.zeros(robot.n))
        self._awaited = {"elastic_controller", "dynamics_node", *(["rnea demo"] if values["held"] else [])}
        self._now, self._ticks, self._moving = self.get_clock().now().nanoseconds, 0, False
        self._begin = self._now + LATER
        self._round = self._begin  # when the next round begins
        self._answers: set[str] = set()  # that are still to come before it goes on
        self._told = 0.0  # when encoders were told, by a steady clock [s]
        self._encoders, self._states = (self.create_publisher(JointState, name, 10) for name in ("encoders", "joint_states"))
        self._desired = self.create_publisher(JointMotion, "dynamics_node/desired_motion", 10)
        self._trajectories = self.create_publisher(JointTrajectory, "elastic_controller/joint_trajectory", 10)
        self.create_subscription(JointState, "joint_commands", self._on_command, 10)
        self.create_subscription(JointDynamics, "dynamics_node/joint_dynamics", self._on_dynamics, 10)
        self.create_subscription(Empty, "demo_listens", lambda message: self._awaited.discard("rnea demo"), LATCHED)
        self.create_timer(1.0 / values["rate"], self._tick, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self.get_logger().info(f"{robot.name} is held by its brakes until elastic_controller and dynamics_node answer")

    # ------------------------------------------------------------------ time

    def _tick(self) -> None:
        if self._moving:
            if not self._answers or time.monotonic() > self._told + PATIENCE:
                self._tell_encoders()
        else:
            self._ticks += 1
            if self._ticks % HELD == 0:
                self._hold()

    def _hold(self) -> None:
        """Brakes on, until everybody has answered."""
        if not self._awaited:
            self._now, self._moving = self._begin, True
            self.get_logger().info("brakes open")
        else:
            self._now += CREEP
            self._tell(self._rest)
        if "elastic_controller" in self._awaited and self._trajectories.get_subscription_count():
            self._round = self._begin
            self._send_round()
        self._tell_encoders()

    def _on_command(self, message: JointState) -> None:
        self._awaited.discard("elastic_controller")
        if not self._moving or "command" not in self._answers or nanoseconds(message.header.stamp) != self._now:
            return  # brakes hold, or this is a second answer
        self._answers = {"dynamics"}
        efforts = dict(zip(message.name, message.effort))
        self._tell(self._plant.command(np.array([efforts[name] for name in self._plant.robot.joint_names])))
        self._plant.advance()
        self._now += self._step
        if self._now + AHEAD > self._round:
            self._send_round()

    def _on_dynamics(self, message: JointDynamics) -> None:
        self._awaited.discard("dynamics_node")
        self._answers.discard("dynamics")

    # ------------------------------------------------------------------ what it tells

    def _tell_encoders(self) -> None:
        self._told, self._answers = time.monotonic(), {"command"}
        q, q_motor, qd, qd_motor = self._plant.sensors
        self._encoders.publish(JointState(header=self._header(), name=self._names, position=[*q.tolist(), *q_motor.tolist()],
                                          velocity=[*qd.tolist(), *qd_motor.tolist()]))

    def _tell(self, state: PlantState) -> None:
        header, (q, qd, qdd, qddd) = self._header(), state.motion.tolist()
        unknown = [math.nan] * (len(self._names) - len(state.tau))
        # first, so that it is there when the state asks for it
        self._desired.publish(JointMotion(header=header, joint_names=self._names, acceleration=qdd, jerk=qddd))
        self._states.publish(JointState(header=header, name=self._names, position=q, velocity=qd,
                                        effort=[*state.tau.tolist(), *unknown]))

    def _send_round(self) -> None:
        """The next round, from where the last one ends."""
        message = JointTrajectory(header=_stamped(self._round, self._frame), joint_names=list(self._plant.robot.joint_names))
        for t in np.linspace(0.0, ROUND, POINTS):
            position, velocity, acceleration = (part.tolist() for part in desired(t))
            message.points.append(JointTrajectoryPoint(positions=position, velocities=velocity, accelerations=acceleration,
                                                       time_from_start=duration(t)))
        self._trajectories.publish(message)
        self._round += round(ROUND * SECOND)

    def _header(self) -> Header:
        return _stamped(self._now, self._frame)


def _stamped(nanosecond: int, frame: str) -> Header:
    return Header(stamp=Time(sec=nanosecond // SECOND, nanosec=nanosecond % SECOND), frame_id=frame)


def main(args: Sequence[str] | None = None) -> int:
    return run(ElasticPlantNode, args)


if __name__ == "__main__":
    raise SystemExit(main())
