"""YAML files as users write them, read with care: plain values only, of bounded size, nothing that hides something else."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from ..errors import ModelError

MAX_BYTES = 1_000_000


def content(path: Any, hint: str) -> Any:
    """What a file holds. ModelError if it cannot be read; hint: what a file there should say."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, TypeError, ValueError) as error:  # no path; a path with a zero byte
        raise ModelError(f"cannot be read ({getattr(error, 'strerror', None) or error}); {hint}", str(path)) from None
    if len(data) > MAX_BYTES:
        raise ModelError(f"more than {MAX_BYTES} bytes", str(path))
    try:
        return yaml.load(data, Loader=_Strict)  # a SafeLoader: plain values only
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise ModelError(f"is not YAML: {' '.join(str(error).split())[:300]}", str(path)) from None


class _Strict(yaml.SafeLoader):
    """Without aliases, with which a short file can become an endless one, and without a key that hides its twin."""

    def compose_node(self, parent, index):
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not read")
        return super().compose_node(parent, index)

    def construct_mapping(self, node, deep=False):
        counts = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        twice = [key for key, count in counts.items() if count > 1]
        if twice:
            raise yaml.YAMLError(f"'{twice[0]}' stands twice in line {node.start_mark.line + 1} or below")
        return super().construct_mapping(node, deep)


def number(value: Any) -> float:
    """NaN where it is none. A string counts if it is a number: YAML 1.1 takes 4e-3 for a string, since it lacks the dot."""
    try:
        return math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
