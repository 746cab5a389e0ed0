"""A function of arrays, traced once and compiled, called with numpy arrays.

backend "llvm" is machine code, "python" the same program as Python, "reference" the algorithm's own text on floats.
"""

from __future__ import annotations

import ctypes
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from . import python
from .program import trace

_addressof, _from_buffer = ctypes.addressof, ctypes.c_double.from_buffer
BACKENDS = ("llvm", "python", "reference")


def available(backend: str) -> str:
    """The backend that will serve: "python", with one warning, where "llvm" is asked for and llvmlite is missing."""
    if backend not in BACKENDS:
        raise InputError(f"backend is '{backend}'; allowed are {', '.join(BACKENDS)}")
    if backend == "llvm":
        try:
            from . import llvm  # noqa: F401
        except ImportError as error:
            warnings.warn(f"llvmlite is not importable ({error}): kernels run as Python, the same numbers about 100 times "
                          "slower; 'pip install llvmlite' mends it", RuntimeWarning, stacklevel=3)
            return "python"
    return backend


def build(function: Callable[..., Sequence[Any]], inputs: Mapping[str, int], backend: str) -> Kernel:
    """The kernel of ``function(**blocks) -> sequence of arrays``; inputs: name -> length of each block."""
    if backend == "reference":
        return _Reference(function, inputs)
    program = trace(function, inputs)
    return _Llvm(program) if backend == "llvm" else _Python(program)


class Kernel:
    """Call with a flat input, (size,) or (samples, size): the blocks side by side. Returns the outputs in their shapes."""

    def __init__(self, inputs: Mapping[str, int], shapes: Sequence[tuple[int, ...]]):
        self.size = sum(inputs.values())
        self.shapes = tuple(shapes)
        sizes = [math.prod(shape) for shape in self.shapes]
        self._width = sum(sizes)
        self._parts = [(sum(sizes[:k]), sum(sizes[:k + 1]), shape) for k, shape in enumerate(self.shapes)]

    def __call__(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        x = np.ascontiguousarray(x, dtype=float)
        samples = x.shape[:-1]
        y = np.empty((*samples, self._width))
        self._run(x, y)
        return tuple([y[..., a:b].reshape(samples + shape) for a, b, shape in self._parts])

    def single(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        """One sample, x (size,) of floats and writable: what a controller calls, so no step more than it takes."""
        y = np.empty(self._width)
        self._run_single(x, y)
        return tuple([y[a:b] if len(shape) == 1 else y[a:b].reshape(shape) for a, b, shape in self._parts])

    def _run_single(self, x: np.ndarray, y: np.ndarray) -> None:
        self._run(x, y)

    def _run(self, x: np.ndarray, y: np.ndarray) -> None:
        raise TypeError("a Kernel is made by build()")


class _Llvm(Kernel):
    def __init__(self, program):
        from . import llvm

        super().__init__(program.inputs, program.outputs)
        self._owner, self._function = llvm.compile_program(program)

    def _run(self, x, y):
        self._function(x.ctypes.data, y.ctypes.data, math.prod(x.shape[:-1]))

    def _run_single(self, x, y):  # from_buffer takes a fifth of the time of .ctypes.data
        self._function(_addressof(_from_buffer(x)), _addressof(_from_buffer(y)), 1)


class _Python(Kernel):
    def __init__(self, program):
        super().__init__(program.inputs, program.outputs)
        self._function = python.compile_program(program)

    def _run(self, x, y):
        for row, out in _rows(x, y):
            out[:] = self._function(row.tolist())


class _Reference(Kernel):
    def __init__(self, function, inputs):
        self._function, self._inputs = function, dict(inputs)
        super().__init__(inputs, [np.shape(part) for part in self._evaluate(np.zeros(sum(inputs.values())))])

    def _evaluate(self, x):
        starts = np.cumsum([0, *self._inputs.values()])
        blocks = {name: x[start:start + size] for (name, size), start in zip(self._inputs.items(), starts, strict=False)}
        return [np.array(part, dtype=float) for part in self._function(**blocks)]

    def _run(self, x, y):
        for row, out in _rows(x, y):
            out[:] = np.concatenate([part.ravel() for part in self._evaluate(row)])


def _rows(x: np.ndarray, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    count = math.prod(x.shape[:-1])
    return zip(x.reshape(count, x.shape[-1]), y.reshape(count, y.shape[-1]), strict=True)
