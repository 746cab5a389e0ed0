"""Limits of drives: what a motor, its gear and its supply leave of torque, torque rate and speed together.

Each is a sum that must stay between two numbers: of one joint a line in its torque, torque rate and speed; of one joint, or of
all that share a supply, the power. The coefficients are those of a data sheet, see robots/declared_drives.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

ROUNDING = 1e-12


class DriveLimit(NamedTuple):
    """lower <= sum over `joints` of effort tau + effort_rate d tau/dt + velocity qd + power tau qd <= upper.

    quantity : what is limited, in the robot file's words: "voltage", "current", "motor_velocity", "speed_torque", "power", ...
    owner    : name of the joint, or of the supply
    joints   : numbers of the coordinates; one but for a supply
    lower, upper : below and above zero, in the units of the quantity
    """

    quantity: str
    owner: str
    joints: tuple[int, ...]
    lower: float
    upper: float
    effort: float = 0.0
    effort_rate: float = 0.0
    velocity: float = 0.0
    power: float = 0.0

    @property
    def description(self) -> str:
        return f"{self.quantity.replace('_', ' ')} of {self.owner}"


def of(limits: Sequence[DriveLimit], coordinates: Sequence[int] | np.ndarray) -> tuple[DriveLimit, ...]:
    """Those of some coordinates, by number, in the numbers that they have among these; joints beside them drive nothing."""
    places = {int(coordinate): place for place, coordinate in enumerate(coordinates)}
    kept = [limit._replace(joints=tuple(places[joint] for joint in limit.joints if joint in places)) for limit in limits]
    return tuple(limit for limit in kept if limit.joints)


def two_sided(model: Any, joint_names: Sequence[str], limits: Any, quantity: str) -> tuple[np.ndarray, ...] | None:
    """Numbers of the joints whose limit of "effort" or "velocity" differs up and down, and both limits (k,); None: none.

    Of joints alone whose limit is the model's, not another one that a user gave.
    """
    given = dict(zip(joint_names, getattr(limits, quantity)))
    own = dict(zip(model.joint_names, getattr(model.limits, quantity)))
    found = [(joint_names.index(one.owner), one.lower, one.upper) for one in model.drive_limits
             if one.quantity == quantity and given.get(one.owner) == own.get(one.owner)]
    if not found:
        return None
    joints, lower, upper = map(np.array, zip(*found))
    return joints, lower, upper


class Factors(NamedTuple):
    """What torque, torque rate, speed and power of each joint count in each limit: (limits, n) each."""

    effort: np.ndarray
    effort_rate: np.ndarray
    velocity: np.ndarray
    power: np.ndarray


def factors(limits: Sequence[DriveLimit], n: int) -> Factors:
    found = Factors(*np.zeros((4, len(limits), n)))
    for row, limit in enumerate(limits):
        for name, table in found._asdict().items():
            table[row, list(limit.joints)] = getattr(limit, name)
    return found


def values(by: Factors, tau: Any, tau_rate: Any, qd: Any) -> Any:
    """The limited quantities (..., limits) of torques, torque rates and speeds (..., n)."""
    return tau @ by.effort.T + tau_rate @ by.effort_rate.T + qd @ by.velocity.T + (tau * qd) @ by.power.T


def uses(limits: Sequence[DriveLimit], tau: Any, tau_rate: Any, qd: Any) -> Any:
    """The share of each limit that is used (..., limits), zero or more: of the one on whose side of zero the quantity is."""
    tau, tau_rate, qd = (np.asarray(x, dtype=float) for x in (tau, tau_rate, qd))
    found = values(factors(limits, qd.shape[-1]), tau, tau_rate, qd)
    return np.maximum(found / [limit.upper for limit in limits], found / [limit.lower for limit in limits])


def uses_by_owner(limits: Sequence[DriveLimit], tau: Any, tau_rate: Any, qd: Any) -> dict[str, dict[str, np.ndarray]]:
    """By joint or supply, and by quantity: the share that is used (...,) of the nearest of these limits."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for limit, share in zip(limits, np.moveaxis(uses(limits, tau, tau_rate, qd), -1, 0) if limits else ()):
        own = found.setdefault(limit.owner, {})
        own[limit.quantity] = np.maximum(own.get(limit.quantity, 0.0), share)
    return found


def speed_torque_region(corners: Sequence[Sequence[float]]) -> np.ndarray:
    """Corners (count, 2) of a region of speed and torque around zero, counterclockwise.

    Corners without a negative number are those of the first quadrant, from the torque at rest to the speed without torque: the
    other quadrants are like it.
    """
    points = np.array(corners, dtype=float).reshape(-1, 2)
    if points.min() >= 0.0:
        points = np.concatenate([points * np.array(signs) for signs in ((1.0, 1.0), (-1.0, 1.0), (1.0, -1.0), (-1.0, -1.0))])
    points = np.unique(points + 0.0, axis=0)
    return points[np.argsort(np.arctan2(points[:, 1], points[:, 0]))]


def outside_of_convex(corners: Sequence[Sequence[float]]) -> str | None:
    """What keeps these corners from being those of a convex region with zero inside, if anything does."""
    region = speed_torque_region(corners)
    before, after = np.roll(region, 1, axis=0), np.roll(region, -1, axis=0)
    if len(region) < 3 or (np.linalg.det(np.stack((region, after), axis=1)) <= 0.0).any():
        return "zero speed and torque is not inside of it"
    bend = np.linalg.det(np.stack((region - before, after - region), axis=1))
    if (bend < -ROUNDING * np.abs(region).max(axis=0).prod()).any():
        speed, torque = region[int(bend.argmin())] if np.min(corners) < 0.0 else np.abs(region[int(bend.argmin())])
        return f"corner ({speed:g}, {torque:g}) is inside of what the others span"
    return None
