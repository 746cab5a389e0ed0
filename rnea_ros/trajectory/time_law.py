"""Time law s(t): piecewise polynomials of degree five, continuous in s, sd and sdd."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Any

import numpy as np

from .sample_kernels import N_DERIVATIVES, polynomial_derivatives

DEGREE = 5
SAMPLE_SPACING_S = 1e-3  # of samples that show a whole law
MAX_SAMPLES = 60_000  # of a whole law, about
MIN_STEPS_PER_PIECE = (4, 24)  # of a whole law with very many pieces, and with few
MAX_INTERVALS = 10_000  # of a law that is checked interval by interval
NEGATIVE_SPEED_TOL = 1e-12  # share of the largest speed that is rounding
MAX_INVERSE_ITERATIONS, INVERSE_TOL = 90, 1e-16  # of time_at; tolerance as a share of a piece
INVERSE_ULPS = 4.0  # of s that are rounding
MIN_SPEED = 1e-30  # against division by zero
TIME_ROUNDING = 1e-14  # share of a duration
MAX_HALVINGS = 30  # of pieces whose monotonicity is undecided; what is left is rounding
# from the coefficients of a quartic on [0, 1] to its Bernstein coefficients, and from these to those of both halves
_BERNSTEIN = np.array([[math.comb(i, k) / math.comb(4, k) for i in range(DEGREE)] for k in range(DEGREE)])
_FIRST_HALF = np.array([[math.comb(i, k) / 2.0**i for i in range(DEGREE)] for k in range(DEGREE)])
_SECOND_HALF = _FIRST_HALF[::-1, ::-1]


class TimeLaw:
    """Time law by breaks (pieces + 1,) [s] from 0, and coefficients (pieces, 6) of powers of t - breaks[piece]; then at rest.

    corners: those breaks at which sddd bends or jumps; default all
    """

    def __init__(self, breaks: Any, coefficients: Any, corners: Any = None):
        self.breaks = np.asarray(breaks, dtype=float)
        self.corners = self.breaks if corners is None else np.asarray(corners, dtype=float)
        self.coefficients = np.asarray(coefficients, dtype=float)
        self.duration = float(self.breaks[-1])
        self._inner = self.breaks[1:-1].tolist()
        self._starts = self.breaks[:-1].tolist()
        self.end = float(np.polyval(self.coefficients[-1, ::-1], self.breaks[-1] - self.breaks[-2]))

    def __reduce__(self) -> tuple:
        return TimeLaw, (self.breaks, self.coefficients, self.corners)

    @property
    def start(self) -> float:
        """s at the begin."""
        return float(self.coefficients[0, 0])

    # ------------------------------------------------------------------ evaluation

    def __call__(self, t: Any) -> np.ndarray:
        """Return s, sd, sdd, sddd (4, samples) at t (samples,) [s]."""
        t = np.asarray(t, dtype=float)
        inside = np.clip(t, 0.0, self.duration)
        piece = np.searchsorted(self.breaks[1:-1], inside, side="right")
        found = self._evaluate(piece, inside - self.breaks[piece])
        found[1:, t > self.duration] = 0.0
        return found

    def at(self, t: float) -> tuple[float, float, float, float]:
        """Return s, sd, sdd, sddd at one t [s], in microseconds."""
        if t >= self.duration:
            return self.end, 0.0, 0.0, 0.0
        piece = bisect_right(self._inner, t)
        x = t - self._starts[piece]
        c0, c1, c2, c3, c4, c5 = self.coefficients[piece].tolist()
        return ((((((c5 * x + c4) * x) + c3) * x + c2) * x + c1) * x + c0,
                (((5.0 * c5 * x + 4.0 * c4) * x + 3.0 * c3) * x + 2.0 * c2) * x + c1,
                ((20.0 * c5 * x + 12.0 * c4) * x + 6.0 * c3) * x + 2.0 * c2,
                (60.0 * c5 * x + 24.0 * c4) * x + 6.0 * c3)

    def sample_pieces(self, s: Any = ()) -> tuple[np.ndarray, np.ndarray]:
        """Return s, sd, sdd, sddd (4, samples) of the whole law, and the first sample (pieces,) of each piece.

        Both ends of each piece are sampled, as sddd may jump there.

        s: values of s at which the path has breaks: the parts between them are sampled like pieces
        """
        least = int(np.clip(MAX_SAMPLES // len(self.coefficients), *MIN_STEPS_PER_PIECE))
        _, motion, first = self.sample(max(SAMPLE_SPACING_S, self.duration / MAX_SAMPLES), least, self.time_at(s))
        return motion, first

    def sample(self, spacing: float, least: int = 1, splits: Any = ()) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return times (samples,), s to sddd (4, samples), and the first sample (pieces,) of each piece.

        spacing : largest distance of samples [s]
        least   : least number of steps in each part
        splits  : times at which pieces are split into parts [s]
        """
        starts = np.union1d(self.breaks[:-1], splits)
        h = np.diff(np.append(starts, self.duration))
        count = np.maximum(np.ceil(h / spacing).astype(int), least) + 1
        first = np.cumsum(count) - count
        part = np.repeat(np.arange(len(h)), count)
        t = starts[part] + (np.arange(len(part)) - first[part]) / (count[part] - 1) * h[part]
        piece = (np.searchsorted(self.breaks[1:-1], starts, side="right"))[part]
        return t, self._evaluate(piece, t - self.breaks[piece]), first[np.searchsorted(starts, self.breaks[:-1])]

    def intervals(self, s: Any, longest: float) -> tuple[np.ndarray, np.ndarray]:
        """Return starts and ends (intervals,) [s] of the pieces, split at values of s and to a longest length."""
        edges = np.union1d(self.breaks, self.time_at(s))
        return self.subdivide(edges[:-1], edges[1:], longest)

    def subdivide(self, start: np.ndarray, end: np.ndarray, longest: float) -> tuple[np.ndarray, np.ndarray]:
        """Split intervals to a longest length [s], but the whole law into no more than MAX_INTERVALS."""
        count = np.ceil((end - start) / max(longest, self.duration / MAX_INTERVALS)).astype(int)
        return divide_intervals(start, end, count)[:2]

    def sample_intervals(self, start: np.ndarray, end: np.ndarray, steps: int) -> np.ndarray:
        """Return s, sd, sdd, sddd (4, intervals, steps + 1) from start to end of intervals, each within one piece."""
        t = start[:, None] + (end - start)[:, None] * (np.arange(steps + 1) / steps)
        piece = np.searchsorted(self.breaks[1:-1], 0.5 * (start + end), side="right")
        piece = np.broadcast_to(piece[:, None], t.shape)
        return self._evaluate(piece, t - self.breaks[piece])

    def _evaluate(self, piece: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return s, sd, sdd, sddd (4, ...) at times x (...) since the starts of pieces (...)."""
        (found,) = polynomial_derivatives(DEGREE + 1, 1)([x.reshape(-1, 1), self.coefficients[piece.ravel()]], x.size)
        return np.moveaxis(found.reshape(*x.shape, N_DERIVATIVES), -1, 0)

    # ------------------------------------------------------------------ inverse

    def time_at(self, s: Any) -> np.ndarray:
        """Return the time [s] at which a monotone law passes s (samples,); after a rest at s, not before it."""
        s, nodes = np.asarray(s, dtype=float), self.coefficients[:, 0]
        piece = np.clip(np.searchsorted(nodes, s, side="right") - 1, 0, len(nodes) - 1)
        h = np.diff(self.breaks)[piece]
        between = (s > nodes[piece]) & (s < self.end)
        x = np.where(s < self.end, 0.0, h)
        x[between] = self._invert_pieces(piece[between], h[between], s[between])
        return self.breaks[piece] + x

    def _invert_pieces(self, piece: np.ndarray, h: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Return the time since the start of each piece, of length h, at which it passes s.

        Newton's method while each step is less than half of the one before, else bisection: the law may almost rest.
        """
        found, open_ = 0.5 * h, np.arange(len(s))
        low, high, before = np.zeros_like(h), h, h
        for _ in range(MAX_INVERSE_ITERATIONS):
            x, s_ = found[open_], s[open_]
            s_at_x, speed, *_ = self._evaluate(piece[open_], x)
            is_ahead = s_at_x > s_
            low, high = np.where(is_ahead, low, x), np.where(is_ahead, x, high)
            newton = x + (s_ - s_at_x) / np.maximum(speed, MIN_SPEED)
            use_newton = (low < newton) & (newton < high) & (np.abs(newton - x) < 0.5 * before)
            left = (np.abs(s_at_x - s_) > INVERSE_ULPS * np.spacing(s_)) & (high - low > INVERSE_TOL * h[open_])
            found[open_[left]] = np.where(use_newton, newton, 0.5 * (low + high))[left]
            before, open_, low, high = np.abs(found[open_] - x)[left], open_[left], low[left], high[left]
            if not len(open_):
                break
        return found

    # ------------------------------------------------------------------ other laws

    def slower(self, rate: float) -> TimeLaw:
        """Return the same motion, played at a constant rate."""
        return TimeLaw(self.breaks / rate, self.coefficients * rate ** np.arange(DEGREE + 1.0), self.corners / rate)

    def segment(self, a: float, b: float) -> TimeLaw:
        """Return the law from time a to time b [s]; its own time begins at 0.

        A break that differs from a or b by rounding is dropped: sums of the same times differ by their order.
        """
        tolerance = min(TIME_ROUNDING * self.duration, 0.25 * (b - a))
        first = int(np.searchsorted(self.breaks[1:-1], a + tolerance, side="right"))
        last = int(np.searchsorted(self.breaks[1:-1], b - tolerance, side="left"))
        breaks = np.concatenate(([a], self.breaks[first + 1:last + 1], [b]))
        coefficients = self.coefficients[first:last + 1].copy()
        coefficients[0] = _shift_origin(coefficients[0], a - self.breaks[first])
        corners = np.concatenate(([a], self.corners[(self.corners > a + tolerance) & (self.corners < b - tolerance)], [b]))
        return TimeLaw(breaks - a, coefficients, corners - a)

    def then(self, *others: TimeLaw) -> TimeLaw:
        """Return this law and the others, one after another."""
        laws = (self, *others)
        starts = np.concatenate(([0.0], np.cumsum([law.duration for law in laws])))
        breaks, corners = ([np.zeros(1), *(start + getattr(law, name)[1:] for start, law in zip(starts, laws))]
                           for name in ("breaks", "corners"))
        return TimeLaw(np.concatenate(breaks), np.concatenate([law.coefficients for law in laws]), np.concatenate(corners))

    def non_monotone_pieces(self) -> np.ndarray:
        """Return the numbers of the pieces on which s decreases somewhere.

        A polynomial is nowhere below the least of its Bernstein coefficients, the outer ones of which are its ends. Pieces
        that these do not decide are halved until they do.
        """
        powers = np.arange(DEGREE)
        hull = self.coefficients[:, 1:] * (powers + 1.0) * np.diff(self.breaks)[:, None] ** powers @ _BERNSTEIN
        piece, decreases, least = np.arange(len(hull)), np.zeros(len(hull), dtype=bool), -NEGATIVE_SPEED_TOL * hull.max()
        for _ in range(MAX_HALVINGS):
            below = (hull < least) & ~decreases[piece, None]
            decreases[piece[below[:, 0] | below[:, -1]]] = True
            undecided = below.any(axis=1) & ~decreases[piece]
            if not undecided.any():
                break
            piece = np.tile(piece[undecided], 2)
            hull = np.concatenate((hull[undecided] @ _FIRST_HALF, hull[undecided] @ _SECOND_HALF))
        return np.flatnonzero(decreases)


def divide_intervals(start: np.ndarray, end: np.ndarray, parts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Divide intervals into so many equal parts each: return starts, ends, and the number of the interval of each part."""
    of = np.repeat(np.arange(len(parts)), parts)
    step = ((end - start) / np.maximum(parts, 1))[of]
    begin = start[of] + (np.arange(len(of)) - (np.cumsum(parts) - parts)[of]) * step
    return begin, begin + step, of


def _shift_origin(coefficients: np.ndarray, x: float) -> np.ndarray:
    """Return the coefficients of the same polynomial about a point further by x."""
    powers = range(DEGREE + 1)
    return np.array([sum(math.comb(k, j) * coefficients[k] * x ** (k - j) for k in powers[j:]) for j in powers])


def rest_to_rest(start: float, end: float, duration: float, order: int = 3) -> TimeLaw:
    """Return the law from rest to rest by one polynomial: sddd (order 3) or sdd (order 2) jumps at the ends."""
    length = end - start
    shape = (0.0, 0.0, 0.0, 10.0, -15.0, 6.0) if order == 3 else (0.0, 0.0, 3.0, -2.0, 0.0, 0.0)
    coefficients = np.array(shape) * length / duration ** np.arange(DEGREE + 1.0)
    coefficients[0] = start
    return TimeLaw([0.0, duration], [coefficients])


def rest_law(s: float, duration: float) -> TimeLaw:
    """Return the law at rest at s for a duration [s]."""
    return TimeLaw([0.0, duration], [[s, 0.0, 0.0, 0.0, 0.0, 0.0]])


def hermite_law(t: Any, s: Any, v: Any, a: Any, corners: Any = None) -> TimeLaw:
    """Return the law through s with speeds v and accelerations a at times t, the first 0: a quintic from each to the next."""
    t, s, v, a = (np.asarray(x, dtype=float) for x in (t, s, v, a))
    h = np.diff(t)
    # remainders of position, speed and acceleration beyond the Taylor polynomial of degree two at the start
    ds = np.diff(s) - (v[:-1] + 0.5 * a[:-1] * h) * h
    dv = (np.diff(v) - a[:-1] * h) * h
    da = np.diff(a) * h * h
    high = np.stack((10.0 * ds - 4.0 * dv + 0.5 * da, -15.0 * ds + 7.0 * dv - da, 6.0 * ds - 3.0 * dv + 0.5 * da))
    high /= h ** np.array([[3.0], [4.0], [5.0]])
    return TimeLaw(t, np.column_stack((s[:-1], v[:-1], 0.5 * a[:-1], *high)), corners)
