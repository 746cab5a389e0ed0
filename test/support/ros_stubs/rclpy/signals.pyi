from enum import IntEnum

from rclpy.guard_condition import GuardCondition

class SignalHandlerOptions(IntEnum):
    NO = 0
    SIGINT = 1
    SIGTERM = 2
    ALL = 3

class SignalHandlerGuardCondition(GuardCondition): ...
