"""What the nodes count for /diagnostics: messages received and refused, by reason; and when the console hears of it."""

from __future__ import annotations

import time
from collections import Counter
from enum import Enum
from typing import NamedTuple

import numpy as np

from rnea_ros.errors import Rejected

AGAIN = 10.0  # s; after which the console repeats what is still wrong
GRACE = 1.0  # s; of waiting that is not worth a warning


class Watched(NamedTuple):
    """Shares of limits, kept up to date in place: rows (quantities, owners)."""

    quantities: tuple[str, ...]
    owners: tuple[str, ...]
    rows: np.ndarray


class NodeState(Enum):
    WAITING_MODEL = "waiting for a robot description"
    PREPARING = "preparing the model"
    WAITING_STATE = "waiting for joint states"
    ACTIVE = "computing"
    STALE = "no usable input"
    FAULT = "cannot compute"


class Stream:
    """One input topic: messages received, and dropped by reason."""

    def __init__(self, name: str):
        self.name = name
        self.received = 0
        self.stamp = 0  # of the last usable message [ns]
        self.arrival: int | None = None  # the same by the steady clock [ns]
        self.spacing = 0  # between the stamps of the last two usable messages [ns]
        self.dropped: Counter[str] = Counter()
        self.faults = 0  # dropped for a reason that does not pass by itself
        self.dropped_at = 0  # the last one, steady clock [ns]
        self.last_drop = self.last_fault = ""
        self._fresh: dict[str, str] = {}
        self._reported = (0, 0)

    def accept(self, arrival: int, stamp: int) -> None:
        self.spacing = 0 if self.arrival is None else stamp - self.stamp
        self.arrival, self.stamp = arrival, stamp

    def drop(self, refusal: Rejected) -> None:
        self.dropped[refusal.reason] += 1
        self.dropped_at = time.monotonic_ns()
        self.last_drop = f"{refusal.reason}: {refusal.detail}"
        if not refusal.passing:
            self.faults += 1
            self.last_fault = self._fresh[refusal.reason] = self.last_drop

    def fresh(self) -> dict[str, str]:
        """Faults since this was asked last: the last sentence of each reason."""
        found, self._fresh = self._fresh, {}
        return found

    def age(self, now: int) -> float:
        """Seconds since the last usable message."""
        return float("inf") if self.arrival is None else (now - self.arrival) * 1e-9

    def since_last_report(self) -> tuple[int, int]:
        """Messages received, and dropped by a fault."""
        now, before = (self.received, self.faults), self._reported
        self._reported = now
        return now[0] - before[0], now[1] - before[1]


class Throttle:
    """What is due on the console, where the same thing is not said again and again."""

    def __init__(self) -> None:
        self._when: dict[str, float] = {}

    def due(self, about: str, again: float = AGAIN) -> bool:
        """Whether a sentence about this is due; it counts as logged then."""
        now = time.monotonic()
        due = now - self._when.get(about, -again) >= again
        if due:
            self._when[about] = now
        return due


def counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
