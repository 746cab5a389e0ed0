"""Robots that come from another process, again and again, and are compiled once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from . import kinds
from .protocol import AnyRobot


class Shared:
    """Holds a `robot`. Unpickled, it holds the one that came first of all that are the same, with what that has compiled."""

    robot: AnyRobot

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        robot = state["robot"]
        first = _kept(type(robot).__name__, kinds.model_id(robot))
        self.robot = first.setdefault(kinds.tree(robot).backend, robot)


@lru_cache(maxsize=8)
def _kept(kind: str, model_id: str) -> dict[str, AnyRobot]:
    """Of one robot, by backend."""
    return {}
