"""CSV files read piece by piece: where each few thousand rows begin is noted once."""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..errors import InputError
from . import motion_csv
from .recording import Samples, Span, Wanted

ROWS = 20_000  # that are parsed at once


class CsvRecording:
    """A Recording; columns as motion_csv.py describes them."""

    ignored_are = "columns"

    def __init__(self, path: Path, wanted: Wanted, span: Span | None = None):
        self.path, self.wanted, self.left_out = path, wanted, Counter[str]()
        found = motion_csv.used_columns(path, wanted.names, wanted.blocks, wanted.needed, wanted.reading.rename)
        self._header, self._known, self.ignored = found
        self._used = motion_csv.places(self._header, self._known)
        self.blocks = tuple(self._known)
        self._table: np.ndarray | None = None  # of a file in which something is odd: there all of it is read one by one
        self.span = span or self._passed()
        if not self.span.marks and self._table is None:
            self._table = self._one_by_one()

    def pieces(self, edges: Sequence[float]) -> Iterator[Samples]:
        """As in Recording."""
        rows = self._rows(edges[0], edges[-1])
        table = np.empty((0, len(self._used)))
        for begin, end in itertools.pairwise(edges):
            parts = [table[np.searchsorted(table[:, 0], begin):]]
            while (not len(parts[-1]) or parts[-1][-1, 0] < end) and (more := next(rows, None)) is not None:
                parts.append(more[np.searchsorted(more[:, 0], begin):])
            table = np.concatenate(parts)
            cut = int(np.searchsorted(table[:, 0], end))
            yield self._split(table[:cut])
            table = table[cut:]

    def _split(self, table: np.ndarray) -> Samples:
        ends = np.cumsum([len(names) for names in self._known.values()])[:-1]
        return {"t": table[:, 0], **dict(zip(self._known, np.split(table[:, 1:], ends, axis=1), strict=True))}

    def _rows(self, begin: float, end: float) -> Iterator[np.ndarray]:
        """The rows of some time, and more, in parts."""
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
                table = self._parsed([line.decode("utf-8") for line in itertools.islice(file, ROWS)])
            if table is None:
                raise InputError(f"{self.path}: has changed while it was read")
            yield table

    def _passed(self) -> Span:
        """One pass: whether every value is a number, and where which time is."""
        marks, samples, last = [], 0, -np.inf
        with open(self.path, "rb") as file:
            file.readline()
            offset = file.tell()
            while lines := list(itertools.islice(file, ROWS)):
                table = self._parsed([line.decode("utf-8", "replace") for line in lines])
                if table is None:
                    return self._passed_one_by_one()
                if len(table):
                    self._check_rising(np.append(last, table[:, 0]), samples)
                    marks.append((float(table[0, 0]), offset))
                    samples, last = samples + len(table), float(table[-1, 0])
                offset += sum(map(len, lines))
        return Span(marks[0][0], last, samples, None, marks) if marks else self._passed_one_by_one()

    def _passed_one_by_one(self) -> Span:
        self._table = self._one_by_one()
        return Span(float(self._table[0, 0]), float(self._table[-1, 0]), len(self._table), None, [])

    def _one_by_one(self) -> np.ndarray:
        """InputError says where something is wrong; without any, the file is merely odd."""
        table = motion_csv.one_by_one(self.path, self._header, self._used)
        self._check_rising(np.append(-np.inf, table[:, 0]), 0)
        return table

    def _check_rising(self, t: np.ndarray, before: int) -> None:
        """From the time of the last sample before on."""
        late = np.flatnonzero(np.diff(t) <= 0.0)
        if len(late):
            k = int(late[0])
            raise InputError(f"{self.path}: time must increase: sample {before + k} is at {t[k + 1]:.13g} s, the one before "
                             f"at {t[k]:.13g} s")

    def _parsed(self, lines: list[str]) -> np.ndarray | None:
        """(rows, columns used); None where a row is no list of as many finite numbers as there are columns."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # no rows
                table = np.loadtxt(lines, delimiter=",", ndmin=2)
        except ValueError:
            return None
        if not table.size:
            return np.empty((0, len(self._used)))
        return table[:, self._used] if table.shape[1] == len(self._header) and np.isfinite(table).all() else None
