"""Results of dynamics_node: messages and standard deviations.

Each message is built once per model and motion source, and its arrays are filled in place: building messages costs more than
computing the dynamics.
"""

from __future__ import annotations

import array
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from rnea_msgs.msg import JointDynamics
from rnea_ros import InputError, Robot
from rnea_ros.codegen.kernel import Kernel
from rnea_ros.codegen.sample_step import Copy, SampleStep
from rnea_ros.errors import Rejected
from rnea_ros.model.drives import MIN_VELOCITY, TOTAL, EffortConvention, VelocityLimits, two_sided_limits
from rnea_ros.model.tree import Limits
from rnea_ros.nodes.common import cdr
from rnea_ros.nodes.common.diagnostics import WatchedLimits
from rnea_ros.nodes.common.model_facts import RobotFacts, commanded_rate_limit
from rnea_ros.nodes.dynamics.joint_states import finite
from rnea_ros.nodes.dynamics.motion_source import SECOND
from rnea_ros.robots.results import TorqueDeviations
from rnea_ros.trajectory.drive_utilization import DRIVE_ROWS, SHARES, SUPPLY_ROWS, SUPPLY_SHARE, DriveUtilization

_ROWS = ("position", "velocity", "acceleration", "jerk", "effort", "effort_rate", "gravity_effort", "gravity_effort_rate",
         "commanded_effort", "commanded_effort_rate", "effort_limit", "effort_rate_limit", "commanded_effort_rate_limit",
         "effort_utilization", "effort_rate_utilization", "commanded_effort_rate_utilization", "velocity_utilization",
         "effort_std", "effort_rate_std")  # of JointDynamics, for each joint; those of drives and supplies follow


def _rows(first: str, count: int) -> slice:
    return slice(_ROWS.index(first), _ROWS.index(first) + count)


_EFFORTS, _COMMANDED, _STD = (_rows(name, 2) for name in ("effort", "commanded_effort", "effort_std"))
_LIMITS, _USE = (_rows(name, 3) for name in ("effort_limit", "effort_utilization"))
_SHARES = _rows("effort_utilization", 4)  # those of efforts, and of the velocity
_LIMITED = np.array([_ROWS.index(name) for name in ("effort", "effort_rate", "commanded_effort_rate", "velocity")])
COUNT_PERIOD_NS = 10_000_000  # ns; of counting the subscribers, which takes a tenth of the time of sending
TOPICS = ((JointState, "~/joint_effort"), (JointState, "~/joint_effort_rate"), (JointState, "~/commanded_effort"),
          (JointState, "~/commanded_effort_rate"), (JointDynamics, "~/joint_dynamics"))


