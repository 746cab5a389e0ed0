"""Weighted least squares with friction models, selection of these models, and gains of current-controlled drives.

All joints share the robot's base parameters and have their own friction terms. The weight of a joint follows from the
size of its residuals and from their correlation time (solve_weighted).

Friction models are selected by block cross-validation (select_friction): contiguous blocks of the recording are excluded from
the fit and predicted from the other blocks. The friction of one joint is eliminated from its equations (Schur complement), so
that a candidate costs one small solve. Models are compared by the sum over joints of the logarithm of the RMS error in the
predicted blocks. A model with more terms is accepted only if

* its mean gain exceeds `term_gain` per additional term, and
* the gain is significant over the blocks: mean > `significance` standard errors (paired test), or > 1 standard error if it
  exceeds `large_gain` per additional term.

Friction below the noise is thus not modelled. All joints are processed repeatedly until no model changes. refine_friction then
refines the velocity scales beyond the grid of candidates. The smoothing velocity is refined before models with a Stribeck term
are tried, because a Stribeck term at a few times the smoothing velocity would compensate for its error.

Drive gains (refined_gains): if efforts are currents, i_k = tau_k / g_k + noise, with unknown gains g. All joints depend on the
same bodies, which determines the ratios of the gains. Their common factor is not determined by the recording: a robot of twice
the mass with twice the gains has the same currents. It follows from the bodies of the URDF. Gauss-Newton at gains g and
torques T:

    g_k i_k = Y_k beta + F_k c_k - T_k d_k,        g_k <- g_k exp(d_k - mean of d)

d multiplies the modelled torques instead of the currents, whose noise would bias the gains towards zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from .joint_equations import OFFSET, FrictionModel, JointEquations, neighbours


@dataclass(frozen=True)
class WeightedFitOptions:
    """Tuning of weights, of the search for friction terms, and of gains."""

    n_rounds: int = 8  # reweightings by the variance of the residuals, and as many by variance and correlation
    max_lag: float = 0.25  # largest lag of the correlation, as a share of the equations
    weak_prior: float = 1e-9  # relative regularization of friction terms that the data do not determine
    min_variance: float = 1e-14  # relative to the mean squared torque; avoids division by zero for exact data
    n_blocks: int = 10  # block k is excluded in fold k % n_folds
    n_folds: int = 5
    term_gain: float = 0.01  # least decrease of the logarithm of the error for each additional term
    large_gain: float = 0.02  # decrease per additional term above which one standard error suffices
    significance: float = 2.0  # standard errors required otherwise
    max_rounds: int = 3  # most rounds of the search for terms
    refinements: tuple[float, ...] = (3.0, 1.7, 1.3, 1.14, 1.07)  # factors of the smoothing and Stribeck velocities
    regularization: float = 1e-10  # relative regularization of the friction equations
    min_relative_error: float = 1e-6  # relative to the torque; avoids division by zero for exact data
    max_gain_iterations: int = 25
    max_log_gain_step: float = 0.3  # largest change of the logarithm of a gain per iteration
    log_gain_tol: float = 1e-4  # change at convergence
    log_gain_std: float = 0.5  # standard deviation of the logarithm of a gain about the initial one
    max_gain_ratio: float = 3.0  # largest ratio of an initial gain to the median one


OPTIONS = WeightedFitOptions()


@dataclass(frozen=True, eq=False)
class WeightedFit:
    """Weighted least-squares estimate.

    x           : (p,) base parameters, then the friction coefficients of each joint
    covariance  : (p, p) covariance of x
    information : (p, p) information matrix of the recording, without the prior
    blocks, tau : equations of each joint (m, p), and torques (m, joints) [N m, N]
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
        """Return the RMS errors (joints,) of parameters x over the fitted equations."""
        left = self.tau - np.column_stack([W @ x for W in self.blocks])
        return np.sqrt(np.mean(left**2, axis=0) + OPTIONS.min_variance * np.mean(self.tau**2))


