"""A robot, its limits, and its dynamics along paths: what motions are made with."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, in_words, some
from ..model.tree import Limits
from ..motion.path_dynamics import PathDynamics
from ..robots.robot import Robot
from ..scaling.feasibility import check_rest
from ..scaling.path import Path
from ..scaling.points import plan_from_waypoints
from ..scaling.profile import PASS
from ..scaling.terms import Constraints
from ..scaling.trajectory_scaler import TrajectoryScaler
from .executed_motion import ExecutedMotion
from .goal import Goal, check_positions, placed, refusing
from .turns import turning

STILL = 1e-9  # rad, m; between points that are all the same


class ExecutionContext(NamedTuple):
    """`dynamics` is None where there can be none; `problem` says why."""

    robot: Robot
    limits: Limits
    dynamics: PathDynamics | None
    problem: str = ""

    def motion(self, number: int, goal: Goal, place: np.ndarray, values: Mapping[str, Any],
               solver: Executor) -> ExecutedMotion:
        """A goal's motion from a place (n,). Raises RneaError, as Rejected where it is the goal's fault."""
        robot, limits = self.robot, self.limits
        goal = placed(goal, place, values["start_tolerance"], values["start_mismatch"], limits.velocity, self.turns)
        with refusing("nowhere_to_go" if np.ptp(goal.q, axis=0).max() < STILL else "path"):
            plan = plan_from_waypoints(goal.q, goal.times, goal.v, goal.a, values["interpolation"])
        check_positions(plan.path, limits, robot.joint_names)
        with refusing("limits"):
            constraints = self.constraints(plan.path)
        with refusing("gravity"):
            scaler = TrajectoryScaler(constraints, plan, values["catch_up"], not values["solve_first"], solver)
        return ExecutedMotion(number, goal, scaler, robot, limits)

    @property
    def turns(self) -> np.ndarray:
        """Which joints turn without end (n,)."""
        return turning(self.robot.joint_types, self.limits)

    def constraints(self, path: Path) -> Constraints:
        """Raises InputError."""
        if self.dynamics is None:
            raise InputError(self.problem)
        return Constraints(path, self.dynamics, self.dynamics.limits(self.limits), self.robot.joint_names)

    def constraints_further_on(self, motion: ExecutedMotion) -> Constraints:
        """For what is left of a motion. Raises InputError where even rest would exceed a limit."""
        constraints = self.constraints(motion.scaler.plan.path)
        check_rest(constraints, PASS, motion.scaler.reference().s)
        return constraints

    def unknown(self) -> dict[str, str]:
        """What to say of limits that are not known, by quantity; empty where all are."""
        said = {}
        for quantity in ("effort", "effort_rate"):
            limit = getattr(self.limits, quantity)
            names = [name for name, value in zip(self.robot.joint_names, limit) if not np.isfinite(value)]
            words = quantity.replace("_", " ")
            said[quantity] = f"no {words} limit of {some(names)} is known: not enforced" if names else ""
        return said


def execution_context(robot: Robot, limits: Limits, before: ExecutionContext | None) -> ExecutionContext:
    """What can be kept of the equipment before is: to compile for a robot takes its time, another payload does not.

    Raises nothing: who moves by the equipment before must hear that it is no longer right.
    """
    try:
        dynamics = before.dynamics if before is not None else None
        if dynamics is None or dynamics.robot is not robot:
            dynamics = PathDynamics(robot) if dynamics is None else dynamics.loaded(robot)
        dynamics.limits(limits)
        return ExecutionContext(robot, limits, dynamics)
    except BaseException as error:
        return ExecutionContext(robot, limits, None, in_words(error))
