"""Constraint coefficients of a sample of a path, by what depends on the path there: the text that terms.py has compiled.

A text takes blocks of scalars: q1, q2, q3 of every joint, v, a, u of the law that the path is put along, 1 / limit of every
known limit, and, where there are dynamics, the eight terms of every joint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from .compiled import Many, of_many
from .drive_rows import DriveRows

BASIS = 7  # 1, sd, sd^2, sdd, sd^3, sd sdd, sddd
POWERS = (0, 1, 2, 2, 3, 3, 3)  # of the rate that a motion is played at, in each of them
PLACES = {"effort": (0, 1, 2, 3), "effort_rate": (1, 2, 3, 4, 5, 6), "velocity": (1,), "acceleration": (2, 3),
          "jerk": (4, 5, 6), "commanded_effort_rate": (1, 2, 3, 4, 5, 6)}  # where a limit has coefficients
QUANTITIES = tuple(PLACES)


class Terms(NamedTuple):
    """The coefficients of torque and torque rate along a path: (samples, n) each."""

    m: Any
    c: Any
    f: Any
    g: Any
    b: Any
    c1: Any  # c'
    f1: Any  # f'
    g1: Any  # g'


class Group(NamedTuple):
    """Constraints that have coefficients at the same places of the basis: values (samples, places, constraints)."""

    places: tuple[int, ...]
    values: np.ndarray

    def widened(self, share: Any, offset: np.ndarray) -> Group:
        """For limits that are so many times as wide, `share` (..., constraints) or one number, up and down from where the
        motion adds nothing."""
        share = np.asarray(share)
        found = self.values / (share[..., None, :] if share.ndim else share)
        if 0 in self.places:
            found[..., self.places.index(0), :] += offset * (1.0 - 1.0 / share)
        return Group(self.places, found)


class Rows(NamedTuple):
    """Which limits there are.

    known     : numbers of the joints, for each of QUANTITIES
    uncounted : places of what a limit of commanded effort rate leaves out
    """

    n: int
    known: tuple[tuple[int, ...], ...]
    uncounted: tuple[int, ...]
    dynamics: bool

    @property
    def inputs(self) -> dict[str, int]:
        return {**dict.fromkeys(("q1", "q2", "q3"), self.n), **dict.fromkeys("vau", 1), "inverse": sum(map(len, self.known)),
                **(dict.fromkeys(Terms._fields, self.n) if self.dynamics else {})}

    def places(self, drives: DriveRows | None) -> list[tuple[int, ...]]:
        """Of each group: constraints that have coefficients at the same places are one."""
        own = [tuple(place for place in PLACES[name] if name != "commanded_effort_rate" or place not in self.uncounted)
               for name, known in zip(QUANTITIES, self.known) if known]
        return own + [tuple(range(BASIS))] * bool(drives)

    def on_law(self, drives: DriveRows | None, v: Any, a: Any, u: Any, **given: Any) -> list[Any]:
        """Coefficients (places, constraints) of each group."""
        found = []
        for places, values in zip(self.places(drives), self.groups(drives, **given)):
            r = on_law(dict(zip(places, values)), v[0], a[0], u[0])
            found.append(np.stack([r[place] for place in places]))
        return found

    def polynomials(self, drives: DriveRows | None, v: Any, a: Any, u: Any, **given: Any) -> list[Any]:
        """Where each constraint is, by the powers of a constant rate: (constraints, 4)."""
        basic, found = basis(v[0], a[0], u[0]), []
        for places, values in zip(self.places(drives), self.groups(drives, **given)):
            powers = [values[0] * 0.0] * 4
            for place, value in zip(places, values):
                powers[POWERS[place]] = powers[POWERS[place]] + value * basic[place]
            found.append(np.stack(powers, axis=1))
        return [np.concatenate(found)]

    def groups(self, drives: DriveRows | None, q1: Any, q2: Any, q3: Any, inverse: Any, **terms: Any) -> list[Any]:
        """Coefficients (places, constraints) of each group."""
        weights = {"velocity": {1: q1}, "acceleration": {2: q2, 3: q1}, "jerk": {4: q3, 5: 3.0 * q2, 6: q1}}
        if terms:
            t = Terms(**terms)
            weights["effort"] = {0: t.g, 1: t.f, 2: t.c, 3: t.m}
            weights["effort_rate"] = {1: t.g1, 2: t.f1, 3: t.f, 4: t.c1, 5: t.b, 6: t.m}
            weights["commanded_effort_rate"] = weights["effort_rate"]
        found, begin, some = [], 0, [(name, list(known)) for name, known in zip(QUANTITIES, self.known) if known]
        for (name, known), places in zip(some, self.places(None)):
            scale, begin = inverse[begin:begin + len(known)], begin + len(known)
            found.append(np.stack([weights[name][place][known] * scale for place in places]))
        return found + ([drives.rows(weights, q1)] if drives else [])


@lru_cache(maxsize=64)
def compiled(rows: Rows, text: Callable[..., Any]) -> Many:
    """A text of Rows, without drives."""
    return of_many(partial(text, rows, None), rows.inputs)


def with_drives(rows: Rows, text: Callable[..., Any], drives: DriveRows) -> Many:
    """The same with limits of drives, whose numbers would be part of a kernel: not compiled."""
    return of_many(partial(text, rows, drives), rows.inputs, compiled=False)


def basis(sd: Any, sdd: Any, sddd: Any) -> Sequence[Any]:
    """What the constraint coefficients multiply."""
    return 1.0, sd, sd * sd, sdd, sd * sd * sd, sd * sdd, sddd


def on_law(r: Any, v: Any, a: Any, u: Any) -> list[Any]:
    """The coefficients of q(S(sigma)) by place, from those of q(s) by place; v, a, u: the derivatives of S.

    sd = v k, sdd = a k^2 + v kappa, sddd = u k^3 + 3 a k kappa + v w, with kappa = dk/dt and w = d kappa/dt.
    """
    r, square = {**dict.fromkeys(range(BASIS), 0.0), **r}, v * v
    return [r[0], v * r[1], square * r[2] + a * r[3], v * r[3], square * v * r[4] + v * a * r[5] + u * r[6],
            square * r[5] + 3.0 * a * r[6], v * r[6]]
