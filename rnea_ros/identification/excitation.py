"""Motions that show a robot's parameters: finite Fourier series of joint positions, optimised for a small condition number.

    q_i(t) = c_i + sum_l  a_il / (l w) sin(l w t) - b_il / (l w) cos(l w t)          (Swevers et al. 1997)

Periodic, so that a recording can be averaged over periods; band-limited, so that derivatives are known without
differentiation; here also at rest, without acceleration, where a period begins: two conditions on a and b. Each joint's
series is scaled until it just keeps its limits of position, velocity, acceleration and jerk: every choice of a and b
is a motion that the robot can do, and the optimiser needs no constraints. Torques and their rates belong to all joints at
once: for their limits the whole motion is slowed. Collisions are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..errors import InputError, MissingPackage
from ..inertial.base_parameters import base_parameters
from ..inertial.inertial_parameters import TERMS
from ..model.tree import Limits
from ..robots.robot import Robot
from .regressor_kernel import Regressor

GRID = 200  # moments of a period at which limits are kept and, every other one, the condition is taken
FINE, EXACT = 1000, 1e-3  # moments at which torques are looked at; how exactly a motion is slowed
HARMONICS = 3  # at least: rest at the start takes one of a and one of b
REACH = {"prismatic": 0.2}  # m from the middle where position limits are unknown; 1 rad otherwise
SLOWEST = 1000.0  # times the period, at most
SPEED, ACCELERATION = 1.0, 5.0  # rad/s or m/s, and their rate, where unknown: no URDF knows the latter


@dataclass(frozen=True, eq=False)
class FourierMotion:
    """period [s]; centre (n,); a, b (harmonics, n) [rad/s, m/s]."""

    period: float
    centre: np.ndarray
    a: np.ndarray
    b: np.ndarray

    def slowed(self, factor: float) -> FourierMotion:
        """The same path, that many times slower."""
        return FourierMotion(self.period * factor, self.centre, self.a / factor, self.b / factor)

    def __call__(self, t) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """q, qd, qdd, qddd (samples, n) at times t (samples,) [s]."""
        w = 2.0 * np.pi / self.period * np.arange(1, len(self.a) + 1)
        angle = np.multiply.outer(np.asarray(t, dtype=float), w)
        c, s = np.cos(angle), np.sin(angle)
        return (self.centre + (s / w) @ self.a - (c / w) @ self.b, c @ self.a + s @ self.b,
                -(s * w) @ self.a + (c * w) @ self.b, -(c * w**2) @ self.a - (s * w**2) @ self.b)


class Excitation(NamedTuple):
    """The motion, the condition number of its equations, columns scaled to length one, and that of the first guess.

    slower : how many times slower it is than position, velocity, acceleration and jerk alone allow
    """

    motion: FourierMotion
    condition_number: float
    first: float
    slower: float = 1.0


class _Bounds(NamedTuple):
    """(n,) each, about a centre."""

    centre: np.ndarray
    reach: np.ndarray
    speed: np.ndarray
    acceleration: np.ndarray
    jerk: np.ndarray


def excite(robot: Robot, period: float = 10.0, harmonics: int = 5, terms: Iterable[str] = TERMS, margin: float = 0.9,
           acceleration: float = ACCELERATION, guesses: int = 20, iterations: int = 20, seed: int = 0,
           limits: Limits | None = None) -> Excitation:
    """An exciting motion for `identify` with the same terms.

    limits       : instead of the robot's own; if given, those of torque and torque rate are kept too
    margin       : share of the limits that is used; unknown ones count as 1 rad or 0.2 m from zero and 1 rad/s or m/s, and
                   none of jerk, torque or torque rate. InputError if a joint cannot hold itself with that
    acceleration : largest one of every joint [rad/s^2, m/s^2]
    guesses      : random motions, of which the best is optimised; 0 iterations leave it as it is. Needs scipy.
    """
    if harmonics < HARMONICS or period <= 0.0 or guesses < 1 or not 0.0 < margin <= 1.0 or acceleration <= 0.0:
        raise InputError(f"harmonics {harmonics}, period {period}, guesses {guesses}, margin {margin}, acceleration "
                         f"{acceleration}: at least {HARMONICS}, above 0, at least 1, in (0, 1], above 0 are needed")
    base = base_parameters(robot.model, robot.gravity_vector, tuple(terms), free_root=False)
    regressor = Regressor(robot, [base.parameters[k] for k in base.kept])
    bounds, shape = _bounds(robot, limits or robot.limits, margin, acceleration), (2, harmonics, robot.n)
    t = np.arange(GRID) * (period / GRID)

    def motion(x: np.ndarray) -> FourierMotion:
        a, b = x.reshape(shape)
        return _within(bounds, period, a, b, t)

    def cost(x: np.ndarray) -> float:
        return _condition(regressor, motion(x))

    draws = np.random.default_rng(seed).normal(size=(guesses, int(np.prod(shape))))
    best = min(draws, key=cost)
    x = _minimised(cost, best, iterations) if iterations else best
    factor = _slowness(robot, limits, margin, motion(x)) if limits else 1.0
    found = motion(x).slowed(factor)
    return Excitation(found, float(np.exp(_condition(regressor, found))), float(np.exp(cost(best))), factor)


def _condition(regressor: Regressor, motion: FourierMotion) -> float:
    """Logarithm of the condition number."""
    q, qd, qdd, _ = motion(np.arange(0, GRID, 2) * (motion.period / GRID))
    W = regressor(q, qd, qdd).reshape(-1, len(regressor.parameters))
    gram = W.T @ W
    lengths = np.maximum(np.sqrt(np.diagonal(gram)), 1e-150)
    sizes = np.linalg.eigvalsh(gram / np.multiply.outer(lengths, lengths))  # W's squared, far cheaper than its SVD
    return 0.5 * float(np.log(sizes[-1] / max(sizes[0], 1e-16 * sizes[-1])))


def _slowness(robot: Robot, limits: Limits, margin: float, motion: FourierMotion) -> float:
    """Return the factor, not below one, by which torque and rates come within their limits."""
    commanded, rate_limit = robot.model.efforts.commanded, limits.commanded_effort_rate

    def shares(factor: float) -> np.ndarray:
        slow = motion.slowed(factor)
        samples = slow(np.arange(FINE) * (slow.period / FINE))
        pair = robot.torque_and_rate(*samples)
        used = [np.abs(x).max(axis=0) / limit for x, limit in zip(pair, (limits.effort, limits.effort_rate), strict=True)]
        if np.isfinite(rate_limit).any():
            friction_rate = robot.friction(*samples[1:3])[1] if commanded.needs_friction else 0.0
            rate = pair[1] - commanded.added(robot.dynamics(*samples).gravity_rate, friction_rate)
            used.append(np.abs(rate).max(axis=0) / rate_limit)
        return np.nan_to_num(np.fmax.reduce(used))

    if shares(1.0).max() <= margin:
        return 1.0
    if (still := shares(SLOWEST)).max() > margin:
        joint = int(np.argmax(still))
        raise InputError(f"joint {robot.joint_names[joint]} needs {100.0 * still[joint]:.3g} % of its effort limit, "
                         f"{limits.effort[joint]:g}, to be held along the motion, more than margin, {margin:g}, allows; "
                         "narrow the position limits, or give other limits")
    least, enough = 1.0, SLOWEST
    while enough > (1.0 + EXACT) * least:
        middle = float(np.sqrt(least * enough))
        least, enough = (least, middle) if shares(middle).max() <= margin else (middle, enough)
    return enough


def _minimised(cost, x: np.ndarray, iterations: int) -> np.ndarray:
    try:
        from scipy.optimize import minimize
    except ImportError:
        raise MissingPackage("optimising a motion needs scipy", "planning", "iterations=0") from None
    return minimize(cost, x, method="L-BFGS-B", options={"maxiter": iterations, "maxfun": 10**9}).x


def _bounds(robot: Robot, limits: Limits, margin: float, acceleration: float) -> _Bounds:
    known = np.isfinite(limits.lower) & np.isfinite(limits.upper)
    reach = np.array([REACH.get(kind, 1.0) for kind in robot.joint_types])
    return _Bounds(np.where(known, (limits.lower + limits.upper) / 2.0, 0.0),
                   margin * np.where(known, (limits.upper - limits.lower) / 2.0, reach),
                   margin * np.where(np.isfinite(limits.velocity), limits.velocity, SPEED),
                   np.fmin(margin * limits.acceleration, acceleration), np.fmin(margin * limits.jerk, np.inf))


def _within(bounds: _Bounds, period: float, a: np.ndarray, b: np.ndarray, t: np.ndarray) -> FourierMotion:
    """At rest at zero, by the smallest change of a and b; then every joint scaled to just keep its bounds at times t."""
    order = np.arange(1, len(a) + 1)[:, None]
    a = a - a.mean(axis=0)  # velocity at zero: the sum of a
    b = b - order * (np.sum(order * b, axis=0) / np.sum(order**2))  # acceleration: the sum of l w b
    still = FourierMotion(period, np.zeros(a.shape[1]), a, b)
    used = [np.abs(x).max(axis=0) / bound for x, bound in zip(still(t), bounds[1:], strict=True)]
    scale = 1.0 / np.maximum(np.max(used, axis=0), 1e-300)
    return FourierMotion(period, bounds.centre, a * scale, b * scale)
