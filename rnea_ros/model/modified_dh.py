"""Modified Denavit-Hartenberg tables of trees as robots (Khalil and Kleinfinger 1986; khalil-rne section 2, equation 1).

Frame j in the frame of its antecedent is Rot(z, gamma) Tran(z, b) Rot(x, alpha) Tran(x, d) Rot(z, theta) Tran(z, r): joint j
moves about or along the z of frame j, its variable is added to theta (revolute) or r (prismatic), and frame j moves with link
j. Craig's tables of chains are the same with gamma = b = 0: alpha(i-1), a(i-1), theta(i), d(i) are alpha, d, theta, r.

In the URDF, ``frame<j>`` is the table's frame j, ``axis<j>`` what comes before theta and r, fixed in the antecedent at origin
xyz = Rot(z, gamma) (d, 0, b), rpy = (alpha, 0, gamma). ``frame0`` is the root.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ModelError
from . import dh_table, urdf
from .dh_table import CENTRE, INERTIA, LIMITS, Number
from .tree import Model

GEOMETRY = ("gamma", "b", "alpha", "d", "theta", "r")
ONLY = ("antecedent", "gamma", "b", "r")  # columns that no standard table has
COLUMNS = ("joint", "type", "antecedent", *GEOMETRY, "mass", *CENTRE, *INERTIA, *LIMITS)
BEFORE = -1  # the antecedent of a row that names none: the row before it


@dataclass(frozen=True)
class ModifiedRow:
    """A line of a modified table: joint j and link j, as of `dh_table.TableRow`, its frame being frame j.

    antecedent : number of the row that carries this one, from 1; 0 is the base, BEFORE the row before
    gamma, b, alpha, d, theta, r : [rad, m, rad, m, rad, m], theta or r at joint variable zero
    """

    joint: str
    type: str
    antecedent: float = BEFORE
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


def load(source: str | os.PathLike | Sequence[ModifiedRow], **options: Any) -> Model:
    """The model of a table: rows, or the path of a CSV file (see `read`). options: as of urdf.load."""
    rows, name = (read(source), os.fspath(source)) if isinstance(source, str | os.PathLike) else (source, "modified_dh")
    return urdf.load(to_urdf(rows, os.path.splitext(os.path.basename(name))[0]), **options)


def read(path: str | os.PathLike) -> list[ModifiedRow]:
    """Rows of a CSV file as of `dh_table.read`, with columns out of COLUMNS. An empty antecedent is the row before."""
    return dh_table.read(path, COLUMNS, _row)


def _row(cells: Mapping[str, str], number: Number) -> ModifiedRow:
    gamma, b, alpha, d, theta, r = (number(name) for name in GEOMETRY)
    carrier = number("antecedent") if cells.get("antecedent") else BEFORE
    return ModifiedRow(cells["joint"], cells["type"], carrier, gamma, b, alpha, d, theta, r, number("mass"),
                       tuple(number(name) for name in CENTRE), tuple(number(name) for name in INERTIA),
                       tuple(number(name) for name in LIMITS))


def to_urdf(rows: Sequence[ModifiedRow], name: str = "modified_dh") -> str:
    """A URDF of the table. Raises ModelError."""
    parts = ['  <link name="frame0"/>']
    for j, row in enumerate(rows, start=1):
        carrier = j - 1 if row.antecedent == BEFORE else row.antecedent
        if carrier not in range(j):
            raise ModelError(f"joint '{row.joint}': antecedent is {row.antecedent:g}; it must be 0, the base, or the number "
                             f"of a row above this one, the {j}.", name)
        before = (row.d * math.cos(row.gamma), row.d * math.sin(row.gamma), row.b)
        parts += [f'  <link name="axis{j}"/>',
                  dh_table.fixed(f"to_axis{j}", f"frame{int(carrier)}", f"axis{j}", before, (row.alpha, 0.0, row.gamma)),
                  dh_table.joint(row, f"axis{j}", f"frame{j}", dh_table.origin((0.0, 0.0, row.r), (0.0, 0.0, row.theta))),
                  dh_table.body(row, f"frame{j}")]
    return dh_table.robot(name, parts)
