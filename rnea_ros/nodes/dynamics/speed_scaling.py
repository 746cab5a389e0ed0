"""The largest speed factor inside the limits of effort and effort rate, as a signal for a trajectory controller."""

from __future__ import annotations

from typing import Any

import numpy as np
from rclpy.node import Node
from std_msgs.msg import Float64

from rnea_ros.errors import some
from rnea_ros.model.effort_convention import EffortConvention
from rnea_ros.model.tree import Limits
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.common.qos import LATCHED
from rnea_ros.nodes.dynamics.served_robot import ServedRobot
from rnea_ros.robots.results import Dynamics
from rnea_ros.trajectory.sample_torques import JointSpeedSplit
from rnea_ros.trajectory.speed_factor import SpeedScaling, speed_factor

try:
    from control_msgs.msg import SpeedScalingFactor  # since Jazzy
except ImportError:
    SpeedScalingFactor = None

LONGEST = 0.1  # s; a longer gap between two states counts as this much
SLOWEST = 0.01  # of an executed motion, from which the planned speed is still inferred


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
        """Take another model, limits or parameters; the factor continues from its value. commanded: convention of the efforts
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

    def publish(self, stamp: int, motion: Any, result: Dynamics, alone: Dynamics) -> None:
        """Publish the factor for a motion (q, qd, qdd, qddd) at a stamp [ns].

        alone: result without loads. Loads are a function of the path, so their share does not change with speed.
        """
        _, qd, qdd, _ = motion
        still, still_rate, viscous, viscous_rate = self._shares(qd, qdd, result.gravity, result.gravity_rate)
        still, still_rate = still + result.tau - alone.tau, still_rate + result.tau_rate - alone.tau_rate
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
        if self._executed:  # what is seen runs at the present factor already
            factor *= max(self._scaling.value, SLOWEST)
        dt = min(max(stamp - self._last, 0) * 1e-9, LONGEST)
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
