"""`rnea torque ROBOT.urdf RECORDING...`: torque and torque rate of recorded or planned motions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..io import figures, files, recording
from ..io import torques as compute
from ..io.recording import ReadingOptions, RecordedMotion, Recording, RecordingRequest, check_blocks, recording_schema
from ..io.torques import Torques
from ..model.drive_limits import DriveLimit, uses_by_owner
from ..model.effort_convention import UNKNOWN
from ..motion.limit_use import Peaks, limit_use
from ..motion.warmth import Warming, thermal_drives
from ..robots.protocol import AnyRobot
from ..robots.robot import Robot
from . import many, output_files, reading, robots
from .outcome import Outcome
from .progress import ProgressLine
from .tables import table

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
    reading.add_window(parser)
    parser.add_argument("--plot", metavar="OUT.png",
                        help="also draw the curves, of one recording; measured torques (columns tau_<joint>) beside them")
    parser.add_argument("--deviations", action="store_true",
                        help="also write standard deviations: columns std_tau_<joint>, std_tau_rate_<joint>, nan where they "
                             "are unknown")
    many.add_arguments(parser)
    robots.add_dynamics(parser)


def run(args: argparse.Namespace) -> Outcome:
    reading.take_recordings(args)
    if many.asked(args):
        if args.deviations:
            raise InputError("--deviations is for one recording and a .csv or .parquet file")
        return many.run(args)
    path, output = Path(args.recordings[0]), Path(args.output)
    kind = output.suffix[1:]
    output_files.check_files(output, args.plot)
    if kind not in files.TORQUE_FORMATS:
        raise InputError(f"-o {output}: the name must end in {', '.join(f'.{name}' for name in files.TORQUE_FORMATS)}")
    if args.deviations and kind == files.MCAP:
        raise InputError(f"-o {output}: joint states in a bag have no deviations; --deviations needs .csv or .parquet")
    files.check_output_format(kind)
    if args.plot:
        figures.check_format(args.plot)
    robot = robots.served(args, *compute.SUPPORTED_ROBOTS, urdf=reading.described(args, path))
    source, types = _opened(path, robot, reading.asked(args))
    work = _Work(robot, bool(args.plot), args.deviations)
    files.write_torques(output, kind, robot.joint_names, source.span.origin, work.torques(source, types, args.window),
                  args.deviations)
    if args.plot:
        _draw(args.plot, robot, work)
    for line in files.recording_notes(source):
        print(line, file=sys.stderr)
    written = [name for name in (args.output, args.plot) if name]
    notes = [*work.summary.notes, *files.estimation_notes(work.blocks, source.wanted.joint_names)]
    warmth = work.warming.warmth()
    return Outcome("\n".join([f"{work.count} samples of {robot.n} joints -> {', '.join(written)}", *work.summary.lines(),
                              *nearest(work.peaks), *warmth.words, *notes]),
                   {"robot": robot.name, "samples": work.count, "joints": robot.joint_names, "files": written,
                    "torques": work.summary.as_json(), "limits": [peak._asdict() for peak in work.peaks.all()],
                    "thermal_load": warmth._asdict(), "notes": notes})


def _opened(path: Path, robot: AnyRobot, how: ReadingOptions) -> tuple[Recording, tuple[str, ...]]:
    """Return the recording, with measured efforts where a fixed tree has them, and the types of the joints that are read."""
    read = recording_schema(robot)
    wanted = RecordingRequest(read.names, read.blocks, reading=how, joint_types=read.types)
    measured = isinstance(robot, Robot) and robot.model.efforts.measured.quantity != UNKNOWN
    source = files.open_with_efforts(path, wanted) if measured else files.open_recording(path, wanted)
    check_blocks(robot, source.blocks)
    files.check_time_unit(path, how, *source.span[:3])
    return source, read.types


class _Work:
    """Torques of a recording, part by part, and what is kept of each part."""

    def __init__(self, robot: AnyRobot, keep: bool, deviations: bool):
        """keep: the torques too, for a picture; deviations: in the results."""
        self.robot, self.keep, self.deviations, self.torque_and_rate = robot, keep, deviations, compute.torque_function(robot)
        self.peaks, self.warming = Peaks(limit_use(robot)), Warming(thermal_drives(robot), robot.joint_names)
        self.summary = _Summary(robot)
        self.blocks: list[RecordedMotion] = []  # without their samples
        self.kept: list[Torques] = []
        self.measured: list[np.ndarray] = []
        self.count = 0

    def torques(self, source: Recording, types: Sequence[str], window: float | None) -> Iterator[Torques]:
        progress = ProgressLine()
        for block in recording.motions(source, types, window):
            files.check_angle_unit(source.path, source.wanted.reading, self.robot, block.q)
            self.blocks.append(block.only(slice(0)))
            for motion in compute.motion_parts(block):
                found = compute.compute_torques(self.torque_and_rate, motion)
                self.peaks.see(found.t, found.tau, found.tau_rate, found.q, found.qd, found.qdd, found.qddd)
                self.warming.see(found.t, found.tau)
                measured = _measured(self.robot, motion)
                self.summary.add(found, measured)
                if self.keep or self.deviations:
                    unknown = np.full((2, *found.tau.shape), np.nan)
                    deviation = compute.torque_deviations(self.robot, motion)
                    found = found._replace(deviation=unknown if deviation is None else deviation)
                if self.keep:
                    self.kept.append(found)
                    self.measured.append(np.full(found.tau.shape, np.nan) if measured is None else measured)
                self.count += len(found.t)
                progress.samples("computed and written", self.count, source.span.samples)
                yield found if self.deviations else found._replace(deviation=None)
        progress.close()


def _measured(robot: AnyRobot, motion: RecordedMotion) -> np.ndarray | None:
    """Return the measured joint torques (samples, n) as whole torques, NaN where they are unknown."""
    if motion.tau is None or not isinstance(robot, Robot):
        return None
    convention = robot.model.efforts.measured
    friction = robot.friction(motion.qd, motion.qdd)[0] if convention.needs_friction else 0.0
    return convention.torque(motion.tau, robot.gravity(motion.q), friction)


class _Summary:
    """Largest and RMS torque of every joint, and the RMS difference to measured torques."""

    def __init__(self, robot: AnyRobot):
        self._names = robot.joint_names
        self._units = ["N" if kind == "prismatic" else "N m" for kind in robot.joint_types]
        self._peak, self._time, self._squares, self._off = np.zeros((4, robot.n))
        self._measured_squares, self._compared, self._count = np.zeros(robot.n), np.zeros(robot.n, dtype=int), 0

    def add(self, found: Torques, measured: np.ndarray | None) -> None:
        """Add a part of the motion."""
        if not len(found.t):
            return
        sizes = np.nan_to_num(np.abs(found.tau))
        most = sizes.max(axis=0)
        self._time = np.where(most > self._peak, found.t[sizes.argmax(axis=0)], self._time)
        self._peak = np.maximum(self._peak, most)
        self._squares += (sizes**2).sum(axis=0)
        self._count += len(found.t)
        if measured is not None:
            known = np.isfinite(measured) & np.isfinite(found.tau)
            self._compared += known.sum(axis=0)
            self._off += np.square(np.where(known, measured - found.tau, 0.0)).sum(axis=0)
            self._measured_squares += np.square(np.where(known, measured, 0.0)).sum(axis=0)

    @property
    def _has_measured(self) -> np.ndarray:
        """Which joints (n,) have measured torques that are not all zero."""
        return self._measured_squares > 0.0

    @property
    def notes(self) -> list[str]:
        if self._compared.any() and not self._has_measured.any():
            return ["measured efforts are all zero: not compared"]
        return []

    def as_json(self) -> list[dict[str, Any]]:
        """Return a row for every joint."""
        count, compared = max(self._count, 1), np.maximum(self._compared, 1)
        rms, off = np.sqrt(self._squares / count), np.sqrt(self._off / compared)
        return [{"joint": name, "unit": unit, "peak": self._peak[k], "t": self._time[k], "rms": rms[k],
                 "rms_difference": off[k] if self._has_measured[k] else None}
                for k, (name, unit) in enumerate(zip(self._names, self._units))]

    def lines(self) -> list[str]:
        """Return a table for people."""
        compared = bool(self._has_measured.any())
        rows = []
        for row in self.as_json():
            off = "" if row["rms_difference"] is None else f"{row['rms_difference']:.4g}"
            cells = row["joint"], f"{row['peak']:.4g}", f"{row['t']:.13g}", f"{row['rms']:.4g}", off, row["unit"]
            rows.append(cells if compared else (*cells[:4], cells[5]))
        head = ("torque", "peak", "at t [s]", "RMS", *(("measured - computed, RMS",) if compared else ()), "unit")
        return table(head, rows, "<>>>><" if compared else "<>>><")


def _draw(path: str, robot: AnyRobot, work: _Work) -> None:
    t, tau, tau_rate, qd = (np.concatenate(blocks)
                            for blocks in zip(*((part.t, part.tau, part.tau_rate, part.qd) for part in work.kept)))
    bands = np.concatenate([part.deviation for part in work.kept if part.deviation is not None], axis=1)
    measured = np.concatenate(work.measured)
    units = ["N" if kind == "prismatic" else "N m" for kind in robot.joint_types]
    figures.draw_torques(path, t, tau, tau_rate, robot.joint_names, units, robot.limits.effort,
                    bands if np.isfinite(bands).any() else None, shares=uses_by_owner(_limits(robot), tau, tau_rate, qd),
                    measured=measured if np.isfinite(measured).any() else None)


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
