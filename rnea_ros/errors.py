"""The exceptions of the package: every message says what was given, what is allowed, and where."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

LONGEST_NAME = 80  # characters of a name that a message shows
MAX_LISTED_PROBLEMS = 40  # of a robot description, in its error message


def shown(value: Any, most: int = 80) -> str:
    """Return the repr of a given value for a message, cut off after `most` characters."""
    try:
        return f"{value!r:.{most}}"
    except ValueError:  # Python does not write out an integer of thousands of digits
        return "a very large number"


def count_noun(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def some(names: Iterable[object], most: int = 12, quoted: bool = False) -> str:
    """Return the first few names for a message and the number of others, since lists from messages may be long."""
    left = iter(names)
    first = [name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..." for name in map(str, islice(left, most))]
    more = sum(1 for _ in left)
    return ", ".join(f"'{name}'" if quoted else name for name in first) + (f" and {more} more" if more else "")


def summary(robot: Any) -> str:
    """Return the repr of a robot: name, kind and joints."""
    return f"<{type(robot).__name__} '{robot.name}' ({robot.kind}), {robot.n} joints: {some(robot.joint_names) or 'none'}>"


def near(name: object, names: Iterable[str], similarity: float = 0.6) -> str:
    """Return a question for the end of a message about a name that does not exist; empty if no name is similar."""
    close = difflib.get_close_matches(str(name)[:LONGEST_NAME], list(names), n=1, cutoff=similarity)
    return f"; did you mean '{close[0]}'?" if close else ""


class ModelWarning(str):
    """Sentence about an implausible property of a robot model. `name` is the kind of warning: users accept warnings by it."""

    name: str

    def __new__(cls, name: str, text: str) -> ModelWarning:
        found = super().__new__(cls, f"{text} [{name}]")
        found.name = name
        return found

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # what __new__ takes
        return self.name, self.removesuffix(f" [{self.name}]")


class RneaError(Exception):
    """Root of every error raised on purpose by rnea_ros."""


def in_words(error: BaseException) -> str:
    """Return the message of an error of this package; any other error is reported as an internal one."""
    return str(error) if isinstance(error, RneaError) else f"internal error, please report it: {error!r}"


class InputError(RneaError, ValueError):
    """An argument has the wrong size, name or value."""


class MissingPackage(RneaError):
    """A requested function needs a package that is not installed; the extra `extra` of rnea_ros installs it."""

    def __init__(self, need: str, extra: str, otherwise: str = ""):
        super().__init__(need, extra, otherwise)
        self.need, self.extra, self.otherwise = need, extra, otherwise

    def __str__(self) -> str:
        otherwise = self.otherwise and f", or {self.otherwise}"
        return f"{self.need}: pip install '.[{self.extra}]' in a clone of rnea_ros{otherwise}"


class PoseError(InputError):
    """Loops or legs cannot take a pose or a motion, or do not determine it. `reason` is a fixed word to count by."""

    def __init__(self, reason: str, detail: str):
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail

    def __str__(self) -> str:
        return self.detail


class Rejected(RneaError):
    """A message or request cannot be used. `reason` is a fixed word to count by, `detail` states what to change.

    passing : that is normal for an instant, or none of this robot's business: it is counted, but no fault
    """

    def __init__(self, reason: str, detail: str, passing: bool = False):
        super().__init__(reason, detail, passing)
        self.reason, self.detail, self.passing = reason, detail, passing

    def __str__(self) -> str:
        return self.detail


class ModelError(RneaError, ValueError):
    """A robot description cannot become a model. Its text lists at most MAX_LISTED_PROBLEMS different problems.

    Attributes
    ----------
    problems : tuple of str
        Everything that is wrong, one sentence each.
    """

    def __init__(self, problems: str | Sequence[str], source: str = "robot description"):
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__(self.problems, source)  # what a copy in another process is made of

    def __str__(self) -> str:
        problems, source = self.args
        if len(problems) == 1:
            return f"{source}: {problems[0]}"
        listed = list(dict.fromkeys(problems))  # a generator of URDFs repeats its mistakes
        more = len(listed) - MAX_LISTED_PROBLEMS
        listed[MAX_LISTED_PROBLEMS:] = [f"and {more} more"] if more > 0 else []
        return "\n  - ".join((f"{source}: {len(problems)} problems", *listed))
