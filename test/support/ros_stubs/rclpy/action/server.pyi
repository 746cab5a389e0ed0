from collections.abc import Callable
from enum import Enum
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.waitable import Waitable

class GoalResponse(Enum):
    REJECT = 1
    ACCEPT = 2

class CancelResponse(Enum):
    REJECT = 1
    ACCEPT = 2

class ServerGoalHandle:
    @property
    def request(self) -> Any: ...
    @property
    def goal_id(self) -> Any: ...
    @property
    def is_active(self) -> bool: ...
    @property
    def is_cancel_requested(self) -> bool: ...
    @property
    def status(self) -> int: ...
    def execute(self, execute_callback: Callable[[ServerGoalHandle], Any] | None = None) -> None: ...
    def publish_feedback(self, feedback: Any) -> None: ...
    def succeed(self) -> None: ...
    def abort(self) -> None: ...
    def canceled(self) -> None: ...

class ActionServer(Waitable):
    def __init__(self, node: Node, action_type: Any, action_name: str,
                 execute_callback: Callable[[ServerGoalHandle], Any], *, callback_group: CallbackGroup | None = None,
                 goal_callback: Callable[[Any], Any] = ..., handle_accepted_callback: Callable[[ServerGoalHandle], Any] = ...,
                 cancel_callback: Callable[[Any], Any] = ..., goal_service_qos_profile: QoSProfile = ...,
                 result_service_qos_profile: QoSProfile = ..., cancel_service_qos_profile: QoSProfile = ...,
                 feedback_pub_qos_profile: QoSProfile = ..., status_pub_qos_profile: QoSProfile = ...,
                 result_timeout: int = ...) -> None: ...
    def notify_execute(self, goal_handle: ServerGoalHandle, execute_callback: Callable[[ServerGoalHandle], Any] | None
                       ) -> None: ...
    def destroy(self) -> None: ...
