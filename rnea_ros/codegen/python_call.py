"""The cheapest way from Python into machine code: a built-in function that lies in the kernel's own module.

``call(q, qd, ...)`` takes one array for each input block and returns a tuple of new arrays. It answers None unless every
argument is what a controller hands in: a numpy array of native doubles, of the block's length, contiguous, aligned, finite;
and where a result is not. The slow call, which has words for everything else, is then made.

numpy's and Python's functions are reached through a table of addresses that is filled in after loading, so that the machine
code holds no address. It reads arrays where every extension module does; `usable` asks first whether they are laid out so.
A call for seven joints takes 282 ns, one of Pinocchio's rnea 983 ns (benchmark/results.md).
The interpreter is held meanwhile: a kernel takes less time than letting go of it and taking it back.
"""

from __future__ import annotations

import ctypes
import math
import platform
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from .program import Program

LARGEST = 4096  # numbers in and out; they lie on the stack
ABI = (0x01000009, 0x02000000)  # of numpy 1.x and 2.x, in which that function and what is read of an array are the same
_NEW = 94  # index of PyArray_NewFromDescr in numpy's table
FASTCALL, ONE_ARGUMENT = 0x0080, 0x0008  # METH_FASTCALL, METH_O
_FIELDS = {"data": 16, "nd": 24, "dims": 32, "strides": 40, "descr": 56}  # bytes into a PyArrayObject
_TABLE = ("ndarray", "double", "array_new", "tuple_new", "tuple_set", "release", "none", "retain")

