"""Motions that are told instant by instant with all derivatives, and what they are between these instants."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from rnea_msgs.msg import ScaledMotion
from rnea_ros.errors import Rejected, some
from rnea_ros.nodes.common.stamps import UNKNOWN
from rnea_ros.nodes.dynamics.desired_motion import StampedMotions
from rnea_ros.nodes.dynamics.joint_states import StateReader

FIELDS = ("position", "velocity", "acceleration", "jerk")
MISSING = "reference_missing"


class ReferenceMotions(StampedMotions):
    """The latest ones by stamp, each carried on by its own derivatives until the next."""

    def __init__(self, joint_names: Sequence[str], clock: Callable[[], int] = time.time_ns, lacking: Sequence[str] = ()):
        """lacking: fields that a message need not have."""
        super().__init__(joint_names, FIELDS, clock, lacking=lacking)
        self._ended = UNKNOWN  # the stamp of the end of the last motion, if none has begun since

    def motion(self, state: StateReader, timeout: float, count: int) -> list[np.ndarray]:
        """Position .. jerk at the stamp of the state: the last motion that is not after it, carried on to it by its own
        derivatives. Raises Rejected."""
        found = self.before(state.stamp)
        if found is None:
            raise Rejected(MISSING, "no reference yet that is not after the joint state", passing=True)
        since = (state.stamp - found[0]) * 1e-9
        if since > timeout and found[0] != self._ended:
            raise Rejected("reference_timeout", f"the last reference is {since:.3f} s before the joint state")
        q, qd, qdd, qddd = found[1]
        if since > timeout:  # at rest, since a motion has ended
            since = 0.0
        return [q + since * (qd + since / 2.0 * (qdd + since / 3.0 * qddd)), qd + since * (qdd + since / 2.0 * qddd),
                qdd + since * qddd, qddd.copy()]


class ScaledMotions(ReferenceMotions):
    """What scaling_node says of the motion under way."""

    def read(self, message: ScaledMotion) -> int:
        """The stamp [ns]. Raises Rejected."""
        strange = self._map.locate(message.joint_names).others
        if strange:
            raise Rejected("unknown_joint", f"not of this robot: {some(strange)}")
        stamp = super().read(message)
        self._ended = stamp if message.phase == ScaledMotion.ENDED else UNKNOWN
        return stamp
