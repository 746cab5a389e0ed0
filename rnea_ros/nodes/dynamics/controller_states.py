"""The reference of a joint_trajectory_controller, as ~/controller_state tells it: position, mostly velocity and acceleration.

What is not told is found: the jerk from accelerations, by the polynomials with which the controller joins points; whatever
else is missing from the positions alone, by the estimator of measured ones, without an encoder's noise.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from rnea_ros.errors import Rejected, some
from rnea_ros.estimation.motion_estimator import MotionEstimator
from rnea_ros.execution.reference_jerk import ReferenceJerk
from rnea_ros.nodes.dynamics.joint_states import StateReader
from rnea_ros.nodes.dynamics.reference_motions import FIELDS, ReferenceMotions

try:
    from control_msgs.msg import JointTrajectoryControllerState
except ImportError:
    JointTrajectoryControllerState = None

EXACT = 1e-9  # rad, m; resolution of a reference, with which the estimator follows it closely
GAP = 500_000_000  # ns; without a reference for longer nothing of the past says anything about now


def told(message: Any) -> Any:
    """The reference of a message, `desired` of old ones. While the speed is scaled, velocities and accelerations in it are
    those of the trajectory, not of what the robot is to do: they are left out."""
    point = message.reference if hasattr(message, "reference") else message.desired
    velocity = point.velocities if getattr(message, "speed_scaling_factor", 1.0) == 1.0 else ()
    return SimpleNamespace(header=message.header, joint_names=message.joint_names, position=point.positions, velocity=velocity,
                           acceleration=point.accelerations if len(velocity) else (), jerk=())


class ControllerStates(ReferenceMotions):
    """What a joint_trajectory_controller wants of its joints; the others rest where they are."""

    def __init__(self, joint_names: Sequence[str], turning: Sequence[int] = (), clock: Callable[[], int] = time.time_ns):
        super().__init__(joint_names, clock, lacking=FIELDS[1:])
        self.held = frozenset(range(len(joint_names)))
        self._turning = frozenset(turning)
        self._named: tuple[int, ...] = ()
        self._begin(0)

    def _begin(self, stamp: int) -> None:
        """Nothing is known of what was before."""
        self._origin = self._last = stamp
        self._jerk = ReferenceJerk()
        self._estimator: MotionEstimator | None = None

    def clear(self) -> None:
        super().clear()
        self._begin(0)

    def read(self, message: Any) -> int:
        """The stamp [ns]. Raises Rejected; what was read before stays then, unless time jumped."""
        layout = self._map.locate(message.joint_names)
        if not layout.joints:
            raise Rejected("unknown_joint", f"none of this robot's joints: {some(layout.others)}")
        stamp = super().read(told(message))
        if layout.joints != self._named or not 0 < stamp - self._last < GAP:
            self._named, self._rest = layout.joints, [joint for joint in self.held if joint not in layout.joints]
            self._begin(stamp)
        self._last = stamp
        rows, named = self._kept[-1][1], list(self._named)
        rows[:, self._rest] = 0.0
        rows[:, named] = self._completed(stamp, rows[:, named])
        return stamp

    def motion(self, state: StateReader, timeout: float, count: int) -> list[np.ndarray]:
        """Position .. jerk at the stamp of the state. Raises Rejected."""
        found = super().motion(state, timeout, count)
        if np.isnan(found).any():
            raise Rejected("history_too_short", "more of the reference is needed for what it does not tell; this is normal "
                                                "for an instant after the start or a gap", passing=True)
        found[0][self._rest] = state.q[self._rest]
        return found

    def _completed(self, stamp: int, rows: np.ndarray) -> np.ndarray:
        """Position .. jerk of the named joints (4, k), NaN where they are not known yet."""
        if not np.isnan(rows[2]).any():
            self._estimator = None
            rows[3] = self._jerk((stamp - self._origin) * 1e-9, *rows[:3])
            return rows
        self._jerk = ReferenceJerk()
        if self._estimator is None:
            turning = [place for place, joint in enumerate(self._named) if joint in self._turning]
            self._estimator = MotionEstimator(len(self._named), 0.0, EXACT, turning)
        self._estimator.push(stamp, rows[0])
        return np.where(np.isnan(rows), self._estimator.estimate(stamp).motion, rows) if self._estimator.ready else rows
