"""Retiming a robot's motion: the fastest way along a given path, as far as torque, torque rate and the other limits allow.

    motion = retime_motion(robot, points)     # of any kind: the joints with motors are moved, the others follow
    q, qd, qdd, qddd = motion(np.arange(0.0, motion.duration, 1e-3))

trajectory/retiming.py does it; here it gets the robot's dynamics and limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError, some
from ..model.drive_limits import DriveLimit
from ..model.tree import Limits
from ..robots.inputs import validation
from ..robots.inputs.base_state import BaseState
from ..robots.link_side import link_side, unkept
from ..robots.protocol import AnyRobot
from ..trajectory.constraints import QUANTITIES, Constraints
from ..trajectory.limit_check import steady_rate
from ..trajectory.retiming import Route, fit_route, time_optimal_law
from ..trajectory.time_law import TimeLaw
from ..trajectory.time_optimal import Progress
from .limit_use import own_limits, rate_notes
from .path_dynamics import PathDynamics

LOOKS = 2001  # along the path, for position limits


@dataclass(frozen=True, eq=False)
class Retimed:
    """A motion along a route: q(s) by its path, s(t) by the law. notes: what is worth knowing, one sentence each."""

    route: Route
    law: TimeLaw
    notes: tuple[str, ...] = ()

    @property
    def duration(self) -> float:
        """[s]."""
        return self.law.duration

    def __call__(self, t: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return q, qd, qdd, qddd at time t [s]: (n,) each, or (samples, n) at times (samples,); then it rests."""
        if np.ndim(t) == 0:
            q, qd, qdd, qddd = (array[0] for array in self([t]))
            return q, qd, qdd, qddd
        s, *rates = self.law(t)
        q, q1, q2, q3 = self.route.path(s)
        sd, sdd, sddd = (rate[:, None] for rate in rates)
        return q, q1 * sd, q2 * sd**2 + q1 * sdd, q3 * sd**3 + 3.0 * q2 * sd * sdd + q1 * sddd


def retime_motion(robot: AnyRobot, points: Any, velocities: Any = None, limits: Limits | None = None, tolerance: float = 1e-6,
                  progress: Progress | None = None, drive_limits: Sequence[DriveLimit] | None = None,
                  base: BaseState | None = None) -> Retimed:
    """The fastest motion through points (count, n), at rest at both ends, inside all known limits but those of position.

    Torques are those of robots.link_side: where a joint is elastic, that of its spring.
    velocities : (count, n); tells where it stops on its way. It also stops where points repeat
    limits     : default those of the URDF; dataclasses.replace(robot.limits, effort_rate=...) for more, NaN is unknown.
                 effort_rate limits the rate of the whole torque, commanded_effort_rate that of the torque without what the
                 robot's controller adds
    drive_limits : of voltage, current, power, ...; default those of the robot file
    tolerance  : how far points may lie off the path [rad, m]: more, for noisy recordings
    progress   : called with what is being done and the duration so far
    base       : of a robot whose base moves: how it stands, at rest
    Raises InputError for what makes no sense, and where gravity alone exceeds a limit.
    """
    if not robot.n:
        raise InputError(f"robot '{robot.name}' has no joint that moves: there is nothing to retime")
    moved = link_side(robot, base)
    points = validation.coordinates("points", points, robot.joint_names)
    if points.ndim != 2 or len(points) < 2:
        raise InputError(f"points have shape {points.shape}; (count, {robot.n}) with two points at least are needed")
    if velocities is not None:
        velocities = validation.coordinates("velocities", velocities, robot.joint_names)
        if velocities.shape != points.shape:
            raise InputError(f"velocities have shape {velocities.shape}, points {points.shape}; they must be the same")
    if not (np.isfinite(validation.numbers("tolerance", tolerance)) and tolerance >= 0.0):
        raise InputError(f"tolerance is {tolerance:g}; a finite number, zero or more, is needed [rad, m]")
    limits = own_limits(moved, limits)
    way = fit_route(points, velocities, tolerance)
    constraints = PathDynamics(moved).constraints(way.path, limits, drive_limits)
    notes = (*_unknown(constraints), *rate_notes(moved, limits), *unkept(robot), *_off_the_path(way, tolerance),
             *_outside(robot, limits, way))
    law = time_optimal_law(constraints, progress)
    return Retimed(way, law, (*notes, *slower(constraints, law)))


def _unknown(constraints: Constraints) -> list[str]:
    found = []
    for quantity in QUANTITIES:
        names = [constraints.joint_names[k] for k, which in constraints.unknown if which == quantity]
        if names:
            every = len(names) == len(constraints.joint_names)
            found.append(quantity.replace("_", " ") + ("" if every else f" of {some(names)}"))
    return [f"no limits known, hence not enforced: {'; '.join(found)}"] if found else []


def _off_the_path(way: Route, tolerance: float) -> list[str]:
    if way.deviation <= tolerance:
        return []
    return [f"points lie up to {way.deviation:.3g} off the path: they are too close together, or too noisy, to be followed "
            "more closely"]


def slower(constraints: Constraints, law: TimeLaw) -> list[str]:
    """A motion that falls as gravity lets it, or that brakes by it, takes more when it is played slower."""
    if (factor := steady_rate(constraints, law, 1.0)) >= 1.0:
        return []
    rate = 0.5 * (1.0 + factor)
    used = constraints.utilization(law.slower(rate).sample_pieces(constraints.path.breaks)[0]).max(axis=0)
    limit = constraints.describe(int(used.argmax()))
    return [f"limits are kept at this speed, not at every lower one: at {rate:.0%} of it, {limit} would be {used.max():.0%} "
            "of its limit. Retime with other limits rather than slow this motion"]


def _outside(robot: AnyRobot, limits: Limits, way: Route) -> list[str]:
    """The path is given: where it leaves position limits can only be said."""
    q = way.path(np.linspace(0.0, way.path.length, LOOKS))[0]
    low, high = q.min(axis=0), q.max(axis=0)
    return [f"the path takes {name} from {low[k]:.5g} to {high[k]:.5g}, outside its limits {limits.lower[k]:.5g} to "
            f"{limits.upper[k]:.5g}" for k, name in enumerate(robot.joint_names)
            if low[k] < limits.lower[k] or high[k] > limits.upper[k]]
