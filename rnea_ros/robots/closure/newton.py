"""Newton's method on loop equations, and walks to far poses that never leave the branch on which they began."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...algebra.linalg import LeastSquares
from ...algorithms.closed_loops import Cut
from ...algorithms.kinematics import base_poses, within
from ...codegen.program import larger
from ...model.tree import Model

MIN_LEVER_RATIO = 1e-9  # of the distance of the machine from the root: a shorter lever is a rounding error
N_TRIAL_POSES = 8  # further poses: at the first one an axis may pass through the cut joint by chance


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
    elsewhere = start + np.where(slides, spread, 1.0) * rng.normal(size=(N_TRIAL_POSES, model.n))
    lever = max(float(np.abs(levers(q)).max(initial=0.0)) for q in (start, *elsewhere))
    return next((float(length) for length in (lever, spread) if length > MIN_LEVER_RATIO * reach), 1.0)


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


MAX_CONDITION = 1e7  # beyond it a pose counts as singular: torques would keep fewer than nine digits
EASY = 1e6  # condition number up to which bounds do instead of singular values
RANK_TOLERANCE = 1e-7  # a singular value below this share of the largest is zero
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
    count = int((s > s[0] * RANK_TOLERANCE).sum())
    return count, float(s[count - 1] / s[0])


CLOSED = 1e-10  # rad or shares of the unit of length: a larger gap is not closed
ROUNDING = 1e-15  # a gap below this cannot be made smaller
STRIDE = 0.3  # rad or shares of the unit of length: the longest step that is taken at once,
CAUTION = 0.5  # or this share of the smallest singular value: another branch may be as near as that
SHORTEST = 1e-6  # of the way: a walk that has to step shorter has run into a wall
NOT_CLOSED, OUT_OF_REACH, SINGULAR, NOT_FOLLOWED = (  # reasons of a PoseError
    "guess is not closed", "out of reach", "singular", "motion that the legs do not allow")
ITERATIONS = 60
ALMOST = 3e-6  # gap before the last compiled step, whose error is of third order
STEPS = 6  # compiled steps of Newton's method
LONGEST = 0.3  # of the unit of length, or rad: first correction; a longer one may leave the branch
CONTRACTION = 0.2  # second correction by the first: Newton's method converges without leaving the branch
EXACT = 1e-9  # corrections below are rounding
PATIENCE = 8  # steps without coming closer: where there is no solution, Newton's method wanders about


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
        return self.step.gap <= CLOSED


NOWHERE = NewtonStep(np.zeros(0), np.zeros(0), np.inf, 0.0, np.inf, 0.0)


def newton(step_at: Callable[[np.ndarray], NewtonStep], x: np.ndarray, units: Units) -> NewtonSolution:
    """Zero of the equations near x, or the closest that Gauss-Newton comes to it."""
    best, closest = NewtonSolution(x, NOWHERE), 0
    for k in range(ITERATIONS):
        if not np.isfinite(x).all():  # kernels in Python refuse sines of infinity
            break
        step = step_at(x)
        if not step.gap < np.inf:
            break
        settled = best.closed and step.gap >= 0.5 * best.step.gap  # rounding is all that is left
        if step.gap < best.step.gap:
            best, closest = NewtonSolution(x, step), k
        if settled or step.gap <= ROUNDING or k - closest > PATIENCE:
            break
        x = x + step.correction * (1.0 if step.length <= STRIDE else min(1.0, STRIDE / units.length(step.correction)))
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
        stride = min(STRIDE, CAUTION * step.margin)
        h = stride / max(distance, units.length(step.slope), stride)
        while True:
            if h < SHORTEST:
                return x, s
            target = 1.0 if s + h > 1.0 - SHORTEST else s + h
            ahead = x + step.slope * (target - s)
            at = solve_at(target, ahead)
            if at.closed and at.step.condition <= MAX_CONDITION and units.length(at.x - ahead) <= 0.5 * stride:
                break
            h = 0.5 * h
        s = target
    return at.x, s


# ---------------------------------------------------------------------- for kernels, any scalar


def convergence_indicator(first: Any, second: Any) -> Any:
    """Return an indicator from the sizes of two corrections with one Jacobian: at most 1 where the method converges."""
    return larger(first * (1.0 / LONGEST), second / (first + EXACT) * (1.0 / CONTRACTION))


def largest(values: Any) -> Any:
    """Return the largest absolute value."""
    return maximum([abs(value) for value in values])


def maximum(values: Sequence[Any]) -> Any:
    """Return the largest value, 0 without any; all are at least 0."""
    found: Any = 0.0
    for value in values:
        found = larger(found, value) if not isinstance(found, float) or found != 0.0 else value
    return found
