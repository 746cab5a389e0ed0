"""Weighted linear least squares over channels that have noise of different size, with a verdict on the answer.

The equations of a channel, however many, are compressed as they come: R of the QR of [W y] has one row and column more than
there are unknowns, and the same normal equations and residual. Weighting, solving and judging need only these triangles.
Weights follow from residuals, residuals from weights, until both agree; a channel's degrees of freedom are its
equations less its share of the unknowns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import InputError, some

UNSEEN = 1e-9  # a direction of the unknowns with this little of the largest one's effect is not seen
INVOLVED = 0.05  # share of an unseen direction from which on an unknown is named
ROUNDS = 30  # of weighting, at most
SETTLED = 1e-9  # relative change of the noise
FLOOR = 1e-13  # of the noise relative to the signal: perfect data must not divide by zero


@dataclass(frozen=True, eq=False)
class LeastSquaresSolution:
    """The unknowns x (b,), their covariance (b, b), and how good the equations are.

    condition_number : of the weighted equations with columns scaled to length one
    noise, misfit    : of each channel: standard deviation of the residual; its rms relative to the signal's
    """

    x: np.ndarray
    covariance: np.ndarray
    condition_number: float
    noise: dict[str, float]
    misfit: dict[str, float]
    equations: int


class Equations:
    """W x = y + noise, in channels by name; add as many as there are, then solve."""

    def __init__(self, names: Sequence[str]):
        self.names = tuple(names)  # of the unknowns
        self._triangles: dict[str, np.ndarray] = {}
        self._counts: dict[str, int] = {}

    def add(self, channel: str, W: np.ndarray, y: np.ndarray) -> None:
        """W (rows, b), y (rows,)."""
        above = self._triangles.get(channel, np.zeros((0, len(self.names) + 1)))
        self._triangles[channel] = np.asarray(np.linalg.qr(np.vstack((above, np.column_stack((W, y)))), mode="r"))
        self._counts[channel] = self._counts.get(channel, 0) + len(y)

    @property
    def count(self) -> int:
        return sum(self._counts.values())

    def solve(self, noise: Sequence[float] | None = None) -> LeastSquaresSolution:
        """noise: standard deviation of every channel, in the order in which they came; None: from the residuals."""
        if self.count <= len(self.names):
            raise InputError(f"{self.count} equations for {len(self.names)} unknowns: more are needed, ten times as many to "
                             "know how good the answer is")
        if noise is not None:
            given = np.array(noise, dtype=float)
            if given.shape != (len(self._triangles),) or not (given > 0.0).all():
                raise InputError(f"noise is {noise}; a standard deviation above zero is needed for each of "
                                 f"{some(self._triangles)}")
            return self._solution(given)
        sigma = np.full(len(self._triangles), self._rms())
        for _ in range(ROUNDS):
            solution = self._solution(sigma)
            before, sigma = sigma, np.array(list(solution.noise.values()))
            if np.allclose(sigma, before, rtol=SETTLED, atol=0.0):
                break
        return solution

    def _rms(self, channel: str | None = None) -> float:
        """Of the signals y."""
        chosen = self._triangles if channel is None else {channel: self._triangles[channel]}
        squares = sum(float(np.sum(R[:, -1] ** 2)) for R in chosen.values())
        return float(np.sqrt(squares / sum(self._counts[name] for name in chosen))) or 1.0

    def _solution(self, sigma: np.ndarray) -> LeastSquaresSolution:
        stacked = np.vstack([R / s for R, s in zip(self._triangles.values(), sigma, strict=True)])
        W, y = stacked[:, :-1], stacked[:, -1]
        lengths = np.linalg.norm(W, axis=0)
        U, sizes, Vt = np.linalg.svd(W / np.where(lengths > 0.0, lengths, 1.0), full_matrices=False)
        self._refuse_unseen(sizes, Vt)
        x = Vt.T @ (U.T @ y / sizes) / lengths
        half = Vt.T / sizes / lengths[:, None]
        covariance = half @ half.T
        noise, misfit = {}, {}
        for (name, R), s in zip(self._triangles.items(), sigma, strict=True):
            residual = np.linalg.norm(R[:, :-1] @ x - R[:, -1])
            share = float(np.sum((R[:, :-1] @ half) ** 2)) / s**2  # of the unknowns
            misfit[name] = float(residual / np.sqrt(self._counts[name]) / self._rms(name))
            noise[name] = max(float(residual / np.sqrt(max(self._counts[name] - share, 1.0))), FLOOR * self._rms(name))
        return LeastSquaresSolution(x, covariance, float(sizes[0] / sizes[-1]), noise, misfit, self.count)

    def _refuse_unseen(self, sizes: np.ndarray, Vt: np.ndarray) -> None:
        unseen = Vt[sizes <= UNSEEN * sizes[0]]
        if len(unseen):
            names = [name for name, share in zip(self.names, np.abs(unseen).max(axis=0), strict=True) if share > INVOLVED]
            raise InputError(f"the motion does not show {len(unseen)} of {len(self.names)} directions of the parameters: "
                             f"{some(names)} cannot be told (apart); move more joints, further and faster")
