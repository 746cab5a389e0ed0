"""Output of the commands: results as text or JSON, tables, progress lines, and checks of output files."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError


@dataclass(frozen=True)
class CommandResult:
    """Result of a command as text and as data for --json. exit_code: 0 success, 1 a check failed."""

    text: str
    data: Mapping[str, Any]
    exit_code: int = 0


def print_outcome(outcome: CommandResult, as_json: bool = False) -> int:
    """Print a result; return the exit code."""
    text = to_json(outcome.data) if as_json else outcome.text
    if text:
        print(text)
    return outcome.exit_code


def to_json(data: Mapping[str, Any]) -> str:
    """Return JSON with a line for each key; arrays become lists, NaN and infinity null."""
    lines = (f" {json.dumps(name)}: {json.dumps(_to_plain(value), allow_nan=False)}" for name, value in data.items())
    return "{\n" + ",\n".join(lines) + "\n}"


def _to_plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return _to_plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(name): _to_plain(one) for name, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return _to_plain(asdict(value))
    if isinstance(value, list | tuple):
        return [_to_plain(one) for one in value]
    if isinstance(value, PathLike):
        return fspath(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_files(*paths: str | Path | None) -> None:
    """Raise InputError for the first path that cannot be written; None and '' are ignored."""
    for path in (Path(given) for given in paths if given):
        if path.is_dir() or not path.parent.is_dir():
            raise InputError(f"{path}: cannot be written: "
                             + ("it is a folder" if path.is_dir() else f"no such folder: mkdir -p {path.parent}"))
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise InputError(f"{path}: cannot be written: no permission")


def check_folder(path: str | Path) -> None:
    """Create the folder. Raises InputError if nothing can be written into it."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: cannot be written into: it is a file; an existing or new folder is needed")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"{folder}: cannot be written into: {error.strerror}") from None


MIN_WIDTH = 8  # characters of a cell that is cut


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]], words: str, width: int | None = None) -> list[str]:
    """Return the lines of a table.

    words : for each column '<' for text, '>' for numbers, which are never cut
    width : largest number of characters of a line, see terminal_width; None: unlimited
    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    gap = 2
    if width is not None and sum(widths) + gap * (len(widths) - 1) > width:
        gap = 1
        for k in sorted((k for k, kind in enumerate(words) if kind == "<"), key=lambda k: -widths[k]):
            beyond = max(sum(widths) + gap * (len(widths) - 1) - width, 0)
            widths[k] = min(widths[k], max(widths[k] - beyond, MIN_WIDTH))
    return [(" " * gap).join(f"{_cut_cell(cell, size):{kind}{size}}" for cell, size,
                             kind in zip(row, widths, words, strict=True)
                             ).rstrip() for row in (head, *rows)]


def terminal_width() -> int | None:
    """Return the width of the terminal that shows the output; None if the output goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _cut_cell(cell: str, size: int) -> str:
    return cell if len(cell) <= size else f"{cell[:size - 1]}…"


QUIET_S, INTERVAL_S = 1.0, 0.5  # of work before progress is shown; between two lines of it
PIPE_INTERVAL_S = 10.0  # between two lines without a terminal that overwrites them


class ProgressLine:
    """Line on stderr, shown only for work of more than QUIET_S; a terminal overwrites it.

    work : name of the work; if given, one line "WORK took N s" replaces all lines where stderr is no terminal
    """

    def __init__(self, pause: float = INTERVAL_S, work: str = "") -> None:
        self.start, self.last = time.monotonic(), -math.inf
        self.pause, self.work, self.shown = pause, work, False

    def __call__(self, text: str) -> None:
        now = time.monotonic()
        if now - self.start > QUIET_S and now - self.last > self.pause:
            self.last, self.shown = now, True
            if sys.stderr.isatty():
                width = shutil.get_terminal_size().columns - 1
                print(f"\r{text[:width]:<{width}}", end="", file=sys.stderr, flush=True)
            elif not self.work:
                print(text, file=sys.stderr, flush=True)

    def samples(self, what: str, done: int, total: int) -> None:
        self(f"{what}: {done} of {total} samples, {100 * done // total} %")

    def close(self) -> None:
        if self.shown and sys.stderr.isatty():
            print(file=sys.stderr)
        elif self.shown and self.work:
            print(f"{self.work} took {time.monotonic() - self.start:.1f} s", file=sys.stderr)


@contextmanager
def show_working(what: str) -> Iterator[None]:
    """Show the name and the elapsed time of work that reports no progress."""
    line, done = ProgressLine(INTERVAL_S if sys.stderr.isatty() else PIPE_INTERVAL_S), threading.Event()

    def report() -> None:
        while not done.wait(INTERVAL_S):
            line(f"{what}: {time.monotonic() - line.start:.0f} s")

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        line.close()
