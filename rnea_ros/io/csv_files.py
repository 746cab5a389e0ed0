"""Motions in CSV files: a header ``t, q_<joint>, qd_<joint>, qdd_<joint>, qddd_<joint>`` in any order, one row per sample.

Large files are read piece by piece: the offset of each few thousand rows is indexed once (CsvRecording). numpy.loadtxt
parses the numbers, as fast as pyarrow 26 with one thread (0.28 and 0.27 s for 50 000 rows of 29 columns); files with text in
other columns are parsed row by row. Torques of a motion are computed part by part.
"""

from __future__ import annotations

import csv
import itertools
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, some
from ..estimation.position_sensor import consistent_stamps
from ..estimation.smoothing import estimate_recording
from ..robots.conditions import MotorState
from ..robots.robot import Robot
from . import recording
from .recording import BLOCKS, CsvFormat, RecordedMotion, RecordingRequest, RecordingSpan, Samples, higher_derivatives

MAX_GAP = 3.0  # largest gap over which samples of merged files are interpolated [median periods]
CHUNK = 20_000  # rows between two progress reports


def read_motion(path: str | Path, joint_names: Sequence[str], window: float | None = None,
         joint_types: Sequence[str] = (), blocks: Sequence[str] = BLOCKS) -> RecordedMotion:
    """Return the motion of the named joints. Derivatives that the file does not have for every joint are estimated.

    window [s], joint_types: as in estimate_recording; blocks: blocks to read, possibly with higher derivatives. Raises
    InputError for a missing column or value, with row and column.
    """
    known, ignored = read_columns(path, joint_names, blocks, ("q",))
    t = known.pop("t")
    estimated = tuple(block for block in BLOCKS if block not in known)
    how = deviation = None
    wrapped: tuple[int, ...] = ()
    if estimated:
        guesses = estimate_recording(t, known["q"], known.get("qd"), known.get("qdd"), window, joint_types=joint_types)
        known |= {name: getattr(guesses, name) for name in ("q", *estimated)}
        how, deviation, wrapped = guesses.how, guesses.deviation, guesses.wrapped
    q, qd, qdd, qddd = (known[block] for block in BLOCKS)
    return RecordedMotion(t, q, qd, qdd, qddd, estimated, how, ignored, deviation, higher_derivatives(known), wrapped)


class CsvLayout(NamedTuple):
    """Header of a CSV file, and the columns that are read.

    names     : of all columns
    skip      : rows before the first sample: 1, or 0 without a header
    delimiter : between values; with semicolons, decimal commas are allowed
    known     : columns of each block that the file has for every joint
    scale     : factors of time and of the columns that are read, to s, rad and m
    rate      : as in CsvFormat
    """

    names: list[str]
    skip: int
    delimiter: str
    known: dict[str, list[str]]
    scale: np.ndarray
    rate: float | None

    @property
    def numbers(self) -> list[int]:
        """Numbers of the columns that are read: t, unless a rate is given, and those of the blocks."""
        stamped = ("t",) if self.rate is None else ()
        return [self.names.index(name) for name in (*stamped, *(name for names in self.known.values() for name in names))]

    @property
    def ignored(self) -> tuple[str, ...]:
        """Names of columns that are not read."""
        used = {"t", *(name for columns in self.known.values() for name in columns)}
        return tuple(name for name in self.names if name and name not in used)

    def with_decimal_points(self, lines: Iterable[str]) -> Iterable[str]:
        """Return lines with decimal points."""
        return (line.replace(",", ".") for line in lines) if self.delimiter == ";" else lines

    def table(self, values: np.ndarray, first: int = 0) -> np.ndarray:
        """Return times and blocks (samples, 1 + columns) in s, rad and m of the columns read, from sample `first` on."""
        if self.rate is not None:
            values = np.column_stack(((first + np.arange(len(values))) / self.rate, values))
        return values * self.scale

    def split(self, table: np.ndarray) -> dict[str, np.ndarray]:
        """Return "t" (samples,) and the blocks (samples, n) of a table."""
        ends = np.cumsum([len(columns) for columns in self.known.values()])[:-1]
        return {"t": table[:, 0], **dict(zip(self.known, np.split(table[:, 1:], ends, axis=1), strict=True))}


def read_columns(path: str | Path, joint_names: Sequence[str], blocks: Sequence[str], needed: Sequence[str],
               form: CsvFormat = CsvFormat(),
               joint_types: Sequence[str] = ()) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """Return "t" (samples,), the blocks (samples, n) that the file has for every joint, and the unused columns.

    Raises InputError if t or a needed block is incomplete, or a value is not a finite number.
    """
    layout = read_layout(path, joint_names, blocks, needed, form, joint_types)
    return layout.split(_numbers(path, layout)), layout.ignored


