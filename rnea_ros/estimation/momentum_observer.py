"""External efforts from the generalized momentum: what its rate holds beside the known efforts (De Luca and Mattone 2003).

With p = M qd, dp/dt = tau + drift + tau_ext. No acceleration is needed: of

    r = gain (p - integral of (tau + drift + r))

the rate is gain (tau_ext - r): r follows the external efforts as a first-order filter does.
"""

from __future__ import annotations

import numpy as np

MEMORY = 2.0  # s; over which noise is found out
FEWEST = 50  # samples, before which it is not known
SUDDEN = 4.0  # standard deviations; more counts as that much: a contact is no noise
LONGEST = 0.5  # s; a gap, after which nothing of the past counts


class MomentumObserver:
    """Momenta and efforts in, sample by sample; external efforts out.

    r     : (n,) external efforts [N m, N]
    noise : (n,) standard deviation of r that noise of momenta and efforts makes, found in them; infinite until it is known
    """

    def __init__(self, n: int, gain: float):
        """gain: bandwidth [1/s]: r has reached 63 % of a constant effort after 1 / gain."""
        self.gain, self._n = gain, n
        self.clear()

    def clear(self) -> None:
        """Forget what was before: the clock was set, or another model serves."""
        self.r, self.noise = np.zeros(self._n), np.full(self._n, np.inf)
        self._samples, self._variance = 0, np.zeros((2, self._n))  # of momenta and efforts
        self._known = self._integral = np.zeros(self._n)
        self._lost = np.zeros(self._n)  # the integral of known efforts: what is left of p without it changes slowly
        self._before: list[np.ndarray] = []  # (2, n) each: momentum less that integral, effort

    def push(self, dt: float, p: np.ndarray, drift: np.ndarray, tau: np.ndarray,
             p_std: np.ndarray | float = 0.0) -> np.ndarray:
        """r, dt [s] after the sample before. tau: measured; p_std: of p, where it is known better than the samples tell."""
        if dt > LONGEST:
            self.clear()
        known = tau + drift
        if self._samples == 0:
            self._integral = p.copy()
        else:
            mean = 0.5 * (known + self._known)
            self._lost = self._lost + dt * mean
            # implicit: stable at any dt
            self._integral = (self._integral + dt * (mean + self.gain * p)) / (1.0 + dt * self.gain)
        self.r, self._known = self.gain * (p - self._integral), known
        self._learn(dt, np.array((p - self._lost, tau)))
        if self._samples >= FEWEST:
            momenta, efforts = self._variance
            momenta = np.maximum(momenta, np.square(p_std))
            self.noise = np.sqrt(self.gain**2 * momenta + 0.5 * self.gain * dt * efforts)
        return self.r

    def _learn(self, dt: float, values: np.ndarray) -> None:
        """Noise from second differences, in which motion and constant efforts vanish: 6 times its variance."""
        if len(self._before) == 2:
            found = np.square(values - 2.0 * self._before[1] + self._before[0]) / 6.0
            if self._samples > FEWEST:
                found = np.minimum(found, SUDDEN**2 * self._variance)
            self._variance += max(1.0 / (self._samples - 1), min(dt / MEMORY, 1.0)) * (found - self._variance)
        self._before = [*self._before[-1:], values]
        self._samples += 1
