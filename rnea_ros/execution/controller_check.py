"""Whether a joint_trajectory_controller can play what it will be sent: by its parameters, before the first motion.

What is looked at is what its source does with them: of ros2_controllers, where unlike versions call things otherwise, of all.
A parameter that it does not have counts as its default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import some

Parameters = Mapping[str, Any]
PARAMETERS = ("joints", "command_interfaces", "state_interfaces", "interpolation_method", "allow_partial_joints_goal",
              "allow_nonzero_velocity_at_trajectory_end", "allow_trajectory_replacement", "interpolate_from_desired_state",
              "open_loop_control", "speed_scaling.initial_scaling_factor", "constraints.goal_time",
              "constraints.stopped_velocity_tolerance", "update_rate")


class Finding(NamedTuple):
    """What is wrong, and what to set; and whether no trajectory can be executed like that."""

    refuses: bool
    text: str


def findings(told: Parameters, joint_names: Sequence[str], values: Parameters) -> list[Finding]:
    """told: the controller's parameters; values: output, reference_effort and controller.interface of the sender."""
    streamed = values["output"] == "points"
    return [*_joints(told, joint_names), *(_points(told, values) if streamed else _trajectories(told)),
            *(_goals(told, streamed) if values["controller.interface"] == "action" else ())]


def _joints(told: Parameters, joint_names: Sequence[str]) -> Iterator[Finding]:
    theirs = told.get("joints") or joint_names
    missing = [name for name in joint_names if name not in theirs]
    more = [name for name in theirs if name not in joint_names]
    if missing:
        yield Finding(True, f"it has no {some(missing)}: let its joints be those of the robot description")
    elif more and not told.get("allow_partial_joints_goal", False):
        yield Finding(True, f"it also has {some(more)}, which nothing here moves: set its allow_partial_joints_goal")


def _points(told: Parameters, values: Parameters) -> Iterator[Finding]:
    """Each at once, and replaced by the next one."""
    if not told.get("allow_nonzero_velocity_at_trajectory_end", False):
        yield Finding(True, "it would refuse every point that moves, and go straight to the last one: set its "
                            "allow_nonzero_velocity_at_trajectory_end, or output: trajectory here")
    if values["reference_effort"] and "effort" not in told.get("command_interfaces", ("effort",)):
        yield Finding(True, "it refuses points with effort, having no such command interface: set reference_effort: false")
    if not told.get("interpolate_from_desired_state", told.get("open_loop_control", False)):
        yield Finding(False, "it begins each point where the robot is measured, behind its reference: set its "
                             "interpolate_from_desired_state, or output: trajectory here")


def _trajectories(told: Parameters) -> Iterator[Finding]:
    """Whole ones, by their stamps."""
    method, factor = told.get("interpolation_method", "splines"), told.get("speed_scaling.initial_scaling_factor", 1.0)
    if method != "splines":
        yield Finding(True, f"its interpolation_method is {method}: it would leap from point to point; set splines")
    if told.get("allow_trajectory_replacement", False):
        yield Finding(True, "what begins in the past, as each change here does, it would begin where it is just then, and the "
                            "robot leap: set its allow_trajectory_replacement: false")
    if factor != 1.0:
        yield Finding(True, f"its speed_scaling.initial_scaling_factor is {factor:g}: it would be late, and leap with each "
                            "change; set 1.0, and ~/override here")


def _goals(told: Parameters, streamed: bool) -> Iterator[Finding]:
    """By the action."""
    if streamed:
        yield Finding(True, "controller.interface action needs output trajectory or horizon: points are for its topic")
    within = [name for name, value in told.items() if name.startswith("constraints.") and name.endswith(".goal") and value]
    if not told.get("constraints.goal_time", 0.0) and within:
        yield Finding(False, "it waits without end for a robot that stays outside its constraints.<joint>.goal, or is faster "
                             "than constraints.stopped_velocity_tolerance: set its constraints.goal_time")
