"""Tables of torques as Parquet. The only place that knows pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import MissingPackage


def write(path: Path, names: Sequence[str], origin: int | None, tables: Iterator[np.ndarray]) -> None:
    """Columns of these names, the first of them t [s]; before it `stamp`, where the stamp of t = 0 [ns] is known."""
    arrow, parquet = installed()
    stamped = [] if origin is None else [("stamp", arrow.timestamp("ns"))]
    schema = arrow.schema([*stamped, *((name, arrow.float64()) for name in names)])
    with parquet.ParquetWriter(path, schema) as file:
        for table in tables:
            stamps = [] if origin is None else [origin + np.round(1e9 * table[:, 0]).astype(np.int64)]
            columns = [*stamps, *(np.ascontiguousarray(column) for column in table.T)]
            arrays = [arrow.array(column).cast(kind) for column, kind in zip(columns, schema.types, strict=True)]
            file.write_table(arrow.Table.from_arrays(arrays, schema=schema))


def installed() -> tuple[Any, Any]:
    """pyarrow and its Parquet; RneaError where they are not installed."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingPackage("Parquet needs pyarrow", "bags", "write CSV") from None
    return pyarrow, parquet
