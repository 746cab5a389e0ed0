"""`rnea gait`: prediction of how a human of given stature and mass walks, or lifts a box."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..gait import picture
from ..gait.lift import Lift, Lifter, LiftMotion, LiftTask, lift_instants, predict_lift
from ..gait.muscles import AGE_GROUPS, MuscleStrength
from ..gait.skeleton import LOWER_BODY, NEUTRAL, Human
from ..gait.walk import Stride, Walk, WalkingStep, instants, predict_walk
from ..gait.walker import Walker
from ..io import csv_files
from ..planning.problem import SolverProgress
from .output import CommandResult, ProgressLine, check_folder

DEFAULT_STEP, DEFAULT_HUMAN, DEFAULT_LIFT = WalkingStep(), Human(), LiftTask()
WALK_OPTIONS = ("speed", "step", "human", "elastic", "legs")
LIFT_OPTIONS = ("box_mass", "box_size", "start", "goal", "duration", "stance", "max_moment", "max_compression", "period",
                "hours")
PERIOD, HOURS = 10.0, 8.0  # of repeated lifts [s], [h]
FORCES = [f"{side}_floor_{kind}_{axis}" for side in ("right", "left") for kind in ("force", "moment") for axis in "xyz"]
LIMIT_TOL = 1e-3  # rad, m, or share of strength; tolerance of the thesis
TOES = ["right_toes_moment_y", "left_toes_moment_y"]


def add_gait_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rnea gait`."""
    parser.add_argument("--task", choices=("walk", "lift"), default="walk", help="task of the human; default walk")
    parser.add_argument("-o", "--output", metavar="FOLDER", required=True,
                        help="folder for human.urdf, stride.csv or lift.csv, walk.png or lift.png, skeleton.png, report.txt")
    parser.add_argument("--stature", type=float, default=DEFAULT_HUMAN.stature, metavar="M",
                        help=f"stature [m], default {DEFAULT_HUMAN.stature:g}")
    parser.add_argument("--mass", type=float, default=DEFAULT_HUMAN.mass, metavar="KG", help=
                        f"mass [kg], default {DEFAULT_HUMAN.mass:g}")
    parser.add_argument("--sex", choices=("male", "female"), default=DEFAULT_HUMAN.sex, help="table of body segments")
    parser.add_argument("--muscles", metavar="GROUP_OR_CSV",
                        help="also limit torques by the strength at each joint angle and velocity, in addition to the "
                             f"constant strengths: {', '.join(AGE_GROUPS)} (Anderson et al. 2007: hip, knee, ankle), or a CSV "
                             "file with the columns joint, direction, c1 to c6")
    parser.add_argument("--control-points", type=int, metavar="N",
                        help="control points of each joint; default 6, with --human and lifting 8")
    parser.add_argument("--animation", action="store_true", help="also write walk.gif or lift.gif")
    walk = parser.add_argument_group("walking")
    walk.add_argument("--speed", type=float, metavar="M/S", help=f"walking speed [m/s], default {DEFAULT_STEP.speed:g}")
    walk.add_argument("--step", type=float, metavar="M", help=f"step length [m], default {DEFAULT_STEP.length:g}")
    walk.add_argument("--human", action="store_true",
                      help="beyond the thesis: contact forces are continuous from step to step, the load shifts steadily from "
                           "foot to foot, the pelvis stays upright")
    walk.add_argument("--elastic", action="store_true",
                      help="beyond the thesis: ligaments and passive muscles carry load without effort")
    walk.add_argument("--legs", action="store_true", help="a small model with rigid trunk and arms")
    lift, d = parser.add_argument_group("lifting"), DEFAULT_LIFT
    lift.add_argument("--box-mass", type=float, metavar="KG", help=f"mass of the box [kg], default {d.box_mass:g}")
    lift.add_argument("--box-size", type=float, nargs=3, metavar=("WIDTH", "DEPTH", "HEIGHT"),
                      help=f"size of the box, held at both sides at half its height [m], default {_texts(d.box_size)}")
    lift.add_argument("--from", dest="start", type=float, nargs=2, metavar=("AHEAD", "HEIGHT"),
                      help="initial position of the hands, ahead of the ankles and above the floor [m], default "
                      + _texts(d.start))
    lift.add_argument("--to", dest="goal", type=float, nargs=2, metavar=("AHEAD", "HEIGHT"),
                      help=f"final position of the hands [m], default {_texts(d.goal)}")
    lift.add_argument("--duration", type=float, metavar="S", help=f"duration of the lift [s], default {d.duration:g}")
    lift.add_argument("--stance", type=float, metavar="M", help="distance between the ankles [m], default that of the hips")
    lift.add_argument("--max-moment", type=float, metavar="NM", help="largest moment at L5/S1 [N m], default unlimited")
    lift.add_argument("--max-compression", type=float, metavar="N",
                      help="largest compression of the disc L5/S1 [N], default unlimited; NIOSH: 3400")
    lift.add_argument("--period", type=float, metavar="S",
                      help=f"time between lifts in the prediction of fatigue, rest included [s], default {PERIOD:g}")
    lift.add_argument("--hours", type=float, metavar="H", help="duration of the work in that prediction [h], default "
                                                               f"{HOURS:g}")


