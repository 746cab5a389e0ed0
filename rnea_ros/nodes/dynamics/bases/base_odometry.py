"""Odometry of a moving base: ~/base_odometry."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from nav_msgs.msg import Odometry

from rnea_ros import BaseState, InputError
from rnea_ros.errors import Rejected
from rnea_ros.nodes.dynamics.bases.base_motion import four, six, three
from rnea_ros.nodes.dynamics.bases.base_sensor import BaseSensor
from rnea_ros.robots.sensed_base import Mount, apart, carried_on, inverse, product, velocity_of_origin


class OdometrySample(NamedTuple):
    """signals: velocity of the place that moves so, angular velocity, along the base's axes (6,). state: of the base."""

    signals: np.ndarray
    mount: Mount
    state: BaseState


class BaseOdometry(BaseSensor[OdometrySample]):
    """nav_msgs/Odometry; child_frame_id is the link whose pose it tells, with the twist along its axes.

    Rates are those of the twist, so a pose that is corrected does no harm; where it leaps, the message is refused, and the
    next one counts from the new place.
    """

    def __init__(self, timeout: float, tolerance: float):
        """tolerance: by how much poses may differ from what the twist says, from message to message [m, rad]."""
        super().__init__("~/base_odometry", Odometry, timeout)
        self._tolerance = tolerance
        self._before: tuple[int, BaseState] | None = None

    def pose(self, stamp: int) -> BaseState:
        """Of the base at an instant [ns], and its velocity next to it. Raises Rejected."""
        when, sample = self.nearest(stamp)
        return carried_on(sample.state, (stamp - when) * 1e-9)

    def _clear(self) -> None:
        super()._clear()
        self._before = None

    def _sample(self, message: Odometry) -> OdometrySample:
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
            expected = carried_on(BaseState(p, turn, 0.5 * (v + now.velocity)), seconds)
            metres, radians = apart(expected, now)
            if max(metres, radians) > self._tolerance:
                raise Rejected("base_odometry_jumped", f"{seconds:.3f} s after the last one, the pose is {metres:.3g} m and "
                                                       f"{radians:.3g} rad from where the twist leads; "
                                                       f"base.odometry_tolerance is {self._tolerance:g}")
        super()._keep(stamp, sample)
