"""Progress on stderr, shown only when the work takes long enough to ask for it."""

from __future__ import annotations

import sys
import time

QUIET, PAUSE, WIDTH = 1.0, 0.5, 110  # s of work before progress is shown, s between two lines of it, characters


class ProgressLine:
    """A line on stderr that appears only when the work takes longer than a moment; on a terminal it stays one line."""

    def __init__(self, pause: float = PAUSE) -> None:
        self.start = self.last = time.monotonic()
        self.pause, self.shown = pause, False

    def __call__(self, text: str) -> None:
        now = time.monotonic()
        if now - self.start > QUIET and now - self.last > self.pause:
            self.last, self.shown = now, True
            if sys.stderr.isatty():
                print(f"\r{text:<{WIDTH}}", end="", file=sys.stderr, flush=True)
            else:
                print(text, file=sys.stderr, flush=True)

    def samples(self, what: str, done: int, total: int) -> None:
        self(f"{what}: {done} of {total} samples, {100 * done // total} %")

    def close(self) -> None:
        if self.shown and sys.stderr.isatty():
            print(file=sys.stderr)
