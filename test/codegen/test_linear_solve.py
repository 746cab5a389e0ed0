"""LU factorization in kernels and for any scalar type against numpy, with ill-conditioned and singular matrices."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_ros.algebra.linalg import lu
from rnea_ros.algebra.taylor import derivative, jets
from rnea_ros.codegen import c_compiler, kernel

BACKENDS = ("llvm", "python", "reference",
            pytest.param("c", marks=pytest.mark.skipif(not c_compiler.compiler(), reason="there is no C compiler")))


def matrix(n: int, seed: int = 0) -> np.ndarray:
    """Return a random matrix with zeros on and around the diagonal, which needs row exchanges."""
    rng = np.random.default_rng((n, seed))
    A = rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.6)
    np.fill_diagonal(A, 0.0)
    A += np.roll(np.diag(rng.uniform(1.0, 2.0, n)), 1 if n > 1 else 0, axis=0)
    return A


def solutions(n: int, m: int, backend: str):
    """Return a kernel of A (n, n) and B (n, m) for A X = B and A^T X = B, with smallest and largest pivot."""
    def text(A, B):
        factor = lu(np.reshape(A, (n, n)))
        B = np.reshape(B, (n, m))
        return [factor.solve(B), factor.solve_transposed(B), [factor.smallest, factor.largest]]

    return kernel.build(text, {"A": n * n, "B": n * m}, backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("sizes", [(1, 1), (2, 3), (3, 1), (6, 4), (17, 9), (30, 2)], ids=str)
def test_solutions_match_numpy(backend, sizes):
    n, m = sizes
    run, B = solutions(n, m, backend), np.random.default_rng(n).normal(size=sizes)
    for seed in range(3):
        A = matrix(n, seed)
        X, transposed, _ = run(np.concatenate((A.ravel(), B.ravel())))
        bound = 1e-13 * np.linalg.cond(A)
        np.testing.assert_allclose(X, np.linalg.solve(A, B), rtol=bound, atol=bound)
        np.testing.assert_allclose(transposed, np.linalg.solve(A.T, B), rtol=bound, atol=bound)


@pytest.mark.parametrize("n", range(1, 31))
def test_machine_code_solves_every_size(n):
    run, A, B = solutions(n, 2, "llvm"), matrix(n, 5), np.random.default_rng(n).normal(size=(n, 2))
    X, transposed, _ = run(np.concatenate((A.ravel(), B.ravel())))
    bound = 1e-13 * np.linalg.cond(A) * np.abs(X).max()
    assert np.abs(A @ X - B).max() < bound
    assert np.abs(A.T @ transposed - B).max() < 1e-13 * np.linalg.cond(A) * np.abs(transposed).max()


@pytest.mark.parametrize("backend", BACKENDS)
def test_pivots_indicate_singular_and_nearly_singular_matrices(backend):
    run, B = solutions(4, 1, backend), np.ones(4)
    A = np.random.default_rng(0).normal(size=(4, 4))
    _, _, (smallest, largest) = run(np.concatenate((A.ravel(), B)))
    assert smallest > 1e-3 * largest
    for distance in (1e-9, 1e-13):
        A[3] = A[0] - 2.0 * A[1] + A[2]
        A[3, 0] += distance
        _, _, (smallest, largest) = run(np.concatenate((A.ravel(), B)))
        assert smallest < 30.0 * distance * largest
    A[:, 2] = 0.0
    X, _, (smallest, _) = run(np.concatenate((A.ravel(), B)))
    assert smallest <= 0.0
    assert not np.isfinite(X).all()
    if backend == "llvm":
        assert run.call(A.ravel(), B) is None, "the checked call refuses results that are not finite"


@pytest.mark.parametrize("backend", BACKENDS)
def test_ill_conditioned_systems_leave_a_small_residual(backend):
    n = 8
    A = 1.0 / (np.arange(n)[:, None] + np.arange(n) + 1.0)  # Hilbert's matrix, condition number 1.5e10
    X, transposed, _ = solutions(n, 1, backend)(np.concatenate((A.ravel(), np.ones(n))))
    for x in (X, transposed):
        assert np.abs(A @ x - 1.0).max() < 1e-15 * n * np.abs(x).max()


@pytest.mark.parametrize("backend", BACKENDS)
def test_solutions_enter_further_operations_and_solves(backend):
    """The solution changes an angle whose sine enters the next matrix, as in a Newton step."""
    def text(x):
        first = lu(np.array([[2.0, np.sin(x[0])], [x[1], 3.0]], dtype=object))
        y = first.solve(np.array([x[0], 1.0], dtype=object))
        second = lu(np.array([[np.cos(y[0]), 0.0, 1.0], [0.0, y[1], 0.5], [1.0, np.sin(y[1]), 0.0]], dtype=object))
        z = second.solve(np.array([[y[0], 0.0], [1.0, 0.0], [x[2], 0.0]], dtype=object))
        return [y, z, [z[0, 0] * first.smallest + np.tanh(z[1, 0])]]

    x = np.array([0.4, -0.7, 0.3])
    found = kernel.build(text, {"x": 3}, backend)(x)
    for ours, plain in zip(found, text(x), strict=True):
        np.testing.assert_allclose(ours, np.array(plain, dtype=float), rtol=1e-13, atol=1e-15)


def test_vectorized_solutions_equal_single_ones():
    n, m, count = 5, 2, 300
    run, rng = solutions(n, m, "llvm"), np.random.default_rng(1)
    A = np.array([matrix(n, seed) for seed in range(count)]).reshape(count, -1)
    B = rng.normal(size=(count, n * m))
    few = [run(np.concatenate((a, b))) for a, b in zip(A, B, strict=True)]
    many = run.samples((A, B), count)  # more than kernel.MANY: vectors of samples
    for k, part in enumerate(many):
        np.testing.assert_array_equal(part, [one[k] for one in few])


def test_programs_split_between_factor_and_solution_give_the_same_results(monkeypatch):
    text = pytest.importorskip("rnea_ros.codegen.llvm_text")
    found = []
    for part in (1, 3, 1_000):
        monkeypatch.setattr(text, "PART", part)
        A = matrix(6)
        found.append(solutions(6, 3, "llvm")(np.concatenate((A.ravel(), np.arange(18.0)))))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.skipif(not c_compiler.compiler(), reason="there is no C compiler")
def test_c_and_llvm_solutions_are_bitwise_equal():
    n, m = 9, 4
    x = np.concatenate((matrix(n).ravel(), np.random.default_rng(2).normal(size=n * m)))
    for a, b in zip(*(solutions(n, m, backend)(x) for backend in ("llvm", "c")), strict=True):
        np.testing.assert_array_equal(a, b)


# ---------------------------------------------------------------------- other scalars


def test_empty_system_has_an_empty_solution():
    factor = lu(np.zeros((0, 0)))
    assert factor.solve(np.zeros((0, 3))).shape == factor.solve_transposed(np.zeros((0, 3))).shape == (0, 3)
    assert factor.smallest == factor.largest == 1.0


def test_complex_systems_match_numpy():
    rng = np.random.default_rng(4)
    A, b = rng.normal(size=(5, 5)) + 1j * rng.normal(size=(5, 5)), rng.normal(size=5)
    np.testing.assert_allclose(lu(A).solve(b), np.linalg.solve(A, b), rtol=1e-12)


@pytest.mark.parametrize("transposed", [False, True])
def test_power_series_systems_give_the_derivatives_of_the_solution(transposed):
    """Derivatives: A X = B, A' X + A X' = B', A'' X + 2 A' X' + A X'' = B''."""
    rng = np.random.default_rng(5)
    A, B = rng.normal(size=(3, 4, 4)), rng.normal(size=(3, 4, 2))
    factor = lu(jets(*A))
    X = (factor.solve_transposed if transposed else factor.solve)(jets(*B))
    x = [derivative(X, k).astype(float) for k in range(3)]
    A = np.swapaxes(A, -1, -2) if transposed else A
    np.testing.assert_allclose(A[0] @ x[0], B[0], atol=1e-12)
    np.testing.assert_allclose(A[1] @ x[0] + A[0] @ x[1], B[1], atol=1e-12)
    np.testing.assert_allclose(A[2] @ x[0] + 2.0 * A[1] @ x[1] + A[0] @ x[2], B[2], atol=1e-11)


