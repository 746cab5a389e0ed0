from enum import IntEnum

class ReliabilityPolicy(IntEnum):
    SYSTEM_DEFAULT = 0
    RELIABLE = 1
    BEST_EFFORT = 2

class DurabilityPolicy(IntEnum):
    SYSTEM_DEFAULT = 0
    TRANSIENT_LOCAL = 1
    VOLATILE = 2

class QoSPolicyKind(IntEnum):
    DEPTH = 128
    DURABILITY = 2
    HISTORY = 32
    RELIABILITY = 16

class QoSProfile:
    def __init__(self, *, depth: int = ..., reliability: ReliabilityPolicy = ...,
                 durability: DurabilityPolicy = ...) -> None: ...

qos_profile_sensor_data: QoSProfile
