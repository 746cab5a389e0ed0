"""Text -> machine code in this process; the only place that knows llvmlite."""

from __future__ import annotations

import ctypes

import llvmlite.binding as llvm

from . import python_call
from .assembly import kernel_text
from .program import Program

_ENTRY = """
define void @kernel(ptr %x, ptr %y) {{
  %w = alloca [{size} x double], align 64
  call void @steps(ptr %x, ptr %y, ptr %w)
  ret void
}}
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


def lanes() -> int:
    """Doubles in a vector of this processor, as far as it is worth while: 8, or 4."""
    return 8 if llvm.get_host_cpu_features().get("avx512f") else 4


def assembly(program: Program) -> str:
    text, size = kernel_text(program, 1, lanes())
    text += _ENTRY.format(size=max(1, size), inputs=program.input_size, outputs=len(program.results))
    return text + (python_call.assembly(program) if python_call.usable() else "")


class MachineCode:
    """Functions of a compiled program; their addresses hold as long as this object.

    kernel : address of ``void kernel(const double *x, double *y)``: one sample, blocks of inputs side by side
    batch  : ``batch(x_address, y_address, count)``, rows one after another; releases the interpreter meanwhile
    call   : the built-in function of python_call.py, or None
    """

    def __init__(self, program: Program):
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2)
        text = assembly(program)
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
        self._engine.finalize_object()
        address = self._engine.get_function_address
        self.kernel = address("kernel")
        self.batch = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address("batch"))
        self.call = python_call.connect(self._engine, address("call"), self._engine.get_global_value_address("api")) \
            if "@call(" in text else None
