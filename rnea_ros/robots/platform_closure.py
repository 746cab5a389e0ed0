"""Inverse kinematics of one platform, or of several in series: the pose and motion of their legs from their motion."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from math import atan2, sqrt
from typing import Any, NamedTuple

import numpy as np

from ..algorithms import closed_loops
from ..codegen import kernel
from ..codegen.kernel import Kernel
from ..codegen.program import larger
from ..errors import InputError, PoseError, some
from ..model.tree import Model
from . import validation
from .closure import (
    NOT_CLOSED,
    NOT_FOLLOWED,
    OPTIONS,
    OUT_OF_REACH,
    SINGULAR,
    LoopEquations,
    NewtonSolution,
    NewtonStep,
    TracedInverse,
    Units,
    convergence_indicator,
    largest,
    newton,
    norm,
    walk,
)
from .loops import Loops
from .platform_motion import PlatformMotion

NO_INDICATOR = np.zeros(1)


class TreeMotion(NamedTuple):
    """Motion of all joints of the tree, (n,) or (samples, n) each."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray


class PlatformClosure(LoopEquations):
    """Solves the loop equations for the legs of platforms, whose poses are given; walks begin from `start`, a closed pose.

    columns   : numbers of the joints whose motion the caller wants
    platforms : in the order in which their motions are given; rates of all of them stand in one array (6 platforms,)
    """

    cut_joint = "joint"

    def __init__(self, model: Model, loops: Loops, start: np.ndarray, columns: Sequence[int], backend: str):
        self.platforms = loops.platforms
        super().__init__(model, loops._replace(active=tuple(k for one in self.platforms for k in one.joints)), backend)
        self.start, self._columns = start, list(columns)
        unit = float(self.units.equations[self.loops.lengths].max(initial=1e-300))
        self._still = np.zeros(6 * len(self.platforms))
        self.twist_units = np.array([unit, unit, unit, 1.0, 1.0, 1.0] * len(self.platforms))

    def check_decided(self, trials: Sequence[np.ndarray]) -> None:
        """Raise InputError where platforms do not decide the other joints at any of these closed poses (n,)."""
        inverses = [self.passive_inverse(q) for q in trials]
        if all(one.condition > OPTIONS.max_condition for one in inverses):
            weakest = np.abs(inverses[0].weakest)
            names = some(self.model.joint_names[self.passive[k]] for k in np.flatnonzero(weakest > 0.3 * weakest.max()))
            platforms = some(one.link for one in self.platforms)
            raise InputError(f"the motion of {platforms} does not decide that of {names}, as of joints between the base and "
                             "the legs, or beyond a platform: give that of the actuators, q, qd, ...")

    def motion(self, motions: Sequence[PlatformMotion], guess: np.ndarray | None,
               orders: int) -> tuple[list[np.ndarray], np.ndarray]:
        """Return q, qd, qdd, qddd of the columns, (N,) or (samples, N), and of all joints, (4, n) or (samples, 4, n).

        motions : of each platform, one sample or as many samples each
        guess  : (n,) near the pose that is meant, else the pose from which the platform is led to its first pose
        orders : how many of velocity, acceleration and jerk the legs must allow
        Raises InputError at poses out of reach, singular poses, and motions that the legs do not allow.
        """
        checked = [motion.checked() for motion in motions]
        near = self.start if guess is None else guess
        counts = {len(motion.position) if motion.position.ndim > 1 else None for motion in checked}
        if len(counts) > 1:
            raise InputError(f"the motions of the platforms have {some(map(str, counts))} samples; as many are needed of each")
        if (count := counts.pop()) is None:
            return self._sample(checked, near, orders)
        found, every = np.zeros((4, count, len(self._columns))), np.zeros((count, 4, self.model.n))
        for k in range(count):
            with validation.at_sample(k):
                sample = [PlatformMotion(*(part[k] for part in motion)) for motion in checked]
                found[:, k], every[k] = self._sample(sample, near, orders)
            near = every[k, 0]
        return [*found], every

    def coordinates(self, rows: Sequence[np.ndarray], near: np.ndarray) -> np.ndarray:
        """Return the pose `near` (n,) with the platforms at the poses of rows of PlatformMotion."""
        for platform, row in zip(self.platforms, rows, strict=True):
            near = platform.coordinates(row[:9].reshape(3, 3), row[9:12], near)
        return near

    def rates(self, q: Any, *rates: Any) -> list[Any]:
        """Return first to third derivatives of the platforms' joints from twists, accelerations and jerks; any scalar."""
        parts = [platform.rates(q, *(rate[6 * k:6 * k + 6] for rate in rates)) for k, platform in enumerate(self.platforms)]
        return [np.concatenate(one) for one in zip(*parts, strict=True)]

    def _sample(self, motions: Sequence[PlatformMotion], near: np.ndarray,
                orders: int) -> tuple[list[np.ndarray], np.ndarray]:
        q = near
        for platform, motion in zip(self.platforms, motions, strict=True):
            q = platform.coordinates(motion.rotation, motion.position, q)
        one = len(motions) == 1
        rates = motions[0][2:] if one else [np.concatenate(parts) for parts in zip(*(motion[2:] for motion in motions),
                                                                                   strict=True)]
        found = self._follow.call(q, NO_INDICATOR, *rates)
        if found is None or found[5].item(0) > 1.0:
            rows = [motion.rows() for motion in motions]
            q = self.coordinates(rows, self.reach(rows, near))
            found = self._follow.call(q, NO_INDICATOR, *map(np.ascontiguousarray, rates))
            far = found is None or found[5][1] > OPTIONS.easy_condition
            if far and (condition := self.passive_inverse(q).condition) > OPTIONS.max_condition:
                raise self._singular_legs(q, condition)
            if found is None:
                raise validation.too_large("motion of the legs")
        *moved, every, _, sizes, left = found
        if max(sizes.tolist()[:orders], default=0.0) > OPTIONS.follow_tol:
            self._check_followed(left[:orders], rates)
        return moved, every

    # ------------------------------------------------------------------ compiled

    @cached_property
    def _follow(self) -> Kernel:
        """Close the legs by Newton's method and find their motion: q, qd, qdd, qddd of the columns; all joints (4, n);
        indicator and condition; sizes of what the legs do not follow, and that itself (3, m).
        """
        sizes = {"q": self.model.n, "indicator": 1, **dict.fromkeys(("velocity", "acceleration", "jerk"), len(self._still))}
        newton = self._closing, OPTIONS.last_step_gap, OPTIONS.compiled_steps
        return kernel.build(self._followed, sizes, self._backend, newton, self._recipe())

    def _recipe(self) -> str:
        """Everything that decides the kernel, in words and numbers."""
        frames = [(cut.name, cut.type, frame.link, frame.R.tolist(), frame.P.tolist())
                  for cut in self.loops.cuts for frame in (cut.first, cut.second)]
        numbers = [*(one.rotation for one in self.platforms), self.units.equations, self.units.unknowns, self.passive]
        return repr(("platform", self.model.model_id, frames, [(one.joints, one.chart) for one in self.platforms],
                     self._columns, [array.tolist() for array in numbers]))

    def _closing(self, q: Any, indicator: Any, **unused: Any) -> list[Any]:
        """Return a step of Newton's method and a further one with the same Jacobian: the error left is of third order."""
        values, J = closed_loops.jacobian(self.phi, q)
        _, solve = self.solver(TracedInverse, J, self.passive)
        first = solve(np.array(values))
        second = solve(np.array(self.phi(q + first)))
        lengths = [largest((part / self.units.unknowns)[self.passive]) for part in (first, second)]
        indicator = larger(indicator[0], convergence_indicator(*lengths))
        return [[*(q + first + second), indicator], [largest(values / self.units.equations)]]

    def motion_of_legs(self, q: Any, *rates: Any) -> tuple[Any, Any]:
        """Return first to third derivatives of all joints, and a bound of the condition number, from velocity, acceleration
        and jerk of the platform, at a closed pose; any scalar.
        """
        J_inverse, solve = self.solver(TracedInverse, closed_loops.jacobian(self.phi, q)[1], self.passive)
        given = self.rates(q, *rates)

        def closing(*motion: Any) -> Any:
            return closed_loops.closure_rates(self.phi, q, *motion)

        steps = closed_loops.tree_motion(closing, solve, [self.selection @ rate for rate in given])
        return steps, J_inverse.condition

    def _followed(self, q: Any, indicator: Any, **rates: Any) -> list[Any]:
        steps, condition = self.motion_of_legs(q, *rates.values())
        values, left = np.array(self.phi(q)), closed_loops.closure_rates(self.phi, q, *steps)
        gap = largest(values / self.units.equations) * (1.0 / OPTIONS.compiled_gap)
        every = [q, *steps]
        indicators = [larger(larger(indicator[0], gap), condition * (1.0 / OPTIONS.easy_condition)), condition]
        return [*(part[self._columns] for part in every), every, indicators,
                [norm(part / self.units.equations) for part in left], left]

    # ------------------------------------------------------------------ closing

    def reach(self, rows: Sequence[np.ndarray], guess: np.ndarray) -> np.ndarray:
        """Return the closed pose (n,) at the poses of rows, on the branch of a closed pose, or next to another guess."""
        begin = NewtonSolution(guess, self.step(guess, self._still))
        if not begin.closed:
            return self._near(rows, guess)
        starts = [platform.pose(guess) for platform in self.platforms]
        ways = [(row[9:12] - P0, rotation_vector(row[:9].reshape(3, 3) @ R0.T))
                for row, (R0, P0) in zip(rows, starts, strict=True)]
        twist = np.concatenate([part for way in ways for part in way])

        def posed(s: float) -> np.ndarray:
            if s == 1.0:
                return self.coordinates(rows, guess)
            q = guess
            for platform, (R0, P0), (slide, turn) in zip(self.platforms, starts, ways, strict=True):
                q = platform.coordinates(turned_by(turn * s) @ R0, P0 + slide * s, q)
            return q

        def step_at(q: np.ndarray, x: np.ndarray) -> NewtonStep:
            q[self.passive] = x
            step = self.step(q, self.rates(q, twist, self._still, self._still)[0])
            return step._replace(correction=step.correction[self.passive], slope=step.slope[self.passive])

        def solve_at(s: float, x: np.ndarray) -> NewtonSolution:
            there = newton(partial(step_at, posed(s)), x, units)
            passing = s < 1.0 and there.step.gap <= OPTIONS.max_passing_gap
            return NewtonSolution(there.x, there.step._replace(gap=0.0)) if passing else there

        units = Units(self.units.equations, self.units.unknowns[self.passive])
        x = guess[self.passive]
        x, reached = walk(solve_at, NewtonSolution(x, step_at(posed(0.0), x)), units,
                          max(map(abs, (twist / self.twist_units).tolist())))
        q = posed(reached)
        q[self.passive] = x
        if reached < 1.0:
            raise self._no_way(q, rows, reached)
        return q

    def _near(self, rows: Sequence[np.ndarray], guess: np.ndarray) -> np.ndarray:
        """Joints of the legs at the poses of rows, next to a guess."""
        solution = self._solve(rows, guess)
        if not solution.closed:
            raise PoseError(NOT_CLOSED, f"guess: {self.worst_gap(solution.x)} at best; positions of all joints near this "
                                        "pose are needed")
        if solution.step.condition > OPTIONS.max_condition:
            raise self._singular_legs(solution.x, solution.step.condition)
        return solution.x

    def _solve(self, rows: Sequence[np.ndarray], guess: np.ndarray) -> NewtonSolution:
        """Solve by singular values, which show the cause of an unreachable or singular pose."""
        return newton(lambda q: self.careful_step(q, self._still, self.passive), self.coordinates(rows, guess), self.units)

    # ------------------------------------------------------------------ what went wrong

    def _check_followed(self, left: Any, rates: Sequence[np.ndarray]) -> None:
        """Raise an error if the rates of the closure do not vanish: the legs do not allow this motion of the platform."""
        for order, (word, rate) in enumerate(zip(("velocity", "acceleration", "jerk"), left)):
            scale = max(1.0, *(float(np.abs(part / self.twist_units).max()) for part in rates[:order + 1]))
            if np.abs(rate / self.units.equations).max() > OPTIONS.follow_tol * scale ** (order + 1):
                name, size, unit = self.loops.worst(rate, self.units.equations)
                raise PoseError(NOT_FOLLOWED, f"the legs do not allow this {word} of the platform: it would tear joint "
                                              f"'{name}' apart, by {size:.3g} {unit}/s^{order + 1}. The platform must stay in "
                                              "the freedoms that the legs leave it")

    def _singular_legs(self, q: np.ndarray, condition: float) -> PoseError:
        weakest = np.abs(self.passive_inverse(q).weakest)
        names = some(self.model.joint_names[self.passive[k]] for k in np.flatnonzero(weakest > 0.3 * weakest.max(initial=0.0)))
        return PoseError(SINGULAR, f"a leg is at a singular pose: the platform does not determine {names} (condition number "
                                   f"{condition:.2g}, at most {OPTIONS.max_condition:.0e} is allowed)")

    def _no_way(self, q: np.ndarray, goals: Sequence[np.ndarray], reached: float) -> PoseError:
        there = self._solve(goals, q)
        if there.step.gap <= np.sqrt(OPTIONS.closed_gap) and there.step.condition > OPTIONS.max_condition:
            return self._singular_legs(there.x, there.step.condition)
        where = "; ".join(", ".join(f"{x:.6g}" for x in goal[9:12]) for goal in goals)
        return PoseError(OUT_OF_REACH, f"the legs do not bring the platform to ({where}): {100 * reached:.0f} % of the way, "
                                       f"they cannot follow (condition number {self.passive_inverse(q).condition:.2g}); at "
                                       f"the goal itself, {self.worst_gap(there.x)} at best. If it is in reach, give a guess "
                                       "of all joints")


def rotation_vector(R: np.ndarray) -> np.ndarray:
    """Return angle times axis of a rotation, at most half a turn."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = R.tolist()
    axis = np.array([zy - yz, xz - zx, yx - xy]) / 2.0
    s, c = sqrt(float(axis @ axis)), (xx + yy + zz - 1.0) / 2.0
    if s > 1e-9 or c > 0.0:
        return axis * (atan2(s, c) / s) if s > 0.0 else axis
    k = int(np.diag(R).argmax())  # half a turn: R + 1 = 2 u u^T
    return (R[:, k] + np.eye(3)[k]) / np.linalg.norm(R[:, k] + np.eye(3)[k]) * np.pi


def turned_by(v: np.ndarray) -> np.ndarray:
    """Return the rotation by the vector v, Rodrigues."""
    angle = float(np.linalg.norm(v))
    K = np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])
    return np.eye(3) + K * np.sinc(angle / np.pi) + K @ K * (0.5 * np.sinc(angle / (2.0 * np.pi)) ** 2)
