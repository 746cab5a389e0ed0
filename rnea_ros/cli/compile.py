"""`rnea compile`: a robot's kernels by the C compiler, kept for machines that have no llvmlite, or no compiler either."""

from __future__ import annotations

import argparse
import os

from ..codegen import c_compiler
from ..codegen import cache as disk
from ..errors import InputError
from ..motion.path_dynamics import PathDynamics
from ..robots import kinds
from ..robots.rehearsal import rehearse
from ..robots.robot import Robot
from . import output_files, robots
from .outcome import Outcome
from .progress import working


def add_arguments(parser: argparse.ArgumentParser) -> None:
    robots.add_arguments(parser)
    robots.add_friction(parser)
    robots.add_gravity(parser)
    parser.set_defaults(backend="c")
    parser.add_argument("-o", "--output", metavar="FOLDER", help=f"where to put them, for {disk.FOLDER} of whoever runs them; "
                        "default: the folder in which they are looked for without it")
    parser.add_argument("--payload", metavar="LINK", help="a link that will carry things, by payload.* of the nodes")
    parser.add_argument("--link", action="append", default=[], metavar="LINK", help="one that external wrenches will push, or "
                        "whose pose and Jacobian will be asked for; may be repeated")
    parser.add_argument("--portable", action="store_true", help="for any processor of this kind, not this one alone: slower, "
                        "and without fused multiply-add other roundings")


def run(args: argparse.Namespace) -> Outcome:
    if args.output:
        os.environ[disk.FOLDER] = args.output
    if (folder := disk.folder()) is None:
        raise InputError(f"there is no folder to keep kernels in: {disk.FOLDER} is empty; name one by --output")
    if not c_compiler.compiler():
        raise InputError("there is no C compiler: cc, gcc or clang is needed, or the environment variable CC")
    output_files.check_folder(folder)
    with c_compiler.only(c_compiler.PORTABLE if args.portable else c_compiler.NATIVE), working("compiling kernels"):
        robot = robots.loaded(args)
        calls: set[str] = set()
        for one in (robot, robot.with_payload(args.payload, 1.0)) if args.payload else (robot,):
            calls |= set(rehearse(one, args.link))
            if isinstance(one, Robot):
                PathDynamics(one).compile()
    if disk.counts["unusable"]:
        raise InputError(f"{folder} cannot be used to keep kernels; --output names another folder")
    what = "any processor of this kind" if args.portable else "this processor"
    kind, name, compiled, found = type(robot).__name__, kinds.tree(robot).name, disk.counts["compiled"], disk.counts["found"]
    return Outcome(f"{compiled} kernels of {kind} '{name}' compiled for {what}, {found} found there already, for {len(calls)} "
                   f"calls -> {folder}",
                   {"robot": name, "kind": kind, "portable": args.portable, "compiled": compiled, "found": found,
                    "calls": sorted(calls), "folder": folder})
