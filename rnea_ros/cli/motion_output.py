"""What `rnea plan` and `rnea retime` have in common: options, samples of a motion as CSV, its use of the limits, progress."""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Iterator

import numpy as np

from ..errors import InputError
from ..model.robot_file import robot_file
from ..model.tree import Limits
from ..output import figures
from ..recordings import motion_csv, plots
from ..recordings.plots import TimedMotion
from ..robots.declared_joints import joint_forces, limited
from ..robots.robot import GRAVITY, Robot

BLOCKS = ("q", "qd", "qdd", "qddd", "tau", "tau_rate")
LIMITED = {"velocity": "qd", "acceleration": "qdd", "jerk": "qddd", "effort": "tau", "effort_rate": "tau_rate"}
QUIET, PAUSE = 1.0, 0.5  # s of work before progress is shown, and between two lines of it
MOST_ROWS = 10_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="OUT.csv", required=True,
                        help=f"columns t and {', '.join(f'{block}_<joint>' for block in BLOCKS)}")
    parser.add_argument("--limits", metavar="LIMITS.yaml",
                        help="joint_limits as in ros2_control, and max_effort_rate, over those of the URDF")
    parser.add_argument("--rate", type=float, default=1000.0, metavar="HZ", help="rows per second of OUT.csv, default 1000")
    parser.add_argument("--plot", metavar="OUT.png", help="also draw the motion beside its limits")
    parser.add_argument("--friction", action="store_true", help="use the URDF's damping and friction")
    parser.add_argument("--gravity", nargs=3, type=float, default=GRAVITY, metavar=("X", "Y", "Z"),
                        help="acceleration of gravity in the root link's frame [m/s^2], default 0 0 -9.81")
    parser.add_argument("--backend", choices=("llvm", "python", "reference"), default="llvm")


def robot_and_limits(args: argparse.Namespace) -> tuple[Robot, Limits, dict[str, float]]:
    """The robot, its limits, and the largest internal joint forces by joint."""
    if not (args.rate > 0.0 and math.isfinite(args.rate)):
        raise InputError(f"--rate is {args.rate:g}; a number of rows per second above zero is needed")
    for path in filter(None, (args.output, args.plot)):  # before the work, which may take a minute
        if not os.path.isdir(os.path.dirname(path) or ".") or os.path.isdir(path):
            raise InputError(f"{path}: cannot be written: " + ("it is a folder" if os.path.isdir(path) else "no such folder"))
    if args.plot:
        figures.check_format(args.plot)
    robot = Robot.from_urdf(args.urdf, args.base, args.backend, args.gravity, args.friction, allow_xacro=True)
    if not args.limits:
        return robot, robot.limits, {}
    file = robot_file.draft(args.limits).alone("--limits", ("limits",), ("limits",)).checked(robot.model)
    return robot, limited(robot.model, file).limits, joint_forces(file)


def write(args: argparse.Namespace, robot: Robot, motion: TimedMotion, limits: Limits) -> str:
    """CSV and picture. Returns what was written, and how near the samples come to each limit, in words."""
    count = math.ceil(motion.duration * args.rate * (1.0 - 1e-9))  # steps; the last one may be shorter
    if count > MOST_ROWS:
        raise InputError(f"--rate {args.rate:g} makes {count} rows of {motion.duration:.6g} s; {MOST_ROWS} are the most")
    t = np.append(np.arange(count) / args.rate, motion.duration)
    largest = dict.fromkeys(BLOCKS, np.zeros(robot.n))

    def rows() -> Iterator[np.ndarray]:
        for k in range(0, len(t), motion_csv.CHUNK):
            part = t[k:k + motion_csv.CHUNK]
            state = motion(part)
            blocks = (*state, *robot.torque_and_rate(*state))
            largest.update({name: np.fmax(largest[name], np.abs(block).max(axis=0)) for name, block in zip(BLOCKS, blocks)})
            yield np.column_stack((part, *blocks))

    header = ["t", *(f"{block}_{joint}" for block in BLOCKS for joint in robot.joint_names)]
    motion_csv.write(args.output, header, rows(), lambda rows: None)
    if args.plot:
        plots.draw(args.plot, robot, motion, limits)
    files = ", ".join(filter(None, (args.output, args.plot)))
    return "\n".join([f"{len(t)} rows -> {files}", *_use(robot, limits, largest)])


def _use(robot: Robot, limits: Limits, largest: dict[str, np.ndarray]) -> Iterator[str]:
    """For each quantity with a known limit, the joint that comes closest to it."""
    for quantity, block in LIMITED.items():
        limit = getattr(limits, quantity)
        if np.isfinite(limit).any():
            share = np.where(np.isfinite(limit), largest[block] / limit, 0.0)
            k = int(share.argmax())
            yield f"{quantity.replace('_', ' '):<12} at most {100.0 * share[k]:6.2f} % of its limit, {robot.joint_names[k]}"


class SolverLine:
    """A line on stderr that appears only when the work takes longer than a moment; on a terminal it stays one line."""

    def __init__(self) -> None:
        self.start = self.last = time.monotonic()
        self.shown = False

    def __call__(self, text: str) -> None:
        now = time.monotonic()
        if now - self.start > QUIET and now - self.last > PAUSE:
            self.last, self.shown = now, True
            if sys.stderr.isatty():
                print(f"\r{text:<110}", end="", file=sys.stderr, flush=True)
            else:
                print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.shown and sys.stderr.isatty():
            print(file=sys.stderr)
