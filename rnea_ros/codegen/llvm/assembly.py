"""Program -> text of LLVM functions, over doubles or over vectors of doubles (several samples at once): the same steps.

One table from operation to instruction. No fast-math: the code computes what the schedule says, step by step; ``fmuladd`` is
one rounding where the processor can and two where it cannot.
"""

from __future__ import annotations

from math import isqrt

from ..ir.expression import BLOCKS
from ..ir.program import CALLS, UNUSED, Operation, Program, schedule
from . import linear_solve
from .sine_cosine import function_text
from .types import splat, suffix, type_of

PART = 1_000  # steps in one function
PART_WITH_SOLVES = 300  # where linear systems are solved: such programs are long, and short functions compile sooner
_ARITHMETIC = {"add": "fadd {T} {0}, {1}", "sub": "fsub {T} {0}, {1}", "mul": "fmul {T} {0}, {1}", "div": "fdiv {T} {0}, {1}",
               "neg": "fneg {T} {0}", "sqrt": "call {T} @llvm.sqrt.{S}({T} {0})",
               "fma": "call {T} @llvm.fmuladd.{S}({T} {0}, {T} {1}, {T} {2})",
               "max": "select {B} %c{number}, {T} {0}, {T} {1}"}
_NEGATIVE = {"fms": 2, "fnma": 0}  # which operand of a fused step has a minus sign


def kernel_text(program: Program, samples: int, lanes: int) -> tuple[str, int]:
    """(text, size of w) of ``void steps(x, y, w)``, which computes one sample, or `samples` = `lanes` of them at once.

    x, y, w : arrays of doubles or vectors: inputs, results, workspace, 64 bytes aligned
    lanes   : doubles in a vector of the machine; the sines of one sample are computed so many at a time

    A long program is cut into functions of PART steps: the time to compile grows faster than the length of a function, and
    long ones do not run faster.
    """
    iterated = [] if program.iteration is None else [("iteration.", program.iteration.program)]
    written = {prefix: _functions(one, samples, lanes, prefix) for prefix, one in (("", program), *iterated)}
    used = {op for _, ops, _ in written.values() for op in ops}
    solves = not used.isdisjoint(BLOCKS)
    lines = sorted({*_declarations(samples), *_declarations(lanes), *(linear_solve.declarations(samples) if solves else ())})
    lines += [linear_solve.function_text(samples)] if solves else []
    lines += [function_text(lanes)] if "sincos" in used else []
    lines += [_one_by_one(name, samples) for name in CALLS if name in used and samples > 1]
    lines += [line for functions, _, _ in written.values() for line in functions]
    return "\n".join(lines) + "\n", max(size for _, _, size in written.values())


def _functions(program: Program, samples: int, lanes: int, prefix: str) -> tuple[list[str], set[str], int]:
    """Lines of ``void steps(x, y, w)`` and of its parts, operations in it, and the size of w."""
    steps = schedule(program, lanes)
    size = min(PART, PART_WITH_SOLVES) if program.has_blocks else PART
    parts = [steps[k:k + size] for k in range(0, len(steps), size)]
    writer, lines = _Writer(program, parts, samples, lanes), []
    for k, part in enumerate(parts):
        lines += [f"define internal void @{prefix}part{k}(ptr noalias %x, ptr noalias %y, ptr noalias %w) noinline {{",
                  *writer.part(part), "  ret void", "}"]
    lines += [f"define internal void @{prefix}steps(ptr noalias %x, ptr noalias %y, ptr noalias %w) noinline {{",
              *(f"  call void @{prefix}part{k}(ptr %x, ptr %y, ptr %w)" for k in range(len(parts))), *writer.untouched(),
              "  ret void", "}"]
    return lines, {step.op for step in steps}, writer.size


def _declarations(lanes: int) -> set[str]:
    T, S = type_of(lanes), suffix(lanes)
    return {f"declare {T} @llvm.fmuladd.{S}({T}, {T}, {T})", f"declare {T} @llvm.sqrt.{S}({T})"} | {
        f"declare double @{name}(double)" for name in ("sin", "cos", *CALLS)}


