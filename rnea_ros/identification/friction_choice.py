"""The friction model of each joint, chosen by what it predicts: blocks of the recording are left out and foretold by the rest.

All joints share the robot's base parameters, each has friction of its own, so that of one joint is eliminated from its
equations (Schur) and costs the others nothing. What is compared is the sum over joints of the logarithm of the error in blocks
that were left out: a model with one term more has to gain WORTH for it. Joint after joint, until nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from .friction import OFFSET, FrictionModel
from .joint_equations import Rows

BLOCKS, FOLDS = 10, 5  # contiguous blocks; block k is left out in fold k % FOLDS
WORTH = 0.01  # of the logarithm of the error: what a further term has to gain
ROUNDS = 3
TINY = 1e-10  # relative, of rounding
FLOOR = 1e-6  # of the error, relative to the torque: perfect data must not divide by zero


class _Fold(NamedTuple):
    """Normal equations of one joint and fold without its friction: H (b, b), h (b,); F, G: friction = F - G beta.

    test: Gram matrix of what was left out, over the number of equations of all folds; least: of each friction term.
    """

    H: np.ndarray
    h: np.ndarray
    F: np.ndarray
    G: np.ndarray
    test: np.ndarray
    least: np.ndarray


Folds = list[_Fold]


def choose(rows: Rows, candidates: Sequence[Sequence[FrictionModel]], models: Sequence[FrictionModel], prior: np.ndarray,
           weak: np.ndarray) -> list[FrictionModel]:
    """A model for each joint, of its candidates or the one to begin with. prior, weak (b,): base parameters to stay near, and
    how near."""
    reduce = cache(lambda k, model: _reduced(rows.of(k, model), rows.tau[:, k], model))
    models = list(models)
    reduced = [reduce(k, model) for k, model in enumerate(models)]
    noise = 0.1 * np.std(rows.tau, axis=0) + np.finfo(float).tiny
    score, noise = _settled(reduced, noise, prior, weak)
    for _ in range(ROUNDS):
        before = list(models)
        for k, others in enumerate(candidates):
            for model in others:
                tried = [*reduced[:k], reduce(k, model), *reduced[k + 1:]]
                found = float(np.log(_errors(tried, noise, prior, weak)).sum())
                cost = WORTH * (len(model.kinds) - len(models[k].kinds))
                if found + cost < score - TINY:
                    models[k], reduced, score = model, tried, found
        score, noise = _settled(reduced, noise, prior, weak)
        if models == before:
            break
    return models


def _settled(reduced: Sequence[Folds], noise: np.ndarray, prior: np.ndarray, weak: np.ndarray) -> tuple[float, np.ndarray]:
    """Score, and the errors that are the weights of the next."""
    for _ in range(3):
        noise = _errors(reduced, noise, prior, weak)
    return float(np.log(noise).sum()), noise


def _reduced(equations: np.ndarray, tau: np.ndarray, model: FrictionModel) -> Folds:
    """One for each fold; equations (m, b + terms)."""
    W, b = np.column_stack((equations, tau)), equations.shape[1] - len(model.kinds)
    parts = np.array_split(W, BLOCKS)
    grams = [sum(parts[k].T @ parts[k] for k in range(fold, BLOCKS, FOLDS)) for fold in range(FOLDS)]
    total = sum(grams)
    least = np.where([kind == OFFSET for kind in model.kinds], -np.inf, 0.0)
    found = []
    for gram in grams:
        rest = total - gram
        own = rest[b:-1, b:-1]
        own = own + np.eye(len(own)) * (TINY * np.trace(own) + np.finfo(float).tiny)
        solved = np.linalg.solve(own, rest[b:-1])
        G, F = solved[:, :b], solved[:, -1]
        found.append(_Fold(rest[:b, :b] - rest[:b, b:-1] @ G, rest[:b, -1] - rest[:b, b:-1] @ F, F, G, gram / len(W), least))
    return found


def _errors(reduced: Sequence[Folds], noise: np.ndarray, prior: np.ndarray, weak: np.ndarray) -> np.ndarray:
    """(joints,) rms of the error where equations were left out and foretold, by friction that never drives."""
    squares = np.full(len(reduced), np.finfo(float).tiny)
    for fold in range(FOLDS):
        H, h = np.diag(1.0 / weak**2), prior / weak**2
        for joint, s in zip(reduced, noise, strict=True):
            H, h = H + joint[fold].H / s**2, h + joint[fold].h / s**2
        beta = np.linalg.solve(H, h)
        for k, joint in enumerate(reduced):
            friction = np.maximum(joint[fold].F - joint[fold].G @ beta, joint[fold].least)
            x = np.concatenate((beta, friction, [-1.0]))
            squares[k] += max(float(x @ joint[fold].test @ x), FLOOR**2 * joint[fold].test[-1, -1])
    return np.sqrt(squares)
