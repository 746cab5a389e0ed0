"""Random limits of drives for random motions: what a robot file says of them, and what share of them a motion uses.

The shares are written out here, from the torques and rates that Pinocchio finds, independently of the package's rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from rnea_ros.trajectory.retiming import Retimed
from support.oracles import PinocchioOracle
from support.scaling_cases import urdf

N_SAMPLES = 4000  # instants of a motion
ELECTRICAL = 5e-3  # s; time constant of the windings
NO_LOAD = 3.0  # rad/s at the joint, at full voltage
STALL = 2.5  # torque at rest at full voltage, by the most that gravity takes of it
CAP = 1.5  # rad/s, m/s: velocity far from the ends


class Seen(NamedTuple):
    """A motion at N_SAMPLES instants, torques and rates by Pinocchio: (N_SAMPLES, n) each."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    tau_rate: np.ndarray
    gravity: np.ndarray
    gravity_rate: np.ndarray

    @property
    def power(self) -> np.ndarray:
        """Return the power (N_SAMPLES,) of all joints together."""
        return (self.tau * self.qd).sum(axis=1)


def seen(arm: str, robot: Any, motion: Retimed) -> Seen:
    oracle, states = PinocchioOracle(urdf(arm), robot), motion(np.linspace(0.0, motion.duration, N_SAMPLES))
    found = [(*oracle.torque_and_rate(*state), *oracle.gravity_and_rate(*state[:2])) for state in zip(*states)]
    return Seen(*states[:3], *map(np.array, zip(*found)))


class Row(NamedTuple):
    """Sections of a robot file, and the utilizations of their limits (N_SAMPLES, ...) of a motion."""

    sections: dict[str, Any]
    used: Callable[[Seen], np.ndarray]


Names = tuple[str, ...]


def voltage(names: Names, gravity: np.ndarray, rng: np.random.Generator) -> tuple[Row, np.ndarray]:
    """Return drives whose torque at rest is up to 1 / STALL of the stall torque, and the torque at full voltage (n,)."""
    torque = STALL * np.maximum(gravity, 0.1 * gravity.max())
    constant, ratio = rng.uniform(0.05, 0.2, len(names)), rng.uniform(50.0, 150.0, len(names))
    ratio *= rng.choice([-1.0, 1.0], len(names))
    supply = constant * np.abs(ratio) * NO_LOAD
    resistance = supply * constant * np.abs(ratio) / torque  # full voltage holds this torque at rest
    inductance = ELECTRICAL * resistance
    sheets = np.stack((constant, ratio, supply, resistance, inductance), axis=1).tolist()
    keys = ("torque_constant", "gear_ratio", "supply_voltage", "resistance", "inductance")
    drives = {joint: dict(zip(keys, sheet)) for joint, sheet in zip(names, sheets)}

    def used(seen: Seen) -> np.ndarray:
        current, current_rate = seen.tau / (constant * ratio), seen.tau_rate / (constant * ratio)
        return np.abs(resistance * current + inductance * current_rate + constant * ratio * seen.qd) / supply

    return Row({"drives": drives}, used), torque


def power(names: Names, free: Seen, rng: np.random.Generator) -> Row:
    most = float(rng.uniform(0.3, 0.9) * free.power.max())
    braking = float(rng.uniform(0.2, 0.9) * -free.power.min())
    return Row({"supplies": {"rail": {"max_power": most, "max_braking_power": braking}}},
               lambda seen: np.maximum(seen.power / most, -seen.power / braking))


def soft_gear(names: Names, free: Seen, rng: np.random.Generator) -> Row:
    stiffness = np.abs(free.tau_rate).max(axis=0) / np.abs(free.qd).max(axis=0)  # winds up as fast as the joint turns
    ratio = rng.uniform(50.0, 150.0, len(names))
    most = rng.uniform(0.4, 0.9) * ratio * np.abs(free.qd + free.tau_rate / stiffness).max(axis=0)
    sheets = zip(names, ratio.tolist(), most.tolist(), stiffness.tolist())
    return Row({"drives": {joint: {"gear_ratio": n, "max_motor_velocity": m, "transmission_stiffness": k}
                           for joint, n, m, k in sheets}},
               lambda seen: np.abs(ratio * (seen.qd + seen.tau_rate / stiffness)) / most)


