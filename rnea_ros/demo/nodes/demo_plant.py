"""Robot simulated by MuJoCo (trotting quadruped, five-bar linkage, pushed arm) that publishes all its sensors.

Publishes, with equal stamps per instant
    joint_states (sensor_msgs/JointState)                   of the motors; effort is the torque of MuJoCo's actuators
    dynamics_node/desired_motion (rnea_msgs/JointMotion)    exact acceleration and jerk
    dynamics_node/base_state (rnea_msgs/BaseStateStamped)   exact motion of a moving base
    dynamics_node/base_imu (sensor_msgs/Imu)                measured acceleration minus gravity, and angular velocity
    dynamics_node/wrench/<link> (geometry_msgs/WrenchStamped)   of the environment on each foot, or of the tool on the wrist
Subscribes
    dynamics_node/model_info (rnea_msgs/ModelInfo)          the first message starts the motion
    dynamics_node/joint_dynamics (rnea_msgs/JointDynamics)  each message allows the next joint state
"""

from __future__ import annotations

import array
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header

from rnea_msgs.msg import BaseStateStamped, JointDynamics, JointMotion, ModelInfo
from rnea_ros.nodes.common.base import BaseMotion, fill_axes, to_wrench
from rnea_ros.nodes.common.diagnostics import steady_timer
from rnea_ros.nodes.common.parameter_table import ParameterEntry
from rnea_ros.nodes.common.parameters import ParameterSet
from rnea_ros.nodes.common.topics import LATCHED
from rnea_ros.sim.machines import MACHINES, machine
from rnea_ros.sim.plant import TYPICAL_NOISE, Instant, InstantRates, Noise, Sensors, with_rates

PARAMETERS = (
    ParameterEntry("robot_description", "", "URDF as XML text; empty: that of the machine", read_only=True),
    ParameterEntry("robot_file", "", "Path of the robot file; empty: that of the machine", read_only=True),
    ParameterEntry("motion", "quadruped", "Simulated machine: a trotting quadruped, the five-bar linkage, an arm that is "
                                          "pushed",
                   choices=tuple(MACHINES), read_only=True),
    ParameterEntry("rate", 250.0, "Rate of joint states", "Hz", 1.0, 1000.0, read_only=True),
    ParameterEntry("timestep", 2e-3, "Timestep of MuJoCo", "s", 1e-5, 5e-3, read_only=True),
    ParameterEntry("noise", False, "Enables noise of encoders, IMU and force sensors", read_only=True),
    ParameterEntry("seed", 0, "Seed of the noise", low=0, high=2**31 - 1, read_only=True),
)
QUEUE = 100
ANSWER_TIMEOUT_NS = 200_000_000  # after it the next joint state is sent without an answer to the last one


