"""Sources of the motion of a base and of platforms, selected by parameters; topics with the motion of a platform."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped

from rnea_ros import BaseState, InputError, PlatformMotion, Robot, WheelOdometry
from rnea_ros.algebra.vectors import rpy_angles
from rnea_ros.errors import Rejected, some
from rnea_ros.estimation.motion_estimator import MotionEstimator
from rnea_ros.model.tree import Model
from rnea_ros.nodes.common.base import (
    BaseImu,
    BaseMotion,
    BaseOdometry,
    BaseSensor,
    BaseStates,
    BaseTopic,
    ImuSample,
    Sensed,
    SensedMotion,
    extrapolate_base,
    from_imu,
    from_twist,
    point_motion,
)
from rnea_ros.nodes.common.cdr import NumbersReader, StampedNumbers
from rnea_ros.nodes.common.diagnostics import Stream
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.common.topics import Topics


class BaseSource(ABC):
    """Source of the motion of a base at any instant; subclasses combine topics."""

    def __init__(self, topics: Sequence[BaseTopic[Any]]):
        self.topics = tuple(topics)
        self.streams = [topic.stream for topic in topics]

    def use(self, model: Model, gravity: np.ndarray) -> None:
        """Use a model; gravity: (3,) in the world [m/s^2]."""
        self._gravity = gravity
        for topic in self.topics:
            topic.use(model)

    @abstractmethod
    def at(self, stamp: int) -> BaseMotion:
        """Return the motion at an instant [ns]. Raises Rejected."""

    def state_at(self, stamp: int) -> BaseMotion:
        """Return the motion at an instant [ns] where only pose and velocity are needed. Raises Rejected."""
        return self.at(stamp)

    def on_solved(self, stamp: int, rates: np.ndarray) -> None:  # noqa: B027  # most sources do not need it
        """Take the base's velocity and its rate (2, 6), which follow from the sample at a stamp [ns]."""

    def forget(self) -> None:
        """Discard the samples: the clock was set."""
        for topic in self.topics:
            topic.forget()

    def warnings(self) -> list[str]:
        """Return warnings about its messages."""
        return []

    def findings(self) -> dict[str, object]:
        return {}


class BaseStateSource(BaseSource):
    """Whole motion from ~/base_state."""

    def __init__(self, states: BaseStates):
        super().__init__([states])
        self._states = states

    def at(self, stamp: int) -> BaseMotion:
        return self._states.at(stamp)


class OdometrySource(BaseSource):
    """Motion from odometry; rates of its twist estimated, or from ~/base_state."""

    def __init__(self, odometry: BaseOdometry, desired: BaseStates | None):
        super().__init__([odometry, desired] if desired else [odometry])
        self._odometry, self._desired = odometry, desired

    def at(self, stamp: int) -> BaseMotion:
        if self._desired:
            pose, wanted = self._odometry.pose(stamp), self._desired.at(stamp).state
            return BaseMotion(pose.with_motion(wanted.acceleration, wanted.jerk))
        where, (_, sample) = self._odometry.pose(stamp), self._odometry.nearest(stamp)
        found = from_twist(sample.mount.r, self._odometry.rates(stamp))
        return BaseMotion(BaseState(where.position, where.quaternion, found.velocity, found.acceleration, found.jerk))

    def state_at(self, stamp: int) -> BaseMotion:
        return BaseMotion(self._odometry.pose(stamp).with_motion(*np.zeros((2, 6))))

    def findings(self) -> dict[str, object]:
        return {} if self._desired else self._odometry.findings()


class WheelSource(BaseSource):
    """Pose by dead reckoning from the wheels, from the origin at the first sample."""

    def __init__(self, robot: Robot):
        """Create a source. Raises InputError where the wheels do not decide the motion of the base."""
        super().__init__([])
        self._odometry, self._began = WheelOdometry(robot), 0

    def at(self, stamp: int) -> BaseMotion:
        return BaseMotion(self._odometry.predict(1e-9 * (stamp - self._began)).with_motion(*np.zeros((2, 6))))

    def on_solved(self, stamp: int, rates: np.ndarray) -> None:
        if self._odometry.time is None:
            self._began = stamp
        self._odometry.update(1e-9 * (stamp - self._began), rates)

    def forget(self) -> None:
        """Continue from the last pose at the next sample: the clock was set."""
        self._odometry = WheelOdometry(self._odometry.robot, self._odometry.state)

    def findings(self) -> dict[str, object]:
        x, y, _ = self._odometry.state.position
        return {"wheel_odometry.x": float(x), "wheel_odometry.y": float(y)}


