"""Motions by stamp: fields of messages by joint. A desired motion has acceleration, jerk and higher derivatives."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rnea_ros.errors import Rejected, some
from rnea_ros.nodes.common.stamps import Jumped, Timeline
from rnea_ros.nodes.dynamics.joint_states import JointMap, not_finite
from rnea_ros.nodes.dynamics.pairing import check_age, extrapolated, interpolated

MAX_MOTIONS = 512  # motions: joint states may be held or late by a quarter of a second at 2 kHz
FIELDS = ("acceleration", "jerk", "snap", "crackle", "pop", "lock")  # of JointMotion; those from snap on may be empty


class StampedMotions:
    """Latest motions by stamp: a row for each field of a message, a column for each joint."""

    def __init__(self, joint_names: Sequence[str], fields: Sequence[str], clock: Callable[[], int] = time.time_ns,
                 optional: Sequence[str] = (), lacking: Sequence[str] = (), kept: int = MAX_MOTIONS):
        """Create a reader.

        optional: joints that may be missing (NaN); lacking: fields that may be empty (NaN); kept: number of messages kept
        """
        self._map, self._timeline = JointMap(joint_names, optional), Timeline(clock)
        self._needed, self._fields, self._lacking, self._most = len(joint_names), tuple(fields), tuple(lacking), kept
        self.held: frozenset[int] = frozenset()  # joints that need not be named: they are at rest
        self._spare = np.zeros((len(self._fields), len(joint_names) + len(optional)))
        self._kept: deque[tuple[int, np.ndarray]] = deque()

    def read(self, message: Any) -> int:
        """Read a message and return its stamp [ns]. Raises Rejected; earlier messages stay then, unless time jumped."""
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
            if not values and what in self._lacking:
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
        full = len(self._kept) > self._most
        self._spare = self._kept.popleft()[1] if full else np.zeros_like(self._spare)
        return stamp

    def before(self, stamp: int) -> tuple[int, np.ndarray] | None:
        """Return the last motion that is not after a stamp [ns], with its own stamp; None if there is none."""
        return next((kept for kept in reversed(self._kept) if kept[0] <= stamp), None)

    def clear(self) -> None:
        """Discard the motions: the clock of the joint states jumped."""
        self._kept.clear()

    def forget(self) -> None:
        self._timeline.forget()
        self.clear()


class DesiredReader(StampedMotions):
    """The latest desired motions by stamp: acceleration, jerk and higher derivatives, a row each."""

    def __init__(self, joint_names: Sequence[str], clock: Callable[[], int] = time.time_ns, optional: Sequence[str] = (),
                 order: int = 3):
        """order: of the highest derivative of position that is read."""
        super().__init__(joint_names, FIELDS[:order - 1], clock, optional, lacking=FIELDS[2:])

    def last(self, stamp: int) -> np.ndarray | None:
        """Return the last motion that is not after a stamp [ns], else the first one, as it came; None if none came."""
        found = self.before(stamp) or (self._kept[0] if self._kept else None)
        return None if found is None else found[1]

    def reaches(self, stamp: int, tolerance: float, span: float) -> bool:
        """Return whether `at` has a motion."""
        try:
            return self.at(stamp, tolerance, span) is not None
        except Rejected:
            return False

    def at(self, stamp: int, tolerance: float = math.inf, span: float = math.inf) -> np.ndarray | None:
        """Return acceleration, jerk ... at a stamp [ns]: of the message with this stamp, else interpolated between neighbours
        or extrapolated from the nearest one; None before the first message.

        tolerance : largest time over which a message is extrapolated [s]. Raises Rejected beyond it
        span      : largest time between two messages that are interpolated [s]
        """
        if not self._kept:
            return None
        when, rows = self.before(stamp) or self._kept[0]
        if when < stamp < self._kept[-1][0]:
            then, others = next(kept for kept in self._kept if kept[0] > stamp)
            if (then - when) * 1e-9 <= span:
                return _of_known(rows, lambda known: interpolated(known, others[:len(known)], (then - when) * 1e-9,
                                                                  (stamp - when) * 1e-9), np.isfinite(others).any(axis=1))
            if then - stamp < stamp - when:
                when, rows = then, others
        check_age("desired_motion", "~/desired_motion", (stamp - when) * 1e-9, tolerance)
        return rows if when == stamp else _of_known(rows, lambda known: extrapolated(known, (stamp - when) * 1e-9))


def _of_known(rows: np.ndarray, function: Callable[[np.ndarray], np.ndarray], also: Any = True) -> np.ndarray:
    """Apply a function to the leading rows that hold numbers; the others, not in the message, are NaN."""
    known = np.isfinite(rows).any(axis=1) & also
    count = len(rows) if known.all() else int(np.argmin(known))
    return np.concatenate((function(rows[:count]), np.full_like(rows[count:], np.nan)))
