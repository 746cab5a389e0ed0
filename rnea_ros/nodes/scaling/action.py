"""Server of the action ~/follow_joint_trajectory of scaling_node, which MoveIt and others use. It requires control_msgs.

A goal is a trajectory, as on ~/joint_trajectory, with a result for its sender. Invalid goals are rejected. A goal that cannot
be prepared, or must stop, is aborted once the robot is at rest. If a goal is cancelled, or the robot deviates from the path by
more than path_tolerance, the motion stops on its path and the goal ends at rest. A goal succeeds when the robot is within
goal_tolerance; without a goal_tolerance, when the last reference is at the goal, or at once if the robot is there already.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_ros.errors import Rejected
from rnea_ros.execution.executed_motion import ExecutedMotion, Sample
from rnea_ros.execution.executor import TrajectoryExecutor
from rnea_ros.execution.goal import Goal, Outcome, read_tolerances
from rnea_ros.execution.joint_states import unwrap_to
from rnea_ros.nodes.common.diagnostics import steady_timer
from rnea_ros.nodes.common.topics import duration, nanoseconds
from rnea_ros.nodes.scaling.diagnostics import ScalingDiagnostics

try:
    from control_msgs.action import FollowJointTrajectory
except ImportError:
    FollowJointTrajectory = None

FEEDBACK_PERIOD_S = 0.05
FLUSH_TIMEOUT_S = 0.1  # longest wait for one task of the rclpy executor
ERROR_CODES = {"path_tolerance": "PATH_TOLERANCE_VIOLATED", "goal_tolerance": "GOAL_TOLERANCE_VIOLATED",
         "unknown_joint": "INVALID_JOINTS", "duplicate_joint": "INVALID_JOINTS", "joint_not_named": "INVALID_JOINTS",
         "too_late": "OLD_HEADER_TIMESTAMP"}  # all others: INVALID_GOAL


def _reordered(point: JointTrajectoryPoint, order: list[int]) -> JointTrajectoryPoint:
    """Return a point with its joints in another order; order: index of each new joint in the old point."""
    reordered = JointTrajectoryPoint(time_from_start=point.time_from_start)
    for name in ("positions", "velocities", "accelerations", "effort"):
        values = getattr(point, name)
        if len(values) > max(order):
            setattr(reordered, name, [values[k] for k in order])
    return reordered


class DeferredActionServer(ActionServer):
    """Action server for goals that TrajectoryExecutor executes.

    rclpy's execute callback runs only at the end of a goal, to send its result.
    """

    def __init__(self, node: Node, kind: Any, name: str, **callbacks: Any):
        super().__init__(node, kind, name, execute_callback=lambda handle: kind.Result(), **callbacks)

    def notify_execute(self, goal_handle: Any, execute_callback: Any) -> None:
        if execute_callback is not None:
            super().notify_execute(goal_handle, execute_callback)


@dataclass(eq=False)
class ActiveGoal:
    """Accepted goal and its outcome.

    handle     : goal handle of rclpy
    on_outcome : called with this object at the end of the goal
    """

    handle: Any
    on_outcome: Callable[[ActiveGoal], None]
    outcome: Outcome = field(default_factory=Outcome)

    def on_end(self, outcome: Outcome) -> None:
        """Store the outcome; called once, by any thread."""
        self.outcome = outcome
        self.on_outcome(self)


class FollowJointTrajectoryServer:
    """Server of the action.

    read     : function that converts a message to a goal; may raise Rejected
    attempt  : function that calls its argument, and counts and returns the Rejected that this raises, else None
    measured : function that returns the measured positions (n,) of joint names [rad, m]; NaN for unmeasured joints
    kind     : type of the action
    server   : class of the action server
    """

    def __init__(self, node: Node, executor: TrajectoryExecutor, health: ScalingDiagnostics,
                 read: Callable[[JointTrajectory], Goal],
                 attempt: Callable[[Callable[[], object]], Rejected | None], measured: Callable[[tuple[str, ...]], np.ndarray],
                 kind: Any = FollowJointTrajectory, server: Any = DeferredActionServer):
        self._node, self._executor, self._health, self._kind = node, executor, health, kind
        self._read, self._attempt, self._measured = read, attempt, measured
        self._active: list[ActiveGoal] = []
        self._server = server(node, kind, "~/follow_joint_trajectory", goal_callback=self._on_goal,
                              handle_accepted_callback=self._on_accepted, cancel_callback=self._on_cancel)
        self._timer = steady_timer(node, FEEDBACK_PERIOD_S, self._publish_feedback)
        self._timer.cancel()  # until there is a goal

    def destroy(self) -> None:
        self._server.destroy()

    def flush(self) -> None:
        """Wait until results have been sent, if the rclpy executor runs. Call it from another thread than the executor."""
        for _ in range(3):  # end of the goal, then its result; their order within one spin depends on the rclpy version
            has_run = threading.Event()
            self._node.executor.create_task(has_run.set)
            has_run.wait(FLUSH_TIMEOUT_S)

    # ------------------------------------------------------------------ callbacks of the rclpy executor

    def _on_goal(self, request: Any) -> GoalResponse:
        self._health.trajectories.received += 1
        return GoalResponse.REJECT if self._attempt(lambda: self._check(request)) else GoalResponse.ACCEPT

    def _check(self, request: Any) -> None:
        """Raise Rejected if a goal is invalid."""
        if request.multi_dof_trajectory.points:
            raise Rejected("multi_dof", "multi_dof_trajectory has points; planar and floating joints are not supported. "
                                        "Send joint positions in `trajectory`")
        self._executor.check(self._goal(request), self._node.get_clock().now().nanoseconds)

    def _goal(self, request: Any) -> Goal:
        """Return the goal of a request with its tolerances; multi_dof tolerances are ignored. Raises Rejected."""
        goal = self._read(request.trajectory)
        goal_time_s = 1e-9 * nanoseconds(request.goal_time_tolerance)
        tolerances = read_tolerances(goal.joint_names, request.path_tolerance, request.goal_tolerance, goal_time_s)
        return replace(goal, tolerances=tolerances)

    def _on_accepted(self, handle: Any) -> None:
        active = ActiveGoal(handle, lambda it: self._server.notify_execute(handle, lambda _: self._conclude(it)))
        self._active.append(active)
        self._timer.reset()
        handle.execute()

        def accept() -> None:
            goal = replace(self._goal(handle.request), on_end=active.on_end)
            self._executor.accept(goal, self._node.get_clock().now().nanoseconds)

        rejected = self._attempt(accept)
        if rejected is not None:
            active.on_end(Outcome(rejected.reason, rejected.detail))

    def _on_cancel(self, handle: Any) -> CancelResponse:
        cancelled = [active for active in self._active if active.handle == handle]
        failed = self._attempt(lambda: [self._executor.stop("the goal was cancelled", it.on_end) for it in cancelled])
        return CancelResponse.REJECT if failed else CancelResponse.ACCEPT

    def _conclude(self, active: ActiveGoal) -> Any:
        self._active.remove(active)
        if not self._active:
            self._timer.cancel()
        handle, code = active.handle, "SUCCESSFUL"
        if active.outcome.reason in ("", "nowhere_to_go"):  # the second: the robot is at the goal already
            handle.succeed()
        elif handle.is_cancel_requested:
            handle.canceled()
        else:
            handle.abort()
            code = ERROR_CODES.get(active.outcome.reason, "INVALID_GOAL")
        return self._kind.Result(error_code=getattr(self._kind.Result, code), error_string=active.outcome.message)

    def _publish_feedback(self) -> None:
        """Publish feedback for the goal that is executed."""
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
        feedback, measured = self._executor.follower.feedback, self._measured(motion.joint_names)
        if feedback is not None and set(feedback.joint_names) >= set(motion.joint_names):
            order = [feedback.joint_names.index(name) for name in motion.joint_names]
            message.actual, message.error = _reordered(feedback.actual, order), _reordered(feedback.error, order)
        elif not np.isnan(measured).any():
            message.actual = JointTrajectoryPoint(positions=measured.tolist())
            error = reference.q - unwrap_to(measured, reference.q, motion.continuous)
            message.error = JointTrajectoryPoint(positions=error.tolist())
        if hasattr(message, "index"):  # index of the next received point, in newer versions of control_msgs
            next_point = int(np.searchsorted(times, sample.planned_time)) - (len(times) - points)
            message.index = min(max(next_point, 0), points - 1)
        return message