SUPPORT = """
@api = global [8 x ptr] zeroinitializer
define internal i1 @take(ptr %array, i64 %size, ptr %to) noinline {
  %type_at = getelementptr i8, ptr %array, i64 8
  %type = load ptr, ptr %type_at
  %ndarray = load ptr, ptr @api
  %is_array = icmp eq ptr %type, %ndarray
  br i1 %is_array, label %kind, label %unusual
kind:
  %nd_at = getelementptr i8, ptr %array, i64 24
  %nd = load i32, ptr %nd_at
  %descr_at = getelementptr i8, ptr %array, i64 56
  %descr = load ptr, ptr %descr_at
  %double_at = getelementptr ptr, ptr @api, i64 1
  %double = load ptr, ptr %double_at
  %is_vector = icmp eq i32 %nd, 1
  %is_double = icmp eq ptr %descr, %double
  %right_kind = and i1 %is_vector, %is_double
  br i1 %right_kind, label %shape, label %unusual
shape:
  %dims_at = getelementptr i8, ptr %array, i64 32
  %dims = load ptr, ptr %dims_at
  %length = load i64, ptr %dims
  %strides_at = getelementptr i8, ptr %array, i64 40
  %strides = load ptr, ptr %strides_at
  %stride = load i64, ptr %strides
  %data_at = getelementptr i8, ptr %array, i64 16
  %data = load ptr, ptr %data_at
  %address = ptrtoint ptr %data to i64
  %odd = and i64 %address, 7
  %aligned = icmp eq i64 %odd, 0
  %right_length = icmp eq i64 %length, %size
  %contiguous = icmp eq i64 %stride, 8
  %a = and i1 %right_length, %contiguous
  %plain = and i1 %a, %aligned
  br i1 %plain, label %copy, label %unusual
copy:  ; and the largest magnitude, as bits without the sign: above those of any finite number if one is not
  %k = phi i64 [ 0, %shape ], [ %next, %copy ]
  %largest = phi i64 [ 0, %shape ], [ %larger, %copy ]
  %from_k = getelementptr i64, ptr %data, i64 %k
  %bits = load i64, ptr %from_k
  %to_k = getelementptr i64, ptr %to, i64 %k
  store i64 %bits, ptr %to_k
  %magnitude = shl i64 %bits, 1
  %above = icmp ugt i64 %magnitude, %largest
  %larger = select i1 %above, i64 %magnitude, i64 %largest
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %size
  br i1 %more, label %copy, label %copied
copied:
  %finite = icmp ult i64 %larger, u0xFFE0000000000000
  ret i1 %finite
unusual:
  ret i1 false
}
define internal i1 @finite(ptr %numbers, i64 %size) noinline {
entry:
  br label %check
check:
  %k = phi i64 [ 0, %entry ], [ %next, %check ]
  %largest = phi i64 [ 0, %entry ], [ %larger, %check ]
  %at = getelementptr i64, ptr %numbers, i64 %k
  %bits = load i64, ptr %at
  %magnitude = shl i64 %bits, 1
  %above = icmp ugt i64 %magnitude, %largest
  %larger = select i1 %above, i64 %magnitude, i64 %largest
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %size
  br i1 %more, label %check, label %checked
checked:
  %finite = icmp ult i64 %larger, u0xFFE0000000000000
  ret i1 %finite
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def fits(inputs: Mapping[str, int], outputs: Sequence[Sequence[int]]) -> bool:
    """Return whether a kernel with these sizes is made for such calls."""
    return bool(inputs) and min(inputs.values()) > 0 and sum(inputs.values()) + sum(map(math.prod, outputs)) <= LARGEST


def assembly(program: Program) -> str:
    """LLVM text of ``call``, for a module that has ``kernel``; empty if the kernel is not made for such calls."""
    if not fits(program.inputs, program.outputs):
        return ""
    shapes, blocks = program.outputs, list(program.inputs.values())
    lines = [f"@dims{k} = internal constant [{max(1, len(shape))} x i64] [{', '.join(f'i64 {d}' for d in shape or (0,))}]"
             for k, shape in enumerate(shapes)]
    lines += ["define ptr @call(ptr %self, ptr %arguments, i64 %count) {", *api(),
              f"  %x = alloca [{program.input_size} x double], align 64",
              f"  %y = alloca [{max(1, len(program.results))} x double], align 64",
              f"  %right_count = icmp eq i64 %count, {len(blocks)}", "  br i1 %right_count, label %take0, label %unusual"]
    for k, size in enumerate(blocks):
        lines += [f"take{k}:", f"  %argument{k}_at = getelementptr ptr, ptr %arguments, i64 {k}",
                  f"  %argument{k} = load ptr, ptr %argument{k}_at",
                  f"  %x{k} = getelementptr double, ptr %x, i64 {sum(blocks[:k])}",
                  f"  %taken{k} = call i1 @take(ptr %argument{k}, i64 {size}, ptr %x{k})",
                  f"  br i1 %taken{k}, label %{f'take{k + 1}' if k + 1 < len(blocks) else 'compute'}, label %unusual"]
    sound = f"call i1 @finite(ptr %y, i64 {len(program.results)})" if program.results else "icmp eq i64 0, 0"
    lines += ["compute:", "  call void @kernel(ptr %x, ptr %y)", f"  %sound = {sound}",
              "  br i1 %sound, label %answer, label %unusual", "answer:",
              f"  %results = call ptr %tuple_new(i64 {len(shapes)})",
              "  %is_tuple = icmp ne ptr %results, null", "  br i1 %is_tuple, label %give0, label %failed"]
    for k, shape in enumerate(shapes):
        start, size = sum(math.prod(s) for s in shapes[:k]), math.prod(shape)
        lines += [f"give{k}:",
                  "  call void %retain(ptr %double)",  # array_new takes it over
                  f"  %array{k} = call ptr %array_new(ptr %ndarray, ptr %double, i32 {len(shape)}, ptr @dims{k}, ptr null, "
                  "ptr null, i32 0, ptr null)",
                  f"  %is_array{k} = icmp ne ptr %array{k}, null", f"  br i1 %is_array{k}, label %fill{k}, label %short",
                  f"fill{k}:",
                  f"  %data{k}_at = getelementptr i8, ptr %array{k}, i64 {_FIELDS['data']}",
                  f"  %data{k} = load ptr, ptr %data{k}_at",
                  f"  %y{k} = getelementptr double, ptr %y, i64 {start}",
                  f"  call void @llvm.memcpy.p0.p0.i64(ptr %data{k}, ptr %y{k}, i64 {8 * size}, i1 false)",
                  f"  %set{k} = call i32 %tuple_set(ptr %results, i64 {k}, ptr %array{k})", f"  br label %give{k + 1}"]
    lines += [f"give{len(shapes)}:", "  ret ptr %results", "short:", "  call void %release(ptr %results)", "  ret ptr null",
              "failed:", "  ret ptr null", "unusual:", "  call void %retain(ptr %none)", "  ret ptr %none", "}"]
    return SUPPORT + "\n".join(lines) + "\n"


def api() -> list[str]:
    """Return LLVM text that loads the functions of numpy and Python."""
    lines = []
    for k, name in enumerate(_TABLE):
        lines += [f"  %{name}_at = getelementptr ptr, ptr @api, i64 {k}", f"  %{name} = load ptr, ptr %{name}_at"]
    return lines


@cache
def usable() -> bool:
    """Return whether objects of this interpreter and this numpy have the layout that the machine code assumes."""
    if platform.python_implementation() != "CPython" or ctypes.sizeof(ctypes.c_void_p) != 8 or object.__basicsize__ != 16:
        return False  # a head of 16 bytes: neither without the GIL nor with reference tracing
    try:
        version = ctypes.PYFUNCTYPE(ctypes.c_uint)(_numpy_table()[0])
    except (ImportError, AttributeError, TypeError, ValueError):
        return False
    return version() in ABI and np.ndarray.__basicsize__ >= 72 and _laid_out_as_expected()


def _laid_out_as_expected() -> bool:
    array = np.arange(6.0).reshape(2, 3)[:, 1]
    fields = {name: id(array) + offset for name, offset in _FIELDS.items()}
    word = {name: ctypes.c_int64.from_address(address).value for name, address in fields.items() if name != "nd"}
    type_of = ctypes.c_int64.from_address(id(array) + 8).value
    if type_of != id(np.ndarray) or ctypes.c_int.from_address(fields["nd"]).value != 1 or word["data"] != array.ctypes.data:
        return False
    dims, strides = (ctypes.c_int64.from_address(word[name]).value for name in ("dims", "strides"))
    return (dims, strides, word["descr"]) == (2, 24, id(np.dtype(float)))


def _numpy_table() -> Any:
    """Addresses of numpy's C functions."""
    try:
        from numpy._core import _multiarray_umath as core  # type: ignore[attr-defined]
    except ImportError:
        from numpy.core import _multiarray_umath as core
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return (ctypes.c_void_p * (_NEW + 1)).from_address(pointer(core._ARRAY_API, None))  # noqa: SLF001  # numpy has no public name for it


