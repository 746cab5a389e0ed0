"""Energy, momentum, mass centre, and the matrices of lie-notes section 11, as methods that Robot inherits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Array
from ..errors import InputError
from ..model.tree import Model
from .inputs import validation
from .inputs.validation import Wrenches


class Energy(NamedTuple):
    """Kinetic, rotors included, and potential energy: a number or (samples,) each [J]."""

    kinetic: Array
    potential: Array

    @property
    def total(self) -> Array:
        return self.kinetic + self.potential


class CenterOfMass(NamedTuple):
    """Place (3,) [m] and velocity (3,) [m/s] of the mass centre; momentum (6,): linear [kg m/s], and angular about the mass
    centre [kg m^2/s]. Or (samples, 3) and (samples, 6)."""

    position: Array
    velocity: Array
    momentum: Array


def together(*parts: tuple[float, CenterOfMass]) -> CenterOfMass:
    """Of several bodies, each with its mass."""
    masses = np.array([mass for mass, _ in parts])
    refuse_weightless(masses.sum())
    share = masses / masses.sum()
    p, v, momentum = (np.moveaxis(np.stack(each), 0, -1) for each in zip(*(part for _, part in parts), strict=True))
    position, velocity = p @ share, v @ share
    turning = np.cross(p - position[..., None], (v - velocity[..., None]) * masses, axis=-2).sum(axis=-1)
    about = momentum.sum(axis=-1)
    about[..., 3:] += turning
    return CenterOfMass(position, velocity, about)


class Energetics:
    """What follows from q and qd alone. All vectors are in the root link's frame; the root's own mass counts."""

    if TYPE_CHECKING:
        model: Model

        @property
        def total_mass(self) -> float: ...

        def _evaluate(self, name: str, *motion: Any, wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                      world_wrenches: Wrenches | None = None) -> tuple[Array, ...]: ...

    def energy(self, q: ArrayLike, qd: ArrayLike) -> Energy:
        """Kinetic and potential energy; the latter is zero with all mass at the root's origin."""
        return Energy(*np.moveaxis(self._evaluate("energy", q, qd)[0], -1, 0))

    def center_of_mass(self, q: ArrayLike, qd: ArrayLike | None = None) -> CenterOfMass:
        """Mass centre, its velocity, and the momentum about it; without qd, at rest."""
        refuse_weightless(self.total_mass)
        return CenterOfMass(*self._evaluate("center_of_mass", q, np.zeros(np.shape(q)) if qd is None else qd))

    def power(self, qd: ArrayLike, tau: ArrayLike) -> Array:
        """Power of the joint torques [W]: what the energy gains per second, less friction's loss and others' work."""
        names = self.model.joint_names
        moving, pushed = validation.coordinates("qd", qd, names), validation.coordinates("tau", tau, names)
        return np.asarray((moving * pushed).sum(axis=-1))

    def coriolis(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """C (n, n) or (samples, n, n), by Christoffel symbols: C qd are the velocity torques, and Mdot - 2 C is skew."""
        columns = [self._evaluate("coriolis", q, qd, unit)[0] for unit in np.eye(self.model.n)]
        return np.stack(columns, axis=-1) if columns else np.zeros((*np.shape(q), 0))

    def mass_matrix_rate(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """d M / dt (n, n) or (samples, n, n) along the motion."""
        return self._evaluate("mass_matrix_rate", q, qd)[0]


def refuse_weightless(mass: float) -> None:
    """InputError where there is no mass to have a centre."""
    if not mass > 0.0:
        raise InputError("the robot has no mass, so it has no mass centre; give its links an <inertial> with a mass")
