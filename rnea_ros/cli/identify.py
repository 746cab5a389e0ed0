"""`rnea identify ROBOT.urdf RECORDING -o FOLDER`: a robot's bodies, rotors and friction from a recording."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from ..errors import some
from ..identification import result_files
from ..identification.fitting import HELD_OUT, RATE, Fit, fit
from ..output import figures
from ..recordings import motion_csv
from ..robots.robot import Robot
from . import output_files, reading, robots
from .outcome import Outcome
from .progress import working
from .tables import table, terminal_width


def add_arguments(parser: argparse.ArgumentParser) -> None:
    robots.add_arguments(parser)
    parser.add_argument("motion", metavar="RECORDING",
                        help="a CSV with columns t, q_<joint>, tau_<joint>; qd_ and qdd_ count where both are there; or a "
                             "ROS 2 bag, whose effort is taken for the torque")
    reading.add_arguments(parser)
    parser.add_argument("-o", "--output", metavar="FOLDER",
                        help=f"for {result_files.URDF}, {result_files.ROBOT_FILE}, {result_files.REPORT} with pictures, and "
                             f"{result_files.NUMBERS}")
    parser.add_argument("--held-out", type=float, default=HELD_OUT, metavar="SHARE",
                        help=f"of the recording, at its end, that is foretold and not used, default {HELD_OUT}")
    parser.add_argument("--rate", type=float, default=RATE, metavar="HZ",
                        help=f"equations per second that are kept after a low-pass, default {RATE:g}")
    parser.add_argument("--currents", action="store_true",
                        help="efforts are currents of motors, or their torques: the gains of drives are found too; what is "
                             "common to all gains the URDF's masses decide")
    motion_csv.add_window(parser)
    robots.add_gravity(parser)


def run(args: argparse.Namespace) -> Outcome:
    """Exit code 1 if no physical robot explains the recording."""
    robot = robots.served(args, Robot)
    if args.output:
        output_files.check_folder(args.output)
        figures.check_format(result_files.TORQUES)
    recording = reading.measurements(args.motion, robot, reading.asked(args))
    with working("fitting bodies, rotors and friction"):
        found = fit(robot, recording, args.held_out, args.rate, args.window, args.currents)
    text, files = told(found, terminal_width()), []
    if args.output:
        given = dict(robots.declared(args.robot_file).content) if args.robot_file else {}
        written = result_files.write(args.output, found, args.urdf, given, told(found))
        files = [str(Path(args.output) / name) for name in written]
        text += "\n-> " + ", ".join(files)
    return Outcome(text, {**result_files.as_json(found), "files": files}, int(not found.explained))


def told(found: Fit, width: int | None = None) -> str:
    """For people."""
    robot, data = found.robot, found.prepared
    seconds, share = data.t[-1] - data.t[0], 1.0 - found.split / len(data.t)
    lines = [f"robot {robot.name}: {len(found.base)} parameters from {found.equations} equations of the first "
             f"{(1.0 - share) * seconds:.4g} s", *data.notes]
    if data.how:
        lines.append(motion_csv.said(("qd", "qdd"), data.how))
    rows = [(robot.joint_names[k], f"{rms:.4g}", f"{error:.3g}", f"{ahead:.3g}", f"{100.0 * ahead / max(rms, 1e-300):.3g}%",
             model.words) for k, model, rms, error, ahead in
            zip(found.joints, found.friction, found.signal, found.trained, found.foretold, strict=True)]
    lines += ["", *table(("joint", "rms", "error", "held out", "", "friction"), rows, "<>>>><", width)]
    if found.gains:
        gains = zip(found.joints, found.gains.values, found.gains.deviations, strict=True)
        lines.append("torque for one unit of effort: " + ", ".join(
            f"{robot.joint_names[k]} {gain:.4g} (+-{100.0 * off:.2g} %)" for k, gain, off in gains))
    much = 100.0 * (np.exp(found.cost) - 1.0)
    verdict = ("a physical robot explains the recording" if found.explained else "NO physical robot explains the recording as "
               "it should: are signs, order of joints, gravity and units right?")
    lines += ["", f"{verdict}; bodies and friction that brakes make the error {max(much, 0.0):.2g} % larger"]
    if found.thin:
        lines.append(f"at the edge of what is possible: {some(found.thin)}")
    return "\n".join(lines)