def test_traced_power_series_systems_equal_plain_ones():
    def text(a, b):
        return [derivative(lu(jets(*np.reshape(a, (3, 3, 3)))).solve(jets(*np.reshape(b, (3, 3)))), k) for k in range(3)]

    run = kernel.build(text, {"a": 27, "b": 9}, "llvm")
    x = np.random.default_rng(6).normal(size=36)
    for ours, plain in zip(run(x), text(x[:27], x[27:]), strict=True):
        np.testing.assert_allclose(ours, plain.astype(float), rtol=1e-11)


def test_non_square_matrices_are_rejected():
    with pytest.raises(ValueError, match="square"):
        lu(np.zeros((2, 3)))


# ---------------------------------------------------------------------- iterations before a kernel


def root(backend: str):
    """Return a kernel that solves A(x) x = c by Newton's method, with x and the number of steps."""
    def step(state, c):
        x, count = state[:2], state[2]
        gaps = [x[0] * x[0] + x[1] - c[0], x[0] - np.sin(x[1]) - c[1]]
        J = lu(np.array([[2.0 * x[0], 1.0], [1.0, -np.cos(x[1])]], dtype=object))
        moved = x - J.solve(np.array(gaps, dtype=object))
        return [[*moved, count + 1.0], [abs(gaps[0]) + abs(gaps[1])]]

    def text(state, c):
        x = state[:2]
        return [[x[0] * x[0] + x[1] - c[0], x[0] - np.sin(x[1]) - c[1]], state[2:], [*x, 0.0]]

    return kernel.build(text, {"state": 3, "c": 2}, backend, (step, 1e-9, 12))


@pytest.mark.parametrize("backend", BACKENDS)
def test_iteration_stops_when_the_error_is_small_or_at_the_step_limit(backend):
    run = root(backend)
    gaps, count, x = run(np.array([1.0, 0.5, 0.0, 2.0, 0.1]))
    assert np.abs(gaps).max() < 1e-15
    assert 3.0 < count[0] < 8.0
    assert run(np.array([*x, 2.0, 0.1]))[1] == [1.0], "one step where it is closed already"
    assert run(np.array([np.nan, 0.5, 0.0, 2.0, 0.1]))[1] == [1.0]
    assert run(np.array([1.0, 0.5, 0.0, -3.0, 0.1]))[1] <= [12.0], "no more steps than allowed"


@pytest.mark.parametrize("backend", BACKENDS)
def test_iteration_of_each_sample_starts_from_the_previous_solution(backend):
    run = root(backend)
    rows = np.zeros((40, 5))
    rows[:, 3:] = np.linspace([2.0, 0.1], [2.5, -0.2], 40)
    rows[0, :2] = run(np.array([1.0, 0.5, 0.0, 2.0, 0.1]))[2][:2]
    found = run.sweep(rows.copy(), 3)
    assert np.abs(found[:, :2]).max() < 1e-15
    assert found[:, 2].max() <= 4.0
    alone = run(np.concatenate((rows[0, :3], rows[1, 3:])))
    np.testing.assert_allclose(found[1, 3:], alone[2], atol=1e-12)
