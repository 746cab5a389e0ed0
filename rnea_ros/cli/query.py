"""`rnea query`: the requests of query_node, answered in this process without ROS. JSON or CSV in, JSON out.

The state is a JSON object, in a file or on standard input (-), with the keys of the services' requests:

    {"joint_names": ["elbow", "shoulder"],                    any order; default: the robot's own
     "samples": [{"position": [0.1, 0.2], "velocity": [1, 0], "acceleration": ..., "jerk": ..., "effort": ...}],
     "base": [{"position": [0, 0, 1], "orientation": [0, 0, 0, 1], "velocity": [0, 0, 0, 0, 0, 0], ...}],
     "wrenches": [{"link": "tool", "frame": "link", "wrench": [0, 0, -5, 0, 0, 0], "rate": ...}],
     "links": ["tool"], "points": [[0, 0, 0.1]],              for poses and Jacobians; default: all links
     "guess": {"joint_names": [...], "position": [...]},      selects the branch of closed loops
     "base_motion_given": false, "of_rate": false}

The fields of a single sample may be given directly: {"position": [0.1, 0.2]}. Missing values are zero, except the position.
Robots with elastic joints (--robot-file) need more: snap, crackle of a motion, motor_position, motor_velocity of a state. A
CSV has columns t, q_<joint>, and optionally qd_, qdd_, qddd_, tau_<joint> for efforts; base_x, base_y, base_z, base_roll,
base_pitch, base_yaw and motors named by the robot file are read like joints. Units, frames and signs: rnea_msgs/srv.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError, near
from ..io import csv_files, recording
from ..io.recording import derivative_note
from ..query import (
    BASE,
    FIELDS,
    GUESS,
    HIGHER,
    MOTION,
    OF_MOTORS,
    REQUESTS,
    WRENCH,
    Request,
    RequestHandler,
    answer_request,
    tree,
)
from ..robots.robot import Robot
from . import inputs
from .output import CommandResult, check_files, show_working, to_json

TREE = "tree"
KEYS = {"samples": FIELDS, "base": tuple(BASE), "platform": tuple(BASE), "wrenches": WRENCH}  # of entries of lists
LISTS = ("joint_names", *KEYS, "links", "points")
NAMES = ("joint_names", "links")
OBJECTS = {"guess": GUESS}
FLAGS = ("base_motion_given", "of_rate")


def add_query_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rnea query`."""
    parser.description = __doc__
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "requests:\n" + "\n".join(f"  {name:<22}{handler.text}" for name, handler in REQUESTS.items()) + (
        f"\n  {TREE:<22}joints, MDH tree, inertial and base parameters; needs no state")
    inputs.add_robot_arguments(parser, base=False)
    parser.add_argument("question", choices=(*REQUESTS, TREE), metavar="REQUEST", help="one of the requests listed below")
    parser.add_argument("--state", metavar="FILE", help=".json or .csv; - for JSON on standard input")
    inputs.add_window(parser)
    parser.add_argument("-o", "--output", metavar="OUT.json", help="JSON to write; default: standard output")
    inputs.add_dynamics(parser)
    parser.add_argument("--floating-base", action="store_true", help="with tree: base parameters for a floating base")


def run_query(args: argparse.Namespace) -> CommandResult:
    """Return the answer as JSON."""
    check_files(args.output)
    robot = inputs.load_robot(args)
    if args.question == TREE:
        answer = tree(robot.tree, args.floating_base)
    else:
        handler = REQUESTS[args.question]
        request = _read_request(args.state, robot, handler, args.window)
        with show_working("computing the answer"):
            answer = answer_request(robot, handler, request)
    answer = {"model_id": robot.model_id, **answer}
    if not args.output:
        return CommandResult(to_json(answer), answer)
    Path(args.output).write_text(to_json(answer) + "\n", encoding="utf-8")
    return CommandResult("", {"files": [args.output]})


