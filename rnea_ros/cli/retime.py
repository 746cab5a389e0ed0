"""`rnea retime ROBOT.urdf TRAJECTORY.csv`: the same path in the shortest time that the limits allow."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..io import files
from ..io.recording import ReadingOptions, RecordingRequest
from ..motion.retime import retime_motion
from ..motion.warmth import repeatable
from ..robots.link_side import level
from . import motion_output, reading, robots
from .outcome import Outcome
from .progress import ProgressLine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    robots.add_arguments(parser)
    parser.add_argument("recordings", nargs="*", metavar="TRAJECTORY",
                        help="a CSV with columns t, q_<joint>; qd_<joint> tells where it stops on its way; or a ROS 2 bag")
    reading.add_arguments(parser)
    motion_output.add_arguments(parser)
    parser.add_argument("--tolerance", type=float, default=1e-6, metavar="RAD",
                        help="how far points may lie off the path [rad, m], default 1e-6; more, for noisy recordings")
    parser.add_argument("--repeated", nargs="?", type=float, const=0.0, metavar="PAUSE",
                        help="slow the motion just so that it may be repeated for ever, with a pause of so many seconds, "
                             "default 0, after each: no winding becomes too warm (continuous_current, thermal_time_constant)")


def run(args: argparse.Namespace) -> Outcome:
    path = reading.one_recording(args)
    robot, limits, _forces = motion_output.robot_and_limits(args, path)
    how = reading.asked(args)
    t, points, velocities = read(path, robot.joint_names, how, robot.joint_types)
    files.check_angle_unit(path, how, robot, points)
    watch = ProgressLine()
    motion = retime_motion(robot, points, velocities, limits.share(*args.limits_share), args.tolerance,
                           lambda what, seconds: watch(f"{what}: {seconds:.6g} s so far"), base=level(robot))
    watch.close()
    if args.repeated is not None:
        motion = repeatable(robot, motion, args.repeated)
    for note in motion.notes:
        print(f"note: {note}", file=sys.stderr)
    written = motion_output.write(args, robot, motion, limits)
    return Outcome(f"{t[-1] - t[0]:.6g} s -> {motion.duration:.6g} s through {motion.route.points} points, {written.text}",
                   {"duration_before": t[-1] - t[0], "points": motion.route.points, "notes": list(motion.notes),
                    **written.data})


def read(path: str | Path, joint_names: tuple[str, ...],
         how: ReadingOptions = ReadingOptions(),
         joint_types: tuple[str, ...] = ()) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """t (samples,), increasing, q (samples, n), and qd where the file has it."""
    known = reading.read(path, RecordingRequest(joint_names, reading=how, joint_types=joint_types))
    t = known["t"]
    if len(t) < 2:
        raise InputError(f"{path}: one row; a path needs two points at least")
    late = np.flatnonzero(np.diff(t) <= 0.0)
    if len(late):
        k = int(late[0])
        raise InputError(f"{path}: times must increase, but row {k + 3} has t = {t[k + 1]:.13g} after {t[k]:.13g}")
    return t, known["q"], known.get("qd")