def _texts(values: Iterable[float]) -> str:
    return " ".join(f"{value:g}" for value in values)


def run_gait(args: argparse.Namespace) -> CommandResult:
    """Run `rnea gait`; return its result."""
    others = LIFT_OPTIONS if args.task == "walk" else WALK_OPTIONS
    if misplaced := [name for name in others if getattr(args, name) not in (None, False)]:
        option = {"start": "from", "goal": "to"}.get(misplaced[0], misplaced[0].replace("_", "-"))
        raise InputError(f"--{option} is not an option of --task {args.task}; leave it out, or choose the other task")
    return run_walk(args) if args.task == "walk" else run_lift(args)


def run_walk(args: argparse.Namespace) -> CommandResult:
    """Predict a walk; write its files."""
    human = Human(args.stature, args.mass, args.sex, LOWER_BODY if args.legs else NEUTRAL)
    muscles = MuscleStrength.of(human, args.muscles) if args.muscles else None
    step = WalkingStep(DEFAULT_STEP.speed if args.speed is None else args.speed,
                       DEFAULT_STEP.length if args.step is None else args.step,
                       smooth=args.human, transfer=args.human, upright=args.human, elastic=args.elastic)
    check_folder(folder := Path(args.output))
    (folder / "human.urdf").write_text(human.urdf, encoding="utf-8")
    picture.skeleton(folder / "skeleton.png", human)
    watch, start = ProgressLine(pause=1.0), time.monotonic()
    control_points = (8 if args.human else 6) if args.control_points is None else args.control_points
    walked = predict_walk(Walker(human, muscles=muscles), step, control_points, report=lambda now: watch(_progress_text(now)))
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


