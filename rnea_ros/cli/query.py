"""`rnea query`: the questions of query_node, asked in this process, without ROS. JSON or CSV in, JSON out.

The state is a JSON object, in a file or on standard input (-); its keys are those of the services' requests:

    {"joint_names": ["elbow", "shoulder"],                    any order; without it the robot's own
     "samples": [{"position": [0.1, 0.2], "velocity": [1, 0], "acceleration": ..., "jerk": ..., "effort": ...}],
     "base": [{"position": [0, 0, 1], "orientation": [0, 0, 0, 1], "velocity": [0, 0, 0, 0, 0, 0], ...}],
     "wrenches": [{"link": "tool", "frame": "link", "wrench": [0, 0, -5, 0, 0, 0], "rate": ...}],
     "links": ["tool"], "points": [[0, 0, 0.1]],              of which poses and Jacobians are wanted; all without it
     "guess": {"joint_names": [...], "position": [...]},      which way closed loops are closed
     "base_motion_given": false, "of_rate": false}

A single sample may stand for the whole: {"position": [0.1, 0.2]}. What is left out is zero, except the position. Robots with
elastic joints (--robot-file) need more: snap, crackle of a motion, motor_position, motor_velocity of a state. A CSV has
columns t, q_<joint>, and qd_, qdd_, qddd_ where known, tau_<joint> for efforts; base_x, base_y, base_z, base_roll, base_pitch,
base_yaw and motors named by the robot file are read like joints. Units, frames and signs: rnea_msgs/srv.
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
from ..query.ask import MOTION, RequestHandler, ask
from ..query.handlers import QUESTIONS
from ..query.request import BASE, FIELDS, GUESS, HIGHER, OF_MOTORS, WRENCH, Request
from ..query.tree import tree
from ..robots import kinds
from ..robots.general import GeneralRobot
from ..robots.protocol import AnyRobot
from . import output_files, reading, robots
from .outcome import Outcome, in_json
from .progress import working

TREE = "tree"
KEYS = {"samples": FIELDS, "base": tuple(BASE), "platform": tuple(BASE), "wrenches": WRENCH}  # of entries of lists
LISTS = ("joint_names", *KEYS, "links", "points")
NAMES = ("joint_names", "links")
OBJECTS = {"guess": GUESS}
FLAGS = ("base_motion_given", "of_rate")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = __doc__
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "questions:\n" + "\n".join(f"  {name:<22}{question.text}" for name, question in QUESTIONS.items()) + (
        f"\n  {TREE:<22}joints, MDH tree, inertial and base parameters; needs no state")
    robots.add_arguments(parser, base=False)
    parser.add_argument("question", choices=(*QUESTIONS, TREE), metavar="QUESTION", help="one of those below")
    parser.add_argument("--state", metavar="FILE", help=".json or .csv; - for JSON on standard input")
    reading.add_window(parser)
    parser.add_argument("-o", "--output", metavar="OUT.json", help="instead of standard output")
    robots.add_dynamics(parser)
    parser.add_argument("--floating-base", action="store_true", help="tree: base parameters for a base that is free")


def run(args: argparse.Namespace) -> Outcome:
    """The answer is JSON, for people too."""
    output_files.check_files(args.output)
    robot = robots.loaded(args)
    if args.question == TREE:
        answer = tree(kinds.tree(robot), args.floating_base)
    else:
        question = QUESTIONS[args.question]
        request = _request(args.state, robot, question, args.window)
        with working("asking the robot"):
            answer = ask(robot, question, request)
    answer = {"model_id": kinds.model_id(robot), **answer}
    if not args.output:
        return Outcome(in_json(answer), answer)
    Path(args.output).write_text(in_json(answer) + "\n", encoding="utf-8")
    return Outcome("", {"files": [args.output]})


def _request(source: str | None, robot: AnyRobot, question: RequestHandler, window: float | None) -> Request:
    if source is None:
        raise InputError("--state FILE is missing; an example that is right for this robot: "
                         + json.dumps({"joint_names": robot.joint_names, "samples": [{"position": [0.0] * robot.n}]}))
    if source.lower().endswith(".csv"):
        return _from_csv(source, robot, question, window)
    piped, source = source == "-", "standard input" if source == "-" else source
    try:
        text = sys.stdin.read() if piped else Path(source).read_text(encoding="utf-8")
        request = json.loads(text)
    except (OSError, ValueError) as error:  # not UTF-8, no JSON
        raise InputError(f"{source}: cannot be read as JSON: {error}") from None
    return _checked(request, source)


def _from_csv(source: str, robot: AnyRobot, question: RequestHandler, window: float | None) -> Request:
    """Samples of a motion, with what else the file tells: efforts, motors behind springs, a base that moves."""
    read = recording.recording_schema(robot)
    if "q" not in csv_files.read_layout(source, read.names, ("q",), ()).known:
        read = recording.RecordingSchema(robot.joint_names, robot.joint_types, read.blocks)
    motion = csv_files.read_motion(source, read.names, window, read.types, read.blocks)
    if motion.how:
        print(derivative_note(motion.estimated, motion.how), file=sys.stderr)
    columns = dict(zip((*MOTION, *HIGHER), (*recording.joint_motion(robot, motion), *motion.higher)))
    if "effort" in question.needed:
        there = csv_files.read_layout(source, robot.joint_names, ("tau",), ()).known
        if there or question is not QUESTIONS["energy"]:  # whose power is zero without
            columns["effort"] = csv_files.read_columns(source, robot.joint_names, ("tau",), ("tau",))[0]["tau"]
    beside, request = recording.other_motion(robot, motion), {}
    if isinstance(robot, GeneralRobot) and not robot.has_moving_base and beside[0].size:
        elastic = [robot.joint_names.index(joint) for joint in robot.elastic_joints]
        for name, block in zip(OF_MOTORS, beside):
            columns[name] = motion.q[:, :robot.n] * 0.0
            columns[name][:, elastic] = block
    elif beside[0].size:
        state, acceleration, jerk = recording.base_motion(robot, motion)
        rows = state.position, state.quaternion, state.velocity, acceleration, jerk
        request["base"] = [dict(zip(BASE, each)) for each in zip(*rows, strict=True)]
    return request | {"samples": [dict(zip(columns, each)) for each in zip(*columns.values(), strict=True)]}


def _checked(request: Any, source: str) -> Request:
    """The shape of a request; its numbers are looked at by question.py. A misspelt key must not pass for zeros."""
    _known(request, (*LISTS, *OBJECTS, *FLAGS, *FIELDS), source)
    alone = {name: request[name] for name in FIELDS if name in request}
    if alone and "samples" in request:
        raise InputError(f"{source}: '{next(iter(alone))}' stands beside samples; put it into each of them")
    request = {name: value for name, value in request.items() if name not in alone} | ({"samples": [alone]} if alone else {})
    for name in LISTS:
        if not isinstance(request.get(name, []), list):
            raise InputError(f"{source}: {name} is {request[name]!r:.80}; a list is needed")
    for name in FLAGS:
        if not isinstance(request.get(name, False), bool):
            raise InputError(f"{source}: {name} is {request[name]!r:.80}; true or false is needed")
    for name in NAMES:
        if not all(isinstance(one, str) for one in request.get(name, [])):
            raise InputError(f"{source}: {name} holds something that is no name")
    for name, known in OBJECTS.items():
        _known(request.get(name, {}), known, f"{source}: {name}")
    for name, keys in KEYS.items():
        for k, entry in enumerate(request.get(name, [])):
            _known(entry, keys, f"{source}: {name}[{k}]")
    return request


def _known(entry: Any, keys: Collection[str], where: str) -> None:
    if not isinstance(entry, Mapping):
        raise InputError(f"{where} is {entry!r:.80}; an object with keys {', '.join(keys)} is needed")
    for key in entry:
        if key not in keys:
            raise InputError(f"{where}: key '{key}' is not known; allowed are {', '.join(keys)}{near(key, keys)}")
