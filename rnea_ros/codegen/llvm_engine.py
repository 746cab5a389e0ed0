"""Compilation of LLVM text to machine code in this process; the only module that imports llvmlite.

Machine code of many samples runs in as many threads as are worth while. The threads are the system's own, begun and waited
for in machine code too. Between two steps of Python an exception can come (Ctrl-C, a signal's handler), and what it left
running would write into arrays that are free by then. Within a call of machine code none can: when it returns, its threads
have ended. A long batch is many such calls, so that Ctrl-C is not kept waiting.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable, Sequence
from functools import cache as cached
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from ..errors import InputError
from . import cache, python_call
from .llvm_text import batch_text, kernel_text, splat
from .program import Program

# ------------------------------------------------------------------ many samples in threads


PIECE = 2_000_000  # operations, about a tenth of a millisecond: less is not worth a thread
PIECES = 500  # for each thread in one call: what an exception may have to wait for
_DOUBLE = np.dtype(float)
THREADS = "RNEA_ROS_THREADS"  # environment variable: the most threads of a batch; default: one for each processor

# A task, eight bytes each: in, strides, out as for @batch; workspaces, and the bytes of one; end of the samples, samples in
# a piece; next sample, next workspace, and whether all inputs were finite.
CREW = """
define ptr @member(ptr %task) {
entry:
  %in = load ptr, ptr %task
  %strides.at = getelementptr i64, ptr %task, i64 1
  %strides = load ptr, ptr %strides.at
  %out.at = getelementptr i64, ptr %task, i64 2
  %out = load ptr, ptr %out.at
  %works.at = getelementptr i64, ptr %task, i64 3
  %works = load ptr, ptr %works.at
  %bytes.at = getelementptr i64, ptr %task, i64 4
  %bytes = load i64, ptr %bytes.at
  %end.at = getelementptr i64, ptr %task, i64 5
  %end = load i64, ptr %end.at
  %size.at = getelementptr i64, ptr %task, i64 6
  %size = load i64, ptr %size.at
  %next = getelementptr i64, ptr %task, i64 7
  %free = getelementptr i64, ptr %task, i64 8
  %sound = getelementptr i64, ptr %task, i64 9
  %mine = atomicrmw add ptr %free, i64 1 seq_cst
  %offset = mul i64 %mine, %bytes
  %work = getelementptr i8, ptr %works, i64 %offset
  br label %piece
piece:
  %from = atomicrmw add ptr %next, i64 %size seq_cst
  %any = icmp slt i64 %from, %end
  br i1 %any, label %compute, label %done
compute:
  %beyond = add i64 %from, %size
  %whole = icmp slt i64 %beyond, %end
  %to = select i1 %whole, i64 %beyond, i64 %end
  %finite = call i64 @batch(ptr %in, ptr %strides, ptr %out, ptr %work, i64 %from, i64 %to)
  %before = atomicrmw and ptr %sound, i64 %finite seq_cst
  br label %piece
done:
  ret ptr null
}
define void @crew(ptr %task, ptr %threads, i64 %others, ptr %create, ptr %join) {
entry:
  br label %begin
begin:  ; a thread that the system does not give is done without
  %begun = phi i64 [ 0, %entry ], [ %more, %created ]
  %enough = icmp sge i64 %begun, %others
  br i1 %enough, label %together, label %another
another:
  %thread.at = getelementptr i64, ptr %threads, i64 %begun
  %failed = call i32 %create(ptr %thread.at, ptr null, ptr @member, ptr %task)
  %is = icmp eq i32 %failed, 0
  br i1 %is, label %created, label %together
created:
  %more = add i64 %begun, 1
  br label %begin
together:
  %own = call ptr @member(ptr %task)
  br label %end
end:
  %left = phi i64 [ %begun, %together ], [ %less, %wait ]
  %all = icmp eq i64 %left, 0
  br i1 %all, label %done, label %wait
wait:
  %less = sub i64 %left, 1
  %last.at = getelementptr i64, ptr %threads, i64 %less
  %last = load i64, ptr %last.at
  %joined = call i32 %join(i64 %last, ptr null)
  br label %end
done:
  ret void
}
"""


def threads() -> int:
    """Return the most threads of a batch."""
    given = os.environ.get(THREADS, "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Batch:
    """Call with blocks of inputs and arrays for the results.

    owner : what keeps the machine code alive; crew : address of @crew; work : doubles of a workspace; operations : of a sample
    sizes : numbers of each block in a sample
    """

    def __init__(self, owner: Any, crew: int, work: int, lanes: int, operations: int, sizes: Sequence[int]):
        self._owner, self._bytes, self._lanes, self._sizes = owner, (8 * work + 63) & ~63, lanes, tuple(sizes)
        self._piece = max(lanes, PIECE // max(1, operations) // lanes * lanes)  # samples that a thread takes at once
        self._crew = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, ctypes.c_int64, *[ctypes.c_void_p] * 2)(crew)

    def __call__(self, blocks: Sequence[np.ndarray], outs: Sequence[np.ndarray], count: int) -> bool:
        """Evaluate all samples; return whether all inputs are finite, those in tiles aside.

        blocks: (size,), (count, size), (1, size) for all samples, or tiles (tiles, size, lanes) each, copied where the kernel
        cannot read them as they are; outs: contiguous (count, size), or tiles, each. Raises ValueError for other shapes.
        """
        readable = [_readable(block, size, count, self._lanes) for block, size in zip(blocks, self._sizes, strict=True)]
        addresses = [*[_address(block) for block, _ in readable], *[stride for _, stride in readable],
                     *map(_stride, outs), *map(_address, outs)]
        table = (ctypes.c_int64 * len(addresses))(*addresses)
        inside, (create, join) = ctypes.addressof(table), _thread_functions()
        tables = [inside, inside + 8 * len(readable), inside + 8 * (2 * len(readable) + len(outs))]
        pieces = -(-count // self._piece)
        crew = min(threads(), pieces) if create and pieces > 1 else 1
        store, others = np.empty(crew * self._bytes + 64, np.uint8), (ctypes.c_int64 * crew)()
        works = _address(store) + 63 & ~63
        sound, step = 1, PIECES * crew * self._piece
        for start in range(0, count, step):
            end = min(start + step, count)
            task = (ctypes.c_int64 * 10)(*tables, works, self._bytes, end, self._piece, start, 0, sound)
            self._crew(task, others, crew - 1, create, join)
            sound = task[9]
        return bool(sound)


@cached
def _thread_functions() -> tuple[int | None, int | None]:
    """Addresses of pthread_create and pthread_join, where the system has them."""
    try:
        system = ctypes.CDLL(None)
        create, join = (ctypes.cast(f, ctypes.c_void_p).value for f in (system.pthread_create, system.pthread_join))
    except (OSError, AttributeError, TypeError):  # TypeError: Windows has no library of the process itself
        return None, None
    return create, join


def _address(array: Any) -> int:
    """Return array.ctypes.data without the objects that this attribute creates: they cost as much as some samples."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    except (TypeError, ValueError, BufferError):  # none to write to, not in one piece, or empty
        return int(array.__array_interface__["data"][0])


