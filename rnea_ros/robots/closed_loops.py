"""ClosedLoopRobot: a robot with closed kinematic loops, seen from its motors.

Khalil, "Dynamic modeling of robots using recursive Newton-Euler techniques", section 4: a Robot for the spanning tree, whose
torques are projected on the active joints. Beyond the paper: the rates of these torques, along the motion.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Array
from ..algorithms import closed_loops
from ..algorithms.kinematics import Pose
from ..errors import InputError, summary
from ..model import drive_limits
from ..model.drive_limits import DriveLimit
from ..model.robot_file.robot_file import Source
from ..model.tree import Limits
from .closure import loops as declared_loops
from .closure.following import FollowedMotion
from .closure.loop_closure import LoopClosure
from .closure.loop_equations import LoopMotion
from .closure.loops import Loops
from .closure.tracking import TOLERANCE, LoopTracker
from .derivatives import JointWrenches, RateSensitivities, TorqueSensitivities
from .energy import CenterOfMass, Energy
from .inputs import validation
from .inputs.validation import Wrenches, added_loads
from .kernels import singularity
from .robot import Dynamics, Robot


class ClosedLoopRobot:
    """Dynamics of a robot with loops, seen from its motors: q, qd .. tau are those of the active joints, in `joint_names`.

    tree  : the Robot that is left when the loops are cut; its friction, rotor inertias and payloads all count
    loops : the cut and active joints: path of a robot file with the section `loops`, or its content; see closure/loops.py

    A mechanism can often be closed in several ways. Which one is meant follows from `guess`, a pose (n,) of all joints near
    a closed one (default: `start`): the loops are followed from there to the pose asked for, and in a motion from sample
    to sample, never through a singular pose. The object does not change, so an answer does not depend on earlier ones.
    Loads act BY the environment ON links of the tree, as in Robot.torque_and_rate.
    """

    __repr__ = summary

    order = 3  # derivatives of q that the torque rate needs

    def __init__(self, tree: Robot, loops: Source):
        if tree.model.base != "fixed":
            raise InputError(f"robot '{tree.name}' has a free base: GeneralRobot moves it, base='fixed' holds it")
        validation.only_plain_joints(tree.model, "robot with loops")
        self.tree = tree
        self._closure = LoopClosure(tree.model, declared_loops.read(loops, type(self).__name__, tree.model), tree.backend)

    @property
    def name(self) -> str:
        """Of the robot, as the URDF has it."""
        return self.tree.name

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the active joints, the order of every array; `tree.joint_names` are those of all."""
        return self._closure.active_joints

    @property
    def joint_types(self) -> tuple[str, ...]:
        """revolute, continuous or prismatic, in the order of joint_names."""
        return tuple(self.tree.joint_types[k] for k in self._closure.active)

    @property
    def n(self) -> int:
        """Number of active joints, N."""
        return len(self._closure.active)

    @property
    def limits(self) -> Limits:
        """Of the active joints, NaN where unknown."""
        return self.tree.limits.of(self._closure.active)

    @property
    def drive_limits(self) -> tuple[DriveLimit, ...]:
        """Of the active joints' drives and supplies, as the robot file says; nothing drives the others."""
        return drive_limits.of(self.tree.drive_limits, self._closure.active)

    @property
    def passive_joints(self) -> tuple[str, ...]:
        """Joints without a motor, whose motion follows from the loops."""
        return tuple(self.tree.joint_names[k] for k in self._closure.passive)

    @property
    def loops(self) -> Loops:
        """The cut and active joints, in numbers of the tree."""
        return self._closure.loops

    @property
    def start(self) -> Array:
        """A closed pose of all n joints of the tree."""
        return self._closure.start

    def with_payload(self, link: str, mass: float, com: ArrayLike = (0.0, 0.0, 0.0),
                     inertia: ArrayLike | None = None) -> ClosedLoopRobot:
        """The same machine carrying a rigid body, as Robot.with_payload."""
        return self.with_tree(self.tree.with_payload(link, mass, com, inertia))

    def with_tree(self, tree: Robot) -> ClosedLoopRobot:
        """The same loops of a tree of the same joints and frames: with another payload, with other joint dynamics."""
        return self.on(tree, self._closure)

    @classmethod
    def on(cls, tree: Robot, closure: LoopClosure) -> ClosedLoopRobot:
        """Return loops that are read already, on a tree with a fixed base."""
        robot = object.__new__(cls)
        robot.tree, robot._closure = tree, closure
        return robot

    def close(self, q: ArrayLike, *, guess: ArrayLike | None = None) -> Array:
        """Positions of all joints of the tree, (n,) or (samples, n), at positions q of the active ones.

        Raises InputError at singular poses and at poses out of reach, naming the loop, its gap and the condition number.
        """
        positions = validation.coordinates("q", q, self.joint_names)
        near = validation.guess(guess, self.tree.n)
        pose = self.start if near is None else near
        if positions.ndim == 1:
            return self._closure.close(positions, pose)
        poses = []
        for k, sample in enumerate(positions):
            with validation.at_sample(k):
                pose = self._closure.close(sample, pose)
            poses.append(pose)
        return np.array(poses).reshape(len(positions), self.tree.n)

    def motion(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *,
               guess: ArrayLike | None = None) -> LoopMotion:
        """Positions, velocities, accelerations and jerks of all joints of the tree, G (56) and its rate."""
        rates = [validation.coordinates(name, value, self.joint_names)
                 for name, value in zip(("qd", "qdd", "qddd"), (qd, qdd, qddd), strict=True)]
        poses = self.close(q, guess=guess)
        count = validation.samples([poses, *rates])
        if count is None:
            return self._closure.motion(poses, *rates)
        rows = zip(*(np.broadcast_to(part, (count, part.shape[-1])) for part in (poses, *rates)), strict=True)
        samples = []
        for k, row in enumerate(rows):
            with validation.at_sample(k):
                samples.append(self._closure.motion(*row))
        return validation.stacked(LoopMotion, samples, self._example)

    def _example(self) -> LoopMotion:
        return self._closure.motion(self.start, *np.zeros((3, self.n)))

    def tracker(self, tolerance: float = TOLERANCE) -> LoopTracker:
        """What follows the loops along one stream of samples, each from the last, and compares them with sensors.

        tolerance: by how much a passive joint may differ from its sensor [rad, or shares of the machine's unit of length]
        """
        return LoopTracker(self._closure, tolerance)

    def _still(self, q: ArrayLike, guess: ArrayLike | None) -> LoopMotion:
        return self._moving(q, validation.zeros_like("q", q), guess)

    def _moving(self, q: ArrayLike, qd: ArrayLike, guess: ArrayLike | None) -> LoopMotion:
        """With accelerations and jerks of the active joints at zero."""
        zero = validation.zeros_like("q", q)
        return self.motion(q, qd, zero, zero, guess=guess)

    @classmethod
    def from_urdf(cls, source: str | bytes | os.PathLike[str], loops: Source, **options: Any) -> ClosedLoopRobot:
        """From the URDF of the spanning tree and the declaration of its loops; options as in Robot.from_urdf."""
        return cls(Robot.from_urdf(source, **options), loops)

    def link_pose(self, link: str, q: ArrayLike, point: ArrayLike | None = None, *, guess: ArrayLike | None = None) -> Pose:
        """R (3, 3) and p (3,), or (samples, ...) each, of the link's frame in the root link's; origin at the point, if given.

        link_kinematics.py has the convention; links are those of the tree. Poses in closed loops are found from `guess`.
        """
        return self.tree.link_pose(link, self.close(q, guess=guess), point)

    def link_velocity(self, link: str, q: ArrayLike, qd: ArrayLike, point: ArrayLike | None = None, *,
                      guess: ArrayLike | None = None) -> Array:
        """(6,) or (samples, 6): velocity of the point, angular velocity, along the root link's axes [m/s, rad/s]."""
        motion = self._moving(q, qd, guess)
        return self.tree.link_velocity(link, motion.q, motion.qd, point)

    def jacobian(self, link: str, q: ArrayLike, point: ArrayLike | None = None, *, guess: ArrayLike | None = None) -> Array:
        """(6, N) or (samples, 6, N): link_velocity = jacobian @ qd; the passive joints move along, by G of (56)."""
        motion = self._still(q, guess)
        return np.asarray(self.tree.jacobian(link, motion.q, point) @ motion.G)

    def jacobian_rate(self, link: str, q: ArrayLike, qd: ArrayLike, point: ArrayLike | None = None, *,
                      guess: ArrayLike | None = None) -> Array:
        """(6, N) or (samples, 6, N): time derivative of `jacobian` along the motion."""
        motion = self._moving(q, qd, guess)
        J, Jd = self.tree.jacobian(link, motion.q, point), self.tree.jacobian_rate(link, motion.q, motion.qd, point)
        return closed_loops.active_jacobian_rate(motion.G, motion.Gd, J, Jd)

    def torque_and_rate(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *, guess: ArrayLike | None = None,
                        wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                        world_wrenches: Wrenches | None = None) -> tuple[Array, Array]:
        """Torques of the active joints, (55)-(57), and their exact time derivatives along the motion."""
        motion = self.motion(q, qd, qdd, qddd, guess=guess)
        tau, tau_rate = self.tree.torque_and_rate(*motion[:4], wrenches=wrenches, wrench_rates=wrench_rates,
                                                  world_wrenches=world_wrenches)
        return closed_loops.active_torque(motion.G, motion.Gd, tau, tau_rate)

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, guess: ArrayLike | None = None,
                         wrenches: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> Array:
        """Torques of the active joints, (55)."""
        motion = self.motion(q, qd, qdd, validation.zeros_like("q", q), guess=guess)
        tau = self.tree.inverse_dynamics(*motion[:3], wrenches=wrenches, world_wrenches=world_wrenches)
        return closed_loops.active_torque(motion.G, motion.Gd, tau, tau)[0]

    def dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *, guess: ArrayLike | None = None,
                 wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                 world_wrenches: Wrenches | None = None) -> Dynamics:
        """Torques, rates, and of both the share of gravity."""
        motion = self.motion(q, qd, qdd, qddd, guess=guess)
        return self.along(motion, wrenches=wrenches, wrench_rates=wrench_rates, world_wrenches=world_wrenches)

    def along(self, motion: LoopMotion, *, wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
              world_wrenches: Wrenches | None = None) -> Dynamics:
        """`dynamics` of a motion whose loops are closed already, as `motion` or a tracker gives it."""
        tau, tau_rate, gravity, gravity_rate = self.tree.dynamics(*motion[:4], wrenches=wrenches, wrench_rates=wrench_rates,
                                                                    world_wrenches=world_wrenches)
        return Dynamics(*closed_loops.active_torque(motion.G, motion.Gd, tau, tau_rate),
                        *closed_loops.active_torque(motion.G, motion.Gd, gravity, gravity_rate))

    def bias(self, q: ArrayLike, qd: ArrayLike, *, guess: ArrayLike | None = None, wrenches: Wrenches | None = None,
             world_wrenches: Wrenches | None = None) -> Array:
        """H_c of (58): torques at zero acceleration of the active joints."""
        return self.inverse_dynamics(q, qd, validation.zeros_like("q", q), guess=guess, wrenches=wrenches,
                                     world_wrenches=world_wrenches)

    def gravity(self, q: ArrayLike, *, guess: ArrayLike | None = None) -> Array:
        """Torques of the active joints that hold the machine still against gravity alone."""
        motion = self._still(q, guess)
        tau = self.tree.gravity(motion.q)
        return closed_loops.active_torque(motion.G, motion.Gd, tau, tau)[0]

    def mass_matrix(self, q: ArrayLike, *, guess: ArrayLike | None = None) -> Array:
        """A_c of (58), (N, N) or (samples, N, N)."""
        motion = self._still(q, guess)
        return closed_loops.active_mass_matrix(motion.G, self.tree.mass_matrix(motion.q))

    def coriolis(self, q: ArrayLike, qd: ArrayLike, *, guess: ArrayLike | None = None) -> Array:
        """C (N, N) or (samples, N, N): C qd are the velocity torques of the active joints without friction, d A_c / dt - 2 C
        is skew. With friction, bias - gravity is C qd and the friction of all joints, as the active ones carry it."""
        motion = self._moving(q, qd, guess)
        return closed_loops.active_coriolis(motion.G, motion.Gd, self.tree.mass_matrix(motion.q),
                                            self.tree.coriolis(motion.q, motion.qd))

    def energy(self, q: ArrayLike, qd: ArrayLike, *, guess: ArrayLike | None = None) -> Energy:
        """Kinetic and potential energy of the tree as the loops move it."""
        return self.tree.energy(*self._moving(q, qd, guess)[:2])

    def center_of_mass(self, q: ArrayLike, qd: ArrayLike, *, guess: ArrayLike | None = None) -> CenterOfMass:
        """Mass centre, its velocity, and the momentum about it."""
        return self.tree.center_of_mass(*self._moving(q, qd, guess)[:2])

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, *, guess: ArrayLike | None = None,
                         wrenches: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> Array:
        """Accelerations of the active joints under their torques: solves (58), A_c qdd = tau - H_c."""
        given = validation.coordinates("tau", tau, self.joint_names)
        H = self.bias(q, qd, guess=guess, wrenches=wrenches, world_wrenches=world_wrenches)
        validation.samples([given, H])  # refuses different numbers of samples
        return singularity.accelerations(self.mass_matrix(q, guess=guess), given - H, self.joint_names)

    def sensitivities(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, guess: ArrayLike | None = None,
                      wrenches: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> TorqueSensitivities:
        """Partial derivatives (N, N) of the torques by q, qd and qdd of the active joints; the last is the mass matrix."""
        motion = self.motion(q, qd, qdd, validation.zeros_like("q", q), guess=guess)
        tau, tables = (ask(*motion[:3], wrenches=wrenches, world_wrenches=world_wrenches)
                       for ask in (self.tree.inverse_dynamics, self.tree.sensitivities))
        along = self._followed(motion)
        return TorqueSensitivities(*closed_loops.active_sensitivities(along.G, along.H, tau, tables))

    def rate_sensitivities(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *,
                           guess: ArrayLike | None = None, wrenches: Wrenches | None = None,
                           wrench_rates: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> RateSensitivities:
        """Partial derivatives (N, N) of the torque rates by q, qd, qdd and qddd of the active joints."""
        motion = self.motion(q, qd, qdd, qddd, guess=guess)
        steady: dict[str, Any] = {"wrenches": wrenches, "world_wrenches": world_wrenches}
        torques, rate_tables = (ask(*motion[:4], wrench_rates=wrench_rates, **steady)
                                for ask in (self.tree.torque_and_rate, self.tree.rate_sensitivities))
        tables, along = self.tree.sensitivities(*motion[:3], **steady), self._followed(motion)
        changing = along.G, along.H, along.Hd
        return RateSensitivities(*closed_loops.active_rate_sensitivities(changing, torques, tables, rate_tables))

    def _followed(self, motion: LoopMotion) -> FollowedMotion:
        return self._closure.followed(motion.q, *(rate[..., self._closure.active] for rate in motion[1:4]))

    def joint_wrenches(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike | None = None, *,
                       guess: ArrayLike | None = None, wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                       world_wrenches: Wrenches | None = None) -> JointWrenches:
        """Internal force and moment of every joint of the tree and, where the jerk qddd is given, their rates.

        What the cut joints exert acts on the open tree as loads do.
        InputError where the cut joints hold more than the motion needs, as those of planar loops in space often do.
        """
        motion = self.motion(q, qd, qdd, validation.zeros_like("q", q) if qddd is None else qddd, guess=guess)
        torques = self.tree.torque_and_rate(*motion[:4], wrenches=wrenches, wrench_rates=wrench_rates,
                                            world_wrenches=world_wrenches)
        reactions, rates = self._closure.reactions(motion.q, motion.qd, *torques)
        return self.tree.joint_wrenches(*motion[:3 if qddd is None else 4], wrenches=added_loads(wrenches, reactions),
                                        wrench_rates=added_loads(wrench_rates, rates), world_wrenches=world_wrenches)
