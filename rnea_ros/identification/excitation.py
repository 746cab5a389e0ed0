"""Exciting trajectories: finite Fourier series of joint positions, optimized for the accuracy of predicted torques.

    q_i(t) = c_i + sum_l  a_il / (l w) sin(l w t) - b_il / (l w) cos(l w t)          (Swevers et al. 1997)

They are periodic, so that a recording can be averaged over periods; band-limited, so that derivatives are computed without
differentiation; and at rest without acceleration at the start of a period, which is two conditions on a and b. The series of
each joint is scaled to its limits of position, velocity, acceleration and jerk: every a and b is a feasible motion, and the
optimizer needs no constraints. Torques and torque rates depend on all joints: for their limits the whole motion is slowed.
Collisions are not checked.

The objective is the expected variance of the torques that the identified parameters predict on other motions (I-optimality):

    trace(R C) / n,    C = (sum Y^T S^-2 Y)^-1,    R = mean of Y^T S^-2 Y over random motions within the limits,

with the standard deviation S of the torque noise of each joint. It does not depend on units or on the choice of the base
parameters. The usual objective, the condition number of equations with normalized columns, ignores the size of the columns,
and thus how far the excitation of a parameter exceeds the noise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.inertial_parameters import TERMS, base_parameters
from ..errors import InputError, MissingPackage
from ..model.tree import Limits
from ..robots import validation
from ..robots.robot import Robot
from .identification import Regressor


@dataclass(frozen=True)
class ExcitationOptions:
    """Tuning of the search for exciting motions."""

    # instants of a period at which limits are enforced and, at every other one, equations are formed
    limit_instants: int = 200
    torque_instants: int = 1000  # instants at which torques are checked
    slowing_tol: float = 1e-3  # relative accuracy of the slowing
    min_references: int = 10  # smallest number of random motions on which torques are predicted
    min_noise: float = 1e-3  # torque noise over the largest one, for joints without torque
    min_eigenvalue_ratio: float = 1e-16  # smallest eigenvalue over the largest
    # smallest variance of torque by a direction of the parameters over the largest, in any motion
    min_variance_ratio: float = 1e-10
    min_harmonics: int = 3  # fewest harmonics: rest at the start fixes one of a and one of b
    max_slowing: float = 1000.0  # largest factor of slowing
    unknown_speed: float = 1.0  # assumed velocity limit if it is unknown [rad/s, m/s]
    unknown_acceleration: float = 5.0  # assumed acceleration limit if it is unknown [rad/s^2, m/s^2]


OPTIONS = ExcitationOptions()

RATE = 25.0  # independent equations per second and joint; equal to that of fitting.py
REACH = {"prismatic": 0.2}  # half range where position limits are unknown [m]; 1 rad otherwise


@dataclass(frozen=True, eq=False)
class FourierMotion:
    """Periodic motion of joints as a finite Fourier series.

    period [s]; centre (n,) [rad, m]; a, b (harmonics, n) [rad/s, m/s]
    """

    period: float
    centre: np.ndarray
    a: np.ndarray
    b: np.ndarray

    def slowed(self, factor: float) -> FourierMotion:
        """Return the motion on the same path with `factor` times the period."""
        return FourierMotion(self.period * factor, self.centre, self.a / factor, self.b / factor)

    def __call__(self, t) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return q, qd, qdd, qddd (samples, n) at times t (samples,) [s]."""
        w = 2.0 * np.pi / self.period * np.arange(1, len(self.a) + 1)
        angle = np.multiply.outer(np.asarray(t, dtype=float), w)
        c, s = np.cos(angle), np.sin(angle)
        return (self.centre + (s / w) @ self.a - (c / w) @ self.b, c @ self.a + s @ self.b,
                -(s * w) @ self.a + (c * w) @ self.b, -(c * w**2) @ self.a - (s * w**2) @ self.b)


class Excitation(NamedTuple):
    """Exciting trajectory and its quality.

    prediction_std   : standard deviation of predicted torques on other motions, relative to the torque noise (RMS over
                       joints), after one period at RATE equations per second with independent noise
    first            : prediction_std of the best random motion, from which the optimization starts
    condition_number : condition number of the equations with columns scaled to unit length
    slower           : factor by which torque limits slow the motion further than limits of position to jerk
    """

    motion: FourierMotion
    prediction_std: float
    first: float
    condition_number: float
    slower: float = 1.0


class _MotionBounds(NamedTuple):
    """Bounds of each joint about a centre, (n,) each."""

    centre: np.ndarray
    reach: np.ndarray
    speed: np.ndarray
    acceleration: np.ndarray
    jerk: np.ndarray


