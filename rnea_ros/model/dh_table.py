"""Denavit-Hartenberg tables in CSV files, standard or modified, and their URDFs.

A table becomes a URDF, and the URDF a model: all robots are read in the same way, and other tools can read the file.

Standard tables (Barman, thesis, chapter 2, equation 2.3): frame j in frame j-1 is Rot(z, theta) Tran(z, d) Tran(x, a)
Rot(x, alpha). Joint j moves about or along the z axis of frame j-1; its variable is added to theta (revolute) or d
(prismatic). Frame j is at the far end of link j, at the next joint. In the URDF, joint j moves ``link<j>``, whose frame is
frame j-1 moved by the joint variable; ``frame<j>`` is the table's frame j, fixed in link j at origin xyz = (a cos theta, a sin
theta, d), rpy = (alpha, 0, theta). The root is ``frame0``.

Modified tables of trees (Khalil and Kleinfinger 1986): frame j in the frame of its antecedent is Rot(z, gamma) Tran(z, b)
Rot(x, alpha) Tran(x, d) Rot(z, theta) Tran(z, r). Joint j moves about or along the z axis of frame j; its variable is added to
theta (revolute) or r (prismatic), and frame j moves with link j. Craig's tables of chains are the same with gamma = b = 0:
alpha(i-1), a(i-1), theta(i), d(i) are alpha, d, theta, r. In the URDF, ``frame<j>`` is the table's frame j, ``axis<j>`` the
part before theta and r, fixed in the antecedent at origin xyz = Rot(z, gamma) (d, 0, b), rpy = (alpha, 0, gamma).
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
    """Joint of a row and the link that it moves.

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
    """Return the names in a file's first line. Raises ModelError."""
    table = read_cells(path)
    return [name for name in table[0] if name is not None] if table else []


def read_rows(path: str | os.PathLike, columns: Sequence[str], made: RowOf,
              check: Callable[[Sequence[str]], list[str]] = lambda names: []) -> list[Any]:
    """Return the rows of a CSV file whose first line names its columns; "joint" and "type" are needed, empty cells are 0.

    Angles in rad; "pi/2" and similar are allowed. made(cells, number) makes a row; check(names) returns the problems of the
    columns. Raises ModelError with every invalid cell.
    """
    table, where = read_cells(path), os.fspath(path)
    names = [name for name in table[0] if name is not None] if table else []
    problems = [] if table else ["it has no rows below the line of column names"]
    problems += [f"column '{name}' is unknown; known are {', '.join(columns)}{near(name, columns)}"
                 for name in names if name not in columns]
    problems += [f"column '{name}' is missing" for name in ("joint", "type") if table and name not in names]
    problems += check(names)
    rows = [] if problems else [_read_row(cells, f"row {k}", made, problems) for k, cells in enumerate(table, start=1)]
    if problems:
        raise ModelError(problems, where)
    return rows


