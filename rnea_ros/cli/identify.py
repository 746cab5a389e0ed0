"""`rnea identify ROBOT.urdf MOTION.csv`: what a recording says about a robot's masses, inertias, rotors and friction."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ..algebra.vectors import rotate_inertia, shift
from ..errors import some
from ..identification.identification import Identification, Measurements, identify
from ..identification.physical_consistency import Consistency, nearest
from ..inertial.inertial_parameters import TERMS
from ..model.tree import Model
from ..recordings import motion_csv
from ..robots.robot import Robot
from . import robots

DOUBTFUL = 0.3  # relative standard deviation from which on a value says little


def add_arguments(parser: argparse.ArgumentParser) -> None:
    robots.add_arguments(parser)
    parser.add_argument("motion", metavar="MOTION.csv",
                        help="columns t, q_<joint>, tau_<joint>; qd_, qdd_, tau_rate_ and qddd_ where measured")
    parser.add_argument("-o", "--output", metavar="PARAMS.json", help="everything, with the nearest possible bodies, as JSON")
    parser.add_argument("--terms", nargs="*", choices=TERMS, default=list(TERMS), metavar="TERM",
                        help=f"joint parameters to identify beside the inertial ones: {', '.join(TERMS)} (default: all)")
    parser.add_argument("--decimate", type=int, default=1, metavar="K", help="low-pass and keep every K-th equation")
    motion_csv.add_window(parser)
    robots.add_gravity(parser)


def run(args: argparse.Namespace) -> int:
    """Exit code 1 if no physical robot has what was identified."""
    robot = robots.served(args, Robot)
    recording = read(args.motion, robot.joint_names)
    found = identify(robot, recording, args.terms, decimate=args.decimate, window=args.window)
    physical = nearest(robot.model, found.base, found.beta, found.solution.covariance)
    print(report(robot, found, physical))
    if args.output:
        Path(args.output).write_text(json.dumps(as_json(robot, found, physical), indent=1) + "\n", encoding="utf-8")
    return 0 if physical.possible else 1


def read(path: str | Path, joint_names: tuple[str, ...]) -> Measurements:
    """A recording from a CSV as motion_csv.py describes it, with torques beside the motion."""
    wanted = ("q", "qd", "qdd", "qddd", "tau", "tau_rate")
    blocks, ignored = motion_csv.columns_of(path, joint_names, wanted, ("q", "tau"))
    if ignored:
        print(f"columns not used: {some(ignored, 6, quoted=True)}", file=sys.stderr)
    return Measurements(**blocks)


def report(robot: Robot, found: Identification, physical: Consistency) -> str:
    """For people."""
    solution = found.solution
    lines = [f"robot {robot.name}: {len(found.base)} base parameters from {solution.equations} equations, "
             f"condition number {solution.condition_number:.3g}"]
    if found.how:
        lines.append(motion_csv.said(found.estimated, found.how))
    lines += ["", f"{'channel':<28}{'noise':>12}{'misfit':>10}"]
    lines += [f"{name:<28}{solution.noise[name]:>12.4g}{100 * solution.misfit[name]:>9.2f}%" for name in solution.noise]
    width = max(len(name) for name in found.base.names)
    lines += ["", f"{'parameter':<{width}}{'value':>12}{'std':>11}{'%':>8}{'before':>12}  unit"]
    for name, unit, value, std, share, before in _rows(found):
        mark = "  says little" if share > DOUBTFUL else ""
        lines.append(f"{name:<{width}}{value:>12.5g}{std:>11.2g}{100 * min(share, 9.99):>8.1f}{before:>12.5g}  {unit}{mark}")
    verdict = "a physical robot explains them" if physical.possible else "NO physical robot explains them"
    lines += ["", f"{verdict}: the nearest is {physical.distance:.3g} standard deviations away, noise explains up to "
                  f"{physical.limit:.3g}"]
    if physical.thin:
        lines.append(f"at the edge of what is possible: {some(physical.thin)}")
    return "\n".join(lines)


def _rows(found: Identification) -> list[tuple[str, str, float, float, float, float]]:
    return list(zip(found.base.names, found.base.units, found.beta.tolist(), found.std.tolist(), found.relative_std.tolist(),
                    found.prior.tolist(), strict=True))


def as_json(robot: Robot, found: Identification, physical: Consistency) -> dict[str, Any]:
    """For programs. links and joints are the nearest possible robot's, in URDF terms."""
    solution = found.solution
    relations = found.base.relations(17)
    return {
        "robot": robot.name, "model_id": robot.model_id, "gravity": robot.gravity_vector.tolist(),
        "joint_names": list(robot.joint_names), "equations": solution.equations, "condition_number": solution.condition_number,
        "estimated": {"derivatives": list(found.estimated), "method": found.how.method if found.how else None,
                      "window": getattr(found.how, "seconds", None)},
        "channels": {name: {"noise": solution.noise[name], "misfit": solution.misfit[name]} for name in solution.noise},
        "base_parameters": [
            {"name": name, "unit": unit, "value": value, "std": std, "before": before, "relation": relation}
            for (name, unit, value, std, _, before), relation in zip(_rows(found), relations, strict=True)],
        "not_seen_by_any_torque": list(found.base.unseen()),
        "physical": {"possible": physical.possible, "distance": physical.distance, "limit": physical.limit,
                     "at_the_edge": list(physical.thin)},
        "links": inertials(physical.model),
        "joints": {link.joint: {"rotor_inertia_at_joint": link.term.armature, "coulomb": link.term.coulomb,
                                "viscous": link.term.viscous, "offset": link.term.offset, "smoothing": link.term.smoothing}
                   for link in physical.model.links if link.joint}}


def inertials(model: Model) -> dict[str, dict[str, Any]]:
    """{URDF link: mass, com, inertia about the com as ixx ixy ixz iyy iyz izz} of moving bodies, in the link's frame.

    What fixed joints tie to a link is part of its body.
    """
    found = {}
    for link in model.links[1:]:
        if not link.joint or link.name not in model.frames:
            continue
        frame = model.frames[link.name]
        J, ms = shift(link.J, link.ms, link.m, -frame.P)
        J, ms = rotate_inertia(frame.R.T, J, ms)
        com = ms / link.m if link.m > 0.0 else np.zeros(3)
        central, _ = shift(J, ms, link.m, -com)
        found[link.name] = {"mass": link.m, "com": com.tolist(), "inertia": central[np.triu_indices(3)].tolist()}
    return found
