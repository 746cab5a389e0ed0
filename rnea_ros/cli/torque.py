"""`rnea torque ROBOT.urdf MOTION.csv`: torque and torque rate of a recorded or planned motion."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..errors import InputError, some
from ..motion.limit_use import LimitUse, Peaks, own_limits
from ..output import figures
from ..recordings import motion_csv
from ..robots.closed_loops import ClosedLoopRobot
from ..robots.elastic import ElasticRobot
from ..robots.inputs.platform_motion import PlatformMotion
from ..robots.parallel import ParallelRobot
from ..robots.protocol import AnyRobot
from ..robots.robot import Robot
from ..robots.springs import SpringRobot
from . import robots
from .progress import ProgressLine

SHOWN = 3  # limits


def add_arguments(parser: argparse.ArgumentParser) -> None:
    robots.add_arguments(parser)
    parser.add_argument("motion", metavar="MOTION.csv", help="columns t, q_<joint>, and qd_, qdd_, qddd_ where known")
    parser.add_argument("-o", "--output", metavar="OUT.csv", required=True, help="columns t, tau_<joint>, tau_rate_<joint>")
    motion_csv.add_window(parser)
    parser.add_argument("--plot", metavar="OUT.png", help="also draw the curves")
    robots.add_dynamics(parser)


def run(args: argparse.Namespace) -> int:
    robot = robots.served(args, Robot, ClosedLoopRobot, ElasticRobot, ParallelRobot, SpringRobot)
    torque_and_rate = asked(robot)
    progress = ProgressLine()
    motion = motion_csv.read(args.motion, robot.joint_names, args.window, robot.joint_types)
    if motion.ignored:
        print(f"columns not used: {some(motion.ignored, 6, quoted=True)}", file=sys.stderr)
    results: list[np.ndarray] = []
    limits, drives = (own_limits(robot, None), robot.drive_limits) if isinstance(robot, Robot) else (robot.limits, ())
    peaks = Peaks(LimitUse(robot.joint_names, limits, drives))

    def chunks() -> Iterator[np.ndarray]:
        for k in range(0, len(motion.t), motion_csv.CHUNK):
            part = slice(k, k + motion_csv.CHUNK)
            pair = torque_and_rate(motion.q[part], motion.qd[part], motion.qdd[part], motion.qddd[part])
            peaks.see(motion.t[part], *pair, motion.qd[part], motion.qdd[part], motion.qddd[part])
            results.append(np.hstack(pair))
            yield np.column_stack((motion.t[part], results[-1]))

    header = ["t"] + [f"{kind}_{name}" for kind in ("tau", "tau_rate") for name in robot.joint_names]
    motion_csv.write(args.output, header, chunks(), lambda rows: progress.samples("computed and written", rows, len(motion.t)))
    progress.close()
    if args.plot:
        tau, tau_rate = np.hsplit(np.concatenate(results), 2)
        units = ["N" if kind == "prismatic" else "N m" for kind in robot.joint_types]
        figures.torques(args.plot, motion.t, tau, tau_rate, robot.joint_names, units, robot.limits.effort,
                        deviations(robot, motion))
    print(f"{len(motion.t)} samples of {robot.n} joints -> {args.output}" + (f", {args.plot}" if args.plot else ""))
    for line in nearest(peaks):
        print(line)
    if motion.how:
        print(motion_csv.said(motion.estimated, motion.how))
    return 0


def deviations(robot: AnyRobot, motion: motion_csv.RecordedMotion) -> np.ndarray | None:
    """Standard deviations of torques and rates (2, samples, n), NaN where the motion's are not known; None without any."""
    if motion.deviation is None or not isinstance(robot, Robot):
        return None
    known = np.isfinite(motion.deviation).all(axis=(0, 2))
    found = np.full((2, *motion.q.shape), np.nan)
    found[:, known] = robot.torque_deviations(motion.q[known], motion.qd[known], motion.qdd[known], motion.qddd[known],
                                              motion.deviation[:, known])
    return found


def nearest(peaks: Peaks) -> list[str]:
    """The SHOWN limits that are used most, and how many are exceeded."""
    found = [f"{'' if k else 'limits':<7}{100.0 * peak.share:7.1f} % of the {peak.words} at t = {peak.t:.4g} s"
             for k, peak in enumerate(peaks.all()[:SHOWN])]
    if beyond := sum(peak.share > 1.0 for peak in peaks.all()):
        found.append(f"{beyond} of {len(peaks.all())} known limits {'is' if beyond == 1 else 'are'} exceeded")
    return found


def asked(robot: AnyRobot) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """torque_and_rate of q, qd, qdd, qddd (samples, n), part after part. InputError where these do not say enough."""
    if isinstance(robot, ElasticRobot) and robot.order > 3:
        raise InputError(f"the torque rate of robot '{robot.name}' needs {robot.order} derivatives of q, for joints "
                         f"{some(robot.elastic_joints)} are elastic; a recording has three. rnea_ros.load gives it in Python")
    if isinstance(robot, ClosedLoopRobot | ParallelRobot):
        return _following(robot)
    return robot.torque_and_rate


def _following(robot: ClosedLoopRobot | ParallelRobot) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """Loops and platform are followed from one part of the motion to the next."""
    pose: Any = None  # of all joints of the tree, or of the platform

    def torque_and_rate(q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, qddd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        nonlocal pose
        before = pose
        if isinstance(robot, ParallelRobot):
            moved = robot.platform_motion(q, qd, qdd, qddd, guess=before)
            pose = PlatformMotion(moved.position[-1], moved.rotation[-1])
        else:
            pose = robot.close(q, guess=before)[-1]
        return robot.torque_and_rate(q, qd, qdd, qddd, guess=before)

    return torque_and_rate
