"""Topics of a moving base: ~/base_state, ~/base_odometry and ~/base_imu; messages are checked, counted and kept by stamp."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from sensor_msgs.msg import Imu

from rnea_msgs.msg import BaseStateStamped
from rnea_ros import BaseState, InputError
from rnea_ros.errors import Rejected, near, some
from rnea_ros.estimation.motion_estimator import MotionEstimator
from rnea_ros.model.tree import Model
from rnea_ros.nodes.common.diagnostics import Stream
from rnea_ros.nodes.common.sensed_base import (
    Mount,
    extrapolate_base,
    inverse,
    mounts,
    pose_difference,
    product,
    velocity_of_origin,
)
from rnea_ros.nodes.common.stamps import Jumped, Timeline
from rnea_ros.nodes.common.topics import Topics
from rnea_ros.nodes.dynamics.bases.base_motion import BaseMotion, between, carried, four, six, three
from rnea_ros.nodes.dynamics.pairing import PairedInput, check_age
from rnea_ros.nodes.fastpath.messages import NumbersReader, Reader, StampedNumbers

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
        return BaseMotion(state, acceleration, jerk, numbers=numbers)

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
        turn = BaseState(quaternion=product(there.quaternion, inverse(mount.turn)))
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
            return product(BaseState(quaternion=given).quaternion, inverse(mount.turn))
        except InputError as error:
            raise Rejected("base_imu_unusable", f"{error} (a unit without orientation sets orientation_covariance[0] to "
                           "-1)") from None
