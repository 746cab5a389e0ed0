"""Compiled program of a robot: a motion in, torques and torque rates out, in one call of machine code.

One kernel closes the loops by Newton's method, finds velocities, accelerations, torques and multipliers, and then their rates:
the stages of solution.py in the same order, with the structural zeros of the matrices used. In each stage

    1. constraints that decide motion by themselves are solved first: blocks of J_f, those coordinates that follow;
    2. what is left is solved by block elimination (algorithms/elimination.py): with J_f and J_f^T as pivot blocks it becomes
       H a = -r with H = G^T M G of the coordinates that are free, and the efforts follow.

Rows of constraints that others imply are left out; they are verified at the closed pose. The kernel judges its own result: one
number, `indicator`, is at most 1 where loops are closed, Newton's steps were short, and no pivot was small. Where it is more,
the caller takes solution.py, which decides by singular values and names what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np

from ..algebra.linalg import LU
from ..algebra.taylor import derivative, jets
from ..algebra.vectors import ZERO, Array, cross, quaternion
from ..algorithms import closed_loops
from ..algorithms.elimination import ABSENT, Elimination, EliminationBlock, Factors, plan, triangular_blocks
from ..algorithms.equations import EquationsOfMotion, Rates, pose_series
from ..algorithms.kinematics import Pose, base_poses
from ..codegen import kernel
from ..codegen.program import larger
from .closure import OPTIONS, LoopClosure, convergence_indicator, largest, maximum
from .conditions import Conditions
from .roles import DeclaredRoles
from .solution import Situation, Solution, named, row_changes, stage_matrix, stage_rows
from .structure import Structure, contact_poses

CLOSED = 1e-12  # of the unit of length, or rad: gap that is left at the closed pose
MAX_LOOP_PIVOTS = 1e5  # largest pivot of J_f by the smallest one
MAX_PIVOTS = 1e8  # of other blocks
MOTORS = ("q_motor", "qd_motor", "qdd_motor", "qddd_motor")
NO_INDICATOR, NO_RATE = np.zeros(1), np.zeros(6)
GRAVITY = "gravity"  # use: torques that hold still against gravity
FORWARD = "forward"  # use: accelerations under known torques
CLOSING = "closing"  # use: positions of all joints on closed loops
GUESS, INDICATOR = "guess", "indicator"  # blocks: positions of the tree's joints, and the indicator of Newton's steps
ALONG = "along"  # block: change of q, qd, ...
PAYLOADS = "payloads"  # block: ten numbers for each carrier of the equations


@dataclass(frozen=True)
class Inputs:
    """Inputs of a program besides q, qd, ...; each combination of inputs has its own program.

    use         : "inverse", "carried", these with measured motors, or "forward", see general.py; derivatives: of q
    base_rates  : number of rates of the base's velocity instead of acceleration and jerk; 0: these two are read
    wrenches, wrench_rates, world_wrenches : names of links
    tangent     : 1 for changes of torques along a change of q, qd, ..., 2 for those of the rates too; 0: torques and rates
    """

    use: str
    derivatives: int
    base_rates: int = 0
    wrenches: tuple[str, ...] = ()
    wrench_rates: tuple[str, ...] = ()
    world_wrenches: tuple[str, ...] = ()
    tangent: int = 0


@dataclass
class _Level:
    """Rows and columns (numbers of unknowns) that are solved together in a stage, and the pivot blocks."""

    rows: np.ndarray
    columns: np.ndarray
    blocks: list[EliminationBlock] = field(default_factory=list)


class UnsuitedError(Exception):
    """The equations are not solved by elimination; solution.py serves them."""


class RobotProgram:
    """Kernel of one structure and one set of inputs. Raises UnsuitedError where elimination does not fit.

    names   : joints in the columns of q; indices: theirs among the coordinates; known: number of derivatives that are inputs
    start   : closed pose (tree.n,) at which the pivot blocks are chosen
    """

    def __init__(self, structure: Structure, roles: DeclaredRoles, closure: LoopClosure | None, inputs: Inputs,
                 names: Sequence[str], known: Sequence[float], start: Array, backend: str):
        self.structure, self.roles, self.closure, self.inputs = structure, roles, closure, inputs
        self._payloads: Array | None = None
        self.equations = equations = structure.equations
        self.names, self._known, self._start = tuple(names), tuple(known), start
        self._indices = [equations.coordinates.index(name) for name in names]
        spare = structure.spare
        n, m = len(equations.coordinates), len(equations.constraints)
        self._carried = inputs.use.startswith("carried")
        state = any(name.startswith("motor of ") for name in structure.roles.state)
        measured = any(name.startswith("motor of ") for name in structure.roles.given)
        self.motors = MOTORS[:4 if measured else 2 if state else 0]
        self._left_out = {n + k for k in spare} | {n + m + len(equations.actuated) + k for k in spare}
        parts = equations.parts
        self._unused_columns = {parts["lambda"].start + k for k in spare}
        if structure.optimal:
            self._unused_columns |= {parts["kappa"].start + k for k in spare}
        self._kept = [k for k in range(m) if k not in spare]
        self._stages: dict[int, list[_Level]] = {}
        last = 1 if inputs.use == FORWARD else inputs.tangent or 2
        for k in range(structure.first_stage, last) if inputs.use not in (GRAVITY, CLOSING) else ():
            same = k > structure.first_stage and all(map(np.array_equal, structure.stage(k), structure.stage(k - 1)))
            self._stages[k] = self._stages[k - 1] if same else self._levels(k)
        self.sizes = self._sizes()
        if closure is not None:
            self._check_closure(closure)
        newton = self.closing_step, OPTIONS.last_step_gap, OPTIONS.compiled_steps
        step = None if closure is None or inputs.tangent else newton
        self.kernel = kernel.build(self.evaluate, self.sizes, backend, step, self._recipe())
        self.call = self.kernel.call

    def _sizes(self) -> dict[str, int]:
        """Names and sizes of the blocks."""
        inputs, equations = self.inputs, self.equations
        sizes = {GUESS: equations.model.n, INDICATOR: 1} if self.closure is not None else {}
        sizes |= {PAYLOADS: 10 * len(equations.carriers)} if equations.carriers and inputs.use != CLOSING else {}
        sizes |= {"q" + "d" * k: len(self.names) for k in range(inputs.derivatives + 1)}
        if equations.base and inputs.use != CLOSING:
            sizes |= {"base_position": 3, "base_quaternion": 4, "base_velocity": 6}
            if self._carried:
                sizes |= {"base_rates": 6 * inputs.base_rates} if inputs.base_rates else dict.fromkeys(
                    ("base_acceleration", "base_jerk"), 6)
        for load in ("wrenches", "wrench_rates", "world_wrenches"):
            sizes |= {f"{load}{k}": 6 for k, _ in enumerate(getattr(inputs, load))}
        sizes |= dict.fromkeys(self.motors, len(equations.elastic_joints))
        if inputs.use == FORWARD:
            sizes["tau"] = len(self.names)
        return sizes | ({ALONG: (inputs.derivatives + 1) * len(self.names)} if inputs.tangent else {})

    def _recipe(self) -> str:
        """Everything that decides the kernel, in words and numbers."""
        equations, structure, closure = self.equations, self.structure, self.closure
        links = {name: equations.model.frame(name) for name in (*self.inputs.wrenches, *self.inputs.world_wrenches)}
        loops = None if closure is None else (closure.units, closure.loops.cuts, closure.active, closure.passive, self._held)
        return repr(_written((
            equations.model.model_id, equations.gravity, equations.cuts, equations.wheels, equations.motors, equations.springs,
            equations.actuated, equations.weights, equations.carriers, equations.fluid,
            structure.roles, structure.spare, structure.c, structure.d, self.names,
            self._known, self._start, self.roles.contacts, loops, self.inputs, links,
            [(k, [(level.rows, level.columns, level.blocks) for level in levels]) for k, levels in self._stages.items()])))

    def carrying(self, payloads: Array) -> RobotProgram:
        """Return the same program with other payloads, ten numbers for each carrier of the equations. Kernels are shared."""
        twin: RobotProgram = copy(self)
        twin._payloads = payloads if PAYLOADS in self.sizes else None
        return twin

    # ------------------------------------------------------------------ calls

    def blocks(self, motion: Sequence[Any], guess: Any, given: Conditions) -> list[Any]:
        """Return the input blocks of one sample or of many; derivatives that are not given are zero."""
        inputs, found, (_, loads, motors, tau) = self.inputs, [], given
        base: Any = given.base
        if self.closure is not None:
            found += [self._start if guess is None else guess, NO_INDICATOR]
        if self._payloads is not None:
            found.append(self._payloads)
        found.extend(motion[:inputs.derivatives + 1])
        if len(motion) <= inputs.derivatives:
            found += [np.zeros(len(self.names))] * (inputs.derivatives + 1 - len(motion))
        if self.equations.base:
            found += [base.position, base.quaternion, base.velocity]
            if inputs.base_rates:
                rates = base.rates[..., :inputs.base_rates, :]
                missing = np.zeros((*rates.shape[:-2], inputs.base_rates - rates.shape[-2], 6))
                found.append(np.concatenate((rates, missing), axis=-2).reshape(*rates.shape[:-2], -1))
            elif self._carried:
                found += [NO_RATE if base.acceleration is None else base.acceleration,
                          NO_RATE if base.jerk is None else base.jerk]
        if loads is not None:
            found += loads.arrays()
        if motors is not None:
            found += motors.known
        return found if tau is None else [*found, tau]

    def rows(self, blocks: Sequence[Any], count: int) -> Array:
        """Return the blocks of many samples side by side, (count, size)."""
        arrays = [np.asarray(block, dtype=float) for block in blocks]
        return np.concatenate([np.broadcast_to(array, (count, array.shape[-1])) for array in arrays], axis=1)

    def independent(self, blocks: Sequence[Any], count: int, derivatives: bool) -> tuple[Array, Array, Array, np.ndarray]:
        """Return torques, rates, all derivatives (count, orders, unknowns), and which samples are reliable.

        For robots without loops; blocks: of many samples; derivatives: whether they are wanted, else they are empty
        """
        arrays = [np.ascontiguousarray(block, dtype=float) for block in blocks]
        if derivatives:
            torques, rates, indicator, Y = self.kernel.of_samples(arrays, count)[:4]
        else:
            torques, rates, indicator = self.kernel.first_of_samples(arrays, count, 3)
            Y = np.zeros((count, 0, 0))
        good = indicator[:, 0] <= 1.0
        if not (np.isfinite(torques).all() and np.isfinite(rates).all()):
            good &= np.isfinite(torques).all(axis=1) & np.isfinite(rates).all(axis=1)
        return torques, rates, Y, good

    def run(self, rows: Array, near: Array | None) -> tuple[Array, Array, Array, Array | None]:
        """Return torques, rates and all derivatives of the leading samples that are reliable, and the positions of the
        last one.

        near: positions of all joints from which the first sample is closed; each further one begins from the sample before
        """
        n, size = len(self.names), self.equations.model.n
        rows = rows.copy()
        rows[0, :size] = self._start if near is None else near
        found = self.kernel.sweep(rows, size + 1)
        bad = np.flatnonzero(~(found[:, 2 * n] <= 1.0) | ~np.isfinite(found).all(axis=1))
        good = found[:bad[0] if len(bad) else len(found)]
        if len(good):
            near = good[-1, -1 - size:-1].copy()
        Y = good[:, 2 * n + 1:-1 - size]
        return good[:, :n], good[:, n:2 * n], Y.reshape(len(good), *self.kernel.shapes[3]), near

    def solution(self, torques: Array, rates: Array, Y: Array, stages: int) -> Solution:
        """Return the solution of one sample, or of many with a first axis for them. Y: all derivatives."""
        return named(self.structure, Y, stages, np.stack((torques, rates)[:stages], axis=-2),
                     multipliers=not self.structure.spare)

    def tables(self, rows: Array, count: int) -> Array:
        """Return the partial derivatives of torques, or of rates if `tangent` is 2, by q and count - 1 of its derivatives.

        (samples, count, n, n), a row for each torque; NaN where the program is unreliable. rows: inputs at closed poses
        """
        n = len(self.names)
        along = np.zeros((count * n, (self.inputs.derivatives + 1) * n))
        np.fill_diagonal(along, 1.0)
        inputs = np.concatenate((np.repeat(rows, len(along), axis=0), np.tile(along, (len(rows), 1))), axis=1)
        torques, rates, indicator = (part.reshape(len(rows), count, n, -1) for part in self.kernel(inputs))
        changes = rates if self.inputs.tangent == 2 else torques
        good = (indicator[..., 0] <= 1.0).all(axis=(1, 2)) & np.isfinite(changes).all(axis=(1, 2, 3))
        changes = np.swapaxes(changes, 2, 3)
        return np.where(good[:, None, None, None], changes, np.nan)

    def close(self, rows: Array, near: Array) -> Array:
        """Return the closed poses (samples, joints of the tree) of the leading rows of q that are reliable.

        For the use CLOSING; near: positions of all joints from which the first is closed, each further one from the one before
        """
        size = self.equations.model.n
        x = np.zeros((len(rows), size + 1 + len(self.names)))
        x[0, :size], x[:, size + 1:] = near, rows
        found = self.kernel.sweep(x, size + 1)
        bad = np.flatnonzero(~(found[:, 0] <= 1.0) | ~np.isfinite(found).all(axis=1))
        return found[:bad[0] if len(bad) else len(found), 1:1 + size]

    # ------------------------------------------------------------------ plan

    def _levels(self, k: int) -> list[_Level]:
        """Return the levels of stage k, none if it decides nothing."""
        structure, equations = self.structure, self.equations
        rows, columns = structure.stage(k)
        if not len(columns):
            return []
        rows = np.array([i for i in rows if i not in self._left_out], dtype=int)
        columns = np.array([j for j in columns if structure.columns[j] not in self._unused_columns], dtype=int)
        gap = structure.d[columns][None, :] - structure.c[rows][:, None]
        numbers = structure.columns[columns]
        sigma = structure.sigma[np.ix_(rows, numbers)]
        pattern = (sigma == gap) & (sigma > ABSENT)
        blocks = triangular_blocks(pattern)
        if blocks is None:
            raise UnsuitedError(f"stage {k} has {len(rows)} equations of {len(columns)} unknowns")
        n, m = len(equations.coordinates), len(equations.constraints)
        is_constraint = (rows >= n) & (rows < n + m)
        own: list[EliminationBlock] = []
        ready = np.zeros(len(columns), dtype=bool)
        for block in blocks:
            needed = pattern[block.rows].any(axis=0)
            needed[block.columns] = False
            if is_constraint[block.rows].all() and ready[needed].all():
                own.append(block)
                ready[block.columns] = True
        first = np.concatenate([block.rows for block in own]) if own else np.zeros(0, int)
        found = []
        rest = np.setdiff1d(np.arange(len(rows)), first)
        for here, there in ((first, np.flatnonzero(ready)), (rest, np.flatnonzero(~ready))):
            if len(here):
                found.append(self._level(rows[here], numbers[there], pattern[np.ix_(here, there)]))
        return found

    def _level(self, rows: np.ndarray, numbers: np.ndarray, pattern: np.ndarray) -> _Level:
        equations = self.equations
        n, m, start = len(equations.coordinates), len(equations.constraints), equations.parts["lambda"].start
        follow = {equations.coordinates.index(name) for name in self.structure.roles.closed}
        held = np.flatnonzero((rows >= n) & (rows < n + m))
        free = np.array([j for j, number in enumerate(numbers) if number in follow], dtype=int)
        preferred: list[EliminationBlock] = []
        if 0 < len(held) < len(rows) and len(held) == len(free):
            islands = triangular_blocks(pattern[np.ix_(held, free)]) or []
            J = self._start_jacobian()[np.ix_(rows[held] - n, numbers[free])]
            if islands and np.linalg.cond(J) < MAX_LOOP_PIVOTS:
                preferred = [EliminationBlock(held[one.rows], free[one.columns]) for one in islands]
                for one in preferred[::-1]:  # the same transposed: rows of these coordinates, multipliers of these constraints
                    across = [np.flatnonzero(np.isin(rows, numbers[one.columns])),
                              np.flatnonzero(np.isin(numbers, rows[one.rows] - n + start))]
                    if len(across[0]) == len(across[1]) == len(one.rows):
                        order = [np.array([int(np.flatnonzero(values == value)[0]) for value in wanted]) for values, wanted in
                                 ((rows, numbers[one.columns]), (numbers, rows[one.rows] - n + start))]
                        preferred.append(EliminationBlock(*order))
        blocks = plan(pattern, preferred) or plan(pattern)
        if blocks is None:
            raise UnsuitedError("the pattern is singular")
        return _Level(rows, numbers, blocks)

    def _start_jacobian(self) -> np.ndarray:
        equations, x = self.equations, np.zeros(len(self.equations.coordinates))
        x[equations.joints] = self._start
        anchors = contact_poses(equations, base_poses(equations.model, self._start)) if self.roles.contacts else ()
        return np.array(equations.constraint_jacobian(np.eye(3), ZERO, x, anchors), dtype=float)

    # ------------------------------------------------------------------ closing, for any scalar

    def _check_closure(self, closure: LoopClosure) -> None:
        """Choose the rows that Newton's method takes; there must be one for each joint that follows."""
        held = [k for k in self._kept if k < len(closure.units.equations)]
        if len(held) != len(closure.passive):
            raise UnsuitedError(f"{len(held)} independent loop equations for {len(closure.passive)} joints that follow")
        self._held = held

    def closing_step(self, guess: Any, indicator: Any, q: Any, **unused: Any) -> list[Any]:
        """Return a step of Newton's method and a further one with the same Jacobian: the error left is of third order."""
        closure = self.closure
        assert closure is not None
        pose = np.array(guess, dtype=object)
        for k, name in zip(closure.active, closure.active_joints, strict=True):
            pose[k] = q[self.names.index(name)]
        held, passive, units = np.array(self._held, dtype=int), closure.passive, closure.units
        values, _, solver = self._loop_equations(pose, Factors())
        gaps = values
        lengths: list[Any] = []
        for _ in range(2):
            correction = solver.solve(-(np.array(gaps, dtype=object)[held] / units.equations[held]))
            lengths.append(largest(correction))
            pose[passive] = pose[passive] + correction * units.unknowns[passive]
            if len(lengths) == 1:
                gaps = closure.phi(pose)
        error = largest(np.array(values, dtype=object)[held] / units.equations[held])
        return [[*pose, larger(indicator[0], convergence_indicator(*lengths))], [error]]

    def _loop_equations(self, pose: np.ndarray, factors: Factors) -> tuple[Any, Any, Elimination]:
        """Gaps of all loop equations, their Jacobian, and the elimination of the joints that follow, in units."""
        closure = self.closure
        assert closure is not None
        values, J = closed_loops.jacobian(closure.phi, pose)
        held, passive, units = np.array(self._held, dtype=int), closure.passive, closure.units
        A = J[np.ix_(held, passive)] / units.equations[held][:, None] * units.unknowns[passive]
        pattern = np.array([not (isinstance(x, float) and x == 0.0) for x in A.ravel()], dtype=bool).reshape(A.shape)
        blocks = triangular_blocks(pattern)
        if blocks is None:
            raise UnsuitedError("the pattern of the loop equations is singular")
        return values, J, Elimination(A, blocks, factors)

    def _closed(self, blocks: Mapping[str, Any]) -> list[Any]:
        """Return the error indicator of the closed pose, and the state to begin the next sample from."""
        pose, factors = np.array(blocks[GUESS], dtype=object), Factors()
        self._loop_equations(pose, factors)
        indicators = [blocks[INDICATOR][0], self._largest_gap(pose) * (1.0 / CLOSED)]
        if factors.made:
            indicators.append(_spread([factor for _, factor in factors.made]) * (1.0 / MAX_LOOP_PIVOTS))
        return [[maximum(indicators)], [*pose, 0.0]]

    # ------------------------------------------------------------------ stages, for any scalar

    def evaluate(self, payloads: Any = None, **blocks: Any) -> list[Any]:
        """Torques, rates, indicator, all derivatives, and the state to begin the next sample from."""
        if payloads is not None:
            loaded = copy(self)
            loaded.structure = self.structure.carrying(payloads)
            loaded.equations = loaded.structure.equations
            return loaded.evaluate(**blocks)
        structure, equations, inputs = self.structure, self.equations, self.inputs
        if inputs.use == GRAVITY:
            return self._gravity(blocks)
        if inputs.use == CLOSING:
            return self._closed(blocks)
        motion = [blocks["q" + "d" * k] for k in range(inputs.derivatives + 1)]
        pose = self._pose(blocks, motion[0])
        indicators: list[Any] = []
        length = 2 + int(structure.c.max(initial=0)) + 3
        Y = np.zeros((length, equations.size)).astype(object)
        Y[0, equations.joints] = pose
        for k, array in enumerate(motion[1:length], start=1):
            for index, value, known in zip(self._indices, array, self._known, strict=True):
                if known > k:
                    Y[k, index] = value
        situation = self._situation(blocks, pose)
        if equations.base:
            Y[1, :6] = blocks["base_velocity"]
            if self._carried:
                rates = self._base_rates(blocks)
                Y[2:2 + len(rates), :6] = rates[:length - 2]
        for k, name in enumerate(self.motors):
            Y[k, equations.joints.stop:len(equations.coordinates)] = blocks[name]
        if inputs.use == FORWARD:
            torques = dict(zip(self.names, blocks["tau"], strict=True))
            Y[0, equations.parts["tau"]] = [torques.get(name.removeprefix("motor of "), 0.0) for name in equations.actuated]
        dY = self._changes(blocks, pose, indicators, Y) if inputs.tangent else None
        self._solve(Y, situation, indicators, dY)
        if dY is not None:
            return [*self._torques(dY, change=True), [maximum(indicators)]]
        if inputs.use == FORWARD:
            return [Y[2, self._indices], np.zeros(len(self.names)), *self._ending(blocks, pose, indicators, Y)]
        return [*self._torques(Y), *self._ending(blocks, pose, indicators, Y)]

    def _changes(self, blocks: Mapping[str, Any], pose: np.ndarray, indicators: list[Any], Y: np.ndarray) -> np.ndarray:
        """Return the changes of the inputs in Y along the block `along`, with closed loops: J_f dx_f = -J_i dx_i."""
        equations, model = self.equations, self.equations.model
        along = np.reshape(blocks[ALONG], (-1, len(self.names)))
        moved = np.zeros(model.n).astype(object)
        if self.closure is None:
            moved[[index - equations.base for index in self._indices]] = along[0]
        else:
            closure, factors = self.closure, Factors()
            moved[closure.active] = along[0][[self.names.index(name) for name in closure.active_joints]]
            _, J, solver = self._loop_equations(pose, factors)
            right = _products(J[self._held], moved) / closure.units.equations[self._held]
            moved[closure.passive] = -solver.solve(right) * closure.units.unknowns[closure.passive]
            indicators.append(self._largest_gap(pose) * (1.0 / CLOSED))
            if factors.made:
                indicators.append(_spread([factor for _, factor in factors.made]) * (1.0 / MAX_LOOP_PIVOTS))
        dY = np.zeros(Y.shape).astype(object)
        dY[0, equations.joints] = moved
        for k in range(1, min(len(along), len(dY))):
            for index, value, known in zip(self._indices, along[k], self._known, strict=True):
                if known > k:
                    dY[k, index] = value
        return dY

    def _ending(self, blocks: Mapping[str, Any], pose: np.ndarray, indicators: list[Any], Y: Any) -> list[Any]:
        """Return the outputs after torques and rates."""
        if self.closure is None:
            return [[maximum(indicators)], Y]
        indicators += [blocks[INDICATOR][0], self._largest_gap(pose) * (1.0 / CLOSED)]
        return [[maximum(indicators)], Y, [*pose, 0.0]]

    def _gravity(self, blocks: Mapping[str, Any]) -> list[Any]:
        """Torques that hold the joints of q still against gravity, zero where constraints hold them, and their rates.

        With G of the coordinates that are free, G^T g and G^T (g' - J'^T lambda), lambda = J_f^-T g_f: without G itself.
        """
        equations = self.equations
        pose, follows = self._pose(blocks, blocks["q"]), {*self.roles.follows, *self.roles.rolled}
        situation, n = self._situation(blocks, pose), len(equations.coordinates)
        x, v = np.zeros((2, n)).astype(object)
        x[equations.joints] = pose
        v[self._indices] = blocks["qd"]
        if equations.base:
            v[:6] = blocks["base_velocity"]
        held = [k for k, name in enumerate(equations.coordinates) if name in follows]
        v[held] = 0.0
        R, p, anchors = situation.R, situation.p, situation.anchors
        J = np.zeros((0, n), dtype=object)
        indicators: list[Any] = []
        if equations.constraints:
            J = np.array(equations.constraint_jacobian(R, p, x, anchors), dtype=object)[self._kept]
        A = J[:, held]
        order = triangular_blocks(np.array([[not isinstance(a, float) or a != 0.0 for a in row] for row in A.tolist()],
                                           dtype=bool).reshape(A.shape))
        if order is None:
            raise UnsuitedError(f"{len(J)} constraints do not decide {len(held)} coordinates")
        factors = Factors()
        v[held] = Elimination(A, order, factors).solve(-_products(J, v))
        across = Elimination(-A.T, [EliminationBlock(one.columns, one.rows) for one in order[::-1]], factors)
        if factors.made:
            indicators += [_spread([factor for _, factor in factors.made]) * (1.0 / MAX_LOOP_PIVOTS)]
        no_effort, found = np.zeros(len(equations.actuated)), []
        multipliers = np.zeros(len(equations.constraints)).astype(object)
        for k in (0, 1):
            turn, position = (jets(*part) for part in pose_series(R, p, [v[:6]], k)) if equations.base else (R, p)
            rates = Rates(jets(*(x, v)[:k + 1]), *(jets(*[np.zeros(n)] * (k + 1)) for _ in "va"))
            rows = derivative(equations.rows(turn, position, rates, multipliers, no_effort, anchors, only_gravity=True), k)
            pushed = -across.solve(rows[held])
            if k == 0:
                multipliers[self._kept] = pushed
            projected = rows - _products(J.T, pushed)
            found.append([0.0 if index in held else projected[index] for index in self._indices])
        return [*found, *self._ending(blocks, pose, indicators, [0.0])]

    def _pose(self, blocks: Mapping[str, Any], q: Any) -> np.ndarray:
        """Positions of all joints: closed before, or those of q."""
        if self.closure is None:
            pose = np.array(self._start, dtype=object)
            for index, value in zip(self._indices, q, strict=True):
                pose[index - self.equations.base] = value
            return pose
        return np.array(blocks[GUESS], dtype=object)

    def _situation(self, blocks: Mapping[str, Any], pose: np.ndarray) -> Situation:
        model, inputs = self.equations.model, self.inputs
        found = Situation()
        if self.equations.base:
            found = Situation(quaternion(*blocks["base_quaternion"]), blocks["base_position"])
        if self.roles.contacts:
            found.anchors = contact_poses(self.equations, base_poses(model, pose, Pose(found.R, found.p)))
        wrenches: dict[int, np.ndarray] = {}
        for order, (load, names) in enumerate((("wrenches", inputs.wrenches), ("wrench_rates", inputs.wrench_rates))):
            for k, name in enumerate(names):
                frame, six = model.frame(name), blocks[f"{load}{k}"]
                f = frame.R @ six[:3]
                moved = np.concatenate((f, frame.R @ six[3:] + cross(frame.P, f)))
                total = wrenches.setdefault(frame.link, np.zeros((2, 6)).astype(object))
                total[order] = total[order] + moved
        world = [(model.frame(name).link, model.frame(name).P, blocks[f"world_wrenches{k}"])
                 for k, name in enumerate(inputs.world_wrenches)]
        return Situation(found.R, found.p, found.anchors, wrenches, world)

    def _base_rates(self, blocks: Mapping[str, Any]) -> np.ndarray:
        """Rates (k, 6) of the numbers of the base's velocity, see BaseState.velocity_rates."""
        if self.inputs.base_rates:
            return np.reshape(blocks["base_rates"], (-1, 6))
        V, a, jerk = (blocks[name] for name in ("base_velocity", "base_acceleration", "base_jerk"))
        v, w = V[:3], V[3:]
        first = np.concatenate((a[:3] - cross(w, v), a[3:]))
        wd = first[3:]
        linear = jerk[:3] - cross(w, a[:3]) - cross(wd, v) - cross(w, first[:3])
        return np.array([first, np.concatenate((linear, jerk[3:] - cross(w, wd)))], dtype=object)

    def _solve(self, Y: np.ndarray, situation: Situation, indicators: list[Any], dY: np.ndarray | None = None) -> None:
        """Fill the unknown derivatives in Y, stage by stage, and changes in dY; append the indicators of the pivots."""
        structure, matrices = self.structure, _Matrices(self.equations, self.structure, Y, situation)
        factors = Factors()
        solvers: dict[Any, Elimination] = {}
        for k, levels in self._stages.items():
            for number, level in enumerate(levels):
                key = (number, tuple(level.rows), tuple(level.columns))
                if key not in solvers or k < 1:
                    solvers[key] = Elimination(matrices.of(level.rows, level.columns), level.blocks, factors)
                z = solvers[key].solve(-np.array(matrices.right(k, level.rows), dtype=object))
                orders = {int(j): int(d) for j, d in zip(structure.columns, structure.d, strict=True)}
                for j, value in zip(level.columns, z, strict=True):
                    Y[k + orders[int(j)], j] = Y[k + orders[int(j)], j] + value
                if dY is not None:
                    z = solvers[key].solve(-np.array(matrices.changes(k, level.rows, dY), dtype=object))
                    for j, value in zip(level.columns, z, strict=True):
                        dY[k + orders[int(j)], j] = value
        indicators += self._pivots(factors, matrices)

    @staticmethod
    def _pivots(factors: Factors, matrices: _Matrices) -> list[Any]:
        """Ratios of pivots by what is allowed; blocks of constraints alone are compared with one another."""
        found, loops = [], []
        for P, factor in factors.made:
            if isinstance(factor.smallest, float):
                continue
            if matrices.of_constraints(P):
                loops.append(factor)
            elif len(factor) > 1:
                found.append(factor.largest / factor.smallest * (1.0 / MAX_PIVOTS))
        return [*found, _spread(loops) * (1.0 / MAX_LOOP_PIVOTS)] if loops else found

    def _largest_gap(self, pose: np.ndarray) -> Any:
        """Gap of all loop equations, in units."""
        assert self.closure is not None
        return largest(np.array(self.closure.phi(pose), dtype=object) / self.closure.units.equations)

    def _torques(self, Y: np.ndarray, change: bool = False) -> list[list[Any]]:
        """Torques and rates of the joints in the columns of q, of motors and springs, or their changes."""
        equations, tau = self.equations, self.equations.parts["tau"].start
        springs = {equations.model.joint_names[spring.coordinate]: spring for spring in self.roles.springs}
        found: list[list[Any]] = [[], []]
        for name, index in zip(self.names, self._indices, strict=True):
            motor = f"motor of {name}" if name in equations.elastic_joints else name
            for order in (0, 1):
                value: Any = 0.0
                if motor in equations.actuated:
                    value = Y[order, tau + equations.actuated.index(motor)]
                elif name in springs:
                    spring = springs[name]
                    deflection = Y[order, index] - (spring.rest if order == 0 and not change else 0.0)
                    value = -(deflection * spring.stiffness) - Y[order + 1, index] * spring.damping
                found[order].append(value)
        return found