class Sent:
    """Outgoing message with its arrays, as an object and as bytes."""

    def __init__(self, message: Any, *parts: np.ndarray):
        """parts: (arrays, size) each, the values of the message's arrays in their order."""
        self._message = message
        rows = [row for part in parts for row in part]
        for name, row in zip(cdr.float_arrays(message), rows, strict=True):
            setattr(message, name, array.array("d", bytes(row.nbytes)))
        self._shown = [(np.frombuffer(getattr(message, name)), row)
                       for name, row in zip(cdr.float_arrays(message), rows) if row.size]
        self._encoder = cdr.Encoder(message, [len(part) for part in parts])
        self._written = [(block, part) for block, part in zip(self._encoder.blocks or (), parts) if part.size]

    def message(self) -> Any:
        """Return the message with the present values."""
        for view, row in self._shown:
            view[:] = row
        return self._message

    def packed(self, stamp: tuple[int, int]) -> Any:
        """Return the bytes of the message, or the message where its type cannot be written."""
        if self._encoder.blocks is None:
            message = self.message()
            message.header.stamp.sec, message.header.stamp.nanosec = stamp
            return message
        for target, values in self._written:
            target[...] = values
        return self._encoder.stamped(*stamp)

    def copies(self, stamp: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return (target, source) of what `packed` copies, row by row, with a stamp (1,) in the form of Encoder.stamp.

        Raises InputError where `packed` returns a message.
        """
        if self._encoder.blocks is None:
            raise InputError(f"{type(self._message).__name__} is not written in place; its layout is unexpected")
        rows = [pair for block, part in self._written for pair in zip(block, part)]
        return [*rows, (self._encoder.stamp, stamp)]

    @property
    def data(self) -> memoryview:
        """Bytes of the message, in place."""
        return self._encoder.data


class DynamicsMessages:
    """Messages of one model. Each sample fills one table, with a row for each array of JointDynamics.

    input_age : (inputs,) ages of the other inputs [s], filled in by the caller before `fill`
    """

    def __init__(self, robot: RobotFacts, limits: Limits, frame_id: str, commanded: EffortConvention = TOTAL.commanded,
                 drives: DriveUtilization | None = None, inputs: Sequence[str] = ()):
        """commanded: meaning of commanded efforts; joint efforts are whole torques in any case.
        drives: thermal state of the same joints; default cold. inputs: see JointDynamics.input_names.
        """
        names = list(robot.joint_names)
        self._header = Header(frame_id=frame_id or robot.root_link)  # shared: one stamp to set
        self._convention, self._is_plain = commanded, commanded.plain
        self._values = np.zeros((len(_ROWS), robot.n))
        self._motion_and_result = self._values[:_ROWS.index("commanded_effort")].reshape(-1)
        self.motion = self._values[:_ROWS.index("effort")]  # position, velocity, acceleration, jerk
        self._efforts, self._commanded = self._values[_EFFORTS], self._values[_COMMANDED]
        self.rates = self._efforts[1]
        self._flat_efforts = self._efforts.reshape(-1)
        self._limits = self._values[_LIMITS]
        self._limits[:] = limits.effort, limits.effort_rate, commanded_rate_limit(limits, commanded)
        self.use, self._shares = self._values[_USE], self._values[_SHARES]
        self._share_limits = np.array([*self._limits, limits.velocity])
        self._limited = np.empty_like(self._share_limits)
        self._by_position = VelocityLimits(names, limits.velocity, robot.model.velocity_by_position)
        self._sided = [(sides, self._values[_ROWS.index(quantity)], self._values[_ROWS.index(f"{quantity}_utilization")])
                       for quantity in ("effort", "velocity")
                       if (sides := two_sided_limits(robot.model, robot.joint_names, limits, quantity)) is not None]
        self._std = self._values[_STD]
        self._std[:], self._has_std = np.nan, False
        self._names = robot.joint_names
        self.utilization = self.use[0]
        self.stamp = 0, 0  # seconds and nanoseconds of the last sample
        self.drives = drives or DriveUtilization(robot.model, names)
        self._inputs, self.input_age = list(inputs), np.zeros(len(inputs))
        self._joint_states = [Sent(JointState(header=self._header, name=names), self._values[:2], self._values[row, None])
                              for row in (*range(_EFFORTS.start, _EFFORTS.stop), *range(_COMMANDED.start, _COMMANDED.stop))]
        self._dynamics: dict[str, Sent] = {}  # by motion source, which is part of a message's layout
        self._source = ""

    def sent(self, number: int, source: str | None = None) -> Sent:
        """Return the message of a topic, by its number in TOPICS. source: of the motion; default: that of the last sample."""
        source = self._source if source is None else source
        return self._joint_states[number] if number < len(self._joint_states) else self._of_source(source)

    def _of_source(self, source: str) -> Sent:
        sent = self._dynamics.get(source)
        if sent is None:
            message = JointDynamics(header=self._header, joint_names=list(self._names), motion_source=source,
                                    input_names=self._inputs)
            sent = self._dynamics[source] = Sent(message, self.input_age[None], self._values, self.drives.drives,
                                                       self.drives.supplies)
        return sent

    @property
    def header(self) -> Header:
        """Header of all messages, with the stamp of the last sample."""
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
        return self._shown(len(self._joint_states))

    @property
    def watched(self) -> list[WatchedLimits]:
        """Used shares of limits for diagnostics: efforts, drives, supplies."""
        drives, supplies = self.drives.drives[SHARES], self.drives.supplies[SUPPLY_SHARE]
        return [WatchedLimits(tuple(quantities), tuple(owners), rows) for quantities, owners, rows in (
            (_ROWS[_USE], self._names, self.use), (DRIVE_ROWS[SHARES], self._names[:drives.shape[1]], drives),
            (SUPPLY_ROWS[SUPPLY_SHARE], self.drives.names, supplies))]

    def largest_use(self) -> np.ndarray:
        """Return the largest used share (n,) of each joint's limits of effort rates and of its drive; NaN where unknown."""
        rates, drives = np.fmax(self.use[1], self.use[2]), self.drives.drives[SHARES]
        return np.fmax(rates, np.fmax.reduce(drives)) if drives.size else rates

    def deviations(self) -> dict[str, object]:
        """Return standard deviations of torques and rates for diagnostics, where known."""
        return {f"{name}.{kind}": f"{value:.3g}" for kind, row in zip(("effort_std", "effort_rate_std"), self._std)
                for name, value in zip(self._names, row) if np.isfinite(value)}

    def _shown(self, number: int) -> Any:
        message = self.sent(number).message()
        message.header = self.header
        return message

    def fill(self, stamp: Time, motion: Sequence[np.ndarray], result: Sequence[np.ndarray],
             std: Sequence[np.ndarray] | None = None, friction: Sequence[Any] = (0.0, 0.0),
             motor_speed: np.ndarray | None = None, source: str = "") -> None:
        """Fill in a sample: motion is (q, qd, qdd, qddd), result the library's Dynamics, std its TorqueDeviations where known.

        friction    : friction and its rate, where the robot's controller adds it
        motor_speed : on the joint's side of the gears, where springs let it differ from qd
        source      : source of the motion, see JointDynamics.motion_source
        """
        np.concatenate((*motion, *result), out=self._motion_and_result)
        if not finite(self._flat_efforts):
            raise Rejected("result_not_finite", "the motion is too extreme for finite efforts")
        self.stamp, self._source = (stamp.sec, stamp.nanosec), source
        speed = motion[1] if motor_speed is None else motor_speed
        self.drives.fill(stamp.sec * SECOND + stamp.nanosec, self._efforts[0], self._efforts[1], speed)
        if self._is_plain:
            self._commanded[:] = self._efforts
        else:
            for row, share, gravity, friction_k in zip(self._commanded, result[:2], result[2:], friction):
                row[:] = self._convention.effort(share, gravity, friction_k)
        if std is None:
            self.clear_deviations()
        else:
            self._std[:], self._has_std = std, True
        if self._by_position.joints:
            self._share_limits[-1] = np.maximum(self._by_position(motion[0], motion[1]), MIN_VELOCITY)
        self._values.take(_LIMITED, axis=0, out=self._limited, mode="clip")
        np.abs(self._limited, out=self._limited)
        np.divide(self._limited, self._share_limits, out=self._shares)
        for (joints, lower, upper), values, use in self._sided:
            use[joints] = np.maximum(values[joints] / lower, values[joints] / upper)

    # ------------------------------------------------------------------ the same by a sample step

    @property
    def is_plain(self) -> bool:
        """True if `fill` only divides by constant limits: one convention, no drives, no limits by direction or position."""
        return self._is_plain and not (self._by_position.joints or self._sided or self.drives.is_used)

    def connect(self, step: SampleStep, topics: Sequence[int], source: str, stamp: np.ndarray, peaks: Sequence[Copy]) -> None:
        """Let a step do what `fill` and Sent.packed do, for topics by their numbers; for a plain convention only."""
        values = self._values
        step.connect([(self.motion, step.motion), (values[_EFFORTS.start:_COMMANDED.start], step.results),
                      (self._commanded, step.results[:2])],
                     list(zip(self._shares, (values[row] for row in _LIMITED), self._share_limits)),
                     [pair for number in topics for pair in self.sent(number, source).copies(stamp)], peaks)

    def clear_deviations(self) -> None:
        """Set the standard deviations to NaN: those of the next sample are not known."""
        if self._has_std:
            self._std.fill(np.nan)
            self._has_std = False

    def filled(self, stamp: tuple[int, int], source: str) -> None:
        """Record stamp and source of a sample that a step has filled in."""
        self.stamp, self._source = stamp, source


class MessageStep:
    """Evaluation and serialization of a sample by one call of machine code, for a tree that has a desired motion.

    It fills in and packs the same bytes as DynamicsMessages.fill and Sent.packed do. See codegen/sample_step.py.
    """

    source = "desired_motion"  # of the motion, see JointDynamics.motion_source

    def __init__(self, kernel: Kernel, state: np.ndarray, out: DynamicsMessages, peaks: Sequence[Copy]):
        """Create a step. Raises InputError, and ImportError without llvmlite.

        state : (2, n) measured positions and velocities, read at each sample
        peaks : of Health, to be raised by each sample
        """
        if not out.is_plain:
            raise InputError("the messages need more than constant limits")
        self._step, self._out = SampleStep(kernel, state), out
        self._stamp_bytes = bytearray(8)
        self._stamp = np.frombuffer(self._stamp_bytes, np.uint64)
        self._peaks = peaks
        self._topics: tuple[int, ...] = ()  # those that the step packs
        self.data: list[memoryview] = []  # bytes of the messages that were filled in
        self._connect(tuple(range(len(TOPICS))))  # which raises for messages of another layout than expected

    def fill(self, topics: tuple[int, ...], when: Time, desired: np.ndarray, since: float) -> bool:
        """Fill in a sample; return False, and change no message, if its numbers are not finite.

        topics  : numbers of the messages to pack, in TOPICS
        when    : stamp of the sample
        desired : (2, n) acceleration and jerk, `since` seconds before it
        """
        if topics != self._topics:
            self._connect(topics)
        self._out.clear_deviations()
        stamp = when.sec, when.nanosec
        cdr.STAMP.pack_into(self._stamp_bytes, 0, *stamp)
        self._step.desired[:], self._step.since[0] = desired, since
        if not self._step():
            return False
        self._out.filled(stamp, self.source)
        return True

    def _connect(self, topics: tuple[int, ...]) -> None:
        self._out.connect(self._step, topics, self.source, self._stamp, self._peaks)
        self._topics, self.data = topics, [self._out.sent(number, self.source).data for number in topics]


class ResultPublishers:
    """Publishers of the messages; a message without subscribers is not built."""

    def __init__(self, node: Node, queue: int):
        publishers = [node.create_publisher(kind, name, queue) for kind, name in TOPICS]
        self.topic_name = publishers[-1].topic_name
        self._publishers = [cdr.RawPublisher(publisher) for publisher in publishers]
        self._subscribed: tuple[int, ...] = ()  # numbers in TOPICS
        self._counted = 0  # time of the last count of the subscribers, steady clock [ns]

    def subscribed(self) -> tuple[int, ...]:
        """Return the numbers in TOPICS of the topics with subscribers, counted every COUNT_PERIOD_NS."""
        now = time.monotonic_ns()
        if now - self._counted > COUNT_PERIOD_NS:
            self._counted = now
            self._subscribed = tuple(k for k, publisher in enumerate(self._publishers) if publisher.has_subscribers())
        return self._subscribed

    def publish(self, filled: DynamicsMessages) -> None:
        for number in self.subscribed():
            self._publishers[number].send(filled.sent(number).packed(filled.stamp))

    def publish_step(self, step: MessageStep, topics: tuple[int, ...]) -> None:
        """Publish the messages that a step has packed."""
        for number, data in zip(topics, step.data):
            self._publishers[number].send_bytes(bytes(data))


class Deviations:
    """Standard deviations of torques and rates from those of an estimated motion; None until compiled."""

    def __init__(self) -> None:
        self._workers = ThreadPoolExecutor(max_workers=1, thread_name_prefix="deviations")
        self._robot: Robot | None = None
        self._compiled: Future | None = None

    def prepare(self, robot: Robot) -> None:
        """Compile the kernel of a robot."""
        q, qd, qdd, qddd = deviation = np.zeros((4, robot.n))
        robot.torque_deviations(q, qd, qdd, qddd, deviation)

    def __call__(self, robot: Robot | None, motion: Sequence[np.ndarray],
                 deviation: np.ndarray | None) -> TorqueDeviations | None:
        if deviation is None or robot is None:
            return None
        if robot is not self._robot:
            self._robot, self._compiled = robot, self._workers.submit(self.prepare, robot)
        if self._compiled is not None and self._compiled.done():
            self._compiled.result()
            self._compiled = None
        q, qd, qdd, qddd = motion
        return robot.torque_deviations(q, qd, qdd, qddd, deviation) if self._compiled is None else None

    def close(self) -> None:
        self._workers.shutdown(wait=True, cancel_futures=True)