def solve_weighted(rows: JointEquations, models: Sequence[FrictionModel], prior: np.ndarray, prior_std: np.ndarray,
          more: tuple[np.ndarray, float, np.ndarray] | None = None) -> WeightedFit:
    """Return the least-squares estimate of base parameters and friction.

    models           : friction model of each joint
    prior, prior_std : (b,) prior mean and standard deviation of the base parameters
    more             : one additional unknown for each joint, at the end of x: its columns (m, joints), and the prior standard
                       deviation and mean (joints,) of the unknowns
    """
    b, starts = len(prior), np.cumsum([len(prior), *(len(model.kinds) for model in models)])
    count = int(starts[-1]) + (len(models) if more else 0)
    blocks = []
    for k, (model, start) in enumerate(zip(models, starts.tolist(), strict=False)):
        W = np.zeros((len(rows.tau), count))
        W[:, [*range(b), *range(start, start + len(model.kinds))]] = rows.equations_of(k, model)
        if more:
            W[:, starts[-1] + k] = more[0][:, k]
        blocks.append(W)
    grams = [(W.T @ W, W.T @ rows.tau[:, k]) for k, W in enumerate(blocks)]
    largest = np.max([np.diagonal(gram) for gram, _ in grams], axis=0)
    weight, pull = OPTIONS.weak_prior * np.where(largest > 0.0, largest, largest.max()), np.zeros(count)
    weight[:b], pull[:b] = 1.0 / prior_std**2, prior / prior_std**2
    if more:
        weight[starts[-1]:], pull[starts[-1]:] = 1.0 / more[1] ** 2, more[2] / more[1] ** 2
    floor = OPTIONS.min_variance * np.mean(rows.tau**2) + np.finfo(float).tiny
    variance = np.mean(rows.tau**2, axis=0) + floor
    for k in range(2 * OPTIONS.n_rounds):
        H = sum(gram / v for (gram, _), v in zip(grams, variance, strict=True))
        x = np.linalg.solve(H + np.diag(weight), sum(y / v for (_, y), v in zip(grams, variance, strict=True)) + pull)
        left = [rows.tau[:, k] - W @ x for k, W in enumerate(blocks)]
        variance = np.array([np.mean(r**2) * (correlation_factor(r) if k >= OPTIONS.n_rounds else 1.0) + floor for r in left])
    return WeightedFit(x, np.linalg.inv(H + np.diag(weight)), H, blocks, rows.tau)


def correlation_factor(residuals: np.ndarray) -> float:
    """Return the number of values per independent value: 1 + 2 sum of autocorrelations; 1 for white noise."""
    if not residuals.any():
        return 1.0
    spectrum = np.abs(np.fft.rfft(residuals, 2 * len(residuals))) ** 2
    correlation = np.fft.irfft(spectrum)[:max(int(OPTIONS.max_lag * len(residuals)), 1)]
    correlation /= correlation[0]
    ends = np.flatnonzero(correlation <= 0.0)
    return float(max(1.0 + 2.0 * correlation[1:ends[0] if len(ends) else None].sum(), 1.0))


class _FoldEquations(NamedTuple):
    """Normal equations of one joint and fold after elimination of its friction.

    H, h  : normal equations (b, b), (b,) of the base parameters beta
    F, G  : friction coefficients as a function of beta: F - G beta
    test  : Gram matrix of each excluded block, divided by its number of equations
    lower : lower bound of each friction coefficient
    """

    H: np.ndarray
    h: np.ndarray
    F: np.ndarray
    G: np.ndarray
    test: list[np.ndarray]
    lower: np.ndarray


_Folds = list[_FoldEquations]


