"""FloatingLoopRobot: closed loops on a base that is free or prescribed, as of walking robots whose legs have loops.

The loops hold links of the robot against each other, so they ask nothing of the base: its six equations are those of the tree,
khalil-rne (84)-(100), moving as the loops let it, and the tree's torques are projected on the active joints, (55)-(57).
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Array
from ..algorithms import closed_loops
from ..algorithms.kinematics import Pose
from ..model.robot_file.robot_file import Source
from .closed_loops import ClosedLoopRobot, LoopKinematics
from .closure.loop_equations import LoopMotion
from .derivatives import JointWrenches, RateSensitivities, TorqueSensitivities
from .energy import CenterOfMass, Energy
from .floating import BASE_NAMES, FloatingRobot, FreeMotion, FreeRates, FreeResponse, PrescribedBase
from .inputs import validation
from .inputs.base_state import BaseState
from .inputs.validation import Wrenches
from .kernels import singularity
from .robot import Dynamics, Robot


class FloatingLoopRobot(LoopKinematics):
    """As ClosedLoopRobot, with the base of FloatingRobot: see there for motions of the active joints, and of the base.

    tree  : a Robot loaded with base='floating', cut open; loops : as for ClosedLoopRobot
    carried : whether something else moves the base, as robot files say it by `base: prescribed`
    """

    carried = False

    def __init__(self, tree: Robot, loops: Source, carried: bool = False):
        FloatingRobot(tree)  # refuses a fixed base
        super().__init__(tree, loops)
        self.carried = carried

    @classmethod
    def from_urdf(cls, source: str | bytes | os.PathLike[str], loops: Source, **options: Any) -> FloatingLoopRobot:
        """From the URDF of the spanning tree and the declaration of its loops; options as in FloatingRobot.from_urdf."""
        return cls(FloatingRobot.from_urdf(source, **options).robot, loops)

    @property
    def free(self) -> FloatingRobot:
        """The tree with open loops: ground reaction, zero-moment point at motions that `motion` has closed."""
        return FloatingRobot(self.tree, self.carried)

    def with_tree(self, tree: Robot) -> FloatingLoopRobot:
        """The same loops of a tree of the same joints and frames, on the same base."""
        robot = super().with_tree(tree)
        robot.carried = self.carried
        return robot

    def held(self, gravity: ArrayLike) -> ClosedLoopRobot:
        """The same robot on a base that does not move; gravity (3,) in the frame of its root link."""
        return ClosedLoopRobot._made(self.tree.held(gravity), self._closure)

    # ------------------------------------------------------------------ where links are

    def link_pose(self, link: str, q: ArrayLike, point: ArrayLike | None = None, *, base: BaseState | None = None,
                  guess: ArrayLike | None = None) -> Pose:
        """As of ClosedLoopRobot, in the world."""
        return self.free.link_pose(link, self.close(q, guess=guess), point, base=base)

    def link_velocity(self, link: str, q: ArrayLike, qd: ArrayLike, point: ArrayLike | None = None, *,
                      base: BaseState | None = None, guess: ArrayLike | None = None) -> Array:
        """As of ClosedLoopRobot, relative to the world and along its axes."""
        motion = self._moving(q, qd, guess)
        return self.free.link_velocity(link, motion.q, motion.qd, point, base=base)

    def jacobian(self, link: str, q: ArrayLike, point: ArrayLike | None = None, *, base: BaseState | None = None,
                 guess: ArrayLike | None = None) -> Array:
        """(6, 6 + N) or (samples, ...), the base first: link_velocity = jacobian @ [base.velocity; qd]."""
        motion = self._still(q, guess)
        return self.free.jacobian(link, motion.q, point, base=base) @ _of_all(motion.G, np.eye(6))

    def jacobian_rate(self, link: str, q: ArrayLike, qd: ArrayLike, point: ArrayLike | None = None, *,
                      base: BaseState | None = None, guess: ArrayLike | None = None) -> Array:
        """(6, 6 + N) or (samples, ...): time derivative of `jacobian` along the motion of base and active joints."""
        motion = self._moving(q, qd, guess)
        J = self.free.jacobian(link, motion.q, point, base=base)
        Jd = self.free.jacobian_rate(link, motion.q, motion.qd, point, base=base)
        maps = _of_all(motion.G, np.eye(6)), _of_all(motion.Gd, np.zeros((6, 6)))
        return closed_loops.active_jacobian_rate(*maps, J, Jd)

    # ------------------------------------------------------------------ free base

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, base: BaseState | None = None,
                         guess: ArrayLike | None = None, wrenches: Wrenches | None = None,
                         world_wrenches: Wrenches | None = None) -> Array:
        """Torques (N,) of a motion of the active joints while nothing holds the base."""
        return self.free_motion(q, qd, qdd, base=base, guess=guess, wrenches=wrenches, world_wrenches=world_wrenches).tau

    def torque_and_rate(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *, base: BaseState | None = None,
                        guess: ArrayLike | None = None, wrenches: Wrenches | None = None,
                        wrench_rates: Wrenches | None = None,
                        world_wrenches: Wrenches | None = None) -> tuple[Array, Array]:
        """Torques (N,) and their rates while nothing holds the base."""
        found = self.free_rates(q, qd, qdd, qddd, base=base, guess=guess, wrenches=wrenches, wrench_rates=wrench_rates,
                                world_wrenches=world_wrenches)
        return found.tau, found.tau_rate

    def free_motion(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, base: BaseState | None = None,
                    guess: ArrayLike | None = None, wrenches: Wrenches | None = None,
                    world_wrenches: Wrenches | None = None) -> FreeMotion:
        """How the base moves when the active joints move so, and their torques (N,) for it."""
        motion = self.motion(q, qd, qdd, validation.zeros_like("q", q), guess=guess)
        found = self.free.free_motion(*motion[:3], base=base, wrenches=wrenches, world_wrenches=world_wrenches)
        return found._replace(tau=closed_loops.active_torque(motion.G, motion.Gd, found.tau, found.tau)[0])

    def free_rates(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *, base: BaseState | None = None,
                   guess: ArrayLike | None = None, wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                   world_wrenches: Wrenches | None = None) -> FreeRates:
        """The same with its rates."""
        motion = self.motion(q, qd, qdd, qddd, guess=guess)
        a, jerk, tau, tau_rate = self.free.free_rates(*motion[:4], base=base, wrenches=wrenches, wrench_rates=wrench_rates,
                                                      world_wrenches=world_wrenches)
        return FreeRates(a, jerk, *closed_loops.active_torque(motion.G, motion.Gd, tau, tau_rate))

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, *, base: BaseState | None = None,
                         guess: ArrayLike | None = None, wrenches: Wrenches | None = None,
                         world_wrenches: Wrenches | None = None) -> Array:
        """Accelerations (N,) of the active joints under their torques while nothing holds the base."""
        return self.free_response(q, qd, tau, base=base, guess=guess, wrenches=wrenches, world_wrenches=world_wrenches).qdd

    def free_response(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, *, base: BaseState | None = None,
                      guess: ArrayLike | None = None, wrenches: Wrenches | None = None,
                      world_wrenches: Wrenches | None = None) -> FreeResponse:
        """How base and active joints move under the torques tau (N,) of the latter."""
        given = validation.coordinates("tau", tau, self.joint_names)
        H = self.bias(q, qd, base=base, guess=guess, wrenches=wrenches, world_wrenches=world_wrenches)
        validation.samples([given, H])  # refuses different numbers of samples
        force = np.concatenate((np.zeros((*given.shape[:-1], 6)), given), axis=-1) - H
        found = singularity.accelerations(self.mass_matrix(q, guess=guess), force, (*BASE_NAMES, *self.joint_names))
        return FreeResponse(found[..., :6], found[..., 6:])

    # ------------------------------------------------------------------ the equations of all that moves

    def mass_matrix(self, q: ArrayLike, *, base: BaseState | None = None, guess: ArrayLike | None = None) -> Array:
        """(6 + N, 6 + N) or (samples, ...), base first. Where the base is does not matter."""
        motion = self._still(q, guess)
        return closed_loops.active_mass_matrix(_of_all(motion.G, np.eye(6)), self.free.mass_matrix(motion.q))

    def bias(self, q: ArrayLike, qd: ArrayLike, *, base: BaseState | None = None, guess: ArrayLike | None = None,
             wrenches: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> Array:
        """(6 + N,): base wrench and torques without acceleration of base and active joints."""
        rest = validation.zeros_like("q", q)
        found = self.prescribed_base(q, qd, rest, rest, base=base, guess=guess, wrenches=wrenches,
                                     world_wrenches=world_wrenches)
        return np.concatenate((found.base_wrench, found.tau), axis=-1)

    def gravity(self, q: ArrayLike, *, base: BaseState | None = None, guess: ArrayLike | None = None) -> Array:
        """(6 + N,): base wrench and torques that hold the robot still against gravity alone."""
        motion = self._still(q, guess)
        wrench, tau = np.split(self.free.gravity(motion.q, base=base), [6], axis=-1)
        return np.concatenate((wrench, closed_loops.active_torque(motion.G, motion.Gd, tau, tau)[0]), axis=-1)

    def dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *, base: BaseState | None = None,
                 guess: ArrayLike | None = None, wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                 world_wrenches: Wrenches | None = None) -> Dynamics:
        """As of FloatingRobot, of the active joints."""
        motion = self.motion(q, qd, qdd, qddd, guess=guess)
        tau, tau_rate, gravity, gravity_rate = self.free.dynamics(*motion[:4], base=base, wrenches=wrenches,
                                                                    wrench_rates=wrench_rates, world_wrenches=world_wrenches)
        return Dynamics(*closed_loops.active_torque(motion.G, motion.Gd, tau, tau_rate),
                        *closed_loops.active_torque(motion.G, motion.Gd, gravity, gravity_rate))

    def energy(self, q: ArrayLike, qd: ArrayLike, *, base: BaseState | None = None,
               guess: ArrayLike | None = None) -> Energy:
        """As of FloatingRobot, of the tree as the loops move it."""
        return self.free.energy(*self._moving(q, qd, guess)[:2], base=base)

    def center_of_mass(self, q: ArrayLike, qd: ArrayLike, *, base: BaseState | None = None,
                       guess: ArrayLike | None = None) -> CenterOfMass:
        """As of FloatingRobot, in the world."""
        return self.free.center_of_mass(*self._moving(q, qd, guess)[:2], base=base)

    def sensitivities(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, base: BaseState | None = None,
                      guess: ArrayLike | None = None, wrenches: Wrenches | None = None,
                      world_wrenches: Wrenches | None = None) -> TorqueSensitivities:
        """Partial derivatives (N, N) of the torques by q, qd and qdd of the active joints, as of FloatingRobot."""
        motion = self.motion(q, qd, qdd, validation.zeros_like("q", q), guess=guess)
        return self._sensitivities(self.free, motion, base=base, wrenches=wrenches, world_wrenches=world_wrenches)

    def rate_sensitivities(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *,
                           base: BaseState | None = None, guess: ArrayLike | None = None, wrenches: Wrenches | None = None,
                           wrench_rates: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> RateSensitivities:
        """Of the torque rates by q, qd, qdd and qddd, likewise."""
        return self._rate_sensitivities(self.free, self.motion(q, qd, qdd, qddd, guess=guess), wrench_rates, base=base,
                                        wrenches=wrenches, world_wrenches=world_wrenches)

    def joint_wrenches(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike | None = None, *,
                       base: BaseState | None = None, guess: ArrayLike | None = None, wrenches: Wrenches | None = None,
                       wrench_rates: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> JointWrenches:
        """As of ClosedLoopRobot, on a base that nothing holds."""
        motion = self.motion(q, qd, qdd, validation.zeros_like("q", q) if qddd is None else qddd, guess=guess)
        return self._transmitted(self.free, motion, qddd is not None, wrenches, wrench_rates, base=base,
                                 world_wrenches=world_wrenches)

    # ------------------------------------------------------------------ base whose motion is given

    def prescribed_base(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *, base: BaseState | None = None,
                        base_acceleration: ArrayLike = (0.0,) * 6, base_jerk: ArrayLike = (0.0,) * 6,
                        guess: ArrayLike | None = None, wrenches: Wrenches | None = None,
                        wrench_rates: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> PrescribedBase:
        """Torques, rates and base wrench where the base's motion is given too."""
        return self.prescribed_along(self.motion(q, qd, qdd, qddd, guess=guess), base=base,
                                     base_acceleration=base_acceleration, base_jerk=base_jerk, wrenches=wrenches,
                                     wrench_rates=wrench_rates, world_wrenches=world_wrenches)

    def prescribed_along(self, motion: LoopMotion, *, base: BaseState | None = None,
                         base_acceleration: ArrayLike = (0.0,) * 6, base_jerk: ArrayLike = (0.0,) * 6,
                         wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                         world_wrenches: Wrenches | None = None) -> PrescribedBase:
        """`prescribed_base` of a motion whose loops are closed already, as `motion` or a tracker gives it."""
        found = self.free.prescribed_base(*motion[:4], base=base, base_acceleration=base_acceleration, base_jerk=base_jerk,
                                          wrenches=wrenches, wrench_rates=wrench_rates, world_wrenches=world_wrenches)
        tau, tau_rate = closed_loops.active_torque(motion.G, motion.Gd, found.tau, found.tau_rate)
        return found._replace(tau=tau, tau_rate=tau_rate)

    def gravity_along(self, motion: LoopMotion, *, base: BaseState | None = None) -> tuple[Array, Array]:
        """Torques (N,) that hold the joints still against gravity on a held base, and their rates, of such a motion."""
        return closed_loops.active_torque(motion.G, motion.Gd, *self.free.gravity_and_rate(motion.q, motion.qd, base=base))


def _of_all(G: Array, of_base: Array) -> Array:
    """G (56), or its rate, with the base before it: (6 + n, 6 + N) or (samples, ...)."""
    n, N = G.shape[-2:]
    found = np.zeros((*G.shape[:-2], 6 + n, 6 + N))
    found[..., :6, :6] = of_base
    found[..., 6:, 6:] = G
    return found
