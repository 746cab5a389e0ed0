"""Energy, momentum, mass centre, and the matrices of lie-notes section 11, as methods that TreeDynamics inherits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Array
from ..algorithms.joint_dynamics import joint_dynamics, load_friction
from ..errors import InputError
from ..model.effort_convention import EffortConvention
from ..model.tree import NO_COORDINATE, Model
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
    """Position (3,) [m] and velocity (3,) [m/s] of the mass centre; momentum (6,): linear [kg m/s], and angular about the mass
    centre [kg m^2/s]. Or (samples, 3) and (samples, 6).
    """

    position: Array
    velocity: Array
    momentum: Array


class GeneralizedMomentum(NamedTuple):
    """p = M qd, and its rate without torques, dp/dt = tau + drift: (n,) or (samples, n) each [kg m^2/s, kg m/s; N m, N]."""

    p: Array
    drift: Array


class Energetics:
    """Energy, momentum and power of a motion. All vectors are in the root link's frame; the root's own mass counts."""

    if TYPE_CHECKING:
        model: Model

        @property
        def total_mass(self) -> float: ...

        def evaluate(self, name: str, *motion: Any, wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                      world_wrenches: Wrenches | None = None) -> tuple[Array, ...]: ...

    def energy(self, q: ArrayLike, qd: ArrayLike, **others: Any) -> Energy:
        """Kinetic and potential energy; the latter is zero with all mass at the root's origin."""
        if others:
            validation.no_others(self.model.name, others)
        return Energy(*np.moveaxis(self.evaluate("energy", q, qd)[0], -1, 0))

    def center_of_mass(self, q: ArrayLike, qd: ArrayLike | None = None, **others: Any) -> CenterOfMass:
        """Mass centre, its velocity, and the momentum about it; without qd, at rest."""
        if others:
            validation.no_others(self.model.name, others)
        refuse_weightless(self.total_mass)
        return CenterOfMass(*self.evaluate("center_of_mass", q, validation.zeros_like("q", q) if qd is None else qd))

    def power(self, qd: ArrayLike, tau: ArrayLike) -> Array:
        """Power of the joint torques [W]: what the energy gains per second, less friction's loss and others' work."""
        names = self.model.joint_names
        moving, pushed = validation.coordinates("qd", qd, names), validation.coordinates("tau", tau, names)
        return np.asarray((moving * pushed).sum(axis=-1))

    def coriolis(self, q: ArrayLike, qd: ArrayLike, **others: Any) -> Array:
        """C (n, n) or (samples, n, n), by Christoffel symbols: C qd are the velocity torques, and Mdot - 2 C is skew."""
        if others:
            validation.no_others(self.model.name, others)
        columns = [self.evaluate("coriolis", q, qd, unit)[0] for unit in np.eye(self.model.n)]
        return np.stack(columns, axis=-1) if columns else np.zeros((*np.shape(q), 0))

    def generalized_momentum(self, q: ArrayLike, qd: ArrayLike) -> GeneralizedMomentum:
        """p = M qd and drift = C^T qd - g - friction: observers estimate external torques by dp/dt - tau - drift."""
        return tuple.__new__(GeneralizedMomentum, self.evaluate("generalized_momentum", q, qd))

    def link_torques(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """(links, n) or (samples, links, n): what each moving link needs alone, the others without mass; see `moving_joints`.

        They add up to the torques, but for rotors, friction and offsets.
        """
        return self.evaluate("link_torques", q, qd, qdd)[0]

    def link_torques_and_rates(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike) -> tuple[Array, Array]:
        """`link_torques` and their rates along the motion."""
        found = self.evaluate("link_torques_and_rates", q, qd, qdd, qddd)
        return found[0], found[1]

    def friction(self, qd: ArrayLike, qdd: ArrayLike | None = None) -> tuple[Array, Array]:
        """Torques of friction and offsets, and their rates: (n,) or (samples, n) each; without qdd at constant speed.

        Friction that depends on the load is not included, since the speed does not determine it: `load_friction`.
        """
        speed = validation.coordinates("qd", qd, self.model.joint_names)
        rate = np.zeros_like(speed) if qdd is None else validation.coordinates("qdd", qdd, self.model.joint_names)
        if validation.samples([speed, rate]) is not None:
            speed, rate = np.broadcast_arrays(speed, rate)
        return friction(self.model, speed, rate)

    def load_friction(self, tau: ArrayLike, qd: ArrayLike) -> Array:
        """Friction by the load in torques tau, (n,) or (samples, n): the share that grows with what the joints transmit."""
        given, speed = (validation.coordinates(name, x, self.model.joint_names) for name, x in (("tau", tau), ("qd", qd)))
        found = np.zeros_like(given)
        if loaded := [link for link in self.model.links if link.term.load_dependent]:
            left = given - friction(self.model, speed, np.zeros_like(speed))[0]
            for link in loaded:
                k = link.coordinate
                found[..., k] = load_friction(link.term, left[..., k], speed[..., k])
        return found

    def measured_torque(self, effort: ArrayLike, q: ArrayLike, qd: ArrayLike,
                        measured: EffortConvention | None = None) -> Array:
        """Return the whole joint torque from reported efforts, whose convention is that of the robot file, or `measured`."""
        convention = self.model.efforts.measured if measured is None else measured
        given = validation.coordinates("effort", effort, self.model.joint_names)
        if convention.plain:
            return given
        gravity: Array = self.evaluate("gravity", q)[0]
        return convention.torque(given, gravity, self.friction(qd)[0] if convention.needs_friction else 0.0)

    def mass_matrix_rate(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """d M / dt (n, n) or (samples, n, n) along the motion."""
        return self.evaluate("mass_matrix_rate", q, qd)[0]


def friction(model: Model, qd: Array, qdd: Array) -> tuple[Array, Array]:
    """Return friction and offsets and their rates; those of mimic joints count at the joint that they follow."""
    found = np.zeros((2, *np.shape(qd)))
    for link in model.links:
        if link.coordinate != NO_COORDINATE:
            m, k = link.multiplier, link.coordinate
            rest = np.zeros_like(qd[..., k])
            found[0, ..., k] += m * joint_dynamics(link.term, m * qd[..., k], rest, rest)[0]
            found[1, ..., k] += m * joint_dynamics(link.term, m * qd[..., k], m * qdd[..., k], rest)[1]
    for motor in model.coupled_motors:
        term, rest = replace(motor.term, rotor_inertia=0.0), np.zeros_like(qd[..., 0])
        speed, acceleration = (motor.motion(np.moveaxis(x, -1, 0)) for x in (qd, qdd))
        torque, rate = joint_dynamics(term, speed, acceleration, rest)
        for k, ratio in zip(motor.coordinates, motor.ratios, strict=True):
            found[0, ..., k] += ratio * torque
            found[1, ..., k] += ratio * rate
    return found[0], found[1]


def refuse_weightless(mass: float) -> None:
    """InputError where there is no mass to have a centre."""
    if not mass > 0.0:
        raise InputError("the robot has no mass, so it has no mass centre; give its links an <inertial> with a mass")
