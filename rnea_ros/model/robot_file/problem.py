"""One thing that is wrong with a robot file: where, and a sentence."""

from __future__ import annotations

import re
from typing import NamedTuple

Path = tuple[str | int, ...]  # keys and numbers of entries, from the whole file to the value


class Problem(NamedTuple):
    """text follows the path: ("limits", "elbow"), ": joint 'elbow' does not exist"."""

    path: Path
    text: str

    def told(self, place: tuple[int, int] | None) -> str:
        """A sentence with place and path: line 7, column 3: limits.elbow: joint 'elbow' does not exist."""
        parts = [str(part) if re.fullmatch(r"[\w-]{1,80}", str(part)) else repr(str(part))[:82] for part in self.path]
        at = f"line {place[0]}, column {place[1]}: " if place else ""
        space = "" if self.text.startswith(":") else " "
        return at + (".".join(parts) or "the file") + space + self.text
