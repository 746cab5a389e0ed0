"""What a controller_manager says of a controller, where its messages are installed: whether it is active."""

from __future__ import annotations

import time
from typing import Any

from rclpy.node import Node

from rnea_ros.execution.controller_check import Finding
from rnea_ros.nodes.common.answers import heard

try:
    from controller_manager_msgs.srv import ListControllers
except ImportError:
    ListControllers = None

AGAIN = 2.0  # s; between two questions
TYPE = "joint_trajectory_controller/JointTrajectoryController"


class ManagerView:
    """By list_controllers of the manager in the controller's namespace; asked without waiting."""

    def __init__(self, node: Node, name: str, kind: Any = ListControllers):
        """kind: of the service; None where there is none."""
        namespace, slash, self._name = name.rpartition("/")
        self._kind, self._node = kind, node
        self._service = f"{namespace}{slash}controller_manager/list_controllers"
        self._client = kind and node.create_client(kind, self._service)
        self._asked = 0.0
        self._question: Any = None  # that has no answer yet
        self._found: list[Finding] = []

    def destroy(self) -> None:
        if self._client:
            self._node.destroy_client(self._client)

    def look(self) -> None:
        """Call this now and then, from the executor."""
        if not self._client or time.monotonic() - self._asked < AGAIN:
            return
        self._asked, question = time.monotonic(), self._question
        if question is not None:
            self._client.remove_pending_request(question)
            self._fail("no answer")
        if self._client.service_is_ready():
            self._question = self._client.call_async(self._kind.Request())
            heard(self._question, self._take, self._fail)
        else:
            self._found = []

    def findings(self) -> list[Finding]:
        """By the last answer; where there was none, that nothing is known."""
        return self._found

    def _take(self, answer: Any) -> None:
        self._question = None
        self._found = [finding for one in answer.controller if one.name == self._name for finding in _of(one)]

    def _fail(self, why: str) -> None:
        self._question = None
        self._found = [Finding(False, f"whether it is active is not known, {self._service}: {why}")]


def _of(controller: Any) -> list[Finding]:
    found = []
    if controller.state != "active":
        found.append(Finding(True, f"it is {controller.state}: ros2 control set_controller_state {controller.name} active"))
    if controller.type != TYPE:
        found.append(Finding(False, f"it is a {controller.type}, and may play trajectories otherwise than a {TYPE}"))
    return found
