"""Program -> a C function of the steps that the machine code takes, for machines that have neither Python nor LLVM.

The text is C99 and C++17. It calls nothing but the C library's sqrt, fma and, where joints have smoothed friction, tanh; it
allocates nothing, locks nothing, and branches on no number: one path for all inputs, except for the pivots of the linear
systems that robots with loops have. Compiled without contraction
(-ffp-contract=off) for a processor with fused multiply-add, it gives the kernel's numbers to the last bit.

Only numbers and names made here enter the text, never anything of a robot description.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import isqrt
from typing import NamedTuple

from ..errors import InputError
from .llvm_text import COSINE, HALF_PI, ROUND, SINE, TWO_BY_PI
from .program import BLOCKS, CALLS, UNUSED, Operation, Program, schedule

PART = 1_000  # steps in one function: what registers and stack are given to takes longer than in proportion
TOGETHER = 1_000  # angles whose sines are computed in one call
_STEPS = {"add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} / {1}", "neg": "-{0}", "sqrt": "sqrt({0})",
          "fma": "RNEA_FMA({0}, {1}, {2})", "fms": "RNEA_FMA({0}, {1}, -{2})", "fnma": "RNEA_FMA(-{0}, {1}, {2})",
          "max": "{0} > {1} ? {0} : {1}",
          **{name: f"{name}({{0}})" for name in CALLS}}

PREAMBLE = f"""#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
#define RNEA_RESTRICT __restrict
#else
#define RNEA_RESTRICT restrict
#endif
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(FP_FAST_FMA)
#define RNEA_FMA(a, b, c) fma(a, b, c)
#else /* without an instruction for it, one rounding instead of two would take longer than all the rest */
#define RNEA_FMA(a, b, c) ((a) * (b) + (c))
#endif

/* Sines and cosines of n angles, right to 1e-15 up to 1e5 rad; beyond, the digits of the angle itself run out. */
static inline void rnea_sincos(int n, const double *RNEA_RESTRICT angle, double *RNEA_RESTRICT sine,
                               double *RNEA_RESTRICT cosine)
{{
    for (int k = 0; k < n; ++k) {{
        const double shifted = RNEA_FMA(angle[k], {TWO_BY_PI!r}, {ROUND!r});
        const double turns = shifted - {ROUND!r};
        const double near = RNEA_FMA(turns, {-HALF_PI[1]!r}, RNEA_FMA(turns, {-HALF_PI[0]!r}, angle[k]));
        const double r = RNEA_FMA(turns, {-HALF_PI[2]!r}, near);
        const double s = r * r, ss = s * s;
        const double p = @SINE@;
        const double q = @COSINE@;
        const double sr = RNEA_FMA(r * s, p, r);
        const double cr = RNEA_FMA(ss, q, RNEA_FMA(s, -0.5, 1.0));
        uint64_t quarter, a, b, first, second;
        memcpy(&quarter, &shifted, 8);
        memcpy(&a, &sr, 8);
        memcpy(&b, &cr, 8);
        const uint64_t odd = (uint64_t)0 - (quarter & 1); /* a quarter turn exchanges them, half a turn changes the sign */
        first = ((b & odd) | (a & ~odd)) ^ ((quarter & 2) << 62);
        second = ((a & odd) | (b & ~odd)) ^ (((quarter + 1) & 2) << 62);
        memcpy(&sine[k], &first, 8);
        memcpy(&cosine[k], &second, 8);
    }}
}}
"""


def _polynomial(factors: Sequence[float]) -> str:
    text = repr(factors[-1])
    for factor in factors[-2::-1]:
        text = f"RNEA_FMA({text}, s, {factor!r})"
    return text


SOLVES = """
/* LU factor of a (n n numbers, row by row) with partial pivoting, in target: reciprocals of the pivots on the diagonal, then n
   row exchanges, the smallest and the largest pivot. */
static inline void rnea_factor(double *a, int n)
{
    double smallest = HUGE_VAL, largest = 0.0;
    for (int k = 0; k < n; ++k) {
        double best = -1.0;
        int row = k;
        for (int i = k; i < n; ++i) {
            const double size = fabs(a[i * n + k]);
            if (size > best) {
                best = size;
                row = i;
            }
        }
        a[n * n + k] = row;
        smallest = best < smallest ? best : smallest;
        largest = best > largest ? best : largest;
        for (int j = 0; row != k && j < n; ++j) {
            const double kept = a[k * n + j];
            a[k * n + j] = a[row * n + j];
            a[row * n + j] = kept;
        }
        const double pivot = a[k * n + k] = 1.0 / a[k * n + k];
        for (int i = k + 1; i < n; ++i) {
            const double minus = -(a[i * n + k] *= pivot);
            if (minus != 0.0)
                for (int j = k + 1; j < n; ++j)
                    a[i * n + j] = RNEA_FMA(minus, a[k * n + j], a[i * n + j]);
        }
    }
    a[n * n + n] = smallest;
    a[n * n + n + 1] = largest;
}

