"""Time scaling: execution of a time law at a variable rate k within the limits, to pause, resume and slow a motion.

A time law S(sigma) that is within the limits at every constant rate 0 <= k <= 1 is executed with sigma' = k. Its constraint
coefficients (constraints.py) give the utilization of each limit for any k, kappa = k', w = k''. The rate is changed by
transitions: k(t) is a cubic polynomial from (k, kappa) to (k_end, 0). A transition starts only after it has been verified to
its end, where k is constant and the rest of the law is known to be within the limits. Each tick tries to move k_end towards
the target; if that fails, the current transition continues. There is thus always a verified continuation.

The verification covers every instant: a transition is divided into equal time spans, and also at every break of the law, where
the torque rate has corners, and wherever else the coefficients are not parabolas. In each span a utilization is nearly a
parabola, so three values determine its peak.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .braking import BrakingProblem
from .constraints import BASIS_SIZE, Constraints, basis_elements
from .time_law import TimeLaw, divide_intervals


@dataclass(frozen=True)
class TimeScalingOptions:
    """Tuning of tables, transitions and braking."""

    # share of the limits that a transition may use; a law uses less, see time_optimal.CHECKED_LEVEL
    verified_level: float = 0.9995
    same_break_tol_s: float = 1e-9  # distance below which breaks of path and law coincide [s]
    table_margin_s: float = 0.25  # additional time of the law for which a table is extended [s]
    max_parabola_error: float = 1e-4  # share of a limit by which coefficients may differ from parabolas
    max_splits: int = 16  # most divisions of an interval between breaks
    n_spans: int = 16  # least number of time spans of a transition
    slow_rate: float = 1e-3  # lower bound of the rate in the search for breaks; at lower rates their location is less accurate
    # share of its second difference by which a utilization may exceed the peak of its parabola
    max_peak_overshoot: float = 0.02
    first_step: float = 0.01  # first change of k_end per tick
    step_growth: float = 1.3  # factor on this change after a verified transition
    step_cut: float = 0.5  # and after a rejected one
    min_step: float = 1e-4  # smallest change of k_end per tick
    # length of transitions, as a share of the time a torque needs from one limit to the other at its rate limit
    transition_share: float = 0.8
    min_transition_s: float = 0.02
    max_transition_s: float = 0.5
    max_brake_s: float = 1.0
    max_rate: float = 1.001  # rate above which velocities are not verified, so that a transition continues
    min_braking_rate: float = 0.02  # rate below which no transition is optimized
    min_braking_s: float = 5e-3  # rest of the law [s] below which none is


OPTIONS = TimeScalingOptions()
REPORTED_EXCESS = 1e-3  # share of a limit

QUARTER_VALUES = np.array([[3.0, 6.0, -1.0], [-1.0, 6.0, 3.0]]) / 8.0  # parabola at 1/4 and 3/4, from values at 0, 1/2 and 1
PARABOLA = np.array([[1.0, 0.0, 0.0], [-3.0, 4.0, -1.0], [2.0, -4.0, 2.0]])  # its coefficients from these values
CONTROL_POINT = np.array([[-0.5, 2.0, -0.5]])  # its middle Bezier point from the same values
BRAKE_LENGTHS = (1.0, 1.5, 2.0, 3.0, 4.0)  # of the transitions that are tried first, in transition times


def transition_time(constraints: Constraints) -> float:
    """Return the length of transitions [s]: a share of the time from one limit of torque or acceleration to the other.

    If only the rate is limited, it is the longest length, because a short transition permits little change.
    """
    limits, drives = constraints.limits, constraints.drives
    effort, rate = limits.effort, np.fmin(limits.effort_rate, limits.commanded_effort_rate)
    if drives:
        effort, rate = np.fmin(effort, drives.bound_of("effort")), np.fmin(rate, drives.bound_of("effort_rate"))
    ends = (np.where(np.isnan(limit), np.inf, limit) for limit in (effort, limits.acceleration))
    swings = 2.0 * np.concatenate([end / rate for end, rate in zip(ends, (rate, limits.jerk))])
    swing = OPTIONS.transition_share * np.fmax.reduce(swings, initial=0.0)
    return float(np.clip(swing, OPTIONS.min_transition_s, OPTIONS.max_transition_s))


class CoefficientTable:
    """Table of constraint coefficients along a law: parabolas in sigma on intervals bounded by the breaks of sddd.

    Velocity limits are omitted, because k <= 1 satisfies them. A table begins at the time `since` of the law and covers
    `ahead` [s]; it is extended when a transition reaches its end. Computation and the data that a worker returns are
    therefore independent of the length of the motion.

    constraints : evaluated for extensions; the receiver of a table from another process sets its own, with compiled kernels
    """

    def __init__(self, constraints: Constraints, law: TimeLaw, since: float = 0.0, ahead: float = np.inf):
        self.law, H = law, transition_time(constraints)
        self.included = np.array([quantity != "velocity" for _, quantity in constraints.labels])
        self.constraints, self._offset = constraints, constraints.offset[self.included]
        self._largest = np.array([1.0, 1.0, 1.0, 2.0 / H, 1.0, 2.0 / H, 6.0 / H**2])  # bounds on the basis
        breaks = constraints.path.breaks
        cuts = law.time_at(breaks[(breaks > law.start) & (breaks < law.end)])
        after = np.clip(law.breaks.searchsorted(cuts), 1, len(law.breaks) - 1)
        new = np.minimum(np.abs(law.breaks[after] - cuts), np.abs(cuts - law.breaks[after - 1])) > OPTIONS.same_break_tol_s
        self._breaks = np.union1d(law.breaks, cuts[new])
        # at the end of the law, the last interval
        part = np.clip(self._breaks.searchsorted(since, side="right") - 1, 0, len(self._breaks) - 2)
        self.edges = self._breaks[part:part + 1]
        self.flat = np.empty((0, 3 * BASIS_SIZE, len(self._offset)))
        self._speed = np.empty((0, 3))  # largest utilization of a velocity limit at rate 1
        self.extend(since + ahead)

    def extend(self, until: float) -> None:
        """Extend the table up to a time of the law [s]."""
        if until <= self.edges[-1] or self.edges[-1] >= self._breaks[-1]:
            return
        first, last = self._breaks.searchsorted((self.edges[-1], until))
        ends = self._breaks[first:last + 1]
        start, end = ends[:-1], ends[1:]
        rows, speed = self._sampled(start, end)
        quarters = (QUARTER_VALUES @ rows[:, ::2].reshape(len(rows), 3, -1)).reshape(rows[:, 1::2].shape)
        error = (self._largest @ np.abs(rows[:, 1::2] - quarters)).max(axis=(1, 2), initial=0.0)
        splits = np.clip(np.ceil(np.cbrt(error / OPTIONS.max_parabola_error)), 1.0, OPTIONS.max_splits).astype(int)
        start, end, of = divide_intervals(start, end, splits)
        rows, speed, new = rows[of], speed[of], splits[of] > 1
        rows[new], speed[new] = self._sampled(start[new], end[new])
        self._speed = np.concatenate((self._speed, speed))
        flat = (PARABOLA @ rows[:, ::2].reshape(len(rows), 3, -1)).reshape(len(rows), *self.flat.shape[1:])
        # offset for which the limits scaled by verified_level are symmetric
        flat[:, 0] -= self._offset * (1.0 - OPTIONS.verified_level)
        end[-1] = ends[-1]
        self.edges, self.flat = np.append(self.edges, end), np.concatenate((self.flat, flat))

    def _sampled(self, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients at five equidistant points of each interval (intervals, 5, 7, constraints).

        Also return the largest utilization of a velocity limit at three of them (intervals, 3).
        """
        motion = self.law.sample_intervals(start, end, 4).reshape(4, -1)
        rows = self.constraints.coefficients_on_law(*motion)
        speed = np.abs(rows[:, 1, ~self.included]).max(axis=1, initial=0.0).reshape(len(start), 5)[:, ::2]
        rows = rows[..., self.included]
        return rows.reshape(len(start), 5, *rows.shape[1:]), speed

    def coefficients(self, sigma: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Return the coefficients (samples, 7, constraints) at times of the law (samples,), or just before them."""
        part, x = self._find(sigma, before)
        flat = self.flat[part].reshape(len(sigma), 3, BASIS_SIZE, -1)
        x = x[:, None, None]
        return flat[:, 0] + x * (flat[:, 1] + x * flat[:, 2])

    def peaks_at_edges(self, first: int, last: int) -> np.ndarray:
        """Return by how much a utilization at rate 1 is larger at edges than beside them (last - first,)."""
        begin, end = max(first - 1, 0), min(last, len(self.flat))
        rows = self.flat[begin:end].reshape(end - begin, 3, BASIS_SIZE, -1)[:, :, [0, 1, 2, 4]].sum(axis=2)
        start, middle, stop = (np.abs(rows[:, 0] + x * (rows[:, 1] + x * rows[:, 2])) for x in (0.0, 0.5, 1.0))
        found = np.zeros(end - begin + 1)
        found[:-1] = (start - middle).max(axis=1)
        found[1:] = np.maximum(found[1:], (stop - middle).max(axis=1))
        return found[first - begin:last - begin]

    def velocity(self, sigma: np.ndarray) -> np.ndarray:
        """Return the largest utilization of a velocity limit at rate 1 (samples,), zero if none is known."""
        part, x = self._find(sigma)
        start, middle, end = self._speed[part].T
        return start * (1.0 - x) * (1.0 - 2.0 * x) + middle * 4.0 * x * (1.0 - x) + end * x * (2.0 * x - 1.0)

    @property
    def jumps(self) -> np.ndarray:
        """Mask (constraints,) of the constraints that can change suddenly: they contain w."""
        return np.asarray(self.flat[:, BASIS_SIZE - 1::BASIS_SIZE].any(axis=(0, 1)))

    def describe(self, number: int) -> str:
        """Return the name of a limit of this table for users; the one behind the last is velocity."""
        included = np.flatnonzero(self.included)
        return self.constraints.describe(int(included[number])) if number < len(included) else "velocity"

    def _find(self, sigma: np.ndarray, before: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the intervals of times of the law, and the positions in them, 0 to 1; the table is extended as needed."""
        if sigma[-1] > self.edges[-1]:
            self.extend(float(sigma[-1]) + OPTIONS.table_margin_s)
        part = np.minimum(self.edges[1:].searchsorted(sigma, side="right"), len(self.flat) - 1)
        if before is not None:
            part[before] = np.clip(self.edges.searchsorted(sigma[before]) - 1, 0, len(self.flat) - 1)
        return part, np.minimum((sigma - self.edges[part]) / (self.edges[part + 1] - self.edges[part]), 1.0)

    def utilization(self, sigma: np.ndarray, k: np.ndarray, kappa: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Return utilizations (spans, samples, constraints); each input is (spans, samples), each span within one interval.

        Beyond the end of the law, where the motion is at rest, they are those of its end.
        """
        part = self.edges[:-1].searchsorted(sigma[:, sigma.shape[1] // 2], side="right") - 1
        start = self.edges[part]
        x = np.minimum((sigma - start[:, None]) / (self.edges[part + 1] - start)[:, None], 1.0)
        weights = np.empty((3, BASIS_SIZE, *sigma.shape))
        for column, value in enumerate(basis_elements(k, kappa, w)):
            weights[0, column] = value
        np.multiply(weights[0], x, out=weights[1])
        np.multiply(weights[1], x, out=weights[2])
        weights = weights.reshape(3 * BASIS_SIZE, -1).T.reshape(*sigma.shape, -1)
        return np.ascontiguousarray(weights) @ self.flat[part]


def is_within(values: np.ndarray, most: float) -> bool:
    """Return whether parabolas stay within +-most.

    values: (spans, 3, constraints) at start, middle and end of each span
    """
    if not np.abs(values).max(initial=0.0) <= most:
        return False
    high = np.abs(CONTROL_POINT @ values)[:, 0] > most  # a parabola lies in the hull of its Bezier points
    if not high.any():
        return True
    first, middle, last = values.swapaxes(0, 1)[:, high]
    curvature, tilt = first + last - 2.0 * middle, last - first
    peak = np.abs(middle - tilt * tilt / (8.0 * curvature)) + OPTIONS.max_peak_overshoot * np.abs(curvature)
    return not (peak[np.abs(tilt) < 2.0 * np.abs(curvature)] > most).any()


def powers(t: np.ndarray) -> np.ndarray:
    """Return 1, t, ..., t^4 (5, samples) of times t (samples,)."""
    result = np.empty((5, len(t)))
    result[0], result[1] = 1.0, t
    np.multiply(t, t, out=result[2])
    np.multiply(result[2], t, out=result[3])
    np.multiply(result[2], result[2], out=result[4])
    return result


class Cubic(NamedTuple):
    """Part of a transition in which the rate is a cubic of time: its length [s], and w and its derivative at its begin."""

    length: float
    w: float
    slope: float


class Excess(NamedTuple):
    """Excess of new limits by a transition.

    peak  : largest utilization; 1 or less: no limit is exceeded
    limit : the most used limit, for users
    time  : until all limits are kept [s]
    """

    peak: float = 0.0
    limit: str = ""
    time: float = 0.0

    def describe(self) -> str:
        """Return a description for users; empty if no limit is exceeded."""
        if self.peak <= 1.0 + REPORTED_EXCESS:
            return ""
        return f"limits are exceeded for {self.time:.2f} s, most by {100.0 * (self.peak - 1.0):.1f} %: {self.limit}"


NO_EXCESS = Excess()


class TimeScaling:
    """State of a time scaling, and its current transition.

    sigma, k, kappa : time of the law [s], rate [-], and time derivative of the rate [1/s]
    end             : rate at the end of the transition
    """

    def __init__(self, table: CoefficientTable, transition_time: float, sigma: float = 0.0, k: float = 1.0):
        self.table, self.transition_time = table, transition_time
        self.sigma, self.k, self.kappa = sigma, k, 0.0
        self.end = k
        self._max_end = 1.0  # largest rate at the end of a transition
        self._pieces: tuple[Cubic, ...] = ()  # of the transition, from now on
        self._target, self._step = k, OPTIONS.first_step
        self._spans = np.linspace(0.0, transition_time, OPTIONS.n_spans + 1)
        self._powers = powers(self._spans)

    @property
    def steady(self) -> bool:
        """True if the rate is constant."""
        return not self._pieces

    @property
    def left(self) -> float:
        """Time until the end of the transition [s]; 0: constant rate."""
        return sum(piece.length for piece in self._pieces)

    @property
    def cubic_left(self) -> float:
        """Time for which the rate remains the same cubic of time [s]; 0: constant rate."""
        return self._pieces[0].length if self._pieces else 0.0

    @property
    def w(self) -> float:
        """Second derivative of the rate."""
        return self._pieces[0].w if self._pieces else 0.0

    @property
    def slope(self) -> float:
        """Third derivative of the rate."""
        return self._pieces[0].slope if self._pieces else 0.0

    @property
    def reach(self) -> float:
        """Value of sigma at the end of the transition."""
        state = self.sigma, self.k, self.kappa
        for piece in self._pieces:
            state = _after(*state, piece, piece.length)
        return state[0]

    def set_target_rate(self, target: float) -> None:
        """Start a transition whose end is nearer to a target rate, if it can be verified."""
        if target != self._target:
            self._target, self._step = target, OPTIONS.first_step
        if target == self.end:
            return
        change = target - self.end
        end = target if abs(change) <= self._step else self.end + (self._step if change > 0.0 else -self._step)
        end = min(end, self._max_end)
        if self._begin_verified(end):
            self._step = min(OPTIONS.step_growth * self._step, 1.0)
        else:
            self._step = max(OPTIONS.step_cut * self._step, OPTIONS.min_step)

    def _begin_verified(self, end: float) -> bool:
        """Start the transition to a rate if it is within the limits at every instant; return whether it was started."""
        cubic = self._cubic_to(end, self.transition_time) if self.k < OPTIONS.max_rate else None
        if cubic is None or not is_within(self._sampled((cubic,))[1], OPTIONS.verified_level):
            return False
        self.end, self._pieces = end, (cubic,)
        return True

    # ------------------------------------------------------------------ new limits

    def brake(self, table: CoefficientTable, most: float) -> Excess | None:
        """Change to the coefficients of other constraints, and slow down to `most`, the largest constant rate within them.

        A current transition that satisfies the new limits continues. Otherwise the first of a few transitions within the
        limits is started; if there is none, the one with the least excess, which braking.py computes. All later transitions
        are verified with the new limits.

        Return the excess of the new limits; None if no transition from 0 to 1 was found: the state is then unchanged.
        """
        before, self.table, self._max_end = (self.table, self._max_end), table, most
        if self.k <= most and self.steady:
            return NO_EXCESS
        if self._pieces and self.end <= most and self._is_within_all(self._pieces):
            return NO_EXCESS
        used = self._used_now()
        is_outside = bool((used > OPTIONS.verified_level).any())
        candidates: list[tuple[tuple[Cubic, ...], float]] = []
        for length in BRAKE_LENGTHS:
            end = min(self.k, most)
            cubic = self._cubic_to(end, min(length * self.transition_time, OPTIONS.max_brake_s))
            if cubic is not None:
                candidates.append(((cubic,), end))
                if not is_outside and self._is_within_all((cubic,)):
                    self.end, self._pieces = end, (cubic,)
                    return NO_EXCESS
        if self.k > OPTIONS.min_braking_rate and table.law.duration - self.sigma > OPTIONS.min_braking_s:
            problem = BrakingProblem(table, self.sigma, self.k, self.kappa, most, used, self.transition_time)
            profile = problem.solve()
            if profile is not None:  # the others are, nearly, among those from which the search begins
                candidates = [(tuple(Cubic(*piece) for piece in profile.cubics()), float(profile.k[-1]))]
        if not candidates:
            self.table, self._max_end = before
            return None
        excess, self._pieces, self.end = min(((self._excess(pieces), pieces, end) for pieces, end in candidates),
                                             key=lambda found: found[0].peak)
        return excess

    def _used_now(self) -> np.ndarray:
        """Return the present utilization (limits,) of what cannot jump, zero for the others, and last that of velocity."""
        state = (np.array([[x]]) for x in (self.sigma, self.k, self.kappa, 0.0))
        used = np.where(self.table.jumps, 0.0, np.abs(self.table.utilization(*state)[0, 0]))
        return np.append(used, self.k * self.table.velocity(np.array([self.sigma])))

    def _all_utilizations(self, pieces: tuple[Cubic, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Return times (spans, 3) [s] and utilizations (spans, 3, limits) of a transition, the last that of velocity."""
        t, values, sigma, k = self._sampled(pieces)
        velocity = k * self.table.velocity(sigma.ravel()).reshape(sigma.shape)
        return t, np.concatenate((values, velocity[..., None]), axis=2)

    def _is_within_all(self, pieces: tuple[Cubic, ...]) -> bool:
        return is_within(self._all_utilizations(pieces)[1], OPTIONS.verified_level)

    def _excess(self, pieces: tuple[Cubic, ...]) -> Excess:
        """Return the excess of the limits by a transition."""
        t, values = self._all_utilizations(pieces)
        values = np.abs(values)
        outside = np.flatnonzero(values.max(axis=(1, 2)) > 1.0)
        number = int(values.max(axis=(0, 1)).argmax())
        return Excess(float(values.max()), self.table.describe(number), float(t[outside[-1], 2]) if len(outside) else 0.0)

    # ------------------------------------------------------------------ transitions

    def _cubic_to(self, end: float, H: float) -> Cubic | None:
        """Return the transition to a rate in time H [s]; None if k leaves 0 to 1."""
        k, kappa = self.k, self.kappa
        change = end - k
        w, j = (6.0 * change / H - 4.0 * kappa) / H, (6.0 * kappa - 12.0 * change / H) / (H * H)
        turn = 2.0 * kappa / (j * H) if j else H  # the second zero of kappa; the first is the end
        if 0.0 < turn < H and not 0.0 <= k + turn * (kappa + turn * (w / 2.0 + turn * (j / 6.0))) <= 1.0:
            return None
        return Cubic(H, w, j)

    def _sampled(self, pieces: tuple[Cubic, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return times (spans, 3) [s], utilizations (spans, 3, constraints), sigma and k (spans, 3) of a transition."""
        sigma, k, kappa = self.sigma, self.k, self.kappa
        if len(pieces) == 1:
            H, w, j = pieces[0]
            polynomials = _polynomials(sigma, k, kappa, w, j)
            t = self._cut(polynomials, H)
            t = np.stack((t[:-1], 0.5 * (t[:-1] + t[1:]), t[1:]), axis=1)
            motion = (polynomials @ powers(t.ravel())).reshape(4, *t.shape)
            return t, self.table.utilization(*motion), motion[0], motion[1]
        # the parts of an optimized transition end at the edges of the table
        h, w, j = np.array(pieces).T
        kappas = kappa + np.cumsum(h * (w + 0.5 * h * j))
        kappas = np.concatenate(([kappa], kappas[:-1]))
        rates = np.concatenate(([k], k + np.cumsum(h * (kappas + h * (w / 2.0 + h * j / 6.0)))[:-1]))
        sigmas = sigma + np.cumsum(h * (rates + h * (kappas / 2.0 + h * (w / 6.0 + h * j / 24.0))))
        if sigmas[-1] > self.table.edges[-1]:
            self.table.extend(float(sigmas[-1]) + OPTIONS.table_margin_s)
        polynomials = _polynomials(np.concatenate(([sigma], sigmas[:-1])), rates, kappas, w, j)
        local = h[:, None] * np.array([0.0, 0.5, 1.0])
        motion = np.einsum("apn,pnt->ant", polynomials, powers(local.ravel()).reshape(5, *local.shape))
        return (np.cumsum(h) - h)[:, None] + local, self.table.utilization(*motion), motion[0], motion[1]

    def _cut(self, polynomials: np.ndarray, H: float) -> np.ndarray:
        """Return the boundaries [s] of the spans of a transition of length H [s]."""
        is_usual = self.transition_time == H
        t = self._spans if is_usual else self._spans * (H / self.transition_time)
        sigma = polynomials[0] @ (self._powers if is_usual else powers(t))
        if sigma[-1] > self.table.edges[-1]:
            self.table.extend(sigma[-1] + OPTIONS.table_margin_s)
        edges = self.table.edges
        first, last = edges.searchsorted((self.sigma, sigma[-1]))
        if first == last:
            return t
        passed = edges[first:last]
        near = np.interp(passed, sigma, t)
        sigma_near, rate = polynomials[:2] @ powers(near)
        near += (passed - sigma_near) / np.maximum(rate, OPTIONS.slow_rate)  # one step of Newton's method
        return np.sort(np.concatenate((t, np.minimum(np.maximum(near, 0.0), H))))

    def rebase(self, table: CoefficientTable, factor: float) -> bool:
        """Continue from the same state on the law slowed by a factor.

        Return False if that cannot be verified; the state is then unchanged.
        """
        if self.k > factor:
            return False
        before = self.table, self._max_end, self.sigma, self.k, self.kappa, self.end
        self.table, self._max_end = table, 1.0
        self.sigma, self.k, self.kappa, self.end = (x / factor for x in before[2:])
        if self.steady:
            self.end = self.k
        elif not self._begin_verified(min(self.end, 1.0)):
            self.table, self._max_end, self.sigma, self.k, self.kappa, self.end = before
            return False
        return True

    def advance(self, dt: float) -> None:
        """Advance the state by dt [s]."""
        while self._pieces and dt > 0.0:
            piece, *later = self._pieces
            t = min(dt, piece.length)
            self.sigma, self.k, self.kappa = _after(self.sigma, self.k, self.kappa, piece, t)
            rest = piece.length - t
            self._pieces = (Cubic(rest, piece.w + t * piece.slope, piece.slope), *later) if rest > 0.0 else tuple(later)
            dt -= t
        if not self._pieces:
            self.k, self.kappa = self.end, 0.0
            self.sigma += dt * self.k


def _after(sigma: float, k: float, kappa: float, piece: Cubic, t: float) -> tuple[float, float, float]:
    """Return sigma, k, kappa after a time t [s] in a part of a transition."""
    _, w, j = piece
    return (sigma + t * (k + t * (kappa / 2.0 + t * (w / 6.0 + t * (j / 24.0)))),
            k + t * (kappa + t * (w / 2.0 + t * (j / 6.0))), kappa + t * (w + t * (j / 2.0)))


def _polynomials(sigma: Any, k: Any, kappa: Any, w: Any, j: Any) -> np.ndarray:
    """Return the coefficients (4, 5, ...) of sigma, k, kappa, w as polynomials of time."""
    zero = np.zeros_like(w)
    return np.array(((sigma, k, kappa / 2.0, w / 6.0, j / 24.0), (k, kappa, w / 2.0, j / 6.0, zero),
                     (kappa, w, j / 2.0, zero, zero), (w, j, zero, zero, zero)))