def run_lift(args: argparse.Namespace) -> CommandResult:
    """Predict a lift; write its files."""
    person = Human(args.stature, args.mass, args.sex)
    muscles = MuscleStrength.of(person, args.muscles) if args.muscles else None
    given: dict[str, Any] = {name: getattr(args, name) for name in LIFT_OPTIONS[:-2] if getattr(args, name) is not None}
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    task = LiftTask(**fields)
    period, hours = (default if value is None else value for value, default in ((args.period, PERIOD), (args.hours, HOURS)))
    if not (period >= task.duration and 0.0 < hours <= 1000.0):
        raise InputError(f"period and hours are {period:g} s and {hours:g} h; a period of at least the duration, "
                         f"{task.duration:g} s, and more than 0 up to 1000 hours are allowed")
    check_folder(folder := Path(args.output))
    lifter = Lifter(person, task, muscles)
    (folder / "human.urdf").write_text(lifter.walker.human.urdf, encoding="utf-8")
    picture.skeleton(folder / "skeleton.png", person)
    watch, start = ProgressLine(pause=1.0), time.monotonic()
    control_points = 8 if args.control_points is None else args.control_points
    lifted = predict_lift(lifter, control_points, report=lambda now: watch(_progress_text(now)))
    watch.close()
    for note in lifted.plan.notes:
        print(f"note: {note}", file=sys.stderr)
    took, figures = time.monotonic() - start, lifted.report()
    write_lift(folder / "lift.csv", lifted)
    picture.lift(folder / "lift.png", lifted, period, hours)
    if args.animation:
        picture.lift_animation(folder / "lift.gif", lifted)
    fatigue = fatigue_table(lifted, period, hours)
    beyond = lifted.excess(lift_instants(control_points))
    kept = max(beyond.values()) <= LIMIT_TOL
    text = "\n".join([*(f"{name:<36} {value:.5g}" for name, value in figures.items()), "",
                      *fatigue_lines(fatigue, period, hours)])
    (folder / "report.txt").write_text(text + "\n", encoding="utf-8")
    worst = max(*beyond.values(), 0.0)
    lines = [text, "", f"{task.duration:.4g} s, {len(lifter.names)} coordinates, {lifted.plan.iterations} iterations in "
             f"{took:.1f} s -> {folder}",
             f"limits {'kept' if kept else 'EXCEEDED'} at the constrained instants, within {worst:.1e}, and "
             f"between them within {max(figures['excess'], 0.0):.1e} (rad, m, shares of strength, weight and lumbar limit)"]
    return CommandResult("\n".join(lines), {**figures, "fatigue": fatigue, "coordinates": len(lifter.names),
                                            "iterations": lifted.plan.iterations, "seconds": took, "limits_kept": kept,
                                            "beyond": max(beyond.values()), "folder": folder}, int(not kept))


def fatigue_table(lifted: Lift, period: float, hours: float) -> dict[str, dict[str, float]]:
    """Return peak load, capacity left after `hours` and endurance [h] of every joint, of lifts repeated every `period` [s]."""
    work = lifted.repeated(period)
    capacity, endurance = work.capacity(hours * 3600.0 / period), work.endurance / 3600.0
    return {name: {"peak_load": float(np.abs(work.load[:, k]).max()), "capacity": float(capacity[k]),
                   "endurance_hours": float(endurance[k])}
            for k, name in enumerate(lifted.lifter.joint_names) if np.abs(work.load[:, k]).max() > 0.0}


def fatigue_lines(table: dict[str, dict[str, float]], period: float, hours: float) -> list[str]:
    """Return the table of fatigue as text."""
    return [f"repeated every {period:g} s, right side and trunk:",
            f"{'':<36} peak load  capacity after {hours:g} h  endurance",
            *(f"{name:<36} {row['peak_load']:8.0%}  {row['capacity']:15.0%}  "
              f"{'unlimited' if np.isinf(row['endurance_hours']) else '{:.3g} h'.format(row['endurance_hours']):>14}"
              for name, row in table.items())]


def write_lift(path: Path, lifted: Lift) -> None:
    """Write lift.csv: t; q_, qd_, qdd_, tau_, tau_rate_ of every coordinate [rad, N m, N m/s]; force and moment of the floor
    on each foot about the world's origin, and the share of the toes as a moment about y [N, N m]; the centre of pressure and
    that of the box [m]; moment and compression at L5/S1 [N m, N].
    """
    motion, names = lifted.motion(), lifted.lifter.walker.joint_names
    blocks = [f"{block}_{name}" for block in ("q", "qd", "qdd", "tau", "tau_rate") for name in names]
    header = ["t", *blocks, *FORCES, *TOES, "pressure_x", "pressure_y", "box_x", "box_y", "box_z", "l5s1_moment",
              "l5s1_compression_force"]
    csv_files.write_csv(str(path), header, _lift_rows(motion), lambda rows: None)


def _lift_rows(motion: LiftMotion) -> Iterator[np.ndarray]:
    yield np.column_stack((motion.t, motion.q, motion.qd, motion.qdd, motion.tau, motion.tau_rate,
                           motion.floor.reshape(len(motion.t), -1), motion.toes, motion.pressure, motion.box, motion.moment,
                           motion.compression))


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