def _read_request(source: str | None, robot: Robot, handler: RequestHandler, window: float | None) -> Request:
    if source is None:
        raise InputError("--state FILE is missing; a valid example for this robot: "
                         + json.dumps({"joint_names": robot.joint_names, "samples": [{"position": [0.0] * robot.n}]}))
    if source.lower().endswith(".csv"):
        return _request_from_csv(source, robot, handler, window)
    piped, source = source == "-", "standard input" if source == "-" else source
    try:
        text = sys.stdin.read() if piped else Path(source).read_text(encoding="utf-8")
        request = json.loads(text)
    except (OSError, ValueError) as error:  # not UTF-8, no JSON
        raise InputError(f"{source}: cannot be read as JSON: {error}") from None
    return _check_request(request, source)


def _request_from_csv(source: str, robot: Robot, handler: RequestHandler, window: float | None) -> Request:
    """Return the samples of a motion, with efforts, motors of elastic joints and a moving base if the file has them."""
    read = recording.recording_schema(robot)
    if "q" not in csv_files.read_layout(source, read.names, ("q",), ()).known:
        read = recording.RecordingSchema(robot.joint_names, robot.joint_types, read.blocks)
    motion = csv_files.read_motion(source, read.names, window, read.types, read.blocks)
    if motion.how:
        print(derivative_note(motion.estimated, motion.how), file=sys.stderr)
    columns = dict(zip((*MOTION, *HIGHER), (*recording.joint_motion(robot, motion), *motion.higher)))
    if "effort" in handler.needed:
        there = csv_files.read_layout(source, robot.joint_names, ("tau",), ()).known
        if there or handler is not REQUESTS["energy"]:  # whose power is zero without
            columns["effort"] = csv_files.read_columns(source, robot.joint_names, ("tau",), ("tau",))[0]["tau"]
    beside, request = recording.other_motion(robot, motion), {}
    if not robot.is_fixed_tree and not robot.has_moving_base and beside[0].size:
        elastic = [robot.joint_names.index(joint) for joint in robot.elastic_joints]
        for name, block in zip(OF_MOTORS, beside):
            columns[name] = motion.q[:, :robot.n] * 0.0
            columns[name][:, elastic] = block
    elif beside[0].size:
        base = recording.base_motion(robot, motion)
        rows = base.position, base.quaternion, base.velocity, base.acceleration, base.jerk
        request["base"] = [dict(zip(BASE, each)) for each in zip(*rows, strict=True)]
    return request | {"samples": [dict(zip(columns, each)) for each in zip(*columns.values(), strict=True)]}


def _check_request(request: Any, source: str) -> Request:
    """Return the request with a checked structure and no unknown keys; rnea_ros/query.py checks its numbers."""
    _check_keys(request, (*LISTS, *OBJECTS, *FLAGS, *FIELDS), source)
    alone = {name: request[name] for name in FIELDS if name in request}
    if alone and "samples" in request:
        raise InputError(f"{source}: '{next(iter(alone))}' is given beside samples; move it into each sample")
    request = {name: value for name, value in request.items() if name not in alone} | ({"samples": [alone]} if alone else {})
    for name in LISTS:
        if not isinstance(request.get(name, []), list):
            raise InputError(f"{source}: {name} is {request[name]!r:.80}; a list is needed")
    for name in FLAGS:
        if not isinstance(request.get(name, False), bool):
            raise InputError(f"{source}: {name} is {request[name]!r:.80}; true or false is needed")
    for name in NAMES:
        if not all(isinstance(one, str) for one in request.get(name, [])):
            raise InputError(f"{source}: {name} contains {request[name]!r:.80}; names are needed")
    for name, known in OBJECTS.items():
        _check_keys(request.get(name, {}), known, f"{source}: {name}")
    for name, keys in KEYS.items():
        for k, entry in enumerate(request.get(name, [])):
            _check_keys(entry, keys, f"{source}: {name}[{k}]")
    return request


def _check_keys(entry: Any, keys: Collection[str], where: str) -> None:
    if not isinstance(entry, Mapping):
        raise InputError(f"{where} is {entry!r:.80}; an object with keys {', '.join(keys)} is needed")
    for key in entry:
        if key not in keys:
            raise InputError(f"{where}: key '{key}' is not known; allowed are {', '.join(keys)}{near(key, keys)}")
