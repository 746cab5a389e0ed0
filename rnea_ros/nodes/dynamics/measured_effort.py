"""Efforts that joint states report: looked at, merged by joint, kept by stamp, for motions that are estimated later."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence

import numpy as np
from sensor_msgs.msg import JointState

from rnea_ros.errors import Rejected, some
from rnea_ros.nodes.common.stamps import UNKNOWN
from rnea_ros.nodes.dynamics.joint_layouts import JointMap, not_finite

KEPT = 1024  # efforts: half a second, the longest lag of an estimator, at 2 kHz


class MeasuredEffort:
    """Of all joints, in the robot's order."""

    def __init__(self, joint_names: Sequence[str]):
        self._map, n = JointMap(joint_names), len(joint_names)
        self._values, self._stamps = np.zeros(n), np.full(n, UNKNOWN)
        self.forget()

    def forget(self) -> None:
        """The clock was set, or the input was silent."""
        self._stamps.fill(UNKNOWN)
        self._kept: deque[tuple[int, np.ndarray]] = deque(maxlen=KEPT)

    def read(self, message: JointState, stamp: int, age: float) -> None:
        """Of a joint state with a stamp [ns]; efforts of other joints must not be older than `age` [s]. Raises Rejected."""
        names = self._map.joint_names
        layout = self._map.locate(message.name)
        if not message.effort:
            raise Rejected("effort_missing", f"the joint state of {some(message.name)} has no efforts")
        given = np.empty(len(layout.joints))
        if not layout.read(message.effort, "effort", given):
            raise Rejected("effort_not_finite", not_finite([names[k] for k in layout.joints], given))
        self._values[layout.columns], self._stamps[layout.columns] = given, stamp
        late = self._stamps < stamp - round(age * 1e9)
        if late.any():
            unknown = [name for name, old in zip(names, late) if old]
            raise Rejected("effort_missing", f"no effort of {some(unknown)} for {age:g} s")
        if self._kept and stamp <= self._kept[-1][0]:
            self._kept.clear()
        self._kept.append((stamp, self._values.copy()))

    def at(self, stamp: int) -> np.ndarray:
        """At the stamp [ns] of a motion, between those of two joint states. Raises Rejected."""
        if self._kept and stamp >= self._kept[-1][0]:
            return self._kept[-1][1]
        k = bisect_right(self._kept, stamp, key=lambda entry: entry[0])
        if not 0 < k < len(self._kept):
            raise Rejected("effort_missing", "no effort is known at the instant that the motion is for", passing=True)
        (before, a), (after, b) = self._kept[k - 1], self._kept[k]
        return a + (b - a) * ((stamp - before) / (after - before))
