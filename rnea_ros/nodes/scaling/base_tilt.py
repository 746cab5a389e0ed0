"""How a base that something carries stands when a trajectory comes, as the parameter base.source says."""

from __future__ import annotations

import numpy as np

from rnea_ros import BaseState
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.dynamics.bases.base_topics import BaseImu, BaseStates, BaseTopic
from rnea_ros.robots.sensed_base import upright

MEAN = 500_000_000  # ns; of what an accelerometer shows, so that the base may sway


class BaseTilt:
    """Level, as long as no topic tells."""

    topic: BaseTopic | None = None

    def now(self, gravity: np.ndarray) -> BaseState:
        """The base at rest, turned as it is; gravity of the world (3,). Raises Rejected where nothing tells, or lately."""
        return BaseState()


class ToldTilt(BaseTilt):
    """By ~/base_state or ~/base_odometry."""

    def __init__(self, topic: BaseTopic):
        self.topic: BaseTopic = topic

    def now(self, gravity: np.ndarray) -> BaseState:
        self.topic.check()
        return BaseState(quaternion=self.topic.newest()[1].state.quaternion)


class ImuTilt(BaseTilt):
    """By ~/base_imu: its orientation, or else the mean of its acceleration less gravity, as of a base that stays in place."""

    def __init__(self, imu: BaseImu):
        self.topic: BaseImu = imu

    def now(self, gravity: np.ndarray) -> BaseState:
        stamp, newest = self.topic.newest()
        if newest.quaternion is not None:
            return BaseState(quaternion=newest.quaternion)
        felt = np.mean([sample.signals[:3] for sample in self.topic.since(stamp - MEAN)], axis=0)
        return BaseState(quaternion=upright(felt, gravity))


def base_tilt(values: Values) -> BaseTilt:
    """As the parameters say."""
    source, timeout = values["base.source"], values["base.timeout"]
    if source == "imu":
        return ImuTilt(BaseImu(timeout))
    if source == "odometry":
        from rnea_ros.nodes.dynamics.bases.base_topics import BaseOdometry  # nav_msgs is loaded where it is wanted

        return ToldTilt(BaseOdometry(timeout, values["base.odometry_tolerance"]))
    return ToldTilt(BaseStates(timeout)) if source == "state" else BaseTilt()
