"""Cache of unpickled robots: a robot that comes from another process again is compiled once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from .robot import Robot


class Shared:
    """Base of objects with a `robot`: unpickled, it is the first one of the same model, with its compiled kernels."""

    robot: Robot

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        robot = state["robot"]
        first = _kept(robot.model_id)
        self.robot = first.setdefault(robot.tree.backend, robot)


@lru_cache(maxsize=8)
def _kept(model_id: str) -> dict[str, Robot]:
    """Robots with one model, by backend."""
    return {}
