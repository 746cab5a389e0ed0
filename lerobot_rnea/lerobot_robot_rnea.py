"""Plugin that LeRobot imports by its name: registers `--robot.type=rnea_protected` and the processor steps."""

from lerobot_rnea import ProtectChunks, ProtectedRobotConfig

__all__ = ["ProtectChunks", "ProtectedRobotConfig"]
