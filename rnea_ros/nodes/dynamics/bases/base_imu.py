"""An inertial measurement unit on a moving base: ~/base_imu."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sensor_msgs.msg import Imu

from rnea_ros import BaseState, InputError
from rnea_ros.errors import Rejected
from rnea_ros.nodes.dynamics.bases.base_motion import four, three
from rnea_ros.nodes.dynamics.bases.base_sensor import BaseSensor
from rnea_ros.robots.sensed_base import Mount, inverse, product

NOT_GIVEN = -1.0  # first element of the covariance of what the unit does not measure
NO_TURN = (0.0, 0.0, 0.0, 0.0)  # as drivers without a magnetometer fill the field that they do not know


class ImuSample(NamedTuple):
    """signals: acceleration less gravity of the unit's place, angular velocity, along the base's axes (6,). quaternion: of the
    base in the world, if the unit knows."""

    signals: np.ndarray
    mount: Mount
    quaternion: np.ndarray | None


class BaseImu(BaseSensor[ImuSample]):
    """sensor_msgs/Imu; frame_id is the link that the unit is."""

    def __init__(self, timeout: float):
        super().__init__("~/base_imu", Imu, timeout)

    def _sample(self, message: Imu) -> ImuSample:
        mount = self._mount(message.header.frame_id)
        for field in ("linear_acceleration", "angular_velocity"):
            if getattr(message, f"{field}_covariance")[0] == NOT_GIVEN:
                raise Rejected("base_imu_incomplete", f"{field}_covariance begins with -1: the unit does not measure it")
        signals = np.array((three(message.linear_acceleration), three(message.angular_velocity)))
        if not np.isfinite(signals).all():
            raise Rejected("base_imu_unusable", f"linear acceleration {signals[0].tolist()} or angular velocity "
                                                f"{signals[1].tolist()} is not finite")
        return ImuSample(mount.along_base(*signals), mount, self._turn(message, mount))

    def _turn(self, message: Imu, mount: Mount) -> np.ndarray | None:
        """Raises Rejected."""
        given = four(message.orientation)
        if message.orientation_covariance[0] == NOT_GIVEN or given == NO_TURN:
            return None
        try:
            return product(BaseState(quaternion=given).quaternion, inverse(mount.turn))
        except InputError as error:
            raise Rejected("base_imu_unusable", f"{error} (a unit without orientation says so by orientation_covariance[0] = "
                                                "-1)") from None
