"""Where the joints are, from joint states of any number of senders, each naming some of the joints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..errors import Rejected

STRANGERS = 1000  # joints of other robots that are remembered: the next description may name them


class JointStateBuffer:
    """The latest position of every joint, and when that was [s].

    held : where joints are that nobody has ever named
    """

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, float]] = {}
        self._ours: frozenset[str] = frozenset()
        self.held: Mapping[str, float] = {}

    def attend(self, names: Iterable[str]) -> None:
        """To the joints of a robot, however many others are named."""
        self._ours = frozenset(names)

    def read(self, names: Sequence[str], positions: Sequence[float], now: float) -> None:
        """Raises Rejected. What is no number is passed over."""
        if len(names) != len(positions):
            raise Rejected("wrong_size", f"{len(positions)} positions for {len(names)} names")
        room = STRANGERS + len(self._ours)
        for name, position in zip(names, positions):
            if math.isfinite(position) and (name in self._ours or name in self._seen or len(self._seen) < room):
                self._seen[name] = position, now

    def at(self, names: Iterable[str], since: float) -> np.ndarray:
        """Positions, NaN where the last one is from before `since`."""
        return np.array([position if when >= since else math.nan for position, when in map(self._known, names)])

    def age(self, names: Iterable[str], now: float) -> np.ndarray:
        """Time since the positions came [s]; 0 of those that are held."""
        return np.array([max(now - when, 0.0) for _, when in map(self._known, names)])

    def forget(self) -> None:
        self._seen = dict.fromkeys(self._seen, (math.nan, -math.inf))

    def _known(self, name: str) -> tuple[float, float]:
        return self._seen.get(name) or (self.held.get(name, math.nan), math.inf)
