"""`rnea demo --scaling`: a trajectory twice too fast goes to scaling_node in another process; we interfere and check."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..cli import robots
from ..cli.outcome import Outcome
from ..errors import RneaError
from ..model import urdf, urdf_reader
from ..robots.robot import Robot
from . import scaling_plot
from .checks import same_as_library
from .ending import ended
from .processes import demo_domain, explain, own, processes, ros_environment, shared, signals
from .scaling_checks import Played, arrived, inside, on_path
from .table import LiveTable
from .task import Task, parameters, too_fast

NODES = ("scaling_node",)
PATIENCE = 60.0  # s
NO_ROS = "rnea demo --scaling needs ROS 2: {reason}. Without --scaling, `rnea demo --no-ros` needs none."
# pause at 30 % of the path, resume after most of a second at rest; at 65 % slow to 0.4 of the speed, 0.8 s later back
ACTS = ((0.3, 0.0, "pause", 1.0), (0.3, 0.8, "resume", 1.0), (0.65, 0.0, "override", 0.4), (0.65, 0.8, "override", 1.0))


def run(args: argparse.Namespace) -> Outcome | int:
    """Exit code 0 if every check passes, 1 if not or if the motion did not end."""
    if args.no_ros:
        raise RneaError("--scaling shows a node: it cannot be had with --no-ros")
    source = own(args.urdf) if args.urdf else shared("urdf/seven_r.urdf")
    description = urdf_reader.read(source)
    robot = Robot(urdf.load(description))
    if robot.n == 0:
        raise RneaError(f"{source} has no joints that move, so there is nothing to show")
    robots.check_masses(robot)
    task = too_fast(robot)
    played = _listen(robot, urdf_reader.text(description.robot), task)
    if played is None:
        return 1
    verdicts = [inside(robot, task, played), on_path(task, played),
                same_as_library(robot, played.motion, played.tau, played.tau_rate), arrived(task, played)]
    how = (f"{len(played.t)} samples in {played.t[-1]:.2f} s, received from scaling_node over ROS 2; planned were "
           f"{task.times[-1]:.2f} s, the limits allow {task.fastest:.2f} s without pause and override")
    return ended(how, verdicts, args.plot, lambda picture: scaling_plot.draw(robot, task, played, picture),
                 {"robot": robot.name, "samples": len(played.t), "seconds": played.t[-1], "planned": task.times[-1],
                  "fastest": task.fastest})


def _listen(robot: Robot, text: str, task: Task) -> Played | None:
    try:
        from .nodes import scaling_recorder
    except ImportError as error:
        print(NO_ROS.format(reason=error), file=sys.stderr)
        return None
    domain, table = demo_domain(), _Live(robot, task)
    settings = {"/**": {"ros__parameters": {"robot_description": text, **parameters(robot, task.limits)}}}
    with tempfile.TemporaryDirectory(prefix="rnea_demo_") as folder:
        with signals() as caught, ros_environment(domain, folder), processes(Path(folder), NODES, settings) as started:
            print(f"{robot.name}: scaling_node runs as process {started[0].pid}", flush=True)
            print(f"to inspect from another terminal: export ROS_DOMAIN_ID={domain}\n", flush=True)
            received = scaling_recorder.record(
                domain, scaling_recorder.trajectory(robot.joint_names, task.points, task.times),
                [scaling_recorder.Act(*act) for act in ACTS], PATIENCE, table.show,
                lambda: not caught and started[0].poll() is None)
        if caught:
            sys.exit(128 + caught[0])
        if not received or received[-1].phase != received[-1].ENDED:
            explain(started, NODES, Path(folder), PATIENCE)
            return None
    fields = ("t", "s", "position", "velocity", "acceleration", "jerk", "effort", "effort_rate", "phase", "override_share")
    return Played(*(np.array([getattr(message, field) for message in received]) for field in fields))


class _Live(LiveTable):
    """The table of `rnea demo`, below a line about the motion."""

    def __init__(self, robot: Robot, task: Task):
        super().__init__(robot.joint_names, robot.joint_types, sys.stdout)
        self._task = task

    def lines(self, message: Any) -> list[str]:
        limits = self._task.limits
        rate_shares = np.abs(message.effort_rate) / limits.effort_rate
        shown = SimpleNamespace(joint_names=message.joint_names, effort=message.effort, effort_rate=message.effort_rate,
                                effort_utilization=np.abs(message.effort) / limits.effort,
                                effort_rate_utilization=rate_shares, commanded_effort_rate_utilization=rate_shares)
        phase = {1: "moving", 2: "paused", 3: "stopping", 4: "ended"}.get(message.phase, "")
        speed = "" if np.isnan(message.speed_scaling) else f", {message.speed_scaling:.0%} of the planned speed"
        limit = f"{message.binding_limit.replace('_', ' ')} of {message.binding_joint}"
        head = (f"{message.t:5.2f} s  {phase} at {message.progress:.0%} of the path{speed}, {message.delay:.2f} s late; "
                f"nearest limit: {message.utilization:.1%} of {limit}")
        return [head, *super().lines(shown)]
