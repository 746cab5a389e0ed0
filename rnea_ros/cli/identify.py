"""`rnea identify`, `rnea payload` and `rnea contact`: parameters, payloads and contact thresholds from recordings."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, near, some
from ..estimation.external_effort import LearnedContact, contact_section, find_contacts, learn_from_motion
from ..identification import result_files
from ..identification.fitting import HELD_OUT, RATE, Exclusion, Fit, fit
from ..identification.identification import Measurements
from ..identification.payload import MASSES, NAMES, PayloadEstimate, estimate_payload
from ..io import figures
from ..io.recording import derivative_note
from ..model import robot_file
from ..model.robot_file import RobotFile
from ..robots import validation
from ..robots.load import coupled_motors, payloads
from ..robots.robot import Robot
from . import inputs
from .output import CommandResult, check_files, check_folder, format_table, show_working, terminal_width


def add_identify_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rnea identify`."""
    inputs.add_robot_arguments(parser)
    parser.add_argument("recordings", nargs="+", metavar="RECORDING",
                        help="CSV with columns t, q_<joint>, tau_<joint>, and qd_ and qdd_, which are used if both exist; or "
                        "a ROS 2 bag, whose effort is the torque. Several recordings are fitted together")
    inputs.add_torque_recording_arguments(parser)
    parser.add_argument("--payload", nargs="+", default=[], metavar="RECORDING=FILE.yaml",
                        help="robot file with the known payload that the robot carries in that recording only, as `rnea "
                        "payload -o` writes it")
    parser.add_argument("--couple", action="append", default=[], metavar="JOINT[=RATIO],JOINT[=RATIO]",
                        help="a motor coupled to these joints turns at the sum of RATIO times joint velocity (default 1): its "
                             "inertia and friction are fitted too. May be repeated; couplings in the robot file has the same "
                             "effect")
    parser.add_argument("-o", "--output", metavar="FOLDER",
                        help=f"folder for {result_files.URDF}, {result_files.ROBOT_FILE}, {result_files.REPORT} with "
                        f"pictures, and {result_files.NUMBERS}")
    parser.add_argument("--held-out", type=float, default=HELD_OUT, metavar="SHARE",
                        help=f"share of each recording, at its end, that is the validation set, default {HELD_OUT}")
    parser.add_argument("--rate", type=float, default=RATE, metavar="HZ",
                        help=f"equations per second and joint, after a low-pass, default {RATE:g}")
    parser.add_argument("--currents", action="store_true",
                        help="efforts are motor currents or motor torques with unknown gains: the gains are identified too; "
                        "their common scale is determined by the URDF's masses")
    parser.add_argument("--keep-all", action="store_true",
                        help="do not exclude joints whose torques contradict those of the others, for example because of "
                             "other units")


def run_identify(args: argparse.Namespace) -> CommandResult:
    """Identify. Exit status 1 if no physical robot explains the recordings, or only with joints excluded or signs reversed."""
    robot = inputs.load_measured_robot(args)
    given = dict(robot_file.draft(args.robot_file).content) if args.robot_file else {}
    if args.couple:
        given["couplings"] = {**given.get("couplings", {}), **coupled_joints(args.couple)}
        declared = robot_file.draft({"version": 1, "couplings": given["couplings"]}).checked(robot.model)
        robot = robot.with_coupled_motors(coupled_motors(robot.model, declared))
    if args.output:
        check_folder(args.output)
        figures.check_format(result_files.TORQUES)
    carried, how = _payloads(args), inputs.reading_options(args)
    recordings = [replace(inputs.read_measurements(path, robot, how, args.no_torque), payloads=carried.get(path))
                  for path in args.recordings]
    with show_working("fitting bodies, rotors and friction"):
        found = fit(robot, recordings, held_out=args.held_out, rate=args.rate, window=args.window, currents=args.currents,
                    exclude=not args.keep_all)
    text, written = summary(found, terminal_width()), []
    if args.output:
        written = [str(Path(args.output) / name)
                   for name in result_files.write(args.output, found, args.urdf, given, summary(found))]
        text += "\n-> " + ", ".join(written)
    is_sure = found.explained and not found.excluded and not found.reversed
    return CommandResult(text, {**result_files.as_json(found), "files": written}, int(not is_sure))


def coupled_joints(words: list[str]) -> dict[str, Any]:
    """Return the section couplings of a robot file for the words of --couple."""
    found: dict[str, Any] = {}
    for number, word in enumerate(words, start=1):
        pairs = [part.strip().partition("=") for part in word.split(",")]
        try:
            ratios = [float(ratio) if equals else 1.0 for _, equals, ratio in pairs]
        except ValueError:
            raise InputError(f"--couple {word}: joint names separated by commas are needed, each with an optional ratio after "
                             "'=': --couple joint5=45,joint6=32") from None
        found[f"coupled_{number}"] = {"joints": [joint for joint, *_ in pairs], "motors": {"motor": {"ratios": ratios}}}
    return found


