"""`rnea payload ROBOT.urdf RECORDING --link LINK`: identify the payload of a link from motion and torques."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..identification.payload import MASSES, NAMES, PayloadEstimate, estimate_payload
from ..model.robot_file.robot_file import RobotFile
from . import output_files, reading, robots
from .outcome import Outcome
from .progress import working
from .tables import table

UNITS = ("kg", *["m"] * 3, *["kg m^2"] * 6)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    robots.add_arguments(parser, base=False)
    parser.add_argument("motion", metavar="RECORDING",
                        help="a CSV with columns t, q_<joint>, tau_<joint>; qd_ and qdd_ count where both are there; or a "
                             "ROS 2 bag")
    reading.add_torques(parser)
    robots.add_friction(parser)
    parser.add_argument("--link", required=True, metavar="LINK", help="link of the URDF that carries the payload")
    parser.add_argument("--tare", metavar="RECORDING", help="recording of the same motion, or a similar one, without the "
                                                            "payload")
    parser.add_argument("--known-friction", action="store_true", help="use the friction of the model; default: friction is "
                                                                      "fitted too")
    parser.add_argument("--mass-uncertainty", type=float, default=MASSES, metavar="SHARE",
                        help="standard deviation of the masses of the robot's own links (default: %(default)s)")
    parser.add_argument("-o", "--output", metavar="FILE.yaml", help="write the payload as a robot file")


def run(args: argparse.Namespace) -> Outcome:
    output_files.check_files(args.output)
    robot, how = reading.robot_of(args), reading.asked(args)
    recording = reading.measurements(args.motion, robot, how, args.no_torque)
    tare = reading.measurements(args.tare, robot, how, args.no_torque) if args.tare else None
    with working("comparing torques"):
        found = estimate_payload(robot, args.link, recording, tare, friction=not args.known_friction, window=args.window,
                                 masses=args.mass_uncertainty)
    if args.output:
        Path(args.output).write_text(robot_file(found).text(), encoding="utf-8")
    values = {name: {"value": value, "std": std, "unit": unit, "identifiable": name not in found.unknown}
              for name, unit, value, std in zip(NAMES, UNITS, found.values, found.std, strict=True)}
    return Outcome(report(found, tare is not None), {"link": found.link, "samples": found.samples, "tared": tare is not None,
                                                     "payload": values, "files": [args.output] if args.output else []})


def report(found: PayloadEstimate, tared: bool) -> str:
    """Return the result for people. A quantity that the motion does not determine has no value."""
    lines = [f"payload on link {found.link}, from {found.samples} samples" + ("" if tared else ", without a tare"), "",
             *table(("", "value", "std", "unit", ""), [
                 (name, "-", "-", unit, "not identifiable from this motion") if name in found.unknown
                 else (name, f"{value:.5g}", f"{std:.2g}", unit, "")
                 for name, unit, value, std in zip(NAMES, UNITS, found.values, found.std, strict=True)], "<>><<")]
    if found.unknown:
        lines.append("the robot file has values for these too, such that the body is physically consistent")
    return "\n".join(lines)


def robot_file(found: PayloadEstimate) -> RobotFile:
    """Return a robot file with a section `payloads`."""
    mass, com, inertia = found.mass, found.values[1:4].tolist(), found.values[4:].tolist()
    return RobotFile({"version": 1, "payloads": {found.link: {"mass": mass, "com": com, "inertia": inertia}}}, "payload")
