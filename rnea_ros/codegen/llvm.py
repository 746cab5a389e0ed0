"""Program -> machine code in this process; the only place that knows llvmlite.

One table from operation to LLVM instruction. No fast-math: the code computes what the program says, operation by operation.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import llvmlite.binding as llvm

from .program import Program

_ARITHMETIC = {"add": "fadd double {0}, {1}", "sub": "fsub double {0}, {1}", "mul": "fmul double {0}, {1}",
               "div": "fdiv double {0}, {1}", "neg": "fneg double {0}"}
_CALLS = ("sin", "cos", "tan", "tanh", "sqrt", "exp")  # of the C mathematics library
_BATCH = """
define void @batch(ptr %x, ptr %y, i64 %count) {{
entry:
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %loop, label %done
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %xo = mul i64 %k, {inputs}
  %yo = mul i64 %k, {outputs}
  %xk = getelementptr double, ptr %x, i64 %xo
  %yk = getelementptr double, ptr %y, i64 %yo
  call void @kernel(ptr %xk, ptr %yk)
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


def assembly(program: Program) -> str:
    """LLVM text of ``kernel(double *x, double *y)`` and of ``batch(x, y, count)``, rows one after another."""
    lines = [f"declare double @{name}(double)" for name in _CALLS]
    lines.append("define void @kernel(ptr noalias %x, ptr noalias %y) {")
    names: dict[int, str] = {}
    for number, (op, *operands) in program.nodes:
        if op == "const":
            names[number] = _literal(operands[0])
            continue
        names[number] = f"%v{number}"
        if op == "input":
            lines.append(f"  %p{number} = getelementptr double, ptr %x, i64 {operands[0]}")
            lines.append(f"  %v{number} = load double, ptr %p{number}")
            continue
        values = [names[operand] for operand in operands]
        instruction = _ARITHMETIC[op].format(*values) if op in _ARITHMETIC else f"call double @{op}(double {values[0]})"
        lines.append(f"  %v{number} = {instruction}")
    for slot, number in enumerate(program.results):
        lines.append(f"  %q{slot} = getelementptr double, ptr %y, i64 {slot}")
        lines.append(f"  store double {names[number]}, ptr %q{slot}")
    lines += ["  ret void", "}"]
    return "\n".join(lines) + _BATCH.format(inputs=program.input_size, outputs=len(program.results))


def _literal(value: float) -> str:
    """Bit pattern, since LLVM takes only exactly representable decimals."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def compile_program(program: Program) -> tuple[Any, Any]:
    """(owner, function): call ``function(x_address, y_address, count)``; keep the owner as long as the function."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(assembly(program)), machine)
    engine.finalize_object()
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    return engine, prototype(engine.get_function_address("batch"))