class ImuSource(BaseSource):
    """Motion from an inertial measurement unit; rates estimated, or from ~/base_state.

    Pose and linear velocity, on which torques do not depend, are those of odometry where it is used too.
    """

    def __init__(self, imu: BaseImu, odometry: BaseOdometry | None, desired: BaseStates | None):
        super().__init__([topic for topic in (imu, odometry, desired) if topic is not None])
        self._imu, self._odometry, self._desired = imu, odometry, desired
        self._pose_problem = ""  # reason why odometry does not give the pose

    def at(self, stamp: int) -> BaseMotion:
        when, sample = self._imu.nearest(stamp)
        found = self._measured(stamp, sample)
        state, has_orientation, has_position = self._state(stamp, found.velocity[3:], when, sample.quaternion)
        down = np.concatenate((state.into_base(self._gravity), np.zeros(3)))
        return BaseMotion(state.with_motion(found.acceleration + down, found.jerk), has_orientation, has_position)

    def _measured(self, stamp: int, sample: ImuSample) -> SensedMotion:
        if not self._desired:
            return from_imu(sample.mount.r, self._imu.rates(stamp))
        wanted = self._desired.at(stamp).state
        sensed, w = np.split(self._imu.signals(stamp), 2)
        acceleration = np.concatenate((sensed, wanted.acceleration[3:]))
        acceleration, _ = point_motion(-sample.mount.r, w, acceleration, wanted.jerk)
        return SensedMotion(np.concatenate((np.full(3, np.nan), w)), acceleration, wanted.jerk)

    def _state(self, stamp: int, w: np.ndarray, when: int, turn: np.ndarray | None) -> tuple[BaseState, bool, bool]:
        """State at a stamp with this angular velocity, and whether its orientation and its position are known.

        turn: orientation that the unit measured at the stamp `when`, None without
        """
        if self._odometry is not None:
            try:
                pose, self._pose_problem = self._odometry.pose(stamp), ""
                return BaseState(pose.position, pose.quaternion, np.append(pose.velocity[:3], w)), True, True
            except Rejected as refusal:
                self._pose_problem = refusal.detail
        state = BaseState(velocity=np.append(np.zeros(3), w))
        if turn is None:
            return state, False, False
        return extrapolate_base(BaseState(quaternion=turn, velocity=state.velocity), (stamp - when) * 1e-9), True, False

    def warnings(self) -> list[str]:
        problem = self._pose_problem
        return [f"{problem}: only results that need no pose are published, torques included"] if problem else []

    def findings(self) -> dict[str, object]:
        return {} if self._desired else self._imu.findings()


def base_source(values: Values, robot: Robot) -> BaseSource:
    """Return the source that parameters select. Raises InputError where it does not suit the robot."""
    source, timeout = values["base.source"], values["base.timeout"]
    if source == "wheels":
        return WheelSource(robot)
    if source == "state":
        return BaseStateSource(BaseStates(timeout))
    desired = BaseStates(timeout) if values["base.motion_source"] == "desired" else None
    if source == "imu":
        return ImuSource(BaseImu(timeout), None, desired)
    odometry = BaseOdometry(timeout, values["base.odometry_tolerance"])
    return OdometrySource(odometry, desired) if source == "odometry" else ImuSource(BaseImu(timeout), odometry, desired)


UNTIMED = float("inf")  # each message is answered when it comes; none grows old
TURNS = (3, 5)  # roll and yaw may be a whole turn away


class PlatformStates(BaseStates):
    """rnea_msgs/BaseStateStamped, with the platform for the base and the root link for the world."""

    mover = "the platform"

    def __init__(self, root: str, timeout: float = UNTIMED, suffix: str = ""):
        """suffix: of the topic's name, where there are several platforms"""
        super().__init__(timeout, f"~/platform_state{suffix}")
        self._root = root

    def _sample(self, message: Any) -> BaseMotion:
        check_frame(message.frame_id, self._root)
        return super()._sample(message)

    def motion(self, stamp: int) -> PlatformMotion:
        """Return the platform's motion at a stamp [ns]. Raises Rejected."""
        state = self.at(stamp).state
        rates = state.velocity, state.acceleration, state.jerk
        return PlatformMotion(state.position, state.rotation, *map(state.into_world, rates))


