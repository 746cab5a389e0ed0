"""Commands about robot descriptions: `rnea check`, `rnea model`, `rnea robot-file` and `rnea from-dh`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, ModelWarning, count_noun, some
from ..model import dh_table, robot_file, urdf, urdf_validation
from ..model.robot_file_schema import SCHEMA
from ..robots.load import load
from ..robots.robot import Robot
from ..robots.tree import TreeDynamics
from . import inputs
from .output import CommandResult, check_files, format_table, terminal_width


def add_check_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rnea check`."""
    inputs.add_robot_arguments(parser)
    parser.add_argument("--accept", action="append", default=[], metavar="NAME", choices=urdf_validation.ACCEPTABLE,
                        help="name of a warning (in brackets at its end) that does not affect the exit code; may be "
                        "repeated. accepted_warnings in the robot file has the same effect in all commands and nodes. Names: "
                        f"{', '.join(urdf_validation.ACCEPTABLE)}")
    parser.set_defaults(backend="python")


def run_check(args: argparse.Namespace) -> CommandResult:
    """Run `rnea check`: return the warnings and notes about a robot. Loading has checked its loop closure and motors."""
    robot = inputs.load_robot(args, print_warnings=False)  # the result holds all warnings
    tree, names = robot.tree, robot.tree_joints
    all_warnings = list(dict.fromkeys((*tree.warnings, *_missing_inertia(tree))))
    notes = [warning for warning in all_warnings if warning.name in urdf_validation.NOTES and warning.name not in args.accept]
    notes += [note for note in _unknown_efforts(tree, names) if note.name not in args.accept]
    accepted = [*tree.model.accepted_warnings]
    accepted += [warning for warning in all_warnings if warning.name in args.accept]
    warnings = [warning for warning in all_warnings if warning not in notes and warning not in accepted]
    kind = "" if robot.is_fixed_tree else f" ({'; '.join(robot.description)})"
    groups = (("warning", warnings), ("accepted", accepted), ("note", notes))
    lines = [f"{word}: {text}" for word, texts in groups for text in texts]
    lines += [f"coupled motor: {text}" for text in robot.coupled_motor_speeds]
    mass = tree.total_mass
    lines.append(f"{tree.name}: {len(names)} joints{kind}, {mass:.6g} kg, {count_noun(len(warnings), 'warning')}")
    return CommandResult("\n".join(lines), {
        "robot": tree.name, "kind": robot.kind, "joints": len(names), "total_mass": mass, "warnings": warnings,
        "accepted": accepted, "notes": notes, "coupled_motors": robot.coupled_motor_speeds}, int(bool(warnings)))


def _missing_inertia(robot: TreeDynamics) -> list[ModelWarning]:
    """Return warnings about joints without link or rotor inertia."""
    if any(warning.name == "massless" for warning in robot.warnings):
        return []
    poses = np.random.default_rng(0).uniform(-1.0, 1.0, (3, robot.n))
    least = np.min([np.diagonal(robot.mass_matrix(q)) for q in poses], axis=0)
    names = [name for name, inertia in zip(robot.joint_names, least, strict=True) if inertia <= 0.0]
    return [ModelWarning("no_inertia", f"joint '{name}' moves no inertia: its torque is always zero. Add "
                         "<inertial> to the links after it, or rotor_inertia in the robot file") for name in names]


def _unknown_efforts(tree: TreeDynamics, names: Collection[str]) -> list[ModelWarning]:
    """Return a note about the joints in `names` with an unknown effort limit, in a list; empty if there are none."""
    limits = zip(tree.joint_names, tree.limits.effort, strict=True)
    unknown = [name for name, limit in limits if name in names and np.isnan(limit)]
    text = f"effort limit of {some(unknown)} is unknown (missing, zero or infinite)"
    return [ModelWarning("unknown_limit", text)] if unknown else []


JOINT_TYPES = ("revolute", "prismatic", "fixed")


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rnea model`."""
    inputs.add_robot_arguments(parser)


def run_model(args: argparse.Namespace) -> CommandResult:
    """Run `rnea model`; return its result."""
    robot = inputs.load_robot(args, print_warnings=False)  # the result holds all warnings
    text, what = model_table(robot, terminal_width()), robot.description
    if len(what) > 1 or not robot.is_fixed_tree:
        text += "\n\n" + "\n".join(what)
    return CommandResult(text, model_data(robot) | {"kind": robot.kind})


def model_table(robot: Robot, width: int | None = None) -> str:
    """Return the modified Denavit-Hartenberg tree as text, at most `width` characters wide."""
    lines = [f"robot {robot.name}: {len(robot.tree_joints)} joints, {robot.total_mass:.6g} kg, root link '{robot.root_link}', "
             f"largest deviation from the URDF {robot.reconstruction_error:.1e}", ""]
    lines += format_table(("j", "joint", "a(j)", "type", "gamma", "b", "alpha", "d", "theta", "r"), [
        (str(j), name, str(parent), JOINT_TYPES[sigma], *(f"{x:.6g}" for x in numbers))
        for j, (name, parent, sigma, *numbers) in enumerate(robot.mdh_table(), start=1)], "><><>>>>>>", width)
    lines += [f"     joints '{link}: ...' describe the pose of platform '{link}'; they are not joints of the URDF" for link in
              robot.platforms]
    names = robot.tree.joint_names
    for link in (link for link in robot.model.links if link.joint and link.joint not in names):
        leader = names[link.coordinate]
        lines.append(f"     {link.joint} follows {leader}: {link.multiplier:g} q + {link.offset:g}")
    return "\n".join(lines + [""] * bool(robot.warnings) + [f"warning: {text}" for text in robot.warnings])


def model_data(robot: Robot) -> dict[str, Any]:
    """Return the model as content of a JSON file."""
    links = [{**{key: value for key, value in vars(link).items() if not key.startswith("_")}, "ms": link.ms.tolist(),
              "J": link.J.tolist(), "term": asdict(link.term)} for link in robot.model.links]
    frames = {name: {"link": f.link, "R": f.R.tolist(), "P": f.P.tolist()} for name, f in robot.model.frames.items()
              if name in robot.links}
    joints = [asdict(joint) for joint in robot.model.joints if joint.name in robot.tree_joints]
    motors = [{"name": motor.name, "ratios": dict(zip((robot.tree.joint_names[k] for k in motor.coordinates), motor.ratios)),
               "term": asdict(motor.term)} for motor in robot.model.coupled_motors]
    return {"name": robot.name, "model_id": robot.model_id, "base": robot.model.base, "root_link": robot.root_link,
            "platforms": robot.platforms, "total_mass": robot.total_mass, "reconstruction_error": robot.reconstruction_error,
            "joints": joints, "links": links, "coupled_motors": motors, "frames": frames, "warnings": list(robot.warnings)}


def add_robot_file_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rnea robot-file`."""
    parser.add_argument("file", metavar="FILE", nargs="?", help="robot file, or name of a profile")
    parser.add_argument("--urdf", metavar="ROBOT.urdf", help="also check the file with this robot, and describe the result")
    parser.add_argument("--list", action="store_true", help="print the names of the profiles")
    parser.add_argument("--schema", action="store_true", help="print the JSON schema of robot files, for editors")


def run_robot_file(args: argparse.Namespace) -> CommandResult:
    """Run `rnea robot-file`: check the file, and return it with comments."""
    if args.schema:
        return CommandResult(json.dumps(SCHEMA, indent=1, ensure_ascii=False), SCHEMA)
    if args.list:
        return CommandResult("\n".join(robot_file.profile_names()), {"profiles": robot_file.profile_names()})
    if not args.file:
        raise InputError("FILE is missing; the path of a robot file, the name of a profile, --list or --schema is needed")
    if args.urdf:
        robot = load(args.urdf, file := robot_file.draft(args.file), backend="python")
        notes = [f"{args.file} with {args.urdf}:", *robot.description]
    else:
        file = robot_file.read(args.file)
        notes = [f"{args.file}: {some(file.sections)}"]
    text = "\n".join([*(f"# {note}" for note in notes), file.text().rstrip("\n")])
    return CommandResult(text, {"notes": notes, "content": file.content})


CONVENTIONS = ("standard", "modified")


def add_from_dh_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rnea from-dh`."""
    parser.add_argument("table", metavar="TABLE.csv", help="columns joint, type (R or P), theta, d, a, alpha (standard) or "
                        "antecedent, gamma, b, alpha, d, theta, r (modified); optional mass, com_x ..., ixx ..., lower, "
                        "upper, effort, velocity; angles in rad, pi/2 allowed")
    parser.add_argument("--convention", choices=CONVENTIONS, help="default: modified if a column antecedent, gamma, b or r "
                        "exists, else standard")
    parser.add_argument("--name", help="name of the robot; default: name of the table")
    parser.add_argument("-o", "--output", metavar="ROBOT.urdf", help="URDF to write; default: standard output")


def run_from_dh(args: argparse.Namespace) -> CommandResult:
    """Run `rnea from-dh`; return its result."""
    check_files(args.output)
    modified = set(dh_table.MODIFIED_ONLY_COLUMNS) & set(dh_table.column_names(args.table))
    convention = args.convention or CONVENTIONS[bool(modified)]
    name = args.name or Path(args.table).stem
    text = dh_table.modified_to_urdf(dh_table.read_modified(args.table), name) if convention == "modified" else \
        dh_table.standard_to_urdf(dh_table.read_standard(args.table), name)
    model = urdf.load(text)  # raises for an invalid robot
    for warning in model.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    data = {"convention": convention, "joints": model.n, "warnings": list(model.warnings)}
    if not args.output:
        return CommandResult(text, data | {"urdf": text})
    Path(args.output).write_text(text + "\n", encoding="utf-8")
    return CommandResult(f"{convention} table of {model.n} joints -> {args.output}", data | {"files": [args.output]})
