"""Limit checks of a path and of time laws, between samples too.

An interval of a law is short, so a constraint between its samples is nearly a parabola: it exceeds the largest sample by no
more than an eighth of the second difference. Where that bound is beyond the limit, samples lie closer. For a law that will be
slowed, the bound is evaluated at the rate that the coarse samples leave: few intervals are near a limit then.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce
from typing import Any, NamedTuple

import numpy as np

from ..codegen.kernel import Tiles
from ..codegen.program import larger
from ..errors import InputError, some
from .constraints import SAMPLES_PER_BLOCK, Constraints, at_rate, limit_shares
from .sample_kernels import SampleFunction
from .speed_factor import smallest_factor
from .time_law import TimeLaw

COARSE_STEPS, FINE_STEPS = 4, 24  # in an interval of a law
COARSE_INTERVAL_S, FINE_INTERVAL_S = 0.08, 0.02  # longest intervals
CURVATURE_FACTOR = 1.5 / 8.0  # of the second difference; 1/8 for a parabola, with a margin for other curves
CHECKED_RATES = (1.0, 0.75, 0.5)  # shares of the rate at which the bound is evaluated
PATH_SAMPLES = 201  # for a bound on the acceleration
MOVING_TOL = 1e-9  # of |q'|, above which a joint moves
UNBOUNDED_TIME_S = 1e-7  # in which limits allow the whole length: acceleration is not bounded


# -------------------------------------------------------------------------------------------------------------------- laws


class LimitCheck(NamedTuple):
    """Result of a check of a law against limits.

    rate        : rate at which the law was checked
    polynomials : (count, 4) rate polynomials of all that may reach the share of its limit at that rate or a lower one
    constraint  : (count,) their constraints
    instant     : (count,) starts of their intervals [s]
    start       : (intervals,) start times [s]
    used        : (intervals, constraints) largest share of each limit at `rate`
    worst_s     : (intervals,) s of the largest of all, where samples were fine, else NaN
    """

    rate: float
    polynomials: np.ndarray
    constraint: np.ndarray
    instant: np.ndarray
    start: np.ndarray
    used: np.ndarray
    worst_s: np.ndarray


def check_limits(constraints: Constraints, law: TimeLaw, share: float,
                 rate: Callable[[np.ndarray, np.ndarray], float] = lambda polynomials, constraint: 1.0,
                 parts: tuple[np.ndarray, np.ndarray] | None = None) -> LimitCheck:
    """Check a law against a share of the limits.

    rate  : largest rate at which it will be played, from the rate polynomials of the coarse samples and their constraints
    parts : starts and ends of the parts to check, in order; default all
    """
    start, end = law.intervals(constraints.path.breaks, COARSE_INTERVAL_S)
    if parts is not None:
        middle = 0.5 * (start + end)
        number = np.searchsorted(parts[0], middle)
        inside = (number > 0) & (middle < parts[1][number - 1])
        start, end = start[inside], end[inside]
    coarse = _CoarseCheck(constraints, law, start, end, share)
    most = rate(*coarse.near_limit[:2])
    if most != coarse.rate:
        coarse.evaluate(most)
    close = coarse.bound > share
    if not close.any():
        return LimitCheck(most, *coarse.near_limit, start, coarse.used, np.full(len(start), np.nan))
    fine = _check_finely(constraints, law, law.subdivide(start[close], end[close], FINE_INTERVAL_S), share, most)
    kept = start[~close], coarse.used[~close], np.full(np.sum(~close), np.nan)
    start, used, worst_s = map(np.concatenate, zip(kept, fine[4:]))
    order = np.argsort(start, kind="stable")
    polynomials, constraint, instant = map(np.concatenate, zip(coarse.near_limit, fine[1:4]))
    return LimitCheck(most, polynomials, constraint, instant, start[order], used[order], worst_s[order])


class _CoarseCheck:
    """Check of all intervals by few samples.

    used, bound : (intervals, constraints) largest used shares, and (intervals,) a bound on what is used
    near_limit  : rate polynomials of all that may reach the share, their constraints, and starts of their intervals
    """

    def __init__(self, constraints: Constraints, law: TimeLaw, start: np.ndarray, end: np.ndarray, share: float):
        self._constraints, self._law, self._start, self._end, self._share = constraints, law, start, end, share
        self.evaluate(1.0)

    def evaluate(self, rate: float) -> None:
        """Evaluate at a rate, and bounds at slower ones, by blocks that fit into the cache: those are not kept."""
        self.rate, intervals, lanes = rate, len(self._start), self._constraints.lanes
        blocks = intervals * (COARSE_STEPS + 1) // SAMPLES_PER_BLOCK + 1
        size = -(-intervals // (blocks * lanes)) * lanes  # whole tiles; those of the last block repeat the last interval
        numbers = np.arange(intervals + -intervals % lanes).clip(max=intervals - 1)
        found, near = zip(*(self._evaluate_block(numbers[first:first + size]) for first in range(0, len(numbers), size)))
        self.used, bound = np.concatenate(found, axis=1)[:, :intervals]
        self.bound = bound.max(axis=1)
        polynomials, constraint, instant = map(np.concatenate, zip(*near))
        self.near_limit = polynomials, constraint, instant

    def _evaluate_block(self, block: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """Return used shares and bounds (2, intervals, constraints) of a block of intervals, and what is near a limit."""
        offset, lanes = self._constraints.offset, self._constraints.lanes
        # samples of one number together: all first ones, all second ones
        motion = self._law.sample_intervals(self._start[block], self._end[block], COARSE_STEPS).swapaxes(1, 2).reshape(4, -1)
        tiles, count = len(block) // lanes, len(block) * len(offset)
        polynomials = self._constraints.tiled_rate_polynomials(motion).data.reshape(-1, tiles, len(offset), 4, lanes)
        # a tile of each constraint of as many intervals as there are lanes
        offsets = np.broadcast_to(offset[:, None], (tiles, len(offset), lanes)).reshape(-1, 1, lanes)
        blocks = [Tiles(x, count) for x in polynomials.reshape(len(polynomials), -1, 4, lanes)]
        (result,) = _compiled_bound().tiled([*blocks, np.array([self.rate]), np.array([self._share]), Tiles(offsets, count)],
                                            count)
        result = result.data.reshape(tiles, len(offset), 3, lanes)
        tile, constraint, lane = np.nonzero(result[:, :, 2] >= 1.0)
        near = polynomials[:, tile, constraint, :, lane].reshape(-1, 4)
        return (result[:, :, :2].transpose(2, 0, 3, 1).reshape(2, -1, len(offset)),
                (near, *(np.repeat(x, COARSE_STEPS + 1) for x in (constraint, self._start[block[lanes * tile + lane]]))))


def _check_finely(constraints: Constraints, law: TimeLaw, intervals: tuple[np.ndarray, np.ndarray], share: float,
                  rate: float) -> LimitCheck:
    motion, offset = law.sample_intervals(*intervals, FINE_STEPS), constraints.offset
    polynomials = constraints.rate_polynomials(motion.reshape(4, -1))
    used = limit_shares(at_rate(np.moveaxis(polynomials, -1, 0), rate), offset)
    used = used.reshape(len(intervals[0]), FINE_STEPS + 1, len(offset))
    worst_s = motion[0, np.arange(len(intervals[0])), used.max(axis=2).argmax(axis=1)]
    near = _magnitude(np.moveaxis(polynomials, -1, 0), share, rate, offset) >= 1.0
    sample, constraint = np.nonzero(near)
    return LimitCheck(rate, polynomials[near], constraint, intervals[0][sample // (FINE_STEPS + 1)], intervals[0],
                      used.max(axis=1), worst_s)


@cache
def _compiled_bound() -> SampleFunction:
    inputs = {**{f"p{k}": 4 for k in range(COARSE_STEPS + 1)}, "rate": 1, "share": 1, "offset": 1}
    return SampleFunction(utilization_bound, inputs)


def utilization_bound(rate: Any, share: Any, offset: Any, **samples: Any) -> tuple[list[Any]]:
    """Bound the use of a limit in an interval of a law, for one constraint and any scalar.

    Returns the largest used share at the samples; a bound on it between them at that rate or slower; and the sum of the
    magnitudes of the powers of the rate, over `share`: below 1 the constraint cannot reach the share.
    """
    (share,), (rate,), (offset,) = share, rate, offset
    used: list[Any] = []
    bounds: list[Any] = []
    polynomials = list(samples.values())
    for slower in CHECKED_RATES:
        shares = [limit_shares(at_rate(p, slower * rate), offset) for p in polynomials]
        curvatures = [abs(a - b - (b - c)) for a, b, c in zip(shares, shares[1:], shares[2:])]
        used.append(_largest(shares))
        bounds.append(used[-1] + CURVATURE_FACTOR * _largest(curvatures))
    return [used[0], _largest(bounds), _largest([_magnitude(p, share, rate, offset) for p in polynomials])],


def _magnitude(polynomial: Any, share: Any, rate: Any, offset: Any) -> Any:
    """Return the sum of the magnitudes of the terms of a polynomial (4, ...) at a rate, over a share of the limit."""
    a0, *others = polynomial
    return at_rate([abs(a0 + offset * (share - 1.0)), *map(abs, others)], rate) / share


def _largest(values: list[Any]) -> Any:
    return reduce(larger, values)


def largest_rate(polynomials: np.ndarray, share: float, offset: np.ndarray, most: float = 1.0) -> float:
    """Return the largest constant rate up to `most` of a motion that keeps to a share of the limits.

    polynomials : (count, 4) rate polynomials; offset (count,) of their constraints
    """
    scaled = polynomials / share
    scaled[:, 0] += offset * (1.0 - 1.0 / share)
    return smallest_factor(scaled, most)


def steady_rate(constraints: Constraints, law: TimeLaw, share: float) -> float:
    """Return the largest constant rate up to 1 at which a law, and every slower one, keeps to a share of the limits."""
    check = check_limits(constraints, law, share,
                         lambda polynomials, number: largest_rate(polynomials, share, constraints.offset[number]))
    return largest_rate(check.polynomials, share, constraints.offset[check.constraint], check.rate)


# -------------------------------------------------------------------------------------------------------------------- path


def check_rest(constraints: Constraints, level: float = 1.0, start: float = 0.0) -> None:
    """Raise InputError if the robot cannot rest somewhere on the path from s = start on: no time law exists then."""
    length, breaks = constraints.path.length, constraints.path.breaks
    s = np.unique(np.concatenate((np.linspace(start, length, 1001), breaks[breaks > start])))
    used = constraints.utilization(np.stack((s, *np.zeros((3, len(s))))))
    sample, number = np.unravel_index(int(used.argmax()), used.shape)
    if used[sample, number] >= level:
        joint = constraints.labels[number][0]
        limit = constraints.limits.effort[joint]
        if number >= constraints.own:
            raise InputError(f"gravity alone takes {used[sample, number]:.4g} times the {constraints.describe(int(number))} "
                             f"at s = {s[sample]:.4g} of {constraints.path.length:.4g} on the path: no speed is slow enough")
        raise InputError(f"gravity alone takes {used[sample, number] * limit:.4g} of the {limit:.4g} N m (N) of "
                         f"{constraints.joint_names[joint]} at s = {s[sample]:.4g} of {length:.4g} on the path: "
                         "no speed is slow enough")


def check_acceleration_bounded(constraints: Constraints, start: float, end: float) -> None:
    """Raise InputError if nothing bounds the acceleration between s = start and end: the motion would jump to speed."""
    if not constraints.second_order:
        raise InputError("only velocity limits are known: the fastest motion would jump to speed; give limits of effort or "
                         "acceleration")
    s, length = np.linspace(start, end, PATH_SAMPLES), end - start
    acceleration, jerk = (np.abs(constraints(s)[:, k]).max(axis=1) for k in (3, 6))
    # times to cover the length with the acceleration, and the jerk, that the limits allow
    free = np.maximum(np.sqrt(length * acceleration), np.cbrt(length * jerk)) < UNBOUNDED_TIME_S
    along = np.flatnonzero(free[:-1] & free[1:])
    if len(along):
        a, b = along[0], along[-1] + 1
        moves = np.abs(constraints.path(s[along])[1]).max(axis=0) > MOVING_TOL
        joints = some(name for name, moving in zip(constraints.joint_names, moves) if moving)
        raise InputError(f"nothing bounds the acceleration from s = {s[a]:.4g} to {s[b]:.4g} of {constraints.path.length:.4g} "
                         f"on the path: what moves there ({joints}) has no mass, or no known limits of effort and "
                         "acceleration; give limits of acceleration")
