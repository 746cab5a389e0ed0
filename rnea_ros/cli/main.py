"""The `rnea` command: its subcommands, a file each, and what their results and errors become."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, NoReturn, Protocol, cast

from ..errors import MissingPackage, ModelError, RneaError, near
from ..model.xacro_file import split_arguments, with_arguments
from .outcome import Outcome, show


class Subcommand(Protocol):
    """A module of this room."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> Outcome | int:
        """What was found; the exit code of what tells while it runs. RneaError and OSError become a message."""


SUBCOMMANDS = {
    "model": "the modified Denavit-Hartenberg tree as a table",
    "check": "masses, inertias, lengths and limits of a URDF; exit code 1 if there are warnings",
    "robot-file": "whether a robot file is right, and what it says",
    "from-dh": "a URDF from a Denavit-Hartenberg table",
    "torque": "torque and torque rate of a recorded or planned motion",
    "retime": "the fastest timing of a given path",
    "plan": "the fastest or least costly motion between two poses",
    "compile": "the robot's kernels, ahead of time, for machines without llvmlite",
    "export": "the robot's functions as a C library without dependencies",
    "excite": "exciting trajectory for identification, within the limits of the robot",
    "identify": "masses, rotors and friction from a recording",
    "payload": "what a robot carries, from a recording",
    "contact": "contact thresholds, learnt from a recording of free motion",
    "margin": "share of the limits to plan with, with allowance for model error",
    "gait": "predicts how a human walks",
    "query": "any of the robot's dynamics, as JSON",
    "doctor": "what is installed, what that enables, and what to install for the rest",
    "watch": "live joint torques of a running node, in the terminal",
    "demo": "a robot, the dynamics node and a live table over ROS 2",
}


def subcommand(name: str) -> Subcommand:
    """Imported when it is asked for: no command waits for what another one needs."""
    module = import_module(f"rnea_ros.cli.{name.replace('-', '_')}")
    return cast(Subcommand, module)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code: 0 all well, 1 a check found something, 2 an error that a message explains."""
    args = argparse.Namespace(command="")  # to be filled, so that an error on the way knows which command it is
    try:
        parser, subparsers = _parsers()
        if "_ARGCOMPLETE" in os.environ:
            complete(parser, subparsers)
        arguments, words = split_arguments(sys.argv[1:] if argv is None else argv)
        parser.parse_args(words, args)
        args.urdf = with_arguments(getattr(args, "urdf", None), arguments)
        outcome = args.run(args)
        return show(outcome, args.json) if isinstance(outcome, Outcome) else outcome
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stderr.close()
        return 0
    except (RneaError, OSError) as error:  # OSError: a result that cannot be written
        print(f"rnea {args.command}: {error}", *next_steps(args, error), sep="\n", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def next_steps(args: argparse.Namespace, error: Exception) -> list[str]:
    """Commands that help with an error."""
    file, urdf = getattr(args, "robot_file", None), getattr(args, "urdf", None)
    if isinstance(error, MissingPackage):
        return ["next: `rnea doctor` shows what is installed, and what that enables"]
    if isinstance(error, ModelError) and file and args.command != "robot-file":
        return [f"next: `rnea robot-file {file}{f' --urdf {urdf}' if urdf else ''}` checks the robot file alone"]
    return []


def complete(parser: argparse.ArgumentParser, subparsers: Mapping[str, _Subparser]) -> None:
    """Answers a shell that asks what may stand where the cursor is, and ends; docs/command_line.md."""
    import argcomplete

    for word in os.environ.get("COMP_LINE", "").split():
        if word in subparsers:
            subparsers[word].fill()
    argcomplete.autocomplete(parser)


class _Parser(argparse.ArgumentParser):
    """Takes -1e-3 for a number; to argparse it is an option, up to Python 3.13. Asks what a wrong word was to be."""

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self._negative_number_matcher = re.compile(r"-(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$")

    def error(self, message: str) -> NoReturn:
        wrong = re.search(r"invalid choice: '(.*?)' ", message)
        super().error(message + (near(wrong[1], re.findall(r"[\w-]+", message[wrong.end():])) if wrong else ""))


class _Subparser(_Parser):
    """Of one subcommand; it has its arguments from the moment that it is to parse any. Recordings may stand anywhere; argparse
    sees only those beside the URDF."""

    def fill(self) -> None:
        name = self.prog.split()[-1]
        module = subcommand(name)
        self.set_defaults(run=module.run)
        module.add_arguments(self)
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
    """Of the installed package, looked up only if somebody asks."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        try:
            print(f"rnea_ros {metadata.version('rnea_ros')}")
        except metadata.PackageNotFoundError:
            print(f"rnea_ros, not installed but run from {Path(__file__).parent}")
        parser.exit()


def _parsers() -> tuple[argparse.ArgumentParser, Mapping[str, _Subparser]]:
    """That of the command, and those of its subcommands by name."""
    parser = _Parser(prog="rnea", description="Exact joint torques and torque rates of a robot from its URDF.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Subparser)
    for name, text in SUBCOMMANDS.items():
        commands.add_parser(name, help=text, description=text)
    return parser, commands.choices


if __name__ == "__main__":
    sys.exit(main())