class PlatformPoses(BaseTopic[BaseState]):
    """geometry_msgs/PoseStamped, of the platform in the root link. Position and angles pass the filters of the joints; the
    angles are those of the turn from the home pose, so they are singular only a quarter turn away from it.
    """

    mover, reader = "the platform", NumbersReader

    def __init__(self, root: str, home: np.ndarray, reach: Callable[[np.ndarray, np.ndarray], object], suffix: str = ""):
        """home: rotation (3, 3) of the home pose; reach(position, rotation) raises Rejected where the legs do not allow it:
        such a pose is kept from the filters. suffix: as of PlatformStates
        """
        super().__init__(f"~/platform_pose_measured{suffix}", PoseStamped, UNTIMED)
        self._root, self._home, self._reach = root, home, reach
        self._lag, self._estimator = 0.0, MotionEstimator(6, 0.0, turning=TURNS)

    def configure(self, lag: float, tolerance: float) -> None:
        super().configure(lag, tolerance)
        if lag != self._lag:
            self._lag, self._estimator = lag, MotionEstimator(6, lag, turning=TURNS)

    def _clear(self) -> None:
        super()._clear()
        self._estimator.clear()

    def _sample(self, message: StampedNumbers) -> BaseState:
        check_frame(message.frame_id, self._root)
        try:
            state = BaseState(message.numbers[:3], message.numbers[3:])
        except InputError as error:
            raise Rejected(f"{self.name}_unusable", str(error)) from None
        self._reach(state.position, state.rotation)
        return state

    def _keep(self, stamp: int, sample: BaseState) -> None:
        super()._keep(stamp, sample)
        self._estimator.push(stamp, np.array((*sample.position.tolist(), *rpy_angles(sample.rotation @ self._home.T))))

    def motion(self, stamp: int) -> PlatformMotion:
        """Estimated from the poses alone, at a stamp [ns]. Raises Rejected."""
        if not self._estimator.ready:
            raise Rejected("history_too_short", f"the estimator needs more messages on {self.topic}; this is normal for an "
                           "instant after the start or a gap", passing=True)
        motion = self._estimator.estimate(stamp).motion[:4]
        found = PlatformMotion.from_rpy([*motion[:, :3]], [*motion[:, 3:]])
        return found._replace(rotation=found.rotation @ self._home)


class PlatformTwists(BaseSensor[Sensed]):
    """geometry_msgs/TwistStamped: velocity of the platform's origin and its angular velocity, both relative to the root link,
    along the axes of frame_id, which is a link that is fixed to it.
    """

    mover, reader = "the platform", NumbersReader

    def __init__(self, suffix: str = ""):
        """suffix: as of PlatformStates"""
        super().__init__(f"~/platform_twist_measured{suffix}", TwistStamped, UNTIMED)

    def _sample(self, message: StampedNumbers) -> Sensed:
        mount, twist = self._mount(message.frame_id), np.array(message.numbers)
        if not np.isfinite(twist).all():
            raise Rejected(f"{self.name}_unusable", f"the twist {message.numbers} is not finite")
        signals = mount.along_base(twist[:3], twist[3:])
        return Sensed(signals, mount)


def check_frame(frame: str, root: str) -> None:
    """Raise Rejected for a frame_id that is not the root link."""
    if frame not in ("", root):
        raise Rejected("unknown_frame", f"frame '{frame:.80}' is not '{root}', the root link, in whose frame the platform's "
                       "motion is given; leave it empty or name the root link")


class PlatformReader:
    """Motion of one platform from its topics: the whole motion; or measured poses, and twists if there are any, with
    acceleration and jerk (of poses alone also the velocity) that are estimated from them or desired.

    measured : topics whose messages are answered
    desired  : ~/platform_state, of which the rest is taken; None where it is estimated
    """

    def __init__(self, states: PlatformStates | None = None, poses: PlatformPoses | None = None,
                 twists: PlatformTwists | None = None, desired: PlatformStates | None = None):
        """states: the whole motion; without them, poses are needed."""
        self._states, self._poses, self._twists, self.desired = states, poses, twists, desired
        self.measured: tuple[BaseTopic[Any], ...] = tuple(topic for topic in (states, poses, twists) if topic is not None)

    @property
    def is_estimated(self) -> bool:
        """True if a part of the motion is estimated."""
        return self._states is None and self.desired is None

    def at(self, stamp: int) -> PlatformMotion:
        """Return the motion at a stamp [ns]. Raises Rejected."""
        if self._states is not None:
            return self._states.motion(stamp)
        assert self._poses is not None
        if self._twists is None and self.desired is None:
            return self._poses.motion(stamp)
        when, pose = self._poses.nearest(stamp)
        if self.desired is None:
            assert self._twists is not None
            velocity, acceleration, jerk = self._twists.rates(stamp)
        else:
            *_, velocity, acceleration, jerk = self.desired.motion(stamp)
        if self._twists is None:
            return PlatformMotion(pose.position, pose.rotation, velocity, acceleration, jerk)
        velocity = velocity if self.desired is None else self._twists.signals(stamp)
        there = BaseState(pose.position, pose.quaternion, pose.into_base(velocity))
        there = extrapolate_base(there, (stamp - when) * 1e-9)
        return PlatformMotion(there.position, there.rotation, velocity, acceleration, jerk)


