"""`rnea torque ROBOT.urdf RECORDING...`: torque and torque rate of recorded or planned motions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..estimation.preparation import turns_removed
from ..estimation.recording import what
from ..model.drive_limits import DriveLimit, uses_by_owner
from ..motion.limit_use import Peaks, limit_use
from ..motion.warmth import Warming, thermal_drives
from ..output import figures
from ..recordings import files, motion_csv, recording, results
from ..recordings import torques as compute
from ..recordings.motion_csv import RecordedMotion
from ..recordings.recording import Recording, Wanted
from ..recordings.told import check, told
from ..recordings.torques import Torques
from ..robots.protocol import AnyRobot
from ..robots.robot import Robot
from . import many, output_files, reading, robots
from .outcome import Outcome
from .progress import ProgressLine

SHOWN = 3  # limits


def add_arguments(parser: argparse.ArgumentParser) -> None:
    robots.add_arguments(parser)
    parser.add_argument("recordings", nargs="*", metavar="RECORDING",
                        help="a CSV with columns t, q_<joint>, and qd_, qdd_, qddd_ where known; a base that moves is read "
                             "as joints base_x, _y, _z, _roll, _pitch, _yaw; a ROS 2 bag (.mcap, .db3, or its folder); "
                             "folders and patterns stand for all below them. Bags with /robot_description need no ROBOT.urdf "
                             "before them")
    parser.add_argument("-o", "--output", metavar="OUT", required=True,
                        help="of one recording: a .csv with columns t, tau_<joint>, tau_rate_<joint>, a .parquet with them, "
                             "or a .mcap to play beside the recording; of several: a folder")
    reading.add_arguments(parser)
    motion_csv.add_window(parser)
    parser.add_argument("--plot", metavar="OUT.png", help="also draw the curves, of one recording")
    many.add_arguments(parser)
    robots.add_dynamics(parser)


def run(args: argparse.Namespace) -> Outcome:
    reading.take_recordings(args)
    if many.asked(args):
        return many.run(args)
    path, output = Path(args.recordings[0]), Path(args.output)
    output_files.check_files(output, args.plot)
    if args.plot:
        figures.check_format(args.plot)
    robot = robots.served(args, *compute.SERVED, urdf=reading.described(args, path))
    read, work = told(robot), _Work(robot, bool(args.plot))
    source = files.open_recording(path, Wanted(read.names, read.blocks, reading=reading.asked(args)))
    check(robot, source.blocks)
    kind = output.suffix[1:] if output.suffix[1:] in results.FORMATS else results.CSV
    results.write(output, kind, robot.joint_names, source.span.origin, work.torques(source, read.types, args.window))
    if args.plot:
        _draw(args.plot, robot, work.kept)
    for line in files.notes(source):
        print(line, file=sys.stderr)
    written, notes = [name for name in (args.output, args.plot) if name], estimated(work.blocks, read.names)
    warmth = work.warming.warmth()
    return Outcome("\n".join([f"{work.count} samples of {robot.n} joints -> {', '.join(written)}", *nearest(work.peaks),
                              *warmth.words, *notes]),
                   {"robot": robot.name, "samples": work.count, "joints": robot.joint_names, "files": written,
                    "limits": [peak._asdict() for peak in work.peaks.all()], "thermal_load": warmth._asdict(),
                    "notes": notes})


class _Work:
    """Torques of a recording, part by part, and what is remembered of each part."""

    def __init__(self, robot: AnyRobot, keep: bool):
        """keep: the torques too, for a picture."""
        self.robot, self.keep, self.torque_and_rate = robot, keep, compute.asked(robot)
        self.peaks, self.warming = Peaks(limit_use(robot)), Warming(thermal_drives(robot), robot.joint_names)
        self.blocks: list[RecordedMotion] = []  # without their samples
        self.kept: list[tuple[Torques, np.ndarray | None]] = []
        self.count = 0

    def torques(self, source: Recording, types: Sequence[str], window: float | None) -> Iterator[Torques]:
        progress = ProgressLine()
        for block in recording.motions(source, types, window):
            self.blocks.append(block.only(slice(0)))
            for motion in compute.parts(block):
                found = compute.torques(self.torque_and_rate, motion)
                self.peaks.see(found.t, found.tau, found.tau_rate, found.q, found.qd, found.qdd, found.qddd)
                self.warming.see(found.t, found.tau)
                if self.keep:
                    self.kept.append((found, compute.deviations(self.robot, motion)))
                self.count += len(found.t)
                progress.samples("computed and written", self.count, source.span.samples)
                yield found
        progress.close()


def estimated(blocks: Sequence[RecordedMotion], joint_names: Sequence[str]) -> list[str]:
    """What was estimated in the blocks of a recording, and how."""
    hows = [block.how for block in blocks if block.how]
    lines = [motion_csv.said(blocks[0].estimated, what(hows))] if hows else []
    wrapped = sorted({joint for block in blocks for joint in block.wrapped})
    return lines + ([turns_removed([joint_names[k] for k in wrapped])] if wrapped else [])


def _draw(path: str, robot: AnyRobot, kept: Sequence[tuple[Torques, np.ndarray | None]]) -> None:
    t, tau, tau_rate, qd = (np.concatenate(blocks)
                            for blocks in zip(*((part.t, part.tau, part.tau_rate, part.qd) for part, _ in kept)))
    bands = None
    if any(band is not None for _, band in kept):
        unknown = [np.full((2, *part.tau.shape), np.nan) for part, _ in kept]
        bands = np.concatenate([none if band is None else band for none, (_, band) in zip(unknown, kept)], axis=1)
    units = ["N" if kind == "prismatic" else "N m" for kind in robot.joint_types]
    figures.torques(path, t, tau, tau_rate, robot.joint_names, units, robot.limits.effort, bands,
                    shares=uses_by_owner(_limits(robot), tau, tau_rate, qd))


def _limits(robot: AnyRobot) -> tuple[DriveLimit, ...]:
    """Of drives whose own torques these are."""
    return robot.drive_limits if isinstance(robot, Robot) else ()


def nearest(peaks: Peaks) -> list[str]:
    """The SHOWN limits that are used most, how many are exceeded, and of each joint and supply the one that is nearest."""
    found = [f"{'' if k else 'limits':<7}{100.0 * peak.share:7.1f} % of the {peak.words} at t = {peak.t:.13g} s"
             for k, peak in enumerate(peaks.all()[:SHOWN])]
    if beyond := sum(peak.share > 1.0 for peak in peaks.all()):
        found.append(f"{beyond} of {len(peaks.all())} known limits {'is' if beyond == 1 else 'are'} exceeded")
    width = max((len(peak.owner) for peak in peaks.of_owners()), default=0)
    return found + [f"  {peak.owner:<{width}} {100.0 * peak.share:7.1f} % of its {peak.quantity.replace('_', ' ')} at t = "
                    f"{peak.t:.13g} s" for peak in peaks.of_owners()]
