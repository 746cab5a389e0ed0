"""Files of recordings and results: which files are recordings, their readers, and writers of torques (CSV, Parquet, mcap).

A result file appears under its name only once it is complete.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, MissingPackage, near, some
from ..estimation.smoothing import combined_method, unwrapped_note
from ..robots.robot import Robot
from . import bags, csv_files
from .bags import METADATA, BagRecording
from .csv_files import CsvRecording, Torques, torque_columns
from .recording import (
    TIME_UNITS,
    ReadingOptions,
    RecordedMotion,
    Recording,
    RecordingRequest,
    RecordingSpan,
    Samples,
    derivative_note,
    joined_motion,
    motions,
    recording_schema,
)


def write_parquet(path: Path, names: Sequence[str], origin: int | None, tables: Iterator[np.ndarray]) -> None:
    """Write columns with the given names, the first of them t [s], preceded by `stamp` if the stamp of t = 0 is known [ns]."""
    arrow, parquet = import_pyarrow()
    stamped = [] if origin is None else [("stamp", arrow.timestamp("ns"))]
    schema = arrow.schema([*stamped, *((name, arrow.float64()) for name in names)])
    with parquet.ParquetWriter(path, schema) as file:
        for table in tables:
            stamps = [] if origin is None else [origin + np.round(1e9 * table[:, 0]).astype(np.int64)]
            columns = [*stamps, *(np.ascontiguousarray(column) for column in table.T)]
            arrays = [arrow.array(column).cast(kind) for column, kind in zip(columns, schema.types, strict=True)]
            file.write_table(arrow.Table.from_arrays(arrays, schema=schema))


def import_pyarrow() -> tuple[Any, Any]:
    """Return pyarrow and its Parquet module. Raises MissingPackage if pyarrow is not installed."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingPackage("Parquet needs pyarrow", "bags", "write CSV") from None
    return pyarrow, parquet


CSV, PARQUET, MCAP = "csv", "parquet", "mcap"
TORQUE_FORMATS = (PARQUET, CSV, MCAP)


def check_output_format(kind: str) -> None:
    """Raise MissingPackage if the writer of a format is not installed."""
    if kind == PARQUET:
        import_pyarrow()
    elif kind == MCAP:
        bags.import_rosbags()


def write_torques(path: Path, kind: str, joint_names: tuple[str, ...], origin: int | None, parts: Iterator[Torques],
          deviations: bool = False) -> None:
    """Write torques to a file.

    kind       : one of TORQUE_FORMATS
    origin     : stamp of t = 0 [ns], if there is one
    deviations : write standard deviations of torques too
    """
    regular = path.is_file() or not path.exists()  # and no pipe or device
    made = path.with_name(f".{path.name}.partial{path.suffix}") if regular else path
    tables = (part.table for part in parts)
    try:
        if kind == MCAP:
            bags.write_bag(made, joint_names, origin or 0, parts)
        elif kind == PARQUET:
            write_parquet(made, torque_columns(joint_names, deviations), origin, tables)
        else:
            csv_files.write_csv(made, torque_columns(joint_names, deviations), tables, lambda rows: None)
        if regular:
            with open(made, "rb") as file:
                os.fsync(file.fileno())
            made.replace(path)
    except BaseException:
        if regular:
            made.unlink(missing_ok=True)
        raise


BAG_SUFFIXES = (".mcap", ".db3")
RECORDING_FORMATS = (*BAG_SUFFIXES, ".csv")
MAX_SAMPLE_DISTANCE_S = 1.0, 60.0  # largest plausible period of a recording, and distance of the points of a planned path [s]
MAX_PATH_POINTS = 20  # largest number of points of a planned path


def is_bag(path: str | Path) -> bool:
    """Return whether a path is a ROS 2 bag: a single file, or the folder of all."""
    path = Path(path)
    return path.suffix in BAG_SUFFIXES or (path / METADATA).is_file()


def open_recording(path: str | Path, wanted: RecordingRequest, span: RecordingSpan | None = None) -> Recording:
    """Return the recording at a path. Raises InputError if it cannot be read.

    span: result of an earlier pass over the same file.
    """
    _check_held(wanted)
    if is_bag(path):
        if wanted.reading.has_csv_options:
            raise InputError(f"{path}: --columns, --sample-rate, --time-unit and --unit are for CSV files; bags have names, "
                             "stamps, seconds and rad")
        return BagRecording(Path(path), wanted, span)
    if Path(path).is_dir():
        raise InputError(f"{path}: is a folder, and no bag, for it has no {METADATA}")
    return CsvRecording(Path(path), wanted, span)


