"""`rnea torque`, `rnea rolling` and `rnea flexible`: torques of recorded or planned motions, of one or many files; ground
forces, slip and tip-over margins of robots on wheels; deflection and vibration of robots with flexible links.
"""

from __future__ import annotations

import argparse
import glob
import os
import pickle
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, some
from ..io import batch, csv_files, figures, files, recording
from ..io.batch import BatchOutcome as OneOutcome
from ..io.csv_files import Torques
from ..io.recording import ReadingOptions, RecordedMotion, Recording, RecordingRequest, check_blocks, recording_schema
from ..model import robot_file
from ..model.drives import UNKNOWN, DriveLimit, utilizations_by_owner
from ..robots.robot import Robot
from ..robots.rolling import WheelOdometry, tip_over_margin, wheel_loads
from ..trajectory import vibration
from ..trajectory.limit_utilization import PeakTracker, limit_utilization
from ..trajectory.retiming import ThermalAccumulator, thermal_drives
from ..trajectory.vibration import KINDS, input_shaper
from . import inputs
from .output import CommandResult, ProgressLine, check_files, check_folder, format_table

N_LIMITS_SHOWN = 3  # limits


def add_torque_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rnea torque`."""
    inputs.add_robot_arguments(parser)
    parser.add_argument("recordings", nargs="*", metavar="RECORDING",
                        help="a CSV with columns t, q_<joint>, and optionally qd_, qdd_, qddd_; a moving base is read "
                        "as joints base_x, _y, _z, _roll, _pitch, _yaw; a ROS 2 bag (.mcap, .db3, or its folder); "
                        "folders and patterns select all files below them. Bags with /robot_description need no "
                        "ROBOT.urdf before them")
    parser.add_argument("-o", "--output", metavar="OUT", required=True,
                        help="output for one recording: a .csv with columns t, tau_<joint>, tau_rate_<joint>, a .parquet with "
                        "the same, or a .mcap to play beside the recording; for several: a folder")
    inputs.add_recording_arguments(parser)
    inputs.add_window(parser)
    parser.add_argument("--plot", metavar="OUT.png",
                        help="also draw the curves of one recording, with measured torques (columns tau_<joint>) if any")
    parser.add_argument("--deviations", action="store_true",
                        help="also write standard deviations: columns std_tau_<joint>, std_tau_rate_<joint>, nan where "
                        "unknown")
    add_batch_arguments(parser)
    inputs.add_dynamics(parser)


def run_torque(args: argparse.Namespace) -> CommandResult:
    """Run `rnea torque`; return its result."""
    inputs.resolve_recordings(args)
    if is_batch(args):
        if args.deviations:
            raise InputError("--deviations is for one recording and a .csv or .parquet file; leave it out")
        return run_batch(args)
    path, output = Path(args.recordings[0]), Path(args.output)
    kind = output.suffix[1:]
    check_files(output, args.plot)
    if kind not in files.TORQUE_FORMATS:
        raise InputError(f"-o {output}: the name must end in {', '.join(f'.{name}' for name in files.TORQUE_FORMATS)}")
    if args.deviations and kind == files.MCAP:
        raise InputError(f"-o {output}: joint states in a bag have no deviations; use .csv or .parquet with --deviations")
    files.check_output_format(kind)
    if args.plot:
        figures.check_format(args.plot)
    robot = inputs.load_robot(args, inputs.robot_description(args, path))
    source, types = _open_recording(path, robot, inputs.reading_options(args))
    work = _TorqueComputation(robot, bool(args.plot), args.deviations)
    files.write_torques(output, kind, robot.joint_names, source.span.origin, work.torques(source, types, args.window),
                        args.deviations)
    if args.plot:
        _draw_torques(args.plot, robot, work)
    for line in files.recording_notes(source):
        print(line, file=sys.stderr)
    written = [name for name in (args.output, args.plot) if name]
    notes = [*work.summary.notes, *files.estimation_notes(work.blocks, source.wanted.joint_names)]
    thermal_load = work.thermal.load()
    return CommandResult("\n".join([f"{work.count} samples of {robot.n} joints -> {', '.join(written)}", *work.summary.lines(),
                              *most_used_limits(work.peaks), *thermal_load.descriptions, *notes]),
                   {"robot": robot.name, "samples": work.count, "joints": robot.joint_names, "files": written,
                    "torques": work.summary.as_json(), "limits": [peak._asdict() for peak in work.peaks.ranked()],
                    "thermal_load": thermal_load._asdict(), "notes": notes})


def _open_recording(path: Path, robot: Robot, how: ReadingOptions) -> tuple[Recording, tuple[str, ...]]:
    """Return the recording, with measured efforts for a fixed tree, and the types of its joints."""
    read = recording_schema(robot)
    wanted = RecordingRequest(read.names, read.blocks, reading=how, joint_types=read.types)
    measured = robot.is_fixed_tree and robot.model.efforts.measured.quantity != UNKNOWN
    source = files.open_with_efforts(path, wanted) if measured else files.open_recording(path, wanted)
    check_blocks(robot, source.blocks)
    files.check_time_unit(path, how, *source.span[:3])
    return source, read.types


class _TorqueComputation:
    """Torques of a recording, computed part by part, and the data kept of each part."""

    def __init__(self, robot: Robot, keep: bool, deviations: bool):
        """keep: keep the torques for a picture; deviations: add them to the results."""
        self.robot, self.keep, self.deviations = robot, keep, deviations
        self.torque_and_rate = csv_files.torque_function(robot)
        self.peaks = PeakTracker(limit_utilization(robot))
        self.thermal = ThermalAccumulator(thermal_drives(robot), robot.joint_names)
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
            for motion in csv_files.motion_parts(block):
                found = csv_files.compute_torques(self.torque_and_rate, motion)
                self.peaks.add(found.t, found.tau, found.tau_rate, found.q, found.qd, found.qdd, found.qddd)
                self.thermal.add(found.t, found.tau)
                measured = _measured(self.robot, motion)
                self.summary.add(found, measured)
                if self.keep or self.deviations:
                    unknown = np.full((2, *found.tau.shape), np.nan)
                    deviation = csv_files.torque_deviations(self.robot, motion)
                    found = found._replace(deviation=unknown if deviation is None else deviation)
                if self.keep:
                    self.kept.append(found)
                    self.measured.append(np.full(found.tau.shape, np.nan) if measured is None else measured)
                self.count += len(found.t)
                progress.samples("computed and written", self.count, source.span.samples)
                yield found if self.deviations else found._replace(deviation=None)
        progress.close()


def _measured(robot: Robot, motion: RecordedMotion) -> np.ndarray | None:
    """Return the measured joint torques (samples, n) including all shares, NaN where unknown."""
    if motion.tau is None or not robot.is_fixed_tree:
        return None
    convention = robot.model.efforts.measured
    friction = robot.friction(motion.qd, motion.qdd)[0] if convention.needs_friction else 0.0
    return convention.torque(motion.tau, robot.gravity(motion.q), friction)


class _Summary:
    """Largest and RMS torque of every joint, and the RMS difference from measured torques."""

    def __init__(self, robot: Robot):
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
        """Return a mask (n,) of the joints that have measured torques other than zero."""
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
        """Return a table as lines."""
        compared = bool(self._has_measured.any())
        rows = []
        for row in self.as_json():
            off = "" if row["rms_difference"] is None else f"{row['rms_difference']:.4g}"
            cells = row["joint"], f"{row['peak']:.4g}", f"{row['t']:.13g}", f"{row['rms']:.4g}", off, row["unit"]
            rows.append(cells if compared else (*cells[:4], cells[5]))
        head = ("torque", "peak", "at t [s]", "RMS", *(("measured - computed, RMS",) if compared else ()), "unit")
        return format_table(head, rows, "<>>>><" if compared else "<>>><")


def _draw_torques(path: str, robot: Robot, work: _TorqueComputation) -> None:
    t, tau, tau_rate, qd = (np.concatenate(blocks)
                            for blocks in zip(*((part.t, part.tau, part.tau_rate, part.qd) for part in work.kept)))
    bands = np.concatenate([part.deviation for part in work.kept if part.deviation is not None], axis=1)
    measured = np.concatenate(work.measured)
    units = ["N" if kind == "prismatic" else "N m" for kind in robot.joint_types]
    figures.draw_torques(path, t, tau, tau_rate, robot.joint_names, units, robot.limits.effort,
                         bands if np.isfinite(bands).any() else None,
                         shares=utilizations_by_owner(_limits(robot), tau, tau_rate, qd),
                         measured=measured if np.isfinite(measured).any() else None)


def _limits(robot: Robot) -> tuple[DriveLimit, ...]:
    """Return the limits of drives with known torques."""
    return robot.drive_limits if robot.is_fixed_tree else ()


def most_used_limits(peaks: PeakTracker) -> list[str]:
    """Return lines on the SHOWN most used limits, the number of exceeded ones, and the most used of each joint and supply."""
    found = [f"{'' if k else 'limits':<7}{100.0 * peak.share:7.1f} % of the {peak.description} at t = {peak.t:.13g} s"
             for k, peak in enumerate(peaks.ranked()[:N_LIMITS_SHOWN])]
    if beyond := sum(peak.share > 1.0 for peak in peaks.ranked()):
        found.append(f"{beyond} of {len(peaks.ranked())} known limits {'is' if beyond == 1 else 'are'} exceeded")
    width = max((len(peak.owner) for peak in peaks.by_owner()), default=0)
    return found + [f"  {peak.owner:<{width}} {100.0 * peak.share:7.1f} % of its {peak.quantity.replace('_', ' ')} at t = "
                    f"{peak.t:.13g} s" for peak in peaks.by_owner()]


PART_DURATION_S = 300.0  # s
N_FAILURES_SHOWN = 20


def add_batch_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for many recordings."""
    group = parser.add_argument_group("many recordings", "OUT is a folder; finished parts are not computed again")
    group.add_argument("--format", choices=files.TORQUE_FORMATS, help="of the results, default parquet")
    group.add_argument("--workers", type=int, metavar="N", help="number of processes; default: number of processors")
    group.add_argument("--dask", metavar="ADDRESS", help="scheduler of a Dask cluster that computes instead: tcp://host:8786")
    group.add_argument("--part", type=float, metavar="S", help=
                       f"seconds of a recording in one file, default {PART_DURATION_S:g}")


def is_batch(args: argparse.Namespace) -> bool:
    """Return whether the output is a folder, for one recording or many."""
    given, output = args.recordings, args.output
    options = (args.format, args.workers, args.dask, args.part)
    several = len(given) > 1 or (glob.has_magic(given[0]) and not Path(given[0]).exists())
    several = several or (Path(given[0]).is_dir() and not files.is_bag(given[0]))
    folder = output.endswith(os.sep) or os.path.isdir(output)
    if not (several or folder or any(option is not None for option in options)):
        return False
    if Path(output).suffix[1:] in files.TORQUE_FORMATS and not os.path.isdir(output):
        raise InputError(f"-o {output}: several recordings, and options for many, need a folder as output")
    return True


def run_batch(args: argparse.Namespace) -> CommandResult:
    """Compute many recordings; exit code 1 if one failed."""
    if args.plot:
        raise InputError("--plot is for one recording; leave it out")
    for option, value in (("--workers", args.workers), ("--part", args.part)):
        if value is not None and not value > 0:
            raise InputError(f"{option} is {value:g}; a number above zero is needed")
    if args.dask and args.workers:
        raise InputError("--workers is for this machine, --dask for a cluster; give one of them")
    kind, folder = args.format or files.PARQUET, Path(args.output)
    files.check_output_format(kind)
    check_folder(folder)
    found = {path: folder / name for path, name in files.find_recordings(args.recordings).items()
             if folder.resolve() not in path.resolve().parents}
    if not found:
        raise InputError(f"{some(args.recordings)} contains results only; at least one recording is needed")
    work = _job(args, kind)
    progress, bytes_done = ProgressLine(), 0.0
    outcomes: list[OneOutcome] = []
    sizes = {path: _size(path) for path in found}
    total = max(sum(sizes.values()), 1)

    def watch(path: Path, share: float) -> None:
        nonlocal bytes_done
        bytes_done += share * sizes[path]
        failed = sum(bool(outcome.failed) for outcome in outcomes)
        progress(f"{len(outcomes)} of {len(found)} recordings, {100.0 * bytes_done / total:.0f} % of {total / 1e9:.3g} GB"
                 + (f", {failed} failed" if failed else ""))

    with _workers(args) as (executor, count):
        for outcome in batch.run_batch(work, found, executor, count, watch):
            outcomes.append(outcome)
            watch(outcome.path, 0.0)
    progress.close()
    return _batch_outcome(outcomes, folder)


@contextmanager
def _workers(args: argparse.Namespace) -> Iterator[tuple[Executor, int]]:
    if args.dask:
        with batch.connect_cluster(args.dask) as connected:
            yield connected
        return
    count = args.workers or batch.available_processors()
    executor = batch.local_executor(count)
    try:
        yield executor, count
    finally:
        executor.shutdown(cancel_futures=True)


def _job(args: argparse.Namespace, kind: str) -> batch.BatchJob:
    """Return the job, with the robot of the command line, or the options for robots described in bags."""
    robot, options = None, {}
    if args.urdf is None:
        options = {name: getattr(args, name) for name in ("base", "backend", "gravity", "friction")}
        options["robot_file"] = robot_file.draft(args.robot_file) if args.robot_file else None
    else:
        served = inputs.load_robot(args)
        csv_files.torque_function(served)
        if served.is_fixed_tree:
            served.torque_and_rate(*[[0.0] * served.n] * 4)  # compile once for all workers of this machine
        robot = pickle.dumps(served)
    return batch.BatchJob(robot, options, inputs.reading_options(args), args.window, kind, args.part or PART_DURATION_S)


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.iterdir()) if path.is_dir() else path.stat().st_size


def _batch_outcome(outcomes: list[OneOutcome], folder: Path) -> CommandResult:
    failed = [outcome for outcome in outcomes if outcome.failed]
    before = sum(outcome.before and not outcome.failed for outcome in outcomes)
    rows = sum(outcome.rows for outcome in outcomes)
    for outcome in failed[:N_FAILURES_SHOWN]:
        print(f"failed: {outcome.path}: {outcome.failed}", file=sys.stderr)
    if len(failed) > N_FAILURES_SHOWN:
        print(f"failed: {len(failed) - N_FAILURES_SHOWN} more", file=sys.stderr)
    return CommandResult(f"{len(outcomes) - len(failed)} of {len(outcomes)} recordings, {rows} samples -> {folder}"
                   + (f"; {before} of them were finished before" if before else ""),
                   {"recordings": len(outcomes), "samples": rows, "folder": folder, "there_already": before,
                    "failed": {str(outcome.path): outcome.failed for outcome in failed}}, int(bool(failed)))


POSE = ("x", "y", "z", "qx", "qy", "qz", "qw")


def add_rolling_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subcommand."""
    inputs.add_robot_arguments(parser)
    parser.add_argument("recordings", nargs="*", metavar="RECORDING",
                        help="a CSV or a bag with the motion of the joints, as for rnea torque: columns t, q_<joint>, and "
                             "optionally qd_, qdd_, qddd_. The pose of the base is computed by dead reckoning from the "
                             "origin. For robots whose base can lean freely, such as bicycles, use rnea torque")
    parser.add_argument("-o", "--output", metavar="OUT.csv",
                        help="output with columns t, tau_, tau_rate_ of every joint, base_x to base_qw, normal_, tangential_ "
                        "and friction_use_ of every wheel [N, N, -], tip_over_margin [m]")
    inputs.add_recording_arguments(parser)
    inputs.add_window(parser)
    inputs.add_dynamics(parser)


def run_rolling(args: argparse.Namespace) -> CommandResult:
    """Run the subcommand."""
    check_files(args.output)
    path = inputs.single_recording(args)
    robot = inputs.load_robot(args, inputs.robot_description(args, path))
    odometry, motion = WheelOdometry(robot), inputs.read_motion(args, path, robot.joint_names, robot.joint_types)
    names, rows, progress = [wheel.name for wheel in robot.roles.wheels], [], ProgressLine()
    for k, t in enumerate(motion.t):
        state = odometry.advance(float(t), motion.q[k], motion.qd[k], motion.qdd[k], motion.qddd[k])
        assert odometry.solution is not None
        loads = wheel_loads(robot, odometry.solution, state)
        tau, rate = odometry.solution.torques
        rows.append(np.concatenate((
            [t], tau, rate, state.position, state.quaternion, [loads[name].normal[0] for name in names],
            [loads[name].tangential[0] for name in names], [loads[name].friction_use for name in names],
            [tip_over_margin(loads)])))
        progress.samples("computed", k + 1, len(motion.t))
    progress.close()
    columns = ["t", *(f"{head}_{name}" for head in ("tau", "tau_rate") for name in robot.joint_names),
               *(f"base_{part}" for part in POSE),
               *(f"{head}_{name}" for head in ("normal", "tangential", "friction_use") for name in names), "tip_over_margin"]
    table = dict(zip(columns, np.array(rows).T, strict=True))
    if args.output:
        csv_files.write_csv(args.output, columns, iter([np.array(rows)]), lambda _: None)
    margin, t = table["tip_over_margin"], table["t"]
    tipping = None if np.isnan(margin).all() else int(np.nanargmin(margin))
    wheels = [{"wheel": name, "least_normal": float(table[f"normal_{name}"].min()),
               "largest_tangential": float(table[f"tangential_{name}"].max()),
               "largest_friction_use": float(table[f"friction_use_{name}"].max())} for name in names]
    lines = format_table(("wheel", "least normal [N]", "largest tangential [N]", "largest friction use"),
                         [(str(one["wheel"]), *(f"{value:.4g}" for value in list(one.values())[1:])) for one in wheels],
                         "<>>>")
    if tipping is not None:
        lines.append(f"least tip-over margin {margin[tipping]:.4g} m at t = {t[tipping]:.13g} s"
                     + (": the vehicle tips over" if margin[tipping] < 0.0 else ""))
    lines.append(f"{len(t)} samples{f' -> {args.output}' if args.output else ''}")
    return CommandResult("\n".join(lines), {
        "robot": robot.name, "samples": len(t), "wheels": wheels,
        "least_tip_over_margin": None if tipping is None else float(margin[tipping]),
        "end_pose": {part: float(table[f"base_{part}"][-1]) for part in POSE}})


def add_flexible_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subcommand."""
    inputs.add_robot_arguments(parser)
    parser.add_argument("recordings", nargs="*", metavar="RECORDING",
                        help="a CSV or a bag with the motion of the actuated joints, as for rnea torque: columns t, "
                             "q_<joint>, and optionally qd_, qdd_, qddd_. The deflection of the links is predicted; if it is "
                             "measured, use rnea torque. Without a recording, only the natural frequencies are printed")
    parser.add_argument("-o", "--output", metavar="OUT.csv",
                        help="output with columns t, tau_, tau_rate_, q_ of every joint, tip_<link>_x, _y, _z [m], "
                        "moment_<link>_<bending> [N m] and stress_<link>_<bending> [Pa]")
    parser.add_argument("--shape", choices=[*KINDS], help="shape the motion so that it leaves no vibration")
    parser.add_argument("--vibrations", type=int, default=1, metavar="N",
                        help="number of natural frequencies, from the lowest, that --shape suppresses; default 1")
    inputs.add_recording_arguments(parser)
    inputs.add_window(parser)
    inputs.add_dynamics(parser)


def run_flexible(args: argparse.Namespace) -> CommandResult:
    """Run the subcommand."""
    check_files(args.output)
    if not args.recordings and not files.is_bag(args.urdf or ""):
        return _frequencies(inputs.load_robot(args, args.urdf))
    path = inputs.single_recording(args)
    robot = inputs.load_robot(args, inputs.robot_description(args, path))
    t, motion = _read_driven_motion(args, path, robot)
    pose = np.zeros(robot.n)
    pose[[robot.joint_names.index(name) for name in vibration.driven_joints(robot)]] = motion[0, -1]
    free = vibration.free_vibration(robot, pose)
    if args.shape:
        shaper = input_shaper(free.frequency[:args.vibrations], free.damping_ratio[:args.vibrations], args.shape)
        t, motion = shaper.shape(t, motion)
    whole = vibration.predict_deflection(robot, t, *motion)
    torques = robot.torque_and_rate(*whole)
    tips, loads = vibration.tip_deflection(robot, whole[0]), vibration.root_loads(robot, *whole)
    of_joints = {"tau": torques[0], "tau_rate": torques[1], "q": whole[0]}
    columns = [(f"{head}_{name}", values[:, k]) for head, values in of_joints.items()
               for k, name in enumerate(robot.joint_names)]
    columns += [(f"tip_{link}_{axis}", values[:, k]) for link, values in tips.items() for k, axis in enumerate("xyz")]
    for kind in ("moment", "stress"):
        columns += [(f"{kind}_{link}_{name}", getattr(load, kind)[:, 0]) for link, bendings in loads.items()
                    for name, load in bendings.items()]
    if args.output:
        table = np.column_stack([t, *(values for _, values in columns)])
        csv_files.write_csv(args.output, ["t", *(name for name, _ in columns)], iter([table]), lambda _: None)
    left = vibration.residual_vibration(robot, whole[:, -1])
    rows = [(link, f"{np.linalg.norm(tips[link], axis=1).max():.4g}", f"{left[link]:.3g}", name,
             f"{np.abs(load.moment[:, 0]).max():.4g}", f"{np.abs(load.stress[:, 0]).max():.4g}")
            for link, bendings in loads.items() for name, load in bendings.items()]
    head = ("link", "deflection [m]", "left [m]", "bending", "moment [N m]", "stress [Pa]")
    lines = [*_vibration_table(free), *format_table(head, rows, "<>><>>"),
             f"{len(t)} samples, {t[-1] - t[0]:.4g} s" + (f", {args.shape} shaper" if args.shape else "")
             + (f" -> {args.output}" if args.output else "")]
    return CommandResult("\n".join(lines), {
        "robot": robot.name, "joints": robot.joint_names, "frequencies": free.frequency, "damping_ratios": free.damping_ratio,
        "samples": len(t), "duration": t[-1] - t[0], "residual_vibration": left,
        "deflection": {link: np.linalg.norm(tip, axis=1).max() for link, tip in tips.items()},
        "root_moment": {link: {name: np.abs(load.moment[:, 0]).max() for name, load in bendings.items()}
                        for link, bendings in loads.items()}})


def _frequencies(robot: Robot) -> CommandResult:
    free = vibration.free_vibration(robot, robot.home_motion[0])
    return CommandResult("\n".join(_vibration_table(free)), {"robot": robot.name, "frequencies": free.frequency,
                                                   "damping_ratios": free.damping_ratio})


def _vibration_table(free: vibration.FreeVibration) -> list[str]:
    rows = [(f"{w / (2.0 * np.pi):.4g}", f"{w:.4g}", f"{z:.3g}")
            for w, z in zip(free.frequency, free.damping_ratio, strict=True)]
    return format_table(("vibration [Hz]", "[rad/s]", "damping ratio [-]"), rows, ">>>")


def _read_driven_motion(args: argparse.Namespace, path: Path, robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Return times and motion (4, samples, driven) of a recording."""
    names = vibration.driven_joints(robot)
    moved = inputs.read_motion(args, path, names, [robot.joint_types[robot.joint_names.index(name)] for name in names])
    return moved.t, np.array([moved.q, moved.qd, moved.qdd, moved.qddd])
