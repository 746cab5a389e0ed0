"""The rate k of a law's clock, changed only as the limits allow: what lets a motion be paused, resumed and slowed at any time.

A law S(sigma) that is inside the limits at every constant rate 0 <= k <= 1 is played with sigma' = k. Rows on the clock
(terms.py) tell for any k, kappa = k', w = k'' what of each limit is used. The rate is moved by transitions: k(t) cubic in time
from (k, kappa) to (k_end, 0) within a horizon. One is begun only after it has been verified to its end, where k is constant
again and all that follows is known to be inside. Each tick tries to move k_end towards what is wanted; if that is refused, the
transition under way goes on. So there is always a verified continuation.

Verified at points of time so dense that what lies between is smooth, and on both sides of every break of the law, where the
torque rate has its corners.
"""

from __future__ import annotations

from copy import copy
from functools import cache

import numpy as np

from .law import TimeLaw
from .terms import BASIS, Constraints, basis, on_clock

VERIFIED = 0.9995  # share of the limits that a transition may use; a law uses less, see profile.PASS
NODE, FINEST = 2e-3, 2e-4  # s; between the rows in a table, at most and at least
PIECE = 96  # of them on each piece of the path, for what changes quickly along it
SAMPLES, MOST_SAMPLES = 40, 320  # of time in a transition
FIRST_STEP, GROW, CUT = 0.01, 1.3, 0.5  # of k_end from tick to tick
LEAST_STEP = 1e-4
BEFORE = 1e-9  # s; before a break, where sddd may be another one
HORIZON = 0.8  # of the time in which the rate limits let a torque swing from end to end
SHORTEST, LONGEST = 0.02, 0.5  # s


def horizon(constraints: Constraints) -> float:
    """The time that a transition takes: in which the rate limits let a torque, or an acceleration, swing from end to end."""
    limits = constraints.limits
    swings = np.concatenate((2.0 * limits.effort / limits.effort_rate, 2.0 * limits.acceleration / limits.jerk))
    return float(np.clip(HORIZON * np.fmax.reduce(swings, initial=0.0), SHORTEST, LONGEST))


class Table:
    """Rows along a law, interpolated between nodes, two of them at each break, where sddd may jump.

    Velocity is left out: k <= 1 keeps it.
    """

    def __init__(self, constraints: Constraints, law: TimeLaw):
        self.law = law
        breaks = constraints.path.breaks
        passed = law.time_at(breaks[(breaks >= law.start) & (breaks <= law.end)])
        self.grain = float(np.clip(np.diff(passed).min(initial=np.inf) / PIECE, FINEST, NODE))
        self.nodes, (s, v, a, u), _ = law.sampled(self.grain)
        self.kept = np.array([quantity != "velocity" for _, quantity in constraints.labels])
        self.count = int(self.kept.sum())
        self.flat = on_clock(constraints(s)[..., self.kept], v, a, u).reshape(len(self.nodes), -1)

    def widened(self, excess: np.ndarray) -> Table:
        """The same with each limit, (rows of the constraints,), that much wider."""
        other = copy(self)
        other.flat = (self.flat.reshape(len(self.nodes), BASIS, -1) / excess[self.kept]).reshape(len(self.nodes), -1)
        return other

    def at(self, sigma: np.ndarray) -> np.ndarray:
        """(samples, 7, rows); beyond the end, where the motion rests, as at the end."""
        sigma = np.minimum(sigma, self.law.duration)
        k = np.minimum(self.nodes.searchsorted(sigma, side="right") - 1, len(self.nodes) - 2)
        here = self.nodes[k]
        share = (sigma - here) / (self.nodes[k + 1] - here)
        low = self.flat[k]
        low += (self.flat[k + 1] - low) * share[:, None]
        return low.reshape(len(k), BASIS, self.count)


@cache
def _shares(count: int) -> np.ndarray:
    return np.linspace(0.0, 1.0, count)


class Clock:
    """sigma, k, kappa, and the transition under way."""

    def __init__(self, table: Table, horizon: float, sigma: float = 0.0, k: float = 1.0):
        self.table, self.horizon = table, horizon
        self.sigma, self.k, self.kappa = sigma, k, 0.0
        self.end = k  # of the transition
        self.left = 0.0  # time until then
        self._cubic = (0.0, 0.0)  # w now and its slope
        self._wanted, self._step = k, FIRST_STEP

    @property
    def steady(self) -> bool:
        return self.left <= 0.0

    @property
    def w(self) -> float:
        return self._cubic[0] if self.left > 0.0 else 0.0

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

    def _verified(self, end: float) -> bool:
        H, k, kappa = self.horizon, self.k, self.kappa
        way = end - k
        w, j = (6.0 * way / H - 4.0 * kappa) / H, (6.0 * kappa - 12.0 * way / H) / (H * H)
        fine = self.table.grain < NODE
        t = H * _shares(min(max(int(H / self.table.grain), SAMPLES), MOST_SAMPLES) if fine else SAMPLES)
        sigma = self.sigma + t * (k + t * (kappa / 2.0 + t * (w / 6.0 + t * (j / 24.0))))
        breaks = self.table.law.breaks
        first, last = breaks.searchsorted((self.sigma, sigma[-1]))
        if first < last:
            corners = breaks[first:last]
            corners = np.concatenate((corners, corners - BEFORE))
            t = np.concatenate((t, np.interp(corners, sigma, t)))
            sigma = np.concatenate((sigma, corners))
        rate = k + t * (kappa + t * (w / 2.0 + t * (j / 6.0)))
        if rate.min() < -1e-12 or rate.max() > 1.0 + 1e-12:
            return False
        weights = basis(rate, kappa + t * (w + t * (j / 2.0)), w + t * j)
        values = weights[:, None] @ self.table.at(sigma)
        if not np.abs(values).max(initial=0.0) <= VERIFIED:  # no rows, where velocity alone is limited
            return False
        self.end, self.left, self._cubic = end, H, (w, j)
        return True

    def rebase(self, table: Table, factor: float) -> None:
        """The same state on the clock of the law slowed by a factor not below k; no transition may be under way."""
        self.table, self.sigma = table, self.sigma / factor
        self.k = self.end = min(self.k / factor, 1.0)

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