def select_friction(rows: JointEquations, candidates: Sequence[Sequence[FrictionModel]], models: Sequence[FrictionModel],
                    prior: np.ndarray, prior_std: np.ndarray) -> list[FrictionModel]:
    """Return a friction model for each joint, selected from its candidates and its initial model.

    candidates       : candidate models of each joint
    models           : initial model of each joint
    prior, prior_std : (b,) prior mean and standard deviation of the base parameters
    """
    reduce = cache(lambda k, model: _reduced(rows.equations_of(k, model), rows.tau[:, k], model))
    models = list(models)
    reduced = [reduce(k, model) for k, model in enumerate(models)]
    noise = 0.1 * np.std(rows.tau, axis=0) + np.finfo(float).tiny
    errors, noise = _converged(reduced, noise, prior, prior_std)
    for _ in range(OPTIONS.max_rounds):
        before = list(models)
        for k, others in enumerate(candidates):
            for model in others:
                tried = [*reduced[:k], reduce(k, model), *reduced[k + 1:]]
                new_errors = _block_errors(tried, noise, prior, prior_std)
                if _is_better(new_errors, errors, len(model.kinds) - len(models[k].kinds)):
                    models[k], reduced, errors = model, tried, new_errors
        errors, noise = _converged(reduced, noise, prior, prior_std)
        if models == before:
            break
    return models


def refine_friction(rows: JointEquations, models: Sequence[FrictionModel], prior: np.ndarray,
                    prior_std: np.ndarray) -> list[FrictionModel]:
    """Return the models with refined smoothing and Stribeck velocities."""
    models = list(models)
    for factor in OPTIONS.refinements:
        for _ in range(OPTIONS.max_rounds):
            before = models
            models = select_friction(rows, [neighbours(model, factor) for model in models], models, prior, prior_std)
            if models == before:
                break
    return models


def _is_better(new: np.ndarray, errors: np.ndarray, more_terms: int) -> bool:
    """Return whether a candidate is better than the current model.

    new, errors: mean squared errors (blocks, joints) of the candidate and the current model
    """
    gain = 0.5 * float(np.sum(np.log(errors.mean(axis=0)) - np.log(new.mean(axis=0))))
    if gain <= OPTIONS.term_gain * more_terms + OPTIONS.regularization:
        return False
    if more_terms <= 0:
        return True
    by_block = 0.5 * np.sum((errors - new) / errors.mean(axis=0), axis=1)
    needed = OPTIONS.significance if gain <= OPTIONS.large_gain * more_terms else 1.0
    return bool(by_block.mean() > needed * by_block.std(ddof=1) / np.sqrt(len(by_block)))


