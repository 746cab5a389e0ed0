"""A step of Newton's method: against dense linear algebra, and derivatives by a complex step."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_ros.codegen import kernel
from rnea_ros.scaling import newton

GROUPS = (((1,), 1), ((0, 1, 2, 3), 2), ((1, 2, 3, 4, 5, 6), 2), (tuple(range(7)), 1))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(16)


@pytest.mark.parametrize("scheduled", [False, True])
@pytest.mark.parametrize("fixed", [(False, False), (True, False), (True, True)])
def test_the_minimum_is_that_of_dense_equations(rng, scheduled, fixed):
    """z = z before + L d is put in: what is left is a sum of squares of the coefficients."""
    count, pairs = 12, np.array(newton.PAIRS).T
    roots = rng.normal(size=(count, 4, 6))
    blocks, g, L = roots @ roots.swapaxes(1, 2), rng.normal(size=(count, 4)), rng.normal(size=(count, 4))
    w, q = rng.uniform(0.1, 2.0, count), rng.normal(size=count)
    whole, right, delays = np.zeros((count + 3, count + 3)), np.zeros(count + 3), np.zeros((count, count + 3))
    for k in range(count):
        whole[k:k + 4, k:k + 4] += blocks[k]
        right[k:k + 4] += g[k]
        delays[k:, k:k + 4] += L[k]
    if scheduled:
        whole, right = whole + delays.T @ (w[:, None] * delays), right + q @ delays
    free = slice(3 if fixed[0] else 0, -3 if fixed[1] else None)
    wanted = np.zeros(count + 3)
    wanted[free] = np.linalg.solve(whole[free, free], -right[free])
    more = (L, w, q) if scheduled else ()
    np.testing.assert_allclose(newton.minimum(blocks[:, pairs[0], pairs[1]], g, fixed, *more), wanted, rtol=1e-8, atol=1e-10)


def test_what_a_constraint_adds_is_its_derivative(rng):
    count, size = 6, sum(len(places) * number for places, number in GROUPS)
    c, basis, rows = rng.uniform(0.5, 1.0, 4), rng.uniform(0.1, 1.0, 12), rng.uniform(-0.2, 0.2, size)
    force, curve = rng.normal(size=count), rng.uniform(0.5, 1.0, count)
    steps = c + 1e-30j * np.eye(4)
    slopes = np.array([newton.values(GROUPS, step, basis, rows)[0] for step in steps]).imag / 1e-30
    gradient, matrix = newton.shares(GROUPS, c, basis, force, curve, rows)
    np.testing.assert_allclose(gradient, slopes @ force, rtol=1e-12)
    wanted = (slopes * curve) @ slopes.T
    np.testing.assert_allclose(matrix, [wanted[a, b] for a, b in newton.PAIRS], rtol=1e-12)
    values, (product,) = newton.values(GROUPS, c, basis, rows)
    assert product == pytest.approx(np.prod(1.0 - np.square(values)), rel=1e-12)


def test_without_a_compiler_numpy_does_all_points_at_once(rng, monkeypatch):
    x = rng.uniform(0.1, 0.3, (9, 16 + 12 + sum(len(places) * number for places, number in GROUPS)))
    compiled = newton.of_points(GROUPS)[1](x)
    monkeypatch.setattr(kernel, "available", lambda backend: "python")
    for ours, theirs in zip(newton.of_points.__wrapped__(GROUPS)[1](x), compiled, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("backend", ["llvm", "python", "reference"])
def test_a_recurrence_hands_its_last_results_on(backend, rng):
    """Horner's rule: the state is the sum so far."""
    made = kernel.build(lambda state, x: ([x[0] * 2.0], [state[0] * 0.5 + x[0]]), {"state": 1, "x": 1}, backend)
    rows = np.column_stack((np.full(7, 3.0), rng.normal(size=7)))
    given, total, found = rows[:, 1].copy(), 3.0, made.sweep(rows, 1)
    for k in range(7):
        total = 0.5 * total + given[k]
        assert found[k].tolist() == pytest.approx([2.0 * given[k], total], rel=1e-14)
