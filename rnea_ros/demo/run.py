"""`rnea demo`: a robot that is not there moves, a dynamics node in another process tells its torques, and we check them.

The robot and the node are two processes of their own; this one subscribes to what the node publishes, over real DDS.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import nullcontext, redirect_stdout
from pathlib import Path

from ..cli import robots
from ..cli.outcome import Outcome
from ..cli.output_files import check_files
from ..errors import RneaError
from ..robots.protocol import AnyRobot
from ..robots.robot import Robot
from . import plot, scaling
from .ending import ended
from .processes import demo_domain, explain, processes, ros_environment, signals
from .recording import DemoRecording, Heard, played
from .robot_demo import RobotDemo
from .robots import any_tree
from .robots.catalogue import DEMOS
from .table import LiveTable
from .timings import run as timings
from .timings.arms import SOURCES

Found = tuple[DemoRecording, "Heard | None", str]  # the last one: how it was found
PATIENCE = 60.0  # s, for two processes to start and find each other, and for a kernel to compile
NEXT = {"rnea demo --urdf ROBOT.urdf": "your robot on a generated motion",
        "dynamics_node --urdf ROBOT.urdf": "your robot's torques from its /joint_states",
        "rnea watch": "live torques of a running node, in this terminal"}
NO_ROS = """rnea demo needs ROS 2: {reason}.
  With a ROS 2 installation: source its setup file, build this package with colcon, source the workspace.
  Without one: `make env` in this package's repository sets up everything, ROS 2 wheels from PyPI included.
  The library needs no ROS: `rnea demo --no-ros` plays the same motion and makes the same checks in this process."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `rnea demo`."""
    parser.add_argument("--scaling", action="store_true", help="scaling_node instead: a trajectory twice too fast, slowed "
                        "just enough; paused and overridden on its way")
    parser.add_argument("--plant", action="store_true", help="timings side by side: a simulated arm whose drives saturate "
                        "follows motions as planned, with TOPP-RA's timing and with ours")
    parser.add_argument("--live", action="store_true", help="with --plant: over ROS and in real time, ours through "
                        "scaling_node, to a controller that interpolates as joint_trajectory_controller does")
    parser.add_argument("--arm", choices=tuple(SOURCES), default="panda", help="with --plant; default panda")
    parser.add_argument("--motions", type=int, metavar="COUNT", help="with --plant: random paths, default 8, with --live 4")
    parser.add_argument("--seed", type=int, default=0, help="with --plant: of paths, masses and friction; default 0")
    parser.add_argument("--movie", metavar="PATH.gif", help="with --plant: the first path as an animated picture")
    parser.add_argument("--robot", choices=sorted({*DEMOS, *any_tree.TREES}),
                        help="robot of the demo; default panda")
    parser.add_argument("--elastic", action="store_const", const="elastic", dest="robot", help="the same as --robot elastic")
    parser.add_argument("--urdf", metavar="ROBOT.urdf", help="robot: a URDF, or a .xacro file and its arguments NAME:=VALUE; "
                                                             "default: the Panda, with --scaling a 7R arm")
    parser.add_argument("--robot-file", metavar="FILE", help="robot file or profile of that robot: limits, drives, friction")
    parser.add_argument("--seconds", type=_seconds, help="how long to listen, default 8; not with --scaling")
    parser.add_argument("--plot", metavar="PATH", help="picture to write, default demo.png, demo_scaling.png, demo_ROBOT.png; "
                        "'' for none")
    parser.add_argument("--no-ros", action="store_true", help="library only: no processes, no messages")


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0.5 <= value <= 3600.0:
        raise argparse.ArgumentTypeError(f"{text} is not between 0.5 and 3600 seconds")
    return value


def run(args: argparse.Namespace) -> Outcome | int:
    """Exit code 0 if every check passes, 1 if not or if nothing was received. What is told meanwhile is not for programs."""
    with redirect_stdout(sys.stderr) if args.json else nullcontext():
        return _run(args)


