"""Sensors of a plant: what encoders, the IMU and force sensors make of an instant, with noise that a seed decides."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .plant import Instant


class Noise(NamedTuple):
    """Standard deviations of one reading, but for the encoders' resolution; zero is a perfect sensor."""

    resolution: float = 0.0  # rad, m; positions are whole multiples of it
    velocity: float = 0.0  # rad/s, m/s
    accelerometer: float = 0.0  # m/s^2
    gyro: float = 0.0  # rad/s
    force: float = 0.0  # N
    moment: float = 0.0  # N m


# A 17-bit encoder and its tachometer, an IMU as walking robots have them, a small six-axis sensor.
REAL = Noise(2.0 * np.pi / 2**17, 2e-3, 0.02, 1e-3, 0.05, 1e-3)


class Sensors:
    """Instants in, instants as they are measured out; accelerations, base and torques stay what they are."""

    def __init__(self, noise: Noise = REAL, seed: int = 0):
        self._noise, self._rng = noise, np.random.default_rng(seed)

    def __call__(self, instant: Instant) -> Instant:
        noise = self._noise
        q = np.round(instant.q / noise.resolution) * noise.resolution if noise.resolution else instant.q
        spread = np.repeat((noise.force, noise.moment), 3)
        return instant._replace(
            q=q, qd=self._off(instant.qd, noise.velocity), gyro=self._off(instant.gyro, noise.gyro),
            accelerometer=self._off(instant.accelerometer, noise.accelerometer),
            wrenches={link: self._off(six, spread) for link, six in instant.wrenches.items()})

    def _off(self, true: np.ndarray, deviation: float | np.ndarray) -> np.ndarray:
        return true + deviation * self._rng.standard_normal(true.shape)