class DemoPlant(Node):
    """Node that simulates one machine without end, in real time or slower.

    It waits for the answer of dynamics_node to each joint state, so results do not depend on the speed of the computer, and
    starts when dynamics_node has a model.
    """

    def __init__(self) -> None:
        super().__init__("demo_plant", automatically_declare_parameters_from_overrides=True)
        values = ParameterSet(self, PARAMETERS, lambda changed: None).values
        timestep = values["timestep"]
        device = machine(values["motion"], values["robot_description"].encode() or None, values["robot_file"] or None,
                         timestep)
        self._motors, self._names = device.motors, list(device.plant.robot.joint_names)
        self._frame = device.plant.tree.root_link
        self._sensed = Sensors(TYPICAL_NOISE if values["noise"] else Noise(), values["seed"])
        self._states = self.create_publisher(JointState, "joint_states", QUEUE)
        self._desired = self.create_publisher(JointMotion, "dynamics_node/desired_motion", QUEUE)
        self._base = self.create_publisher(BaseStateStamped, "dynamics_node/base_state", QUEUE)
        self._imu = self.create_publisher(Imu, "dynamics_node/base_imu", QUEUE)
        links = [foot.link for foot in device.plant.scene.feet]
        links += [device.plant.scene.tool.link] if device.plant.scene.tool else []
        self._wrenches = {link: self.create_publisher(WrenchStamped, f"dynamics_node/wrench/{link}", QUEUE) for link in links}
        every = max(1, round(1.0 / (values["rate"] * timestep)))
        self._period, self._began, self._unanswered = every * timestep, 0, 0  # the last two: since when [ns]
        self._instants = self._every(with_rates(device.instants()), every)
        self._next = next(self._instants)
        self.create_subscription(ModelInfo, "dynamics_node/model_info", self._begin, LATCHED)
        self.get_logger().info(f"MuJoCo simulates '{device.plant.robot.name}', {len(self._names)} motors; the motion starts "
                               "when dynamics_node has a model")

    def _begin(self, info: ModelInfo) -> None:
        if not self._began:
            self._began = self.get_clock().now().nanoseconds
            self.create_subscription(JointDynamics, "dynamics_node/joint_dynamics", self._on_answer, QUEUE)
            steady_timer(self, self._period, self._step)

    def _on_answer(self, answer: JointDynamics) -> None:
        self._unanswered = 0

    @staticmethod
    def _every(rates: Iterator[InstantRates], every: int) -> Iterator[InstantRates]:
        """Yield one of `every` instants."""
        for k, found in enumerate(rates):
            if k % every == 0:
                yield found

    def _step(self) -> None:
        """Publish what dynamics_node needs for the joint state, then the joint state when the next instant is computed."""
        if self._unanswered and time.monotonic_ns() - self._unanswered < ANSWER_TIMEOUT_NS:
            return
        rates = self._next
        stamp = self._began + round(rates.instant.t * 1e9)
        header = self._header(stamp, self._frame)
        measured = self._sensed(rates.instant)
        for link, six in measured.wrenches.items():
            self._wrenches[link].publish(wrench_message(self._header(stamp, link), six))
        if measured.base is not None:
            self._base.publish(base_state_message(header, rates))
            self._imu.publish(imu_message(header, measured))
        self._desired.publish(desired_motion_message(header, self._names, self._motors, rates))
        self._next = next(self._instants)
        self._unanswered = time.monotonic_ns()
        self._states.publish(joint_state_message(header, self._names, self._motors, measured))

    @staticmethod
    def _header(stamp: int, frame: str) -> Any:
        return Header(stamp=Time(sec=stamp // 10**9, nanosec=stamp % 10**9), frame_id=frame)


UNAVAILABLE = -1.0  # first element of the covariance of a missing measurement


def joint_state_message(header: Any, names: list[str], motors: np.ndarray, instant: Instant) -> JointState:
    """Return measured positions, velocities and torques of the motors."""
    q, qd, tau = (array.array("d", numbers) for numbers in (instant.q[motors], instant.qd[motors], instant.tau))
    return JointState(header=header, name=names, position=q, velocity=qd, effort=tau)


def desired_motion_message(header: Any, names: list[str], motors: np.ndarray, rates: InstantRates) -> JointMotion:
    """Return acceleration and jerk of the motors."""
    qdd, jerk = (array.array("d", numbers) for numbers in (rates.instant.qdd[motors], rates.jerk[motors]))
    return JointMotion(header=header, joint_names=names, acceleration=qdd, jerk=jerk)


def base_state_message(header: Any, rates: InstantRates) -> BaseStateStamped:
    """Return the complete motion of the base."""
    base = rates.instant.base
    assert base is not None and rates.base_jerk is not None
    moved = BaseMotion(base.with_motion(base.acceleration, rates.base_jerk))
    return BaseStateStamped(header=header, state=moved.message())


def imu_message(header: Any, instant: Instant) -> Imu:
    """Return the IMU's measurement; it has no orientation."""
    made = Imu(header=header)
    made.orientation_covariance[0] = UNAVAILABLE
    fill_axes(made.linear_acceleration, instant.accelerometer)
    fill_axes(made.angular_velocity, instant.gyro)
    return made


def wrench_message(header: Any, six: np.ndarray) -> WrenchStamped:
    """Return the wrench of the environment on the link that the header names."""
    return WrenchStamped(header=header, wrench=to_wrench(six))
