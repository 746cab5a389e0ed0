"""Simulated robots of the demos, as nodes.

demo_robot: simulated robot that publishes a smooth motion: joint states, and the acceleration and jerk of the same instants.

It moves the joints of any URDF, or the robot of a named demo (demo/catalogue.py).

Publishes
    joint_states (sensor_msgs/JointState)                      position and velocity; effort is NaN: not measured
    dynamics_node/desired_motion (rnea_msgs/JointMotion)       acceleration and jerk
    dynamics_node/base_state (rnea_msgs/BaseStateStamped)      motion of a moving base, if the demo has one
    tf (tf2_msgs/TFMessage)                                    poses of links without a parent joint, if the demo has any
Subscribes
    robot_description (std_msgs/String, latched)               only while the parameter of that name is empty

demo_plant: robot simulated by MuJoCo (trotting quadruped, five-bar linkage, pushed arm) that publishes all its sensors.

Publishes, with equal stamps per instant
    joint_states (sensor_msgs/JointState)                   of the motors; effort is the torque of MuJoCo's actuators
    dynamics_node/desired_motion (rnea_msgs/JointMotion)    exact acceleration and jerk
    dynamics_node/base_state (rnea_msgs/BaseStateStamped)   exact motion of a moving base
    dynamics_node/base_imu (sensor_msgs/Imu)                measured acceleration minus gravity, and angular velocity
    dynamics_node/wrench/<link> (geometry_msgs/WrenchStamped)   of the environment on each foot, or of the tool on the wrist
Subscribes
    dynamics_node/model_info (rnea_msgs/ModelInfo)          the first message starts the motion
    dynamics_node/joint_dynamics (rnea_msgs/JointDynamics)  each message allows the next joint state

demo_follower: simulated robot that follows scaling_node exactly and sends it fast trajectories back and forth, without end.

After a stop it first returns to the start.

Publishes
    scaling_node/joint_trajectory (trajectory_msgs/JointTrajectory)   one second after the end of the previous one
    joint_states (sensor_msgs/JointState)                             state of the last reference; 50 Hz at rest
    dynamics_node/desired_motion (rnea_msgs/JointMotion)              acceleration and jerk of the reference
Subscribes
    scaling_node/scaled_motion (rnea_msgs/ScaledMotion)

demo_policy is the same robot, moved by a scripted policy that intends smooth steps between random poses. It publishes
scaling_node/action_chunks (trajectory_msgs/JointTrajectory), 50 points for 30 Hz, five times a second, instead of
trajectories. Its chunks are noisy, offset from each other, computed from observations that are 200 ms old when they arrive,
and some are lost. One in twenty is one radian off: scaling_node rejects it.
"""

from __future__ import annotations

import array
import importlib
import importlib.util
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped, WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header, String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_msgs.msg import BaseStateStamped, JointDynamics, JointMotion, ModelInfo, ScaledMotion
from rnea_ros import RneaError, Robot
from rnea_ros.demo.catalogue import DEMO_MOTIONS, tree_motion
from rnea_ros.demo.nodes.recorders import trajectory_message
from rnea_ros.demo.policies import STREAM, smooth_steps
from rnea_ros.demo.robot_demo import DemoMotion
from rnea_ros.demo.scaling import overspeed_task
from rnea_ros.nodes.common.base import BaseMotion, fill_axes, to_wrench
from rnea_ros.nodes.common.diagnostics import steady_timer
from rnea_ros.nodes.common.parameter_table import ParameterEntry
from rnea_ros.nodes.common.parameters import ParameterSet
from rnea_ros.nodes.common.topics import LATCHED
from rnea_ros.robots.base_state import quaternion
from rnea_ros.sim.machines import MACHINES, machine
from rnea_ros.sim.plant import TYPICAL_NOISE, Instant, InstantRates, Noise, Sensors, with_rates

