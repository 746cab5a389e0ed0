"""ParallelRobot: a platform on legs, from the motion of the platform to the forces of the actuators, and their rates.

Khalil, "Dynamic modeling of robots using recursive Newton-Euler techniques", section 5: the legs are the branches of one tree,
the platform is a body of its own, the joints between them are declared as cut joints.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms import parallel_robots
from ..algorithms.closed_loops import active_jacobian_rate
from ..algorithms.kinematics import Pose
from ..errors import InputError, near, some
from ..model.robot_file.robot_file import Source
from .closure import loops
from .closure.leg_closure import LegClosure
from .closure.leg_equations import LegMotion
from .inputs import validation
from .inputs.payload import Payload
from .inputs.platform_motion import PlatformMotion
from .inputs.validation import Wrenches
from .kernels import link_functions
from .robot import GRAVITY, Robot

UNLOADED = np.zeros(6)


class PlatformForces(NamedTuple):
    """Fp (9), the force and moment that move the platform, about its origin, in the base frame, and its rate: (..., 6)."""

    force: np.ndarray
    rate: np.ndarray


class ParallelRobot:
    """Dynamics of a parallel robot. Forces are in the order of `active_joints`: (N,), or (samples, N) along a motion.

    legs     : the Robot whose branches are the legs, without the platform; friction, rotor inertias and payloads count. Its
               gravity is that of the machine
    platform : the Robot of the platform: one rigid body, its URDF's root frame is the platform frame
    joints   : the cut joints between legs and platform and the active joints, as in closure/loops.py; 'start' is for the legs
    home     : position (3,) [m] and rotation (3, 3) of the platform frame in the legs' root frame, where they meet at 'start'

    As with ClosedLoopRobot, the legs are followed from the home pose, and in a motion from sample to sample, so that no leg
    flips over; other branches start from a `guess` of the legs' joints.
    """

    def __init__(self, legs: Robot, platform: Robot, joints: Source, home: tuple[Any, Any]):
        validation.held_base(legs.model)
        if len(platform.model.links) != 1:
            names = some(platform.joint_names)
            raise InputError(f"platform '{platform.name}' has joints ({names}); it must be one rigid body")
        if platform.gravity_vector.tolist() not in (list(GRAVITY), legs.gravity_vector.tolist()):
            raise InputError(f"platform '{platform.name}' has gravity {platform.gravity_vector.tolist()}, the legs "
                             f"{legs.gravity_vector.tolist()}; the machine's is that of the legs: leave the platform's out")
        shared = sorted(set(legs.model.frames) & set(platform.model.frames))
        if shared:
            raise InputError(f"legs and platform both have links {some(shared)}; names must differ")
        declared = loops.read(joints, "ParallelRobot", legs.model, platform.model)
        self.legs, self.platform = legs, platform
        self._closure = LegClosure(legs.model, platform.model, declared, home, legs.backend, legs.gravity_vector)

    # ------------------------------------------------------------------ what it is

    @property
    def active_joints(self) -> tuple[str, ...]:
        return self._closure.active_joints

    @property
    def home(self) -> tuple[np.ndarray, np.ndarray]:
        """Position (3,) and rotation (3, 3) of the platform from which every walk begins."""
        R, P = self._closure.home
        return P, R

    @property
    def start(self) -> np.ndarray:
        """Positions of the legs' joints at the home pose."""
        return self._closure.start

    def with_payload(self, link: str, mass: float, com: Sequence[float] = (0.0, 0.0, 0.0),
                     inertia: Any = None) -> ParallelRobot:
        """The same machine carrying a rigid body on a link of the platform or of a leg, as Robot.with_payload."""
        robot = ParallelRobot.__new__(ParallelRobot)
        robot.__dict__.update(self.__dict__)
        if link in self.platform.model.frames:
            robot.platform = self.platform.with_payload(link, mass, com, inertia)
        else:
            robot.legs = self.legs.with_payload(link, mass, com, inertia)
        return robot

    # ------------------------------------------------------------------ kinematics

    def leg_motion(self, motion: PlatformMotion, guess=None, orders: int = 3) -> LegMotion:
        """Inverse kinematics: motion of all joints of the legs (samples, n), and the maps of (60), (61) with their rates.

        guess  : positions (n,) of the legs' joints near the first pose, if it shall not be reached from the home pose
        orders : how many of velocity, acceleration and jerk count; with 2, the jerk need not be one that the legs allow
        Raises InputError at poses out of reach, singular poses, and motions that the legs do not allow.
        """
        return self._legs(motion.checked().rows(), guess, orders)

    def _legs(self, rows: np.ndarray, guess: Any, orders: int) -> LegMotion:
        """The same of rows (30,) or (samples, 30)."""
        q = guess if guess is None or validation.sound(guess, self.legs.n) else validation.vector("guess", guess, self.legs.n)
        if rows.ndim == 1:
            return self._closure.motion(rows, q, None, orders)
        pose, samples = None, []
        for k, row in enumerate(rows):
            try:
                sample = self._closure.motion(row, q, pose, orders)
            except InputError as error:
                raise InputError(f"sample {k}: {error}") from None
            q, pose = sample.q, row
            samples.append(sample)
        return LegMotion(*(np.array(part) for part in zip(*samples, strict=True)))

    def link_pose(self, link: str, motion: PlatformMotion, point: ArrayLike | None = None,
                  guess: ArrayLike | None = None) -> Pose:
        """R (3, 3) and p (3,), or (samples, ...) each, of a link of a leg or of the platform in the base frame.

        link_kinematics.py has the convention. Origin at the point (3,), in the link's frame, if one is given. The platform's
        velocity does not matter.
        """
        if self._on_legs(link):
            return self.legs.link_pose(link, self.leg_motion(motion, guess, orders=0).q, point)
        blocks = _rotation(motion) | {"base_position": motion.checked().position}
        return Pose(*self.platform._on_link(link_functions.free_link_pose, link, point, q=(), base=blocks))

    def link_velocity(self, link: str, motion: PlatformMotion, point: ArrayLike | None = None,
                      guess: ArrayLike | None = None) -> np.ndarray:
        """(6,) or (samples, 6): velocity of the point, angular velocity, along the axes of the base frame [m/s, rad/s]."""
        legs = self.leg_motion(motion, guess, orders=1)
        if self._on_legs(link):
            return self.legs.link_velocity(link, legs.q, legs.qd, point)
        return np.squeeze(self._of_twist(link, motion, point) @ motion.checked().velocity[..., None], axis=-1)

    def jacobian(self, link: str, motion: PlatformMotion, point: ArrayLike | None = None,
                 guess: ArrayLike | None = None) -> np.ndarray:
        """(6, N) or (samples, 6, N) by the active joints: link_velocity = jacobian @ qad, by Jp and Q of (60), (61)."""
        legs = self.leg_motion(motion, guess, orders=0)
        if self._on_legs(link):
            return self.legs.jacobian(link, legs.q, point) @ legs.maps[..., 6:, :]
        return self._of_twist(link, motion, point) @ legs.maps[..., :6, :]

    def jacobian_rate(self, link: str, motion: PlatformMotion, point: ArrayLike | None = None,
                      guess: ArrayLike | None = None) -> np.ndarray:
        """(6, N) or (samples, 6, N): time derivative of `jacobian` along the motion."""
        legs = self.leg_motion(motion, guess, orders=1)
        if self._on_legs(link):
            J, Jd = self.legs.jacobian(link, legs.q, point), self.legs.jacobian_rate(link, legs.q, legs.qd, point)
            return active_jacobian_rate(legs.maps[..., 6:, :], legs.maps_rate[..., 6:, :], J, Jd)
        moving = _rotation(motion) | {"twist": motion.checked().velocity}
        Jd = self.platform._on_link(link_functions.platform_jacobian_rate, link, point, q=(), base=moving)[0]
        return active_jacobian_rate(legs.maps[..., :6, :], legs.maps_rate[..., :6, :], self._of_twist(link, motion, point), Jd)

    def _of_twist(self, link: str, motion: PlatformMotion, point: ArrayLike | None) -> np.ndarray:
        """Jacobian (..., 6, 6) of a link of the platform by Vp."""
        return self.platform._on_link(link_functions.platform_jacobian, link, point, q=(), base=_rotation(motion))[0]

    def _on_legs(self, link: str) -> bool:
        """Whether a leg has the link, or else the platform; InputError names the links that exist."""
        legs, platform = self.legs.model.frames, self.platform.model.frames
        if link not in legs and link not in platform:
            names = [*platform, *legs]
            raise InputError(f"link '{link}' is neither of the platform nor of a leg; the links are {some(names)}"
                             f"{near(link, names)}")
        return link in legs

    # ------------------------------------------------------------------ dynamics

    def torque_and_rate(self, motion: PlatformMotion, wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                        guess=None) -> tuple[np.ndarray, np.ndarray]:
        """Forces (or torques) of the active joints along a motion of the platform, (59), and their exact time derivatives.

        wrenches, wrench_rates : {URDF link of the platform or of a leg: (6,) or (samples, 6)}, as in Robot.torque_and_rate
        """
        return self._forces(motion, guess, 3, wrenches, wrench_rates)

    def inverse_dynamics(self, motion: PlatformMotion, wrenches: Wrenches | None = None, guess=None) -> np.ndarray:
        """Forces of the active joints, (66); the jerk does not matter."""
        return self._forces(motion, guess, 2, wrenches, None)[0]

    def _forces(self, motion: PlatformMotion, guess: Any, orders: int, wrenches: Wrenches | None,
                wrench_rates: Wrenches | None) -> tuple[np.ndarray, np.ndarray]:
        (on_legs, on_platform), (legs_rate, platform_rate) = self._split(wrenches), self._split(wrench_rates)
        rows = motion.checked().rows()
        legs = self._legs(rows, guess, orders)
        tau, tau_rate = self.legs.torque_and_rate(*legs[:4], wrenches=on_legs, wrench_rates=legs_rate)
        force, force_rate = self._platform_force(rows, on_platform, platform_rate)
        return parallel_robots.actuator_force(legs.maps, legs.maps_rate, force, force_rate, tau, tau_rate)

    def platform_force(self, motion: PlatformMotion, wrenches: Wrenches | None = None,
                       wrench_rates: Wrenches | None = None) -> PlatformForces:
        """Fp of (9) and its rate: what the legs together exert on the platform. Wrenches: on links of the platform."""
        return PlatformForces(*self._platform_force(motion.checked().rows(), wrenches, wrench_rates))

    def _platform_force(self, rows: np.ndarray, wrenches: Wrenches | None,
                        wrench_rates: Wrenches | None) -> tuple[np.ndarray, ...]:
        """The same of rows (30,) or (samples, 30)."""
        model, force, body = self.platform.model, self._closure.force, self._platform_inertia()
        if not (wrenches or wrench_rates) and (found := force.call(rows, body, UNLOADED, UNLOADED)):
            return found
        loaded = validation.loaded_links(model, wrenches, wrench_rates) or (0,)
        loads = [validation.wrench_block(model, loaded, given or {}) for given in (wrenches, wrench_rates)]
        found = force(validation.beside([rows, body, *loads]))
        validation.results("platform_force", found)
        return found

    def forward_dynamics(self, position, rotation, velocity, tau, guess=None) -> np.ndarray:
        """Acceleration (6,) of the platform under actuator forces tau (N,), in the base frame; one pose, one twist (6,).

        The forces are affine in the acceleration: N + 1 evaluations of (59) give the equations to solve.
        """
        given = validation.vector("tau", tau, len(self.active_joints))
        state = PlatformMotion(position, rotation, velocity).checked()
        if state.rows().ndim != 1:
            raise InputError(f"forward_dynamics takes one state of the platform; got positions {np.shape(position)}")
        Jp, drift = self._closure.platform_map(state.rows(), guess)
        trials = drift + np.concatenate((np.zeros((1, 6)), Jp.T))
        forces = self.inverse_dynamics(state._replace(acceleration=trials), guess=guess)
        A_c = (forces[1:] - forces[0]).T
        try:
            return drift + Jp @ np.linalg.solve(A_c, given - forces[0])
        except np.linalg.LinAlgError:
            raise InputError("the machine's mass matrix is singular: an actuator moves no mass; give the platform or the legs "
                             "some") from None

    # ------------------------------------------------------------------ the door

    def _platform_inertia(self) -> np.ndarray:
        """m, ms, J of the platform with what it carries, as the block of a kernel."""
        link, carried = self.platform.model.links[0], list(self.platform.payloads.values())
        block = np.concatenate([np.zeros(0), *(payload.parameters for payload in carried)])
        m, ms, J = Payload.added(self.platform.model, [0] * len(carried), block).get(0, (link.m, link.ms, link.J))
        return np.concatenate(([m], ms, np.ravel(J)))

    def _split(self, wrenches: Wrenches | None) -> tuple[dict | None, dict | None]:
        """Those on legs and those on the platform."""
        if wrenches is None:
            return None, None
        unknown = [name for name in wrenches if name not in self.legs.model.frames and name not in self.platform.model.frames]
        if unknown:
            raise InputError(f"wrench on link '{unknown[0]}', which does not exist; the links are "
                             f"{some([*self.platform.model.frames, *self.legs.model.frames])}")
        on_platform = {name: value for name, value in wrenches.items() if name in self.platform.model.frames}
        return {name: value for name, value in wrenches.items() if name not in on_platform}, on_platform


def _rotation(motion: PlatformMotion) -> dict[str, np.ndarray]:
    """Block of a kernel."""
    R = motion.checked().rotation
    return {"base_rotation": R.reshape(*R.shape[:-2], 9)}
