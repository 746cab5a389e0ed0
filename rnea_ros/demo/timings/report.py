"""The table of `rnea demo --plant`, and what must be true of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..checks import Verdict
from .trials import OURS, Outcome

NEAR, WHILE = 0.6, 5.0  # mm off the path at most; ms beyond the slew limit for all motions together
HEAD = ("timing", "duration / fastest", "off the path, mm: median (largest)", "ms beyond the slew limit", "lost")


def rows(outcomes: Sequence[Outcome]) -> Iterator[tuple[str, ...]]:
    """One for each timing, in the order in which they came."""
    for name in dict.fromkeys(outcome.timing for outcome in outcomes):
        of = [outcome for outcome in outcomes if outcome.timing == name]
        off = [outcome.off for outcome in of]
        yield (name, f"{np.mean([outcome.longer for outcome in of]):.2f}", f"{np.median(off):.1f} ({max(off):.1f})",
               f"{sum(outcome.beyond for outcome in of):.0f}", f"{sum(outcome.lost for outcome in of)} of {len(of)}")


def numbers(outcomes: Sequence[Outcome]) -> dict[str, list[dict[str, Any]]]:
    """For programs: one for each motion and timing; off: mm, beyond: ms."""
    return {"motions": [{"timing": one.timing, "longer": one.longer, "off": one.off, "beyond": one.beyond, "lost": one.lost}
                        for one in outcomes]}


def table(outcomes: Sequence[Outcome]) -> str:
    """For a terminal."""
    lines = [HEAD, *rows(outcomes)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join(cell.ljust(width) if not k else cell.rjust(width) for k, (cell, width) in
                               enumerate(zip(line, widths))) for line in lines)


def verdicts(outcomes: Sequence[Outcome]) -> list[Verdict]:
    """Of our timing alone: the others are there to be seen."""
    of = [outcome for outcome in outcomes if outcome.timing == OURS]
    lost, off, beyond = sum(outcome.lost for outcome in of), max(one.off for one in of), sum(one.beyond for one in of)
    return [Verdict(not lost, f"{OURS}: {lost} of {len(of)} motions lost"),
            Verdict(off <= NEAR, f"{OURS}: at most {off:.2f} mm off the path; allowed {NEAR:g}"),
            Verdict(beyond <= WHILE, f"{OURS}: {beyond:.0f} ms beyond the slew limit in all motions; allowed {WHILE:g}")]
