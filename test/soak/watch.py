"""Resources of a process from /proc, and detection of unbounded growth."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

ALLOWED = {"megabytes": 60.0, "descriptors": 24.0, "threads": 12.0}  # more at the end than after the beginning

ENOUGH = 12  # checks in each quarter


class Use(NamedTuple):
    megabytes: float
    descriptors: float
    threads: float


def use(pid: int) -> Use | None:
    """Return the resources of a process, or None if it has ended."""
    folder = Path(f"/proc/{pid}")
    try:
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line)
        return Use(int(status["VmRSS"].split()[0]) / 1024.0, len(list((folder / "fd").iterdir())), int(status["Threads"]))
    except (OSError, KeyError):
        return None


def children(pid: int) -> list[int]:
    """Return the child processes of a process: those of its solver, for instance."""
    try:
        return [int(word) for task in Path(f"/proc/{pid}/task").iterdir() for word in (task / "children").read_text().split()]
    except OSError:
        return []


class Growth:
    """Resources of one process over time."""

    def __init__(self) -> None:
        self.seen: list[Use] = []

    def check(self, pid: int) -> None:
        if found := use(pid):
            self.seen.append(found)

    def findings(self, name: str) -> list[str]:
        """Return findings: medians of the last quarter are compared with the second, since the first is for warming up."""
        quarter = len(self.seen) // 4
        if quarter < ENOUGH:
            return []
        early, late = self.seen[quarter:2 * quarter], self.seen[-quarter:]
        middle = {field: [sorted(getattr(one, field) for one in part)[quarter // 2] for part in (early, late)]
                  for field in Use._fields}
        return [f"{name}: {field} grew from {before:.0f} to {after:.0f}" for field, (before, after) in middle.items()
                if after - before > ALLOWED[field]]

    def __str__(self) -> str:
        last = self.seen[-1] if self.seen else Use(0.0, 0.0, 0.0)
        return f"{last.megabytes:.0f} MB, {last.descriptors:.0f} descriptors, {last.threads:.0f} threads"
