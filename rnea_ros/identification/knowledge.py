"""What a recording says of each base parameter, and what it leaves open: directions that it does not show, by name."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .fitting import Fit

DOUBTFUL = 0.3  # relative standard deviation from which on a value says little
INVOLVED = 0.3  # of the largest share of a direction: from there on a parameter is named
NAMED = 4  # parameters of a direction, at most


class Row(NamedTuple):
    """A base parameter or friction term: by least squares, with its standard deviation; before: in the URDF, NaN for friction;
    possible: in the robot found."""

    name: str
    unit: str
    value: float
    std: float
    before: float
    possible: float

    @property
    def doubtful(self) -> bool:
        return self.std > DOUBTFUL * abs(self.value)


def rows(found: Fit) -> list[Row]:
    """All of them, in the order of the base."""
    columns = (found.beta.tolist(), found.std.tolist(), found.before.tolist(), found.possible.tolist())
    return [Row(*row) for row in zip(found.base.names, found.base.units, *columns, strict=True)]


def open_directions(found: Fit) -> list[str]:
    """Sums of parameters that the motion shows less well than by their own size, in words, the least known first.

    Each parameter is measured in its size: that by least squares, the URDF's, or that of its kind's largest, a tenth of it.
    """
    size = np.fmax(np.abs(found.beta), np.abs(found.before))
    for unit in set(found.base.units):
        alike = np.array([other == unit for other in found.base.units])
        size[alike] = np.maximum(size[alike], 0.1 * size[alike].max())
    scale = np.where(size > 0.0, size, 1.0)
    values, vectors = np.linalg.eigh(found.information * np.multiply.outer(scale, scale))
    return [_named(vector, found.base.names) for value, vector in zip(values, vectors.T, strict=True) if value < 1.0]


def _named(vector: np.ndarray, names: tuple[str, ...]) -> str:
    order = np.argsort(-np.abs(vector))
    told = [k for k in order[:NAMED].tolist() if abs(vector[k]) > INVOLVED * abs(vector[order[0]])]
    sign = np.sign(vector[told[0]])
    parts = [f"{'+' if sign * vector[k] > 0.0 else '-'} {abs(vector[k]):.2f} {names[k]}" for k in told]
    return " ".join(parts).removeprefix("+ ").removeprefix("1.00 ")