def _one_by_one(name: str, lanes: int) -> str:
    """Return calls of a C library function for each lane of a vector."""
    T = type_of(lanes)
    lines = [f"define internal {T} @{name}.{suffix(lanes)}({T} %v) noinline {{"]
    for k in range(lanes):
        lines += [f"  %x{k} = extractelement {T} %v, i64 {k}", f"  %y{k} = call double @{name}(double %x{k})",
                  f"  %r{k} = insertelement {T} {f'%r{k - 1}' if k else 'poison'}, double %y{k}, i64 {k}"]
    return "\n".join([*lines, f"  ret {T} %r{lanes - 1}", "}"])


class _Writer:
    """Instructions for steps. Values go from part to part, and from a "sincos" to their users, through slots in w."""

    def __init__(self, program: Program, parts: list[list[Operation]], samples: int, lanes: int):
        self.T, self.S, self.samples, self.lanes = type_of(samples), suffix(samples), samples, lanes
        self.slots: dict[int, list[int]] = {}
        for slot, number in enumerate(program.results):
            self.slots.setdefault(number, []).append(slot)
        self.constants = {number: splat(node[1], samples) for number, node in program.nodes if node[0] == "const"}
        self.home = {number: k for k, part in enumerate(parts) for step in part for number in step.results}
        self.location = {number: ("x", node[1]) for number, node in program.nodes if node[0] == "input"}
        self.starts: dict[tuple[int, ...], int] = {}  # of a "sincos"
        self.size = 0
        for step in (step for part in parts for step in part if step.op == "sincos"):
            for k, number in enumerate(step.results):
                half, lane = divmod(k, len(step.operands))
                self.location[number] = ("w", self.size + half * lanes + lane)
            self.starts[step.operands] = self.size
            self.size += 2 * lanes
        self.blocks: dict[int, tuple[int, int]] = {}  # of a factor or a solution: first number in w, rows
        for step in (step for part in parts for step in part if step.op in BLOCKS):
            self._reserve(step)
        for k, part in enumerate(parts):
            for operand in sorted({operand for step in part for operand in step.operands}):
                if self.home.get(operand, k) != k and operand not in self.location:
                    self.location[operand] = ("w", self.size)
                    self.size += 1

    def part(self, steps: list[Operation]) -> list[str]:
        """Return the body of one function."""
        self.lines: list[str] = []
        self.names = dict(self.constants)  # what this function knows already
        for step in steps:
            if step.op == "sincos":
                self._sincos(step)
            elif step.op in BLOCKS:
                self._solve(step)
            else:
                (number,) = step.results
                instruction = self._instruction(step.op, [self._value(k) for k in step.operands], number)
                self.lines.append(f"  %v{number} = {instruction}")
                self.names[number] = f"%v{number}"
                if number in self.location:
                    self._store(*self.location[number], number)
            for number in step.results:
                for slot in self.slots.get(number, []):
                    self._store("y", slot, number)
        return self.lines

    def _reserve(self, step: Operation) -> None:
        """Reserve the numbers of w that a factor or a solution takes; see linear_solve.py."""
        if step.op == "factor":
            n = isqrt(len(step.operands))
            size = linear_solve.factor_size(n)
            slots = [size - 2, size - 1]
        else:
            n = self.blocks[step.operands[0]][1]
            columns = len(step.results) // n
            size = n * (columns + linear_solve.PADDING)
            slots = [i * (columns + linear_solve.PADDING) + k for i in range(n) for k in range(columns)]
        self.blocks[step.block] = self.size, n
        self.location |= {number: ("w", self.size + slot) for slot, number in zip(slots, step.results, strict=True)
                        if number != UNUSED}
        self.size += size

    def _solve(self, step: Operation) -> None:
        """Store the operands, rows padded with zeros, and call the function, of several samples one after the other."""
        start, n = self.blocks[step.block]
        operands = step.operands if step.op == "factor" else step.operands[1:]
        columns = len(operands) // n
        length = columns + linear_solve.PADDING
        base, size = f"%b{step.block}", 8 * self.samples * n * length
        self.lines += [f"  {base} = getelementptr {self.T}, ptr %w, i64 {start}",
                       f"  call void @llvm.memset.p0.i64(ptr align 8 {base}, i8 0, i64 {size}, i1 false)"]
        for k, number in enumerate(operands):
            value = self._value(number)
            if value != splat(0.0, self.samples):
                i, j = divmod(k, columns)
                target = f"{base}.{k}"
                self.lines += [f"  {target} = getelementptr {self.T}, ptr {base}, i64 {i * length + j}",
                               f"  store {self.T} {value}, ptr {target}, align 8"]
        blocks = [(base, start)] if step.op == "factor" else [(f"{base}.f", self.blocks[step.operands[0]][0]), (base, start)]
        sizes = f"i64 {n}" if step.op == "factor" else f"i64 {n}, i64 {columns}"
        for lane in range(self.samples):
            pointers = []
            for name, first in blocks:
                pointers.append(f"ptr {name}.lane{lane}")
                self.lines.append(f"  {name}.lane{lane} = getelementptr double, ptr %w, i64 {first * self.samples + lane}")
            self.lines.append(f"  call void @{step.op}({', '.join(pointers)}, {sizes})")

    def _instruction(self, op: str, values: list[str], number: int) -> str:
        if op in _NEGATIVE:
            k = _NEGATIVE[op]
            self.lines.append(f"  %n{number} = fneg {self.T} {values[k]}")
            values[k], op = f"%n{number}", "fma"
        if op == "max":
            self.lines.append(f"  %c{number} = fcmp ogt {self.T} {values[0]}, {values[1]}")
        if op in CALLS:
            return f"call {self.T} @{op if self.samples == 1 else f'{op}.{self.S}'}({self.T} {values[0]})"
        return _ARITHMETIC[op].format(*values, T=self.T, S=self.S, B=self.T.replace("double", "i1"), number=number)

    def _sincos(self, step: Operation) -> None:
        """All angles of one sample in a vector; or one angle of all samples after the other."""
        start, V, angles = self.starts[step.operands], type_of(self.lanes), [self._value(number) for number in step.operands]
        if self.samples > 1:
            for k, angle in enumerate(angles):
                self._sincos_of(angle, V, start + k)
            return
        packed = "zeroinitializer"
        for k, angle in enumerate(angles):
            self.lines.append(f"  %g{start + k} = insertelement {V} {packed}, double {angle}, i64 {k}")
            packed = f"%g{start + k}"
        self._sincos_of(packed, V, start)

    def _sincos_of(self, angle: str, V: str, slot: int) -> None:
        self.lines.append(f"  %sc{slot} = call {{{V}, {V}}} @sincos({V} {angle})")
        for k in (0, 1):
            self.lines += [f"  %sc{slot}.{k} = extractvalue {{{V}, {V}}} %sc{slot}, {k}",
                           f"  %scp{slot}.{k} = getelementptr {self.T}, ptr %w, i64 {slot + k * self.lanes}",
                           f"  store {V} %sc{slot}.{k}, ptr %scp{slot}.{k}, align 8"]

    def untouched(self) -> list[str]:
        """Return the stores of results that are not computed: inputs and constants."""
        self.lines, self.names = [], dict(self.constants)
        for number, slots in self.slots.items():
            for slot in slots if number not in self.home else []:
                self._store("y", slot, number)
        return self.lines

    def _value(self, number: int) -> str:
        if number not in self.names:
            array, slot = self.location[number]
            self.lines.append(f"  %p{number} = getelementptr {self.T}, ptr %{array}, i64 {slot}")
            self.lines.append(f"  %v{number} = load {self.T}, ptr %p{number}, align 8")
            self.names[number] = f"%v{number}"
        return self.names[number]

    def _store(self, array: str, slot: int, number: int) -> None:
        value = self._value(number)
        self.lines.append(f"  %{array}{slot} = getelementptr {self.T}, ptr %{array}, i64 {slot}")
        self.lines.append(f"  store {self.T} {value}, ptr %{array}{slot}, align 8")
