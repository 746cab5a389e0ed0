"""The largest constant speed factor L of a motion that keeps every joint inside its limits of torque and torque rate.

At L times the speed, tau - and so its rate - is a polynomial in L whose shares are known: gravity g does not scale, viscous
friction f scales with L, the rest d with L^2; each rate with one L more:

    tau(L) = g + L f + L^2 d                d  = tau - g - f
    tau_rate(L) = L g' + L^2 f' + L^3 d'    d' = tau_rate - g' - f'

A limit is first met at the smallest L > 0 with tau(L) = +-T. In x = 1/L that is the largest positive root of a monic
polynomial,

    x^3 + (f x^2 + d x) / (g -+ T) = 0      x^3 -+ (g' x^2 + f' x + d') / R = 0

found as an eigenvalue of its companion matrix, for all joints, limits and samples at once. No root: no bound.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError

LIMITS = ("", "effort", "effort_rate", "gravity")  # what binds; "" if nothing does
REAL = 1e-7  # imaginary part, relative, below which a double root is taken as touching the limit


def largest_factor(polynomials: Any) -> np.ndarray:
    """The largest L with -1 <= a0 + a1 L + a2 L^2 + a3 L^3 <= 1 on all of [0, L]; inf if none, 0 where |a0| >= 1.

    polynomials: (..., 4) a0, a1, a2, a3. Returns (...).
    """
    a = np.asarray(polynomials, dtype=float)
    inside = np.abs(a[..., 0]) < 1.0
    largest = np.zeros(a.shape[:-1])
    for limit in (1.0, -1.0):
        first = np.where(inside, a[..., 0] - limit, -limit)
        companion = np.zeros((*a.shape[:-1], 3, 3))
        companion[..., 0, :] = -a[..., 1:] / first[..., None]
        companion[..., 1, 0] = companion[..., 2, 1] = 1.0
        x = np.linalg.eigvals(companion)
        real = np.abs(x.imag) <= REAL * np.abs(x)
        largest = np.maximum(largest, np.where(real, x.real, 0.0).max(axis=-1))
    with np.errstate(divide="ignore"):
        return np.where(inside, 1.0 / (largest + 0.0), 0.0)  # + 0.0: no minus zero


class SpeedFactor(NamedTuple):
    """factor (...): 0 where gravity alone is beyond a limit, inf where nothing binds; joint (...): number of the binding
    joint, -1 if none; limit (...): index into LIMITS."""

    factor: Any
    joint: Any
    limit: Any

    def describe(self, joint_names: Any) -> str:
        """One sample in words."""
        kind = LIMITS[int(self.limit)]
        if not kind:
            return "no known limit binds"
        if kind == "gravity":
            return f"gravity alone exceeds the effort limit of {joint_names[int(self.joint)]}: it cannot even rest here"
        return f"{kind.replace('_', ' ')} of {joint_names[int(self.joint)]} binds at factor {float(self.factor):.4g}"


def speed_factor(tau: Any, tau_rate: Any, gravity: Any, gravity_rate: Any, effort: Any, effort_rate: Any,
                 friction: Any = 0.0, friction_rate: Any = 0.0) -> SpeedFactor:
    """The largest constant factor of motions, and which joint and limit set it.

    tau, tau_rate, gravity, gravity_rate, friction, friction_rate : (..., n) torque, its rate, and the shares in both of what
                                                                   does not depend on speed (gravity) and of viscous friction
    effort, effort_rate : (n,) limits, NaN where unknown: not enforced
    """
    tau, tau_rate, g, g1, f, f1 = np.broadcast_arrays(
        *(np.asarray(x, dtype=float) for x in (tau, tau_rate, gravity, gravity_rate, friction, friction_rate)))
    if not all(np.isfinite(x).all() for x in (tau, tau_rate, g, g1, f, f1)):
        raise InputError("torques and their rates must be finite numbers")
    T, R = (_limit(name, value, tau.shape[-1]) for name, value in (("effort", effort), ("effort_rate", effort_rate)))
    none = np.zeros_like(tau)
    rows = np.stack((np.stack((g, f, tau - g - f, none), axis=-1) / T[:, None],
                     np.stack((none, g1, f1, tau_rate - g1 - f1), axis=-1) / R[:, None]), axis=-2)  # (..., n, 2, 4)
    known = np.isfinite(np.stack((T, R), axis=-1))
    factors = np.where(known, largest_factor(np.where(known[..., None], rows, 0.0)), np.inf)
    flat = factors.reshape(*factors.shape[:-2], -1)
    at = flat.argmin(axis=-1)
    factor = np.take_along_axis(flat, at[..., None], axis=-1)[..., 0]
    bound = np.isfinite(factor)
    return SpeedFactor(factor, np.where(bound, at // 2, -1), np.where(factor == 0.0, 3, np.where(bound, at % 2 + 1, 0)))


def _limit(name: str, value: Any, n: int) -> np.ndarray:
    limit = np.asarray(value, dtype=float)
    if limit.shape != (n,) or (limit <= 0.0).any():
        shown = np.array2string(limit, threshold=8)
        raise InputError(f"{name} limits are {shown}; {n} numbers above zero are needed, NaN where unknown")
    return limit


class SpeedScaling:
    """The factor as a signal that a controller can follow: never above `most`, falling and rising at limited rates.

    It comes down faster than it goes up, since what binds must be met at once. A factor that cannot be told (NaN) counts as 0.
    """

    def __init__(self, fall: float = 4.0, rise: float = 0.5, most: float = 1.0, start: float = 1.0):
        for name, value in (("fall", fall), ("rise", rise), ("most", most)):
            if not 0.0 < value < np.inf:
                raise InputError(f"{name} is {value}; it must be a finite number above zero")
        self.fall, self.rise, self.most = fall, rise, most
        self.value = min(max(start, 0.0), most)

    def tick(self, dt: float, factor: float) -> float:
        """The value `dt` seconds later, given the largest factor now."""
        wanted = min(factor, self.most) if factor >= 0.0 else 0.0
        self.value = min(max(wanted, self.value - self.fall * dt), self.value + self.rise * dt)
        return self.value
