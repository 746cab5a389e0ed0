"""The picture of `rnea demo --scaling`: planned and scaled s(t), torques and torque rates as shares of their limits."""

from __future__ import annotations

import os

import numpy as np

from ..io.figures import color_scale, picture
from ..robots.robot import Robot
from .plot import STYLE
from .scaling_checks import Played
from .task import Task, motion

PLANNED, LIMIT = "0.6", "#c0392b"
BEYOND = 2.4  # shares of a limit that fit on the picture


def draw(robot: Robot, task: Task, played: Played, path: str | os.PathLike) -> None:
    """Write the picture to `path`; its ending gives the format. Raises RneaError without matplotlib."""
    t = np.linspace(0.0, task.times[-1], 1001)
    planned = robot.dynamics(*motion(task.plan, t))
    with picture(path, (10, 8), dpi=110, settings=STYLE) as figure:
        axes = figure.subplots(3, 1, sharex=True, height_ratios=(1.1, 1.0, 1.0))
        length = task.plan.path.length
        axes[0].plot(t, task.plan.law(t)[0] / length, color=PLANNED, linestyle="--", label="planned, twice too fast")
        axes[0].plot(played.t, played.s / length, color="#1f4e79", linewidth=1.8, label="scaled, as received")
        axes[0].set_title("place on the path, s / length", loc="left", fontsize=10)
        axes[0].legend(frameon=False, loc="lower right")
        _shade(axes, played)
        limits = task.limits
        sets = (("torque / its limit", planned.tau / limits.effort, played.tau / limits.effort),
                ("torque rate / its limit", planned.tau_rate / limits.effort_rate, played.tau_rate / limits.effort_rate))
        colours = color_scale(robot.n)
        for axis, (title, wanted, used) in zip(axes[1:], sets):
            axis.plot(t, np.clip(wanted, -BEYOND, BEYOND), color=PLANNED, linewidth=0.8, linestyle="--")
            for joint in range(robot.n):
                axis.plot(played.t, used[:, joint], color=colours[joint], linewidth=1.2, label=robot.joint_names[joint])
            for limit in (-1.0, 1.0):
                axis.axhline(limit, color=LIMIT, linewidth=1.0)
            peak = np.abs(wanted).max()
            axis.set_title(f"{title}: the plan would take up to {peak:.1f} of one, scaled at most "
                           f"{np.nanmax(np.abs(used)):.3f}", loc="left", fontsize=10)
            axis.set_ylim(-min(BEYOND, 1.1 * max(peak, 1.0)), min(BEYOND, 1.1 * max(peak, 1.0)))
        axes[1].legend(frameon=False, fontsize=8, ncol=1, loc="center left", bbox_to_anchor=(1.0, 0.5))
        axes[2].set_xlabel("time [s]")
        for axis in axes:
            axis.margins(x=0.01)
            axis.grid(axis="x", color="0.92")
        figure.suptitle(f"{robot.name}: a trajectory planned twice too fast, as scaling_node executes it", x=0.01, ha="left",
                        fontsize=11)


def _shade(axes, played: Played) -> None:
    """When it was paused or overridden."""
    for wished, colour, word in ((played.phase == 2, "0.85", "paused"), (played.override < 1.0, "#f6ead0", "override")):
        if wished.any():
            start, end = played.t[wished][[0, -1]]
            for axis in axes:
                axis.axvspan(start, end, color=colour, zorder=0, linewidth=0)
            axes[0].text((start + end) / 2.0, 0.98, word, ha="center", va="top", fontsize=8,
                         transform=axes[0].get_xaxis_transform())
