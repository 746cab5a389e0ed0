"""Reference motions: the motion that is executed, as its executor publishes it; nothing is estimated where it is known.

Sources: scaling_node, with all derivatives at each instant; a joint_trajectory_controller, with most of them; the trajectory
that such a controller executes.
"""

from __future__ import annotations

import math
import time
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
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.common.qos import DYNAMICS_SENSOR, TRAJECTORIES
from rnea_ros.nodes.common.stamps import UNKNOWN, goal_from_message, nanoseconds
from rnea_ros.nodes.dynamics.desired_motion import StampedMotions
from rnea_ros.nodes.dynamics.joint_states import StateReader
from rnea_ros.nodes.fastpath.messages import Reader

MOTION_FIELDS = ("position", "velocity", "acceleration", "jerk")
MISSING = "reference_missing"  # reason of rejected joint states


class ReferenceMotions(StampedMotions):
    """Latest motions by stamp with all derivatives, each extrapolated by its own derivatives until the next."""

    def __init__(self, joint_names: Sequence[str], clock: Callable[[], int] = time.time_ns, lacking: Sequence[str] = ()):
        """lacking: fields that may be empty in a message."""
        super().__init__(joint_names, MOTION_FIELDS, clock, lacking=lacking)
        self._ended = UNKNOWN  # stamp of the end of the last motion, if none has started since

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
        self._ended = stamp if message.phase == ScaledMotion.ENDED else UNKNOWN
        return stamp


try:
    from control_msgs.msg import JointTrajectoryControllerState
except ImportError:
    JointTrajectoryControllerState = None

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


TOPICS = {  # by reference.source
    "scaled_motion": ReferenceTopic(ScaledMotion, "~/scaled_motion", DYNAMICS_SENSOR, lambda of,
                                    message: of.scaled.read(message)),
    "controller_state": ReferenceTopic(JointTrajectoryControllerState, "~/controller_state", DYNAMICS_SENSOR,
                                       lambda of, message: of.controller.read(message)),
    "trajectory": ReferenceTopic(JointTrajectory, "~/joint_trajectory", TRAJECTORIES,
                                 lambda of, message: of.trajectory.read(message))}


def subscribe(node: Node, process: Callable[[Callable[[Any], int]], None]) -> None:
    """Subscribe to all reference topics. process: has a MotionSource read a message, and counts it."""
    for kind, name, qos, read in TOPICS.values():
        if kind is not None:
            node.create_subscription(kind, name, partial(_on_message, process, read, Reader(kind)), qos, raw=True)


def _on_message(process: Callable[..., None], read: Callable[[References, Any], int], reader: Reader, data: bytes) -> None:
    process(lambda source: read(source.references, reader(data)))


def check(values: Values) -> None:
    """Raise InputError where the messages of the reference in use are not installed."""
    source = values["reference.source"]
    if values["motion_source"] == "reference" and TOPICS[source].kind is None:
        raise InputError(f"reference.source {source} needs the messages of control_msgs, which is not installed")


def topics(values: Values) -> list[str]:
    """Return the topics of the reference in use."""
    return [TOPICS[values["reference.source"]].name] if values["motion_source"] == "reference" else []
