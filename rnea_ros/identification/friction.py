"""Friction models of a joint: which terms, at which speeds, as columns of equations that are linear in what is unknown.

    s = tanh(qd / v)     e = 1 - tanh^2(qd / vs)     as in algorithms/joint_dynamics.py

    coulomb     s (1 - e)    Coulomb friction at speed; without Stribeck's term e is zero
    breakaway   s e          Coulomb friction near rest
    forwards    qd (1 + s)/2 viscous friction, the one way and the other; qd where both are the same
    backwards   qd (1 - s)/2
    load_dependent  s sqrt(X^2 + l^2)   by the torque X of links and rotor
    offset      1            constant torque; with it Coulomb friction may differ between both ways too

Each but the offset is not negative, exactly where friction never drives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

OFFSET, LOAD, BY_SPEED = "offset", "load_dependent", ("viscous", "forwards", "backwards")
SMOOTHING = (0.003, 0.01, 0.02, 0.04, 0.07, 0.12, 0.2)  # v, as shares of the largest speed
STRIBECK = (0.04, 0.08, 0.15, 0.3, 0.6, 1.2)  # vs
UNLOADED = 0.02  # l, as a share of the torque
MOST_LOAD = 0.999  # of the load: the largest share that friction can be
ABOVE = 1.9  # vs / v at least: nearer ones cannot be told apart


class FrictionModel(NamedTuple):
    """smoothing, stribeck_velocity (None: no such term) [rad/s, m/s]; asymmetric: viscous friction by direction;
    load_smoothing [N m, N], 0: friction does not depend on the load."""

    smoothing: float
    stribeck_velocity: float | None = None
    asymmetric: bool = False
    load_smoothing: float = 0.0

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of its columns."""
        low = ("breakaway",) if self.stribeck_velocity else ()
        by_speed = ("forwards", "backwards") if self.asymmetric else ("viscous",)
        return ("coulomb", *low, *by_speed, *((LOAD,) if self.load_smoothing else ()), OFFSET)

    @property
    def words(self) -> str:
        terms = ["Coulomb", "viscous"] + ["Stribeck"] * bool(self.stribeck_velocity) + ["asymmetric"] * self.asymmetric
        terms += ["load"] * bool(self.load_smoothing)
        return ", ".join(terms)

    @property
    def unloaded(self) -> FrictionModel:
        """Without dependence on the load."""
        return self._replace(load_smoothing=0.0)

    def columns(self, qd: np.ndarray, X: np.ndarray | float = 0.0) -> np.ndarray:
        """(samples, terms) of speeds (samples,), and loads where the model has them."""
        s = np.tanh(qd / self.smoothing)
        e = 1.0 - np.tanh(qd / self.stribeck_velocity) ** 2 if self.stribeck_velocity else 0.0 * qd
        found = {"coulomb": s * (1.0 - e), "breakaway": s * e, "viscous": qd, "forwards": qd * (1.0 + s) / 2.0,
                 "backwards": qd * (1.0 - s) / 2.0, LOAD: s * np.hypot(X, self.load_smoothing), OFFSET: np.ones_like(qd)}
        return np.column_stack([found[kind] for kind in self.kinds])

    def terms(self, values: Sequence[float] | np.ndarray) -> dict[str, float]:
        """Friction of JointDynamics from the values of its columns."""
        given = {kind: float(value) for kind, value in zip(self.kinds, values, strict=True)}
        found = {"coulomb": given["coulomb"], "offset": given[OFFSET], "smoothing": self.smoothing}
        if self.load_smoothing:
            found |= {LOAD: min(given[LOAD], MOST_LOAD), "load_smoothing": self.load_smoothing}
        if self.stribeck_velocity:
            found |= {"stribeck": given["breakaway"] - given["coulomb"], "stribeck_velocity": self.stribeck_velocity}
        if not self.asymmetric:
            return found | {"viscous": given["viscous"]}
        forwards, backwards = given["forwards"], given["backwards"]
        return found | {"viscous": (forwards + backwards) / 2.0, "asymmetry": (forwards - backwards) / 2.0}


def loaded(speed: float, torque: float) -> Iterator[FrictionModel]:
    """The same with friction by load, for a joint of this torque (rms)."""
    return (model._replace(load_smoothing=load_smoothing(torque)) for model in candidates(speed))


def load_smoothing(torque: float) -> float:
    """l for a joint of this torque (rms)."""
    return _plain(UNLOADED * torque)


def candidates(speed: float) -> Iterator[FrictionModel]:
    """Models for a joint whose largest speed this is, those with fewer terms first."""
    for stribeck in ((None,), STRIBECK):
        for asymmetric in (False, True):
            yield from (FrictionModel(_plain(v * speed), vs and _plain(vs * speed), asymmetric) for v in SMOOTHING
                        for vs in stribeck if vs is None or vs > ABOVE * v)


def first(speed: float) -> FrictionModel:
    """The model to begin with."""
    return FrictionModel(_plain(SMOOTHING[2] * speed))


def _plain(speed: float) -> float:
    """Three digits: a speed of a list is not known better."""
    return float(f"{speed:.3g}")


