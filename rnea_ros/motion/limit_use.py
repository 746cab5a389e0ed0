"""What share of its limits a motion uses, and which is nearest: limits of joints, of drives and of supplies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..errors import some
from ..model.drive_limits import DriveLimit, uses
from ..model.effort_convention import CONTENT_WORDS, CONTENTS, TOTAL
from ..model.tree import Limits
from ..model.velocity_limits import LEAST, VelocityLimits
from ..robots.declared_joints import TWO_SIDED
from ..robots.inputs import validation
from ..robots.kinds import tree
from ..robots.link_side import LinkSideRobot
from ..robots.protocol import AnyRobot
from ..robots.robot import Robot
from ..trajectory.constraints import QUANTITIES

AddedRate = Callable[[Any, Any, Any], Any]  # q, qd, qdd -> rates (..., n)


def own_limits(robot: LinkSideRobot, given: Limits | None) -> Limits:
    """The limits given, or the robot's; where those of effort or velocity are its own, with the wider of two that differ up
    and down, which its drive limits keep apart."""
    given = validation.limits(robot.limits if given is None else given, robot.joint_names)
    for quantity in TWO_SIDED:
        wider = getattr(given, quantity).copy()
        if np.array_equal(wider, getattr(robot.limits, quantity), equal_nan=True):
            for limit in robot.drive_limits:
                if limit.quantity == quantity:
                    wider[limit.joints[0]] = max(-limit.lower, limit.upper)
            given = replace(given, **{quantity: wider})
    return given


def velocity_limits(robot: AnyRobot, limits: Limits) -> VelocityLimits | None:
    """Where they depend on the position; None if they do not."""
    names = robot.joint_names
    known = [one for one in tree(robot).model.velocity_by_position if one.joint in names]
    return VelocityLimits(names, limits.velocity, known) if known else None


def added_rate(robot: AnyRobot) -> AddedRate | None:
    """Rates of the torques that the robot's own controller adds to commanded efforts; None if it adds nothing."""
    convention = tree(robot).model.efforts.commanded
    if convention.contains == TOTAL.commanded.contains or not isinstance(robot, Robot):
        return None
    rest = np.zeros(robot.n)

    def rates(q: Any, qd: Any, qdd: Any) -> Any:
        gravity = robot.dynamics(q, qd, qd * rest, qd * rest).gravity_rate
        return convention.added(gravity, robot.friction(qd, qdd)[1] if convention.needs_friction else 0.0)

    return rates


def rate_notes(robot: AnyRobot, limits: Limits, trees_only: bool = False) -> tuple[str, ...]:
    """Return sentences that name the torques whose rates are limited, where commanded efforts are not whole torques.

    trees_only: of other kinds commanded_effort_rate is applied to the rate of the whole torque
    """
    commanded, found = tree(robot).model.efforts.commanded.contains, []
    for quantity, contains in (("effort_rate", CONTENTS[0]), ("commanded_effort_rate", commanded)):
        names = [name for name, limit in zip(robot.joint_names, getattr(limits, quantity)) if np.isfinite(limit)]
        if names and commanded != CONTENTS[0]:
            words = CONTENT_WORDS[CONTENTS[0] if trees_only and not isinstance(robot, Robot) else contains]
            found.append(f"{in_words(some(names), quantity)}: the limit is of the rate of {words}")
    return tuple(found)


class Nearest(NamedTuple):
    """The limit that is used most: the share of it, the joint or supply that it is of, and what it limits."""

    utilization: float
    owner: str
    quantity: str

    @property
    def words(self) -> str:
        return in_words(self.owner, self.quantity)


def in_words(owner: str, quantity: str) -> str:
    return f"{quantity.replace('_', ' ')} of {owner}"


