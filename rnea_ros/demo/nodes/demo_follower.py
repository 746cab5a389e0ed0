"""Simulated robot that follows scaling_node exactly and sends it fast trajectories back and forth, without end.

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

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_msgs.msg import JointMotion, ScaledMotion
from rnea_ros import Robot
from rnea_ros.demo.nodes.recorders import trajectory_message
from rnea_ros.demo.policies import STREAM, smooth_steps
from rnea_ros.demo.scaling import overspeed_task
from rnea_ros.nodes.common.diagnostics import steady_timer
from rnea_ros.nodes.common.parameter_table import ParameterEntry
from rnea_ros.nodes.common.parameters import ParameterSet

PARAMETERS = (
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
        values = ParameterSet(self, PARAMETERS).values
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
