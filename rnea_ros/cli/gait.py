"""`rnea gait`: prediction of the walk of a human with given stature, mass and speed."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..gait import picture
from ..gait.skeleton import LOWER_BODY, NEUTRAL, Human
from ..gait.step import WalkingStep
from ..gait.walk import Stride, Walk, instants, predict_walk
from ..gait.walker import Walker
from ..io import csv_files
from ..planning.problem import SolverProgress
from .output import CommandResult, ProgressLine, check_folder

DEFAULT_STEP, DEFAULT_HUMAN = WalkingStep(), Human()
FORCES = [f"{side}_floor_{kind}_{axis}" for side in ("right", "left") for kind in ("force", "moment") for axis in "xyz"]
LIMIT_TOL = 1e-3  # rad, m, or share of strength; tolerance of the thesis
TOES = ["right_toes_moment_y", "left_toes_moment_y"]


def add_gait_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rnea gait`."""
    parser.add_argument("-o", "--output", metavar="FOLDER", required=True,
                        help="folder for human.urdf, stride.csv, walk.png, skeleton.png, report.txt")
    parser.add_argument("--speed", type=float, default=DEFAULT_STEP.speed, metavar="M/S",
                        help=f"walking speed [m/s], default {DEFAULT_STEP.speed:g}")
    parser.add_argument("--step", type=float, default=DEFAULT_STEP.length, metavar="M",
                        help=f"step length [m], default {DEFAULT_STEP.length:g}")
    parser.add_argument("--stature", type=float, default=DEFAULT_HUMAN.stature, metavar="M",
                        help=f"stature [m], default {DEFAULT_HUMAN.stature:g}")
    parser.add_argument("--mass", type=float, default=DEFAULT_HUMAN.mass, metavar="KG", help=
                        f"mass [kg], default {DEFAULT_HUMAN.mass:g}")
    parser.add_argument("--sex", choices=("male", "female"), default=DEFAULT_HUMAN.sex, help="table of body segments")
    parser.add_argument("--human", action="store_true",
                        help="beyond the thesis: contact forces are continuous from step to step, load moves steadily from "
                        "foot to foot, the pelvis stays upright")
    parser.add_argument("--elastic", action="store_true",
                        help="beyond the thesis: ligaments and passive muscles carry load without effort")
    parser.add_argument("--control-points", type=int, metavar="N",
                        help="control points of each joint; default 6, with --human 8")
    parser.add_argument("--legs", action="store_true", help="a small model with rigid trunk and arms")
    parser.add_argument("--animation", action="store_true", help="also write walk.gif")


def run_gait(args: argparse.Namespace) -> CommandResult:
    """Run `rnea gait`; return its result."""
    human = Human(args.stature, args.mass, args.sex, LOWER_BODY if args.legs else NEUTRAL)
    step = WalkingStep(args.speed, args.step, smooth=args.human, transfer=args.human, upright=args.human, elastic=args.elastic)
    check_folder(folder := Path(args.output))
    (folder / "human.urdf").write_text(human.urdf, encoding="utf-8")
    picture.skeleton(folder / "skeleton.png", human)
    watch, start = ProgressLine(pause=1.0), time.monotonic()
    control_points = (8 if args.human else 6) if args.control_points is None else args.control_points
    walked = predict_walk(Walker(human), step, control_points, report=lambda now: watch(_progress_text(now)))
    watch.close()
    for note in walked.plan.notes:
        print(f"note: {note}", file=sys.stderr)
    took, figures = time.monotonic() - start, walked.report()
    write_stride(folder / "stride.csv", walked)
    picture.walk(folder / "walk.png", walked)
    if args.animation:
        picture.animation(folder / "walk.gif", walked)
    asked = instants(step, control_points)
    beyond = max(walked.excess(asked).values())
    text = "\n".join(f"{name:<36} {value:.5g}" for name, value in figures.items())
    (folder / "report.txt").write_text(text + "\n", encoding="utf-8")
    kept = beyond <= LIMIT_TOL
    lines = [text, f"{walked.plan.duration:.4g} s a step, {walked.walker.n} coordinates, {walked.plan.iterations} iterations "
             f"in {took:.1f} s -> {folder}",
             f"limits {'kept' if kept else 'EXCEEDED'} at the {len(asked)} constrained instants, within "
             f"{max(beyond, 0.0):.1e}, and between them within {max(figures['excess'], 0.0):.1e} (rad, m, share of strength)"]
    return CommandResult("\n".join(lines), {**figures, "step": walked.plan.duration, "coordinates": walked.walker.n,
                                      "iterations": walked.plan.iterations, "seconds": took, "limits_kept": kept,
                                      "beyond": beyond, "folder": folder}, int(not kept))


def write_stride(path: Path, walked: Walk) -> None:
    """Write stride.csv: t; q_, qd_, qdd_, tau_ of every coordinate [rad, N m]; force and moment of the floor on each foot
    about the world's origin, and the share of the toes as a moment about y [N, N m]; the zero-moment point [m].
    """
    stride, names = walked.stride(), walked.walker.joint_names
    blocks = [f"{block}_{name}" for block in ("q", "qd", "qdd", "tau") for name in names]
    header = ["t", *blocks, *FORCES, *TOES, "pressure_x", "pressure_y"]
    csv_files.write_csv(str(path), header, _rows(stride), lambda rows: None)


def _rows(stride: Stride) -> Iterator[np.ndarray]:
    yield np.column_stack((stride.t, stride.q, stride.qd, stride.qdd, stride.tau, stride.floor.reshape(len(stride.t), -1),
                           stride.toes, stride.pressure))


def _progress_text(now: SolverProgress) -> str:
    return f"{now.stage}: iteration {now.iteration}, constraints within {max(now.violation, 0.0):.1e} of their size"
