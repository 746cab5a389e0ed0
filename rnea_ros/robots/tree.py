"""TreeDynamics: dynamics of a tree of rigid links by recursions: the spanning tree of a Robot, and all of a fixed tree.

Conventions of poses, velocities and Jacobians, for all robots of the package:

* a pose is (R, p) of the link's frame in the frame of the root link, or in the world where the base floats: R (3, 3) takes
  vectors from the link's frame, p (3,) is its origin, or the point asked for [m];
* velocities and Jacobians have six rows: velocity of the point, then angular velocity of the link, both along the axes of the
  root link, or of the world [m/s, rad/s]. Pinocchio calls it LOCAL_WORLD_ALIGNED;
* a point is given in the link's frame, and moves with the link; the frame's origin by default;
* Jacobians have a column for each independent joint; six for a floating base before them, for BaseState.velocity.

So link_velocity = jacobian @ qd, and acceleration of the point = jacobian @ qdd + jacobian_rate @ qd.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.linalg import pivots
from ..algebra.vectors import Array
from ..algorithms.equations import BASE
from ..algorithms.joint_dynamics import joint_dynamics, load_friction
from ..algorithms.kinematics import Pose
from ..algorithms.sensitivities import moving
from ..algorithms.torque_rate import LinkForces, LinkMotion
from ..codegen import kernel
from ..codegen.kernel import Kernel
from ..errors import InputError, ModelWarning, some, summary
from ..model import urdf
from ..model.drives import DriveLimit, EffortConvention
from ..model.tree import NO_COORDINATE, CoupledMotor, JointDynamics, Limits, Model, frozen
from ..model.urdf_reader import Description
from . import kernel_functions, validation
from .base_state import BaseState
from .conditions import Loads, Payload, checked_loads
from .kernel_functions import KERNEL_FUNCTIONS, RECURSION
from .kernel_store import KernelFunction, KernelStore, not_made
from .results import (
    CenterOfMass,
    Dynamics,
    Energy,
    GeneralizedMomentum,
    JointWrenches,
    JointWrenchSensitivities,
    RateSensitivities,
    TorqueDeviations,
    TorqueSensitivities,
)
from .validation import too_large

GRAVITY = (0.0, 0.0, -9.81)
ORIGIN = frozen(np.zeros(3))  # of the link's frame


class TreeFacts:
    """Facts that follow from `model` and `payloads` alone."""

    model: Model
    payloads: Mapping[str, Payload]

    @property
    def name(self) -> str:
        """Name of the robot in the URDF."""
        return self.model.name

    @property
    def root_link(self) -> str:
        """Link in whose frame gravity and poses are given where the base does not move."""
        return self.model.links[0].name

    @property
    def warnings(self) -> tuple[ModelWarning, ...]:
        """Implausible properties of the URDF and the robot file, a sentence each, with the name of the warning in brackets."""
        return self.model.warnings

    @property
    def total_mass(self) -> float:
        """Mass of links and payloads [kg]."""
        return self.model.total_mass + sum(payload.mass for payload in self.payloads.values())

    @property
    def reconstruction_error(self) -> float:
        """Largest deviation of any frame from the URDF [m, rad]."""
        return self.model.reconstruction_error

    @property
    def moving_joints(self) -> tuple[str, ...]:
        """Every joint that moves a link, mimic joints included: the rows of internal joint wrenches."""
        return tuple(self.model.links[k].joint for k in moving(self.model))


class TreeDynamics(TreeFacts):
    """Exact inverse dynamics of a robot, and its time derivative.

    Arrays are in the order of `joint_names`; (n,) for one sample or (samples, n) for many. Units: rad, m, N m, N, s.
    A TreeDynamics does not change: `with_payload` returns another one.
    """

    __repr__ = summary

    def __init__(self, model: Model, backend: str = "llvm", gravity: ArrayLike = GRAVITY):
        self.model = model
        self.gravity_vector = validation.vector("gravity", gravity, 3)
        self._keep(KernelStore(model, self.gravity_vector, backend, KERNEL_FUNCTIONS))

    def _keep(self, store: KernelStore) -> None:
        """Return the kernels, with direct access to their functions for speed, in particular to `torque_and_rate`."""
        self.store, self._quick, self._torque_and_rate = store, store.quick, store.quick["torque_and_rate"]

    @classmethod
    def from_urdf(cls, source: str | bytes | os.PathLike[str] | Description, base: str = "fixed", backend: str = "llvm",
                  gravity: ArrayLike = GRAVITY, friction: bool = False,
                  joint_dynamics: Mapping[str, JointDynamics] | None = None, allow_xacro: bool = False) -> TreeDynamics:
        """Return a robot from the path of a URDF, its text, or the result of urdf_reader.read.

        base        : "fixed", or "floating" (the root is free: its inertia counts)
        backend     : "llvm", "python" or "reference"; the same numbers at different speeds
        gravity     : acceleration of gravity in the root link's frame [m/s^2]
        friction    : use the URDF's <dynamics damping= friction=>
        joint_dynamics : rotor inertia, friction, offset by joint name
        allow_xacro : run a .xacro file, which is a program: only if you trust it as one, never for a path from elsewhere
        Raises ModelError, which lists everything that is wrong with the URDF.
        """
        return cls(urdf.load(source, base, friction, joint_dynamics, allow_xacro), backend, gravity)

    kind = "tree"  # for its repr

    @property
    def backend(self) -> str:
        """Backend of the kernels: "llvm", "c", "python" or "reference"."""
        return self.store.backend

    @property
    def payloads(self) -> Mapping[str, Payload]:  # type: ignore[override]
        """Payloads by URDF link."""
        return self.store.payloads

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the n coordinates, depth first from the root: the order of every array."""
        return self.model.joint_names

    @property
    def joint_types(self) -> tuple[str, ...]:
        """"revolute", "continuous" or "prismatic", in the order of `joint_names`."""
        return tuple(joint.type for joint in self.model.joints)

    @property
    def n(self) -> int:
        """Number of coordinates q."""
        return self.model.n

    @property
    def order(self) -> int:
        """Number of derivatives of q that the torque rate needs."""
        return 3

    @property
    def limits(self) -> Limits:
        """Limits of the n coordinates, NaN where unknown."""
        return self.model.limits

    @property
    def drive_limits(self) -> tuple[DriveLimit, ...]:
        """Joint limits of torque, torque rate and speed from motors, gears and supplies in the robot file."""
        return self.model.drive_limits

    @property
    def model_id(self) -> str:
        """Fingerprint of the model, gravity and payloads: 16 hexadecimal digits."""
        carried = [(link, payload.parameters.tolist()) for link, payload in sorted(self.payloads.items())]
        return hashlib.sha256(repr((self.model.model_id, self.gravity_vector.tolist(), carried)).encode()).hexdigest()[:16]

    def mdh_table(self) -> list[tuple[Any, ...]]:
        """(name, parent, sigma, gamma, b, alpha, d, theta, r) of every frame; parent 0 is the root, k is row k from 1."""
        return self.model.mdh_table()

    def with_payload(self, link: str, mass: float, com: ArrayLike = (0.0, 0.0, 0.0),
                     inertia: ArrayLike | None = None) -> TreeDynamics:
        """Return the robot with a payload on a URDF link, which replaces an earlier one on that link.

        mass [kg], com (3,) in the link's frame [m], inertia (3, 3) about the com in the link's axes [kg m^2], default zero.
        Kernels are shared: after the first payload on a link, another one costs microseconds. Mass 0 takes it off.
        """
        payloads = {name: other for name, other in self.payloads.items() if name != link}
        payload = Payload.on_link(self.model, link, mass, com, inertia)
        if payload.mass > 0.0:
            payloads[link] = payload
        return self.carrying(payloads)

    def with_masses(self, factors: ArrayLike) -> TreeDynamics:
        """Return the robot with the mass of each moving link, and its moments, times a factor: (len(moving_joints),).

        Kernels are shared, as with payloads: the effect of wrong masses is computed without compiling.
        """
        links = [link for link in self.model.links if link.joint]
        given = validation.vector("factors", factors, len(links))
        added = {f"mass of {link.name}": Payload.share(self.model, number, factor - 1.0) for number, link, factor in zip(
            (k for k, link in enumerate(self.model.links) if link.joint), links, given, strict=True)}
        return self.carrying({**self.payloads, **added})

    def with_joint_dynamics(self, terms: Mapping[str, JointDynamics]) -> TreeDynamics:
        """Return the robot with other joint dynamics, by joint name (mimic joints included)."""
        return TreeDynamics(self.model.with_joint_dynamics(terms), self.backend, self.gravity_vector).carrying(self.payloads)

    def with_coupled_motors(self, motors: Sequence[CoupledMotor]) -> TreeDynamics:
        """Return the same robot with these motors of coupled transmissions instead of those it has."""
        return TreeDynamics(self.model.with_coupled_motors(motors), self.backend, self.gravity_vector).carrying(self.payloads)

    def coupled_motor_torques(self, tau: ArrayLike) -> dict[str, Array]:
        """Return the torque of every motor of coupled transmissions by name: a number or (samples,) each [N m, at the motor].

        tau : joint torques (n,) or (samples, n), of rotors and friction included

        The joints of a coupling have as many motors as they are: with motor speeds G qd the motors' torques are G^-T tau.
        InputError where the number of motors differs from that of the joints, or G has no inverse.
        """
        given, motors = validation.coordinates("tau", tau, self.joint_names), self.model.coupled_motors
        joints = sorted({k for motor in motors for k in motor.coordinates})
        G = np.zeros((len(motors), self.n))
        for row, motor in zip(G, motors, strict=True):
            row[list(motor.coordinates)] = motor.ratios
        G = G[:, joints]
        if G.shape[0] != G.shape[1] or np.linalg.matrix_rank(G) < len(joints):
            names = some([self.joint_names[k] for k in joints])
            raise InputError(f"couplings: {len(motors)} motors turn {len(joints)} joints ({names}); torques of motors follow "
                             "from joint torques where there are as many motors as joints, with independent ratios")
        found = np.linalg.solve(G.T, np.moveaxis(given[..., joints], -1, 0)) if motors else ()
        return {motor.name: torque for motor, torque in zip(motors, found, strict=True)}

    def with_drive_limits(self, limits: Sequence[DriveLimit]) -> TreeDynamics:
        """Return the same tree with other limits of drives and supplies."""
        model = replace(self.model, drive_limits=tuple(limits))
        return TreeDynamics(model, self.backend, self.gravity_vector).carrying(self.payloads)

    def with_free_base(self) -> TreeDynamics:
        """Return the same tree with a free root link. Kernels are shared."""
        twin = copy(self)
        twin.model = replace(self.model, base="floating")
        return twin

    def held(self, gravity: ArrayLike) -> TreeDynamics:
        """Return the robot on a base that does not move; gravity (3,) in the frame of its root link."""
        return TreeDynamics(replace(self.model, base="fixed"), self.backend, gravity).carrying(self.payloads)

    def __copy__(self) -> TreeDynamics:
        return self.carrying(self.payloads)

    def carrying(self, payloads: Mapping[str, Payload]) -> TreeDynamics:
        """Return a robot that shares the kernels, with other payloads."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._keep(self.store.carrying(payloads))
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_quick", "_torque_and_rate")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.gravity_vector = frozen(self.gravity_vector)
        self._keep(self.store)

    def torque_and_rate(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *, loads: Loads | None = None,
                        **others: Any) -> tuple[Array, Array]:
        """Torques and their exact time derivatives along the motion, guarino-gfd (3)-(21).

        q, qd, qdd, qddd : (n,) or (samples, n): position, velocity, acceleration, jerk
        others           : options of robots that are more than a fixed tree; None alone is accepted
        """
        if others or loads is not None or not (found := self._torque_and_rate(q, qd, qdd, qddd)):
            found = self.evaluate("torque_and_rate", q, qd, qdd, qddd, loads=loads, **others)
        return found  # type: ignore[return-value]  # of two arrays

    def dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *, loads: Loads | None = None,
                 **others: Any) -> Dynamics:
        """tau, tau_rate, and of both the share of gravity, in one call."""
        if others or loads is not None or not (found := self._quick["dynamics"](q, qd, qdd, qddd)):
            found = self.evaluate("dynamics", q, qd, qdd, qddd, loads=loads, **others)
        return tuple.__new__(Dynamics, found)

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, loads: Loads | None = None,
                         **others: Any) -> Array:
        """Torques (n,) or (samples, n) of a motion."""
        if others or loads is not None or not (found := self._quick["inverse_dynamics"](q, qd, qdd)):
            found = self.evaluate("inverse_dynamics", q, qd, qdd, loads=loads, **others)
        return found[0]

    def bias(self, q: ArrayLike, qd: ArrayLike, *, loads: Loads | None = None, **others: Any) -> Array:
        """Torques at zero acceleration: velocity terms, gravity, friction, loads. Without friction by load
        tau = M qdd + bias.
        """
        return self.inverse_dynamics(q, qd, np.zeros(self.n), loads=loads, **others)

    def gravity(self, q: ArrayLike, **others: Any) -> Array:
        """Torques that hold the robot still against gravity alone."""
        return self.evaluate("gravity", q, **others)[0]

    def gravity_and_rate(self, q: ArrayLike, qd: ArrayLike, **others: Any) -> tuple[Array, Array]:
        """Torques (n,) or (samples, n) that hold the robot still against gravity, and their rates along the motion."""
        rest = np.zeros(self.n)
        found = self.dynamics(q, qd, rest, rest, **others)
        return found.gravity, found.gravity_rate

    def mass_matrix(self, q: ArrayLike, **others: Any) -> Array:
        """M (n, n) or (samples, n, n): column k is the torque of a unit acceleration of joint k alone, khalil-rne 3.3.1."""
        return self.evaluate("mass_matrix", q, **others)[0]

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, *, loads: Loads | None = None,
                         **others: Any) -> Array:
        """Accelerations (n,) or (samples, n) under given torques, by articulated bodies, khalil-rne (32)-(44).

        Mimic joints, which that recursion cannot free one by one, solve M qdd = tau - bias instead. InputError names a joint
        that moves no mass.
        """
        if others or loads is not None or not (found := self._quick["forward_dynamics"](q, qd, tau)):
            with nonsingular(lambda: self.mass_matrix(q), self.joint_names):
                found = self.evaluate("forward_dynamics", q, qd, tau, loads=loads, masses=False, **others)
        qdd, felt, locked = found
        check_nonsingular(felt, locked, self.joint_names)
        validation.results("forward_dynamics", [qdd])
        return qdd

    def recursion(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *,
                  loads: Loads | None = None) -> tuple[LinkMotion, LinkForces]:
        """Everything in between, link by link in MDH frames: velocities .. jerks, forces and moments, and their rates."""
        validation.held_base(self.model)
        found: tuple[LinkMotion, LinkForces] = self.store.on_floats(RECURSION, q, qd, qdd, qddd, loads=loads)
        validation.results("recursion", [np.asarray(x, dtype=float) for part in found for values in part for x in values])
        return found

    # ------------------------------------------------------------------ derivatives and internal forces

    def sensitivities(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, loads: Loads | None = None,
                      **others: Any) -> TorqueSensitivities:
        """Partial derivatives of the torques, joint dynamics included: Barman, thesis, chapter 3, in closed form."""
        return tuple.__new__(TorqueSensitivities, self.evaluate("sensitivities", q, qd, qdd, loads=loads, **others))

    def rate_sensitivities(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *, loads: Loads | None = None,
                           **others: Any) -> RateSensitivities:
        """Partial derivatives of the tau_rate of `torque_and_rate`; the kernel is three times that of `sensitivities`."""
        return tuple.__new__(RateSensitivities, self.evaluate("rate_sensitivities", q, qd, qdd, qddd, loads=loads, **others))

    def torque_deviations(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, deviation: ArrayLike, *,
                          loads: Loads | None = None) -> TorqueDeviations:
        """Return standard deviations of torques and their rates, from those of the motion.

        deviation : of q, qd, qdd, qddd, (4, n) or (4, samples, n), as MotionEstimator and estimate_recording give them. They
                    are taken for independent of each other, and small: only sensitivities count.
        """
        stds = np.asarray(deviation, dtype=float)
        if stds.ndim not in (2, 3) or len(stds) != 4:
            raise InputError(f"deviation has shape {stds.shape}; (4, n) or (4, samples, n) is needed, of q, qd, qdd, qddd")
        return tuple.__new__(TorqueDeviations, self.evaluate("torque_deviations", q, qd, qdd, qddd, *stds, loads=loads))

    def joint_wrenches(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike | None = None, *,
                       loads: Loads | None = None, **others: Any) -> JointWrenches:
        """Return internal force and moment of every joint and, if the jerk qddd is given, their rates."""
        if qddd is None:
            wrench = self.evaluate("joint_wrenches", q, qd, qdd, loads=loads, **others)[0]
            return JointWrenches(self.moving_joints, wrench, None)
        wrench, rate = self.evaluate("joint_wrenches_and_rates", q, qd, qdd, qddd, loads=loads, **others)
        return JointWrenches(self.moving_joints, wrench, rate)

    def joint_wrench_sensitivities(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *,
                                   loads: Loads | None = None) -> JointWrenchSensitivities:
        """Partial derivatives of the internal wrenches of `joint_wrenches`."""
        tables = self.evaluate("joint_wrench_sensitivities", q, qd, qdd, loads=loads)
        return JointWrenchSensitivities(self.moving_joints, *tables)

    # ------------------------------------------------------------------ energy, momentum, friction

    def energy(self, q: ArrayLike, qd: ArrayLike, **others: Any) -> Energy:
        """Kinetic and potential energy; the latter is zero with all mass at the root's origin."""
        return Energy(*np.moveaxis(self.evaluate("energy", q, qd, **others)[0], -1, 0))

    def center_of_mass(self, q: ArrayLike, qd: ArrayLike | None = None, **others: Any) -> CenterOfMass:
        """Mass centre, its velocity, and the momentum about it; without qd, at rest."""
        refuse_weightless(self.total_mass)
        return CenterOfMass(*self.evaluate("center_of_mass", q, validation.zeros_like("q", q) if qd is None else qd, **others))

    def power(self, qd: ArrayLike, tau: ArrayLike) -> Array:
        """Power of the joint torques [W]: what the energy gains per second, less friction's loss and others' work."""
        names = self.model.joint_names
        moving, pushed = validation.coordinates("qd", qd, names), validation.coordinates("tau", tau, names)
        return np.asarray((moving * pushed).sum(axis=-1))

    def coriolis(self, q: ArrayLike, qd: ArrayLike, **others: Any) -> Array:
        """C (n, n) or (samples, n, n), by Christoffel symbols: C qd are the velocity torques, and Mdot - 2 C is skew."""
        columns = [self.evaluate("coriolis", q, qd, unit, **others)[0] for unit in np.eye(self.model.n)]
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

    # ------------------------------------------------------------------ where links are
    # With base=BaseState(...) of a moving base: in the world, and Jacobians with six columns for the base before the others.

    def link_pose(self, link: str, q: ArrayLike, point: ArrayLike | None = None, *, base: BaseState | None = None,
                  **others: Any) -> Pose:
        """R (3, 3) and p (3,), or (samples, ...) each, of the link's frame in the root link's; origin at the point."""
        return tuple.__new__(Pose, self.on_link(kernel_functions.link_pose, link, (q,), point, base, others))

    def link_velocity(self, link: str, q: ArrayLike, qd: ArrayLike, point: ArrayLike | None = None, *,
                      base: BaseState | None = None, **others: Any) -> Array:
        """(6,) or (samples, 6): velocity of the point, angular velocity, along the root link's axes [m/s, rad/s]."""
        return self.on_link(kernel_functions.link_velocity, link, (q, qd), point, base, others)[0]

    def jacobian(self, link: str, q: ArrayLike, point: ArrayLike | None = None, *, base: BaseState | None = None,
                 **others: Any) -> Array:
        """(6, n) or (samples, 6, n) with link_velocity = jacobian @ qd; followers of a mimic joint count with their leader."""
        return self.on_link(kernel_functions.jacobian, link, (q,), point, base, others)[0]

    def jacobian_rate(self, link: str, q: ArrayLike, qd: ArrayLike, point: ArrayLike | None = None, *,
                      base: BaseState | None = None, **others: Any) -> Array:
        """(6, n) or (samples, 6, n): time derivative of `jacobian` along the motion.

        Acceleration of the point = jacobian @ [base.spatial(base_acceleration); qdd] + jacobian_rate @ [base.velocity; qd].
        """
        return self.on_link(kernel_functions.jacobian_rate, link, (q, qd), point, base, others)[0]

    # ------------------------------------------------------------------ moving bases
    # Numbers of the base come first, linear before angular, along the axes of the base; loads and conventions are those of
    # Robot and BaseState.

    def link_velocities(self, links: Sequence[str], q: ArrayLike, qd: ArrayLike, base_velocity: ArrayLike) -> Array:
        """Return (len(links), 6) or (samples, len(links), 6): velocities of links, each along the axes of the link's frame."""
        found = self.evaluate("link_velocities", q, qd, base_velocity)[0]
        columns = []
        for name in links:
            frame = self.model.frame(name)
            v, w = np.split(found[..., frame.link, :], 2, axis=-1)
            columns.append(np.concatenate(((v + np.cross(w, frame.P)) @ frame.R, w @ frame.R), axis=-1))
        return np.stack(columns, axis=-2)

    def free_energy(self, q: ArrayLike, qd: ArrayLike, base: BaseState) -> Energy:
        """Return kinetic and potential energy [J]; the latter is zero with all mass at the world's origin."""
        kinetic, potential = np.moveaxis(self._on_base("free_energy", base, q, qd)[0], -1, 0)
        return Energy(kinetic, potential - self.total_mass * (base.position @ self.gravity_vector))

    def free_center_of_mass(self, q: ArrayLike, qd: ArrayLike, base: BaseState) -> CenterOfMass:
        """Return the mass centre, its velocity, and the momentum about it, in the world."""
        refuse_weightless(self.total_mass)
        c, *rates = self.evaluate("free_center_of_mass", q, qd, base.velocity)
        return CenterOfMass(base.position + base.into_world(c), *(base.into_world(rate) for rate in rates))

    def free_mass_matrix(self, q: ArrayLike) -> Array:
        """Return A (6 + n, 6 + n) of khalil-rne (84): [base wrench; tau] = A [base acceleration; qdd] + H."""
        return self.evaluate("free_mass_matrix", q)[0]

    def free_bias(self, q: ArrayLike, qd: ArrayLike, base: BaseState, loads: Loads | None) -> Array:
        """Return H (6 + n,) of khalil-rne (85): base wrench and torques without any acceleration."""
        rest = np.zeros(self.n)
        tau, _, wrench, _ = self._on_base("prescribed_base", base, q, qd, rest, rest, *np.zeros((2, 6)), loads=loads)
        return np.concatenate((wrench, tau), axis=-1)

    def free_gravity(self, q: ArrayLike, base: BaseState) -> Array:
        """Return (6 + n,): base wrench and torques that hold the robot still against gravity alone."""
        still = BaseState(base.position, base.quaternion)
        return np.concatenate(self._on_base("free_gravity", still, q, np.zeros(self.n)), axis=-1)

    def free_response(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, base: BaseState,
                      loads: Loads | None) -> tuple[Array, Array]:
        """Return the true acceleration (6,) of a free base and accelerations (n,) of its joints under torques, by articulated
        bodies, khalil-rne (101)-(112); mimic joints as in `forward_dynamics`.
        """
        names = (*BASE, *self.joint_names)
        with nonsingular(lambda: self.free_mass_matrix(q), names):
            acceleration, qdd, felt, locked = self._on_base("free_response", base, q, qd, tau, masses=False, loads=loads)
        check_nonsingular(felt, locked, names)
        validation.results("forward_dynamics", [acceleration, qdd])
        return acceleration, qdd

    def free_joint_wrenches(self, motion: Sequence[ArrayLike], base: BaseState, acceleration: ArrayLike,
                            jerk: ArrayLike | None, loads: Loads | None) -> JointWrenches:
        """Return the internal force and moment of every joint, and their rates where the base's jerk is given.

        motion: q, qd, qdd, and qddd beside the jerk; acceleration, jerk: true ones of the base
        """
        if jerk is None:
            wrench = self._on_base("carried_joint_wrenches", base, *motion, acceleration, loads=loads)[0]
            return JointWrenches(self.moving_joints, wrench, None)
        both = self._on_base("carried_joint_wrenches_and_rates", base, *motion, acceleration, jerk, loads=loads)
        return JointWrenches(self.moving_joints, both[0], both[1])

    def _on_base(self, name: str, base: BaseState, q: ArrayLike, qd: ArrayLike, *motion: ArrayLike,
                 loads: Loads | None = None, masses: bool = True) -> tuple[Array, ...]:
        """Evaluate a kernel that takes the base's state: gravity and loads turn with the world as the base sees it."""
        turned = None if loads is None else checked_loads(loads).seen_from(base)
        return self.evaluate(name, q, qd, base.velocity, base.into_base(self.gravity_vector), *motion, loads=turned,
                             masses=masses)

    # ------------------------------------------------------------------ kernels

    def evaluate(self, name: str, *motion: Any, loads: Loads | None = None, masses: bool = True,
                 **others: Any) -> tuple[Array, ...]:
        """Evaluate one of KERNEL_FUNCTIONS; masses as of KernelStore, others as of `torque_and_rate`."""
        if others:
            validation.no_others(self.name, others)
        if loads is None and (found := self._quick[name](*motion)):
            return found
        self._check_base(KERNEL_FUNCTIONS[name])
        found = self.store(KERNEL_FUNCTIONS[name], *motion, loads=loads, masses=masses)
        self._torque_and_rate = self._quick["torque_and_rate"]
        return found

    def on_link(self, function: Callable[..., Any], link: str, motion: tuple[ArrayLike, ...], point: ArrayLike | None,
                base: BaseState | None, others: Mapping[str, Any]) -> tuple[Array, ...]:
        """Evaluate a function of kernel_functions.py of the motion, the point, and the state of a moving base."""
        if others:
            validation.no_others(self.name, others)
        blocks: tuple[ArrayLike, ...] = (*motion, ORIGIN if point is None else point)
        if base is not None:
            function, state = kernel_functions.ON_MOVING_BASE[function]
            blocks += state(base)
        if found := self.store.quick.get((function, link), not_made)(*blocks):
            return found
        if base is not None and self.model.base == "fixed":
            validation.no_others(self.name, {"base": base})
        return self.store(kernel_functions.of_link(function, self.model, link), *blocks)

    def kernel(self, name: str = "torque_and_rate") -> Kernel:
        """Return the compiled kernel of a function (see kernel_functions.py) without loads: for loops in other languages.

        Its inputs, side by side: ten numbers for each payload, then q, qd ... of n numbers each.
        """
        self._check_base(KERNEL_FUNCTIONS[name])
        return self.store.kernel(KERNEL_FUNCTIONS[name])

    def c_source(self, name: str = "torque_and_rate", function: str = "rnea") -> str:
        """Return a kernel (see kernel_functions.py) as C source, for controllers without Python; inputs as of `kernel`."""
        self._check_base(KERNEL_FUNCTIONS[name])
        return kernel.c_source(*self.store.traced(KERNEL_FUNCTIONS[name], by_paper=False), function)

    def _check_base(self, function: KernelFunction) -> None:
        if not function.any_base:
            validation.held_base(self.model)


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


