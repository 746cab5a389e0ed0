"""Trajectories as messages."""

from __future__ import annotations

from trajectory_msgs.msg import JointTrajectory

from rnea_ros.execution.goal import Goal, TrajectoryPoint, read
from rnea_ros.nodes.common.stamps import nanoseconds


def goal(message: JointTrajectory, joint_names: tuple[str, ...]) -> Goal:
    """Raises Rejected."""
    points = [TrajectoryPoint(nanoseconds(p.time_from_start) * 1e-9, p.positions, p.velocities, p.accelerations)
              for p in message.points]
    return read(joint_names, list(message.joint_names), points, nanoseconds(message.header.stamp))
