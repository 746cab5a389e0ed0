"""ParallelRobot: a platform on legs, from the motion of the platform or of the actuators to the actuators' forces and rates.

Khalil, "Dynamic modeling of robots using recursive Newton-Euler techniques", section 5: the legs are the branches of one tree,
the platform is a body of its own, the joints between them are declared as cut joints.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Array
from ..algebra.vectors import rpy
from ..algorithms.closed_loops import active_jacobian_rate, active_mass_matrix, active_torque
from ..algorithms.kinematics import Pose
from ..algorithms.parallel_robots import actuator_force
from ..errors import InputError, ModelError
from ..model import urdf, urdf_reader
from ..model.robot_file import robot_file
from ..model.robot_file.robot_file import RobotFile, Source
from ..model.tree import JointDynamics, Model
from ..model.urdf_parts import apart
from ..model.urdf_reader import Description
from .closure.leg_closure import LegMotion
from .energy import CenterOfMass, Energy, together
from .inputs import validation
from .inputs.platform_motion import PlatformMotion
from .inputs.validation import Wrenches
from .kernels import singularity
from .parallel_derivatives import ParallelDerivatives
from .robot import GRAVITY, Dynamics, Robot


def taken_apart(description: Description, file: RobotFile, **options: Any) -> tuple[Model, Model, tuple[Any, Any]]:
    """Models of legs and platform, and the home pose, as URDF and robot file have them. options: of the legs, for urdf.load"""
    found = file.section("platform")
    if not isinstance(found.get("link"), str):
        raise ModelError("says of no link that it is the platform: 'platform: {link: NAME}'", file.where)
    parts = apart(description, found["link"])
    legs, platform = urdf.load(parts.legs, **options), urdf.load(parts.platform)
    file.checked(legs, platform)
    given = found.get("home")
    return legs, platform, (np.array(given["xyz"], dtype=float), rpy(*given["rpy"])) if given else parts.home


class ParallelRobot(ParallelDerivatives):
    """Dynamics of a parallel robot. Forces are in the order of `joint_names`: (N,), or (samples, N) along a motion.

    A motion is that of the actuators, q, qd, qdd, qddd (N,), from which the platform's follows; or that of the platform,
    motion=PlatformMotion(...), from which that of the actuators follows at once. Either is followed from the home pose, and
    from sample to sample, so that no leg flips over; other branches start from a `guess`: with a motion of the platform, the
    legs' joints (n,) near its first pose; with one of the actuators, a PlatformMotion near its first pose. Loads act BY the
    environment ON links of legs and platform, as in Robot.torque_and_rate.
    """

    @classmethod
    def from_urdf(cls, source: str | bytes | os.PathLike[str], parts: Source, backend: str = "llvm",
                  gravity: ArrayLike = GRAVITY, friction: bool = False,
                  joint_dynamics: Mapping[str, JointDynamics] | None = None, allow_xacro: bool = False) -> ParallelRobot:
        """From one URDF, where the platform hangs on the root by a floating joint, and a robot file.

        parts: path of the robot file, or what is in it; its sections `platform` and `loops` are read. Others as in
        Robot.from_urdf, friction and joint_dynamics those of the legs.
        """
        file = robot_file.draft(parts)
        description = urdf_reader.read(source, allow_xacro)
        legs, platform, home = taken_apart(description, file, friction=friction, joint_dynamics=joint_dynamics)
        return cls(Robot(legs, backend, gravity), Robot(platform, backend), file.only(["loops"]), home)

    def link_pose(self, link: str, q: ArrayLike | None = None, point: ArrayLike | None = None, *,
                  motion: PlatformMotion | None = None, guess: Any = None) -> Pose:
        """R (3, 3) and p (3,), or (samples, ...) each, of a link of a leg or of the platform in the base frame.

        link_kinematics.py has the convention. Origin at the point (3,), in the link's frame, if one is given.
        """
        platform, legs = self._still(q, motion, guess)
        return self.legs.link_pose(link, legs.q, point) if self.on_legs(link) else self.body.link_pose(link, platform, point)

    def link_velocity(self, link: str, q: ArrayLike | None = None, qd: ArrayLike | None = None,
                      point: ArrayLike | None = None, *, motion: PlatformMotion | None = None, guess: Any = None) -> Array:
        """(6,) or (samples, 6): velocity of the point, angular velocity, along the axes of the base frame [m/s, rad/s]."""
        platform, legs = self._moving(q, qd, motion, guess)
        if self.on_legs(link):
            return self.legs.link_velocity(link, legs.q, legs.qd, point)
        return np.asarray((self.body.jacobian(link, platform, point) @ platform.velocity[..., None])[..., 0])

    def jacobian(self, link: str, q: ArrayLike | None = None, point: ArrayLike | None = None, *,
                 motion: PlatformMotion | None = None, guess: Any = None) -> Array:
        """(6, N) or (samples, 6, N) by the active joints: link_velocity = jacobian @ qd, by Jp and Q of (60), (61)."""
        platform, legs = self._still(q, motion, guess)
        if self.on_legs(link):
            return np.asarray(self.legs.jacobian(link, legs.q, point) @ legs.maps[..., 6:, :])
        return np.asarray(self.body.jacobian(link, platform, point) @ legs.maps[..., :6, :])

    def jacobian_rate(self, link: str, q: ArrayLike | None = None, qd: ArrayLike | None = None,
                      point: ArrayLike | None = None, *, motion: PlatformMotion | None = None, guess: Any = None) -> Array:
        """(6, N) or (samples, 6, N): time derivative of `jacobian` along the motion."""
        platform, legs = self._moving(q, qd, motion, guess)
        if self.on_legs(link):
            J, Jd = self.legs.jacobian(link, legs.q, point), self.legs.jacobian_rate(link, legs.q, legs.qd, point)
            return active_jacobian_rate(legs.maps[..., 6:, :], legs.maps_rate[..., 6:, :], J, Jd)
        J, Jd = self.body.jacobian(link, platform, point), self.body.jacobian_rate(link, platform, point)
        return active_jacobian_rate(legs.maps[..., :6, :], legs.maps_rate[..., :6, :], J, Jd)

    # ------------------------------------------------------------------ forces of a motion

    def torque_and_rate(self, q: ArrayLike | None = None, qd: ArrayLike | None = None, qdd: ArrayLike | None = None,
                        qddd: ArrayLike | None = None, *, motion: PlatformMotion | None = None, guess: Any = None,
                        wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                        world_wrenches: Wrenches | None = None) -> tuple[Array, Array]:
        """Forces (or torques) of the active joints along a motion, (59), and their exact time derivatives."""
        state = self._state(q, qd, qdd, qddd, motion=motion, guess=guess)
        return self._forces(*state, wrenches, wrench_rates, world_wrenches)

    def inverse_dynamics(self, q: ArrayLike | None = None, qd: ArrayLike | None = None, qdd: ArrayLike | None = None, *,
                         motion: PlatformMotion | None = None, guess: Any = None, wrenches: Wrenches | None = None,
                         world_wrenches: Wrenches | None = None) -> Array:
        """Forces of the active joints, (66); the jerk does not matter."""
        jerk = None if qdd is None else validation.zeros_like("qdd", qdd)
        state = self._state(q, qd, qdd, jerk, motion=motion, guess=guess, orders=2)
        return self._forces(*state, wrenches, None, world_wrenches)[0]

    def dynamics(self, q: ArrayLike | None = None, qd: ArrayLike | None = None, qdd: ArrayLike | None = None,
                 qddd: ArrayLike | None = None, *, motion: PlatformMotion | None = None, guess: Any = None,
                 wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                 world_wrenches: Wrenches | None = None) -> Dynamics:
        """tau, tau_rate, and of both the share of gravity."""
        state = self._state(q, qd, qdd, qddd, motion=motion, guess=guess)
        return self.along(*state, wrenches=wrenches, wrench_rates=wrench_rates, world_wrenches=world_wrenches)

    def along(self, platform: PlatformMotion, legs: LegMotion, *, wrenches: Wrenches | None = None,
              wrench_rates: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> Dynamics:
        """`dynamics` of a motion of platform and legs that fit each other already, as a tracker gives it."""
        on_legs, on_platform = self._sorted(wrenches=wrenches, wrench_rates=wrench_rates, world_wrenches=world_wrenches)
        tau, tau_rate, gravity, gravity_rate = self.legs.dynamics(*legs[:4], **on_legs)
        pushed = self.body.force(platform, **on_platform)
        validation.samples([tau, pushed.force])  # refuses different numbers of samples
        return Dynamics(*actuator_force(legs.maps, legs.maps_rate, *pushed, tau, tau_rate),
                        *actuator_force(legs.maps, legs.maps_rate, *self.body.weight(platform), gravity, gravity_rate))

    def _forces(self, platform: PlatformMotion, legs: LegMotion, wrenches: Wrenches | None, wrench_rates: Wrenches | None,
                world_wrenches: Wrenches | None) -> tuple[Array, Array]:
        on_legs, on_platform = self._sorted(wrenches=wrenches, wrench_rates=wrench_rates, world_wrenches=world_wrenches)
        tau, tau_rate = self.legs.torque_and_rate(*legs[:4], **on_legs)
        pushed = self.body.force(platform, **on_platform)
        validation.samples([tau, pushed.force])  # refuses different numbers of samples
        return actuator_force(legs.maps, legs.maps_rate, *pushed, tau, tau_rate)

    # ------------------------------------------------------------------ the equations of the actuators

    def mass_matrix(self, q: ArrayLike | None = None, *, motion: PlatformMotion | None = None, guess: Any = None) -> Array:
        """(N, N) or (samples, N, N): forces under unit accelerations of the active joints, [Jp; Q]^T M [Jp; Q]."""
        return self._mass_matrix(*self._still(q, motion, guess))

    def _mass_matrix(self, platform: PlatformMotion, legs: LegMotion) -> Array:
        M_legs = self.legs.mass_matrix(legs.q)
        M = np.zeros((*M_legs.shape[:-2], 6 + self.legs.n, 6 + self.legs.n))
        M[..., :6, :6], M[..., 6:, 6:] = self.body.mass_matrix(platform), M_legs
        return active_mass_matrix(legs.maps, M)

    def bias(self, q: ArrayLike | None = None, qd: ArrayLike | None = None, *, motion: PlatformMotion | None = None,
             guess: Any = None, wrenches: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> Array:
        """Forces at zero acceleration of the active joints."""
        return self._forces(*self._moving(q, qd, motion, guess), wrenches, None, world_wrenches)[0]

    def gravity(self, q: ArrayLike | None = None, *, motion: PlatformMotion | None = None, guess: Any = None) -> Array:
        """Forces of the active joints that hold the machine still against gravity alone."""
        platform, legs = self._still(q, motion, guess)
        both = np.concatenate((self.body.weight(platform).force, self.legs.gravity(legs.q)), axis=-1)
        return active_torque(legs.maps, legs.maps_rate, both, both)[0]

    def energy(self, q: ArrayLike | None = None, qd: ArrayLike | None = None, *, motion: PlatformMotion | None = None,
               guess: Any = None) -> Energy:
        """Kinetic and potential energy of legs and platform; the latter is zero with all mass at the base's origin."""
        platform, legs = self._moving(q, qd, motion, guess)
        of_legs, of_body = self.legs.energy(legs.q, legs.qd), self.body.energy(platform)
        return Energy(of_legs.kinetic + of_body.kinetic, of_legs.potential + of_body.potential)

    def center_of_mass(self, q: ArrayLike | None = None, qd: ArrayLike | None = None, *,
                       motion: PlatformMotion | None = None, guess: Any = None) -> CenterOfMass:
        """Mass centre of legs and platform, its velocity, and the momentum about it, in the base frame."""
        platform, legs = self._moving(q, qd, motion, guess)
        parts = [(self.body.mass, self.body.center_of_mass(platform))]
        if self.legs.total_mass > 0.0:
            parts.append((self.legs.total_mass, self.legs.center_of_mass(legs.q, legs.qd)))
        return together(*parts)

    def forward_dynamics(self, q: ArrayLike | None = None, qd: ArrayLike | None = None, tau: ArrayLike | None = None, *,
                         motion: PlatformMotion | None = None, guess: Any = None, wrenches: Wrenches | None = None,
                         world_wrenches: Wrenches | None = None) -> Array:
        """Accelerations (N,) of the active joints under forces tau (N,); see `platform_response`."""
        return self._response(self._moving(q, qd, motion, guess), tau, wrenches, world_wrenches)

    def platform_response(self, q: ArrayLike | None = None, qd: ArrayLike | None = None, tau: ArrayLike | None = None, *,
                          motion: PlatformMotion | None = None, guess: Any = None, wrenches: Wrenches | None = None,
                          world_wrenches: Wrenches | None = None) -> Array:
        """Acceleration (6,) of the platform under actuator forces tau (N,), in the base frame: Vp' = Jp qdd + Jp' qd."""
        platform, legs = state = self._moving(q, qd, motion, guess)
        qdd = self._response(state, tau, wrenches, world_wrenches)
        return np.asarray(platform.acceleration + (legs.maps[..., :6, :] @ qdd[..., None])[..., 0])

    def _response(self, state: tuple[PlatformMotion, LegMotion], tau: ArrayLike | None, wrenches: Wrenches | None,
                  world_wrenches: Wrenches | None) -> Array:
        if tau is None:
            raise InputError(f"tau is missing: a force for each of {', '.join(self.joint_names)} is needed")
        given = validation.coordinates("tau", tau, self.joint_names)
        bias = self._forces(*state, wrenches, None, world_wrenches)[0]
        validation.samples([given, bias])  # refuses different numbers of samples
        return singularity.accelerations(self._mass_matrix(*state), given - bias, self.joint_names)
