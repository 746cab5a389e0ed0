"""Program -> machine code in this process; the only place that knows llvmlite.

One table from operation to LLVM instruction. No fast-math: the code computes what the program says, operation by operation.
"""

from __future__ import annotations

import ctypes
import struct

import llvmlite.binding as llvm

from . import python_call
from .program import Program

_ARITHMETIC = {"add": "fadd double {0}, {1}", "sub": "fsub double {0}, {1}", "mul": "fmul double {0}, {1}",
               "div": "fdiv double {0}, {1}", "neg": "fneg double {0}"}
PART = 1_000  # steps in one function
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
    """LLVM text of ``kernel(double *x, double *y)`` and of ``batch(x, y, count)``, rows one after another.

    A long program is cut into functions of PART steps, which hand values on through an array w: the time to compile grows
    faster than the length of a function, and long ones do not run faster.
    """
    slots: dict[int, list[int]] = {}
    for slot, number in enumerate(program.results):
        slots.setdefault(number, []).append(slot)
    steps = [(number, node) for number, node in program.nodes if node[0] not in ("input", "const")]
    parts = [steps[k:k + PART] for k in range(0, len(steps), PART)]
    home = {number: k for k, part in enumerate(parts) for number, _ in part}
    handed_on = sorted({operand for number, node in steps for operand in node[1:]
                        if home.get(operand, home[number]) != home[number]})
    writer = _Writer(program, {number: slot for slot, number in enumerate(handed_on)}, slots)
    lines = [f"declare double @{name}(double)" for name in _CALLS]
    for k, part in enumerate(parts):
        lines.append(f"define internal void @part{k}(ptr noalias %x, ptr noalias %y, ptr noalias %w) noinline {{")
        lines += [*writer.part(part), "  ret void", "}"]
    lines += ["define void @kernel(ptr noalias %x, ptr noalias %y) {", f"  %w = alloca [{max(1, len(handed_on))} x double]"]
    lines += [f"  call void @part{k}(ptr %x, ptr %y, ptr %w)" for k in range(len(parts))]
    lines += [*writer.untouched(home), "  ret void", "}"]
    return "\n".join(lines) + _BATCH.format(inputs=program.input_size, outputs=len(program.results))


class _Writer:
    """Instructions for nodes. handed_on: node -> place in w; slots: node -> places in y."""

    def __init__(self, program: Program, handed_on: dict[int, int], slots: dict[int, list[int]]):
        self.places = {number: ("w", slot) for number, slot in handed_on.items()}
        self.places |= {number: ("x", node[1]) for number, node in program.nodes if node[0] == "input"}
        self.constants = {number: _literal(node[1]) for number, node in program.nodes if node[0] == "const"}
        self.handed_on, self.slots = handed_on, slots

    def part(self, steps: list[tuple[int, tuple]]) -> list[str]:
        """The body of one function."""
        self.lines: list[str] = []
        self.names = dict(self.constants)  # what this function knows already
        for number, (op, *operands) in steps:
            values = [self._value(operand) for operand in operands]
            instruction = _ARITHMETIC[op].format(*values) if op in _ARITHMETIC else f"call double @{op}(double {values[0]})"
            self.lines.append(f"  %v{number} = {instruction}")
            self.names[number] = f"%v{number}"
            if number in self.handed_on:
                self._store("w", self.handed_on[number], number)
            for slot in self.slots.get(number, []):
                self._store("y", slot, number)
        return self.lines

    def untouched(self, computed: dict[int, int]) -> list[str]:
        """Stores of the results that nothing computes: inputs and constants."""
        self.lines, self.names = [], dict(self.constants)
        for number, places in self.slots.items():
            for slot in places if number not in computed else []:
                self._store("y", slot, number)
        return self.lines

    def _value(self, number: int) -> str:
        if number not in self.names:
            array, slot = self.places[number]
            self.lines.append(f"  %p{number} = getelementptr double, ptr %{array}, i64 {slot}")
            self.lines.append(f"  %v{number} = load double, ptr %p{number}")
            self.names[number] = f"%v{number}"
        return self.names[number]

    def _store(self, array: str, slot: int, number: int) -> None:
        value = self._value(number)
        self.lines.append(f"  %{array}{slot} = getelementptr double, ptr %{array}, i64 {slot}")
        self.lines.append(f"  store double {value}, ptr %{array}{slot}")


def _literal(value: float) -> str:
    """Bit pattern, since LLVM takes only exactly representable decimals."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


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
        called = python_call.assembly(program) if python_call.usable() else ""
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(assembly(program) + called), machine)
        self._engine.finalize_object()
        address = self._engine.get_function_address
        self.kernel = address("kernel")
        self.batch = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address("batch"))
        self.call = python_call.connect(self._engine, address("call"), self._engine.get_global_value_address("api")) \
            if called else None
