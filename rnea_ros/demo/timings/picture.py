"""The picture of `rnea demo --plant`: where the tool went, the torque rates that were asked for, and how all motions ended."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from ...io.figures import picture
from ...sim.tracking import CONTROL_PERIOD_S
from ..plot import STYLE
from .trials import LOOKS, OURS, PLANNED, TOPPRA, Outcome, Task

COLOURS = {PLANNED: "#6b6b6b", TOPPRA: "#c44e00", OURS: "#1f4e79"}  # told apart by the colour-blind
SHORT = {PLANNED: "as planned\ntwice too fast", TOPPRA: "TOPP-RA\n90 % of torque", OURS: "ours, 90 % of\ntorque and rate"}
PATH, LIMIT = "0.75", "#444444"
SHOWN = 3.0  # slew limits that fit on the picture
WIDE = 0.06  # of the strip of dots
LEAST = 0.03  # mm


def draw(task: Task, first: Sequence[Outcome], outcomes: Sequence[Outcome], path: str | os.PathLike[str]) -> None:
    """Of one task, with its outcomes, and of all outcomes. Raises RneaError without matplotlib."""
    with picture(path, (12.0, 6.8), dpi=110, settings={**STYLE, "font.size": 11}) as figure:
        axes = figure.subplots(2, len(first) + 1, height_ratios=(1.0, 1.0), width_ratios=[1.0] * len(first) + [0.8])
        project = _plane(_line(task))
        for (above, below), outcome in zip(axes.T, first):
            _path(above, task, outcome, project)
            _rates(below, task, outcome)
        ends = [max(outcome.tracked.t[-1] for outcome in first)] * len(first)
        for axis, end in zip(axes[1], ends):
            axis.set_xlim(0.0, end)
        axes[0, 0].set_ylabel("where the tool went", fontsize=11)
        axes[1, 0].set_ylabel("torque rate asked for\n/ slew limit, worst joint")
        _strip(figure, axes, outcomes)
        lost = {name: sum(o.lost for o in outcomes if o.timing == name) for name in SHORT}
        count = sum(outcome.timing == OURS for outcome in outcomes)
        figure.suptitle(f"{task.arm.robot.name}: one path, three timings, the same controller and drives. Lost: "
                        f"{lost[PLANNED]}, {lost[TOPPRA]} and {lost[OURS]} of {count} motions", x=0.01, ha="left", fontsize=13)


def _line(task: Task) -> np.ndarray:
    path = task.fastest.route.path
    return task.arm.tool_at(path(np.linspace(0.0, path.length, LOOKS))[0])


def _plane(line: np.ndarray):
    """Points to the plane in which the path is longest."""
    middle = line.mean(axis=0)
    axes = np.linalg.svd(line - middle, full_matrices=False)[2][:2]
    return lambda points: ((points - middle) @ axes.T).T


def _path(axis, task: Task, outcome: Outcome, project) -> None:
    colour, tracked = COLOURS[outcome.timing], outcome.tracked
    axis.plot(*project(_line(task)), color=PATH, linewidth=7.0, solid_capstyle="round")
    went = project(task.arm.tool_at(tracked.q[tracked.t >= 0.0]))
    axis.plot(*went, color=colour, linewidth=2.2)
    axis.plot(*went[:, :1], "o", color="black", markersize=6)
    axis.plot(*went[:, -1:], "X" if outcome.lost else "s", color="#b00020" if outcome.lost else "black", markersize=11
              if outcome.lost else 6, markeredgecolor="white")
    axis.set_title(SHORT[outcome.timing], loc="left", color=colour, fontsize=12, fontweight="bold")
    axis.set_aspect("equal", adjustable="datalim")
    told = f"lost after {tracked.t[-1]:.2f} s" if outcome.lost else f"{outcome.off:.1f} mm off at most"
    axis.text(0.02, 0.02, told, transform=axis.transAxes, fontsize=11, color="#b00020" if outcome.lost else colour)
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(False)


def _rates(axis, task: Task, outcome: Outcome) -> None:
    tracked, limit = outcome.tracked, task.arm.robot.limits.effort_rate
    rate = np.diff(tracked.commanded, axis=0) / CONTROL_PERIOD_S / limit
    worst = np.take_along_axis(rate, np.abs(rate).argmax(axis=1)[:, None], axis=1)[:, 0]
    axis.axhspan(-1.0, 1.0, color="0.93", linewidth=0.0)
    axis.plot(tracked.t[1:], np.clip(worst, -SHOWN, SHOWN), color=COLOURS[outcome.timing], linewidth=1.0)
    for end in (-1.0, 1.0):
        axis.axhline(end, color=LIMIT, linewidth=1.2, linestyle="--")
    axis.set_ylim(-1.05 * SHOWN, 1.05 * SHOWN)
    axis.set_xlabel("time [s]")
    peak = float(np.abs(rate[tracked.t[1:] > 0.0]).max())
    axis.set_title(f"at most {peak:.3g} times the limit", loc="left", fontsize=11, color=COLOURS[outcome.timing])


def _strip(figure, axes, outcomes: Sequence[Outcome]) -> None:
    """Of every motion, how far off its path it was: a dot, a cross where it was lost."""
    for axis in axes[:, -1]:
        axis.remove()
    axis = figure.add_subplot(axes[0, 0].get_gridspec()[:, -1])
    for place, name in enumerate(COLOURS):
        of = [outcome for outcome in outcomes if outcome.timing == name]
        side = WIDE * (np.arange(len(of)) - 0.5 * (len(of) - 1)) / max(1, len(of) / 8.0)
        for lost, mark, size in ((False, "o", 7.0), (True, "X", 9.0)):
            chosen = [k for k, outcome in enumerate(of) if outcome.lost == lost]
            axis.plot(place + side[chosen], [max(of[k].off, LEAST) for k in chosen], mark, color=COLOURS[name],
                      markersize=size, markeredgecolor="white", linestyle="none")
    axis.set(yscale="log", xlim=(-0.6, len(COLOURS) - 0.4), xticks=range(len(COLOURS)))
    axis.set_xticklabels(["planned", "TOPP-RA", "ours"], fontsize=10)
    axis.set_ylim(bottom=min(0.1, axis.get_ylim()[0]), top=max(200.0, axis.get_ylim()[1]))
    axis.yaxis.set_major_formatter(lambda value, place: f"{value:g}")
    axis.yaxis.set_minor_formatter("")
    axis.set_title("off the path [mm]\nx: lost", loc="left", fontsize=12)
    axis.grid(axis="y", color="0.9")
