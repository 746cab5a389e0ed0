"""Messages <-> arrays in the model's joint order, by name.

Incoming: the index map is made anew only when the names of a message change. DynamicsMessages: every message is made once per
model and its arrays are filled in place; building messages costs more than computing the dynamics.
"""

from __future__ import annotations

import array
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from rnea_msgs.msg import JointDynamics, JointMotion, ModelInfo
from rnea_ros import Robot
from rnea_ros.errors import Rejected, some
from rnea_ros.nodes.fastpath import raw_messages
from rnea_ros.robots.robot import Limits

SUDDEN = 1_000_000_000  # ns; a step of the stamps from which they are looked at more closely
UNKNOWN = -(2**63)  # a stamp that none can have
SENDERS, MANY = 32, 1000  # of messages with other names, and names in a message, that are remembered


class Jumped(Rejected):
    """The message's stamp does not go on from the last one's: nothing of the past says anything about now."""


def nanoseconds(stamp: Time) -> int:
    return stamp.sec * 1_000_000_000 + stamp.nanosec


_ROWS = ("position", "velocity", "acceleration", "jerk", "effort", "effort_rate", "gravity_effort", "gravity_effort_rate",
         "effort_limit", "effort_rate_limit", "effort_utilization", "effort_rate_utilization")  # of JointDynamics
_EFFORTS, _LIMITS, _USE = (slice(_ROWS.index(name), _ROWS.index(name) + 2)
                           for name in ("effort", "effort_limit", "effort_utilization"))


def _finite(values: np.ndarray) -> bool:
    """Whether all are; by way of a list, which for a robot's few joints takes half as long as numpy's own way."""
    return all(map(math.isfinite, values.tolist()))


class Timeline:
    """Whether the stamps of a stream advance as time does. One step back, or far ahead of it, is refused; what follows it
    counts as a new start."""

    def __init__(self, clock: Callable[[], int] = time.time_ns):
        """clock() is what this node's clock shows [ns]. It is asked only where stamps are in doubt: those of a recording that
        is played are far from it, and right."""
        self._clock = clock
        self.arrival = 0  # of the last message, by the steady clock [ns]
        self.forget()

    def forget(self) -> None:
        """Accept any stamp next: the clock was set."""
        self._last = UNKNOWN

    def advance(self, stamp: Time) -> int:
        """The stamp in nanoseconds. Raises Jumped."""
        now, last, before = nanoseconds(stamp), self._last, self.arrival
        self._last, self.arrival = now, time.monotonic_ns()
        step = now - last
        if not 0 <= step <= SUDDEN and last != UNKNOWN:
            if step < 0:
                raise Jumped("stamp_went_back", f"the stamp is {-step * 1e-9:.6f} s before the one of the last message")
            elapsed, ahead = self.arrival - before, now - self._clock()
            if step - elapsed > SUDDEN and ahead > SUDDEN:
                raise Jumped("stamp_ahead", f"the stamp is {step * 1e-9:.3f} s after the one of the last message, which came "
                                            f"{elapsed * 1e-9:.3f} s ago, and {ahead * 1e-9:.3f} s ahead of this node's clock")
        return now


class Layout:
    """Where joints of the model are in messages that name theirs in any order.

    joints  : their numbers in the model
    columns : the same, to index arrays of the model
    others  : names in the message that are none of the model's
    """

    def __init__(self, names: Sequence[str], numbers: Mapping[str, int]):
        """Raises Rejected."""
        if not names:
            raise Rejected("empty", "the message names no joints")
        index = {name: k for k, name in enumerate(names)}
        if len(index) < len(names):
            twice = (name for name, count in Counter(names).items() if count > 1)
            raise Rejected("duplicate_joint", f"named more than once: {some(twice)}")
        self.names = list(names)
        known = [name for name in numbers if name in index]
        self.joints = tuple(numbers[name] for name in known)
        self.others = [name for name in names if name not in numbers]
        self.whole = len(known) == len(numbers)
        self.columns: Any = slice(None) if self.whole else np.array(self.joints, dtype=np.intp)
        self._order = np.array([index[name] for name in known], dtype=np.intp)

    def read(self, values: array.array, what: str, out: np.ndarray) -> bool:
        """Copy values of `joints` into out; returns whether all are finite."""
        if len(values) != len(self.names):
            raise Rejected("wrong_size", f"{what} has {len(values)} entries for {len(self.names)} names")
        np.frombuffer(values).take(self._order, out=out, mode="clip")
        return _finite(out)


