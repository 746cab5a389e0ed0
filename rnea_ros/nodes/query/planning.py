"""~/plan_motion of query_node: plans motions in a separate thread, with feedback and cancellation."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from rclpy.action import ActionServer, CancelResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node

from rnea_msgs.action import PlanMotion
from rnea_ros import RneaError, Robot
from rnea_ros.errors import in_words
from rnea_ros.model.tree import Limits
from rnea_ros.nodes.common.run import Worker
from rnea_ros.nodes.query.messages import fill, plain
from rnea_ros.planning.problem import SolverProgress
from rnea_ros.query.trajectories import plan

PERIOD = 0.1  # s; between two messages of feedback, at least


class Cancelled(Exception):
    """The goal of the plan was cancelled."""


class PlanAction:
    """current: the robot that is planned for and its limits, or raises RneaError; model_id: of it."""

    def __init__(self, node: Node, worker: Worker, current: Callable[[], tuple[Robot, Limits]],
                 model_id: Callable[[], str]):
        self._node, self._worker, self._current, self._model_id = node, worker, current, model_id
        self._ending = threading.Event()
        self._server = ActionServer(node, PlanMotion, "~/plan_motion", execute_callback=self._execute,
                                    cancel_callback=lambda handle: CancelResponse.ACCEPT,
                                    callback_group=ReentrantCallbackGroup())

    def close(self) -> None:
        """Stop the current plan at its next iteration, and destroy the server."""
        self._ending.set()
        self._worker.close()
        self._server.destroy()

    async def _execute(self, handle: Any) -> Any:
        result, done = PlanMotion.Result(), handle.abort
        try:
            robot, limits = self._current()
            result.model_id = self._model_id()
            fill(result, await self._worker.run(plan, robot, plain(handle.request), limits, self._report(handle)))
            result.success, done = True, handle.succeed
        except Cancelled:
            result.message = "cancelled"
            if handle.is_cancel_requested:
                done = handle.canceled
        except Exception as error:  # the node survives every goal, and reports the error
            result.message = in_words(error)
            if not isinstance(error, RneaError):
                self._node.get_logger().error(traceback.format_exc(), throttle_duration_sec=10.0)
        done()
        return result

    def _report(self, handle: Any) -> Callable[[SolverProgress], None]:
        """Return the callback that planning calls after each iteration, in its own thread. It raises Cancelled."""
        last = 0.0

        def report(now: SolverProgress) -> None:
            nonlocal last
            if handle.is_cancel_requested or self._ending.is_set():
                raise Cancelled
            if time.monotonic() - last > PERIOD:
                last = time.monotonic()
                handle.publish_feedback(PlanMotion.Feedback(
                    stage=now.stage, iteration=now.iteration, duration=now.duration, control_points=now.control_points,
                    violation=max(now.violation, 0.0)))

        return report
