"""A robot, its limits, and its dynamics along paths: what motions are made with."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..model import Limits
from ..path_dynamics import PathDynamics
from ..robot import Robot
from ..scaling.path import Path
from ..scaling.points import planned
from ..scaling.profile import PASS, check_rest
from ..scaling.replay import Replay
from ..scaling.terms import Constraints
from .goal import Goal, check_positions, placed, refusing
from .motion import Motion

STILL = 1e-9  # rad, m; between points that are all the same


class Equipment(NamedTuple):
    """`dynamics` is None where there can be none; `problem` says why."""

    robot: Robot
    limits: Limits
    dynamics: PathDynamics | None
    problem: str = ""

    def motion(self, number: int, goal: Goal, place: np.ndarray, values: Mapping[str, Any], solver: Executor) -> Motion:
        """A goal's motion from a place (n,). Raises RneaError, as Refused where it is the goal's fault."""
        robot, limits = self.robot, self.limits
        goal = placed(goal, place, values["start_tolerance"], values["start_mismatch"], limits.velocity)
        with refusing("nowhere_to_go" if np.ptp(goal.q, axis=0).max() < STILL else "path"):
            plan = planned(goal.q, goal.times, goal.v, goal.a, values["interpolation"])
        check_positions(plan.path, limits, robot.joint_names)
        with refusing("limits"):
            constraints = self.constraints(plan.path)
        with refusing("gravity"):
            replay = Replay(constraints, plan, values["catch_up"], not values["solve_first"], solver)
        return Motion(number, goal, replay, robot, limits)

    def constraints(self, path: Path) -> Constraints:
        """Raises InputError."""
        if self.dynamics is None:
            raise InputError(self.problem)
        return Constraints(path, self.dynamics, self.dynamics.limits(self.limits), self.robot.joint_names)

    def constraints_further_on(self, motion: Motion) -> Constraints:
        """For what is left of a motion. Raises InputError where even rest would exceed a limit."""
        constraints = self.constraints(motion.replay.plan.path)
        check_rest(constraints, PASS, motion.replay.reference().s)
        return constraints

    def unknown(self) -> dict[str, str]:
        """What to say of limits that are not known, by quantity; empty where all are."""
        said = {}
        for quantity in ("effort", "effort_rate"):
            limit = getattr(self.limits, quantity)
            names = [name for name, value in zip(self.robot.joint_names, limit) if not np.isfinite(value)]
            words = quantity.replace("_", " ")
            said[quantity] = f"no {words} limit of {', '.join(names)} is known: not enforced" if names else ""
        return said


def equipped(robot: Robot, limits: Limits, before: Equipment | None) -> Equipment:
    """What can be kept of the equipment before is: to compile for a robot takes its time, another payload does not."""
    try:
        dynamics = before.dynamics if before is not None else None
        if dynamics is None or dynamics.robot is not robot:
            dynamics = PathDynamics(robot) if dynamics is None else dynamics.loaded(robot)
        dynamics.limits(limits)
        return Equipment(robot, limits, dynamics)
    except Exception as error:  # a model that nothing can be done with
        return Equipment(robot, limits, None, str(error))
