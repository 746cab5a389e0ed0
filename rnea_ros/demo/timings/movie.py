"""The film of `rnea demo --plant`: one path, three timings side by side, each until it ends or is lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...io.figures import movie
from ...sim.rendering import Polyline, Renderer
from .picture import COLOURS, SHORT
from .trials import Outcome, Task

PANEL = (240, 250)  # pixels, width and height
RATE, SLOWER, STAY = 12, 3.0, 1.5  # pictures per second; times slower than life; s, at the end
VIEW = (140.0, -18.0, 1.75)  # azimuth, elevation [degrees], distance [m]
TOWARDS = (0.5, 0.5, 0.9)  # shares of the way from the base to the middle of the path
EVERY = 25  # samples of a trail
PATH = (0.6, 0.6, 0.6)


def film(task: Task, outcomes: Sequence[Outcome], path: str | Path) -> None:
    """Write a GIF. Raises RneaError without matplotlib, and where MuJoCo cannot draw."""
    arm, s = task.arm, np.linspace(0.0, task.fastest.route.path.length, 80)
    ahead = arm.tool_at(task.fastest.route.path(s)[0])
    centre = 0.5 * (ahead.min(axis=0) + ahead.max(axis=0)) * TOWARDS
    render = Renderer(arm.shapes, arm.robot.joint_names, arm.meshes, PANEL, VIEW, centre)
    last = max(outcome.tracked.t[-1] for outcome in outcomes)
    times = np.arange(0.0, SLOWER * last + STAY, 1.0 / RATE) / SLOWER

    def frame(axes: Any, k: int) -> None:
        axes.imshow(np.hstack([_panel(outcome, times[k]) for outcome in outcomes]))
        axes.set_axis_off()
        for place, outcome in enumerate(outcomes):
            tint, lost = COLOURS[outcome.timing], outcome.lost and times[k] >= outcome.tracked.t[-1]
            left = PANEL[0] * (place + 0.04)
            axes.text(left, 2.0, SHORT[outcome.timing], color=tint, fontsize=10, fontweight="bold", va="top")
            done = f"lost after {outcome.tracked.t[-1]:.2f} s" if lost else f"{min(times[k], outcome.duration):.2f} s"
            axes.text(left, PANEL[1] - 2.0, done, color="#b00020" if lost else "0.3", fontsize=10, va="bottom")

    def _panel(outcome: Outcome, t: float) -> np.ndarray:
        tracked = outcome.tracked
        now = min(int(np.searchsorted(tracked.t, t)), len(tracked.t) - 1)
        begun = int(np.searchsorted(tracked.t, 0.0))
        trail = arm.tool_at(tracked.q[np.unique([*range(begun, now, EVERY), now])])
        lines = [Polyline(ahead, PATH, 0.006), Polyline(trail, _numbers(COLOURS[outcome.timing]), 0.009)]
        return render(tracked.q[now], lines, outcome.lost and t >= tracked.t[-1])

    size = (len(outcomes) * PANEL[0] / 100.0, PANEL[1] / 100.0)
    movie(path, size, frame, len(times), RATE)


def _numbers(colour: str) -> tuple[float, ...]:
    """Of "#rrggbb"."""
    return tuple(int(colour[k:k + 2], 16) / 255.0 for k in (1, 3, 5))
