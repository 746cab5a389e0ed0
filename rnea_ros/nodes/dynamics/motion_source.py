"""Source of the motion for which torques are computed.

It is a measured state with desired acceleration and jerk, an estimate of the whole motion, or a reference. A reference is the
motion that another node executes; nothing is estimated then. Its sources are scaling_node, with all derivatives at each
instant; a joint_trajectory_controller, with some derivatives; or the trajectory that such a controller executes.
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

MAX_MOTIONS = 512  # motions kept: a quarter of a second at 2 kHz, for joint states that wait or are late
FIELDS = ("acceleration", "jerk", "snap", "crackle", "pop", "lock")  # fields of JointMotion
NEEDED_FIELDS = 2  # number of these fields that every message must contain


class StampedMotions:
    """Buffer of the latest motions: stamp, and an array with a row for each field and a column for each joint."""

    def __init__(self, joint_names: Sequence[str], fields: Sequence[str], clock: Callable[[], int] = time.time_ns,
                 optional: Sequence[str] = (), lacking: Sequence[str] = (), kept: int = MAX_MOTIONS):
        """Create an empty buffer.

        clock    : function that returns the current time [ns]
        optional : joints that messages may omit (NaN)
        lacking  : fields that may be empty (NaN)
        kept     : number of messages kept
        """
        self._map, self._timeline = JointMap(joint_names, optional), Timeline(clock)
        self._needed, self._fields, self._lacking, self._most = len(joint_names), tuple(fields), tuple(lacking), kept
        self.held: frozenset[int] = frozenset()  # joints that messages may omit because they are at rest
        self._spare = np.zeros((len(self._fields), len(joint_names) + len(optional)))
        self._kept: deque[tuple[int, np.ndarray]] = deque()

    def read(self, message: Any) -> int:
        """Read a message and return its stamp [ns].

        Raises Rejected; earlier messages are then kept, unless the clock jumped.
        """
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
        """Return the stamp [ns] and the array of the last motion at or before a stamp [ns]; None if there is none."""
        for kept in reversed(self._kept):
            if kept[0] <= stamp:
                return kept
        return None

    def clear(self) -> None:
        """Discard the motions after a jump of the clock of the joint states."""
        self._kept.clear()

    def forget(self) -> None:
        self._timeline.forget()
        self.clear()


class DesiredReader(StampedMotions):
    """Buffer of the latest desired motions: acceleration, jerk and higher derivatives."""

    def __init__(self, joint_names: Sequence[str], clock: Callable[[], int] = time.time_ns, optional: Sequence[str] = (),
                 order: int = 3):
        """Create an empty buffer. order: highest derivative of position that is read."""
        super().__init__(joint_names, FIELDS[:order - 1], clock, optional, lacking=FIELDS[NEEDED_FIELDS:])

    def last(self, stamp: int) -> np.ndarray | None:
        """Return the last motion at or before a stamp [ns], else the first one, unchanged; None before the first message."""
        kept = self.before(stamp) or (self._kept[0] if self._kept else None)
        return None if kept is None else kept[1]

    def newest(self, stamp: int, tolerance: float) -> tuple[np.ndarray, float] | None:
        """Return the newest motion, and the time from it to a stamp [ns] in seconds, if `at` extrapolates from it."""
        if not self._kept:
            return None
        when, rows = self._kept[-1]
        since = (stamp - when) * 1e-9
        return (rows, since) if 0.0 <= since <= tolerance else None

    def at(self, stamp: int, tolerance: float = math.inf, span: float = math.inf) -> np.ndarray | None:
        """Return acceleration, jerk and higher derivatives (rows, joints) at a stamp [ns]; None before the first message.

        They are those of the message with this stamp, else interpolated between two messages, else extrapolated.

        tolerance : longest extrapolation [s]; Rejected is raised above it
        span      : longest time between two messages for interpolation [s]
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
    """Apply a function to the leading rows that contain numbers; the other rows become NaN.

    also: mask of rows that may be used
    """
    known = np.isfinite(rows).any(axis=1) & also
    count = len(rows) if known.all() else int(np.argmin(known))
    return np.concatenate((function(rows[:count]), np.full_like(rows[count:], np.nan)))


MOTION_FIELDS = ("position", "velocity", "acceleration", "jerk")
MISSING = "reference_missing"  # reason of rejected joint states