def excite(robot: Robot, period: float = 10.0, harmonics: int = 5, terms: Iterable[str] = TERMS, margin: float = 0.9,
           acceleration: float = OPTIONS.unknown_acceleration, guesses: int = 20, iterations: int = 20, seed: int = 0,
           limits: Limits | None = None, noise: ArrayLike | None = None) -> Excitation:
    """Return an exciting trajectory for `identify` with the same terms. Requires scipy.

    limits       : replace those of the robot; if given, torque and torque rate limits are also enforced
    margin       : share of the limits that is used. Defaults of unknown limits: 1 rad or 0.2 m about zero, 1 rad/s or m/s;
                   jerk, torque and torque rate unlimited
    acceleration : largest acceleration of every joint [rad/s^2, m/s^2]
    guesses      : number of random motions, of which the best is optimized
    iterations   : iterations of the optimizer; 0 returns the best random motion
    noise        : (n,) standard deviations of the measured torques [N m, N]; None: the same share of the RMS torque of each
                   joint

    Raises InputError if a joint cannot hold its own weight with this share.
    """
    if harmonics < OPTIONS.min_harmonics or period <= 0.0 or guesses < 1 or not 0.0 < margin <= 1.0 or acceleration <= 0.0:
        raise InputError(f"harmonics {harmonics}, period {period}, guesses {guesses}, margin {margin}, acceleration "
                         f"{acceleration}: at least {OPTIONS.min_harmonics}, above 0, at least 1, in (0, 1], above 0 are "
                         "needed")
    base = base_parameters(robot.model, robot.gravity_vector, tuple(terms), free_root=False)
    regressor = Regressor(robot, [base.parameters[k] for k in base.kept])
    bounds, shape = _bounds(robot, limits or robot.limits, margin, acceleration), (2, harmonics, robot.n)
    t = np.arange(OPTIONS.limit_instants) * (period / OPTIONS.limit_instants)

    def motion(x: np.ndarray) -> FourierMotion:
        a, b = x.reshape(shape)
        return _within(bounds, period, a, b, t)

    draws = np.random.default_rng(seed).normal(size=(max(guesses, OPTIONS.min_references), int(np.prod(shape))))
    objective = _Objective.of(robot, regressor, [motion(x) for x in draws], noise)

    def cost(x: np.ndarray) -> float:
        return objective.cost(motion(x))

    best = min(draws[:guesses], key=cost)
    x = _minimised(cost, best, iterations) if iterations else best
    factor = _slowness(robot, limits, margin, motion(x)) if limits else 1.0
    found = motion(x).slowed(factor)
    return Excitation(found, float(np.exp(objective.cost(found))), float(np.exp(cost(best))),
                      objective.condition_number(found), factor)


class _Objective(NamedTuple):
    """Expected variance of predicted torques.

    weights   : (n,) inverse standard deviations of the torque noise
    scale     : (b,) scales of the columns
    shown     : (b, m) directions of the scaled parameters that affect torques beyond rounding errors; rounded angles in a URDF
                can add directions that do not, which would dominate the objective
    reference : (m, m) R, with columns scaled by `scale`, in these directions
    """

    regressor: Regressor
    weights: np.ndarray
    scale: np.ndarray
    shown: np.ndarray
    reference: np.ndarray

    @classmethod
    def of(cls, robot: Robot, regressor: Regressor, motions: list[FourierMotion], noise: ArrayLike | None) -> _Objective:
        """Return the objective for predictions on motions like these."""
        if noise is None:
            torques = np.concatenate([robot.inverse_dynamics(*motion(_times(motion))[:3]) for motion in motions])
            sigma = np.sqrt(np.mean(torques**2, axis=0))
            sigma = np.maximum(sigma, OPTIONS.min_noise * sigma.max(initial=np.finfo(float).tiny))
        else:
            sigma = validation.vector("noise", noise, robot.n)
            if not (sigma > 0.0).all():
                raise InputError(f"noise is {sigma.tolist()}; standard deviations above zero are needed [N m, N]")
        count = len(regressor.parameters)
        found = cls(regressor, 1.0 / sigma, np.ones(count), np.eye(count), np.zeros((0, 0)))
        R = np.mean([found.gram(motion) for motion in motions], axis=0) / len(_times(motions[0]))
        scale = 1.0 / np.sqrt(np.maximum(np.diagonal(R), np.finfo(float).tiny))
        sizes, vectors = np.linalg.eigh(R * np.multiply.outer(scale, scale))
        kept = sizes > OPTIONS.min_variance_ratio * sizes.max(initial=0.0)
        return found._replace(scale=scale, shown=vectors[:, kept], reference=np.diag(sizes[kept]))

    def gram(self, motion: FourierMotion) -> np.ndarray:
        """Return sum Y^T S^-2 Y (b, b) over a period, with scaled columns."""
        W = (self.regressor(*motion(_times(motion))[:3]) * self.weights[:, None]).reshape(-1, len(self.scale)) * self.scale
        return W.T @ W

    def cost(self, motion: FourierMotion) -> float:
        """Return the logarithm of the relative standard deviation of predicted torques."""
        equations = self.shown.T @ self.gram(motion) @ self.shown * (RATE * motion.period / len(_times(motion)))
        sizes, vectors = np.linalg.eigh(equations)
        sizes = np.maximum(sizes, OPTIONS.min_eigenvalue_ratio * sizes[-1])
        variances = np.einsum("ik,ij,jk->k", vectors, self.reference, vectors) / sizes
        return 0.5 * float(np.log(variances.sum() / len(self.weights)))

    def condition_number(self, motion: FourierMotion) -> float:
        """Return the condition number of the equations without weights, in shown directions, columns scaled to length one."""
        gram = self._replace(weights=np.ones_like(self.weights)).gram(motion)
        lengths = np.maximum(np.sqrt(np.diagonal(gram)), 1e-150)
        sizes = np.linalg.eigvalsh(self.shown.T @ (gram / np.multiply.outer(lengths, lengths)) @ self.shown)
        return float(np.sqrt(sizes[-1] / max(sizes[0], OPTIONS.min_eigenvalue_ratio * sizes[-1])))


