"""Many samples: as many at a time as a vector has lanes, in tiles that are turned from rows into lanes and back.

``batch(in, strides, out, work, from, to)`` computes samples `from` to `to`; answers whether all numbers in and out are finite:

    in, out : for each block of inputs, where its first row is; for each result, where its rows go, one after the other
    strides : for each block and each result, how many doubles on the next row is; 0: one row for all; below zero: there are no
              rows but tiles already, whose vectors are copied, and the negative number of vectors from a tile to the next
    work        : workspace of `work` doubles, aligned to 64 bytes, one for each thread

The last tile repeats the last sample in the lanes that are left over.
"""

from __future__ import annotations

import math

from ..ir.program import Program
from .assembly import kernel_text
from .types import type_of


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
