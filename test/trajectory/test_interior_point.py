"""Newton step of the interior-point solver against dense linear algebra and complex-step derivatives."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_ros.codegen import kernel
from rnea_ros.trajectory import interior_point

GROUPS = (((1,), 1), ((0, 1, 2, 3), 2), ((1, 2, 3, 4, 5, 6), 2), (tuple(range(7)), 1))
COUNT = sum(number for _, number in GROUPS)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(16)


@pytest.mark.parametrize("scheduled", [False, True])
@pytest.mark.parametrize("fixed", [(False, False), (True, False), (True, True)])
def test_structured_newton_step_equals_dense_linear_algebra(rng, scheduled, fixed):
    """z = z_before + L d is substituted, which leaves a sum of squares of the coefficients."""
    count, pairs = 12, np.array(interior_point.PAIRS).T
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
    found = interior_point.solve_newton(blocks[:, pairs[0], pairs[1]], g, fixed, *more)
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-10)


def iterate(rng):
    """Return a point, its constraint values, and those of the previous point."""
    size = sum(len(members) * number for members, number in GROUPS)
    c, basis, rows = rng.uniform(0.5, 1.0, 4), rng.uniform(0.1, 0.5, 12), rng.uniform(-0.1, 0.1, size)
    before = rng.uniform(-0.3, 0.3, COUNT)
    return c, basis, rows, before, interior_point.evaluate_constraints(GROUPS, c, basis, rows, before)


def test_gradient_and_matrix_are_derivatives_of_the_merit_function(rng):
    """Complex steps differentiate weight / sqrt y - mu sum log (1 - value^2). With multipliers at mu / slack the matrix is
    the Gauss-Newton matrix.
    """
    c, basis, rows, before, (values, slowness, product, largest, fall) = iterate(rng)
    mu, weight, multipliers = 0.3, [0.7], rng.uniform(0.5, 1.0, 2 * COUNT)
    steps = c + 1e-30j * np.eye(4)
    at = [interior_point.evaluate_constraints(GROUPS, step, basis, rows, before) for step in steps]
    slopes = np.array([some for some, *_ in at]).imag / 1e-30
    values, mine = np.array(values), (GROUPS, c, basis, rows, weight, values, before, multipliers)
    summed, kept = interior_point.assemble_kkt(*mine, [mu, 0.2, 0.0], [1.0])
    np.testing.assert_allclose(kept, multipliers, rtol=1e-14)
    merit = [weight[0] * slow - mu * np.log(slacks) for _, slow, slacks, *_ in at]
    np.testing.assert_allclose(summed[10:], np.imag(merit) / 1e-30, rtol=1e-11)
    curve = multipliers[:COUNT] / (1.0 - values) + multipliers[COUNT:] / (1.0 + values)
    of_y = 0.75 * weight[0] * slowness**5 * np.outer(basis[:4], basis[:4])
    wanted = (slopes * curve) @ slopes.T + of_y
    np.testing.assert_allclose(summed[:10], [wanted[a, b] for a, b in interior_point.PAIRS], rtol=1e-11)
    assert slowness == pytest.approx(1.0 / np.sqrt(basis[:4] @ c), rel=1e-12)
    assert product == pytest.approx(np.prod(1.0 - np.square(values)), rel=1e-12)
    assert largest == pytest.approx(np.abs(values).max(), rel=1e-12)
    falls = 1.0 - np.concatenate(((1.0 - values) / (1.0 - before), (1.0 + values) / (1.0 + before)))
    assert fall == pytest.approx(falls.max(), rel=1e-10)


def test_multiplier_step_solves_the_linearized_complementarity(rng):
    """z slack = mu is linearized; the result is bounded below by 0.01 z and clipped near the central path."""
    before, slack = rng.uniform(0.1, 1.0, (2, 50))
    z, mu, length = rng.uniform(0.01, 10.0, 50), 0.05, 0.4
    found = interior_point.multiplier_step(z, slack, 1.0 / slack, before, 1.0 / before, (mu, 1.0 / length, 1.0))
    change = (mu - z * before - z * (slack - before) / length) / before
    centre = mu / slack
    clip = interior_point.MULTIPLIER_CLIP
    wanted = np.clip(np.maximum(z + change, 0.01 * z), centre / clip, centre * clip)
    np.testing.assert_allclose(found, wanted, rtol=1e-10)


def test_numpy_point_kernels_equal_the_compiled_ones(rng, monkeypatch):
    size = sum(len(members) * number for members, number in GROUPS)
    blocks = [rng.uniform(0.1, 0.2, (9, width)) for width in (4, 12, size, COUNT)]
    found = []
    for backend in ("llvm", "python"):
        monkeypatch.setattr(kernel, "available", lambda asked, backend=backend: backend)
        value, shares = interior_point.point_kernels.__wrapped__(GROUPS)
        values, *rest = value.tiled(blocks, 9)
        more = [np.full((9, 1), 0.2), values, blocks[3], np.full((9, 2 * COUNT), 0.4), np.array([0.1, 0.2, 1.0]),
                np.array([1.5])]
        sums, multipliers = shares.tiled([*blocks[:3], *more], 9, kept=[1])
        found.append([values.samples, *rest, sums, multipliers.samples])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("backend", ["llvm", "python", "reference"])
def test_sweep_kernel_passes_its_state_to_the_next_row(backend, rng):
    """The kernel is Horner's rule with the partial sum as state."""
    made = kernel.build(lambda state, x: ([x[0] * 2.0], [state[0] * 0.5 + x[0]]), {"state": 1, "x": 1}, backend)
    rows = np.column_stack((np.full(7, 3.0), rng.normal(size=7)))
    given, total, found = rows[:, 1].copy(), 3.0, made.sweep(rows, 1)
    for k in range(7):
        total = 0.5 * total + given[k]
        assert found[k].tolist() == pytest.approx([2.0 * given[k], total], rel=1e-14)


@pytest.mark.parametrize("radius", [0, 1, 4, 7])
def test_local_step_lengths_are_smooth_and_never_above_the_allowed_ones(radius, rng):
    """Around a single short length they are 1 less the convolution of three windows; far from it they are whole."""
    allowed = np.where(rng.random(60) < 0.1, rng.uniform(0.01, 1.0, 60), 1.0)
    found = interior_point.local_lengths(allowed, radius)
    halves = radius // 2, radius - radius // 2
    assert (found <= allowed + 1e-13).all()
    assert np.abs(np.diff(found, 2)).max() <= 2.0 / ((2 * halves[0] + 1) * (2 * halves[1] + 1)) + 1e-13
    alone = np.ones(60)
    alone[30] = 0.4
    bump = 0.6 * (np.arange(60) == 30)
    for width, weight in ((2 * radius + 1, 1.0), *((2 * half + 1, 1.0 / (2 * half + 1)) for half in halves)):
        bump = np.convolve(bump, np.full(width, weight), mode="same")
    np.testing.assert_allclose(interior_point.local_lengths(alone, radius), 1.0 - bump, rtol=1e-13)