class _Matrices:
    """Entries of A = d f_i / d y_j^(d_j - c_i), and right-hand sides, at derivatives Y that are filled in meanwhile."""

    def __init__(self, equations: EquationsOfMotion, structure: Structure, Y: np.ndarray, situation: Situation):
        self.equations, self.structure, self.Y, self.situation = equations, structure, Y, situation
        n, x = len(equations.coordinates), Y[0, :len(equations.coordinates)]
        self.J = (equations.constraint_jacobian(situation.R, situation.p, x, situation.anchors) if equations.constraints
                  else np.zeros((0, n), dtype=object))
        self._M: np.ndarray | None = None
        self._loops = {id(value) for value in self.J.ravel().tolist() if not isinstance(value, float)}

    @property
    def M(self) -> np.ndarray:
        """Mass matrix of all coordinates."""
        if self._M is None:
            self._M = np.array(self.equations.mass_matrix(self.Y[0, :len(self.equations.coordinates)]), dtype=object)
        return self._M

    def of_constraints(self, P: np.ndarray) -> bool:
        """Return whether all entries of a block are of J."""
        return all(isinstance(x, float) or id(x) in self._loops for x in P.ravel().tolist())

    def of(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return A of these rows and unknowns."""
        structure, equations, here = self.structure, self.equations, np.ix_(rows, columns)
        slopes = self._slopes([entry for entry in structure.low_entries if entry[1] in columns])
        n, nu, present = len(equations.coordinates), equations.parts.get("nu", slice(0, 0)), structure.sigma[here] != ABSENT
        orders = np.zeros(equations.size, dtype=int)
        orders[structure.columns] = structure.d
        gap = orders[columns] - structure.c[rows][:, None]
        optimal = n + 2 * len(equations.constraints) + len(equations.actuated)  # first row with M nu
        of_mass = ((rows < n)[:, None] & (columns < n) & (gap == 2)
                   | (rows >= optimal)[:, None] & (columns >= nu.start) & (columns < nu.stop) & (gap == 0))
        # M is traced only where it is used: sums that share its nodes would round otherwise
        A = stage_matrix(structure, self.J, self.M if (present & of_mass).any() else None, slopes)[here]
        A[~present] = 0.0
        return A

    def _slopes(self, entries: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Any]:
        """d dynamics / d x_j or d x_j' (N,)."""
        n, found = len(self.equations.coordinates), {}
        for order, j in entries:
            unit = np.zeros((3, n))
            unit[order, j] = 1.0
            rates = Rates(*(jets(self.Y[s, :n], unit[s]) for s in range(3)))
            found[order, j] = derivative(self.equations.dynamics(self.situation.R, rates), 1)
        return found

    def right(self, k: int, rows: np.ndarray) -> list[Any]:
        """Return f_i^(k + c_i) of these rows, first rates of constraints by J."""
        structure, equations = self.structure, self.equations
        n, m = len(equations.coordinates), len(equations.constraints)
        orders = k + structure.c[rows]
        rate = (rows >= n) & (rows < n + m) & (orders == np.where(rows - n < equations.holonomic, 1, 0))
        values = dict(zip(rows[~rate].tolist(), stage_rows(structure, k, rows[~rate], self.Y, self.situation), strict=True))
        for i in rows[rate].tolist():
            values[i] = _products(self.J[i - n:i - n + 1], self.Y[1, :n])[0]
        return [values[i] for i in rows.tolist()]

    def changes(self, k: int, rows: np.ndarray, dY: np.ndarray) -> list[Any]:
        """Return the changes of f_i^(k + c_i) along changes dY of all derivatives."""
        equations, situation = self.equations, self.situation
        anchors: list[tuple[Any, Any]] = []
        if situation.anchors:
            pose = jets(self.Y[0, equations.joints], dY[0, equations.joints])
            anchors = contact_poses(equations, base_poses(equations.model, pose, Pose(situation.R, situation.p)))
        return list(row_changes(self.structure, k, rows.tolist(), self.Y, dY, replace(situation, anchors=anchors)))


def _written(value: Any) -> Any:
    """Return lists of words and numbers as text, each written out in full."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return [_written(getattr(value, one.name)) for one in fields(value)]
    if isinstance(value, frozenset | set):
        return sorted(value)
    if isinstance(value, Mapping):
        return [(key, _written(entry)) for key, entry in value.items()]
    return [_written(entry) for entry in value] if isinstance(value, list | tuple) else value


def _spread(factors: Sequence[LU]) -> Any:
    """Return the largest pivot of all factors by the smallest one."""
    return maximum([1.0 / factor.smallest for factor in factors]) * maximum([factor.largest for factor in factors])


def _products(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return A @ x without the terms of plain zeros."""
    found = np.zeros(len(A), dtype=object)
    for k, row in enumerate(A.tolist()):
        found[k] = sum((a * b for a, b in zip(row, x.tolist(), strict=True) if not isinstance(a, float) or a != 0.0), 0.0)
    return found
