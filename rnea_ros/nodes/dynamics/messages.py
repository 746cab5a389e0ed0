"""What dynamics_node publishes: each message is made once per model, and its arrays are filled in place.

Building messages costs more than computing the dynamics.
"""

from __future__ import annotations

import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from rnea_msgs.msg import JointDynamics
from rnea_ros.errors import Rejected
from rnea_ros.model.drive_limits import two_sided
from rnea_ros.model.effort_convention import TOTAL, EffortConvention
from rnea_ros.model.tree import Limits
from rnea_ros.model.velocity_limits import LEAST, VelocityLimits
from rnea_ros.nodes.common.diagnostics import Watched
from rnea_ros.nodes.common.robot_facts import RobotFacts
from rnea_ros.nodes.dynamics.joint_layouts import finite
from rnea_ros.nodes.dynamics.motion_source import SECOND
from rnea_ros.nodes.fastpath import raw_messages
from rnea_ros.robots.drive_use import DRIVE_ROWS, SHARES, SUPPLY_ROWS, SUPPLY_SHARE, DriveUse

_ROWS = ("position", "velocity", "acceleration", "jerk", "effort", "effort_rate", "gravity_effort", "gravity_effort_rate",
         "effort_limit", "effort_rate_limit", "effort_utilization", "effort_rate_utilization", "velocity_utilization",
         "effort_std", "effort_rate_std")  # of JointDynamics, for each joint; those of drives and supplies follow
_EFFORTS, _LIMITS, _USE, _STD = (slice(_ROWS.index(name), _ROWS.index(name) + 2)
                                 for name in ("effort", "effort_limit", "effort_utilization", "effort_std"))
_VELOCITY, _VELOCITY_USE = _ROWS.index("velocity"), _ROWS.index("velocity_utilization")


class Sent:
    """One outgoing message with its arrays: as an object to look at, as bytes to send."""

    def __init__(self, message: Any, *parts: np.ndarray):
        """parts (arrays, size): what its arrays show, in their order; each part's are of one size."""
        self._message = message
        rows = [row for part in parts for row in part]
        for name, row in zip(raw_messages.float_arrays(message), rows, strict=True):
            setattr(message, name, array.array("d", bytes(row.nbytes)))
        self._shown = [(np.frombuffer(getattr(message, name)), row)
                       for name, row in zip(raw_messages.float_arrays(message), rows) if row.size]
        self._encoder = raw_messages.Encoder(message, [len(part) for part in parts])
        self._written = [(block, part) for block, part in zip(self._encoder.blocks or (), parts) if part.size]

    def message(self) -> Any:
        for view, row in self._shown:
            view[:] = row
        return self._message

    def packed(self, stamp: tuple[int, int]) -> Any:
        """Bytes, or the message where they cannot be written."""
        if self._encoder.blocks is None:
            message = self.message()
            message.header.stamp.sec, message.header.stamp.nanosec = stamp
            return message
        for target, values in self._written:
            target[...] = values
        return self._encoder.stamped(*stamp)


