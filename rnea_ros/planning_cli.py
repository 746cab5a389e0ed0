"""`rnea plan ROBOT.urdf --from Q .. --to Q ..`: the fastest motion between two poses, or the best trade of time and effort."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator

import numpy as np

from . import limits_file, motion_csv, planning_plot
from .errors import InputError
from .planning.result import Plan
from .planning.settings import Progress, Settings
from .robot import GRAVITY, Robot
from .robot_planning import plan_motion

BLOCKS = ("q", "qd", "qdd", "qddd", "tau", "tau_rate")
DEFAULT = Settings()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Beside the robot description, which `rnea` adds to every command."""
    parser.add_argument("--from", dest="start", nargs="+", type=float, required=True, metavar="Q",
                        help="where it rests at the start, one number for each joint, order as in `rnea model` [rad, m]")
    parser.add_argument("--to", dest="goal", nargs="+", type=float, required=True, metavar="Q", help="and at the end")
    parser.add_argument("-o", "--output", metavar="OUT.csv", required=True,
                        help=f"columns t and {', '.join(f'{block}_<joint>' for block in BLOCKS)}")
    parser.add_argument("--limits", metavar="LIMITS.yaml",
                        help="joint_limits as in ros2_control, and max_effort_rate, max_joint_force; over those of the URDF")
    parser.add_argument("--weights", nargs=2, type=float, default=(1.0, 0.0), metavar=("TIME", "EFFORT"),
                        help="what is minimised: integral of TIME + EFFORT * sum of squared torques; default 1 0, the fastest")
    parser.add_argument("--duration", nargs="+", type=float, metavar="S", help="given, or shortest and longest [s]")
    parser.add_argument("--rate", type=float, default=1000.0, metavar="HZ", help="rows per second, default 1000")
    parser.add_argument("--plot", metavar="OUT.png", help="also draw the motion beside its limits")
    parser.add_argument("--degree", type=int, default=DEFAULT.degree, help=f"of the B-splines, default {DEFAULT.degree}")
    parser.add_argument("--spans", type=int, default=DEFAULT.spans, help=f"to begin with, default {DEFAULT.spans}")
    parser.add_argument("--refinements", type=int, default=DEFAULT.refinements,
                        help=f"halvings of spans where the plan asks for it, at most; default {DEFAULT.refinements}")
    parser.add_argument("--best-of", type=int, default=1, metavar="N", help="plans from N different guesses; default 1")
    parser.add_argument("--friction", action="store_true", help="use the URDF's damping and friction")
    parser.add_argument("--gravity", nargs=3, type=float, default=GRAVITY, metavar=("X", "Y", "Z"),
                        help="acceleration of gravity in the root link's frame [m/s^2], default 0 0 -9.81")


def run(args: argparse.Namespace) -> int:
    if not (args.rate > 0.0 and math.isfinite(args.rate)):
        raise InputError(f"--rate is {args.rate:g}; a number of rows per second above zero is needed")
    robot = Robot.from_urdf(args.urdf, args.base, gravity=args.gravity, friction=args.friction)
    limits, forces = limits_file.read(args.limits, robot) if args.limits else (robot.limits, {})
    settings = Settings(degree=args.degree, spans=args.spans, refinements=args.refinements, best_of=args.best_of)
    watch = Watch()
    plan = plan_motion(robot, args.start, args.goal, time=args.weights[0], effort=args.weights[1], limits=limits,
                       joint_force=forces, duration=args.duration, settings=settings, report=watch)
    watch.close()
    t = np.append(np.arange(0.0, plan.duration * (1.0 - 1e-9), 1.0 / args.rate), plan.duration)
    header = ["t", *(f"{block}_{joint}" for block in BLOCKS for joint in robot.joint_names)]
    motion_csv.write(args.output, header, _rows(robot, plan, t), lambda rows: None)
    if args.plot:
        planning_plot.motion(args.plot, robot, plan, limits)
    for note in plan.notes:
        print(f"note: {note}", file=sys.stderr)
    print(_summary(plan, len(t)) + f" -> {args.output}" + (f", {args.plot}" if args.plot else ""))
    return 0


def _rows(robot: Robot, plan: Plan, t: np.ndarray) -> Iterator[np.ndarray]:
    for k in range(0, len(t), motion_csv.CHUNK):
        part = t[k:k + motion_csv.CHUNK]
        state = plan(part)
        yield np.column_stack((part, *state, *robot.torque_and_rate(*state)))


def _summary(plan: Plan, rows: int) -> str:
    used = ", ".join(f"{name} {100.0 * (1.0 + excess):.4g} %" for name, excess in plan.excess.items()
                     if name != "position")
    return (f"{plan.duration:.6g} s, objective {plan.objective:.6g}, {plan.control_points} control points, {plan.iterations} "
            f"iterations; at most used of the limits: {used or 'nothing'}; {rows} rows")


class Watch:
    """A line on stderr that appears only when the work takes longer than a second."""

    def __init__(self) -> None:
        self.start = self.last = time.monotonic()
        self.shown = False

    def __call__(self, now: Progress) -> None:
        moment = time.monotonic()
        if moment - self.start > 1.0 and moment - self.last > 0.5:
            self.last, self.shown = moment, True
            text = (f"{now.stage}: iteration {now.iteration}, {now.duration:.5g} s, {now.control_points} control points, "
                    f"limits within {max(now.violation, 0.0):.1e}")
            print(f"\r{text:<100}" if sys.stderr.isatty() else text, end="" if sys.stderr.isatty() else "\n", file=sys.stderr,
                  flush=True)

    def close(self) -> None:
        if self.shown and sys.stderr.isatty():
            print(file=sys.stderr)
