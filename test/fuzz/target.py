"""Fuzzing targets, and errors that no input may cause."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from rnea_ros.errors import Rejected, RneaError

LONGEST_MESSAGE = 6000  # characters of an error

Try = Callable[[bytes], str]  # returns the outcome of an input in a word; raises RneaError for rejected inputs


class WrongNumber(Exception):
    """Raised if two computations of a number differ, or if it is not finite."""


class Target(NamedTuple):
    """Target of fuzzing.

    seeds    : good inputs
    make     : function that returns the attempt at an input, given a folder
    words    : byte strings with a meaning in the inputs
    generate : function that returns a new input, for targets whose inputs are only a seed; others mutate `seeds`
    """

    name: str
    seeds: Callable[[], list[bytes]]
    make: Callable[[Path], Try]
    words: Sequence[bytes] = ()
    generate: Callable[[random.Random], bytes] | None = None


def outcome(attempt: Try, data: bytes) -> str:
    """Return the outcome of an input. Raises errors that are not of the package, and those without an explanation."""
    try:
        return attempt(data)
    except RneaError as error:
        text = str(error)
        if not text.strip() or len(text) > LONGEST_MESSAGE or "internal error" in text:
            raise AssertionError(f"an error of {len(text)} characters that teaches nothing: {text[:300]!r}") from error
        return f"refused: {error.reason}" if isinstance(error, Rejected) else f"refused: {type(error).__name__}"
