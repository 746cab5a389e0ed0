"""Program -> text of LLVM functions, over doubles or over vectors of doubles (several samples at once): the same steps.

One table from operation to instruction. No fast-math: the code computes what the schedule says, step by step; ``fmuladd`` is
one rounding where the processor can and two where it cannot.

Sines and cosines of a vector of angles at once are right to 1e-15 up to NEAR: the angle less the nearest multiple of pi/2,
which is taken off in three pieces whose products with up to 17 bits are exact; then polynomials over [-pi/4, pi/4], through
the Chebyshev points in r^2, off by less than 2e-17. Beyond NEAR, and for what is no number, every lane asks the C library.

Linear systems have LU factors with partial pivoting, in loops:

    @factor(a, n)               a: n rows of n entries, then n row exchanges, the smallest and the largest pivot
    @backsolve(a, b, n, m)      b: n rows of m entries, which X of A X = B replaces
    @backsolve_transposed       the same of A^T X = B

Rows are longer than their entries by PADDING zeros, so that the innermost loops take WIDTH entries at a time. On the diagonal
are the reciprocals of the pivots. Of several samples at once, the numbers of one lie `stride` apart: lanes pivot differently,
so each is solved by itself.

Many samples are computed as many at a time as a vector has lanes, in tiles that are turned from rows into lanes and back.
``batch(in, strides, out, work, from, to)`` computes samples `from` to `to`; answers whether all numbers in and out are finite:

    in, out : for each block of inputs, where its first row is; for each result, where its rows go, one after the other
    strides : for each block and each result, how many doubles on the next row is; 0: one row for all; below zero: there are no
              rows but tiles already, whose vectors are copied, and the negative number of vectors from a tile to the next
    work        : workspace of `work` doubles, aligned to 64 bytes, one for each thread

The last tile repeats the last sample in the lanes that are left over.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from math import isqrt

from .program import BLOCKS, CALLS, UNUSED, Operation, Program, schedule

# ------------------------------------------------------------------ types


def type_of(lanes: int) -> str:
    """Return the LLVM type of a number, or of a vector of `lanes` numbers."""
    return "double" if lanes == 1 else f"<{lanes} x double>"


def suffix(lanes: int) -> str:
    """Return the suffix of intrinsic function names."""
    return "f64" if lanes == 1 else f"v{lanes}f64"


def splat(value: float, lanes: int) -> str:
    """Return a constant by its bit pattern, since LLVM takes only exactly representable decimals."""
    bits = f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    return bits if lanes == 1 else f"<{', '.join([f'double {bits}'] * lanes)}>"


# ------------------------------------------------------------------ sines and cosines


NEAR = 1e5
HALF_PI = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)  # 33, 33 and 53 bits
SINE = (-0.16666666666666666, 0.008333333333330948, -0.0001984126983675857, 2.755731610255057e-06, -2.5051131844614108e-08,
        1.5918129266803394e-10)  # sin r = r + r^3 (SINE in r^2)
COSINE = (0.041666666666666664, -0.0013888888888887398, 2.4801587298765686e-05, -2.7557317271728623e-07, 2.087614626815952e-09,
          -1.1382632407965617e-11)  # cos r = 1 - r^2 / 2 + r^4 (COSINE in r^2)
TWO_BY_PI = 0.6366197723675814
ROUND = 1.5 * 2.0**52  # added to a number, leaves its nearest integer in the lowest bits


def sincos_text(lanes: int) -> str:
    """``{sines, cosines} sincos(angles)`` of vectors."""
    V, W, B, S = type_of(lanes), f"<{lanes} x i64>", f"<{lanes} x i1>", suffix(lanes)

    def fma(name: str, a: str, b: str, c: str) -> str:
        return f"  %{name} = call {V} @llvm.fmuladd.{S}({V} {a}, {V} {b}, {V} {c})"

    def constant(x: float) -> str:
        return splat(x, lanes)

    def whole(x: int) -> str:
        return f"<{', '.join([f'i64 {x}'] * lanes)}>"

    def polynomial(name: str, factors: tuple[float, ...]) -> list[str]:
        names = [constant(factors[-1]), *(f"%{name}{k}" for k in range(len(factors) - 1))]
        return [fma(f"{name}{k}", names[k], "%s", constant(factor)) for k, factor in enumerate(factors[-2::-1])]

    sine, cosine = f"%p{len(SINE) - 2}", f"%c{len(COSINE) - 2}"
    lines = [f"declare {V} @llvm.fabs.{S}({V})", f"declare i1 @llvm.vector.reduce.and.v{lanes}i1({B})",
             f"define internal {{{V}, {V}}} @sincos({V} %x) noinline {{",
             f"  %size = call {V} @llvm.fabs.{S}({V} %x)", f"  %near = fcmp ole {V} %size, {constant(NEAR)}",
             f"  %all = call i1 @llvm.vector.reduce.and.v{lanes}i1({B} %near)", "  br i1 %all, label %quick, label %slow",
             "quick:", fma("shifted", "%x", constant(TWO_BY_PI), constant(ROUND)),
             f"  %k = fsub {V} %shifted, {constant(ROUND)}", f"  %bits = bitcast {V} %shifted to {W}"]
    for j, piece in enumerate(HALF_PI):
        lines.append(fma(f"r{j}", "%k", constant(-piece), f"%r{j - 1}" if j else "%x"))
    lines += [f"  %s = fmul {V} %r2, %r2", *polynomial("p", SINE), *polynomial("c", COSINE),
              f"  %rs = fmul {V} %r2, %s", fma("sine", "%rs", sine, "%r2"),
              fma("flat", "%s", constant(-0.5), constant(1.0)), f"  %ss = fmul {V} %s, %s",
              fma("cosine", "%ss", cosine, "%flat"),
              # an odd number of quarter turns exchanges them, two of them change the sign
              f"  %low = and {W} %bits, {whole(1)}", f"  %odd = icmp ne {W} %low, {whole(0)}",
              f"  %a = select {B} %odd, {V} %cosine, {V} %sine", f"  %b = select {B} %odd, {V} %sine, {V} %cosine",
              f"  %next = add {W} %bits, {whole(1)}"]
    for name, source, value in (("sin", "%bits", "%a"), ("cos", "%next", "%b")):
        lines += [f"  %{name}.two = and {W} {source}, {whole(2)}", f"  %{name}.sign = shl {W} %{name}.two, {whole(62)}",
                  f"  %{name}.bits = bitcast {V} {value} to {W}", f"  %{name}.signed = xor {W} %{name}.bits, %{name}.sign",
                  f"  %{name}.value = bitcast {W} %{name}.signed to {V}"]
    lines += _pair(V, "quick", "%sin.value", "%cos.value") + ["slow:"]
    for k in range(lanes):
        lines.append(f"  %x{k} = extractelement {V} %x, i64 {k}")
        for name in ("sin", "cos"):
            lines += [f"  %{name}{k} = call double @{name}(double %x{k})",
                      f"  %{name}.{k} = insertelement {V} {f'%{name}.{k - 1}' if k else 'poison'}, double %{name}{k}, i64 {k}"]
    lines += _pair(V, "slow", f"%sin.{lanes - 1}", f"%cos.{lanes - 1}")
    return "\n".join([*lines, "}"])


def _pair(V: str, name: str, sine: str, cosine: str) -> list[str]:
    return [f"  %{name}.first = insertvalue {{{V}, {V}}} poison, {V} {sine}, 0",
            f"  %{name}.pair = insertvalue {{{V}, {V}}} %{name}.first, {V} {cosine}, 1", f"  ret {{{V}, {V}}} %{name}.pair"]


# ------------------------------------------------------------------ linear systems


WIDTH = 4
PADDING = WIDTH - 1


def factor_size(n: int) -> int:
    """Return how many numbers @factor reads and writes."""
    return n * (n + PADDING) + n + 2


def solver_text(stride: int) -> str:
    """Return the three functions, for numbers that lie `stride` apart."""
    width = WIDTH if stride == 1 else 1
    return "\n".join([_factor(stride, width), *(_backsolve(stride, width, transposed) for transposed in (False, True))])


def declarations(stride: int) -> set[str]:
    """Return what the functions call."""
    T, S = (type_of(WIDTH), suffix(WIDTH)) if stride == 1 else (type_of(1), suffix(1))
    return {"declare double @llvm.fabs.f64(double)", f"declare {T} @llvm.fmuladd.{S}({T}, {T}, {T})",
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"}


class _Text:
    """Lines of one function; loops carry values by phi nodes."""

    def __init__(self, stride: int, width: int):
        self.lines: list[str] = []
        self.block, self.stride, self.width, self._count = "entry", stride, width, 0

    def let(self, right: str) -> str:
        """Return a new name for the result of an instruction."""
        self._count += 1
        self.lines.append(f"  %t{self._count} = {right}")
        return f"%t{self._count}"

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.block = name

    def at(self, base: str, index: str) -> str:
        """Return the address of a number."""
        if self.stride != 1:
            index = self.let(f"mul i64 {index}, {self.stride}")
        return self.let(f"getelementptr double, ptr {base}, i64 {index}")

    def entry(self, base: str, row: str, length: str, column: str) -> str:
        """Return the address of an entry of rows of a length."""
        return self.at(base, self.let(f"add i64 {self.let(f'mul i64 {row}, {length}')}, {column}"))

    def load(self, address: str, kind: str = "double") -> str:
        return self.let(f"load {kind}, ptr {address}, align 8")

    def store(self, value: str, address: str, kind: str = "double") -> None:
        self.lines.append(f"  store {kind} {value}, ptr {address}, align 8")

    def loop(self, first: str, end: str, body: Callable[..., tuple[str, ...]], step: int = 1, down: bool = False,
             **carried: tuple[str, str]) -> list[str]:
        """Write a loop over k from first to end - 1, or from end - 1 to first; carried: name -> (type, initial value).

        Returns the last values; body takes k and the carried values and returns the next ones.
        """
        self._count += 1
        name, before = f"l{self._count}", self.block
        k, names = f"%{name}.k", [f"%{name}.{one}" for one in carried]
        start = self.let(f"sub i64 {end}, 1") if down else first
        self.lines.append(f"  br label %{name}.head")
        self.label(f"{name}.head")
        line = len(self.lines)
        more = self.let(f"icmp {'sge' if down else 'slt'} i64 {k}, {first if down else end}")
        self.lines.append(f"  br i1 {more}, label %{name}.body, label %{name}.end")
        self.label(f"{name}.body")
        values = body(k, *names)
        following = self.let(f"{'sub' if down else 'add'} i64 {k}, {step}")
        self.lines += [f"  br label %{name}.head"]
        phis = [f"  {k} = phi i64 [ {start}, %{before} ], [ {following}, %{self.block} ]"]
        phis += [f"  {one} = phi {kind} [ {value}, %{before} ], [ {after}, %{self.block} ]"
                 for one, (kind, value), after in zip(names, carried.values(), values or (), strict=True)]
        self.lines[line:line] = phis
        self.label(f"{name}.end")
        return names

    def when(self, condition: str, body: Callable[[], None]) -> None:
        self._count += 1
        name = f"i{self._count}"
        self.lines.append(f"  br i1 {condition}, label %{name}.then, label %{name}.end")
        self.label(f"{name}.then")
        body()
        self.lines.append(f"  br label %{name}.end")
        self.label(f"{name}.end")

    def subtract(self, base: str, length: str, target: str, factor: str, source_base: str, source: str, first: str,
                 end: str) -> None:
        """Row `target` of rows of a length, from column `first` to `end`, less factor times row `source`."""
        T, width = type_of(self.width), self.width
        minus = self.let(f"fneg double {factor}")
        if width > 1:
            one = self.let(f"insertelement {T} poison, double {minus}, i64 0")
            minus = self.let(f"shufflevector {T} {one}, {T} poison, <{width} x i32> zeroinitializer")

        def body(j: str) -> tuple[str, ...]:
            to = self.entry(base, target, length, j)
            value = self.load(self.entry(source_base, source, length, j), T)
            self.store(self.let(f"call {T} @llvm.fmuladd.{suffix(width)}({T} {minus}, {T} {value}, {T} {self.load(to, T)})"),
                       to, T)
            return ()

        def rows() -> None:
            self.loop(first, end, body, width)

        self.when(self.let(f"fcmp une double {factor}, 0.0"), rows)

    def exchange(self, base: str, length: str, one: str, other: str, end: str) -> None:
        """Exchange two rows."""
        T = type_of(self.width)

        def body(j: str) -> tuple[str, ...]:
            here, there = (self.entry(base, row, length, j) for row in (one, other))
            a, b = self.load(here, T), self.load(there, T)
            self.store(b, here, T)
            self.store(a, there, T)
            return ()

        def rows() -> None:
            self.loop("0", end, body, self.width)

        self.when(self.let(f"icmp ne i64 {one}, {other}"), rows)

    def scale(self, base: str, length: str, row: str, factor: str, end: str) -> None:
        """Multiply a row."""
        T, width = type_of(self.width), self.width
        if width > 1:
            one = self.let(f"insertelement {T} poison, double {factor}, i64 0")
            factor = self.let(f"shufflevector {T} {one}, {T} poison, <{width} x i32> zeroinitializer")

        def body(j: str) -> tuple[str, ...]:
            target = self.entry(base, row, length, j)
            self.store(self.let(f"fmul {T} {self.load(target, T)}, {factor}"), target, T)
            return ()

        self.loop("0", end, body, width)


def _factor(stride: int, width: int) -> str:
    t = _Text(stride, width)
    length = t.let(f"add i64 %n, {PADDING}")
    swaps = t.let(f"mul i64 %n, {length}")

    def step(k: str, smallest: str, largest: str) -> tuple[str, ...]:
        def search(i: str, best: str, row: str) -> tuple[str, ...]:
            size = t.let(f"call double @llvm.fabs.f64(double {t.load(t.entry('%a', i, length, k))})")
            larger = t.let(f"fcmp ogt double {size}, {best}")
            return (t.let(f"select i1 {larger}, double {size}, double {best}"),
                    t.let(f"select i1 {larger}, i64 {i}, i64 {row}"))

        best, row = t.loop(k, "%n", search, best=("double", "-1.0"), row=("i64", k))
        t.store(row, t.at("%a", t.let(f"add i64 {swaps}, {k}")), "i64")
        less = t.let(f"fcmp olt double {best}, {smallest}")
        smallest = t.let(f"select i1 {less}, double {best}, double {smallest}")
        more = t.let(f"fcmp ogt double {best}, {largest}")
        largest = t.let(f"select i1 {more}, double {best}, double {largest}")
        t.exchange("%a", length, k, row, "%n")
        diagonal = t.entry("%a", k, length, k)
        pivot = t.let(f"fdiv double 1.0, {t.load(diagonal)}")
        t.store(pivot, diagonal)
        after = t.let(f"add i64 {k}, 1")

        def eliminate(i: str) -> tuple[str, ...]:
            target = t.entry("%a", i, length, k)
            factor = t.let(f"fmul double {t.load(target)}, {pivot}")
            t.store(factor, target)
            t.subtract("%a", length, i, factor, "%a", k, after, "%n")
            return ()

        t.loop(after, "%n", eliminate)
        return smallest, largest

    smallest, largest = t.loop("0", "%n", step, smallest=("double", "0x7FF0000000000000"), largest=("double", "0.0"))
    for k, value in enumerate((smallest, largest)):
        t.store(value, t.at("%a", t.let(f"add i64 {t.let(f'add i64 {swaps}, %n')}, {k}")))
    head = "define internal void @factor(ptr noalias %a, i64 %n) noinline {"
    return "\n".join([head, "entry:", *t.lines, "  ret void", "}"])


def _backsolve(stride: int, width: int, transposed: bool) -> str:
    t = _Text(stride, width)
    length, rows = t.let(f"add i64 %n, {PADDING}"), t.let(f"add i64 %m, {PADDING}")
    swaps = t.let(f"mul i64 %n, {length}")

    def swap(k: str) -> tuple[str, ...]:
        other = t.load(t.at("%a", t.let(f"add i64 {swaps}, {k}")), "i64")
        t.exchange("%b", rows, k, other, "%m")
        return ()

    def divided(k: str) -> None:
        t.scale("%b", rows, k, t.load(t.entry("%a", k, length, k)), "%m")

    def reduce(i: str, k: str) -> tuple[str, ...]:
        factor = t.load(t.entry("%a", k, length, i) if transposed else t.entry("%a", i, length, k))
        t.subtract("%b", rows, i, factor, "%b", k, "0", "%m")
        return ()

    def below(k: str) -> None:
        t.loop(t.let(f"add i64 {k}, 1"), "%n", lambda i: reduce(i, k))

    def above(k: str) -> None:
        t.loop("0", k, lambda i: reduce(i, k))

    def forward(k: str) -> tuple[str, ...]:
        if transposed:
            divided(k)
        below(k)
        return ()

    def backward(k: str) -> tuple[str, ...]:
        if not transposed:
            divided(k)
        above(k)
        return ()

    if not transposed:
        t.loop("0", "%n", swap)
    t.loop("0", "%n", forward)
    t.loop("0", "%n", backward, down=True)
    if transposed:
        t.loop("0", "%n", swap, down=True)
    name = "backsolve_transposed" if transposed else "backsolve"
    return "\n".join([f"define internal void @{name}(ptr noalias %a, ptr noalias %b, i64 %n, i64 %m) noinline {{", "entry:",
                      *t.lines, "  ret void", "}"])


# ------------------------------------------------------------------ programs


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
    lines = sorted({*_declarations(samples), *_declarations(lanes), *(declarations(samples) if solves else ())})
    lines += [solver_text(samples)] if solves else []
    lines += [sincos_text(lanes)] if "sincos" in used else []
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
        """Reserve the numbers of w that a factor or a solution takes."""
        if step.op == "factor":
            n = isqrt(len(step.operands))
            size = factor_size(n)
            slots = [size - 2, size - 1]
        else:
            n = self.blocks[step.operands[0]][1]
            columns = len(step.results) // n
            size = n * (columns + PADDING)
            slots = [i * (columns + PADDING) + k for i in range(n) for k in range(columns)]
        self.blocks[step.block] = self.size, n
        self.location |= {number: ("w", self.size + slot) for slot, number in zip(slots, step.results, strict=True)
                        if number != UNUSED}
        self.size += size

    def _solve(self, step: Operation) -> None:
        """Store the operands, rows padded with zeros, and call the function, of several samples one after the other."""
        start, n = self.blocks[step.block]
        operands = step.operands if step.op == "factor" else step.operands[1:]
        columns = len(operands) // n
        length = columns + PADDING
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


# ------------------------------------------------------------------ many samples


def batch_text(program: Program, lanes: int) -> tuple[str, int]:
    """(text, doubles of workspace)."""
    steps, size = kernel_text(program, lanes, lanes)
    V, ins, outs = type_of(lanes), list(program.inputs.values()), [math.prod(shape) for shape in program.outputs]
    declared = ["declare i64 @llvm.umin.i64(i64, i64)", "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
                f"declare i1 @llvm.vector.reduce.and.v{lanes}i1(<{lanes} x i1>)"]
    lines = [line for line in declared if line not in steps]
    lines += [_take(size, lanes) for size in sorted({*ins})] + [_give(size, lanes) for size in sorted({*outs})]
    lines += ["define i64 @batch(ptr %in, ptr %strides, ptr %out, ptr %work, i64 %from, i64 %to) {", "entry:",
              f"  %y = getelementptr {V}, ptr %work, i64 {sum(ins)}",
              f"  %w = getelementptr {V}, ptr %work, i64 {sum(ins) + sum(outs)}",
              "  %last = sub i64 %to, 1", "  %any = icmp ult i64 %from, %to", "  br i1 %any, label %tile, label %done",
              "tile:", "  %first = phi i64 [ %from, %entry ], [ %next, %tile ]",
              f"  %bad = phi {V} [ zeroinitializer, %entry ], [ %bad{len(ins) + len(outs)}, %tile ]",
              f"  %bad0 = fadd {V} %bad, zeroinitializer"]
    for k, columns in enumerate(ins):
        lines += [*_entry("in", "ptr", k), *_entry("strides", "i64", k),
                  f"  %x{k} = getelementptr {V}, ptr %work, i64 {sum(ins[:k])}",
                  f"  %bad{k + 1} = call {V} @take{columns}(ptr %in{k}, i64 %strides{k}, i64 %first, i64 %last, ptr %x{k}, "
                  f"{V} %bad{k})"]
    lines.append("  call void @steps(ptr %work, ptr %y, ptr %w)")
    for k, columns in enumerate(outs):
        lines += [*_entry("out", "ptr", k), *_entry("strides", "i64", len(ins) + k),
                  f"  %y{k} = getelementptr {V}, ptr %y, i64 {sum(outs[:k])}",
                  f"  %bad{len(ins) + k + 1} = call {V} @give{columns}(ptr %out{k}, i64 %strides{len(ins) + k}, i64 %first, "
                  f"i64 %last, ptr %y{k}, {V} %bad{len(ins) + k})"]
    lines += [f"  %next = add i64 %first, {lanes}", "  %more = icmp ult i64 %next, %to",
              "  br i1 %more, label %tile, label %done", "done:",
              f"  %found = phi {V} [ zeroinitializer, %entry ], [ %bad{len(ins) + len(outs)}, %tile ]",
              f"  %sound = fcmp ord {V} %found, zeroinitializer",
              f"  %all = call i1 @llvm.vector.reduce.and.v{lanes}i1(<{lanes} x i1> %sound)", "  %answer = zext i1 %all to i64",
              "  ret i64 %answer", "}"]
    return steps + "\n".join(lines) + "\n", (sum(ins) + sum(outs) + size) * lanes


def _entry(table: str, kind: str, k: int) -> list[str]:
    return [f"  %{table}{k}.at = getelementptr {kind}, ptr %{table}, i64 {k}",
            f"  %{table}{k} = load {kind}, ptr %{table}{k}.at"]


def _take(columns: int, lanes: int) -> str:
    """Rows into lanes; adds to `bad` zero times each number, which is NaN if the number is not finite."""
    V, bad = type_of(lanes), "%bad"
    lines = [f"define internal {V} @take{columns}(ptr %rows, i64 %stride, i64 %first, i64 %last, ptr %x, {V} %bad) "
             "noinline {", *_copied("%x", "%tile", columns, lanes, V)]
    for k in range(lanes):
        lines += [*_row(k), f"  %o{k} = mul i64 %i{k}, %stride", f"  %row{k} = getelementptr double, ptr %rows, i64 %o{k}"]
    for start in range(0, columns, lanes):
        rows = []
        for k in range(lanes):
            value = "zeroinitializer"
            for j, size in _pieces(min(lanes, columns - start)):
                name, T = f"t{start}.{k}.{j}", type_of(size)
                lines += [f"  %{name}.at = getelementptr double, ptr %row{k}, i64 {start + j}",
                          f"  %{name} = load {T}, ptr %{name}.at, align 8", *_put(name, value, j, size, lanes)]
                value = f"%{name}.in"
            rows.append(value)
        more, vectors = _transposed(rows, f"x{start}", lanes)
        lines += more
        for slot, vector in zip(range(start, columns), vectors, strict=False):
            lines += [f"  %slot{slot} = getelementptr {V}, ptr %x, i64 {slot}",
                      f"  store {V} {vector}, ptr %slot{slot}, align 64",
                      f"  %zero{slot} = fmul {V} {vector}, zeroinitializer", f"  %bad{slot} = fadd {V} {bad}, %zero{slot}"]
            bad = f"%bad{slot}"
    return "\n".join([*lines, f"  ret {V} {bad}", "}"])


def _give(columns: int, lanes: int) -> str:
    """Lanes into rows; adds to `bad` as above."""
    V, bad = type_of(lanes), "%bad"
    lines = [f"define internal {V} @give{columns}(ptr %rows, i64 %stride, i64 %first, i64 %last, ptr %y, {V} %bad) "
             "noinline {", *_copied("%tile", "%y", columns, lanes, V)]
    for k in range(lanes):
        lines += [*_row(k), f"  %o{k} = mul i64 %i{k}, {columns}", f"  %row{k} = getelementptr double, ptr %rows, i64 %o{k}"]
    for start in range(0, columns, lanes):
        width = min(lanes, columns - start)
        vectors = ["zeroinitializer"] * lanes
        for j in range(width):
            lines += [f"  %slot{start + j} = getelementptr {V}, ptr %y, i64 {start + j}",
                      f"  %v{start + j} = load {V}, ptr %slot{start + j}, align 64",
                      f"  %zero{start + j} = fmul {V} %v{start + j}, zeroinitializer",
                      f"  %bad{start + j} = fadd {V} {bad}, %zero{start + j}"]
            bad = f"%bad{start + j}"
            vectors[j] = f"%v{start + j}"
        more, rows = _transposed(vectors, f"y{start}", lanes)
        lines += more
        for k, row in enumerate(rows):
            for j, size in _pieces(width):
                name, mask = f"t{start}.{k}.{j}", ", ".join(f"i32 {j + m}" for m in range(size))
                piece = (f"shufflevector {V} {row}, {V} {row}, <{size} x i32> <{mask}>" if size > 1 else
                         f"extractelement {V} {row}, i64 {j}")
                lines += [f"  %{name} = {piece}", f"  %{name}.at = getelementptr double, ptr %row{k}, i64 {start + j}",
                          f"  store {type_of(size)} %{name}, ptr %{name}.at, align 8"]
    return "\n".join([*lines, f"  ret {V} {bad}", "}"])


def _copied(to: str, source: str, columns: int, lanes: int, V: str) -> list[str]:
    """Copy the vectors of a tile and return, if the stride is below zero; their numbers are not checked."""
    return ["  %is_tile = icmp slt i64 %stride, 0", "  br i1 %is_tile, label %copy, label %turn", "copy:",
            "  %distance = sub i64 0, %stride", "  %offset = mul i64 %first, %distance",
            "  %tile = getelementptr double, ptr %rows, i64 %offset",
            f"  call void @llvm.memcpy.p0.p0.i64(ptr align 8 {to}, ptr align 8 {source}, i64 {8 * columns * lanes}, i1 false)",
            f"  ret {V} %bad", "turn:"]


def _row(k: int) -> list[str]:
    """Return the index of the sample in lane k."""
    return [f"  %n{k} = add i64 %first, {k}", f"  %i{k} = call i64 @llvm.umin.i64(i64 %n{k}, i64 %last)"]


def _pieces(width: int) -> list[tuple[int, int]]:
    """Return a row of `width` doubles in loads of powers of two: (start, size)."""
    found, start = [], 0
    while start < width:
        size = 1 << ((width - start).bit_length() - 1)
        found.append((start, size))
        start += size
    return found


def _put(name: str, into: str, start: int, size: int, lanes: int) -> list[str]:
    """%name.in: the vector `into` with the `size` numbers %name from lane `start` on."""
    V = type_of(lanes)
    if size == 1:
        return [f"  %{name}.in = insertelement {V} {into}, double %{name}, i64 {start}"]
    wide = ", ".join(f"i32 {k % size}" for k in range(lanes))
    mask = ", ".join(f"i32 {lanes + k - start if start <= k < start + size else k}" for k in range(lanes))
    return [f"  %{name}.wide = shufflevector {type_of(size)} %{name}, {type_of(size)} %{name}, <{lanes} x i32> <{wide}>",
            f"  %{name}.in = shufflevector {V} {into}, {V} %{name}.wide, <{lanes} x i32> <{mask}>"]


def _transposed(rows: list[str], name: str, lanes: int) -> tuple[list[str], list[str]]:
    """Columns of a square of vectors: blocks off the diagonal are exchanged, of one number, of two by two, and so on."""
    V, lines, half = type_of(lanes), [], 1
    while half < lanes:
        fresh = list(rows)
        for k in (k for k in range(lanes) if not k & half):
            upper = ", ".join(f"i32 {lanes + j - half if j & half else j}" for j in range(lanes))
            lower = ", ".join(f"i32 {lanes + j if j & half else j + half}" for j in range(lanes))
            for target, mask in ((k, upper), (k + half, lower)):
                fresh[target] = f"%{name}.{half}.{target}"
                pair = f"{V} {rows[k]}, {V} {rows[k + half]}"
                lines.append(f"  {fresh[target]} = shufflevector {pair}, <{lanes} x i32> <{mask}>")
        rows, half = fresh, 2 * half
    return lines, rows
