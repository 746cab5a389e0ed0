"""When the positions of a recording were read, where stamps say something else.

Drivers stamp when they publish, not when they read. What is read every 34 ms and published every 33.3 ms has stamps that are
up to a period off, and the same reading comes twice now and then. Where new readings make a smoother motion at even times
than at those of their stamps, they were read at even times.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

FEWEST = 64  # readings of a stretch
GAP, GAP_PERIODS = 0.05, 5  # s, and so many periods: a stretch ends where samples are missing for longer
SMOOTHER = 0.7  # of the roughness at the stamps: from there on even times are believed,
FARTHEST = 1.0  # of a period: and if no stamp is further off
NEIGHBOURS = (-2, -1, 1, 2)  # samples through which a cubic tells the one between


class ReadingTimes(NamedTuple):
    """times (samples,): when each was read [s]; a sample that repeats the one before has its time.
    new (samples,): whether it does not; words: what was found, for people."""

    times: np.ndarray
    new: np.ndarray
    words: str


def parts(t: np.ndarray) -> list[slice]:
    """The stretches of a recording without a gap."""
    longest = max(GAP, GAP_PERIODS * float(np.median(np.diff(t))))
    ends = [0, *(np.flatnonzero(np.diff(t) > longest) + 1).tolist(), len(t)]
    return [slice(a, b) for a, b in itertools.pairwise(ends)]


def reading_times(t: np.ndarray, q: np.ndarray) -> ReadingTimes | None:
    """Of samples q (samples, n) with turns counted, at stamps t (samples,), increasing; None: the stamps are right."""
    new = np.append(True, (np.diff(q, axis=0) != 0.0).any(axis=1))
    stamps, readings = t[new], q[new]
    if len(stamps) < FEWEST:
        return None
    even, at_stamps, at_even = stamps.copy(), 0.0, 0.0
    for part in parts(stamps):
        if (count := part.stop - part.start) < FEWEST:
            continue
        numbers = np.arange(count)
        even[part] = np.polyval(np.polyfit(numbers, stamps[part], 1), numbers)
        if np.abs(even[part] - stamps[part]).max() > FARTHEST * (even[part][1] - even[part][0]):
            return None
        at_stamps += _roughness(stamps[part], readings[part])
        at_even += _roughness(even[part], readings[part])
    if not at_even < SMOOTHER**2 * at_stamps:
        return None
    words = (f"positions are smooth at even times, {1e3 * np.median(np.diff(even)):.4g} ms apart, not at those of the stamps, "
             f"which are up to {1e3 * np.abs(even - stamps).max():.2g} ms off")
    return ReadingTimes(even[np.cumsum(new) - 1], new, words)


def _roughness(t: np.ndarray, q: np.ndarray) -> float:
    """How far samples are from the cubics through their neighbours: squares, summed over all, by how far joints move."""
    middle = np.arange(2, len(t) - 2)
    places = [t[middle + k] - t[middle] for k in NEIGHBOURS]
    rest = q[middle].copy()
    for i, k in enumerate(NEIGHBOURS):
        weight = np.prod([-other / (places[i] - other) for j, other in enumerate(places) if j != i], axis=0)
        rest -= q[middle + k] * weight[:, None]
    moved = np.ptp(q, axis=0)
    return float(np.sum((rest[:, moved > 0.0] / moved[moved > 0.0]) ** 2))
