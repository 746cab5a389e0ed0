"""Time scaling: the rate k at which a law is played, changed only as the limits allow, to pause, resume and slow a motion.

A law S(sigma) that is inside the limits at every constant rate 0 <= k <= 1 is played with sigma' = k. Its constraint
coefficients (terms.py) tell for any k, kappa = k', w = k'' what of each limit is used. The rate is moved by transitions: k(t)
cubic in time from (k, kappa) to (k_end, 0) within a horizon. One is begun only after it has been verified to its end, where k
is constant again and all that follows is known to be inside. Each tick tries to move k_end towards what is wanted; if that is
refused, the transition under way goes on. So there is always a verified continuation.

Verified is every instant: a transition is cut into equal spans of time, and again at every break of the law, where the torque
rate has its corners, and wherever else the coefficients bend. In each span a utilization is all but a parabola, so three
values of it tell its peak, wherever that is.
"""

from __future__ import annotations

import numpy as np

from .law import TimeLaw, divided
from .terms import BASIS, Constraints

VERIFIED = 0.9995  # share of the limits that a transition may use; a law uses less, see profile.PASS
CLOSE = 1e-9  # s; between breaks of path and law that are one
AHEAD = 0.25  # s of the law, that a table goes on for beyond what is needed
STRAY = 1e-4  # of a limit, by which coefficients may differ from parabolas
SPLITS = 16  # into which a part between breaks is split for that, at most
BETWEEN = np.array([[3.0, 6.0, -1.0], [-1.0, 6.0, 3.0]]) / 8.0  # a parabola at 1/4 and 3/4, from values at 0, 1/2 and 1
PARABOLA = np.array([[1.0, 0.0, 0.0], [-3.0, 4.0, -1.0], [2.0, -4.0, 2.0]])  # its coefficients
CONTROL = np.array([[-0.5, 2.0, -0.5]])  # its control point in the middle
SPANS = 16  # of time in a transition, at least
SLOW = 1e-3  # rate below which breaks, which hardly matter then, are found less well
SKEW = 0.02  # of its bend, by which a utilization may exceed the peak of its parabola
FIRST_STEP, GROW, CUT = 0.01, 1.3, 0.5  # of k_end from tick to tick
LEAST_STEP = 1e-4
HORIZON = 0.8  # of the time in which the rate limits let a torque swing from end to end
SHORTEST, LONGEST = 0.02, 0.5  # s
# (rate at the end by the largest one that is inside, length by the horizon) of braking transitions, the gentlest first
BRAKES = tuple((share, length) for length in (1.0, 1.5, 2.0, 3.0, 4.0, 6.0) for share in (1.0, 0.95, 0.85, 0.7))
LONGEST_BRAKE = 1.0  # s
RETRY, LATER = 1 / 16, 8  # of the horizon: law time between two searches for a braking transition; so many are looked ahead


def horizon(constraints: Constraints) -> float:
    """The time that a transition takes: in which the rate limits let a torque, or an acceleration, swing from end to end.

    Where the rate alone is limited nobody knows how far that is: the longest time. In a short one hardly any change fits.
    """
    limits, drives = constraints.limits, constraints.drives
    effort, rate = limits.effort, np.fmin(limits.effort_rate, limits.commanded_effort_rate)
    if drives:
        effort, rate = np.fmin(effort, drives.alone("effort")), np.fmin(rate, drives.alone("effort_rate"))
    ends = (np.where(np.isnan(limit), np.inf, limit) for limit in (effort, limits.acceleration))
    swings = 2.0 * np.concatenate([end / rate for end, rate in zip(ends, (rate, limits.jerk))])
    return float(np.clip(HORIZON * np.fmax.reduce(swings, initial=0.0), SHORTEST, LONGEST))


