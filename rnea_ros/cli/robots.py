"""The robot that a command works on: its URDF, the robot file beside it, and options that go over what the file says."""

from __future__ import annotations

import argparse
import sys
from typing import TypeVar

from ..errors import InputError, some
from ..model.plausibility import implausible
from ..model.robot_file import robot_file
from ..model.tree import Limits
from ..robots.declared_joints import joint_forces, limited
from ..robots.general import GeneralRobot
from ..robots.kinds import has_moving_base, tree
from ..robots.load import load
from ..robots.protocol import AnyRobot

URDF = "a URDF, or a .xacro file and its arguments NAME:=VALUE (expanding it executes code)"
WHY: dict[type, str] = {GeneralRobot: "robot '{name}' combines a base, loops, platforms, springs, elastic joints or contacts"}
Kind = TypeVar("Kind", bound=AnyRobot)


def add_arguments(parser: argparse.ArgumentParser, base: bool = True) -> None:
    """URDF and robot file; what goes over the file's `base`."""
    parser.add_argument("urdf", metavar="ROBOT.urdf", help=URDF)
    parser.add_argument("--robot-file", metavar="FILE",
                        help="ROBOT.robot.yaml: loops, elastic joints, payloads, drives, limits, ..., see docs/robot_file.md")
    if base:
        parser.add_argument("--base", choices=("fixed", "floating"),
                            help="whether the root link is free; default: as the robot file says, or fixed")


def add_gravity(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gravity", nargs=3, type=float, metavar=("X", "Y", "Z"),
                        help="acceleration of gravity in the root link's frame, with a moving base in the world [m/s^2]; "
                             "default: as the robot file says, or 0 0 -9.81")


def add_friction(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--friction", action="store_const", const=True, help="use the URDF's damping and friction")


def add_dynamics(parser: argparse.ArgumentParser) -> None:
    """Options of commands that compute torques."""
    add_friction(parser)
    add_gravity(parser)
    parser.add_argument("--backend", choices=("llvm", "c", "python", "reference"), default="llvm")


def loaded(args: argparse.Namespace, urdf: str | bytes | None = None, *, print_warnings: bool = True) -> AnyRobot:
    """Return the robot of any kind that URDF, robot file and options describe.

    urdf: text, or a path, instead of args.urdf; print_warnings: of implausible numbers, to stderr.
    """
    options = {name: getattr(args, name) for name in ("base", "backend", "gravity", "friction") if hasattr(args, name)}
    robot = load(urdf or args.urdf, robot_file.draft(args.robot_file) if args.robot_file else None, **options)
    if print_warnings:
        warn_of_implausible(robot)
    return robot


def warn_of_implausible(robot: AnyRobot) -> None:
    """Print the warnings after which torques are most likely wrong to stderr."""
    for warning in implausible(tree(robot).warnings):
        print(f"warning: {warning}", file=sys.stderr)


def check_masses(robot: AnyRobot) -> None:
    """Print warnings about implausible numbers; raise InputError for a robot without mass, whose torques would all be zero."""
    for warning in tree(robot).warnings:
        if warning.name == "massless":
            raise InputError(f"robot '{tree(robot).name}': {warning}; `rnea check` lists all warnings about a URDF")
    warn_of_implausible(robot)


def served(args: argparse.Namespace, *kinds: type[Kind], urdf: str | bytes | None = None) -> Kind:
    """The same, if it is of a kind that the command serves; InputError says which it is."""
    return of_kind(args, loaded(args, urdf), *kinds)


def of_kind(args: argparse.Namespace, robot: AnyRobot, *kinds: type[Kind]) -> Kind:
    """A robot that is loaded already, if it is of such a kind."""
    if not isinstance(robot, kinds):
        names = [kind.__name__ for kind in kinds]
        why = "the base of robot '{name}' moves" if has_moving_base(robot) else WHY[type(robot)]
        raise InputError(f"{why.format(name=tree(robot).name)} ({type(robot).__name__}); rnea {args.command} "
                         f"serves {some(names)} so far, Python more: rnea_ros.load")
    return robot


def limits(robot: AnyRobot, args: argparse.Namespace) -> tuple[Limits, dict[str, float]]:
    """Limits of the joints, and the largest internal joint forces by joint; a file of --limits goes over --robot-file."""
    forces = joint_forces(robot_file.draft(args.robot_file)) if args.robot_file else {}
    if not args.limits:
        return robot.limits, forces
    model = tree(robot).model
    file = robot_file.draft(args.limits).only(["limits"]).alone("--limits", ["limits"], ["limits"]).checked(
        tree(robot).model)
    found = limited(model, file).limits.of([model.joint_names.index(name) for name in robot.joint_names])
    return found, forces | joint_forces(file)
