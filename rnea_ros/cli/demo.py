"""`rnea demo` and `rnea watch`: a simulated robot, the nodes in separate processes, a live table, checks, and a picture."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from ..demo import catalogue, plots, policies, scaling
from ..demo import robot_demo as runs
from ..demo import timing_trials as trials
from ..demo.arms import ARM_SOURCES, Arm, ArmSource
from ..demo.catalogue import DEMOS, TREES
from ..demo.processes import Interrupted, MissingRos, NodesFailed, recorders, share_file, user_path
from ..demo.robot_demo import CheckResult, LiveTable
from ..errors import RneaError
from ..model import urdf, urdf_reader
from ..robots.robot import Robot
from ..sim.scene import mujoco, select_offscreen_renderer
from . import inputs
from .output import CommandResult, check_files

N_MOTIONS = 8  # of --plant
OWN_ROBOT = {"rnea demo --urdf ROBOT.urdf": "your robot on a generated motion"}
NEXT_COMMANDS = {"dynamics_node --urdf ROBOT.urdf": "your robot's torques from its /joint_states",
                 "rnea watch": "live torques of a running node, in this terminal"}
NO_ROS = """rnea demo needs ROS 2: {reason}.
  With a ROS 2 installation: source its setup file, build this package with colcon, source the workspace.
  Without one: `make env` in this package's repository sets up everything, ROS 2 wheels from PyPI included.
  The library needs no ROS: `rnea demo --no-ros` computes the same motion and makes the same checks in this process."""
NO_ROS_SCALING = "rnea demo --scaling needs ROS 2: {reason}. Without --scaling, `rnea demo --no-ros` needs none."
ABOUT_PLANT = """{robot} in MuJoCo: masses up to 5 % wrong, friction that its controller does not model, drives with limits of
torque, torque rate and voltage. {motions} random paths, {timings} timings of each, one controller.
"""
ABOUT_POLICY = """{robot} in MuJoCo, with saturating drives. A scripted policy sends {chunks} chunks of 50 points, from
observations that are 200 ms old; they are noisy, contradict each other, and some are lost. Three ways of execution:
"""


def add_demo_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rnea demo`."""
    parser.add_argument("--scaling", action="store_true", help="demo of scaling_node: a trajectory planned twice too fast is "
                                                               "slowed to the limits, with a pause and an override")
    parser.add_argument("--plant", action="store_true", help="comparison of timings: a simulated arm with saturating drives "
                        "tracks motions as planned, with TOPP-RA's timing and with ours")
    parser.add_argument("--policy", action="store_true", help="action chunks of a noisy policy with a delay of 200 ms: a "
                                                              "simulated arm executes them as sent, filtered and clamped, and "
                                                              "with ChunkExecutor")
    parser.add_argument("--arm", choices=tuple(ARM_SOURCES), default="panda",
                        help="with --plant or --policy: the arm; default panda")
    parser.add_argument("--motions", type=int, metavar="COUNT", default=N_MOTIONS,
                        help=f"with --plant: number of random paths, default {N_MOTIONS}")
    parser.add_argument("--seed", type=int, default=0, help="with --plant or --policy: seed of paths, masses and "
                        "friction; default 0")
    parser.add_argument("--movie", metavar="PATH.gif", help="with --plant or --policy: animation of the first path")
    parser.add_argument("--robot", choices=sorted({*DEMOS, *TREES}), help="robot of the demo; default panda")
    parser.add_argument("--urdf", metavar="ROBOT.urdf", help="robot: a URDF, or a .xacro file and its arguments NAME:=VALUE; "
                        "default: the Panda, with --scaling a 7R arm")
    parser.add_argument("--robot-file", metavar="FILE", help="robot file or profile of that robot: limits, drives, friction")
    parser.add_argument("--seconds", type=_seconds, help="duration of the recording [s], default 8; not with --scaling, "
                        "--plant and --policy")
    parser.add_argument("--plot", metavar="PATH", help="picture to write, default demo.png, demo_scaling.png, demo_ROBOT.png; "
                        "'' for none")
    parser.add_argument("--no-ros", action="store_true", help="library only: no processes, no messages")


