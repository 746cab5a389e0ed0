"""`rnea contact ROBOT.urdf RECORDING`: contact thresholds from free motion, and the contacts in other recordings."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from ..estimation.contact_thresholds import LearnedContact, contact_section, find_contacts, learn_from_motion
from ..identification.identification import Measurements
from ..model.robot_file import robot_file
from ..robots.inputs import validation
from ..robots.robot import Robot
from . import output_files, reading, robots
from .outcome import Outcome
from .progress import working
from .tables import table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    robots.add_arguments(parser, base=False)
    parser.add_argument("motion", metavar="RECORDING",
                        help="free motion, every joint both ways, at least 10 s and better a minute: a CSV with columns t, "
                             "q_<joint>, tau_<joint>, optionally qd_ and qdd_; or a ROS 2 bag")
    reading.add_torques(parser)
    robots.add_friction(parser)
    parser.add_argument("--find", nargs="+", default=[], metavar="RECORDING",
                        help="other recordings, in which contacts are found with these thresholds")
    parser.add_argument("-o", "--output", metavar="FILE.yaml",
                        help="robot file to write: that of --robot-file with the section `contact`, or this section alone")


def run(args: argparse.Namespace) -> Outcome:
    output_files.check_files(args.output)
    robot, how = reading.robot_of(args), reading.asked(args)
    recording = reading.measurements(args.motion, robot, how, args.no_torque)
    with working("learning from free motion"):
        learnt = learn_from_motion(robot, **_given(robot, recording), window=args.window)
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
        other = reading.measurements(path, robot, how, args.no_torque)
        with working(f"finding contacts in {path}"):
            events = find_contacts(robot, **_given(robot, other), window=args.window, calibration=learnt.calibration)
        found[path] = [event for event in events if event.joint in measured]
    lines = report(learnt)
    for path, events in found.items():
        begun = [event for event in events if event.active]
        lines += ["", f"{path}: {len(begun)} contact{'' if len(begun) == 1 else 's'}"]
        lines += [f"  {event.time:.3f} s {event.joint} {'in contact' if event.active else 'free'}: external effort "
                  f"{event.effort:.3g}, threshold {event.threshold:.3g}" for event in events]
    values: dict[str, Any] = {"robot": robot.name, "seconds": learnt.seconds, "contact": dict(section.section("contact")),
                              "warnings": learnt.warnings, "files": [args.output] if args.output else []}
    if found:
        values["contacts"] = {path: [event._asdict() for event in events] for path, events in found.items()}
    return Outcome("\n".join(lines), values)


def _given(robot: Robot, recording: Measurements) -> dict[str, Any]:
    """Return the arguments of learn_from_motion; zero for efforts that were not measured."""
    q = validation.coordinates("q", recording.q, robot.joint_names)
    return {"t": recording.t, "q": q, "effort": np.nan_to_num(recording.tau), "qd": recording.qd, "qdd": recording.qdd}


def report(learnt: LearnedContact) -> list[str]:
    """Return lines for people."""
    rows = [(name, f"{one.offset:.3g}", f"{one.coulomb:.3g}", f"{one.viscous:.3g}", f"{one.threshold:.2f}")
            for name, one in learnt.calibration.items()]
    return [f"contact thresholds, learnt from {learnt.seconds:.1f} s of free motion", "",
            *table(("joint", "offset [N m]", "Coulomb [N m]", "viscous [N m s/rad]", "threshold [std]"), rows, "<>>>>"),
            *(f"warning: {line}" for line in learnt.warnings)]
