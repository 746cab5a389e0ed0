"""Drives of joints in the numbers of data sheets, the supplies that they share, and the limits that follow from them.

With gear ratio N, motor constants k_t (torque by current) and k_e (voltage by speed), efficiency eta of the gear, winding R
and L, and stiffness k between rotor and link, the joint's torque tau, its rate and its speed qd give

    current         i = tau / (k_t N eta)
    voltage         V = R i + L di/dt + k_e N qd
    motor velocity  N (qd + d tau/dt / k)
    power           tau qd

The first three are linear in (tau, d tau/dt, qd), and the exact torque rate makes the voltage exact. eta is used as for a
driving motor: when it brakes, the gear's losses help it, and the current is smaller.

Each limit (`DriveLimit`) bounds such a sum: for one joint a linear form in torque, torque rate and speed; for one joint, or
all joints on one supply, the power. robots/load.py computes the coefficients.

An `EffortConvention` is the relation of a robot's effort values to exact joint torques. The exact torque tau of a joint is
everything that its motor exerts. A robot's own controller may add gravity or friction, and its values may be torques of the
motor before the gear, or currents:

    effort = (tau - added) / per_unit,    added: gravity, friction, or nothing

Only this formula and its inverse are used, so that gravity is subtracted once where the robot adds it, and added once where
it was subtracted. If the drivers of a robot differ, its file declares `unknown`, and efforts are rejected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError

ROUNDING = 1e-12


class DriveLimit(NamedTuple):
    """Limit lower <= sum over `joints` of effort tau + effort_rate d tau/dt + velocity qd + power tau qd <= upper.

    quantity : limited quantity, named as in the robot file: "voltage", "current", "motor_velocity", "speed_torque", "power",
               ...
    owner    : name of the joint, or of the supply
    joints   : indices of the coordinates; one, except for a supply
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


def limits_of(limits: Sequence[DriveLimit], coordinates: Sequence[int] | np.ndarray) -> tuple[DriveLimit, ...]:
    """Return the limits of some coordinates, by index, with indices among these; other joints are not driven."""
    position = {int(coordinate): k for k, coordinate in enumerate(coordinates)}
    kept = [limit._replace(joints=tuple(position[joint] for joint in limit.joints if joint in position)) for limit in limits]
    return tuple(limit for limit in kept if limit.joints)


def two_sided_limits(model: Any, joint_names: Sequence[str], limits: Any, quantity: str) -> tuple[np.ndarray, ...] | None:
    """Return the joints whose limit of "effort" or "velocity" differs by direction, and both limits (k,); None if there are
    none.

    Only joints whose limit is the model's, not one given by a user.
    """
    given = dict(zip(joint_names, getattr(limits, quantity)))
    own = dict(zip(model.joint_names, getattr(model.limits, quantity)))
    found = [(joint_names.index(one.owner), one.lower, one.upper) for one in model.drive_limits
             if one.quantity == quantity and given.get(one.owner) == own.get(one.owner)]
    if not found:
        return None
    joints, lower, upper = map(np.array, zip(*found))
    return joints, lower, upper


class LimitFactors(NamedTuple):
    """Return the coefficients (limits, n) of torque, torque rate, speed and power of each joint in each limit."""

    effort: np.ndarray
    effort_rate: np.ndarray
    velocity: np.ndarray
    power: np.ndarray


def limit_factors(limits: Sequence[DriveLimit], n: int) -> LimitFactors:
    """Return the factors of drive limits, as arrays."""
    found = LimitFactors(*np.zeros((4, len(limits), n)))
    for row, limit in enumerate(limits):
        for name, table in found._asdict().items():
            table[row, list(limit.joints)] = getattr(limit, name)
    return found


def limited_values(by: LimitFactors, tau: Any, tau_rate: Any, qd: Any) -> Any:
    """Return the limited quantities (..., limits) of torques, torque rates and speeds (..., n)."""
    return tau @ by.effort.T + tau_rate @ by.effort_rate.T + qd @ by.velocity.T + (tau * qd) @ by.power.T


def utilizations(limits: Sequence[DriveLimit], tau: Any, tau_rate: Any, qd: Any) -> Any:
    """Return the utilization of each limit (..., limits), zero or more, on the side of zero where the quantity is."""
    tau, tau_rate, qd = (np.asarray(x, dtype=float) for x in (tau, tau_rate, qd))
    found = limited_values(limit_factors(limits, qd.shape[-1]), tau, tau_rate, qd)
    return np.maximum(found / [limit.upper for limit in limits], found / [limit.lower for limit in limits])


