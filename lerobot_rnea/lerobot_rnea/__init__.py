"""LeRobot arms that execute the action chunks of policies inside the limits of a robot, without ROS.

`JointMapping` and `ActionStream` need rnea_ros alone. `ProtectedRobot`, `ProtectedRobotConfig` and `ProtectChunks` are
subclasses of LeRobot's classes, which are imported when one of these names is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .config_protected_robot import ProtectedRobotConfig
    from .joint_mapping import JointMapping
    from .processor import ProtectChunks
    from .protected_robot import ProtectedRobot
    from .stream import ActionStream

__all__ = ["ActionStream", "JointMapping", "ProtectChunks", "ProtectedRobot", "ProtectedRobotConfig"]
_MODULES = {"ActionStream": "stream", "JointMapping": "joint_mapping", "ProtectChunks": "processor",
            "ProtectedRobot": "protected_robot", "ProtectedRobotConfig": "config_protected_robot"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
