"""Speed factor: the largest constant factor L by which a motion can be accelerated within limits of torque and torque rate.

At L times the speed, torque and torque rate are polynomials in L with known coefficients: gravity g is constant, viscous
friction f is proportional to L, all other terms d to L^2; the rate of each term has one more power of L:

    tau(L) = g + L f + L^2 d                d  = tau - g - f
    tau_rate(L) = L g' + L^2 f' + L^3 d'    d' = tau_rate - g' - f'

A limit is first reached at the smallest L > 0 with tau(L) = +-T or tau_rate(L) = +-R. Between its stationary points a
polynomial is monotone: the first of these intervals that ends beyond the limit contains the root, which Newton's method,
bracketed by the interval, computes. Most polynomials are excluded beforehand: |a0| + |a1| L + |a2| L^2 + |a3| L^3 < 1 at the
smallest L so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb, copysign, prod, sqrt
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError

LIMITS = ("", "effort", "effort_rate", "gravity")  # kinds of binding limits; "": none binds
MAX_FACTOR = 1e300  # a larger factor counts as unlimited
TOUCH_TOL = 1e-14  # distance below a limit at which a stationary point counts as touching it
NEWTON_TOL = 1e-9  # relative Newton step after which the error is at rounding level
MAX_ITERATIONS = 200
N_INTERVALS = 4  # intervals of [0, L] on which a polynomial is bounded separately
BATCH_SIZE = 32  # polynomials that are solved together
# conversion of power coefficients to Bernstein coefficients, whose hull contains the polynomial on [0, 1]; and the same on
# each of the N_INTERVALS intervals
_BERNSTEIN = np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 1.0, 3.0], [0.0, 0.0, 0.0, 1.0]])
_BERNSTEIN[1:3] /= 3.0
_INTERVAL_BERNSTEIN = np.hstack(
    [[[comb(j, i) * (k / N_INTERVALS) ** (j - i) / N_INTERVALS**i if j >= i else 0.0 for i in range(4)] for j in range(4)]
     @ _BERNSTEIN for k in range(N_INTERVALS)])


def first_binding(polynomials: Iterable[Sequence[float]], most: float = np.inf) -> tuple[float, int]:
    """Return the largest L up to `most` with -1 <= a0 + a1 L + a2 L^2 + a3 L^3 <= 1 on all of [0, L] for all polynomials.

    Also return the index of the binding polynomial, -1 if none binds. L is 0 if an |a0| >= 1.

    polynomials : (a0, a1, a2, a3) each; polynomials with NaN are ignored
    most        : upper bound of L
    """
    least, number = min(most, MAX_FACTOR), -1
    for k, (a0, a1, a2, a3) in enumerate(polynomials):
        if abs(a0) + least * (abs(a1) + least * (abs(a2) + least * abs(a3))) >= 1.0:
            factor = _first_crossing(a0, a1, a2, a3, least)
            if factor < least:
                least, number = factor, k
    return (most if number < 0 else least), number


def smallest_factor(polynomials: np.ndarray, most: float) -> float:
    """Return the L of `first_binding` for many polynomials (count, 4).

    They are solved in batches, those with the largest values at `most` first; the others are filtered with the L so far.
    """
    furthest = np.argsort(-np.abs(polynomials @ most ** np.arange(4.0)))[:BATCH_SIZE]
    most = first_binding(polynomials[furthest].tolist(), most)[0]
    while len(polynomials := _candidates(polynomials, most)):
        most, polynomials = first_binding(polynomials[:BATCH_SIZE].tolist(), most)[0], polynomials[BATCH_SIZE:]
        if most <= 0.0:
            break
    return most


def _candidates(polynomials: np.ndarray, most: float) -> np.ndarray:
    """Return the polynomials (count, 4) that may bind below `most`, in decreasing order of their bounds."""
    powers = most ** np.arange(4.0)
    polynomials = polynomials[np.abs(polynomials) @ powers >= 1.0]
    bound = np.abs((polynomials * powers) @ _INTERVAL_BERNSTEIN).max(axis=1)
    candidates = np.flatnonzero(bound >= 1.0)
    return polynomials[candidates[np.argsort(-bound[candidates])]]


def _first_crossing(a0: float, a1: float, a2: float, a3: float, most: float) -> float:
    """Return the smallest L below `most` at which one polynomial reaches a limit, else `most`."""
    if abs(a0) >= 1.0:
        return 0.0
    low = 0.0
    for turn in (*_stationary_points(a1, a2, a3), most):
        high = min(turn, most)
        if high > low:
            value = a0 + high * (a1 + high * (a2 + high * a3))
            if abs(value) > 1.0:
                return _monotone_root(a0 - copysign(1.0, value), a1, a2, a3, low, high)
            if abs(value) >= 1.0 - TOUCH_TOL:
                return high
            low = high
    return most


def _stationary_points(a1: float, a2: float, a3: float) -> list[float]:
    """Return the zeros of a1 + 2 a2 L + 3 a3 L^2 in ascending order."""
    square = a2 * a2 - 3.0 * a1 * a3
    if square < 0.0:
        return []
    q = -(a2 + copysign(sqrt(square), a2))  # avoids cancellation
    return sorted(([q / (3.0 * a3)] if a3 else []) + ([a1 / q] if q else []))


def _monotone_root(a0: float, a1: float, a2: float, a3: float, low: float, high: float) -> float:
    """Return the root of a polynomial that is monotone between low and high and has different signs at both."""
    is_rising = a0 + low * (a1 + low * (a2 + low * a3)) < 0.0
    room = abs(a0)
    scale = min((room / abs(a)) ** power for a, power in ((a1, 1.0), (a2, 0.5), (a3, 1.0 / 3.0)) if a)
    L = min(max(scale, low), high)  # the root is not below a third of this scale
    for _ in range(MAX_ITERATIONS):
        value, slope = a0 + L * (a1 + L * (a2 + L * a3)), a1 + L * (2.0 * a2 + L * 3.0 * a3)
        if (value < 0.0) == is_rising:
            low = L
        else:
            high = L
        step = value / slope if slope else MAX_FACTOR
        if abs(step) <= NEWTON_TOL * L:
            return L - step
        L = min(L - step, 2.0 * L)  # near a stationary point the Newton step is unbounded
        if not low < L < high:
            L = 0.5 * (low + high) if high < MAX_FACTOR else 2.0 * low
    return L


class SpeedFactor(NamedTuple):
    """Speed factors and the limits that bind.

    factor : (...) largest factor; 0 if gravity alone exceeds a limit, inf if no limit binds
    joint  : (...) index of the binding joint, -1 if no limit binds
    limit  : (...) index into LIMITS
    """

    factor: Any
    joint: Any
    limit: Any

    def describe(self, joint_names: Any) -> str:
        """Return the binding limit of one sample as a sentence."""
        kind = LIMITS[int(self.limit)]
        if not kind:
            return "no known limit binds"
        if kind == "gravity":
            return f"gravity alone exceeds the effort limit of {joint_names[int(self.joint)]} in this pose"
        return f"{kind.replace('_', ' ')} of {joint_names[int(self.joint)]} binds at factor {float(self.factor):.4g}"


def speed_factor(tau: Any, tau_rate: Any, gravity: Any, gravity_rate: Any, effort: Any, effort_rate: Any,
                 friction: Any = 0.0, friction_rate: Any = 0.0) -> SpeedFactor:
    """Return the largest constant factor on the speed of motions, and the joint and limit that bind.

    tau, tau_rate           : (..., n) torque [N m, N] and torque rate [N m/s, N/s] of the motion
    gravity, gravity_rate   : (..., n) terms of both that do not depend on the speed (bias at rest), and their rate
    effort, effort_rate     : (n,) limits [N m, N] and [N m/s, N/s]; NaN: unknown, not enforced
    friction, friction_rate : (..., n) viscous friction torque and its rate
    """
    given = (tau, tau_rate, gravity, gravity_rate, friction, friction_rate)
    shape = np.broadcast(*given).shape
    shares = np.empty((6, *shape))
    for k, share in enumerate(given):
        shares[k] = share
    if not np.isfinite(shares).all():
        raise InputError("tau, tau_rate, gravity, friction or their rates contain NaN or infinite values; finite numbers are "
                         "needed")
    tau, tau_rate, g, g1, f, f1 = shares
    a = np.zeros((*shape, 2, 4))
    a[..., 0, 0], a[..., 0, 1], a[..., 0, 2] = g, f, tau - g - f
    a[..., 1, 1], a[..., 1, 2], a[..., 1, 3] = g1, f1, tau_rate - g1 - f1
    a[..., 0, :] /= _limit("effort", effort, shape[-1])[:, None]
    a[..., 1, :] /= _limit("effort_rate", effort_rate, shape[-1])[:, None]
    samples = a.reshape(prod(shape[:-1]), 2 * shape[-1], 4).tolist()
    binding = np.array([_with_label(*first_binding(polynomials)) for polynomials in samples]).reshape(*shape[:-1], 3)
    return SpeedFactor(binding[..., 0], binding[..., 1].astype(int), binding[..., 2].astype(int))


def _with_label(factor: float, number: int) -> tuple[float, int, int]:
    """Return factor, index of the joint and index into LIMITS; polynomials of effort and effort rate alternate."""
    joint, kind = divmod(number, 2)
    return (factor, joint, kind + 1 if factor > 0.0 else 3) if number >= 0 else (factor, -1, 0)


def _limit(name: str, value: Any, n: int) -> np.ndarray:
    limit = np.asarray(value, dtype=float)
    if limit.shape != (n,) or (limit <= 0.0).any():
        shown = np.array2string(limit, threshold=8)
        raise InputError(f"{name} limits are {shown}; {n} numbers above zero are needed, NaN for unknown limits")
    return limit


class SpeedScaling:
    """Rate-limited speed factor for controllers, at most `most`, with limits of decrease (fall) and increase (rise) [1/s].

    The default rate of decrease is larger, because a binding limit must be satisfied at once. An unknown factor (NaN) is
    treated as 0.
    """

    def __init__(self, fall: float = 4.0, rise: float = 0.5, most: float = 1.0, start: float = 1.0):
        for name, value in (("fall", fall), ("rise", rise), ("most", most)):
            if not 0.0 < value < np.inf:
                raise InputError(f"{name} is {value}; a finite number above zero is needed")
        self.fall, self.rise, self.most = fall, rise, most
        self.value = min(max(start, 0.0), most)

    def tick(self, dt: float, factor: float) -> float:
        """Return the value `dt` [s] later. factor: largest permitted factor now."""
        wanted = min(factor, self.most) if factor >= 0.0 else 0.0
        self.value = min(max(wanted, self.value - self.fall * dt), self.value + self.rise * dt)
        return self.value
