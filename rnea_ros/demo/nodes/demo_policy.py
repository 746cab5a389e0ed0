"""Simulated robot that follows scaling_node exactly, and a scripted policy that sends it action chunks without end.

The policy intends smooth steps between random poses. Its chunks are noisy, offset from each other, computed from observations
that are 200 ms old when they arrive, and some are lost. One in twenty is one radian off: scaling_node rejects it.

Publishes
    scaling_node/action_chunks (trajectory_msgs/JointTrajectory)   50 points for 30 Hz, five times a second
    joint_states, dynamics_node/desired_motion                     as demo_follower
Subscribes
    scaling_node/scaled_motion (rnea_msgs/ScaledMotion)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Time
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_ros.demo.nodes.demo_follower import DemoFollower
from rnea_ros.demo.policies import STREAM, smooth_steps
from rnea_ros.nodes.common.diagnostics import steady_timer
from rnea_ros.nodes.common.process import run

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


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; return the exit code."""
    return run([DemoPolicy], args)


if __name__ == "__main__":
    raise SystemExit(main())
