"""`rnea payload` and `rnea contact`: payload of a link, and contact thresholds, from recordings."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from ..estimation.contact_thresholds import LearnedContact, contact_section, find_contacts, learn_from_motion
from ..identification.identification import Measurements
from ..identification.payload import MASSES, NAMES, PayloadEstimate, estimate_payload
from ..model.robot_file import robot_file
from ..model.robot_file.robot_file import RobotFile
from ..robots.inputs import validation
from ..robots.robot import Robot
from . import inputs
from .output import CommandResult, check_files, format_table, show_working

PAYLOAD_UNITS = ("kg", *["m"] * 3, *["kg m^2"] * 6)


def add_payload_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rnea payload`."""
    inputs.add_robot_arguments(parser, base=False)
    parser.add_argument("motion", metavar="RECORDING",
                        help="a CSV with columns t, q_<joint>, tau_<joint>, and qd_ and qdd_, which are used if both exist; "
                        "or a ROS 2 bag")
    inputs.add_torque_recording_arguments(parser)
    inputs.add_friction(parser)
    parser.add_argument("--link", required=True, metavar="LINK", help="link of the URDF that carries the payload")
    parser.add_argument("--tare", metavar="RECORDING", help="recording of the same motion, or a similar one, without the "
                        "payload")
    parser.add_argument("--known-friction", action="store_true", help="use the friction of the model; default: friction is "
                        "fitted too")
    parser.add_argument("--mass-uncertainty", type=float, default=MASSES, metavar="SHARE",
                        help="standard deviation of the masses of the robot's own links (default: %(default)s)")
    parser.add_argument("-o", "--output", metavar="FILE.yaml", help="write the payload as a robot file")


def run_payload(args: argparse.Namespace) -> CommandResult:
    """Run `rnea payload`; return its result."""
    check_files(args.output)
    robot, how = inputs.load_measured_robot(args), inputs.reading_options(args)
    recording = inputs.read_measurements(args.motion, robot, how, args.no_torque)
    tare = inputs.read_measurements(args.tare, robot, how, args.no_torque) if args.tare else None
    with show_working("comparing torques"):
        found = estimate_payload(robot, args.link, recording, tare, friction=not args.known_friction, window=args.window,
                                 masses=args.mass_uncertainty)
    if args.output:
        Path(args.output).write_text(payload_file(found).text(), encoding="utf-8")
    values = {name: {"value": value, "std": std, "unit": unit, "identifiable": name not in found.unknown}
              for name, unit, value, std in zip(NAMES, PAYLOAD_UNITS, found.values, found.std, strict=True)}
    return CommandResult(_payload_lines(found, tare is not None),
                   {"link": found.link, "samples": found.samples, "tared": tare is not None,
                                                             "payload": values, "files": [args.output] if args.output else []})


def _payload_lines(found: PayloadEstimate, tared: bool) -> str:
    """Return the result as text; a quantity that the motion does not determine has no value."""
    lines = [f"payload on link {found.link}, from {found.samples} samples" + ("" if tared else ", without a tare"), "",
             *format_table(("", "value", "std", "unit", ""), [
                 (name, "-", "-", unit, "not identifiable from this motion") if name in found.unknown
                 else (name, f"{value:.5g}", f"{std:.2g}", unit, "")
                 for name, unit, value, std in zip(NAMES, PAYLOAD_UNITS, found.values, found.std, strict=True)], "<>><<")]
    if found.unknown:
        lines.append("the robot file has values for these too, such that the body is physically consistent")
    return "\n".join(lines)


def payload_file(found: PayloadEstimate) -> RobotFile:
    """Return a robot file with a section `payloads`."""
    mass, com, inertia = found.mass, found.values[1:4].tolist(), found.values[4:].tolist()
    return RobotFile({"version": 1, "payloads": {found.link: {"mass": mass, "com": com, "inertia": inertia}}}, "payload")


