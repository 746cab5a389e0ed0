"""The picture of a robot in MuJoCo: torques as dynamics_node says and as motors exert them, and the forces that touch it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..io.figures import color_scale, picture
from ..robots.protocol import AnyRobot
from .plant_checks import exerted
from .plot import STYLE
from .recording import DemoRecording, Heard, paired

DOTS = 80  # torques of MuJoCo drawn for each motor
LOADED = "#f0e6d2"  # while the link is touched


class Group(NamedTuple):
    """Motors that are drawn together, by number, and the link whose wrench is drawn beside them."""

    title: str
    motors: Sequence[int]
    link: str


def draw(groups: Sequence[Group], robot: AnyRobot, recording: DemoRecording, heard: Heard | None, path: str | os.PathLike[str],
         source: str) -> None:
    """Write the picture to `path`; its ending gives the format. Raises RneaError without matplotlib."""
    assert heard is not None
    links = [group.link for group in groups]
    recording, (states, *wrenches) = paired(recording, heard["states"], *(heard[link] for link in links))
    true, t = exerted(states, robot.n), recording.seconds
    dots = slice(None, None, max(1, len(t) // DOTS))
    with picture(path, (12.0, 1.2 + 2.0 * len(groups)), dpi=130, settings=STYLE) as figure:
        axes = figure.subplots(len(groups), 2, sharex=True, squeeze=False, width_ratios=(1.7, 1.0))
        for group, wrench, (torque, force) in zip(groups, wrenches, axes):
            for colour, motor in zip(color_scale(len(group.motors)), group.motors):
                torque.plot(t, recording.tau[:, motor], color=colour, linewidth=1.3, label=robot.joint_names[motor])
                torque.plot(t[dots], true[dots, motor], ".", color="black", markersize=3.5)
            for colour, axis, values in zip(color_scale(3), "xyz", wrench[:, :3].T):
                force.plot(t, values, color=colour, linewidth=1.1, label=axis)
            touched = np.abs(wrench[:, :3]).max(axis=1) > 0.0
            for panel in (torque, force):
                panel.fill_between(t, 0, 1, where=touched, color=LOADED, transform=panel.get_xaxis_transform(), zorder=0,
                                   linewidth=0.0)
                panel.margins(x=0.01)
            torque.set_ylabel(f"{group.title}\n[N m]")
            torque.legend(frameon=False, fontsize=7, loc="upper left", ncol=len(group.motors))
            force.set_ylabel("[N]")
            force.legend(frameon=False, fontsize=7, loc="upper left", ncol=3)
        axes[0, 0].set_title("torques; dots: MuJoCo's motors", loc="left", fontsize=10)
        axes[0, 1].set_title("force on the link, in its frame; shaded: contact", loc="left", fontsize=10)
        for panel in axes[-1]:
            panel.set_xlabel("time [s]")
        figure.suptitle(f"{robot.name} in MuJoCo: {source}", fontsize=11, x=0.01, ha="left")
