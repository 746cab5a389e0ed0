"""Motion that the model is evaluated with: measured states with a desired acceleration and jerk, an estimate of the whole
motion, or a reference, which is the motion that is executed, as its executor publishes it.

Nothing is estimated where a reference is known. Its sources: scaling_node, with all derivatives at each instant; a
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
from builtin_interfaces.msg import Time
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
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
from rnea_ros.nodes.dynamics.joint_states import JointMap, JointStateSource, PausingEstimator, StateReader, not_finite

try:
    from control_msgs.msg import JointTrajectoryControllerState
except ImportError:
    JointTrajectoryControllerState = None

MAX_MOTIONS = 512  # motions: joint states may be held or late by a quarter of a second at 2 kHz
FIELDS = ("acceleration", "jerk", "snap", "crackle", "pop", "lock")  # of JointMotion
NEEDED_FIELDS = 2  # the first fields, which no message may lack


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
        for kept in reversed(self._kept):
            if kept[0] <= stamp:
                return kept
        return None

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
        super().__init__(joint_names, FIELDS[:order - 1], clock, optional, lacking=FIELDS[NEEDED_FIELDS:])

    def last(self, stamp: int) -> np.ndarray | None:
        """Return the last motion that is not after a stamp [ns], else the first one, as it came; None if none came."""
        found = self.before(stamp) or (self._kept[0] if self._kept else None)
        return None if found is None else found[1]

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
        since = (stamp - when) * 1e-9
        check_age("desired_motion", "~/desired_motion", since, tolerance)
        if when == stamp:
            return rows
        if len(rows) == NEEDED_FIELDS:
            return extrapolated(rows, since)
        return _of_known(rows, lambda known: extrapolated(known, since))


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


Motion = tuple[np.ndarray, ...]  # q, qd, qdd, qddd, and further derivatives where they are desired
NO_JOINTS = np.zeros((4, 0))
SECOND = 1_000_000_000  # ns
ESTIMATED = ("motion_source", "estimator.lag", "estimator.resolution")
ESTIMATING = ("auto", "estimated")  # values of motion_source with which estimates are made `estimator.lag` before the state


class MotionSource:
    """Joint states and desired motions in, (q, qd, qdd, qddd) and desired higher derivatives out.

    stamp, when : of the motion that was given out last, in nanoseconds and for messages
    deviation   : standard deviations of that motion (4, n), None where it was not estimated
    name        : its source, see JointDynamics.motion_source; empty before the first
    """

    def __init__(self, joint_names: Sequence[str], values: Values, joint_types: Sequence[str] = (),
                 clock: Callable[[], int] = time.time_ns, optional: Sequence[str] = (), order: int = 3):
        """clock() is what this node's clock shows [ns]; optional: joints that are read if they are published; order:
        of the highest derivative that a desired motion may have.
        """
        self.state = StateReader(joint_names, clock, optional)
        self.desired = DesiredReader(joint_names, clock, optional, order)
        self._joint_names = tuple(joint_names)
        self._turning, self._revolute = ({k for k, kind in enumerate(joint_types) if kind == wanted}
                                         for wanted in ("continuous", "revolute"))
        self.references = References(joint_names, self.state, sorted(self._turning), clock, order)
        self._zeros = np.zeros((order - 1, len(joint_names) + len(optional)))
        self._wanted = self._zeros  # of the desired motion in use, all joints
        self._found = np.full((2, 4, len(joint_names) + len(optional)), np.nan)  # motion, and how far off it may be
        self._estimated: tuple[object, ...] = ()
        self.stamp, self.when, self.name = 0, Time(), ""
        self.deviation: np.ndarray | None = None
        self.lateness: Rejected | None = None  # why the desired motion is not that of the last state, but one that is held
        self._desired_until = 0  # stamp of the last motion with a desired acceleration: with `auto` no estimate is before it
        self._is_estimating = True  # whether estimates are used at present
        self._standing: Rejected | None = None
        self.configure(values)

    def configure(self, values: Values) -> None:
        """Parameters changed. A history that still fits is kept."""
        self._values = values
        self._lag = values["estimator.lag"] if values["motion_source"] in ESTIMATING else 0.0
        estimated = tuple(values[name] for name in ESTIMATED)
        if estimated != self._estimated:
            self._estimated = estimated
            for part in self.state.sources:
                part.history = None
        held = [values.get(f"hold_joints.{name}", math.nan) for name in self._joint_names]
        self.state.age, self.state.held = values["joint_age"], np.array(held)
        self.desired.held = frozenset(np.flatnonzero(np.isfinite(held)).tolist())

    def forget(self) -> None:
        """Discard the history, after the clock was set or the input was silent."""
        self.state.forget()
        self.desired.forget()
        self.references.forget()
        self._desired_until = 0

    def read(self, message: JointState, sender: bytes = b"") -> int:
        """Read a joint state of a sender; return the stamp of the robot's state with it [ns]. Raises Rejected."""
        try:
            part = self.state.read(message, sender)
        except Jumped:
            self.desired.clear()
            self.references.clear()
            self._desired_until = 0
            raise
        source = self._values["motion_source"]
        if source in ESTIMATING or (source == "desired" and not self.state.has_velocity):
            self._standing = self._follow(part)
            if self._standing and source != "auto":
                raise self._standing
        self.state.merge(part)
        return self.state.stamp

    def at_state(self, desired_age: float) -> Motion:
        """Return the motion at the state just received, or the estimator's lag before it; desired_age is the time since the
        last desired motion arrived [s].
        """
        state, source = self.state, self._values["motion_source"]
        self.stamp, self.when, self.deviation, self.lateness = state.stamp, state.when, None, None
        if source == "reference":
            self.name = "reference"
            return self.references.motion(self._values["reference.source"], self._values["desired_timeout"])
        wanted = self._usable(desired_age) if source == "auto" else None
        estimated = source == "estimated" or (source == "auto" and wanted is None)
        self._is_estimating = estimated or source != "auto"
        if not state.has_velocity and self._values["missing_velocity"] == "refuse" and not estimated:
            raise Rejected("velocity_missing", f"{state.velocity_gap()}; motion_source desired needs velocities: publish them "
                                               "in joint_states, set motion_source to auto or estimated, or missing_velocity "
                                               "to differentiate")
        if not estimated and wanted is None:
            wanted = self._desired(desired_age)
        if wanted is not None:
            if state.has_velocity:
                self._desired_until = state.stamp
                return state.q, state.qd, *wanted
        elif source == "auto":
            if self._standing is not None:
                raise self._standing
            if state.stamp - round(self._lag * 1e9) <= self._desired_until:  # not back in time
                raise Rejected("motion_source_changed", "the desired motion ended; the estimated one begins estimator.lag, "
                                                        f"{self._lag:g} s, later", passing=True)
        found, deviation = self._estimate(state.stamp - round(self._lag * 1e9))[:, :, :len(self._joint_names)]
        if wanted is not None:
            return state.q, np.where(np.isfinite(state.qd), state.qd, found[1]), *wanted
        self.name = "estimated"
        if self._lag:
            self.stamp = stamp = state.stamp - round(self._lag * 1e9)
            self.when = Time(sec=stamp // SECOND, nanosec=stamp % SECOND)
        self.deviation = deviation
        return tuple(found)

    def lag(self, desired_age: float) -> int:
        """Return how long before the next joint state the motion will be [ns], as far as that is known beforehand."""
        source = self._values["motion_source"]
        late = source == "auto" and desired_age > self._values["desired_timeout"]
        return round(self._lag * 1e9) if source == "estimated" or late else 0

    def _usable(self, desired_age: float) -> np.ndarray | None:
        """Return the desired motion of the state, or None where it is not up to date or velocities are missing."""
        state, timeout = self.state, self._values["desired_timeout"]
        if desired_age > timeout or not state.has_velocity:
            return None
        try:
            found = self.desired.at(state.stamp, self._values["input_tolerance"], timeout)
        except Rejected:
            return None
        if found is None:
            return None
        self._wanted, self.name = found, "desired_motion"
        return found[:, :len(self._joint_names)]

    def _estimate(self, stamp: int) -> np.ndarray:
        """Motion and deviations at a stamp of all joints, (2, 4, n + k), from what each sender said. Raises Rejected."""
        found, state, refused = self._found, self.state, None
        # the latest message counts, not the newest stamp: that may be of a sender that has ended, and of its clock
        for part in sorted(state.sources, key=lambda part: part.arrival) if len(state.sources) > 1 else state.sources:
            try:
                found[:, :, part.columns] = np.nan if part.history is None else part.history.estimate(stamp)
            except Rejected as rejected:  # another sender may have these joints too
                found[:, :, part.columns], refused = np.nan, rejected
        needed = found[:, :, :len(self._joint_names)]
        needed[:, :, state.rests] = 0.0
        needed[0, 0, state.rests] = state.q[state.rests]
        if np.isnan(needed[0, 1]).any():
            if refused is not None:
                raise refused
            few = [name for name, speed in zip(self._joint_names, needed[0, 1]) if math.isnan(speed)]
            raise Rejected("history_too_short", f"the estimator needs more joint states of {some(few)}; this is normal for an "
                                                "instant after the start or a gap", passing=True)
        return found

    @property
    def optional(self) -> np.ndarray:
        """(4, k): position .. jerk of the optional joints at the state just read, NaN where they are unknown."""
        n, measured = len(self._joint_names), self.state.optional()
        if not measured.size:
            return NO_JOINTS
        if self.name == "estimated":
            return np.where(np.isnan(measured[0]), np.nan, self._found[0, :, n:])
        if self.name == "reference":
            return np.concatenate((measured, np.full_like(measured, np.nan)))
        return np.concatenate((measured, self._wanted[:2, n:]))

    def warnings(self, desired_age: float) -> list[str]:
        """Return warnings about the motion in use, each with its remedy."""
        values = self._values
        if values["motion_source"] == "auto" and desired_age <= values["desired_timeout"] and not self.state.has_velocity:
            return [f"desired motion not used: {self.state.velocity_gap()} in joint_states; the motion is estimated. Publish "
                    "velocities to use it"]
        if values["motion_source"] != "desired" or desired_age <= values["desired_timeout"]:
            return []
        if desired_age == math.inf:
            return ["no desired motion yet: acceleration and jerk are taken as zero. Publish ~/desired_motion, or set "
                    "motion_source to auto or estimated"]
        jerk = ", jerk taken as zero" if values["on_desired_timeout"] == "zero_jerk" else " with its jerk"
        return [f"no desired motion for {desired_age:.1f} s: the last acceleration is held{jerk}"]

    def findings(self) -> dict[str, object]:
        """Return results of the estimators for diagnostics: noise, jitter, outliers, unwrapped joints."""
        said: dict[str, object] = {}
        for part in self.state.recent():
            if part.history is not None and part.history.estimator.ready:
                said |= self._of(part, part.history.estimator)
        return said

    def _of(self, part: JointStateSource, history: MotionEstimator) -> dict[str, object]:
        clock, noise = history.clock, history.noise
        names = [self._joint_names[joint] for joint in part.joints]
        spread = np.sqrt(noise.variance(np.zeros(len(names))))
        return {"estimator.lag_s": f"{self._lag:.4g}", "estimator.readings_hz": f"{1.0 / clock.period:.6g}",
                "estimator.repeated_readings": bool(history.readings.period),
                "estimator.stamp_jitter_s": f"{clock.jitter:.2g}", "estimator.outliers": history.outliers,
                "estimator.diverged": history.diverged,
                **{f"{name}.unwrapped": f"jumps by whole turns removed: {count}; declare the joint as continuous in the URDF"
                   for name, count in zip(names, history.wraps) if count},
                **{f"{name}.position_noise": f"{value:.2g}" for name, value in zip(names, spread)},
                **{f"{name}.position_resolution": f"{value:.3g}" for name, value in zip(names, noise.resolution)}}

    def _follow(self, part: JointStateSource) -> Rejected | None:
        """Pass a sender's positions to its estimator. Returns why they are of no use, if they are not."""
        history = part.history
        if history is None:
            turning, revolute = ([k for k, joint in enumerate(part.joints) if joint in kind]
                                 for kind in (self._turning, self._revolute))
            resolution = self._values["estimator.resolution"]
            estimator = MotionEstimator(len(part.joints), self._lag, resolution, turning, revolute)
            history = part.history = PausingEstimator(estimator, lambda: self._values["state_timeout"])
        if history.push(part.stamp, part.values, self._is_estimating):
            return None
        return Rejected("stamp_not_advancing", f"the stamp of {part.stamp * 1e-9:.6f} s does not advance: nothing can be "
                                               "differentiated. The driver must stamp every joint state with its own time")

    def _desired(self, age: float) -> np.ndarray:
        """Return acceleration, jerk ... of the desired motion, or by on_desired_timeout where there is none."""
        policy = self._values["on_desired_timeout"]
        stamp, tolerance, timeout = self.state.stamp, self._values["input_tolerance"], self._values["desired_timeout"]
        late = age > timeout
        try:
            chosen = self.desired.last(stamp) if late else self.desired.at(stamp, tolerance, timeout)
        except Rejected as refusal:
            if policy == "stop":
                raise
            chosen, late, self.lateness = self.desired.last(stamp), True, refusal
        if chosen is None and not late:
            raise Rejected("desired_forgotten", "those from before the stamps jumped say nothing about now", passing=True)
        if late and policy == "stop":
            what = "no desired motion yet" if chosen is None else f"the desired motion is {age:.3f} s old"
            raise Rejected("desired_timeout", what)
        self._wanted = self._zeros if chosen is None else chosen
        self.name = "assumed_zero" if chosen is None else "desired_motion_late" if late else "desired_motion"
        if chosen is not None and late and policy == "zero_jerk":
            self._wanted = np.concatenate((chosen[:1], self._zeros[1:]))
        return self._wanted[:, :len(self._joint_names)]
