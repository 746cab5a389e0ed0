"""Solution of one sample or of many by the compiled programs of a robot, and, where these are unreliable, stage by stage.

A call is served in three steps. The program of the last call with the same inputs is tried at once; else inputs are checked
and a program is compiled (program.py); samples that it judges unreliable are solved by SampleSolver with the stages of
solution.py, which refuses by name what is not determined.

Uses of the equations: inverse dynamics; the same with the motion of the base given ("carried"); both with the measured motion
of motors behind springs; forward dynamics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.taylor import derivative, jets
from ..algebra.vectors import Array
from ..algorithms.equations import BASE, EquationsOfMotion, Rates
from ..algorithms.kinematics import Pose, base_poses
from ..codegen import kernel
from ..codegen.kernel import Kernel
from ..errors import InputError, some
from . import validation
from .base_state import BaseState, given
from .closure import LoopClosure
from .conditions import Conditions, Loads, MotorState, checked_loads, checked_motors, sampled, unified
from .program import CLOSING, FORWARD, GRAVITY, Inputs, RobotProgram, UnsuitedError
from .roles import DeclaredRoles
from .solution import Situation, Solution, Solver, named
from .structure import Roles, Structure, contact_poses, decided
from .tree import TreeDynamics

# ------------------------------------------------------------------ one sample


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


# ------------------------------------------------------------------ calls


FEW = 16  # samples that the program is given at once while it may be unreliable
Results = tuple[Array, Array, Array, Array]  # torques, rates, all derivatives, positions of all joints


class MotionSolver:
    """Equations of one robot for each use, compiled when they are first needed. Arguments are those of Robot.

    tree, roles : links and joints, and what the robot file declares of them; closure: of the loops, if there are any
    carried     : whether the base's motion is given
    joint_names : columns of q; columns: their numbers in the tree; start: closed pose (tree.n,)
    is_bare     : whether nothing but a moving base is declared; the tree serves some calls then
    """

    def __init__(self, tree: TreeDynamics, roles: DeclaredRoles, closure: LoopClosure | None, carried: bool, is_bare: bool):
        self.name, self.tree, self.roles, self.is_bare = tree.name, tree, roles, is_bare
        self.has_moving_base = tree.model.base == "floating"
        self._carried = self.has_moving_base and (carried or bool(roles.contacts))
        self.joint_names = tuple(name for name in tree.joint_names if name in {*roles.actuated, *roles.state})
        self.n, self.columns = len(self.joint_names), [tree.joint_names.index(name) for name in self.joint_names]
        self.closure, self.start = closure, closure.start if closure else np.zeros(tree.n)
        carriers = [tree.payloads[link].link_number for link in sorted(tree.payloads)]
        self.samples = SampleSolver(roles, tree, self.joint_names, self.closure, carriers)
        self._payloads = np.zeros(0)
        self._follows_guess = roles.weights is None  # else sensors of redundant motors choose the branch
        self._programs: dict[Any, RobotProgram | None] = {}  # by what is given
        self._compiled: dict[Inputs, RobotProgram | None] = {}
        self._of_any_payload: dict[Inputs, RobotProgram | None] = {}

    def carrying(self, tree: TreeDynamics) -> MotionSolver:
        """Return the solver of the same tree with other payloads on the same links. Kernels are shared."""
        if not tree.payloads:
            return self
        twin: MotionSolver = copy(self)
        twin.tree, twin.motor_loads = tree, self.motor_loads
        twin._payloads = np.concatenate([tree.payloads[link].parameters for link in sorted(tree.payloads)])
        twin.samples, twin._programs, twin._compiled = self.samples.carrying(twin._payloads), {}, {}
        return twin

    # ------------------------------------------------------------------ equations

    @property
    def use(self) -> str:
        """Use of the equations for motions without rates of the base."""
        return CARRIED if self._carried else INVERSE

    def structure(self, use: str) -> Structure:
        """Return offsets and unknowns for a use."""
        return self.samples.solver(use).structure

    def loaded_structure(self, use: str) -> Structure:
        """Return the structure of the equations whose links carry the payloads; kernels take them as inputs instead."""
        return self.structure(use).carrying(self._payloads)

    def equations(self, use: str = INVERSE) -> EquationsOfMotion:
        """Return the equations for a use."""
        return self.samples.solver(use).equations

    @cached_property
    def motor_loads(self) -> MotorLoads:
        """Motion and loads of the motors, from solutions."""
        return MotorLoads(self.equations(), self.joint_names, self.tree.backend)

    def use_of(self, given: Conditions) -> str:
        """Return the use that the conditions ask for."""
        if given.tau is not None:
            return FORWARD
        moved = given.base is not None and given.base.is_given
        use = CARRIED if self._carried or (moved and self.has_moving_base) else INVERSE
        return MEASURED[use] if given.motors is not None and given.motors.qdd is not None else use

    # ------------------------------------------------------------------ programs

    def program(self, use: str, stages: int, given: Conditions, tangent: int = 0) -> RobotProgram | None:
        """Return the compiled program for these conditions, None where elimination does not fit or the conditions do not."""
        structure, rates = self.structure(use), None if given.base is None else given.base.rates
        few = use in (CARRIED, MEASURED[CARRIED]) and (2 if rates is None else rates.shape[-2])
        if stages > 2 or structure.massless or (few and few < structure.order_for(stages) - 1):
            return None
        derivatives = 1 if use == FORWARD else max(3, structure.order)
        wrenches, wrench_rates, world_wrenches = ((), (), ()) if given.loads is None else given.loads.links
        program = self.program_of(Inputs(use, derivatives, 0 if rates is None else structure.order - 1, wrenches, wrench_rates,
                                         world_wrenches, tangent))
        known = 0 if given.motors is None else len(given.motors.known)
        return program if program is None or len(program.motors) == known else None

    def plain_program(self, use: str) -> RobotProgram | None:
        """Return the compiled program of a use without loads; of elastic joints on a carried base by rates."""
        if use == GRAVITY:
            return self.program_of(Inputs(GRAVITY, 1))
        structure = self.structure(use)
        rates = structure.order - 1 if use in (CARRIED, MEASURED[CARRIED]) and structure.order > 3 else 0
        inputs = Inputs(use, 1 if use == FORWARD else max(3, structure.order), rates)
        return None if structure.massless else self.program_of(inputs)

    def program_of(self, inputs: Inputs) -> RobotProgram | None:
        """Return the compiled program for these inputs, None where elimination does not fit."""
        if inputs not in self._compiled:
            program = self._program(inputs)
            self._compiled[inputs] = None if program is None else program.carrying(self._payloads)
        return self._compiled[inputs]

    def _program(self, inputs: Inputs) -> RobotProgram | None:
        """Return the program that serves any payload of the carriers."""
        if inputs not in self._of_any_payload:
            use = INVERSE if inputs.use in (GRAVITY, CLOSING) else inputs.use
            known = self.samples.inputs(use)[1].tolist()
            try:
                self._of_any_payload[inputs] = RobotProgram(self.structure(use), self.roles, self.closure, inputs,
                                                            self.joint_names, known, self.start, self.tree.backend)
            except UnsuitedError:
                self._of_any_payload[inputs] = None
        return self._of_any_payload[inputs]

    @staticmethod
    def _key(stages: int, motion: Sequence[Any], given: Conditions) -> tuple[Any, ...]:
        """Return the key of a program."""
        base, loads, motors, tau = given
        return (stages, len(motion), None if base is None else isinstance(base, BaseState) and (
                    base.acceleration is None, base.jerk is None, base.rates is None or base.rates.shape[-2:-1]),
                None if loads is None else isinstance(loads, Loads) and loads.links,
                None if motors is None else isinstance(motors, MotorState) and len(motors.known), tau is None)

    def _trusted(self, program: RobotProgram, motion: Sequence[Array], guess: Array | None, given: Conditions) -> Any:
        """Return the result of the program, from a guess that may be far away; None if it is unreliable."""
        near = guess is not None or self._follows_guess
        for far in (False, True) if near else (True,):
            pose = self.closed(motion[0], guess) if far else guess
            found = program.call(*map(np.ascontiguousarray, program.blocks(motion, pose, given)))
            if found is not None and found[2].item() <= 1.0:
                return found
        return None

    # ------------------------------------------------------------------ poses

    def close(self, q: ArrayLike, guess: ArrayLike | None) -> Array:
        """Return the positions of all joints of the tree, (tree.n,) or (samples, tree.n), on closed loops."""
        positions = validation.coordinates("q", q, self.joint_names)
        near = validation.guess(guess, self.tree.n)
        if self.closure is None:
            pose = np.tile(self.start if near is None else near, (*positions.shape[:-1], 1))
            pose[..., self.columns] = positions
            return pose
        if positions.ndim == 1:
            return self.closed(positions, near)
        found, k = np.zeros((len(positions), self.tree.n)), 0
        program = self.program_of(Inputs(CLOSING, 0))
        while k < len(positions):
            if program is not None and (near is not None or self._follows_guess):
                closed = program.close(positions[k:], self.start if near is None else near)
                found[k:k + len(closed)] = closed
                k, near = k + len(closed), closed[-1] if len(closed) else near
            if k < len(positions):
                with validation.at_sample(k):
                    found[k] = near = self.closed(positions[k], near)
                k += 1
        return found

    def closed(self, q: Array, guess: Array | None) -> Array:
        """Return the positions of all joints of one sample."""
        pose = np.array(self.start if guess is None else guess)
        if self.closure is None:
            pose[self.columns] = q
            return pose
        if guess is not None or self._follows_guess:
            program = self.program_of(Inputs(CLOSING, 0))
            closed = None if program is None else program.close(q[None], pose)
            if closed is not None and len(closed):
                return np.array(closed[0])
        independent = q[[self.joint_names.index(name) for name in self.closure.active_joints]]
        if guess is None and not self._follows_guess:
            pose[self.columns] = q
        with validation.overflow_ignored():
            return self.closure.close(independent, pose)

    # ------------------------------------------------------------------ calls

    def efforts(self, stages: int, motion: Sequence[Any], guess: Any, given: Conditions) -> tuple[Array, Array]:
        """Return torques and rates, (n,) or (samples, n); the rates have no meaning if stages is 1.

        With torques tau among the conditions: the accelerations instead of torques
        """
        key = self._key(stages, motion, given)
        program = self._programs.get(key)
        if program is not None and (guess is not None or self._follows_guess):
            found = program.call(*program.blocks(motion, guess, given))
            if found is not None and found[2].item() <= 1.0:
                return found[0], found[1]
        results = self._solutions(stages, motion, guess, given)
        if key not in self._programs:
            self._programs[key] = self.program(self.use_of(given), stages, given)
        return results[0], results[1]

    def solve(self, derivatives: Sequence[ArrayLike], stages: int, guess: Any, multipliers: bool,
              given: Conditions) -> Solution:
        """Return the solution of a motion, see Robot.solve."""
        key = self._key(stages, derivatives, given)

        def suits(program: RobotProgram | None) -> TypeGuard[RobotProgram]:
            return program is not None and len(derivatives) <= program.inputs.derivatives + 1 and not (
                program.structure.spare and multipliers)

        program = self._programs.get(key)
        if suits(program) and (guess is not None or self._follows_guess):
            found = program.call(*program.blocks(derivatives, guess, given))
            if found is not None and found[2].item() <= 1.0:
                return program.solution(found[0], found[1], found[3], stages)
        use, arrays, near, count, sampled_at = self.checked(stages, derivatives, guess, given)
        if key not in self._programs:
            self._programs[key] = self.program(use, stages, given)
        program = self._programs[key]
        if count is None:
            return self.samples.named(use, stages, self.sample(use, stages, arrays, near, sampled_at(0), multipliers))
        if suits(program):
            torques, rates, Y = self._solutions(stages, derivatives, guess, given, derivatives=True)
            return program.solution(torques, rates, Y, stages)
        samples = self.solved(stages, derivatives, guess, given, multipliers=multipliers)
        return self.samples.named(use, stages, samples)

    def response(self, q: ArrayLike, qd: ArrayLike, guess: Any, given: Conditions) -> Solution:
        """Return the solution under the motor torques among the conditions, see Robot.response."""
        self.check_motors(given)
        key = self._key(1, (q, qd), given)
        program = self._programs.get(key)
        if program is not None and not program.structure.spare and (guess is not None or self._follows_guess):
            quick = program.call(*program.blocks((q, qd), guess, given))
            if quick is not None and quick[2].item() <= 1.0:
                return self.samples.named(FORWARD, 1, SolverSample(FORWARD, program.structure, 1, quick[3], Situation(), ()))
        if self.is_bare and given.motors is None:
            return self._bare_response(q, qd, given)
        use, arrays, near, count, sampled_at = self.checked(1, (q, qd), guess, given)
        if count is None:
            one = self.sample(use, 1, arrays, near, sampled_at(0))
            if key not in self._programs:
                self._programs[key] = self.program(use, 1, given)
            return self.samples.named(use, 1, one)
        return self.samples.named(use, 1, self.solved(1, (q, qd), guess, given))

    def _bare_response(self, q: ArrayLike, qd: ArrayLike, conditions: Conditions) -> Solution:
        """`response` of a tree, by articulated bodies."""
        names, structure, base = self.joint_names, self.structure(FORWARD), given(conditions.base)
        q, qd, tau = (validation.coordinates(name, value, names) for name, value in (
            ("q", q), ("qd", qd), ("tau", conditions.tau)))
        acceleration, qdd = self.tree.free_response(q, qd, tau, base, conditions.loads)
        Y = np.zeros((*qdd.shape[:-1], int(structure.c.max(initial=0)) + 4, structure.equations.size))
        joints, efforts = structure.equations.joints, structure.equations.parts["tau"]
        for order, joint, six in ((1, qd, base.velocity), (2, qdd, base.spatial(acceleration))):
            Y[..., order, :6], Y[..., order, joints] = six, joint
        Y[..., 0, joints], Y[..., 0, efforts] = q, tau
        return named(structure, Y, 1, Y[..., :1, efforts])

    def check_motors(self, given: Conditions) -> None:
        """Raise InputError where the state of motors behind springs is missing."""
        if given.motors is None and (elastic := self.equations().elastic_joints):
            raise InputError(f"motors is missing: springs pull by where their motors are; give motors=MotorState(q, qd), a "
                             f"column for each of {some(elastic)}, as motor_motion finds them for a motion")

    def gravity_and_rate(self, q: ArrayLike, qd: ArrayLike, base: BaseState | None, guess: Any,
                         careful: Callable[..., tuple[Array, Array]]) -> tuple[Array, Array]:
        """Return torques against gravity and their rates, see Robot.gravity_and_rate.

        careful: the same function of (q, qd, base, guess) by least squares, where the program is unreliable
        """
        program = self.program_of(Inputs(GRAVITY, 1))
        if isinstance(base, BaseState) == self.has_moving_base and program is not None:
            if guess is not None or self._follows_guess:
                found = program.call(*program.blocks((q, qd), guess, Conditions(base)))
                if found is not None and found[2].item() <= 1.0:
                    return found[0], found[1]
            arrays = [validation.coordinates(name, value, self.joint_names) for name, value in (("q", q), ("qd", qd))]
            near = validation.guess(guess, self.tree.n)
            given = self.valid(Conditions(base))
            count, sampled_at = sampled(arrays, given, 0)
            if count is not None:
                def alone(k: int, near: Array | None) -> Results:
                    here, speed = (array[k] if array.ndim == 2 else array for array in arrays)
                    static, rate = careful(here, speed, sampled_at(k).base, near)
                    return static, rate, np.zeros((0, 0)), self.closed(here, near)

                many = self._many(program, program.blocks(arrays, near, given), count, near, alone)
                return many[0], many[1]
        return careful(q, qd, base, guess)

    # ------------------------------------------------------------------ samples

    def checked(self, stages: int, motion: Sequence[ArrayLike], guess: ArrayLike | None, given: Conditions) -> Any:
        """Return use, arrays of the motion, guess, number of samples (None for one), and the conditions of each sample."""
        given = self.valid(given)
        use = self.use_of(given)
        needed = 1 if use == FORWARD else max(self.structure(use).order_for(stages), 1)
        elastic = self.equations().elastic_joints
        if len(motion) <= needed:
            raise InputError(f"{len(motion) - 1} derivatives of q are given; {needed} decide "
                             f"{'the torques' if stages == 1 else 'the torque rates'} of robot '{self.name}'"
                             + (f" with {some(elastic)} elastic" if elastic else ""))
        names = ["q" + "d" * k for k in range(len(motion))]
        arrays = [validation.coordinates(name, value, self.joint_names) for name, value in zip(names, motion, strict=True)]
        near = validation.guess(guess, self.tree.n)
        if use == FORWARD:
            given = given._replace(tau=validation.coordinates("tau", given.tau, self.joint_names))
        return use, arrays, near, *sampled(arrays, given, len(elastic))

    def valid(self, conditions: Conditions) -> Conditions:
        """Return the conditions.

        Raises InputError for a condition of a wrong type, a missing base, or a base for a robot with a fixed base.
        """
        if self.has_moving_base:
            given(conditions.base)
        elif conditions.base is not None:
            raise InputError(f"robot '{self.name}' has a fixed base: base is given, but must be None. Remove the argument, or "
                             "declare "
                             "base: floating or prescribed in the robot file")
        if conditions.loads is not None:
            checked_loads(conditions.loads)
        if conditions.motors is not None:
            checked_motors(conditions.motors)
        return conditions

    def _solutions(self, stages: int, motion: Sequence[Any], guess: Any, given: Conditions,
                   derivatives: bool = False) -> list[Any]:
        """Torques, rates, and all derivatives Y (orders, size) if they are wanted; or (samples, ...) of each.

        With torques tau among the conditions: the accelerations instead of torques
        """
        use, arrays, near, count, sampled_at = self.checked(stages, motion, guess, given)
        program = self.program(use, stages, given)
        if count is None:
            return [*self._effort(program, use, stages, arrays, near, sampled_at(0))[:3]]

        def alone(k: int, near: Array | None) -> Results:
            sample = [array[k] if array.ndim == 2 else array for array in arrays]
            return self._effort(program, use, stages, sample, near, sampled_at(k))

        blocks = None if program is None else program.blocks(arrays, near, given)
        shape = self.structure(use)
        return self._many(program, blocks, count, near, alone,
                          (2 + int(shape.c.max(initial=0)) + 3, shape.equations.size) if derivatives else (0, 0))

    def _many(self, program: RobotProgram | None, blocks: Sequence[Any] | None, count: int, near: Array | None,
              alone: Callable[[int, Array | None], Results], derivatives: tuple[int, int] = (0, 0)) -> list[Any]:
        """Two results (count, n) and derivatives of samples, by the program as long as it is reliable.

        With loops samples begin from one another. blocks: inputs of the program; alone: sample and guess -> the results and
        the pose, by other means
        """
        results, Y, k, length = np.zeros((2, count, self.n)), np.zeros((count, *derivatives)), 0, FEW
        if self.closure is None:
            first, second, unreliable = *results, np.arange(count)
            if program is not None and blocks is not None:
                first, second, Y, good = program.independent(blocks, count, bool(derivatives[0]))
                unreliable = np.flatnonzero(~good)
            for k in unreliable.tolist():
                with validation.at_sample(k):
                    first[k], second[k], found, _ = alone(k, near)
                    Y[k, :len(found)] = found[:derivatives[0], :derivatives[1]]
            return [first, second, Y]
        rows = None if program is None or blocks is None else program.rows(blocks, count)
        has_guess = near is not None or self._follows_guess
        while k < count:
            if program is not None and rows is not None and (k or has_guess):
                one, other, found, near = program.run(rows[k:k + length], near)
                end = k + len(one)
                results[:, k:end] = one, other
                if derivatives[0]:
                    Y[k:end] = found
                k, length = end, 2 * length if len(one) == length else FEW
            if k < count and length == FEW:
                with validation.at_sample(k):
                    results[0, k], results[1, k], found, near = alone(k, near)
                    Y[k, :len(found)] = found[:derivatives[0], :derivatives[1]]
                k += 1
        return [results[0], results[1], Y]

    def _effort(self, program: RobotProgram | None, use: str, stages: int, motion: Sequence[Array], guess: Array | None,
                given: Conditions) -> Results:
        """Results of one sample, from a guess that may be far away.

        Where the program's result is unreliable, the stages of solution.py decide, and refuse by name.
        """
        found = None if program is None else self._trusted(program, motion, guess, given)
        if found is not None:
            return found[0], found[1], found[3], found[3][0, self.equations(use).joints]
        sample = self.sample(use, stages, motion, guess, given)
        solution = self.samples.named(use, stages, sample)
        if use == FORWARD:
            accelerations = np.array([solution.positions[name][2] for name in self.joint_names])
            return accelerations, np.zeros(self.n), sample.Y, sample.pose
        return solution.torques[0], solution.torques[-1], sample.Y, sample.pose

    def solved(self, stages: int, motion: Sequence[ArrayLike], guess: ArrayLike | None, given: Conditions,
               result: Callable[[SolverSample], Any] = lambda sample: sample, multipliers: bool = True) -> Any:
        """Return the result (by default the SolverSample) of one sample, or a list of them."""
        use, arrays, near, count, sampled_at = self.checked(stages, motion, guess, given)
        if count is None:
            return result(self.sample(use, stages, arrays, near, sampled_at(0), multipliers))
        found = []
        for k in range(count):
            with validation.at_sample(k):
                rows = [array[k] if array.ndim == 2 else array for array in arrays]
                sample = self.sample(use, stages, rows, near, sampled_at(k), multipliers)
                near = sample.pose
                found.append(result(sample))
        return found

    def sample(self, use: str, stages: int, motion: Sequence[Array], guess: Array | None, given: Conditions,
               multipliers: bool = True) -> SolverSample:
        """Return one solved sample."""
        structure = self.structure(use)
        if structure.massless:
            raise InputError(f"{some(structure.massless, quoted=True)} moves no mass: nothing decides its acceleration; give "
                             "the links that it moves a mass or an inertia")
        if (stages == 2 or given.tau is not None) and not (structure.spare and multipliers):
            program = self.program(use, stages, given)
            if program is not None and len(motion) <= program.inputs.derivatives + 1:
                found = self._trusted(program, motion, guess, given)
                if found is not None:
                    there = self.samples.situation(given.base, found[3][0, structure.equations.joints], given.loads)
                    return SolverSample(use, structure, stages, found[3], there, None if structure.spare else ())
        pose = self.closed(motion[0], guess)
        there = self.samples.situation(given.base, pose, given.loads)
        with validation.overflow_ignored():
            return self.samples.solve(use, stages, motion, pose, there, given)


# ---------------------------------------------------------------------- motors of elastic joints


class MotorMotion(NamedTuple):
    """Motion of motors and torques on both sides of motors and springs; (n,) or (samples, n), (.., Ne) behind springs.

    Hua, Poursina, Sanfilippo, "Dynamic modelling of mixed rigid-flexible joint robotic manipulator using recursive
    Newton-Euler formulation", (27)-(29), (43): a spring carries its load if its motor is at q_motor = load / stiffness + q.

    tau, tau_rate   : torque of every joint's motor, as the joint's side of its gear feels it, and its rate [N m, N]
    load, load_rate : torque on the links beyond each joint, without rotor and friction of a rigid joint; at an elastic joint
                      the torque of its spring [N m, N]
    q_motor, qd_motor, qdd_motor : position, velocity, acceleration of the motors behind their gears [rad, m]
    deflection, deflection_rate  : position of each motor less that of its joint, and its rate; zero at rigid joints [rad, m]

    The rates are None where fewer derivatives of q than they take are given.
    """

    tau: Array
    load: Array
    q_motor: Array
    qd_motor: Array
    qdd_motor: Array
    deflection: Array
    deflection_rate: Array
    tau_rate: Array | None = None
    load_rate: Array | None = None


class MotorLoads:
    """Motion of the motors of one robot from solutions of its equations."""

    def __init__(self, equations: EquationsOfMotion, names: Sequence[str], backend: str):
        """Prepare nothing: the kernel is compiled when it is first needed. names: joints in the columns of q."""
        self._equations, self._backend = equations, backend
        self._joints = [equations.model.joint_names.index(name) for name in names]
        self._columns = [list(names).index(name) for name in equations.elastic_joints]
        self._kernel: Kernel | None = None

    def motion(self, found: Solution) -> MotorMotion:
        """Return the motion of the motors in a solution of one sample or of many."""
        names, shape = self._equations.elastic_joints, found.torques.shape[:-2]
        motors, deflections = np.zeros((3, *shape, len(names))), np.zeros((2, *shape, len(self._joints)))
        for k, name in enumerate(names):
            turned, joint = found.positions[f"motor of {name}"], found.positions[name]
            motors[..., k] = turned[..., :3].T
            deflections[..., self._columns[k]] = (turned[..., :2] - joint[..., :2]).T
        loads = self.loads(found)
        rates = [part[..., 1, :] if part.shape[-2] > 1 else None for part in (found.torques, loads)]
        return MotorMotion(found.torques[..., 0, :], loads[..., 0, :], motors[0], motors[1], motors[2], deflections[0],
                           deflections[1], *rates)

    def loads(self, found: Solution) -> Array:
        """Return loads of the joints, and their rates where those of the torques are known, (stages, n) or (samples, ...)."""
        equations, loads = self._equations, found.torques.copy()
        shape, b = loads.shape[:-2], equations.base
        x = np.zeros((4, *shape, len(equations.coordinates)))
        if b:
            known = min(3, found.base.shape[-2])
            x[1:1 + known, ..., :b] = found.base[..., :known, :b].swapaxes(0, -2)
        for k, name in enumerate(equations.coordinates[b:], start=b):
            position = found.positions[name][..., :4]
            x[:position.shape[-1], ..., k] = position.T
        shares = (self._shares().of_samples(list(x), len(loads)) if shape else
                  self._shares().call(*x) or self._shares()(x.ravel()))
        for order in range(min(2, loads.shape[-2])):
            loads[..., order, :] -= shares[order][..., self._joints]
            for column, name in zip(self._columns, equations.elastic_joints, strict=True):
                loads[..., order, column] = found.springs[name][..., order]
        return loads

    def _shares(self) -> Kernel:
        if self._kernel is None:
            def evaluate(x, v, a, j):
                own = self._equations.motor_shares(Rates(jets(x, v), jets(v, a), jets(a, j)))
                return [derivative(own, 0), derivative(own, 1)]

            self._kernel = kernel.build(evaluate, dict.fromkeys("xvaj", len(self._equations.coordinates)), self._backend)
        return self._kernel
