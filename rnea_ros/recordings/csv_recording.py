"""CSV files read piece by piece: where each few thousand rows begin is noted once."""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..estimation.position_sensor import consistent_stamps
from . import motion_csv
from .recording import Samples, Span, Wanted

ROWS = 20_000  # that are parsed at once
MOST_WRONG = 0.1  # of the samples may have wrong stamps


class CsvRecording:
    """A Recording; columns as motion_csv.py describes them."""

    ignored_are = "columns"

    def __init__(self, path: Path, wanted: Wanted, span: Span | None = None):
        self.path, self.wanted, self.left_out = path, wanted, Counter[str]()
        self._layout = motion_csv.read_layout(path, wanted.names, wanted.blocks, wanted.needed, wanted.reading.csv,
                                              wanted.types)
        self.blocks, self.ignored = tuple(self._layout.known), self._layout.ignored
        self._table: np.ndarray | None = None  # of a file in which something is odd: there all of it is read one by one
        self.span = span or self._passed()
        if not self.span.marks and self._table is None:
            self._table = self._one_by_one()

    def pieces(self, edges: Sequence[float]) -> Iterator[Samples]:
        """As in Recording."""
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
                lines = [line.decode("utf-8") for line in itertools.islice(file, ROWS)]
            table = self._parsed(lines, round(time * (self._layout.rate or 0.0)))
            if table is None:
                raise InputError(f"{self.path}: has changed while it was read")
            yield table

    def _passed(self) -> Span:
        """One pass: whether every value is a number, and where which time is."""
        marks, samples, last = [], 0, -np.inf
        with open(self.path, "rb") as file:
            for _ in range(self._layout.skip):
                file.readline()
            offset = file.tell()
            while lines := list(itertools.islice(file, ROWS)):
                table = self._parsed([line.decode("utf-8", "replace") for line in lines], samples)
                if table is None:
                    return self._passed_one_by_one()
                if len(table):
                    if table[0, 0] <= last or not (np.diff(table[:, 0]) > 0.0).all():
                        return self._passed_one_by_one()
                    marks.append((float(table[0, 0]), offset))
                    samples, last = samples + len(table), float(table[-1, 0])
                offset += sum(map(len, lines))
        return Span(marks[0][0], last, samples, None, marks) if marks else self._passed_one_by_one()

    def _passed_one_by_one(self) -> Span:
        self._table = self._one_by_one()
        return Span(float(self._table[0, 0]), float(self._table[-1, 0]), len(self._table), None, [])

    def _one_by_one(self) -> np.ndarray:
        """Return the whole table without samples with wrong stamps. InputError says where a value or most stamps are wrong."""
        table = motion_csv.one_by_one(self.path, self._layout)
        t, late = table[:, 0], np.flatnonzero(np.diff(table[:, 0]) <= 0.0)
        if not len(late):
            return table
        kept = consistent_stamps(t)
        if len(kept) - np.count_nonzero(kept) > MOST_WRONG * len(kept):
            k = int(late[0]) + 1
            raise InputError(f"{self.path}: time must increase: sample {k} is at {t[k]:.13g} s, the one before at "
                             f"{t[k - 1]:.13g} s")
        self.left_out["with stamps that do not increase"] = int(np.count_nonzero(~kept))
        return table[kept]

    def _parsed(self, lines: list[str], first: int) -> np.ndarray | None:
        """Return (rows, 1 + columns) from this sample on; None where a row is no list of as many finite numbers as columns."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # no rows
                table = np.loadtxt(self._layout.numbered(lines), delimiter=self._layout.delimiter, ndmin=2)
        except ValueError:
            return None
        if not table.size:
            return np.empty((0, len(self._layout.scale)))
        whole = table.shape[1] == len(self._layout.names) and np.isfinite(table).all()
        return self._layout.table(table[:, self._layout.numbers], first) if whole else None