def utilizations_by_owner(limits: Sequence[DriveLimit], tau: Any, tau_rate: Any, qd: Any) -> dict[str, dict[str, np.ndarray]]:
    """Return the utilization (...,) of the nearest limit, by joint or supply and by quantity."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for limit, share in zip(limits, np.moveaxis(utilizations(limits, tau, tau_rate, qd), -1, 0) if limits else ()):
        own = found.setdefault(limit.owner, {})
        own[limit.quantity] = np.maximum(own.get(limit.quantity, 0.0), share)
    return found


def speed_torque_region(corners: Sequence[Sequence[float]]) -> np.ndarray:
    """Return the corners (count, 2) of a region of speed and torque around zero, counterclockwise.

    Corners without a negative number describe the first quadrant, from stall torque to no-load speed; the other quadrants are
    symmetric.
    """
    points = np.array(corners, dtype=float).reshape(-1, 2)
    if points.min() >= 0.0:
        points = np.concatenate([points * np.array(signs) for signs in ((1.0, 1.0), (-1.0, 1.0), (1.0, -1.0), (-1.0, -1.0))])
    points = np.unique(points + 0.0, axis=0)
    return points[np.argsort(np.arctan2(points[:, 1], points[:, 0]))]


def convexity_problem(corners: Sequence[Sequence[float]]) -> str | None:
    """Return why these corners are not those of a convex region that contains zero; "" if they are."""
    region = speed_torque_region(corners)
    before, after = np.roll(region, 1, axis=0), np.roll(region, -1, axis=0)
    if len(region) < 3 or (np.linalg.det(np.stack((region, after), axis=1)) <= 0.0).any():
        return "zero speed and torque is not inside of it"
    bend = np.linalg.det(np.stack((region - before, after - region), axis=1))
    if (bend < -ROUNDING * np.abs(region).max(axis=0).prod()).any():
        speed, torque = region[int(bend.argmin())] if np.min(corners) < 0.0 else np.abs(region[int(bend.argmin())])
        return f"corner ({speed:g}, {torque:g}) is inside of what the others span"
    return None


NAN = math.nan


class LinearTerm(NamedTuple):
    """Coefficients of torque, torque rate and speed of a joint in a quantity of its drive; NaN where unknown."""

    effort: float = 0.0
    effort_rate: float = 0.0
    velocity: float = 0.0


class Drive(NamedTuple):
    """Motor and gear of one joint; NaN where unknown. Limits are above zero.

    transmission_stiffness : between rotor and link, infinite if rigid
    speed_torque_curve     : corners of the region of speed and torque, as in the robot file
    continuous_torque      : continuous torque of the joint
    """

    joint: str
    gear_ratio: float = 1.0
    efficiency: float = 1.0
    torque_constant: float = NAN
    back_emf_constant: float = NAN
    resistance: float = NAN
    inductance: float = 0.0
    current_convention: str = "dc"
    transmission_stiffness: float = math.inf
    supply_voltage: float = NAN
    max_current: float = NAN
    max_motor_velocity: float = NAN
    max_power: float = NAN
    max_braking_power: float = NAN
    speed_torque_curve: tuple[tuple[float, float], ...] = ()
    continuous_current: float = NAN
    continuous_torque: float = NAN
    thermal_time_constant: float = NAN

    @property
    def current(self) -> LinearTerm:
        """Motor current [A] as a linear form of torque, torque rate and speed."""
        return LinearTerm(effort=1.0 / (self.torque_constant * self.gear_ratio * self.efficiency))

    @property
    def voltage(self) -> LinearTerm:
        """Motor voltage [V] as a linear form of torque, torque rate and speed."""
        by_torque = self.current.effort
        return LinearTerm(self.resistance * by_torque, self.inductance * by_torque, self.back_emf_constant * self.gear_ratio)

    @property
    def motor_velocity(self) -> LinearTerm:
        """Motor speed [rad/s] as a linear form of torque, torque rate and speed."""
        return LinearTerm(effort_rate=self.gear_ratio / self.transmission_stiffness, velocity=self.gear_ratio)

    @property
    def continuous(self) -> float:
        """Return the continuous torque of the joint, as given or by the current [N m or N]."""
        by_current = self.continuous_current / abs(self.current.effort)
        return by_current if math.isnan(self.continuous_torque) else self.continuous_torque


class Supply(NamedTuple):
    """Power supply shared by joints; NaN: no limit [W]."""

    name: str
    joints: tuple[str, ...]
    max_power: float = NAN
    max_braking_power: float = NAN


MIN_VELOCITY = 1e-9  # rad/s, m/s; where none is allowed, a share of it is large, not infinite


class VelocityByPosition(NamedTuple):
    """Velocity limit of one joint that depends on its position; units rad, s, or m, s."""

    joint: str
    velocity_offset: float
    deceleration_limit: float
    lower_position_limit: float
    upper_position_limit: float


class VelocityLimits:
    """Limits of joints that have one, max_velocity (n,), NaN where unknown."""

    def __init__(self, joint_names: Sequence[str], max_velocity: np.ndarray, by_position: Sequence[VelocityByPosition]):
        known = [one for one in by_position if one.joint in joint_names]
        self.joints = [joint_names.index(one.joint) for one in known]
        self.most = np.asarray(max_velocity, dtype=float)
        numbers = np.array([one[1:] for one in known]).reshape(-1, 4).T
        self.zones = numbers[0], 2.0 * numbers[1], numbers[2:]  # o, 2 a, both ends

    def __call__(self, q: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Return the largest speed (..., n) of each joint at q (..., n), in the direction of the sign of `direction`."""
        found = np.broadcast_to(self.most, q.shape).copy()
        k, (offset, twice, (lower, upper)) = self.joints, self.zones
        way = np.where(direction[..., k] < 0.0, q[..., k] - lower, upper - q[..., k])
        allowed = np.sqrt(np.maximum(twice * way, 0.0)) - offset
        found[..., k] = np.minimum(found[..., k], np.maximum(allowed, 0.0))
        return found


