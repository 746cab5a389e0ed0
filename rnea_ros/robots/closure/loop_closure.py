"""The loop equations of one tree, compiled: closed poses, and the motion of the passive joints at them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...algorithms import closed_loops
from ...codegen import kernel
from ...errors import InputError, ModelError, some
from ...model.tree import Model, frozen
from .loops import Loops
from .newton import CLOSED, MAX_CONDITION, Inverse, NewtonSolution, Units, inverse, newton, rank, walk
from .units import length_unit

NEARLY_REDUNDANT = 1e-3  # of the largest singular value
MOTION = ("q", "qd", "qdd", "qddd")


class LoopMotion(NamedTuple):
    """Motion of all n joints of the tree on closed loops, (n,) or (samples, n); G and its rate (..., n, N), see (56)."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    G: np.ndarray
    Gd: np.ndarray


class LoopClosure:
    """phi(q) = 0 for the spanning tree `model`; `start` is a closed pose of all its joints, where every walk begins."""

    def __init__(self, model: Model, loops: Loops, backend: str):
        self.model, self.loops, self._backend = model, loops, backend
        self.active = np.array(loops.active, dtype=int)
        self.passive = np.setdiff1d(np.arange(model.n), self.active)
        self.selection = np.eye(model.n)[:, self.active]
        self._compile()
        self.units = self._natural_units(loops.start)
        self.start = frozen(self._assembled(loops.start))
        self._check_mobility()

    def __getstate__(self) -> dict[str, Any]:
        """Without what is compiled: machine code holds addresses of this process."""
        return {name: value for name, value in self.__dict__.items() if not isinstance(value, kernel.Kernel)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._backend, self.start = kernel.available(self._backend), frozen(self.start)
        self._compile()

    def _compile(self) -> None:
        def phi(q):
            return closed_loops.closure(self.model, self.loops.cuts, q)

        def tangent(q, qd):
            return closed_loops.jacobian_and_rate(phi, q, qd)

        def rates(q, qd, qdd, qddd):
            return closed_loops.closure_rates(phi, q, qd, qdd, qddd)

        self._tangent = kernel.build(tangent, dict.fromkeys(MOTION[:2], self.model.n), self._backend)
        self._rates = kernel.build(rates, dict.fromkeys(MOTION, self.model.n), self._backend)

    # ------------------------------------------------------------------ one pose

    def gaps(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """phi (m,) and its Jacobian J (m, n) by all joints."""
        values, J, _ = self.tangent(q, np.zeros(self.model.n))
        return values, J

    def tangent(self, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, ...]:
        """phi, its Jacobian J (m, n) by all joints, and the rate of J."""
        return self._tangent(np.concatenate((q, qd)))

    def motion(self, q: np.ndarray, qad: np.ndarray, qadd: np.ndarray, qaddd: np.ndarray) -> LoopMotion:
        """Velocity, acceleration, jerk of all joints at a closed pose q, from those of the active ones (N,) each."""
        J_inverse = self._passive_inverse(self.gaps(q)[1])
        if J_inverse.condition > MAX_CONDITION:
            raise self._singular(q, J_inverse)

        def solve(r):
            change = np.zeros((self.model.n, *r.shape[1:]))
            change[self.passive] = -J_inverse.matrix @ r
            return change

        def rates(*motion):
            return self._rates(np.concatenate((q, *motion)))

        qd, qdd, qddd = closed_loops.tree_motion(rates, solve, [self.selection @ part for part in (qad, qadd, qaddd)])
        _, J, Jd = self.tangent(q, qd)
        return LoopMotion(q, qd, qdd, qddd, *closed_loops.active_map(J, Jd, solve, self.selection))

    def _passive_inverse(self, J: np.ndarray) -> Inverse:
        return inverse(J[:, self.passive], self._units_of(self.passive))

    def _units_of(self, joints: np.ndarray) -> Units:
        return Units(self.units.equations, self.units.unknowns[joints])

    # ------------------------------------------------------------------ closing

    def close(self, qa: np.ndarray, guess: np.ndarray) -> np.ndarray:
        """The pose of all joints at active positions qa (N,), on the branch of the closed pose near `guess` (n,)."""
        begin = self._solve(guess[self.active], guess)
        if begin.gap > CLOSED:
            raise InputError(f"guess: {self._worst_gap(begin.x)}; a pose of all {self.model.n} joints near a closed one is "
                             "needed")
        q0, step = begin.x, qa - guess[self.active]

        def active_at(s):
            return qa if s == 1.0 else q0[self.active] + step * s

        def solve_at(s, q):
            return self._solve(active_at(s), q)

        def slope_at(s, q):
            J = self.gaps(q)[1]
            J_inverse, slope = self._passive_inverse(J), self.selection @ step
            slope[self.passive] = -J_inverse.matrix @ (J @ slope)
            return slope, J_inverse.margin

        distance = self._units_of(self.active).length(step)
        q, reached = walk(solve_at, slope_at, q0, self.units, distance)
        if reached < 1.0:
            raise self._no_way(qa, q, reached)
        return q

    def _solve(self, qa: np.ndarray, guess: np.ndarray) -> NewtonSolution:
        """Newton on the passive joints, with the active ones at qa."""
        def full(passive):
            q = np.empty(self.model.n)
            q[self.active], q[self.passive] = qa, passive
            return q

        def system(passive):
            values, J = self.gaps(full(passive))
            return values, J[:, self.passive]

        solution = newton(system, guess[self.passive], self._units_of(self.passive))
        return solution._replace(x=full(solution.x))

    # ------------------------------------------------------------------ the mechanism as a whole

    def _natural_units(self, q: np.ndarray) -> Units:
        slides = np.array([joint.type == "prismatic" for joint in self.model.joints])
        levers = np.ix_(self.loops.lengths, ~slides)
        unit = length_unit(self.model, self.loops.cuts, q, lambda q: self.gaps(q)[1][levers])
        return Units(np.where(self.loops.lengths, unit, 1.0), np.where(slides, unit, 1.0))

    def _assembled(self, q: np.ndarray) -> np.ndarray:
        """The closed pose next to q: all joints give way."""
        solution = self._free_newton(q)
        if solution.gap > CLOSED:
            raise ModelError(f"the loops do not close near the pose to start from: {self._worst_gap(solution.x)} at best; "
                             "give 'start': {joint: position} near a closed pose", self.loops.where)
        return solution.x

    def _free_newton(self, q: np.ndarray) -> NewtonSolution:
        return newton(self.gaps, q, self.units)

    def _check_mobility(self) -> None:
        """As many active joints as the loops leave free, and such that they determine the others."""
        rng = np.random.default_rng(0)
        poses = [NewtonSolution(self.start, 0.0, 1.0)]
        poses += [self._free_newton(self.start + 0.05 * self.units.unknowns * rng.normal(size=self.model.n)) for _ in range(3)]
        ranks = [rank(self.gaps(pose.x)[1], self.units) for pose in poses if pose.gap <= CLOSED]
        equations, smallest = max(ranks)
        mobility = self.model.n - equations
        names = self.model.joint_names
        if mobility != len(self.active):
            given, every = some(names[k] for k in self.active), some(names)
            near = "" if smallest > NEARLY_REDUNDANT else (
                f"; an equation is all but redundant ({smallest:.1e}): are axes that should be parallel written with rounded "
                "angles?")
            advice = f"name {mobility} of {every}" if mobility else "it is a structure, not a mechanism"
            raise ModelError(f"{len(self.active)} active joints ({given}), but the loops leave {mobility} of the "
                             f"{self.model.n} joints free: {advice}{near}", self.loops.where)
        J_inverse = self._passive_inverse(self.gaps(self.start)[1])
        if J_inverse.condition > MAX_CONDITION:
            raise ModelError(f"{self._singular(self.start, J_inverse)}. This is the pose to start from: give another "
                             "'start', or name other active joints", self.loops.where)

    # ------------------------------------------------------------------ what went wrong

    def _singular(self, q: np.ndarray, J_inverse: Inverse) -> InputError:
        weak = [int(k) for k in self.passive[np.abs(J_inverse.weakest) > 0.3 * np.abs(J_inverse.weakest).max(initial=0.0)]]
        J = self.gaps(q)[1]
        loops = [name for name, rows in self.loops.rows() if np.abs(J[rows][:, weak]).max(initial=0.0) > 0.0]
        return InputError(f"loop '{some(loops)}' is singular at {self._positions(q[self.active])}: the active joints do "
                          f"not determine {some(self.model.joint_names[k] for k in weak)} there (condition number "
                          f"{J_inverse.condition:.2g}, at most {MAX_CONDITION:.0e} is allowed; {self._worst_gap(q)})")

    def _no_way(self, qa: np.ndarray, q: np.ndarray, reached: float) -> InputError:
        """Why the walk ended at the closed pose q, short of qa."""
        there = self._solve(qa, q)
        J_inverse = self._passive_inverse(self.gaps(there.x)[1])
        if there.gap <= np.sqrt(CLOSED) and J_inverse.condition > MAX_CONDITION:
            return self._singular(there.x, J_inverse)
        last = self._passive_inverse(self.gaps(q)[1]).condition
        return InputError(f"no way to {self._positions(qa)}: {100 * reached:.0f} % of the way from the guess, the loops come "
                          f"to a singular pose (condition number {last:.2g}); at the goal itself, {self._worst_gap(there.x)} "
                          "at best. The goal is out of reach, or it needs another way: give a guess nearer to it")

    def _worst_gap(self, q: np.ndarray) -> str:
        """The loop that is open most, and by how much."""
        name, size, unit = self.loops.worst(self.gaps(q)[0], self.units.equations)
        return f"loop '{name}' is open by {size:.3g} {unit}"

    def _positions(self, qa: np.ndarray) -> str:
        return ", ".join(f"{self.model.joint_names[k]} = {value:.6g}" for k, value in zip(self.active, qa, strict=True))
