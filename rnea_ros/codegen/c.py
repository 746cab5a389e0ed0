"""Program -> a C function of the same operations in the same order, for machines that have neither Python nor LLVM.

Only numbers and names made here enter the text, never anything of a robot description. Needs C99 and its mathematics library.
"""

from __future__ import annotations

import math

from .ir.program import Program

_ARITHMETIC = {"add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} / {1}", "neg": "-{0}"}


def source(program: Program, name: str) -> str:
    """Text of ``void NAME(const double *x, double *y)``: one sample. A comment says what lies where in x and y."""
    values: dict[int, str] = {}
    lines = ["#include <math.h>", "", *_table("x", list(program.inputs.items())),
             *_table("y", [(f"result {k} {list(shape)}", math.prod(shape)) for k, shape in enumerate(program.outputs)]),
             f"void {name}(const double *restrict x, double *restrict y)", "{"]
    for number, (op, *operands) in program.nodes:
        if op == "const":
            values[number] = f"({float(operands[0])!r})"
        elif op == "input":
            values[number] = f"x[{operands[0]}]"
        else:
            given = [values[operand] for operand in operands]
            right = _ARITHMETIC[op].format(*given) if op in _ARITHMETIC else f"{op}({given[0]})"
            values[number] = f"v{number}"
            lines.append(f"    const double v{number} = {right};")
    lines += [f"    y[{slot}] = {values[number]};" for slot, number in enumerate(program.results)]
    return "\n".join([*lines, "}", ""])


def _table(array: str, blocks: list[tuple[str, int]]) -> list[str]:
    lines, start = [], 0
    for name, size in blocks:
        lines.append(f"/* {array}[{start}] .. {array}[{start + size - 1}]: {name} */" if size else f"/* no {name} */")
        start += size
    return lines
