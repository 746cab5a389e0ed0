"""Whether a controller plays what was handed out to it: what it tells of its reference, against the points that it was sent.

Each message is a curve that leaves the one before at one of its points. The controller is on the newest that it has; so where
it is still on an older one, after the two have parted, it had the message too late, and leaps when it takes it. Where it is on
none, it refused a message, or somebody else commands it.

A controller tells where it will be a moment after the stamp, an update mostly. How long that moment is, and how much it
varies, is seen while all curves are one.
"""

from __future__ import annotations

import math
from collections import deque
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .trajectory_spline import TrajectorySpline

KEPT = 8  # curves
MOMENTS, ENOUGH = 16, 4  # that are kept; from which on they tell how long it is
EARLY, VARIES = 0.02, 1e-3  # s; how long it may be, and how long it varies at least
SETTLED = 0.2  # s after two curves have parted: who is on the newer one then has it
EXACT, ELSEWHERE = 1e-4, 1e-3  # rad, m; by which a reference may be off its curve; beyond which it is on none
SLOW = 1e-3  # rad/s, m/s; a reference that moves no faster tells of no moment


class _Sent:
    """A curve, from `parts` on another one than that before [s]."""

    def __init__(self, parts: float, times: np.ndarray, *motion: np.ndarray):
        self.parts, self.begin, self._points = parts, float(times[0]), (times, *motion)

    @cached_property
    def _spline(self) -> TrajectorySpline:
        return TrajectorySpline(*self._points)

    def at(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Position and velocity (n,)."""
        q, qd = self._spline(t, 2)
        return q, qd


class Played(NamedTuple):
    """late: for how long the controller has been without what it should play [s], where it has not; elsewhere: whether it is
    on none of the curves."""

    late: float = 0.0
    elsewhere: bool = False


class HandedOut:
    """Of one motion, that begins at rest at q (n,); times from its beginning [s]."""

    def __init__(self, q: np.ndarray):
        self._curves: tuple[_Sent, ...] = (_Sent(-math.inf, np.array([-1.0, 0.0]), np.stack((q, q))),)
        self._moments: deque[float] = deque(maxlen=MOMENTS)
        self._shift, self._varies = 0.0, EARLY
        self._has = self._told = -math.inf  # when curves part that it is known to have had; and to have had too late

    def send(self, parts: float, times: np.ndarray, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> None:
        """Points (samples,), (samples, n), that part from those before at a time. By another thread than `hear`."""
        self._curves = (*self._curves[1 - KEPT:], _Sent(parts, times, q, qd, qdd))

    def hear(self, t: float, q: np.ndarray) -> Played:
        """What the controller tells of its reference q (n,), NaN where it does not, at a time. What was late is told once."""
        curves = self._curves
        newest = curves[-1]
        if t < max(newest.begin, 0.0):
            return Played()
        off, allowed = self._off(newest, t, q)
        if off <= EXACT + allowed:
            if self._has < newest.parts and not self._fits(curves[-2], t, q):
                self._has = newest.parts
            if not newest.parts < t < newest.parts + SETTLED:
                self._learn(newest, t, q)
            return Played()
        for old, lacking in zip(curves[-2::-1], curves[:0:-1]):
            if lacking.parts <= self._has:
                break
            if t > lacking.parts and self._fits(old, t, q):
                late, self._told = t - lacking.parts if lacking.parts > self._told else 0.0, max(lacking.parts, self._told)
                return Played(late)
        elsewhere = off > ELSEWHERE + allowed
        self._has = newest.parts if elsewhere else self._has  # who comes across an old one from there is not late
        return Played(elsewhere=elsewhere)

    def _fits(self, curve: _Sent, t: float, q: np.ndarray) -> bool:
        off, allowed = self._off(curve, t, q)
        return off <= EXACT + allowed

    def _off(self, curve: _Sent, t: float, q: np.ndarray) -> tuple[float, float]:
        """How far a reference is from a curve, and what may be the moment's."""
        place, speed = curve.at(t + self._shift)
        return _norm(q - place), self._varies * max(_norm(speed), _norm(curve.at(t)[1]))

    def _learn(self, curve: _Sent, t: float, q: np.ndarray) -> None:
        place, speed = curve.at(t)
        square = float(speed @ speed)
        if square < SLOW * SLOW:
            return
        self._moments.append(float(np.nan_to_num(q - place) @ speed) / square)
        if len(self._moments) >= ENOUGH:
            moments = np.array(self._moments)
            self._shift = float(np.median(moments))
            self._varies = min(float(np.abs(moments - self._shift).max()) + VARIES, EARLY)


def _norm(x: np.ndarray) -> float:
    return float(np.linalg.norm(np.nan_to_num(x)))
