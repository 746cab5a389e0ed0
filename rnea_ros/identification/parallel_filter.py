"""Parallel filtering: regressor and torque pass the same low-pass, so that their equations stay true, and fewer are kept.

Noise above the band of the motion goes (Gautier 1997). Every sum of true equations is a true equation, whatever the stamps.
"""

from __future__ import annotations

import numpy as np

TAPS = 4  # of the low-pass on either side, for each sample that is left out
BAND = 0.4  # cycles per kept sample that pass; half a cycle is the most that can be told


def low_pass(decimate: int) -> np.ndarray:
    """Symmetric taps of a windowed sinc: no shift in time. One tap, 1, without decimation."""
    if decimate == 1:
        return np.ones(1)
    k = np.arange(-TAPS * decimate, TAPS * decimate + 1)
    taps = np.sinc(2.0 * BAND * k / decimate) * np.hanning(len(k) + 2)[1:-1]
    return taps / taps.sum()


def filtered(x: np.ndarray, taps: np.ndarray, decimate: int) -> np.ndarray:
    """Along the first axis, every decimate-th sample of what the taps reach."""
    span = len(x) - len(taps) + 1
    return np.sum([x[k:k + span:decimate] * tap for k, tap in enumerate(taps)], axis=0) if len(taps) > 1 else x
