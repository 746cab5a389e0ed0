"""`rnea check ROBOT.urdf`: warnings about a robot's physics; exit code 1 unless all of them are accepted."""

from __future__ import annotations

import argparse

import numpy as np

from ..errors import ModelWarning, some
from ..model import plausibility
from ..robots import kinds
from ..robots.robot import Robot
from . import robots
from .outcome import Outcome


def add_arguments(parser: argparse.ArgumentParser) -> None:
    robots.add_arguments(parser)
    parser.add_argument("--accept", action="append", default=[], metavar="NAME", choices=plausibility.ACCEPTABLE,
                        help="name of a known warning, which stands in brackets after it: it no longer counts for the exit "
                             "code. May be repeated; accepted_warnings in the robot file does the same for all commands and "
                             f"nodes. Names: {', '.join(plausibility.ACCEPTABLE)}")
    parser.set_defaults(backend="python")


def run(args: argparse.Namespace) -> Outcome:
    """Check the trees of a robot of any kind. Loading it has checked that its loops close and its motors move something."""
    robot = robots.loaded(args, print_warnings=False)  # the result holds all warnings
    tree = kinds.tree(robot)
    found = list(dict.fromkeys((*tree.warnings, *_missing_inertia(tree))))
    notes = [warning for warning in found if warning.name in plausibility.NOTES and warning.name not in args.accept]
    notes += [note for note in _unknown_efforts(tree) if note.name not in args.accept]
    accepted = [*tree.model.accepted_warnings]
    accepted += [warning for warning in found if warning.name in args.accept]
    warnings = [warning for warning in found if warning not in notes and warning not in accepted]
    kind = "" if isinstance(robot, Robot) else f" ({'; '.join(kinds.described(robot))})"
    sorts = (("warning", warnings), ("accepted", accepted), ("note", notes))
    lines = [f"{word}: {text}" for word, texts in sorts for text in texts]
    lines += [f"coupled motor: {text}" for text in kinds.couplings(tree)]
    mass = tree.total_mass
    lines.append(f"{tree.name}: {tree.n} joints{kind}, {mass:.6g} kg, {counted(len(warnings), 'warning')}")
    return Outcome("\n".join(lines), {
        "robot": tree.name, "kind": type(robot).__name__, "joints": tree.n, "total_mass": mass, "warnings": warnings,
        "accepted": accepted, "notes": notes, "coupled_motors": kinds.couplings(tree)}, int(bool(warnings)))


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _missing_inertia(robot: Robot) -> list[ModelWarning]:
    """Joints that neither links nor rotors give an inertia."""
    if any(warning.name == "massless" for warning in robot.warnings):
        return []
    poses = np.random.default_rng(0).uniform(-1.0, 1.0, (3, robot.n))
    least = np.min([np.diagonal(robot.mass_matrix(q)) for q in poses], axis=0)
    names = [name for name, inertia in zip(robot.joint_names, least, strict=True) if inertia <= 0.0]
    return [ModelWarning("no_inertia", f"joint '{name}' has no inertia behind it: all its torques will be zero. Add "
                                       "<inertial> to its links, or rotor_inertia in the robot file") for name in names]


def _unknown_efforts(robot: Robot) -> list[ModelWarning]:
    names = [name for name, limit in zip(robot.joint_names, robot.limits.effort, strict=True) if np.isnan(limit)]
    text = f"effort limit of {some(names)} is unknown (missing, zero or infinite)"
    return [ModelWarning("unknown_limit", text)] if names else []
