"""Long recordings are estimated block by block.

A block is estimated from its own samples and from those near it on either side, and from nothing else: an hour is no more to
keep in memory than a minute, and a part of a recording gives, to the last bit, what the whole gives.
"""

from __future__ import annotations

import math
from typing import NamedTuple

SECONDS, SAMPLES = 60.0, 5000  # of a block, and at least so many samples at the recording's mean distance
SIDE = 12  # so much of a block is looked at on either side of it: longer than filters remember, and windows reach


class Blocks(NamedTuple):
    """Block k of a number of them begins at start + k * length [s]; the first with the recording."""

    start: float
    length: float
    number: int

    @classmethod
    def of(cls, first: float, last: float, samples: int) -> Blocks:
        """Of a recording with so many samples from first to last [s]."""
        length = max(SECONDS, SAMPLES * (last - first) / max(samples - 1, 1))
        return cls(first, length, int((last - first) / length) + 1)

    def begin(self, k: int) -> float:
        """When a block begins, and the one before ends [s]; the last has no end, the first is open to what came before."""
        return -math.inf if k <= 0 else math.inf if k >= self.number else self.start + k * self.length

    def around(self, k: int) -> tuple[float, float]:
        """From when to when samples lie that are near both sides of a beginning [s]."""
        side = self.length / SIDE
        return self.begin(k) - side, self.begin(k) + side

    def window(self, k: int) -> tuple[float, float]:
        """From when to when the samples lie that a block is estimated from [s]."""
        return self.around(k)[0], self.around(k + 1)[1]
