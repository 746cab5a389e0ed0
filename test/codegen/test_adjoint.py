"""Derivatives of traced programs against complex steps of the functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rnea_ros.algebra.linalg import lu
from rnea_ros.codegen.program import trace
from rnea_ros.errors import InputError

SIZE, STEP = 4, 1e-30
X, SEEDS = np.array([0.3, -0.7, 1.1, 0.4]), np.array([0.5, -1.5, 2.0])


def every_operation(x: Any) -> list[Any]:
    """Use each operation with a rule, constants, inputs as results, and a repeated result."""
    a, b, c, d = x
    first = np.sin(a * b) / (2.0 + np.cos(c)) - np.tan(d) * np.tanh(b - 3.0 * a)
    second = np.sqrt(3.0 + a * a) + np.exp(-b) * (first - c)
    return [first, second, c]


def program():
    return trace(lambda x: [every_operation(x)], {"x": SIZE})


def complex_jacobian(function, x):
    columns = []
    for k in range(len(x)):
        moved = x.astype(complex)
        moved[k] += 1j * STEP
        columns.append(np.imag(np.array(function(moved), dtype=complex)) / STEP)
    return np.array(columns).T


def test_example_function_uses_every_operation():
    assert set(program().operation_counts) == {"add", "sub", "mul", "div", "neg", "sin", "cos", "tan", "tanh", "sqrt", "exp"}


def test_evaluating_a_program_reproduces_the_function():
    np.testing.assert_allclose(np.array(program().evaluate(list(X)), dtype=float), every_operation(X), rtol=1e-15)


def test_gradients_match_complex_steps():
    wanted = complex_jacobian(every_operation, X).T @ SEEDS
    np.testing.assert_allclose(np.array(program().gradient(list(X), list(SEEDS)), dtype=float), wanted, rtol=1e-13)


def smooth(x: Any) -> list[Any]:
    """Use the operations that dual numbers support."""
    a, b, c, d = x
    return [np.sin(a * b) / (2.0 + np.cos(c)), np.sqrt(3.0 + d * d) * np.tanh(b - 3.0 * a), d]


def test_jacobians_and_hessians_match_complex_steps():
    traced = trace(lambda x: [smooth(x)], {"x": SIZE})
    jacobian = np.array(traced.jacobian(list(X)), dtype=float)
    np.testing.assert_allclose(jacobian, complex_jacobian(smooth, X), rtol=1e-13)
    chosen = traced.jacobian(list(X), [2, 0])
    np.testing.assert_allclose(np.array(chosen, dtype=float), jacobian[:, [2, 0]], rtol=1e-15)

    def gradient(x):
        return traced.gradient(list(x), list(SEEDS))

    hessian = np.array(traced.hessian(list(X), list(SEEDS)), dtype=float)
    np.testing.assert_allclose(hessian, complex_jacobian(gradient, X), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-12)


def test_gradient_of_symbols_is_a_new_program():
    traced = program()
    twice = trace(lambda x, seeds: [traced.gradient(x, seeds)], {"x": SIZE, "seeds": len(SEEDS)})
    assert twice.can_differentiate
    found = np.array(twice.evaluate([*X, *SEEDS]), dtype=float)
    np.testing.assert_allclose(found, complex_jacobian(every_operation, X).T @ SEEDS, rtol=1e-13)


@pytest.mark.parametrize("function", [lambda x: [abs(x[0])], lambda x: [lu(x.reshape(2, 2)).solve(np.ones((2, 1)))]])
def test_maxima_and_linear_systems_have_no_derivative(function):
    traced = trace(function, {"x": SIZE})
    assert not traced.can_differentiate
    with pytest.raises(InputError, match="has no derivative here; allowed are add, "):
        traced.gradient(list(X), [1.0] * len(traced.results))
