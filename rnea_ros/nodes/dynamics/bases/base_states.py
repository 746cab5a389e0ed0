"""The whole motion of a base, measured or planned: ~/base_state."""

from __future__ import annotations

import math

import numpy as np

from rnea_msgs.msg import BaseStateStamped
from rnea_ros import BaseState, InputError
from rnea_ros.errors import Rejected
from rnea_ros.nodes.dynamics.bases.base_motion import BaseMotion, between, carried
from rnea_ros.nodes.dynamics.bases.base_topic import BaseTopic
from rnea_ros.nodes.fastpath.raw_messages import NumbersReader, StampedNumbers


class BaseStates(BaseTopic[BaseMotion]):
    """rnea_msgs/BaseStateStamped."""

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
