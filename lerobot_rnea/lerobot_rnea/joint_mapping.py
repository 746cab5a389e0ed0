"""Conversion between the values of LeRobot's motors and joint positions of a URDF.

A LeRobot robot has a value `NAME.pos` for each motor, in one of three units, relative to the range of encoder counts that was
recorded when it was calibrated (lerobot/motors/motors_bus.py of 0.6.1):

    degrees          0 is the middle of the range; degrees of the motor
    range_m100_100   -100 and 100 are the ends of the range
    range_0_100      0 and 100 are the ends of the range

So the scale is known: degrees have one, and a range in counts is an angle. The zero is not: LeRobot knows no URDF. The middle
of the recorded range is taken for the middle of the URDF's range where both ranges are alike; otherwise the position [rad] at
the middle of the recorded range must be given (`offsets`). Directions are not known either (`reversed_motors`). What cannot be
converted is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rnea_ros import InputError, Robot

SUFFIX = ".pos"
UNITS = ("degrees", "radians", "range_m100_100", "range_0_100")
MIDDLE = {"degrees": 0.0, "radians": 0.0, "range_m100_100": 0.0, "range_0_100": 50.0}  # value at the middle of the range
WIDTH = {"range_m100_100": 200.0, "range_0_100": 100.0}  # of the range
ALIKE = 0.2  # largest relative difference between the recorded range and that of the URDF


class MotorUnit(NamedTuple):
    """Unit of a motor: one of UNITS, and the recorded range [rad], NaN where unknown, infinite for a full turn."""

    unit: str
    span: float = math.nan


@dataclass(frozen=True)
class MappingOptions:
    """Choices of a user.

    joints          : URDF joint by motor, where the names differ
    unprotected     : motors, or keys, that are not joints of the URDF: their values are passed on unchanged
    units           : unit by motor, where the robot does not say it
    offsets         : position at the middle of the recorded range, by motor [rad]
    reversed_motors : motors that turn against the URDF's joint
    """

    joints: Mapping[str, str]
    unprotected: Sequence[str]
    units: Mapping[str, str]
    offsets: Mapping[str, float]
    reversed_motors: Sequence[str]


def motor_units(arm: Any) -> dict[str, MotorUnit]:
    """Return the units of a LeRobot robot that has a `bus`, by motor; none for another robot."""
    bus = getattr(arm, "bus", None)
    found = {}
    for name, motor in getattr(bus, "motors", {}).items():
        unit = getattr(motor, "norm_mode", None)
        calibration = (getattr(bus, "calibration", None) or getattr(arm, "calibration", None) or {}).get(name)
        resolution = getattr(bus, "model_resolution_table", {}).get(getattr(motor, "model", None))
        span = math.nan
        if calibration is not None and resolution:
            counts = calibration.range_max - calibration.range_min
            span = math.inf if counts >= resolution - 2 else counts * 2.0 * math.pi / (resolution - 1)
        found[name] = MotorUnit(str(getattr(unit, "value", unit)), span)
    return found


def assign(robot: Robot, keys: Iterable[str], options: MappingOptions) -> dict[str, str]:
    """Return the URDF joint by motor. InputError where a key is neither a joint nor unprotected, or a joint has no motor."""
    assigned: dict[str, str] = {}
    skipped = {name.removesuffix(SUFFIX) for name in options.unprotected}
    for key in keys:
        motor = key.removesuffix(SUFFIX)
        if motor in skipped or key in options.unprotected:
            continue
        joint = options.joints.get(motor, motor)
        if not key.endswith(SUFFIX) or joint not in robot.joint_names:
            raise InputError(f"action {key} has no joint {joint!r} in the URDF, whose joints are {list(robot.joint_names)}; "
                             f"assign it by joints={{{motor}: JOINT}}, or list it in unprotected")
        assigned[motor] = joint
    absent = [joint for joint in robot.joint_names if list(assigned.values()).count(joint) != 1]
    if absent:
        raise InputError(f"joints {absent} of the URDF have no motor, or more than one; assign motors to them by "
                         "joints={MOTOR: JOINT}, or make them fixed in the URDF")
    return assigned


class JointMapping:
    """Conversion between motor values and joint positions of a robot.

    `motors` are in the order of the robot's joints; position = offset + scale (value - middle).
    """

    def __init__(self, robot: Robot, keys: Sequence[str], units: Mapping[str, MotorUnit], options: MappingOptions):
        """
        robot : the joints
        keys  : names of a LeRobot robot's action_features
        units : as `motor_units` returns them; `options.units` has priority
        Raises InputError where a value cannot be converted.
        """
        assigned = assign(robot, keys, options)
        by_joint = {joint: motor for motor, joint in assigned.items()}
        self.joint_names = robot.joint_names
        self.motors = tuple(by_joint[joint] for joint in robot.joint_names)
        self.keys = tuple(keys)
        self.unprotected = tuple(key for key in keys if key.removesuffix(SUFFIX) not in assigned)
        self.units = tuple(self._unit(motor, units, options) for motor in self.motors)
        self._middle = np.array([MIDDLE[one.unit] for one in self.units])
        signs = np.where(np.isin(self.motors, list(options.reversed_motors)), -1.0, 1.0)
        self._scale = signs * [self._factor(motor, one) for motor, one in zip(self.motors, self.units, strict=True)]
        lower, upper = robot.limits.lower, robot.limits.upper
        ranges = zip(lower.tolist(), upper.tolist(), strict=True)
        self._offset = np.array([self._zero(motor, one, ends, options.offsets)
                                 for motor, one, ends in zip(self.motors, self.units, ranges, strict=True)])

    @staticmethod
    def _unit(motor: str, units: Mapping[str, MotorUnit], options: MappingOptions) -> MotorUnit:
        found = units.get(motor, MotorUnit(""))
        if motor in options.units:
            found = found._replace(unit=options.units[motor])
        if found.unit not in UNITS:
            raise InputError(f"the unit of motor {motor} is {found.unit or 'unknown'!r}; give units={{{motor}: UNIT}} with "
                             f"one of {', '.join(UNITS)}")
        return found

    @staticmethod
    def _factor(motor: str, one: MotorUnit) -> float:
        """Return radians per unit."""
        if one.unit in ("degrees", "radians"):
            return math.pi / 180.0 if one.unit == "degrees" else 1.0
        span = 2.0 * math.pi if math.isinf(one.span) else one.span
        if not span > 0.0:
            raise InputError(f"values of motor {motor} are shares of a range that is not recorded: calibrate the robot")
        return span / WIDTH[one.unit]

    @staticmethod
    def _zero(motor: str, one: MotorUnit, limits: tuple[float, float], offsets: Mapping[str, float]) -> float:
        """Return the joint position at the middle of the recorded range [rad]."""
        if motor in offsets:
            return float(offsets[motor])
        lower, upper = limits
        if not math.isfinite(one.span) or not math.isfinite(upper - lower) or one.unit == "radians":
            return 0.0
        if abs(one.span - (upper - lower)) > ALIKE * (upper - lower):
            raise InputError(f"motor {motor} was calibrated over {one.span:.3g} rad, and its joint has {upper - lower:.3g} "
                             "rad in the URDF, so its zero is unknown: calibrate it over its whole range, or give "
                             f"offsets={{{motor}: POSITION}}, the URDF's position [rad] at the middle of the recorded range")
        return 0.5 * (lower + upper)

    def positions(self, values: Mapping[str, Any]) -> np.ndarray:
        """Return joint positions (n,) [rad] of values by key."""
        missing = [motor + SUFFIX for motor in self.motors if motor + SUFFIX not in values]
        if missing:
            raise InputError(f"values of {missing} are missing")
        return self.to_positions(np.array([float(values[motor + SUFFIX]) for motor in self.motors]))

    def to_positions(self, values: np.ndarray) -> np.ndarray:
        """Return joint positions (..., n) of values in the order of `motors`."""
        return self._offset + self._scale * (values - self._middle)

    def values(self, q: np.ndarray) -> dict[str, float]:
        """Return motor values by key of joint positions (n,)."""
        found = self._middle + (np.asarray(q) - self._offset) / self._scale
        return {motor + SUFFIX: float(value) for motor, value in zip(self.motors, found, strict=True)}

    def describe(self, values: Mapping[str, Any]) -> str:
        """Return a table of motors, units, joints and present positions: for a comparison with the arm by eye."""
        rows = [f"{motor}: {float(values[motor + SUFFIX]):.1f} {one.unit} = {joint} at {q:.3f} rad" for motor, one, joint, q in
                zip(self.motors, self.units, self.joint_names, self.positions(values), strict=True)]
        return "; ".join(rows + [f"{key}: unprotected" for key in self.unprotected])
