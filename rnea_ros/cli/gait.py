"""`rnea gait`: predicts how a human of given stature and mass walks at a given speed."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..gait import picture
from ..gait.skeleton import LOWER_BODY, NEUTRAL, Human
from ..gait.step import Step
from ..gait.walk import Stride, Walk, instants, predict_walk
from ..gait.walker import Walker
from ..io import csv_files
from ..planning.problem import SolverProgress
from . import output_files
from .outcome import Outcome
from .progress import ProgressLine

DEFAULT, PERSON = Step(), Human()
FORCES = [f"{side}_floor_{kind}_{axis}" for side in ("right", "left") for kind in ("force", "moment") for axis in "xyz"]
KEPT = 1e-3  # beyond a limit: rad, m, or a share of strength; the thesis's tolerance
TOES = ["right_toes_moment_y", "left_toes_moment_y"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FOLDER", required=True,
                        help="gets human.urdf, stride.csv, walk.png, skeleton.png, report.txt")
    parser.add_argument("--speed", type=float, default=DEFAULT.speed, metavar="M/S", help=f"default {DEFAULT.speed:g}")
    parser.add_argument("--step", type=float, default=DEFAULT.length, metavar="M", help=f"length, default {DEFAULT.length:g}")
    parser.add_argument("--stature", type=float, default=PERSON.stature, metavar="M", help=f"default {PERSON.stature:g}")
    parser.add_argument("--mass", type=float, default=PERSON.mass, metavar="KG", help=f"default {PERSON.mass:g}")
    parser.add_argument("--sex", choices=("male", "female"), default=PERSON.sex, help="whose segment table")
    parser.add_argument("--human", action="store_true",
                        help="beyond the thesis: forces do not jump from step to step, load moves steadily from foot "
                        "to foot, the pelvis stays upright")
    parser.add_argument("--elastic", action="store_true",
                        help="beyond the thesis: ligaments and slack muscles bear what they can, at no effort")
    parser.add_argument("--control-points", type=int, metavar="N", help="of each joint; default 6, with --human 8")
    parser.add_argument("--legs", action="store_true", help="a small model: trunk and arms rigid")
    parser.add_argument("--animation", action="store_true", help="also walk.gif")


def run(args: argparse.Namespace) -> Outcome:
    human = Human(args.stature, args.mass, args.sex, LOWER_BODY if args.legs else NEUTRAL)
    step = Step(args.speed, args.step, smooth=args.human, transfer=args.human, upright=args.human, elastic=args.elastic)
    output_files.check_folder(folder := Path(args.output))
    (folder / "human.urdf").write_text(human.urdf, encoding="utf-8")
    picture.skeleton(folder / "skeleton.png", human)
    watch, start = ProgressLine(pause=1.0), time.monotonic()
    control_points = (8 if args.human else 6) if args.control_points is None else args.control_points
    walked = predict_walk(Walker(human), step, control_points, report=lambda now: watch(_said(now)))
    watch.close()
    for note in walked.plan.notes:
        print(f"note: {note}", file=sys.stderr)
    took, figures = time.monotonic() - start, walked.report()
    write(folder / "stride.csv", walked)
    picture.walk(folder / "walk.png", walked)
    if args.animation:
        picture.animation(folder / "walk.gif", walked)
    asked = instants(step, control_points)
    beyond = max(walked.excess(asked).values())
    text = "\n".join(f"{name:<36} {value:.5g}" for name, value in figures.items())
    (folder / "report.txt").write_text(text + "\n", encoding="utf-8")
    kept = beyond <= KEPT
    lines = [text, f"{walked.plan.duration:.4g} s a step, {walked.walker.n} coordinates, {walked.plan.iterations} iterations "
             f"in {took:.1f} s -> {folder}",
             f"limits {'kept' if kept else 'EXCEEDED'} at the {len(asked)} instants where they are asked for, within "
             f"{max(beyond, 0.0):.1e}, and between them within {max(figures['excess'], 0.0):.1e} (rad, m, share of strength)"]
    return Outcome("\n".join(lines), {**figures, "step": walked.plan.duration, "coordinates": walked.walker.n,
                                      "iterations": walked.plan.iterations, "seconds": took, "limits_kept": kept,
                                      "beyond": beyond, "folder": folder}, int(not kept))


def write(path: Path, walked: Walk) -> None:
    """stride.csv: t; q_, qd_, qdd_, tau_ of every coordinate [rad, N m]; the floor's force and moment on each foot, about the
    world's origin, and what of it the toes bear, a moment about y [N, N m]; the zero-moment point [m]."""
    stride, names = walked.stride(), walked.walker.joint_names
    blocks = [f"{block}_{name}" for block in ("q", "qd", "qdd", "tau") for name in names]
    header = ["t", *blocks, *FORCES, *TOES, "pressure_x", "pressure_y"]
    csv_files.write_csv(str(path), header, _rows(stride), lambda rows: None)


def _rows(stride: Stride) -> Iterator[np.ndarray]:
    yield np.column_stack((stride.t, stride.q, stride.qd, stride.qdd, stride.tau, stride.floor.reshape(len(stride.t), -1),
                           stride.toes, stride.pressure))


def _said(now: SolverProgress) -> str:
    return f"{now.stage}: iteration {now.iteration}, constraints within {max(now.violation, 0.0):.1e} of their size"
