"""Gains of drives whose efforts are currents: i_k = tau_k / g_k + noise, with g_k as unknown as the robot.

Joints share the robot's bodies, so how gains compare with each other shows; what they are together does not, for a robot of
twice the mass with drives of twice the gain has the same currents: the URDF's bodies decide that. Gauss and Newton: at gains
g and torques T, which least squares give,

    g_k i_k = Y_k beta + F_k c_k - T_k d_k,        g_k <- g_k exp(d_k - mean of d)

The torques of the model stand beside d, not the currents: noise in these does not draw gains to zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .friction import FrictionModel
from .joint_equations import Rows
from .weighted_fit import solve

ROUNDS, STEP, SETTLED = 25, 0.3, 1e-4  # at most; the largest change of a gain in one; the change at which to stop
UNKNOWN = 0.5  # standard deviation of the logarithm of a gain about the first guess
APART = 3.0  # times the middle one: so far a first guess may be off it


class Gains(NamedTuple):
    """Torque for one unit of effort (joints,) [N m/A, N/A], below zero where it counts the other way; deviations:
    standard ones relative to each gain, but for what is common to all."""

    values: np.ndarray
    deviations: np.ndarray


def initial_gains(rows: Rows, models: Sequence[FrictionModel], prior: np.ndarray) -> np.ndarray:
    """Gains with which the URDF's bodies, and some friction, explain the currents best; none far from the middle one."""
    found = []
    for k, model in enumerate(models):
        W = np.column_stack((rows.Y[:, k] @ prior, rows.friction(k, model)))
        share = np.linalg.lstsq(W, rows.tau[:, k], rcond=None)[0][0]
        found.append(float(share) or np.finfo(float).tiny)
    shares = np.array(found)
    middle = np.median(np.abs(shares))
    return np.sign(shares) / np.clip(np.abs(shares), middle / APART, middle * APART)


def refined_gains(rows: Rows, models: Sequence[FrictionModel], prior: np.ndarray, prior_std: np.ndarray,
                  gains: np.ndarray) -> Gains:
    """rows: with currents for torques; prior, prior_std: as in `solve`."""
    n, guessed = len(gains), np.log(np.abs(gains))
    for _ in range(ROUNDS):
        scaled = rows._replace(tau=rows.tau * gains)
        torques = solve(scaled, models, prior, prior_std).torques
        step = solve(scaled, models, prior, prior_std, (-torques, UNKNOWN, guessed - np.log(np.abs(gains))))
        change = np.clip(step.x[-n:] - step.x[-n:].mean(), -STEP, STEP)
        gains = gains * np.exp(change)
        if np.abs(change).max() < SETTLED:
            break
    own = np.eye(n) - 1.0 / n  # what is common to all is not shown
    deviations = np.sqrt(np.diagonal(own @ step.covariance[-n:, -n:] @ own))
    return Gains(gains * _common(rows.Y, step.x[:len(prior)], prior), deviations)


def _common(Y: np.ndarray, beta: np.ndarray, prior: np.ndarray) -> float:
    """The factor that makes bodies as heavy as the URDF's, by the share of the URDF's torques in theirs."""
    before = Y @ prior
    return float(np.sum(before**2) / np.sum(before * (Y @ beta)))
