"""Friction models of a joint as columns of equations that are linear in the unknown coefficients.

    s = tanh(qd / v)     e = 1 - tanh^2(qd / vs)     as in algorithms/joint_dynamics.py

    coulomb         s (1 - e)             Coulomb friction at speed; e is zero without the Stribeck term
    breakaway       s e                   Coulomb friction near zero velocity
    viscous         qd                    viscous friction, equal in both directions
    forwards        qd (1 + s)/2          viscous friction for positive velocity
    backwards       qd (1 - s)/2          viscous friction for negative velocity
    load_dependent  s sqrt(X^2 + l^2)     X: torque of links and rotor
    offset          1                     constant torque; with it Coulomb friction may differ between the directions

Friction dissipates energy if and only if all coefficients but the offset are not negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

OFFSET, LOAD, BY_SPEED = "offset", "load_dependent", ("viscous", "forwards", "backwards")
SMOOTHING = (0.003, 0.01, 0.02, 0.04, 0.07, 0.12, 0.2)  # v, as shares of the largest speed
STRIBECK = (0.04, 0.08, 0.15, 0.3, 0.6, 1.2)  # vs, as shares of the largest speed
LOAD_SMOOTHING = 0.02  # l, as a share of the RMS torque
MAX_LOAD_SHARE = 0.999  # of load_dependent
MIN_SPEED_RATIO = 1.9  # vs / v: closer speeds cannot be distinguished


class FrictionModel(NamedTuple):
    """Friction model of one joint.

    smoothing         : v [rad/s, m/s]
    stribeck_velocity : vs [rad/s, m/s]; None: no Stribeck term
    asymmetric        : whether viscous friction differs between the directions
    load_smoothing    : l [N m, N]; 0: friction does not depend on the load
    """

    smoothing: float
    stribeck_velocity: float | None = None
    asymmetric: bool = False
    load_smoothing: float = 0.0

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the columns."""
        stribeck = ("breakaway",) if self.stribeck_velocity else ()
        by_speed = ("forwards", "backwards") if self.asymmetric else ("viscous",)
        return ("coulomb", *stribeck, *by_speed, *((LOAD,) if self.load_smoothing else ()), OFFSET)

    @property
    def description(self) -> str:
        """Names of the terms, for reports."""
        terms = ["Coulomb", "viscous"] + ["Stribeck"] * bool(self.stribeck_velocity) + ["asymmetric"] * self.asymmetric
        terms += ["load"] * bool(self.load_smoothing)
        return ", ".join(terms)

    @property
    def unloaded(self) -> FrictionModel:
        """The model without dependence on the load."""
        return self._replace(load_smoothing=0.0)

    def columns(self, qd: np.ndarray, X: np.ndarray | float = 0.0) -> np.ndarray:
        """Return the columns (samples, terms) at speeds qd (samples,) and loads X (samples,)."""
        s = np.tanh(qd / self.smoothing)
        e = 1.0 - np.tanh(qd / self.stribeck_velocity) ** 2 if self.stribeck_velocity else 0.0 * qd
        found = {"coulomb": s * (1.0 - e), "breakaway": s * e, "viscous": qd, "forwards": qd * (1.0 + s) / 2.0,
                 "backwards": qd * (1.0 - s) / 2.0, LOAD: s * np.hypot(X, self.load_smoothing), OFFSET: np.ones_like(qd)}
        return np.column_stack([found[kind] for kind in self.kinds])

    def terms(self, values: Sequence[float] | np.ndarray) -> dict[str, float]:
        """Return the friction arguments of JointDynamics for the coefficients of the columns."""
        given = {kind: float(value) for kind, value in zip(self.kinds, values, strict=True)}
        found = {"coulomb": given["coulomb"], "offset": given[OFFSET], "smoothing": self.smoothing}
        if self.load_smoothing:
            found |= {LOAD: min(given[LOAD], MAX_LOAD_SHARE), "load_smoothing": self.load_smoothing}
        if self.stribeck_velocity:
            found |= {"stribeck": given["breakaway"] - given["coulomb"], "stribeck_velocity": self.stribeck_velocity}
        if not self.asymmetric:
            return found | {"viscous": given["viscous"]}
        forwards, backwards = given["forwards"], given["backwards"]
        return found | {"viscous": (forwards + backwards) / 2.0, "asymmetry": (forwards - backwards) / 2.0}


def simple_candidates(speed: float) -> list[FrictionModel]:
    """Return the models without Stribeck term for a joint of this largest speed, those with fewer terms first."""
    return [FrictionModel(_three_digits(v * speed), None, asymmetric) for asymmetric in (False, True) for v in SMOOTHING]


def candidates(speed: float) -> list[FrictionModel]:
    """Return the models for a joint of this largest speed, those with fewer terms first."""
    return simple_candidates(speed) + [
        FrictionModel(_three_digits(v * speed), _three_digits(vs * speed), asymmetric)
        for asymmetric in (False, True) for v in SMOOTHING for vs in STRIBECK if vs > MIN_SPEED_RATIO * v]


def neighbours(model: FrictionModel, factor: float) -> list[FrictionModel]:
    """Return models with varied velocities: smoothing by `factor` to both sides, Stribeck by its square root.

    An error of one velocity compensates for an error of the other, so both are varied together.
    """
    found = []
    for power in (-1, 0, 1):
        smoothing = _three_digits(model.smoothing * factor**power)
        vs = model.stribeck_velocity
        others = [_three_digits(vs * factor**other) for other in (-0.5, 0.0, 0.5)] if vs else [None]
        found += [model._replace(smoothing=smoothing, stribeck_velocity=other) for other in others]
    return [one for one in found if (one.stribeck_velocity or np.inf) > MIN_SPEED_RATIO * one.smoothing and one != model]


def loaded(model: FrictionModel, torque: float) -> FrictionModel:
    """Return the model with load-dependent friction for a joint of this RMS torque."""
    return model._replace(load_smoothing=load_smoothing(torque))


def load_smoothing(torque: float) -> float:
    """Return l for a joint of this RMS torque."""
    return _three_digits(LOAD_SMOOTHING * torque)


def initial_model(speed: float) -> FrictionModel:
    """Return the initial model of the selection."""
    return FrictionModel(_three_digits(SMOOTHING[2] * speed))


def _three_digits(speed: float) -> float:
    return float(f"{speed:.3g}")
