"""What `rnea plan` and `rnea retime` have in common: options, samples of a motion as CSV, its use of the limits."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..io import csv_files, figures
from ..io.figures import TimedMotion
from ..model.tree import Limits
from ..motion.limit_use import LimitUse, Peaks, added_rate, own_limits
from ..motion.warmth import Warming, thermal_drives
from ..robots.link_side import level, link_side
from ..robots.protocol import AnyRobot
from . import output_files, reading, robots
from .outcome import Outcome

BLOCKS = ("q", "qd", "qdd", "qddd", "tau", "tau_rate")
MOST_ROWS = 10_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="OUT.csv", required=True,
                        help=f"columns t and {', '.join(f'{block}_<joint>' for block in BLOCKS)}")
    parser.add_argument("--limits", metavar="LIMITS.yaml",
                        help="robot file with limits over those of URDF and --robot-file: max_effort_rate (of the whole "
                             "joint torque), max_commanded_effort_rate (of the torque without what the robot's controller "
                             "adds), max_velocity, ...")
    parser.add_argument("--limits-share", nargs=2, type=float, default=(1.0, 1.0), metavar=("TORQUE", "RATE"),
                        help="shares of the limits of torque and torque rate to plan with, as `rnea margin` finds them; "
                             "default 1 1")
    parser.add_argument("--rate", type=float, default=1000.0, metavar="HZ", help="rows per second of OUT.csv, default 1000")
    parser.add_argument("--plot", metavar="OUT.png", help="also draw the motion beside its limits")
    robots.add_dynamics(parser)


def robot_and_limits(args: argparse.Namespace,
                     recording: Path | None = None) -> tuple[AnyRobot, Limits, dict[str, float]]:
    """The robot, of any kind, its limits, and the largest internal joint forces by joint. recording: may describe the
    robot."""
    if not (args.rate > 0.0 and math.isfinite(args.rate)):
        raise InputError(f"--rate is {args.rate:g}; a number of rows per second above zero is needed")
    output_files.check_files(args.output, args.plot)
    if args.plot:
        figures.check_format(args.plot)
    robot = robots.loaded(args, reading.described(args, recording) if recording else None)
    link_side(robot, level(robot))  # or says why it cannot be moved along a path
    return robot, *robots.limits(robot, args)


def write(args: argparse.Namespace, moved: AnyRobot, motion: TimedMotion, limits: Limits) -> Outcome:
    """CSV and picture. What was written, and how near the samples come to each limit."""
    count = math.ceil(motion.duration * args.rate * (1.0 - 1e-9))  # steps; the last one may be shorter
    if count > MOST_ROWS:
        raise InputError(f"--rate {args.rate:g} makes {count} rows of {motion.duration:.6g} s; {MOST_ROWS} are the most")
    t, robot = np.append(np.arange(count) / args.rate, motion.duration), link_side(moved, level(moved))
    peaks = Peaks(LimitUse.of(robot, own_limits(robot, limits)))

    def rows() -> Iterator[np.ndarray]:
        for k in range(0, len(t), csv_files.CHUNK):
            part = t[k:k + csv_files.CHUNK]
            state = motion(part)
            blocks = (*state, *robot.torque_and_rate(*state))
            warming.see(part, blocks[4])
            peaks.see(part, *blocks[4:], *blocks[:4])
            yield np.column_stack((part, *blocks))

    warming = Warming(thermal_drives(moved), robot.joint_names)
    header = ["t", *(f"{block}_{joint}" for block in BLOCKS for joint in robot.joint_names)]
    csv_files.write_csv(args.output, header, rows(), lambda rows: None)
    if args.plot:
        figures.draw_motion(args.plot, robot, motion, limits, added_rate(robot))
    files = [path for path in (args.output, args.plot) if path]
    wide = max([14, *(len(peak.quantity) for peak in peaks.of_quantities())])
    used = [f"{peak.quantity.replace('_', ' '):<{wide}} at most {100.0 * peak.share:6.2f} % of its limit, {peak.owner}"
            for peak in peaks.of_quantities()]
    warmth = warming.warmth()
    return Outcome("\n".join([f"{len(t)} rows -> {', '.join(files)}", *used, *warmth.words]), {
        "duration": motion.duration, "rows": len(t), "files": files,
        "limits": [peak._asdict() for peak in peaks.of_quantities()], "thermal_load": warmth._asdict()})
