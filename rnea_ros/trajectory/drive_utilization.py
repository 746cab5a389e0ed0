"""Used shares of the limits of drives and supplies, and the thermal load of motor windings, sample by sample.

    T d load/dt = (i / i_c)^2 - load

with the continuous current i_c: the losses R i^2 heat a winding of one heat capacity, which cools in proportion. A load of 1
is the temperature that a data sheet allows. The current is proportional to the torque.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ..model import drives
from ..model.drives import Drive, LinearTerm, Supply
from ..model.tree import Model

RECENT = 0.1  # of the time constant: the span whose mean square is "the present load"


class WindingLoads:
    """Thermal loads of n windings, from cold; NaN where continuous torque or time constant is unknown.

    load   : (n,) 1 is the limit
    recent : (n,) the same over a tenth of the time constants
    """

    def __init__(self, continuous_torque: Any, time_constant: Any):
        """(n,) each: [N m or N] of the joint, [s]."""
        self._per_torque = 1.0 / np.asarray(continuous_torque, dtype=float)
        self._constant = np.asarray(time_constant, dtype=float)
        self._state = np.where(np.isfinite(self._per_torque * self._constant), 0.0, np.nan) * np.ones((2, 1))
        self._rate = -1.0 / (self._constant * np.array([[1.0], [RECENT]]))
        self._share = np.empty_like(self._constant)
        self.load, self.recent = self._state

    def push(self, dt: float, tau: np.ndarray) -> None:
        """Apply torques (n,) for a time [s]."""
        np.multiply(tau, self._per_torque, out=self._share)
        np.multiply(self._share, self._share, out=self._share)
        gap = self._state - self._share
        gap *= np.exp(self._rate * dt)
        np.add(gap, self._share, out=self._state)

    def time_left(self) -> np.ndarray:
        """Return the time (n,) [s] until the load is 1 if the recent torques continue; infinite for never."""
        load, recent = self._state
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self._constant * np.log((recent - load) / (recent - 1.0))
        found = np.where(recent > 1.0, found, np.inf)
        return np.where(np.isnan(load), np.nan, np.where(load >= 1.0, 0.0, found))

    def take_over(self, before: WindingLoads) -> None:
        """Continue from the loads of the same joints before."""
        known = np.isfinite(self._state) & np.isfinite(before._state)
        self._state[known] = before._state[known]


LINES = ("current", "voltage", "motor_velocity")
LIMITED = (*LINES, "power", "speed_torque")
ASKED_FOR = (*LINES, "power")
DRIVE_ROWS = (*ASKED_FOR, *(f"{quantity}_utilization" for quantity in LIMITED), "thermal_load", "thermal_time_left")
SUPPLY_ROWS = ("supply_power", "supply_utilization")
SHARES = slice(len(ASKED_FOR), DRIVE_ROWS.index("thermal_time_left"))  # of limits: 1 is the limit
SUPPLY_SHARE = slice(1, 2)
LONGEST = 1.0  # s; what motors did in a longer gap between two samples is unknown
CHECK_PERIOD = 0.1  # s between checks of the remaining time


class DriveUtilization:
    """Tables that `fill` keeps up to date.

    drives   : (DRIVE_ROWS, n) of the joints; no columns where nothing is known of any drive
    supplies : (SUPPLY_ROWS, supplies)
    names    : of the supplies
    """

    def __init__(self, model: Model, joint_names: Sequence[str], springs: Collection[str] = (),
                 before: DriveUtilization | None = None):
        """joint_names: n of the model's joints. springs: those whose motor speed is given to `fill` instead of the joint's.
        before: of the same robot until now; motors are as warm as they were there.
        """
        known = {drive.joint: drive for drive in model.drives}
        drives = [known.get(name, UNKNOWN) for name in joint_names]
        n = len(joint_names)
        self.drives = np.full((len(DRIVE_ROWS), n if any(drive is not UNKNOWN for drive in drives) else 0), np.nan)
        self.supplies = np.full((len(SUPPLY_ROWS), len(model.supplies)), np.nan)
        self.names = tuple(supply.name for supply in model.supplies)
        self._joints = np.array([[name in supply.joints for name in joint_names] for supply in model.supplies], dtype=float)
        self._supplied = _per_power(model.supplies)
        self._powers = np.empty(n)
        if self.drives.size:
            lines = [[_line(drive, quantity, springs) for drive in drives] for quantity in LINES]
            self._lines = np.moveaxis(np.array(lines), 2, 0)  # (effort, effort_rate, velocity), quantity, joint
            self._inputs, self._products = np.empty((3, 1, n)), np.empty(self._lines.shape)
            limits = [[drive.max_current, drive.supply_voltage, drive.max_motor_velocity] for drive in drives]
            self._per_limit = 1.0 / np.array(limits).T
            self._powered = _per_power(drives)
            self._sides = _sides(model, joint_names)
        self._warmth = WindingLoads(*zip(*((drive.continuous, drive.thermal_time_constant) for drive in drives))) if any(
            drive.continuous == drive.continuous for drive in drives) else None
        self._stamp: int | None = None
        self._checked = 0
        self._joint_names = tuple(joint_names)
        if before is not None:
            self._take_over(before)

    @property
    def is_used(self) -> bool:
        """True if anything is known of a drive or a supply: else `fill` changes no table."""
        return bool(self.drives.size or self.names or self._warmth is not None)

    def _take_over(self, before: DriveUtilization) -> None:
        if self._warmth and before._warmth and before._joint_names == self._joint_names:
            self._warmth.take_over(before._warmth)
            self._stamp = before._stamp

    def fill(self, stamp: int, tau: np.ndarray, tau_rate: np.ndarray, speed: np.ndarray) -> None:
        """stamp [ns]; torques, their rates and the speeds of the motors, seen at the joints (n,)."""
        np.multiply(tau, speed, out=self._powers)
        if self.drives.size:
            self._fill_drives(tau, tau_rate, speed)
        if self.names:
            power, use = self.supplies
            np.dot(self._joints, self._powers, out=power)
            np.maximum(power * self._supplied[0], power * self._supplied[1], out=use)
        if self._warmth is not None:
            self._warm(self._warmth, stamp, tau)

    def _fill_drives(self, tau: np.ndarray, tau_rate: np.ndarray, speed: np.ndarray) -> None:
        table, inputs = self.drives, self._inputs
        inputs[0], inputs[1], inputs[2] = tau, tau_rate, speed
        np.multiply(self._lines, inputs, out=self._products)
        np.add.reduce(self._products, axis=0, out=table[:3])
        table[3] = self._powers
        np.abs(table[:3], out=table[4:7])
        np.multiply(table[4:7], self._per_limit, out=table[4:7])
        np.maximum(self._powers * self._powered[0], self._powers * self._powered[1], out=table[7])
        if self._sides is not None:
            by_speed, by_torque = self._sides
            np.maximum.reduce(by_speed * speed + by_torque * tau, axis=0, out=table[8])

    def _warm(self, warmth: WindingLoads, stamp: int, tau: np.ndarray) -> None:
        passed = 0.0 if self._stamp is None else (stamp - self._stamp) * 1e-9
        self._stamp = stamp
        warmth.push(min(max(passed, 0.0), LONGEST), tau)
        self.drives[9] = warmth.load
        if not 0.0 <= (stamp - self._checked) * 1e-9 < CHECK_PERIOD:
            self._checked = stamp
            self.drives[10] = warmth.time_left()


UNKNOWN = Drive("", gear_ratio=np.nan)


def _line(drive: Drive, quantity: str, springs: Collection[str]) -> LinearTerm:
    line: LinearTerm = getattr(drive, quantity)
    rigid = quantity == "motor_velocity" and drive.joint in springs  # the given speed includes the spring's deflection rate
    return line._replace(effort_rate=0.0) if rigid else line


def _per_power(limited: Sequence[Drive | Supply]) -> np.ndarray:
    """(2, owners): what one watt is of the limit upwards, and downwards; zero where only the other one is known."""
    found = np.array([(1.0 / one.max_power, -1.0 / one.max_braking_power) for one in limited]).reshape(-1, 2).T
    return np.where(np.isnan(found).all(axis=0), np.nan, np.nan_to_num(found))


def _sides(model: Model, joint_names: Sequence[str]) -> np.ndarray | None:
    """(2, sides, n): speed and torque by what makes them one on each side of the region; NaN for joints without a region."""
    sides: dict[str, list[tuple[float, float]]] = {name: [] for name in joint_names}
    for limit in drives.limits_of(model.drive_limits, [model.joint_names.index(name) for name in joint_names]):
        if limit.quantity == "speed_torque":
            sides[limit.owner] += [(limit.velocity / end, limit.effort / end) for end in (limit.upper, limit.lower)]
    most = max(map(len, sides.values()), default=0)
    if not most:
        return None
    padded = [[*own, *[own[0] if own else (np.nan, np.nan)] * (most - len(own))] for own in sides.values()]
    return np.array(padded).transpose(2, 1, 0)
