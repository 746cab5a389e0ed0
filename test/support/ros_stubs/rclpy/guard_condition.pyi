from collections.abc import Callable
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.context import Context
from rclpy.impl.implementation_singleton import rclpy_implementation

class GuardCondition:
    _executor_triggered: bool
    callback: Callable[[], Any] | None
    callback_group: CallbackGroup | None
    def __init__(self, callback: Callable[[], Any] | None, callback_group: CallbackGroup | None,
                 context: Context | None = None) -> None: ...
    @property
    def handle(self) -> rclpy_implementation.GuardCondition: ...
    def trigger(self) -> None: ...
    def destroy(self) -> None: ...
