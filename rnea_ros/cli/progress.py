"""Progress on stderr, shown only when the work takes long enough to ask for it."""

from __future__ import annotations

import math
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

QUIET, PAUSE = 1.0, 0.5  # s of work before progress is shown, s between two lines of it
RARELY = 10.0  # s between two lines of progress where no terminal overwrites them, and they say no more than the time


class ProgressLine:
    """Line on stderr that appears only when the work takes longer than a moment; on a terminal it stays one line.

    work : name of the work; given, a single line "WORK took N s" replaces all lines where stderr is no terminal
    """

    def __init__(self, pause: float = PAUSE, work: str = "") -> None:
        self.start, self.last = time.monotonic(), -math.inf
        self.pause, self.work, self.shown = pause, work, False

    def __call__(self, text: str) -> None:
        now = time.monotonic()
        if now - self.start > QUIET and now - self.last > self.pause:
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
def working(what: str) -> Iterator[None]:
    """Says what is being done, and for how long already, during work that tells nothing of itself."""
    line, done = ProgressLine(PAUSE if sys.stderr.isatty() else RARELY), threading.Event()

    def tell() -> None:
        while not done.wait(PAUSE):
            line(f"{what}: {time.monotonic() - line.start:.0f} s")

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        line.close()
