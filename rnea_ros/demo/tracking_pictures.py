"""Pictures of tracked motions: tool path, commanded torque rates, and a movie of several motions side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..io.figures import movie
from ..sim.scene import Polyline, Renderer
from ..sim.tracking import CONTROL_PERIOD_S, TrackingResult
from .arms import Arm

LINE_COLOUR, LIMIT_COLOUR, LOST_COLOUR = "0.75", "#444444", "#b00020"
PANEL_PX = (240, 250)  # width and height of a motion in the movie
FRAME_RATE = 12  # frames per second
TRAIL_STEP = 25  # samples
CENTRE_SHARES = (0.5, 0.5, 0.9)  # of the vector from the base to the middle of the tool path


class ShownMotion(NamedTuple):
    """Tracked motion with its name and colour."""

    name: str
    colour: str
    tracked: TrackingResult


def rate_shares(arm: Arm, tracked: TrackingResult) -> np.ndarray:
    """Return the commanded torque rates (samples - 1, n) as shares of their limits."""
    return np.diff(tracked.commanded, axis=0) / CONTROL_PERIOD_S / arm.robot.limits.effort_rate


def plane_projection(line: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that projects points (count, 3) to (2, count) in the plane in which a line is longest."""
    middle = line.mean(axis=0)
    axes = np.linalg.svd(line - middle, full_matrices=False)[2][:2]
    return lambda points: ((points - middle) @ axes.T).T


def draw_tool_path(axis: Any, arm: Arm, line: np.ndarray, shown: ShownMotion, off: str) -> None:
    """Draw the tool path of a motion over the intended line (count, 3). off : text on the distance between both."""
    project, tracked = plane_projection(line), shown.tracked
    axis.plot(*project(line), color=LINE_COLOUR, linewidth=7.0, solid_capstyle="round")
    went = project(arm.tool_at(tracked.q[tracked.t >= 0.0]))
    axis.plot(*went, color=shown.colour, linewidth=2.0)
    axis.plot(*went[:, :1], "o", color="black", markersize=6)
    axis.plot(*went[:, -1:], "X" if tracked.lost else "s", color=LOST_COLOUR if tracked.lost else "black",
              markersize=11 if tracked.lost else 6, markeredgecolor="white")
    axis.set_title(shown.name, loc="left", color=shown.colour, fontsize=12, fontweight="bold")
    axis.set_aspect("equal", adjustable="datalim")
    axis.text(0.02, 0.02, f"lost after {tracked.t[-1]:.2f} s" if tracked.lost else off, transform=axis.transAxes, fontsize=11,
              color=LOST_COLOUR if tracked.lost else shown.colour)
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(False)


def draw_rates(axis: Any, arm: Arm, shown: ShownMotion, most: float) -> None:
    """Draw the commanded torque rate of the joint that is nearest to its limit, in limits. most : largest value shown."""
    rate, tracked = rate_shares(arm, shown.tracked), shown.tracked
    worst = np.take_along_axis(rate, np.abs(rate).argmax(axis=1)[:, None], axis=1)[:, 0]
    axis.axhspan(-1.0, 1.0, color="0.93", linewidth=0.0)
    axis.plot(tracked.t[1:], np.clip(worst, -most, most), color=shown.colour, linewidth=0.9)
    for end in (-1.0, 1.0):
        axis.axhline(end, color=LIMIT_COLOUR, linewidth=1.2, linestyle="--")
    axis.set(ylim=(-1.05 * most, 1.05 * most), xlabel="time [s]")


class MovieOptions(NamedTuple):
    """Options of a movie.

    slow_motion : factor; end_pause : of the last frame [s]; trail : time of the tool path behind the tool [s]
    view        : azimuth, elevation [degrees], distance [m]
    """

    slow_motion: float
    end_pause: float
    view: tuple[float, float, float]
    trail: float = np.inf


def write_movie(arm: Arm, line: np.ndarray, motions: Sequence[ShownMotion], caption: Callable[[int, float], tuple[str, bool]],
                path: str | Path, options: MovieOptions) -> None:
    """Write a GIF of motions side by side with their tool paths, over the intended line (count, 3).

    caption : function of (number of the motion, time [s]) -> text, and whether it reports a violation
    Raises RneaError without matplotlib, and if MuJoCo cannot render.
    """
    centre = 0.5 * (line.min(axis=0) + line.max(axis=0)) * CENTRE_SHARES
    render = Renderer(arm.shapes, arm.robot.joint_names, arm.meshes, PANEL_PX, options.view, centre)
    last = max(shown.tracked.t[-1] for shown in motions)
    times = np.arange(0.0, options.slow_motion * last + options.end_pause, 1.0 / FRAME_RATE) / options.slow_motion

    def panel(shown: ShownMotion, t: float) -> np.ndarray:
        tracked = shown.tracked
        now = min(int(np.searchsorted(tracked.t, t)), len(tracked.t) - 1)
        begun = int(np.searchsorted(tracked.t, max(0.0, tracked.t[now] - options.trail)))
        trail = arm.tool_at(tracked.q[np.unique([*range(begun, now, TRAIL_STEP), now])])
        rgb = tuple(int(shown.colour[k:k + 2], 16) / 255.0 for k in (1, 3, 5))
        lines = [Polyline(line, (0.6, 0.6, 0.6), 0.006), Polyline(trail, rgb, 0.009)]
        return render(tracked.q[now], lines, tracked.lost and t >= tracked.t[-1])

    def frame(axes: Any, k: int) -> None:
        axes.imshow(np.hstack([panel(shown, times[k]) for shown in motions]))
        axes.set_axis_off()
        for number, shown in enumerate(motions):
            left, (text, violates) = PANEL_PX[0] * (number + 0.04), caption(number, times[k])
            if shown.tracked.lost and times[k] >= shown.tracked.t[-1]:
                text, violates = f"lost after {shown.tracked.t[-1]:.2f} s", True
            axes.text(left, 2.0, shown.name, color=shown.colour, fontsize=10, fontweight="bold", va="top")
            axes.text(left, PANEL_PX[1] - 2.0, text, color=LOST_COLOUR if violates else "0.3", fontsize=9, va="bottom")

    movie(path, (len(motions) * PANEL_PX[0] / 100.0, PANEL_PX[1] / 100.0), frame, len(times), FRAME_RATE)
