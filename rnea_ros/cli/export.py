"""`rnea export`: a robot's functions as a C library, for controllers that run without Python."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..errors import InputError, some
from ..export import c_library, package
from . import output_files, robots
from .outcome import Outcome
from .progress import working


def add_arguments(parser: argparse.ArgumentParser) -> None:
    robots.add_arguments(parser)
    robots.add_gravity(parser)
    robots.add_friction(parser)
    parser.add_argument("-o", "--output", metavar="FOLDER", required=True, help="a new folder; or one of an earlier export")
    parser.add_argument("--name", help="of the package, and before every function; default: the robot's, in small letters")
    parser.add_argument("--payload", metavar="LINK", help="a link that carries things: what, is an argument of each function")
    parser.add_argument("--link", action="append", default=[], metavar="LINK", help="also pose and Jacobian of this link; "
                        "may be repeated")
    parser.add_argument("--only", nargs="+", metavar="FUNCTION", help="of all functions only these")


def run(args: argparse.Namespace) -> Outcome:
    folder = Path(args.output)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "test" / "self_test.c").is_file():
        raise InputError(f"{folder} is not empty, and no earlier export: name a new folder")
    output_files.check_folder(folder)
    robot = robots.loaded(args)
    name = args.name or c_library.identifier(robot.name)
    wanted = set(args.only or ())
    with working("writing the robot's functions as C"):
        library = c_library.library(robot, name, args.payload, args.link, lambda one: not wanted or one in wanted)
    names = [traced.function.name for traced in library.functions]
    if unusable := wanted & set(library.omitted):
        raise InputError(f"robot '{robot.name}' has no {some(sorted(unusable))}: a joint moves no mass; give the links beyond "
                         "it mass and inertia, or the joint a rotor inertia")
    if unknown := wanted - set(names):
        raise InputError(f"no function {some(sorted(unknown))} for a {type(robot).__name__}; there are "
                         f"{some(names) or 'others: leave --only out to see them'}")
    written = package.write(library, folder)
    operations = {f"{name}_{traced.function.name}": sum(traced.program.operation_counts.values())
                  for traced in library.functions}
    lines = [f"  {function}: {count} operations" for function, count in operations.items()]
    lines += [f"  {library.omission}"] if library.omitted else []
    lines += [f"{len(names)} functions of {type(robot).__name__} '{robot.name}' -> {folder} ({len(written)} files); next:",
              f"cd {folder} && cmake -B build -DNATIVE=ON && cmake --build build && ctest --test-dir build"]
    return Outcome("\n".join(lines), {"robot": robot.name, "kind": type(robot).__name__, "operations": operations,
                                      "folder": folder, "files": list(written)})