def read_samples(path: str | Path, wanted: RecordingRequest) -> tuple[Samples, list[str]]:
    """Return all samples at once and notes on what was not used. Times of a CSV may be in any order."""
    if is_bag(path):
        recording = open_recording(path, wanted)
        (samples,) = recording.pieces((-np.inf, np.inf))
        messages = recording_notes(recording)
    else:
        _check_held(wanted)
        samples, ignored = csv_files.read_columns(path, wanted.names, wanted.blocks, wanted.needed, wanted.reading.csv,
                                                 wanted.types)
        t = samples["t"]
        messages = unused_note("columns", ignored)
        if not wanted.reading.time_unit and (problem := _time_unit_error(t.min(), t.max(), len(t))):
            messages.append(f"warning: {problem}")
    t = samples.pop("t")
    return {"t": t, **{name: wanted.with_held_joints(name, columns) for name, columns in samples.items()}}, messages


def read_recording(path: str | Path, robot: Robot, *, topic: str | None = None, rename: Mapping[str, str] = {},
                   hold: Mapping[str, float] = {}, columns: Sequence[str] = (), sample_rate: float | None = None,
                   time_unit: str | None = None, unit: str | None = None, window: float | None = None) -> RecordedMotion:
    """Read the motion of a robot from a CSV file or a ROS 2 bag and estimate missing derivatives.

    path        : .csv with columns t, q_<joint> and, where known, qd_, qdd_, qddd_, tau_<joint>; .mcap, .db3, folder of a bag
    robot       : its joint names, types and limits; a moving base is read as joints base_x .. base_yaw
    topic       : joint states in a bag; None: /joint_states, or the only one
    rename      : parts of the names of columns or joints, old to new
    hold        : positions of joints that are not recorded [rad, m]
    columns     : names of all columns of a CSV without a header
    sample_rate : of a CSV without a column t [Hz]
    time_unit   : of column t: s, ms, us, ns; None: s, and InputError where samples are too far apart for that
    unit        : of rotary joints in a CSV: rad, deg; None: rad, and InputError where limits show that they are degrees
    window      : time over which polynomials are fitted instead of Kalman smoothing [s]

    The result has t (samples,) [s], q, qd, qdd, qddd (samples, n) [rad, m and their derivatives by s], tau (samples, n) as
    recorded, or None, deviation (4, samples, n), the standard deviations of q .. qddd where positions were smoothed (NaN:
    unknown), or None, and notes on what was dropped or estimated. Raises InputError with the file, the row and the remedy.
    """
    if time_unit not in (None, *TIME_UNITS) or unit not in (None, "rad", "deg"):
        raise InputError(f"time_unit is {time_unit!r}, unit is {unit!r}; allowed are {', '.join(TIME_UNITS)} and rad, deg")
    if sample_rate is not None and not 0.0 < sample_rate < np.inf:
        raise InputError(f"sample_rate is {sample_rate}; a number above zero is needed [Hz]")
    how = ReadingOptions(topic, tuple(rename.items()), tuple(hold.items()), tuple(columns), sample_rate, time_unit, unit)
    read = recording_schema(robot)
    wanted = RecordingRequest(read.names, read.blocks, reading=how, joint_types=read.types)
    source = open_with_efforts(path, wanted)
    check_time_unit(path, how, *source.span[:3])
    blocks = list(motions(source, read.types, window))
    motion = joined_motion(blocks)
    check_angle_unit(path, how, robot, motion.q)
    return replace(motion, notes=(*recording_notes(source), *estimation_notes(blocks, read.names)))


def open_with_efforts(path: str | Path, wanted: RecordingRequest) -> Recording:
    """Return a recording, with block tau if the file has valid efforts for every joint."""
    with suppress(InputError):  # efforts that are no numbers: the motion may be whole nevertheless
        found = open_recording(path, wanted._replace(blocks=(*wanted.blocks, "tau")))
        if "tau" in found.blocks:
            return found
    return open_recording(path, wanted)


def estimation_notes(blocks: Sequence[RecordedMotion], joint_names: Sequence[str]) -> list[str]:
    """Return notes on what was estimated in the blocks of a recording, and how."""
    hows = [block.how for block in blocks if block.how]
    lines = [derivative_note(blocks[0].estimated, combined_method(hows))] if hows else []
    wrapped = sorted({joint for block in blocks for joint in block.wrapped})
    return lines + ([unwrapped_note([joint_names[k] for k in wrapped])] if wrapped else [])


