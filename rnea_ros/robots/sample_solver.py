"""Solution of one sample of a robot by the stages of solution.py, for each use of its equations.

Uses: inverse dynamics; the same with the motion of the base given ("carried"); both with the measured motion of motors behind
springs; forward dynamics.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from ..algebra.vectors import Array
from ..algorithms.equations import BASE
from ..algorithms.kinematics import Pose, base_poses
from ..errors import InputError, some
from .closure.loop_closure import LoopClosure
from .inputs.base_state import BaseState
from .inputs.conditions import Conditions, Loads, unified
from .program import FORWARD
from .roles import DeclaredRoles
from .solution import Situation, Solution, Solver, named
from .structure import Roles, Structure, contact_poses, decided
from .tree import TreeDynamics

INVERSE, CARRIED = "inverse", "carried"
MEASURED = {INVERSE: "measured motors", CARRIED: "carried, measured motors"}  # the same with motors behind springs given


@dataclass(frozen=True, eq=False)
class SolverSample:
    """Solved sample: all derivatives Y (orders, size) of solution.py, and the inputs that decide them."""

    use: str
    structure: Structure
    stages: int
    Y: Array
    situation: Situation
    open_multipliers: tuple[str, ...] | None  # None where they were not asked for

    @property
    def pose(self) -> Array:
        """Positions of all joints of the tree."""
        return self.Y[0, self.structure.equations.joints]


class SampleSolver:
    """Equations of one robot for each use, and their solution at one sample.

    names: joints in the columns of q; carriers: numbers of the links with payloads, which are inputs of all kernels
    """

    def __init__(self, roles: DeclaredRoles, tree: TreeDynamics, names: Sequence[str], closure: LoopClosure | None,
                 carriers: Sequence[int] = ()):
        self._robot, self._roles, self._tree, self._model = tree.name, roles, tree, unified(tree.model, roles.rotors)
        self._names, self._closure, self._carriers, self._payloads = tuple(names), closure, tuple(carriers), np.zeros(0)
        self._solvers: dict[str, Solver] = {}
        self._of_any_payload: dict[str, Solver] = {}
        self._known: dict[str, tuple[Array, Array]] = {}

    def carrying(self, payloads: Array) -> SampleSolver:
        """Return the same equations with other payloads, ten numbers for each carrier. Kernels are shared."""
        twin: SampleSolver = copy(self)
        twin._payloads, twin._solvers = payloads, {}
        return twin

    def solver(self, use: str) -> Solver:
        """Return the equations for a use, with their structure."""
        if use not in self._solvers:
            self._solvers[use] = self._of_payload(use).carrying(self._payloads)
        return self._solvers[use]

    def _of_payload(self, use: str) -> Solver:
        """Return the equations whose kernels serve any payload of the carriers."""
        if use not in self._of_any_payload:
            carried, measured = use in (CARRIED, MEASURED[CARRIED]), use in MEASURED.values()
            equations = self._roles.equations(self._model, self._tree.gravity_vector, carried, measured, self._carriers)
            joints = self._roles
            state = [name for name in joints.state if name not in joints.posed]
            given, posed = list(joints.given), list(joints.posed)
            if measured:
                given += [f"motor of {name}" for name in equations.elastic_joints]
            if carried:
                given += BASE
            elif self._model.base == "floating":
                state += [name for name in BASE if name not in posed]
            if use == FORWARD:
                state += [*given, *(f"motor of {name}" for name in equations.elastic_joints)]
                given = []
            roles = Roles.of(given, state, posed, joints.follows, use == FORWARD,
                             joints.charts(self._model))
            poses = self._closure.trials if self._closure else joints.trials
            self._of_any_payload[use] = Solver(equations, decided(equations, roles, self._roles.where, poses),
                                               self._tree.backend)
        return self._of_any_payload[use]

    def inputs(self, use: str) -> tuple[Array, Array]:
        """Return the coordinate of each column, and how many of its derivatives are inputs, from order 0."""
        if use not in self._known:
            roles, names = self.solver(use).structure.roles, self.solver(use).equations.coordinates
            known = [np.inf if name in roles.given else 2.0 if name in roles.state else 1.0 for name in self._names]
            self._known[use] = np.array([names.index(name) for name in self._names], dtype=int), np.array(known)
        return self._known[use]

    def situation(self, base: BaseState | None, pose: Array, loads: Loads | None) -> Situation:
        """Return pose of the base, contacts and loads of a sample whose joints are at `pose` (tree.n,)."""
        found = Situation() if base is None else Situation(base.rotation, base.position)
        if self._roles.contacts:
            poses = base_poses(self._model, pose, Pose(found.R, found.p))
            found.anchors = contact_poses(self.solver(INVERSE).equations, poses)
        if loads is not None:
            found.wrenches = {link: np.array(orders) for link, orders in loads.on_links(self._model).items()}
            found.world_wrenches = [(frame.link, frame.P, six) for frame, six in loads.in_world(self._model)]
        return found

    def solve(self, use: str, stages: int, motion: Sequence[Array], pose: Array, situation: Situation,
              given: Conditions) -> SolverSample:
        """Return the solution of one sample. pose: (tree.n,) positions of all joints, loops closed."""
        solver = self.solver(use)
        equations, structure = solver.equations, solver.structure
        length = stages + int(structure.c.max(initial=0)) + 3
        Y = np.zeros((length, equations.size))
        Y[0, equations.joints] = pose
        indices, known = self.inputs(use)
        roles = structure.roles
        for k, array in enumerate(motion[1:length], start=1):
            Y[k, indices] = np.where(known > k, array, 0.0)
        if given.base is not None:
            Y[1, :6] = [0.0 if name in self._roles.posed else value  # else the velocity follows
                        for name, value in zip(BASE, given.base.velocity, strict=True)]
            if use in (CARRIED, MEASURED[CARRIED]):
                rates, needed = given.base.velocity_rates(), structure.order_for(stages) - 1
                if len(rates) < needed:
                    raise InputError(f"{len(rates)} rates of the base's velocity are given; {needed} decide the result for "
                                     f"robot '{self._robot}', whose elastic joints are on a moving base: give "
                                     f"BaseState(..., rates=...), ({needed}, 6)")
                Y[2:2 + len(rates), :6] = rates[:length - 2]
        undecided = [name for name in roles.state if name.startswith("motor of ")]
        if given.motors is None and undecided:
            raise InputError(f"the position of {some(sorted(undecided))} does not follow from the motion of the joints: "
                             "its rotor pushes on a free base or on what its own spring moves: give motors=MotorState(q, qd), "
                             f"a column for each of {some(equations.elastic_joints)}")
        if given.motors is not None:
            if given.motors.qdd is None and not undecided:
                raise InputError("motors is given, but the motion of motors follows from that of the joints: leave it out, or "
                                 "give MotorState(q, qd, qdd, qddd) where the motors are measured")
            Y[:len(given.motors.known), equations.joints.stop:len(equations.coordinates)] = given.motors.known
        if given.tau is not None:
            by_name = dict(zip(self._names, given.tau, strict=True))
            Y[0, equations.parts["tau"]] = [by_name.get(name.removeprefix("motor of "), 0.0) for name in equations.actuated]
        Y, open_ = solver.solve(Y, situation, stages)
        return SolverSample(use, structure, stages, Y, situation, open_)

    def named(self, use: str, stages: int, samples: Sequence[SolverSample] | SolverSample) -> Solution:
        """Return the solution of one sample or of many by name; without multipliers if the program left those out that
        others imply.
        """
        several = [samples] if isinstance(samples, SolverSample) else samples
        structure = self.solver(use).structure
        length = stages + int(structure.c.max(initial=0)) + 3
        Y = np.array([one.Y[:length] for one in several]).reshape(len(several), length, structure.equations.size)
        if isinstance(samples, SolverSample):
            Y = Y[0]
        open_ = dict.fromkeys(name for one in several for name in one.open_multipliers or ())
        found = named(structure, Y, stages, np.zeros((0, 0)), tuple(open_),
                      all(one.open_multipliers is not None for one in several))
        torques = [self._torques(found, order, Y.shape[:-2]) for order in range(stages)]
        return replace(found, torques=np.stack(torques, axis=-2))

    def _torques(self, found: Solution, order: int, shape: tuple[int, ...]) -> Array:
        """Efforts (n,) or (samples, n) of motors and springs, or their rates of an order; shape: () or (samples,)."""
        springs = {self._tree.joint_names[spring.coordinate]: spring for spring in self._roles.springs}
        elastic = self.solver(INVERSE).equations.elastic_joints
        values = np.zeros((*shape, len(self._names)))
        for k, name in enumerate(self._names):
            if name in self._roles.actuated:
                values[..., k] = found.efforts[f"motor of {name}" if name in elastic else name][..., order]
            elif name in springs:
                x, spring = found.positions[name], springs[name]
                deflection = x[..., order] - (spring.rest if order == 0 else 0.0)
                values[..., k] = -spring.stiffness * deflection - spring.damping * x[..., order + 1]
        return values

    def energy(self, x: Array, v: Array, situation: Situation) -> Array:
        """Return kinetic energy, and potential energy of gravity and springs [J], at positions and velocities of all
        coordinates.
        """
        solver, g = self.solver(INVERSE), self._tree.gravity_vector
        b, model = solver.equations.base, solver.equations.carrying(self._payloads).model
        poses = base_poses(model, x[solver.equations.joints], Pose(situation.R, situation.p))
        weight = sum(g @ (link.m * pose.p + pose.R @ link.ms) for link, pose in zip(model.links, poses, strict=True))
        weight -= sum(body.displaced * (g @ (poses[body.link].p + poses[body.link].R @ body.P)) for body in self._roles.fluid)
        stored = sum(0.5 * spring.stiffness * (x[b + spring.coordinate] - spring.rest)**2 for spring in self._roles.springs)
        for k, motor in enumerate(motor for motor in self._roles.motors if motor.stiffness < np.inf):
            stored += 0.5 * motor.stiffness * (x[b + model.n + k] - x[b + motor.coordinate])**2
        return np.array([0.5 * v @ solver.mass_matrix(x) @ v, stored - weight])

    def torque_rows(self, use: str) -> Array:
        """Return E (2, n, unknowns): torques are E[0] y + E[1] y' of the unknowns y and their rates, less what is constant."""
        equations = self.solver(use).equations
        springs = {equations.model.joint_names[spring.coordinate]: spring for spring in self._roles.springs}
        found = np.zeros((2, len(self._names), equations.size))
        for row, name in enumerate(self._names):
            motor = f"motor of {name}" if name in equations.elastic_joints else name
            if motor in equations.actuated:
                found[0, row, equations.parts["tau"].start + equations.actuated.index(motor)] = 1.0
            elif name in springs:
                found[:, row, equations.coordinates.index(name)] = -springs[name].stiffness, -springs[name].damping
        return found
