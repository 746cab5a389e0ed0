"""Noise of measured positions: the encoder's steps, noise beside them, errors of the times; and how it is learnt."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .encoder import find_resolution

if TYPE_CHECKING:
    from .filter_bank import FilterBank, Sample
    from .sample_clock import SampleClock

_MEMORY = 2.0  # s of motion
_LEAST = 5e-7  # rad, m; of positions on no grid that is known: those of a simulation may be exact
_KNOWN = 16.0  # samples of a moving joint after which its noise is known
_BLOCK, _LATER_BLOCKS = 16, 48  # samples from which noise and clock are learnt, first and later
_SEARCHED = 4  # blocks in which a resolution is looked for, each time that so many have come,
_SELDOM = 64  # until so many looks were in vain: then rarely


class PositionNoise:
    """Variances of the positions of n joints: resolution**2 / 12 + deviation**2 + (jitter**2 + drift_std**2) velocity**2.

    resolution : (n,) distance of the positions that an encoder can tell apart, 0 where it is not known
    deviation  : (n,) standard deviation of what comes on top of it
    jitter     : standard deviation that is left in the times of the samples [s], the same for all joints
    drift_std     : what those times may be off because the clock is still being found out [s]; set from outside
    known      : (n,) whether all this is no mere guess
    """

    def __init__(self, resolution: np.ndarray):
        self.resolution, self.deviation = resolution, np.zeros_like(resolution)
        self.jitter = self.drift_std = 0.0
        self._sums = np.zeros((5, len(resolution)))
        self._add_up()

    @property
    def std_at_rest(self) -> np.ndarray:
        """Standard deviations (n,) of positions at rest."""
        return self._std_at_rest

    def variance(self, velocity: np.ndarray) -> np.ndarray:
        """(n,) or (k, n) of positions measured at these velocities."""
        blur = self.jitter * self.jitter + self.drift_std * self.drift_std
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
        self._std_at_rest = np.sqrt(self._still)
        self.known = (self.resolution > 0.0) | (self._sums[0] > _KNOWN)


class SensorLearning:
    """Learns noise, clock and encoder steps from the samples that filters took, a few at a time.

    noise   : what is known of the positions
    learned : whether anything was learnt since it began anew
    """

    def __init__(self, noise: PositionNoise):
        self.noise = noise
        self._looks = 0
        self._positions: list[np.ndarray] = []
        self.begin()

    def begin(self) -> None:
        """Samples to come do not follow those before. What is known of noise stays."""
        self.learned = False
        self._blocks = 0
        self._block: list[tuple] = []

    def update(self, filters: FilterBank, sample: Sample, deviation: float = 0.0, taken: float = 0.0,
            clock: SampleClock | None = None) -> None:
        """A sample, one period after the last one. deviation, taken: of its stamp, and what of that the clock took off."""
        self._block.append((deviation, taken, *sample))
        if len(self._block) == (_LATER_BLOCKS if self._blocks > _SEARCHED else _BLOCK):
            self._learn(filters, clock)

    def _learn(self, filters: FilterBank, clock: SampleClock | None) -> None:
        deviation, taken, position, velocity, innovation = map(np.array, zip(*self._block))
        expected = filters.expected
        moving = np.diff(position, axis=0, prepend=position[:1]) != 0.0
        if clock:
            clock.learn(deviation, taken, velocity, innovation, expected * self.noise.variance(velocity))
        self.noise.learn(filters.period, velocity, innovation * innovation / expected, moving)
        self._block.clear()
        self._blocks += 1
        self.learned = True
        self._search(position, moving)

    def _search(self, position: np.ndarray, moving: np.ndarray) -> None:
        """Look for the resolutions that are not known yet, in the latest positions."""
        unknown = self.noise.resolution == 0.0
        if not moving[:, unknown].any():
            return
        self._positions.append(position)
        if len(self._positions) == _SEARCHED:
            self._looks += 1
            if self._looks < _SELDOM or self._looks % _SELDOM == 0:
                self.noise.resolved(find_resolution(np.concatenate(self._positions)))
            self._positions.clear()
