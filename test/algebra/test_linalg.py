"""Linear solvers for any scalar type against numpy: values, power series and traced kernels; least squares."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_ros.algebra.linalg import LeastSquares
from rnea_ros.algebra.taylor import derivative, jets
from rnea_ros.codegen import kernel
from rnea_ros.codegen.program import trace
from support.oracles import deviation


def matrix(rng, m, n, condition):
    """Return a matrix with singular values from 1 down to 1 / condition."""
    U, V = (np.linalg.qr(rng.normal(size=(k, k)))[0][:, :n] for k in (m, n))
    return U * np.geomspace(1.0, 1.0 / condition, n) @ V.T


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (9, 4), (15, 6)])
def test_least_squares_are_as_accurate_as_a_stable_method(shape, condition):
    """The error is bounded by the condition number if the right side is in the range of J, as for redundant equations."""
    rng = np.random.default_rng(shape[0])
    for _ in range(20):
        J = matrix(rng, *shape, condition)
        X = rng.normal(size=(shape[1], 3))
        inverse = LeastSquares(J)
        assert np.abs(inverse @ (J @ X) - X).max() < 1e-14 * condition
        assert np.abs(inverse @ (J @ X)[:, 0] - X[:, 0]).max() < 1e-14 * condition
        free = rng.normal(size=shape[0])
        assert np.abs(J.T @ (J @ (inverse @ free) - free)).max() < 1e-14 * condition  # residual orthogonal to J's range


def test_norm_equals_the_norm_of_the_pseudoinverse():
    rng = np.random.default_rng(0)
    J = rng.normal(size=(7, 4))
    assert LeastSquares(J).norm == pytest.approx(np.linalg.norm(np.linalg.pinv(J)), rel=1e-12)


def test_least_squares_of_dual_numbers_give_the_rate_of_the_solution():
    rng = np.random.default_rng(1)
    J, Jd, b, bd = (rng.normal(size=shape) for shape in ((5, 3), (5, 3), (5,), (5,)))
    x = LeastSquares(jets(J, Jd)) @ jets(b, bd)
    h = 1e-6
    ahead, back = (np.linalg.lstsq(J + s * Jd, b + s * bd, rcond=None)[0] for s in (h, -h))
    assert deviation(derivative(x, 0).astype(float), np.linalg.lstsq(J, b, rcond=None)[0]) < 1e-13
    assert deviation(derivative(x, 1).astype(float), (ahead - back) / (2.0 * h)) < 1e-8


def solve(J, b):
    with np.errstate(all="ignore"):  # the reference backend is evaluated at zeros
        inverse = LeastSquares(J.reshape(6, 3))
        return [inverse @ b], [[inverse.norm]]


@pytest.mark.parametrize("backend", kernel.BACKENDS)
def test_traced_least_squares_equal_numpy(backend):
    if backend == "llvm":
        pytest.importorskip("llvmlite")
    rng = np.random.default_rng(2)
    J, b = rng.normal(size=(6, 3)), rng.normal(size=6)
    x, norm = kernel.build(solve, {"J": 18, "b": 6}, backend)(np.concatenate((J.ravel(), b)))
    assert deviation(x[0], np.linalg.lstsq(J, b, rcond=None)[0]) < 1e-14
    assert norm[0] == pytest.approx(LeastSquares(J).norm, rel=1e-13)


def test_decoupled_blocks_cost_as_much_as_alone():
    """Diagonal blocks are detected by the zeros between them, as for the legs of a robot."""
    def blocks(count):
        def function(J, b):
            whole = np.zeros((3 * count, 3 * count), dtype=object)
            for k in range(count):
                whole[3 * k:3 * k + 3, 3 * k:3 * k + 3] = J[9 * k:9 * k + 9].reshape(3, 3)
            return [LeastSquares(whole) @ b]
        return sum(trace(function, {"J": 9 * count, "b": 3 * count}).operation_counts.values())

    assert blocks(6) == 6 * blocks(1)


def test_position_of_a_dense_column_does_not_change_the_cost():
    """The six unknowns of a platform couple with every leg; eliminated first, they would fill all following columns."""
    def operations(dense_first):
        def function(J, border, b):
            whole = np.zeros((18, 18), dtype=object)
            for leg in range(6):
                whole[3 * leg:3 * leg + 3, 2 * leg:2 * leg + 2] = J[6 * leg:6 * leg + 6].reshape(3, 2)
            whole[:, 12:] = border.reshape(18, 6)
            order = np.roll(np.arange(18), 6) if dense_first else np.arange(18)
            x = LeastSquares(whole[:, order]) @ b
            return [x[np.argsort(order)]]
        return sum(trace(function, {"J": 36, "border": 108, "b": 18}).operation_counts.values())

    assert operations(dense_first=True) == operations(dense_first=False)