def add_contact_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rnea contact`."""
    inputs.add_robot_arguments(parser, base=False)
    parser.add_argument("motion", metavar="RECORDING",
                        help="recording of free motion, every joint in both directions, at least 10 s and better a minute: a "
                             "CSV with "
                        "columns t, q_<joint>, tau_<joint>, optionally qd_ and qdd_; or a ROS 2 bag")
    inputs.add_torque_recording_arguments(parser)
    inputs.add_friction(parser)
    parser.add_argument("--find", nargs="+", default=[], metavar="RECORDING",
                        help="other recordings, searched for contacts with these thresholds")
    parser.add_argument("-o", "--output", metavar="FILE.yaml",
                        help="robot file to write: that of --robot-file with the section `contact`, or this section alone")


def run_contact(args: argparse.Namespace) -> CommandResult:
    """Run `rnea contact`; return its result."""
    check_files(args.output)
    robot, how = inputs.load_measured_robot(args), inputs.reading_options(args)
    recording = inputs.read_measurements(args.motion, robot, how, args.no_torque)
    with show_working("learning from free motion"):
        learnt = learn_from_motion(robot, **_learning_arguments(robot, recording), window=args.window)
    measured = [name for name, known in zip(robot.joint_names, np.isfinite(recording.tau).all(axis=0), strict=True) if known]
    unknown = tuple(f"{name}:" for name in robot.joint_names if name not in measured)
    learnt = learnt._replace(calibration={name: learnt.calibration[name] for name in measured},
                             warnings=[line for line in learnt.warnings if not line.startswith(unknown)])
    section = contact_section(learnt)
    if args.output:
        file = robot_file.read(args.robot_file).over({"contact": section.section("contact")}) if args.robot_file else section
        Path(args.output).write_text(file.text(), encoding="utf-8")
    found = {}
    for path in args.find:
        other = inputs.read_measurements(path, robot, how, args.no_torque)
        with show_working(f"finding contacts in {path}"):
            events = find_contacts(robot, **_learning_arguments(robot, other), window=args.window,
                                   calibration=learnt.calibration)
        found[path] = [event for event in events if event.joint in measured]
    lines = _contact_lines(learnt)
    for path, events in found.items():
        begun = [event for event in events if event.active]
        lines += ["", f"{path}: {len(begun)} contact{'' if len(begun) == 1 else 's'}"]
        lines += [f"  {event.time:.3f} s {event.joint} {'in contact' if event.active else 'free'}: external effort "
                  f"{event.effort:.3g}, threshold {event.threshold:.3g}" for event in events]
    values: dict[str, Any] = {"robot": robot.name, "seconds": learnt.seconds, "contact": dict(section.section("contact")),
                              "warnings": learnt.warnings, "files": [args.output] if args.output else []}
    if found:
        values["contacts"] = {path: [event._asdict() for event in events] for path, events in found.items()}
    return CommandResult("\n".join(lines), values)


def _learning_arguments(robot: Robot, recording: Measurements) -> dict[str, Any]:
    """Return the arguments of learn_from_motion; zero for efforts that were not measured."""
    q = validation.coordinates("q", recording.q, robot.joint_names)
    return {"t": recording.t, "q": q, "effort": np.nan_to_num(recording.tau), "qd": recording.qd, "qdd": recording.qdd}


def _contact_lines(learnt: LearnedContact) -> list[str]:
    """Return the result as lines."""
    rows = [(name, f"{one.offset:.3g}", f"{one.coulomb:.3g}", f"{one.viscous:.3g}", f"{one.threshold:.2f}")
            for name, one in learnt.calibration.items()]
    return [f"contact thresholds, learnt from {learnt.seconds:.1f} s of free motion", "",
            *format_table(("joint", "offset [N m]", "Coulomb [N m]", "viscous [N m s/rad]", "threshold [std]"), rows, "<>>>>"),
            *(f"warning: {line}" for line in learnt.warnings)]
