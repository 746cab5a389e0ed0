"""Weighted least squares over joints that share base parameters and have friction terms of their own.

The weight of a joint follows from the size of its residuals and from their correlation time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .friction import FrictionModel
from .joint_equations import Rows

N_ROUNDS = 8  # of weighting by the variance of the residuals alone, and as many by variance and correlation
MAX_LAG = 0.25  # of the number of equations: largest lag of the correlation
WEAK_PRIOR = 1e-9  # relative: regularizes friction terms that the data do not determine
MIN_VARIANCE = 1e-14  # relative to the mean squared torque: perfect data must not divide by zero


@dataclass(frozen=True, eq=False)
class WeightedFit:
    """Least-squares estimate.

    x           : base parameters, then friction coefficients joint after joint
    covariance  : of x
    information : inverse covariance by the recording alone, without the prior
    blocks, tau : equations of each joint (m, len(x)), and the torques (m, joints)
    """

    x: np.ndarray
    covariance: np.ndarray
    information: np.ndarray
    blocks: list[np.ndarray]
    tau: np.ndarray

    @property
    def torques(self) -> np.ndarray:
        """Predicted torques (m, joints)."""
        return np.column_stack([W @ self.x for W in self.blocks])

    def errors(self, x: np.ndarray) -> np.ndarray:
        """Return the RMS errors (joints,) of other parameters x over the fitted equations."""
        left = self.tau - np.column_stack([W @ x for W in self.blocks])
        return np.sqrt(np.mean(left**2, axis=0) + MIN_VARIANCE * np.mean(self.tau**2))


def solve(rows: Rows, models: Sequence[FrictionModel], prior: np.ndarray, prior_std: np.ndarray,
          more: tuple[np.ndarray, float, np.ndarray] | None = None) -> WeightedFit:
    """Solve for base parameters and friction.

    prior, prior_std : (b,) base parameters before the recording, and their standard deviations
    more             : (m, joints) an additional column for each joint, at the end of x; standard deviation and (joints,) mean
                       of its coefficient before the recording
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
    largest = np.max([np.diagonal(gram) for gram, _ in grams], axis=0)
    weight, pull = WEAK_PRIOR * np.where(largest > 0.0, largest, largest.max()), np.zeros(count)
    weight[:b], pull[:b] = 1.0 / prior_std**2, prior / prior_std**2
    if more:
        weight[starts[-1]:], pull[starts[-1]:] = 1.0 / more[1] ** 2, more[2] / more[1] ** 2
    floor = MIN_VARIANCE * np.mean(rows.tau**2) + np.finfo(float).tiny
    variance = np.mean(rows.tau**2, axis=0) + floor
    for k in range(2 * N_ROUNDS):
        H = sum(gram / v for (gram, _), v in zip(grams, variance, strict=True))
        x = np.linalg.solve(H + np.diag(weight), sum(y / v for (_, y), v in zip(grams, variance, strict=True)) + pull)
        left = [rows.tau[:, k] - W @ x for k, W in enumerate(blocks)]
        variance = np.array([np.mean(r**2) * (correlation_factor(r) if k >= N_ROUNDS else 1.0) + floor for r in left])
    return WeightedFit(x, np.linalg.inv(H + np.diag(weight)), H, blocks, rows.tau)


def correlation_factor(residuals: np.ndarray) -> float:
    """Return the number of values over the number of independent values: 1 + 2 sum of correlations; 1 for white noise."""
    if not residuals.any():
        return 1.0
    spectrum = np.abs(np.fft.rfft(residuals, 2 * len(residuals))) ** 2
    correlation = np.fft.irfft(spectrum)[:max(int(MAX_LAG * len(residuals)), 1)]
    correlation /= correlation[0]
    ends = np.flatnonzero(correlation <= 0.0)
    return float(max(1.0 + 2.0 * correlation[1:ends[0] if len(ends) else None].sum(), 1.0))
