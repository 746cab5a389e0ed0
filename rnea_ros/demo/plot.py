"""The demo's picture: torque and torque rate of each joint, and difference quotients of the one on the other."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import numpy as np

from ..io.figures import picture
from ..robots import kinds
from ..robots.inputs.base_state import BaseState
from ..robots.protocol import AnyRobot
from . import machine_picture
from .checks import difference_quotients
from .processes import shared
from .recording import DemoRecording
from .robot_demo import RobotDemo

ROWS = 12  # joints that fit on a page
MACHINE = 6.0  # inches, of the picture of the machine
DOTS = 60  # difference quotients drawn for each joint
STYLE = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
TORQUE, RATE, DOT = "#1f4e79", "#c0392b", "#2b2b2b"


def draw(robot: AnyRobot, recording: DemoRecording, path: str | os.PathLike, source: str, demo: RobotDemo) -> None:
    """Write the picture to `path`; its ending gives the format. Raises RneaError without matplotlib."""
    joints = range(min(robot.n, ROWS))
    size = np.array([11.0, 1.1 + 1.45 * len(joints)])
    if demo.instants:
        size = np.maximum(size + [MACHINE, 0.0], [0.0, MACHINE])
    with picture(path, tuple(size), dpi=150, settings=STYLE) as figure:
        curves = figure
        if demo.instants:
            left, curves = figure.subfigures(1, 2, width_ratios=(MACHINE, size[0] - MACHINE))
            _draw_machine(left.add_subplot(projection="3d"), robot, recording, demo)
        axes = curves.subplots(len(joints), 2, sharex=True, squeeze=False)
        for row, joint in zip(axes, joints):
            _draw_joint(row, robot, recording, joint)
            _scale(row, recording, joint, demo.settled)
        _label(curves, axes, recording)
        figure.legend(*axes[0, 1].get_legend_handles_labels(), loc="outside lower right", ncol=2, frameon=False,
                      fontsize=9)
        more = "" if robot.n <= ROWS else f", the first {ROWS} of {robot.n} joints"
        figure.suptitle(f"{robot.name}{more}: {source}", fontsize=11, x=0.01, ha="left")


def _draw_machine(axis, robot: AnyRobot, recording: DemoRecording, demo: RobotDemo) -> None:
    """At the demo's instants: the last one is drawn in full, those before pale."""
    drawn = machine_picture.shapes(shared(demo.urdf).read_text(encoding="utf-8"))
    samples = np.searchsorted(recording.seconds, demo.instants).clip(max=len(recording.q) - 1)
    base: dict[str, Any] = {"base": BaseState()} if kinds.has_moving_base(robot) else {}
    machine_picture.draw(axis, drawn, [partial(robot.link_pose, q=q, **base) for q in recording.q[samples]])
    axis.view_init(*demo.view)


def _draw_joint(row, robot: AnyRobot, recording: DemoRecording, joint: int) -> None:
    t, prismatic = recording.seconds, robot.joint_types[joint] == "prismatic"
    unit = "N" if prismatic else "N m"
    inner, quotients = difference_quotients(recording)
    dots = slice(None, None, max(1, len(inner) // DOTS))
    torque, rate = row
    torque.plot(t, recording.tau[:, joint], color=TORQUE, linewidth=1.6)
    rate.plot(t, _gaps_at_jumps(recording, joint), color=RATE, linewidth=1.6, label="exact, from the model")
    rate.plot(t[inner[dots]], quotients[dots, joint], ".", color=DOT, markersize=3.5, zorder=3,
              label="finite differences of the torque")
    torque.set_ylabel(f"{robot.joint_names[joint]}\n[{unit}]")
    rate.set_ylabel(f"[{unit}/s]")
    for axis in row:
        axis.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
        axis.margins(x=0.01, y=0.12)
        axis.grid(axis="x", color="0.92")


def _scale(row, recording: DemoRecording, joint: int, settled: float) -> None:
    """To what comes after an instant [s], if that is less."""
    later = recording.seconds >= settled
    if settled and later.any():
        for axis, values in zip(row, (recording.tau, recording.tau_rate)):
            low, high = values[later, joint].min(), values[later, joint].max()
            axis.set_ylim(low - 0.4 * (high - low), high + 0.4 * (high - low))


def _gaps_at_jumps(recording: DemoRecording, joint: int) -> np.ndarray:
    """The rate, with a gap where it jumps: a line across would show values that it never has."""
    rate = recording.tau_rate[:, joint].copy()
    rate[1:][_jumps(recording)[:, joint]] = np.nan
    return rate


def _jumps(recording: DemoRecording) -> np.ndarray:
    return np.asarray(np.abs(np.diff(recording.qddd, axis=0)) > 0.25 * np.ptp(recording.qddd, axis=0))


def _label(figure, axes, recording: DemoRecording) -> None:
    jumps = ", which jumps where the motion's jerk does" if _jumps(recording).any() else ""
    axes[0, 0].set_title("torque (force of prismatic joints)", loc="left", fontsize=10, color=TORQUE)
    axes[0, 1].set_title(f"torque rate{jumps}", loc="left", fontsize=10, color=RATE)
    for axis in axes[-1]:
        axis.set_xlabel("time [s]")
    figure.align_ylabels(axes)
