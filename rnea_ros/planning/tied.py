"""The plan as the interior point method sees it where start or goal is free or tied to the other, in a given duration.

Such conditions E p = e are linear in the control points. They leave free p = p_0 + Z w, the columns of Z orthonormal: Newton's
equations A dp = a become Z^T A Z dw = Z^T a. First and last control points meet in them, so nothing is left of the bands; but
they are few.
"""

from __future__ import annotations

import numpy as np

from .banded import Projected
from .bspline import POWERS, basis
from .condensed import NARROW, Condensed, Point, limits_are_wide
from .transcription import Transcription

REPEATED = 1e-10  # of the largest singular value; below, a condition repeats others


def tieable(program: Transcription) -> bool:
    """Whether the duration is given, and nothing is asked for but limits and such conditions."""
    shortest, longest = program.problem.duration
    return longest - shortest < NARROW and program.problem.box is None and limits_are_wide(program)


class Tied(Condensed):
    """The same methods; slopes and steps are those that the conditions leave free."""

    def __init__(self, program: Transcription):
        super().__init__(program)
        self.E, self.e = _conditions(program)
        U, sizes, V = np.linalg.svd(self.E)
        rank = int((sizes > REPEATED * sizes.max(initial=0.0)).sum())
        self.Z, self._back = V[rank:].T, V[:rank].T @ (U[:, :rank] / sizes[:rank]).T

    def _end_points(self) -> tuple[np.ndarray, np.ndarray]:
        """None: the conditions say all of it."""
        return np.zeros((3, self.count, self.n)), np.zeros((self.count, self.n), dtype=bool)

    def at(self, x: np.ndarray) -> Point:
        """Of x only what keeps the conditions counts."""
        return super().at(np.append(x[:-1] - self._back @ (self.E @ x[:-1] - self.e), x[-1]))

    def gradient(self, multipliers: np.ndarray) -> np.ndarray:
        found = super().gradient(multipliers)
        return np.append(self.Z @ (self.Z.T @ found[:-1]), 0.0)

    def _equations(self, bands: np.ndarray, *_border: object) -> Projected:
        return Projected(bands, self.Z, self.program.damping)


def _conditions(program: Transcription) -> tuple[np.ndarray, np.ndarray]:
    """E (rows, points n), e (rows,)."""
    problem, breaks, degree = program.problem, program.breaks, program.degree
    ends, T = problem.ends, problem.duration[0]
    E = np.zeros((len(ends.value), len(breaks) - 1 + degree, problem.n))
    for table, span, u in ((ends.first, 0, 0.0), (ends.last, len(breaks) - 2, 1.0)):
        functions = basis(breaks, degree, np.array([span]), np.array([u]))[0] / T ** POWERS[:, None]
        E[:, span:span + degree + 1] += np.einsum("erj,ra->eaj", table, functions)
    return E.reshape(len(E), -1), ends.value
