"""Where the joints are, from joint states of any number of senders, each naming some of the joints."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from .goal import Refused

SETTLING = 1.0  # s after the last reference, in which a robot may still be on its way there

class Place:
    """The latest position of every joint that was ever named, and when that was [s]."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, float]] = {}

    def read(self, names: Sequence[str], positions: Sequence[float], now: float) -> None:
        """Raises Refused. What is no number is passed over."""
        if len(names) != len(positions):
            raise Refused("wrong_size", f"{len(positions)} positions for {len(names)} names")
        for name, position in zip(names, positions):
            if math.isfinite(position):
                self._seen[name] = position, now

    def at(self, names: Iterable[str], since: float) -> np.ndarray:
        """Positions, NaN where the last one is from before `since`."""
        found = (self._seen.get(name, (math.nan, -math.inf)) for name in names)
        return np.array([position if when >= since else math.nan for position, when in found])

    def forget(self) -> None:
        self._seen.clear()


class Whereabouts:
    """Where the robot is: at the last reference, unless joint states tell that it is not, or no longer, on its way there.

    measured : joint names -> positions (n,), NaN where nothing tells
    """

    def __init__(self, measured: Callable[[tuple[str, ...]], np.ndarray]):
        self._measured = measured
        self._held: tuple[tuple[str, ...], np.ndarray, int] | None = None

    def hold(self, joint_names: tuple[str, ...], q: np.ndarray, now: int) -> None:
        """A motion has ended at q (n,), at time now [ns]."""
        self._held = joint_names, q, now

    def forget(self) -> None:
        self._held = None

    def at(self, joint_names: tuple[str, ...], now: int, tolerance: float) -> np.ndarray:
        """Positions (n,) at time now [ns], NaN where nothing tells."""
        measured = self._measured(joint_names)
        if self._held is None or self._held[0] != joint_names:
            return measured
        _, held, since = self._held
        away = np.fmax.reduce(np.abs(measured - held), initial=0.0)  # NaN: unknown
        if now - since < SETTLING * 1e9 or away <= tolerance:
            return held
        return np.where(np.isfinite(measured), measured, held)
