"""Program -> a Python function of the same operations in the same order, for where llvmlite is missing.

Only numbers and names made here enter the text, never anything of a robot description.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..algebra.linalg import LU, lu
from .program import BLOCKS, ITEM, Program

_ARITHMETIC = {"add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} / {1}", "neg": "-{0}",
               "max": "max({0}, {1})"}
_CALLS = {name: getattr(math, name) for name in ("sin", "cos", "tan", "tanh", "sqrt", "exp")}


def _factor(*entries: float) -> tuple[float, float, LU]:
    """Smallest and largest pivot of a matrix, and its factor."""
    n = math.isqrt(len(entries))
    found = lu(np.array(entries).reshape(n, n))
    return found.smallest, found.largest, found


def _backsolve(factor: tuple[float, float, LU], *entries: float) -> list[float]:
    return factor[2].solve(np.array(entries).reshape(_rows(factor), -1)).ravel().tolist()


def _backsolve_transposed(factor: tuple[float, float, LU], *entries: float) -> list[float]:
    return factor[2].solve_transposed(np.array(entries).reshape(_rows(factor), -1)).ravel().tolist()


def _rows(factor: tuple[float, float, LU]) -> int:
    return len(factor[2])


_SOLVES = dict(zip(BLOCKS, (_factor, _backsolve, _backsolve_transposed), strict=True))


def source(program: Program) -> str:
    """Text of ``kernel(x)``: a sequence of floats in, a list of floats out."""
    names: dict[int, str] = {}
    lines = ["def kernel(x):"]
    for number, (op, *operands) in program.nodes:
        if op == "const":
            names[number] = f"({float(operands[0])!r})"
            continue
        names[number] = f"v{number}"
        values = [names[operand] for operand in operands] if op != "input" else []
        right = (f"x[{operands[0]}]" if op == "input" else
                 f"{values[0]}[{op.removeprefix(ITEM)}]" if op.startswith(ITEM) else
                 f"{op}({', '.join(values)})" if op in BLOCKS else
                 _ARITHMETIC[op].format(*values) if op in _ARITHMETIC else f"{op}({values[0]})")
        lines.append(f"    v{number} = {right}")
    lines.append(f"    return [{', '.join(names[number] for number in program.results)}]")
    return "\n".join(lines)


def compile_program(program: Program) -> Callable[[list[float]], list[float]]:
    """Return the function itself."""
    namespace: dict = {**_CALLS, **_SOLVES}
    exec(compile(source(program), "<rnea_ros kernel>", "exec"), namespace)  # the text made above
    return namespace["kernel"]
