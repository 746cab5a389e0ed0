"""Where the joints are, from joint states of any number of senders, each naming some of the joints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from .goal import Refused


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
