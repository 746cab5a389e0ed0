"""Derivatives of traced programs: replay on any scalar, and products of seeds with the Jacobian in reverse mode.

A replay on symbols traces the program again, one on jets of symbols differentiates it along a direction. Reverse mode
(Griewank and Walther, Evaluating Derivatives, chapter 3) gives the gradient of a weighted sum of all results from a small
multiple of the program's operations, for any number of inputs. Both together give second derivatives. No formula is
written down twice: the rules below are those of single operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from ...algebra.taylor import derivative, jets
from ...errors import InputError
from .program import Program

Numbers = Sequence[Any] | np.ndarray  # of any scalar

_VALUES = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "neg": lambda a: -a, "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh, "sqrt": np.sqrt, "exp": np.exp}
# (result, its adjoint, operands) -> adjoints of the operands.
_ADJOINTS = {
    "add": lambda y, w, a, b: (w, w),
    "sub": lambda y, w, a, b: (w, -w),
    "mul": lambda y, w, a, b: (w * b, w * a),
    "div": lambda y, w, a, b: (w / b, -(w * (y / b))),
    "neg": lambda y, w, a: (-w,),
    "sin": lambda y, w, a: (w * np.cos(a),),
    "cos": lambda y, w, a: (-(w * np.sin(a)),),
    "tan": lambda y, w, a: (w * (y * y + 1.0),),
    "tanh": lambda y, w, a: (w * (1.0 - y * y),),
    "sqrt": lambda y, w, a: (0.5 * (w / y),),
    "exp": lambda y, w, a: (w * y,)}


def can_differentiate(program: Program) -> bool:
    """Return whether every operation has a rule here: no maxima, no linear systems with pivots, no iteration before."""
    return program.iteration is None and set(program.operation_counts) <= set(_VALUES)


def split(flat: Numbers, sizes: Iterable[int]) -> list[Any]:
    """Return the blocks of these sizes that lie side by side in a flat sequence."""
    return [flat[start:end] for start, end in pairwise(accumulate(sizes, initial=0))]


def values(program: Program, x: Numbers) -> dict[int, Any]:
    """Return the value of every node by its number. x: all inputs, side by side, of any scalar."""
    found: dict[int, Any] = {}
    for number, (op, *operands) in program.nodes:
        if op == "input":
            found[number] = x[operands[0]]
        elif op == "const":
            found[number] = operands[0]
        else:
            found[number] = _rule(op, _VALUES)(*(found[k] for k in operands))
    return found


def evaluate(program: Program, x: Numbers) -> list[Any]:
    """Return the results, side by side."""
    found = values(program, x)
    return [found[number] for number in program.results]


def gradient(program: Program, x: Numbers, seeds: Numbers) -> list[Any]:
    """Return the derivatives of the sum of seeds times results by every input: J^T seeds."""
    found, adjoints = values(program, x), dict[int, Any]()
    for number, seed in zip(program.results, seeds, strict=True):
        _add(adjoints, number, seed)
    by_input = [0.0] * program.input_size
    for number, (op, *operands) in reversed(program.nodes):
        if number not in adjoints or op == "const":
            continue
        if op == "input":
            by_input[operands[0]] = adjoints[number]
            continue
        shares = _rule(op, _ADJOINTS)(found[number], adjoints[number], *(found[k] for k in operands))
        for operand, share in zip(operands, shares, strict=True):
            _add(adjoints, operand, share)
    return by_input


def jacobian(program: Program, x: Numbers, columns: Sequence[int] | None = None) -> np.ndarray:
    """Return the derivatives (results, columns) of all results by some inputs, or by all, one direction after the other."""
    return _along(lambda moved: evaluate(program, moved), x, columns, len(program.results))


def hessian(program: Program, x: Numbers, seeds: Numbers, columns: Sequence[int] | None = None) -> np.ndarray:
    """Return the second derivatives (inputs, columns) of the sum of seeds times results."""
    return _along(lambda moved: gradient(program, moved, seeds), x, columns, program.input_size)


def _along(function: Any, x: Numbers, columns: Sequence[int] | None, count: int) -> np.ndarray:
    chosen = range(len(x)) if columns is None else columns
    table = np.zeros((count, len(chosen)), dtype=object)
    for column, k in enumerate(chosen):
        moved = list(x)
        (moved[k],) = jets([x[k]], [1.0])
        table[:, column] = derivative(np.array(function(moved) + [None], dtype=object)[:-1], 1)
    return table


def _rule(op: str, rules: Mapping[str, Any]) -> Any:
    if op not in rules:
        raise InputError(f"operation '{op}' of a program has no derivative here; allowed are {', '.join(rules)}")
    return rules[op]


def _add(adjoints: dict[int, Any], number: int, share: Any) -> None:
    if isinstance(share, float) and share == 0.0:
        return
    adjoints[number] = adjoints[number] + share if number in adjoints else share
