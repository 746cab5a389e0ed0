"""A controller that is sent goals of its action FollowJointTrajectory, and says what becomes of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from rnea_ros.execution.controller_check import Finding
from rnea_ros.execution.executed_motion import ExecutedMotion
from rnea_ros.execution.goal import Outcome
from rnea_ros.execution.tolerances import ERASED, FIELDS
from rnea_ros.execution.trajectory_executor import TrajectoryExecutor
from rnea_ros.nodes.common.parameters import ParameterSet
from rnea_ros.nodes.common.stamps import duration
from rnea_ros.nodes.scaling.controller import Controller, NamedController, TopicController, check_watchable
from rnea_ros.nodes.scaling.controller_goals import ControllerGoals
from rnea_ros.nodes.scaling.health import ScalingHealth
from rnea_ros.scaling.committed import CommittedMotion

try:
    from control_msgs.action import FollowJointTrajectory
    from control_msgs.msg import JointTolerance
except ImportError:
    FollowJointTrajectory = JointTolerance = None


def told(joint_names: Sequence[str], rows: np.ndarray) -> list[Any]:
    """Tolerances (3, n), of the joints that have any."""
    return [JointTolerance(name=name, **dict(zip(FIELDS, map(_told, column))))
            for name, column in zip(joint_names, rows.T) if not np.isnan(column).all()]


def _told(value: float) -> float:
    """As control_msgs has it: 0 is the default, -1 no tolerance."""
    return 0.0 if math.isnan(value) else ERASED if math.isinf(value) else float(value)


class ActionController(NamedController):
    """Its word on the newest goal, when the motion is at its end here, is the word on the motion."""

    def __init__(self, *given: Any, **options: Any):
        """options: of ControllerGoals."""
        super().__init__(*given)
        self._goals, self._there = None, -math.inf  # when its action was there [s]
        if FollowJointTrajectory is not None:
            self._goals = ControllerGoals(self._node, FollowJointTrajectory, self.name, self._give_up, **options)

    def destroy(self) -> None:
        super().destroy()
        if self._goals is not None:
            self._goals.destroy()

    @property
    def settled(self) -> bool:  # type: ignore[override]
        return self._waited or (super().settled and self._goals is not None and self._goals.ready)

    @property
    def feedback(self) -> Any:
        return self._goals.feedback if self._goals is not None else None

    def look(self) -> None:
        super().look()
        if self._goals is None or self._goals.ready:
            self._there = time.monotonic()
        elif time.monotonic() - self._there > self._settings.values["controller.timeout"] and self._moves:
            self._give_up("controller_silent", "its action is gone")
        if self._goals is not None and self._goals.overdue(self._settings.values["controller.timeout"]):
            self._give_up("controller_silent", "it does not answer what its action was asked")

    def _findings(self) -> list[Finding]:
        if self._goals is None:
            return [Finding(True, "controller.interface action needs control_msgs, which is not installed")]
        there = [] if self._goals.ready else [Finding(True, "it does not serve follow_joint_trajectory")]
        return [*super()._findings(), *there]

    def send(self, motion: ExecutedMotion, message: JointTrajectory) -> None:
        super().send(motion, message)
        assert self._goals is not None  # or else there would be no motion
        goal = FollowJointTrajectory.Goal(trajectory=message)
        asked = motion.goal.tolerances
        if asked is not None:
            goal.path_tolerance, goal.goal_tolerance = (told(motion.joint_names, rows) for rows in (asked.path, asked.goal))
            goal.goal_time_tolerance = duration(_told(asked.time))
        assert motion.committed is not None
        self._goals.send(goal, partial(self._taken, motion, motion.committed, motion.committed.parts))

    def _taken(self, motion: ExecutedMotion, committed: CommittedMotion, parts: float) -> None:
        """What parts from the one before at a time of the motion [s]; later than that the robot has leapt. Where it tells of
        its reference, that says so: by then this process may have been stopped, and have heard late of what was in time."""
        late = 1e-9 * (self._node.get_clock().now().nanoseconds - motion.zero) - parts
        if late > 0.0 and self._heard < self._since:
            self._tell_late(committed, late)

    def verdict(self, motion: ExecutedMotion, now: int) -> Outcome | None:
        return self._goals.outcome if self._goals is not None else Outcome()

    def halt(self, motion: ExecutedMotion) -> None:
        if self._goals is not None:
            self._goals.cancel()


def controller(node: Node, settings: ParameterSet, executor: TrajectoryExecutor, health: ScalingHealth,
               joint_names: Callable[[], Sequence[str]], measured: Callable[[tuple[str, ...]], np.ndarray]) -> Controller:
    """As the parameters say. Raises InputError."""
    if settings.values["watch.source"] == "controller_state":
        check_watchable(settings.values)
    if not settings.values["controller.name"]:
        return Controller()
    kind = ActionController if settings.values["controller.interface"] == "action" else TopicController
    return kind(node, settings, executor, health, joint_names, measured)
