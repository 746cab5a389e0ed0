from enum import IntEnum

from rclpy.guard_condition import GuardCondition

class SignalHandlerOptions(IntEnum):
    NO = 0
    SIGINT = 1
    SIGTERM = 2
    ALL = 3

def install_signal_handlers(options: SignalHandlerOptions = ...) -> None: ...

class SignalHandlerGuardCondition(GuardCondition): ...
