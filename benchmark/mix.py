"""Profile of a batch: its parts separately, in the cache, and their instructions.

The parts are those of rnea_ros/codegen/llvm_text.py: a tile of as many samples as a vector has lanes is turned from rows into
lanes (take), computed (steps), and turned back (give). Each is called in a loop of machine code on the same few kilobytes.
"""

from __future__ import annotations

import ctypes
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from timing import Loop, interleaved

from rnea_ros import Robot
from rnea_ros.codegen import llvm_engine, llvm_text
from rnea_ros.codegen.program import trace
from rnea_ros.robots.kernel_functions import KERNEL_FUNCTIONS

LOOP = """
define void @{name}(ptr %a, ptr %b, ptr %c, i64 %count) {{
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  {call}
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""
# Of x86-64; the first that fits counts. Arithmetic with memory operands counts as arithmetic.
KINDS = (("fused", r"vfn?m(add|sub)\w*pd"), ("product", r"vmulpd"), ("sum", r"v(add|sub)pd"),
         ("shuffle", r"v(unpck|perm|shuf|insert|extract|blend|broadcast|valign)\w*"), ("move", r"vmov\w*"))


@dataclass(frozen=True)
class Part:
    """Part of a tile: number of occurrences, seconds for one, vector instructions by kind."""

    name: str
    times: int
    low: float
    counts: Counter[str]


@dataclass(frozen=True)
class Mix:
    name: str
    lanes: int
    operations: int  # of one sample: products and sums
    parts: list[Part]
    peak: float  # operations per second of one core

    @property
    def tile(self) -> float:
        """Seconds, from the cache."""
        return sum(part.times * part.low for part in self.parts)

    def share(self, seconds: float) -> float:
        return self.operations * self.lanes / seconds / self.peak


def measure(name: str, source: Path, operations: int, peak: float, rounds: int) -> Mix:
    robot = Robot.from_urdf(source)
    program = trace(*robot.tree.store.traced(KERNEL_FUNCTIONS["torque_and_rate"], by_paper=False))
    lanes, n = llvm_engine.lanes(), robot.n
    text, work = llvm_text.batch_text(program, lanes)
    vector = f"<{lanes} x double>"
    last = f"i64 0, i64 {lanes - 1}, ptr %b, {vector} zeroinitializer)"
    calls = {"steps": "call void @steps(ptr %a, ptr %b, ptr %c)",
             f"take{n}": f"%bad = call {vector} @take{n}(ptr %a, i64 {n}, {last}",
             f"give{n}": f"%bad = call {vector} @give{n}(ptr %a, {last}"}
    text += "".join(LOOP.format(name=f"only_{part}", call=call) for part, call in calls.items())
    code, assembly = _compiled(text)
    store = np.random.default_rng(0).uniform(-1.0, 1.0, 3 * work + 8)
    start = (store.ctypes.data + 63) & ~63
    addresses = [start + 8 * k * (work & ~7) for k in range(3)]
    loops = {part: _loop(code, part, addresses) for part in calls}
    low = {part: times.low for part, times in interleaved(loops, rounds).items()}
    counts = instructions(assembly)
    angles = -(-sum(program.operation_counts[op] for op in ("sin", "cos")) // 2)
    steps = sum((found for function, found in counts.items() if function.startswith("part")), Counter[str]())
    for kind in ("fused", "product", "sum"):  # the others are mostly those of the way for large angles, which is not gone
        steps[kind] += angles * counts.get("sincos", Counter())[kind]
    parts = [Part("steps: dynamics, with sines and cosines", 1, low["steps"], steps),
             Part("take: a block of inputs, rows to lanes", len(program.inputs), low[f"take{n}"], counts[f"take{n}"]),
             Part("give: a result, lanes to rows", len(program.outputs), low[f"give{n}"], counts[f"give{n}"])]
    return Mix(name, lanes, operations, parts, peak)


def _compiled(text: str) -> tuple[Any, str]:
    """Return an engine and its code as text, as the package creates it."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2)
    assembly = machine.emit_assembly(llvm.parse_assembly(text))
    code = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    code.finalize_object()
    return code, assembly


def _loop(code: Any, part: str, addresses: Sequence[int]) -> Loop:
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(code.get_function_address(f"only_{part}"))

    def loop(count: int) -> float:
        began = time.perf_counter()
        function(*addresses, count)
        return time.perf_counter() - began

    return loop


def instructions(assembly: str) -> dict[str, Counter[str]]:
    """Return vector instructions by kind for each function."""
    found: dict[str, Counter[str]] = {}
    counts: Counter[str] = Counter()
    for line in assembly.splitlines():
        if label := re.match(r"([A-Za-z_]\w*):", line):
            counts = found.setdefault(label[1], Counter())
        elif (word := re.match(r"\s+(v\w+)\s", line)) and (
                kind := next((kind for kind, words in KINDS if re.fullmatch(words, word[1])), None)):
            counts[kind] += 1
    return found


def lines(found: Sequence[Mix]) -> list[str]:
    """Return the lines of results.md."""
    kinds = [kind for kind, _ in KINDS]
    text = ["### Where the time of a batch goes", "",
            f"The parts of a tile of {found[0].lanes} samples are timed separately, in loops of machine code on data in the "
            "cache; the table lists their vector instructions, including sines and cosines. \"Share\" and \"allowed\" are "
            "the share of the peak that is reached and the share that the instructions allow, for a part and all parts above "
            "it. The allowed share is below one because only a product that is fused with a sum uses the multiplier "
            "completely, and because sines, cosines and the check for finite values are not counted. In addition the steps "
            "lack registers: most of their moves are loads and stores. The difference between the last row and the table "
            "above is memory access and the call.", "",
            "| robot | part | times | ns | share | " + " | ".join(kinds) + " | allowed |",
            "|---|---|---|---|---|" + "---|" * len(kinds) + "---|"]
    for mix in found:
        spent, multiplying = 0.0, 0
        for part in mix.parts:
            spent += part.times * part.low
            multiplying += part.times * (part.counts["fused"] + part.counts["product"])
            cells = " | ".join(str(part.counts[kind]) for kind in kinds)
            allowed = mix.operations / (2 * multiplying) if multiplying else np.nan
            text.append(f"| {mix.name} | {part.name} | {part.times} | {part.low * 1e9:.1f} | {mix.share(spent):.1%} | "
                        f"{cells} | {allowed:.1%} |")
    return text
