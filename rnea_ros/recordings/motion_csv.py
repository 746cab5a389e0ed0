"""Motions as CSV: a header ``t, q_<joint>, qd_<joint>, qdd_<joint>, qddd_<joint>`` in any order, one row for each sample."""

from __future__ import annotations

import argparse
import csv
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice, takewhile
from pathlib import Path

import numpy as np

from ..errors import InputError, some
from ..estimation.differentiation import Window
from ..estimation.recording import Smoothing, estimate_recording

BLOCKS = ("q", "qd", "qdd", "qddd")
CHUNK = 20_000  # rows between two reports of progress


@dataclass
class RecordedMotion:
    """t (samples,) [s]; q, qd, qdd, qddd (samples, n). estimated: which of them were not in the file; how they were found;
    deviation: standard deviations of the motion (4, samples, n) where positions were smoothed, NaN where that is not known;
    higher: derivatives above the jerk, which only some robots need and nothing estimates: as many as were asked for and are in
    the file; wrapped: numbers of the revolute joints whose positions were unwrapped."""

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    estimated: tuple[str, ...] = ()
    how: Window | Smoothing | None = None
    ignored: tuple[str, ...] = field(default=())
    deviation: np.ndarray | None = None
    higher: tuple[np.ndarray, ...] = ()
    wrapped: tuple[int, ...] = ()

    def only(self, samples: np.ndarray | slice) -> RecordedMotion:
        """Some of the samples."""
        deviation = None if self.deviation is None else self.deviation[:, samples]
        return RecordedMotion(self.t[samples], self.q[samples], self.qd[samples], self.qdd[samples], self.qddd[samples],
                              self.estimated, self.how, self.ignored, deviation,
                              tuple(block[samples] for block in self.higher), self.wrapped)


def add_window(parser: argparse.ArgumentParser) -> None:
    """The option of every command that estimates derivatives."""
    parser.add_argument("--window", type=float, metavar="S",
                        help="estimate derivatives that the file does not have by polynomials over this time [s], instead of "
                             "by Kalman smoothing of the positions. Wider: less noise, less detail")


def said(estimated: Sequence[str], how: Window | Smoothing) -> str:
    """For people: what was estimated, and how."""
    return f"not in the file, estimated by {how.method}: {some(estimated)}"


def read(path: str | Path, joint_names: Sequence[str], window: float | None = None,
         joint_types: Sequence[str] = (), blocks: Sequence[str] = BLOCKS) -> RecordedMotion:
    """The motion of the named joints. Derivatives that the file does not have for every joint are estimated.

    window [s], joint_types: as in estimate_recording; blocks: to be read, with higher derivatives perhaps. Raises InputError
    for a missing column or value, with row and column.
    """
    known, ignored = columns_of(path, joint_names, blocks, ("q",))
    t = known.pop("t")
    estimated = tuple(block for block in BLOCKS if block not in known)
    how = deviation = None
    wrapped: tuple[int, ...] = ()
    if estimated:
        guesses = estimate_recording(t, known["q"], known.get("qd"), known.get("qdd"), window, joint_types=joint_types)
        known |= {name: getattr(guesses, name) for name in ("q", *estimated)}
        how, deviation, wrapped = guesses.how, guesses.deviation, guesses.wrapped
    q, qd, qdd, qddd = (known[block] for block in BLOCKS)
    return RecordedMotion(t, q, qd, qdd, qddd, estimated, how, ignored, deviation, higher_of(known), wrapped)


