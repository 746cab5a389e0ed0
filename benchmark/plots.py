"""Pictures of the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from joints import Size
from node import Load

matplotlib.use("Agg")
from matplotlib import pyplot as plt

BLUE, ORANGE, GREY = "#1f5fa8", "#d9822b", "#777777"
SHARES = np.array([50.0, 99.0, 99.9])  # those of the table in results.md


def _plain(axis: Any, ends: tuple[float, float]) -> None:
    """1, 2, 5, 10 ... on a logarithmic axis."""
    ticks = [step * 10.0**power for power in range(-3, 7) for step in (1, 2, 5) if ends[0] <= step * 10.0**power <= ends[1]]
    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)


def joints(sizes: Sequence[Size], file: Path) -> None:
    """Cost against the number of joints; lines of slope one are linear."""
    n = np.array([size.n for size in sizes])
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    ours = np.array([size.kernel.low for size in sizes]) * 1e6
    left.loglog(n, ours, "o-", color=BLUE, label="this package: tau and tau_rate")
    if all(size.rnea is not None for size in sizes):
        theirs = np.array([size.rnea.low for size in sizes if size.rnea]) * 1e6
        left.loglog(n, theirs, "s-", color=ORANGE, label="Pinocchio, C++: tau alone (rnea)")
    left.loglog(n, ours[0] * n / n[0], ":", color=GREY, label="linear")
    left.set(xlabel="joints", ylabel="microseconds per call", title="One call, machine code")
    right.loglog(n, [size.build for size in sizes], "o-", color=BLUE, label="URDF to first result")
    right.loglog(n, [size.again for size in sizes], "s--", color=BLUE, label="the same, compiled before")
    right.loglog(n, sizes[0].build * n / n[0], ":", color=GREY, label="linear")
    right.set(xlabel="joints", ylabel="seconds", title="From URDF to the first result")
    for axes in (left, right):
        axes.set_xticks(n, [str(k) for k in n])
        axes.minorticks_off()
        _plain(axes.yaxis, axes.get_ylim())
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, handlelength=3)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def latency(runs: Mapping[str, Load], file: Path) -> None:
    """Percentiles of the round trip, from the publication of a joint state to the arrival of the last result."""
    percentiles({name: [run.percentile(share) for share in SHARES] for name, run in runs.items()
                 if name.startswith(("naive", "ours"))}, file)


def percentiles(runs: Mapping[str, Sequence[float]], file: Path) -> None:
    figure, axes = plt.subplots(figsize=(10.5, 4.2), layout="constrained")
    styles = {"naive": (ORANGE, "s"), "ours": (BLUE, "o")}
    decades = -np.log10(1.0 - SHARES / 100.0)
    for name, trips in runs.items():
        color, marker = styles[name.split(",")[0]]
        lines = {"alone": "--", "rclpy": ":", "ordinary": "-."}
        line = next((style for word, style in lines.items() if word in name), "-")
        label = name.replace("ours", "this package").replace("naive", "naive node with Pinocchio")
        axes.semilogy(decades, trips, line, marker=marker, ms=3.5, color=color, label=label)
    axes.axhline(1000.0, color=GREY, lw=0.8)
    axes.annotate("one period of 1 kHz", (decades[0], 1000.0), (0, 3), textcoords="offset points", color=GREY, fontsize=8)
    axes.set_xticks(decades, [f"{share:g} %" for share in SHARES])
    axes.set(xlabel="percentile", ylabel="round trip, microseconds", title="Joint state to result over DDS, 7 joints, 1 kHz")
    _plain(axes.yaxis, axes.get_ylim())
    axes.grid(alpha=0.3)
    figure.legend(frameon=False, fontsize=8, handlelength=5, loc="outside right center")
    figure.savefig(file, dpi=110)
    plt.close(figure)
