"""Effort commands of dynamics_node: ~/commands for effort controllers, ~/joint_commands for drivers in MIT mode.

The algorithm and its bounds are those of execution/effort_commands.py. A timer lets the commands end when joint states cease.
"""

from __future__ import annotations

import array
import time
from typing import Any

import numpy as np
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from rnea_ros import InputError
from rnea_ros.errors import some
from rnea_ros.execution.effort_commands import CommandOptions, EffortCommander, JointCommand
from rnea_ros.model.effort_convention import EffortConvention
from rnea_ros.model.tree import Limits
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.dynamics.joint_states import StateReader
from rnea_ros.nodes.dynamics.motion_source import MotionSource
from rnea_ros.nodes.dynamics.served_robot import Motion, ServedRobot
from rnea_ros.robots.results import Dynamics

PERIOD_S = 0.01  # of the timer [s]
PREFIX = "effort_commands."


class EffortCommands:
    """Effort commands of the node's robot; no topics until they are first wanted.

    is_wanted : whether states are needed: commands are on, or not yet at zero
    """

    def __init__(self, node: Node, queue: int):
        self._node, self._queue = node, queue
        self._commander = EffortCommander()
        self._publishers: tuple[Any, Any] | None = None
        self._refusal = ""
        self._fed = -np.inf  # time of the last torque of a desired motion [s]
        self._without_velocity = False

    @property
    def is_wanted(self) -> bool:
        return self._commander.mode != "none" or self._commander.is_active

    @property
    def is_active(self) -> bool:
        """Return whether commands are sent: not yet at zero."""
        return self._commander.is_active

    @staticmethod
    def options(values: Values) -> CommandOptions:
        names = ("ramp_time", "rise_time", "timeout", "friction_share")
        return CommandOptions(values["commands"], *(values[f"{PREFIX}{name}"] for name in names))

    def check(self, served: ServedRobot, values: Values, limits: Limits, convention: EffortConvention) -> None:
        """Raise InputError if these parameters cannot be used."""
        EffortCommander().configure(served.robot, limits, self.options(values), convention)
        if values["commands"] != "none":
            unknown = [name for name in values[f"{PREFIX}joints"] if name and name not in served.joint_names]
            if unknown:
                raise InputError(f"{PREFIX}joints names {some(unknown)}; the robot has {some(served.joint_names)}")

    def use(self, served: ServedRobot, values: Values, limits: Limits, convention: EffortConvention) -> None:
        """Use a model and parameters. If they do not allow commands these end, and a warning has the reason."""
        options, self._refusal = self.options(values), ""
        try:
            self.check(served, values, limits, convention)
        except InputError as error:
            options, self._refusal = CommandOptions(), f"no effort commands: {error}"
            self._node.get_logger().warning(self._refusal)
        self._joints = [name for name in values[f"{PREFIX}joints"] if name]
        self._commander.configure(served.robot, limits, options, convention)
        if options.mode != "none" and self._publishers is None:
            self._publishers = (self._node.create_publisher(Float64MultiArray, "~/commands", self._queue),
                                self._node.create_publisher(JointState, "~/joint_commands", self._queue))
            self._node.create_timer(PERIOD_S, self._on_timer, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def on_state(self, state: StateReader) -> None:
        """Command the compensation at a measured state, unless the torque of a desired motion is commanded."""
        now = time.monotonic()
        self._without_velocity = not np.isfinite(state.qd).all()
        if state.spread > self._commander.timeout:  # a part of the joints has ceased
            return
        if self._commander.mode != "feedforward" or now - self._fed > self._commander.timeout:
            self._send(self._commander.compensate(now, state.q, state.qd))

    def on_torque(self, source: MotionSource, motion: Motion, result: Dynamics) -> None:
        """Command the torque of a desired motion, in mode feedforward. Estimated motions are not fed back."""
        if self._commander.mode == "feedforward" and source.name in ("reference", "desired_motion"):
            self._fed = time.monotonic()
            is_measured = source.name != "reference"
            self._send(self._commander.feed_forward(self._fed, motion[0], motion[1], result.tau, is_measured))

    def _on_timer(self) -> None:
        self._send(self._commander.elapse(time.monotonic()))

    def _send(self, command: JointCommand | None) -> None:
        if command is None or self._publishers is None:
            return
        names = self._commander.joint_names
        chosen = [names.index(name) for name in self._joints if name in names] or slice(None)
        position, velocity, effort = (array.array("d", values[chosen].tobytes()) for values in command)
        efforts, joints = self._publishers
        efforts.publish(Float64MultiArray(data=effort))
        if joints.get_subscription_count():
            message = JointState(name=list(np.array(names)[chosen]), position=position, velocity=velocity, effort=effort)
            message.header.stamp = self._node.get_clock().now().to_msg()
            joints.publish(message)

    def warnings(self) -> list[str]:
        """Return what the user should know now, one sentence each."""
        found = [self._refusal] if self._refusal else []
        if self._commander.is_active and self._commander.is_stale:
            found.append("effort commands end: no usable joint state; support the arm")
        if self._without_velocity and self._commander.mode == "gravity_friction":
            found.append("friction is not compensated: joint_states have no velocities; publish them")
        return found

    def findings(self) -> dict[str, object]:
        return dict(self._commander.findings())
