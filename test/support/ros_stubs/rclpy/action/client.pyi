from collections.abc import Callable
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.task import Future
from rclpy.waitable import Waitable

class ActionClient(Waitable):
    def __init__(self, node: Node, action_type: Any, action_name: str, *, callback_group: CallbackGroup | None = None,
                 goal_service_qos_profile: QoSProfile = ..., result_service_qos_profile: QoSProfile = ...,
                 cancel_service_qos_profile: QoSProfile = ..., feedback_sub_qos_profile: QoSProfile = ...,
                 status_sub_qos_profile: QoSProfile = ...) -> None: ...
    async def execute(self, taken_data: Any) -> None: ...
    def send_goal_async(self, goal: Any, feedback_callback: Callable[[Any], Any] | None = None, goal_uuid: Any = None
                        ) -> Future: ...
    def server_is_ready(self) -> bool: ...
    def destroy(self) -> None: ...
