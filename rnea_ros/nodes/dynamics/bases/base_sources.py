"""Sources of the motion of a base, by the parameter base.source."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from rnea_ros import BaseState, Robot, WheelOdometry
from rnea_ros.errors import Rejected
from rnea_ros.model.tree import Model
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.common.sensed_base import SensedMotion, extrapolate_base, from_imu, from_twist, point_motion
from rnea_ros.nodes.dynamics.bases.base_motion import BaseMotion
from rnea_ros.nodes.dynamics.bases.base_topics import BaseImu, BaseOdometry, BaseStates, BaseTopic, ImuSample


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
            pose, wanted = self._odometry.pose(stamp), self._desired.at(stamp)
            return BaseMotion(pose, wanted.acceleration, wanted.jerk)
        where, (_, sample) = self._odometry.pose(stamp), self._odometry.nearest(stamp)
        found = from_twist(sample.mount.r, self._odometry.rates(stamp))
        return BaseMotion(BaseState(where.position, where.quaternion, found.velocity), found.acceleration, found.jerk)

    def state_at(self, stamp: int) -> BaseMotion:
        return BaseMotion(self._odometry.pose(stamp), *np.zeros((2, 6)))

    def findings(self) -> dict[str, object]:
        return {} if self._desired else self._odometry.findings()


class WheelSource(BaseSource):
    """Pose by dead reckoning from the wheels, from the origin at the first sample."""

    def __init__(self, robot: Robot):
        """Create a source. Raises InputError where the wheels do not decide the motion of the base."""
        super().__init__([])
        self._odometry, self._began = WheelOdometry(robot), 0

    def at(self, stamp: int) -> BaseMotion:
        return BaseMotion(self._odometry.predict(1e-9 * (stamp - self._began)), *np.zeros((2, 6)))

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
        return BaseMotion(state, found.acceleration + down, found.jerk, has_orientation, has_position)

    def _measured(self, stamp: int, sample: ImuSample) -> SensedMotion:
        if not self._desired:
            return from_imu(sample.mount.r, self._imu.rates(stamp))
        wanted = self._desired.at(stamp)
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
