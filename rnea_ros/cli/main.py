"""The `rnea` command: parser, subcommands, and output of their results and errors."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from ..errors import MissingPackage, ModelError, RneaError, near
from ..model.xacro_file import split_arguments, with_arguments
from .output import CommandResult, print_outcome

SUBCOMMANDS = {
    "model": "print the modified Denavit-Hartenberg tree as a table",
    "check": "check masses, inertias, lengths and limits of a URDF; exit code 1 if there are warnings",
    "robot-file": "check a robot file and print it",
    "from-dh": "write a URDF from a Denavit-Hartenberg table",
    "torque": "compute torque and torque rate of a recorded or planned motion",
    "retime": "compute the fastest timing of a given path",
    "plan": "plan the fastest or least costly motion between two poses",
    "compile": "compile the robot's kernels ahead of time, for machines without llvmlite",
    "export": "export the robot's functions as a C library without dependencies",
    "excite": "plan an exciting trajectory for identification, within the limits of the robot",
    "identify": "identify masses, rotors and friction from a recording",
    "payload": "identify the payload of a link from a recording",
    "contact": "learn contact thresholds from a recording of free motion",
    "margin": "compute the share of the limits to plan with, with an allowance for model errors",
    "flexible": "predict deflection, torque and vibration of a robot with flexible links",
    "rolling": "compute ground forces, slip and tip-over margins of a robot on wheels",
    "gait": "predict human walking, or the lifting of a box",
    "query": "compute any quantity of the robot's dynamics, as JSON",
    "doctor": "list what is installed, what that enables, and how to install the rest",
    "watch": "show live joint torques of a running node in the terminal",
    "demo": "run a simulated robot, dynamics_node and a live table over ROS 2",
}


MODULES = {"check": "models", "model": "models", "robot-file": "models", "from-dh": "models", "export": "compile",
           "retime": "motions", "plan": "motions", "excite": "motions", "margin": "motions", "payload": "identify",
           "contact": "identify", "watch": "demo", "rolling": "torque",
           "flexible": "torque"}  # of subcommands; the others have their own module


class Subcommand(NamedTuple):
    """Functions of a subcommand. run returns a result, or the exit code if it prints while it runs; RneaError and OSError
    become messages.
    """

    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], CommandResult | int]


def subcommand(name: str) -> Subcommand:
    """Return the functions of a subcommand; only its module is imported."""
    module, word = import_module(f"rnea_ros.cli.{MODULES.get(name, name)}"), name.replace("-", "_")
    return Subcommand(getattr(module, f"add_{word}_arguments"), getattr(module, f"run_{word}"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code: 0 success, 1 a check failed, 2 an error that a message explains."""
    args = argparse.Namespace(command="")  # filled by the parser, so that an error can name the command
    try:
        parser, subparsers = _parsers()
        if "_ARGCOMPLETE" in os.environ:
            complete(parser, subparsers)
        arguments, words = split_arguments(sys.argv[1:] if argv is None else argv)
        parser.parse_args(words, args)
        args.urdf = with_arguments(getattr(args, "urdf", None), arguments)
        outcome = args.run(args)
        return print_outcome(outcome, args.json) if isinstance(outcome, CommandResult) else outcome
    except BrokenPipeError:  # the reader of the output has closed it
        sys.stderr.close()
        return 0
    except (RneaError, OSError) as error:  # OSError: an output file cannot be written
        print(f"rnea {args.command}: {error}", *next_steps(args, error), sep="\n", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def next_steps(args: argparse.Namespace, error: Exception) -> list[str]:
    """Return lines with commands that help with an error."""
    file, urdf = getattr(args, "robot_file", None), getattr(args, "urdf", None)
    if isinstance(error, MissingPackage):
        return ["next: `rnea doctor` shows what is installed and what that enables"]
    if isinstance(error, ModelError) and file and args.command != "robot-file":
        return [f"next: `rnea robot-file {file}{f' --urdf {urdf}' if urdf else ''}` checks the robot file alone"]
    return []


def complete(parser: argparse.ArgumentParser, subparsers: Mapping[str, _Subparser]) -> None:
    """Print shell completions and exit; docs/command_line.md."""
    import argcomplete

    for word in os.environ.get("COMP_LINE", "").split():
        if word in subparsers:
            subparsers[word].fill()
    argcomplete.autocomplete(parser)


class _Parser(argparse.ArgumentParser):
    """Parser that accepts -1e-3 as a number, which argparse does from Python 3.14 on, and suggests corrections of a wrong
    word.
    """

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self._negative_number_matcher = re.compile(r"-(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$")

    def error(self, message: str) -> NoReturn:
        wrong = re.search(r"invalid choice: '(.*?)' ", message)
        super().error(message + (near(wrong[1], re.findall(r"[\w-]+", message[wrong.end():])) if wrong else ""))


class _Subparser(_Parser):
    """Parser of one subcommand; its arguments are added when it first parses. Recordings are accepted anywhere on the line;
    argparse accepts only those next to the URDF.
    """

    def fill(self) -> None:
        name = self.prog.split()[-1]
        functions = subcommand(name)
        self.set_defaults(run=functions.run)
        functions.add_arguments(self)
        self.add_argument("--json", action="store_true", help="print the results as one JSON object, for programs")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self.get_default("run") is None:
            self.fill()
        found, rest = super().parse_known_args(args, namespace)
        if hasattr(found, "recordings"):
            found.recordings = [*found.recordings, *(word for word in rest if not word.startswith("-"))]
            rest = [word for word in rest if word.startswith("-")]
        return found, rest


class _Version(argparse.Action):
    """Version of the installed package, read only on demand."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        try:
            print(f"rnea_ros {metadata.version('rnea_ros')}")
        except metadata.PackageNotFoundError:
            print(f"rnea_ros, not installed but run from {Path(__file__).parent}")
        parser.exit()


def _parsers() -> tuple[argparse.ArgumentParser, Mapping[str, _Subparser]]:
    """Return the parser of the command, and those of its subcommands by name."""
    parser = _Parser(prog="rnea", description="Exact joint torques and torque rates of a robot from its URDF.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Subparser)
    for name, text in SUBCOMMANDS.items():
        commands.add_parser(name, help=text, description=text)
    return parser, commands.choices


if __name__ == "__main__":
    sys.exit(main())
