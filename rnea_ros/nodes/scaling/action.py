"""~/follow_joint_trajectory of scaling_node, where control_msgs is installed: by this action MoveIt and others command arms.

A goal is a trajectory like those on ~/joint_trajectory, whose sender wants to know what becomes of it. What is wrong at a
glance rejects it; what is found when its motion is prepared, or when it has to stop on its way, aborts it when it is at rest.
A goal that is cancelled comes to rest on its path, and then is. So does one whose robot leaves its path by more than the
path_tolerance; success is the robot inside the goal_tolerance, or where there is none the last reference at the goal.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_ros.errors import Rejected
from rnea_ros.execution import tolerances
from rnea_ros.execution.executed_motion import ExecutedMotion, Sample
from rnea_ros.execution.goal import Goal, Outcome
from rnea_ros.execution.trajectory_executor import TrajectoryExecutor
from rnea_ros.execution.turns import nearest
from rnea_ros.nodes.common.stamps import duration, nanoseconds
from rnea_ros.nodes.scaling.health import ScalingHealth

try:
    from control_msgs.action import FollowJointTrajectory
except ImportError:
    FollowJointTrajectory = None

PERIOD = 0.05  # s; between two messages of feedback
WAIT = 0.1  # s; that rclpy's executor is given for what it has to do
CODES = {"path_tolerance": "PATH_TOLERANCE_VIOLATED", "goal_tolerance": "GOAL_TOLERANCE_VIOLATED",
         "unknown_joint": "INVALID_JOINTS", "duplicate_joint": "INVALID_JOINTS", "joint_not_named": "INVALID_JOINTS",
         "too_late": "OLD_HEADER_TIMESTAMP"}  # the others: INVALID_GOAL


def _ordered(point: JointTrajectoryPoint, order: list[int]) -> JointTrajectoryPoint:
    """With the joints in an order."""
    made = JointTrajectoryPoint(time_from_start=point.time_from_start)
    for name in ("positions", "velocities", "accelerations", "effort"):
        values = getattr(point, name)
        if len(values) > max(order):
            setattr(made, name, [values[k] for k in order])
    return made


class Server(ActionServer):
    """Others execute the goals; what rclpy executes is the end of one, and so it answers who asked for the result."""

    def __init__(self, node: Node, kind: Any, name: str, **callbacks: Any):
        super().__init__(node, kind, name, execute_callback=lambda handle: kind.Result(), **callbacks)

    def notify_execute(self, goal_handle: Any, execute_callback: Any) -> None:
        if execute_callback is not None:
            super().notify_execute(goal_handle, execute_callback)


@dataclass(eq=False)
class ActiveGoal:
    """A goal that was accepted, and what became of it."""

    handle: Any
    then: Callable[[ActiveGoal], None]
    outcome: Outcome = field(default_factory=Outcome)

    def on_end(self, outcome: Outcome) -> None:
        """Called once, by any thread."""
        self.outcome = outcome
        self.then(self)


class FollowAction:
    """Serves the action.

    read     : a message as a goal; may raise Rejected
    attempt  : does what it is given; what is refused on the way is counted and returned
    measured : joint names -> positions (n,), NaN where nothing tells
    """

    def __init__(self, node: Node, executor: TrajectoryExecutor, health: ScalingHealth,
                 read: Callable[[JointTrajectory], Goal],
                 attempt: Callable[[Callable[[], object]], Rejected | None], measured: Callable[[tuple[str, ...]], np.ndarray],
                 kind: Any = FollowJointTrajectory, server: Any = Server):
        self._node, self._executor, self._health, self._kind = node, executor, health, kind
        self._read, self._attempt, self._measured = read, attempt, measured
        self._active: list[ActiveGoal] = []
        self._server = server(node, kind, "~/follow_joint_trajectory", goal_callback=self._consider,
                              handle_accepted_callback=self._accept, cancel_callback=self._cancel)
        self._timer = node.create_timer(PERIOD, self._publish_feedback, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self._timer.cancel()  # until there is something to tell

    def destroy(self) -> None:
        self._server.destroy()

    def flush(self) -> None:
        """Called by another thread: wait until who asked for a result has it, if the executor takes its turns."""
        for _ in range(3):  # what ended is concluded, its result is sent; which comes first in a turn differs among rclpys
            turned = threading.Event()
            self._node.executor.create_task(turned.set)
            turned.wait(WAIT)

    # all that follows is called by the executor

    def _consider(self, request: Any) -> GoalResponse:
        self._health.trajectories.received += 1
        return GoalResponse.REJECT if self._attempt(lambda: self._check(request)) else GoalResponse.ACCEPT

    def _check(self, request: Any) -> None:
        """Raises Rejected."""
        if request.multi_dof_trajectory.points:
            raise Rejected("multi_dof", "multi_dof_trajectory is for planar and floating joints, which have no reference here")
        self._executor.check(self._goal(request), self._node.get_clock().now().nanoseconds)

    def _goal(self, request: Any) -> Goal:
        """With its tolerances; those of joints of several degrees of freedom are nobody's here. Raises Rejected."""
        goal = self._read(request.trajectory)
        given = request.path_tolerance, request.goal_tolerance, 1e-9 * nanoseconds(request.goal_time_tolerance)
        return replace(goal, tolerances=tolerances.read(goal.joint_names, *given))

    def _accept(self, handle: Any) -> None:
        active = ActiveGoal(handle, lambda it: self._server.notify_execute(handle, lambda _: self._conclude(it)))
        self._active.append(active)
        self._timer.reset()
        handle.execute()  # says that it is being executed

        def take() -> None:
            goal = replace(self._goal(handle.request), on_end=active.on_end)
            self._executor.take(goal, self._node.get_clock().now().nanoseconds)

        rejected = self._attempt(take)
        if rejected is not None:
            active.on_end(Outcome(rejected.reason, rejected.detail))

    def _cancel(self, handle: Any) -> CancelResponse:
        found = [active for active in self._active if active.handle == handle]
        failed = self._attempt(lambda: [self._executor.stop("the goal was cancelled", it.on_end) for it in found])
        return CancelResponse.REJECT if failed else CancelResponse.ACCEPT

    def _conclude(self, active: ActiveGoal) -> Any:
        self._active.remove(active)
        if not self._active:
            self._timer.cancel()
        handle, code = active.handle, "SUCCESSFUL"
        if not active.outcome.reason:
            handle.succeed()
        elif handle.is_cancel_requested:
            handle.canceled()
        else:
            handle.abort()
            code = CODES.get(active.outcome.reason, "INVALID_GOAL")
        return self._kind.Result(error_code=getattr(self._kind.Result, code), error_string=active.outcome.sentence)

    def _publish_feedback(self) -> None:
        """Of the goal that moves."""
        if self._health.last is None or self._health.last[0] is not self._executor.motion:
            return
        motion, sample = self._health.last
        for active in self._active:
            if active.on_end == motion.goal.on_end:
                points = len(active.handle.request.trajectory.points)
                active.handle.publish_feedback(self._feedback(motion, sample, points))

    def _feedback(self, motion: ExecutedMotion, sample: Sample, points: int) -> Any:
        reference, times = sample.reference, motion.goal.times
        message = self._kind.Feedback(joint_names=list(motion.joint_names))
        message.header.stamp = self._node.get_clock().now().to_msg()
        message.desired = JointTrajectoryPoint(
            positions=reference.q.tolist(), velocities=reference.qd.tolist(), accelerations=reference.qdd.tolist(),
            effort=sample.commanded_effort.tolist(), time_from_start=duration(reference.t))
        told, measured = self._executor.follower.feedback, self._measured(motion.joint_names)
        if told is not None and set(told.joint_names) >= set(motion.joint_names):
            order = [told.joint_names.index(name) for name in motion.joint_names]
            message.actual, message.error = _ordered(told.actual, order), _ordered(told.error, order)
        elif not np.isnan(measured).any():
            message.actual = JointTrajectoryPoint(positions=measured.tolist())
            error = reference.q - nearest(measured, reference.q, motion.turns)
            message.error = JointTrajectoryPoint(positions=error.tolist())
        if hasattr(message, "index"):  # of newer versions: the point that comes next, of those that were sent
            following = int(np.searchsorted(times, sample.planned)) - (len(times) - points)
            message.index = min(max(following, 0), points - 1)
        return message
