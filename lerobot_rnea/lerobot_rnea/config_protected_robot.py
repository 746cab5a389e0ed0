"""Options of `--robot.type=rnea_protected`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import draccus
from lerobot.robots.config import RobotConfig

TYPE = "rnea_protected"


class ArmConfig(draccus.ChoiceRegistry):
    """Options of any robot of LeRobot but a protected one: options that contained themselves could not be listed by --help."""

    @classmethod
    def get_choice_class(cls, name: str) -> Any:
        """Return the options of a robot by its type."""
        return cls.get_known_choices()[name]

    @classmethod
    def get_known_choices(cls) -> dict[str, Any]:
        """Return the options of all robots by type."""
        return {name: found for name, found in RobotConfig.get_known_choices().items() if name != TYPE}

    @classmethod
    def get_choice_name(cls, subcls: type) -> str:
        """Return the type of options."""
        return RobotConfig.get_choice_name(subcls)


@RobotConfig.register_subclass(TYPE)
@dataclass(kw_only=True)
class ProtectedRobotConfig(RobotConfig):
    """Arm whose actions are executed inside the limits of a robot.

    arm             : the robot that is protected, with all its options: --robot.arm.type=so101_follower
    urdf            : path of its URDF
    robot_file      : path of its robot file, or the name of a profile of rnea_ros; none: limits of the URDF alone
    limits          : effort, effort_rate, velocity, acceleration or jerk of all joints: the smaller of these and the URDF's
    joints          : URDF joint by motor, where the names differ
    unprotected     : motors that are not joints of the URDF; their values are passed on unchanged
    units           : degrees, radians, range_m100_100 or range_0_100 by motor, where the arm does not say it
    offsets         : URDF position at the middle of a motor's recorded range, where that is not the URDF's middle [rad]
    reversed_motors : motors that turn against the URDF's joint
    fps             : rate of actions, and of the points of chunks: that of lerobot-rollout [Hz]
    rate            : rate of commands to the arm [Hz]
    delay           : time from a single action to its execution; none: lead and three periods [s]. Chunks have no delay
    lead            : time from the arrival of an action or chunk until it is executed [s]
    max_step        : largest step from action to action, and from the motion to an action [rad]
    tolerance       : largest distance from the policy's points where limits bind [rad]
    margin          : distance beyond a position limit within which an action is moved to the limit [rad]
    """

    arm: ArmConfig
    urdf: str
    robot_file: str | None = None
    limits: dict[str, float] = field(default_factory=dict)
    joints: dict[str, str] = field(default_factory=dict)
    unprotected: list[str] = field(default_factory=list)
    units: dict[str, str] = field(default_factory=dict)
    offsets: dict[str, float] = field(default_factory=dict)
    reversed_motors: list[str] = field(default_factory=list)
    fps: float = 30.0
    rate: float = 100.0
    delay: float | None = None
    lead: float = 0.05
    max_step: float = 0.5
    tolerance: float = 0.02
    margin: float = 0.05