class PlatformSource:
    """Motion of all platforms of a robot at the latest instant for which all of their measurements have arrived.

    readers  : of each platform, by its link
    measured : topics whose messages are answered; each instant once
    """

    def __init__(self, readers: Mapping[str, PlatformReader]):
        self._readers = dict(readers)
        self.measured = tuple(topic for reader in readers.values() for topic in reader.measured)
        self.topics = (*(reader.desired for reader in readers.values() if reader.desired is not None), *self.measured)
        self.streams = [topic.stream for topic in self.topics]
        self._lag, self._answered = 0.0, -1

    def use(self, model: Model) -> None:
        """Set the model; the platforms move in the frame of its root link."""
        for topic in self.topics:
            topic.use(model)

    def configure(self, lag: float, tolerance: float) -> None:
        """Set the time before the measurement for which motions are estimated, and the largest time between an instant and the
        nearest message [s].
        """
        self._lag = lag if any(reader.is_estimated for reader in self._readers.values()) else 0.0
        for topic in self.topics:
            topic.configure(self._lag, tolerance)

    def connect(self, topics: Topics) -> None:
        for topic in self.measured:
            topic.then = partial(self._on_measured, topics.moved, topic.stream)
        for topic in self.topics:
            topic.connect(topics)

    def forget(self) -> None:
        self._answered = -1
        for topic in self.topics:
            topic.forget()

    def at(self, stamp: int) -> dict[str, PlatformMotion]:
        """Return the motion of each platform at a stamp [ns], by its link. Raises Rejected."""
        return {link: reader.at(stamp) for link, reader in self._readers.items()}

    def _on_measured(self, moved: Callable[[Stream, int, int], None], stream: Stream, arrival: int) -> None:
        """Ask for the motion at the last stamp that all measured topics have reached, once for each stamp."""
        stamps = [topic.last for topic in self.measured]
        reached = min(-1 if stamp is None else stamp for stamp in stamps)
        if reached != self._answered and reached >= 0:
            self._answered = reached
            moved(stream, arrival, reached - round(self._lag * 1e9))


def platform_suffixes(links: Sequence[str]) -> dict[str, str]:
    """Return what the names of topics about each platform end with, by its link: nothing where there is one platform alone.

    Raises InputError where two links differ in characters alone that a topic's name cannot have.
    """
    if len(links) == 1:
        return {links[0]: ""}
    found = {link: "/" + re.sub(r"[^A-Za-z0-9_]", "_", link if not link[:1].isdigit() else f"_{link}") for link in links}
    twice = [link for link, suffix in found.items() if [*found.values()].count(suffix) > 1]
    if twice:
        raise InputError(f"topics of platforms {some(twice)} have the same names: letters, digits and _ of their links must "
                         "differ; rename a link")
    return found


def platform_source(robot: Robot, values: Values, reach: Callable[[str, np.ndarray, np.ndarray], object]) -> PlatformSource:
    """Return the source of the parameters; reach(link, position, rotation) raises Rejected for a pose out of reach."""
    assert robot.loops is not None
    suffixes = platform_suffixes(robot.platforms)
    return PlatformSource({one.link: _platform_reader(robot, values, one.pose(robot.start)[0], partial(reach, one.link),
                                                      suffixes[one.link]) for one in robot.loops.platforms})


def _platform_reader(robot: Robot, values: Values, home: np.ndarray, reach: Callable[[np.ndarray, np.ndarray], object],
                     suffix: str) -> PlatformReader:
    """Return the reader of one platform. home: its rotation (3, 3) at the start."""
    root, desired = robot.tree.root_link, None
    if values["platform.source"] == "state":
        return PlatformReader(PlatformStates(root, suffix=suffix))
    if values["platform.motion_source"] == "desired":
        desired = PlatformStates(root, values["base.timeout"], suffix)
    poses = PlatformPoses(root, np.asarray(home), reach, suffix)
    twists = PlatformTwists(suffix) if values["platform.source"] == "pose+twist" else None
    return PlatformReader(poses=poses, twists=twists, desired=desired)
