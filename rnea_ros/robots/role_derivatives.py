"""Partial derivatives of a Robot's solutions by its inputs, internal joint wrenches and Coriolis matrix.

A change dY of the inputs changes the unknowns of stage k by

    A dy^(k + d) = -dF_k,     dF_k = sum over inputs and lower stages of d f^(k + c) / d Y  dY

where A is the matrix of solution.py. The rows run on series in time whose coefficients are series of first order along dY, so
no table of derivatives is written down. Positions that follow from loops change by J dx = 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.taylor import derivative, jets
from ..algebra.vectors import Array, skew
from ..algorithms.closed_loops import HELD
from ..algorithms.equations import WORLD, Rates, pose_series
from ..algorithms.kinematics import Pose, base_poses
from ..errors import InputError, some
from . import validation
from .conditions import Conditions
from .motion_solver import MotionSolver, SolverSample
from .results import JointWrenches, RateSensitivities, TorqueSensitivities
from .solution import NOISE, RANK, Situation, Solver, constant_series, row_changes
from .structure import Structure, contact_poses
from .validation import results

ANCHOR = 12  # numbers of a contact's pose: R (3, 3) by rows, p (3,)


class RobotDerivatives:
    """Partial derivatives and internal joint wrenches of the motions of one robot, of one sample or of many."""

    def __init__(self, solver: MotionSolver):
        self._solver = solver
        self._of_use: dict[str, SolutionDerivatives] = {}

    def of(self, use: str) -> SolutionDerivatives:
        """Return the derivatives of solutions for a use of the equations."""
        if use not in self._of_use:
            tree, closure, samples = self._solver.tree, self._solver.closure, self._solver.samples
            independent = range(tree.n) if closure is None else closure.active
            self._of_use[use] = SolutionDerivatives(samples.solver(use), samples.inputs(use), tuple(independent),
                                                    samples.torque_rows(use))
        return self._of_use[use]

    def tables(self, stages: int, order: int, motion: Sequence[ArrayLike], guess: ArrayLike | None,
               given: Conditions) -> tuple[Array, ...]:
        """Return the partial derivatives of torques (stages 1) or rates (2), see Robot.sensitivities. order: of the robot."""
        solver, count = self._solver, order + stages - 1
        use, arrays, near, samples, sampled_at = solver.checked(stages, motion, guess, given)
        program = solver.program(use, stages, given, tangent=stages)
        tables = np.full((1 if samples is None else samples, count, solver.n, solver.n), np.nan)
        poses: Array | None = None
        if program is not None and samples != 0:
            poses = np.broadcast_to(solver.close(arrays[0], near), (len(tables), solver.tree.n))
            tables[:] = program.tables(program.rows(program.blocks(arrays, poses, given), len(tables)), count)
        for k in np.flatnonzero(np.isnan(tables).any(axis=(1, 2, 3))).tolist():
            sample = [array[k] if array.ndim == 2 else array for array in arrays]
            with validation.at_sample(k):
                solved = solver.sample(use, stages, sample, near if poses is None else poses[k], sampled_at(k),
                                       multipliers=False)  # any multipliers that solve the equations will do
                tables[k] = self.of(use).tables(solved.Y, solved.situation, count, stages)
            near = solved.pose
        found = [*(tables[0] if samples is None else np.swapaxes(tables, 0, 1))]
        kind: Any = {(3, 1): TorqueSensitivities, (3, 2): RateSensitivities}.get((order, stages))
        return tuple(found) if kind is None else kind(*found)

    def joint_wrenches(self, stages: int, motion: Sequence[ArrayLike], guess: ArrayLike | None,
                       given: Conditions) -> JointWrenches:
        """Return the internal force and moment of every joint that moves a link, see Robot.joint_wrenches."""
        solver = self._solver

        def of(sample: SolverSample) -> Array:
            if sample.open_multipliers:
                raise InputError(f"constraints of robot '{solver.name}' hold more than the motion needs and leave "
                                 f"{some(sample.open_multipliers)} open: what the joints transmit depends on how elastic the "
                                 "links are. Declare cut joints that hold no more than needed: in a planar loop, "
                                 "point_on_axis instead of revolute")
            return self.of(sample.use).joint_wrenches(sample.Y, sample.situation, stages - 1)

        found = solver.solved(stages, motion, guess, given, result=of)
        joints = solver.tree.moving_joints
        if isinstance(found, list):
            found = np.swapaxes(np.array(found).reshape(len(found), stages, len(joints), 6), 0, 1)
        return JointWrenches(joints, found[0], found[1] if stages == 2 else None)


class SolutionDerivatives:
    """Derivatives of the solutions of one robot with one choice of roles, and their kernels.

    Y (orders, size) is a solved array of solution.py: rows are orders, columns x, lambda, tau, nu, kappa.
    """

    def __init__(self, solver: Solver, inputs: tuple[Array, Array], independent: Sequence[int], efforts: Array):
        """Prepare nothing: kernels are those of the solver, compiled when they are first needed.

        inputs      : coordinate of each column of q, and how many derivatives of it are read, from order 0 (infinite: all)
        independent : joints of the tree whose positions are read; loops decide those of the others
        efforts     : (2, n, size), torques (n,) from the unknowns: efforts[0] @ Y[k] + efforts[1] @ Y[k + 1] in stage k
        """
        self._solver, self.equations, self.structure = solver, solver.equations, solver.structure
        self._inputs, self._efforts = inputs, efforts
        self._follows = [k for k in range(self.equations.model.n) if k not in independent]

    # ------------------------------------------------------------------ tables

    def tables(self, Y: Array, situation: Situation, count: int, stages: int) -> Array:
        """Return the partial derivatives (count, n, n) of the torques' derivatives of order stages - 1 by q, qd, ...

        Rows belong to torques.
        """
        equations, (indices, read) = self.equations, self._inputs
        n = len(indices)
        dY, anchors = np.zeros((count, n, *Y.shape)), np.zeros((count, n, ANCHOR * len(situation.anchors)))
        dY[0, :, 0, equations.joints] = moved = self._pose_changes(Y, situation)
        for k in range(1, min(count, len(Y))):
            dY[k, range(n), k, indices] = read > k
        if situation.anchors:  # contacts hold where the feet are
            for j, step in enumerate(moved):
                poses = base_poses(equations.model, jets(Y[0, equations.joints], step), Pose(situation.R, situation.p))
                anchors[0, j] = np.concatenate([derivative(part, 1).astype(float).ravel()
                                                for pose in contact_poses(equations, poses) for part in pose])
        change = self.changes(Y, situation, dY.reshape(-1, *Y.shape), anchors.reshape(count * n, -1), stages)
        efforts = change[:, stages - 1] @ self._efforts[0].T + change[:, stages] @ self._efforts[1].T
        results("a partial derivative", [efforts])
        return np.swapaxes(efforts.reshape(count, n, n), 1, 2)

    def _pose_changes(self, Y: Array, situation: Situation) -> Array:
        """Return the changes (n, joints of the tree) of the closed pose along each column of q."""
        equations, follows = self.equations, self._follows
        indices = self._inputs[0] - equations.base
        changes = np.zeros((len(indices), equations.model.n))
        changes[range(len(indices)), indices] = 1.0
        changes[:, follows] = 0.0
        if follows:
            rows = sum(len(HELD[cut.type]) for cut in equations.cuts if WORLD not in (cut.first.link, cut.second.link))
            J = self._solver.jacobian(Y[0, :len(equations.coordinates)], situation)[:rows, equations.joints]
            changes[:, follows] = -_least_squares(J[:, follows])(J @ changes.T).T
        return changes

    def changes(self, Y: Array, situation: Situation, dY: Array, anchors: Array, stages: int) -> Array:
        """Fill changes of the unknowns in dY and return it.

        dY      : (changes, orders, size), changes of the inputs, with the positions that follow from loops
        anchors : (changes, 12 contacts) of the poses of holding contacts
        stages  : number of stages from 0 up, as of Solver.solve
        """
        solve: Callable[[Array], Array] | None = None
        for k in range(self.structure.first_stage, stages):
            rows, columns = self.structure.stage(k)
            if not len(columns):
                continue
            orders, unknowns = k + self.structure.d[columns], self.structure.columns[columns]
            steps = np.zeros((0, *dY.shape[1:]))
            if solve is None or k < 1:
                steps = np.zeros((len(columns), *dY.shape[1:]))
                steps[range(len(columns)), orders, unknowns] = 1.0
            slopes = self._slopes(k, rows, Y, situation, np.concatenate((steps, dY)),
                                  np.concatenate((np.zeros((len(steps), anchors.shape[1])), anchors)))
            results("a partial derivative", [slopes])
            if solve is None or k < 1:
                solve = _least_squares(slopes[:len(steps)].T)
            dY[:, orders, unknowns] = -solve(slopes[len(steps):].T).T
        return dY

    def _slopes(self, k: int, rows: Array, Y: Array, situation: Situation, dY: Array, anchors: Array) -> Array:
        """Return the derivatives (changes, rows) of f_i^(k + c_i) along each change."""
        n = len(self.equations.coordinates)
        orders = int(max(k + self.structure.c[i] + (3 if i < n else 2) for i in rows)) if len(rows) else 1
        sizes = {**situation.sizes(), "Y": orders * Y.shape[1], "dY": orders * Y.shape[1], "moved": anchors.shape[1]}
        changed = dY[:, :orders].reshape(len(dY), -1)
        blocks = [*self._solver.payloads, *situation.blocks(), Y[:orders].ravel(), changed, anchors]
        kernel = self._solver.kernel(("changes", k, situation.key), self._traced(k, rows, orders, situation), sizes)
        return np.asarray(kernel.of_samples(blocks, len(dY))[0])

    def _traced(self, k: int, rows: Array, orders: int, situation: Situation) -> Callable[..., Any]:
        def evaluate(structure: Structure, R: Any, p: Any, Y: Any, dY: Any, moved: Any, **rest: Any) -> list[Any]:
            before, change = (values.reshape(orders, structure.equations.size) for values in (Y, dY))
            there = situation.traced(R, p, rest, _moved_anchors(rest, moved))
            return [row_changes(structure, k, rows.tolist(), before, change, there)]

        return evaluate

    # ------------------------------------------------------------------ joint wrenches

    def joint_wrenches(self, Y: Array, situation: Situation, order: int) -> Array:
        """Return the wrenches of all joints that move a link and their derivatives up to `order` (0 or 1), (order + 1,
        joints, 6).
        """
        equations, key = self.equations, ("wrenches", order, situation.key)
        n, m, orders = len(equations.coordinates), len(equations.constraints), order + 3

        def evaluate(structure: Structure, R: Any, p: Any, x: Any, multipliers: Any, **rest: Any) -> list[Any]:
            equations, there = structure.equations, situation.traced(R, p, rest)
            X, pull = x.reshape(orders, n), multipliers.reshape(order + 1, m)
            at = _pose(R, p, X[1:, :6], order) if equations.base else (R, p)
            rates = Rates(*(jets(*(X[s] for s in range(start, start + order + 1))) for start in range(3)))
            wrenches = {link: jets(*(given[k] if k < len(given) else np.zeros(6) for k in range(order + 1)))
                        for link, given in there.wrenches.items()}
            found = equations.transmitted(*at, rates, jets(*pull), constant_series(there.anchors, order), wrenches=wrenches,
                                          world_wrenches=there.world_wrenches)
            return [[derivative(np.array(found), k) for k in range(order + 1)]]

        sizes = {**situation.sizes(), "x": orders * n, "multipliers": (order + 1) * m}
        pull = Y[:order + 1, equations.parts["lambda"]]
        blocks = (*self._solver.payloads, *situation.blocks(), Y[:orders, :n].ravel(), pull.ravel())
        found = self._solver.kernel(key, evaluate, sizes)(np.concatenate(blocks))[0]
        results("a joint wrench", [found])
        return found

    # ------------------------------------------------------------------ Coriolis matrix

    def coriolis(self, x: Array, v: Array) -> tuple[Array, Array]:
        """Return C (N, N) of all coordinates with C v their velocity efforts and M' - 2 C skew, and M.

        C = (M' + D - D^T) / 2 + S, D = d (M v) / dx: Christoffel symbols along v. A moving base, whose velocity is along its
        own axes, adds S = -[[0, [p]], [[p], [L]]] with the momentum (p, L) of all.
        """
        equations, size = self.equations, len(x)

        def evaluate(structure: Structure, step: Any, x: Any) -> list[Any]:
            M = structure.equations.mass_matrix(jets(x, step))
            return [derivative(M, 0), derivative(M, 1)]

        steps = np.eye(size)[equations.base:]  # the pose of the base does not matter
        kernel = self._solver.kernel("coriolis", evaluate, {"step": size, "x": size})
        masses, slopes = kernel.of_samples([*self._solver.payloads, steps, x], len(steps))
        M = masses[0] if len(steps) else np.zeros((size, size))
        D, rate = np.zeros((2, size, size))
        D[:, equations.base:] = np.einsum("kij,j->ik", slopes, v)
        rate = np.einsum("kij,k->ij", slopes, v[equations.base:])
        C = 0.5 * (rate + D - D.T)
        if equations.base:
            p, L = np.split((M @ v)[:6], 2)
            C[:3, 3:6] -= skew(p)
            C[3:6, :3] -= skew(p)
            C[3:6, 3:6] -= skew(L)
        return C, M


def _pose(R: Any, p: Any, velocity: Any, order: int) -> tuple[Any, Any]:
    """Series of the pose of a moving base."""
    turns, positions = pose_series(R.reshape(3, 3), p, velocity, order)
    return jets(*turns), jets(*positions)


def _least_squares(A: Array) -> Callable[[Array], Array]:
    """Return a function of b that gives the x of least norm of A x = b, rows and columns scaled, refined once."""
    size = _scale(np.abs(A).max(axis=0, initial=0.0))
    tall = _scale(np.abs(A / size).max(axis=1, initial=0.0))
    scaled = A / size / tall[:, None]
    pseudo = np.linalg.pinv(scaled, rcond=RANK)

    def solve(b: Array) -> Array:
        right = b / tall[:, None]
        z = pseudo @ right
        z = z + pseudo @ (right - scaled @ z)
        return np.asarray(z / size[:, None])

    return solve


def _scale(sizes: Array) -> Array:
    """Return the sizes, infinite where rounding alone makes a row or column differ from zero."""
    return np.where(sizes <= NOISE * sizes.max(initial=0.0), np.inf, sizes)


def _moved_anchors(blocks: Mapping[str, Any], moved: Any) -> list[tuple[Any, Any]]:
    """Return poses of the contacts with their changes as series."""
    found: list[tuple[Any, Any]] = []
    while f"anchor{len(found)}" in blocks:
        k = len(found)
        values = jets(blocks[f"anchor{k}"], moved[ANCHOR * k:ANCHOR * (k + 1)])
        found.append((values[:9].reshape(3, 3), values[9:]))
    return found