class DynamicsMessages:
    """The three messages of one model. What a sample fills is one table, a row for each array of JointDynamics."""

    def __init__(self, robot: RobotFacts, limits: Limits, frame_id: str, commanded: EffortConvention = TOTAL.commanded,
                 drives: DriveUse | None = None):
        """commanded: what ~/joint_effort and ~/joint_effort_rate mean; ~/joint_dynamics has the exact torques in any case.
        drives: of the same joints; default as cold as they are at a start."""
        names = list(robot.joint_names)
        self._header = Header(frame_id=frame_id or robot.root_link)  # one object, shared: one stamp to set
        self._commanded = commanded
        self._values = np.zeros((len(_ROWS) + 2, robot.n))
        self._motion_and_result = self._values[:_ROWS.index("effort_limit")].reshape(-1)
        self.motion = self._values[:_ROWS.index("effort")]  # position, velocity, acceleration, jerk
        self._efforts = self._values[_EFFORTS]
        self.rates = self._efforts[1]
        self._flat_efforts = self._efforts.reshape(-1)
        self._limits = self._values[_LIMITS]
        self._limits[:] = limits.effort, limits.effort_rate
        self.use = self._values[_USE]
        self._velocity, self._velocity_limit = self._values[_VELOCITY], limits.velocity
        self._velocity_use = self._values[_VELOCITY_USE]
        self._by_position = VelocityLimits(names, limits.velocity, robot.model.velocity_by_position)
        self._sided = [two_sided(robot.model, robot.joint_names, limits, quantity) for quantity in ("effort", "velocity")]
        self._adds = commanded.contains != TOTAL.commanded.contains  # then effort rates are limited without it
        self._std = self._values[_STD]
        self._std[:] = np.nan
        self._names = robot.joint_names
        self.utilization, self.rate_utilization = self.use
        self.stamp = 0, 0  # seconds and nanoseconds of what was filled in last
        self._told = self._values[len(_ROWS):]
        effort, rate = self._values[_EFFORTS, None] if commanded.plain else self._told[:, None]
        self.drives = drives or DriveUse(robot.model, names)
        self.sent = [  # effort, effort rate, dynamics
            Sent(JointState(header=self._header, name=names), self._values[:2], effort),
            Sent(JointState(header=self._header, name=names), self._values[:2], rate),
            Sent(JointDynamics(header=self._header, joint_names=names), self._values[:len(_ROWS)],
                 self.drives.drives, self.drives.supplies)]

    @property
    def header(self) -> Header:
        """Of all three, stamped as what was filled in last."""
        self._header.stamp.sec, self._header.stamp.nanosec = self.stamp
        return self._header

    @property
    def effort(self) -> JointState:
        return self._shown(0)

    @property
    def effort_rate(self) -> JointState:
        return self._shown(1)

    @property
    def dynamics(self) -> JointDynamics:
        return self._shown(2)

    @property
    def watched(self) -> list[Watched]:
        """The shares of limits that diagnostics look after: of efforts, of drives, of supplies."""
        drives, supplies = self.drives.drives[SHARES], self.drives.supplies[SUPPLY_SHARE]
        return [Watched(tuple(quantities), tuple(owners), rows) for quantities, owners, rows in (
            (_ROWS[_USE], self._names, self.use), (DRIVE_ROWS[SHARES], self._names[:drives.shape[1]], drives),
            (SUPPLY_ROWS[SUPPLY_SHARE], self.drives.names, supplies))]

    def largest_use(self) -> np.ndarray:
        """(n,) of the limits of its effort rate and of its drive, that which a joint uses most; NaN where none is known."""
        drives = self.drives.drives[SHARES]
        return np.fmax(self.rate_utilization, np.fmax.reduce(drives)) if drives.size else self.rate_utilization

    def deviations(self) -> dict[str, object]:
        """For diagnostics: how far off torques and rates may be, where that is known."""
        return {f"{name}.{kind}": f"{value:.3g}" for kind, row in zip(("effort_std", "effort_rate_std"), self._std)
                for name, value in zip(self._names, row) if np.isfinite(value)}

    def _shown(self, number: int) -> Any:
        message = self.sent[number].message()
        message.header = self.header
        return message

    def fill(self, stamp: Time, motion: Sequence[np.ndarray], result: Sequence[np.ndarray],
             std: Sequence[np.ndarray] | None = None, friction: Sequence[Any] = (0.0, 0.0),
             motor_speed: np.ndarray | None = None) -> None:
        """motion is (q, qd, qdd, qddd), result the library's Dynamics, std its TorqueDeviations, where they are known;
        friction and its rate are needed where the robot adds it; motor_speed, seen at the joint, where springs let it differ
        from qd."""
        np.concatenate((*motion, *result), out=self._motion_and_result)
        if not finite(self._flat_efforts):
            raise Rejected("result_not_finite", "the motion is too extreme for finite efforts")
        self.stamp = stamp.sec, stamp.nanosec
        speed = motion[1] if motor_speed is None else motor_speed
        self.drives.fill(stamp.sec * SECOND + stamp.nanosec, self._efforts[0], self._efforts[1], speed)
        if not self._commanded.plain:
            for row, share, gravity, rubbed in zip(self._told, result[:2], result[2:], friction):
                row[:] = self._commanded.effort(share, gravity, rubbed)
        self._std[:] = np.nan if std is None else std
        np.abs(self._efforts, out=self.use)
        if self._adds:
            self.use[1] = np.abs(result[1] - self._commanded.added(result[3], friction[1]))
        np.divide(self.use, self._limits, out=self.use)
        np.abs(self._velocity, out=self._velocity_use)
        if self._by_position.joints:
            self._velocity_use /= np.maximum(self._by_position(motion[0], motion[1]), LEAST)
        else:
            self._velocity_use /= self._velocity_limit
        for sides, values, use in zip(self._sided, (self._efforts[0], self._velocity), (self.use[0], self._velocity_use)):
            if sides is not None:
                joints, lower, upper = sides
                use[joints] = np.maximum(values[joints] / lower, values[joints] / upper)


class Results:
    """The publishers of the three messages, which send to who listens and cost nothing else."""

    def __init__(self, node: Node, queue: int):
        topics = ((JointState, "~/joint_effort"), (JointState, "~/joint_effort_rate"), (JointDynamics, "~/joint_dynamics"))
        publishers = [node.create_publisher(kind, name, queue) for kind, name in topics]
        self.topic_name = publishers[-1].topic_name
        self._publishers = [raw_messages.RawPublisher(publisher) for publisher in publishers]

    def publish(self, filled: DynamicsMessages) -> None:
        for publisher, sent in zip(self._publishers, filled.sent):
            if publisher.has_subscribers():
                publisher.send(sent.packed(filled.stamp))
