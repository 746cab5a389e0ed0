"""A function of arrays, traced once and compiled, called with numpy arrays.

backend "llvm" is machine code, "c" the same by the system's C compiler, "python" the same program as Python, "reference" the
algorithm's own text on floats.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from ..errors import InputError
from . import c, c_compiler, cache, python, python_call
from .program import Iteration, Program, trace

MANY = 256  # samples: less are not worth compiling for
LONG = 100_000  # nodes: a longer program takes longer to compile than it saves
BACKENDS = ("llvm", "c", "python", "reference")
SLOW = ("kernels run as Python, the same numbers about 100 times slower; pip install 'llvmlite>=0.45' mends it, or a C "
        "compiler, or what `rnea compile` has made of this robot with one")


def available(backend: str) -> str:
    """Return the backend to use; one warning if "llvm" is requested without a suitable llvmlite.

    Then it is "c" with a C compiler, or where kernels compiled earlier may lie, else "python".
    """
    if backend not in BACKENDS:
        raise InputError(f"backend is '{backend}'; allowed are {', '.join(BACKENDS)}")
    if backend == "llvm":
        try:
            from . import llvm_engine  # noqa: F401
        except (ImportError, OSError) as error:  # OSError: its library does not load
            if c_compiler.usable():
                return "c"
            warnings.warn(f"llvmlite cannot be used ({error}): {SLOW}", RuntimeWarning, stacklevel=3)
            return "python"
    return backend


def lanes(backend: str) -> int:
    """Return the number of samples in a tile."""
    if backend != "llvm":
        return 1
    from . import llvm_engine

    return llvm_engine.lanes()


Function = Callable[..., Sequence[Any]]


def build(function: Function, inputs: Mapping[str, int], backend: str,
          repeated: tuple[Function, float, int] | None = None, recipe: str = "") -> Kernel:
    """Return the kernel of ``function(**blocks) -> sequence of arrays``; inputs: name -> length of each block.

    repeated : (step, tolerance, limit) of what runs before, see `Iteration`: ``step(**blocks) -> (first numbers, [error])``
    recipe   : text that determines the function; with it machine code in the cache is found without tracing
    """
    if backend == "reference":
        return _Reference(function, inputs, repeated)
    def traced() -> Program:
        program = trace(function, inputs)
        if repeated is not None:
            program = replace(program, iteration=Iteration(trace(repeated[0], inputs), *repeated[1:]))
        return program

    if backend == "llvm":
        return _Llvm(traced, recipe)
    program = traced()
    if backend == "c" and (code := _by_c(program)):
        return _C(program, code)
    return _Python(program)


def _by_c(program: Program) -> c_compiler.CompiledKernel | None:
    """Return the kernel in C; None, with a warning, if it is not available and Python must run it."""
    try:
        code, why = c_compiler.compiled(program), "there is neither llvmlite nor a C compiler, and no kernel compiled earlier"
    except OSError as error:
        code, why = None, str(error)
    if code is None:
        warnings.warn(f"{why}: {SLOW}", RuntimeWarning, stacklevel=3)
    return code


def c_source(function: Function, inputs: Mapping[str, int], name: str) -> str:
    """Return the function as C source: its arguments are the inputs by their names, then y0, y1, ...; see c.py."""
    program = trace(function, inputs)
    return c.source(program, name, [f"y{k}" for k in range(len(program.outputs))])


class Tiles:
    """Numbers of many samples in the order in which vector code reads them; kernels pass them on without turning them.

    data  : (tiles, size, lanes); the last tile may have more lanes than samples
    count : number of samples
    """

    def __init__(self, data: np.ndarray, count: int):
        self.data, self.count = data, count

    @classmethod
    def of(cls, blocks: Sequence[np.ndarray], lanes: int) -> Tiles:
        """Turn blocks (count, size) of samples, side by side; the lanes that are left over repeat the last sample."""
        count, sizes = len(blocks[0]), [block.shape[1] for block in blocks]
        whole, rest = divmod(count, lanes)
        data = np.empty((whole + bool(rest), sum(sizes), lanes))
        for block, columns in zip(blocks, _slices(sizes)):
            data[:whole, columns] = block[:whole * lanes].reshape(whole, lanes, block.shape[1]).swapaxes(1, 2)
            if rest:
                data[whole, columns] = block[-1][:, None]
                data[whole, columns, :rest] = block[whole * lanes:].T
        return cls(data, count)

    @property
    def lanes(self) -> int:
        """Samples in a tile."""
        return self.data.shape[2]

    @property
    def samples(self) -> np.ndarray:
        """Rows of the samples, (count, size)."""
        tiles, size, lanes = self.data.shape
        return self.data.swapaxes(1, 2).reshape(tiles * lanes, size)[:self.count]


class Kernel:
    """Call with a flat input, (size,) or (samples, size): the blocks side by side. Returns the outputs in their shapes.

    call(*blocks) : one sample, an array for each block, checked: what a controller calls, so no step more than it takes.
                    None, where an argument is not a sound array of floats of the right length, or a result is not finite
    address       : of the machine code, ``void kernel(const double *x, double *y)`` with `size` numbers in and `width` out,
                    for loops in other languages; zero for the other backends. It touches nothing else, may be called from
                    any thread, and holds as long as this object
    """

    call: Callable[..., tuple[np.ndarray, ...] | None]
    address = 0
    lanes = 1  # of tiles

    def __init__(self, inputs: Mapping[str, int], shapes: Sequence[tuple[int, ...]]):
        self.inputs = dict(inputs)
        self.size = sum(inputs.values())
        self.shapes = tuple(shapes)
        self._sizes = [math.prod(shape) for shape in self.shapes]
        self.width = sum(self._sizes)
        self._blocks, self._parts = _slices(self.inputs.values()), _slices(self._sizes)
        self.call = python_call.sequential(self, tuple(inputs.values()))

    def __call__(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        x = np.asarray(x, dtype=float)
        if x.shape[-1:] != (self.size,):
            parts = ", ".join(f"{size} of {name}" for name, size in self.inputs.items())
            raise InputError(f"a kernel's input has shape {x.shape}; ({self.size},) or (samples, {self.size}) is needed: "
                             f"{parts}")
        samples, count = x.shape[:-1], math.prod(x.shape[:-1])
        rows = x.reshape(count, self.size)
        return self._shaped(self._many([rows[:, block] for block in self._blocks], count)[0], samples)

    def samples(self, blocks: Sequence[np.ndarray], count: int) -> tuple[np.ndarray, ...] | None:
        """Many samples: for each block (count, size), or (size,) for all. None if a number, or a result, is not finite."""
        if not all(np.isfinite(block).all() for block in blocks):
            return None
        parts = self._many(blocks, count)[0]
        return self._shaped(parts, (count,)) if all(np.isfinite(part).all() for part in parts) else None

    def of_samples(self, blocks: Sequence[np.ndarray], count: int) -> tuple[np.ndarray, ...]:
        """Evaluate samples without a check of their numbers."""
        return self._shaped(self._many(blocks, count)[0], (count,))

    def first_of_samples(self, blocks: Sequence[np.ndarray], count: int, outputs: int) -> tuple[np.ndarray, ...]:
        """Return the first outputs alone of many samples, which may take less time."""
        return self.of_samples(blocks, count)[:outputs]

    def tiled(self, blocks: Sequence[np.ndarray | Tiles], count: int, kept: Sequence[int]) -> list[Any]:
        """Evaluate samples as `of_samples` does; blocks may be Tiles, and the results of the numbers `kept` are Tiles.

        A result of Tiles has its numbers side by side, without its shape.
        """
        found = self.of_samples([block.samples if isinstance(block, Tiles) else block for block in blocks], count)
        return [Tiles.of([part.reshape(count, -1)], self.lanes) if k in kept else part for k, part in enumerate(found)]

    def sweep(self, x: np.ndarray, state: int) -> np.ndarray:
        """Evaluate a recurrence over rows x (count, size), at least one: the first `state` inputs of each later row become the
        last `state` results of the row before; x is where that happens. Returns the results (count, width).
        """
        x, y = self._contiguous(x), np.empty((len(x), self.width))
        for k in range(len(x)):
            if k:
                x[k, :state] = y[k - 1, self.width - state:]
            self._run(x[k:k + 1], y[k:k + 1])
        return y

    def _contiguous(self, x: np.ndarray) -> np.ndarray:
        """Return rows (count, size) that the code can read: themselves, or a copy."""
        if x.shape != (len(x), self.size):
            raise ValueError(f"rows of a kernel have shape {x.shape}; (count, {self.size}) is needed")
        return np.require(x, dtype=float, requirements=("C", "A", "W"))

    def _shaped(self, parts: Sequence[np.ndarray], samples: tuple[int, ...],
                outputs: int | None = None) -> tuple[np.ndarray, ...]:
        return tuple([part.reshape(samples + shape) for part, shape in zip(parts, self.shapes[:outputs], strict=True)])

    def _many(self, blocks: Sequence[np.ndarray], count: int) -> tuple[Sequence[np.ndarray], bool]:
        """Results (count, size) each, and whether all numbers are finite, as far as that is found out by the way."""
        x, y = np.empty((count, self.size)), np.empty((count, self.width))
        np.concatenate([np.broadcast_to(block, (count, block.shape[-1])) for block in blocks] or [x], axis=1, out=x)
        self._run(x, y)
        return [y[:, part] for part in self._parts], True

    def _run(self, x: np.ndarray, y: np.ndarray) -> None:
        raise TypeError("a Kernel is made by build()")


class _Llvm(Kernel):
    def __init__(self, traced: Callable[[], Program], recipe: str = ""):
        from . import llvm_engine

        if recipe and cache.sources():
            self._code, sizes = llvm_engine.MachineCode.by_recipe(recipe, traced)
            super().__init__(sizes["inputs"], [tuple(shape) for shape in sizes["outputs"]])
            self._traced, self._iterated = traced, sizes["iterated"]
        else:
            program = traced()
            super().__init__(program.inputs, program.outputs)
            self._code = llvm_engine.MachineCode(program)
            self._traced, self._iterated = (lambda: program), program.iteration is not None
        self.address = self._code.kernel
        self.call = self._code.call or self.call
        self._batch: Any = None
        self._first: dict[int, Any] = {}  # code for many samples of the first outputs alone
        self._seen, self._sweep = 0, self._code.sweep
        self.lanes = llvm_engine.lanes()

    @cached_property
    def _program(self) -> Program:
        return self._traced()

    def __call__(self, x):
        call = self._code.call if np.shape(x) == (self.size,) else None
        return (call and call(*[x[block] for block in self._blocks])) or super().__call__(x)

    def samples(self, blocks, count):
        if self._batch is None:
            return super().samples(blocks, count)
        parts, sound = self._many(blocks, count)
        return self._shaped(parts, (count,)) if sound else None

    def first_of_samples(self, blocks, count, outputs):
        if self._iterated or count < MANY or len(self._program.nodes) > LONG:
            return super().first_of_samples(blocks, count, outputs)
        if outputs not in self._first:
            from . import llvm_engine

            self._first[outputs] = llvm_engine.batch(self._program.first(outputs))
        parts = [np.empty((count, size)) for size in self._sizes[:outputs]]
        self._first[outputs](blocks, parts, count)
        return self._shaped(parts, (count,), outputs)

    def tiled(self, blocks, count, kept):
        if self._iterated or not count:
            return super().tiled(blocks, count, kept)
        self._compile_batch()
        tiles = -(-count // self.lanes)
        outs = [np.empty((tiles, size, self.lanes) if k in kept else (count, size)) for k, size in enumerate(self._sizes)]
        self._batch([block if not isinstance(block, Tiles) else block.data if block.lanes == self.lanes else block.samples
                     for block in blocks], outs, count)
        return [Tiles(out, count) if k in kept else out.reshape(count, *shape)
                for k, (out, shape) in enumerate(zip(outs, self.shapes))]

    def _compile_batch(self) -> None:
        if self._batch is None:
            from . import llvm_engine

            self._batch = llvm_engine.batch(self._program)

    def sweep(self, x, state):
        if self._sweep is None:
            from . import llvm_engine

            self._sweep = llvm_engine.sweep(self._program)
        x, y = self._contiguous(x), np.empty((len(x), self.width))
        self._sweep(x, y, state)
        return y

    def _many(self, blocks, count):
        """Evaluate a few samples one by one; after many calls, code for batches is compiled."""
        self._seen += count
        if self._batch is None and (self._iterated or self._seen < MANY or len(self._program.nodes) > LONG):
            return super()._many(blocks, count)
        self._compile_batch()
        whole = np.empty(count * self.width)  # in one piece, which malloc keeps for the next call: fresh pages cost a third
        outs = [whole[count * part.start:count * part.stop].reshape(count, size)
                for part, size in zip(self._parts, self._sizes)]
        return outs, self._batch(blocks, outs, count)

    def _run(self, x, y):
        self._code.rows(x.ctypes.data, y.ctypes.data, len(x))


class _C(Kernel):
    def __init__(self, program: Program, code: c_compiler.CompiledKernel):
        super().__init__(program.inputs, program.outputs)
        self._code, self.address = code, code.address

    def _run(self, x, y):
        self._code.rows(x.ctypes.data, y.ctypes.data, len(x))


class _Python(Kernel):
    def __init__(self, program):
        super().__init__(program.inputs, program.outputs)
        self._function = python.compile_program(program)
        self._iteration = program.iteration
        self._step = python.compile_program(program.iteration.program) if program.iteration else None

    def _run(self, x, y):
        for row, out in zip(x, y, strict=True):
            values = row.tolist()
            if self._iteration is not None and self._step is not None:
                _iterate(self._step, values, self._iteration.tolerance, self._iteration.limit)
            out[:] = self._function(values)


class _Reference(Kernel):
    def __init__(self, function, inputs, repeated=None):
        self._function, self._repeated, self.inputs = function, repeated, dict(inputs)
        with np.errstate(all="ignore"):
            super().__init__(inputs, [np.shape(part) for part in self._evaluate(function, np.zeros(sum(inputs.values())))])

    def _evaluate(self, function, x):
        starts = np.cumsum([0, *self.inputs.values()])
        blocks = {name: x[start:start + size] for (name, size), start in zip(self.inputs.items(), starts, strict=False)}
        return [np.array(part, dtype=float) for part in function(**blocks)]

    def _flat(self, function, x):
        return np.concatenate([part.ravel() for part in self._evaluate(function, x)])

    def _run(self, x, y):
        for row, out in zip(x, y, strict=True):
            if self._repeated is not None:
                step, tolerance, limit = self._repeated
                row = row.copy()
                _iterate(partial(self._flat, step), row, tolerance, limit)
            out[:] = self._flat(self._function, row)


def _iterate(step: Callable[[Any], Any], values: Any, tolerance: float, limit: int) -> None:
    """Run the steps of an `Iteration` on a flat input."""
    for _ in range(limit):
        found = step(values)
        values[:len(found) - 1] = found[:-1]
        if not found[-1] > tolerance:
            break


def _slices(sizes: Iterable[int]) -> list[slice]:
    """Return the slices of arrays of these sizes in their concatenation."""
    ends = [0, *accumulate(sizes)]
    return [slice(a, b) for a, b in pairwise(ends)]
