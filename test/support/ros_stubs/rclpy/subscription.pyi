from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.waitable import Waitable

HUMBLE: bool

if HUMBLE:  # noqa: SIM108 -- a type checker follows this alone
    Taken = Callable[[Any], Any]
else:
    Taken = Callable[[Any], Any] | Callable[[Any, Any], Any]

class Subscription:
    msg_type: Any
    callback: Callable[..., Any]
    callback_group: CallbackGroup
    raw: bool
    served_last: bool  # rnea_ros's own marks on one; neither rclpy has slots
    is_rare: bool
    event_handlers: Sequence[Waitable]
    if not HUMBLE:  # a callback of two arguments receives the message info, too
        class CallbackType(Enum):
            MessageOnly = 0
            WithMessageInfo = 1
        _callback_type: CallbackType
    @property
    def handle(self) -> rclpy_implementation.Subscription: ...
    @property
    def topic_name(self) -> str: ...
