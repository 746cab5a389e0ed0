"""The recordings that a command reads: options that say how they tell of the robot, and the robot that a bag describes."""

from __future__ import annotations

import argparse
import glob
import sys
from pathlib import Path

import numpy as np

from ..errors import InputError, some
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
                        help="joints that the recording does not have, at rest at a position, default 0 [rad, m]")
    parser.add_argument("--columns", nargs="+", default=[], metavar="NAME",
                        help="names of all columns of a CSV without a header row: t q_joint1 q_joint2 tau_joint1 ...")
    parser.add_argument("--sample-rate", type=float, metavar="HZ",
                        help="sampling rate of a CSV without a column t")
    parser.add_argument("--time-unit", choices=list(TIME_UNITS), help="unit of the column t of a CSV, default s")
    parser.add_argument("--unit", choices=("rad", "deg"), help="unit of rotary joints in a CSV, default rad")


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


def measurements(path: str | Path, robot: Robot, reading: Reading) -> Measurements:
    """Torques beside the motion; derivatives where the file has them."""
    samples = read(path, Wanted(robot.joint_names, ("q", "qd", "qdd", "tau"), ("q", "tau"), reading, robot.joint_types))
    t = samples["t"]
    kept = t[consistent_stamps(t)]  # one wrong stamp says nothing of the unit
    files.check_time_unit(path, reading, kept.min(), kept.max(), len(kept))
    files.check_angle_unit(path, reading, robot, samples["q"])
    return Measurements(**samples)


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
