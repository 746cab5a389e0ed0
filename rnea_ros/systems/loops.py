"""ClosedLoopRobot: a robot with closed kinematic loops, seen from its motors.

Khalil, "Dynamic modeling of robots using recursive Newton-Euler techniques", section 4: a Robot for the spanning tree, whose
torques are projected on the active joints. Beyond the paper: the rates of these torques, along the motion.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import door
from ..algorithms import closed_loops
from ..door import Wrenches
from ..errors import InputError
from ..robot import Robot
from . import loop_file
from .loop_closure import LoopClosure, LoopMotion

Declaration = str | os.PathLike | Mapping


class ClosedLoopRobot:
    """Dynamics of a robot with loops. Arrays are in the order of `active_joints`: (N,), or (samples, N) along a motion.

    tree  : the Robot that is left when the loops are cut; its friction, rotor inertias and payloads all count
    loops : the cut and active joints, as a mapping or as the path of a YAML file, see loop_file.py

    A mechanism can often be closed in several ways. Which one is meant follows from `guess`, a pose (n,) of all joints near
    a closed one (default: `start`): the loops are followed from there to the pose asked for, and in a motion from sample
    to sample, never through a singular pose. The object does not change, so an answer does not depend on earlier ones.
    """

    def __init__(self, tree: Robot, loops: Declaration):
        self.tree = tree
        self._closure = LoopClosure(tree.model, loop_file.read(loops, tree.model), tree.backend)

    @classmethod
    def from_urdf(cls, source: str | bytes | os.PathLike, loops: Declaration, **options: Any) -> ClosedLoopRobot:
        """From the URDF of the spanning tree and the declaration of its loops; options as in Robot.from_urdf."""
        return cls(Robot.from_urdf(source, **options), loops)

    # ------------------------------------------------------------------ what it is

    @property
    def active_joints(self) -> tuple[str, ...]:
        return tuple(self.tree.joint_names[k] for k in self._closure.active)

    @property
    def passive_joints(self) -> tuple[str, ...]:
        return tuple(self.tree.joint_names[k] for k in self._closure.passive)

    @property
    def start(self) -> np.ndarray:
        """A closed pose of all n joints of the tree."""
        return self._closure.start

    def with_payload(self, link: str, mass: float, com: Sequence[float] = (0.0, 0.0, 0.0),
                     inertia: Any = None) -> ClosedLoopRobot:
        """The same machine carrying a rigid body, as Robot.with_payload."""
        robot = ClosedLoopRobot.__new__(ClosedLoopRobot)
        robot.tree, robot._closure = self.tree.with_payload(link, mass, com, inertia), self._closure
        return robot

    # ------------------------------------------------------------------ kinematics

    def close(self, qa, guess=None) -> np.ndarray:
        """Positions of all joints of the tree, (n,) or (samples, n), at active positions qa.

        Raises InputError at singular poses and at poses out of reach, naming the loop, its gap and the condition number.
        """
        positions = door.coordinates("qa", qa, self.active_joints)
        pose = self.start if guess is None else door.vector("guess", guess, self.tree.n)
        poses = []
        for k, sample in enumerate(np.atleast_2d(positions)):
            pose = _at_sample(k, positions.ndim, self._closure.close, sample, pose)
            poses.append(pose)
        return np.array(poses).reshape(*positions.shape[:-1], self.tree.n)

    def motion(self, qa, qad, qadd, qaddd, guess=None) -> LoopMotion:
        """Positions, velocities, accelerations and jerks of all joints of the tree, G (56) and its rate."""
        rates = [door.coordinates(name, value, self.active_joints)
                 for name, value in zip(("qad", "qadd", "qaddd"), (qad, qadd, qaddd), strict=True)]
        x = door.beside([self.close(qa, guess), *rates])
        cuts = self.tree.n + len(self.active_joints) * np.arange(3)
        samples = [_at_sample(k, x.ndim, self._closure.motion, *np.split(row, cuts)) for k, row in enumerate(np.atleast_2d(x))]
        parts = (np.array(part) for part in zip(*samples, strict=True))
        return LoopMotion(*(part if x.ndim == 2 else part[0] for part in parts))

    # ------------------------------------------------------------------ dynamics

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
        given = door.coordinates("tau", tau, self.active_joints)
        A = self.mass_matrix(qa, guess)
        try:
            return np.linalg.solve(A, (given - self.bias(qa, qad, guess, **loads))[..., None])[..., 0]
        except np.linalg.LinAlgError:
            raise InputError("the mass matrix A_c is singular: an active joint moves no mass; give its links mass, or its "
                             "joint a rotor inertia") from None

    def _still(self, qa, guess) -> LoopMotion:
        zero = np.zeros(np.shape(qa))
        return self.motion(qa, zero, zero, zero, guess)


def _at_sample(k: int, dimensions: int, function: Callable, *arguments: Any) -> Any:
    """function(*arguments); in a motion, an error says at which sample."""
    try:
        return function(*arguments)
    except InputError as error:
        if dimensions == 1:
            raise
        raise InputError(f"sample {k}: {error}") from None
