"""`rnea check ROBOT.urdf`: what is doubtful in a robot's physics; exit code 1 if anything is."""

from __future__ import annotations

import argparse

import numpy as np

from ..errors import some
from ..robots import kinds
from ..robots.robot import Robot
from . import robots
from .outcome import Outcome


def add_arguments(parser: argparse.ArgumentParser) -> None:
    robots.add_arguments(parser)
    parser.set_defaults(backend="python")


def run(args: argparse.Namespace) -> Outcome:
    """Of a robot of any kind its tree is looked at; that loops close, and motors move something, its making has shown."""
    kind = robots.loaded(args)
    robot = kinds.tree(kind)
    doubts = list(dict.fromkeys(_doubts(robot)))
    what = "" if isinstance(kind, Robot) else f" ({'; '.join(kinds.described(kind))})"
    lines = [f"doubtful: {doubt}" for doubt in doubts]
    lines.append(f"{robot.name}: {robot.n} joints{what}, {robot.total_mass:.6g} kg, frames within "
                 f"{robot.reconstruction_error:.1e} of the URDF, {len(doubts)} doubts")
    return Outcome("\n".join(lines), {
        "robot": robot.name, "kind": type(kind).__name__, "joints": robot.n, "total_mass": robot.total_mass,
        "reconstruction_error": robot.reconstruction_error, "doubts": doubts}, int(bool(doubts)))


def _doubts(robot: Robot) -> list[str]:
    doubts = list(robot.warnings)
    for q in np.random.default_rng(0).uniform(-1.0, 1.0, (3, robot.n)):
        inertia = np.diagonal(robot.mass_matrix(q))
        doubts += [f"joint '{name}' moves no mass: no forward dynamics without a rotor inertia"
                   for name, value in zip(robot.joint_names, inertia, strict=True) if value <= 0.0]
    unknown = [name for name, limit in zip(robot.joint_names, robot.limits.effort, strict=True) if np.isnan(limit)]
    if unknown:
        doubts.append(f"effort limit unknown (missing, zero or infinite) of {some(unknown)}")
    return doubts
