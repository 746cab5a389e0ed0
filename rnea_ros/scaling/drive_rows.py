"""Limits of drives as rows beside those of terms.py.

Voltage, current and motor speed are lines in torque, torque rate and speed, so their constraint coefficients are the same sums
of the coefficients of these three. Power is torque times speed: with the coefficients of torque those of power stand one place
further, at (sd, sd^2, sd^3, sd sdd) instead of (1, sd, sd^2, sdd).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

TIMES_SPEED = {0: 1, 1: 2, 2: 4, 3: 5}  # place of a coefficient of torque -> its place in power
Coefficients = Mapping[str, Mapping[int, np.ndarray]]  # quantity -> place -> (n, samples)


class DriveLimit(Protocol):
    """lower < 0 < upper, between which a sum of torque, torque rate, speed and power of joints must stay."""

    @property
    def quantity(self) -> str: ...

    @property
    def joints(self) -> tuple[int, ...]: ...

    @property
    def lower(self) -> float: ...

    @property
    def upper(self) -> float: ...

    @property
    def description(self) -> str: ...


class DriveRows:
    """limits : see model/drive_limits.py
    factors : (limits, n) each: what "effort", "effort_rate", "velocity" and "power" of each joint on the path count in them
    coulomb : (n,) what Coulomb friction, which is no part of the torque's coefficients, can take of each torque

    offset  : (limits,) what the rows have at place 0 beside the motion's part: the middle between lower and upper limit, which
              becomes zero
    """

    def __init__(self, limits: Sequence[DriveLimit], factors: Mapping[str, np.ndarray], coulomb: np.ndarray):
        self.limits, self._coulomb = tuple(limits), coulomb
        self._factors = {name: table for name, table in factors.items() if table.any()}
        taken = np.abs(factors["effort"]) @ coulomb
        lower, upper = (np.array([getattr(limit, end) for limit in self.limits]) for end in ("lower", "upper"))
        lower, upper = lower + taken, upper - taken
        self.left = np.minimum(-lower, upper)  # of each limit, by Coulomb friction; zero or less: nothing
        self._half = 0.5 * (upper - lower)
        self.offset = -0.5 * (upper + lower) / self._half
        self._half = np.where(self._half > 0.0, self._half, np.nan)

    @property
    def third_order(self) -> bool:
        return "effort_rate" in self._factors

    def alone(self, name: str) -> np.ndarray:
        """(n,) the largest that these limits leave of a joint's "effort" or "effort_rate" where all else is zero; NaN if none
        limits it."""
        if name not in self._factors:
            return np.full(len(self._coulomb), np.nan)
        table = np.abs(self._factors[name])
        left = np.divide(self._half[:, None], table, out=np.full(table.shape, np.nan), where=table > 0.0)
        return np.fmin.reduce(left, axis=0)

    def rows(self, weights: Coefficients, q1: np.ndarray) -> np.ndarray:
        """Their coefficients (7, limits, samples), from those of effort, effort_rate and velocity, and q' (n, samples)."""
        rows = np.zeros((7, len(self.limits), *q1.shape[1:]))
        for name, table in self._factors.items():
            if name == "power":
                for place, values in weights["effort"].items():
                    rows[TIMES_SPEED[place]] += table @ (values * q1)
                rows[1] += table @ (self._coulomb[:, None] * np.abs(q1))
            else:
                for place, values in weights[name].items():
                    rows[place] += table @ values
        rows /= self._half[:, None]
        rows[0] += self.offset[:, None]
        return rows
