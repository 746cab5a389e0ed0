"""`rnea demo --scaling`: a trajectory twice too fast goes to scaling_node in another process; we interfere and check.

What comes back is held against the library: every sample inside the limits, exactly on the path, efforts to the last bit.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from .. import urdf_xml
from ..errors import RneaError
from ..robot import Robot
from . import scaling_plot
from .checks import Verdict
from .ending import ended
from .processes import explain, free_domain, processes, ros_environment, shared, signals
from .table import Table
from .task import Task, parameters, too_fast

NODES = ("scaling_node",)
PATIENCE = 60.0  # s
NO_ROS = "rnea demo --scaling needs ROS 2: {reason}. Without --scaling, `rnea demo --no-ros` needs none."
# pause at 30 % of the path, resume a second later; at 65 % slow to 0.4 of the speed, 0.8 s later back
ACTS = ((0.3, 0.0, "pause", 1.0), (0.3, 1.2, "resume", 1.0), (0.65, 0.0, "override", 0.4), (0.65, 0.8, "override", 1.0))
ROUNDING = 1e-6  # of a limit
NEAR = 1e-9  # rad, m; of the path


class Played(NamedTuple):
    """What was received: times t and places s (samples,), joints (samples, n), phases (samples,)."""

    t: np.ndarray
    s: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    tau: np.ndarray
    tau_rate: np.ndarray
    phase: np.ndarray
    override: np.ndarray


def run(args: argparse.Namespace) -> int:
    """Exit code 0 if every check passes, 1 if not or if the motion did not end."""
    if args.no_ros:
        raise RneaError("--scaling shows a node: it cannot be had with --no-ros")
    source = Path(args.urdf) if args.urdf else shared("urdf/seven_r.urdf")
    robot = Robot.from_urdf(source)
    if robot.n == 0:
        raise RneaError(f"{source} has no joints that move, so there is nothing to show")
    task = too_fast(robot)
    played = _listen(robot, urdf_xml.text(urdf_xml.read(source)[0]), task)
    if played is None:
        return 1
    verdicts = [inside(robot, task, played), on_path(task, played), same_as_library(robot, played), arrived(task, played)]
    how = (f"{len(played.t)} samples in {played.t[-1]:.2f} s, received from scaling_node over ROS 2; planned were "
           f"{task.times[-1]:.2f} s, the limits allow {task.fastest:.2f} s without pause and override")
    return ended(how, verdicts, "demo_scaling.png" if args.plot is None else args.plot,
                 lambda picture: scaling_plot.draw(robot, task, played, picture))


def _listen(robot: Robot, text: str, task: Task) -> Played | None:
    try:
        from ..nodes import scaling_monitor
    except ImportError as error:
        print(NO_ROS.format(reason=error), file=sys.stderr)
        return None
    domain, table = free_domain(), _Live(robot, task)
    settings = {"/**": {"ros__parameters": {"robot_description": text, "joint_limits": parameters(robot, task.limits)}}}
    with tempfile.TemporaryDirectory(prefix="rnea_demo_") as folder:
        with signals() as caught, ros_environment(domain, folder), processes(Path(folder), NODES, settings) as started:
            print(f"{robot.name}: scaling_node runs as process {started[0].pid}", flush=True)
            print(f"to look in from another terminal: export ROS_DOMAIN_ID={domain}\n", flush=True)
            heard = scaling_monitor.record(
                domain, scaling_monitor.trajectory(robot.joint_names, task.points, task.times),
                [scaling_monitor.Act(*act) for act in ACTS], PATIENCE, table.show,
                lambda: not caught and started[0].poll() is None)
        if caught:
            sys.exit(128 + caught[0])
        if not heard or heard[-1].phase != heard[-1].ENDED:
            explain(started, NODES, Path(folder), PATIENCE)
            return None
    fields = ("t", "s", "position", "velocity", "acceleration", "jerk", "effort", "effort_rate", "phase", "override_share")
    return Played(*(np.array([getattr(message, field) for message in heard]) for field in fields))


class _Live(Table):
    """The table of `rnea demo`, below a line about the motion."""

    def __init__(self, robot: Robot, task: Task):
        super().__init__(robot, sys.stdout)
        self._task = task

    def lines(self, message: Any) -> list[str]:
        limits = self._task.limits
        shown = SimpleNamespace(joint_names=message.joint_names, effort=message.effort, effort_rate=message.effort_rate,
                                effort_utilization=np.abs(message.effort) / limits.effort,
                                effort_rate_utilization=np.abs(message.effort_rate) / limits.effort_rate)
        phase = {1: "moving", 2: "paused", 3: "stopping", 4: "ended"}.get(message.phase, "")
        speed = "" if np.isnan(message.speed_scaling) else f", {message.speed_scaling:.0%} of the planned speed"
        head = (f"{message.t:5.2f} s  {phase} at {message.progress:.0%} of the path{speed}, {message.lateness:.2f} s late; "
                f"most used: {message.use:.1%} of {message.binding_limit.replace('_', ' ')} of {message.binding_joint}")
        return [head, *super().lines(shown)]


def inside(robot: Robot, task: Task, played: Played) -> Verdict:
    """Every sample is inside every limit: torques and rates by the library, from the positions that were received."""
    limits = task.limits
    tau, rate = robot.torque_and_rate(played.q, played.qd, played.qdd, played.qddd)
    used = {"torque": tau / limits.effort, "torque rate": rate / limits.effort_rate, "velocity": played.qd / limits.velocity}
    shares = {name: np.fmax.reduce(np.abs(share), axis=None, initial=0.0) for name, share in used.items()}
    worst = ", ".join(f"{name} {share:.2%}" for name, share in shares.items())
    return Verdict(max(shares.values()) <= 1.0 + ROUNDING, f"all samples inside the limits: at most {worst}")


def on_path(task: Task, played: Played) -> Verdict:
    away = float(np.abs(played.q - task.plan.path(played.s)[0]).max())
    return Verdict(away < NEAR, f"all samples on the path, to {away:.1e} rad (m); allowed {NEAR:g}")


def same_as_library(robot: Robot, played: Played) -> Verdict:
    expected = robot.dynamics(played.q, played.qd, played.qdd, played.qddd)
    wrong = np.count_nonzero((expected.tau != played.tau) | (expected.tau_rate != played.tau_rate))
    said = f"{played.tau.size} torques and their rates equal the library's to the last bit"
    return Verdict(not wrong, f"{wrong} of {played.tau.size} torques or rates differ from the library's" if wrong else said)


def arrived(task: Task, played: Played) -> Verdict:
    away = float(np.abs(played.q[-1] - task.points[-1]).max())
    rest = float(np.abs(played.qd[-1]).max())
    passed = away < NEAR and rest < NEAR and 2 in played.phase
    return Verdict(passed, f"paused, resumed, and at rest in the end, {away:.1e} rad (m) from the goal")
