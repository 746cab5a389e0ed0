"""`rnea retime ROBOT.urdf TRAJECTORY.csv`: the same path in the shortest time that the limits allow."""

from __future__ import annotations

import argparse
import sys

import numpy as np

from ..errors import InputError, some
from ..motion.retime import retime_motion
from ..recordings import motion_csv
from . import motion_output, robots
from .progress import ProgressLine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    robots.add_arguments(parser)
    parser.add_argument("trajectory", metavar="TRAJECTORY.csv",
                        help="columns t, q_<joint>; qd_<joint> tells where it stops on its way")
    motion_output.add_arguments(parser)
    parser.add_argument("--tolerance", type=float, default=1e-6, metavar="RAD",
                        help="how far points may lie off the path [rad, m], default 1e-6; more, for noisy recordings")


def run(args: argparse.Namespace) -> int:
    robot, limits, _forces = motion_output.robot_and_limits(args)
    t, points, velocities = read(args.trajectory, robot.joint_names)
    watch = ProgressLine()
    motion = retime_motion(robot, points, velocities, limits, args.tolerance,
                           lambda what, seconds: watch(f"{what}: {seconds:.6g} s so far"))
    watch.close()
    for note in motion.notes:
        print(f"note: {note}", file=sys.stderr)
    written = motion_output.write(args, robot, motion, limits)
    print(f"{t[-1] - t[0]:.6g} s -> {motion.duration:.6g} s through {motion.route.points} points, {written}")
    return 0


def read(path: str, joint_names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """t (samples,), increasing, q (samples, n), and qd where the file has it."""
    t, known, ignored = motion_csv.known_columns(path, joint_names)
    if ignored:
        print(f"columns not used: {some(ignored, 6, quoted=True)}", file=sys.stderr)
    if len(t) < 2:
        raise InputError(f"{path}: one row; a path needs two points at least")
    late = np.flatnonzero(np.diff(t) <= 0.0)
    if len(late):
        k = int(late[0])
        raise InputError(f"{path}: times must increase, but row {k + 3} has t = {t[k + 1]:g} after {t[k]:g}")
    return t, known["q"], known.get("qd")
