"""~/controller_state of a joint_trajectory_controller: its reference, and where it says that the robot is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rnea_ros.nodes.common.stamps import nanoseconds
from rnea_ros.nodes.fastpath.raw_messages import Reader

try:
    from control_msgs.msg import JointTrajectoryControllerState
except ImportError:
    JointTrajectoryControllerState = None


class ControllerState(NamedTuple):
    """At a stamp [ns], in the order of joint_names; factor: of the speed at which it plays a trajectory.

    Position, velocity and effort are those of the robot, empty where it does not tell; where it tells no measured effort, that
    is what it commands.
    """

    stamp: int
    joint_names: Sequence[str]
    reference: Sequence[float]
    position: Sequence[float]
    velocity: Sequence[float]
    effort: Sequence[float]
    factor: float


def reader() -> Any:
    """Call it with bytes; it raises Rejected."""
    read = Reader(JointTrajectoryControllerState)
    return lambda data: told(read(data))


def told(message: Any) -> ControllerState:
    """Of any version of control_msgs: `reference` and `feedback` were `desired` and `actual`."""
    reference = message.reference if hasattr(message, "reference") else message.desired
    measured = message.feedback if hasattr(message, "feedback") else message.actual
    position, error = measured.positions, message.error.positions
    if len(position) == 0 and len(error) == len(reference.positions):
        position = [wanted - off for wanted, off in zip(reference.positions, error)]
    effort = measured.effort
    if len(effort) == 0 and hasattr(message, "output"):
        effort = message.output.effort
    return ControllerState(nanoseconds(message.header.stamp), message.joint_names, reference.positions, position,
                           measured.velocities, effort, getattr(message, "speed_scaling_factor", 1.0))
