"""Topics with the motion of the platform of a parallel robot.

~/platform_state has the motion up to jerk, ~/platform_pose_measured the pose, ~/platform_twist_measured the velocity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped

from rnea_ros import BaseState, InputError, PlatformMotion
from rnea_ros.algebra.vectors import rpy_angles
from rnea_ros.errors import Rejected
from rnea_ros.estimation.motion_estimator import MotionEstimator
from rnea_ros.nodes.dynamics.bases.base_motion import BaseMotion
from rnea_ros.nodes.dynamics.bases.base_topics import BaseSensor, BaseStates, BaseTopic, Sensed
from rnea_ros.nodes.fastpath.messages import NumbersReader, StampedNumbers

UNTIMED = float("inf")  # each message is answered when it comes; none grows old
TURNS = (3, 5)  # roll and yaw may be a whole turn away


class PlatformStates(BaseStates):
    """rnea_msgs/BaseStateStamped, with the platform for the base and the root link for the world."""

    mover = "the platform"

    def __init__(self, root: str, timeout: float = UNTIMED):
        super().__init__(timeout, "~/platform_state")
        self._root = root

    def _sample(self, message: Any) -> BaseMotion:
        check_frame(message.frame_id, self._root)
        return super()._sample(message)

    def motion(self, stamp: int) -> PlatformMotion:
        """Return the platform's motion at a stamp [ns]. Raises Rejected."""
        state, acceleration, jerk, *_ = self.at(stamp)
        return PlatformMotion(state.position, state.rotation, *map(state.into_world, (state.velocity, acceleration, jerk)))


class PlatformPoses(BaseTopic[BaseState]):
    """geometry_msgs/PoseStamped, of the platform in the root link. Position and angles pass the filters of the joints; the
    angles are those of the turn from the home pose, so they are singular only a quarter turn away from it.
    """

    mover, reader = "the platform", NumbersReader

    def __init__(self, root: str, home: np.ndarray, reach: Callable[[np.ndarray, np.ndarray], object]):
        """home: rotation (3, 3) of the home pose; reach(position, rotation) raises Rejected where the legs do not allow it:
        such a pose is kept from the filters.
        """
        super().__init__("~/platform_pose_measured", PoseStamped, UNTIMED)
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

    def __init__(self) -> None:
        super().__init__("~/platform_twist_measured", TwistStamped, UNTIMED)

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
