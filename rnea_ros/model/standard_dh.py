"""Standard Denavit-Hartenberg tables as robots (Barman, thesis, chapter 2, equation 2.3).

Frame j in frame j-1 is Rot(z, theta) Tran(z, d) Tran(x, a) Rot(x, alpha): joint j moves about or along the z of frame j-1, and
its variable is added to theta (revolute) or d (prismatic). Frame j sits at the far end of link j, where the next joint is.

A table becomes a URDF, and the URDF a model: one door for all robots, and a file that other tools read as well. Joint j moves
``link<j>``, whose frame is frame j-1 turned or shifted by the joint variable; ``frame<j>`` is the table's frame j, fixed in
link j at origin xyz = (a cos theta, a sin theta, d), rpy = (alpha, 0, theta). ``frame0`` is the root.
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from ..errors import ModelError
from . import urdf
from .tree import Model

TYPES = {"R": "continuous", "P": "prismatic"}
GEOMETRY = ("theta", "d", "a", "alpha")
INERTIA = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
LIMITS = ("lower", "upper", "effort", "velocity")
COLUMNS = ("joint", "type", *GEOMETRY, "mass", "com_x", "com_y", "com_z", "l", "d_g", *INERTIA, *LIMITS)
_PI = re.compile(r"([+-]?)(\d*\.?\d*)\*?pi(?:/(\d+\.?\d*))?")  # pi, -pi/2, 3*pi/4, 0.5pi


@dataclass(frozen=True)
class DHRow:
    """A line of the table: joint j and link j.

    type    : "R" or "P"
    theta, d, a, alpha : [rad, m, m, rad], theta or d at joint variable zero
    mass    : [kg]
    com     : centre of mass (x, y, z) in frame j [m]
    inertia : (ixx, ixy, ixz, iyy, iyz, izz) about the centre of mass in the axes of frame j [kg m^2]
    limits  : (lower, upper, effort, velocity) of the joint, 0 where unknown
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
    """Centre of mass in frame j from the thesis's l and d_G, which place it from frame j-1, (2.12), (3.2)."""
    return l - a, (d_g - d) * math.sin(alpha), (d_g - d) * math.cos(alpha)


def load(source: str | os.PathLike | Sequence[DHRow], **options: Any) -> Model:
    """The model of a table: rows, or the path of a CSV file (see `read`). options: as of urdf.load."""
    rows, name = (read(source), os.fspath(source)) if isinstance(source, str | os.PathLike) else (source, "standard_dh")
    return urdf.load(to_urdf(rows, os.path.splitext(os.path.basename(name))[0]), **options)


def read(path: str | os.PathLike) -> list[DHRow]:
    """Rows of a CSV file whose first line names its columns, out of COLUMNS; "joint" and "type" are needed, empty cells are 0.

    Angles in rad, "pi/2" and the like allowed. The centre of mass is either com_x, com_y, com_z in frame j, or the l and d_g
    of `thesis_com`. Raises ModelError with every cell that is wrong.
    """
    where = os.fspath(path)
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            table = list(csv.DictReader(file, skipinitialspace=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ModelError(f"it cannot be read: {error}", where) from None
    names = [name for name in table[0] if name is not None] if table else []
    problems = [] if table else ["it has no rows below the line of column names"]
    problems += [f"column '{name}' is unknown; known are {', '.join(COLUMNS)}" for name in names if name not in COLUMNS]
    problems += [f"column '{name}' is missing" for name in ("joint", "type") if table and name not in names]
    if {"l", "d_g"} & set(names) and {"com_x", "com_y", "com_z"} & set(names):
        problems.append("the centre of mass is given twice: by com_x, com_y, com_z and by l, d_g")
    rows = [] if problems else [_row(cells, f"row {k}", problems) for k, cells in enumerate(table, start=1)]
    if problems:
        raise ModelError(problems, where)
    return rows


def _row(cells: Mapping[Any, Any], where: str, problems: list[str]) -> DHRow:
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
    kind = (cells["type"] or "").strip()
    if kind not in TYPES:
        problems.append(f"{where}: type is '{kind:.40}'; it must be R (revolute) or P (prismatic)")
    theta, d, a, alpha = (number(name) for name in GEOMETRY)
    com = (number("com_x"), number("com_y"), number("com_z"))
    if "l" in cells or "d_g" in cells:
        com = thesis_com(number("l"), number("d_g"), d, a, alpha)
    return DHRow((cells["joint"] or "").strip(), kind, theta, d, a, alpha, number("mass"), com,
               tuple(number(name) for name in INERTIA), tuple(number(name) for name in LIMITS))


def _number(text: str) -> float:
    found = _PI.fullmatch(text)
    if not found:
        return float(text)
    sign, factor, divisor = found.groups()
    return (-1.0 if sign == "-" else 1.0) * float(factor or 1.0) * math.pi / float(divisor or 1.0)


def to_urdf(rows: Sequence[DHRow], name: str = "standard_dh") -> str:
    """A URDF of the table."""
    for row in rows:
        if row.type not in TYPES:
            raise ModelError(f"joint '{row.joint}': type is '{row.type}'; it must be R (revolute) or P (prismatic)", name)
    text = [f"<robot name={quoteattr(name)}>", '  <link name="frame0"/>']
    for j, row in enumerate(rows, start=1):
        end = (row.a * math.cos(row.theta), row.a * math.sin(row.theta), row.d)
        limits = " ".join(f"{limit}={_attribute(value)}" for limit, value in zip(LIMITS, row.limits, strict=True))
        moments = " ".join(f"{moment}={_attribute(value)}" for moment, value in zip(INERTIA, row.inertia, strict=True))
        text += [f'  <link name="link{j}"/>',
                 f"  <joint name={quoteattr(row.joint)} type={quoteattr(TYPES[row.type])}>",
                 f'    <parent link="frame{j - 1}"/><child link="link{j}"/><axis xyz="0 0 1"/><limit {limits}/>',
                 "  </joint>",
                 f'  <link name="frame{j}"><inertial><origin xyz={_attribute(*row.com)}/>',
                 f"    <mass value={_attribute(row.mass)}/><inertia {moments}/></inertial></link>",
                 f'  <joint name="to_frame{j}" type="fixed"><parent link="link{j}"/><child link="frame{j}"/>',
                 f"    <origin xyz={_attribute(*end)} rpy={_attribute(row.alpha, 0.0, row.theta)}/></joint>"]
    return "\n".join([*text, "</robot>"])


def _attribute(*numbers: float) -> str:
    return quoteattr(" ".join(repr(float(x)) for x in np.asarray(numbers)))