def _seconds(text: str) -> float:
    return _time(text, 0.5, 3600.0)


def _time(text: str, least: float = 1e-3, most: float = float("inf")) -> float:
    """Return a time [s] of the command line. Raises ArgumentTypeError outside its bounds."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise argparse.ArgumentTypeError(f"{text} is not between {least:g} and {most:g} seconds")
    return value


def run_demo(args: argparse.Namespace) -> CommandResult | int:
    """Return exit code 0 if every check passes, 1 otherwise. With --json, progress goes to stderr."""
    with redirect_stdout(sys.stderr) if args.json else nullcontext():
        try:
            return _run(args)
        except MissingRos as error:
            print((NO_ROS_SCALING if args.scaling else NO_ROS).format(reason=error), file=sys.stderr)
        except NodesFailed as error:
            print(error, file=sys.stderr)
        except Interrupted as interrupt:
            sys.exit(128 + interrupt.number)
        return 1


def _run(args: argparse.Namespace) -> CommandResult:
    if args.robot and (args.urdf or args.scaling or args.plant or args.policy):
        raise RneaError(f"--robot {args.robot} has its own robot and motion: leave --urdf, --scaling, --plant and --policy "
                        "out")
    if args.seconds and (args.scaling or args.plant or args.policy):
        raise RneaError(f"--seconds {args.seconds:g} has no effect with --scaling, --plant and --policy, whose motions end by "
                        "themselves: leave it out")
    if args.robot_file and (args.robot or args.scaling or args.plant or args.policy):
        raise RneaError("--robot-file is for --urdf only: leave it, or --robot, --scaling, --plant and --policy out")
    if args.plot is None:
        kind = "scaling" if args.scaling else "plant" if args.plant else "policy" if args.policy else args.robot
        args.plot = f"demo_{kind}.png" if kind else "demo.png"
    check_files(args.plot, args.movie)
    if args.policy:
        return _policy(args)
    return _scaling(args) if args.scaling else _timings(args) if args.plant else _robot(args)


def _report(line: str) -> None:
    print(line, flush=True)


def _check_moves(robot: Robot, source: Any) -> None:
    if robot.n == 0:
        raise RneaError(f"{source} has no moving joints; a robot with at least one is needed")
    inputs.check_masses(robot)


def _outcome(origin: str, checks: Sequence[CheckResult], picture: str, draw: Callable[[str], None], data: Mapping[str, Any],
             next_commands: Mapping[str, str] = {}) -> CommandResult:
    """Return the result of a demo; draw the picture if a path is given. Exit code 0 if every check passed."""
    lines = [f"\n{origin}", *(f"  {'ok    ' if check.passed else 'FAILED'}  {check.text}" for check in checks)]
    drawn = None
    if picture:
        try:
            draw(picture)
        except (RneaError, OSError, ValueError) as error:  # without matplotlib the checks still count
            lines.append(f"  no picture: {error}")
        else:
            drawn = picture
            lines.append(f"  picture: {picture}")
    if next_commands:
        width = max(map(len, next_commands))
        lines += ["\nnext:", *(f"  {command:<{width}}  {effect}" for command, effect in next_commands.items())]
    rows = [{"passed": check.passed, "text": check.text} for check in checks]
    return CommandResult("\n".join(lines), {"how": origin, **data, "checks": rows, "picture": drawn},
                   0 if all(check.passed for check in checks) else 1)


# ---------------------------------------------------------------------- a robot and dynamics_node


def _robot(args: argparse.Namespace) -> CommandResult:
    demo = DEMOS[args.robot] if args.robot in DEMOS else catalogue.tree_demo(args.urdf, args.robot_file, args.robot or "panda")
    robot = demo.load()
    if args.robot_file and not robot.is_fixed_tree:
        raise RneaError(f"{args.robot_file} makes a {robot.kind}; rnea demo --urdf shows trees on a fixed base. `rnea "
                        "demo --robot NAME` has demos of other kinds")
    _check_moves(robot, args.urdf)
    seconds = args.seconds or demo.seconds
    if args.no_ros:
        if demo.make_motion is None:
            raise RneaError(f"--robot {demo.name} runs nodes: it is not available with --no-ros")
        recording, topics, origin = runs.compute(demo, robot, seconds)
    else:
        table = LiveTable(robot.joint_names, robot.joint_types, sys.stdout)
        recording, topics, origin = runs.record(demo, robot, seconds, table.show, _report)

    def draw(path: str) -> None:
        if demo.draw:
            demo.draw(robot, recording, topics, path, origin)
        else:
            plots.draw_demo(robot, recording, path, origin, demo)

    return _outcome(origin, demo.checks(robot, recording, topics), args.plot, draw,
                    {"robot": robot.name, "joints": robot.joint_names, "samples": len(recording.t),
                     "seconds": recording.seconds[-1], "peak_torque": abs(recording.tau).max(axis=0),
                     "peak_torque_rate": abs(recording.tau_rate).max(axis=0)},
                    commands_to_try(args.urdf is not None) if demo.name == "auto" else {})


def commands_to_try(own_robot: bool) -> dict[str, str]:
    """Return commands to try next, as the shell finds them: with their folder where that is not on its path."""
    program = Path(sys.argv[0])
    folder = f"{os.path.relpath(program.parent)}/" if program.name == "rnea" and shutil.which("rnea") is None else ""
    commands = NEXT_COMMANDS if own_robot else OWN_ROBOT | NEXT_COMMANDS
    return {folder + command: effect for command, effect in commands.items()}


# ---------------------------------------------------------------------- scaling_node


def _scaling(args: argparse.Namespace) -> CommandResult:
    if args.no_ros:
        raise RneaError("--scaling runs a node: it is not available with --no-ros")
    source = user_path(args.urdf) if args.urdf else share_file("urdf/seven_r.urdf")
    description = urdf_reader.read(source)
    robot = Robot.from_model(urdf.load(description))
    _check_moves(robot, source)
    task = scaling.overspeed_task(robot)
    samples = scaling.record(robot, urdf_reader.text(description.robot), task, sys.stdout, _report)
    origin = (f"{len(samples.t)} samples in {samples.t[-1]:.2f} s, received from scaling_node over ROS 2; planned duration "
              f"{task.times[-1]:.2f} s, fastest within the limits {task.fastest:.2f} s without pause and override")
    return _outcome(origin, scaling.check_samples(robot, task, samples), args.plot,
                    lambda path: scaling.draw_scaling(robot, task, samples, path),
                    {"robot": robot.name, "samples": len(samples.t), "seconds": samples.t[-1], "planned": task.times[-1],
                     "fastest": task.fastest})


# ---------------------------------------------------------------------- timings of an arm in MuJoCo


def _timings(args: argparse.Namespace) -> CommandResult:
    motions = args.motions
    if motions < 1:
        raise RneaError(f"--motions is {motions}; at least 1 is needed")
    if args.movie:
        select_offscreen_renderer()
    mujoco()
    began, rng = time.monotonic(), np.random.default_rng(args.seed)
    arm = Arm(ArmSource(user_path(args.urdf)) if args.urdf else ARM_SOURCES[args.arm])
    timings = dict(trials.SIDE_BY_SIDE)
    try:
        trials.toppra()
    except RneaError as error:
        del timings[trials.TOPPRA]
        print(f"{error}\nIts timing is omitted.", file=sys.stderr)
    _report(ABOUT_PLANT.format(robot=arm.robot.name, motions=motions, timings=len(timings)))
    tracked = []
    for k in range(motions):
        task = trials.random_task(arm, rng)
        results = list(trials.track_all(task, rng, timings))
        tracked.append((task, results))
        _report(f"  path {k + 1} of {motions}, {task.fastest.duration:.2f} s at the fastest: " + "; ".join(
            f"{one.timing.partition(',')[0]} {'lost' if one.lost else f'{one.off:.1f} mm off'}" for one in results))
    found = [result for _, results in tracked for result in results]
    _report(f"\n{trials.result_table(found)}")
    if args.movie:
        trials.write_movie(*tracked[0], args.movie)
    origin = f"{motions} motions, {len(timings)} timings of each, in {time.monotonic() - began:.0f} s"
    return _outcome(origin, trials.check_results(found), args.plot,
                    lambda path: trials.draw_trials(*tracked[0], found, path), trials.result_data(found))


# ---------------------------------------------------------------------- action chunks of a policy


def _policy(args: argparse.Namespace) -> CommandResult:
    if args.movie:
        select_offscreen_renderer()
    mujoco()
    began, rng = time.monotonic(), np.random.default_rng(args.seed)
    arm = Arm(ArmSource(user_path(args.urdf)) if args.urdf else ARM_SOURCES[args.arm])
    policy = policies.Policy(arm, rng)
    chunks, masses = policy.chunks(policies.STREAM.duration_s), arm.masses(rng)
    _report(ABOUT_POLICY.format(robot=arm.robot.name, chunks=len(chunks)))
    results, ways = [], []
    for result, way in policies.run(arm, policy, chunks, masses):
        results.append(result)
        ways.append(way)
        _report(f"  {result.way}: " + ("lost" if result.lost else f"{result.off_rms:.1f} mm off the intent (RMS)"))
    executed = ways[-1]
    assert isinstance(executed, policies.Executed)
    _report(f"\n{policies.result_table(results)}")
    if args.movie:
        policies.write_movie(arm, policy, results, args.movie)
    origin = f"{len(chunks)} chunks, {len(results)} ways of execution, in {time.monotonic() - began:.0f} s"
    return _outcome(origin, policies.check_results(arm.robot, results[-1], executed), args.plot,
                    lambda path: policies.draw(arm, policy, results, path), policies.result_data(results))


TYPE = "rnea_msgs/msg/JointDynamics"


def add_watch_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rnea watch`."""
    parser.add_argument("topic", nargs="?", help=f"topic of type {TYPE}; default: the first one found")
    parser.add_argument("--seconds", type=_time, default=float("inf"), help="stop after this time [s]; default: until Ctrl-C")
    parser.add_argument("--once", action="store_true", help="print one message and exit")
    parser.add_argument("--wait", type=_time, default=10.0, help="maximum time to wait for the first message [s]; default 10")