class LimitUse:
    """labels : (owner, quantity) of each known limit, first those of the joints, then those of drives"""

    def __init__(self, joint_names: Sequence[str], limits: Limits, drives: Sequence[DriveLimit] = (),
                 velocity: VelocityLimits | None = None, added: AddedRate | None = None):
        """velocity: limits by position; added: rates of the torques that commanded efforts do not contain."""
        limit = np.stack([getattr(limits, quantity) for quantity in QUANTITIES])
        self._known = np.flatnonzero(np.isfinite(limit))
        self._limit = limit.flat[self._known]
        self._drives, self._velocity, self._added = drives, velocity, added
        self._commanded = bool(np.isfinite(limits.commanded_effort_rate).any())
        own = [(joint_names[k % limit.shape[1]], QUANTITIES[k // limit.shape[1]]) for k in self._known]
        self.labels = (*own, *((drive.owner, drive.quantity) for drive in self._drives))

    @classmethod
    def of(cls, robot: AnyRobot, limits: Limits) -> LimitUse:
        """All that a robot's data limit, beside these."""
        drives = robot.drive_limits if isinstance(robot, LinkSideRobot) else ()
        return cls(robot.joint_names, limits, drives, velocity_limits(robot, limits), added_rate(robot))

    def __call__(self, tau: Any, tau_rate: Any, q: Any, qd: Any, qdd: Any, qddd: Any) -> np.ndarray:
        """(..., limits), zero or more, from arrays (..., n)."""
        commanded = tau_rate if self._added is None or not self._commanded else tau_rate - self._added(q, qd, qdd)
        used = qd if self._velocity is None else qd * self._velocity.most / np.maximum(self._velocity(q, qd), LEAST)
        values = np.abs(np.concatenate((tau, tau_rate, used, qdd, qddd, commanded), axis=-1))  # in the order of QUANTITIES
        found = values[..., self._known] / self._limit
        return np.concatenate((found, uses(self._drives, tau, tau_rate, qd)), axis=-1) if self._drives else found

    def nearest(self, tau: Any, tau_rate: Any, q: Any, qd: Any, qdd: Any, qddd: Any) -> Nearest:
        """Of one sample."""
        found = self(tau, tau_rate, q, qd, qdd, qddd)
        most = int(found.argmax())
        return Nearest(float(found[most]), *self.labels[most])


def limit_use(robot: AnyRobot) -> LimitUse:
    """Of all limits that a robot knows."""
    if isinstance(robot, Robot):
        return LimitUse.of(robot, own_limits(robot, None))
    return LimitUse(robot.joint_names, robot.limits)


class Peak(NamedTuple):
    """The largest use of a limit: what share of it, of what, at which time [s]."""

    share: float
    owner: str
    quantity: str
    t: float

    @property
    def words(self) -> str:
        return in_words(self.owner, self.quantity)


class Peaks:
    """The largest use of each known limit in a motion that comes part by part."""

    def __init__(self, use: LimitUse):
        self._use = use
        self._share, self._time = np.zeros((2, len(use.labels)))

    def see(self, t: np.ndarray, tau: Any, tau_rate: Any, q: Any, qd: Any, qdd: Any, qddd: Any) -> None:
        """t (samples,), the rest (samples, n); NaN where a recording does not tell."""
        found = np.nan_to_num(self._use(tau, tau_rate, q, qd, qdd, qddd), nan=0.0)
        most, when = found.max(axis=0), t[found.argmax(axis=0)] if found.size else self._time
        self._time = np.where(most > self._share, when, self._time)
        self._share = np.maximum(self._share, most)

    def all(self) -> list[Peak]:
        """The most used limit first."""
        order = np.argsort(-self._share, kind="stable")
        shares, labels, times = self._share.tolist(), self._use.labels, self._time.tolist()
        return [Peak(shares[k], labels[k][0], labels[k][1], times[k]) for k in order]

    def of_owners(self) -> list[Peak]:
        """Of each joint and supply its most used limit, in the order of the labels."""
        first = {peak.owner: peak for peak in reversed(self.all())}
        return [first[owner] for owner in dict.fromkeys(owner for owner, _ in self._use.labels)]

    def of_quantities(self) -> list[Peak]:
        """Of each quantity its most used limit, in the order of the labels."""
        first = {peak.quantity: peak for peak in reversed(self.all())}
        return [first[quantity] for quantity in dict.fromkeys(quantity for _, quantity in self._use.labels)]
