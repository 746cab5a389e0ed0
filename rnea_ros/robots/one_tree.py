"""OneTree: what a robot that is made around one tree says of itself as that tree does."""

from __future__ import annotations

from ..errors import summary
from ..model.tree import Limits
from .robot import Robot


class OneTree:
    """Of a robot whose links are a tree, `robot`, and whose coordinates are that tree's."""

    __repr__ = summary

    robot: Robot

    @property
    def name(self) -> str:
        """Of the robot, as the URDF has it."""
        return self.robot.name

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Of the n coordinates, in the order of every array."""
        return self.robot.joint_names

    @property
    def joint_types(self) -> tuple[str, ...]:
        """revolute, continuous or prismatic, in the order of joint_names."""
        return self.robot.joint_types

    @property
    def n(self) -> int:
        """How many coordinates q has."""
        return self.robot.n

    @property
    def limits(self) -> Limits:
        """In the order of joint_names; NaN where unknown."""
        return self.robot.limits