def _converged(reduced: Sequence[_Folds], noise: np.ndarray, prior: np.ndarray,
               prior_std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean squared errors (blocks, joints), and the RMS errors (joints,) for the weights of the next solve."""
    for _ in range(3):
        errors = _block_errors(reduced, noise, prior, prior_std)
        noise = np.sqrt(errors.mean(axis=0))
    return errors, noise


def _reduced(equations: np.ndarray, tau: np.ndarray, model: FrictionModel) -> _Folds:
    """Return the reduced equations of one joint for each fold. equations: (m, b + terms), tau: (m,)."""
    W, b = np.column_stack((equations, tau)), equations.shape[1] - len(model.kinds)
    grams = [part.T @ part for part in np.array_split(W, OPTIONS.n_blocks)]
    sizes = [len(part) for part in np.array_split(W, OPTIONS.n_blocks)]
    total = sum(grams)
    lower = np.where([kind == OFFSET for kind in model.kinds], -np.inf, 0.0)
    found = []
    for fold in range(OPTIONS.n_folds):
        blocks = range(fold, OPTIONS.n_blocks, OPTIONS.n_folds)
        rest = total - sum(grams[k] for k in blocks)
        own = rest[b:-1, b:-1]
        own = own + np.eye(len(own)) * (OPTIONS.regularization * np.trace(own) + np.finfo(float).tiny)
        solved = np.linalg.solve(own, rest[b:-1])
        G, F = solved[:, :b], solved[:, -1]
        found.append(_FoldEquations(rest[:b, :b] - rest[:b, b:-1] @ G, rest[:b, -1] - rest[:b, b:-1] @ F, F, G,
                           [grams[k] / max(sizes[k], 1) for k in blocks], lower))
    return found


def _block_errors(reduced: Sequence[_Folds], noise: np.ndarray, prior: np.ndarray, prior_std: np.ndarray) -> np.ndarray:
    """Return the mean squared errors (blocks, joints) of the predicted blocks, with friction coefficients that dissipate."""
    errors = np.empty((OPTIONS.n_blocks, len(reduced)))
    for fold in range(OPTIONS.n_folds):
        H, h = np.diag(1.0 / prior_std**2), prior / prior_std**2
        for joint, s in zip(reduced, noise, strict=True):
            H, h = H + joint[fold].H / s**2, h + joint[fold].h / s**2
        beta = np.linalg.solve(H, h)
        for k, joint in enumerate(reduced):
            own = joint[fold]
            friction = np.maximum(own.F - own.G @ beta, own.lower)
            x = np.concatenate((beta, friction, [-1.0]))
            for row, gram in zip(range(fold, OPTIONS.n_blocks, OPTIONS.n_folds), own.test, strict=True):
                errors[row, k] = max(float(x @ gram @ x), OPTIONS.min_relative_error**2 * gram[-1, -1]) + np.finfo(float).tiny
    return errors


class DriveGains(NamedTuple):
    """Drive gains.

    values     : (joints,) torque per unit of effort [N m/A, N/A], negative for reversed drives
    deviations : (joints,) relative standard deviations, without that of the common factor
    """

    values: np.ndarray
    deviations: np.ndarray


def initial_gains(rows: JointEquations, models: Sequence[FrictionModel], prior: np.ndarray) -> np.ndarray:
    """Return the gains (joints,) for which the bodies of the URDF and friction explain the currents best.

    Their ratio to the median is limited to `max_gain_ratio`.
    """
    currents_per_torque = []
    for k, model in enumerate(models):
        W = np.column_stack((rows.Y[:, k] @ prior, rows.friction(k, model)))
        share = np.linalg.lstsq(W, rows.tau[:, k], rcond=None)[0][0]
        currents_per_torque.append(float(share) or np.finfo(float).tiny)
    shares = np.array(currents_per_torque)
    middle = np.median(np.abs(shares))
    return np.sign(shares) / np.clip(np.abs(shares), middle / OPTIONS.max_gain_ratio, middle * OPTIONS.max_gain_ratio)


def refined_gains(rows: JointEquations, models: Sequence[FrictionModel], prior: np.ndarray, prior_std: np.ndarray,
                  gains: np.ndarray) -> DriveGains:
    """Return the gains estimated by the Gauss-Newton method.

    rows  : equations with currents instead of torques
    gains : (joints,) initial gains [N m/A, N/A]

    For the other arguments see solve_weighted.
    """
    n, guessed = len(gains), np.log(np.abs(gains))
    for _ in range(OPTIONS.max_gain_iterations):
        scaled = rows._replace(tau=rows.tau * gains)
        torques = solve_weighted(scaled, models, prior, prior_std).torques
        known = -torques, OPTIONS.log_gain_std, guessed - np.log(np.abs(gains))
        step = solve_weighted(scaled, models, prior, prior_std, known)
        change = np.clip(step.x[-n:] - step.x[-n:].mean(), -OPTIONS.max_log_gain_step, OPTIONS.max_log_gain_step)
        gains = gains * np.exp(change)
        if np.abs(change).max() < OPTIONS.log_gain_tol:
            break
    own = np.eye(n) - 1.0 / n  # projection that removes the common factor
    deviations = np.sqrt(np.diagonal(own @ step.covariance[-n:, -n:] @ own))
    return DriveGains(gains * _urdf_torque_ratio(rows.Y, step.x[:len(prior)], prior), deviations)


def _urdf_torque_ratio(Y: np.ndarray, beta: np.ndarray, prior: np.ndarray) -> float:
    """Return the factor that scales the torques of beta to those of the URDF, by projection."""
    before = Y @ prior
    return float(np.sum(before**2) / np.sum(before * (Y @ beta)))
