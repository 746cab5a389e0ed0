"""Motions that show a robot's parameters: finite Fourier series of joint positions, optimised for a small condition number.

    q_i(t) = c_i + sum_l  a_il / (l w) sin(l w t) - b_il / (l w) cos(l w t)          (Swevers et al. 1997)

Periodic, so that a recording can be averaged over periods; band-limited, so that derivatives are known without
differentiation; here also at rest, without acceleration, where a period begins: two conditions on a and b. Each joint's
series is scaled until it just keeps its limits of position, velocity, acceleration and jerk: every choice of a and b
is a motion that the robot can do, and the optimiser needs no constraints. Collisions are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..errors import InputError, RneaError
from ..inertial.base_parameters import base_parameters
from ..inertial.inertial_parameters import TERMS
from ..robots.robot import Robot
from .regressor_kernel import Regressor

GRID = 200  # moments of a period at which limits are kept and, every other one, the condition is taken
HARMONICS = 3  # at least: rest at the start takes one of a and one of b
REACH = {"prismatic": 0.2}  # m from the middle where position limits are unknown; 1 rad otherwise
SPEED, ACCELERATION = 1.0, 5.0  # rad/s or m/s, and their rate, where unknown: no URDF knows the latter


@dataclass(frozen=True, eq=False)
class FourierMotion:
    """period [s]; centre (n,); a, b (harmonics, n) [rad/s, m/s]."""

    period: float
    centre: np.ndarray
    a: np.ndarray
    b: np.ndarray

    def __call__(self, t) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """q, qd, qdd, qddd (samples, n) at times t (samples,) [s]."""
        w = 2.0 * np.pi / self.period * np.arange(1, len(self.a) + 1)
        angle = np.multiply.outer(np.asarray(t, dtype=float), w)
        c, s = np.cos(angle), np.sin(angle)
        return (self.centre + (s / w) @ self.a - (c / w) @ self.b, c @ self.a + s @ self.b,
                -(s * w) @ self.a + (c * w) @ self.b, -(c * w**2) @ self.a - (s * w**2) @ self.b)


class Excitation(NamedTuple):
    """The motion, the condition number of its equations, columns scaled to length one, and that of the first guess."""

    motion: FourierMotion
    condition_number: float
    first: float


class _Bounds(NamedTuple):
    """(n,) each, about a centre."""

    centre: np.ndarray
    reach: np.ndarray
    speed: np.ndarray
    acceleration: np.ndarray
    jerk: np.ndarray


def excite(robot: Robot, period: float = 10.0, harmonics: int = 5, terms: Iterable[str] = TERMS, margin: float = 0.9,
           acceleration: float = ACCELERATION, guesses: int = 20, iterations: int = 20, seed: int = 0) -> Excitation:
    """An exciting motion for `identify` with the same terms.

    margin       : share of the robot's limits of position, velocity, acceleration and jerk that is used; unknown ones count as
                   1 rad or 0.2 m from zero and 1 rad/s or m/s, and none of jerk
    acceleration : largest one of every joint [rad/s^2, m/s^2]
    guesses      : random motions, of which the best is optimised; 0 iterations leave it as it is. Needs scipy.
    """
    if harmonics < HARMONICS or period <= 0.0 or guesses < 1 or not 0.0 < margin <= 1.0 or acceleration <= 0.0:
        raise InputError(f"harmonics {harmonics}, period {period}, guesses {guesses}, margin {margin}, acceleration "
                         f"{acceleration}: at least {HARMONICS}, above 0, at least 1, in (0, 1], above 0 are needed")
    base = base_parameters(robot.model, robot.gravity_vector, tuple(terms), free_root=False)
    regressor = Regressor(robot, [base.parameters[k] for k in base.kept])
    bounds, shape = _bounds(robot, margin, acceleration), (2, harmonics, robot.n)
    t = np.arange(GRID) * (period / GRID)

    def motion(x: np.ndarray) -> FourierMotion:
        a, b = x.reshape(shape)
        return _within(bounds, period, a, b, t)

    def cost(x: np.ndarray) -> float:
        """Logarithm of the condition number."""
        q, qd, qdd, _ = motion(x)(t[::2])
        W = regressor(q, qd, qdd).reshape(-1, len(base))
        gram = W.T @ W
        lengths = np.maximum(np.sqrt(np.diagonal(gram)), 1e-150)
        sizes = np.linalg.eigvalsh(gram / np.multiply.outer(lengths, lengths))  # W's squared, far cheaper than its SVD
        return 0.5 * float(np.log(sizes[-1] / max(sizes[0], 1e-16 * sizes[-1])))

    draws = np.random.default_rng(seed).normal(size=(guesses, int(np.prod(shape))))
    best = min(draws, key=cost)
    x = _minimised(cost, best, iterations) if iterations else best
    return Excitation(motion(x), float(np.exp(cost(x))), float(np.exp(cost(best))))


def _minimised(cost, x: np.ndarray, iterations: int) -> np.ndarray:
    try:
        from scipy.optimize import minimize
    except ImportError:
        raise RneaError("optimising a motion needs scipy: pip install 'rnea_ros[planning]', or iterations=0") from None
    return minimize(cost, x, method="L-BFGS-B", options={"maxiter": iterations, "maxfun": 10**9}).x


def _bounds(robot: Robot, margin: float, acceleration: float) -> _Bounds:
    limits = robot.limits
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
