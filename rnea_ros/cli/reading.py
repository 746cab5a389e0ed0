"""The recordings that a command reads: options that say how they tell of the robot, and the robot that a bag describes."""

from __future__ import annotations

import argparse
import csv
import glob
import sys
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from ..errors import InputError, near, some
from ..estimation.repairs import consistent_stamps
from ..identification.identification import Measurements
from ..recordings import files
from ..recordings.bags import description
from ..recordings.recording import TIME_UNITS, Reading, Samples, Wanted
from ..robots.robot import Robot


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", metavar="NAME", help="of the joint states in a bag; default /joint_states, or the only one")
    parser.add_argument("--rename", nargs="+", default=[], metavar="OLD=NEW",
                        help="parts to replace, of the names of columns, or of joints in a bag: effort_=tau_ fer_=panda_")
    parser.add_argument("--hold", nargs="+", default=[], metavar="JOINT[=POSITION]",
                        help="joints that the recording does not have, at rest at a position, default 0 [rad, m]; "
                             "names may be patterns: 'wheel_*' 'head_?_joint=0.1'")
    parser.add_argument("--columns", nargs="+", default=[], metavar="NAME",
                        help="names of all columns of a CSV without a header row: t q_joint1 q_joint2 tau_joint1 ...")
    parser.add_argument("--sample-rate", type=float, metavar="HZ",
                        help="sampling rate of a CSV without a column t")
    parser.add_argument("--time-unit", choices=list(TIME_UNITS), help="unit of the column t of a CSV, default s")
    parser.add_argument("--unit", choices=("rad", "deg"), help="unit of rotary joints in a CSV, default rad")


def add_no_torque(parser: argparse.ArgumentParser) -> None:
    """Add the option of commands that read torques."""
    parser.add_argument("--no-torque", nargs="+", default=[], metavar="JOINT",
                        help="joints whose torque was not measured, or is not to be used; names may be patterns")


def asked(args: argparse.Namespace) -> Reading:
    """What these options say. InputError for what says nothing."""
    if wrong := [word for word in args.rename if "=" not in word or word.startswith("=")]:
        raise InputError(f"--rename {some(wrong)}: OLD=NEW is needed, for instance effort_=tau_")
    renamed = ((old, new) for old, _, new in (word.partition("=") for word in args.rename))
    rate = args.sample_rate
    if rate is not None and not 0.0 < rate < np.inf:
        raise InputError(f"--sample-rate is {rate:g}; a rate above zero is needed [Hz]")
    return Reading(args.topic, tuple(renamed), tuple(_held(word) for word in args.hold), tuple(args.columns), rate,
                   args.time_unit, args.unit)


def _held(word: str) -> tuple[str, float]:
    name, _, position = word.partition("=")
    try:
        return name, float(position or 0.0)
    except ValueError:
        raise InputError(f"--hold {word}: a position is needed [rad, m]") from None


def measurements(path: str | Path, robot: Robot, reading: Reading, no_torque: Sequence[str] = ()) -> Measurements:
    """Return torques and motion of a recording, with derivatives where the file has them.

    no_torque: names or patterns of joints whose torque is not read. Their column of tau is NaN, as that of joints for which
    a CSV has no torque at all.
    """
    names = robot.joint_names
    if wrong := [pattern for pattern in no_torque if not any(fnmatchcase(name, pattern) for name in names)]:
        raise InputError(f"--no-torque {some(wrong)}: no such joint; the joints are {some(names)}{near(wrong[0], names)}")
    missing = {name for name in names if any(fnmatchcase(name, pattern) for pattern in no_torque)}
    if not files.is_bag(path) and (found := _without_torque(path, names, reading, missing)):
        print(f"{path}: no torque of {some(found)}; treated as not measured", file=sys.stderr)
        missing |= set(found)
    if not missing:
        samples = read(path, Wanted(names, ("q", "qd", "qdd", "tau"), ("q", "tau"), reading, robot.joint_types))
        _check_units(path, robot, reading, samples)
        return Measurements(samples["t"], samples["q"], samples["tau"], samples.get("qd"), samples.get("qdd"))
    held = reading.held_joints(names)
    measured = tuple(name for name in names if name not in missing and name not in held)
    if not measured:
        raise InputError(f"{path}: no joint with a torque is left; the joints are {some(names)}")
    motion, notes = files.read(path, Wanted(names, ("q", "qd", "qdd"), ("q",), reading, robot.joint_types))
    for line in notes:
        if not line.startswith("columns not used"):  # as the torques, which are read below
            print(line, file=sys.stderr)
    _check_units(path, robot, reading, motion)
    types = tuple(robot.joint_types[names.index(name)] for name in measured)
    torques, _ = files.read(path, Wanted(measured, ("q", "tau"), ("q", "tau"), reading._replace(held=()), types))
    if not np.array_equal(motion["t"], torques["t"]):
        _, mine, theirs = np.intersect1d(motion["t"], torques["t"], return_indices=True)
        motion = {name: block[mine] for name, block in motion.items()}
        torques = {name: block[theirs] for name, block in torques.items()}
    tau = np.full(motion["q"].shape, np.nan)
    tau[:, [names.index(name) for name in measured]] = torques["tau"]
    return Measurements(motion["t"], motion["q"], tau, motion.get("qd"), motion.get("qdd"))


def _check_units(path: str | Path, robot: Robot, reading: Reading, samples: Samples) -> None:
    """Raise InputError where times or positions are in other units than the options say."""
    t = samples["t"]
    kept = t[consistent_stamps(t)]  # one wrong stamp does not show the unit
    files.check_time_unit(path, reading, kept.min(), kept.max(), len(kept))
    files.check_angle_unit(path, reading, robot, samples["q"])


def _without_torque(path: str | Path, names: Sequence[str], reading: Reading, excluded: Collection[str]) -> list[str]:
    """Return the joints for which a CSV has no column of torques, or one without any number; none where no joint has
    torques."""
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


def take_recordings(args: argparse.Namespace) -> None:
    """Where a recording stands in the place of the URDF, it is one of the recordings, and a bag describes its robot itself.

    InputError without any recording. args.urdf is None afterwards where each bag describes its robot.
    """
    given = args.urdf
    if files.is_bag(given) or (not args.recordings and (Path(given).is_dir() or glob.has_magic(given))):
        args.recordings.insert(0, given)
        args.urdf = None
    if not args.recordings:
        raise InputError(f"no recording after {given}")


def one_recording(args: argparse.Namespace) -> Path:
    """Of a command that reads just one."""
    take_recordings(args)
    if len(args.recordings) > 1:
        raise InputError(f"rnea {args.command} takes one recording, got {len(args.recordings)}")
    return Path(args.recordings[0])


def read(path: str | Path, wanted: Wanted) -> Samples:
    """All of a recording; stderr hears of what in it was not used."""
    samples, notes = files.read(path, wanted)
    for line in notes:
        print(line, file=sys.stderr)
    return samples


def described(args: argparse.Namespace, path: Path) -> str | bytes:
    """The URDF: that of the command line, or the one in the recording."""
    if args.urdf is not None:
        return args.urdf
    if not files.is_bag(path):
        raise InputError(f"{path}: says nothing of the robot; its URDF is needed before the recordings")
    return description(path).encode()  # text, whatever it says, and never a path
