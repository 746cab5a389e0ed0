"""Outputs of dynamics_node for a robot's controllers: effort commands, and the speed factor of a trajectory controller.

~/commands is for effort controllers, ~/joint_commands for drivers in MIT mode; execution/effort_commands.py has the algorithm
and its bounds. ~/speed_scaling is the largest speed factor inside the limits of effort and effort rate.
"""

from __future__ import annotations

import array
import time
from typing import Any

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, Float64MultiArray

from rnea_ros import InputError
from rnea_ros.errors import some
from rnea_ros.execution.effort_commands import CommandOptions, EffortCommander, JointCommand
from rnea_ros.model.drives import EffortConvention
from rnea_ros.model.tree import Limits
from rnea_ros.nodes.common.diagnostics import steady_timer
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.common.topics import LATCHED
from rnea_ros.nodes.dynamics.joint_states import StateReader
from rnea_ros.nodes.dynamics.motion_source import MotionSource
from rnea_ros.nodes.dynamics.served_robot import Motion, ServedRobot
from rnea_ros.robots.results import Dynamics
from rnea_ros.trajectory.sample_torques import JointSpeedSplit
from rnea_ros.trajectory.speed_factor import SpeedScaling, speed_factor

try:
    from control_msgs.msg import SpeedScalingFactor  # since Jazzy
except ImportError:
    SpeedScalingFactor = None

PERIOD_S = 0.01  # of the timer [s]
PREFIX = "effort_commands."


class EffortCommands:
    """Effort commands of the node's robot; no topics until they are first wanted.

    is_wanted : whether states are needed: commands are on, or have not decreased to zero yet
    """

    def __init__(self, node: Node, queue: int):
        self._node, self._queue = node, queue
        self._commander = EffortCommander()
        self._publishers: tuple[Any, Any] | None = None
        self._refusal = ""
        self._last_feedforward = -np.inf  # time of the last torque of a desired motion [s]
        self._without_velocity = False

    @property
    def is_wanted(self) -> bool:
        return self._commander.mode != "none" or self._commander.is_active

    @property
    def is_active(self) -> bool:
        """True while commands are sent: they have not decreased to zero yet."""
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
            steady_timer(self._node, PERIOD_S, self._on_timer)

    def on_state(self, state: StateReader) -> None:
        """Command the compensation at a measured state, unless the torque of a desired motion is commanded."""
        now = time.monotonic()
        self._without_velocity = not np.isfinite(state.qd).all()
        if state.spread > self._commander.timeout:  # a part of the joints has ceased
            return
        if self._commander.mode != "feedforward" or now - self._last_feedforward > self._commander.timeout:
            self._send(self._commander.compensate(now, state.q, state.qd))

    def on_torque(self, source: MotionSource, motion: Motion, result: Dynamics) -> None:
        """Command the torque of a desired motion, in mode feedforward. Estimated motions are not fed back."""
        if self._commander.mode == "feedforward" and source.name in ("reference", "desired_motion"):
            self._last_feedforward = time.monotonic()
            is_measured = source.name != "reference"
            self._send(self._commander.feed_forward(self._last_feedforward, motion[0], motion[1], result.tau, is_measured))

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


MAX_STEP_S = 0.1  # a longer gap between two states counts as this much [s]
MIN_EXECUTED_FACTOR = 0.01  # smallest factor of an executed motion from which the planned speed is inferred


class SpeedScaler:
    """Publishes ~/speed_scaling, and ~/speed_scaling_factor as control_msgs where those have it, when it is first wanted.

    active : whether it is requested, and the robot supports it
    """

    def __init__(self, node: Node):
        self._node = node
        self._number = Float64()
        self._publisher: Any = None
        self._controller: Any = None
        self._last = 0
        self._scaling = SpeedScaling()
        self.active = False
        self._hint = ""

    def configure(self, robot: ServedRobot, limits: Limits, values: Values, commanded: EffortConvention) -> None:
        """Use another model, limits or parameters; the factor continues from its value. commanded: convention of the efforts
        whose rates limits.commanded_effort_rate limits.
        """
        wanted = values["publish_speed_scaling"]
        self.active = wanted and robot.scalable
        self._hint = "" if self.active or not wanted else (
            f"speed scaling is for robots without loops, springs, moving base; this one is a {robot.kind}")
        if not self.active:
            return
        fall, rise, most = (values[f"speed_scaling.{name}"] for name in ("fall", "rise", "most"))
        self._scaling = SpeedScaling(fall, rise, most, self._scaling.value)
        self._executed = values["speed_scaling.motion"] == "executed"
        self._commanded, self._limits_commanded = commanded, bool(np.isfinite(limits.commanded_effort_rate).any())
        self._names, self._limits, self._shares = robot.joint_names, limits, JointSpeedSplit(robot.model)
        self._warn_of_unknown_limits()
        if self._publisher is None:
            self._publisher = self._node.create_publisher(Float64, "~/speed_scaling", LATCHED)
            if SpeedScalingFactor is not None:
                self._controller = self._node.create_publisher(SpeedScalingFactor, "~/speed_scaling_factor", LATCHED)

    def publish(self, stamp: int, motion: Any, result: Dynamics, unloaded: Dynamics) -> None:
        """Publish the factor for a motion (q, qd, qdd, qddd) at a stamp [ns].

        unloaded: result without loads. Loads are a function of the path, so their share does not change with speed.
        """
        _, qd, qdd, _ = motion
        still, still_rate, viscous, viscous_rate = self._shares(qd, qdd, result.gravity, result.gravity_rate)
        still, still_rate = still + result.tau - unloaded.tau, still_rate + result.tau_rate - unloaded.tau_rate
        limits, still, still_rate = self._limits, result.gravity + still, result.gravity_rate + still_rate
        found = speed_factor(result.tau, result.tau_rate, still, still_rate, limits.effort, limits.effort_rate, viscous,
                             viscous_rate)
        if self._limits_commanded:
            added = self._commanded.added(result.gravity_rate, still_rate - result.gravity_rate)
            rate, still_rate = result.tau_rate - added, still_rate - added
            if self._commanded.needs_friction:
                rate, viscous_rate = rate - viscous_rate, np.zeros_like(viscous_rate)
            other = speed_factor(result.tau, rate, still, still_rate, np.full_like(limits.effort, np.nan),
                                 limits.commanded_effort_rate, viscous, viscous_rate)
            found = min(found, other, key=lambda one: float(one.factor))
        factor = float(found.factor)
        if self._executed:  # the measured motion is scaled by the present factor already
            factor *= max(self._scaling.value, MIN_EXECUTED_FACTOR)
        dt = min(max(stamp - self._last, 0) * 1e-9, MAX_STEP_S)
        self._last = stamp
        self._number.data = self._scaling.tick(dt, factor)
        self._hint = found.describe(self._names) if factor < 1.0 else ""
        self._publisher.publish(self._number)
        if self._controller is not None:
            self._controller.publish(SpeedScalingFactor(factor=self._number.data))

    def warnings(self) -> list[str]:
        """Return the binding limit, or why there is no result."""
        return [self._hint] if self._hint else []

    def _warn_of_unknown_limits(self) -> None:
        for quantity in ("effort", "effort_rate"):
            known = getattr(self._limits, quantity)
            if quantity == "effort_rate":
                known = np.fmin(known, self._limits.commanded_effort_rate)
            unknown = [name for name, limit in zip(self._names, known) if np.isnan(limit)]
            if unknown:
                words = quantity.replace("_", " ")
                text = f"speed scaling: no {words} limit of {some(unknown)} is known: not enforced"
                self._node.get_logger().warning(text)
