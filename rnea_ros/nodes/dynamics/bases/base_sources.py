"""Where the motion of a base comes from, as the parameter base.source says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rnea_ros import BaseState
from rnea_ros.model.tree import Model
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.dynamics.bases.base_imu import BaseImu, ImuSample
from rnea_ros.nodes.dynamics.bases.base_motion import BaseMotion
from rnea_ros.nodes.dynamics.bases.base_states import BaseStates
from rnea_ros.nodes.dynamics.bases.base_topic import BaseTopic
from rnea_ros.robots.sensed_base import SensedMotion, carried_on, from_imu, of_place


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

    def warnings(self) -> list[str]:
        """What the user should know of it just now."""
        return []

    def findings(self) -> dict[str, object]:
        return {}


class ToldBase(BaseSource):
    """All of it from ~/base_state: the newest that is not after the instant."""

    def __init__(self, states: BaseStates):
        super().__init__([states])
        self._states = states

    def at(self, stamp: int) -> BaseMotion:
        return self._states.newest(stamp)[1]


class ImuBase(BaseSource):
    """From an inertial measurement unit; rates from the filter bank, or from ~/base_state where that is given."""

    def __init__(self, imu: BaseImu, desired: BaseStates | None):
        super().__init__([imu, desired] if desired else [imu])
        self._imu, self._desired = imu, desired

    def at(self, stamp: int) -> BaseMotion:
        when, sample = self._imu.newest(stamp) if self._desired else self._imu.nearest(stamp)
        found = self._measured(stamp, sample)
        state = BaseState(velocity=np.concatenate((np.zeros(3), found.velocity[3:])))
        oriented = sample.quaternion is not None
        if oriented:
            state = carried_on(BaseState(quaternion=sample.quaternion, velocity=state.velocity), (stamp - when) * 1e-9)
        down = np.concatenate((state.into_base(self._gravity), np.zeros(3)))
        return BaseMotion(state, found.acceleration + down, found.jerk, oriented, placed=False)

    def _measured(self, stamp: int, sample: ImuSample) -> SensedMotion:
        if not self._desired:
            return from_imu(sample.mount.r, self._imu.rates(stamp))
        wanted = self._desired.newest(stamp)[1]
        sensed, w = np.split(sample.signals, 2)
        acceleration = np.concatenate((sensed, wanted.acceleration[3:]))
        acceleration, _ = of_place(-sample.mount.r, w, acceleration, wanted.jerk)
        return SensedMotion(np.concatenate((np.full(3, np.nan), w)), acceleration, wanted.jerk)

    def findings(self) -> dict[str, object]:
        return {} if self._desired else self._imu.findings()


def base_source(values: Values) -> BaseSource:
    """As the parameters say."""
    timeout = values["base.timeout"]
    if values["base.source"] == "state":
        return ToldBase(BaseStates(timeout))
    desired = BaseStates(timeout) if values["base.motion_source"] == "desired" else None
    return ImuBase(BaseImu(timeout), desired)
