"""A robot as dynamics_node serves it, and parameters that have no effect on it."""

from __future__ import annotations

from rnea_ros import InputError, Robot
from rnea_ros.nodes.common.parameter_table import DYNAMICS
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.dynamics.kinds.combinations import ServedCombination
from rnea_ros.nodes.dynamics.kinds.served_robot import ServedRobot
from rnea_ros.nodes.dynamics.kinds.trees import ServedTree

FOR: dict[str, tuple[str, str]] = {  # parameters that only some robots read: the part that they need, in a word and in words
    **dict.fromkeys(("base.source", "base.motion_source"), ("base", "a robot whose base moves")),
    **dict.fromkeys(("platform.source", "platform.motion_source"), ("platform", "a parallel robot"))}


def served(robot: Robot, values: Values) -> ServedRobot:
    """Return the robot as the node serves it. Raises InputError where parameters contradict it."""
    found = ServedTree(robot) if robot.is_fixed_tree else ServedCombination(robot, values)
    if values["base.motion_source"] == "free" and not found.has_free_base and "base" in found.moved_parts:
        raise InputError(f"base.motion_source is 'free', which a {found.kind} does not serve: it is for combinations on base: "
                         "floating whose acceleration follows from the dynamics; allowed are estimated and desired")
    found.doubts = idle(found, values)
    return found


def idle(robot: ServedRobot, values: Values) -> tuple[str, ...]:
    """Return warnings about parameters that are set but have no effect on this robot."""
    given = [entry for entry in DYNAMICS if entry.name in FOR and values.get(entry.name, entry.default) != entry.default]
    return tuple(f"{entry.name} is '{values[entry.name]}', which has no effect: it is for {FOR[entry.name][1]}; this "
                 f"robot is a {robot.kind}" for entry in given if FOR[entry.name][0] not in robot.moved_parts)
