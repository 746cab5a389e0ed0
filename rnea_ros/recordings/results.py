"""Torques written to a file of one of the formats, which is there only when it is whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from . import bags, motion_csv, parquet
from .torques import Torques, columns

CSV, PARQUET, MCAP = "csv", "parquet", "mcap"
FORMATS = (PARQUET, CSV, MCAP)


def check_kind(kind: str) -> None:
    """RneaError where what writes that format is not installed."""
    if kind == PARQUET:
        parquet.installed()
    elif kind == MCAP:
        bags.installed()


def write(path: Path, kind: str, joint_names: tuple[str, ...], origin: int | None, parts: Iterator[Torques],
          deviations: bool = False) -> None:
    """Write torques. kind: one of FORMATS; origin: stamp of t = 0 [ns], where there is one; deviations: of torques, too."""
    regular = path.is_file() or not path.exists()  # and no pipe or device
    made = path.with_name(f".{path.name}.partial{path.suffix}") if regular else path
    tables = (part.table for part in parts)
    try:
        if kind == MCAP:
            bags.write(made, joint_names, origin or 0, parts)
        elif kind == PARQUET:
            parquet.write(made, columns(joint_names, deviations), origin, tables)
        else:
            motion_csv.write(made, columns(joint_names, deviations), tables, lambda rows: None)
        if regular:
            with open(made, "rb") as file:
                os.fsync(file.fileno())
            made.replace(path)
    except BaseException:
        if regular:
            made.unlink(missing_ok=True)
        raise
