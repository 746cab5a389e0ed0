"""How far a robot may be from where it is sent: what a goal asks for, in the place of what the parameters say.

As control_msgs has it: 0 is not given, so the default holds; -1 is no tolerance at all, whatever the default.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..errors import Rejected, near, shown, some
from .joint_state_buffer import Measurement

FIELDS = ("position", "velocity", "acceleration")
ERASED = -1.0


class JointTolerance(Protocol):
    """As control_msgs/JointTolerance."""

    name: str
    position: float
    velocity: float
    acceleration: float


class Tolerances(NamedTuple):
    """path : (3, n) of position, velocity and acceleration on the way; inf is no tolerance, NaN the default
    goal : the same at the end
    time : how much later than the last reference the robot may be inside of `goal` [s]; NaN the default
    """

    path: np.ndarray
    goal: np.ndarray
    time: float = math.nan

    def with_defaults(self, path: float, goal: float, time: float) -> Tolerances:
        """path, goal: of positions; 0 is none. Nobody has other defaults than of positions."""
        defaults = (np.array([[value or np.inf], [np.inf], [np.inf]]) for value in (path, goal))
        ways, ends = (np.where(np.isnan(asked), default, asked) for asked, default in zip(self[:2], defaults))
        return Tolerances(ways, ends, time if math.isnan(self.time) else self.time)

    def check(self, joint_names: Sequence[str], measured: Measurement) -> None:
        """Raises Rejected if nothing tells what a goal wants to be inside of a tolerance."""
        known = np.isfinite(np.stack((measured.q, measured.qd, np.full(len(joint_names), np.nan))))
        for name, asked in zip(("path_tolerance", "goal_tolerance"), self[:2]):
            field, joint = (np.argwhere(np.isfinite(asked) & ~known).tolist() or [[-1, -1]])[0]
            if field >= 0:
                raise Rejected("not_measured", f"{name} of the {FIELDS[field]} of {joint_names[joint]} cannot be kept: no "
                               "joint state tells it; 0 leaves it to the parameters, -1 is no tolerance")


def unasked(n: int) -> Tolerances:
    """Nothing but defaults."""
    return Tolerances(*np.full((2, 3, n), np.nan))


def read(joint_names: Sequence[str], path: Iterable[JointTolerance], goal: Iterable[JointTolerance],
         time: float = 0.0) -> Tolerances:
    """What a goal says. Raises Rejected."""
    rows = [_rows(joint_names, name, given) for name, given in (("path_tolerance", path), ("goal_tolerance", goal))]
    return Tolerances(rows[0], rows[1], math.inf if time < 0.0 else time or math.nan)


def _rows(joint_names: Sequence[str], field: str, given: Iterable[JointTolerance]) -> np.ndarray:
    rows = np.full((3, len(joint_names)), np.nan)
    for entry in given:
        if entry.name not in joint_names:
            raise Rejected("unknown_joint", f"{field}: {shown(entry.name)}; the robot has {some(joint_names, 32)}"
                                            f"{near(entry.name, joint_names)}")
        for row, quantity in zip(rows, FIELDS):
            value = getattr(entry, quantity)
            if not (value >= 0.0 or value == ERASED):
                raise Rejected("tolerance", f"{field}: {quantity} of {entry.name} is {value:g}; it must be above zero, 0 for "
                                            "the default or -1 for no tolerance")
            row[joint_names.index(entry.name)] = np.inf if value == ERASED else value or np.nan
    return rows


def tolerances(asked: Tolerances | None, n: int, values: Mapping[str, Any]) -> Tolerances:
    """Of a goal, over the parameters."""
    return (asked or unasked(n)).with_defaults(values["watch.path_tolerance"], values["watch.goal_tolerance"],
                                               values["watch.goal_time"] or math.inf)
