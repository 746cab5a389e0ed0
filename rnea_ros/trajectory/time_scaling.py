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

import numpy as np

from .constraints import BASIS_SIZE, Constraints
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
    retry_share: float = 1 / 16  # transition times between two searches for a braking transition
    n_later: int = 8  # number of later start times that a search tries


OPTIONS = TimeScalingOptions()

QUARTER_VALUES = np.array([[3.0, 6.0, -1.0], [-1.0, 6.0, 3.0]]) / 8.0  # parabola at 1/4 and 3/4, from values at 0, 1/2 and 1
PARABOLA = np.array([[1.0, 0.0, 0.0], [-3.0, 4.0, -1.0], [2.0, -4.0, 2.0]])  # its coefficients from these values
CONTROL_POINT = np.array([[-0.5, 2.0, -0.5]])  # its middle Bezier point from the same values
# braking transitions, the gentlest first: (end rate over the largest permitted one, length over the transition time)
BRAKES = tuple((share, length) for length in (1.0, 1.5, 2.0, 3.0, 4.0, 6.0) for share in (1.0, 0.95, 0.85, 0.7))


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
        self.extend(since + ahead)

    def extend(self, until: float) -> None:
        """Extend the table up to a time of the law [s]."""
        if until <= self.edges[-1] or self.edges[-1] >= self._breaks[-1]:
            return
        first, last = self._breaks.searchsorted((self.edges[-1], until))
        ends = self._breaks[first:last + 1]
        start, end = ends[:-1], ends[1:]
        rows = self._sampled(start, end)
        quarters = (QUARTER_VALUES @ rows[:, ::2].reshape(len(rows), 3, -1)).reshape(rows[:, 1::2].shape)
        error = (self._largest @ np.abs(rows[:, 1::2] - quarters)).max(axis=(1, 2), initial=0.0)
        splits = np.clip(np.ceil(np.cbrt(error / OPTIONS.max_parabola_error)), 1.0, OPTIONS.max_splits).astype(int)
        start, end, of = divide_intervals(start, end, splits)
        rows, new = rows[of], splits[of] > 1
        rows[new] = self._sampled(start[new], end[new])
        flat = (PARABOLA @ rows[:, ::2].reshape(len(rows), 3, -1)).reshape(len(rows), *self.flat.shape[1:])
        # offset for which the limits scaled by verified_level are symmetric
        flat[:, 0] -= self._offset * (1.0 - OPTIONS.verified_level)
        end[-1] = ends[-1]
        self.edges, self.flat = np.append(self.edges, end), np.concatenate((self.flat, flat))

    def _sampled(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Return the coefficients at five equidistant points of each interval (intervals, 5, 7, constraints)."""
        motion = self.law.sample_intervals(start, end, 4).reshape(4, -1)
        rows = self.constraints.coefficients_on_law(*motion)[..., self.included]
        return rows.reshape(len(start), 5, *rows.shape[1:])

    def utilization(self, sigma: np.ndarray, k: np.ndarray, kappa: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Return utilizations (spans, samples, constraints); each input is (spans, samples), each span within one interval.

        Beyond the end of the law, where the motion is at rest, they are those of its end.
        """
        part = self.edges[:-1].searchsorted(sigma[:, sigma.shape[1] // 2], side="right") - 1
        start = self.edges[part]
        x = np.minimum((sigma - start[:, None]) / (self.edges[part + 1] - start)[:, None], 1.0)
        weights = np.empty((3, BASIS_SIZE, *sigma.shape))
        square = k * k
        for column, value in enumerate((1.0, k, square, kappa, square * k, k * kappa, w)):
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


class TimeScaling:
    """State of a time scaling, and its current transition.

    sigma, k, kappa : time of the law [s], rate [-], and time derivative of the rate [1/s]
    end             : rate at the end of the transition
    left            : time until the end of the transition [s]; 0: constant rate
    """

    def __init__(self, table: CoefficientTable, transition_time: float, sigma: float = 0.0, k: float = 1.0):
        self.table, self.transition_time = table, transition_time
        self.sigma, self.k, self.kappa = sigma, k, 0.0
        self.end = k
        self.left = 0.0
        self._cubic = (0.0, 0.0)  # w and its time derivative, now
        self._target, self._step = k, OPTIONS.first_step
        self._searched: tuple[CoefficientTable | None, float] = None, 0.0  # table and sigma of the last search for a brake
        self._spans = np.linspace(0.0, transition_time, OPTIONS.n_spans + 1)
        self._powers = powers(self._spans)

    @property
    def steady(self) -> bool:
        """True if the rate is constant."""
        return self.left <= 0.0

    @property
    def w(self) -> float:
        """Second derivative of the rate."""
        return self._cubic[0] if self.left > 0.0 else 0.0

    @property
    def slope(self) -> float:
        """Third derivative of the rate."""
        return self._cubic[1] if self.left > 0.0 else 0.0

    @property
    def reach(self) -> float:
        """Value of sigma at the end of the transition."""
        t, (w, j) = self.left, self._cubic
        return self.sigma + t * (self.k + t * (self.kappa / 2.0 + t * (w / 6.0 + t * (j / 24.0))))

    def set_target_rate(self, target: float) -> None:
        """Start a transition whose end is nearer to a target rate, if it can be verified."""
        if target != self._target:
            self._target, self._step = target, OPTIONS.first_step
        if target == self.end:
            return
        change = target - self.end
        end = target if abs(change) <= self._step else self.end + (self._step if change > 0.0 else -self._step)
        if self._begin_verified(end):
            self._step = min(OPTIONS.step_growth * self._step, 1.0)
        else:
            self._step = max(OPTIONS.step_cut * self._step, OPTIONS.min_step)

    def brake(self, table: CoefficientTable, most: float) -> bool:
        """Change to the coefficients of other constraints, and slow down to `most`, the largest constant rate within them.

        A current transition that satisfies the new limits continues. Otherwise the first of BRAKES within the limits is
        started; if there is none, the one that exceeds the limits least among those that exceed none by more than the motion
        without braking does. If there is none of these either (for instance while the motion decelerates at its rate limits),
        braking is postponed if such a transition exists soon, or else the transition that exceeds the limits least is started.
        All later transitions are verified with the new limits.

        Return False if braking is postponed; the state is then unchanged.
        """
        if self.k <= most and self.steady:
            self.table = table
            return True
        if table is self._searched[0] and self.sigma - self._searched[1] < OPTIONS.retry_share * self.transition_time:
            return False  # the state has hardly changed since the last search
        before, self.table, self._searched = self.table, table, (table, self.sigma)
        best: tuple[tuple[bool, float], float, float, tuple[float, float]] | None = None
        used = self._utilization(self._cubic, self.left)[1] if not self.steady and self.end <= most else None
        if used is not None and is_within(used, OPTIONS.verified_level):
            return True  # the current transition is within them
        allowed = self._largest_without_braking()
        for share, length in BRAKES:
            end, H = share * min(self.k, most), min(length * self.transition_time, OPTIONS.max_brake_s)
            cubic = self._cubic_to(end, H)
            if cubic is None:
                continue
            t, values = self._utilization(cubic, H)
            exceeds_more = bool((np.abs(values).max(axis=(0, 1)) > allowed).any())
            excess = np.maximum(np.abs(values).max(axis=2) - OPTIONS.verified_level, 0.0)
            mean_excess = float(((t[:, 2] - t[:, 0]) * excess.mean(axis=1)).sum()) / self.transition_time
            cost = exceeds_more, 2.0 * float(excess.max()) + mean_excess
            if best is None or cost < best[0]:
                best = cost, end, H, cubic
            if is_within(values, OPTIONS.verified_level):
                best = cost, end, H, cubic
                break
        if best is None or (best[0][0] and self._can_brake_soon(most, allowed)):
            self.table = before
            return False
        _, self.end, self.left, self._cubic = best
        return True

    def _can_brake_soon(self, most: float, allowed: np.ndarray) -> bool:
        """Return whether a transition that starts later, after motion at the current rate, stays within `allowed`."""
        here, end = self.sigma, min(self.k, most)
        try:
            for later in range(1, OPTIONS.n_later + 1) if self.steady else ():
                self.sigma = here + later * OPTIONS.retry_share * self.transition_time * self.k
                for length in (1.0, 2.0, 4.0):
                    H = min(length * self.transition_time, OPTIONS.max_brake_s)
                    cubic = self._cubic_to(end, H)
                    if cubic and (np.abs(self._utilization(cubic, H)[1]).max(axis=(0, 1)) <= allowed).all():
                        return True
        finally:
            self.sigma = here
        return False

    def _largest_without_braking(self) -> np.ndarray:
        """Return the largest utilization (constraints,) in the current transition and after it, at least `verified_level`.

        It covers the interval of the law that the table contains.
        """
        table, largest = self.table, np.full(self.table.flat.shape[2], OPTIONS.verified_level)
        if not self.steady:
            largest = np.maximum(largest, np.abs(self._utilization(self._cubic, self.left)[1]).max(axis=(0, 1)))
        edges = np.append(self.reach, table.edges[table.edges.searchsorted(self.reach, side="right"):])
        if len(edges) > 1:
            sigma = np.stack((edges[:-1], 0.5 * (edges[:-1] + edges[1:]), edges[1:]), axis=1)
            k, zero = np.full(sigma.shape, self.end), np.zeros(sigma.shape)
            largest = np.maximum(largest, np.abs(table.utilization(sigma, k, zero, zero)).max(axis=(0, 1)))
        return largest

    def _begin_verified(self, end: float) -> bool:
        """Start the transition to a rate if it is within the limits at every instant; return whether it was started."""
        cubic = self._cubic_to(end, self.transition_time)
        if cubic is None or not is_within(self._utilization(cubic, self.transition_time)[1], OPTIONS.verified_level):
            return False
        self.end, self.left, self._cubic = end, self.transition_time, cubic
        return True

    def _cubic_to(self, end: float, H: float) -> tuple[float, float] | None:
        """Return w and its time derivative at the start of the transition to a rate in time H [s]; None if k leaves 0 to 1."""
        k, kappa = self.k, self.kappa
        change = end - k
        w, j = (6.0 * change / H - 4.0 * kappa) / H, (6.0 * kappa - 12.0 * change / H) / (H * H)
        turn = 2.0 * kappa / (j * H) if j else H  # the second zero of kappa; the first is the end
        if 0.0 < turn < H and not 0.0 <= k + turn * (kappa + turn * (w / 2.0 + turn * (j / 6.0))) <= 1.0:
            return None
        return w, j

    def _utilization(self, cubic: tuple[float, float], H: float) -> tuple[np.ndarray, np.ndarray]:
        """Return times (spans, 3) [s] and utilizations (spans, 3, constraints) of a transition of length H [s]."""
        (w, j), k, kappa = cubic, self.k, self.kappa
        polynomials = np.array(((self.sigma, k, kappa / 2.0, w / 6.0, j / 24.0), (k, kappa, w / 2.0, j / 6.0, 0.0),
                                (kappa, w, j / 2.0, 0.0, 0.0), (w, j, 0.0, 0.0, 0.0)))
        t = self._cut(polynomials, H)
        t = np.stack((t[:-1], 0.5 * (t[:-1] + t[1:]), t[1:]), axis=1)
        motion = (polynomials @ powers(t.ravel())).reshape(4, *t.shape)
        return t, self.table.utilization(*motion)

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
        before = self.table, self.sigma, self.k, self.kappa, self.end
        self.table = table
        self.sigma, self.k, self.kappa, self.end = (x / factor for x in before[1:])
        if self.steady:
            self.end = self.k
        elif not self._begin_verified(min(self.end, 1.0)):
            self.table, self.sigma, self.k, self.kappa, self.end = before
            return False
        return True

    def advance(self, dt: float) -> None:
        """Advance the state by dt [s]."""
        t = min(dt, self.left)
        if t > 0.0:
            w, j = self._cubic
            self.sigma += t * (self.k + t * (self.kappa / 2.0 + t * (w / 6.0 + t * (j / 24.0))))
            self.k += t * (self.kappa + t * (w / 2.0 + t * (j / 6.0)))
            self.kappa += t * (w + t * (j / 2.0))
            self._cubic = (w + t * j, j)
            self.left -= t
        if self.left <= 0.0:
            self.k, self.kappa, self.left = self.end, 0.0, 0.0
            self.sigma += (dt - t) * self.k
