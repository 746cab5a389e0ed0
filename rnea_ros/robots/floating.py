"""FloatingRobot: a robot whose base is not bolted down. It swims, flies, walks, or rides on something that moves."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Array
from ..algorithms.kinematics import Pose
from ..errors import InputError
from ..model.tree import JointDynamics
from .energy import CenterOfMass, Energy, refuse_weightless
from .free_derivatives import FreeDerivatives
from .inputs import validation
from .inputs.base_state import BaseState, given
from .inputs.validation import Wrenches
from .kernels import link_functions, singularity
from .link_kinematics import on_link
from .one_tree import OneTree
from .robot import GRAVITY, Dynamics, Robot
from .zero_moment import zero_moment_point

BASE_NAMES = ("base along x", "base along y", "base along z", "base about x", "base about y", "base about z")


class FreeMotion(NamedTuple):
    """Base acceleration (6,) and torques (n,); or (samples, ...)."""

    base_acceleration: Array
    tau: Array


class FreeRates(NamedTuple):
    """Base acceleration and jerk (6,), torques and their rates (n,); or (samples, ...)."""

    base_acceleration: Array
    base_jerk: Array
    tau: Array
    tau_rate: Array


class FreeResponse(NamedTuple):
    """Base acceleration (6,) and joint accelerations (n,); or (samples, ...)."""

    base_acceleration: Array
    qdd: Array


class PrescribedBase(NamedTuple):
    """Torques and rates (n,); the wrench (6,) that the base takes from what carries it, and the rates of its components."""

    tau: Array
    tau_rate: Array
    base_wrench: Array
    base_wrench_rate: Array


class FloatingRobot(OneTree, FreeDerivatives):
    """Dynamics with a free base (khalil-rne section 7), and with a base that something else moves.

    base is the state of the base, BaseState(position, quaternion, velocity); base_state.py says what its velocity,
    acceleration and jerk are: (6,), linear part first, along the axes of the base. Where rows or columns stand for all that
    moves, the base's six come first. Loads as in Robot, world_wrenches along the axes of the world, in which `gravity` of the
    robot is given too; contacts, thrust and drag enter so. One sample, or (samples, ...) of each argument that varies.
    """

    order = 3  # derivatives of q that the torque rate needs

    def __init__(self, robot: Robot, carried: bool = False):
        """carried: whether something else moves the base, as robot files say it by `base: prescribed`."""
        if robot.model.base != "floating":
            raise InputError(f"robot '{robot.name}' has a fixed base; load it with base='floating'")
        validation.only_plain_joints(robot.model, "FloatingRobot")
        self.robot, self.carried = robot, carried

    @classmethod
    def from_urdf(cls, source: str | bytes | os.PathLike[str], backend: str = "llvm", gravity: ArrayLike = GRAVITY,
                  friction: bool = False, joint_dynamics: Mapping[str, JointDynamics] | None = None,
                  allow_xacro: bool = False) -> FloatingRobot:
        """Arguments as of Robot.from_urdf; gravity in the world's axes [m/s^2]."""
        return cls(Robot.from_urdf(source, "floating", backend, gravity, friction, joint_dynamics, allow_xacro))

    def with_payload(self, link: str, mass: float, com: ArrayLike = (0.0, 0.0, 0.0),
                     inertia: ArrayLike | None = None) -> FloatingRobot:
        """The same robot carrying a rigid body on a URDF link, the base perhaps; arguments as in Robot.with_payload."""
        return FloatingRobot(self.robot.with_payload(link, mass, com, inertia), self.carried)

    # ------------------------------------------------------------------ free base

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, base: BaseState | None = None,
                         wrenches: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> Array:
        """Torques (n,) of a motion of the joints while nothing holds the base; see `free_motion`."""
        return self.free_motion(q, qd, qdd, base=base, wrenches=wrenches, world_wrenches=world_wrenches).tau

    def torque_and_rate(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *, base: BaseState | None = None,
                        wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                        world_wrenches: Wrenches | None = None) -> tuple[Array, Array]:
        """Torques (n,) and their rates while nothing holds the base; see `free_rates`."""
        found = self.free_rates(q, qd, qdd, qddd, base=base, wrenches=wrenches, wrench_rates=wrench_rates,
                                world_wrenches=world_wrenches)
        return found.tau, found.tau_rate

    def free_motion(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, base: BaseState | None = None,
                    wrenches: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> FreeMotion:
        """How the base moves when the joints move so, and the torques for it: three recursions, (89)-(100)."""
        return FreeMotion(*self._free("free_motion", base, q, qd, qdd, wrenches=wrenches, world_wrenches=world_wrenches))

    def free_rates(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *, base: BaseState | None = None,
                   wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                   world_wrenches: Wrenches | None = None) -> FreeRates:
        """The same with its rates: the base's jerk is the one that no wrench, and no rate of a wrench, holds back."""
        return FreeRates(*self._free("free_rates", base, q, qd, qdd, qddd, wrenches=wrenches, wrench_rates=wrench_rates,
                                     world_wrenches=world_wrenches))

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, *, base: BaseState | None = None,
                         wrenches: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> Array:
        """Accelerations (n,) of the joints under given torques while nothing holds the base; see `free_response`."""
        return self.free_response(q, qd, tau, base=base, wrenches=wrenches, world_wrenches=world_wrenches).qdd

    def free_response(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, *, base: BaseState | None = None,
                      wrenches: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> FreeResponse:
        """How base and joints move under given torques, by articulated bodies, (101)-(112); mimic joints as in Robot."""
        names = (*BASE_NAMES, *self.joint_names)
        with singularity.nonsingular(lambda: self.mass_matrix(q), names):
            acceleration, qdd, felt, locked = self._evaluate("free_response", base, q, qd, tau, wrenches=wrenches,
                                                             world_wrenches=world_wrenches, masses=False)
        singularity.check_nonsingular(felt, locked, names)
        validation.results("forward_dynamics", [acceleration, qdd])
        return FreeResponse(acceleration, qdd)

    def _free(self, name: str, base: BaseState | None, q: ArrayLike, qd: ArrayLike, *motion: ArrayLike,
              **loads: Wrenches | None) -> tuple[Array, ...]:
        refuse_weightless(self.robot.total_mass)
        with singularity.nonsingular(lambda: self.mass_matrix(q)[..., :6, :6], BASE_NAMES):
            *found, felt, scale = self._evaluate(name, base, q, qd, *motion, masses=False, **loads)
        singularity.check_nonsingular(felt, scale, BASE_NAMES)
        validation.results(name, found)
        return tuple(found)

    # ------------------------------------------------------------------ the equations of all that moves

    def mass_matrix(self, q: ArrayLike, *, base: BaseState | None = None) -> Array:
        """A (6+n, 6+n) of (84), base first: [base wrench; tau] = A [base acceleration; qdd] + H. The base does not matter."""
        return self.robot._evaluate("free_mass_matrix", q)[0]

    def bias(self, q: ArrayLike, qd: ArrayLike, *, base: BaseState | None = None, wrenches: Wrenches | None = None,
             world_wrenches: Wrenches | None = None) -> Array:
        """H (6+n,) of (85): base wrench and torques without any acceleration; gravity, velocities, external wrenches."""
        rest = np.zeros(self.n)
        found = self.prescribed_base(q, qd, rest, rest, base=base, wrenches=wrenches, world_wrenches=world_wrenches)
        return np.concatenate((found.base_wrench, found.tau), axis=-1)

    def gravity(self, q: ArrayLike, *, base: BaseState | None = None) -> Array:
        """(6+n,): base wrench and torques that hold the robot still against gravity alone."""
        held = BaseState(given(base).position, given(base).quaternion)
        wrench, tau, _rate = self._evaluate("free_gravity", held, q, np.zeros(self.n))
        return np.concatenate((wrench, tau), axis=-1)

    def gravity_and_rate(self, q: ArrayLike, qd: ArrayLike, *, base: BaseState | None = None) -> tuple[Array, Array]:
        """Torques (n,) that hold the joints still against gravity on a held base, and their rates as base and joints move."""
        _wrench, tau, rate = self._evaluate("free_gravity", base, q, qd)
        return tau, rate

    def dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *, base: BaseState | None = None,
                 wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                 world_wrenches: Wrenches | None = None) -> Dynamics:
        """tau, tau_rate; and the torques that hold the joints still against gravity on a held base, and their rates."""
        gravity, gravity_rate = self.gravity_and_rate(q, qd, base=base)
        found = self.torque_and_rate(q, qd, qdd, qddd, base=base, wrenches=wrenches, wrench_rates=wrench_rates,
                                     world_wrenches=world_wrenches)
        return Dynamics(*found, gravity, gravity_rate)

    # ------------------------------------------------------------------ base whose motion is given

    def prescribed_base(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *, base: BaseState | None = None,
                        base_acceleration: ArrayLike = (0.0,) * 6, base_jerk: ArrayLike = (0.0,) * 6,
                        wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                        world_wrenches: Wrenches | None = None) -> PrescribedBase:
        """Torques, rates and base wrench where the base's motion is given too: an arm on a vehicle, a walking robot's plan.

        The base wrench acts ON the base: force, then moment about its origin, along its axes. What carries the base must
        exert it; for a robot on legs, without `wrenches` at the feet, it is all that the ground exerts.
        """
        motion = qdd, qddd, base_acceleration, base_jerk
        return PrescribedBase(*self._evaluate("prescribed_base", base, q, qd, *motion, wrenches=wrenches,
                                              wrench_rates=wrench_rates, world_wrenches=world_wrenches))

    def base_wrench(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, base: BaseState | None = None,
                    base_acceleration: ArrayLike = (0.0,) * 6, wrenches: Wrenches | None = None,
                    world_wrenches: Wrenches | None = None) -> Array:
        """The base wrench (6,) of `prescribed_base` alone."""
        return self.prescribed_base(q, qd, qdd, np.zeros(self.n), base=base, base_acceleration=base_acceleration,
                                    wrenches=wrenches, world_wrenches=world_wrenches).base_wrench

    def ground_reaction(self, base_wrench: ArrayLike, *, base: BaseState | None = None) -> Array:
        """The base wrench (6,) along the world's axes, its moment about the world's origin."""
        f, n = np.split(given(base).into_world(base_wrench), 2, axis=-1)
        return np.concatenate((f, n + np.cross(given(base).position, f)), axis=-1)

    def zero_moment_point(self, base_wrench: ArrayLike, *, base: BaseState | None = None,
                          ground: ArrayLike = (0.0, 0.0, 0.0), normal: ArrayLike = (0.0, 0.0, 1.0)) -> Array:
        """Where the ground reaction acts (3,) in the world: the point of the ground about which it has no tilting moment.

        ground : a point of the plane; normal : out of the ground. NaN while nothing presses on the ground.
        """
        weight = self.robot.total_mass * float(np.linalg.norm(self.robot.gravity_vector))
        return zero_moment_point(self.ground_reaction(base_wrench, base=base), weight, validation.vector("ground", ground, 3),
                                 validation.vector("normal", normal, 3))

    # ------------------------------------------------------------------ where links are

    def link_pose(self, link: str, q: ArrayLike, point: ArrayLike | None = None, *, base: BaseState | None = None) -> Pose:
        """R (3, 3) and p (3,), or (samples, ...) each, of the link's frame in the world; origin at the point, if one is given.

        link_kinematics.py has the convention. base must be given: BaseState() is at the world's origin, at rest.
        """
        where = given(base).turn, given(base).position
        return tuple.__new__(Pose, self._on_link(link_functions.free_link_pose, link, q, point=point, base=where))

    def link_velocity(self, link: str, q: ArrayLike, qd: ArrayLike, point: ArrayLike | None = None, *,
                      base: BaseState | None = None) -> Array:
        """(6,) or (samples, 6): velocity of the point, angular velocity, relative to the world and along its axes."""
        moving = given(base).turn, given(base).velocity
        return self._on_link(link_functions.free_link_velocity, link, q, qd, point=point, base=moving)[0]

    def jacobian(self, link: str, q: ArrayLike, point: ArrayLike | None = None, *, base: BaseState | None = None) -> Array:
        """(6, 6 + n) or (samples, ...), the base first: link_velocity = jacobian @ [base.velocity; qd]."""
        return self._on_link(link_functions.free_jacobian, link, q, point=point, base=(given(base).turn,))[0]

    def jacobian_rate(self, link: str, q: ArrayLike, qd: ArrayLike, point: ArrayLike | None = None, *,
                      base: BaseState | None = None) -> Array:
        """(6, 6 + n) or (samples, ...): time derivative of `jacobian` along the motion of base and joints.

        Acceleration of the point = jacobian @ [base.spatial(base_acceleration); qdd] + jacobian_rate @ [base.velocity; qd].
        """
        moving = given(base).turn, given(base).velocity
        return self._on_link(link_functions.free_jacobian_rate, link, q, qd, point=point, base=moving)[0]

    def _on_link(self, function: Callable[..., Any], link: str, *motion: ArrayLike, **given: Any) -> tuple[Array, ...]:
        return on_link(self.robot._store, function, link, *motion, **given)

    def link_velocities(self, links: Sequence[str], q: ArrayLike, qd: ArrayLike, *, base: BaseState | None = None) -> Array:
        """(len(links), 6) or (samples, len(links), 6): of many links at once, each along the axes of its OWN frame."""
        found = self.robot._evaluate("link_velocities", q, qd, given(base).velocity)[0]
        columns = []
        for name in links:
            frame = self.robot.model.frame(name)
            v, w = np.split(found[..., frame.link, :], 2, axis=-1)
            columns.append(np.concatenate(((v + np.cross(w, frame.P)) @ frame.R, w @ frame.R), axis=-1))
        return np.stack(columns, axis=-2)

    # ------------------------------------------------------------------ what motion there is

    def energy(self, q: ArrayLike, qd: ArrayLike, *, base: BaseState | None = None) -> Energy:
        """Kinetic and potential energy; the latter is zero with all mass at the world's origin."""
        kinetic, potential = np.moveaxis(self._evaluate("free_energy", base, q, qd)[0], -1, 0)
        return Energy(kinetic, potential - self.robot.total_mass * (given(base).position @ self.robot.gravity_vector))

    def center_of_mass(self, q: ArrayLike, qd: ArrayLike, *, base: BaseState | None = None) -> CenterOfMass:
        """Mass centre, its velocity, and the momentum about it, in the world."""
        refuse_weightless(self.robot.total_mass)
        base = given(base)
        c, *rates = self.robot._evaluate("free_center_of_mass", q, qd, base.velocity)
        return CenterOfMass(base.position + base.into_world(c), *(base.into_world(rate) for rate in rates))

    def _evaluate(self, name: str, base: BaseState | None, q: ArrayLike, qd: ArrayLike, *motion: ArrayLike,
                  world_wrenches: Wrenches | None = None, **options: Any) -> tuple[Array, ...]:
        """Of the kernels that take the base's state: gravity and loads turn with the world as the base sees it."""
        base = given(base)
        held = {link: base.into_base(validation.wrench(link, value)) for link, value in (world_wrenches or {}).items()}
        return self.robot._evaluate(name, q, qd, base.velocity, base.into_base(self.robot.gravity_vector), *motion,
                                    world_wrenches=held, **options)

