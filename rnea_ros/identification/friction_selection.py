"""Selection of the friction model of each joint by block cross-validation.

Contiguous blocks of the recording are left out of the fit and predicted by the rest. All joints share the robot's base
parameters; the friction of one joint is eliminated from its equations (Schur complement), so that a candidate costs one
small solve. Models are compared by the sum over joints of the logarithm of the RMS error in the predicted blocks. A model
with more terms is accepted only if

* its mean gain exceeds MARGIN per additional term, and
* the gain is significant over the blocks: mean > SIGNIFICANCE standard errors (paired test), or > 1 standard error where it
  exceeds LARGE_GAIN per additional term.

Friction that falls inside a candidate's noise is thus left out. Joints are visited in turn until no model changes.

Velocities are refined beyond the grid of candidates (`refine`), that of smoothing before models with a Stribeck term are
tried: a Stribeck term at a few times the smoothing velocity makes up for an error of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from .friction import OFFSET, FrictionModel, neighbours
from .joint_equations import Rows

N_BLOCKS, N_FOLDS = 10, 5  # block k is left out in fold k % N_FOLDS
MARGIN = 0.01  # gain of the logarithm of the error that each additional term needs
LARGE_GAIN = 0.02
SIGNIFICANCE = 2.0  # standard errors
MAX_ROUNDS = 3
REFINEMENTS = (3.0, 1.7, 1.3, 1.14, 1.07)  # factors of the smoothing and Stribeck velocities
REGULARIZATION = 1e-10  # relative
MIN_ERROR = 1e-6  # relative to the torque: perfect data must not divide by zero


class _Fold(NamedTuple):
    """Normal equations of one joint and fold without its friction: H (b, b), h (b,); F, G: friction = F - G beta.

    test  : Gram matrix of each block that is left out, over its number of equations
    lower : lower bound of each friction coefficient
    """

    H: np.ndarray
    h: np.ndarray
    F: np.ndarray
    G: np.ndarray
    test: list[np.ndarray]
    lower: np.ndarray


_Folds = list[_Fold]


def select(rows: Rows, candidates: Sequence[Sequence[FrictionModel]], models: Sequence[FrictionModel], prior: np.ndarray,
           prior_std: np.ndarray) -> list[FrictionModel]:
    """Return a friction model for each joint, from its candidates or `models`, which the selection starts from.

    prior, prior_std (b,): base parameters and their standard deviations before the recording
    """
    reduce = cache(lambda k, model: _reduced(rows.of(k, model), rows.tau[:, k], model))
    models = list(models)
    reduced = [reduce(k, model) for k, model in enumerate(models)]
    noise = 0.1 * np.std(rows.tau, axis=0) + np.finfo(float).tiny
    errors, noise = _converged(reduced, noise, prior, prior_std)
    for _ in range(MAX_ROUNDS):
        before = list(models)
        for k, others in enumerate(candidates):
            for model in others:
                tried = [*reduced[:k], reduce(k, model), *reduced[k + 1:]]
                found = _block_errors(tried, noise, prior, prior_std)
                if _is_better(found, errors, len(model.kinds) - len(models[k].kinds)):
                    models[k], reduced, errors = model, tried, found
        errors, noise = _converged(reduced, noise, prior, prior_std)
        if models == before:
            break
    return models


def refine(rows: Rows, models: Sequence[FrictionModel], prior: np.ndarray, prior_std: np.ndarray) -> list[FrictionModel]:
    """Return the models with the smoothing and Stribeck velocities, beside those of `models`, that predict best."""
    models = list(models)
    for factor in REFINEMENTS:
        for _ in range(MAX_ROUNDS):
            before = models
            models = select(rows, [neighbours(model, factor) for model in models], models, prior, prior_std)
            if models == before:
                break
    return models


def _is_better(found: np.ndarray, errors: np.ndarray, more_terms: int) -> bool:
    """Return whether a model is preferred. found, errors: mean squared errors (blocks, joints) of it and of the current
    one."""
    gain = 0.5 * float(np.sum(np.log(errors.mean(axis=0)) - np.log(found.mean(axis=0))))
    if gain <= MARGIN * more_terms + REGULARIZATION:
        return False
    if more_terms <= 0:
        return True
    by_block = 0.5 * np.sum((errors - found) / errors.mean(axis=0), axis=1)
    needed = SIGNIFICANCE if gain <= LARGE_GAIN * more_terms else 1.0
    return bool(by_block.mean() > needed * by_block.std(ddof=1) / np.sqrt(len(by_block)))


def _converged(reduced: Sequence[_Folds], noise: np.ndarray, prior: np.ndarray,
               prior_std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the errors (blocks, joints), and the RMS errors (joints,) that are the weights of the next solve."""
    for _ in range(3):
        errors = _block_errors(reduced, noise, prior, prior_std)
        noise = np.sqrt(errors.mean(axis=0))
    return errors, noise


def _reduced(equations: np.ndarray, tau: np.ndarray, model: FrictionModel) -> _Folds:
    """Return one entry for each fold; equations (m, b + terms)."""
    W, b = np.column_stack((equations, tau)), equations.shape[1] - len(model.kinds)
    grams = [part.T @ part for part in np.array_split(W, N_BLOCKS)]
    sizes = [len(part) for part in np.array_split(W, N_BLOCKS)]
    total = sum(grams)
    lower = np.where([kind == OFFSET for kind in model.kinds], -np.inf, 0.0)
    found = []
    for fold in range(N_FOLDS):
        blocks = range(fold, N_BLOCKS, N_FOLDS)
        rest = total - sum(grams[k] for k in blocks)
        own = rest[b:-1, b:-1]
        own = own + np.eye(len(own)) * (REGULARIZATION * np.trace(own) + np.finfo(float).tiny)
        solved = np.linalg.solve(own, rest[b:-1])
        G, F = solved[:, :b], solved[:, -1]
        found.append(_Fold(rest[:b, :b] - rest[:b, b:-1] @ G, rest[:b, -1] - rest[:b, b:-1] @ F, F, G,
                           [grams[k] / max(sizes[k], 1) for k in blocks], lower))
    return found


def _block_errors(reduced: Sequence[_Folds], noise: np.ndarray, prior: np.ndarray, prior_std: np.ndarray) -> np.ndarray:
    """Return the mean squared errors (blocks, joints) of the predicted blocks, by friction that dissipates energy."""
    errors = np.empty((N_BLOCKS, len(reduced)))
    for fold in range(N_FOLDS):
        H, h = np.diag(1.0 / prior_std**2), prior / prior_std**2
        for joint, s in zip(reduced, noise, strict=True):
            H, h = H + joint[fold].H / s**2, h + joint[fold].h / s**2
        beta = np.linalg.solve(H, h)
        for k, joint in enumerate(reduced):
            own = joint[fold]
            friction = np.maximum(own.F - own.G @ beta, own.lower)
            x = np.concatenate((beta, friction, [-1.0]))
            for row, gram in zip(range(fold, N_BLOCKS, N_FOLDS), own.test, strict=True):
                errors[row, k] = max(float(x @ gram @ x), MIN_ERROR**2 * gram[-1, -1]) + np.finfo(float).tiny
    return errors