static inline void rnea_subtract(double *b, int m, int i, double minus, int k)
{
    if (minus != 0.0)
        for (int j = 0; j < m; ++j)
            b[i * m + j] = RNEA_FMA(minus, b[k * m + j], b[i * m + j]);
}

static inline void rnea_exchange(double *b, int m, int i, int k)
{
    for (int j = 0; i != k && j < m; ++j) {
        const double kept = b[i * m + j];
        b[i * m + j] = b[k * m + j];
        b[k * m + j] = kept;
    }
}

/* X of A X = B in target of b (n rows of m numbers), from rnea_factor(a, n); or of A^T X = B. */
static inline void rnea_backsolve(const double *a, double *b, int n, int m)
{
    for (int k = 0; k < n; ++k)
        rnea_exchange(b, m, k, (int)a[n * n + k]);
    for (int k = 0; k < n; ++k)
        for (int i = k + 1; i < n; ++i)
            rnea_subtract(b, m, i, -a[i * n + k], k);
    for (int k = n - 1; k >= 0; --k) {
        for (int j = 0; j < m; ++j)
            b[k * m + j] *= a[k * n + k];
        for (int i = 0; i < k; ++i)
            rnea_subtract(b, m, i, -a[i * n + k], k);
    }
}

static inline void rnea_backsolve_transposed(const double *a, double *b, int n, int m)
{
    for (int k = 0; k < n; ++k) {
        for (int j = 0; j < m; ++j)
            b[k * m + j] *= a[k * n + k];
        for (int i = k + 1; i < n; ++i)
            rnea_subtract(b, m, i, -a[k * n + i], k);
    }
    for (int k = n - 1; k >= 0; --k)
        for (int i = 0; i < k; ++i)
            rnea_subtract(b, m, i, -a[k * n + i], k);
    for (int k = n - 1; k >= 0; --k)
        rnea_exchange(b, m, k, (int)a[n * n + k]);
}
"""

PREAMBLE = PREAMBLE.replace("@SINE@", _polynomial(SINE)).replace("@COSINE@", _polynomial(COSINE))


def preamble(programs: Iterable[Program]) -> str:
    """Return what the functions of these programs call."""
    every = [one for program in programs for one in (program, program.iteration and program.iteration.program) if one]
    return PREAMBLE + (SOLVES if any(program.has_blocks for program in every) else "")


class Block(NamedTuple):
    """An argument: its name and how many numbers it has."""

    name: str
    size: int


def identifier(name: str) -> str:
    """Return the name if it is a valid function name in C and C++; InputError otherwise."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,62}", name):
        raise InputError(f"'{name}' is no name of a C function")
    return name


def arguments(program: Program, results: Sequence[str]) -> tuple[list[Block], list[Block]]:
    """Return inputs and outputs of the function; empty ones are omitted."""
    sizes = [_count(shape) for shape in program.outputs]
    blocks = (program.inputs.items(), zip(results, sizes, strict=True))
    inputs, outputs = ([Block(re.sub(r"\W+", "_", name).strip("_"), size) for name, size in some if size] for some in blocks)
    return inputs, outputs


def prototype(program: Program, name: str, results: Sequence[str]) -> str:
    """``void name(const double q[6], ..., double tau[6])``."""
    inputs, outputs = arguments(program, results)
    given = [f"const double {block.name}[{block.size}]" for block in inputs]
    return f"void {identifier(name)}({', '.join([*given, *(f'double {block.name}[{block.size}]' for block in outputs)])})"


def function(program: Program, name: str, results: Sequence[str]) -> str:
    """Return the definition, in as many static functions as needed; PREAMBLE must precede it.

    results : names of the outputs. They must not overlap the inputs.
    """
    writer = _Writer(program, results)
    parts, calls = [], []
    for k, steps in enumerate(writer.parts):
        body, used = writer.part(steps)
        parts.append(f"static void {name}_{k}({', '.join(writer.declared(used))})\n{{\n{body}\n}}\n")
        calls.append(f"    {name}_{k}({', '.join(used)});")
    work = [f"    double w[{writer.size}];"] if writer.size else []
    lines = [*work, *calls, *writer.untouched()]
    text = "\n".join(lines)
    idle = [block.name for block in writer.inputs if not re.search(rf"\b{block.name}\b", text)]
    body = "\n".join([*(f"    (void){name};" for name in idle), *lines])
    return "\n".join([*parts, f"{prototype(program, name, results)}\n{{\n{body}\n}}\n"])


