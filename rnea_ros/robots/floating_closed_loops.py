"""FloatingLoopRobot: closed loops on a base that is free or carried, as of walking robots whose legs have loops.

The loops hold links of the robot against each other, so they ask nothing of the base: its six equations are those of the tree,
khalil-rne (84)-(100), moving as the loops let it, and the tree's torques are projected on the active joints, (55)-(57).
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms import closed_loops
from ..algorithms.kinematics import Pose
from ..model.robot_file.robot_file import Source
from .closed_loops import LoopKinematics, accelerations
from .floating import BASE_NAMES, FloatingRobot, FreeMotion, FreeRates, FreeResponse, PrescribedBase
from .inputs import validation
from .inputs.base_state import BaseState
from .inputs.validation import Wrenches
from .robot import Robot


class FloatingLoopRobot(LoopKinematics):
    """As ClosedLoopRobot, with the base of FloatingRobot: see there for motions of the active joints, and of the base.

    tree  : a Robot loaded with base='floating', cut open; loops : as for ClosedLoopRobot
    """

    def __init__(self, tree: Robot, loops: Source):
        FloatingRobot(tree)  # refuses a fixed base
        super().__init__(tree, loops)

    @classmethod
    def from_urdf(cls, source: str | bytes | os.PathLike, loops: Source, **options: Any) -> FloatingLoopRobot:
        """From the URDF of the spanning tree and the declaration of its loops; options as in FloatingRobot.from_urdf."""
        return cls(FloatingRobot.from_urdf(source, **options).robot, loops)

    @property
    def free(self) -> FloatingRobot:
        """The tree with open loops: energy, mass centre, ground reaction at motions that `motion` has closed."""
        return FloatingRobot(self.tree)

    def link_pose(self, link: str, qa: ArrayLike, point: ArrayLike | None = None, guess: ArrayLike | None = None, *,
                  base: BaseState | None = None) -> Pose:
        """As of ClosedLoopRobot, in the world."""
        return self.free.link_pose(link, self.close(qa, guess), point, base=base)

    def link_velocity(self, link: str, qa: ArrayLike, qad: ArrayLike, point: ArrayLike | None = None,
                      guess: ArrayLike | None = None, *, base: BaseState | None = None) -> np.ndarray:
        """As of ClosedLoopRobot, relative to the world and along its axes."""
        motion = self._moving(qa, qad, guess)
        return self.free.link_velocity(link, motion.q, motion.qd, point, base=base)

    def jacobian(self, link: str, qa: ArrayLike, point: ArrayLike | None = None, guess: ArrayLike | None = None, *,
                 base: BaseState | None = None) -> np.ndarray:
        """(6, 6 + N) or (samples, ...), the base first: link_velocity = jacobian @ [base.velocity; qad]."""
        motion = self._still(qa, guess)
        return self.free.jacobian(link, motion.q, point, base=base) @ _of_all(motion.G, np.eye(6))

    def jacobian_rate(self, link: str, qa: ArrayLike, qad: ArrayLike, point: ArrayLike | None = None,
                      guess: ArrayLike | None = None, *, base: BaseState | None = None) -> np.ndarray:
        """(6, 6 + N) or (samples, ...): time derivative of `jacobian` along the motion of base and active joints."""
        motion = self._moving(qa, qad, guess)
        J = self.free.jacobian(link, motion.q, point, base=base)
        Jd = self.free.jacobian_rate(link, motion.q, motion.qd, point, base=base)
        maps = _of_all(motion.G, np.eye(6)), _of_all(motion.Gd, np.zeros((6, 6)))
        return closed_loops.active_jacobian_rate(*maps, J, Jd)

    def inverse_dynamics(self, base: BaseState, qa, qad, qadd, guess=None, wrenches: Wrenches | None = None) -> FreeMotion:
        """How the base moves when the active joints move so, and their torques (N,) for it."""
        found = self.torque_and_rate(base, qa, qad, qadd, np.zeros(np.shape(qa)), guess, wrenches)
        return FreeMotion(found.base_acceleration, found.tau)

    def torque_and_rate(self, base: BaseState, qa, qad, qadd, qaddd, guess=None, wrenches: Wrenches | None = None,
                        wrench_rates: Wrenches | None = None) -> FreeRates:
        """The same with its rates."""
        motion = self.motion(qa, qad, qadd, qaddd, guess)
        a, jerk, tau, tau_rate = self.free.torque_and_rate(base, *motion[:4], wrenches, wrench_rates)
        return FreeRates(a, jerk, *closed_loops.active_torque(motion.G, motion.Gd, tau, tau_rate))

    def carried(self, base: BaseState, base_acceleration, base_jerk, qa, qad, qadd, qaddd, guess=None,
                wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None) -> PrescribedBase:
        """Torques, rates and base wrench where the base's motion is given too."""
        motion = self.motion(qa, qad, qadd, qaddd, guess)
        found = self.free.carried(base, base_acceleration, base_jerk, *motion[:4], wrenches, wrench_rates)
        tau, tau_rate = closed_loops.active_torque(motion.G, motion.Gd, found.tau, found.tau_rate)
        return found._replace(tau=tau, tau_rate=tau_rate)

    def mass_matrix(self, qa, guess=None) -> np.ndarray:
        """(6 + N, 6 + N) or (samples, ...), base first."""
        motion = self._still(qa, guess)
        return closed_loops.active_mass_matrix(_of_all(motion.G, np.eye(6)), self.free.mass_matrix(motion.q))

    def bias(self, base: BaseState, qa, qad, guess=None, wrenches: Wrenches | None = None) -> np.ndarray:
        """(6 + N,): base wrench and torques without acceleration of base and active joints."""
        still, rest = np.zeros(6), np.zeros(np.shape(qa))
        found = self.carried(base, still, still, qa, qad, rest, rest, guess, wrenches)
        return np.concatenate((found.base_wrench, found.tau), axis=-1)

    def forward_dynamics(self, base: BaseState, qa, qad, tau, guess=None, wrenches: Wrenches | None = None) -> FreeResponse:
        """How base and active joints move under the torques tau (N,) of the latter."""
        given = validation.coordinates("tau", tau, self.active_joints)
        H = self.bias(base, qa, qad, guess, wrenches)
        validation.samples([given, H])  # refuses different numbers of samples
        force = np.concatenate((np.zeros((*given.shape[:-1], 6)), given), axis=-1) - H
        found = accelerations(self.mass_matrix(qa, guess), force, (*BASE_NAMES, *self.active_joints))
        return FreeResponse(found[..., :6], found[..., 6:])


def _of_all(G: np.ndarray, of_base: np.ndarray) -> np.ndarray:
    """G (56), or its rate, with the base before it: (6 + n, 6 + N) or (samples, ...)."""
    n, N = G.shape[-2:]
    found = np.zeros((*G.shape[:-2], 6 + n, 6 + N))
    found[..., :6, :6] = of_base
    found[..., 6:, 6:] = G
    return found
