"""Utilization of limits by a motion, and the binding limit: limits of joints, of drives and of supplies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..errors import some
from ..model.drives import CONTENT_WORDS, CONTENTS, MIN_VELOCITY, TOTAL, DriveLimit, VelocityLimits, utilizations
from ..model.tree import Limits
from ..robots import validation
from ..robots.load import TWO_SIDED
from ..robots.robot import Robot
from .constraints import QUANTITIES

AddedRate = Callable[[Any, Any, Any], Any]  # q, qd, qdd -> rates (..., n)


def resolve_limits(robot: Robot, given: Limits | None) -> Limits:
    """Return the limits given, or the robot's.

    Of the robot's own limits of effort or velocity that differ by direction the wider one is returned; its drive limits
    contain both.
    """
    given = validation.limits(robot.limits if given is None else given, robot.joint_names)
    for quantity in TWO_SIDED:
        wider = getattr(given, quantity).copy()
        if np.array_equal(wider, getattr(robot.limits, quantity), equal_nan=True):
            for limit in robot.drive_limits:
                if limit.quantity == quantity:
                    wider[limit.joints[0]] = max(-limit.lower, limit.upper)
            given = replace(given, **{quantity: wider})
    return given


def velocity_limits(robot: Robot, limits: Limits) -> VelocityLimits | None:
    """Return the velocity limits by position; None if they do not depend on it."""
    names = robot.joint_names
    known = [one for one in robot.tree.model.velocity_by_position if one.joint in names]
    return VelocityLimits(names, limits.velocity, known) if known else None


def added_rate(robot: Robot) -> AddedRate | None:
    """Return the function to the rates of torques that the controller adds to commanded efforts; None if it adds none."""
    convention = robot.tree.model.efforts.commanded
    if convention.contains == TOTAL.commanded.contains or not robot.is_fixed_tree:
        return None
    rest = np.zeros(robot.n)

    def rates(q: Any, qd: Any, qdd: Any) -> Any:
        gravity = robot.dynamics(q, qd, qd * rest, qd * rest).gravity_rate
        return convention.added(gravity, robot.friction(qd, qdd)[1] if convention.needs_friction else 0.0)

    return rates


def rate_notes(robot: Robot, limits: Limits, trees_only: bool = False) -> tuple[str, ...]:
    """Return sentences that name the torques whose rates are limited, where commanded efforts are not whole torques.

    trees_only: for robots that are not trees commanded_effort_rate is applied to the rate of the whole torque
    """
    commanded, found = robot.tree.model.efforts.commanded.contains, []
    for quantity, contains in (("effort_rate", CONTENTS[0]), ("commanded_effort_rate", commanded)):
        names = [name for name, limit in zip(robot.joint_names, getattr(limits, quantity)) if np.isfinite(limit)]
        if names and commanded != CONTENTS[0]:
            words = CONTENT_WORDS[CONTENTS[0] if trees_only and not robot.is_fixed_tree else contains]
            found.append(f"{describe_limit(some(names), quantity)}: the limit is of the rate of {words}")
    return tuple(found)


class BindingLimit(NamedTuple):
    """Most used limit: the used share, the joint or supply that it belongs to, and the limited quantity."""

    utilization: float
    owner: str
    quantity: str

    @property
    def description(self) -> str:
        """Name of the limit for users."""
        return describe_limit(self.owner, self.quantity)


def describe_limit(owner: str, quantity: str) -> str:
    """Return the name of a limit for users."""
    return f"{quantity.replace('_', ' ')} of {owner}"


class LimitUtilization:
    """Utilization of all known limits.

    labels : (owner, quantity) of each known limit, first those of the joints, then those of drives
    """

    def __init__(self, joint_names: Sequence[str], limits: Limits, drives: Sequence[DriveLimit] = (),
                 velocity: VelocityLimits | None = None, added: AddedRate | None = None):
        """Use limits of joints and drives.

        velocity : velocity limits by position
        added    : rates of the torques that commanded efforts do not contain
        """
        limit = np.stack([getattr(limits, quantity) for quantity in QUANTITIES])
        self._known = np.flatnonzero(np.isfinite(limit))
        self._limit = limit.flat[self._known]
        self._drives, self._velocity, self._added = drives, velocity, added
        self._commanded = bool(np.isfinite(limits.commanded_effort_rate).any())
        own = [(joint_names[k % limit.shape[1]], QUANTITIES[k // limit.shape[1]]) for k in self._known]
        self.labels = (*own, *((drive.owner, drive.quantity) for drive in self._drives))

    @classmethod
    def of(cls, robot: Robot, limits: Limits) -> LimitUtilization:
        """Return the utilization of these limits, and of all others in the robot's data."""
        drives = robot.drive_limits if robot.is_fixed_tree else ()
        return cls(robot.joint_names, limits, drives, velocity_limits(robot, limits), added_rate(robot))

    def __call__(self, tau: Any, tau_rate: Any, q: Any, qd: Any, qdd: Any, qddd: Any) -> np.ndarray:
        """Return the used shares (..., limits), zero or more, from arrays (..., n)."""
        commanded = tau_rate if self._added is None or not self._commanded else tau_rate - self._added(q, qd, qdd)
        used = qd if self._velocity is None else qd * self._velocity.most / np.maximum(self._velocity(q, qd), MIN_VELOCITY)
        values = np.abs(np.concatenate((tau, tau_rate, used, qdd, qddd, commanded), axis=-1))  # in the order of QUANTITIES
        found = values[..., self._known] / self._limit
        return np.concatenate((found, utilizations(self._drives, tau, tau_rate, qd)), axis=-1) if self._drives else found

    def binding(self, tau: Any, tau_rate: Any, q: Any, qd: Any, qdd: Any, qddd: Any) -> BindingLimit:
        """Return the most used limit of one sample."""
        found = self(tau, tau_rate, q, qd, qdd, qddd)
        most = int(found.argmax())
        return BindingLimit(float(found[most]), *self.labels[most])


