"""How far off filters are, beside what they claim: learnt from how far later samples move what was estimated without them.

Filters take the derivatives of motion for white noise. Real motion is smoother than that most of the time, and now and then
jumps: what filters claim covers too much of the errors or too little. So each joint's standard deviations are multiplied by a
scale, which grows when a correction is beyond two of them and falls when it is not, until 95 % are inside. No distribution is
assumed. Gibbs, Candes, Adaptive conformal inference under distribution shift, NeurIPS 2021, with the scale's logarithm.
"""

from __future__ import annotations

import numpy as np

EVERY, EVERY_SAMPLES = 0.016, 4  # s, and at least so many samples, between two looks
AFTER = 0.15  # s; samples that come later say little more about an instant
_START = 1.5
_OUTSIDE = 0.046  # of the errors are beyond two standard deviations
_STEP = 0.12  # by which the scale's logarithm grows; it falls by so much less that both are in balance
_LEAST, _MOST = 0.5, 6.0


class Grades:
    """scale (4, n): by which claimed standard deviations of position, velocity, acceleration and jerk are multiplied."""

    def __init__(self, joints: int):
        self.scale = np.full((4, joints), _START)

    def see(self, corrected: np.ndarray, claimed: np.ndarray, moving: np.ndarray) -> None:
        """By how much later samples moved estimates (4, n) with such deviations; moving (n,): others say nothing."""
        outside = np.abs(corrected) > 2.0 * self.scale * claimed
        grown = self.scale * np.exp(_STEP * (outside - _OUTSIDE))
        self.scale = np.where(moving, np.minimum(np.maximum(grown, _LEAST), _MOST), self.scale)
