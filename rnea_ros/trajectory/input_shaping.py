"""Input shaping: a motion convolved with impulses that leave no vibration at given natural frequencies.

Singer, Seering, "Preshaping command inputs to reduce system vibration", J. of Dynamic Systems, Measurement, and Control 112
(1990). The shaped motion stays on the path of a single joint, is longer by the time of the last impulse, and, as a mean of
delayed copies, keeps every limit of position, velocity, acceleration and jerk of each joint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.taylor import SepticHermite
from ..algebra.vectors import Array
from ..errors import InputError

KINDS = {"zv": 1, "zvd": 2, "zvdd": 3}  # zeros at each vibration
SAME_TIME = 1e-12  # s


@dataclass(frozen=True, eq=False)
class InputShaper:
    """Impulses at times (k,) [s] with weights (k,), whose sum is 1."""

    times: Array
    weights: Array

    @property
    def duration(self) -> float:
        """Time by which a shaped motion is longer [s]."""
        return float(self.times[-1])

    def shape(self, t: ArrayLike, motion: ArrayLike) -> tuple[Array, Array]:
        """Return times (samples,) and motion (4, samples, n) that is shaped, with the sampling period of the first two times.

        t : (samples,) rising; motion: q, qd, qdd, qddd, (4, samples, n), at rest at both ends
        """
        given, curve = np.asarray(t, dtype=float), np.asarray(motion, dtype=float)
        if given.ndim != 1 or len(given) < 2 or curve.shape[:2] != (4, len(given)) or (np.diff(given) <= 0.0).any():
            raise InputError(f"the motion is {curve.shape} at times {given.shape}; (4, samples, n) at two or more rising "
                             "times is needed")
        spans = [SepticHermite(curve[:, k], curve[:, k + 1], given[k + 1] - given[k]) for k in range(len(given) - 1)]
        step, end = given[1] - given[0], given[-1] + self.duration
        new = given[0] + step * np.arange(int(np.ceil((end - given[0]) / step - SAME_TIME)) + 1)
        total = np.zeros((4, len(new), curve.shape[2]))
        for time, weight in zip(self.times, self.weights, strict=True):
            at = np.clip(new - time, given[0], given[-1])
            span = np.minimum(np.searchsorted(given, at, side="right") - 1, len(spans) - 1)
            total += weight * np.stack([spans[k](at[row] - given[k]) for row, k in enumerate(span)], axis=1)
        return new, total


def input_shaper(frequencies: ArrayLike, damping_ratios: ArrayLike = 0.0, kind: str = "zvd") -> InputShaper:
    """Return the shaper for vibrations.

    frequencies    : undamped natural frequencies [rad/s]; damping_ratios: of each, below 1 [-]
    kind           : "zv": no vibration at the frequency; "zvd", "zvdd": nor near it, with one or two impulses more
    """
    if kind not in KINDS:
        raise InputError(f"the shaper is '{kind}'; allowed are {', '.join(KINDS)}")
    frequency, ratio = np.broadcast_arrays(np.atleast_1d(np.asarray(frequencies, float)), np.asarray(damping_ratios, float))
    if not (frequency > 0.0).all() or not ((ratio >= 0.0) & (ratio < 1.0)).all():
        raise InputError(f"frequencies are {frequency} rad/s with damping ratios {ratio}; frequencies above zero and ratios "
                         "from 0 to below 1 are needed")
    found = InputShaper(np.zeros(1), np.ones(1))
    for w, z in zip(frequency, ratio, strict=True):
        half, decay, order = np.pi / (w * np.sqrt(1.0 - z * z)), np.exp(-z * np.pi / np.sqrt(1.0 - z * z)), KINDS[kind]
        weights = np.array([comb(order, k) * decay**k for k in range(order + 1)]) / (1.0 + decay)**order
        found = _convolved([found, InputShaper(half * np.arange(order + 1.0), weights)])
    return found


def _convolved(shapers: Sequence[InputShaper]) -> InputShaper:
    first, second = shapers
    times = (first.times[:, None] + second.times).ravel()
    weights = (first.weights[:, None] * second.weights).ravel()
    order = np.argsort(times, kind="stable")
    return InputShaper(times[order], weights[order])
