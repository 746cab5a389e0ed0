"""`rnea robot-file FILE`: check a robot file and print it."""

from __future__ import annotations

import argparse
import json

from ..errors import InputError
from ..model.robot_file import profiles, robot_file
from ..model.robot_file.schema import SCHEMA
from ..robots import kinds
from ..robots.load import kind, load
from .outcome import Outcome


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", help="a robot file, or the name of a profile")
    parser.add_argument("--urdf", metavar="ROBOT.urdf", help="compare it with this robot too, and say what comes of both")
    parser.add_argument("--list", action="store_true", help="print the names of the profiles")
    parser.add_argument("--schema", action="store_true", help="print the JSON schema of robot files, for editors")


def run(args: argparse.Namespace) -> Outcome:
    """What is printed is a robot file itself: everything else in it is a comment."""
    if args.schema:
        return Outcome(json.dumps(SCHEMA, indent=1, ensure_ascii=False), SCHEMA)
    if args.list:
        return Outcome("\n".join(profiles.names()), {"profiles": profiles.names()})
    if not args.file:
        raise InputError("FILE is missing; the path of a robot file is needed, or --schema")
    if args.urdf:
        robot = load(args.urdf, file := robot_file.draft(args.file), backend="python")
        notes = [f"{args.file} with {args.urdf}:", *kinds.described(robot)]
    else:
        notes = [f"{args.file}: {kind(file := robot_file.read(args.file))}"]
    text = "\n".join([*(f"# {note}" for note in notes), file.text().rstrip("\n")])
    return Outcome(text, {"notes": notes, "content": file.content})
