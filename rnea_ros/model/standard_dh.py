"""Standard Denavit-Hartenberg tables as robots (Barman, thesis, chapter 2, equation 2.3).

Frame j in frame j-1 is Rot(z, theta) Tran(z, d) Tran(x, a) Rot(x, alpha): joint j moves about or along the z of frame j-1, and
its variable is added to theta (revolute) or d (prismatic). Frame j sits at the far end of link j, where the next joint is.

In the URDF, joint j moves ``link<j>``, whose frame is frame j-1 turned or shifted by the joint variable; ``frame<j>`` is
the table's frame j, fixed in link j at origin xyz = (a cos theta, a sin theta, d), rpy = (alpha, 0, theta). The root is
``frame0``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import dh_table, urdf
from .dh_table import CENTRE, INERTIA, LIMITS, Number
from .tree import Model

GEOMETRY = ("theta", "d", "a", "alpha")
COLUMNS = ("joint", "type", *GEOMETRY, "mass", *CENTRE, "l", "d_g", *INERTIA, *LIMITS)


@dataclass(frozen=True)
class DHRow:
    """A line of a standard table: joint j and link j, as of `dh_table.TableRow`, its frame being frame j.

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
    """Centre of mass in frame j from the thesis's l and d_G, which place it from frame j-1, (2.12), (3.2)."""
    return l - a, (d_g - d) * math.sin(alpha), (d_g - d) * math.cos(alpha)


def load(source: str | os.PathLike | Sequence[DHRow], **options: Any) -> Model:
    """The model of a table: rows, or the path of a CSV file (see `read`). options: as of urdf.load."""
    rows, name = (read(source), os.fspath(source)) if isinstance(source, str | os.PathLike) else (source, "standard_dh")
    return urdf.load(to_urdf(rows, os.path.splitext(os.path.basename(name))[0]), **options)


def read(path: str | os.PathLike) -> list[DHRow]:
    """Rows of a CSV file as of `dh_table.read`, with columns out of COLUMNS.

    The centre of mass is either com_x, com_y, com_z in frame j, or the l and d_g of `thesis_com`.
    """
    return dh_table.read(path, COLUMNS, _row, _twice)


def _twice(names: Sequence[str]) -> list[str]:
    twice = {"l", "d_g"} & set(names) and set(CENTRE) & set(names)
    return ["the centre of mass is given twice: by com_x, com_y, com_z and by l, d_g"] if twice else []


def _row(cells: Mapping[str, str], number: Number) -> DHRow:
    theta, d, a, alpha = (number(name) for name in GEOMETRY)
    com = (number("com_x"), number("com_y"), number("com_z"))
    if "l" in cells or "d_g" in cells:
        com = thesis_com(number("l"), number("d_g"), d, a, alpha)
    return DHRow(cells["joint"], cells["type"], theta, d, a, alpha, number("mass"), com,
                 tuple(number(name) for name in INERTIA), tuple(number(name) for name in LIMITS))


def to_urdf(rows: Sequence[DHRow], name: str = "standard_dh") -> str:
    """A URDF of the table. Raises ModelError."""
    parts = ['  <link name="frame0"/>']
    for j, row in enumerate(rows, start=1):
        end = (row.a * math.cos(row.theta), row.a * math.sin(row.theta), row.d)
        parts += [f'  <link name="link{j}"/>', dh_table.joint(row, f"frame{j - 1}", f"link{j}"),
                  dh_table.body(row, f"frame{j}"),
                  dh_table.fixed(f"to_frame{j}", f"link{j}", f"frame{j}", end, (row.alpha, 0.0, row.theta))]
    return dh_table.robot(name, parts)