def limit_utilization(robot: Robot) -> LimitUtilization:
    """Return the utilization of all limits that a robot knows."""
    if robot.is_fixed_tree:
        return LimitUtilization.of(robot, resolve_limits(robot, None))
    return LimitUtilization(robot.joint_names, robot.limits)


class PeakUtilization(NamedTuple):
    """Largest utilization of a limit: the used share, owner and quantity of the limit, and the time t [s]."""

    share: float
    owner: str
    quantity: str
    t: float

    @property
    def description(self) -> str:
        """Name of the limit for users."""
        return describe_limit(self.owner, self.quantity)


class PeakTracker:
    """Largest utilization of each known limit in a motion that is added in parts."""

    def __init__(self, utilization: LimitUtilization):
        self._utilization = utilization
        self._share, self._time = np.zeros((2, len(utilization.labels)))

    def add(self, t: np.ndarray, tau: Any, tau_rate: Any, q: Any, qd: Any, qdd: Any, qddd: Any) -> None:
        """Add samples: t (samples,) [s], the rest (samples, n), NaN where a recording lacks them."""
        found = np.nan_to_num(self._utilization(tau, tau_rate, q, qd, qdd, qddd), nan=0.0)
        most, when = found.max(axis=0), t[found.argmax(axis=0)] if found.size else self._time
        self._time = np.where(most > self._share, when, self._time)
        self._share = np.maximum(self._share, most)

    def ranked(self) -> list[PeakUtilization]:
        """Return all peaks, the most used limit first."""
        order = np.argsort(-self._share, kind="stable")
        shares, labels, times = self._share.tolist(), self._utilization.labels, self._time.tolist()
        return [PeakUtilization(shares[k], labels[k][0], labels[k][1], times[k]) for k in order]

    def by_owner(self) -> list[PeakUtilization]:
        """Return the most used limit of each joint and supply, in the order of the labels."""
        first = {peak.owner: peak for peak in reversed(self.ranked())}
        return [first[owner] for owner in dict.fromkeys(owner for owner, _ in self._utilization.labels)]

    def by_quantity(self) -> list[PeakUtilization]:
        """Return the most used limit of each quantity, in the order of the labels."""
        first = {peak.quantity: peak for peak in reversed(self.ranked())}
        return [first[quantity] for quantity in dict.fromkeys(quantity for _, quantity in self._utilization.labels)]
