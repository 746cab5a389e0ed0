"""FloatingRobot: a robot whose base is not bolted down. It swims, flies, walks, or rides on something that moves."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.kinematics import Pose
from ..errors import InputError, shown
from ..model.tree import JointDynamics
from .energy import CenterOfMass, Energy, refuse_weightless
from .inputs import validation
from .inputs.base_state import BaseState
from .inputs.validation import Wrenches
from .kernels import link_functions, singularity
from .robot import GRAVITY, Robot

BASE_NAMES = ("base along x", "base along y", "base along z", "base about x", "base about y", "base about z")


class FreeMotion(NamedTuple):
    """Base acceleration (6,) and torques (n,); or (samples, ...)."""

    base_acceleration: np.ndarray
    tau: np.ndarray


class FreeRates(NamedTuple):
    """Base acceleration and jerk (6,), torques and their rates (n,); or (samples, ...)."""

    base_acceleration: np.ndarray
    base_jerk: np.ndarray
    tau: np.ndarray
    tau_rate: np.ndarray


class FreeResponse(NamedTuple):
    """Base acceleration (6,) and joint accelerations (n,); or (samples, ...)."""

    base_acceleration: np.ndarray
    qdd: np.ndarray


class PrescribedBase(NamedTuple):
    """Torques and rates (n,); the wrench (6,) that the base takes from what carries it, and the rates of its components."""

    tau: np.ndarray
    tau_rate: np.ndarray
    base_wrench: np.ndarray
    base_wrench_rate: np.ndarray


class FloatingRobot:
    """Dynamics with a free base (khalil-rne section 7), and with a base that something else moves.

    base_state.py says what base velocity, acceleration and jerk are: (6,), linear part first, along the axes of the base.
    Wrenches act BY the environment ON a link: {URDF link: (6,)}, force, then moment about the link frame's origin, seen in the
    link's frame; contacts, thrust and drag enter so. `gravity` of the robot is that of the world. Everything takes one
    sample, or (samples, ...) of each argument that varies.
    """

    def __init__(self, robot: Robot):
        if robot.model.base != "floating":
            raise InputError(f"robot '{robot.name}' has a fixed base; load it with base='floating'")
        self.robot = robot

    @classmethod
    def from_urdf(cls, source: str | bytes | os.PathLike, backend: str = "llvm", gravity: Sequence[float] = GRAVITY,
                  friction: bool = False, joint_dynamics: Mapping[str, JointDynamics] | None = None,
                  allow_xacro: bool = False) -> FloatingRobot:
        """Arguments as of Robot.from_urdf; gravity in the world's axes [m/s^2]."""
        return cls(Robot.from_urdf(source, "floating", backend, gravity, friction, joint_dynamics, allow_xacro))

    @property
    def joint_names(self) -> tuple[str, ...]:
        return self.robot.joint_names

    @property
    def n(self) -> int:
        return self.robot.n

    # ------------------------------------------------------------------ free base

    def inverse_dynamics(self, base: BaseState, q, qd, qdd, wrenches: Wrenches | None = None) -> FreeMotion:
        """How the base moves when the joints move so, and the torques for it: three recursions, (89)-(100)."""
        return FreeMotion(*self._free("free_inverse_dynamics", base, q, qd, qdd, wrenches=wrenches))

    def torque_and_rate(self, base: BaseState, q, qd, qdd, qddd, wrenches: Wrenches | None = None,
                        wrench_rates: Wrenches | None = None) -> FreeRates:
        """The same with its rates: the base's jerk is the one that no wrench, and no rate of a wrench, holds back."""
        return FreeRates(*self._free("free_torque_and_rate", base, q, qd, qdd, qddd, wrenches=wrenches,
                                     wrench_rates=wrench_rates))

    def _free(self, name: str, base: BaseState, q, qd, *motion, **wrenches) -> tuple[np.ndarray, ...]:
        refuse_weightless(self.robot.total_mass)
        with singularity.nonsingular(lambda: self.mass_matrix(q)[..., :6, :6], BASE_NAMES):
            *found, felt, scale = self.robot._evaluate(name, *self._state(base, q, qd), *motion, masses=False, **wrenches)
        singularity.check_nonsingular(felt, scale, BASE_NAMES)
        validation.results(name.removeprefix("free_"), found)
        return tuple(found)

    def forward_dynamics(self, base: BaseState, q, qd, tau, wrenches: Wrenches | None = None) -> FreeResponse:
        """How base and joints move under given torques, by articulated bodies, (101)-(112); mimic joints as in Robot."""
        names = (*BASE_NAMES, *self.joint_names)
        with singularity.nonsingular(lambda: self.mass_matrix(q), names):
            acceleration, qdd, felt, locked = self.robot._evaluate("free_forward_dynamics", *self._state(base, q, qd), tau,
                                                                   wrenches=wrenches, masses=False)
        singularity.check_nonsingular(felt, locked, names)
        validation.results("forward_dynamics", [acceleration, qdd])
        return FreeResponse(acceleration, qdd)

    def mass_matrix(self, q) -> np.ndarray:
        """A (6+n, 6+n) of (84), base first: [base wrench; tau] = A [base acceleration; qdd] + H."""
        return self.robot._evaluate("free_mass_matrix", q)[0]

    def bias(self, base: BaseState, q, qd, wrenches: Wrenches | None = None) -> np.ndarray:
        """H (6+n,) of (85): base wrench and torques without any acceleration; gravity, velocities, external wrenches."""
        still = np.zeros(6)
        rest = np.zeros(self.n)
        found = self.carried(base, still, still, q, qd, rest, rest, wrenches)
        return np.concatenate((found.base_wrench, found.tau), axis=-1)

    # ------------------------------------------------------------------ base that is carried

    def carried(self, base: BaseState, base_acceleration, base_jerk, q, qd, qdd, qddd, wrenches: Wrenches | None = None,
                wrench_rates: Wrenches | None = None) -> PrescribedBase:
        """Torques, rates and base wrench where the base's motion is given too: an arm on a vehicle, a walking robot's plan.

        The base wrench acts ON the base: force, then moment about its origin, along its axes. What carries the base must
        exert it; for a robot on legs, without `wrenches` at the feet, it is all that the ground exerts.
        """
        motion = (*self._state(base, q, qd), qdd, qddd, base_acceleration, base_jerk)
        return PrescribedBase(*self.robot._evaluate("prescribed", *motion, wrenches=wrenches, wrench_rates=wrench_rates))

    def base_wrench(self, base: BaseState, base_acceleration, q, qd, qdd, wrenches: Wrenches | None = None) -> np.ndarray:
        """The base wrench (6,) of `carried` alone."""
        return self.carried(base, base_acceleration, np.zeros(6), q, qd, qdd, np.zeros(self.n), wrenches).base_wrench

    def ground_reaction(self, base: BaseState, base_wrench) -> np.ndarray:
        """The base wrench (6,) along the world's axes, its moment about the world's origin."""
        f, n = np.split(base.into_world(base_wrench), 2, axis=-1)
        return np.concatenate((f, n + np.cross(base.position, f)), axis=-1)

    def zero_moment_point(self, base: BaseState, base_wrench, ground=(0.0, 0.0, 0.0), normal=(0.0, 0.0, 1.0)) -> np.ndarray:
        """Where the ground reaction acts (3,) in the world: the point of the ground about which it has no tilting moment.

        ground : a point of the plane; normal : out of the ground. NaN while nothing presses on the ground.
        """
        point, up = validation.vector("ground", ground, 3), validation.vector("normal", normal, 3)
        up = up / np.linalg.norm(up)
        f, n = np.split(self.ground_reaction(base, base_wrench), 2, axis=-1)
        pressure = (f @ up)[..., None]
        weight = self.robot.total_mass * np.linalg.norm(self.robot.gravity_vector)
        n = n - np.cross(point, f)
        return point + np.cross(up, n) / np.where(pressure > 1e-9 * weight, pressure, np.nan)

    # ------------------------------------------------------------------ where links are

    def link_pose(self, link: str, q: ArrayLike, point: ArrayLike | None = None, *, base: BaseState | None = None) -> Pose:
        """R (3, 3) and p (3,), or (samples, ...) each, of the link's frame in the world; origin at the point, if one is given.

        link_kinematics.py has the convention. base must be given: BaseState() is at the world's origin, at rest.
        """
        blocks = _turned(base) | {"base_position": given(base).position}
        return Pose(*self.robot._on_link(link_functions.free_link_pose, link, point, q=q, base=blocks))

    def link_velocity(self, link: str, q: ArrayLike, qd: ArrayLike, point: ArrayLike | None = None, *,
                      base: BaseState | None = None) -> np.ndarray:
        """(6,) or (samples, 6): velocity of the point, angular velocity, relative to the world and along its axes."""
        return self.robot._on_link(link_functions.free_link_velocity, link, point, q=q, qd=qd, base=_moving(base))[0]

    def jacobian(self, link: str, q: ArrayLike, point: ArrayLike | None = None, *,
                 base: BaseState | None = None) -> np.ndarray:
        """(6, 6 + n) or (samples, ...), the base first: link_velocity = jacobian @ [base.velocity; qd]."""
        return self.robot._on_link(link_functions.free_jacobian, link, point, q=q, base=_turned(base))[0]

    def jacobian_rate(self, link: str, q: ArrayLike, qd: ArrayLike, point: ArrayLike | None = None, *,
                      base: BaseState | None = None) -> np.ndarray:
        """(6, 6 + n) or (samples, ...): time derivative of `jacobian` along the motion of base and joints.

        Acceleration of the point = jacobian @ [base.spatial(base_acceleration); qdd] + jacobian_rate @ [base.velocity; qd].
        """
        return self.robot._on_link(link_functions.free_jacobian_rate, link, point, q=q, qd=qd, base=_moving(base))[0]

    # ------------------------------------------------------------------ what motion there is

    def energy(self, base: BaseState, q, qd) -> Energy:
        """Kinetic and potential energy; the latter is zero with all mass at the world's origin."""
        kinetic, potential = np.moveaxis(self.robot._evaluate("free_energy", *self._state(base, q, qd))[0], -1, 0)
        return Energy(kinetic, potential - self.robot.total_mass * (base.position @ self.robot.gravity_vector))

    def center_of_mass(self, base: BaseState, q, qd) -> CenterOfMass:
        """Mass centre, its velocity, and the momentum about it, in the world."""
        refuse_weightless(self.robot.total_mass)
        c, *rates = self.robot._evaluate("free_center_of_mass", *self._state(base, q, qd)[:3])
        return CenterOfMass(base.position + base.into_world(c), *(base.into_world(rate) for rate in rates))

    def link_velocities(self, base: BaseState, q, qd, links: Sequence[str]) -> np.ndarray:
        """(len(links), 6) or (samples, len(links), 6): of the links' frames, linear then angular, each in its own frame."""
        found = self.robot._evaluate("link_velocities", *self._state(base, q, qd)[:3])[0]
        columns = []
        for name in links:
            frame = self.robot.model.frame(name)
            v, w = np.split(found[..., frame.link, :], 2, axis=-1)
            columns.append(np.concatenate(((v + np.cross(w, frame.P)) @ frame.R, w @ frame.R), axis=-1))
        return np.stack(columns, axis=-2)

    def _state(self, base: BaseState, q, qd) -> tuple[Any, ...]:
        """The blocks that every kernel takes: gravity turns with the world as the base sees it."""
        return q, qd, base.velocity, base.into_base(self.robot.gravity_vector)


def given(base: BaseState | None) -> BaseState:
    """The base's state; InputError where it is left out, for any other would be a guess."""
    if not isinstance(base, BaseState):
        raise InputError(f"base is {shown(base)}; the state of the free base is needed: base=BaseState(position, quaternion, "
                         "velocity), or base=BaseState() for one at rest at the world's origin")
    return base


def _turned(base: BaseState | None) -> dict[str, np.ndarray]:
    """Blocks of a kernel."""
    R = given(base).rotation
    return {"base_rotation": R.reshape(*R.shape[:-2], 9)}


def _moving(base: BaseState | None) -> dict[str, np.ndarray]:
    return _turned(base) | {"base_velocity": given(base).velocity}