class _Definition(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


class Owner:
    """Owner of the memory that the built-in function uses: it is the function's ``__self__``."""

    def __init__(self, machine_code: Any, definition: _Definition):
        self.machine_code, self.definition = machine_code, definition


def connect(machine_code: Any, address: int, table: int, flags: int = FASTCALL) -> Callable:
    """Return the built-in function at `address`; table: address of ``api``; flags: how Python calls it."""
    api = ctypes.pythonapi
    functions = [ctypes.cast(f, ctypes.c_void_p).value
                 for f in (api.PyTuple_New, api.PyTuple_SetItem, api.Py_DecRef)]
    values = [id(np.ndarray), id(np.dtype(float)), _numpy_table()[_NEW], *functions, id(None),
              ctypes.cast(api.Py_IncRef, ctypes.c_void_p).value]
    (ctypes.c_void_p * len(_TABLE)).from_address(table)[:] = values
    definition = _Definition(b"kernel", address, flags, b"One array for each block of inputs; None if one is unusual.")
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", api))
    return new(ctypes.addressof(definition), Owner(machine_code, definition), None)


def sequential(call: Callable[[np.ndarray], tuple], sizes: Sequence[int]) -> Callable:
    """Return the call in Python, for interpreters without the built-in function: None for unusual arguments."""
    wanted, double = tuple(sizes), np.dtype(float)

    def checked(*blocks: Any) -> tuple | None:
        try:
            x = np.concatenate(blocks)
            if (x.ndim == 1 and x.dtype is double and (*map(len, blocks),) == wanted and np.isfinite(x).all()
                    and not any(isinstance(block, np.ma.MaskedArray) for block in blocks)):
                found = call(x)
                return found if all(np.isfinite(part).all() for part in found) else None
        except (TypeError, ValueError, ZeroDivisionError):
            pass
        return None

    return checked