def _payloads(args: argparse.Namespace) -> dict[str, dict[str, tuple[Any, ...]]]:
    """Return the payloads of each recording: link -> (mass, com, inertia)."""
    found: dict[str, dict[str, tuple[Any, ...]]] = {}
    for word in args.payload:
        path, _, name = word.partition("=")
        if not name or path not in args.recordings:
            raise InputError(f"--payload {word}: RECORDING=FILE.yaml is needed, with one of {some(args.recordings)}"
                             f"{near(path, args.recordings)}")
        found[path] = {link: tuple(payload) for link, *payload in payloads(robot_file.draft(name))}
        if not found[path]:
            raise InputError(f"--payload {word}: {name} has no section payloads")
    return found


def summary(found: Fit, width: int | None = None) -> str:
    """Return the result as text."""
    seconds = sum(of.seconds for of in found.recordings)
    count = f" of {len(found.recordings)} recordings" if len(found.recordings) > 1 else ""
    lines = [f"robot {found.robot.name}: {len(found.base)} parameters from {found.equations} equations, {seconds:.4g} "
             f"s{count}"]
    for of in found.recordings:
        lines += of.data.notes
        if of.data.how:
            lines.append(derivative_note(("qd", "qdd"), of.data.how))
    lines += [_exclusion_text(one) for one in found.excluded]
    limits = found.before.limits.effort[list(found.joints)]
    for name, rms, limit in zip(found.names, found.rms, limits, strict=True):
        if rms > limit:  # never of a limit that is not known
            lines.append(f"warning: measured torque of {name} has an RMS of {rms:.4g}, its effort limit in the URDF is "
                         f"{limit:.4g}. Is it in other units? Declare drives and measured_effort in the robot file, or "
                         f"exclude it with --no-torque {name}")
    if found.reversed:
        lines.append(f"warning: efforts of {some(found.reversed)} act against the model's torques; fitted with their signs "
                     f"reversed. Check the axes of the URDF; if the efforts count the other way, pass --reverse "
                     f"{' '.join(found.reversed)}, or keep measured_effort: {{reversed: [{some(found.reversed)}]}} in the "
                     "robot file")
    validated = np.isfinite(found.validation_error).all()
    lines += ["", "RMS errors of the torque over the validation set:" if validated else "RMS errors of the torque (no "
              "validation set):"]
    rows = [(*row, model.description) for row, model in zip(result_files.error_rows(found), found.friction, strict=True)]
    lines += format_table((*result_files.ERROR_COLUMNS, "friction"), rows, "<<>>>>><", width)
    if found.gains:
        gains = zip(found.names, found.gains.values, found.gains.deviations, strict=True)
        lines.append("torque per unit of effort: " + ", ".join(
            f"{name} {gain:.4g} (+-{100.0 * off:.2g} %)" for name, gain, off in gains))
    more = max(100.0 * (np.exp(found.consistency_cost) - 1.0), 0.0)
    verdict = (f"a physical robot explains the recording; physical consistency raised the error by {more:.2g} %"
               if found.explained else
               "NO physical robot explains the recording: check signs, order of joints, gravity and units of the torques")
    lines += ["", verdict, f"total mass {found.robot.total_mass:.4g} kg, URDF {found.before.total_mass:.4g} kg"]
    if rotors := result_files.inseparable_rotors(found):
        lines.append(f"not separable from the links by any motion: rotor inertia of {some(rotors)}; the bodies stay near "
                     "the URDF's")
    for motor in (motor for motor in found.robot.model.coupled_motors if len(motor.coordinates) > 1):
        lines.append(f"coupled motor {motor.name}: rotor inertia {motor.term.rotor_inertia:.3g} kg m^2, Coulomb friction "
                     f"{motor.term.coulomb:.3g} N m, viscous {motor.term.viscous:.3g} N m s/rad, at the motor")
    for one in found.suspected[:1]:
        lines.append(f"warning: a motor that turns with {one.joints[0]} and {one.joints[1]} would reduce their errors by "
                     f"factors of about {one.factors[0]:.2g} and {one.factors[1]:.2g}; if the transmission is coupled, "
                     f"--couple {one.option} fits it")
    if directions := result_files.undetermined_directions(found):
        lines.append(f"not determined by the recording, taken from the URDF: {len(directions)} of {len(found.base)} "
                     f"parameters ({some(directions, 3)})")
    if found.at_boundary:
        lines.append(f"at the boundary of physical consistency: {some(found.at_boundary)}")
    return "\n".join(lines)


def _exclusion_text(one: Exclusion) -> str:
    factor, other = one.others
    return (f"warning: torque of {one.joint} excluded: error {100.0 * one.error:.3g} % of its signal, and {factor:.2g} "
            f"times the error of {other} with it. Is it in other units (a current, a raw value)? Declare drives and "
            f"measured_effort in the robot file, or exclude it with --no-torque {one.joint}; --keep-all uses it")


# ---------------------------------------------------------------------- payloads and contacts


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