class CoefficientTable:
    """Constraint coefficients along a law, as parabolas in sigma on parts that end at each break, where sddd may jump.

    Velocity is left out: k <= 1 keeps it. A table begins at the time `since` of the law and is made for `ahead` [s]; it goes
    on when a transition comes to its end. So work does not grow with the length of the motion, nor what a worker hands back.

    constraints : to go on with; who gets a table from another process puts in his own, whose kernels are compiled already
    """

    def __init__(self, constraints: Constraints, law: TimeLaw, since: float = 0.0, ahead: float = np.inf):
        self.law, H = law, horizon(constraints)
        self.kept = np.array([quantity != "velocity" for _, quantity in constraints.labels])
        self.constraints, self._offset = constraints, constraints.offset[self.kept]
        self._largest = np.array([1.0, 1.0, 1.0, 2.0 / H, 1.0, 2.0 / H, 6.0 / H**2])  # that the basis may be
        breaks = constraints.path.breaks
        cuts = law.time_at(breaks[(breaks > law.start) & (breaks < law.end)])
        behind = np.clip(law.breaks.searchsorted(cuts), 1, len(law.breaks) - 1)
        new = np.minimum(np.abs(law.breaks[behind] - cuts), np.abs(cuts - law.breaks[behind - 1])) > CLOSE
        self._breaks = np.union1d(law.breaks, cuts[new])
        part = np.clip(self._breaks.searchsorted(since, side="right") - 1, 0, len(self._breaks) - 2)  # at the end the last one
        self.edges = self._breaks[part:part + 1]
        self.flat = np.empty((0, 3 * BASIS, len(self._offset)))
        self.make(since + ahead)

    def make(self, until: float) -> None:
        """Have it up to a time of the law."""
        if until <= self.edges[-1] or self.edges[-1] >= self._breaks[-1]:
            return
        first, last = self._breaks.searchsorted((self.edges[-1], until))
        ends = self._breaks[first:last + 1]
        start, end = ends[:-1], ends[1:]
        rows = self._sampled(start, end)
        between = (BETWEEN @ rows[:, ::2].reshape(len(rows), 3, -1)).reshape(rows[:, 1::2].shape)
        stray = (self._largest @ np.abs(rows[:, 1::2] - between)).max(axis=(1, 2), initial=0.0)
        splits = np.clip(np.ceil(np.cbrt(stray / STRAY)), 1.0, SPLITS).astype(int)
        start, end, of = divided(start, end, splits)
        rows, new = rows[of], splits[of] > 1
        rows[new] = self._sampled(start[new], end[new])
        flat = (PARABOLA @ rows[:, ::2].reshape(len(rows), 3, -1)).reshape(len(rows), *self.flat.shape[1:])
        flat[:, 0] -= self._offset * (1.0 - VERIFIED)  # VERIFIED of both limits is then as far from zero
        end[-1] = ends[-1]
        self.edges, self.flat = np.append(self.edges, end), np.concatenate((self.flat, flat))

    def _sampled(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Coefficients at five places of each part (parts, 5, 7, constraints)."""
        rows = self.constraints.rows_on_law(*self.law.within(start, end, 4).reshape(4, -1))[..., self.kept]
        return rows.reshape(len(start), 5, *rows.shape[1:])

    def utilization(self, sigma: np.ndarray, k: np.ndarray, kappa: np.ndarray, w: np.ndarray) -> np.ndarray:
        """(spans, samples, constraints), at (spans, samples) of each; each span is on one part. Beyond the end as there, where
        the motion rests."""
        part = self.edges[:-1].searchsorted(sigma[:, sigma.shape[1] // 2], side="right") - 1
        start = self.edges[part]
        x = np.minimum((sigma - start[:, None]) / (self.edges[part + 1] - start)[:, None], 1.0)
        weights = np.empty((3, BASIS, *sigma.shape))
        square = k * k
        for place, value in enumerate((1.0, k, square, kappa, square * k, k * kappa, w)):
            weights[0, place] = value
        np.multiply(weights[0], x, out=weights[1])
        np.multiply(weights[1], x, out=weights[2])
        weights = weights.reshape(3 * BASIS, -1).T.reshape(*sigma.shape, -1)
        return np.ascontiguousarray(weights) @ self.flat[part]


def within(values: np.ndarray, most: float) -> bool:
    """Whether parabolas stay there, by their values (spans, 3, constraints) at both ends and in the middle of each span."""
    if not np.abs(values).max(initial=0.0) <= most:
        return False
    high = np.abs(CONTROL @ values)[:, 0] > most  # the curve is in the hull of its ends and this point
    if not high.any():
        return True
    first, middle, last = values.swapaxes(0, 1)[:, high]
    bend, tilt = first + last - 2.0 * middle, last - first
    peak = np.abs(middle - tilt * tilt / (8.0 * bend)) + SKEW * np.abs(bend)
    return not (peak[np.abs(tilt) < 2.0 * np.abs(bend)] > most).any()


def powers(t: np.ndarray) -> np.ndarray:
    """1, t, .. t^4 (5, samples) of t (samples,)."""
    found = np.empty((5, len(t)))
    found[0], found[1] = 1.0, t
    np.multiply(t, t, out=found[2])
    np.multiply(found[2], t, out=found[3])
    np.multiply(found[2], found[2], out=found[4])
    return found


class TimeScaling:
    """sigma, k, kappa, and the transition under way."""

    def __init__(self, table: CoefficientTable, horizon: float, sigma: float = 0.0, k: float = 1.0):
        self.table, self.horizon = table, horizon
        self.sigma, self.k, self.kappa = sigma, k, 0.0
        self.end = k  # of the transition
        self.left = 0.0  # time until then
        self._cubic = (0.0, 0.0)  # w now and its slope
        self._wanted, self._step = k, FIRST_STEP
        self._tried: tuple[CoefficientTable | None, float] = None, 0.0  # table and sigma of the last search for a transition
        self._spans = np.linspace(0.0, horizon, SPANS + 1)
        self._powers = powers(self._spans)

    @property
    def steady(self) -> bool:
        return self.left <= 0.0

    @property
    def w(self) -> float:
        return self._cubic[0] if self.left > 0.0 else 0.0

    @property
    def slope(self) -> float:
        """w'."""
        return self._cubic[1] if self.left > 0.0 else 0.0

    @property
    def reach(self) -> float:
        """sigma at the end of the transition."""
        t, (w, j) = self.left, self._cubic
        return self.sigma + t * (self.k + t * (self.kappa / 2.0 + t * (w / 6.0 + t * (j / 24.0))))

    def steer(self, wanted: float) -> None:
        """Begin a transition that ends nearer to the wanted rate, if one can be verified."""
        if wanted != self._wanted:
            self._wanted, self._step = wanted, FIRST_STEP
        if wanted == self.end:
            return
        way = wanted - self.end
        if self._verified(wanted if abs(way) <= self._step else self.end + (self._step if way > 0.0 else -self._step)):
            self._step = min(GROW * self._step, 1.0)
        else:
            self._step = max(CUT * self._step, LEAST_STEP)

    def brake(self, table: CoefficientTable, most: float) -> bool:
        """Use the coefficients of other constraints, and slow down to `most`, the largest constant rate inside them.

        The transition is inside the limits if one of BRAKES is. Else it is the one that exceeds them least among those that
        exceed none by more than the motion would without braking. Where there is none, as while the motion decelerates at a
        limit of its rates, braking begins later if there will soon be one, or else with the transition that exceeds the limits
        least. Whatever follows is verified with the limits as they are. A transition under way that keeps them goes on. Return
        whether braking has begun; if not, nothing has changed.
        """
        if self.k <= most and self.steady:
            self.table = table
            return True
        if table is self._tried[0] and self.sigma - self._tried[1] < RETRY * self.horizon:
            return False  # where nothing has changed much, nothing else is found
        before, self.table, self._tried = self.table, table, (table, self.sigma)
        best: tuple[tuple[bool, float], float, float, tuple[float, float]] | None = None
        if not self.steady and self.end <= most and within(self._utilization(self._cubic, self.left)[1], VERIFIED):
            return True  # the transition under way is inside them
        allowed = self._largest_without_braking()
        for share, length in BRAKES:
            end, H = share * min(self.k, most), min(length * self.horizon, LONGEST_BRAKE)
            cubic = self._cubic_to(end, H)
            if cubic is None:
                continue
            t, values = self._utilization(cubic, H)
            beyond = bool((np.abs(values).max(axis=(0, 1)) > allowed).any())
            excess = np.maximum(np.abs(values).max(axis=2) - VERIFIED, 0.0)
            for_how_long = float(((t[:, 2] - t[:, 0]) * excess.mean(axis=1)).sum()) / self.horizon
            cost = beyond, 2.0 * float(excess.max()) + for_how_long
            if best is None or cost < best[0]:
                best = cost, end, H, cubic
            if within(values, VERIFIED):
                best = cost, end, H, cubic
                break
        if best is None or (best[0][0] and self._can_brake_soon(most, allowed)):
            self.table = before
            return False
        _, self.end, self.left, self._cubic = best
        return True

    def _can_brake_soon(self, most: float, allowed: np.ndarray) -> bool:
        """Return whether a transition from a later time, if the rate stays until then, will use no more than what is allowed
        (constraints,)."""
        here, end = self.sigma, min(self.k, most)
        try:
            for later in range(1, LATER + 1) if self.steady else ():
                self.sigma = here + later * RETRY * self.horizon * self.k
                for length in (1.0, 2.0, 4.0):
                    H = min(length * self.horizon, LONGEST_BRAKE)
                    cubic = self._cubic_to(end, H)
                    if cubic and (np.abs(self._utilization(cubic, H)[1]).max(axis=(0, 1)) <= allowed).all():
                        return True
        finally:
            self.sigma = here
        return False

    def _largest_without_braking(self) -> np.ndarray:
        """Return the largest utilization of each constraint where the transition under way goes on and its rate then stays,
        at least VERIFIED, within the part of the law that has coefficients."""
        table, found = self.table, np.full(self.table.flat.shape[2], VERIFIED)
        if not self.steady:
            found = np.maximum(found, np.abs(self._utilization(self._cubic, self.left)[1]).max(axis=(0, 1)))
        edges = np.append(self.reach, table.edges[table.edges.searchsorted(self.reach, side="right"):])
        if len(edges) > 1:
            sigma = np.stack((edges[:-1], 0.5 * (edges[:-1] + edges[1:]), edges[1:]), axis=1)
            k, zero = np.full(sigma.shape, self.end), np.zeros(sigma.shape)
            found = np.maximum(found, np.abs(table.utilization(sigma, k, zero, zero)).max(axis=(0, 1)))
        return found

    def _verified(self, end: float) -> bool:
        """Begin the transition that ends there, if it keeps to the limits at every instant; whether it does."""
        cubic = self._cubic_to(end, self.horizon)
        if cubic is None or not within(self._utilization(cubic, self.horizon)[1], VERIFIED):
            return False
        self.end, self.left, self._cubic = end, self.horizon, cubic
        return True

    def _cubic_to(self, end: float, H: float) -> tuple[float, float] | None:
        """Return w and its slope of the transition to a rate within a time H; None where the rate leaves 0 to 1."""
        k, kappa = self.k, self.kappa
        way = end - k
        w, j = (6.0 * way / H - 4.0 * kappa) / H, (6.0 * kappa - 12.0 * way / H) / (H * H)
        turn = 2.0 * kappa / (j * H) if j else H  # where kappa is zero, beside the end
        if 0.0 < turn < H and not 0.0 <= k + turn * (kappa + turn * (w / 2.0 + turn * (j / 6.0))) <= 1.0:
            return None
        return w, j

    def _utilization(self, cubic: tuple[float, float], H: float) -> tuple[np.ndarray, np.ndarray]:
        """Return times (spans, 3) and utilizations (spans, 3, constraints) of a transition of length H."""
        (w, j), k, kappa = cubic, self.k, self.kappa
        polynomials = np.array(((self.sigma, k, kappa / 2.0, w / 6.0, j / 24.0), (k, kappa, w / 2.0, j / 6.0, 0.0),
                                (kappa, w, j / 2.0, 0.0, 0.0), (w, j, 0.0, 0.0, 0.0)))
        t = self._cut(polynomials, H)
        t = np.stack((t[:-1], 0.5 * (t[:-1] + t[1:]), t[1:]), axis=1)
        motion = (polynomials @ powers(t.ravel())).reshape(4, *t.shape)
        return t, self.table.utilization(*motion)

    def _cut(self, polynomials: np.ndarray, H: float) -> np.ndarray:
        """Return the times between spans of a transition of length H."""
        usual = self.horizon == H
        t = self._spans if usual else self._spans * (H / self.horizon)
        sigma = polynomials[0] @ (self._powers if usual else powers(t))
        if sigma[-1] > self.table.edges[-1]:
            self.table.make(sigma[-1] + AHEAD)
        edges = self.table.edges
        first, last = edges.searchsorted((self.sigma, sigma[-1]))
        if first == last:
            return t
        passed = edges[first:last]
        near = np.interp(passed, sigma, t)
        place, rate = polynomials[:2] @ powers(near)
        near += (passed - place) / np.maximum(rate, SLOW)  # Newton's step
        return np.sort(np.concatenate((t, np.minimum(np.maximum(near, 0.0), H))))

    def rebase(self, table: CoefficientTable, factor: float) -> bool:
        """Go on with the same state on the law slowed by a factor, if that can be verified; whether it was."""
        if self.k > factor:
            return False
        before = self.table, self.sigma, self.k, self.kappa, self.end
        self.table = table
        self.sigma, self.k, self.kappa, self.end = (x / factor for x in before[1:])
        if self.steady:
            self.end = self.k
        elif not self._verified(min(self.end, 1.0)):
            self.table, self.sigma, self.k, self.kappa, self.end = before
            return False
        return True

    def advance(self, dt: float) -> None:
        """The state dt later."""
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
