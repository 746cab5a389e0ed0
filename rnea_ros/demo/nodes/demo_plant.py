"""A robot that MuJoCo moves: it stands and trots, is pulled or pushed, and all that its sensors know is published.

Publishes, all with the stamp of their instant
    joint_states (sensor_msgs/JointState)                   of the motors; effort is what MuJoCo's actuators exert
    dynamics_node/desired_motion (rnea_msgs/JointMotion)    acceleration and jerk, as they are
    dynamics_node/base_state (rnea_msgs/BaseStateStamped)   of a base that moves, as it does
    dynamics_node/base_imu (sensor_msgs/Imu)                its acceleration less gravity and angular velocity, as measured
    dynamics_node/wrench/<link> (geometry_msgs/WrenchStamped)   by the environment on each foot, or by the tool on the wrist
Subscribes
    dynamics_node/model_info (rnea_msgs/ModelInfo)          the first one starts the motion
    dynamics_node/joint_dynamics (rnea_msgs/JointDynamics)  each lets it go on
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import WrenchStamped
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header

from rnea_msgs.msg import BaseStateStamped, JointDynamics, JointMotion, ModelInfo
from rnea_ros.demo.nodes import plant_messages
from rnea_ros.nodes.common.parameter_entry import Entry
from rnea_ros.nodes.common.parameters import ParameterSet
from rnea_ros.nodes.common.robot_description import LATCHED
from rnea_ros.nodes.common.run import run
from rnea_ros.sim.comparison import InstantRates, with_rates
from rnea_ros.sim.machines import MACHINES, machine
from rnea_ros.sim.plant import TYPICAL_NOISE, Noise, Sensors

PARAMETERS = (
    Entry("robot_description", "", "URDF as XML text, instead of the one that the machine comes with", read_only=True),
    Entry("robot_file", "", "Its robot file", read_only=True),
    Entry("motion", "quadruped", "Which machine: a quadruped that trots, the five-bar, an arm that is pushed",
          choices=tuple(MACHINES), read_only=True),
    Entry("rate", 250.0, "Joint states for each second", "Hz", 1.0, 1000.0, read_only=True),
    Entry("timestep", 2e-3, "Of MuJoCo", "s", 1e-5, 5e-3, read_only=True),
    Entry("noise", False, "Whether sensors are as sensors are: encoders, IMU and force sensors with noise", read_only=True),
    Entry("seed", 0, "Of the noise", low=0, high=2**31 - 1, read_only=True),
)
QUEUE = 100
PATIENCE = 200_000_000  # ns; a joint state without answer, lost or refused, is not waited for any longer


class DemoPlant(Node):
    """Plays one machine for ever, at the speed of time, or slower: it goes on when dynamics_node has answered, so that numbers
    do not depend on how fast the computer is. It begins when there is a model: nobody misses how it stands."""

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
        self._instants = self._told(with_rates(device.instants()), every)
        self._next = next(self._instants)
        self.create_subscription(ModelInfo, "dynamics_node/model_info", self._begin, LATCHED)
        self.get_logger().info(f"MuJoCo has '{device.plant.robot.name}', {len(self._names)} motors; it moves when "
                               "dynamics_node has its model")

    def _begin(self, info: ModelInfo) -> None:
        if not self._began:
            self._began = self.get_clock().now().nanoseconds
            self.create_subscription(JointDynamics, "dynamics_node/joint_dynamics", self._on_answer, QUEUE)
            self.create_timer(self._period, self._step, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _on_answer(self, answer: JointDynamics) -> None:
        self._unanswered = 0

    @staticmethod
    def _told(rates: Iterator[InstantRates], every: int) -> Iterator[InstantRates]:
        """One of so many."""
        for k, found in enumerate(rates):
            if k % every == 0:
                yield found

    def _step(self) -> None:
        """What the joint state needs goes out first; it follows when the next instant has been found, milliseconds later."""
        if self._unanswered and time.monotonic_ns() - self._unanswered < PATIENCE:
            return
        rates = self._next
        stamp = self._began + round(rates.instant.t * 1e9)
        header = self._header(stamp, self._frame)
        measured = self._sensed(rates.instant)
        for link, six in measured.wrenches.items():
            self._wrenches[link].publish(plant_messages.wrench(self._header(stamp, link), six))
        if measured.base is not None:
            self._base.publish(plant_messages.base_state(header, rates))
            self._imu.publish(plant_messages.imu(header, measured))
        self._desired.publish(plant_messages.desired_motion(header, self._names, self._motors, rates))
        self._next = next(self._instants)
        self._unanswered = time.monotonic_ns()
        self._states.publish(plant_messages.joint_state(header, self._names, self._motors, measured))

    @staticmethod
    def _header(stamp: int, frame: str) -> Any:
        return Header(stamp=Time(sec=stamp // 10**9, nanosec=stamp % 10**9), frame_id=frame)


def main(args: Sequence[str] | None = None) -> int:
    return run(DemoPlant, args)


if __name__ == "__main__":
    raise SystemExit(main())
