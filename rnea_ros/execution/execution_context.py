"""What motions are made with: a robot, its limits, and its dynamics along paths."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, in_words, some
from ..model.tree import Limits
from ..motion.limit_use import own_limits
from ..motion.path_dynamics import PathDynamics
from ..robots.link_side import LinkSideRobot
from ..scaling.committed import CommittedMotion
from ..scaling.foreseeable import ForeseeableScaler
from ..scaling.path import Path
from ..scaling.points import plan_from_waypoints
from ..scaling.terms import Constraints
from ..scaling.trajectory_scaler import TrajectoryScaler
from .executed_motion import ExecutedMotion, quantities
from .goal import Goal, check_positions, placed, refusing
from .turns import turning
from .watch import Watch

STREAM, TRAJECTORY, HORIZON = OUTPUTS = ("points", "trajectory", "horizon")  # how a motion is handed out
STILL = 1e-9  # rad, m; between points that are all the same


class ExecutionContext(NamedTuple):
    """`dynamics` is None where there can be none; `problem` says why."""

    robot: LinkSideRobot
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
        with refusing("limits"):
            constraints = self.constraints(plan.path)
        check_positions(plan.path, limits, robot.joint_names)
        streamed = values["output"] == STREAM
        with refusing("gravity"):
            scaler = (TrajectoryScaler if streamed else ForeseeableScaler)(
                constraints, plan, values["catch_up"], not values["solve_first"], solver)
        committed = None
        if isinstance(scaler, ForeseeableScaler):
            horizon = values["horizon"] if values["output"] == HORIZON else np.inf
            committed = CommittedMotion(scaler, quantities(robot, constraints), horizon, values["lead"])
        watch = Watch(robot, limits, goal, values, 0.0 if streamed else values["lead"])
        return ExecutedMotion(number, goal, scaler, robot, limits, watch, committed, values["commanded_effort"])

    @property
    def turns(self) -> np.ndarray:
        """Which joints turn without end (n,)."""
        return turning(self.robot.joint_types, self.limits)

    def constraints(self, path: Path) -> Constraints:
        """Raises InputError."""
        if self.dynamics is None:
            raise InputError(self.problem)
        return self.dynamics.constraints(path, self.limits)

    def unknown(self) -> dict[str, str]:
        """What to say of limits that are not known, by quantity; empty where all are."""
        found = {}
        for quantity in ("effort", "effort_rate"):
            limit = getattr(self.limits, quantity)
            if quantity == "effort_rate":  # either of the two limits of rates will do
                limit = np.fmin(limit, self.limits.commanded_effort_rate)
            names = [name for name, value in zip(self.robot.joint_names, limit) if not np.isfinite(value)]
            words = quantity.replace("_", " ")
            found[quantity] = f"no {words} limit of {some(names)} is known: not enforced" if names else ""
        return found


def execution_context(robot: LinkSideRobot, limits: Limits) -> ExecutionContext:
    """Raises nothing: who moves by another context must hear that it is no longer right."""
    try:
        dynamics, limits = PathDynamics(robot), own_limits(robot, limits)
        dynamics.limits(limits)
        _check_ranges(robot, limits)
        dynamics.drives()
        return ExecutionContext(robot, limits, dynamics)
    except BaseException as error:
        return ExecutionContext(robot, limits, None, in_words(error))


def _check_ranges(robot: LinkSideRobot, limits: Limits) -> None:
    """InputError where a joint has no position to be at."""
    for name, lower, upper in zip(robot.joint_names, limits.lower, limits.upper, strict=True):
        if lower > upper:
            raise InputError(f"the position limits of {name} are {lower:g} to {upper:g}: no position is inside")
