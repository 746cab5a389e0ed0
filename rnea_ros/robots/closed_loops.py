"""ClosedLoopRobot: a robot with closed kinematic loops, seen from its motors.

Khalil, "Dynamic modeling of robots using recursive Newton-Euler techniques", section 4: a Robot for the spanning tree, whose
torques are projected on the active joints. Beyond the paper: the rates of these torques, along the motion.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.linalg import pivots
from ..algorithms import closed_loops
from ..algorithms.kinematics import Pose
from ..errors import InputError
from ..model.robot_file.robot_file import Source
from .closure import loops as declared_loops
from .closure.loop_closure import LoopClosure
from .closure.loop_equations import RATES, LoopMotion
from .inputs import validation
from .inputs.validation import Wrenches
from .kernels import singularity
from .robot import Robot

Kinematics = TypeVar("Kinematics", bound="LoopKinematics")


class LoopKinematics:
    """Motion of a tree whose loops are closed; ClosedLoopRobot and FloatingLoopRobot add the dynamics."""

    def __init__(self, tree: Robot, loops: Source):
        self.tree = tree
        self._closure = LoopClosure(tree.model, declared_loops.read(loops, type(self).__name__, tree.model), tree.backend)

    @property
    def active_joints(self) -> tuple[str, ...]:
        return self._closure.active_joints

    @property
    def passive_joints(self) -> tuple[str, ...]:
        return tuple(self.tree.joint_names[k] for k in self._closure.passive)

    @property
    def start(self) -> np.ndarray:
        """A closed pose of all n joints of the tree."""
        return self._closure.start

    def with_payload(self: Kinematics, link: str, mass: float, com: Sequence[float] = (0.0, 0.0, 0.0),
                     inertia: Any = None) -> Kinematics:
        """The same machine carrying a rigid body, as Robot.with_payload."""
        robot = object.__new__(type(self))
        robot.tree, robot._closure = self.tree.with_payload(link, mass, com, inertia), self._closure
        return robot

    def close(self, qa, guess=None) -> np.ndarray:
        """Positions of all joints of the tree, (n,) or (samples, n), at active positions qa.

        Raises InputError at singular poses and at poses out of reach, naming the loop, its gap and the condition number.
        """
        positions = validation.coordinates("qa", qa, self.active_joints)
        pose = self.start if guess is None else guess if validation.sound(guess, self.tree.n) else \
            validation.vector("guess", guess, self.tree.n)
        if positions.ndim == 1:
            return self._closure.close(positions, pose)
        poses = []
        for k, sample in enumerate(positions):
            pose = _at_sample(k, self._closure.close, sample, pose)
            poses.append(pose)
        return np.array(poses).reshape(len(positions), self.tree.n)

    def motion(self, qa, qad, qadd, qaddd, guess=None) -> LoopMotion:
        """Positions, velocities, accelerations and jerks of all joints of the tree, G (56) and its rate."""
        rates = [validation.coordinates(name, value, self.active_joints)
                 for name, value in zip(RATES, (qad, qadd, qaddd), strict=True)]
        q = self.close(qa, guess)
        count = validation.samples([q, *rates])
        if count is None:
            return self._closure.motion(q, *rates)
        rows = zip(*(np.broadcast_to(part, (count, part.shape[-1])) for part in (q, *rates)), strict=True)
        samples = [_at_sample(k, self._closure.motion, *row) for k, row in enumerate(rows)]
        return LoopMotion(*(np.array(part) for part in zip(*samples, strict=True)))

    def _still(self, qa, guess) -> LoopMotion:
        return self._moving(qa, np.zeros(np.shape(qa)), guess)

    def _moving(self, qa, qad, guess) -> LoopMotion:
        """With accelerations and jerks of the active joints at zero."""
        zero = np.zeros(np.shape(qa))
        return self.motion(qa, qad, zero, zero, guess)


class ClosedLoopRobot(LoopKinematics):
    """Dynamics of a robot with loops. Arrays are in the order of `active_joints`: (N,), or (samples, N) along a motion.

    tree  : the Robot that is left when the loops are cut; its friction, rotor inertias and payloads all count
    loops : the cut and active joints: path of a robot file with the section `loops`, or its content; see closure/loops.py

    A mechanism can often be closed in several ways. Which one is meant follows from `guess`, a pose (n,) of all joints near
    a closed one (default: `start`): the loops are followed from there to the pose asked for, and in a motion from sample
    to sample, never through a singular pose. The object does not change, so an answer does not depend on earlier ones.
    """

    def __init__(self, tree: Robot, loops: Source):
        if tree.model.base != "fixed":
            raise InputError(f"robot '{tree.name}' has a free base: FloatingLoopRobot moves it, base='fixed' holds it")
        super().__init__(tree, loops)

    @classmethod
    def from_urdf(cls, source: str | bytes | os.PathLike, loops: Source, **options: Any) -> ClosedLoopRobot:
        """From the URDF of the spanning tree and the declaration of its loops; options as in Robot.from_urdf."""
        return cls(Robot.from_urdf(source, **options), loops)

    def link_pose(self, link: str, qa: ArrayLike, point: ArrayLike | None = None, guess: ArrayLike | None = None) -> Pose:
        """R (3, 3) and p (3,), or (samples, ...) each, of the link's frame in the root link's; origin at the point, if given.

        link_kinematics.py has the convention; links are those of the tree. Poses in closed loops are found from `guess`.
        """
        return self.tree.link_pose(link, self.close(qa, guess), point)

    def link_velocity(self, link: str, qa: ArrayLike, qad: ArrayLike, point: ArrayLike | None = None,
                      guess: ArrayLike | None = None) -> np.ndarray:
        """(6,) or (samples, 6): velocity of the point, angular velocity, along the root link's axes [m/s, rad/s]."""
        motion = self._moving(qa, qad, guess)
        return self.tree.link_velocity(link, motion.q, motion.qd, point)

    def jacobian(self, link: str, qa: ArrayLike, point: ArrayLike | None = None, guess: ArrayLike | None = None) -> np.ndarray:
        """(6, N) or (samples, 6, N): link_velocity = jacobian @ qad; the passive joints move along, by G of (56)."""
        motion = self._still(qa, guess)
        return self.tree.jacobian(link, motion.q, point) @ motion.G

    def jacobian_rate(self, link: str, qa: ArrayLike, qad: ArrayLike, point: ArrayLike | None = None,
                      guess: ArrayLike | None = None) -> np.ndarray:
        """(6, N) or (samples, 6, N): time derivative of `jacobian` along the motion."""
        motion = self._moving(qa, qad, guess)
        J, Jd = self.tree.jacobian(link, motion.q, point), self.tree.jacobian_rate(link, motion.q, motion.qd, point)
        return closed_loops.active_jacobian_rate(motion.G, motion.Gd, J, Jd)

    def torque_and_rate(self, qa, qad, qadd, qaddd, guess=None, **loads: Wrenches | None) -> tuple[np.ndarray, np.ndarray]:
        """Torques of the active joints, (55)-(57), and their exact time derivatives along the motion.

        loads : wrenches, wrench_rates, world_wrenches BY the environment ON the links, as in Robot.torque_and_rate
        """
        motion = self.motion(qa, qad, qadd, qaddd, guess)
        tau, tau_rate = self.tree.torque_and_rate(*motion[:4], **loads)
        return closed_loops.active_torque(motion.G, motion.Gd, tau, tau_rate)

    def inverse_dynamics(self, qa, qad, qadd, guess=None, **loads: Wrenches | None) -> np.ndarray:
        """Torques of the active joints, (55)."""
        return self.torque_and_rate(qa, qad, qadd, np.zeros(np.shape(qa)), guess, **loads)[0]

    def bias(self, qa, qad, guess=None, **loads: Wrenches | None) -> np.ndarray:
        """H_c of (58): torques at zero acceleration of the active joints."""
        return self.inverse_dynamics(qa, qad, np.zeros(np.shape(qa)), guess, **loads)

    def gravity(self, qa, guess=None) -> np.ndarray:
        """Torques of the active joints that hold the machine still against gravity alone."""
        motion = self._still(qa, guess)
        tau = self.tree.gravity(motion.q)
        return closed_loops.active_torque(motion.G, motion.Gd, tau, tau)[0]

    def mass_matrix(self, qa, guess=None) -> np.ndarray:
        """A_c of (58), (N, N) or (samples, N, N)."""
        motion = self._still(qa, guess)
        return closed_loops.active_mass_matrix(motion.G, self.tree.mass_matrix(motion.q))

    def forward_dynamics(self, qa, qad, tau, guess=None, **loads: Wrenches | None) -> np.ndarray:
        """Accelerations of the active joints under their torques: solves (58), A_c qadd = tau - H_c."""
        given = validation.coordinates("tau", tau, self.active_joints)
        H = self.bias(qa, qad, guess, **loads)
        validation.samples([given, H])  # refuses different numbers of samples
        return accelerations(self.mass_matrix(qa, guess), given - H, self.active_joints)


def accelerations(A: np.ndarray, force: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Solves A x = force, (n,) or (samples, n); InputError names what moves no mass."""
    with np.errstate(all="ignore"):
        felt = np.stack(pivots(np.moveaxis(A, (-2, -1), (0, 1))), axis=-1)
    singularity.check_nonsingular(felt, np.diagonal(A, axis1=-2, axis2=-1), names)
    return np.linalg.solve(A, force[..., None])[..., 0]


def _at_sample(k: int, function: Callable, *arguments: Any) -> Any:
    """function(*arguments); an error says at which sample."""
    try:
        return function(*arguments)
    except InputError as error:
        raise InputError(f"sample {k}: {error}") from None
