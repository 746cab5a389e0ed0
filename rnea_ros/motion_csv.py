"""Motions as CSV: a header ``t, q_<joint>, qd_<joint>, qdd_<joint>, qddd_<joint>`` in any order, one row for each sample."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .derivatives import estimate_derivatives
from .errors import InputError

BLOCKS = ("q", "qd", "qdd", "qddd")
CHUNK = 20_000  # rows between two reports of progress


@dataclass
class Motion:
    """t (samples,) [s]; q, qd, qdd, qddd (samples, n). estimated: which of them were not in the file."""

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    estimated: tuple[str, ...] = ()
    ignored: tuple[str, ...] = field(default=())


def read(path: str | Path, joint_names: Sequence[str]) -> Motion:
    """The motion of the named joints. Derivatives that the file does not have for every joint are estimated.

    Raises InputError for a missing column or value, with row and column.
    """
    t, known, ignored = known_columns(path, joint_names)
    estimated = tuple(block for block in BLOCKS if block not in known)
    if estimated:
        guesses = estimate_derivatives(t, known["q"], known.get("qd"), known.get("qdd"))
        known = dict(zip(BLOCKS[1:], guesses, strict=True)) | known
    return Motion(t, **known, estimated=estimated, ignored=ignored)


def known_columns(path: str | Path, joint_names: Sequence[str]) -> tuple[np.ndarray, dict[str, np.ndarray], tuple[str, ...]]:
    """t (samples,), the blocks q .. qddd (samples, n) that the file has for every joint, and the columns not used."""
    header, table = table_of(path)
    columns = {name: k for k, name in enumerate(header)}
    missing = [name for name in ("t", *(f"q_{joint}" for joint in joint_names)) if name not in columns]
    if missing:
        raise InputError(f"{path}: no column {_some(missing)}; the header has {_some(header)}")
    known = {block: table[:, [columns[f"{block}_{joint}"] for joint in joint_names]]
             for block in BLOCKS if all(f"{block}_{joint}" in columns for joint in joint_names)}
    used = {"t"} | {f"{block}_{joint}" for block in known for joint in joint_names}
    return table[:, columns["t"]], known, tuple(name for name in header if name not in used)


def table_of(path: str | Path) -> tuple[list[str], np.ndarray]:
    """Names of the columns, and the numbers below them; InputError for a value that is no finite number."""
    header = _header(path)
    return header, _numbers(path, header)


def write(path: str | Path, names: Sequence[str], chunks: Iterator[np.ndarray], report: Callable[[int], None]) -> None:
    """Rows of 17 digits, so that reading gives the same doubles back; report(rows so far) after each chunk."""
    with open(path, "w", newline="") as file:
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
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    twice = sorted({name for name in header if header.count(name) > 1})
    if not header or twice:
        raise InputError(f"{path}: " + (f"columns {_some(twice)} stand twice in the header" if twice else "the file is empty"))
    return header


def _numbers(path: str | Path, header: list[str]) -> np.ndarray:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # an empty table is reported below
            table = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2, encoding="utf-8-sig")
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    if not table.size:
        raise InputError(f"{path}: no rows below the header")
    if table.shape[1] != len(header):
        raise InputError(f"{path}: rows have {table.shape[1]} numbers, the header has {len(header)} columns")
    if not np.isfinite(table).all():
        row, column = np.argwhere(~np.isfinite(table))[0]
        raise InputError(f"{path}: row {row + 2}, column '{header[column]}' is {table[row, column]}")
    return table


def _some(names: Sequence[str], most: int = 6) -> str:
    return ", ".join(f"'{name}'" for name in names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