def read_cells(path: str | os.PathLike) -> list[dict[Any, Any]]:
    """Return the rows of a CSV file whose first line names its columns; cells beyond these under None. Raises ModelError."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            return list(csv.DictReader(file, skipinitialspace=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ModelError(f"it cannot be read: {error}", os.fspath(path)) from None


def _read_row(cells: Mapping[Any, Any], where: str, made: RowOf, problems: list[str]) -> Any:
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

def joint_urdf(row: TableRow, parent: str, child: str, origin: str = "") -> str:
    """Return the moving joint of a row, about or along the z axis of its frame."""
    if row.type not in TYPES:
        raise ModelError(f"joint '{row.joint}': type is '{row.type}'; it must be R (revolute) or P (prismatic)")
    limits = " ".join(f"{limit}={attribute(value)}" for limit, value in zip(LIMITS, row.limits, strict=True))
    return (f"  <joint name={quoteattr(row.joint)} type={quoteattr(TYPES[row.type])}>\n"
            f'    <parent link="{parent}"/><child link="{child}"/>{origin}<axis xyz="0 0 1"/><limit {limits}/>\n'
            "  </joint>")


def body_urdf(row: TableRow, link: str) -> str:
    """Return the link with the masses of a row."""
    moments = " ".join(f"{moment}={attribute(value)}" for moment, value in zip(INERTIA, row.inertia, strict=True))
    return (f'  <link name="{link}"><inertial><origin xyz={attribute(*row.com)}/>\n'
            f"    <mass value={attribute(row.mass)}/><inertia {moments}/></inertial></link>")


def fixed_joint_urdf(name: str, parent: str, child: str, xyz: Sequence[float], rpy: Sequence[float]) -> str:
    """Return the element of a fixed joint."""
    return (f'  <joint name="{name}" type="fixed"><parent link="{parent}"/><child link="{child}"/>\n'
            f"    {origin(xyz, rpy)}</joint>")


def origin(xyz: Sequence[float], rpy: Sequence[float]) -> str:
    """Return an origin element."""
    return f"<origin xyz={attribute(*xyz)} rpy={attribute(*rpy)}/>"


def robot_urdf(name: str, parts: Sequence[str]) -> str:
    """Return the URDF of a robot with these elements."""
    return "\n".join([f"<robot name={quoteattr(name)}>", *parts, "</robot>"])


def attribute(*numbers: float) -> str:
    """Return numbers as the value of an attribute."""
    return quoteattr(" ".join(repr(float(x)) for x in np.asarray(numbers)))


STANDARD_GEOMETRY = ("theta", "d", "a", "alpha")
STANDARD_COLUMNS = ("joint", "type", *STANDARD_GEOMETRY, "mass", *CENTRE, "l", "d_g", *INERTIA, *LIMITS)


@dataclass(frozen=True)
class StandardRow:
    """A line of a standard table: joint j and link j, as of `TableRow`, its frame being frame j.

    theta, d, a, alpha : [rad, m, m, rad], theta or d at joint variable zero
    """

    joint: str
    type: str
    theta: float = 0.0
    d: float = 0.0
    a: float = 0.0
    alpha: float = 0.0
    mass: float = 0.0
    com: Sequence[float] = (0.0, 0.0, 0.0)
    inertia: Sequence[float] = (0.0,) * 6
    limits: Sequence[float] = (0.0,) * 4


def thesis_com(l: float, d_g: float, d: float, a: float, alpha: float) -> tuple[float, float, float]:
    """Return the centre of mass in frame j from the thesis's l and d_G, which are given from frame j-1, (2.12), (3.2)."""
    return l - a, (d_g - d) * math.sin(alpha), (d_g - d) * math.cos(alpha)


def read_standard(path: str | os.PathLike) -> list[StandardRow]:
    """Rows of a CSV file as of `read_rows`, with columns out of COLUMNS.

    The centre of mass is either com_x, com_y, com_z in frame j, or the l and d_g of `thesis_com`.
    """
    return read_rows(path, STANDARD_COLUMNS, _standard_row, _duplicate_centres)


def _duplicate_centres(names: Sequence[str]) -> list[str]:
    twice = {"l", "d_g"} & set(names) and set(CENTRE) & set(names)
    return ["the centre of mass is given twice: by com_x, com_y, com_z and by l, d_g"] if twice else []


def _standard_row(cells: Mapping[str, str], number: Number) -> StandardRow:
    theta, d, a, alpha = (number(name) for name in STANDARD_GEOMETRY)
    com = (number("com_x"), number("com_y"), number("com_z"))
    if "l" in cells or "d_g" in cells:
        com = thesis_com(number("l"), number("d_g"), d, a, alpha)
    return StandardRow(cells["joint"], cells["type"], theta, d, a, alpha, number("mass"), com,
                       tuple(number(name) for name in INERTIA), tuple(number(name) for name in LIMITS))