def speed_torque(names: Names, free: Seen, rng: np.random.Generator) -> Row:
    """Full torque, enough to hold gravity, up to some speed; none at another one."""
    speed = np.abs(free.qd).max(axis=0)
    torque = np.maximum(np.abs(free.tau).max(axis=0), 1.1 * np.abs(free.gravity).max(axis=0))
    knee = rng.uniform(0.1, 0.5, len(names)) * speed
    curves = {joint: {"speed_torque_curve": [[0.0, t], [k, t], [v, 0.0]]}
              for joint, t, k, v in zip(names, torque.tolist(), knee.tolist(), speed.tolist())}
    return Row({"drives": curves}, lambda seen: np.maximum(
        np.abs(seen.tau) / torque, (np.abs(seen.tau) / torque * (speed - knee) + np.abs(seen.qd)) / speed))


def both_ways(names: Names, free: Seen, rng: np.random.Generator) -> Row:
    """Torque and velocity, other ones up than down; gravity can be held."""

    def most(part: np.ndarray, side: float, needed: np.ndarray) -> np.ndarray:
        span = np.abs(part).max(axis=0)
        return np.maximum.reduce([rng.uniform(0.4, 1.0, len(names)) * (side * part).max(axis=0), 0.2 * span, needed])

    torque_up, torque_down = (most(free.tau, side, 1.1 * (side * free.gravity).max(axis=0)) for side in (1.0, -1.0))
    up, down = (most(free.qd, side, np.zeros(len(names))) for side in (1.0, -1.0))
    keys, ends = ("max_effort", "min_effort", "max_velocity", "min_velocity"), (torque_up, -torque_down, up, -down)
    return Row({"limits": {joint: dict(zip(keys, four)) for joint, four in zip(names, np.array(ends).T.tolist())}},
               lambda seen: np.maximum.reduce([seen.tau / torque_up, -seen.tau / torque_down, seen.qd / up, -seen.qd / down]))


def less_gravity(names: Names, free: Seen, rng: np.random.Generator) -> Row:
    rate = np.abs(free.tau_rate - free.gravity_rate).max(axis=0)
    most = rng.uniform(0.3, 0.9) * np.maximum(rate, 1e-3 * rate.max())
    limits = {joint: {"max_commanded_effort_rate": limit} for joint, limit in zip(names, most.tolist())}
    return Row({"limits": limits, "commanded_effort": {"contains": "without_gravity"}},
               lambda seen: np.abs(seen.tau_rate - seen.gravity_rate) / most)


def by_position(names: Names, free: Seen, rng: np.random.Generator) -> Row:
    """Return velocity limits by position, as in libfranka's rate_limiting.h."""
    lower, upper = free.q.min(axis=0) - 0.05, free.q.max(axis=0) + 0.05
    offset, k = rng.uniform(0.05, 0.2, len(names)), rng.uniform(2.0, 8.0, len(names))
    zones = np.stack((offset, 0.5 * k, lower, upper), axis=1).tolist()
    keys = ("velocity_offset", "deceleration_limit", "lower_position_limit", "upper_position_limit")

    def used(seen: Seen) -> np.ndarray:
        up = np.minimum(CAP, np.maximum(0.0, -offset + np.sqrt(np.maximum(0.0, k * (upper - seen.q)))))
        down = np.maximum(-CAP, np.minimum(0.0, offset - np.sqrt(np.maximum(0.0, k * (seen.q - lower)))))
        return seen.qd / np.where(seen.qd > 0.0, up, down)

    return Row({"limits": {joint: {"max_velocity": CAP, "velocity_by_position": dict(zip(keys, zone))}
                           for joint, zone in zip(names, zones)}}, used)


ROWS: dict[str, Callable[[Names, Seen, np.random.Generator], Row]] = {
    "power of a supply, driving and braking": power, "rotor behind a soft gear": soft_gear, "speed-torque curve": speed_torque,
    "torque and velocity, asymmetric": both_ways, "rate of torque without gravity": less_gravity,
    "position-dependent velocity": by_position}
