"""Motion of a base from its sensors: acceleration and jerk of its origin, as rates in the world frame.

All vectors are expressed in the axes of the base, w is its angular velocity. Sensors measure components: the rate, in the
world, of a vector with components x that change by xd is

    xd + w x x                                                                            (a)

so the angular acceleration is wd, and its own rate wdd + w x wd. Of a point at r, fixed in the base, exceed the origin's

    acceleration   wd x r + w x (w x r)                                                   (b)
    jerk           wdd x r + 2 wd x (w x r) + w x (wd x r) + w x (w x (w x r))             (c), wdd as the world sees it

Gravity is constant in the world: what an accelerometer shows, acceleration less gravity, has the jerk for its rate.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from geometry_msgs.msg import Wrench
from sensor_msgs.msg import Imu

from rnea_msgs.msg import BaseState as BaseStateMessage
from rnea_msgs.msg import BaseStateStamped
from rnea_ros import InputError
from rnea_ros.algebra.vectors import cross
from rnea_ros.errors import Rejected, near, some
from rnea_ros.estimation.motion_estimator import MotionEstimator
from rnea_ros.model.tree import Model
from rnea_ros.nodes.common.cdr import NumbersReader, Reader, StampedNumbers
from rnea_ros.nodes.common.diagnostics import Stream
from rnea_ros.nodes.common.pairing import PairedInput, check_age, extrapolated, interpolated
from rnea_ros.nodes.common.topics import Jumped, Timeline, Topics
from rnea_ros.robots.base_state import BaseState, quaternion

UPSIDE_DOWN = 1e-9  # rad; so near to half a turn its axis is lost in rounding


class SensedMotion(NamedTuple):
    """velocity, acceleration, jerk of the base, (6,) each, as base_state.py has them. Where an accelerometer was asked,
    gravity is taken off the acceleration, and the linear velocity is NaN.
    """

    velocity: np.ndarray
    acceleration: np.ndarray
    jerk: np.ndarray


class Mount(NamedTuple):
    """Pose of a frame that is fixed in the base: rotation R (3, 3) to the base, also as a quaternion; position r (3,) [m]."""

    R: np.ndarray
    turn: np.ndarray
    r: np.ndarray

    def along_base(self, linear: np.ndarray, angular: np.ndarray) -> np.ndarray:
        """Return two vectors (3,) of the frame along the axes of the base, (6,)."""
        return np.concatenate((self.R @ linear, self.R @ angular))


def mounts(model: Model) -> dict[str, Mount]:
    """Return the links of the URDF that are fixed in the base."""
    return {name: Mount(frame.R, quaternion(frame.R), frame.P) for name, frame in model.frames.items() if frame.link == 0}


def point_motion(r: np.ndarray, w: np.ndarray, acceleration: np.ndarray, jerk: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return acceleration and jerk (6,) of the point at r, from those of the origin: (b), (c)."""
    wd, wdd, v = acceleration[3:], jerk[3:], cross(w, r)
    a = acceleration[:3] + cross(wd, r) + cross(w, v)
    j = jerk[:3] + cross(wdd, r) + 2.0 * cross(wd, v) + cross(w, cross(wd, r) + cross(w, v))
    return np.concatenate((a, wd)), np.concatenate((j, wdd))


def from_imu(r: np.ndarray, signals: np.ndarray) -> SensedMotion:
    """Return the motion of the base from an IMU at r.

    signals: (3, 6) acceleration less gravity and angular velocity, their first and second derivatives
    """
    (s, w), (sd, wd), (_, wdd) = signals.reshape(3, 2, 3)
    acceleration, jerk = np.concatenate((s, wd)), np.concatenate((sd + cross(w, s), wdd + cross(w, wd)))  # (a)
    return SensedMotion(np.concatenate((np.full(3, np.nan), w)), *point_motion(-r, w, acceleration, jerk))