class ReferenceMotions(StampedMotions):
    """Buffer of the latest reference motions, position to jerk. Each is extrapolated with its derivatives to the next."""

    def __init__(self, joint_names: Sequence[str], clock: Callable[[], int] = time.time_ns, lacking: Sequence[str] = ()):
        """Create an empty buffer. lacking: fields that may be empty in a message."""
        super().__init__(joint_names, MOTION_FIELDS, clock, lacking=lacking)
        self._ended = UNKNOWN_STAMP  # stamp of the end of the last motion, if none has started since

    def motion(self, state: StateReader, timeout: float, count: int) -> list[np.ndarray]:
        """Return position to jerk, (n,) each, at the stamp of a joint state, extrapolated from the last motion before it.

        timeout: longest extrapolation [s]

        Raises Rejected if there is no such motion, or it is too old.
        """
        last = self.before(state.stamp)
        if last is None:
            raise Rejected(MISSING, "no reference at or before the stamp of the joint state yet", passing=True)
        since = (state.stamp - last[0]) * 1e-9
        if since > timeout and last[0] != self._ended:
            raise Rejected("reference_timeout", f"the last reference is {since:.3f} s before the joint state")
        q, qd, qdd, qddd = last[1]
        if since > timeout:  # at rest after the end of a motion
            since = 0.0
        return [q + since * (qd + since / 2.0 * (qdd + since / 3.0 * qddd)), qd + since * (qdd + since / 2.0 * qddd),
                qdd + since * qddd, qddd.copy()]


class ScaledMotions(ReferenceMotions):
    """Motion that scaling_node executes, from ~/scaled_motion."""

    def read(self, message: ScaledMotion) -> int:
        """Read a message and return its stamp [ns]. Raises Rejected."""
        unknown = self._map.locate(message.joint_names).others
        if unknown:
            raise Rejected("unknown_joint", f"the message contains joints of another robot: {some(unknown)}")
        stamp = super().read(message)
        self._ended = stamp if message.phase == ScaledMotion.ENDED else UNKNOWN_STAMP
        return stamp


REFERENCE_RESOLUTION = 1e-9  # encoder resolution of the estimator for references, which have no noise [rad, m]
MAX_GAP_NS = 500_000_000  # time between two messages above which the history is discarded


def reference_of(message: Any) -> Any:
    """Return the reference of a controller state (field `desired` in old messages).

    With a speed scaling factor other than 1, velocities and accelerations are those of the unscaled trajectory and are
    omitted.
    """
    point = message.reference if hasattr(message, "reference") else message.desired
    velocity = point.velocities if getattr(message, "speed_scaling_factor", 1.0) == 1.0 else ()
    return SimpleNamespace(header=message.header, joint_names=message.joint_names, position=point.positions, velocity=velocity,
                           acceleration=point.accelerations if len(velocity) else (), jerk=())