def _times(motion: FourierMotion) -> np.ndarray:
    """Return the times at which equations are taken."""
    return np.arange(0, OPTIONS.limit_instants, 2) * (motion.period / OPTIONS.limit_instants)


def _slowness(robot: Robot, limits: Limits, margin: float, motion: FourierMotion) -> float:
    """Return the factor, at least 1, by which the motion is slowed to satisfy the limits of torques and torque rates."""
    commanded, rate_limit = robot.model.efforts.commanded, limits.commanded_effort_rate

    def shares(factor: float) -> np.ndarray:
        slow = motion.slowed(factor)
        samples = slow(np.arange(OPTIONS.torque_instants) * (slow.period / OPTIONS.torque_instants))
        pair = robot.torque_and_rate(*samples)
        used = [np.abs(x).max(axis=0) / limit for x, limit in zip(pair, (limits.effort, limits.effort_rate), strict=True)]
        if np.isfinite(rate_limit).any():
            friction_rate = robot.friction(*samples[1:3])[1] if commanded.needs_friction else 0.0
            rate = pair[1] - commanded.added(robot.dynamics(*samples).gravity_rate, friction_rate)
            used.append(np.abs(rate).max(axis=0) / rate_limit)
        return np.nan_to_num(np.fmax.reduce(used))

    if shares(1.0).max() <= margin:
        return 1.0
    if (still := shares(OPTIONS.max_slowing)).max() > margin:
        joint = int(np.argmax(still))
        raise InputError(f"joint {robot.joint_names[joint]} needs {100.0 * still[joint]:.3g} % of its effort limit, "
                         f"{limits.effort[joint]:g}, to be held along the motion, more than margin, {margin:g}, allows; "
                         "narrow the position limits, or give other limits")
    least, enough = 1.0, OPTIONS.max_slowing
    while enough > (1.0 + OPTIONS.slowing_tol) * least:
        middle = float(np.sqrt(least * enough))
        least, enough = (least, middle) if shares(middle).max() <= margin else (middle, enough)
    return enough


def _minimised(cost, x: np.ndarray, iterations: int) -> np.ndarray:
    try:
        from scipy.optimize import minimize
    except ImportError:
        raise MissingPackage("optimising a motion needs scipy", "planning", "iterations=0") from None
    return minimize(cost, x, method="L-BFGS-B", options={"maxiter": iterations, "maxfun": 10**9}).x


def _bounds(robot: Robot, limits: Limits, margin: float, acceleration: float) -> _MotionBounds:
    known = np.isfinite(limits.lower) & np.isfinite(limits.upper)
    reach = np.array([REACH.get(kind, 1.0) for kind in robot.joint_types])
    return _MotionBounds(np.where(known, (limits.lower + limits.upper) / 2.0, 0.0),
                   margin * np.where(known, (limits.upper - limits.lower) / 2.0, reach),
                   margin * np.where(np.isfinite(limits.velocity), limits.velocity, OPTIONS.unknown_speed),
                   np.fmin(margin * limits.acceleration, acceleration), np.fmin(margin * limits.jerk, np.inf))


def _within(bounds: _MotionBounds, period: float, a: np.ndarray, b: np.ndarray, t: np.ndarray) -> FourierMotion:
    """Return the motion at rest at time zero, for the smallest change of a and b, scaled to its bounds."""
    order = np.arange(1, len(a) + 1)[:, None]
    a = a - a.mean(axis=0)  # velocity at zero: the sum of a
    b = b - order * (np.sum(order * b, axis=0) / np.sum(order**2))  # acceleration: the sum of l w b
    still = FourierMotion(period, np.zeros(a.shape[1]), a, b)
    used = [np.abs(x).max(axis=0) / bound for x, bound in zip(still(t), bounds[1:], strict=True)]
    scale = 1.0 / np.maximum(np.max(used, axis=0), 1e-300)
    return FourierMotion(period, bounds.centre, a * scale, b * scale)
