"""Clients of a controller: its action FollowJointTrajectory, its parameters, and its controller manager.

None of them waits for an answer; `on_future_done` reports each answer or why there is none.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python

from rnea_ros.errors import in_words
from rnea_ros.execution.controller import Finding
from rnea_ros.execution.goal import Outcome
from rnea_ros.nodes.common.diagnostics import on_result as on_future_done

try:
    from controller_manager_msgs.srv import ListControllers
except ImportError:
    ListControllers = None

SUCCEEDED, CANCELED = 4, 5  # of action_msgs/GoalStatus
CANCEL_ACCEPTED, ALREADY_ENDED = 0, 3  # return codes of action_msgs/CancelGoal
REASONS = {-4: "path_tolerance", -5: "goal_tolerance"}  # by error_code; all others are specific to the controller
SUSPENDED_S = 1.0  # interval between two calls of is_overdue from which this process was suspended
RETRY_S = 2.0  # interval after which a request is repeated: an answer may be lost
CONTROLLER_TYPE = "joint_trajectory_controller/JointTrajectoryController"


class GoalClient(ActionClient):
    """Action client whose goals may be sent by any thread.

    The executor processes no answer before the callback of its goal is set.
    """

    def __init__(self, *args: Any, **options: Any):
        self._sending = threading.Lock()
        super().__init__(*args, **options)

    def send(self, goal: Any, on_feedback: Callable[[Any], None], on_sent: Callable[[Any], None]) -> None:
        """Send a goal, and call on_sent with its future."""
        with self._sending:
            on_sent(self.send_goal_async(goal, feedback_callback=on_feedback))

    async def execute(self, taken_data: Any) -> None:
        with self._sending:
            pass
        await super().execute(taken_data)


class ControllerGoals:
    """Goals of a controller's action. Each replaces the one before; only the newest one is reported.

    outcome    : outcome of the newest goal, where it has succeeded
    feedback   : last feedback of the newest goal
    on_failure : called by the executor with (reason, message) where the newest goal was rejected, aborted, or cancelled by
                 another client, or where a request failed
    client     : class of the action client
    post       : function that has the executor call a function
    """

    def __init__(self, node: Node, kind: Any, name: str, on_failure: Callable[[str, str], None], client: Any = GoalClient,
                 post: Callable[[Callable[[], None]], Any] | None = None):
        self._client, self._on_failure = client(node, kind, f"{name}/follow_joint_trajectory"), on_failure
        self._post = post or (lambda act: node.executor.create_task(act))
        self._newest, self._cancel_up_to = 0, 0  # goals are numbered; up to the second one they are to be cancelled
        self._accepted: Any = None  # handle of the newest accepted goal
        self._requested_at = self._checked_at = math.inf  # of the request without answer, and of the last is_overdue [s]
        self.outcome: Outcome | None = None
        self.feedback: Any = None

    @property
    def is_ready(self) -> bool:
        """True if the action server exists."""
        return bool(self._client.server_is_ready())

    def is_overdue(self, timeout: float) -> bool:
        """Return, once, whether the last request has had no answer for a timeout [s].

        Call this often: an answer that arrived while this process was suspended still has to be processed.
        """
        now, before = time.monotonic(), self._checked_at
        self._checked_at = now
        if now - before > SUSPENDED_S and self._requested_at < now:
            self._requested_at = now
        overdue = now - self._requested_at > timeout
        if overdue:
            self._requested_at = math.inf
        return overdue

    def destroy(self) -> None:
        self._client.destroy()

    def send(self, goal: Any, on_accepted: Callable[[], None]) -> None:
        """Send a goal at once, from any thread; on_accepted is called by the executor."""
        self._newest += 1
        self.outcome = self.feedback = None
        self._requested_at, number = time.monotonic(), self._newest
        try:
            self._client.send(goal, partial(self._on_feedback, number), lambda sent: on_future_done(
                sent, partial(self._on_answer, number, on_accepted), self._on_request_failed))
        except Exception as error:
            self._post(partial(self._on_request_failed, in_words(error)))

    def cancel(self) -> None:
        """Cancel all goals that were sent, from any thread: the controller holds the robot where it is."""
        self._cancel_up_to = self._newest
        self._newest += 1
        self._post(self._cancel_accepted)

    # ------------------------------------------------------------------ called by the executor

    def _on_request_failed(self, why: str) -> None:
        self._requested_at = math.inf
        self._on_failure("internal_error", why)

    def _cancel_accepted(self) -> None:
        accepted, self._accepted = self._accepted, None
        if accepted is None:
            return
        self._requested_at = time.monotonic()
        try:
            on_future_done(accepted.cancel_goal_async(), self._on_cancelled, self._on_request_failed)
        except Exception as error:
            self._on_request_failed(in_words(error))

    def _on_cancelled(self, answer: Any) -> None:
        self._requested_at = math.inf
        if answer.return_code not in (CANCEL_ACCEPTED, ALREADY_ENDED):
            self._on_failure("controller_refused", "it does not cancel its goal, and may go on to the end of it: return code "
                             f"{answer.return_code}")

    def _on_feedback(self, number: int, message: Any) -> None:
        if number == self._newest:
            self.feedback = message.feedback

    def _on_answer(self, number: int, on_accepted: Callable[[], None], handle: Any) -> None:
        if number == self._newest:
            self._requested_at = math.inf
        if handle.accepted:
            self._accepted = handle
            on_future_done(handle.get_result_async(), partial(self._on_result, number), self._on_request_failed)
            if number <= self._cancel_up_to:
                self._cancel_accepted()
            on_accepted()
        elif number == self._newest:
            self._on_failure("controller_refused", "it rejected the goal: see its log for the reason")

    def _on_result(self, number: int, answer: Any) -> None:
        if number != self._newest:
            return
        status, result = answer.status, answer.result
        if status == SUCCEEDED:
            self.outcome = Outcome("", result.error_string)
            return
        reason = "controller_canceled" if status == CANCELED else "controller_aborted"
        self._on_failure(REASONS.get(result.error_code, reason), result.error_string or reason.replace("_", " "))


class RemoteParameters:
    """Parameters of another node. Only those that it has are requested: one that it has not spoils the whole answer.

    values  : parameters by name; None until they arrive, and again when the node has gone or its answer failed
    problem : why they have not arrived, where known
    """

    def __init__(self, node: Node, name: str, is_wanted: Callable[[str], bool]):
        self._node, self._is_wanted = node, is_wanted
        self._clients: list[Any] = [node.create_client(kind, f"{name}/{service}") for kind, service in
                                    ((ListParameters, "list_parameters"), (GetParameters, "get_parameters"))]
        self.values: dict[str, Any] | None = None
        self.problem = ""
        self._requested_at = 0.0
        self._pending: tuple[Any, Any] | None = None  # client and future of the last request

    def update(self, again: bool = False) -> None:
        """Request the parameters if they are unknown, or `again`; call this repeatedly from the executor."""
        if not all(client.service_is_ready() for client in self._clients):
            self.values, self._requested_at = None, 0.0
        elif (again or self.values is None) and time.monotonic() - self._requested_at > RETRY_S:
            if self._pending is not None:
                client, future = self._pending
                client.remove_pending_request(future)
            self._requested_at = time.monotonic()
            self._request(0, ListParameters.Request(), lambda answer: self._get(answer.result.names))

    def destroy(self) -> None:
        for client in self._clients:
            self._node.destroy_client(client)

    def _request(self, which: int, request: Any, on_answer: Callable[[Any], None]) -> None:
        future = self._clients[which].call_async(request)
        self._pending = self._clients[which], future
        on_future_done(future, on_answer, self._on_failure)

    def _get(self, names: list[str]) -> None:
        found = [name for name in names if self._is_wanted(name)]
        self._request(1, GetParameters.Request(names=found), lambda answer: self._set(found, answer.values))

    def _set(self, names: list[str], values: list[Any]) -> None:
        if len(values) != len(names):
            raise ValueError(f"{len(values)} values of {len(names)} parameters")
        found = {name: parameter_value_to_python(value) for name, value in zip(names, values)}
        self.values = {name: value for name, value in found.items() if value is not None}
        self.problem, self._pending = "", None

    def _on_failure(self, why: str) -> None:
        self.values, self.problem, self._pending = None, why, None


class ControllerManagerClient:
    """Client of list_controllers of the controller manager in the controller's namespace, where its messages are installed."""

    def __init__(self, node: Node, name: str, kind: Any = ListControllers):
        """kind: type of the service; None where it is not installed."""
        namespace, slash, self._name = name.rpartition("/")
        self._kind, self._node = kind, node
        self._service = f"{namespace}{slash}controller_manager/list_controllers"
        self._client = kind and node.create_client(kind, self._service)
        self._requested_at = 0.0
        self._pending: Any = None  # future of the request without answer
        self._findings: list[Finding] = []

    def destroy(self) -> None:
        if self._client:
            self._node.destroy_client(self._client)

    def update(self) -> None:
        """Request the state of the controller; call this repeatedly from the executor."""
        if not self._client or time.monotonic() - self._requested_at < RETRY_S:
            return
        self._requested_at, pending = time.monotonic(), self._pending
        if pending is not None:
            self._client.remove_pending_request(pending)
            self._on_failure("no answer")
        if self._client.service_is_ready():
            self._pending = self._client.call_async(self._kind.Request())
            on_future_done(self._pending, self._on_answer, self._on_failure)
        else:
            self._findings = []

    def findings(self) -> list[Finding]:
        """Return the problems by the last answer; where it failed, that the state is unknown."""
        return self._findings

    def _on_answer(self, answer: Any) -> None:
        self._pending = None
        self._findings = [finding for one in answer.controller if one.name == self._name for finding in _check_state(one)]

    def _on_failure(self, why: str) -> None:
        self._pending = None
        self._findings = [Finding(False, f"whether it is active is unknown, {self._service}: {why}")]


def _check_state(controller: Any) -> list[Finding]:
    found = []
    if controller.state != "active":
        found.append(Finding(True, f"it is {controller.state}: ros2 control set_controller_state {controller.name} active"))
    if controller.type != CONTROLLER_TYPE:
        found.append(Finding(False, f"its type is {controller.type}, and may execute trajectories differently from a "
                             f"{CONTROLLER_TYPE}"))
    return found
