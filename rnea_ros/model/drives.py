"""Drives of joints, in the numbers of data sheets, and the supplies that they share.

With N rotor turns for one of the joint, motor constants k_t (torque by current) and k_e (voltage by speed), efficiency eta of
the gear, winding R and L, and stiffness k between rotor and link, the joint's torque tau, its rate and its speed qd give

    current         i = tau / (k_t N eta)
    voltage         V = R i + L di/dt + k_e N qd
    motor velocity  N (qd + d tau/dt / k)
    power           tau qd

The first three are lines in (tau, d tau/dt, qd), and the exact torque rate makes the voltage exact. eta counts as if the
motor always drove: when it brakes, the gear's losses help it, and the current is smaller than this.
"""

from __future__ import annotations

import math
from typing import NamedTuple

NAN = math.nan


class Line(NamedTuple):
    """What torque, torque rate and speed of a joint count in a quantity of its drive; NaN where that is not known."""

    effort: float = 0.0
    effort_rate: float = 0.0
    velocity: float = 0.0


class Drive(NamedTuple):
    """Motor and gear of one joint; NaN where unknown. Limits are above zero.

    transmission_stiffness : between rotor and link, infinite where that is rigid
    speed_torque_curve     : corners of the region of speed and torque, as in the robot file
    continuous_torque      : of the joint, for ever
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
    def current(self) -> Line:
        """[A]."""
        return Line(effort=1.0 / (self.torque_constant * self.gear_ratio * self.efficiency))

    @property
    def voltage(self) -> Line:
        """[V]."""
        by_torque = self.current.effort
        return Line(self.resistance * by_torque, self.inductance * by_torque, self.back_emf_constant * self.gear_ratio)

    @property
    def motor_velocity(self) -> Line:
        """[rad/s]."""
        return Line(effort_rate=self.gear_ratio / self.transmission_stiffness, velocity=self.gear_ratio)

    @property
    def continuous(self) -> float:
        """Return the continuous torque of the joint, as given or by the current [N m or N]."""
        by_current = self.continuous_current / abs(self.current.effort)
        return by_current if math.isnan(self.continuous_torque) else self.continuous_torque


class Supply(NamedTuple):
    """A source of power that joints share; NaN: no limit [W]."""

    name: str
    joints: tuple[str, ...]
    max_power: float = NAN
    max_braking_power: float = NAN