def run_watch(args: argparse.Namespace) -> int:
    """Return exit code 0 if a message was received. Raises RneaError if there is no ROS, or no message within --wait."""
    try:
        nodes = recorders()
    except MissingRos as error:
        raise RneaError(f"rnea watch needs ROS 2: {error}; source a ROS 2 installation, or run `make env`") from None
    domain = os.environ.get("ROS_DOMAIN_ID", "0")
    tables: dict[tuple[str, ...], LiveTable] = {}
    received = 0

    def show(message: Any, joint_types: list[str]) -> bool:
        nonlocal received
        received += 1
        names = tuple(message.joint_names)
        if names not in tables:
            print(f"joint torques, motion source: {message.motion_source or 'unknown'}", flush=True)
            tables[names] = LiveTable(names, joint_types or ["revolute"] * len(names), sys.stdout)
        tables[names].show(message)
        return not args.once and time.monotonic() < end

    begin = time.monotonic()
    end = begin + args.seconds
    topic, candidates = nodes.watch_dynamics(args.topic, args.wait, args.seconds, show)
    if received:
        return 0
    if topic is None:
        raise RneaError(f"no topic of type {TYPE} within {args.wait:g} s in ROS domain {domain}: start dynamics_node, or set "
                        "ROS_DOMAIN_ID to the domain that it runs in")
    others = f"; other topics of this type: {', '.join(candidates)}" if candidates else ""
    raise RneaError(f"no message on {topic} within {args.wait:g} s: dynamics_node publishes when it receives joint states; "
                    f"see its log and /diagnostics{others}")
