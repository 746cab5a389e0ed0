"""A function of arrays, traced once and compiled, called with numpy arrays.

backend "llvm" is machine code, "python" the same program as Python, "reference" the algorithm's own text on floats.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from . import python
from .program import trace

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
        self._cuts = np.cumsum([int(np.prod(shape)) for shape in self.shapes])

    def __call__(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        x = np.ascontiguousarray(x, dtype=float)
        y = np.empty((*x.shape[:-1], int(self._cuts[-1])))
        self._run(x, y)
        parts, start = [], 0
        for shape, stop in zip(self.shapes, self._cuts, strict=True):
            parts.append(y[..., start:stop].reshape((*x.shape[:-1], *shape)))
            start = stop
        return tuple(parts)

    def _run(self, x: np.ndarray, y: np.ndarray) -> None:
        raise TypeError("a Kernel is made by build()")


class _Llvm(Kernel):
    def __init__(self, program):
        from . import llvm

        super().__init__(program.inputs, program.outputs)
        self._owner, self._function = llvm.compile_program(program)

    def _run(self, x, y):
        self._function(x.ctypes.data, y.ctypes.data, math.prod(x.shape[:-1]))


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