def merge_csv(paths: Sequence[str | Path], form: CsvFormat, target: Path) -> list[str]:
    """Write the columns of CSV files of one motion to one file, at the times of the first; return notes.

    Columns of the others are taken at equal times, or interpolated linearly. Rows whose time is not between two samples of
    every file are left out. Without times (form.rate) rows are matched by number. Raises InputError.
    """
    parts = [_columns(path, form) for path in paths]
    t, table = parts[0].t, parts[0].values
    names, inside, notes = list(parts[0].names), np.ones(len(table), dtype=bool), []
    for path, part in zip(paths[1:], parts[1:], strict=True):
        if twice := [name for name in part.names if name in names]:
            raise InputError(f"{path}: columns {some(twice, 6, quoted=True)} are also in another one of the files that are "
                             "merged; each column is needed once")
        if len(part.t) == len(t) and np.array_equal(part.t, t):
            values = part.values
        elif form.rate is not None:
            raise InputError(f"{path}: {len(part.t)} rows, {paths[0]} has {len(t)}; files without times need equal rows")
        else:
            values, covered = _interpolate(part, t)
            inside &= covered
            notes.append(f"{path}: interpolated at the times of {paths[0]}")
        names, table = [*names, *part.names], np.column_stack((table, values))
    if inside.sum() < 2:
        spans = ", ".join(f"{path} from {part.t.min():.6g} to {part.t.max():.6g}" for path, part in zip(paths, parts))
        raise InputError(f"times of the files that are merged do not overlap: {spans}; they need one clock and one unit")
    if not inside.all():
        notes.append(f"{int((~inside).sum())} of {len(t)} samples of {paths[0]} left out: not between two samples of each "
                     "file")
    stamps = [] if form.rate is not None else [t]
    header = ",".join([*([parts[0].time] if stamps else []), *names])
    np.savetxt(target, np.column_stack((*stamps, table))[inside], fmt="%.17g", delimiter=",", header=header, comments="")
    return notes


class _CsvColumns(NamedTuple):
    """Columns of one of several files: t (samples,) and its name, names of the others, and their values (samples, columns)."""

    t: np.ndarray
    time: str
    names: list[str]
    values: np.ndarray


def _columns(path: str | Path, form: CsvFormat) -> _CsvColumns:
    """Return all columns of a CSV file that hold numbers, by the names that they have in the file."""
    header, skip, delimiter = _header(path, ())
    layout, renamed = CsvLayout(header, skip, delimiter, {}, np.ones(1), form.rate), header
    for old, new in form.rename:
        renamed = [name.replace(old, new) for name in renamed]
    try:
        with warnings.catch_warnings(), open(path, encoding="utf-8-sig") as file:
            warnings.simplefilter("ignore")  # no rows
            table = np.genfromtxt(layout.with_decimal_points(islice(file, skip, None)), delimiter=delimiter, ndmin=2)
    except (ValueError, OSError) as error:
        raise InputError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from None
    if not table.size or table.shape[1] != len(header):
        raise InputError(f"{path}: no rows of {len(header)} values below the header")
    if form.rate is None and "t" not in renamed:
        raise InputError(f"{path}: no column 't'; files are merged by their times. Columns of other names: --rename OLD=NEW. "
                         "Files without times: --sample-rate HZ")
    numbers = [k for k, name in enumerate(renamed) if name != "t" and not np.isnan(table[:, k]).all()]
    time = renamed.index("t") if "t" in renamed else 0
    t = np.arange(len(table)) * 1.0 if form.rate is not None else table[:, time]
    return _CsvColumns(t, header[time], [header[k] for k in numbers], table[:, numbers])


