"""How warm windings are, by their current: its mean square over the winding's time constant, against what is allowed for ever.

    T d load/dt = (i / i_c)^2 - load

with the continuous current i_c: the losses R i^2 warm a winding of one heat capacity, which cools in proportion. A load of 1
is the temperature that a data sheet allows. The current is proportional to the torque, so the torque's share of the
continuous torque is all that is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

RECENT = 0.1  # of the time constant: the span whose mean square is "the present load"


class ThermalLoad:
    """Of n windings, from cold. Joints whose numbers are unknown (NaN) stay at NaN.

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

    def see(self, dt: float, tau: np.ndarray) -> None:
        """That these torques (n,) act for a time [s]."""
        np.multiply(tau, self._per_torque, out=self._share)
        np.multiply(self._share, self._share, out=self._share)
        gap = self._state - self._share
        gap *= np.exp(self._rate * dt)
        np.add(gap, self._share, out=self._state)

    def time_left(self) -> np.ndarray:
        """(n,) [s] until the load is 1 if the recent one goes on: infinity: never."""
        load, recent = self._state
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self._constant * np.log((recent - load) / (recent - 1.0))
        found = np.where(recent > 1.0, found, np.inf)
        return np.where(np.isnan(load), np.nan, np.where(load >= 1.0, 0.0, found))

    def take_over(self, before: ThermalLoad) -> None:
        """Go on with what another one knows of the same joints."""
        known = np.isfinite(self._state) & np.isfinite(before._state)
        self._state[known] = before._state[known]
