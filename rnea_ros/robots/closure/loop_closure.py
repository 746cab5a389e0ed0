"""Closed poses of a tree with loops, and its motion at them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...algorithms import closed_loops
from ...codegen import kernel
from ...codegen.kernel import Kernel
from ...errors import ModelError, PoseError, some
from ...model.tree import Model, frozen
from ..inputs.validation import too_large
from .loops import Loops
from .newton import (
    CLOSED,
    EASY,
    MAX_CONDITION,
    NOT_CLOSED,
    NOWHERE,
    OUT_OF_REACH,
    SINGULAR,
    Inverse,
    NewtonSolution,
    NewtonStep,
    TracedInverse,
    Units,
    inverse,
    length_unit,
    newton,
    norm,
    rank,
    walk,
)

RATES = ("qad", "qadd", "qaddd")  # of the active joints
EVALUATIONS = 60  # number of evaluations of the gaps that take less time than their compilation


class LoopMotion(NamedTuple):
    """Motion of all n joints of the tree on closed loops, (n,) or (samples, n); G and its rate (..., n, N), see (56)."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    G: np.ndarray
    Gd: np.ndarray


class LoopEquations:
    """phi(q) = 0 for the spanning tree `model`; a cached_property that holds a kernel is compiled when it is first needed.

    active, passive : numbers of the joints that are given, and of those that follow; movable: both, without charts
    selection       : unit columns (n, N) of the active joints
    units           : scales of equations and joints
    """

    cut_joint = "loop"  # word for a cut joint in messages

    def __init__(self, model: Model, loops: Loops, backend: str, at_once: bool = True):
        """Prepare the equations of a model with loops.

        at_once: whether kernels are compiled when they are first needed; if not, the first EVALUATIONS are computed without,
                 and steps by singular values
        """
        self.model, self.loops, self._backend = model, loops, backend
        self.active = np.array(loops.active, dtype=int)
        self.active_joints = tuple(model.joint_names[k] for k in self.active)
        self._at_once, self._evaluations = at_once, 0
        self.movable = np.setdiff1d(np.arange(model.n), loops.charts)
        self.passive = np.setdiff1d(self.movable, self.active)
        self.selection = np.eye(model.n)[:, self.active]
        self.units = self._natural_units(loops.start)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is compiled: machine code holds addresses of this process."""
        return {name: value for name, value in self.__dict__.items() if not isinstance(value, Kernel)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._backend = kernel.available(self._backend)

    def _natural_units(self, q: np.ndarray) -> Units:
        slides = np.array([joint.type == "prismatic" for joint in self.model.joints])
        levers = np.ix_(self.loops.lengths, ~slides)
        unit = length_unit(self.model, self.loops.cuts, q, lambda q: self.gaps(q)[1][levers])
        return Units(np.where(self.loops.lengths, unit, 1.0), np.where(slides, unit, 1.0))

    # ------------------------------------------------------------------ for any scalar

    @cached_property
    def phi(self) -> closed_loops.Closure:
        return closed_loops.closure(self.model, self.loops.cuts)

    def solver(self, inverse_of: Callable[..., Any], J: Any, giving: np.ndarray) -> tuple[Any, Callable[[Any], Any]]:
        """Return the inverse of J by the joints `giving`, and r -> the change of all joints by which phi changes by -r."""
        J_inverse = inverse_of(J[:, giving], Units(self.units.equations, self.units.unknowns[giving]))
        return J_inverse, lambda r: -(np.eye(len(self.selection))[:, giving] @ (J_inverse @ r))

    def _linearised(self, inverse_of: Callable[..., Any], values: Any, J: Any, giving: np.ndarray,
                    direction: Any) -> tuple[Any, ...]:
        """Return the parts of a NewtonStep, with the active joints going along `direction`; any scalar."""
        J_inverse, solve = self.solver(inverse_of, J, giving)
        along, correction = self.selection @ direction, solve(values)
        sizes = norm(values / self.units.equations), norm(correction / self.units.unknowns)
        return correction, along + solve(J @ along), [*sizes, J_inverse.condition, J_inverse.margin]

    def step_of(self, q: Any, direction: Any) -> tuple[Any, ...]:
        """Return the parts of a NewtonStep of the passive joints."""
        values, J = closed_loops.jacobian(self.phi, q)
        return self._linearised(TracedInverse, values, J, self.passive, direction)

    def motion_of(self, q: Any, qad: Any, qadd: Any, qaddd: Any) -> tuple[Any, ...]:
        """Velocities, accelerations, jerks of all joints, G, Gd, and a bound of the condition number, at a closed pose q."""
        def rates(*motion):
            return closed_loops.closure_rates(self.phi, q, *motion)

        J_inverse, solve = self.solver(TracedInverse, closed_loops.jacobian(self.phi, q)[1], self.passive)
        steps = closed_loops.tree_motion(rates, solve, [self.selection @ part for part in (qad, qadd, qaddd)])
        J, Jd = closed_loops.jacobian_and_rate(self.phi, q, steps[0])
        return *steps, *closed_loops.active_map(J, Jd, solve, self.selection), [J_inverse.condition]

    # ------------------------------------------------------------------ compiled

    @cached_property
    def _gaps(self) -> Kernel:
        def gaps(q):
            return closed_loops.jacobian(self.phi, q)

        return kernel.build(gaps, {"q": self.model.n}, self._backend)

    @cached_property
    def _step(self) -> Kernel:
        return kernel.build(self.step_of, {"q": self.model.n, "direction": len(self.active)}, self._backend)

    @cached_property
    def _motion(self) -> Kernel:
        return kernel.build(self.motion_of, {"q": self.model.n, **dict.fromkeys(RATES, len(self.active))}, self._backend)

    # ------------------------------------------------------------------ at one pose

    def gaps(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """phi (m,) and its Jacobian J (m, n) by all joints."""
        if not self._at_once and self._evaluations < EVALUATIONS:
            self._evaluations += 1
            values, J = (np.array(part, dtype=float) for part in closed_loops.jacobian(self.phi, q))
        else:
            values, J = self._gaps(q)
        return values, J

    def compile(self) -> None:
        """Compile gaps and steps now, so that distant poses are reached, or rejected, without delay."""
        self._at_once = True
        self.gaps(self.loops.start)
        self.step(self.loops.start, np.zeros(len(self.active)))

    def step(self, q: np.ndarray, direction: np.ndarray) -> NewtonStep:
        """Return the step of the passive joints while the active ones move along `direction`."""
        return (self._at_once and self._quick_step(q, direction)) or self.careful_step(q, direction, self.passive)

    def _quick_step(self, q: np.ndarray, direction: np.ndarray) -> NewtonStep | None:
        """Return the step by the kernel; None if the bounds of the singular values are not tight enough."""
        if found := self._step.call(q, direction):
            step = NewtonStep(found[0], found[1], *found[2].tolist())
            if step.condition <= EASY:
                return step
        return None

    def careful_step(self, q: np.ndarray, direction: np.ndarray, giving: np.ndarray) -> NewtonStep:
        """Return the step by singular values, also where they vanish; giving: the joints that may move to close the loops."""
        values, J = self.gaps(q)
        if not np.isfinite(values).all():
            return NOWHERE
        correction, slope, sizes = self._linearised(inverse, values, J, giving, direction)
        return NewtonStep(correction, slope, *map(float, sizes))

    def passive_inverse(self, q: np.ndarray) -> Inverse:
        """Return the inverse of the Jacobian by the passive joints, by singular values."""
        return inverse(self.gaps(q)[1][:, self.passive], Units(self.units.equations, self.units.unknowns[self.passive]))

    def worst_gap(self, q: np.ndarray) -> str:
        """Return the cut joint that is open most, and by how much, for messages."""
        name, size, unit = self.loops.worst(self.gaps(q)[0], self.units.equations)
        return f"{self.cut_joint} '{name}' is open by {size:.3g} {unit}"

    def evaluated(self, q: np.ndarray, *rates: np.ndarray) -> tuple[LoopMotion | None, float]:
        """Motion at a closed pose q under rates of the active joints (N,) each, if it is finite; a bound of the condition."""
        if found := self._motion.call(q, *rates) or self._motion.call(*map(frozen, (q, *rates))):
            return LoopMotion(q, *found[:-1]), found[-1].item()
        return None, np.inf


NEARLY_REDUNDANT = 1e-3  # of the largest singular value


class LoopClosure(LoopEquations):
    """Solves the loop equations; `start` is a closed pose of all joints of the tree, where every walk begins.

    trials : closed poses near it, by which the mechanism as a whole is judged
    """

    def __init__(self, model: Model, loops: Loops, backend: str, at_once: bool = True):
        super().__init__(model, loops, backend, at_once)
        self.start = frozen(self.regular(self._assembled(loops.start)))
        self._check_mobility()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.start = frozen(self.start)

    def motion(self, q: np.ndarray, qad: np.ndarray, qadd: np.ndarray, qaddd: np.ndarray) -> LoopMotion:
        """Velocity, acceleration, jerk of all joints at a closed pose q, from those of the active ones (N,) each."""
        motion, condition = self.evaluated(q, qad, qadd, qaddd)
        if condition > EASY and (J_inverse := self.passive_inverse(q)).condition > MAX_CONDITION:
            raise self._singular(q, J_inverse)
        if motion is None:
            raise too_large("motion of the passive joints")
        return motion

    def motions(self, poses: np.ndarray, *rates: np.ndarray) -> LoopMotion:
        """Return the motion of many samples: closed poses (samples, n), rates of the active joints (samples, N)."""
        found = self._motion.samples((poses, *rates), len(poses))
        if found is not None and found[-1].max(initial=0.0) <= EASY:
            return LoopMotion(poses, *found[:-1])
        return LoopMotion(*map(np.array, zip(*map(self.motion, poses, *rates), strict=True)))

    # ------------------------------------------------------------------ closing

    def close(self, qa: np.ndarray, guess: np.ndarray) -> np.ndarray:
        """Return the pose of all joints at active positions qa (N,), on the branch of the closed pose near `guess` (n,)."""
        guess = self.regular(guess)
        from_qa = guess[self.active]
        direction = qa - from_qa

        def step_at(q):
            return self.step(q, direction)

        def solve_at(s, q):
            q[self.active] = qa if s == 1.0 else from_qa + direction * s
            return newton(step_at, q, self.units)

        begin = NewtonSolution(guess, step_at(guess))
        if not begin.closed:
            begin = newton(step_at, guess, self.units)
        if not begin.closed:
            raise PoseError(NOT_CLOSED, f"guess: {self.worst_gap(begin.x)}; a pose of all {self.model.n} joints near a "
                                        "closed one is needed")
        q, reached = walk(solve_at, begin, self.units)
        if reached < 1.0:
            further = self.regular(q)
            if further is not q:
                return self.close(qa, further)
            raise self._no_way(qa, q, reached)
        return self.regular(q)

    def regular(self, q: np.ndarray) -> np.ndarray:
        """Return the same pose, the angles of platforms by other charts where they are close to singular."""
        for platform in self.loops.platforms:
            q = platform.regular(q)
        return q

    # ------------------------------------------------------------------ the mechanism as a whole

    def _assembled(self, q: np.ndarray) -> np.ndarray:
        """Return the closed pose nearest to q: all joints may move, platforms stay at their home pose."""
        solution = self._free_newton(q, np.setdiff1d(self.movable, self.loops.virtual))
        if not solution.closed and self.loops.platforms:
            raise ModelError("the legs do not reach the platform at the home pose: "
                             f"{self.worst_gap(solution.x)} at best; give another home pose, or 'start': "
                             "{joint: position} for the legs", self.loops.where)
        if not solution.closed:
            raise ModelError(f"the loops do not close near the pose to start from: {self.worst_gap(solution.x)} at best; "
                             "give 'start': {joint: position} near a closed pose", self.loops.where)
        return solution.x

    def _free_newton(self, q: np.ndarray, giving: np.ndarray) -> NewtonSolution:
        still = np.zeros(len(self.active))
        return newton(lambda q: self.careful_step(q, still, giving), q, self.units)

    def _check_mobility(self) -> None:
        """Raise an error unless the active joints are as many as the loops leave free, and determine the others."""
        rng = np.random.default_rng(0)
        moved = np.isin(np.arange(self.model.n), self.movable)
        poses = [self._free_newton(self.start + 0.05 * self.units.unknowns * moved * rng.normal(size=self.model.n),
                                   self.movable) for _ in range(3)]
        self.trials = closed = [self.start, *(pose.x for pose in poses if pose.closed)]
        ranks = [rank(self.gaps(q)[1], self.units) for q in closed]
        equations, smallest = max(ranks)
        mobility = len(self.movable) - equations
        names = [name for k, name in enumerate(self.model.joint_names) if k not in self.loops.virtual]
        self._check_attached(closed)
        if mobility != len(self.active):
            given, every = some(self.active_joints), some(names)
            near = "" if smallest > NEARLY_REDUNDANT else (
                f"; an equation is all but redundant ({smallest:.1e}): are axes that should be parallel written with rounded "
                "angles?")
            advice = f"name {mobility} of {every}" if mobility else "it is a structure, not a mechanism"
            raise ModelError(f"{len(self.active)} active joints ({given}), but the loops leave {mobility} of the "
                             f"{len(self.movable)} joints free: {advice}{near}", self.loops.where)
        J_inverse = self.passive_inverse(self.start)
        if J_inverse.condition > MAX_CONDITION:
            raise ModelError(f"{self._singular(self.start, J_inverse)}. This is the pose to start from: give another "
                             "'start', or name other active joints", self.loops.where)

    def _check_attached(self, poses: Sequence[np.ndarray]) -> None:
        """Every joint of a robot with platforms moves a cut joint."""
        idle = ~np.any([self.gaps(q)[1].any(axis=0) for q in poses], axis=0)
        if self.loops.platforms and idle[self.passive].any():
            names = some(self.model.joint_names[k] for k in np.flatnonzero(idle) if k not in self.loops.virtual)
            raise ModelError(f"joints {names} move no cut joint; every leg must be attached to the platform", self.loops.where)

    # ------------------------------------------------------------------ what went wrong

    def _singular(self, q: np.ndarray, J_inverse: Inverse) -> PoseError:
        weak = [int(k) for k in self.passive[np.abs(J_inverse.weakest) > 0.3 * np.abs(J_inverse.weakest).max(initial=0.0)]]
        J = self.gaps(q)[1]
        loops = [name for name, rows in self.loops.rows() if np.abs(J[rows][:, weak]).max(initial=0.0) > 0.0]
        return PoseError(SINGULAR, f"loop '{some(loops)}' is singular at {self._positions(q[self.active])}: the active joints "
                                   f"do not determine {some(self.model.joint_names[k] for k in weak)} there (condition number "
                                   f"{J_inverse.condition:.2g}, at most {MAX_CONDITION:.0e} is allowed; {self.worst_gap(q)})")

    def _no_way(self, qa: np.ndarray, q: np.ndarray, reached: float) -> PoseError:
        """Why the walk ended at the closed pose q, short of qa."""
        at_goal, still = q.copy(), np.zeros(len(self.active))
        at_goal[self.active] = qa
        there = newton(lambda q: self.careful_step(q, still, self.passive), at_goal, self.units)
        J_inverse = self.passive_inverse(there.x)
        if there.step.gap <= np.sqrt(CLOSED) and J_inverse.condition > MAX_CONDITION:
            return self._singular(there.x, J_inverse)
        last = self.passive_inverse(q).condition
        return PoseError(OUT_OF_REACH, f"no way to {self._positions(qa)}: {100 * reached:.0f} % of the way from the guess, "
                                       f"the loops come to a singular pose (condition number {last:.2g}); at the goal itself, "
                                       f"{self.worst_gap(there.x)} at best. The goal is out of reach, or it needs another "
                                       "way: give a guess nearer to it")

    def _positions(self, qa: np.ndarray) -> str:
        return ", ".join(f"{self.model.joint_names[k]} = {value:.6g}" for k, value in zip(self.active, qa, strict=True))
