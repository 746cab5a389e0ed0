"""SpringRobot: a robot some of whose joints have no motor, only a spring."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Array
from ..algorithms import elastic_joints
from ..algorithms.mass_matrix import locked
from ..errors import InputError
from ..model.robot_file.robot_file import Source
from ..model.tree import Model
from . import elastic_parameters
from .derivatives import JointWrenches, RateSensitivities, TorqueSensitivities
from .energy import CenterOfMass, Energy
from .inputs import validation
from .inputs.payload import unified
from .inputs.validation import Wrenches
from .kernels import singularity
from .kernels.floating_functions import values_only
from .kernels.kernel_function import KernelFunction
from .kernels.slopes import partial_derivatives, slope
from .kernels.store import KernelStore
from .link_kinematics import LinkKinematics
from .one_tree import OneTree
from .robot import GRAVITY, Dynamics, Robot

MOTION = ("q", "qd", "qdd", "qddd")


class SpringMotion(NamedTuple):
    """(n,) or (samples, n) each.

    tau : torques of the driven joints; of the spring joints, the springs' [N m, N]
    qdd : accelerations: those given of the driven joints, those that follow of the others
    """

    tau: Array
    qdd: Array


class SpringRates(NamedTuple):
    """SpringMotion, and the rates of both: (n,) or (samples, n) each."""

    tau: Array
    tau_rate: Array
    qdd: Array
    qddd: Array


class SpringRobot(OneTree, LinkKinematics):
    """Exact dynamics of a tree whose joints are driven or held by springs alone (khalil-rne section 6).

    A spring's torque is -stiffness (q - rest). Arrays, units and loads as in Robot; all arrays have n columns. What is asked
    for a spring joint's acceleration, jerk or torque is not read: it cannot be chosen.
    """

    order = 3  # derivatives of q that the torque rate needs

    def __init__(self, robot: Robot, parameters: Source):
        """parameters: path of a robot file, or its content; see elastic_parameters.py. ModelError says all that is wrong."""
        if robot.model.base != "fixed":
            raise InputError("spring joints are supported for robots with base='fixed' only")
        validation.only_plain_joints(robot.model, "SpringRobot")
        self.robot = robot
        self.springs, self._parameters = elastic_parameters.springs(robot.model, parameters)
        self.model = unified(robot.model, list(robot.payloads.values()))
        self._springs = KernelStore(self.model, robot.gravity_vector, robot.backend)
        self._store = robot._store

    @classmethod
    def from_urdf(cls, source: str | os.PathLike[str], parameters: Source | None = None, backend: str = "llvm",
                  gravity: ArrayLike = GRAVITY, **options: Any) -> SpringRobot:
        """From a URDF and a robot file that declares its springs: by default robot.robot.yaml beside robot.urdf.

        options: friction, joint_dynamics and allow_xacro, as in Robot.from_urdf.
        """
        robot = Robot.from_urdf(source, "fixed", backend, gravity, **options)
        return cls(robot, elastic_parameters.beside(source) if parameters is None else parameters)

    def with_payload(self, link: str, mass: float, com: ArrayLike = (0.0, 0.0, 0.0),
                     inertia: ArrayLike | None = None) -> SpringRobot:
        """The same robot carrying a rigid body on a URDF link; arguments as in Robot.with_payload."""
        return SpringRobot(self.robot.with_payload(link, mass, com, inertia), self._parameters)

    # ------------------------------------------------------------------ what it is

    @property
    def spring_joints(self) -> tuple[str, ...]:
        """Names of the joints that springs hold."""
        return tuple(self.joint_names[k] for k in sorted(self.springs))

    # ------------------------------------------------------------------ what it computes

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, wrenches: Wrenches | None = None,
                         world_wrenches: Wrenches | None = None) -> Array:
        """Torques (n,) of the driven joints; of the spring joints, the springs'. See `spring_motion`."""
        return self.spring_motion(q, qd, qdd, wrenches=wrenches, world_wrenches=world_wrenches).tau

    def torque_and_rate(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *,
                        wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                        world_wrenches: Wrenches | None = None) -> tuple[Array, Array]:
        """The same torques and their exact rates along the motion. See `spring_rates`."""
        found = self.spring_rates(q, qd, qdd, qddd, wrenches=wrenches, wrench_rates=wrench_rates,
                                  world_wrenches=world_wrenches)
        return found.tau, found.tau_rate

    def spring_motion(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, wrenches: Wrenches | None = None,
                      world_wrenches: Wrenches | None = None) -> SpringMotion:
        """Torques of the driven joints and accelerations of the others, (72)-(82). InputError names a spring without load."""
        return SpringMotion(*self._evaluate(self._motion, q, qd, qdd, wrenches=wrenches,
                                            world_wrenches=world_wrenches))

    def spring_rates(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *, wrenches: Wrenches | None = None,
                     wrench_rates: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> SpringRates:
        """The same and its exact rates along the motion."""
        return SpringRates(*self._evaluate(self._motion_and_rates, q, qd, qdd, qddd, wrenches=wrenches,
                                           wrench_rates=wrench_rates, world_wrenches=world_wrenches))

    def dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *, wrenches: Wrenches | None = None,
                 wrench_rates: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> Dynamics:
        """tau, tau_rate; and the torques that hold all joints still against gravity, those of springs too, and their rates."""
        rest = np.zeros(self.n)
        found = self.torque_and_rate(q, qd, qdd, qddd, wrenches=wrenches, wrench_rates=wrench_rates,
                                     world_wrenches=world_wrenches)
        return Dynamics(*found, *self.robot.dynamics(q, qd, rest, rest)[2:])

    def mass_matrix(self, q: ArrayLike) -> Array:
        """M (n, n) or (samples, n, n) in M qdd + bias = tau, with tau zero at the spring joints."""
        return self.robot.mass_matrix(q)

    def coriolis(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """C (n, n) or (samples, n, n) of the links, as Robot.coriolis: springs add nothing."""
        return self.robot.coriolis(q, qd)

    def bias(self, q: ArrayLike, qd: ArrayLike, *, wrenches: Wrenches | None = None,
             world_wrenches: Wrenches | None = None) -> Array:
        """Torques (n,) at zero acceleration of all joints, less what the springs give."""
        found = self.robot.bias(q, qd, wrenches=wrenches, world_wrenches=world_wrenches) - self._held(q, np.zeros(self.n))
        validation.results("bias", [found])
        return found

    def gravity(self, q: ArrayLike) -> Array:
        """Torques (n,) that hold all joints still against gravity alone, springs apart."""
        return self.robot.gravity(q)

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, *, wrenches: Wrenches | None = None,
                         world_wrenches: Wrenches | None = None) -> Array:
        """Accelerations under torques of the driven joints, 6.2: Robot's, with springs' torques where tau is not read."""
        return self.robot.forward_dynamics(q, qd, self._held(q, tau), wrenches=wrenches, world_wrenches=world_wrenches)

    def energy(self, q: ArrayLike, qd: ArrayLike) -> Energy:
        """Kinetic and potential energy, that of the springs among the latter: zero where they are relaxed."""
        found, position = self.robot.energy(q, qd), validation.coordinates("q", q, self.joint_names)
        with np.errstate(over="ignore"):
            stored = np.asarray(sum(spring.stiffness * (position[..., k] - spring.rest) ** 2 / 2.0
                                for k, spring in self.springs.items()))
        validation.results("energy", [stored])
        return found._replace(potential=found.potential + stored)

    def center_of_mass(self, q: ArrayLike, qd: ArrayLike) -> CenterOfMass:
        """Mass centre, its velocity, and the momentum about it."""
        return self.robot.center_of_mass(q, qd)

    # ------------------------------------------------------------------ what follows from torques

    def sensitivities(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, wrenches: Wrenches | None = None,
                      world_wrenches: Wrenches | None = None) -> TorqueSensitivities:
        """Partial derivatives (n, n) of the torques by q, qd and qdd, while the spring joints accelerate as they must.

        Columns of their own accelerations are zero.
        """
        return TorqueSensitivities(*self._tables(0, self._motion, (q, qd, qdd),
                                                 wrenches=wrenches, world_wrenches=world_wrenches))

    def rate_sensitivities(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *,
                           wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                           world_wrenches: Wrenches | None = None) -> RateSensitivities:
        """The same of the torques' rates, by q, qd, qdd and qddd."""
        return RateSensitivities(*self._tables(1, self._motion_and_rates, (q, qd, qdd, qddd),
                                               wrenches=wrenches, wrench_rates=wrench_rates, world_wrenches=world_wrenches))

    def _tables(self, result: int, of: KernelFunction, motion: Sequence[ArrayLike],
                **loads: Wrenches | None) -> tuple[Array, ...]:
        function = slope(("sensitivities", of.key), of, result, of.blocks, checks=2)

        def ask(motion: Any, changes: Any, _state: Any, **loads: Any) -> Array:
            return self._evaluate(function, *motion, *changes, **loads)[0]

        return partial_derivatives(ask, dict(zip(of.blocks, motion, strict=True)), self.joint_names, loads)

    def joint_wrenches(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike | None = None, *,
                       wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                       world_wrenches: Wrenches | None = None) -> JointWrenches:
        """Internal force and moment of every joint and, where the jerk qddd is given, their rates: as of Robot."""
        loads: dict[str, Any] = {"wrenches": wrenches, "world_wrenches": world_wrenches}
        if qddd is None:
            return self.robot.joint_wrenches(q, qd, self.spring_motion(q, qd, qdd, **loads).qdd, **loads)
        found = self.spring_rates(q, qd, qdd, qddd, wrench_rates=wrench_rates, **loads)
        return self.robot.joint_wrenches(q, qd, found.qdd, found.qddd, wrench_rates=wrench_rates, **loads)

    def _held(self, q: ArrayLike, tau: ArrayLike) -> Array:
        """tau with the springs' torques at their joints."""
        position, held = (validation.coordinates(name, x, self.joint_names) for name, x in (("q", q), ("tau", tau)))
        held = np.array(np.broadcast_to(held, np.broadcast_shapes(held.shape, position.shape)))
        for k, spring in self.springs.items():
            held[..., k] = elastic_joints.spring_torque(spring, position[..., k])
        return held

    @property
    def _motion(self) -> KernelFunction:
        return KernelFunction("spring_motion", self._inverse, MOTION[:3])

    @property
    def _motion_and_rates(self) -> KernelFunction:
        return KernelFunction("spring_rates", self._rates, MOTION)

    def _evaluate(self, function: KernelFunction, *motion: ArrayLike, **loads: Any) -> Sequence[Array]:
        with singularity.nonsingular(lambda: self.robot.mass_matrix(motion[0]), self.joint_names):
            *results, felt, alone = self._springs(function, *motion, masses=False, **loads)
        singularity.check_nonsingular(felt, alone, self.joint_names)
        validation.results("the springs' motion", results)
        return results

    def _inverse(self, model: Model, gravity: Any, options: Any, q: Any, qd: Any, qdd: Any) -> tuple[Any, ...]:
        options = values_only(options)
        tau, moved, felt = elastic_joints.inverse_dynamics(model, q, qd, qdd, self.springs, gravity, **options)
        return tau, moved, felt, self._alone(q)

    def _rates(self, model: Model, gravity: Any, options: Any, q: Any, qd: Any, qdd: Any, qddd: Any) -> tuple[Any, ...]:
        *_, felt = elastic_joints.inverse_dynamics(model, q, qd, qdd, self.springs, gravity, **values_only(options))
        rates = elastic_joints.torque_and_rate(model, q, qd, qdd, qddd, self.springs, gravity=gravity, **options)
        return *rates, felt, self._alone(q)

    def _alone(self, q: Any) -> list[Any]:
        """Inertia that each spring joint moves with all others locked; 1 for driven joints."""
        inertia = locked(self.model, q)[1]
        return [inertia[k] if k in self.springs else 1.0 for k in range(len(inertia))]
