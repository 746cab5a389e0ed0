"""The exceptions of the package: every message says what was given, what is allowed, and where."""

from __future__ import annotations

from collections.abc import Sequence


class RneaError(Exception):
    """Root of every error raised on purpose by rnea_ros."""


class InputError(RneaError, ValueError):
    """An argument has the wrong size, name or value."""


class ModelError(RneaError, ValueError):
    """A robot description cannot become a model.

    Attributes
    ----------
    problems : tuple of str
        Everything that is wrong, one sentence each.
    """

    def __init__(self, problems: str | Sequence[str], source: str = "robot description"):
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__(self._text(source))

    def _text(self, source: str) -> str:
        if len(self.problems) == 1:
            return f"{source}: {self.problems[0]}"
        lines = "\n".join(f"  - {problem}" for problem in self.problems)
        return f"{source}: {len(self.problems)} problems\n{lines}"
