"""The part of ElasticRobot that says how much energy links, rotors and springs hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Array
from .energy import CenterOfMass, Energy
from .inputs import validation
from .robot import Robot


class ElasticEnergetics:
    """Base of ElasticRobot."""

    if TYPE_CHECKING:
        _stiff: Robot

        @property
        def joint_names(self) -> tuple[str, ...]: ...

        @property
        def elastic_joints(self) -> tuple[str, ...]: ...

        @property
        def stiffness(self) -> Array: ...

        def mass_matrix(self, q: ArrayLike) -> Array: ...

        def _state(self, q: ArrayLike, qd: ArrayLike, q_motor: ArrayLike | None,
                   qd_motor: ArrayLike | None) -> tuple[ArrayLike, ...]: ...

    def energy(self, q: ArrayLike, qd: ArrayLike, *, q_motor: ArrayLike | None = None,
               qd_motor: ArrayLike | None = None) -> Energy:
        """Kinetic energy, spinning rotors included; potential energy of gravity and springs, stiffness deflection^2 / 2."""
        state = self._state(q, qd, q_motor, qd_motor)
        names = self.joint_names, self.joint_names, self.elastic_joints, self.elastic_joints
        q, qd, q_motor, qd_motor = (validation.coordinates(what, given, joints) for what, given, joints in
                                    zip(("q", "qd", "q_motor", "qd_motor"), state, names, strict=True))
        validation.samples([q, qd, q_motor, qd_motor])
        bent = q_motor - q[..., [self.joint_names.index(name) for name in self.elastic_joints]]
        columns = np.broadcast_shapes(qd.shape[:-1], qd_motor.shape[:-1])
        v = np.concatenate([np.broadcast_to(part, (*columns, part.shape[-1])) for part in (qd, qd_motor)], axis=-1)
        with np.errstate(all="ignore"):
            kinetic = (v * (self.mass_matrix(q) @ v[..., None])[..., 0]).sum(axis=-1) / 2.0
            potential = self._stiff.energy(q, qd).potential + (self.stiffness * bent**2).sum(axis=-1) / 2.0
        validation.results("energy", [kinetic, potential])
        return Energy(kinetic, potential)

    def center_of_mass(self, q: ArrayLike, qd: ArrayLike) -> CenterOfMass:
        """Mass centre, its velocity, and the momentum about it, without the spin of rotors relative to their links."""
        return self._stiff.center_of_mass(q, qd)
