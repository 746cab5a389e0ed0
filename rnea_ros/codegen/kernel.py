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
from . import python, python_call
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
    """Call with a flat input, (size,) or (samples, size): the blocks side by side. Returns the outputs in their shapes.

    call(*blocks) : one sample, an array for each block, checked: what a controller calls, so no step more than it takes.
                    None, where an argument is not a sound array of floats of the right length
    address       : of the machine code, ``void kernel(const double *x, double *y)`` with `size` numbers in and `width` out,
                    for loops in other languages; zero for the other backends. It touches nothing else, may be called from
                    any thread, and holds as long as this object
    """

    call: Callable[..., tuple[np.ndarray, ...] | None]
    address = 0

    def __init__(self, inputs: Mapping[str, int], shapes: Sequence[tuple[int, ...]]):
        self.inputs = dict(inputs)
        self.size = sum(inputs.values())
        self.shapes = tuple(shapes)
        sizes = [math.prod(shape) for shape in self.shapes]
        self.width = sum(sizes)
        self._parts = [(sum(sizes[:k]), sum(sizes[:k + 1]), shape) for k, shape in enumerate(self.shapes)]
        self.call = python_call.sequential(self, tuple(inputs.values()))

    def __call__(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        x = np.ascontiguousarray(x, dtype=float)
        samples = x.shape[:-1]
        y = np.empty((*samples, self.width))
        self._run(x, y)
        return tuple([y[..., a:b].reshape(samples + shape) for a, b, shape in self._parts])

    def _run(self, x: np.ndarray, y: np.ndarray) -> None:
        raise TypeError("a Kernel is made by build()")


class _Llvm(Kernel):
    def __init__(self, program):
        from . import llvm

        super().__init__(program.inputs, program.outputs)
        self._code = llvm.MachineCode(program)
        self.address = self._code.kernel
        self.call = self._code.call or self.call

    def _run(self, x, y):
        self._code.batch(x.ctypes.data, y.ctypes.data, math.prod(x.shape[:-1]))


class _Python(Kernel):
    def __init__(self, program):
        super().__init__(program.inputs, program.outputs)
        self._function = python.compile_program(program)

    def _run(self, x, y):
        for row, out in _rows(x, y):
            out[:] = self._function(row.tolist())


class _Reference(Kernel):
    def __init__(self, function, inputs):
        self._function, self.inputs = function, dict(inputs)
        super().__init__(inputs, [np.shape(part) for part in self._evaluate(np.zeros(sum(inputs.values())))])

    def _evaluate(self, x):
        starts = np.cumsum([0, *self.inputs.values()])
        blocks = {name: x[start:start + size] for (name, size), start in zip(self.inputs.items(), starts, strict=False)}
        return [np.array(part, dtype=float) for part in self._function(**blocks)]

    def _run(self, x, y):
        for row, out in _rows(x, y):
            out[:] = np.concatenate([part.ravel() for part in self._evaluate(row)])


def _rows(x: np.ndarray, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    count = math.prod(x.shape[:-1])
    return zip(x.reshape(count, x.shape[-1]), y.reshape(count, y.shape[-1]), strict=True)
