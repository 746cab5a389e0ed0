"""Inputs of the commands: robot descriptions and recordings, with their options."""

from __future__ import annotations

import argparse
import atexit
import csv
import glob
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, ModelError, near, some
from ..estimation.position_sensor import consistent_stamps
from ..identification.identification import Measurements
from ..io import csv_files, files, recording
from ..io.bags import joints_without_effort, recorded_urdf
from ..io.recording import BLOCKS, TIME_UNITS, ReadingOptions, RecordedMotion, RecordingRequest, Samples
from ..model import robot_file
from ..model.robot_file_validation import Path as KeyPath
from ..model.tree import Limits
from ..model.urdf_validation import implausible
from ..robots.load import joint_forces, limited, load
from ..robots.robot import Robot

URDF_HELP = "a URDF, or a .xacro file and its arguments NAME:=VALUE (expanding it executes code)"


def add_robot_arguments(parser: argparse.ArgumentParser, base: bool = True) -> None:
    """Add the options of URDF, robot file and, with `base`, of its base."""
    parser.add_argument("urdf", metavar="ROBOT.urdf", help=URDF_HELP)
    parser.add_argument("--robot-file", metavar="FILE",
                        help="ROBOT.robot.yaml: loops, elastic joints, payloads, drives, limits, ..., see docs/robot_file.md")
    if base:
        parser.add_argument("--base", choices=("fixed", "floating"),
                            help="whether the root link is fixed or floating; default: from the robot file, or fixed")


def add_gravity(parser: argparse.ArgumentParser) -> None:
    """Add the option --gravity."""
    parser.add_argument("--gravity", nargs=3, type=float, metavar=("X", "Y", "Z"),
                        help="acceleration of gravity in the root link's frame, with a moving base in the world [m/s^2]; "
                        "default: from the robot file, or 0 0 -9.81")


def add_friction(parser: argparse.ArgumentParser) -> None:
    """Add the option --friction."""
    parser.add_argument("--friction", action="store_const", const=True, help="use the URDF's damping and friction")


def add_dynamics(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that compute torques."""
    add_friction(parser)
    add_gravity(parser)
    parser.add_argument("--backend", choices=("llvm", "c", "python", "reference"), default="llvm",
                        help="backend of the kernels; default llvm")


def load_robot(args: argparse.Namespace, urdf: str | bytes | None = None, *, print_warnings: bool = True) -> Robot:
    """Return the robot of any kind that URDF, robot file and options describe.

    urdf : text, or a path, instead of args.urdf; print_warnings : print warnings about implausible numbers to stderr
    """
    options = {name: getattr(args, name) for name in ("base", "backend", "gravity", "friction") if hasattr(args, name)}
    robot = load(urdf or args.urdf, robot_file.draft(args.robot_file) if args.robot_file else None, **options)
    if print_warnings:
        warn_of_implausible(robot)
    return robot


def warn_of_implausible(robot: Robot) -> None:
    """Print warnings that most likely mean wrong torques to stderr."""
    for warning in implausible(robot.tree.warnings):
        print(f"warning: {warning}", file=sys.stderr)


def check_masses(robot: Robot) -> None:
    """Print warnings about implausible numbers; raise InputError for a robot without mass, whose torques would all be zero."""
    for warning in robot.tree.warnings:
        if warning.name == "massless":
            raise InputError(f"robot '{robot.tree.name}': {warning}; `rnea check` lists all warnings about a URDF")
    warn_of_implausible(robot)


def load_fixed_tree(args: argparse.Namespace) -> Robot:
    """Return the robot of a command that is for trees on a fixed base. Raises InputError for others."""
    return require_fixed_tree(args, load_robot(args))


def require_fixed_tree(args: argparse.Namespace, robot: Robot) -> Robot:
    """Return a robot that is a tree on a fixed base. Raises InputError for others."""
    if not robot.is_fixed_tree:
        raise InputError(f"robot '{robot.name}' is a {robot.kind}; rnea {args.command} serves trees on a fixed base so far, "
                         "Python more: rnea_ros.load")
    return robot


def read_limits(robot: Robot, args: argparse.Namespace) -> tuple[Limits, dict[str, float]]:
    """Return limits of the joints, and the largest internal joint forces by joint; --limits overrides --robot-file."""
    forces = joint_forces(robot_file.draft(args.robot_file)) if args.robot_file else {}
    if not args.limits:
        return robot.limits, forces
    model = robot.tree.model
    draft = robot_file.draft(args.limits)
    if "limits" not in draft.content:
        limits, sources = _parameter_limits(draft.content)
        if not limits:
            joint = (*robot.joint_names, "JOINT")[0]
            raise ModelError("--limits needs a robot file with the section limits, or a parameter file with joint_limits; the "
                             f"file has {some(draft.content)}. A file begins with `version: 1` and has, for instance, "
                             f"`limits: {{{joint}: {{max_effort_rate: 600.0}}}}`", draft.where)
        draft = draft.with_limits(limits, sources)
    file = draft.only(["limits"]).checked(robot.tree.model)
    found = limited(model, file).limits.of([model.joint_names.index(name) for name in robot.joint_names])
    return found, forces | joint_forces(file)


NO_LIMITS = object()  # key of a value that is no mapping


def _parameter_limits(content: Mapping[str, Any]) -> tuple[dict[str, Any], dict[KeyPath, KeyPath]]:
    """Return the section limits from the joint_limits of a ROS parameter file, or of MoveIt's joint_limits.yaml.

    The second result maps the path of each value in that section to its path in the content.
    """
    found: dict[str, dict[Any, Any]] = {}
    sources: dict[KeyPath, KeyPath] = {}
    sections: list[tuple[KeyPath, Any]] = [((), content)]
    sections += [((name, "ros__parameters"), section.get("ros__parameters")) for name, section in content.items()
                 if isinstance(section, Mapping)]
    for top, section in sections:
        for joint, key, value, source in _given_limits(section, top):
            if key is NO_LIMITS:
                return {}, {}
            found.setdefault(joint, {})[key] = value
            sources["limits", joint, key] = source
            sources.setdefault(("limits", joint), source[:-1])
    for values in found.values():
        off = [key.removeprefix("has_").removesuffix("_limits") for key, value in values.items()
               if isinstance(key, str) and value is False]
        for unused in (f"{end}_{quantity}" for quantity in off for end in ("min", "max")):
            values.pop(unused, None)
    return found, sources


def _given_limits(section: Any, top: KeyPath) -> Iterator[tuple[str, Any, Any, KeyPath]]:
    """Yield joint, name, value and path of each limit in a section; the name is NO_LIMITS if a joint has no mapping.

    Names of ROS parameters may be nested, or joined by dots: joint_limits.elbow.max_velocity.
    """
    for name, value in section.items() if isinstance(section, Mapping) else ():
        if name == "joint_limits" and isinstance(value, Mapping):
            joints = {(joint, (*top, name, joint)): values for joint, values in value.items()}
        elif isinstance(name, str) and name.startswith("joint_limits."):
            joint = name.removeprefix("joint_limits.")
            if not isinstance(value, Mapping):
                joint, _, key = joint.rpartition(".")
                yield joint, key, value, (*top, name)
                continue
            joints = {(joint, (*top, name)): value}
        else:
            continue
        for (joint, path), values in joints.items():
            if not isinstance(values, Mapping):
                yield joint, NO_LIMITS, values, path
                continue
            for key, limit in values.items():
                yield joint, key, limit, (*path, key)


def add_recording_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that read recordings."""
    parser.add_argument("--topic", metavar="NAME", help="topic of the joint states in a bag; default /joint_states, or the "
                                                        "only one")
    parser.add_argument("--rename", nargs="+", default=[], metavar="OLD=NEW",
                        help="replacements in the names of columns, or of joints in a bag: effort_=tau_ fer_=panda_")
    parser.add_argument("--hold", nargs="+", default=[], metavar="JOINT[=POSITION]",
                        help="joints that are missing in the recording, at rest at a position, default 0 [rad, m]; "
                        "names may be patterns: 'wheel_*' 'head_?_joint=0.1'")
    parser.add_argument("--columns", nargs="+", default=[], metavar="NAME",
                        help="names of all columns of a CSV without a header row: t q_joint1 q_joint2 tau_joint1 ... Columns "
                        "in several CSV files: q.csv+tau.csv as RECORDING merges them by their times")
    parser.add_argument("--sample-rate", type=float, metavar="HZ",
                        help="sampling rate of a CSV without a column t")
    parser.add_argument("--time-unit", choices=list(TIME_UNITS), help="unit of the column t of a CSV, default s")
    parser.add_argument("--unit", choices=("rad", "deg"), help="unit of rotary joints in a CSV, default rad")


def add_window(parser: argparse.ArgumentParser) -> None:
    """Add the option of commands that estimate derivatives."""
    parser.add_argument("--window", type=float, metavar="S",
                        help="estimate missing derivatives by fitting polynomials over this time [s] instead of by Kalman "
                        "smoothing of the positions. A wider window gives less noise and less detail")


def add_torque_recording_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that read torques."""
    add_recording_arguments(parser)
    parser.add_argument("--no-torque", nargs="+", default=[], metavar="JOINT",
                        help="joints without a usable torque measurement; names may be patterns")
    parser.add_argument("--reverse", nargs="+", default=[], metavar="JOINT",
                        help="joints whose effort has the opposite sign of the URDF's axis; measured_effort.reversed in the "
                        "robot file does the same")
    add_window(parser)
    add_gravity(parser)


def load_measured_robot(args: argparse.Namespace) -> Robot:
    """Return the fixed tree of a command that reads torques; afterwards args.robot_file contains --reverse."""
    robot = load_fixed_tree(args)
    if args.reverse:
        if wrong := [name for name in args.reverse if name not in robot.joint_names]:
            raise InputError(f"--reverse {some(wrong)}: no such joint; the joints are {some(robot.joint_names)}"
                             f"{near(wrong[0], robot.joint_names)}")
        file = robot_file.draft(args.robot_file or {"version": 1})
        measured = dict(file.section("measured_effort"))
        turned = sorted(set(measured.get("reversed", ())) ^ set(args.reverse))
        args.robot_file = file.over({"measured_effort": {**measured, "reversed": turned}})
        robot = load_fixed_tree(args)
    return robot


def reading_options(args: argparse.Namespace) -> ReadingOptions:
    """Return the reading options. Raises InputError for invalid ones."""
    if wrong := [word for word in args.rename if "=" not in word or word.startswith("=")]:
        raise InputError(f"--rename {some(wrong)}: OLD=NEW is needed, for instance effort_=tau_")
    renamed = ((old, new) for old, _, new in (word.partition("=") for word in args.rename))
    rate = args.sample_rate
    if rate is not None and not 0.0 < rate < np.inf:
        raise InputError(f"--sample-rate is {rate:g} Hz; a rate above zero is needed")
    return ReadingOptions(args.topic, tuple(renamed), tuple(_parse_hold(word) for word in args.hold), tuple(args.columns),
                          rate,
                   args.time_unit, args.unit)


def _parse_hold(word: str) -> tuple[str, float]:
    name, _, position = word.partition("=")
    try:
        return name, float(position or 0.0)
    except ValueError:
        raise InputError(f"--hold {word}: a position [rad, m] is needed after '='") from None


def read_measurements(path: str | Path, robot: Robot, reading: ReadingOptions, no_torque: Sequence[str] = ()) -> Measurements:
    """Return torques and motion of a recording, with derivatives where the file has them.

    no_torque: names or patterns of joints whose torque is not read. Their column of tau is NaN, as that of joints for which
    a CSV or a bag has no torque at all.
    """
    path, names = merge_csv_parts(path, reading), robot.joint_names
    if wrong := [pattern for pattern in no_torque if not any(fnmatchcase(name, pattern) for name in names)]:
        raise InputError(f"--no-torque {some(wrong)}: no such joint; the joints are {some(names)}{near(wrong[0], names)}")
    missing = {name for name in names if any(fnmatchcase(name, pattern) for pattern in no_torque)}
    if found := _without_torque(path, names, reading, missing):
        print(f"{path}: no torque of {some(found)}; treated as not measured", file=sys.stderr)
        missing |= set(found)
    if not missing:
        samples = read_recording(path, RecordingRequest(names, ("q", "qd", "qdd", "tau"), ("q", "tau"), reading,
                                                        robot.joint_types))
        _check_units(path, robot, reading, samples)
        return Measurements(samples["t"], samples["q"], samples["tau"], samples.get("qd"), samples.get("qdd"))
    held = reading.held_joints(names)
    measured = tuple(name for name in names if name not in missing and name not in held)
    if not measured:
        raise InputError(f"{path}: no joint with a torque is left; the joints are {some(names)}")
    motion, notes = files.read_samples(path, RecordingRequest(names, ("q", "qd", "qdd"), ("q",), reading, robot.joint_types))
    for line in notes:
        if not line.startswith("columns not used"):  # as the torques, which are read below
            print(line, file=sys.stderr)
    _check_units(path, robot, reading, motion)
    types = tuple(robot.joint_types[names.index(name)] for name in measured)
    request = RecordingRequest(measured, ("q", "tau"), ("q", "tau"), reading._replace(held=()), types)
    torques, _ = files.read_samples(path, request)
    if not np.array_equal(motion["t"], torques["t"]):
        _, mine, theirs = np.intersect1d(motion["t"], torques["t"], return_indices=True)
        motion = {name: block[mine] for name, block in motion.items()}
        torques = {name: block[theirs] for name, block in torques.items()}
    tau = np.full(motion["q"].shape, np.nan)
    tau[:, [names.index(name) for name in measured]] = torques["tau"]
    return Measurements(motion["t"], motion["q"], tau, motion.get("qd"), motion.get("qdd"))


def merge_csv_parts(path: str | Path, reading: ReadingOptions) -> str | Path:
    """Return the path of a recording; for several CSV files, a.csv+b.csv, that of a temporary file with all columns."""
    parts = str(path).split("+")
    if len(parts) == 1 or Path(path).exists():
        return path
    if missing := [part for part in parts if not Path(part).is_file()]:
        raise InputError(f"{path}: no file {some(missing, quoted=True)}; CSV files of one recording have '+' between them")
    if bags := [part for part in parts if files.is_bag(part)]:
        raise InputError(f"{path}: {some(bags)} is a bag; CSV files alone can be merged")
    if reading.columns:
        raise InputError(f"{path}: --columns is for one file; files that are merged need header rows")
    folder = Path(tempfile.mkdtemp(prefix="rnea-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = folder / ("+".join(Path(part).stem for part in parts) + ".csv")
    for line in csv_files.merge_csv(parts, reading.csv, target):
        print(line, file=sys.stderr)
    return target


def _check_units(path: str | Path, robot: Robot, reading: ReadingOptions, samples: Samples) -> None:
    """Raise InputError where times or positions are in other units than the options say."""
    t = samples["t"]
    kept = t[consistent_stamps(t)]  # one wrong stamp does not show the unit
    files.check_time_unit(path, reading, kept.min(), kept.max(), len(kept))
    files.check_angle_unit(path, reading, robot, samples["q"])


def _without_torque(path: str | Path, names: Sequence[str], reading: ReadingOptions, excluded: Collection[str]) -> list[str]:
    """Return the joints for which a recording has no torques, or none that is a number; none where no joint has torques."""
    if files.is_bag(path):
        left = tuple(name for name in names if name not in excluded)
        return joints_without_effort(Path(path), RecordingRequest(left, reading=reading))
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file)
            header = list(reading.columns) or [name.strip() for name in next(rows, [])]
            for old, new in reading.rename:
                header = [name.replace(old, new) for name in header]
            held = reading.held_joints(names)
            columns = {name: header.index(f"tau_{name}") if f"tau_{name}" in header else None
                       for name in names if name not in held and name not in excluded}
            empty = {name for name, column in columns.items() if column is not None}
            for row in rows:
                empty = {name for name in empty if "".join(row[columns[name]:][:1]).strip().lower() in ("", "nan")}
                if not empty:
                    break
    except (OSError, UnicodeDecodeError, csv.Error):
        return []  # reported by the reader
    found = [name for name, column in columns.items() if column is None or name in empty]
    return found if len(found) < len(columns) else []


def resolve_recordings(args: argparse.Namespace) -> None:
    """Complete args.recordings: a recording in the position of the URDF is one of them, and its bag describes the robot.

    Raises InputError without any recording. args.urdf is None afterwards if each bag describes its robot.
    """
    given = args.urdf
    if files.is_bag(given) or (not args.recordings and (Path(given).is_dir() or glob.has_magic(given))):
        args.recordings.insert(0, given)
        args.urdf = None
    if not args.recordings:
        raise InputError(f"no recording after {given}")
    args.recordings = [str(merge_csv_parts(path, reading_options(args))) for path in args.recordings]


def single_recording(args: argparse.Namespace) -> Path:
    """Return the path of the single recording of a command."""
    resolve_recordings(args)
    if len(args.recordings) > 1:
        raise InputError(f"rnea {args.command} takes one recording, got {len(args.recordings)}")
    return Path(args.recordings[0])


def read_motion(args: argparse.Namespace, path: Path, joint_names: Sequence[str],
                joint_types: Sequence[str]) -> RecordedMotion:
    """Return the motion of these joints in a recording; derivatives that it lacks are estimated."""
    types = tuple(joint_types)
    wanted = RecordingRequest(tuple(joint_names), BLOCKS, ("q",), reading_options(args), types)
    return recording.joined_motion(list(recording.motions(files.open_recording(path, wanted), types, args.window)))


def read_recording(path: str | Path, wanted: RecordingRequest) -> Samples:
    """Return all samples of a recording; print notes about unused data to stderr."""
    samples, notes = files.read_samples(path, wanted)
    for line in notes:
        print(line, file=sys.stderr)
    return samples


def robot_description(args: argparse.Namespace, path: Path) -> str | bytes:
    """Return the URDF of the command line, or that in the recording."""
    if args.urdf is not None:
        return args.urdf
    if not files.is_bag(path):
        raise InputError(f"{path}: contains no robot description; give a URDF before the recordings")
    return recorded_urdf(path).encode()  # bytes: text and never a path
