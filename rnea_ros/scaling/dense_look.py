"""How much of the limits a law uses, between samples too: a coarse look everywhere, a fine one where a limit may be exceeded.

A part of a law is short, so what a constraint does between its samples is nearly a parabola: beside the largest sample there
is no more than an eighth of its second difference. Where that could be beyond the limit, samples lie closer. Of a law that is
to be slowed this is asked at the speed that the coarse look leaves it: few places are near a limit then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .law import TimeLaw
from .terms import Constraints, played_at, shares

COARSE, FINE = 4, 24  # steps in a part of a law
LONG, SHORT = 0.08, 0.02  # s that such a part is long, at most
BEND = 1.5 / 8.0  # of the second difference: with room for what is no parabola
RATES = (1.0, 0.75, 0.5)  # shares of that rate at which it is looked at


class DenseLook(NamedTuple):
    """rate: at which the law was looked at; polynomials (4, samples, constraints) of terms.py, by the powers of a constant
    rate; and of each part of the law: start (parts,) [s], used (parts, constraints) the largest share of each limit at `rate`,
    at (parts,) the s of the largest of all."""

    rate: float
    polynomials: np.ndarray
    start: np.ndarray
    used: np.ndarray
    at: np.ndarray


def dense_look(constraints: Constraints, law: TimeLaw, share: float,
               rate: Callable[[np.ndarray], float] = lambda polynomials: 1.0) -> DenseLook:
    """share: of the limits, that the law is to keep to; rate: at which it will be played at most, by the coarse look."""
    start, end = law.parts(constraints.path.breaks, LONG)
    coarse, played = _look(constraints, law, start, end, COARSE, rate)
    close = _reach(constraints, coarse, played) > share
    if not close.any():
        return coarse
    fine, _ = _look(constraints, law, *law.parted(start[close], end[close], SHORT), FINE, lambda polynomials: coarse.rate)
    start, used, at = (np.concatenate((seen[~close], new)) for seen, new in zip(coarse[2:], fine[2:]))
    order = np.argsort(start, kind="stable")
    polynomials = np.concatenate((coarse.polynomials, fine.polynomials), axis=1)
    return DenseLook(coarse.rate, polynomials, start[order], used[order], at[order])


def _look(constraints: Constraints, law: TimeLaw, start: np.ndarray, end: np.ndarray, steps: int,
          rate: Callable[[np.ndarray], float]) -> tuple[DenseLook, np.ndarray]:
    """And the shares (parts, samples, constraints)."""
    motion = law.within(start, end, steps)
    polynomials = constraints.polynomials(motion.reshape(4, -1))
    most = rate(polynomials)
    played = _shares(constraints, polynomials, most, len(start))
    at = motion[0, np.arange(len(start)), played.max(axis=2).argmax(axis=1)]
    return DenseLook(most, polynomials, start, played.max(axis=1), at), played


def _reach(constraints: Constraints, look: DenseLook, played: np.ndarray) -> np.ndarray:
    """(parts,) the share that may be used somewhere in each, at the rate of a look, where they are as played, or slower."""
    found = np.zeros(len(played))
    for slower in RATES:
        if slower < 1.0:
            played = _shares(constraints, look.polynomials, slower * look.rate, len(played))
        bend = np.abs(np.diff(played, 2, axis=1)).max(axis=1)
        found = np.maximum(found, (played.max(axis=1) + BEND * bend).max(axis=1))
    return found


def _shares(constraints: Constraints, polynomials: np.ndarray, rate: float, parts: int) -> np.ndarray:
    """(parts, samples, constraints) where the law is played at a rate."""
    return shares(played_at(polynomials, rate), constraints.offset).reshape(parts, -1, polynomials.shape[2])
