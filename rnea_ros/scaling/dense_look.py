"""How much of the limits a law uses, between samples too: a coarse look everywhere, a fine one where a limit may be exceeded.

A part of a law is short, so what a constraint does between its samples is nearly a parabola: beside the largest sample there
is no more than an eighth of its second difference. Where that could be beyond the limit, samples lie closer. Of a law that is
to be slowed this is asked at the speed that the coarse look leaves it: few places are near a limit then.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce
from typing import Any, NamedTuple

import numpy as np

from ..codegen.ir.expression import larger
from .compiled import Many, of_many
from .law import TimeLaw
from .terms import PART, Constraints, played_at, shares

COARSE, FINE = 4, 24  # steps in a part of a law
LONG, SHORT = 0.08, 0.02  # s that such a part is long, at most
BEND = 1.5 / 8.0  # of the second difference: with room for what is no parabola
RATES = (1.0, 0.75, 0.5)  # shares of that rate at which it is looked at


class DenseLook(NamedTuple):
    """rate: at which the law was looked at; polynomials (count, 4) of terms.py, by the powers of a constant rate, of whatever
    may come to the share of its limit at that rate or a lower one, and the numbers of these constraints (count,).

    Of each part of the law: start (parts,) [s], used (parts, constraints) the largest share of each limit at `rate`, and where
    the look was fine, else nan, at (parts,) the s of the largest of all.
    """

    rate: float
    polynomials: np.ndarray
    of: np.ndarray
    start: np.ndarray
    used: np.ndarray
    at: np.ndarray


def dense_look(constraints: Constraints, law: TimeLaw, share: float,
               rate: Callable[[np.ndarray, np.ndarray], float] = lambda polynomials, of: 1.0) -> DenseLook:
    """share: of the limits, that the law is to keep to; rate: at which it will be played at most, by the coarse look's
    polynomials and their constraints."""
    start, end = law.parts(constraints.path.breaks, LONG)
    coarse = _Coarse(constraints, law, start, end, share)
    most = rate(*coarse.near())
    if most != coarse.rate:
        coarse.play(most)
    close = coarse.reach > share
    if not close.any():
        return DenseLook(most, *coarse.near(), start, coarse.used, np.full(len(start), np.nan))
    fine = _fine(constraints, law, law.parted(start[close], end[close], SHORT), share, most)
    kept = start[~close], coarse.used[~close], np.full(np.sum(~close), np.nan)
    start, used, at = map(np.concatenate, zip(kept, fine[3:]))
    order = np.argsort(start, kind="stable")
    polynomials, of = map(np.concatenate, zip(coarse.near(), fine[1:3]))
    return DenseLook(most, polynomials, of, start[order], used[order], at[order])


class _Coarse:
    """The look everywhere: of each part used (parts, constraints), and reach (parts,) the share that may be used in it, at
    `rate` or slower."""

    def __init__(self, constraints: Constraints, law: TimeLaw, start: np.ndarray, end: np.ndarray, share: float):
        self.offset, self.share, self._polynomials = constraints.offset, share, []
        for some in np.array_split(np.arange(len(start)), len(start) * (COARSE + 1) // PART + 1):
            motion = law.within(start[some], end[some], COARSE).swapaxes(1, 2).reshape(4, -1)  # all first samples, all second
            self._polynomials.append(constraints.polynomials(motion).reshape(COARSE + 1, -1, 4))
        self.play(1.0)

    def play(self, rate: float) -> None:
        """At another rate."""
        self.rate, seen = rate, []
        given = np.array([rate]), np.array([self.share])
        for polynomials in self._polynomials:
            count = polynomials.shape[1]
            seen.append(_extent()([*polynomials, *given, np.resize(self.offset, count)[:, None]], count)[0])
        self._sums = [found[:, 2] for found in seen]
        used, reach, _ = np.concatenate(seen).reshape(-1, len(self.offset), 3).swapaxes(0, 2).swapaxes(1, 2)
        self.used, self.reach = used, reach.max(axis=1)

    def near(self) -> tuple[np.ndarray, np.ndarray]:
        """Of a DenseLook."""
        found, of = [], []
        for polynomials, sums in zip(self._polynomials, self._sums):
            near = np.flatnonzero(sums >= 1.0)
            found.append(polynomials[:, near].reshape(-1, 4))
            of.append(np.tile(near % len(self.offset), COARSE + 1))
        return np.concatenate(found), np.concatenate(of)


def _fine(constraints: Constraints, law: TimeLaw, parts: tuple[np.ndarray, np.ndarray], share: float,
          rate: float) -> DenseLook:
    motion, offset = law.within(*parts, FINE), constraints.offset
    polynomials = constraints.polynomials(motion.reshape(4, -1))
    played = shares(played_at(np.moveaxis(polynomials, -1, 0), rate), offset).reshape(len(parts[0]), FINE + 1, len(offset))
    at = motion[0, np.arange(len(parts[0])), played.max(axis=2).argmax(axis=1)]
    near = _sum(np.moveaxis(polynomials, -1, 0), share, rate, offset) >= 1.0
    return DenseLook(rate, polynomials[near], np.nonzero(near)[1], parts[0], played.max(axis=1), at)


@cache
def _extent() -> Many:
    return of_many(extent, {**{f"p{k}": 4 for k in range(COARSE + 1)}, "rate": 1, "share": 1, "offset": 1})


def extent(rate: Any, share: Any, offset: Any, **samples: Any) -> tuple[list[Any]]:
    """Of one constraint in a part of a law, any scalar: the largest share of the limit at its samples; what may be used
    between them at that rate or slower; and what they come to if the powers of the rate all add up, over `share`."""
    (share,), (rate,), (offset,) = share, rate, offset
    used: list[Any] = []
    reach: list[Any] = []
    polynomials = list(samples.values())
    for slower in RATES:
        played = [shares(played_at(p, slower * rate), offset) for p in polynomials]
        bends = [abs(a - b - (b - c)) for a, b, c in zip(played, played[1:], played[2:])]
        used.append(_largest(played))
        reach.append(used[-1] + BEND * _largest(bends))
    return [used[0], _largest(reach), _largest([_sum(p, share, rate, offset) for p in polynomials])],


def _sum(polynomial: Any, share: Any, rate: Any, offset: Any) -> Any:
    """What the terms of a polynomial (4, ...) come to at a rate, if they all add up, over a share of the limit."""
    a0, *others = polynomial
    return played_at([abs(a0 + offset * (share - 1.0)), *map(abs, others)], rate) / share


def _largest(values: list[Any]) -> Any:
    return reduce(larger, values)
