"""Desired motions as controllers send them: acceleration and jerk by name, kept by stamp."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from rnea_msgs.msg import JointMotion
from rnea_ros.errors import Rejected, some
from rnea_ros.nodes.common.stamps import Jumped, Timeline
from rnea_ros.nodes.dynamics.joint_layouts import JointMap, not_finite

FIELDS = ("acceleration", "jerk", "snap", "crackle", "pop", "lock")  # of JointMotion; those from snap on may be empty


class DesiredReader:
    """The latest desired motions by stamp: acceleration, jerk and higher derivatives, a row each."""

    _KEPT = 16

    def __init__(self, joint_names: Sequence[str], clock: Callable[[], int] = time.time_ns, optional: Sequence[str] = (),
                 order: int = 3):
        """optional: joints that need not be named, NaN then; order: of the highest derivative of position that is read."""
        self._map, self._timeline = JointMap(joint_names, optional), Timeline(clock)
        self._needed, self._fields = len(joint_names), FIELDS[:order - 1]
        self.held: frozenset[int] = frozenset()  # joints that need not be named: they rest
        self._spare = np.zeros((len(self._fields), len(joint_names) + len(optional)))
        self._kept: deque[tuple[int, np.ndarray]] = deque()

    def read(self, message: JointMotion) -> int:
        """The stamp [ns]. Raises Rejected; what was read before stays then, unless time jumped."""
        names = self._map.joint_names
        layout = self._map.locate(message.joint_names)
        if not layout.whole:
            missing = [name for k, name in enumerate(names[:self._needed]) if k not in self.held and k not in layout.joints]
            if missing:
                raise Rejected("joint_missing", f"not in the message: {some(missing)}")
            self._spare.fill(0.0)
        if not layout.every:
            self._spare[:, self._needed:] = np.nan
        for row, what in zip(self._spare, self._fields):
            values = getattr(message, what)
            if not values and what in FIELDS[2:]:
                row.fill(np.nan)
                continue
            given = row if layout.every else np.empty(len(layout.joints))
            if not layout.read(values, what, given):
                raise Rejected(f"{what}_not_finite", not_finite([names[k] for k in layout.joints], given))
            row[layout.columns] = given
        try:
            stamp = self._timeline.advance(message.header.stamp)
        except Jumped:
            self._kept.clear()
            raise
        self._kept.append((stamp, self._spare))
        full = len(self._kept) > self._KEPT
        self._spare = self._kept.popleft()[1] if full else np.zeros_like(self._spare)
        return stamp

    def at(self, stamp: int) -> np.ndarray | None:
        """Acceleration, jerk ... of the last motion that is not after this stamp, else of the nearest; None if none came."""
        for when, motion in reversed(self._kept):
            if when <= stamp:
                return motion
        return self._kept[0][1] if self._kept else None

    def clear(self) -> None:
        """Forget the motions: the states' clock jumped."""
        self._kept.clear()

    def forget(self) -> None:
        self._timeline.forget()
        self.clear()
