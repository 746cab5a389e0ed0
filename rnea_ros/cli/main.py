"""The `rnea` command: model, check, from-dh, torque, retime, plan, query, identify, gait, demo."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from ..demo import run as demo
from ..errors import RneaError, some
from ..output import figures
from ..recordings import motion_csv
from ..robots.robot import Robot
from . import from_dh, plan, retime
from . import gait as gait_cli
from . import identify as identification_cli
from . import query as query_cli

SIGMA = ("revolute", "prismatic", "fixed")


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code: 0 all well, 1 a check found something, 2 an error that a message explains."""
    args = _parser().parse_args(argv)
    if str(getattr(args, "urdf", None)).endswith(".xacro") and not args.allow_xacro:
        print(f"rnea {args.command}: {args.urdf} is a program: xacro evaluates what is in it, which can do whatever you can "
              "(--allow-xacro says that you know)", file=sys.stderr)
    try:
        return args.run(args)
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stderr.close()
        return 0
    except (RneaError, OSError) as error:  # OSError: a result that cannot be written
        print(f"rnea {args.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


class _Parser(argparse.ArgumentParser):
    """Takes -1e-3 for a number; to argparse it is an option, up to Python 3.13."""

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self._negative_number_matcher = re.compile(r"-(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$")


class _Version(argparse.Action):
    """Of the installed package, looked up only if somebody asks."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        try:
            print(f"rnea_ros {metadata.version('rnea_ros')}")
        except metadata.PackageNotFoundError:
            print(f"rnea_ros, not installed but run from {Path(__file__).parent}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="rnea", description="Exact joint torques and torque rates of a robot from its URDF.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run, text: str, urdf: bool = True) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(run=run)
        if name not in ("gait", "from-dh"):  # which read none
            sub.add_argument("--allow-xacro", action="store_true", help="do not warn that a .xacro file is a program")
        if urdf:
            sub.add_argument("urdf", metavar="ROBOT.urdf", help=query_cli.URDF)
            sub.add_argument("--base", choices=("fixed", "floating"), default="fixed", help="whether the root link is free")
        return sub

    model = command("model", _model, "the modified Denavit-Hartenberg tree as a table")
    model.add_argument("--json", action="store_true", help="everything, inertias and frames included, as JSON")
    command("check", _check, "physical consistency; exit code 1 if anything is doubtful")
    from_dh.add_arguments(command("from-dh", from_dh.run, "a URDF from a Denavit-Hartenberg table", urdf=False))
    torque = command("torque", _torque, "torque and torque rate of a recorded or planned motion")
    torque.add_argument("motion", metavar="MOTION.csv", help="columns t, q_<joint>, and qd_, qdd_, qddd_ where known")
    torque.add_argument("-o", "--output", metavar="OUT.csv", required=True, help="columns t, tau_<joint>, tau_rate_<joint>")
    motion_csv.add_window(torque)
    torque.add_argument("--plot", metavar="OUT.png", help="also draw the curves")
    torque.add_argument("--friction", action="store_true", help="use the URDF's damping and friction")
    torque.add_argument("--gravity", nargs=3, type=float, default=(0.0, 0.0, -9.81), metavar=("X", "Y", "Z"),
                        help="acceleration of gravity in the root link's frame [m/s^2], default 0 0 -9.81")
    torque.add_argument("--backend", choices=("llvm", "python", "reference"), default="llvm")
    retime.add_arguments(command("retime", retime.run, "the fastest timing of a given path"))
    plan.add_arguments(command("plan", plan.run, "the fastest or least costly motion between two poses"))
    identification_cli.add_arguments(command("identify", identification_cli.run, "masses and inertias from a recording"))
    gait_cli.add_arguments(command("gait", gait_cli.run, "predicts how a human walks", urdf=False))
    query_cli.add_arguments(command("query", query_cli.run, "any of the robot's dynamics, as JSON", urdf=False))
    demo.add_arguments(command("demo", demo.run, "a robot, the dynamics node and a live table over ROS 2", urdf=False))
    return parser


def _model(args: argparse.Namespace) -> int:
    robot = Robot.from_urdf(args.urdf, args.base, allow_xacro=True)
    print(json.dumps(_as_json(robot), indent=1) if args.json else _as_table(robot))
    return 0


def _as_table(robot: Robot) -> str:
    lines = [f"robot {robot.name}: {robot.n} joints, {robot.total_mass:.6g} kg, root link '{robot.root_link}', "
             f"largest deviation from the URDF {robot.reconstruction_error:.1e}", ""]
    width = max([5] + [len(row[0]) for row in robot.mdh_table()])
    lines.append(f"{'j':>3}  {'joint':<{width}}  a(j)  type      " + "".join(
        f"{name:>11}" for name in ("gamma", "b", "alpha", "d", "theta", "r")))
    for j, (name, parent, sigma, *numbers) in enumerate(robot.mdh_table(), start=1):
        lines.append(f"{j:>3}  {name:<{width}}  {parent:>4}  {SIGMA[sigma]:<10}" + "".join(f"{x:>11.6g}" for x in numbers))
    followers = [link for link in robot.model.links if link.joint and link.joint not in robot.joint_names]
    for link in followers:
        leader = robot.joint_names[link.coordinate]
        lines.append(f"     {link.joint} follows {leader}: {link.multiplier:g} q + {link.offset:g}")
    return "\n".join(lines + [""] * bool(robot.warnings) + [f"warning: {text}" for text in robot.warnings])


def _as_json(robot: Robot) -> dict:
    links = [{**{key: value for key, value in vars(link).items() if not key.startswith("_")}, "ms": link.ms.tolist(),
              "J": link.J.tolist(), "term": asdict(link.term)} for link in robot.model.links]
    frames = {name: {"link": f.link, "R": f.R.tolist(), "P": f.P.tolist()} for name, f in robot.model.frames.items()}
    joints = [{key: None if value != value else value for key, value in asdict(joint).items()} for joint in robot.model.joints]
    return {"name": robot.name, "model_id": robot.model_id, "base": robot.model.base, "root_link": robot.root_link,
            "total_mass": robot.total_mass, "reconstruction_error": robot.reconstruction_error,
            "joints": joints, "links": links, "frames": frames, "warnings": list(robot.warnings)}


def _check(args: argparse.Namespace) -> int:
    robot = Robot.from_urdf(args.urdf, args.base, backend="python", allow_xacro=True)
    doubts = list(robot.warnings)
    for q in np.random.default_rng(0).uniform(-1.0, 1.0, (3, robot.n)):
        inertia = np.diagonal(robot.mass_matrix(q))
        doubts += [f"joint '{name}' moves no mass: no forward dynamics without a rotor inertia"
                   for name, value in zip(robot.joint_names, inertia, strict=True) if value <= 0.0]
    unknown = [name for name, limit in zip(robot.joint_names, robot.limits.effort, strict=True) if np.isnan(limit)]
    if unknown:
        doubts.append(f"effort limit unknown (missing, zero or infinite) of {some(unknown)}")
    for doubt in dict.fromkeys(doubts):
        print(f"doubtful: {doubt}")
    print(f"{robot.name}: {robot.n} joints, {robot.total_mass:.6g} kg, frames within {robot.reconstruction_error:.1e} of the "
          f"URDF, {len(set(doubts))} doubts")
    return 1 if doubts else 0


def _torque(args: argparse.Namespace) -> int:
    robot = Robot.from_urdf(args.urdf, args.base, args.backend, args.gravity, args.friction, allow_xacro=True)
    progress = ProgressLine()
    progress("reading", 0, 1)
    motion = motion_csv.read(args.motion, robot.joint_names, args.window, robot.joint_types)
    if motion.ignored:
        print(f"columns not used: {some(motion.ignored, 6, quoted=True)}", file=sys.stderr)
    results: list[np.ndarray] = []

    def chunks() -> Iterator[np.ndarray]:
        for k in range(0, len(motion.t), motion_csv.CHUNK):
            part = slice(k, k + motion_csv.CHUNK)
            pair = robot.torque_and_rate(motion.q[part], motion.qd[part], motion.qdd[part], motion.qddd[part])
            results.append(np.hstack(pair))
            yield np.column_stack((motion.t[part], results[-1]))

    header = ["t"] + [f"{kind}_{name}" for kind in ("tau", "tau_rate") for name in robot.joint_names]
    motion_csv.write(args.output, header, chunks(), lambda rows: progress("computed and written", rows, len(motion.t)))
    if args.plot:
        tau, tau_rate = np.hsplit(np.concatenate(results), 2)
        units = ["N" if kind == "prismatic" else "N m" for kind in robot.joint_types]
        figures.torques(args.plot, motion.t, tau, tau_rate, robot.joint_names, units, robot.limits.effort)
    print(f"{len(motion.t)} samples of {robot.n} joints -> {args.output}" + (f", {args.plot}" if args.plot else ""))
    if motion.estimated:
        print(motion_csv.said(motion.estimated, motion.window))
    return 0


class ProgressLine:
    """A line on stderr that appears only when the work takes longer than a second."""

    def __init__(self) -> None:
        self.start = self.last = time.monotonic()

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self.start > 1.0 and (now - self.last > 0.5 or done == total):
            self.last = now
            ending = "\n" if done == total or not sys.stderr.isatty() else ""
            print(f"\r{what}: {done} of {total} samples, {100 * done // total} %", end=ending, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
