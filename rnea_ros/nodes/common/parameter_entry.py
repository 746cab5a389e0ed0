"""One parameter of a node: its type, its default, what it may be, and what it means. Plain data: no ROS is needed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rnea_ros.errors import shown

TYPES = {"bool": bool, "int": int, "double": float, "string": str}
INF = math.inf


@dataclass(frozen=True, eq=False)
class Entry:
    """One parameter. `default` gives the type; bounds apply to every element of an array; size 0 is any size."""

    name: str
    default: Any
    text: str
    unit: str = ""
    low: float = -INF
    high: float = INF
    choices: tuple[str, ...] = ()
    size: int = 0
    read_only: bool = False

    @property
    def type(self) -> str:
        if isinstance(self.default, list):
            return "string_array" if isinstance(self.default[0], str) else "double_array"
        return next(name for name, kind in TYPES.items() if type(self.default) is kind)

    @property
    def bounds(self) -> str:
        """What is allowed, for people."""
        if self.choices:
            return ", ".join(self.choices)
        low = "" if self.low == -INF else f">= {self.low:g}"
        high = "" if self.high == INF else f"<= {self.high:g}"
        size = f"{self.size} numbers" if self.size else ""
        return ", ".join(filter(None, (size, low, high)))

    def problem(self, value: Any) -> str:
        """Why this value is refused; empty if it is not."""
        if self.type == "string_array":
            if isinstance(value, str) or not isinstance(value, Iterable) or not all(type(v) is str for v in value):
                return f"{self.name} must be a list of strings, got {value!r:.80}"
            numbers = []
        elif isinstance(self.default, list):
            numbers = list(value) if isinstance(value, Iterable) else [value]
            if not all(type(v) is float for v in numbers) or (self.size and len(numbers) != self.size):
                return f"{self.name} needs {self.size or 'any number of'} doubles, got {value!r:.80} (write 1.0, not 1)"
        elif type(value) is not TYPES[self.type]:
            hint = " (write 1.0, not 1)" if self.type == "double" else ""
            return f"{self.name} must be a {self.type}, got {value!r:.80}{hint}"
        else:
            numbers = [value] if self.type in ("int", "double") else []
        if self.choices and value not in self.choices:
            return f"{self.name} is '{value}'; allowed are {', '.join(self.choices)}"
        for number in numbers:
            unknown = number != number and self.default != self.default  # NaN may be given where it is the default
            if not unknown and not (self.low <= number <= self.high and abs(number) < INF):
                given = f"{number:g}" if isinstance(number, float) else shown(number)
                return f"{self.name} is {given}; it must be a finite number {self.bounds}".rstrip()
        return ""