class JointMap:
    """Layouts by the names of messages."""

    def __init__(self, joint_names: Sequence[str]):
        self.joint_names = tuple(joint_names)
        self._numbers = {name: k for k, name in enumerate(self.joint_names)}
        self._latest: Layout | None = None
        self._known: dict[tuple[str, ...], Layout] = {}

    def locate(self, names: list[str]) -> Layout:
        """Raises Rejected."""
        latest = self._latest
        if latest is not None and names == latest.names:
            return latest
        key = tuple(names)
        found = self._known.get(key) or Layout(names, self._numbers)
        if len(self._known) >= SENDERS:  # whoever sends ever other names is not remembered
            self._known.clear()
        if len(names) <= MANY:
            self._known[key] = found
        self._latest = found
        return found


def not_finite(names: Sequence[str], values: np.ndarray) -> str:
    """For people."""
    return some(f"{name} = {value}" for name, value in zip(names, values) if not math.isfinite(value))


class DesiredReader:
    """The latest desired motions: acceleration and jerk by stamp."""

    _KEPT = 16

    def __init__(self, joint_names: Sequence[str], clock: Callable[[], int] = time.time_ns):
        self._map, self._timeline = JointMap(joint_names), Timeline(clock)
        self.held: frozenset[int] = frozenset()  # joints that need not be named: they rest
        self._spare = np.zeros((2, len(joint_names)))
        self._kept: deque[tuple[int, np.ndarray]] = deque()

    def read(self, message: JointMotion) -> int:
        """The stamp [ns]. Raises Rejected; what was read before stays then, unless time jumped."""
        names = self._map.joint_names
        layout = self._map.locate(message.joint_names)
        if not layout.whole:
            missing = [name for k, name in enumerate(names) if k not in self.held and k not in layout.joints]
            if missing:
                raise Rejected("joint_missing", f"not in the message: {some(missing)}")
            self._spare.fill(0.0)
        for row, what in zip(self._spare, ("acceleration", "jerk")):
            given = row if layout.whole else np.empty(len(layout.joints))
            if not layout.read(getattr(message, what), what, given):
                raise Rejected(f"{what}_not_finite", not_finite([names[k] for k in layout.joints], given))
            row[layout.columns] = given
        try:
            stamp = self._timeline.advance(message.header.stamp)
        except Jumped:
            self._kept.clear()
            raise
        self._kept.append((stamp, self._spare))
        full = len(self._kept) > self._KEPT
        self._spare = self._kept.popleft()[1] if full else np.zeros_like(self._spare)
        return stamp

    def at(self, stamp: int) -> np.ndarray | None:
        """(acceleration, jerk) of the last motion that is not after this stamp, else of the nearest; None if none came."""
        for when, motion in reversed(self._kept):
            if when <= stamp:
                return motion
        return self._kept[0][1] if self._kept else None

    def clear(self) -> None:
        """Forget the motions: the states' clock jumped."""
        self._kept.clear()

    def forget(self) -> None:
        self._timeline.forget()
        self.clear()


