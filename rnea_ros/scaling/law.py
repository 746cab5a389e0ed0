"""A time law s(t): when a motion is where on its path. Piecewise polynomials of degree five, continuous in s, sd and sdd."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from .polynomials import ORDERS, derivatives

DEGREE = 5
SPACING, MOST = 1e-3, 60_000  # s between the samples that show a law densely, and about how many there are at most
PARTS = 10_000  # of a law that is looked at part by part
STEPS = (4, 24)  # of them in each piece: with very many pieces, with few
BACK = 1e-12  # of the largest speed: rounding, not going back
MOST_STEPS, EXACT = 90, 1e-16  # to a place; share of a piece in which it is found then
ULPS = 4.0  # of a place, that are rounding
TINY = 1e-30
ROUNDING = 1e-14  # of a duration
HALVINGS = 30  # after which what is undecided is rounding
_BERNSTEIN = np.array([[math.comb(i, k) / math.comb(4, k) for i in range(DEGREE)] for k in range(DEGREE)])  # from powers
_FIRST_HALF = np.array([[math.comb(i, k) / 2.0**i for i in range(DEGREE)] for k in range(DEGREE)])
_SECOND_HALF = _FIRST_HALF[::-1, ::-1]


class TimeLaw:
    """breaks (pieces + 1,): times from 0; coefficients (pieces, 6) of the powers of t - breaks[piece]. Then it rests.

    corners: those breaks at which sddd bends or jumps; default all.
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
        return float(self.coefficients[0, 0])

    def __call__(self, t: Any) -> np.ndarray:
        """s, sd, sdd, sddd (4, samples) at t (samples,)."""
        t = np.asarray(t, dtype=float)
        inside = np.clip(t, 0.0, self.duration)
        piece = np.searchsorted(self.breaks[1:-1], inside, side="right")
        found = self._evaluate(piece, inside - self.breaks[piece])
        found[1:, t > self.duration] = 0.0
        return found

    def densely(self, s: Any = ()) -> tuple[np.ndarray, np.ndarray]:
        """(4, samples) everywhere, both ends of each piece included: sddd may jump; and the first sample (pieces,) of each.

        s : places at which what the law is put to begins anew, as a path does at its breaks: these parts are seen densely too
        """
        least = int(np.clip(MOST // len(self.coefficients), *STEPS))
        _, motion, first = self.sampled(max(SPACING, self.duration / MOST), least, self.time_at(s))
        return motion, first

    def sampled(self, spacing: float, least: int = 1, more: Any = ()) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same with the times (samples,) before it, at most `spacing` apart, in at least so many steps for each part:
        each piece, or less where it is parted at the times `more`."""
        starts = np.union1d(self.breaks[:-1], more)
        h = np.diff(np.append(starts, self.duration))
        count = np.maximum(np.ceil(h / spacing).astype(int), least) + 1
        first = np.cumsum(count) - count
        part = np.repeat(np.arange(len(h)), count)
        t = starts[part] + (np.arange(len(part)) - first[part]) / (count[part] - 1) * h[part]
        piece = (np.searchsorted(self.breaks[1:-1], starts, side="right"))[part]
        return t, self._evaluate(piece, t - self.breaks[piece]), first[np.searchsorted(starts, self.breaks[:-1])]

    def parts(self, s: Any, longest: float) -> tuple[np.ndarray, np.ndarray]:
        """Starts and ends (parts,) in time of the pieces, parted at places s and so that none is longer, see `parted`."""
        edges = np.union1d(self.breaks, self.time_at(s))
        return self.parted(edges[:-1], edges[1:], longest)

    def parted(self, start: np.ndarray, end: np.ndarray, longest: float) -> tuple[np.ndarray, np.ndarray]:
        """Starts and ends of parts of intervals, none longer, if these make no more than PARTS of the whole law."""
        count = np.ceil((end - start) / max(longest, self.duration / PARTS)).astype(int)
        return divided(start, end, count)[:2]

    def within(self, start: np.ndarray, end: np.ndarray, steps: int) -> np.ndarray:
        """s, sd, sdd, sddd (4, parts, steps + 1) from start to end of parts, each of one piece."""
        t = start[:, None] + (end - start)[:, None] * (np.arange(steps + 1) / steps)
        piece = np.searchsorted(self.breaks[1:-1], 0.5 * (start + end), side="right")
        piece = np.broadcast_to(piece[:, None], t.shape)
        return self._evaluate(piece, t - self.breaks[piece])

    def _evaluate(self, piece: np.ndarray, x: np.ndarray) -> np.ndarray:
        """s, sd, sdd, sddd (4, ...) at times x (...) since the starts of pieces (...)."""
        (found,) = derivatives(DEGREE + 1, 1)([x.reshape(-1, 1), self.coefficients[piece.ravel()]], x.size)
        return np.moveaxis(found.reshape(*x.shape, ORDERS), -1, 0)

    def at(self, t: float) -> tuple[float, float, float, float]:
        """s, sd, sdd, sddd at one t."""
        if t >= self.duration:
            return self.end, 0.0, 0.0, 0.0
        piece = bisect_right(self._inner, t)
        x = t - self._starts[piece]
        c0, c1, c2, c3, c4, c5 = self.coefficients[piece].tolist()
        return ((((((c5 * x + c4) * x) + c3) * x + c2) * x + c1) * x + c0,
                (((5.0 * c5 * x + 4.0 * c4) * x + 3.0 * c3) * x + 2.0 * c2) * x + c1,
                ((20.0 * c5 * x + 12.0 * c4) * x + 6.0 * c3) * x + 2.0 * c2,
                (60.0 * c5 * x + 24.0 * c4) * x + 6.0 * c3)

    def slower(self, factor: float) -> TimeLaw:
        """The same motion, played at the rate `factor`."""
        return TimeLaw(self.breaks / factor, self.coefficients * factor ** np.arange(DEGREE + 1.0), self.corners / factor)

    def going_back(self) -> np.ndarray:
        """Numbers of the pieces on which s decreases somewhere.

        A polynomial is nowhere below the least of its Bernstein coefficients, the outer ones of which are its ends: pieces on
        which that does not tell are halved until it does.
        """
        powers = np.arange(DEGREE)
        hull = self.coefficients[:, 1:] * (powers + 1.0) * np.diff(self.breaks)[:, None] ** powers @ _BERNSTEIN
        piece, back, least = np.arange(len(hull)), np.zeros(len(hull), dtype=bool), -BACK * hull.max()
        for _ in range(HALVINGS):
            below = (hull < least) & ~back[piece, None]
            back[piece[below[:, 0] | below[:, -1]]] = True
            open_ = below.any(axis=1) & ~back[piece]
            if not open_.any():
                break
            piece, hull = np.tile(piece[open_], 2), np.concatenate((hull[open_] @ _FIRST_HALF, hull[open_] @ _SECOND_HALF))
        return np.flatnonzero(back)

    def between(self, a: float, b: float) -> TimeLaw:
        """The part from time a to time b; its own time starts at 0.

        A break as near to one of them as rounding is none: whoever asks may have added the same times up in another order.
        """
        room = min(ROUNDING * self.duration, 0.25 * (b - a))
        first = int(np.searchsorted(self.breaks[1:-1], a + room, side="right"))
        last = int(np.searchsorted(self.breaks[1:-1], b - room, side="left"))
        breaks = np.concatenate(([a], self.breaks[first + 1:last + 1], [b]))
        coefficients = self.coefficients[first:last + 1].copy()
        coefficients[0] = _moved(coefficients[0], a - self.breaks[first])
        corners = np.concatenate(([a], self.corners[(self.corners > a + room) & (self.corners < b - room)], [b]))
        return TimeLaw(breaks - a, coefficients, corners - a)

    def then(self, *others: TimeLaw) -> TimeLaw:
        """This law and the others, one after another."""
        laws = (self, *others)
        starts = np.concatenate(([0.0], np.cumsum([law.duration for law in laws])))
        breaks, corners = ([np.zeros(1), *(start + getattr(law, name)[1:] for start, law in zip(starts, laws))]
                           for name in ("breaks", "corners"))
        return TimeLaw(np.concatenate(breaks), np.concatenate([law.coefficients for law in laws]), np.concatenate(corners))

    def time_at(self, s: Any) -> np.ndarray:
        """When the law comes by s (samples,), for a law that never goes back; after a rest at s, not before it."""
        s, nodes = np.asarray(s, dtype=float), self.coefficients[:, 0]
        piece = np.clip(np.searchsorted(nodes, s, side="right") - 1, 0, len(nodes) - 1)
        h = np.diff(self.breaks)[piece]
        between = (s > nodes[piece]) & (s < self.end)
        x = np.where(s < self.end, 0.0, h)
        x[between] = self._within_piece(piece[between], h[between], s[between])
        return self.breaks[piece] + x

    def _within_piece(self, piece: np.ndarray, h: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Time since the start of each piece, of length h, at which it comes by s: by Newton's steps while each is less than
        half of the one before, else by halves, as it may be nearly at rest anywhere."""
        found, open_ = 0.5 * h, np.arange(len(s))
        low, high, before = np.zeros_like(h), h, h
        for _ in range(MOST_STEPS):
            x, s_ = found[open_], s[open_]
            place, speed, *_ = self._evaluate(piece[open_], x)
            ahead = place > s_
            low, high = np.where(ahead, low, x), np.where(ahead, x, high)
            near = x + (s_ - place) / np.maximum(speed, TINY)
            by_newton = (low < near) & (near < high) & (np.abs(near - x) < 0.5 * before)
            left = (np.abs(place - s_) > ULPS * np.spacing(s_)) & (high - low > EXACT * h[open_])
            found[open_[left]] = np.where(by_newton, near, 0.5 * (low + high))[left]
            before, open_, low, high = np.abs(found[open_] - x)[left], open_[left], low[left], high[left]
            if not len(open_):
                break
        return found


def divided(start: np.ndarray, end: np.ndarray, parts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Intervals in so many equal parts each: their starts and ends, and the number of the interval of each."""
    of = np.repeat(np.arange(len(parts)), parts)
    step = ((end - start) / np.maximum(parts, 1))[of]
    begin = start[of] + (np.arange(len(of)) - (np.cumsum(parts) - parts)[of]) * step
    return begin, begin + step, of


def _moved(coefficients: np.ndarray, x: float) -> np.ndarray:
    """Coefficients of the same polynomial about a point further by x."""
    powers = range(DEGREE + 1)
    return np.array([sum(math.comb(k, j) * coefficients[k] * x ** (k - j) for k in powers[j:]) for j in powers])


def rest_to_rest(start: float, end: float, duration: float, order: int = 3) -> TimeLaw:
    """From rest to rest by one polynomial: a jump of sddd (order 3) or of sdd (order 2) at the ends."""
    way = end - start
    shares = (0.0, 0.0, 0.0, 10.0, -15.0, 6.0) if order == 3 else (0.0, 0.0, 3.0, -2.0, 0.0, 0.0)
    coefficients = np.array(shares) * way / duration ** np.arange(DEGREE + 1.0)
    coefficients[0] = start
    return TimeLaw([0.0, duration], [coefficients])


def wait(s: float, duration: float) -> TimeLaw:
    return TimeLaw([0.0, duration], [[s, 0.0, 0.0, 0.0, 0.0, 0.0]])


def hermite(t: Any, s: Any, v: Any, a: Any, corners: Any = None) -> TimeLaw:
    """Through places s with speeds v and accelerations a at times t, the first 0: quintic from each to the next."""
    t, s, v, a = (np.asarray(x, dtype=float) for x in (t, s, v, a))
    h = np.diff(t)
    way = np.diff(s) - (v[:-1] + 0.5 * a[:-1] * h) * h
    speed = (np.diff(v) - a[:-1] * h) * h
    bend = np.diff(a) * h * h
    high = np.stack((10.0 * way - 4.0 * speed + 0.5 * bend, -15.0 * way + 7.0 * speed - bend,
                     6.0 * way - 3.0 * speed + 0.5 * bend))
    high /= h ** np.array([[3.0], [4.0], [5.0]])
    return TimeLaw(t, np.column_stack((s[:-1], v[:-1], 0.5 * a[:-1], *high)), corners)


def samples(duration: float, step: float) -> Sequence[float]:
    """0, step, 2 step, ... and the duration itself."""
    count = math.ceil(duration / step - 1e-9)
    return np.minimum(np.arange(count + 1) * step, duration)