ROBOT_PARAMETERS = (
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
        self._values = ParameterSet(self, ROBOT_PARAMETERS, lambda changed: None).values
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


PLANT_PARAMETERS = (
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
        values = ParameterSet(self, PLANT_PARAMETERS, lambda changed: None).values
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


FOLLOWER_PARAMETERS = (
    ParameterEntry("robot_description", "", "URDF as XML text", read_only=True),
    ParameterEntry("speed", 2.0, "How many times faster than the limits of the demo allow the trajectories are planned",
                   low=0.05,
                   high=20.0, read_only=True),
)
STATE_PERIOD_S = 0.02  # of joint states at rest
REST_S = 1.0  # between two motions
POSITION_TOL = 1e-3  # rad, m; of a waypoint that is reached


class DemoFollower(Node):
    """Robot and sender of trajectories."""

    node_name = "demo_follower"

    def __init__(self) -> None:
        super().__init__(self.node_name, automatically_declare_parameters_from_overrides=True)
        values = ParameterSet(self, FOLLOWER_PARAMETERS).values
        robot = Robot.from_urdf(values["robot_description"].encode())
        self._task, self._names, self._frame = overspeed_task(robot, values["speed"]), list(robot.joint_names), robot.root_link
        self._reference = ScaledMotion(position=self._task.points[0], **{
            name: np.zeros(robot.n) for name in ("velocity", "acceleration", "jerk")})
        self._rested = 0.0
        self._states = self.create_publisher(JointState, "joint_states", 10)
        self._desired = self.create_publisher(JointMotion, "dynamics_node/desired_motion", 10)
        self._trajectories = self.create_publisher(JointTrajectory, "scaling_node/joint_trajectory", 10)
        self.create_subscription(ScaledMotion, "scaling_node/scaled_motion", self._follow, 10)
        steady_timer(self, STATE_PERIOD_S, self._rest)
        self.get_logger().info(f"{robot.name}: {self.announce()}")

    def announce(self) -> str:
        """Return what is sent, for the log."""
        return (f"back and forth in {self._task.times[-1]:.2f} s each way; this demo's limits allow "
                f"{self._task.fastest:.2f} s")

    def _follow(self, message: ScaledMotion) -> None:
        self._reference, self._rested = message, 0.0
        self._publish_state()

    def _rest(self) -> None:
        self._rested += STATE_PERIOD_S
        if self._rested > 2 * STATE_PERIOD_S:
            self._publish_state()
        if self._rested > REST_S:
            self.next_trajectory()

    def next_trajectory(self) -> None:
        """Send the next trajectory, if there is a subscriber."""
        if self._trajectories.get_subscription_count():
            self._rested = 0.0
            self._trajectories.publish(trajectory_message(self._names, *self._next()))

    def _next(self) -> tuple[np.ndarray, np.ndarray]:
        """Return waypoints and times: from one end to the other; from anywhere else, after a stop, to the first end."""
        here, points, times = np.array(self._reference.position), self._task.points, self._task.times
        first, last = (bool(np.abs(here - end).max() < POSITION_TOL) for end in (points[0], points[-1]))
        if first:
            return points, times
        return (points[::-1], times[-1] - times[::-1]) if last else (np.array([here, points[0]]), times[[0, -1]])

    def _publish_state(self) -> None:
        reference = self._reference
        state = JointState(name=self._names, position=reference.position, velocity=reference.velocity,
                           effort=array.array("d", [np.nan] * len(self._names)))
        state.header.stamp, state.header.frame_id = self.get_clock().now().to_msg(), self._frame
        desired = JointMotion(header=state.header, joint_names=self._names, acceleration=reference.acceleration,
                              jerk=reference.jerk)
        self._desired.publish(desired)  # first, since dynamics_node needs it when the state arrives
        self._states.publish(state)


NS_PER_S = 1_000_000_000
SLOWER = 3.0  # than the fastest motion of the demo's limits
POSES, SPREAD = 12, 0.5  # number, and spread as a share of that between the demo's waypoints
FAULTY_SHARE = 0.05


class DemoPolicy(DemoFollower):
    """Robot as demo_follower's, moved by a policy."""

    node_name = "demo_policy"

    def __init__(self) -> None:
        super().__init__()
        task, self._rng = self._task, np.random.default_rng(0)
        low, high = task.points.min(axis=0), task.points.max(axis=0)
        middle, half = 0.5 * (low + high), SPREAD * 0.5 * (high - low)
        self._poses = middle + half * self._rng.uniform(-1.0, 1.0, (POSES, len(middle)))
        self._poses[0] = self._poses[-1] = task.points[0]
        self._step = SLOWER * task.fastest / (len(task.points) - 1)
        self._began = 0  # time at which the policy began [ns]
        self._chunks = self.create_publisher(JointTrajectory, "scaling_node/action_chunks", 10)
        steady_timer(self, STREAM.period_s, self._send)

    def next_trajectory(self) -> None:
        """Send nothing: the policy moves the robot."""

    def announce(self) -> str:
        """Return what is sent, for the log."""
        return "sending action chunks of a policy, 200 ms behind"

    def _send(self) -> None:
        if not self._chunks.get_subscription_count():
            return
        observed = self.get_clock().now().nanoseconds - round(STREAM.latency_s * 1e9)
        self._began = self._began or observed + NS_PER_S
        t = 1e-9 * (observed - self._began) + np.arange(STREAM.points) / STREAM.rate_hz
        q = smooth_steps(self._poses, np.mod(t, (POSES - 1) * self._step), self._step)
        q = q + STREAM.noise * self._rng.standard_normal(q.shape) + STREAM.offset * self._rng.uniform(-1.0, 1.0, q.shape[1])
        if self._rng.random() < FAULTY_SHARE:
            q[:, 0] += 1.0
        if self._rng.random() < STREAM.lost_share:
            return
        message = JointTrajectory(joint_names=self._names,
                                  points=[JointTrajectoryPoint(positions=row) for row in q.tolist()])
        message.header.stamp = Time(sec=observed // NS_PER_S, nanosec=observed % NS_PER_S)
        self._chunks.publish(message)