class Sent:
    """One outgoing message with its arrays: as an object to look at, as bytes to send."""

    def __init__(self, message: JointState | JointDynamics, values: np.ndarray, *parts: slice):
        """parts: the rows of `values` that its arrays show, in their order."""
        self._message = message
        for name in raw_messages.float_arrays(message):
            setattr(message, name, array.array("d", bytes(8 * values.shape[1])))
        views = (np.frombuffer(getattr(message, name)) for name in raw_messages.float_arrays(message))
        self._shown = list(zip(views, (row for part in parts for row in values[part])))
        self._encoder = raw_messages.Encoder(message)
        self._written: list[tuple[np.ndarray, np.ndarray]] = []
        if self._encoder.rows is not None:
            ends = np.cumsum([part.stop - part.start for part in parts])
            targets = np.split(self._encoder.rows, ends[:-1])
            self._written = [(target, values[part]) for target, part in zip(targets, parts)]

    def message(self) -> JointState | JointDynamics:
        for view, row in self._shown:
            view[:] = row
        return self._message

    def packed(self, stamp: tuple[int, int]) -> bytes | JointState | JointDynamics:
        if self._encoder.rows is None:
            message = self.message()
            message.header.stamp.sec, message.header.stamp.nanosec = stamp
            return message
        for target, values in self._written:
            target[...] = values
        return self._encoder.stamped(*stamp)


class DynamicsMessages:
    """The three messages of one model. What a sample fills is one table, a row for each array of JointDynamics."""

    def __init__(self, robot: Robot, limits: Limits, frame_id: str):
        names = list(robot.joint_names)
        self._header = Header(frame_id=frame_id or robot.root_link)  # one object, shared: one stamp to set
        self._values = np.zeros((len(_ROWS), robot.n))
        self._motion_and_result = self._values[:_ROWS.index("effort_limit")].reshape(-1)
        self._efforts = self._values[_EFFORTS]
        self._flat_efforts = self._efforts.reshape(-1)
        self._limits = self._values[_LIMITS]
        self._limits[:] = limits.effort, limits.effort_rate
        self.use = self._values[_USE]
        self.utilization, self.rate_utilization = self.use
        self.stamp = 0, 0  # seconds and nanoseconds of what was filled in last
        effort, rate = _EFFORTS.start, _EFFORTS.start + 1
        self.sent = [  # effort, effort rate, dynamics
            Sent(JointState(header=self._header, name=names), self._values, slice(0, 2), slice(effort, effort + 1)),
            Sent(JointState(header=self._header, name=names), self._values, slice(0, 2), slice(rate, rate + 1)),
            Sent(JointDynamics(header=self._header, joint_names=names), self._values, slice(0, len(_ROWS)))]

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

    def _shown(self, number: int) -> Any:
        message = self.sent[number].message()
        message.header = self.header
        return message

    def fill(self, stamp: Time, motion: Sequence[np.ndarray], result: Sequence[np.ndarray]) -> None:
        """motion is (q, qd, qdd, qddd), result the library's Dynamics."""
        np.concatenate((*motion, *result), out=self._motion_and_result)
        if not _finite(self._flat_efforts):
            raise Rejected("result_not_finite", "the motion is too extreme for finite efforts")
        self.stamp = stamp.sec, stamp.nanosec
        np.abs(self._efforts, out=self.use)
        np.divide(self.use, self._limits, out=self.use)


def model_info(robot: Robot, limits: Limits, stamp: Time) -> ModelInfo:
    """Everything a subscriber needs to interpret the numbers."""
    rotary = [kind != "prismatic" for kind in robot.joint_types]
    info = ModelInfo(header=Header(stamp=stamp, frame_id=robot.root_link))
    info.model_id, info.robot_name, info.root_link = robot.model_id, robot.name, robot.root_link
    info.base, info.backend = "fixed", robot.backend
    info.total_mass, info.gravity = float(robot.total_mass), robot.gravity_vector
    info.joint_names, info.joint_types = list(robot.joint_names), list(robot.joint_types)
    info.effort_units = ["N.m" if turns else "N" for turns in rotary]
    info.effort_rate_units = ["N.m/s" if turns else "N/s" for turns in rotary]
    info.effort_limit, info.effort_rate_limit = limits.effort.tolist(), limits.effort_rate.tolist()
    columns = [list(column) for column in zip(*robot.mdh_table())] or [[] for _ in range(9)]
    (info.frame_names, info.parent, info.sigma, info.gamma, info.b, info.alpha, info.d, info.theta, info.r) = columns
    info.reconstruction_error = float(robot.reconstruction_error)
    info.warnings = list(robot.warnings)
    return info
