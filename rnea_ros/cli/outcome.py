"""What a command has found, printed in one place: words for people or, by --json, one JSON object for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass
from os import PathLike, fspath
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Outcome:
    """Both say the same. exit_code: 0 all well, 1 a check found something."""

    text: str
    data: Mapping[str, Any]
    exit_code: int = 0


def show(outcome: Outcome, as_json: bool = False) -> int:
    """Prints it; returns the exit code."""
    text = in_json(outcome.data) if as_json else outcome.text
    if text:
        print(text)
    return outcome.exit_code


def in_json(data: Mapping[str, Any]) -> str:
    """A line for each key; lists for arrays, null for what is unknown or without bounds."""
    lines = (f" {json.dumps(name)}: {json.dumps(_plain(value), allow_nan=False)}" for name, value in data.items())
    return "{\n" + ",\n".join(lines) + "\n}"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, PathLike):
        return fspath(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
