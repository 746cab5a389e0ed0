"""Closed poses of a tree with loops: Newton's method, the motion at them, and streams of samples.

Walks to far poses never leave the branch on which they began.

Along a stream each pose is found from the last one (LoopTracker). Robots are followed from pose to pose and never through a
singular one, so they stay on the branch on which they began. The branch is determined by the sensors of passive joints, if
there are any: the first pose is the one closest to them. Later poses are compared with them; if they differ by more than a
tolerance, for example after a gap in the stream, the pose closest to the measurements is used instead, if it agrees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..algebra.linalg import LeastSquares
from ..algorithms import closed_loops
from ..algorithms.closed_loops import Cut
from ..algorithms.kinematics import base_poses, within
from ..codegen import kernel
from ..codegen.kernel import Kernel
from ..codegen.program import larger
from ..errors import InputError, ModelError, PoseError, Rejected, shown, some
from ..model.tree import Model, frozen
from . import validation
from .loops import Loops
from .validation import too_large

# ------------------------------------------------------------------ Newton's method




@dataclass(frozen=True)
class ClosureOptions:
    """Tuning of Newton's method on loop equations. Gaps, steps and corrections: rad, or shares of the unit of length."""

    min_lever_share: float = 1e-9  # of the distance of the machine from the root: a shorter lever is a rounding error
    trial_poses: int = 8  # further poses: at the first one an axis may pass through the cut joint by chance
    max_condition: float = 1e7  # beyond it a pose counts as singular: torques would keep fewer than nine digits
    easy_condition: float = 1e6  # up to which bounds do instead of singular values
    rank_tol: float = 1e-7  # a singular value below this share of the largest is zero
    nearly_redundant_share: float = 1e-3  # of the largest singular value
    closed_gap: float = 1e-10  # a larger gap is not closed
    rounding_gap: float = 1e-15  # a gap below this cannot be made smaller
    max_step: float = 0.3  # longest step that is taken at once,
    max_step_per_singular_value: float = 0.5  # or this share of the smallest one: another branch may be as near as that
    min_walk_share: float = 1e-6  # of the way: a walk that has to step shorter has run into a wall
    max_iterations: int = 60
    max_steps_without_progress: int = 8  # where there is no solution, Newton's method wanders about
    last_step_gap: float = 3e-6  # before the last compiled step, whose error is of third order
    compiled_steps: int = 6
    max_first_correction: float = 0.3  # a longer one may leave the branch
    max_contraction: float = 0.2  # second correction by the first: Newton's method converges without leaving the branch
    rounding_correction: float = 1e-9  # corrections below are rounding
    evaluations_before_compiling: int = 60  # of the gaps, which take less time than their compilation
    max_passing_gap: float = 0.05  # how far the straight way between two poses of platforms may leave the allowed ones
    follow_tol: float = 1e-7  # share of a velocity, acceleration or jerk of the platform that the legs may fail to follow
    compiled_gap: float = 1e-11  # that the compiled steps of platforms leave


OPTIONS = ClosureOptions()


class Units(NamedTuple):
    """Unit of every equation and of every unknown."""

    equations: np.ndarray
    unknowns: np.ndarray

    def length(self, change: np.ndarray) -> float:
        """Return the largest change of an unknown, in units."""
        return max(map(abs, (change / self.unknowns).tolist()), default=0.0)  # they are few: sooner done than by numpy


def length_unit(model: Model, cuts: Iterable[Cut], start: np.ndarray, levers: Callable[[np.ndarray], np.ndarray]) -> float:
    """Return it in metres. levers: at a pose (n,) of all joints."""
    poses = base_poses(model, start)
    ends = [frame for cut in cuts for frame in (cut.first, cut.second)]
    between = _between(model, cuts)
    frames = [*ends, *(frame for frame in model.frames.values() if frame.link in between)]
    points = np.array([within(poses[frame.link], (frame.R, frame.P))[1] for frame in frames])
    reach, spread = np.abs(points).max(initial=0.0), np.ptp(points, axis=0).max(initial=0.0)
    rng, slides = np.random.default_rng(0), np.array([joint.type == "prismatic" for joint in model.joints])
    elsewhere = start + np.where(slides, spread, 1.0) * rng.normal(size=(OPTIONS.trial_poses, model.n))
    lever = max(float(np.abs(levers(q)).max(initial=0.0)) for q in (start, *elsewhere))
    return next((float(length) for length in (lever, spread) if length > OPTIONS.min_lever_share * reach), 1.0)