def _interpolate(part: _CsvColumns, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the values (samples, columns) of a file at other times, and whether each time lies between two of its samples."""
    kept = consistent_stamps(part.t)
    known, values = part.t[kept], part.values[kept]
    if len(known) < 2:
        return np.full((len(t), values.shape[1]), np.nan), np.zeros(len(t), dtype=bool)
    after = np.clip(np.searchsorted(known, t), 1, len(known) - 1)
    gaps = np.diff(known)
    covered = (t >= known[0]) & (t <= known[-1]) & (gaps[after - 1] <= MAX_GAP * np.median(gaps))
    return np.column_stack([np.interp(t, known, column) for column in values.T]), covered


def read_layout(path: str | Path, joint_names: Sequence[str], blocks: Sequence[str], needed: Sequence[str],
                form: CsvFormat = CsvFormat(), joint_types: Sequence[str] = ()) -> CsvLayout:
    """Return which columns of a file hold those of the blocks that it has for every joint. joint_types: for degrees."""
    header, skip, delimiter = _header(path, form.columns)
    for old, new in form.rename:
        header = [name.replace(old, new) for name in header]
    names = {block: [f"{block}_{joint}" for joint in joint_names] for block in blocks}
    stamped = ("t",) if form.rate is None else ()
    missing = [name for name in (*stamped, *(name for block in needed for name in names[block])) if name not in header]
    if missing:
        remedy = " A file without times: --sample-rate HZ." if missing[0] == "t" else ""
        raise InputError(f"{path}: no column {some(missing, 6, quoted=True)}; the header has {some(header, 6, quoted=True)}. "
                         f"Columns of other names: --rename OLD=NEW.{remedy}")
    known = {block: columns for block, columns in names.items() if set(columns) <= set(header)}
    factors = np.array([1.0 if kind == "prismatic" else np.pi / 180.0 for kind in joint_types or ("",) * len(joint_names)])
    scale = [factors if form.degrees and block.startswith("q") else np.ones(len(joint_names)) for block in known]
    return CsvLayout(header, skip, delimiter, known, np.concatenate(([form.time_unit], *scale)), form.rate)


def has_times(path: str | Path, form: CsvFormat = CsvFormat()) -> bool:
    """Return whether a CSV file has a column t."""
    names, _, _ = _header(path, form.columns)
    for old, new in form.rename:
        names = [name.replace(old, new) for name in names]
    return "t" in names


def write_csv(path: str | Path, names: Sequence[str], chunks: Iterator[np.ndarray], report: Callable[[int], None]) -> None:
    """Write rows with 17 digits, so that reading returns the same doubles; report(rows so far) is called after each chunk."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerow(names)
        rows = 0
        for chunk in chunks:
            np.savetxt(file, chunk, fmt="%.17g", delimiter=",")
            rows += len(chunk)
            report(rows)


def _header(path: str | Path, columns: Sequence[str]) -> tuple[list[str], int, str]:
    """Return the names of the columns, how many rows the header has, and the delimiter."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            line = file.readline()
            delimiter = next((mark for mark in (";", "\t") if mark in line and line.count(mark) >= line.count(",")), ",")
            file.seek(0)
            header = [name.strip() for name in next(csv.reader(file, delimiter=delimiter), [])]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    if not header:
        raise InputError(f"{path}: the file is empty")
    skip = 0 if all(_is_number(name.replace(",", ".")) for name in header if name) else 1
    if columns:
        if len(columns) != len(header):
            raise InputError(f"{path}: --columns has {len(columns)} names, the first row {len(header)} values")
        header = list(columns)
    elif not skip:
        raise InputError(f"{path}: the first row holds numbers; name the {len(header)} columns: --columns t q_<joint> ...")
    twice = sorted({name for name in header if name and header.count(name) > 1})
    if twice:
        raise InputError(f"{path}: columns {some(twice, 6, quoted=True)} occur twice in the header")
    return header, skip, delimiter


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(path: str | Path, layout: CsvLayout) -> np.ndarray:
    """Return times and blocks (samples, 1 + columns) of a whole file."""
    try:
        with warnings.catch_warnings(), open(path, encoding="utf-8-sig") as file:
            warnings.simplefilter("ignore", UserWarning)  # no rows
            lines = layout.with_decimal_points(islice(file, layout.skip, None))
            table = np.loadtxt(lines, delimiter=layout.delimiter, ndmin=2)
        if not table.size or table.shape[1] != len(layout.names) or not np.isfinite(table).all():
            raise ValueError
        return layout.table(table[:, layout.numbers])
    except ValueError:
        return read_rows(path, layout)


def read_rows(path: str | Path, layout: CsvLayout) -> np.ndarray:
    """Return times and blocks row by row, for files with text in unused columns.

    Raises InputError with the row and column of an error.
    """
    found, header = [], layout.names
    for line, row in islice(_rows(path, layout.delimiter), layout.skip, None):
        if not row or row[0].startswith("#"):
            continue
        if len(row) == len(header) + 1 and not row[-1].strip():
            row.pop()  # a delimiter at the end
        if len(row) != len(header):
            raise InputError(f"{path}: row {line} has {len(row)} values, the header {len(header)} columns")
        values = list(layout.with_decimal_points(row))
        for k in layout.numbers:
            if not _is_number(values[k]) or not math.isfinite(float(values[k])):
                raise InputError(f"{path}: row {line}, column '{header[k]}' is '{row[k].strip():.40}'; a finite "
                                 "number is needed")
        found.append([float(values[k]) for k in layout.numbers])
    if not found:
        raise InputError(f"{path}: no rows below the header")
    return layout.table(np.array(found))


def _rows(path: str | Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each row and the number of its last line."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file, skipinitialspace=True, delimiter=delimiter)
        try:
            for row in rows:
                yield rows.line_num, row
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{path}: cannot be read beyond row {rows.line_num}: {error}") from None


ROWS_PER_PIECE = 20_000  # rows that are parsed at once
MAX_WRONG_STAMPS = 0.1  # share of samples that may have wrong stamps


class CsvRecording:
    """Recording in a CSV file, read piece by piece."""

    ignored_are = "columns"

    def __init__(self, path: Path, wanted: RecordingRequest, span: RecordingSpan | None = None):
        self.path, self.wanted, self.left_out = path, wanted, Counter[str]()
        self._layout = read_layout(path, wanted.names, wanted.blocks, wanted.needed, wanted.reading.csv,
                                              wanted.types)
        self.blocks, self.ignored = tuple(self._layout.known), self._layout.ignored
        self._table: np.ndarray | None = None  # of a file in which something is odd: there all of it is read one by one
        self.span = span or self._index()
        if not self.span.marks and self._table is None:
            self._table = self._read_row_by_row()

    def pieces(self, edges: Sequence[float]) -> Iterator[Samples]:
        """Yield samples between edges, see Recording.pieces."""
        rows = self._rows(edges[0], edges[-1])
        table = np.empty((0, len(self._layout.scale)))
        for begin, end in itertools.pairwise(edges):
            parts = [table[np.searchsorted(table[:, 0], begin):]]
            while (not len(parts[-1]) or parts[-1][-1, 0] < end) and (more := next(rows, None)) is not None:
                parts.append(more[np.searchsorted(more[:, 0], begin):])
            table = np.concatenate(parts)
            cut = int(np.searchsorted(table[:, 0], end))
            yield self._layout.split(table[:cut])
            table = table[cut:]

    def _rows(self, begin: float, end: float) -> Iterator[np.ndarray]:
        """Yield the rows of a time interval, possibly with more rows, in parts."""
        if self._table is not None:
            yield self._table
            return
        marks = [time for time, _ in self.span.marks]
        first = max(0, int(np.searchsorted(marks, begin, side="right")) - 1)
        for time, offset in self.span.marks[first:]:
            if time >= end:
                return
            with open(self.path, "rb") as file:
                file.seek(offset)
                lines = [line.decode("utf-8") for line in itertools.islice(file, ROWS_PER_PIECE)]
            table = self._parse(lines, round(time * (self._layout.rate or 0.0)))
            if table is None:
                raise InputError(f"{self.path}: has changed while it was read")
            yield table

    def _index(self) -> RecordingSpan:
        """Return the span after one pass that checks every value and indexes times."""
        marks, samples, last = [], 0, -np.inf
        with open(self.path, "rb") as file:
            for _ in range(self._layout.skip):
                file.readline()
            offset = file.tell()
            while lines := list(itertools.islice(file, ROWS_PER_PIECE)):
                table = self._parse([line.decode("utf-8", "replace") for line in lines], samples)
                if table is None:
                    return self._index_row_by_row()
                if len(table):
                    if table[0, 0] <= last or not (np.diff(table[:, 0]) > 0.0).all():
                        return self._index_row_by_row()
                    marks.append((float(table[0, 0]), offset))
                    samples, last = samples + len(table), float(table[-1, 0])
                offset += sum(map(len, lines))
        return RecordingSpan(marks[0][0], last, samples, None, marks) if marks else self._index_row_by_row()

    def _index_row_by_row(self) -> RecordingSpan:
        self._table = self._read_row_by_row()
        return RecordingSpan(float(self._table[0, 0]), float(self._table[-1, 0]), len(self._table), None, [])

    def _read_row_by_row(self) -> np.ndarray:
        """Return the whole table without samples with wrong stamps. InputError if a value is wrong, or too many stamps."""
        table = read_rows(self.path, self._layout)
        t, late = table[:, 0], np.flatnonzero(np.diff(table[:, 0]) <= 0.0)
        if not len(late):
            return table
        kept = consistent_stamps(t)
        if len(kept) - np.count_nonzero(kept) > MAX_WRONG_STAMPS * len(kept):
            k = int(late[0]) + 1
            raise InputError(f"{self.path}: time must increase: sample {k} is at {t[k]:.13g} s, the one before at "
                             f"{t[k - 1]:.13g} s")
        self.left_out["with stamps that do not increase"] = int(np.count_nonzero(~kept))
        return table[kept]

    def _parse(self, lines: list[str], first: int) -> np.ndarray | None:
        """Return (rows, 1 + columns) from sample `first` on; None if a row does not have as many finite numbers as columns."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # no rows
                table = np.loadtxt(self._layout.with_decimal_points(lines), delimiter=self._layout.delimiter, ndmin=2)
        except ValueError:
            return None
        if not table.size:
            return np.empty((0, len(self._layout.scale)))
        whole = table.shape[1] == len(self._layout.names) and np.isfinite(table).all()
        return self._layout.table(table[:, self._layout.numbers], first) if whole else None


TorqueAndRate = Callable[[RecordedMotion], tuple[np.ndarray, np.ndarray]]


class Torques(NamedTuple):
    """Times (k,) [s], positions, velocities, torques and their rates, accelerations and jerks (k, n).

    deviation : standard deviations of torques and rates (2, k, n), if requested; NaN where unknown
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    tau_rate: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    deviation: np.ndarray | None = None

    @property
    def table(self) -> np.ndarray:
        """Rows of a file: (k, 1 + 2 n), with deviations (k, 1 + 4 n)."""
        return np.column_stack((self.t, self.tau, self.tau_rate, *(() if self.deviation is None else self.deviation)))


def torque_columns(joint_names: tuple[str, ...], deviations: bool = False) -> list[str]:
    """Return the names of the columns of a table of torques."""
    kinds = ("tau", "tau_rate", "std_tau", "std_tau_rate")[:4 if deviations else 2]
    return ["t"] + [f"{kind}_{name}" for kind in kinds for name in joint_names]


def motion_parts(motion: RecordedMotion) -> Iterator[RecordedMotion]:
    """Yield parts of a motion that are computed at once, to bound memory."""
    for k in range(0, len(motion.t), CHUNK):
        yield motion.only(slice(k, k + CHUNK))


def compute_torques(torque_and_rate: TorqueAndRate, motion: RecordedMotion) -> Torques:
    """Return the torques of one part of a motion."""
    tau, tau_rate = torque_and_rate(motion)
    q, qd, qdd, qddd = (block[:, :tau.shape[1]] for block in (motion.q, motion.qd, motion.qdd, motion.qddd))
    return Torques(motion.t, q, qd, tau, tau_rate, qdd, qddd)


def torque_function(robot: Robot) -> TorqueAndRate:
    """Return a function from a motion with the columns of the robot's schema to torques and their rates (samples, n).

    It is called part after part. A moving base follows the recording. Raises InputError if the recording is insufficient.
    """
    if not robot.is_fixed_tree:
        return _sequential(robot)
    return lambda motion: robot.torque_and_rate(motion.q, motion.qd, motion.qdd, motion.qddd)


def _general(robot: Robot, motion: RecordedMotion, guess: Any) -> tuple[np.ndarray, np.ndarray]:
    if not robot.has_moving_base:
        if recording.motor_names(robot):
            motors = MotorState(*recording.other_motion(robot, motion))
            return robot.torque_and_rate(*recording.joint_motion(robot, motion), guess=guess, motors=motors)
        return robot.torque_and_rate(*recording.flat_motion(robot, motion), guess=guess)
    base = recording.base_motion(robot, motion)
    return robot.torque_and_rate(*recording.joint_motion(robot, motion), base=base, guess=guess)


def _sequential(robot: Robot) -> TorqueAndRate:
    """Return a function that continues the loops from one part of the motion to the next."""
    pose: Any = None  # of all joints of the tree

    def torque_and_rate(motion: RecordedMotion) -> tuple[np.ndarray, np.ndarray]:
        nonlocal pose
        before, moved = pose, recording.joint_motion(robot, motion)
        pose = robot.close(moved[0], guess=before)[-1]
        return _general(robot, motion, before)

    return torque_and_rate


def torque_deviations(robot: Robot, motion: RecordedMotion) -> np.ndarray | None:
    """Return standard deviations of torques and rates (2, samples, n), NaN where unknown; None if all are unknown."""
    if motion.deviation is None or not robot.is_fixed_tree:
        return None
    known = np.isfinite(motion.deviation).all(axis=(0, 2))
    found = np.full((2, *motion.q.shape), np.nan)
    found[:, known] = robot.torque_deviations(motion.q[known], motion.qd[known], motion.qdd[known], motion.qddd[known],
                                              motion.deviation[:, known])
    return found
