"""Muscle fatigue of repeated or sustained work: the three-compartment model, driven by joint torques over strength.

T. Xia, L. A. Frey-Law, J. Biomechanics 41 (2008) 3046-3052. The motor units of a joint are active, resting or fatigued. Active
ones fatigue at the rate F, fatigued ones recover at the rate R, at r R while the joint rests (J. M. Looft, N. Herkert,
L. Frey-Law, J. Biomechanics 77 (2018) 16-25). With the load L (torque over strength, 0 to 1) the fatigued share obeys

    dM/dt = F L - R M under load,   dM/dt = -r R M at rest,   capacity = 1 - M

and the work fails where the load exceeds the capacity. The published controller activates units at 10 per second; here they
follow the load at once, which makes a cycle of work an affine map of M, and any number of cycles a closed formula.

Rates from constant loads: L. A. Frey-Law, J. M. Looft, J. Heitsman, J. Biomechanics 45 (2012) 1803-1808, table 1. They have
no hip: its rates are the general ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..errors import InputError

REST_MULTIPLIER = 15.0  # r, best for ankle, knee, elbow (2018) and shoulder (2020)


class FatigueRates(NamedTuple):
    """Rates of fatigue and recovery [1/s]."""

    F: float
    R: float


RATES = {"ankle": FatigueRates(0.00589, 0.00058), "knee": FatigueRates(0.01500, 0.00149),
         "trunk": FatigueRates(0.00755, 0.00075), "shoulder": FatigueRates(0.01820, 0.00168),
         "elbow": FatigueRates(0.00912, 0.00094), "grip": FatigueRates(0.00980, 0.00064),
         "general": FatigueRates(0.00970, 0.00091)}
REGIONS = {"ankle": "ankle", "subtalar": "ankle", "toe": "ankle", "knee": "knee", "shoulder": "shoulder",
           "clavicle": "shoulder", "elbow": "elbow", "forearm": "elbow", "wrist": "grip", "l5s1": "trunk", "l4l3": "trunk",
           "t12l1": "trunk", "t9t8": "trunk"}


def fatigue_region(joint: str) -> str:
    """Return the region of a coordinate of the skeleton, a key of RATES."""
    words = joint.removeprefix("right_").removeprefix("left_").split("_")
    return REGIONS.get(words[0], "general")


def sustained_endurance(load: np.ndarray | float, rates: FatigueRates) -> np.ndarray:
    """Return the time [s] for which a constant load can be held; infinite at or below the load R / (F + R)."""
    load = np.asarray(load, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        remaining = 1.0 - rates.R * (1.0 - load) / (rates.F * load)
        return np.where(load >= 1.0, 0.0, np.where(remaining > 0.0, -np.log(remaining) / rates.R, np.inf))


@dataclass(frozen=True, eq=False)
class RepeatedWork:
    """Work that is repeated with rest after it.

    t     : instants (samples,) of the work, from 0 [s]
    load  : (samples, k) torque over strength of each joint, of either sign
    period: time from one start to the next [s]; what the work leaves of it is rest
    rates : of each joint
    """

    t: np.ndarray
    load: np.ndarray
    period: float
    rates: Sequence[FatigueRates]
    rest_multiplier: float = REST_MULTIPLIER

    def __post_init__(self) -> None:
        if not self.period >= self.t[-1]:
            raise InputError(f"period is {self.period:g} s; it must be at least the duration of the work, {self.t[-1]:g} s")

    @cached_property
    def _map(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Decay and growth (samples, k) of the fatigued share since the start, and those of a period (k,)."""
        F, R = np.array(self.rates).T
        size, step = np.abs(self.load), np.diff(self.t)[:, None]
        decay, rise = np.ones_like(size), np.zeros_like(size)
        keep = np.exp(-R * step)
        gain = F / R * (1.0 - keep) * (size[1:] + size[:-1]) / 2.0
        for k in range(len(step)):
            decay[k + 1], rise[k + 1] = keep[k] * decay[k], keep[k] * rise[k] + gain[k]
        rest = np.exp(-self.rest_multiplier * R * (self.period - self.t[-1]))
        return decay, rise, rest * decay[-1], rest * rise[-1]

    def capacity(self, cycles: float) -> np.ndarray:
        """Return the capacity (k,) left after so many periods: share of the strength. Not below that where the work fails."""
        _, _, decay, rise = self._map
        return 1.0 - rise / (1.0 - decay) * (1.0 - decay ** np.minimum(cycles, self.cycles))

    @cached_property
    def cycles(self) -> np.ndarray:
        """Number (k,) of complete cycles before the load exceeds the capacity; infinite if it never does."""
        along_decay, along_rise, decay, rise = self._map
        bearable = ((1.0 - np.abs(self.load) - along_rise) / along_decay).min(axis=0)  # largest fatigued share at a start
        final = rise / (1.0 - decay)
        with np.errstate(divide="ignore", invalid="ignore"):
            number = np.floor(np.log(1.0 - bearable / final) / np.log(decay)) + 1.0
        return np.where(bearable < 0.0, 0.0, np.where(bearable >= final, np.inf, number))

    @property
    def endurance(self) -> np.ndarray:
        """Time (k,) that the complete cycles take [s]."""
        return self.cycles * self.period
