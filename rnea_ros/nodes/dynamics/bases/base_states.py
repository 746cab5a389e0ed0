"""The whole motion of a base, measured or planned: ~/base_state."""

from __future__ import annotations

import numpy as np

from rnea_msgs.msg import BaseStateStamped
from rnea_ros import BaseState, InputError
from rnea_ros.errors import Rejected
from rnea_ros.nodes.dynamics.bases.base_motion import BaseMotion, between, carried, four, six, three
from rnea_ros.nodes.dynamics.bases.base_topic import BaseTopic


class BaseStates(BaseTopic[BaseMotion]):
    """rnea_msgs/BaseStateStamped."""

    def __init__(self, timeout: float, topic: str = "~/base_state"):
        super().__init__(topic, BaseStateStamped, timeout)

    def _sample(self, message: BaseStateStamped) -> BaseMotion:
        given = message.state
        try:
            state = BaseState(three(given.pose.position), four(given.pose.orientation), six(given.twist))
        except InputError as error:
            raise Rejected(f"{self.name}_unusable", str(error)) from None
        acceleration, jerk = np.array(six(given.acceleration)), np.array(six(given.jerk))
        if not (np.isfinite(acceleration).all() and np.isfinite(jerk).all()):
            raise Rejected(f"{self.name}_unusable", f"base acceleration {acceleration.tolist()} or jerk {jerk.tolist()} is "
                                                    "not finite")
        return BaseMotion(state, acceleration, jerk, as_told=given)

    def at(self, stamp: int) -> BaseMotion:
        """Return the motion at a stamp [ns]. Raises Rejected."""
        found = self.neighbours(stamp)
        if len(found) == 2:
            (before, first), (after, second) = found
            return between(first, second, (after - before) * 1e-9, (stamp - before) * 1e-9)
        (when, sample), = found
        return sample if when == stamp else carried(sample, (stamp - when) * 1e-9)
