"""Robot: a model and its kernels. Sizes, names and values are checked here, once; below this door nothing is checked."""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Array
from ..algorithms.torque_rate import LinkForces, LinkMotion
from ..codegen import kernel
from ..codegen.kernel import Kernel
from ..errors import InputError
from ..inertial.base_parameters import regrouped
from ..model import urdf
from ..model.tree import JointDynamics, Limits, Model, frozen
from .derivatives import Sensitivities
from .energy import Energetics
from .inputs import validation
from .inputs.payload import Payload
from .inputs.validation import Wrenches
from .kernels import singularity
from .kernels.functions import ANY_BASE, KERNEL_FUNCTIONS, REFERENCE_FUNCTIONS, REGROUPED, recursion
from .kernels.store import KernelStore
from .link_kinematics import LinkKinematics

GRAVITY = (0.0, 0.0, -9.81)
COMPILED = ("_kernels", "_quick", "_quick_torque_and_rate")  # attributes


class Dynamics(NamedTuple):
    """Joint torques and their rates along the motion, and the share of gravity in both: (n,) or (samples, n) each.

    N m and N m/s for revolute joints, N and N/s for prismatic ones.
    """

    tau: Array
    tau_rate: Array
    gravity: Array
    gravity_rate: Array


class Robot(Energetics, LinkKinematics, Sensitivities):
    """Exact inverse dynamics of a robot, and its time derivative.

    Arrays are in the order of `joint_names`; (n,) for one sample or (samples, n) for many. Units: rad, m, N m, N, s.
    A Robot does not change: `with_payload` returns another one.
    """

    def __init__(self, model: Model, backend: str = "llvm", gravity: ArrayLike = GRAVITY):
        self.model = model
        self.backend = kernel.available(backend)
        self._evaluations = REFERENCE_FUNCTIONS if self.backend == "reference" else KERNEL_FUNCTIONS
        self.gravity_vector = validation.vector("gravity", gravity, 3)
        self.payloads: dict[str, Payload] = {}
        self._kernels: dict[tuple, Kernel] = {}  # shared with the same robot under other payloads
        self._link_kernels = KernelStore(model, self.gravity_vector, self.backend)
        self._forget_calls()

    @classmethod
    def from_urdf(cls, source: str | bytes | os.PathLike, base: str = "fixed", backend: str = "llvm",
                  gravity: ArrayLike = GRAVITY, friction: bool = False,
                  joint_dynamics: Mapping[str, JointDynamics] | None = None, allow_xacro: bool = False) -> Robot:
        """A robot from the path of a URDF, or from its text.

        base        : "fixed", or "floating" (the root is free: its inertia counts)
        backend     : "llvm", "python" or "reference"; the same numbers at different speeds
        gravity     : acceleration of gravity in the root link's frame [m/s^2]
        friction    : use the URDF's <dynamics damping= friction=>
        joint_dynamics : rotor inertia, friction, offset by joint name
        allow_xacro : run a .xacro file, which is a program: only if you trust it as one, never for a path from elsewhere
        Raises ModelError, which lists everything that is wrong with the URDF.
        """
        return cls(urdf.load(source, base, friction, joint_dynamics, allow_xacro), backend, gravity)

    @property
    def name(self) -> str:
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
        return self.model.n

    @property
    def order(self) -> int:
        """How many derivatives of q its torque rate needs."""
        return 3

    @property
    def root_link(self) -> str:
        return self.model.links[0].name

    @property
    def limits(self) -> Limits:
        """Of the n coordinates, NaN where unknown."""
        return self.model.limits

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is doubtful in the URDF, one sentence each."""
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

    def mdh_table(self) -> list[tuple]:
        """(name, parent, sigma, gamma, b, alpha, d, theta, r) of every frame; parent 0 is the root, k is row k from 1."""
        return self.model.mdh_table()

    def with_payload(self, link: str, mass: float, com: ArrayLike = (0.0, 0.0, 0.0),
                     inertia: ArrayLike | None = None) -> Robot:
        """The same robot carrying a rigid body on a URDF link, instead of what that link carried before.

        mass [kg], com (3,) in the link's frame [m], inertia (3, 3) about the com in the link's axes [kg m^2], default zero.
        Kernels are shared: after the first payload on a link, another one costs microseconds. Mass 0 takes it off.
        """
        robot = copy.copy(self)
        robot.payloads = {name: p for name, p in self.payloads.items() if name != link}
        robot._forget_calls()
        payload = Payload.on_link(self.model, link, mass, com, inertia)
        if payload.mass > 0.0:
            robot.payloads[link] = payload
        return robot

    def __copy__(self) -> Robot:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """Without what is compiled: machine code holds addresses of this process."""
        return {name: value for name, value in self.__dict__.items() if name not in COMPILED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.backend, self.gravity_vector = kernel.available(self.backend), frozen(self.gravity_vector)
        self._kernels = {}
        self._forget_calls()

    def torque_and_rate(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *,
                        wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                        world_wrenches: Wrenches | None = None) -> tuple[Array, Array]:
        """Torques and their exact time derivatives along the motion, guarino-gfd (3)-(21).

        q, qd, qdd, qddd : (n,) or (samples, n): position, velocity, acceleration, jerk
        wrenches         : {URDF link: (6,) or (samples, 6)} force, then moment about the link frame's origin, exerted BY the
                           environment ON the link, seen in the link's frame [N, N m]
        wrench_rates     : time derivatives of those six numbers [N/s, N m/s]; missing ones are zero
        world_wrenches   : as wrenches, but seen in the root link's frame, where they stay while the link turns
        """
        if wrenches or wrench_rates or world_wrenches or not (found := self._quick_torque_and_rate(q, qd, qdd, qddd)):
            found = self._evaluate("torque_and_rate", q, qd, qdd, qddd, wrenches=wrenches, wrench_rates=wrench_rates,
                                   world_wrenches=world_wrenches)
        return found  # type: ignore[return-value]  # of two arrays

    def dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *, wrenches: Wrenches | None = None,
                 wrench_rates: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> Dynamics:
        """tau, tau_rate, and of both the share of gravity, in one call; wrenches as in `torque_and_rate`."""
        if wrenches or wrench_rates or world_wrenches or not (found := self._quick["dynamics"](q, qd, qdd, qddd)):
            found = self._evaluate("dynamics", q, qd, qdd, qddd, wrenches=wrenches, wrench_rates=wrench_rates,
                                   world_wrenches=world_wrenches)
        return tuple.__new__(Dynamics, found)

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, wrenches: Wrenches | None = None,
                         world_wrenches: Wrenches | None = None) -> Array:
        """Torques (n,) or (samples, n) of a motion; wrenches as in `torque_and_rate`."""
        if wrenches or world_wrenches or not (found := self._quick["inverse_dynamics"](q, qd, qdd)):
            found = self._evaluate("inverse_dynamics", q, qd, qdd, wrenches=wrenches, world_wrenches=world_wrenches)
        return found[0]

    def bias(self, q: ArrayLike, qd: ArrayLike, *, wrenches: Wrenches | None = None,
             world_wrenches: Wrenches | None = None) -> Array:
        """Torques at zero acceleration: velocity terms, gravity, friction, loads. tau = M qdd + bias."""
        return self.inverse_dynamics(q, qd, np.zeros(self.n), wrenches=wrenches, world_wrenches=world_wrenches)

    def gravity(self, q: ArrayLike) -> Array:
        """Torques that hold the robot still against gravity alone."""
        return self._evaluate("gravity", q)[0]

    def mass_matrix(self, q: ArrayLike) -> Array:
        """M (n, n) or (samples, n, n): column k is the torque of a unit acceleration of joint k alone, khalil-rne 3.3.1."""
        return self._evaluate("mass_matrix", q)[0]

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, *, wrenches: Wrenches | None = None,
                         world_wrenches: Wrenches | None = None) -> Array:
        """Accelerations (n,) or (samples, n) under given torques, by articulated bodies, khalil-rne (32)-(44).

        Mimic joints, which that recursion cannot free one by one, solve M qdd = tau - bias instead. InputError names a joint
        that moves no mass.
        """
        if wrenches or world_wrenches or not (found := self._quick["forward_dynamics"](q, qd, tau)):
            with singularity.nonsingular(lambda: self.mass_matrix(q), self.joint_names):
                found = self._evaluate("forward_dynamics", q, qd, tau, wrenches=wrenches, world_wrenches=world_wrenches,
                                       masses=False)
        qdd, felt, locked = found
        singularity.check_nonsingular(felt, locked, self.joint_names)
        validation.results("forward_dynamics", [qdd])
        return qdd

    def recursion(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *, wrenches: Wrenches | None = None,
                  wrench_rates: Wrenches | None = None) -> tuple[LinkMotion, LinkForces]:
        """Everything in between, link by link in MDH frames: velocities .. jerks, forces and moments, and their rates."""
        validation.held_base(self.model)
        blocks = ("q", "qd", "qdd", "qddd")
        arrays, loaded, held = self._arrays(blocks, (q, qd, qdd, qddd), wrenches, wrench_rates, None)
        x = validation.beside(arrays)
        if x.ndim != 1:
            raise InputError(f"recursion takes one sample, arrays ({self.n},); got {np.shape(q)}")
        function, inputs = self._function(recursion, blocks, loaded, held)
        starts = np.cumsum([0, *inputs.values()])
        return function(**{name: x[a:a + size] for (name, size), a in zip(inputs.items(), starts, strict=False)})

    def _forget_calls(self) -> None:
        """The kernels' own functions, by evaluation; they answer None if not built, or asked oddly."""
        self._quick: dict[str, Callable[..., tuple | None]] = dict.fromkeys(self._evaluations, _not_built)
        self._quick_torque_and_rate = self._quick["torque_and_rate"]  # the same, found faster

    def _evaluate(self, name: str, *motion: Any, wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                  world_wrenches: Wrenches | None = None, masses: bool = True) -> tuple[np.ndarray, ...]:
        """Sound arrays of one sample go to the kernel at once; all else is looked at, and refused, in `_arrays`.

        masses : whether a result that is not finite can only be too large; the caller looks for what moves no mass otherwise
        """
        if not (wrenches or wrench_rates or world_wrenches) and (found := self._quick[name](*motion)):
            return found  # a tuple of arrays
        given = self._evaluations[name][1], motion, wrenches, wrench_rates, world_wrenches
        arrays, loaded, held = self._arrays(*given, finite=False)
        count, ready = validation.samples(arrays), self._kernel(name, loaded, held)
        if count is not None and (found := ready.samples(arrays, count)):
            return found
        if count is not None:
            arrays = self._arrays(*given)[0]  # says which number is not finite; of one sample that is known already
        found = ready(validation.beside(arrays))
        if masses:
            validation.results(name, found)
        return found

    def kernel(self, name: str = "torque_and_rate") -> Kernel:
        """The compiled kernel of an evaluation (see evaluations.py) without wrenches: for loops in other languages.

        Its inputs, side by side: ten numbers for each payload, then q, qd ... of n numbers each.
        """
        return self._kernel(name, (), ())

    def c_source(self, name: str = "torque_and_rate", function: str = "rnea") -> str:
        """An evaluation (see evaluations.py) as a C function, for controllers without Python; inputs as of `kernel`."""
        self._check_base(name)
        model = self._regrouped if name in REGROUPED else self.model
        return kernel.c_source(*self._function(*KERNEL_FUNCTIONS[name], (), (), model), function)

    def _kernel(self, name: str, loaded: tuple[int, ...], held: tuple[str, ...]) -> Kernel:
        self._check_base(name)
        key = (name, loaded, held, tuple(self.payloads))
        if key not in self._kernels:
            model = self._regrouped if name in REGROUPED and self.backend != "reference" else self.model
            self._kernels[key] = kernel.build(*self._function(*self._evaluations[name], loaded, held, model), self.backend)
        if not (loaded or held):
            call = self._kernels[key].call
            self._quick[name] = partial(call, *self._carried) if self.payloads else call
            self._quick_torque_and_rate = self._quick["torque_and_rate"]
        return self._kernels[key]

    def _check_base(self, name: str) -> None:
        if name not in ANY_BASE:
            validation.held_base(self.model)

    @property
    def _carried(self) -> list[np.ndarray]:
        return [np.concatenate([payload.parameters for payload in self.payloads.values()])] if self.payloads else []

    def _arrays(self, names: Sequence[str], motion: Sequence[Any], wrenches: Wrenches | None, wrench_rates: Wrenches | None,
                world_wrenches: Wrenches | None, finite: bool = True) -> tuple[list, tuple[int, ...], tuple[str, ...]]:
        """The input blocks of a kernel, (size,) or (samples, size); numbers of the links under wrenches, names of those under
        world wrenches. finite: as in door.block."""
        arrays = [validation.block(name, value, self.joint_names, finite) for name, value in zip(names, motion, strict=True)]
        loaded = validation.loaded_links(self.model, wrenches, wrench_rates)
        if loaded:
            arrays += [validation.wrench_block(self.model, loaded, given or {}) for given in (wrenches, wrench_rates)]
        held = validation.world_blocks(self.model, world_wrenches)
        if held:
            arrays.append(validation.beside(list(held.values())))
        return [*self._carried, *arrays], loaded, tuple(held)

    @cached_property
    def _regrouped(self) -> Model:
        """The same torques from fewer inertial parameters."""
        return regrouped(self.model, self.gravity_vector, second_moments=True)

    def _function(self, evaluation: Callable, blocks: Sequence[str], loaded: Sequence[int], held: Sequence[str],
                  model: Model | None = None) -> tuple[Callable, dict[str, int]]:
        """The function that a kernel is traced from, and the sizes of its input blocks."""
        model = model or self.model
        inputs = {"payloads": 10 * len(self.payloads)} if self.payloads else {}
        inputs |= {name: validation.SIZES.get(name, self.n) for name in blocks}
        if loaded:
            inputs |= {"wrenches": 6 * len(loaded), "wrench_rates": 6 * len(loaded)}
        if held:
            inputs["world_wrenches"] = 6 * len(held)
        carriers = [payload.link_number for payload in self.payloads.values()]

        def function(wrenches=None, wrench_rates=None, world_wrenches=None, payloads=None, **motion):
            options: dict[str, Any] = {}
            if loaded:
                options |= {"wrenches": dict(zip(loaded, _sixes(wrenches), strict=True)),
                            "wrench_rates": dict(zip(loaded, _sixes(wrench_rates), strict=True))}
            if held:
                frames = [self.model.frame(link) for link in held]
                options["world_wrenches"] = [(frame.link, frame.P, six) for frame, six in zip(frames, _sixes(world_wrenches))]
            if carriers:
                options["inertias"] = Payload.added(model, carriers, payloads)
            return evaluation(model, self.gravity_vector, options, **motion)

        return function, inputs


def _not_built(*_blocks: Any) -> None:
    """Before there is a kernel."""


def _sixes(block):
    return [block[k:k + 6] for k in range(0, len(block), 6)]