def source(program: Program, name: str, results: Sequence[str]) -> str:
    """One file that compiles by itself."""
    return f"{preamble([program])}\n{prototype(program, name, results)};\n\n{function(program, name, results)}"


class _Writer:
    """Statements for steps. Values go from part to part, and from a "sincos" to their users, through slots in w."""

    def __init__(self, program: Program, results: Sequence[str]):
        steps = schedule(program, TOGETHER)
        self.parts = [steps[k:k + PART] for k in range(0, len(steps), PART)]
        self.inputs, self.outputs = arguments(program, results)
        inputs, outputs = _array_elements(self.inputs), _array_elements(self.outputs)
        self._results: dict[int, list[str]] = {}
        for target, number in zip(outputs, program.results, strict=True):
            self._results.setdefault(number, []).append(target)
        self._names = {number: inputs[node[1]] for number, node in program.nodes if node[0] == "input"}
        self._names |= {number: f"({float(node[1])!r})" for number, node in program.nodes if node[0] == "const"}
        self._given = set(self._names)
        self.size = 0
        self._home = {number: k for k, part in enumerate(self.parts) for step in part for number in step.results}
        self._sincos: dict[tuple[int, ...], int] = {}
        for step in (step for part in self.parts for step in part if step.op == "sincos"):
            self._sincos[step.operands] = self.size
            self._names |= {number: f"w[{self.size + k}]" for k, number in enumerate(step.results) if number != UNUSED}
            self.size += len(step.results)
        self._blocks: dict[int, tuple[int, int]] = {}  # of a factor or a solution: first number in w, rows
        for step in (step for part in self.parts for step in part if step.op in BLOCKS):
            n = isqrt(len(step.operands)) if step.op == "factor" else self._blocks[step.operands[0]][1]
            first = self.size + n * n + n if step.op == "factor" else self.size
            self._blocks[step.block] = self.size, n
            self._names |= {number: f"w[{first + k}]" for k, number in enumerate(step.results) if number != UNUSED}
            self.size = first + len(step.results)
        self._kept: set[int] = set()
        for k, part in enumerate(self.parts):
            abroad = {operand for step in part for operand in step.operands if self._home.get(operand, k) != k}
            for number in sorted(abroad - set(self._names)):
                self._names[number] = f"w[{self.size}]"
                self._kept.add(number)
                self.size += 1

    def part(self, steps: Iterable[Operation]) -> tuple[str, list[str]]:
        """Return the body of one function, and the names of the arrays that it uses."""
        lines, local = [], dict(self._names)
        for step in steps:
            values = [local[number] for number in step.operands if number in local]
            if step.op in BLOCKS:
                lines += self._solve(step, values)
            elif step.op == "sincos":
                start, count = self._sincos[step.operands], len(values)
                lines.append(f"    const double angle{start}[{count}] = {{{', '.join(values)}}};")
                lines.append(f"    rnea_sincos({count}, angle{start}, w + {start}, w + {start + count});")
            else:
                (number,) = step.results
                lines.append(f"    const double v{number} = {_STEPS[step.op].format(*values)};")
                local[number] = f"v{number}"
                if number in self._kept:
                    lines.append(f"    {self._names[number]} = v{number};")
            lines += [f"    {to} = {local[number]};" for number in step.results for to in self._results.get(number, [])]
        body = "\n".join(lines)
        used = set(re.findall(r"\b([A-Za-z_]\w*)(?=\[| \+ \d+[,)])", body))
        return body, [name for name in (*(block.name for block in (*self.inputs, *self.outputs)), "w") if name in used]

    def _solve(self, step: Operation, values: list[str]) -> list[str]:
        start, n = self._blocks[step.block]
        lines = [f"    w[{start + k}] = {value};" for k, value in enumerate(values)]
        if step.op == "factor":
            return [*lines, f"    rnea_factor(w + {start}, {n});"]
        return [*lines, f"    rnea_{step.op}(w + {self._blocks[step.operands[0]][0]}, w + {start}, {n}, {len(values) // n});"]

    def declared(self, used: Iterable[str]) -> list[str]:
        constant = {block.name for block in self.inputs}
        return [f"{'const ' if name in constant else ''}double *RNEA_RESTRICT {name}" for name in used]

    def untouched(self) -> list[str]:
        """Results that nothing computes: inputs and constants."""
        return [f"    {target} = {self._names[number]};" for number in self._results if number in self._given
                for target in self._results[number]]


def _array_elements(blocks: Iterable[Block]) -> list[str]:
    return [f"{block.name}[{k}]" for block in blocks for k in range(block.size)]


def _count(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count
