"""`rnea flexible ROBOT.urdf RECORDING --robot-file FILE`: torques, deflection and vibration of a robot with flexible links."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..io import csv_files, files
from ..robots import flexible
from ..robots.robot import Robot
from ..trajectory.input_shaping import KINDS, input_shaper
from . import inputs
from .output import CommandResult, check_files, format_table


def add_flexible_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subcommand."""
    inputs.add_robot_arguments(parser)
    parser.add_argument("recordings", nargs="*", metavar="RECORDING",
                        help="a CSV or a bag with the motion of the actuated joints, as for rnea torque: columns t, "
                             "q_<joint>, and optionally qd_, qdd_, qddd_. The deflection of the links is predicted; if it is "
                             "measured, use rnea torque. Without a recording, only the natural frequencies are printed")
    parser.add_argument("-o", "--output", metavar="OUT.csv",
                        help="output with columns t, tau_, tau_rate_, q_ of every joint, tip_<link>_x, _y, _z [m], "
                        "moment_<link>_<bending> [N m] and stress_<link>_<bending> [Pa]")
    parser.add_argument("--shape", choices=[*KINDS], help="shape the motion so that it leaves no vibration")
    parser.add_argument("--vibrations", type=int, default=1, metavar="N",
                        help="number of natural frequencies, from the lowest, that --shape suppresses; default 1")
    inputs.add_recording_arguments(parser)
    inputs.add_window(parser)
    inputs.add_dynamics(parser)


def run_flexible(args: argparse.Namespace) -> CommandResult:
    """Run the subcommand."""
    check_files(args.output)
    if not args.recordings and not files.is_bag(args.urdf or ""):
        return _frequencies(inputs.load_robot(args, args.urdf))
    path = inputs.single_recording(args)
    robot = inputs.load_robot(args, inputs.robot_description(args, path))
    t, motion = _read(args, path, robot)
    pose = np.zeros(robot.n)
    pose[[robot.joint_names.index(name) for name in flexible.driven_joints(robot)]] = motion[0, -1]
    free = flexible.free_vibration(robot, pose)
    if args.shape:
        shaper = input_shaper(free.frequency[:args.vibrations], free.damping_ratio[:args.vibrations], args.shape)
        t, motion = shaper.shape(t, motion)
    whole = flexible.predict_deflection(robot, t, *motion)
    torques = robot.torque_and_rate(*whole)
    tips, loads = flexible.tip_deflection(robot, whole[0]), flexible.root_loads(robot, *whole)
    of_joints = {"tau": torques[0], "tau_rate": torques[1], "q": whole[0]}
    columns = [(f"{head}_{name}", values[:, k]) for head, values in of_joints.items()
               for k, name in enumerate(robot.joint_names)]
    columns += [(f"tip_{link}_{axis}", values[:, k]) for link, values in tips.items() for k, axis in enumerate("xyz")]
    for kind in ("moment", "stress"):
        columns += [(f"{kind}_{link}_{name}", getattr(load, kind)[:, 0]) for link, bendings in loads.items()
                    for name, load in bendings.items()]
    if args.output:
        table = np.column_stack([t, *(values for _, values in columns)])
        csv_files.write_csv(args.output, ["t", *(name for name, _ in columns)], _rows(table), lambda _: None)
    left = flexible.residual_vibration(robot, whole[:, -1])
    rows = [(link, f"{np.linalg.norm(tips[link], axis=1).max():.4g}", f"{left[link]:.3g}", name,
             f"{np.abs(load.moment[:, 0]).max():.4g}", f"{np.abs(load.stress[:, 0]).max():.4g}")
            for link, bendings in loads.items() for name, load in bendings.items()]
    head = ("link", "deflection [m]", "left [m]", "bending", "moment [N m]", "stress [Pa]")
    lines = [*_table(free), *format_table(head, rows, "<>><>>"),
             f"{len(t)} samples, {t[-1] - t[0]:.4g} s" + (f", {args.shape} shaper" if args.shape else "")
             + (f" -> {args.output}" if args.output else "")]
    return CommandResult("\n".join(lines), {
        "robot": robot.name, "joints": robot.joint_names, "frequencies": free.frequency, "damping_ratios": free.damping_ratio,
        "samples": len(t), "duration": t[-1] - t[0], "residual_vibration": left,
        "deflection": {link: np.linalg.norm(tip, axis=1).max() for link, tip in tips.items()},
        "root_moment": {link: {name: np.abs(load.moment[:, 0]).max() for name, load in bendings.items()}
                        for link, bendings in loads.items()}})


def _frequencies(robot: Robot) -> CommandResult:
    free = flexible.free_vibration(robot, robot.home_motion[0])
    return CommandResult("\n".join(_table(free)), {"robot": robot.name, "frequencies": free.frequency,
                                                   "damping_ratios": free.damping_ratio})


def _table(free: flexible.FreeVibration) -> list[str]:
    rows = [(f"{w / (2.0 * np.pi):.4g}", f"{w:.4g}", f"{z:.3g}")
            for w, z in zip(free.frequency, free.damping_ratio, strict=True)]
    return format_table(("vibration [Hz]", "[rad/s]", "damping ratio [-]"), rows, ">>>")


def _read(args: argparse.Namespace, path: Path, robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Return times and motion (4, samples, driven) of a recording."""
    names = flexible.driven_joints(robot)
    moved = inputs.read_motion(args, path, names, [robot.joint_types[robot.joint_names.index(name)] for name in names])
    return moved.t, np.array([moved.q, moved.qd, moved.qdd, moved.qddd])


def _rows(table: np.ndarray) -> Iterator[np.ndarray]:
    yield table
