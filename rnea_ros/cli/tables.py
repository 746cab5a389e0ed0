"""Tables as text, no wider than the terminal that shows them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

LEAST = 8  # characters of a word that is cut


def table(head: Sequence[str], rows: Sequence[Sequence[str]], words: str, width: int | None = None) -> list[str]:
    """Lines with columns side by side.

    words : for each column '<' where it holds words, '>' where it holds numbers, which are never cut
    width : characters of a line, see terminal_width; None: as many as it takes
    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    gap = 2
    if width is not None and sum(widths) + gap * (len(widths) - 1) > width:
        gap = 1
        for k in sorted((k for k, kind in enumerate(words) if kind == "<"), key=lambda k: -widths[k]):
            beyond = max(sum(widths) + gap * (len(widths) - 1) - width, 0)
            widths[k] = min(widths[k], max(widths[k] - beyond, LEAST))
    return [(" " * gap).join(f"{_cut(cell, size):{kind}{size}}" for cell, size, kind in zip(row, widths, words, strict=True)
                             ).rstrip() for row in (head, *rows)]


def terminal_width() -> int | None:
    """Of the terminal that shows the output; None where it goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _cut(cell: str, size: int) -> str:
    return cell if len(cell) <= size else f"{cell[:size - 1]}…"
