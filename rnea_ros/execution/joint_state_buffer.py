"""Where the joints are, from joint states of any number of senders, each naming some of the joints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import NamedTuple

import numpy as np

from ..errors import Rejected

STRANGERS = 1000  # joints of other robots that are remembered: the next description may name them


class Seen(NamedTuple):
    """Of a joint; when it came by this process's steady clock [s], and its stamp [ns]."""

    position: float = math.nan
    when: float = -math.inf
    stamp: int = 0
    velocity: float = math.nan
    effort: float = math.nan


class Measurement(NamedTuple):
    """What joint states tell of joints: stamps [ns], q, qd, efforts as the robot has them, (n,) each; NaN where unknown."""

    stamps: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    effort: np.ndarray


def unseen(joint_names: Sequence[str]) -> Measurement:
    """Of joints of which nobody tells anything."""
    n = len(joint_names)
    return Measurement(np.zeros(n, dtype=np.int64), *np.full((3, n), math.nan))


class JointStateBuffer:
    """The latest position of every joint, and when that was [s].

    held : where joints are that nobody has ever named
    """

    def __init__(self) -> None:
        self._seen: dict[str, Seen] = {}
        self._ours: frozenset[str] = frozenset()
        self.held: Mapping[str, float] = {}

    def attend(self, names: Iterable[str]) -> None:
        """To the joints of a robot, however many others are named."""
        self._ours = frozenset(names)

    def read(self, names: Sequence[str], positions: Sequence[float], now: float, stamp: int = 0,
             velocities: Sequence[float] = (), efforts: Sequence[float] = ()) -> None:
        """Raises Rejected. What is no number is passed over; so are velocities and efforts that are not one for each name."""
        if len(names) != len(positions):
            raise Rejected("wrong_size", f"{len(positions)} positions for {len(names)} names")
        room = STRANGERS + len(self._ours)
        rows = (values if len(values) == len(names) else repeat(math.nan) for values in (velocities, efforts))
        for name, position, velocity, effort in zip(names, positions, *rows):
            if math.isfinite(position) and (name in self._ours or name in self._seen or len(self._seen) < room):
                self._seen[name] = Seen(position, now, stamp, velocity, effort)

    def at(self, names: Iterable[str], since: float) -> np.ndarray:
        """Positions, NaN where the last one is from before `since`."""
        return np.array([seen.position if seen.when >= since else math.nan for seen in map(self._known, names)])

    def measured(self, names: Iterable[str], since: float) -> Measurement:
        """All that was said of joints, NaN where the last of it is from before `since`, or where nobody says it."""
        rows = [seen if since <= seen.when < math.inf else Seen() for seen in map(self._known, names)]
        return Measurement(np.array([seen.stamp for seen in rows], dtype=np.int64),
                           *np.array([(seen.position, seen.velocity, seen.effort) for seen in rows]).reshape(-1, 3).T)

    def age(self, names: Iterable[str], now: float) -> np.ndarray:
        """Time since the positions came [s]; 0 of those that are held."""
        return np.array([max(now - seen.when, 0.0) for seen in map(self._known, names)])

    def forget(self) -> None:
        self._seen = dict.fromkeys(self._seen, Seen())

    def _known(self, name: str) -> Seen:
        return self._seen.get(name) or Seen(self.held.get(name, math.nan), math.inf)