def higher_of(known: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    """The derivatives above the jerk, up to the first that there is not."""
    return tuple(known[name] for name in takewhile(lambda name: name in known, map(derivative, count(len(BLOCKS)))))


def derivative(order: int) -> str:
    """The block that a derivative of the position is."""
    return "q" + order * "d"


def known_columns(path: str | Path, joint_names: Sequence[str]) -> tuple[np.ndarray, dict[str, np.ndarray], tuple[str, ...]]:
    """t (samples,), the blocks q .. qddd (samples, n) that the file has for every joint, and the columns not used."""
    blocks, ignored = columns_of(path, joint_names, BLOCKS, ("q",))
    return blocks.pop("t"), blocks, ignored


def columns_of(path: str | Path, joint_names: Sequence[str], blocks: Sequence[str], needed: Sequence[str],
               rename: Sequence[tuple[str, str]] = ()) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """"t" (samples,), those of the blocks (samples, n) that the file has for every joint, and the columns not used.

    rename: (old, new) parts of the names in the header. Raises InputError if t or one of the needed blocks is not whole, or a
    value is no finite number.
    """
    header, known, ignored = used_columns(path, joint_names, blocks, needed, rename)
    table = _numbers(path, header, places(header, known))
    parts = np.split(table[:, 1:], np.cumsum([len(columns) for columns in known.values()])[:-1], axis=1)
    return {"t": table[:, 0], **dict(zip(known, parts, strict=True))}, ignored


def used_columns(path: str | Path, joint_names: Sequence[str], blocks: Sequence[str], needed: Sequence[str],
                 rename: Sequence[tuple[str, str]] = ()) -> tuple[list[str], dict[str, list[str]], tuple[str, ...]]:
    """The header, the columns of those of the blocks that the file has for every joint, and the columns not used."""
    header = _header(path)
    for old, new in rename:
        header = [name.replace(old, new) for name in header]
    names = {block: [f"{block}_{joint}" for joint in joint_names] for block in blocks}
    missing = [name for name in ("t", *(name for block in needed for name in names[block])) if name not in header]
    if missing:
        raise InputError(f"{path}: no column {some(missing, 6, quoted=True)}; the header has {some(header, 6, quoted=True)}. "
                         "Columns of other names: --rename OLD=NEW, of commands that have it")
    known = {block: columns for block, columns in names.items() if set(columns) <= set(header)}
    used = {"t", *(name for columns in known.values() for name in columns)}
    return header, known, tuple(name for name in header if name and name not in used)


def places(header: list[str], known: Mapping[str, Sequence[str]]) -> list[int]:
    """Numbers of the columns that are used: t, and those of the blocks."""
    return [header.index(name) for name in ("t", *(name for names in known.values() for name in names))]


def write(path: str | Path, names: Sequence[str], chunks: Iterator[np.ndarray], report: Callable[[int], None]) -> None:
    """Rows of 17 digits, so that reading gives the same doubles back; report(rows so far) after each chunk."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerow(names)
        rows = 0
        for chunk in chunks:
            np.savetxt(file, chunk, fmt="%.17g", delimiter=",")
            rows += len(chunk)
            report(rows)


def _header(path: str | Path) -> list[str]:
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            header = [name.strip() for name in next(csv.reader(file), [])]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    if not header:
        raise InputError(f"{path}: the file is empty")
    for mark, name in ((";", "semicolons"), ("\t", "tabs")):
        if len(header) == 1 and mark in header[0]:
            raise InputError(f"{path}: its columns are parted by {name}; commas are needed, and points in numbers")
    if all(_is_number(name) for name in header):
        raise InputError(f"{path}: the first row holds numbers; the names of the columns are needed there, as t, q_<joint>")
    twice = sorted({name for name in header if name and header.count(name) > 1})
    if twice:
        raise InputError(f"{path}: columns {some(twice, 6, quoted=True)} stand twice in the header")
    return header


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(path: str | Path, header: list[str], columns: list[int]) -> np.ndarray:
    """(samples, columns)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # no rows
            table = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2, encoding="utf-8-sig")
        if not table.size or table.shape[1] != len(header) or not np.isfinite(table).all():
            raise ValueError
        return table[:, columns]
    except ValueError:
        return one_by_one(path, header, columns)


def one_by_one(path: str | Path, header: list[str], columns: list[int]) -> np.ndarray:
    """The same for a file in which something is odd: text in columns that are not used, or else an error that says where."""
    found = []
    for line, row in islice(_rows(path), 1, None):
        if not row or row[0].startswith("#"):
            continue
        if len(row) == len(header) + 1 and not row[-1].strip():
            row.pop()  # a comma at the end
        if len(row) != len(header):
            raise InputError(f"{path}: row {line} has {len(row)} values, the header {len(header)} columns")
        for k in columns:
            if not _is_number(row[k]) or not math.isfinite(float(row[k])):
                raise InputError(f"{path}: row {line}, column '{header[k]}' is '{row[k].strip():.40}'; a finite "
                                 "number is needed")
        found.append([float(row[k]) for k in columns])
    if not found:
        raise InputError(f"{path}: no rows below the header")
    return np.array(found)


def _rows(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Each row and the number of its last line."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file, skipinitialspace=True)
        try:
            for row in rows:
                yield rows.line_num, row
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{path}: cannot be read beyond row {rows.line_num}: {error}") from None
