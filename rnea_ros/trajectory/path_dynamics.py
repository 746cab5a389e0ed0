"""Torque and torque rate of a robot along a path, and its limits there."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from ..errors import InputError
from ..model.drives import MIN_VELOCITY, DriveLimit, VelocityLimits, limit_factors
from ..model.tree import Limits
from ..robots.inputs import validation
from ..robots.robot import Robot
from .constraints import Constraints, DriveConstraints, TorqueTerms
from .limit_utilization import velocity_limits
from .path import Path
from .path_terms import ClosedChainTerms, LinkMotorTerms, LoopKinematics, TreeTerms

N_SAMPLES = 2001  # along a path, to find points where no velocity is allowed
STILL = 1e-9  # dq/ds of a joint that does not move

class PathTerms(Protocol):
    """Path dynamics terms of one robot without Coulomb friction: call with q, q', q'', q''' (samples, n) each.

    friction : (n,) largest Coulomb friction of each joint on the path
    """

    @property
    def friction(self) -> np.ndarray: ...

    def along(self, path: Path) -> PathTerms:
        """Return the terms prepared for a path. Raises InputError if the robot cannot follow it."""

    def __call__(self, q: Any, q1: Any, q2: Any, q3: Any) -> TorqueTerms: ...

    def compile(self) -> None: ...


def _terms(robot: Robot) -> PathTerms:
    """Terms of trees, of closed loops, and of trees with motors on links."""
    if robot.is_fixed_tree:
        return TreeTerms(robot)
    return ClosedChainTerms(LoopKinematics(robot)) if robot.loops else LinkMotorTerms(robot)


class PathDynamics:
    """Torque and torque rate of a robot along a path: call with q, q', q'', q''' (samples, n) each; returns Terms.

    Coulomb friction jumps where a joint turns round, so no motion keeps its torque rate finite; smoothed, it is no polynomial
    in the speed. It is left out of the terms and taken off the effort limits instead: see `limits`.
    """

    def __init__(self, robot: Robot):
        validation.held_base(robot.model)
        self.robot = robot
        self.terms = _terms(robot)

    def along(self, path: Path) -> PathDynamics:
        """Return the dynamics prepared for a path: closed loops are solved along it. Raises InputError if they cannot be."""
        found = copy.copy(self)
        found.terms = self.terms.along(path)
        return found

    def __call__(self, q: Any, q1: Any, q2: Any, q3: Any) -> TorqueTerms:
        return self.terms(q, q1, q2, q3)

    def compile(self) -> None:
        """Have the kernels now, for many samples too, and not at the first call."""
        self.terms.compile()

    def constraints(self, path: Path, limits: Limits, drive_limits: Sequence[DriveLimit] | None = None) -> Constraints:
        """All limits along a path: these, and what the robot's data say beside them. Raises InputError."""
        dynamics, velocity = self.along(path), velocity_limits(self.robot, limits)
        if velocity is not None:
            _check_velocities(velocity, path, self.robot.joint_names)
        return Constraints(path, dynamics, dynamics.limits(limits), self.robot.joint_names, dynamics.drives(drive_limits),
                           self.robot.tree.model.efforts.commanded.contains,
                           None if velocity is None else lambda q, way: np.maximum(velocity(q, way), MIN_VELOCITY))

    def limits(self, limits: Limits | None = None) -> Limits:
        """Return the robot's limits, or the given ones, minus Coulomb friction. InputError if it exceeds an effort limit."""
        limits, friction = limits or self.robot.limits, self.terms.friction
        effort = limits.effort - friction
        if (taken := (effort <= 0.0) & (friction > 0.0)).any():
            joint = int(np.argmax(taken))
            raise InputError(f"Coulomb friction of {self.robot.joint_names[joint]} takes all of its effort limit, "
                             f"{limits.effort[joint]:g}")
        return replace(limits, effort=effort)

    def drives(self, limits: Sequence[DriveLimit] | None = None) -> DriveConstraints | None:
        """Return the robot's drive limits, or the given ones, minus Coulomb friction; None without any. InputError where
        it leaves nothing of one.
        """
        limits = self.robot.drive_limits if limits is None else limits
        if not limits:
            return None
        rows = DriveConstraints(limits, limit_factors(limits, self.robot.n)._asdict(), self.terms.friction)
        if (rows.remaining <= 0.0).any():
            raise InputError(f"Coulomb friction takes all of the {rows.limits[int(np.argmin(rows.remaining))].description}")
        return rows


def _check_velocities(velocity: VelocityLimits, path: Path, joint_names: Sequence[str]) -> None:
    """Raise InputError if a path is so near to a position limit that no velocity is allowed in its direction."""
    s = np.linspace(0.0, path.length, N_SAMPLES)
    q, way = path(s)[:2]
    stuck = (velocity(q, way) <= 0.0) & (np.abs(way) > STILL)
    if stuck.any():
        sample, k = np.argwhere(stuck)[0]
        raise InputError(f"the path takes {joint_names[k]} to {q[sample, k]:.5g}, so near to its end that "
                         "velocity_by_position of the robot file allows no velocity that way")
