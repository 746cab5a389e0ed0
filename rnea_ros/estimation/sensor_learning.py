"""What samples tell of the sensors that they come from, while filters run: noise, what stamps are worth, encoders' steps."""

from __future__ import annotations

import numpy as np

from .encoder import find_resolution
from .filter_bank import FilterBank, Sample
from .position_noise import PositionNoise
from .sample_clock import SampleClock

_BLOCK = 16  # samples after which noise and clock are looked at
_SEARCHED = 4  # blocks in which a resolution is looked for, each time that so many have come,
_SELDOM = 64  # until so many looks were in vain: then rarely


class SensorLearning:
    """Looks at the samples that filters took, a few at a time.

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
        self._block: list[tuple] = []

    def see(self, filters: FilterBank, sample: Sample, deviation: float = 0.0, taken: float = 0.0,
            clock: SampleClock | None = None) -> None:
        """A sample, one period after the last one. deviation, taken: of its stamp, and what of that the clock took off."""
        self._block.append((deviation, taken, *sample))
        if len(self._block) == _BLOCK:
            self._learn(filters, clock)

    def _learn(self, filters: FilterBank, clock: SampleClock | None) -> None:
        deviation, taken, position, velocity, innovation = map(np.array, zip(*self._block))
        expected = filters.expected
        moving = np.diff(position, axis=0, prepend=position[:1]) != 0.0
        if clock:
            clock.learn(deviation, taken, velocity, innovation, expected * self.noise.variance(velocity))
        self.noise.learn(filters.period, velocity, innovation * innovation / expected, moving)
        self._block.clear()
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
