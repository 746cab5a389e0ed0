"""Picture of the timing demo: tool paths, commanded torque rates, and deviations of all motions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...io.figures import movie, picture
from ...sim.rendering import Polyline, Renderer
from ...sim.tracking import CONTROL_PERIOD_S
from ..plots import STYLE
from .trials import N_PATH_SAMPLES, OURS, PLANNED, TOPPRA, TimingResult, TimingTask

COLOURS = {PLANNED: "#6b6b6b", TOPPRA: "#c44e00", OURS: "#1f4e79"}  # distinguishable with colour blindness
SHORT_NAMES = {PLANNED: "as planned\ntwice too fast", TOPPRA: "TOPP-RA\n90 % of torque", OURS:
               "ours, 90 % of\ntorque and rate"}
LINE_COLOUR, LIMIT_COLOUR = "0.75", "#444444"
MAX_RATE_SHOWN = 3.0  # slew limits
STRIP_WIDTH = 0.06  # of one strip of dots
MIN_DEVIATION_MM = 0.03


def draw_trials(task: TimingTask, first: Sequence[TimingResult], outcomes: Sequence[TimingResult],
                path: str | os.PathLike[str]) -> None:
    """Draw one task with its results, and the deviations of all results. Raises RneaError without matplotlib."""
    with picture(path, (12.0, 6.8), dpi=110, settings={**STYLE, "font.size": 11}) as figure:
        axes = figure.subplots(2, len(first) + 1, height_ratios=(1.0, 1.0), width_ratios=[1.0] * len(first) + [0.8])
        project = _projection(_tool_path(task))
        for (above, below), outcome in zip(axes.T, first):
            _draw_path(above, task, outcome, project)
            _draw_rates(below, task, outcome)
        ends = [max(outcome.tracked.t[-1] for outcome in first)] * len(first)
        for axis, end in zip(axes[1], ends):
            axis.set_xlim(0.0, end)
        axes[0, 0].set_ylabel("tool path", fontsize=11)
        axes[1, 0].set_ylabel("commanded torque rate\n/ slew limit, worst joint")
        _draw_deviations(figure, axes, outcomes)
        lost = {name: sum(o.lost for o in outcomes if o.timing == name) for name in SHORT_NAMES}
        count = sum(outcome.timing == OURS for outcome in outcomes)
        figure.suptitle(f"{task.arm.robot.name}: one path, three timings, the same controller and drives. Lost: "
                        f"{lost[PLANNED]}, {lost[TOPPRA]} and {lost[OURS]} of {count} motions", x=0.01, ha="left", fontsize=13)


def _tool_path(task: TimingTask) -> np.ndarray:
    path = task.fastest.route.path
    return task.arm.tool_at(path(np.linspace(0.0, path.length, N_PATH_SAMPLES))[0])


def _projection(line: np.ndarray):
    """Return a projection of points onto the plane in which the path is longest."""
    middle = line.mean(axis=0)
    axes = np.linalg.svd(line - middle, full_matrices=False)[2][:2]
    return lambda points: ((points - middle) @ axes.T).T


def _draw_path(axis, task: TimingTask, outcome: TimingResult, project) -> None:
    colour, tracked = COLOURS[outcome.timing], outcome.tracked
    axis.plot(*project(_tool_path(task)), color=LINE_COLOUR, linewidth=7.0, solid_capstyle="round")
    went = project(task.arm.tool_at(tracked.q[tracked.t >= 0.0]))
    axis.plot(*went, color=colour, linewidth=2.2)
    axis.plot(*went[:, :1], "o", color="black", markersize=6)
    axis.plot(*went[:, -1:], "X" if outcome.lost else "s", color="#b00020" if outcome.lost else "black", markersize=11
              if outcome.lost else 6, markeredgecolor="white")
    axis.set_title(SHORT_NAMES[outcome.timing], loc="left", color=colour, fontsize=12, fontweight="bold")
    axis.set_aspect("equal", adjustable="datalim")
    label = f"lost after {tracked.t[-1]:.2f} s" if outcome.lost else f"{outcome.off:.1f} mm off at most"
    axis.text(0.02, 0.02, label, transform=axis.transAxes, fontsize=11, color="#b00020" if outcome.lost else colour)
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(False)


def _draw_rates(axis, task: TimingTask, outcome: TimingResult) -> None:
    tracked, limit = outcome.tracked, task.arm.robot.limits.effort_rate
    rate = np.diff(tracked.commanded, axis=0) / CONTROL_PERIOD_S / limit
    worst = np.take_along_axis(rate, np.abs(rate).argmax(axis=1)[:, None], axis=1)[:, 0]
    axis.axhspan(-1.0, 1.0, color="0.93", linewidth=0.0)
    axis.plot(tracked.t[1:], np.clip(worst, -MAX_RATE_SHOWN, MAX_RATE_SHOWN), color=COLOURS[outcome.timing], linewidth=1.0)
    for end in (-1.0, 1.0):
        axis.axhline(end, color=LIMIT_COLOUR, linewidth=1.2, linestyle="--")
    axis.set_ylim(-1.05 * MAX_RATE_SHOWN, 1.05 * MAX_RATE_SHOWN)
    axis.set_xlabel("time [s]")
    peak = float(np.abs(rate[tracked.t[1:] > 0.0]).max())
    axis.set_title(f"at most {peak:.3g} times the limit", loc="left", fontsize=11, color=COLOURS[outcome.timing])


def _draw_deviations(figure, axes, outcomes: Sequence[TimingResult]) -> None:
    """Draw the deviation of every motion from its path: a dot, or a cross if tracking was lost."""
    for axis in axes[:, -1]:
        axis.remove()
    axis = figure.add_subplot(axes[0, 0].get_gridspec()[:, -1])
    for column, name in enumerate(COLOURS):
        of = [outcome for outcome in outcomes if outcome.timing == name]
        side = STRIP_WIDTH * (np.arange(len(of)) - 0.5 * (len(of) - 1)) / max(1, len(of) / 8.0)
        for lost, mark, size in ((False, "o", 7.0), (True, "X", 9.0)):
            chosen = [k for k, outcome in enumerate(of) if outcome.lost == lost]
            axis.plot(column + side[chosen], [max(of[k].off, MIN_DEVIATION_MM) for k in chosen], mark, color=COLOURS[name],
                      markersize=size, markeredgecolor="white", linestyle="none")
    axis.set(yscale="log", xlim=(-0.6, len(COLOURS) - 0.4), xticks=range(len(COLOURS)))
    axis.set_xticklabels(["planned", "TOPP-RA", "ours"], fontsize=10)
    axis.set_ylim(bottom=min(0.1, axis.get_ylim()[0]), top=max(200.0, axis.get_ylim()[1]))
    axis.yaxis.set_major_formatter(lambda value, column: f"{value:g}")
    axis.yaxis.set_minor_formatter("")
    axis.set_title("off the path [mm]\nx: lost", loc="left", fontsize=12)
    axis.grid(axis="y", color="0.9")


PANEL_PX = (240, 250)  # width and height
FRAME_RATE, SLOW_MOTION, END_PAUSE_S = 12, 3.0, 1.5  # frames per second; factor; s
VIEW = (140.0, -18.0, 1.75)  # azimuth, elevation [degrees], distance [m]
CENTRE_SHARES = (0.5, 0.5, 0.9)  # of the vector from the base to the middle of the path
TRAIL_STEP = 25  # samples
PATH_COLOUR = (0.6, 0.6, 0.6)


def write_movie(task: TimingTask, outcomes: Sequence[TimingResult], path: str | Path) -> None:
    """Write a GIF. Raises RneaError without matplotlib, and if MuJoCo cannot render."""
    arm, s = task.arm, np.linspace(0.0, task.fastest.route.path.length, 80)
    ahead = arm.tool_at(task.fastest.route.path(s)[0])
    centre = 0.5 * (ahead.min(axis=0) + ahead.max(axis=0)) * CENTRE_SHARES
    render = Renderer(arm.shapes, arm.robot.joint_names, arm.meshes, PANEL_PX, VIEW, centre)
    last = max(outcome.tracked.t[-1] for outcome in outcomes)
    times = np.arange(0.0, SLOW_MOTION * last + END_PAUSE_S, 1.0 / FRAME_RATE) / SLOW_MOTION

    def frame(axes: Any, k: int) -> None:
        axes.imshow(np.hstack([_panel(outcome, times[k]) for outcome in outcomes]))
        axes.set_axis_off()
        for column, outcome in enumerate(outcomes):
            tint, lost = COLOURS[outcome.timing], outcome.lost and times[k] >= outcome.tracked.t[-1]
            left = PANEL_PX[0] * (column + 0.04)
            axes.text(left, 2.0, SHORT_NAMES[outcome.timing], color=tint, fontsize=10, fontweight="bold", va="top")
            done = f"lost after {outcome.tracked.t[-1]:.2f} s" if lost else f"{min(times[k], outcome.duration):.2f} s"
            axes.text(left, PANEL_PX[1] - 2.0, done, color="#b00020" if lost else "0.3", fontsize=10, va="bottom")

    def _panel(outcome: TimingResult, t: float) -> np.ndarray:
        tracked = outcome.tracked
        now = min(int(np.searchsorted(tracked.t, t)), len(tracked.t) - 1)
        begun = int(np.searchsorted(tracked.t, 0.0))
        trail = arm.tool_at(tracked.q[np.unique([*range(begun, now, TRAIL_STEP), now])])
        lines = [Polyline(ahead, PATH_COLOUR, 0.006), Polyline(trail, _rgb(COLOURS[outcome.timing]), 0.009)]
        return render(tracked.q[now], lines, outcome.lost and t >= tracked.t[-1])

    size = (len(outcomes) * PANEL_PX[0] / 100.0, PANEL_PX[1] / 100.0)
    movie(path, size, frame, len(times), FRAME_RATE)


def _rgb(colour: str) -> tuple[float, ...]:
    """Return the colour "#rrggbb" as three numbers."""
    return tuple(int(colour[k:k + 2], 16) / 255.0 for k in (1, 3, 5))