LEAST = 1e-12  # share of a joint's inertia that may be left when other joints are free; doubles leave 1e-16 of nothing


def check_nonsingular(felt: np.ndarray, locked: np.ndarray, names: Sequence[str]) -> None:
    """InputError where the inertia felt, (n,) or (samples, n), is nothing beside that with all other joints locked."""
    if b"\0" in (felt > LEAST * locked).tobytes():  # one is False; found in a tenth of the time that .all() takes
        raise _error(felt, locked, names)


@contextmanager
def nonsingular(mass_matrix: Callable[[], np.ndarray], names: Sequence[str]) -> Iterator[None]:
    """Raise the same error for a robot that is massless by structure, where tracing a kernel divides by zero."""
    try:
        with np.errstate(divide="raise", invalid="raise"):
            yield
    except (ZeroDivisionError, FloatingPointError):
        M = mass_matrix()
        M = M.reshape(-1, *M.shape[-2:])[0]
        with np.errstate(all="ignore"):
            felt = np.array(pivots(M[::-1, ::-1])[::-1])
        some = not np.all(felt > LEAST * np.diag(M))
        raise (_error(felt, np.diag(M), names) if some else too_large("the acceleration")) from None


def _error(felt: np.ndarray, locked: np.ndarray, names: Sequence[str]) -> InputError:
    felt, locked = (np.reshape(x, (-1, len(names))) for x in (felt, locked))
    loose = np.any(felt <= LEAST * locked, axis=0).tolist()  # not what is NaN, which follows from another's zero
    which = ", ".join(f"'{name}'" for name, free in zip(names, loose, strict=True) if free) or "some joint"
    return InputError(f"the mass matrix is singular: {which} moves no mass (joints beyond it give way), so its acceleration "
                      "has no answer; give its links mass and inertia, or its joint a rotor inertia")
