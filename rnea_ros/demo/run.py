"""`rnea demo`: a robot that is not there moves, a dynamics node in another process tells its torques, and we check them.

The robot and the node are two processes of their own; this one subscribes to what the node publishes, over real DDS.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from ..errors import RneaError
from ..model import urdf, urdf_reader
from ..robots.robot import Robot
from . import checks, motion, plot, scaling
from .checks import DemoRecording
from .ending import ended
from .processes import explain, free_domain, processes, ros_environment, shared, signals
from .table import LiveTable

RATE = 500.0  # Hz
NODES = ("dynamics_node", "demo_robot")
PATIENCE = 20.0  # s, for two processes to start and find each other, and for a kernel to compile
NO_ROS = """rnea demo needs ROS 2: {reason}.
  With a ROS 2 installation: source its setup file, build this package with colcon, source the workspace.
  Without one: `make env` in this package's repository sets up everything, ROS 2 wheels from PyPI included.
  The library needs no ROS: `rnea demo --no-ros` plays the same motion and makes the same checks in this process."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `rnea demo`."""
    parser.add_argument("--scaling", action="store_true", help="scaling_node instead: a trajectory twice too fast, slowed "
                        "just enough; paused and overridden on its way")
    parser.add_argument("--urdf", metavar="ROBOT.urdf", help="robot, or a .xacro, which is a program and is run; default: the "
                        "Stanford arm of guarino-gfd, with --scaling a 7R arm")
    parser.add_argument("--allow-xacro", action="store_true", help="do not warn that a .xacro file is a program")
    parser.add_argument("--seconds", type=_seconds, default=8.0, help="how long to listen, default 8; not with --scaling")
    parser.add_argument("--plot", metavar="PATH", help="picture to write, default demo.png, demo_scaling.png; '' for none")
    parser.add_argument("--no-ros", action="store_true", help="library only: no processes, no messages")


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0.5 <= value <= 3600.0:
        raise argparse.ArgumentTypeError(f"{text} is not between 0.5 and 3600 seconds")
    return value


def run(args: argparse.Namespace) -> int:
    """Exit code 0 if every check passes, 1 if not or if nothing was received."""
    if args.scaling:
        return scaling.run(args)
    source = Path(args.urdf) if args.urdf else shared("urdf/stanford.urdf")
    stanford = args.urdf is None
    description = urdf_reader.read(source, allow_xacro=True)
    robot = Robot(urdf.load(description, joint_dynamics=checks.STANFORD_TERMS if stanford else None))
    if robot.n == 0:
        raise RneaError(f"{source} has no joints that move, so there is nothing to show")
    text = urdf_reader.text(description.robot)  # expanded, and only what dynamics needs
    recording, how = _play(robot, args.seconds) if args.no_ros else _listen(robot, text, stanford, args.seconds)
    if recording is None:
        return 1
    verdicts = [checks.rate_is_derivative(recording, robot.joint_names)]
    if not args.no_ros:
        verdicts.insert(0, checks.same_as_library(robot, recording.motion, recording.tau, recording.tau_rate))
    if stanford:
        verdicts.append(checks.papers_figure(robot))
    return ended(how, verdicts, "demo.png" if args.plot is None else args.plot,
                 lambda picture: plot.draw(robot, recording, picture, how))


# --- without ROS ----------------------------------------------------------------------------------------------------


def _play(robot: Robot, seconds: float) -> tuple[DemoRecording, str]:
    recording = checks.played(robot, motion.choose(robot), seconds, RATE)
    return recording, f"{len(recording.t)} samples in {recording.seconds[-1]:.1f} s, computed by the library, without ROS"


# --- with ROS -------------------------------------------------------------------------------------------------------


def _listen(robot: Robot, text: str, stanford: bool, seconds: float) -> tuple[DemoRecording | None, str]:
    try:
        from .nodes import dynamics_recorder
    except ImportError as error:
        print(NO_ROS.format(reason=error), file=sys.stderr)
        return None, ""
    domain = free_domain()
    table = LiveTable(robot, sys.stdout)
    with tempfile.TemporaryDirectory(prefix="rnea_demo_") as folder:
        with (signals() as caught, ros_environment(domain, folder),
              processes(Path(folder), NODES, _parameters(text, stanford)) as started):
            pids = " and ".join(str(process.pid) for process in started)
            print(f"{robot.name}: {' and '.join(NODES)} run as processes {pids}", flush=True)
            print(f"to look in from another terminal: export ROS_DOMAIN_ID={domain}\n", flush=True)
            recording = dynamics_recorder.record(
                domain, seconds, PATIENCE, table.show,
                lambda: not caught and all(process.poll() is None for process in started))
        if caught:
            sys.exit(128 + caught[0])
        if recording is None:
            explain(started, NODES, Path(folder), PATIENCE)
            return None, ""
    span = recording.seconds[-1]
    return recording, f"{len(recording.t)} samples in {span:.1f} s, received from dynamics_node over ROS 2"


def _parameters(text: str, stanford: bool) -> dict[str, Any]:
    everyone = {"robot_description": text}
    parameters = {"/**": {"ros__parameters": everyone}, "/**/demo_robot": {"ros__parameters": {"rate": RATE}}}
    if stanford:
        terms = {name: {"rotor_inertia": term.rotor_inertia} for name, term in checks.STANFORD_TERMS.items()}
        limits = {name: {"has_effort_rate_limits": True, "max_effort_rate": limit}
                  for name, limit in checks.STANFORD_RATE_LIMITS.items()}
        parameters["/**/dynamics_node"] = {"ros__parameters": {"joint_dynamics": terms, "joint_limits": limits}}
    return parameters