def _between(model: Model, cuts: Iterable[Cut]) -> set[int]:
    """Numbers of the links between the two frames of a cut joint: those that move one against the other."""
    return {k for cut in cuts for k in _way(model, cut.first.link) ^ _way(model, cut.second.link)}


def _way(model: Model, number: int) -> set[int]:
    """Links from one to the root, which does not count."""
    found = set()
    while number > 0:
        found.add(number)
        number = model.links[number].parent
    return found


FAR = 1e300  # the smallest singular value where there is nothing to solve for


class Inverse(NamedTuple):
    """Least-squares inverse of a Jacobian; its condition number; the smallest singular value, 0 at singular poses; and the
    motion that is determined worst (unit vector).
    """

    matrix: np.ndarray
    condition: float
    margin: float
    weakest: np.ndarray

    def __matmul__(self, r: np.ndarray) -> np.ndarray:
        return self.matrix @ r


class TracedInverse:
    """Inverse for any scalar, so that a kernel can be traced: `condition` is an upper bound, `margin` a lower bound.

    The Jacobian must determine all unknowns; where it does not, `condition` is large, or no number.
    """

    def __init__(self, J: np.ndarray, units: Units):
        self._units, scaled = units, J / units.equations[:, None] * units.unknowns
        self.condition: Any = 1.0
        self.margin: Any = FAR
        with np.errstate(all="ignore"):  # of floats, at singular poses
            self._inverse = LeastSquares(scaled)
            if units.unknowns.size:
                self.condition, self.margin = norm(scaled.ravel()) * self._inverse.norm, 1.0 / self._inverse.norm

    def __matmul__(self, r: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            found = self._inverse @ (r.T / self._units.equations).T
        return (found.T * self._units.unknowns).T


def norm(x: Any) -> Any:
    """2-norm, for any scalar."""
    return np.sqrt(sum((a * a for a in x), 0.0))


def inverse(J: np.ndarray, units: Units) -> Inverse:
    """Return the inverse of J (equations, unknowns). Its condition number is infinite if J does not determine all unknowns."""
    scaled = J / units.equations[:, None] * units.unknowns
    unknowns = J.shape[1]
    if not unknowns:
        return Inverse(np.zeros(J.T.shape), 1.0, FAR, np.zeros(0))
    U, s, Vt = np.linalg.svd(scaled, full_matrices=len(J) < unknowns)
    s = np.append(s, np.zeros(unknowns - len(s)))
    kept = s > s[0] * np.finfo(float).eps * max(J.shape)
    count = int(kept.sum())
    pseudo = (Vt[:count].T / s[:count]) @ U[:, :count].T
    condition = float(s[0] / s[-1]) if kept.all() else np.inf
    return Inverse(units.unknowns[:, None] * pseudo / units.equations, condition, float(s[-1]), Vt[-1])


def rank(J: np.ndarray, units: Units) -> tuple[int, float]:
    """Rank of J, and the smallest singular value that was counted, relative to the largest."""
    s = np.linalg.svd(J / units.equations[:, None] * units.unknowns, compute_uv=False)
    if not s.size or s[0] == 0.0:
        return 0, 1.0
    count = int((s > s[0] * OPTIONS.rank_tol).sum())
    return count, float(s[count - 1] / s[0])


NOT_CLOSED, OUT_OF_REACH, SINGULAR, NOT_FOLLOWED = (  # reasons of a PoseError
    "guess is not closed", "out of reach", "singular", "motion that the legs do not allow")


class NewtonStep(NamedTuple):
    """NewtonStep of Newton's method at a pose, and the direction of a walk from there.

    correction : of the pose, by Newton's method
    slope      : of the pose along the walk, d x / d s
    gap        : of the equations; length: of the correction; both in units, 2-norms
    condition  : of the equations' Jacobian; margin: its smallest singular value
    """

    correction: np.ndarray
    slope: np.ndarray
    gap: float
    length: float
    condition: float
    margin: float


class NewtonSolution(NamedTuple):
    """A pose, and the step from there."""

    x: np.ndarray
    step: NewtonStep

    @property
    def closed(self) -> bool:
        return self.step.gap <= OPTIONS.closed_gap


NOWHERE = NewtonStep(np.zeros(0), np.zeros(0), np.inf, 0.0, np.inf, 0.0)


def newton(step_at: Callable[[np.ndarray], NewtonStep], x: np.ndarray, units: Units) -> NewtonSolution:
    """Zero of the equations near x, or the closest that Gauss-Newton comes to it."""
    best, closest = NewtonSolution(x, NOWHERE), 0
    for k in range(OPTIONS.max_iterations):
        if not np.isfinite(x).all():  # kernels in Python refuse sines of infinity
            break
        step = step_at(x)
        if not step.gap < np.inf:
            break
        settled = best.closed and step.gap >= 0.5 * best.step.gap  # rounding is all that is left
        if step.gap < best.step.gap:
            best, closest = NewtonSolution(x, step), k
        if settled or step.gap <= OPTIONS.rounding_gap or k - closest > OPTIONS.max_steps_without_progress:
            break
        x = x + step.correction * (1.0 if step.length <= OPTIONS.max_step else
                                   min(1.0, OPTIONS.max_step / units.length(step.correction)))
    return best


def walk(solve_at: Callable[[float, np.ndarray], NewtonSolution], at: NewtonSolution, units: Units,
         distance: float = 0.0) -> tuple[np.ndarray, float]:
    """Follow the solution from s = 0 to s = 1 without leaving its branch; returns (x, how far it came).

    solve_at(s, guess) -> NewtonSolution; at : the solution at 0; distance: how far what is not in x moves on the whole way.
    Branches meet at singular poses. Near one, the smallest singular value measures how near: steps stay well below it, as the
    theorem of Newton and Kantorovich asks for, and shrink to nothing where the walk would have to pass through.
    """
    s = 0.0
    while s < 1.0:
        x, step = at
        stride = min(OPTIONS.max_step, OPTIONS.max_step_per_singular_value * step.margin)
        h = stride / max(distance, units.length(step.slope), stride)
        while True:
            if h < OPTIONS.min_walk_share:
                return x, s
            target = 1.0 if s + h > 1.0 - OPTIONS.min_walk_share else s + h
            ahead = x + step.slope * (target - s)
            at = solve_at(target, ahead)
            if at.closed and at.step.condition <= OPTIONS.max_condition and units.length(at.x - ahead) <= 0.5 * stride:
                break
            h = 0.5 * h
        s = target
    return at.x, s


# ---------------------------------------------------------------------- for kernels, any scalar


def convergence_indicator(first: Any, second: Any) -> Any:
    """Return an indicator from the sizes of two corrections with one Jacobian: at most 1 where the method converges."""
    return larger(first * (1.0 / OPTIONS.max_first_correction),
                  second / (first + OPTIONS.rounding_correction) * (1.0 / OPTIONS.max_contraction))


def largest(values: Any) -> Any:
    """Return the largest absolute value."""
    return maximum([abs(value) for value in values])


def maximum(values: Sequence[Any]) -> Any:
    """Return the largest value, 0 without any; all are at least 0."""
    found: Any = 0.0
    for value in values:
        found = larger(found, value) if not isinstance(found, float) or found != 0.0 else value
    return found


# ------------------------------------------------------------------ closed poses


RATES = ("qad", "qadd", "qaddd")  # of the active joints


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

        at_once: whether kernels are compiled when they are first needed; if not, the first `evaluations_before_compiling` are
                 computed without, and steps by singular values
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
        if not self._at_once and self._evaluations < OPTIONS.evaluations_before_compiling:
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
            if step.condition <= OPTIONS.easy_condition:
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
        if condition > OPTIONS.easy_condition and (J_inverse := self.passive_inverse(q)).condition > OPTIONS.max_condition:
            raise self._singular(q, J_inverse)
        if motion is None:
            raise too_large("motion of the passive joints")
        return motion

    def motions(self, poses: np.ndarray, *rates: np.ndarray) -> LoopMotion:
        """Return the motion of many samples: closed poses (samples, n), rates of the active joints (samples, N)."""
        found = self._motion.samples((poses, *rates), len(poses))
        if found is not None and found[-1].max(initial=0.0) <= OPTIONS.easy_condition:
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
            near = "" if smallest > OPTIONS.nearly_redundant_share else (
                f"; an equation is all but redundant ({smallest:.1e}): are axes that should be parallel written with rounded "
                "angles?")
            advice = f"name {mobility} of {every}" if mobility else "it is a structure, not a mechanism"
            raise ModelError(f"{len(self.active)} active joints ({given}), but the loops leave {mobility} of the "
                             f"{len(self.movable)} joints free: {advice}{near}", self.loops.where)
        J_inverse = self.passive_inverse(self.start)
        if J_inverse.condition > OPTIONS.max_condition:
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
                                   f"{J_inverse.condition:.2g}, at most {OPTIONS.max_condition:.0e} is allowed; "
                                   f"{self.worst_gap(q)})")

    def _no_way(self, qa: np.ndarray, q: np.ndarray, reached: float) -> PoseError:
        """Why the walk ended at the closed pose q, short of qa."""
        at_goal, still = q.copy(), np.zeros(len(self.active))
        at_goal[self.active] = qa
        there = newton(lambda q: self.careful_step(q, still, self.passive), at_goal, self.units)
        J_inverse = self.passive_inverse(there.x)
        if there.step.gap <= np.sqrt(OPTIONS.closed_gap) and J_inverse.condition > OPTIONS.max_condition:
            return self._singular(there.x, J_inverse)
        last = self.passive_inverse(q).condition
        return PoseError(OUT_OF_REACH, f"no way to {self._positions(qa)}: {100 * reached:.0f} % of the way from the guess, "
                                       f"the loops come to a singular pose (condition number {last:.2g}); at the goal itself, "
                                       f"{self.worst_gap(there.x)} at best. The goal is out of reach, or it needs another "
                                       "way: give a guess nearer to it")

    def _positions(self, qa: np.ndarray) -> str:
        return ", ".join(f"{self.model.joint_names[k]} = {value:.6g}" for k, value in zip(self.active, qa, strict=True))


