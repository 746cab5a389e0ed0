"""Denavit-Hartenberg tables in CSV files, and as URDFs: what standard and modified tables have in common.

A table becomes a URDF, and the URDF a model: one way in for all robots, and a file that other tools read as well. How a row's
frames follow from each other is in standard_dh.py and modified_dh.py.
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from xml.sax.saxutils import quoteattr

import numpy as np

from ..errors import ModelError, near

TYPES = {"R": "continuous", "P": "prismatic"}
CENTRE = ("com_x", "com_y", "com_z")
INERTIA = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
LIMITS = ("lower", "upper", "effort", "velocity")
_PI = re.compile(r"([+-]?)(\d*\.?\d*)\*?pi(?:/(\d+\.?\d*))?")  # pi, -pi/2, 3*pi/4, 0.5pi


class TableRow(Protocol):
    """What every row says of a joint and of the link that it moves.

    type    : "R" or "P"
    mass    : [kg]
    com     : centre of mass (x, y, z) in the row's frame [m]
    inertia : (ixx, ixy, ixz, iyy, iyz, izz) about the centre of mass in the axes of the row's frame [kg m^2]
    limits  : (lower, upper, effort, velocity) of the joint, 0 where unknown
    """

    @property
    def joint(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def mass(self) -> float: ...
    @property
    def com(self) -> Sequence[float]: ...
    @property
    def inertia(self) -> Sequence[float]: ...
    @property
    def limits(self) -> Sequence[float]: ...


Number = Callable[[str], float]  # the number in a column of a row, 0 where the cell is empty
RowOf = Callable[[Mapping[str, str], Number], Any]  # a row, from its cells and the numbers in them


def column_names(path: str | os.PathLike) -> list[str]:
    """The names in a file's first line. Raises ModelError."""
    table = _cells(path)
    return [name for name in table[0] if name is not None] if table else []


def read(path: str | os.PathLike, columns: Sequence[str], made: RowOf,
         check: Callable[[Sequence[str]], list[str]] = lambda names: []) -> list[Any]:
    """Rows of a CSV file whose first line names its columns; "joint" and "type" are needed, empty cells are 0.

    Angles in rad, "pi/2" and the like allowed. made(cells, number) makes a row; check(names) lists what is wrong with the
    columns together. Raises ModelError with every cell that is wrong.
    """
    table, where = _cells(path), os.fspath(path)
    names = [name for name in table[0] if name is not None] if table else []
    problems = [] if table else ["it has no rows below the line of column names"]
    problems += [f"column '{name}' is unknown; known are {', '.join(columns)}{near(name, columns)}"
                 for name in names if name not in columns]
    problems += [f"column '{name}' is missing" for name in ("joint", "type") if table and name not in names]
    problems += check(names)
    rows = [] if problems else [_row(cells, f"row {k}", made, problems) for k, cells in enumerate(table, start=1)]
    if problems:
        raise ModelError(problems, where)
    return rows


def _cells(path: str | os.PathLike) -> list[dict[Any, Any]]:
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            return list(csv.DictReader(file, skipinitialspace=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ModelError(f"it cannot be read: {error}", os.fspath(path)) from None


def _row(cells: Mapping[Any, Any], where: str, made: RowOf, problems: list[str]) -> Any:
    def number(name: str) -> float:
        text = (cells.get(name) or "0").replace(" ", "")
        try:
            value = _number(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            problems.append(f"{where}, column '{name}': '{text:.40}' is not a number")
        return value

    if None in cells:
        problems.append(f"{where} has more cells than there are column names")
    if (kind := (cells["type"] or "").strip()) not in TYPES:
        problems.append(f"{where}: type is '{kind:.40}'; it must be R (revolute) or P (prismatic)")
    return made({key: (cell or "").strip() for key, cell in cells.items() if key is not None}, number)


def _number(text: str) -> float:
    found = _PI.fullmatch(text)
    if not found:
        return float(text)
    sign, factor, divisor = found.groups()
    return (-1.0 if sign == "-" else 1.0) * float(factor or 1.0) * math.pi / float(divisor or 1.0)


# ---------------------------------------------------------------------- the URDF of a table

def joint(row: TableRow, parent: str, child: str, origin: str = "") -> str:
    """The moving joint of a row, about or along the z of its frame."""
    if row.type not in TYPES:
        raise ModelError(f"joint '{row.joint}': type is '{row.type}'; it must be R (revolute) or P (prismatic)")
    limits = " ".join(f"{limit}={attribute(value)}" for limit, value in zip(LIMITS, row.limits, strict=True))
    return (f"  <joint name={quoteattr(row.joint)} type={quoteattr(TYPES[row.type])}>\n"
            f'    <parent link="{parent}"/><child link="{child}"/>{origin}<axis xyz="0 0 1"/><limit {limits}/>\n'
            "  </joint>")


def body(row: TableRow, link: str) -> str:
    """The link that carries what a row says of masses."""
    moments = " ".join(f"{moment}={attribute(value)}" for moment, value in zip(INERTIA, row.inertia, strict=True))
    return (f'  <link name="{link}"><inertial><origin xyz={attribute(*row.com)}/>\n'
            f"    <mass value={attribute(row.mass)}/><inertia {moments}/></inertial></link>")


def fixed(name: str, parent: str, child: str, xyz: Sequence[float], rpy: Sequence[float]) -> str:
    return (f'  <joint name="{name}" type="fixed"><parent link="{parent}"/><child link="{child}"/>\n'
            f"    {origin(xyz, rpy)}</joint>")


def origin(xyz: Sequence[float], rpy: Sequence[float]) -> str:
    return f"<origin xyz={attribute(*xyz)} rpy={attribute(*rpy)}/>"


def robot(name: str, parts: Sequence[str]) -> str:
    return "\n".join([f"<robot name={quoteattr(name)}>", *parts, "</robot>"])


def attribute(*numbers: float) -> str:
    return quoteattr(" ".join(repr(float(x)) for x in np.asarray(numbers)))
