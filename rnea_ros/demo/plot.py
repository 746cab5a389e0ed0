"""The demo's picture: torque and torque rate of each joint, and difference quotients of the one on the other."""

from __future__ import annotations

import os

import numpy as np

from ..output.figures import picture
from ..robots.robot import Robot
from .checks import DemoRecording, difference_quotients

ROWS = 8  # joints that fit on a page
DOTS = 60  # difference quotients drawn for each joint
STYLE = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
TORQUE, RATE, DOT = "#1f4e79", "#c0392b", "#2b2b2b"


def draw(robot: Robot, recording: DemoRecording, path: str | os.PathLike, source: str) -> None:
    """Write the picture to `path`; its ending gives the format. Raises RneaError without matplotlib."""
    joints = range(min(robot.n, ROWS))
    with picture(path, (11, 1.1 + 1.45 * len(joints)), dpi=150, settings=STYLE) as figure:
        axes = figure.subplots(len(joints), 2, sharex=True, squeeze=False)
        for row, joint in zip(axes, joints):
            _draw_joint(row, robot, recording, joint)
        _label(figure, axes)
        more = "" if robot.n <= ROWS else f", the first {ROWS} of {robot.n} joints"
        figure.suptitle(f"{robot.name}{more}: {source}", fontsize=11, x=0.01, ha="left")


def _draw_joint(row, robot: Robot, recording: DemoRecording, joint: int) -> None:
    t, prismatic = recording.seconds, robot.joint_types[joint] == "prismatic"
    unit = "N" if prismatic else "N m"
    inner, quotients = difference_quotients(recording)
    dots = slice(None, None, max(1, len(inner) // DOTS))
    torque, rate = row
    torque.plot(t, recording.tau[:, joint], color=TORQUE, linewidth=1.6)
    rate.plot(t, _gaps_at_jumps(recording, joint), color=RATE, linewidth=1.6, label="exact, from the model")
    rate.plot(t[inner[dots]], quotients[dots, joint], ".", color=DOT, markersize=3.5, zorder=3,
              label="difference quotient of the torque")
    torque.set_ylabel(f"{robot.joint_names[joint]}\n[{unit}]")
    rate.set_ylabel(f"[{unit}/s]")
    for axis in row:
        axis.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
        axis.margins(x=0.01, y=0.12)
        axis.grid(axis="x", color="0.92")


def _gaps_at_jumps(recording: DemoRecording, joint: int) -> np.ndarray:
    """The rate, with a gap where it jumps: a line across would show values that it never has."""
    rate = recording.tau_rate[:, joint].copy()
    jumps = np.abs(np.diff(recording.qddd[:, joint])) > 0.25 * np.ptp(recording.qddd[:, joint])
    rate[1:][jumps] = np.nan
    return rate


def _label(figure, axes) -> None:
    axes[0, 0].set_title("torque (force of prismatic joints)", loc="left", fontsize=10, color=TORQUE)
    axes[0, 1].set_title("its rate, which jumps where the motion's jerk does", loc="left", fontsize=10, color=RATE)
    for axis in axes[-1]:
        axis.set_xlabel("time [s]")
    figure.align_ylabels(axes)
    handles, labels = axes[0, 1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper right", ncol=2, frameon=False, fontsize=9)