CONTENTS = ("total", "without_gravity", "without_gravity_and_friction")
CONTENT_WORDS = dict(zip(CONTENTS, (
    "the whole joint torque", "the joint torque without gravity, which the robot's controller adds",
    "the joint torque without gravity and friction, which the robot's controller adds")))
QUANTITIES = ("joint_torque", "motor_torque", "current")
UNKNOWN = "unknown"


class EffortConvention(NamedTuple):
    """Meaning of an effort.

    contains : one of CONTENTS
    quantity : one of QUANTITIES, or UNKNOWN
    per_unit : joint torque per unit of the quantity, with sign, for each joint; empty: 1 each
    """

    contains: str = CONTENTS[0]
    quantity: str = QUANTITIES[0]
    per_unit: tuple[float, ...] = ()

    @property
    def plain(self) -> bool:
        """Return whether the effort is the exact torque."""
        return self.contains == CONTENTS[0] and not self.per_unit and self.quantity != UNKNOWN

    @property
    def description(self) -> str:
        """Description: content and quantity of the effort."""
        unit = {"motor_torque": ", as motor torque", "current": ", as motor current"}.get(self.quantity, "")
        return CONTENT_WORDS[self.contains] + unit

    def of(self, joints: Sequence[int]) -> EffortConvention:
        """Return the convention of some joints, by index."""
        return self._replace(per_unit=tuple(self.per_unit[k] for k in joints)) if self.per_unit else self

    @property
    def needs_friction(self) -> bool:
        return self.contains == CONTENTS[2]

    def added(self, gravity: np.ndarray, friction: np.ndarray | float = 0.0) -> np.ndarray:
        """Return the share of tau that the robot adds itself, from gravity and friction, or from their rates."""
        if self.contains == CONTENTS[0]:
            return np.zeros_like(gravity)
        return gravity + friction if self.needs_friction else gravity

    def effort(self, tau: np.ndarray, gravity: np.ndarray, friction: np.ndarray | float = 0.0) -> np.ndarray:
        """Return the effort of an exact torque; or its rate from the rates of torque, gravity and friction."""
        found = tau - self.added(gravity, friction)
        return found / self.per_unit if self.per_unit else found

    def torque(self, effort: np.ndarray, gravity: np.ndarray, friction: np.ndarray | float = 0.0) -> np.ndarray:
        """Return the exact torque of an effort, the inverse of `effort`. Raises InputError if the convention is unknown."""
        if self.quantity == UNKNOWN:
            raise InputError("what this robot's efforts are is unknown, for its drivers differ: a robot file can say it, as "
                             f"measured_effort: {{contains: {CONTENTS[0]}, quantity: {' | '.join(QUANTITIES)}}}; of motor "
                             "currents `rnea identify --currents` finds the gains")
        return (effort * self.per_unit if self.per_unit else effort) + self.added(gravity, friction)


class Efforts(NamedTuple):
    """Conventions of a robot: commanded efforts of its controller, measured efforts of its joint states."""

    commanded: EffortConvention = EffortConvention()
    measured: EffortConvention = EffortConvention()


TOTAL = Efforts()
