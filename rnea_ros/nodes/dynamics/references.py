"""Desired and reference motions by stamp, from messages with fields by joint.

A desired motion has acceleration, jerk and higher derivatives. A reference is the motion that is executed, as its executor
publishes it; nothing is estimated where it is known. Sources: scaling_node, with all derivatives at each instant; a
joint_trajectory_controller, with most of them; the trajectory that such a controller executes.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSProfile
from trajectory_msgs.msg import JointTrajectory

from rnea_msgs.msg import ScaledMotion
from rnea_ros.errors import InputError, Rejected, some
from rnea_ros.estimation.motion_estimator import MotionEstimator
from rnea_ros.execution.controller import ControllerTrajectory, ReferenceJerk
from rnea_ros.execution.goal import Goal
from rnea_ros.nodes.common.cdr import Reader
from rnea_ros.nodes.common.pairing import check_age, extrapolated, interpolated
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.common.topics import (
    DYNAMICS_SENSOR,
    TRAJECTORIES,
    UNKNOWN_STAMP,
    Jumped,
    Timeline,
    goal_from_message,
    nanoseconds,
)
from rnea_ros.nodes.dynamics.joint_states import JointMap, StateReader, not_finite

try:
    from control_msgs.msg import JointTrajectoryControllerState
except ImportError:
    JointTrajectoryControllerState = None

MAX_MOTIONS = 512  # motions: joint states may be held or late by a quarter of a second at 2 kHz
FIELDS = ("acceleration", "jerk", "snap", "crackle", "pop", "lock")  # of JointMotion; those from snap on may be empty


class StampedMotions:
    """Latest motions by stamp: a row for each field of a message, a column for each joint."""

    def __init__(self, joint_names: Sequence[str], fields: Sequence[str], clock: Callable[[], int] = time.time_ns,
                 optional: Sequence[str] = (), lacking: Sequence[str] = (), kept: int = MAX_MOTIONS):
        """Create a reader.

        optional: joints that may be missing (NaN); lacking: fields that may be empty (NaN); kept: number of messages kept
        """
        self._map, self._timeline = JointMap(joint_names, optional), Timeline(clock)
        self._needed, self._fields, self._lacking, self._most = len(joint_names), tuple(fields), tuple(lacking), kept
        self.held: frozenset[int] = frozenset()  # joints that need not be named: they are at rest
        self._spare = np.zeros((len(self._fields), len(joint_names) + len(optional)))
        self._kept: deque[tuple[int, np.ndarray]] = deque()

    def read(self, message: Any) -> int:
        """Read a message and return its stamp [ns]. Raises Rejected; earlier messages stay then, unless time jumped."""
        names = self._map.joint_names
        layout = self._map.locate(message.joint_names)
        if not layout.whole:
            missing = [name for k, name in enumerate(names[:self._needed]) if k not in self.held and k not in layout.joints]
            if missing:
                raise Rejected("joint_missing", f"not in the message: {some(missing)}")
            self._spare.fill(0.0)
        if not layout.every:
            self._spare[:, self._needed:] = np.nan
        for row, what in zip(self._spare, self._fields):
            values = getattr(message, what)
            if not values and what in self._lacking:
                row.fill(np.nan)
                continue
            given = row if layout.every else np.empty(len(layout.joints))
            if not layout.read(values, what, given):
                raise Rejected(f"{what}_not_finite", not_finite([names[k] for k in layout.joints], given))
            row[layout.columns] = given
        try:
            stamp = self._timeline.advance(message.header.stamp)
        except Jumped:
            self._kept.clear()
            raise
        self._kept.append((stamp, self._spare))
        full = len(self._kept) > self._most
        self._spare = self._kept.popleft()[1] if full else np.zeros_like(self._spare)
        return stamp

    def before(self, stamp: int) -> tuple[int, np.ndarray] | None:
        """Return the last motion that is not after a stamp [ns], with its own stamp; None if there is none."""
        return next((kept for kept in reversed(self._kept) if kept[0] <= stamp), None)

    def clear(self) -> None:
        """Discard the motions: the clock of the joint states jumped."""
        self._kept.clear()

    def forget(self) -> None:
        self._timeline.forget()
        self.clear()


class DesiredReader(StampedMotions):
    """The latest desired motions by stamp: acceleration, jerk and higher derivatives, a row each."""

    def __init__(self, joint_names: Sequence[str], clock: Callable[[], int] = time.time_ns, optional: Sequence[str] = (),
                 order: int = 3):
        """order: of the highest derivative of position that is read."""
        super().__init__(joint_names, FIELDS[:order - 1], clock, optional, lacking=FIELDS[2:])

    def last(self, stamp: int) -> np.ndarray | None:
        """Return the last motion that is not after a stamp [ns], else the first one, as it came; None if none came."""
        found = self.before(stamp) or (self._kept[0] if self._kept else None)
        return None if found is None else found[1]

    def reaches(self, stamp: int, tolerance: float, span: float) -> bool:
        """Return whether `at` has a motion."""
        try:
            return self.at(stamp, tolerance, span) is not None
        except Rejected:
            return False

    def at(self, stamp: int, tolerance: float = math.inf, span: float = math.inf) -> np.ndarray | None:
        """Return acceleration, jerk ... at a stamp [ns]: of the message with this stamp, else interpolated between neighbours
        or extrapolated from the nearest one; None before the first message.

        tolerance : largest time over which a message is extrapolated [s]. Raises Rejected beyond it
        span      : largest time between two messages that are interpolated [s]
        """
        if not self._kept:
            return None
        when, rows = self.before(stamp) or self._kept[0]
        if when < stamp < self._kept[-1][0]:
            then, others = next(kept for kept in self._kept if kept[0] > stamp)
            if (then - when) * 1e-9 <= span:
                return _of_known(rows, lambda known: interpolated(known, others[:len(known)], (then - when) * 1e-9,
                                                                  (stamp - when) * 1e-9), np.isfinite(others).any(axis=1))
            if then - stamp < stamp - when:
                when, rows = then, others
        check_age("desired_motion", "~/desired_motion", (stamp - when) * 1e-9, tolerance)
        return rows if when == stamp else _of_known(rows, lambda known: extrapolated(known, (stamp - when) * 1e-9))


def _of_known(rows: np.ndarray, function: Callable[[np.ndarray], np.ndarray], also: Any = True) -> np.ndarray:
    """Apply a function to the leading rows that hold numbers; the others, not in the message, are NaN."""
    known = np.isfinite(rows).any(axis=1) & also
    count = len(rows) if known.all() else int(np.argmin(known))
    return np.concatenate((function(rows[:count]), np.full_like(rows[count:], np.nan)))


MOTION_FIELDS = ("position", "velocity", "acceleration", "jerk")
MISSING = "reference_missing"  # reason of rejected joint states


class ReferenceMotions(StampedMotions):
    """Latest motions by stamp with all derivatives, each extrapolated by its own derivatives until the next."""

    def __init__(self, joint_names: Sequence[str], clock: Callable[[], int] = time.time_ns, lacking: Sequence[str] = ()):
        """lacking: fields that may be empty in a message."""
        super().__init__(joint_names, MOTION_FIELDS, clock, lacking=lacking)
        self._ended = UNKNOWN_STAMP  # stamp of the end of the last motion, if none has started since

    def motion(self, state: StateReader, timeout: float, count: int) -> list[np.ndarray]:
        """Return position to jerk at the stamp of a joint state, by the last motion that is not after it. Raises Rejected."""
        found = self.before(state.stamp)
        if found is None:
            raise Rejected(MISSING, "no reference yet that is not after the joint state", passing=True)
        since = (state.stamp - found[0]) * 1e-9
        if since > timeout and found[0] != self._ended:
            raise Rejected("reference_timeout", f"the last reference is {since:.3f} s before the joint state")
        q, qd, qdd, qddd = found[1]
        if since > timeout:  # at rest, since a motion has ended
            since = 0.0
        return [q + since * (qd + since / 2.0 * (qdd + since / 3.0 * qddd)), qd + since * (qdd + since / 2.0 * qddd),
                qdd + since * qddd, qddd.copy()]


class ScaledMotions(ReferenceMotions):
    """Motion that scaling_node executes, from ~/scaled_motion."""

    def read(self, message: ScaledMotion) -> int:
        """Read a message and return its stamp [ns]. Raises Rejected."""
        strange = self._map.locate(message.joint_names).others
        if strange:
            raise Rejected("unknown_joint", f"not of this robot: {some(strange)}")
        stamp = super().read(message)
        self._ended = stamp if message.phase == ScaledMotion.ENDED else UNKNOWN_STAMP
        return stamp


REFERENCE_RESOLUTION = 1e-9  # rad, m; of the estimator, which then follows a reference closely
MAX_GAP_NS = 500_000_000  # between two messages; after a longer one the history is discarded


def reference_of(message: Any) -> Any:
    """Return the reference of a controller state (`desired` in old messages).

    While the speed is scaled, its velocities and accelerations are those of the unscaled trajectory: they are left out.
    """
    point = message.reference if hasattr(message, "reference") else message.desired
    velocity = point.velocities if getattr(message, "speed_scaling_factor", 1.0) == 1.0 else ()
    return SimpleNamespace(header=message.header, joint_names=message.joint_names, position=point.positions, velocity=velocity,
                           acceleration=point.accelerations if len(velocity) else (), jerk=())


class ControllerStates(ReferenceMotions):
    """Reference of a joint_trajectory_controller, from ~/controller_state; other joints are at rest.

    Messages have positions, mostly velocities and accelerations. The jerk is found from accelerations, by the polynomials with
    which the controller joins points; where velocities or accelerations are missing, an estimator without encoder noise
    differentiates the positions.
    """

    def __init__(self, joint_names: Sequence[str], turning: Sequence[int] = (), clock: Callable[[], int] = time.time_ns):
        super().__init__(joint_names, clock, lacking=MOTION_FIELDS[1:])
        self.held = frozenset(range(len(joint_names)))
        self._turning = frozenset(turning)
        self._named: tuple[int, ...] = ()
        self._begin(0)

    def _begin(self, stamp: int) -> None:
        """Start a history at a stamp [ns]."""
        self._origin = self._last = stamp
        self._jerk = ReferenceJerk()
        self._estimator: MotionEstimator | None = None

    def clear(self) -> None:
        super().clear()
        self._begin(0)

    def read(self, message: Any) -> int:
        """Read a message and return its stamp [ns]. Raises Rejected; earlier messages stay then, unless time jumped."""
        layout = self._map.locate(message.joint_names)
        if not layout.joints:
            raise Rejected("unknown_joint", f"none of this robot's joints: {some(layout.others)}")
        stamp = super().read(reference_of(message))
        if layout.joints != self._named or not 0 < stamp - self._last < MAX_GAP_NS:
            self._named, self._rest = layout.joints, [joint for joint in self.held if joint not in layout.joints]
            self._begin(stamp)
        self._last = stamp
        rows, named = self._kept[-1][1], list(self._named)
        rows[:, self._rest] = 0.0
        rows[:, named] = self._completed(stamp, rows[:, named])
        return stamp

    def motion(self, state: StateReader, timeout: float, count: int) -> list[np.ndarray]:
        """Return position to jerk at the stamp of a joint state. Raises Rejected."""
        found = super().motion(state, timeout, count)
        if np.isnan(found).any():
            raise Rejected("history_too_short", "more messages are needed to differentiate the reference; this is normal for "
                           "an instant after the start or a gap", passing=True)
        found[0][self._rest] = state.q[self._rest]
        return found

    def _completed(self, stamp: int, rows: np.ndarray) -> np.ndarray:
        """Position to jerk of the named joints (4, k), NaN where not known yet."""
        if not np.isnan(rows[2]).any():
            self._estimator = None
            rows[3] = self._jerk((stamp - self._origin) * 1e-9, *rows[:3])
            return rows
        self._jerk = ReferenceJerk()
        if self._estimator is None:
            turning = [k for k, joint in enumerate(self._named) if joint in self._turning]
            self._estimator = MotionEstimator(len(self._named), 0.0, REFERENCE_RESOLUTION, turning)
        self._estimator.push(stamp, rows[0])
        return np.where(np.isnan(rows), self._estimator.estimate(stamp).motion, rows) if self._estimator.ready else rows


MAX_LEAD_NS = 3_600_000_000_000  # a trajectory that starts later is stamped by another clock


class ExecutedTrajectory:
    """Last trajectory sent to a joint_trajectory_controller, evaluated as the controller does."""

    def __init__(self, joint_names: Sequence[str], newest: Callable[[], int], turns: np.ndarray):
        """newest() returns the stamp of the newest joint state [ns], 0 before the first; turns (n,): continuous joints."""
        self._joint_names, self._newest, self._turns = tuple(joint_names), newest, turns
        self._next: Goal | None = None
        self._now: ControllerTrajectory | None = None

    def read(self, message: JointTrajectory) -> int:
        """Read a message and return its start [ns]. Raises Rejected; the trajectory before stays then."""
        given, newest = goal_from_message(message, self._joint_names), self._newest()
        if given.a is not None and given.v is None:
            raise Rejected("velocity_missing", "the points have accelerations, but no velocities")
        if given.start and given.start + given.duration * 1e9 < newest:
            late = (newest - given.start) * 1e-9 - given.duration
            raise Rejected("trajectory_past", f"it ended {late:.3f} s before the newest joint state")
        if given.start and newest and given.start - newest > MAX_LEAD_NS:
            far = (given.start - newest) * 1e-9
            raise Rejected("trajectory_far", f"it begins {far:.0f} s after the newest joint state, by another clock")
        self._next = given
        return nanoseconds(message.header.stamp) or newest

    def motion(self, state: StateReader, timeout: float, count: int) -> list[np.ndarray]:
        """Return position and its first derivatives, `count` arrays, at the stamp of a joint state. Raises Rejected."""
        if self._next is not None:  # starts at the first state after it
            self._now = ControllerTrajectory(self._next, state.stamp, state.q, state.qd, self._turns)
            self._next = None
        if self._now is None:
            raise Rejected(MISSING, "no trajectory yet", passing=True)
        return self._now(state.stamp, count)

    def clear(self) -> None:
        """Discard the trajectory: the clock of the joint states jumped."""
        self._now = self._next = None

    forget = clear


class References:
    """All references; the parameter reference.source selects the one in use."""

    def __init__(self, joint_names: Sequence[str], state: StateReader, turning: Sequence[int] = (),
                 clock: Callable[[], int] = time.time_ns, order: int = 3):
        turns = np.isin(np.arange(len(joint_names)), list(turning))
        self.scaled = ScaledMotions(joint_names, clock)
        self.controller = ControllerStates(joint_names, turning, clock)
        self.trajectory = ExecutedTrajectory(joint_names, lambda: state.stamp, turns)
        self._of: dict[str, ReferenceMotions | ExecutedTrajectory] = {
            "scaled_motion": self.scaled, "controller_state": self.controller,
            "trajectory": self.trajectory}
        self._state, self._count = state, order + 1

    def motion(self, source: str, timeout: float = math.inf) -> tuple[np.ndarray, ...]:
        """Return the motion at the joint state just read. Raises Rejected."""
        return tuple(self._of[source].motion(self._state, timeout, self._count))

    def clear(self) -> None:
        for reference in self._of.values():
            reference.clear()

    def forget(self) -> None:
        for reference in self._of.values():
            reference.forget()


class ReferenceTopic(NamedTuple):
    """Topic of a reference and its reader; kind is None where its messages are not installed."""

    kind: Any
    name: str
    qos: QoSProfile
    read: Callable[[References, Any], int]


REFERENCE_TOPICS = {  # by reference.source
    "scaled_motion": ReferenceTopic(ScaledMotion, "~/scaled_motion", DYNAMICS_SENSOR, lambda of,
                                    message: of.scaled.read(message)),
    "controller_state": ReferenceTopic(JointTrajectoryControllerState, "~/controller_state", DYNAMICS_SENSOR,
                                       lambda of, message: of.controller.read(message)),
    "trajectory": ReferenceTopic(JointTrajectory, "~/joint_trajectory", TRAJECTORIES,
                                 lambda of, message: of.trajectory.read(message))}


def subscribe_references(node: Node, process: Callable[[Callable[[Any], int]], None]) -> None:
    """Subscribe to all reference topics. process: has a MotionSource read a message, and counts it."""
    for kind, name, qos, read in REFERENCE_TOPICS.values():
        if kind is not None:
            node.create_subscription(kind, name, partial(_on_message, process, read, Reader(kind)), qos, raw=True)


def _on_message(process: Callable[..., None], read: Callable[[References, Any], int], reader: Reader, data: bytes) -> None:
    process(lambda source: read(source.references, reader(data)))


def check_reference_source(values: Values) -> None:
    """Raise InputError where the messages of the reference in use are not installed."""
    source = values["reference.source"]
    if values["motion_source"] == "reference" and REFERENCE_TOPICS[source].kind is None:
        raise InputError(f"reference.source {source} needs the messages of control_msgs, which is not installed")


def reference_topics(values: Values) -> list[str]:
    """Return the topics of the reference in use."""
    return [REFERENCE_TOPICS[values["reference.source"]].name] if values["motion_source"] == "reference" else []
