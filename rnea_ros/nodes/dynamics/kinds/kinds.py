"""Which class of nodes/dynamics/kinds serves which class of robot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rnea_ros import (
    AnyRobot,
    GeneralRobot,
    InputError,
    Robot,
)
from rnea_ros.errors import some
from rnea_ros.nodes.common.parameter_table import DYNAMICS
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.dynamics.kinds.combinations import ServedCombination
from rnea_ros.nodes.dynamics.kinds.served_robot import ServedRobot
from rnea_ros.nodes.dynamics.kinds.trees import ServedTree

SERVED: dict[type, Callable[[Any, Values], ServedRobot]] = {
    Robot: lambda robot, values: ServedTree(robot),
    GeneralRobot: lambda robot, values: ServedCombination(robot, values),
}

FOR: dict[str, tuple[str, str]] = {  # parameters that only some robots read: the part that they need, in a word and in words
    **dict.fromkeys(("base.source", "base.motion_source"), ("base", "a robot whose base moves")),
    **dict.fromkeys(("platform.source", "platform.motion_source"), ("platform", "a parallel robot"))}


def served(robot: AnyRobot, values: Values) -> ServedRobot:
    """A robot as the node serves it. Raises InputError for a kind that is not served."""
    made = SERVED.get(type(robot))
    if made is None:
        raise InputError(f"the robot file makes '{robot.name}' a {type(robot).__name__}, which this node does not serve; it "
                         f"serves {some(kind.__name__ for kind in SERVED)}")
    found = made(robot, values)
    if values["base.motion_source"] == "free" and not found.has_free_base and "base" in found.moved_parts:
        raise InputError(f"base.motion_source is 'free', which a {found.kind} does not serve: it is for combinations on base: "
                         "floating whose acceleration follows from the dynamics; allowed are estimated and desired")
    found.doubts = idle(found, values)
    return found


def idle(robot: ServedRobot, values: Values) -> tuple[str, ...]:
    """Parameters that were given although nothing of this kind of robot reads them, a sentence each."""
    given = [entry for entry in DYNAMICS if entry.name in FOR and values.get(entry.name, entry.default) != entry.default]
    return tuple(f"{entry.name} is '{values[entry.name]}', which means nothing here: it is for {FOR[entry.name][1]}; this "
                 f"robot is a {robot.kind}" for entry in given if FOR[entry.name][0] not in robot.moved_parts)
