"""Loops that take turns: what else the machine does meanwhile hits all sides alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Any

Loop = Callable[[int], float]  # so many calls -> seconds for all of them
TURN = 5e-4  # s that a side has at a time: shorter than a time slice, so that some turns are undisturbed


@dataclass(frozen=True)
class Times:
    """Seconds per call."""

    values: tuple[float, ...]

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def middle(self) -> float:
        return statistics.median(self.values)

    def over(self, other: Times) -> float:
        """Ratio of minima: on a busy machine the minimum is what the code takes, the rest is what others took."""
        return self.low / other.low

    def per(self, parts: float) -> Times:
        return Times(tuple(value / parts for value in self.values))


def python_loop(function: Callable, *arguments: Any) -> Loop:
    def loop(count: int) -> float:
        start = time.perf_counter()
        for _ in repeat(None, count):
            function(*arguments)
        return time.perf_counter() - start

    def loop_of_four(count: int) -> float:  # as people write it: a star costs 20 to 30 ns
        a, b, c, d = arguments
        start = time.perf_counter()
        for _ in repeat(None, count):
            function(a, b, c, d)
        return time.perf_counter() - start

    return loop_of_four if len(arguments) == 4 else loop


def interleaved(sides: Mapping[str, Loop], rounds: int, turn: float = TURN) -> dict[str, Times]:
    """Every side in turn, `rounds` times."""
    counts = {}
    for name, loop in sides.items():
        loop(1)
        once = min(loop(1) for _ in range(3))
        counts[name] = max(1, min(int(turn / max(once, 1e-9)), 1 << 20))
        if once < 1e-5:  # a single call is mostly the clock
            counts[name] = max(1, int(turn / (loop(counts[name] // 20 + 1) / (counts[name] // 20 + 1))))
    values: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, loop in sides.items():
            values[name].append(loop(counts[name]) / counts[name])
    return {name: Times(tuple(found)) for name, found in values.items()}