# ------------------------------------------------------------------ streams of samples


Found = TypeVar("Found")  # result of a function that closes the loops
TOLERANCE = 0.1  # default tolerance [rad, or shares of the characteristic length]
FOLLOWED, RESTARTED, BAD_INPUT = "followed", "restarted", "bad input"  # keys of `counts`, with the reasons of PoseError


class TrackedMotion(NamedTuple):
    """Motion of all joints of the tree, compared with the measured positions of passive joints.

    motion       : motion of all joints of the tree
    disagreement : (P,) solved minus measured position of each passive joint [rad, m], angles wrapped to [-pi, pi); NaN
                   for joints without a measurement
    agrees       : True if no joint differs by more than the tolerance
    restarted    : True if the pose was solved from the measurements instead of the previous pose
    """

    motion: LoopMotion
    disagreement: np.ndarray
    agrees: bool
    restarted: bool


class TrackedPose(NamedTuple):
    """Closed pose: positions (n,) of all joints of the tree [rad, m]; for the other fields see TrackedMotion."""

    pose: np.ndarray
    disagreement: np.ndarray
    agrees: bool
    restarted: bool


class LoopTracker:
    """Tracker of the loops of a robot along one stream of samples. Thread-safe: a lock serializes the samples.

    tolerance : largest difference between a passive joint and its sensor [rad, or shares of the characteristic length]
    counts    : number of samples for each result: "followed" (accepted), "restarted" (of these, solved from the
                measurements), "bad input", or the reason of a PoseError
    """

    def __init__(self, closure: LoopClosure, tolerance: float = TOLERANCE):
        self._lock = Lock()
        self.counts: Counter[str] = Counter()
        self._closure = closure
        names, types = closure.model.joint_names, [joint.type for joint in closure.model.joints]
        self._passive = np.setdiff1d(closure.passive, closure.loops.virtual)
        self.passive_joints = tuple(names[k] for k in self._passive)
        self._is_angle = np.array([types[k] != "prismatic" for k in self._passive], dtype=bool)
        self._tolerances = tolerance * closure.units.unknowns[self._passive]
        self._unmeasured = np.full(len(self.passive_joints), np.nan)
        self._last: np.ndarray | None = None
        self._last_agrees = True

    @contextmanager
    def _counted_sample(self) -> Iterator[None]:
        """Lock the tracker for one sample; count its result, and raise errors as errors.Rejected."""
        with self._lock:
            try:
                yield
            except InputError as error:
                reason = error.reason if isinstance(error, PoseError) else BAD_INPUT
                self.counts[reason] += 1
                raise Rejected(reason, str(error)) from None
            self.counts[FOLLOWED] += 1

    @property
    def last(self) -> np.ndarray | None:
        """Pose (n,) of the last accepted sample, an initial guess for requests near it; None before the first sample."""
        return self._last

    def forget(self) -> None:
        """Discard the last pose: the next sample is treated as the first one."""
        with self._lock:
            self._last, self._last_agrees = None, True

    def follow(self, q: Any, qd: Any, qdd: Any, qddd: Any, measured: Any = None) -> TrackedMotion:
        """Return the motion of all joints at one sample.

        q, qd, qdd, qddd : motion of the active joints, (N,) each
        measured         : (P,) measured positions of the passive joints [rad, m]; NaN for unmeasured joints

        Raises errors.Rejected with the reason for which the sample is counted; the last pose is then unchanged.
        """
        with self._counted_sample():
            found = self._solve_motion((q, qd, qdd, qddd), measured)
            if found.restarted:
                self.counts[RESTARTED] += 1
            self._last, self._last_agrees = found.motion.q, found.agrees
        return found

    def locate(self, q: Any, measured: Any = None) -> TrackedPose:
        """Return the closed pose of one sample. q, measured and errors: see `follow`."""
        with self._counted_sample():
            found = self._solve_pose(_one_sample((q,), self._closure.active_joints)[0], measured)
            if found.restarted:
                self.counts[RESTARTED] += 1
            self._last, self._last_agrees = found.pose, found.agrees
        return found

    def move(self, function: Callable[[np.ndarray], tuple[Found, np.ndarray]]) -> Found:
        """Return the result of a function that closes the loops itself; its pose becomes the last pose.

        function(guess) receives a pose (n,) near the closed pose and returns its result and the closed pose (n,). A PoseError
        is counted and raised as errors.Rejected; other errors are propagated unchanged.
        """
        with self._lock:
            try:
                result, pose = function(self._initial_guess)
                self._last = self._closure.regular(pose)
            except PoseError as error:
                self.counts[error.reason] += 1
                raise Rejected(error.reason, str(error)) from None
            self.counts[FOLLOWED] += 1
        return result

    def _solve_motion(self, motion: tuple[Any, ...], measured: Any) -> TrackedMotion:
        qa, *rates = _one_sample(motion, self._closure.active_joints)
        found = self._solve_pose(qa, measured)
        return TrackedMotion(self._closure.motion(found.pose, *rates), *found[1:])

    def _solve_pose(self, qa: np.ndarray, measured: Any) -> TrackedPose:
        if measured is None:
            return TrackedPose(self._closure.close(qa, self._initial_guess), self._unmeasured, True, False)
        measured = self._checked_measurement(measured)
        pose, restarted = self._solve_and_compare(qa, measured)
        disagreement = self._disagreement(pose, measured)
        return TrackedPose(pose, disagreement, self._is_within_tolerance(disagreement), restarted)

    # ------------------------------------------------------------------ with sensors of passive joints

    @property
    def _initial_guess(self) -> np.ndarray:
        return self._closure.start if self._last is None else self._last

    def _checked_measurement(self, measured: Any) -> np.ndarray:
        array = validation.numbers("measured", measured)
        if array.shape != self._unmeasured.shape or np.isinf(array).any():
            raise InputError(f"measured is {shown(measured)}; an array of shape ({len(self._unmeasured)},) is needed: the "
                             f"positions of {some(self.passive_joints)}, NaN for joints without a measurement")
        return array

    def _solve_and_compare(self, qa: np.ndarray, measured: np.ndarray) -> tuple[np.ndarray, bool]:
        """Return the closed pose (n,), and whether it was solved from the measurements."""
        is_first = self._last is None
        if is_first and not np.isnan(measured).any() and (pose := self._nearest_to_measurement(qa, measured)) is not None:
            return pose, True
        try:
            pose = self._closure.close(qa, self._initial_guess)
        except PoseError:
            if (pose := self._nearest_to_measurement(qa, measured)) is not None:
                return pose, True
            raise
        if self._last_agrees and not self._is_within_tolerance(self._disagreement(pose, measured)):
            nearest = self._nearest_to_measurement(qa, measured)
            return (pose, False) if nearest is None else (nearest, True)
        return pose, False

    def _nearest_to_measurement(self, qa: np.ndarray, measured: np.ndarray) -> np.ndarray | None:
        """Return the closed pose nearest to the measurements, or None if it exceeds the tolerance.

        The initial guess of unmeasured joints is the last pose.
        """
        if np.isnan(measured).all():
            return None
        guess, passive = self._initial_guess.copy(), self._passive
        guess[self._closure.active], guess[passive] = qa, np.where(np.isnan(measured), guess[passive], measured)
        try:
            pose = self._closure.close(qa, guess)
        except PoseError:
            return None
        return pose if self._is_within_tolerance(self._disagreement(pose, measured)) else None

    def _disagreement(self, pose: np.ndarray, measured: np.ndarray) -> np.ndarray:
        difference = pose[self._passive] - measured
        return np.where(self._is_angle, np.remainder(difference + np.pi, 2.0 * np.pi) - np.pi, difference)

    def _is_within_tolerance(self, disagreement: np.ndarray) -> bool:
        return not (np.abs(disagreement) > self._tolerances).any()


def _one_sample(motion: tuple[Any, ...], names: Sequence[str]) -> list[np.ndarray]:
    arrays = [validation.coordinates(name, value, names)
              for name, value in zip(("q", "qd", "qdd", "qddd"), motion, strict=False)]
    if validation.samples(arrays) is not None:
        raise InputError(f"q, qd, qdd, qddd contain several samples; a tracker requires one sample: arrays ({len(names)},)")
    return arrays
