"""TreeDynamics: dynamics of a tree of rigid links by recursions: the spanning tree of a Robot, and all of a fixed tree."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Array
from ..algorithms.torque_rate import LinkForces, LinkMotion
from ..codegen import kernel
from ..codegen.kernel import Kernel
from ..errors import InputError, ModelWarning, some, summary
from ..model import urdf
from ..model.drives import DriveLimit
from ..model.tree import CoupledMotor, JointDynamics, Limits, Model, frozen
from ..model.urdf_reader import Description
from .derivatives import Sensitivities
from .energy import Energetics
from .inputs import validation
from .inputs.payload import Payload
from .inputs.validation import Wrenches
from .kernels import singularity
from .kernels.functions import KERNEL_FUNCTIONS, RECURSION
from .kernels.kernel_function import KernelFunction
from .kernels.store import KernelStore
from .link_kinematics import LinkKinematics

GRAVITY = (0.0, 0.0, -9.81)


class Dynamics(NamedTuple):
    """Joint torques and their rates along the motion, and the share of gravity in both: (n,) or (samples, n) each.

    N m and N m/s for revolute joints, N and N/s for prismatic ones. Columns are Robot.joint_names; Robot.by_joint names them.
    """

    tau: Array
    tau_rate: Array
    gravity: Array
    gravity_rate: Array


class TreeDynamics(Energetics, LinkKinematics, Sensitivities):
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
    def payloads(self) -> Mapping[str, Payload]:
        """Payloads by URDF link."""
        return self.store.payloads

    @property
    def name(self) -> str:
        """Name of the robot in the URDF."""
        return self.model.name

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
    def root_link(self) -> str:
        """The link in whose frame gravity and poses are."""
        return self.model.links[0].name

    @property
    def limits(self) -> Limits:
        """Limits of the n coordinates, NaN where unknown."""
        return self.model.limits

    @property
    def drive_limits(self) -> tuple[DriveLimit, ...]:
        """Joint limits of torque, torque rate and speed from motors, gears and supplies in the robot file."""
        return self.model.drive_limits

    @property
    def warnings(self) -> tuple[ModelWarning, ...]:
        """Implausible properties of the URDF, a sentence each, with the name of the warning in brackets."""
        return self.model.warnings

    @property
    def total_mass(self) -> float:
        """Links and payloads [kg]."""
        return self.model.total_mass + sum(payload.mass for payload in self.payloads.values())

    @property
    def reconstruction_error(self) -> float:
        """Largest deviation of any frame from the URDF [m, rad]."""
        return self.model.reconstruction_error

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
        return self._twin(payloads)

    def with_masses(self, factors: ArrayLike) -> TreeDynamics:
        """Return the robot with the mass of each moving link, and its moments, times a factor: (len(moving_joints),).

        Kernels are shared, as with payloads: the effect of wrong masses is computed without compiling.
        """
        links = [link for link in self.model.links if link.joint]
        given = validation.vector("factors", factors, len(links))
        added = {f"mass of {link.name}": Payload.share(self.model, number, factor - 1.0) for number, link, factor in zip(
            (k for k, link in enumerate(self.model.links) if link.joint), links, given, strict=True)}
        return self._twin({**self.payloads, **added})

    def with_joint_dynamics(self, terms: Mapping[str, JointDynamics]) -> TreeDynamics:
        """Return the robot with other joint dynamics, by joint name (mimic joints included)."""
        return TreeDynamics(self.model.with_joint_dynamics(terms), self.backend, self.gravity_vector)._twin(self.payloads)

    def with_coupled_motors(self, motors: Sequence[CoupledMotor]) -> TreeDynamics:
        """Return the same robot with these motors of coupled transmissions instead of those it has."""
        return TreeDynamics(self.model.with_coupled_motors(motors), self.backend, self.gravity_vector)._twin(self.payloads)

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
        return TreeDynamics(model, self.backend, self.gravity_vector)._twin(self.payloads)

    def with_free_base(self) -> TreeDynamics:
        """Return the same tree with a free root link. Kernels are shared."""
        twin = copy(self)
        twin.model = replace(self.model, base="floating")
        return twin

    def held(self, gravity: ArrayLike) -> TreeDynamics:
        """Return the robot on a base that does not move; gravity (3,) in the frame of its root link."""
        return TreeDynamics(replace(self.model, base="fixed"), self.backend, gravity)._twin(self.payloads)

    def __copy__(self) -> TreeDynamics:
        return self._twin(self.payloads)

    def _twin(self, payloads: Mapping[str, Payload]) -> TreeDynamics:
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

    def torque_and_rate(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *,
                        wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                        world_wrenches: Wrenches | None = None, **others: Any) -> tuple[Array, Array]:
        """Torques and their exact time derivatives along the motion, guarino-gfd (3)-(21).

        q, qd, qdd, qddd : (n,) or (samples, n): position, velocity, acceleration, jerk
        wrenches         : {URDF link: (6,) or (samples, 6)} force, then moment about the link frame's origin, exerted BY the
                           environment ON the link, seen in the link's frame [N, N m]
        wrench_rates     : time derivatives of those six numbers [N/s, N m/s]; missing ones are zero
        world_wrenches   : as wrenches, but seen in the root link's frame, where they stay while the link turns
        """
        if others:
            validation.no_others(self.name, others)
        if wrenches or wrench_rates or world_wrenches or not (found := self._torque_and_rate(q, qd, qdd, qddd)):
            found = self.evaluate("torque_and_rate", q, qd, qdd, qddd, wrenches=wrenches, wrench_rates=wrench_rates,
                                   world_wrenches=world_wrenches)
        return found  # type: ignore[return-value]  # of two arrays

    def dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *, wrenches: Wrenches | None = None,
                 wrench_rates: Wrenches | None = None, world_wrenches: Wrenches | None = None, **others: Any) -> Dynamics:
        """tau, tau_rate, and of both the share of gravity, in one call; wrenches as in `torque_and_rate`."""
        if others:
            validation.no_others(self.name, others)
        if wrenches or wrench_rates or world_wrenches or not (found := self._quick["dynamics"](q, qd, qdd, qddd)):
            found = self.evaluate("dynamics", q, qd, qdd, qddd, wrenches=wrenches, wrench_rates=wrench_rates,
                                   world_wrenches=world_wrenches)
        return tuple.__new__(Dynamics, found)

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, wrenches: Wrenches | None = None,
                         world_wrenches: Wrenches | None = None, **others: Any) -> Array:
        """Torques (n,) or (samples, n) of a motion; wrenches as in `torque_and_rate`."""
        if others:
            validation.no_others(self.name, others)
        if wrenches or world_wrenches or not (found := self._quick["inverse_dynamics"](q, qd, qdd)):
            found = self.evaluate("inverse_dynamics", q, qd, qdd, wrenches=wrenches, world_wrenches=world_wrenches)
        return found[0]

    def bias(self, q: ArrayLike, qd: ArrayLike, *, wrenches: Wrenches | None = None,
             world_wrenches: Wrenches | None = None, **others: Any) -> Array:
        """Torques at zero acceleration: velocity terms, gravity, friction, loads. Without friction by load
        tau = M qdd + bias.
        """
        if others:
            validation.no_others(self.name, others)
        return self.inverse_dynamics(q, qd, np.zeros(self.n), wrenches=wrenches, world_wrenches=world_wrenches)

    def gravity(self, q: ArrayLike, **others: Any) -> Array:
        """Torques that hold the robot still against gravity alone."""
        if others:
            validation.no_others(self.name, others)
        return self.evaluate("gravity", q)[0]

    def gravity_and_rate(self, q: ArrayLike, qd: ArrayLike, **others: Any) -> tuple[Array, Array]:
        """Torques (n,) or (samples, n) that hold the robot still against gravity, and their rates along the motion."""
        rest = np.zeros(self.n)
        found = self.dynamics(q, qd, rest, rest, **others)
        return found.gravity, found.gravity_rate

    def mass_matrix(self, q: ArrayLike, **others: Any) -> Array:
        """M (n, n) or (samples, n, n): column k is the torque of a unit acceleration of joint k alone, khalil-rne 3.3.1."""
        if others:
            validation.no_others(self.name, others)
        return self.evaluate("mass_matrix", q)[0]

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, *, wrenches: Wrenches | None = None,
                         world_wrenches: Wrenches | None = None, **others: Any) -> Array:
        """Accelerations (n,) or (samples, n) under given torques, by articulated bodies, khalil-rne (32)-(44).

        Mimic joints, which that recursion cannot free one by one, solve M qdd = tau - bias instead. InputError names a joint
        that moves no mass.
        """
        if others:
            validation.no_others(self.name, others)
        if wrenches or world_wrenches or not (found := self._quick["forward_dynamics"](q, qd, tau)):
            with singularity.nonsingular(lambda: self.mass_matrix(q), self.joint_names):
                found = self.evaluate("forward_dynamics", q, qd, tau, wrenches=wrenches, world_wrenches=world_wrenches,
                                       masses=False)
        qdd, felt, locked = found
        singularity.check_nonsingular(felt, locked, self.joint_names)
        validation.results("forward_dynamics", [qdd])
        return qdd

    def recursion(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *, wrenches: Wrenches | None = None,
                  wrench_rates: Wrenches | None = None) -> tuple[LinkMotion, LinkForces]:
        """Everything in between, link by link in MDH frames: velocities .. jerks, forces and moments, and their rates."""
        validation.held_base(self.model)
        found: tuple[LinkMotion, LinkForces] = self.store.on_floats(RECURSION, q, qd, qdd, qddd, wrenches=wrenches,
                                                                     wrench_rates=wrench_rates)
        validation.results("recursion", [np.asarray(x, dtype=float) for part in found for values in part for x in values])
        return found

    def evaluate(self, name: str, *motion: Any, **options: Any) -> tuple[Array, ...]:
        """Evaluate one of KERNEL_FUNCTIONS; options: loads and `masses`, as of KernelStore."""
        if not options and (found := self._quick[name](*motion)):
            return found
        self._check_base(KERNEL_FUNCTIONS[name])
        found = self.store(KERNEL_FUNCTIONS[name], *motion, **options)
        self._torque_and_rate = self._quick["torque_and_rate"]
        return found

    def kernel(self, name: str = "torque_and_rate") -> Kernel:
        """Return the compiled kernel of a function (see kernels/functions.py) without loads: for loops in other languages.

        Its inputs, side by side: ten numbers for each payload, then q, qd ... of n numbers each.
        """
        self._check_base(KERNEL_FUNCTIONS[name])
        return self.store.kernel(KERNEL_FUNCTIONS[name])

    def c_source(self, name: str = "torque_and_rate", function: str = "rnea") -> str:
        """Return a kernel (see kernels/functions.py) as C source, for controllers without Python; inputs as of `kernel`."""
        self._check_base(KERNEL_FUNCTIONS[name])
        return kernel.c_source(*self.store.traced(KERNEL_FUNCTIONS[name], by_paper=False), function)

    def _check_base(self, function: KernelFunction) -> None:
        if not function.any_base:
            validation.held_base(self.model)