def _check_held(wanted: RecordingRequest) -> None:
    for name, _ in wanted.reading.held:
        if not any(fnmatchcase(joint, name) for joint in wanted.joint_names):
            raise InputError(f"--hold {name}: no such joint; the joints are {some(wanted.joint_names)}"
                             f"{near(name, wanted.joint_names)}")
    if wanted.reading.held and not wanted.names:
        raise InputError("--hold: every joint is held; at least one has to be in the recording")


def recording_notes(recording: Recording) -> list[str]:
    """Return notes on what was not used so far."""
    lines = [f"not used: {count} samples {reason}" for reason, count in recording.left_out.items()]
    return unused_note(recording.ignored_are, recording.ignored) + lines


def _time_unit_error(first: float, last: float, samples: int) -> str:
    """Return why t cannot be in seconds; empty if it can."""
    apart = (last - first) / max(samples - 1, 1)
    if apart < MAX_SAMPLE_DISTANCE_S[samples <= MAX_PATH_POINTS]:
        return ""
    unit = next((name for name in ("ms", "us", "ns") if apart * TIME_UNITS[name] < 1.0), "ns")
    return f"samples are {apart:.3g} s apart if t is in seconds; is it in {unit}? --time-unit {unit}, or --time-unit s"


def check_time_unit(path: str | Path, reading: ReadingOptions, first: float, last: float, samples: int) -> None:
    """Raise InputError if times from first to last [s] are implausible in seconds and no unit was given."""
    if not reading.time_unit and (problem := _time_unit_error(first, last, samples)):
        raise InputError(f"{path}: {problem}")


def check_angle_unit(path: str | Path, reading: ReadingOptions, robot: Robot, q: np.ndarray) -> None:
    """Raise InputError if positions q (samples, n) of rotary joints are implausible in rad and no unit was given.

    They are implausible far beyond limits that all joints keep if the positions are in degrees.
    """
    if reading.unit:
        return
    limits, most = robot.limits, np.abs(q[:, :robot.n]).max(axis=0, initial=0.0)
    bound = np.maximum(np.abs(limits.lower), np.abs(limits.upper))
    rotary = np.array([kind == "revolute" for kind in robot.joint_types], dtype=bool) & (bound > 0.0)
    with np.errstate(invalid="ignore"):
        far = rotary & (most > 2.0 * bound) & (most > 2.0 * np.pi)
        possible = (most * (np.pi / 180.0) <= 1.1 * bound) | ~rotary
    if far.any() and possible.all():
        k = int(np.argmax(np.where(far, most / np.where(rotary, bound, 1.0), 0.0)))
        raise InputError(f"{path}: positions of joint '{robot.joint_names[k]}' reach {most[k]:.4g} rad, its limits are "
                         f"{limits.lower[k]:.4g} to {limits.upper[k]:.4g} rad; in degrees all joints keep their limits. "
                         "--unit deg reads degrees, --unit rad accepts these positions")


def unused_note(what: str, names: Sequence[str]) -> list[str]:
    """Return a note on names that were not used; empty if there are none."""
    return [f"{what} not used: {some(names, 6, quoted=True)}"] if names else []


def find_recordings(given: Iterable[str]) -> dict[Path, Path]:
    """Return the recordings that files, folders and patterns name, each once, with the name of their results.

    A folder stands for all recordings below it, unless it is a bag. InputError names what does not exist.
    """
    paths: dict[Path, tuple[Path, Path]] = {}
    for word in (given := list(given)):
        matches = [Path(word)] if Path(word).exists() else [Path(name) for name in sorted(glob.glob(word, recursive=True))]
        if not matches:
            raise InputError(f"{word}: no such file, folder or pattern")
        for match in matches:
            for path in _below(match):
                name = Path(path.resolve().name) if path == match else path.relative_to(match)
                paths.setdefault(path.resolve(), (path, name.with_suffix("") if path.suffix in RECORDING_FORMATS else name))
    if not paths:
        raise InputError(f"no recordings in {some(given)}; recordings are bags and files that end in "
                         f"{', '.join(RECORDING_FORMATS)}")
    count = Counter(name for _, name in paths.values())
    return {path: name if count[name] == 1 else name.with_name(f"{name.name}-{_unique_suffix(where)}")
            for where, (path, name) in sorted(paths.items())}


def _unique_suffix(path: Path) -> str:
    """Return a suffix that distinguishes results of recordings with the same name."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:6]


def _below(path: Path) -> Iterator[Path]:
    if not path.is_dir() or is_bag(path):
        yield path
        return
    for entry in sorted(path.iterdir()):
        if not entry.name.startswith(".") and (entry.is_dir() or entry.suffix in RECORDING_FORMATS):
            yield from _below(entry)
