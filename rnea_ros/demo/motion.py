"""Smooth motions for demos: joint positions and their first three derivatives at any time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import Polynomial

from ..errors import InputError


def _with_derivatives(*coefficients: float) -> tuple[Polynomial, ...]:
    return tuple(Polynomial(coefficients).deriv(order) for order in range(4))


# Blends from 0 to 1 for s from 0 to 1, at rest at both ends; each with its first three derivatives.
QUINTIC = _with_derivatives(0, 0, 0, 10, -15, 6)  # Guarino Lo Bianco (2009); its jerk is not zero at the ends
SEPTIC = _with_derivatives(0, 0, 0, 0, 35, -84, 70, -20)  # zero jerk at the ends: the torque rate does not jump

# Guarino Lo Bianco (2009), table III: theta1, theta2, d3, theta4, theta5, theta6, in two seconds
STANFORD_START = (np.pi / 2, 0.0, 0.0, np.pi / 2, np.pi / 4, np.pi / 2)
STANFORD_END = (np.pi / 4, np.pi / 2, 2.0, np.pi / 4, np.pi / 2, 0.0)
STANFORD_DURATION = 2.0

MAX_SWEEP = {"revolute": 1.0, "continuous": 1.0, "prismatic": 0.2}  # rad, m
LIMITS_SHARE = 0.5  # of the limits of velocity, acceleration and jerk, at most
MIN_SWEEP_DURATION_S = 2.0


class MotionSample(NamedTuple):
    """Joint positions and their first three time derivatives, (n,) or (samples, n)."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray


@dataclass(frozen=True, eq=False)
class BackAndForth:
    """Motion from `start` to `end` and back, repeated; each way takes `duration` [s] and follows `shape`."""

    start: np.ndarray
    end: np.ndarray
    duration: float
    shape: tuple[Polynomial, ...]

    def __post_init__(self) -> None:
        if not 0 < self.duration < np.inf:
            raise InputError(f"duration of a motion is {self.duration} s; a finite time above zero is needed")

    def __call__(self, t: float) -> MotionSample:
        way, since = divmod(t, self.duration)
        start, end = (self.start, self.end) if way % 2 == 0 else (self.end, self.start)
        s = since / self.duration
        moved, qd, qdd, qddd = [(end - start) * (blend(s) / self.duration**k) for k, blend in enumerate(self.shape)]
        return MotionSample(start + moved, qd, qdd, qddd)


@dataclass(frozen=True, eq=False)
class Harmonics:
    """Periodic motion: middle (n,) plus the sum of amplitudes (n,) times cos(k (2 pi t / period + phase)) over the pairs
    (k, amplitudes) of `terms`.
    """

    period: float
    middle: np.ndarray
    terms: tuple[tuple[int, np.ndarray], ...]
    phase: np.ndarray | float = 0.0

    def derivatives(self, t: float, count: int) -> list[np.ndarray]:
        """Return position and its first derivatives, `count` arrays (n,)."""
        w = 2.0 * np.pi / self.period
        found = [sum((amplitudes * (k * w) ** order * np.cos(k * (w * t + self.phase) + order * np.pi / 2.0)
                      for k, amplitudes in self.terms), np.zeros_like(self.middle)) for order in range(count)]
        return [self.middle + found[0], *found[1:]]

    def __call__(self, t: float) -> MotionSample:
        return MotionSample(*self.derivatives(t, 4))


class PeriodicMotion:
    """Periodic motion through samples of one period, as a Fourier series."""

    def __init__(self, period: float, samples: np.ndarray):
        """Create a motion from samples (N, n) at the times k period / N."""
        kept = len(samples) // 2  # harmonics; the phase of the highest one is not determined
        self._series = np.fft.rfft(samples, axis=0)[:kept] * (2.0 / len(samples))
        self._series[0] /= 2.0
        self._w = 2j * np.pi / period * np.arange(kept)

    def derivatives(self, t: float, count: int) -> np.ndarray:
        """Return position and its first derivatives, (count, n)."""
        turning = np.exp(self._w * t) * self._w ** np.arange(count)[:, None]
        found: np.ndarray = (turning @ self._series).real
        return found

    def __call__(self, t: float) -> MotionSample:
        return MotionSample(*self.derivatives(t, 4))


def stanford_motion(duration: float = STANFORD_DURATION) -> BackAndForth:
    """Return the motion of Guarino Lo Bianco (2009), section V, there and back."""
    return BackAndForth(np.array(STANFORD_START), np.array(STANFORD_END), duration, QUINTIC)


def sweep_motion(joint_types: Sequence[str], limits: Any, duration: float | None = None) -> BackAndForth:
    """Return a motion of every joint through the middle of its range, within the limits of velocity, acceleration and jerk.

    limits : arrays lower, upper, velocity, acceleration, jerk; NaN where unknown. A joint uses the middle half of its range
    and at most 1 rad or 0.2 m; without position limits it moves about zero.
    """
    span = np.array([MAX_SWEEP[joint_type] for joint_type in joint_types])
    bounded = np.isfinite(limits.lower) & np.isfinite(limits.upper)
    lower, upper = np.where(bounded, limits.lower, -span), np.where(bounded, limits.upper, span)
    reach = np.minimum(span, (upper - lower) / 2)
    start, end = (lower + upper - reach) / 2, (lower + upper + reach) / 2
    if duration is None:
        duration = MIN_SWEEP_DURATION_S
        for order, limit in enumerate((limits.velocity, limits.acceleration, limits.jerk), start=1):
            peak = np.abs(SEPTIC[order](np.linspace(0.0, 1.0, 1001))).max() * reach  # times 1 / duration^order
            needed = (peak / (LIMITS_SHARE * np.asarray(limit, dtype=float))) ** (1.0 / order)
            duration = max([duration, *needed[np.isfinite(needed)]])
    return BackAndForth(start, end, float(duration), SEPTIC)


def choose_motion(robot: Any, name: str = "auto", duration: float | None = None) -> BackAndForth:
    """Return the motion `name` ("stanford", "sweep") for a robot; "auto": the paper's on the Stanford arm, else a sweep."""
    is_stanford = robot.name == "stanford" and robot.n == len(STANFORD_START)
    if name == "stanford" and not is_stanford:
        raise InputError(f"motion 'stanford' is for the robot 'stanford' with 6 joints, not for '{robot.name}'")
    if name == "stanford" or (name == "auto" and is_stanford):
        return stanford_motion(duration or STANFORD_DURATION)
    if name in ("auto", "sweep"):
        return sweep_motion(robot.joint_types, robot.limits, duration)
    raise InputError(f"motion '{name}' is unknown; there are auto, stanford and sweep")
