"""What is handed out to a controller, as goals of its action FollowJointTrajectory: each replaces the one before."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.action import ActionClient
from rclpy.node import Node

from rnea_ros.errors import in_words
from rnea_ros.execution.goal import Outcome
from rnea_ros.nodes.common.answers import heard

SUCCEEDED, CANCELED = 4, 5  # of action_msgs/GoalStatus
CANCELS, OVER = 0, 3  # return codes of action_msgs/CancelGoal: it does; the goal has ended already
STOPPED = 1.0  # s; nobody looks so seldom but a process that was stopped
REASONS = {-4: "path_tolerance", -5: "goal_tolerance"}  # by error_code; the others are the controller's own


class GoalClient(ActionClient):
    """rclpy's, whose goals any thread may send: the executor looks at no answer before it is known who hears of it."""

    def __init__(self, *given: Any, **options: Any):
        self._sending = threading.Lock()
        super().__init__(*given, **options)

    def send(self, goal: Any, feedback: Callable[[Any], None], listen: Callable[[Any], None]) -> None:
        """listen is called with the future."""
        with self._sending:
            listen(self.send_goal_async(goal, feedback_callback=feedback))

    async def execute(self, taken_data: Any) -> None:
        with self._sending:
            pass
        await super().execute(taken_data)


class ControllerGoals:
    """A goal that was replaced comes to nothing, which is as it should be: only of the newest one anything is told.

    outcome    : of the newest, where it has succeeded
    feedback   : the last of it
    on_failure : called by the executor with (reason, sentence) where it was rejected, aborted, or cancelled by others, or
                 where something failed on the way
    client     : of the action
    post       : has the executor call something
    """

    def __init__(self, node: Node, kind: Any, name: str, on_failure: Callable[[str, str], None], client: Any = GoalClient,
                 post: Callable[[Callable[[], None]], Any] | None = None):
        self._client, self._on_failure = client(node, kind, f"{name}/follow_joint_trajectory"), on_failure
        self._post = post or (lambda act: node.executor.create_task(act))
        self._newest, self._unwanted = 0, 0  # goals are counted; up to here they are to be cancelled
        self._accepted: Any = None  # the newest that was
        self._asked = self._looked = math.inf  # when it was asked for what it has not answered; when that was looked at [s]
        self.outcome: Outcome | None = None
        self.feedback: Any = None

    @property
    def ready(self) -> bool:
        """Whether the action is there."""
        return bool(self._client.server_is_ready())

    def overdue(self, timeout: float) -> bool:
        """Whether what was asked last has had no answer for that long [s]; that is told once. To be called often: an answer
        that came while this process was stopped still has to be taken."""
        now, before = time.monotonic(), self._looked
        self._looked = now
        if now - before > STOPPED and self._asked < now:
            self._asked = now
        late = now - self._asked > timeout
        if late:
            self._asked = math.inf
        return late

    def destroy(self) -> None:
        self._client.destroy()

    def send(self, goal: Any, on_accepted: Callable[[], None]) -> None:
        """At once, by any thread; on_accepted is called by the executor."""
        self._newest += 1
        self.outcome = self.feedback = None
        self._asked, number = time.monotonic(), self._newest
        try:
            self._client.send(goal, partial(self._hear, number),
                              lambda sent: heard(sent, partial(self._answered, number, on_accepted), self._failed))
        except Exception as error:
            self._post(partial(self._failed, in_words(error)))

    def cancel(self) -> None:
        """By any thread: the controller is to hold the robot where it is, whatever it has accepted or will."""
        self._unwanted = self._newest
        self._newest += 1
        self._post(self._cancel)

    # ------------------------------------------------------------------ in the executor

    def _failed(self, why: str) -> None:
        self._asked = math.inf
        self._on_failure("internal_error", why)

    def _cancel(self) -> None:
        accepted, self._accepted = self._accepted, None
        if accepted is None:
            return
        self._asked = time.monotonic()
        try:
            heard(accepted.cancel_goal_async(), self._cancelled, self._failed)
        except Exception as error:
            self._failed(in_words(error))

    def _cancelled(self, answer: Any) -> None:
        self._asked = math.inf
        if answer.return_code not in (CANCELS, OVER):
            self._on_failure("controller_refused", "it does not cancel its goal, and may go on to the end of it: return code "
                                                   f"{answer.return_code}")

    def _hear(self, number: int, message: Any) -> None:
        if number == self._newest:
            self.feedback = message.feedback

    def _answered(self, number: int, on_accepted: Callable[[], None], handle: Any) -> None:
        if number == self._newest:
            self._asked = math.inf
        if handle.accepted:
            self._accepted = handle
            heard(handle.get_result_async(), partial(self._ended, number), self._failed)
            if number <= self._unwanted:
                self._cancel()
            on_accepted()
        elif number == self._newest:
            self._on_failure("controller_refused", "it rejected the goal: its log says why")

    def _ended(self, number: int, answer: Any) -> None:
        if number != self._newest:
            return
        status, result = answer.status, answer.result
        if status == SUCCEEDED:
            self.outcome = Outcome("", result.error_string)
            return
        own = "controller_canceled" if status == CANCELED else "controller_aborted"
        self._on_failure(REASONS.get(result.error_code, own), result.error_string or own.replace("_", " "))
