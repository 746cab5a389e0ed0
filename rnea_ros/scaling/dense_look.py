"""How much of the limits a law uses, between samples too: a coarse look everywhere, a fine one where a limit may be exceeded.

A part of a law is short, so what a constraint does between its samples is nearly a parabola: beside the largest sample there
is no more than an eighth of its second difference. Where that could be beyond the limit, samples lie closer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .law import TimeLaw
from .terms import Constraints, shares

COARSE, FINE = 4, 24  # steps in a part of a law
BEND = 1.5 / 8.0  # of the second difference: with room for what is no parabola
RATES = (1.0, 0.75, 0.5)  # at which the law is looked at


class DenseLook(NamedTuple):
    """polynomials (4, samples, constraints) of terms.py, by the powers of a constant rate of the law; and of each part of it:
    start (parts,) [s], used (parts, constraints) the largest share of each limit, at (parts,) the s of the largest of all."""

    polynomials: np.ndarray
    start: np.ndarray
    used: np.ndarray
    at: np.ndarray


def dense_look(constraints: Constraints, law: TimeLaw, share: float) -> DenseLook:
    """share: of the limits, that the law is to keep to."""
    edges, piece = law.parts(constraints.path.breaks)
    parts = np.stack((edges[:-1], edges[1:]))
    polynomials, used, at = _parts(constraints, law, parts, piece, COARSE)
    reach = np.zeros(len(piece))
    for rate in RATES:
        played = _shares(constraints, polynomials, rate, len(piece))
        bend = np.abs(np.diff(played, 2, axis=1)).max(axis=1)
        reach = np.maximum(reach, (played.max(axis=1) + BEND * bend).max(axis=1))
    close = np.flatnonzero(reach > share)
    if len(close):
        more, used_there, at_there = _parts(constraints, law, parts[:, close], piece[close], FINE)
        polynomials = np.concatenate((polynomials, more), axis=1)
        used[close], at[close] = np.maximum(used[close], used_there), at_there
    return DenseLook(polynomials, edges[:-1], used, at)


def _parts(constraints: Constraints, law: TimeLaw, parts: np.ndarray, piece: np.ndarray,
           steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    motion = law.within(parts[0], parts[1], piece, steps)
    polynomials = constraints.polynomials(motion.reshape(4, -1))
    used = _shares(constraints, polynomials, 1.0, len(piece))
    return polynomials, used.max(axis=1), motion[0, np.arange(len(piece)), used.max(axis=2).argmax(axis=1)]


def _shares(constraints: Constraints, polynomials: np.ndarray, rate: float, parts: int) -> np.ndarray:
    """(parts, samples, constraints) where the law is played at a rate."""
    played = polynomials.sum(axis=0) if rate == 1.0 else np.tensordot(rate ** np.arange(4.0), polynomials, axes=1)
    return shares(played, constraints.offset).reshape(parts, -1, polynomials.shape[2])
