"""Program -> a Python function of the same operations in the same order, for where llvmlite is missing.

Only numbers and names made here enter the text, never anything of a robot description.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .ir.program import Program

_ARITHMETIC = {"add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} / {1}", "neg": "-{0}",
               "max": "max({0}, {1})"}
_CALLS = {name: getattr(math, name) for name in ("sin", "cos", "tan", "tanh", "sqrt", "exp")}


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
                 _ARITHMETIC[op].format(*values) if op in _ARITHMETIC else f"{op}({values[0]})")
        lines.append(f"    v{number} = {right}")
    lines.append(f"    return [{', '.join(names[number] for number in program.results)}]")
    return "\n".join(lines)


def compile_program(program: Program) -> Callable[[list[float]], list[float]]:
    """The function itself."""
    namespace: dict = dict(_CALLS)
    exec(compile(source(program), "<rnea_ros kernel>", "exec"), namespace)  # the text made above
    return namespace["kernel"]
