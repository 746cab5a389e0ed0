"""Torques of single samples: along an executed motion, as they are commanded, and how they scale with speed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.joint_dynamics import from_links, joint_dynamics, load_share, to_links, with_motors
from ..errors import InputError, Rejected
from ..model.tree import JointDynamics, Model
from ..robots.results import Dynamics
from ..robots.robot import Robot

DECLARED = "robot_file"  # content of commanded efforts as the robot file declares it


class TorqueStream:
    """Dynamics along one stream of samples: closed loops are tracked from each sample to the next.

    Call with q, qd, qdd, qddd (n,), one sample after the other; returns Dynamics: torques, their rates, and gravity's part.
    Raises RneaError.

    robot, tracker : robot of the stream, and the tracker of its loops, if any
    """

    def __init__(self, robot: Robot, before: TorqueStream | None = None):
        """before: stream of the robot before; if only the payload has changed, its tracker is used on."""
        self.robot = robot
        self.tracker: Any = None
        if not robot.is_fixed_tree:
            last = before.robot if before is not None else None
            same = last is not None and not last.is_fixed_tree and last.loops is robot.loops
            self.tracker = before.tracker if same and before is not None else robot.tracker()

    def __call__(self, *motion: np.ndarray) -> Dynamics:
        if self.tracker is None:
            return self.robot.dynamics(*motion)
        try:
            found: Dynamics = self.tracker.move(self._solver_at(motion))
            return found
        except Rejected as refused:
            raise InputError(refused.detail) from None

    def _solver_at(self, motion: tuple[np.ndarray, ...]) -> Callable[[np.ndarray], tuple[Dynamics, np.ndarray]]:
        """Return the function from a nearby pose to the dynamics of a sample and its closed pose."""
        robot = self.robot
        assert not robot.is_fixed_tree

        def solve(guess: np.ndarray) -> tuple[Dynamics, np.ndarray]:
            return robot.dynamics(*motion, guess=guess), robot.close(motion[0], guess=guess)

        return solve


class CommandedEffort:
    """Efforts as a robot's controller expects them: whole torques without what the controller adds itself.

    Call with the dynamics of a sample and its qd, qdd (n,); returns commanded efforts and their exact rates.

    convention : content and quantity of commanded efforts
    """

    def __init__(self, robot: Robot, contains: str = DECLARED):
        """Use the content that the robot file declares, or another one of CONTENTS.

        Raises InputError where the friction is needed and not known separately.
        """
        model = robot.tree.model
        declared = model.efforts.commanded.of([model.joint_names.index(name) for name in robot.joint_names])
        self.convention = declared if contains == DECLARED else declared._replace(contains=contains)
        self._robot = robot
        if self.convention.needs_friction and not robot.is_fixed_tree:
            raise InputError(f"commanded efforts {self.convention.contains} need a robot without loops, springs and motors on "
                             f"links, whose friction is known separately; '{robot.name}' is a {robot.kind}: use "
                             "total or without_gravity")

    def __call__(self, found: Dynamics, qd: np.ndarray, qdd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        convention, robot = self.convention, self._robot
        if convention.plain:
            return found.tau, found.tau_rate
        needed = convention.needs_friction and robot.is_fixed_tree
        friction, friction_rate = robot.friction(qd, qdd) if needed else (0.0, 0.0)
        return (convention.effort(found.tau, found.gravity, friction),
                convention.effort(found.tau_rate, found.gravity_rate, friction_rate))


class JointSpeedTerms(NamedTuple):
    """Torques (n,) that do not depend on the size of the speed, those proportional to it, and the rate of each."""

    still: np.ndarray
    still_rate: np.ndarray
    viscous: np.ndarray
    viscous_rate: np.ndarray


class JointSpeedSplit:
    """Split of a model's joint dynamics by their dependence on speed, for speed_factor.py.

    At L times the speed viscous friction grows with L, a rotor's torque with L^2 like that of the links, an offset not at all.
    Coulomb friction does not either, once the joint is faster than the smoothing of its sign and than Stribeck's speed; below
    that this is an approximation. Of load-dependent friction the part of gravity's load stays, and the rest grows with L^2.

    Call with qd, qdd, and gravity's part of torques and rates (n,).
    """

    def __init__(self, model: Model):
        self._model = model
        terms = [link.term for link in model.links]
        every = [*terms, *(motor.term for motor in model.coupled_motors)]
        self._viscous = [JointDynamics(viscous=term.viscous, asymmetry=term.asymmetry, smoothing=term.smoothing)
                         for term in every]
        self._still = [replace(term, rotor_inertia=0.0, viscous=0.0, asymmetry=0.0) for term in every]
        self._loaded = [link for link in model.links if link.term.load_dependent]
        self._is_zero = all(term.viscous == term.breakaway == term.offset == term.load_dependent == 0.0 for term in every)

    def __call__(self, qd: np.ndarray, qdd: np.ndarray, gravity: ArrayLike = 0.0,
                 gravity_rate: ArrayLike = 0.0) -> JointSpeedTerms:
        if self._is_zero:
            return JointSpeedTerms(*np.zeros((4, self._model.n)))
        still, still_rate = self._total(self._still, qd, qdd)
        loads, rates = (np.broadcast_to(x, still.shape) for x in (gravity, gravity_rate))
        for link in self._loaded:
            k = link.coordinate
            share, share_rate, size = load_share(link.term, loads[k], qd[k], qdd[k])
            still[k] += share * size
            still_rate[k] += share_rate * size + share * loads[k] * rates[k] / size
        return JointSpeedTerms(still, still_rate, *self._total(self._viscous, qd, qdd))

    def _total(self, terms: list[JointDynamics], qd: np.ndarray, qdd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return torques and rates (n,) of terms of links and coupled motors."""
        speeds, accelerations = to_links(self._model, qd), to_links(self._model, qdd)
        of_links, of_motors = terms[:len(speeds)], terms[len(speeds):]
        pairs = [joint_dynamics(term, v, a, 0.0) for term, v, a in zip(of_links, speeds, accelerations, strict=True)]
        torque, rate = (from_links(self._model, column) for column in zip(*pairs))
        motors = [replace(motor, term=term) for motor, term in zip(self._model.coupled_motors, of_motors, strict=True)]
        torque, rate = with_motors(motors, torque, rate, qd, qdd, np.zeros_like(qd))
        return np.array(torque), np.array(rate)
