"""How wrong measured positions are: the encoder's steps, noise beside them, and times that are not those of the samples."""

from __future__ import annotations

import math

import numpy as np

_MEMORY = 2.0  # s of motion
_LEAST = 5e-7  # rad, m; of positions on no grid that is known: those of a simulation may be exact
_KNOWN = 16.0  # samples of a moving joint after which its noise is known


class PositionNoise:
    """Variances of the positions of n joints: resolution**2 / 12 + deviation**2 + (jitter**2 + wander**2) velocity**2.

    resolution : (n,) distance of the positions that an encoder can tell apart, 0 where it is not known
    deviation  : (n,) standard deviation of what comes on top of it
    jitter     : standard deviation that is left in the times of the samples [s], the same for all joints
    wander     : what those times may be off because the clock is still being found out [s]; set from outside
    known      : (n,) whether all this is no mere guess
    """

    def __init__(self, resolution: np.ndarray):
        self.resolution, self.deviation = resolution, np.zeros_like(resolution)
        self.jitter = self.wander = 0.0
        self._sums = np.zeros((5, len(resolution)))
        self._add_up()

    def variance(self, velocity: np.ndarray) -> np.ndarray:
        """(n,) or (k, n) of positions measured at these velocities."""
        blur = self.jitter * self.jitter + self.wander * self.wander
        return self._still + blur * velocity * velocity if blur else np.broadcast_to(self._still, velocity.shape)

    def learn(self, period: float, velocity: np.ndarray, square: np.ndarray, moving: np.ndarray) -> None:
        """From samples (k, n) at a period: squared innovations of a filter that follows any motion, by what they would be for
        positions of variance 1. moving: where a position differs from the one before; others say nothing."""
        v2 = velocity * velocity
        rows = np.stack([np.ones_like(v2), v2, v2 * v2, square, square * v2])
        faded = np.exp(-period / _MEMORY * moving.sum(axis=0))
        self._sums = faded * self._sums + (rows * moving).sum(axis=1)
        n, v2, v4, s, sv2 = self._sums  # a line through squares over v2: one slope for all joints, an intercept for each
        slope = float((n * sv2 - v2 * s).sum()) / max(float((n * v4 - v2 * v2).sum()), 1e-300)
        self.jitter = math.sqrt(max(slope, 0.0))
        rest = (s - self.jitter**2 * v2) / np.maximum(n, 1e-9) - self.resolution**2 / 12.0
        self.deviation = np.sqrt(np.maximum(rest, 0.0))
        self._add_up()

    def resolved(self, found: np.ndarray) -> None:
        """Resolutions (n,) were found, 0 where not."""
        finer = (found > 0.0) & ((self.resolution == 0.0) | (found < 0.9 * self.resolution))
        self.resolution = np.where(finer, found, self.resolution)
        self._add_up()

    def _add_up(self) -> None:
        encoder = np.where(self.resolution > 0.0, self.resolution / math.sqrt(12.0), _LEAST)
        self._still = encoder**2 + self.deviation**2
        self.known = (self.resolution > 0.0) | (self._sums[0] > _KNOWN)
