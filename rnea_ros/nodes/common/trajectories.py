"""Conversion of trajectory messages to goals."""

from __future__ import annotations

from trajectory_msgs.msg import JointTrajectory

from rnea_ros.execution.goal import Goal, TrajectoryPoint, read_goal
from rnea_ros.nodes.common.stamps import nanoseconds


def goal_from_message(message: JointTrajectory, joint_names: tuple[str, ...]) -> Goal:
    """Return the goal of a JointTrajectory for a robot with these joints. Raises Rejected."""
    points = [TrajectoryPoint(nanoseconds(p.time_from_start) * 1e-9, p.positions, p.velocities, p.accelerations)
              for p in message.points]
    return read_goal(joint_names, list(message.joint_names), points, nanoseconds(message.header.stamp))