def _run(args: argparse.Namespace) -> Outcome | int:
    if args.robot and (args.urdf or args.scaling or args.plant):
        raise RneaError(f"--robot {args.robot} has a robot and a motion of its own: leave --urdf, --scaling and --plant out")
    if args.robot_file and (args.robot or args.scaling or args.plant):
        raise RneaError("--robot-file is for --urdf alone: leave it, or --robot, --scaling and --plant out")
    if args.live and not args.plant:
        raise RneaError("--live shows timings side by side over ROS: add --plant")
    if args.plot is None:
        kind = "scaling" if args.scaling else "plant" if args.plant else args.robot
        args.plot = f"demo_{kind}.png" if kind else "demo.png"
    check_files(args.plot, args.movie)
    if args.scaling:
        return scaling.run(args)
    if args.plant:
        return timings.run(args)
    demo = DEMOS[args.robot] if args.robot in DEMOS else any_tree.demo(args.urdf, args.robot_file, args.robot or "panda")
    robot = demo.load()
    if args.robot_file and not isinstance(robot, Robot):
        raise RneaError(f"{args.robot_file} makes a {type(robot).__name__}; rnea demo --urdf shows fixed trees (Robot). `rnea "
                        "demo --robot NAME` has demos of other kinds")
    if robot.n == 0:
        raise RneaError(f"{args.urdf} has no joints that move, so there is nothing to show")
    robots.check_masses(robot)
    seconds = args.seconds or demo.seconds
    if seconds < demo.least:
        raise RneaError(f"--seconds {seconds:g}: the checks of --robot {demo.name} need {demo.least:g} s of its motion; leave "
                        f"it out for {demo.seconds:g}")
    found = _play(demo, robot, seconds) if args.no_ros else _listen(demo, robot, seconds)
    if found is None:
        return 1
    recording, heard, how = found

    def draw(path: str) -> None:
        if demo.draw:
            demo.draw(robot, recording, heard, path, how)
        else:
            plot.draw(robot, recording, path, how, demo)

    return ended(how, demo.checks(robot, recording, heard), args.plot, draw,
                 {"robot": robot.name, "joints": robot.joint_names, "samples": len(recording.t),
                  "seconds": recording.seconds[-1], "peak_torque": abs(recording.tau).max(axis=0),
                  "peak_torque_rate": abs(recording.tau_rate).max(axis=0)}, NEXT if demo.name == "auto" else {})


# --- without ROS ----------------------------------------------------------------------------------------------------


def _play(demo: RobotDemo, robot: AnyRobot, seconds: float) -> Found:
    if demo.player is None:
        raise RneaError(f"--robot {demo.name} shows nodes: it cannot be had with --no-ros")
    player, heard = demo.player(), None
    if demo.play:
        recording, heard = demo.play(robot, player, seconds, demo.rate)
    else:
        recording = played(robot, player.of(robot.joint_names), seconds, demo.rate)
    how = f"{len(recording.t)} samples in {recording.seconds[-1]:.1f} s, computed by the library, without ROS"
    return recording, heard, how


# --- with ROS -------------------------------------------------------------------------------------------------------


def _listen(demo: RobotDemo, robot: AnyRobot, seconds: float) -> Found | None:
    try:
        from .nodes import dynamics_recorder
    except ImportError as error:
        print(NO_ROS.format(reason=error), file=sys.stderr)
        return None
    domain = demo_domain()
    table = LiveTable(robot.joint_names, robot.joint_types, sys.stdout)
    parameters = {f"/**/{node}": {"ros__parameters": settings} for node, settings in demo.settings().items()}
    with tempfile.TemporaryDirectory(prefix="rnea_demo_") as folder:
        with (signals() as caught, ros_environment(domain, folder),
              processes(Path(folder), demo.nodes, parameters) as started):
            pids = " and ".join(str(process.pid) for process in started)
            print(f"{robot.name}: {' and '.join(demo.nodes)} run as processes {pids}", flush=True)
            print(f"to inspect from another terminal: export ROS_DOMAIN_ID={domain}\n", flush=True)
            received = dynamics_recorder.record(
                domain, seconds, PATIENCE, table.show,
                lambda: not caught and all(process.poll() is None for process in started), demo.heard)
        if caught:
            sys.exit(128 + caught[0])
        if received is None:
            explain(started, demo.nodes, Path(folder), PATIENCE)
            return None
    recording, heard = received
    return recording, heard, (f"{len(recording.t)} samples in {recording.seconds[-1]:.1f} s, received from dynamics_node over "
                              "ROS 2")
