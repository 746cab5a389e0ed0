from collections.abc import Callable
from enum import IntEnum
from typing import Any

from rclpy.duration import Duration
from rclpy.time import Time

class ClockType(IntEnum):
    ROS_TIME = 1
    SYSTEM_TIME = 2
    STEADY_TIME = 3

class JumpThreshold:
    def __init__(self, *, min_forward: Duration | None, min_backward: Duration | None,
                 on_clock_change: bool = True) -> None: ...

class TimeJump:
    @property
    def clock_change(self) -> Any: ...
    @property
    def delta(self) -> Duration: ...

class JumpHandle:
    def unregister(self) -> None: ...

class Clock:
    def __init__(self, *, clock_type: ClockType = ...) -> None: ...
    def now(self) -> Time: ...
    def create_jump_callback(self, threshold: JumpThreshold, *, pre_callback: Callable[[], None] | None = None,
                             post_callback: Callable[[TimeJump], None] | None = None) -> JumpHandle: ...

class ROSClock(Clock):
    @property
    def ros_time_is_active(self) -> bool: ...
