"""Where a robot's joints are in messages that name theirs in any order: found out once for each order, then used again."""

from __future__ import annotations

import array
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rnea_ros.errors import Rejected, some

SENDERS, MANY = 32, 1000  # of messages with other names, and names in a message, that are remembered


class Layout:
    """Where joints of the model are in messages that name theirs in any order.

    joints  : their numbers in the model
    columns : the same, to index arrays of the model
    others  : names in the message that are none of the model's
    whole   : whether all joints are there that must be; every: whether all are
    """

    def __init__(self, names: Sequence[str], numbers: Mapping[str, int], needed: int):
        """needed: so many of the model's joints, the first ones, must be known. Raises Rejected."""
        if not names:
            raise Rejected("empty", "the message names no joints")
        index = {name: k for k, name in enumerate(names)}
        if len(index) < len(names):
            twice = (name for name, count in Counter(names).items() if count > 1)
            raise Rejected("duplicate_joint", f"named more than once: {some(twice)}")
        self.names = list(names)
        known = [name for name in numbers if name in index]
        self.joints = tuple(numbers[name] for name in known)
        self.others = [name for name in names if name not in numbers]
        self.whole = self.joints[:needed] == tuple(range(needed))
        self.every = len(known) == len(numbers)
        self.columns: Any = slice(None) if self.every else np.array(self.joints, dtype=np.intp)
        self._order = np.array([index[name] for name in known], dtype=np.intp)

    def read(self, values: array.array, what: str, out: np.ndarray) -> bool:
        """Copy values of `joints` into out; returns whether all are finite."""
        if len(values) != len(self.names):
            raise Rejected("wrong_size", f"{what} has {len(values)} entries for {len(self.names)} names")
        np.frombuffer(values).take(self._order, out=out, mode="clip")
        return finite(out)


class JointMap:
    """Layouts by the names of messages."""

    def __init__(self, joint_names: Sequence[str], optional: Sequence[str] = ()):
        """optional: of more joints, which need not be known."""
        self._needed = len(joint_names)
        self.joint_names = (*joint_names, *optional)
        self._numbers = {name: k for k, name in enumerate(self.joint_names)}
        self._latest: Layout | None = None
        self._known: dict[tuple[str, ...], Layout] = {}

    def locate(self, names: list[str]) -> Layout:
        """Raises Rejected."""
        latest = self._latest
        if latest is not None and names == latest.names:
            return latest
        key = tuple(names)
        found = self._known.get(key) or Layout(names, self._numbers, self._needed)
        if len(self._known) >= SENDERS:  # whoever sends ever other names is not remembered
            self._known.clear()
        if len(names) <= MANY:
            self._known[key] = found
        self._latest = found
        return found


def finite(values: np.ndarray) -> bool:
    """Whether all are; by way of a list, which for a robot's few joints takes half as long as numpy's own way."""
    return all(map(math.isfinite, values.tolist()))


def not_finite(names: Sequence[str], values: np.ndarray) -> str:
    """For people."""
    return some(f"{name} = {value}" for name, value in zip(names, values) if not math.isfinite(value))
