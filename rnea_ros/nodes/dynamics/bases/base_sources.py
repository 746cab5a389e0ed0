"""Where the motion of a base comes from, as the parameter base.source says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rnea_ros import BaseState
from rnea_ros.errors import Rejected
from rnea_ros.model.tree import Model
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.dynamics.bases.base_imu import BaseImu, ImuSample
from rnea_ros.nodes.dynamics.bases.base_motion import BaseMotion
from rnea_ros.nodes.dynamics.bases.base_states import BaseStates
from rnea_ros.nodes.dynamics.bases.base_topic import BaseTopic
from rnea_ros.robots.sensed_base import SensedMotion, carried_on, from_imu, from_twist, of_place

if TYPE_CHECKING:
    from rnea_ros.nodes.dynamics.bases.base_odometry import BaseOdometry


class BaseSource:
    """The motion of a base at any instant, from the topics that it needs. Subclasses say how."""

    def __init__(self, topics: Sequence[BaseTopic[Any]]):
        self.topics = tuple(topics)
        self.streams = [topic.stream for topic in topics]

    def use(self, model: Model, gravity: np.ndarray) -> None:
        """A model is in use; gravity in the world (3,)."""
        self._gravity = gravity
        for topic in self.topics:
            topic.use(model)

    def at(self, stamp: int) -> BaseMotion:
        """At an instant [ns]. Raises Rejected."""
        raise NotImplementedError

    def state_at(self, stamp: int) -> BaseMotion:
        """Return the motion at an instant [ns] where only pose and velocity are needed. Raises Rejected."""
        return self.at(stamp)

    def warnings(self) -> list[str]:
        """What the user should know of it just now."""
        return []

    def findings(self) -> dict[str, object]:
        return {}


class ToldBase(BaseSource):
    """The whole motion from ~/base_state."""

    def __init__(self, states: BaseStates):
        super().__init__([states])
        self._states = states

    def at(self, stamp: int) -> BaseMotion:
        return self._states.at(stamp)


class OdometryBase(BaseSource):
    """From odometry; rates of its twist from the filter bank, or from ~/base_state where that is given."""

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


class ImuBase(BaseSource):
    """From an inertial measurement unit; rates from the filter bank, or from ~/base_state where that is given. Where there is
    odometry too, it tells where the base is and how it is turned: torques do not depend on that."""

    def __init__(self, imu: BaseImu, odometry: BaseOdometry | None, desired: BaseStates | None):
        super().__init__([topic for topic in (imu, odometry, desired) if topic is not None])
        self._imu, self._odometry, self._desired = imu, odometry, desired
        self._astray = ""  # why odometry does not tell where the base is

    def at(self, stamp: int) -> BaseMotion:
        when, sample = self._imu.nearest(stamp)
        found = self._measured(stamp, sample)
        state, oriented, placed = self._where(stamp, found.velocity[3:], when, sample.quaternion)
        down = np.concatenate((state.into_base(self._gravity), np.zeros(3)))
        return BaseMotion(state, found.acceleration + down, found.jerk, oriented, placed)

    def _measured(self, stamp: int, sample: ImuSample) -> SensedMotion:
        if not self._desired:
            return from_imu(sample.mount.r, self._imu.rates(stamp))
        wanted = self._desired.at(stamp)
        sensed, w = np.split(self._imu.signals(stamp), 2)
        acceleration = np.concatenate((sensed, wanted.acceleration[3:]))
        acceleration, _ = of_place(-sample.mount.r, w, acceleration, wanted.jerk)
        return SensedMotion(np.concatenate((np.full(3, np.nan), w)), acceleration, wanted.jerk)

    def _where(self, stamp: int, w: np.ndarray, when: int, turn: np.ndarray | None) -> tuple[BaseState, bool, bool]:
        """State at a stamp with this angular velocity, and whether its orientation and its place are known; turn: what the
        unit told at another stamp."""
        if self._odometry is not None:
            try:
                pose, self._astray = self._odometry.pose(stamp), ""
                return BaseState(pose.position, pose.quaternion, np.append(pose.velocity[:3], w)), True, True
            except Rejected as refusal:
                self._astray = refusal.detail
        state = BaseState(velocity=np.append(np.zeros(3), w))
        if turn is None:
            return state, False, False
        return carried_on(BaseState(quaternion=turn, velocity=state.velocity), (stamp - when) * 1e-9), True, False

    def warnings(self) -> list[str]:
        return [f"{self._astray}: only what needs no pose is told, torques among it"] if self._astray else []

    def findings(self) -> dict[str, object]:
        return {} if self._desired else self._imu.findings()


def base_source(values: Values) -> BaseSource:
    """As the parameters say."""
    source, timeout = values["base.source"], values["base.timeout"]
    if source == "state":
        return ToldBase(BaseStates(timeout))
    desired = BaseStates(timeout) if values["base.motion_source"] == "desired" else None
    if source == "imu":
        return ImuBase(BaseImu(timeout), None, desired)
    from rnea_ros.nodes.dynamics.bases.base_odometry import BaseOdometry  # nav_msgs is loaded where it is wanted

    odometry = BaseOdometry(timeout, values["base.odometry_tolerance"])
    return OdometryBase(odometry, desired) if source == "odometry" else ImuBase(BaseImu(timeout), odometry, desired)
