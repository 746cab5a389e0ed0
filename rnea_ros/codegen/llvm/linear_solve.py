"""LU factors with partial pivoting and their solutions, as text of LLVM functions with loops.

    @factor(a, n)               a: n rows of n entries, then n row exchanges, the smallest and the largest pivot
    @backsolve(a, b, n, m)      b: n rows of m entries, which X of A X = B replaces
    @backsolve_transposed       the same of A^T X = B

Rows are longer than their entries by PADDING zeros, so that the innermost loops take WIDTH entries at a time. On the diagonal
are the reciprocals of the pivots. Of several samples at once, the numbers of one lie `stride` apart: lanes pivot differently,
so each is solved by itself.
"""

from __future__ import annotations

from collections.abc import Callable

from .types import suffix, type_of

WIDTH = 4
PADDING = WIDTH - 1


def factor_size(n: int) -> int:
    """Return how many numbers @factor reads and writes."""
    return n * (n + PADDING) + n + 2


def function_text(stride: int) -> str:
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