class ControllerStates(ReferenceMotions):
    """Reference of a joint_trajectory_controller, from ~/controller_state; other joints are at rest.

    Messages contain positions, and usually velocities and accelerations. The jerk is computed from accelerations with the
    interpolation polynomials of the controller; if velocities or accelerations are missing, an estimator without encoder noise
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
        """Read a message and return its stamp [ns].

        Raises Rejected; earlier messages are then kept, unless the clock jumped.
        """
        layout = self._map.locate(message.joint_names)
        if not layout.joints:
            raise Rejected("unknown_joint", f"the message contains no joint of this robot: {some(layout.others)}")
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
        """Return position to jerk (4, k) of the joints in the messages; NaN: unknown yet."""
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


MAX_LEAD_NS = 3_600_000_000_000  # a trajectory that starts later has the stamp of another clock


class ExecutedTrajectory:
    """Last trajectory sent to a joint_trajectory_controller, evaluated as the controller does."""

    def __init__(self, joint_names: Sequence[str], newest: Callable[[], int], turns: np.ndarray):
        """Create the reader without a trajectory.

        newest : function that returns the stamp of the newest joint state [ns]; 0 before the first one
        turns  : (n,) mask of continuous joints
        """
        self._joint_names, self._newest, self._turns = tuple(joint_names), newest, turns
        self._next: Goal | None = None
        self._now: ControllerTrajectory | None = None

    def read(self, message: JointTrajectory) -> int:
        """Read a message and return its start [ns]. Raises Rejected; the previous trajectory is then kept."""
        goal, newest = goal_from_message(message, self._joint_names), self._newest()
        if goal.a is not None and goal.v is None:
            raise Rejected("velocity_missing", "the points have accelerations, but no velocities")
        if goal.start and goal.start + goal.duration * 1e9 < newest:
            late = (newest - goal.start) * 1e-9 - goal.duration
            raise Rejected("trajectory_past", f"it ended {late:.3f} s before the newest joint state")
        if goal.start and newest and goal.start - newest > MAX_LEAD_NS:
            far = (goal.start - newest) * 1e-9
            raise Rejected("trajectory_far", f"it begins {far:.0f} s after the newest joint state: its stamp is that of "
                                             "another clock")
        self._next = goal
        return nanoseconds(message.header.stamp) or newest

    def motion(self, state: StateReader, timeout: float, count: int) -> list[np.ndarray]:
        """Return position and its derivatives, `count` arrays (n,), at the stamp of a joint state. Raises Rejected."""
        if self._next is not None:  # a trajectory starts at the first state after its message
            self._now = ControllerTrajectory(self._next, state.stamp, state.q, state.qd, self._turns)
            self._next = None
        if self._now is None:
            raise Rejected(MISSING, "no trajectory yet", passing=True)
        return self._now(state.stamp, count)

    def clear(self) -> None:
        """Discard the trajectory after a jump of the clock of the joint states."""
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
        """Return position and derivatives at the last joint state. source: value of reference.source. Raises Rejected."""
        return tuple(self._of[source].motion(self._state, timeout, self._count))

    def clear(self) -> None:
        for reference in self._of.values():
            reference.clear()

    def forget(self) -> None:
        for reference in self._of.values():
            reference.forget()


class ReferenceTopic(NamedTuple):
    """Topic of a reference and its reader. kind: message type; None if it is not installed."""

    kind: Any
    name: str
    qos: QoSProfile
    read: Callable[[References, Any], int]


REFERENCE_TOPICS = {  # keyed by values of reference.source
    "scaled_motion": ReferenceTopic(ScaledMotion, "~/scaled_motion", DYNAMICS_SENSOR, lambda of,
                                    message: of.scaled.read(message)),
    "controller_state": ReferenceTopic(JointTrajectoryControllerState, "~/controller_state", DYNAMICS_SENSOR,
                                       lambda of, message: of.controller.read(message)),
    "trajectory": ReferenceTopic(JointTrajectory, "~/joint_trajectory", TRAJECTORIES,
                                 lambda of, message: of.trajectory.read(message))}


def subscribe_references(node: Node, process: Callable[[Callable[[Any], int]], None]) -> None:
    """Subscribe to all reference topics. process: passes a reader to the MotionSource, and counts the message."""
    for kind, name, qos, read in REFERENCE_TOPICS.values():
        if kind is not None:
            made = node.create_subscription(kind, name, partial(_on_message, process, read, Reader(kind)), qos, raw=True)
            made.is_rare = True


def _on_message(process: Callable[..., None], read: Callable[[References, Any], int], reader: Reader, data: bytes) -> None:
    process(lambda source: read(source.references, reader(data)))


def check_reference_source(values: Values) -> None:
    """Raise InputError if the messages of the selected reference are not installed."""
    source = values["reference.source"]
    if values["motion_source"] == "reference" and REFERENCE_TOPICS[source].kind is None:
        raise InputError(f"reference.source is {source}, which requires control_msgs; install it, or select another source")


def reference_topics(values: Values) -> list[str]:
    """Return the topics of the selected reference; empty for other motion sources."""
    return [REFERENCE_TOPICS[values["reference.source"]].name] if values["motion_source"] == "reference" else []


Motion = tuple[np.ndarray, ...]  # q, qd, qdd, qddd, and higher derivatives of a desired motion
NO_JOINTS = np.zeros((4, 0))
SECOND = 1_000_000_000  # ns
ESTIMATED = ("motion_source", "estimator.lag", "estimator.resolution")
ESTIMATING = ("auto", "estimated")  # values of motion_source with estimates `estimator.lag` before the state


class MotionSource:
    """Source of q, qd, qdd, qddd and desired higher derivatives, from joint states, desired motions and references.

    stamp, when : stamp of the last returned motion, in nanoseconds and as a message
    deviation   : standard deviations (4, n) of that motion; None if it was not estimated
    name        : its source, see JointDynamics.motion_source; empty before the first motion
    lateness    : reason why the desired motion was held instead of computed at the stamp; None if it was computed
    """

    def __init__(self, joint_names: Sequence[str], values: Values, joint_types: Sequence[str] = (),
                 clock: Callable[[], int] = time.time_ns, optional: Sequence[str] = (), order: int = 3):
        """Create the source.

        clock    : function that returns the time of the clock of the node [ns]
        optional : joints that are read if they are published
        order    : highest derivative of position in desired motions
        """
        self.state = StateReader(joint_names, clock, optional)
        self.desired = DesiredReader(joint_names, clock, optional, order)
        self._joint_names = tuple(joint_names)
        self._turning, self._revolute = ({k for k, kind in enumerate(joint_types) if kind == wanted}
                                         for wanted in ("continuous", "revolute"))
        self.references = References(joint_names, self.state, sorted(self._turning), clock, order)
        self._zeros = np.zeros((order - 1, len(joint_names) + len(optional)))
        self._wanted = self._zeros  # desired motion in use, all joints
        self._found = np.full((2, 4, len(joint_names) + len(optional)), np.nan)  # estimated motion, its deviations
        self._estimated: tuple[object, ...] = ()
        self.stamp, self.when, self.name = 0, Time(), ""
        self.deviation: np.ndarray | None = None
        self.lateness: Rejected | None = None
        self._desired_until = 0  # stamp of the last desired motion; in mode auto, estimates must be later
        self._is_estimating = True  # whether estimates are used at present
        self._standing: Rejected | None = None
        self.configure(values)

    def configure(self, values: Values) -> None:
        """Apply parameters. The histories of the estimators are discarded if their parameters have changed."""
        self._values = values
        self._lag = values["estimator.lag"] if values["motion_source"] in ESTIMATING else 0.0
        estimated = tuple(values[name] for name in ESTIMATED)
        if estimated != self._estimated:
            self._estimated = estimated
            for part in self.state.sources:
                part.history = None
        for part in self.state.sources:
            if part.history is not None:
                part.history.timeout = values["state_timeout"]
        held = [values.get(f"hold_joints.{name}", math.nan) for name in self._joint_names]
        self.state.age, self.state.held = values["joint_age"], np.array(held)
        self.desired.held = frozenset(np.flatnonzero(np.isfinite(held)).tolist())

    def forget(self) -> None:
        """Discard all histories after a change of the clock or a pause of the input."""
        self.state.forget()
        self.desired.forget()
        self.references.forget()
        self._desired_until = 0

    def read(self, message: JointState, sender: bytes = b"") -> int:
        """Read a joint state of a sender, and return the stamp [ns] of the merged state. Raises Rejected."""
        return self.read_bytes(message, sender, self.state.read)

    def read_bytes(self, given: Any, sender: bytes = b"", read: Callable[[Any, bytes], JointStateSource] | None = None) -> int:
        """Read the bytes of a joint state; the same as `read` for its message. read: of what is given."""
        try:
            part = read(given, sender) if read else self.state.read_bytes(given, sender)
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
        if not part.layout.whole:
            self.state.merge(part)
        return self.state.stamp

    def at_state(self, desired_age: float) -> Motion:
        """Return the motion at the last state, or `estimator.lag` before it.

        desired_age: time since the arrival of the last desired motion [s]
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
            if state.stamp - round(self._lag * 1e9) <= self._desired_until:  # stamps must not decrease
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

    def desired_sample(self, desired_age: float) -> tuple[np.ndarray, float] | None:
        """Return the newest desired motion (2, n), and the time from it to the last state [s], from which `at_state` would
        extrapolate the motion; None for any other motion.
        """
        state, values = self.state, self._values
        source, timeout = values["motion_source"], values["desired_timeout"]
        if source not in ("auto", "desired") or desired_age > timeout or not state.has_velocity:
            return None
        found = self.desired.newest(state.stamp, values["input_tolerance"])
        if found is not None:
            self.stamp, self.when, self.deviation, self.lateness = state.stamp, state.when, None, None
            self._wanted, self.name = found[0], "desired_motion"
            self._is_estimating = source != "auto"
            self._desired_until = state.stamp
        return found

    def lag(self, desired_age: float) -> int:
        """Return the expected time from the next motion to the next joint state [ns]."""
        source = self._values["motion_source"]
        late = source == "auto" and desired_age > self._values["desired_timeout"]
        return round(self._lag * 1e9) if source == "estimated" or late else 0

    def _usable(self, desired_age: float) -> np.ndarray | None:
        """Return the desired motion at the state; None if it is too old or velocities are missing."""
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
        return self._of_joints(found)

    def _of_joints(self, rows: np.ndarray) -> np.ndarray:
        """Return the columns of joint_names, without those of optional joints."""
        n = len(self._joint_names)
        return rows if rows.shape[1] == n else rows[:, :n]

    def _estimate(self, stamp: int) -> np.ndarray:
        """Return estimated motion and standard deviations (2, 4, n + k) of all joints at a stamp [ns]. Raises Rejected."""
        found, state, refused = self._found, self.state, None
        # the message that arrived last is used, not the newest stamp, which may be that of a stopped sender
        for part in sorted(state.sources, key=lambda part: part.arrival) if len(state.sources) > 1 else state.sources:
            try:
                found[:, :, part.columns] = np.nan if part.history is None else part.history.estimate(stamp)
            except Rejected as rejected:  # another sender may publish these joints
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
        """Position to jerk (4, k) of the optional joints at the last state; NaN: unknown."""
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
            return ["no desired motion yet: acceleration and jerk are assumed zero. Publish ~/desired_motion, or set "
                    "motion_source to auto or estimated"]
        jerk = ", with zero jerk" if values["on_desired_timeout"] == "zero_jerk" else " with its jerk"
        return [f"no desired motion for {desired_age:.1f} s: the last acceleration is held{jerk}"]

    def findings(self) -> dict[str, object]:
        """Return results of the estimators for diagnostics: noise, jitter, outliers, unwrapped joints."""
        results: dict[str, object] = {}
        for part in self.state.recent():
            if part.history is not None and part.history.estimator.ready:
                results |= self._of(part, part.history.estimator)
        return results

    def _of(self, part: JointStateSource, history: MotionEstimator) -> dict[str, object]:
        clock, noise = history.clock, history.noise
        names = [self._joint_names[joint] for joint in part.joints]
        return {"estimator.lag_s": f"{self._lag:.4g}", "estimator.readings_hz": f"{1.0 / clock.period:.6g}",
                "estimator.repeated_readings": bool(history.readings.period),
                "estimator.stamp_jitter_s": f"{clock.jitter:.2g}", "estimator.outliers": history.outliers,
                "estimator.diverged": history.diverged,
                **{f"{name}.unwrapped": f"jumps by whole turns removed: {count}; declare the joint as continuous in the URDF"
                   for name, count in zip(names, history.wraps) if count},
                **{f"{name}.position_noise": f"{value:.2g}" for name, value in zip(names, noise.std_at_rest)},
                **{f"{name}.position_resolution": f"{value:.3g}" for name, value in zip(names, noise.resolution)}}

    def _follow(self, part: JointStateSource) -> Rejected | None:
        """Pass the positions of a sender to its estimator. Return the reason if they are rejected, else None."""
        history = part.history
        if history is None:
            turning, revolute = ([k for k, joint in enumerate(part.joints) if joint in kind]
                                 for kind in (self._turning, self._revolute))
            resolution = self._values["estimator.resolution"]
            estimator = MotionEstimator(len(part.joints), self._lag, resolution, turning, revolute)
            history = part.history = PausingEstimator(estimator, self._values["state_timeout"])
        if history.push(part.stamp, part.values, self._is_estimating):
            return None
        return Rejected("stamp_not_advancing", f"the stamp of {part.stamp * 1e-9:.6f} s does not advance, so positions "
                                               "cannot be differentiated. The driver must stamp each joint state with its "
                                               "time")

    def _desired(self, age: float) -> np.ndarray:
        """Return acceleration, jerk and higher derivatives of the desired motion, or the effect of on_desired_timeout."""
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
            raise Rejected("desired_forgotten", "the stamps jumped, and no desired motion has arrived since", passing=True)
        if late and policy == "stop":
            what = "no desired motion yet" if chosen is None else f"the desired motion is {age:.3f} s old"
            raise Rejected("desired_timeout", what)
        self._wanted = self._zeros if chosen is None else chosen
        self.name = "assumed_zero" if chosen is None else "desired_motion_late" if late else "desired_motion"
        if chosen is not None and late and policy == "zero_jerk":
            self._wanted = np.concatenate((chosen[:1], self._zeros[1:]))
        return self._of_joints(self._wanted)