def from_twist(r: np.ndarray, signals: np.ndarray) -> SensedMotion:
    """Return the motion of the base from a twist at r.

    signals: (3, 6) velocity of the point at r and angular velocity, their first and second derivatives
    """
    (v, w), (vd, wd), (vdd, wdd) = signals.reshape(3, 2, 3)
    a, ad = vd + cross(w, v), vdd + cross(wd, v) + cross(w, vd)
    acceleration, jerk = np.concatenate((a, wd)), np.concatenate((ad + cross(w, a), wdd + cross(w, wd)))  # (a)
    return SensedMotion(velocity_of_origin(r, signals[0]), *point_motion(-r, w, acceleration, jerk))


def velocity_of_origin(r: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    """Return the velocity (6,) of the base from that of the point at r."""
    return np.concatenate((velocity[:3] - cross(velocity[3:], r), velocity[3:]))


def upright(force: np.ndarray, gravity: np.ndarray) -> np.ndarray:
    """Return the quaternion of a base at rest from its specific force (3,) along its axes, and gravity (3,) of the world.

    It is the shortest rotation that aligns both; the angle about the vertical is not determined.
    """
    lengths = np.linalg.norm(force) * np.linalg.norm(gravity)
    if not lengths:
        return np.array([0.0, 0.0, 0.0, 1.0])
    turn = np.append(cross(force, -gravity), lengths - force @ gravity) / lengths
    if np.linalg.norm(turn) < UPSIDE_DOWN:  # half a turn about any axis perpendicular to it
        turn = np.append(cross(force, np.eye(3)[np.argmin(np.abs(force))]), 0.0)
    return turn / np.linalg.norm(turn)


def quaternion_product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the rotation q followed by p, as quaternions x y z w (4,)."""
    return np.append(p[3] * q[:3] + q[3] * p[:3] + cross(p[:3], q[:3]), p[3] * q[3] - p[:3] @ q[:3])


def quaternion_inverse(q: np.ndarray) -> np.ndarray:
    """Return the inverse of a unit quaternion."""
    return q * (-1.0, -1.0, -1.0, 1.0)


def extrapolate_base(base: BaseState, seconds: float) -> BaseState:
    """Return the base after some seconds of constant velocity along its own axes."""
    if not seconds:
        return base
    turned = quaternion_product(base.quaternion, _turn(0.5 * seconds * base.velocity[3:]))
    halfway = BaseState(base.position, turned / np.linalg.norm(turned), base.velocity)
    end = quaternion_product(halfway.quaternion, _turn(0.5 * seconds * base.velocity[3:]))
    step = halfway.into_world(base.velocity[:3]) * seconds
    return BaseState(base.position + step, end / np.linalg.norm(end), base.velocity)


def pose_difference(one: BaseState, other: BaseState) -> tuple[float, float]:
    """Return distance [m] and angle [rad] between two bases."""
    turn = quaternion_product(quaternion_inverse(one.quaternion), other.quaternion)
    angle = 2.0 * np.arctan2(np.linalg.norm(turn[:3]), abs(turn[3]))
    return float(np.linalg.norm(other.position - one.position)), float(angle)


def _turn(vector: np.ndarray) -> np.ndarray:
    """Return the quaternion of a rotation vector (3,)."""
    half = 0.5 * float(np.linalg.norm(vector))
    return np.append(vector * (0.5 * np.sinc(half / np.pi)), np.cos(half))


UNKNOWN_VECTOR = np.full(3, np.nan)


class BaseMotion(NamedTuple):
    """State of a base with its acceleration and jerk, see robots/base_state.py.

    Torques depend on the acceleration less gravity along the axes of the base. So where the orientation is unknown, the world
    is taken to have the base's axes at this instant; where the position is unknown, it is the origin.

    has_orientation, has_position : whether the orientation and the position are known
    numbers : numbers of the message with this motion, if there is one: pose, twist, acceleration, jerk (25,)
    """

    state: BaseState
    has_orientation: bool = True
    has_position: bool = True
    numbers: tuple[float, ...] | None = None

    def message(self) -> BaseStateMessage:
        """Return the motion as a message, NaN where unknown."""
        state, found = self.state, BaseStateMessage()
        orientation = state.quaternion if self.has_orientation else np.full(4, np.nan)
        linear = state.velocity[:3] if self.has_position else UNKNOWN_VECTOR
        acceleration = state.acceleration[:3] if self.has_orientation else UNKNOWN_VECTOR
        if (given := self.numbers) is not None:
            fill_axes(found.pose.position, given[:3])
            fill_axes(found.pose.orientation, given[3:7])
            halves: tuple[Any, ...] = (found.twist, found.acceleration, found.jerk)
            for k, six in enumerate(halves):
                fill_axes(six.linear, given[7 + 6 * k:10 + 6 * k])
                fill_axes(six.angular, given[10 + 6 * k:13 + 6 * k])
            return found
        fill_axes(found.pose.position, state.position if self.has_position else UNKNOWN_VECTOR)
        fill_axes(found.pose.orientation, orientation)
        for six, first, angular in ((found.twist, linear, state.velocity),
                                    (found.acceleration, acceleration, state.acceleration),
                                    (found.jerk, state.jerk[:3], state.jerk)):
            fill_axes(six.linear, first)
            fill_axes(six.angular, angular[3:])
        return found


# ---------------------------------------------------------------------- between messages

def between(first: BaseMotion, second: BaseMotion, span: float, seconds: float) -> BaseMotion:
    """Return the motion `seconds` after the first one, `span` [s] before the second one: Hermite polynomials of position and
    quaternion with three derivatives each.
    """
    (p, q), (p_end, q_end) = map(_rows, (first, second))
    q_end = q_end if q[0] @ q_end[0] >= 0.0 else -q_end
    return _motion(interpolated(p, p_end, span, seconds), interpolated(q, q_end, span, seconds))


def carried(motion: BaseMotion, seconds: float) -> BaseMotion:
    """Return the motion so long after [s], by the Taylor series of position and quaternion."""
    return _motion(*(extrapolated(rows, seconds) for rows in _rows(motion)))


def _rows(motion: BaseMotion) -> tuple[np.ndarray, np.ndarray]:
    """Position in the world (4, 3) and quaternion (4, 4), each with its first three time derivatives."""
    state, q = motion.state, motion.state.quaternion
    w, wd = state.velocity[3:], state.acceleration[3:]
    wdd = state.jerk[3:] - cross(w, wd)  # of the components
    qd = 0.5 * _times(q, w)
    qdd = 0.5 * (_times(qd, w) + _times(q, wd))
    qddd = 0.5 * (_times(qdd, w) + 2.0 * _times(qd, wd) + _times(q, wdd))
    rates = [state.into_world(six[:3]) for six in (state.velocity, state.acceleration, state.jerk)]
    return np.array([state.position, *rates]), np.array([q, qd, qdd, qddd])


def _motion(p: np.ndarray, q: np.ndarray) -> BaseMotion:
    """Return the inverse of `_rows`; the quaternion's length may differ from 1 by the error of interpolation."""
    q = q / np.linalg.norm(q[0])
    back = quaternion_inverse(q[0])
    w, wd, third = (2.0 * quaternion_product(back, rate)[:3] for rate in q[1:])
    wdd = third + 0.25 * (w @ w) * w - 0.5 * cross(w, wd)
    turned = BaseState(quaternion=q[0])
    v, a, j = map(turned.into_base, p[1:])
    return BaseMotion(BaseState(p[0], q[0], np.concatenate((v, w)), np.concatenate((a, wd)),
                                np.concatenate((j, wdd + cross(w, wd)))))


def _times(q: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Product of a quaternion and a vector (3,), taken for one without a scalar part."""
    return quaternion_product(q, np.append(w, 0.0))


# ---------------------------------------------------------------------- from messages

def six(message: Any) -> tuple[float, ...]:
    """Return the numbers of a Twist or an Accel."""
    return *three(message.linear), *three(message.angular)


def three(message: Any) -> tuple[float, float, float]:
    """Return the numbers of a Vector3 or a Point."""
    return message.x, message.y, message.z


def four(message: Any) -> tuple[float, float, float, float]:
    """Return the numbers of a Quaternion."""
    return message.x, message.y, message.z, message.w


def fill_axes(message: Any, numbers: Iterable[float]) -> None:
    """Set x, y, z and w of a message with these fields, as far as there are numbers."""
    for axis, number in zip("xyzw", numbers):
        setattr(message, axis, float(number))


def to_wrench(six: np.ndarray) -> Wrench:
    """Convert a force and a moment (6,) [N, N m] to a message."""
    made = Wrench()
    fill_axes(made.force, six[:3])
    fill_axes(made.torque, six[3:])
    return made


MAX_SAMPLES = 1024  # kept by stamp: an estimated motion is for an instant up to half a second ago
Sample = TypeVar("Sample")


class BaseTopic(ABC, Generic[Sample]):
    """Topic about a moving base. Subclasses read a sample from each message.

    mover  : name of what moves, for messages
    reader : makes a function of a message type that reads its bytes; the result has `stamp` or `header.stamp`
    """

    mover = "the base"
    reader: Callable[[Any], Callable[[bytes], Any]] = Reader

    def __init__(self, topic: str, kind: Any, timeout: float):
        """timeout: largest age of the newest message, by arrival [s]."""
        self.topic, self.name, self._kind, self._timeout = topic, topic.removeprefix("~/"), kind, timeout
        self.stream, self._read = Stream(self.name), self.reader(kind)
        self._kept: deque[tuple[int, Sample]] = deque(maxlen=MAX_SAMPLES)
        self.tolerance = math.inf
        self.then: Callable[[int], None] | None = None  # called after each message that is kept, with its arrival [ns]

    def connect(self, topics: Topics) -> None:
        self._timeline = Timeline(topics.clock)
        topics.subscribe(self._kind, self.topic, self.on_message)

    def use(self, model: Model) -> None:
        """Use another model."""

    def configure(self, lag: float, tolerance: float) -> None:
        """Set the time before the newest joint state for which motions are estimated, and the largest time between an instant
        and the nearest message [s].
        """
        self.tolerance = tolerance

    def forget(self) -> None:
        """Discard all samples: the clock was set."""
        self._timeline.forget()
        self._clear()

    def _clear(self) -> None:
        self._kept.clear()

    def paired(self) -> PairedInput:
        return PairedInput(self.topic, self.stream, lambda: self._timeout)

    # ------------------------------------------------------------------ in

    def on_message(self, data: bytes) -> None:
        """Process a message of the subscription."""
        arrival = time.monotonic_ns()
        self.stream.received += 1
        try:
            message = self._read(data)
            sample = self._sample(message)
            stamp = self._timeline.advance(message.stamp if isinstance(message, StampedNumbers) else message.header.stamp)
            self._keep(stamp, sample)
            self.stream.accept(arrival, stamp)
        except Rejected as refusal:
            self.stream.drop(refusal)
            if isinstance(refusal, Jumped):
                self._clear()
        else:
            if self.then:
                self.then(arrival)

    @abstractmethod
    def _sample(self, message: Any) -> Sample:
        """Sample of a message. Raises Rejected."""

    def _keep(self, stamp: int, sample: Sample) -> None:
        """Store a sample. Raises Rejected where it does not continue the one before."""
        self._kept.append((stamp, sample))

    # ------------------------------------------------------------------ out

    @property
    def fresh(self) -> bool:
        """True if the newest sample is not older than the timeout."""
        return bool(self._kept) and self.stream.age(time.monotonic_ns()) <= self._timeout

    def check(self) -> None:
        """Raise Rejected before the first message and where the newest one is older than the timeout."""
        if not self._kept:
            raise Rejected(f"{self.name}_missing", f"the motion of {self.mover} is unknown: no usable message on {self.topic} "
                           "yet", passing=True)
        age = self.stream.age(time.monotonic_ns())
        if age > self._timeout:
            raise Rejected(f"{self.name}_timeout", f"the newest message on {self.topic} came {age:.3f} s ago, base.timeout "
                           f"is {self._timeout:g} s")

    @property
    def last(self) -> int | None:
        """Stamp of the newest message [ns]."""
        return self._kept[-1][0] if self._kept else None

    def since(self, stamp: int) -> list[Sample]:
        """Return the samples whose stamps [ns] are not before this one."""
        return [sample for when, sample in self._kept if when >= stamp]

    def newest(self) -> tuple[int, Sample]:
        """Return the newest sample and its stamp [ns]. Raises Rejected."""
        self.check()
        return self._kept[-1]

    def neighbours(self, stamp: int) -> list[tuple[int, Sample]]:
        """Return the samples before and after a stamp [ns], with their own stamps; one alone if it has this stamp, or if the
        other one does not exist or is more than the timeout away. Raises Rejected where that one is further from the stamp
        than the tolerance.
        """
        self.check()
        after = None
        for before in reversed(self._kept):
            if before[0] <= stamp:
                break
            after = before
        else:
            before, after = self._kept[0], None
        if after is not None and before[0] != stamp and after[0] - before[0] <= self._timeout * 1e9:
            return [before, after]
        if after is not None and after[0] - stamp < stamp - before[0]:
            before = after
        check_age(self.name, self.topic, (stamp - before[0]) * 1e-9, self.tolerance)
        return [before]

    def nearest(self, stamp: int) -> tuple[int, Sample]:
        """Return the sample whose stamp [ns] is nearest, with that. Raises Rejected."""
        return min(self.neighbours(stamp), key=lambda kept: abs(kept[0] - stamp))


class BaseStates(BaseTopic[BaseMotion]):
    """Whole motion of a base, measured or planned: rnea_msgs/BaseStateStamped on ~/base_state."""

    reader = NumbersReader

    def __init__(self, timeout: float, topic: str = "~/base_state"):
        super().__init__(topic, BaseStateStamped, timeout)

    def _sample(self, message: StampedNumbers) -> BaseMotion:
        numbers = message.numbers
        try:
            state = BaseState(numbers[:3], numbers[3:7], numbers[7:13])
        except InputError as error:
            raise Rejected(f"{self.name}_unusable", str(error)) from None
        acceleration, jerk = np.array(numbers[13:19]), np.array(numbers[19:25])
        if not all(map(math.isfinite, numbers)):
            raise Rejected(f"{self.name}_unusable", f"base acceleration {acceleration.tolist()} or jerk {jerk.tolist()} is "
                           "not finite")
        return BaseMotion(state.with_motion(acceleration, jerk), numbers=numbers)

    def at(self, stamp: int) -> BaseMotion:
        """Return the motion at a stamp [ns]. Raises Rejected."""
        found = self.neighbours(stamp)
        if len(found) == 2:
            (before, first), (after, second) = found
            return between(first, second, (after - before) * 1e-9, (stamp - before) * 1e-9)
        (when, sample), = found
        return sample if when == stamp else carried(sample, (stamp - when) * 1e-9)


MAX_STATE_DELAY_S = 0.1  # a joint state may arrive this long after newer messages of the sensor


class Sensed(NamedTuple):
    """Two vectors along the axes of the base (6,), and the frame in which they were measured."""

    signals: np.ndarray
    mount: Mount


SensedSample = TypeVar("SensedSample", bound="Sensed | Any")


class BaseSensor(BaseTopic[SensedSample]):
    """Sensor on a moving base: six signals, whose rates are estimated by the filter bank of the joints.

    Samples have `signals` and `mount`, as Sensed.
    """

    def __init__(self, topic: str, kind: Any, timeout: float):
        super().__init__(topic, kind, timeout)
        self._mounts: dict[str, Mount] = {}
        self._lag, self._estimator = 0.0, MotionEstimator(6, MAX_STATE_DELAY_S)

    def use(self, model: Model) -> None:
        self._robot, self._root, self._mounts = model.name, model.links[0].name, mounts(model)

    def configure(self, lag: float, tolerance: float) -> None:
        super().configure(lag, tolerance)
        if lag != self._lag:
            self._lag, self._estimator = lag, MotionEstimator(6, lag + MAX_STATE_DELAY_S)

    def _clear(self) -> None:
        super()._clear()
        self._estimator.clear()

    def _mount(self, frame: str) -> Mount:
        """Mount of a frame_id. Raises Rejected."""
        found = self._mounts.get(frame or self._root)
        if found is None:
            raise Rejected("unknown_frame", f"frame '{frame:.80}' is no link of robot '{self._robot}' that is fixed in its "
                           f"base; those are {some(self._mounts, quoted=True)}; an empty one is link "
                           f"'{self._root}'{near(frame, self._mounts)}")
        return found

    def _keep(self, stamp: int, sample: SensedSample) -> None:
        if self._kept and self._kept[-1][1].mount is not sample.mount:  # another frame: earlier signals cannot be compared
            self._estimator.clear()
        super()._keep(stamp, sample)
        self._estimator.push(stamp, sample.signals)

    def rates(self, stamp: int) -> np.ndarray:
        """Return the signals at a stamp [ns] with estimated first and second rates, (3, 6). Raises Rejected."""
        self.check()
        if not self._estimator.ready:
            raise Rejected(f"{self.name}_history_too_short", f"the estimator needs more messages on {self.topic}; this is "
                           "normal for an instant after the start or a gap", passing=True)
        self.check_clock(stamp)
        return self._estimator.estimate(stamp).motion[:3]

    def signals(self, stamp: int) -> np.ndarray:
        """Return the signals (6,) at a stamp [ns]: linear between two messages of the same mount, else the nearest."""
        found = self.neighbours(stamp)
        if len(found) == 2 and found[0][1].mount is found[1][1].mount:
            (before, first), (after, second) = found
            share = (stamp - before) / (after - before)
            return np.asarray(first.signals + share * (second.signals - first.signals))
        return np.asarray(self.nearest(stamp)[1].signals)

    def check_clock(self, stamp: int) -> None:
        """Raise Rejected where a stamp [ns] is too long after the messages, or before them: it is by another clock."""
        age = (stamp - self._kept[-1][0]) * 1e-9
        if age < -self._lag - MAX_STATE_DELAY_S:
            raise Rejected(f"{self.name}_apart", f"the motion is for an instant {-age:.3f} s before the newest message on "
                           f"{self.topic}: are stamps of both by the same clock?")
        check_age(self.name, self.topic, max(age, 0.0), self.tolerance)

    def findings(self) -> dict[str, object]:
        """Return what diagnostics report of the estimator."""
        if not self._estimator.ready:
            return {}
        clock, noise = self._estimator.clock, self._estimator.noise
        linear, angular = (np.sqrt(variance.mean()) for variance in np.split(noise.variance(np.zeros(6)), 2))
        return {f"{self.name}.readings_hz": f"{1.0 / clock.period:.6g}", f"{self.name}.stamp_jitter_s": f"{clock.jitter:.2g}",
                f"{self.name}.noise": f"{linear:.2g} {angular:.2g}"}


class OdometrySample(NamedTuple):
    """signals: velocity of the child frame's origin, angular velocity, along the base's axes (6,). state: of the base."""

    signals: np.ndarray
    mount: Mount
    state: BaseState


class BaseOdometry(BaseSensor[OdometrySample]):
    """Odometry of a moving base: nav_msgs/Odometry on ~/base_odometry.

    child_frame_id is the link whose pose the message has, with the twist along its axes. Rates are those of the twist, so
    that corrections of the pose do no harm; where it jumps, the message is rejected, and the next one continues from there.
    """

    def __init__(self, timeout: float, tolerance: float):
        """tolerance: largest difference between poses and the integrated twist, from message to message [m, rad]."""
        from nav_msgs.msg import Odometry  # imported where it is used: nav_msgs takes time and memory

        super().__init__("~/base_odometry", Odometry, timeout)
        self._tolerance = tolerance
        self._before: tuple[int, BaseState] | None = None

    def pose(self, stamp: int) -> BaseState:
        """Return pose and velocity of the base at an instant [ns]. Raises Rejected."""
        when, sample = self.nearest(stamp)
        return extrapolate_base(sample.state, (stamp - when) * 1e-9)

    def _clear(self) -> None:
        super()._clear()
        self._before = None

    def _sample(self, message: Any) -> OdometrySample:
        mount = self._mount(message.child_frame_id)
        pose, twist = message.pose.pose, np.reshape(six(message.twist.twist), (2, 3))
        try:
            there = BaseState(three(pose.position), four(pose.orientation), mount.along_base(*twist))
        except InputError as error:
            raise Rejected("base_odometry_unusable", str(error)) from None
        turn = BaseState(quaternion=quaternion_product(there.quaternion, quaternion_inverse(mount.turn)))
        state = BaseState(there.position - turn.into_world(mount.r), turn.quaternion,
                          velocity_of_origin(mount.r, there.velocity))
        return OdometrySample(there.velocity, mount, state)

    def _keep(self, stamp: int, sample: OdometrySample) -> None:
        before, self._before = self._before, (stamp, sample.state)
        if before is not None and (seconds := (stamp - before[0]) * 1e-9) < self._timeout:
            (p, turn, v), now = (before[1].position, before[1].quaternion, before[1].velocity), sample.state
            expected = extrapolate_base(BaseState(p, turn, 0.5 * (v + now.velocity)), seconds)
            metres, radians = pose_difference(expected, now)
            if max(metres, radians) > self._tolerance:
                raise Rejected("base_odometry_jumped", f"{seconds:.3f} s after the last one, the pose is {metres:.3g} m and "
                               f"{radians:.3g} rad off the integrated twist; "
                               f"base.odometry_tolerance is {self._tolerance:g}")
        super()._keep(stamp, sample)


NOT_MEASURED = -1.0  # first element of the covariance of a quantity that the unit does not measure
NO_ORIENTATION = (0.0, 0.0, 0.0, 0.0)  # of drivers that do not set covariances


class ImuSample(NamedTuple):
    """signals: acceleration less gravity of the unit's origin, angular velocity, along the base's axes (6,). quaternion: of
    the base in the world; None where the unit does not measure it.
    """

    signals: np.ndarray
    mount: Mount
    quaternion: np.ndarray | None


class BaseImu(BaseSensor[ImuSample]):
    """Inertial measurement unit on a moving base: sensor_msgs/Imu on ~/base_imu; frame_id is the link of the unit."""

    def __init__(self, timeout: float):
        super().__init__("~/base_imu", Imu, timeout)

    def _sample(self, message: Imu) -> ImuSample:
        mount = self._mount(message.header.frame_id)
        for field in ("linear_acceleration", "angular_velocity"):
            if getattr(message, f"{field}_covariance")[0] == NOT_MEASURED:
                raise Rejected("base_imu_incomplete", f"{field}_covariance begins with -1: the unit does not measure it")
        signals = np.array((three(message.linear_acceleration), three(message.angular_velocity)))
        if not np.isfinite(signals).all():
            raise Rejected("base_imu_unusable", f"linear acceleration {signals[0].tolist()} or angular velocity "
                           f"{signals[1].tolist()} is not finite")
        return ImuSample(mount.along_base(*signals), mount, self._orientation(message, mount))

    def _orientation(self, message: Imu, mount: Mount) -> np.ndarray | None:
        """Orientation of the base (quaternion), None where not measured. Raises Rejected."""
        given = four(message.orientation)
        if message.orientation_covariance[0] == NOT_MEASURED or given == NO_ORIENTATION:
            return None
        try:
            return quaternion_product(BaseState(quaternion=given).quaternion, quaternion_inverse(mount.turn))
        except InputError as error:
            raise Rejected("base_imu_unusable", f"{error} (a unit without orientation sets orientation_covariance[0] to "
                           "-1)") from None
