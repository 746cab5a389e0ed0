"""SpringRobot: a Robot some of whose joints have no motor, only a spring. Like Robot, the door where input is checked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..algorithms import elastic_joints
from ..algorithms.mass_matrix import locked
from ..errors import InputError
from ..model.robot_file.robot_file import Source
from . import elastic_parameters
from .inputs import validation
from .inputs.validation import Wrenches
from .kernels import singularity
from .kernels.store import KernelStore, unified
from .link_kinematics import LinkKinematics
from .robot import GRAVITY, Robot


class SpringMotion(NamedTuple):
    """(n,) or (samples, n) each.

    tau : torques of the driven joints; of the spring joints, the springs' [N m, N]
    qdd : accelerations: those given of the driven joints, those that follow of the others
    """

    tau: np.ndarray
    qdd: np.ndarray


class SpringRates(NamedTuple):
    """SpringMotion, and the rates of both: (n,) or (samples, n) each."""

    tau: np.ndarray
    tau_rate: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray


class SpringRobot(LinkKinematics):
    """Exact dynamics of a tree whose joints are driven or held by springs alone (khalil-rne section 6).

    A spring's torque is -stiffness (q - rest). Arrays, units and wrenches as in Robot; all arrays have n columns.
    """

    def __init__(self, robot: Robot, parameters: Source):
        """parameters: path of a robot file, or its content; see elastic_parameters.py. ModelError says all that is wrong."""
        if robot.model.base != "fixed":
            raise InputError("spring joints are supported for robots with base='fixed' only")
        self.robot = robot
        self.springs, self._parameters = elastic_parameters.springs(robot.model, parameters)
        self.model = unified(robot.model, list(robot.payloads.values()))
        self._compiled = KernelStore(self.model, robot.gravity_vector, robot.backend)
        self._link_kernels = robot._link_kernels

    @classmethod
    def from_urdf(cls, source: str | os.PathLike, parameters: Source | None = None, backend: str = "llvm",
                  gravity: Sequence[float] = GRAVITY, **options: Any) -> SpringRobot:
        """From a URDF and a robot file that declares its springs: by default robot.robot.yaml beside robot.urdf.

        options: friction, joint_dynamics and allow_xacro, as in Robot.from_urdf.
        """
        robot = Robot.from_urdf(source, "fixed", backend, gravity, **options)
        return cls(robot, elastic_parameters.beside(source) if parameters is None else parameters)

    def with_payload(self, link: str, mass: float, com: Sequence[float] = (0.0, 0.0, 0.0),
                     inertia: Any = None) -> SpringRobot:
        """The same robot carrying a rigid body on a URDF link; arguments as in Robot.with_payload."""
        return SpringRobot(self.robot.with_payload(link, mass, com, inertia), self._parameters)

    @property
    def joint_names(self) -> tuple[str, ...]:
        return self.robot.joint_names

    @property
    def spring_joints(self) -> tuple[str, ...]:
        """Names of the joints that springs hold."""
        return tuple(self.joint_names[k] for k in sorted(self.springs))

    def inverse_dynamics(self, q, qd, qdd, wrenches: Wrenches | None = None,
                         world_wrenches: Wrenches | None = None) -> SpringMotion:
        """Torques of the driven joints and accelerations of the others, (72)-(82). InputError names a spring without load.

        qdd: accelerations of the driven joints; those of spring joints cannot be chosen, and are not read.
        wrenches, world_wrenches: BY the environment ON the link, seen in its frame or in the root link's, as in Robot.
        """
        return SpringMotion(*self._evaluate(self._inverse, {"q": q, "qd": qd, "qdd": qdd}, wrenches, world_wrenches))

    def torque_and_rate(self, q, qd, qdd, qddd, wrenches: Wrenches | None = None,
                        world_wrenches: Wrenches | None = None) -> SpringRates:
        """The same and its exact rates along the motion. qdd, qddd of spring joints are not read; wrenches stay the same."""
        motion = {"q": q, "qd": qd, "qdd": qdd, "qddd": qddd}
        return SpringRates(*self._evaluate(self._rates, motion, wrenches, world_wrenches))

    def forward_dynamics(self, q, qd, tau, wrenches: Wrenches | None = None) -> np.ndarray:
        """Accelerations under torques of the driven joints, 6.2: Robot's, with springs' torques where tau is not read."""
        position, held = (np.array(validation.coordinates(name, x, self.joint_names)) for name, x in (("q", q), ("tau", tau)))
        held = np.array(np.broadcast_to(held, np.broadcast_shapes(held.shape, position.shape)))
        for k, spring in self.springs.items():
            held[..., k] = elastic_joints.spring_torque(spring, position[..., k])
        return self.robot.forward_dynamics(q, qd, held, wrenches)

    def _evaluate(self, function, blocks: Mapping[str, Any], wrenches: Wrenches | None,
                  world_wrenches: Wrenches | None) -> Sequence[np.ndarray]:
        checked = {name: validation.coordinates(name, x, self.joint_names) for name, x in blocks.items()}
        with singularity.nonsingular(lambda: self.robot.mass_matrix(blocks["q"]), self.joint_names):
            *results, felt, alone = self._compiled(function, checked, wrenches, world_wrenches, masses=False)
        singularity.check_nonsingular(felt, alone, self.joint_names)
        validation.results("the springs' motion", results)
        return results

    def _inverse(self, options, q, qd, qdd):
        tau, moved, felt = elastic_joints.inverse_dynamics(self.model, q, qd, qdd, self.springs, **options)
        return tau, moved, felt, self._alone(q)

    def _rates(self, options, q, qd, qdd, qddd):
        *_, felt = elastic_joints.inverse_dynamics(self.model, q, qd, qdd, self.springs, **options)
        rates = elastic_joints.torque_and_rate(self.model, q, qd, qdd, qddd, self.springs, **options)
        return *rates, felt, self._alone(q)

    def _alone(self, q):
        """Inertia that each spring joint moves with all others locked; 1 for driven joints."""
        inertia = locked(self.model, q)[1]
        return [inertia[k] if k in self.springs else 1.0 for k in range(len(inertia))]
