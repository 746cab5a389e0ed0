"""Least squares over joints that share base parameters and have friction of their own, weighted by what is left of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .friction import FrictionModel
from .joint_equations import Rows

ROUNDS = 8  # of weighting, by the size of residuals alone, and as many again
LONGEST = 0.25  # of the equations: over how many of them residuals may stay alike
LOOSE = 1e-9  # relative: holds friction terms that nothing shows
FLOOR = 1e-14  # of the torque's square: perfect data must not divide by zero


@dataclass(frozen=True, eq=False)
class WeightedFit:
    """x: base parameters, then friction joint after joint; its covariance; information: of the recording alone, inverse."""

    x: np.ndarray
    covariance: np.ndarray
    information: np.ndarray
    blocks: list[np.ndarray]
    tau: np.ndarray

    @property
    def torques(self) -> np.ndarray:
        """(m, joints) of x."""
        return np.column_stack([W @ self.x for W in self.blocks])

    def errors(self, x: np.ndarray) -> np.ndarray:
        """(joints,) rms of what x leaves of the torques it was fitted to."""
        left = self.tau - np.column_stack([W @ x for W in self.blocks])
        return np.sqrt(np.mean(left**2, axis=0) + FLOOR * np.mean(self.tau**2))


def solve(rows: Rows, models: Sequence[FrictionModel], prior: np.ndarray, weak: np.ndarray,
          more: tuple[np.ndarray, float, np.ndarray] | None = None) -> WeightedFit:
    """prior, weak (b,): base parameters to stay near, and the standard deviations of that.

    more: (m, joints) a further column for each joint, at the end of x, the standard deviation of its factor, and
           about what (joints,)
    """
    b, starts = len(prior), np.cumsum([len(prior), *(len(model.kinds) for model in models)])
    count = int(starts[-1]) + (len(models) if more else 0)
    blocks = []
    for k, (model, start) in enumerate(zip(models, starts.tolist(), strict=False)):
        W = np.zeros((len(rows.tau), count))
        W[:, [*range(b), *range(start, start + len(model.kinds))]] = rows.of(k, model)
        if more:
            W[:, starts[-1] + k] = more[0][:, k]
        blocks.append(W)
    grams = [(W.T @ W, W.T @ rows.tau[:, k]) for k, W in enumerate(blocks)]
    own = np.max([np.diagonal(gram) for gram, _ in grams], axis=0)
    hold, pull = LOOSE * np.where(own > 0.0, own, own.max()), np.zeros(count)
    hold[:b], pull[:b] = 1.0 / weak**2, prior / weak**2
    if more:
        hold[starts[-1]:], pull[starts[-1]:] = 1.0 / more[1] ** 2, more[2] / more[1] ** 2
    floor = FLOOR * np.mean(rows.tau**2) + np.finfo(float).tiny
    variance = np.mean(rows.tau**2, axis=0) + floor
    for k in range(2 * ROUNDS):
        H = sum(gram / v for (gram, _), v in zip(grams, variance, strict=True))
        x = np.linalg.solve(H + np.diag(hold), sum(y / v for (_, y), v in zip(grams, variance, strict=True)) + pull)
        left = [rows.tau[:, k] - W @ x for k, W in enumerate(blocks)]
        variance = np.array([np.mean(r**2) * (alike(r) if k >= ROUNDS else 1.0) + floor for r in left])
    return WeightedFit(x, np.linalg.inv(H + np.diag(hold)), H, blocks, rows.tau)


def alike(left: np.ndarray) -> float:
    """By how much fewer independent values there are in a series than it has: 1 + 2 sum of its correlations, 1 for noise."""
    if not left.any():
        return 1.0
    spectrum = np.abs(np.fft.rfft(left, 2 * len(left))) ** 2
    correlation = np.fft.irfft(spectrum)[:max(int(LONGEST * len(left)), 1)]
    correlation /= correlation[0]
    ends = np.flatnonzero(correlation <= 0.0)
    return float(max(1.0 + 2.0 * correlation[1:ends[0] if len(ends) else None].sum(), 1.0))