def standard_to_urdf(rows: Sequence[StandardRow], name: str = "standard_dh") -> str:
    """Return the URDF of a table. Raises ModelError."""
    parts = ['  <link name="frame0"/>']
    for j, row in enumerate(rows, start=1):
        end = (row.a * math.cos(row.theta), row.a * math.sin(row.theta), row.d)
        parts += [f'  <link name="link{j}"/>', joint_urdf(row, f"frame{j - 1}", f"link{j}"),
                  body_urdf(row, f"frame{j}"),
                  fixed_joint_urdf(f"to_frame{j}", f"link{j}", f"frame{j}", end, (row.alpha, 0.0, row.theta))]
    return robot_urdf(name, parts)


MODIFIED_GEOMETRY = ("gamma", "b", "alpha", "d", "theta", "r")
MODIFIED_ONLY_COLUMNS = ("antecedent", "gamma", "b", "r")  # columns that no standard table has
MODIFIED_COLUMNS = ("joint", "type", "antecedent", *MODIFIED_GEOMETRY, "mass", *CENTRE, *INERTIA, *LIMITS)
PREVIOUS_ROW = -1  # the antecedent of a row that names none: the row before it


@dataclass(frozen=True)
class ModifiedRow:
    """A line of a modified table: joint j and link j, as of `TableRow`, its frame being frame j.

    antecedent : number of the row that carries this one, from 1; 0 is the base, BEFORE the row before
    gamma, b, alpha, d, theta, r : [rad, m, rad, m, rad, m], theta or r at joint variable zero
    """

    joint: str
    type: str
    antecedent: float = PREVIOUS_ROW
    gamma: float = 0.0
    b: float = 0.0
    alpha: float = 0.0
    d: float = 0.0
    theta: float = 0.0
    r: float = 0.0
    mass: float = 0.0
    com: Sequence[float] = (0.0, 0.0, 0.0)
    inertia: Sequence[float] = (0.0,) * 6
    limits: Sequence[float] = (0.0,) * 4


def read_modified(path: str | os.PathLike) -> list[ModifiedRow]:
    """Rows of a CSV file as of `read_rows`, with columns out of COLUMNS. An empty antecedent is the row before."""
    return read_rows(path, MODIFIED_COLUMNS, _modified_row)


def _modified_row(cells: Mapping[str, str], number: Number) -> ModifiedRow:
    gamma, b, alpha, d, theta, r = (number(name) for name in MODIFIED_GEOMETRY)
    carrier = number("antecedent") if cells.get("antecedent") else PREVIOUS_ROW
    return ModifiedRow(cells["joint"], cells["type"], carrier, gamma, b, alpha, d, theta, r, number("mass"),
                       tuple(number(name) for name in CENTRE), tuple(number(name) for name in INERTIA),
                       tuple(number(name) for name in LIMITS))


def modified_to_urdf(rows: Sequence[ModifiedRow], name: str = "modified_dh") -> str:
    """Return the URDF of a table. Raises ModelError."""
    parts = ['  <link name="frame0"/>']
    for j, row in enumerate(rows, start=1):
        carrier = j - 1 if row.antecedent == PREVIOUS_ROW else row.antecedent
        if carrier not in range(j):
            raise ModelError(f"joint '{row.joint}': antecedent is {row.antecedent:g}; it must be 0, the base, or the number "
                             f"of a row above this one, the {j}.", name)
        before = (row.d * math.cos(row.gamma), row.d * math.sin(row.gamma), row.b)
        parts += [f'  <link name="axis{j}"/>',
                  fixed_joint_urdf(f"to_axis{j}", f"frame{int(carrier)}", f"axis{j}", before, (row.alpha, 0.0, row.gamma)),
                  joint_urdf(row, f"axis{j}", f"frame{j}", origin((0.0, 0.0, row.r), (0.0, 0.0, row.theta))),
                  body_urdf(row, f"frame{j}")]
    return robot_urdf(name, parts)