def _stride(out: np.ndarray) -> int:
    """Return the stride of a contiguous result as `batch_text` wants it."""
    return -out.shape[1] if out.ndim == 3 else out.shape[1]


def _readable(block: np.ndarray, size: int, count: int, lanes: int) -> tuple[np.ndarray, int]:
    """Return a block that the kernel can read, and its stride as `batch_text` wants it.

    The block itself, if its rows, or its tiles, are runs of doubles at even distances one after the other; else a copy.
    numpy calls an array of one row contiguous with any stride: strides of single rows and tiles mean nothing.
    """
    if block.dtype is not _DOUBLE:
        block = block.astype(float)
    shape, strides, flags = block.shape, block.strides, block.flags
    rows = shape[0] if shape else 0
    if len(shape) == 3:
        if shape[1:] != (size, lanes) or rows < -(-count // lanes):
            raise ValueError(f"a block has shape {shape}; at least ({-(-count // lanes)}, {size}, {lanes}) is needed")
        if rows <= 1 or (flags.c_contiguous and flags.aligned) or not size:
            return (block if flags.c_contiguous and flags.aligned else _copied(block)), -size
        tile = 8 * lanes
        if strides[1:] == (tile, 8) and flags.aligned and strides[0] > 0 and strides[0] % tile == 0:
            return block, -(strides[0] // tile)
        return _copied(block), -size
    if shape != (size,) and shape != (count, size) and shape != (1, size):
        raise ValueError(f"a block has shape {shape}; ({size},), ({count}, {size}) or (1, {size}) is needed")
    if len(shape) == 1 or rows == 1:
        return (block if flags.c_contiguous and flags.aligned else _copied(block)), 0
    if flags.c_contiguous and flags.aligned:
        return block, size
    runs = size <= 1 or strides[1] == 8
    if runs and flags.aligned and strides[0] >= 0 and strides[0] % 8 == 0:
        return block, strides[0] // 8
    return _copied(block), size


def _copied(block: np.ndarray) -> np.ndarray:
    """Return a contiguous and aligned copy."""
    return np.array(block, order="C")


# ------------------------------------------------------------------ machine code


if llvm.llvm_version_info < (16,):  # reads no pointers without a type; llvmlite 0.44 has LLVM 15, 0.45 has LLVM 20
    raise ImportError(f"llvmlite {llvmlite.__version__} is too old, 0.45 or newer is needed")

_ROW = """  %xo = mul i64 %k, {inputs}
  %yo = mul i64 %k, {outputs}
  %xk = getelementptr double, ptr %x, i64 %xo
  %yk = getelementptr double, ptr %y, i64 %yo
  call void @kernel(ptr %xk, ptr %yk)
  %next = add i64 %k, 1
"""

THOROUGH, QUICK = 2, 1  # optimisation levels; the quick one takes two thirds of the time, and code with solves runs as fast
# Environment variable with the highest level to use, 0 to 2. 0 compiles in a third of the time and makes slower code with the
# same results, for processes that compile more than they evaluate.
HIGHEST_LEVEL = "RNEA_ROS_OPTIMIZATION"

_KERNEL = """
define void @kernel(ptr %x, ptr %y) {{
  %w = alloca [{size} x double], align 64
  call void @steps(ptr %x, ptr %y, ptr %w)
  ret void
}}"""

_ITERATED = """
define void @kernel(ptr %x, ptr %y) {{
entry:
  %w = alloca [{size} x double], align 64
  %z = alloca [{inputs} x double], align 64
  %found = alloca [{state} x double], align 64
  %error.at = getelementptr double, ptr %found, i64 {replaced}
  call void @llvm.memcpy.p0.p0.i64(ptr %z, ptr %x, i64 {input_bytes}, i1 false)
  br label %step
step:
  %k = phi i64 [ 0, %entry ], [ %next, %step ]
  call void @iteration.steps(ptr %z, ptr %found, ptr %w)
  call void @llvm.memcpy.p0.p0.i64(ptr %z, ptr %found, i64 {replaced_bytes}, i1 false)
  %error = load double, ptr %error.at
  %open = fcmp ogt double %error, {tolerance}
  %next = add i64 %k, 1
  %left = icmp slt i64 %next, {limit}
  %more = and i1 %open, %left
  br i1 %more, label %step, label %last
last:
  call void @steps(ptr %z, ptr %y, ptr %w)
  ret void
}}"""

_ROWS = """
define void @rows(ptr %x, ptr %y, i64 %count) {{
entry:
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %loop, label %done
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
""" + _ROW + """  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""

_SWEEP = """
define void @sweep(ptr %x, ptr %y, i64 %count, i64 %state) {{
entry:
  %offset = sub i64 {outputs}, %state
  %bytes = mul i64 %state, 8
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %more ]
""" + _ROW + """  %left = icmp slt i64 %next, %count
  br i1 %left, label %more, label %done
more:
  %from = getelementptr double, ptr %yk, i64 %offset
  %to = getelementptr double, ptr %xk, i64 {inputs}
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  br label %loop
done:
  ret void
}}
"""

_COPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"


@cached
def lanes() -> int:
    """Doubles in a vector of this processor, as far as they pay: 8, or 4."""
    return 8 if llvm.get_host_cpu_features().get("avx512f") else 4


def assembly(program: Program, lanes: int) -> str:
    """``kernel(x, y)`` of one sample, ``rows(x, y, count)`` of many, and ``call`` from Python."""
    text = _entry(program, lanes)
    if program.iteration is not None:  # samples begin from one another
        text += _sweep(program)
    text += python_call.assembly(program) if python_call.usable() else ""
    return text if "@llvm.memcpy" not in text or _COPY in text else text + _COPY


def _entry(program: Program, lanes: int) -> str:
    """``kernel(x, y)`` and ``rows(x, y, count)``."""
    text, size = kernel_text(program, 1, lanes)
    sizes: dict[str, Any] = {"size": max(1, size), "inputs": program.input_size, "outputs": len(program.results)}
    if program.iteration is None:
        return text + (_KERNEL + _ROWS).format(**sizes)
    state, iteration = program.iteration.state, program.iteration
    sizes |= {"state": state + 1, "replaced": state, "replaced_bytes": 8 * state, "input_bytes": 8 * program.input_size,
              "tolerance": splat(iteration.tolerance, 1), "limit": iteration.limit}
    return text + (_ITERATED + _ROWS).format(**sizes)


class MachineCode:
    """Functions of a compiled program; their addresses hold as long as this object.

    kernel : address of ``void kernel(const double *x, double *y)``: one sample, blocks of inputs side by side
    rows   : ``rows(x_address, y_address, count)``, samples one after another; releases the interpreter meanwhile
    call   : the built-in function of python_call.py, or None
    sweep  : Sweep of a program with an iteration, or None
    """

    def __init__(self, program: Program):
        text = assembly(program, lanes())
        self._connect(_compiled(text, QUICK if program.has_blocks else THOROUGH), "@sweep(" in text, "@call(" in text)

    @classmethod
    def by_recipe(cls, recipe: str, traced: Callable[[], Program]) -> tuple[MachineCode, dict[str, Any]]:
        """Return the code of a program and its `Kernel` sizes, from the cache without tracing if it was compiled before.

        recipe: text that determines the program, with everything that is read while it is traced
        """
        machine, made_by = _machine(QUICK)
        usable = python_call.usable()

        def made() -> bytes:
            program = traced()
            head = {"inputs": dict(program.inputs), "outputs": program.outputs, "iterated": program.iteration is not None}
            return json.dumps(head).encode() + b"\n" + machine.emit_object(llvm.parse_assembly(assembly(program, lanes())))

        key = f"recipe {cache.sources()} {made_by} {lanes()} {usable}\n{recipe}"
        head, _, code = cache.object_code(key.encode(), made).partition(b"\n")
        sizes = json.loads(head)
        found: MachineCode = cls.__new__(cls)
        has_call = usable and python_call.fits(sizes["inputs"], sizes["outputs"])
        found._connect(_loaded(machine, code), sizes["iterated"], has_call)
        return found, sizes

    def _connect(self, engine: Any, has_sweep: bool, has_call: bool) -> None:
        self._engine = engine
        address = engine.get_function_address
        self.kernel = address("kernel")
        self.rows = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address("rows"))
        self.sweep = Sweep(engine) if has_sweep else None
        self.call = None
        if has_call:
            self.call = python_call.connect(engine, address("call"), engine.get_global_value_address("api"))


def batch(program: Program) -> Batch:
    """Machine code for many samples of a program at a time."""
    text, work = batch_text(program, lanes())
    engine = _compiled(text + CREW)
    return Batch(engine, engine.get_function_address("crew"), work, lanes(), sum(program.operation_counts.values()),
                 tuple(program.inputs.values()))


@cached
def sample_step() -> Callable[[np.ndarray], np.ndarray | None]:
    """Return the built-in function of sample_step.py."""
    from . import sample_step as step

    engine = _compiled(step.assembly())
    address, table = engine.get_function_address("step"), engine.get_global_value_address("api")
    return python_call.connect(engine, address, table, python_call.ONE_ARGUMENT)


class Sweep:
    """Call with x and y (count, size) and (count, width), contiguous, and the size of the state: see `Kernel.sweep`."""

    def __init__(self, engine: Any):
        self._engine = engine
        types = (*[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)
        self._code = ctypes.CFUNCTYPE(None, *types)(engine.get_function_address("sweep"))

    def __call__(self, x: np.ndarray, y: np.ndarray, state: int) -> None:
        if not len(x):  # the code begins with a sample
            return
        self._code(x.ctypes.data, y.ctypes.data, len(x), state)


def sweep(program: Program) -> Sweep:
    """Machine code for samples of a program that begin from one another."""
    return Sweep(_compiled(_entry(program, lanes()) + _sweep(program) + _COPY))


def _sweep(program: Program) -> str:
    return _SWEEP.format(inputs=program.input_size, outputs=len(program.results))


def _compiled(text: str, level: int = THOROUGH) -> Any:
    """Return an engine that holds the machine code of a text, compiled now or, on the same processor, earlier."""
    machine, made_by = _machine(level)
    code = cache.object_code(f"{made_by}\n{text}".encode(), lambda: machine.emit_object(llvm.parse_assembly(text)))
    return _loaded(machine, code)


def _machine(level: int) -> tuple[Any, tuple[Any, ...]]:
    """Return the LLVM target of this processor, and a key of its code."""
    level = min(level, _highest_level())
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target, cpu = llvm.Target.from_default_triple(), llvm.get_host_cpu_name()
    features = llvm.get_host_cpu_features().flatten()
    machine = target.create_target_machine(cpu=cpu, features=features, opt=level)
    made_by = (llvmlite.__version__, llvm.llvm_version_info, machine.triple, cpu, features)
    made_by += () if level == THOROUGH else (level,)
    return machine, made_by


def _highest_level() -> int:
    given = os.environ.get(HIGHEST_LEVEL, "")
    if given not in ("", "0", "1", "2"):
        raise InputError(f"environment variable {HIGHEST_LEVEL} is '{given}'; allowed are 0, 1 and 2")
    return int(given or THOROUGH)


def _loaded(machine: Any, code: bytes) -> Any:
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine
