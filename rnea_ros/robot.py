"""Robot: a model and its kernels. Sizes, names and values are checked here, once; below this door nothing is checked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import urdf
from .algorithms import torque_rate as newton_euler
from .algorithms.torque_rate import BaseMotion, LinkForces, LinkMotion
from .codegen import kernel
from .errors import InputError
from .model import JointTerm, Model
from .payload import Payload

GRAVITY = (0.0, 0.0, -9.81)

Wrenches = Mapping[str, Any]


class Dynamics(NamedTuple):
    """Joint torques and their rates along the motion, with the share of gravity: (n,) or (samples, n) each [N m, N m/s; N, N/s]."""

    tau: np.ndarray
    tau_rate: np.ndarray
    gravity: np.ndarray
    gravity_rate: np.ndarray


class Robot:
    """Exact inverse dynamics of a robot, and its time derivative.

    Arrays are in the order of `joint_names`; (n,) for one sample or (samples, n) for many. Units: rad, m, N m, N, s.
    A Robot does not change: `with_payload` returns another one.
    """

    def __init__(self, model: Model, backend: str = "llvm", gravity: Sequence[float] = GRAVITY):
        self.model = model
        self.backend = kernel.available(backend)
        self.gravity_vector = _vector("gravity", gravity, 3)
        self.payloads: dict[str, Payload] = {}
        self._kernels: dict[tuple, kernel.Kernel] = {}

    @classmethod
    def from_urdf(cls, source: str | bytes | os.PathLike, base: str = "fixed", backend: str = "llvm",
                  gravity: Sequence[float] = GRAVITY, friction: bool = False,
                  joint_terms: Mapping[str, JointTerm] | None = None) -> Robot:
        """A robot from the path of a URDF (or .xacro), or from its text.

        base        : "fixed", or "floating" (the root is free: its inertia counts)
        backend     : "llvm", "python" or "reference"; the same numbers at different speeds
        gravity     : acceleration of gravity in the root link's frame [m/s^2]
        friction    : use the URDF's <dynamics damping= friction=>
        joint_terms : rotor inertia, friction, offset by joint name
        Raises ModelError, which lists everything that is wrong with the URDF.
        """
        return cls(urdf.load(source, base, friction, joint_terms), backend, gravity)

    # ------------------------------------------------------------------ what it is

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the n coordinates, depth first from the root: the order of every array."""
        return self.model.joint_names

    @property
    def n(self) -> int:
        return self.model.n

    def with_payload(self, link: str, mass: float, com: Sequence[float] = (0.0, 0.0, 0.0), inertia: Any = None) -> Robot:
        """The same robot carrying a rigid body on a URDF link, instead of what that link carried before.

        mass [kg], com (3,) in the link's frame [m], inertia (3, 3) about the com in the link's axes [kg m^2], default zero.
        Kernels are shared: after the first payload on a link, another one costs microseconds. Mass 0 takes it off.
        """
        robot = Robot.__new__(Robot)
        robot.__dict__.update(self.__dict__)
        robot.payloads = {name: p for name, p in self.payloads.items() if name != link}
        payload = Payload.on_link(self.model, link, mass, com, inertia)
        if payload.mass > 0.0:
            robot.payloads[link] = payload
        return robot

    # ------------------------------------------------------------------ what it computes

    def torque_and_rate(self, q, qd, qdd, qddd, wrenches: Wrenches | None = None,
                        wrench_rates: Wrenches | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Torques and their exact time derivatives along the motion, guarino-gfd (3)-(21).

        q, qd, qdd, qddd : (n,) or (samples, n): position, velocity, acceleration, jerk
        wrenches         : {URDF link: (6,) or (samples, 6)} force, then moment about the link frame's origin, exerted BY the
                           environment ON the link, seen in the link's frame [N, N m]
        wrench_rates     : time derivatives of those six numbers [N/s, N m/s]; missing ones are zero
        """
        return self._evaluate("torque_and_rate", (q, qd, qdd, qddd), wrenches, wrench_rates)

    def dynamics(self, q, qd, qdd, qddd) -> Dynamics:
        """tau, tau_rate, and of both the share of gravity, in one call."""
        return Dynamics(*self._evaluate("dynamics", (q, qd, qdd, qddd)))

    def inverse_dynamics(self, q, qd, qdd, wrenches: Wrenches | None = None) -> np.ndarray:
        """Torques (n,) or (samples, n) of a motion; wrenches as in `torque_and_rate`."""
        return self._evaluate("inverse_dynamics", (q, qd, qdd), wrenches)[0]

    def bias(self, q, qd, wrenches: Wrenches | None = None) -> np.ndarray:
        """Torques at zero acceleration: velocity terms, gravity, friction. tau = M qdd + bias."""
        return self.inverse_dynamics(q, qd, np.zeros(np.shape(q)), wrenches)

    def gravity(self, q) -> np.ndarray:
        """Torques that hold the robot still against gravity alone."""
        return self._evaluate("gravity", (q,))[0]

    def mass_matrix(self, q) -> np.ndarray:
        """M (n, n) or (samples, n, n): column k is the torque of a unit acceleration of joint k alone, khalil-rne 3.3.1."""
        q = np.asarray(q, dtype=float)
        columns = [self._evaluate("inertia", (q, np.broadcast_to(unit, q.shape)))[0] for unit in np.eye(self.n)]
        return np.stack(columns, axis=-1) if columns else np.zeros((*q.shape, 0))

    def forward_dynamics(self, q, qd, tau, wrenches: Wrenches | None = None) -> np.ndarray:
        """Accelerations (n,) or (samples, n) under given torques: solves M qdd = tau - bias, khalil-rne (8)."""
        torque = np.asarray(tau, dtype=float) - self.bias(q, qd, wrenches)
        if torque.shape[-1:] != (self.n,) or not np.all(np.isfinite(torque)):
            raise InputError(f"tau has shape {np.shape(tau)}; {self.n} finite numbers are needed, for {self._names()}")
        try:
            return np.linalg.solve(self.mass_matrix(q), torque[..., None])[..., 0]
        except np.linalg.LinAlgError:
            raise InputError("the mass matrix is singular: a joint moves no mass, so its acceleration has no answer; "
                             "give its links mass or its joint a rotor inertia") from None

    def recursion(self, q, qd, qdd, qddd, wrenches: Wrenches | None = None,
                  wrench_rates: Wrenches | None = None) -> tuple[LinkMotion, LinkForces]:
        """Everything in between, link by link in MDH frames: velocities .. jerks, forces and moments, and their rates."""
        x = self._pack((q, qd, qdd, qddd), wrenches, wrench_rates)
        if x.ndim != 1:
            raise InputError(f"recursion takes one sample, (n,) arrays; got {np.shape(q)}")
        function, inputs = self._function("recursion", self._loaded(wrenches))
        starts = np.cumsum([0, *inputs.values()])
        return function(**{name: x[a:a + size] for (name, size), a in zip(inputs.items(), starts, strict=False)})

    # ------------------------------------------------------------------ the door

    def _evaluate(self, name: str, motion: tuple, wrenches: Wrenches | None = None,
                  wrench_rates: Wrenches | None = None) -> tuple[np.ndarray, ...]:
        x = self._pack(motion, wrenches, wrench_rates)
        loaded = self._loaded(wrenches)
        key = (name, loaded, tuple(self.payloads))
        if key not in self._kernels:
            self._kernels[key] = kernel.build(*self._function(name, loaded), self.backend)
        return self._kernels[key](x)

    def _function(self, name: str, loaded: tuple[int, ...]) -> tuple[Any, dict[str, int]]:
        """The traced function of a kernel and its input blocks."""
        order = {"gravity": 1, "inertia": 2, "inverse_dynamics": 3}.get(name, 4)
        blocks = ("q", "qdd") if name == "inertia" else ("q", "qd", "qdd", "qddd")[:order]
        inputs = dict.fromkeys(blocks, self.n)
        if loaded:
            inputs |= {"wrenches": 6 * len(loaded), "wrench_rates": 6 * len(loaded)}
        if self.payloads:
            inputs["payloads"] = 10 * len(self.payloads)
        carriers = [(payload.link_number, k) for k, payload in enumerate(self.payloads.values())]

        def function(wrenches=None, wrench_rates=None, payloads=None, **motion):
            options = {} if payloads is None else {"inertias": Payload.added(self.model, carriers, payloads)}
            if loaded:
                options |= {"wrenches": _rows(loaded, wrenches), "wrench_rates": _rows(loaded, wrench_rates)}
            return _FUNCTIONS[name](self.model, self.gravity_vector, options, **motion)

        return function, inputs

    def _loaded(self, wrenches: Wrenches | None) -> tuple[int, ...]:
        """Numbers of the links that carry external wrenches."""
        return tuple(sorted({self.model.frame(link).link for link in wrenches or {}}))

    def _pack(self, motion: tuple, wrenches: Wrenches | None, wrench_rates: Wrenches | None) -> np.ndarray:
        """The flat input of a kernel, (size,) or (samples, size)."""
        names = ("q", "qd", "qdd", "qddd")
        arrays = [self._array(name, value) for name, value in zip(names, motion, strict=False)]
        unknown = sorted(set(wrench_rates or {}) - set(wrenches or {}))
        if unknown:
            raise InputError(f"wrench rates without a wrench on links {unknown}")
        loaded = self._loaded(wrenches)
        if loaded:
            arrays += [self._wrench_block(loaded, wrenches or {}), self._wrench_block(loaded, wrench_rates or {})]
        arrays += [payload.parameters for payload in self.payloads.values()]
        if all(array.ndim == 1 for array in arrays):
            return np.concatenate(arrays)
        samples = {len(array) for array in arrays if array.ndim == 2}
        if len(samples) != 1:
            raise InputError(f"arrays have different numbers of samples: {sorted(samples)}")
        shape = (samples.pop(),)
        return np.concatenate([np.broadcast_to(array, (*shape, array.shape[-1])) for array in arrays], axis=1)

    def _array(self, name: str, value: Any) -> np.ndarray:
        try:
            array = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            raise InputError(f"{name} is not an array of numbers: {value!r:.80}") from None
        if array.ndim not in (1, 2) or array.shape[-1] != self.n:
            raise InputError(f"{name} has shape {array.shape}; ({self.n},) or (samples, {self.n}) is needed, one column for "
                             f"each of {self._names()}")
        if not np.isfinite(array).all():
            where = np.argwhere(~np.isfinite(array))[0]
            raise InputError(f"{name}{where.tolist()} is {array[tuple(where)]} (joint '{self.joint_names[where[-1]]}'); "
                             "every value must be a finite number")
        return array

    def _wrench_block(self, loaded: tuple[int, ...], wrenches: Wrenches) -> np.ndarray:
        """Wrenches moved from URDF link frames to MDH frames, one six-vector for each loaded link."""
        total = {number: np.zeros(6) for number in loaded}
        for name, value in wrenches.items():
            frame = self.model.frame(name)
            wrench = np.asarray(value, dtype=float)
            if wrench.shape[-1:] != (6,) or wrench.ndim > 2 or not np.isfinite(wrench).all():
                raise InputError(f"wrench on link '{name}' must be 6 finite numbers, force first, or (samples, 6); got {value!r:.120}")
            f, n = wrench[..., :3] @ frame.R.T, wrench[..., 3:] @ frame.R.T
            total[frame.link] = total[frame.link] + np.concatenate((f, n + np.cross(frame.P, f)), axis=-1)
        shape = np.broadcast_shapes(*(w.shape[:-1] for w in total.values()))
        return np.concatenate([np.broadcast_to(w, (*shape, 6)) for w in total.values()], axis=-1)

    def _names(self) -> str:
        return ", ".join(self.joint_names) or "no joints"


def _rows(loaded: tuple[int, ...], block: Any) -> dict[int, Any]:
    return {number: block[6 * k:6 * k + 6] for k, number in enumerate(loaded)}


def _vector(name: str, value: Any, size: int) -> np.ndarray:
    array = np.array(value, dtype=float)
    if array.shape != (size,) or not np.isfinite(array).all():
        raise InputError(f"{name} is {value!r:.80}; {size} finite numbers are needed")
    array.flags.writeable = False
    return array


# What each kernel evaluates: always the one recursion, with arguments left at zero (khalil-rne 3.3.1).

def _torque_and_rate(model, g, options, q, qd, qdd, qddd):
    return newton_euler.torque_and_rate(model, q, qd, qdd, qddd, g, **options)


def _inverse_dynamics(model, g, options, q, qd, qdd):
    return newton_euler.torque_and_rate(model, q, qd, qdd, qdd * 0.0, g, **options)[:1]


def _inertia(model, g, options, q, qdd):
    return newton_euler.torque_and_rate(model, q, q * 0.0, qdd, q * 0.0, g * 0.0, **options, )[:1]


def _gravity(model, g, options, q):
    zero = q * 0.0
    return newton_euler.torque_and_rate(model, q, zero, zero, zero, g, joint_terms=False, **options)[:1]


def _dynamics(model, g, options, q, qd, qdd, qddd):
    """Gravity enters affinely: its rate is that of a motion without acceleration, less the same without gravity."""
    zero = q * 0.0
    heavy = newton_euler.torque_and_rate(model, q, qd, zero, zero, g, joint_terms=False, **options)[1]
    light = newton_euler.torque_and_rate(model, q, qd, zero, zero, g * 0.0, joint_terms=False, **options)[1]
    gravity_rate = [a - b for a, b in zip(heavy, light, strict=True)]
    return *_torque_and_rate(model, g, options, q, qd, qdd, qddd), *_gravity(model, g, options, q), gravity_rate


def _recursion(model, g, options, q, qd, qdd, qddd):
    motion = newton_euler.kinematics(model, q, qd, qdd, qddd, BaseMotion(a=-g))
    return motion, newton_euler.dynamics(model, motion, qd, qdd, qddd, **options)


_FUNCTIONS = {"torque_and_rate": _torque_and_rate, "inverse_dynamics": _inverse_dynamics, "inertia": _inertia,
              "gravity": _gravity, "dynamics": _dynamics, "recursion": _recursion}
